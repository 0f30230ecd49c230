"""The structure of XML calls: functions, their parameters and the raw values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from focus_parsing.tags import (
    ENDS_BLOCK,
    EOF,
    FUNCTION,
    FUNCTION_END,
    PARAMETER,
    Tags,
)

__all__ = ["Function", "read_functions"]


class Function(NamedTuple):
    """One function as written; values are raw, layout newlines included."""

    name: str
    parameters: dict[str, str]


def read_functions(tags: Tags, at: int, begin: int, until: int = -1) -> tuple[Sequence[Function], int, bool]:
    """Read the body of a block to the tag that ends it.

    Args:
        tags: The tags of the reply.
        at: Index of the body's first tag.
        begin: Where the body starts in the text.
        until: Index of the tag to stop at, whatever it is.

    Returns:
        The functions, none if anything in the body is out of place; the index of the tag at which the body ends;
        and whether it is complete, which it is not if the text breaks off in it.
    """
    kinds, starts, ends, text = tags.kinds, tags.starts, tags.ends, tags.text
    functions: list[Function] = []
    sound, is_open, position = True, False, begin
    kind = kinds[at]
    while at != until:
        kind, start = kinds[at], starts[at]
        if start != position and not text[position:start].isspace():
            sound = False
        if kind in ENDS_BLOCK:
            break
        position = ends[at]
        if kind == FUNCTION:
            name = tags.name(at)
            sound = sound and bool(name)
            functions.append(Function(name, {}))
            is_open = True
        elif kind == PARAMETER and tags.is_closed(at):
            end = tags.value_end(at + 1)
            if end < 0:
                return (), tags.next_call(at + 1), False
            name = tags.name(at) if sound and is_open else ""
            if name and name not in functions[-1].parameters:
                functions[-1].parameters[name] = text[position : starts[end]]
            else:
                sound = False
            at, position = tags.past_value(end)
            continue
        elif kind == FUNCTION_END and is_open:
            is_open = False
        else:
            sound = False
        at += 1
    complete = kind != EOF or not is_open
    return functions if sound and complete else (), at, complete
