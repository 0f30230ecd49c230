"""The call blocks of a reply: where each begins and ends, whatever its dialect."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from focus_parsing.functions import Function, read_functions
from focus_parsing.objects import Member, json_end, read_objects
from focus_parsing.tags import (
    ENDS_BLOCK,
    EOF,
    FUNCTION,
    FUNCTION_END,
    PARAMETER,
    TOOL_CALL_END,
    TOOL_CALL_OPEN,
    Tags,
)

__all__ = ["Block", "bare_function", "block_at", "last_opening"]

_FUNCTION_TAG = "<function="


class Block(NamedTuple):
    """One call block of a reply."""

    start: int
    """Index of its first character, the opening tag's."""
    stop: int
    """Index past its last character, the end tag's if there is one."""
    next: int
    """Index of the first tag after it."""
    text: str
    """The reply that it is in."""
    begin: int
    """Index of the body's first character."""
    end: int
    """Index past the body's last character."""
    complete: bool
    """False if the text ended before the body did."""
    objects: Sequence[dict[str, Member]] = ()
    """The JSON objects that the body consists of, if it does."""
    functions: Sequence[Function] = ()
    """The XML functions that the body consists of, if it does."""

    @property
    def body(self) -> str:
        """What stands between the tags."""
        return self.text[self.begin : self.end]


def last_opening(tags: Tags, at: int) -> int:
    """Index of the last ``<tool_call>`` of those that follow this one with nothing between: they are one opening."""
    while tags.kinds[at + 1] == TOOL_CALL_OPEN and tags.adjoins(at):
        at += 1
    return at


def block_at(tags: Tags, first: int, last: int) -> Block | None:
    """The block that the openings from ``first`` to ``last`` open; None if the tag is only mentioned."""
    text, kinds, starts = tags.text, tags.kinds, tags.starts
    begin, at = tags.ends[last], last + 1
    kind, content = kinds[at], tags.past_space(begin)
    complete = True
    objects: Sequence[dict[str, Member]] = ()
    functions: Sequence[Function] = ()
    if kind == FUNCTION and content == starts[at]:
        functions, at, complete = read_functions(tags, at, begin)
    elif text.startswith(("{", "["), content):
        objects, at = _read_json(tags, at, content)
        complete = bool(objects) or kinds[at] != EOF
    elif kind == EOF and _FUNCTION_TAG.startswith(text[content : content + len(_FUNCTION_TAG)]):
        complete = False
    else:
        while kinds[at] not in ENDS_BLOCK:
            at += 1
        if kinds[at] != TOOL_CALL_END:
            return None
    end = stop = starts[at]
    if kinds[at] == EOF:
        stop = tags.ends[at]
        end = end if complete else stop
    elif kinds[at] == TOOL_CALL_END:
        at, stop = _past_ends(tags, at, stop)
    return Block(starts[first], stop, at, text, begin, end, complete, objects, functions)


def bare_function(tags: Tags, at: int) -> Block | None:
    """The complete function that the tag at the start of a line opens without a block; None if it is a mention."""
    if tags.kinds[at + 1] not in (PARAMETER, FUNCTION_END) or not tags.adjoins(at):
        return None
    last = tags.function_end(at + 1)
    if last < 0:
        return None
    start, end = tags.starts[at], tags.ends[last]
    functions, _, _ = read_functions(tags, at, start, last + 1)
    after, stop = _past_ends(tags, last + 1, end)
    return Block(start, stop, after, tags.text, start, end, True, (), functions)


def _read_json(tags: Tags, at: int, begin: int) -> tuple[Sequence[dict[str, Member]], int]:
    """The objects of a JSON body and the tag at which it ends."""
    while tags.kinds[at] not in ENDS_BLOCK:
        at += 1
    body = tags.text[begin : tags.starts[at]]
    objects = read_objects(body)
    if not objects and '"' in body:  # the tag may stand in a string
        end = json_end(tags, at, begin)
        if end != at:
            at, objects = end, read_objects(tags.text[begin : tags.starts[end]])
    return objects, at


def _past_ends(tags: Tags, at: int, stop: int) -> tuple[int, int]:
    """Past the end tag and its repetitions, which end nothing more."""
    while tags.kinds[at] == TOOL_CALL_END and tags.blank(stop, tags.starts[at]):
        at, stop = at + 1, tags.ends[at]
    return at, stop
