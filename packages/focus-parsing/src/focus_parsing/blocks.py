"""The call blocks of a reply: where each begins and ends, whatever its dialect."""

from __future__ import annotations

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

__all__ = ["Block", "bare_function", "block_at"]

_FUNCTION_TAG = "<function="


class Block(NamedTuple):
    """One call block of a reply."""

    start: int
    """Index of its first character, the opening tag's."""
    stop: int
    """Index past its last character, the end tag's if there is one."""
    next: int
    """Index of the first tag after it."""
    body: str
    """What stands between the tags."""
    objects: list[dict[str, Member]] | None = None
    """The JSON objects that the body consists of, if it does."""
    functions: tuple[Function, ...] | None = None
    """The XML functions that the body consists of, if it does."""
    complete: bool = True
    """False if the text ended before the body did."""


def block_at(tags: Tags, at: int) -> Block | None:
    """The block that the ``<tool_call>`` at this tag opens; None if the tag is only mentioned.

    An opening that is written several times is one opening.
    """
    opening = at
    while tags.kinds[at + 1] == TOOL_CALL_OPEN and tags.adjoins(at):
        at += 1
    begin, at = tags.ends[at], at + 1
    rest = tags.text[begin : tags.starts[at]].lstrip()
    if rest.startswith(("{", "[")):
        return _json_block(tags, opening, at, begin)
    if not rest and tags.kinds[at] == FUNCTION:
        read = read_functions(tags, at, begin)
        return _block(tags, opening, read.stop, begin, functions=read.found, complete=read.complete)
    if tags.kinds[at] == EOF and _FUNCTION_TAG.startswith(tags.text[begin:].strip()):
        return _block(tags, opening, at, begin, complete=False)
    while tags.kinds[at] not in ENDS_BLOCK:
        at += 1
    return _block(tags, opening, at, begin) if tags.kinds[at] == TOOL_CALL_END else None


def bare_function(tags: Tags, at: int) -> Block | None:
    """The complete function that the tag at the start of a line opens without a block; None if it is a mention."""
    if tags.kinds[at + 1] not in (PARAMETER, FUNCTION_END) or not tags.adjoins(at):
        return None
    last = tags.function_end(at + 1)
    if last < 0:
        return None
    start, end = tags.starts[at], tags.ends[last]
    after, stop = _past_ends(tags, last + 1, end)
    return Block(start, stop, after, tags.text[start:end], None, read_functions(tags, at, start, last + 1).found)


def _json_block(tags: Tags, opening: int, at: int, begin: int) -> Block:
    first = at
    while tags.kinds[first] not in ENDS_BLOCK:
        first += 1
    end = first
    objects = read_objects(tags.text[begin : tags.starts[end]])
    if objects is None:  # the first tag may stand in a string
        end = json_end(tags, first, begin)
        if end != first:
            objects = read_objects(tags.text[begin : tags.starts[end]])
    complete = tags.kinds[end] != EOF or objects is not None
    return _block(tags, opening, end, begin, objects=objects, complete=complete)


def _block(
    tags: Tags,
    opening: int,
    end: int,
    begin: int,
    *,
    objects: list[dict[str, Member]] | None = None,
    functions: tuple[Function, ...] | None = None,
    complete: bool = True,
) -> Block:
    cut = tags.starts[end]
    stop = tags.ends[end] if tags.kinds[end] == EOF else cut
    body = tags.text[begin : cut if complete else stop]
    after, stop = _past_ends(tags, end, stop)
    return Block(tags.starts[opening], stop, after, body, objects, functions, complete)


def _past_ends(tags: Tags, at: int, stop: int) -> tuple[int, int]:
    """Past the end tag and its repetitions, which end nothing more."""
    while tags.kinds[at] == TOOL_CALL_END and tags.blank(stop, tags.starts[at]):
        at, stop = at + 1, tags.ends[at]
    return at, stop
