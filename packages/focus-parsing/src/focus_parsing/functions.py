"""The structure of XML calls: functions, their parameters and the raw values."""

from __future__ import annotations

from dataclasses import dataclass, field

from focus_parsing.tags import (
    EOF,
    FUNCTION,
    FUNCTION_END,
    PARAMETER,
    PARAMETER_END,
    TOOL_CALL_END,
    TOOL_CALL_OPEN,
    Tags,
)

__all__ = ["Function", "Functions", "read_function", "read_functions"]


@dataclass(frozen=True, slots=True)
class Function:
    """One function as written; values are raw, layout newlines included."""

    name: str
    parameters: dict[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True)
class Functions:
    """What the body of a block holds."""

    found: tuple[Function, ...] | None
    """None if anything in the body is out of place."""
    stop: int
    """Index of the tag at which the body ends."""
    complete: bool
    """False if the body breaks off."""


def read_functions(tags: Tags, at: int, begin: int) -> Functions:
    """Read the body of a block to the tag that ends it.

    Args:
        tags: The tags of the reply.
        at: Index of the body's first tag.
        begin: Where the body starts in the text.
    """
    return _read(tags, at, begin, bare=None)


def read_function(tags: Tags, at: int, hopeless: set[int]) -> Functions:
    """Read one function that stands without a block, to its own end tag.

    Args:
        tags: The tags of the reply.
        at: Index of its opening tag.
        hopeless: Tags from which no end was found; grows, so that they are not tried again.
    """
    return _read(tags, at, tags.starts[at], bare=hopeless)


def _read(tags: Tags, at: int, begin: int, bare: set[int] | None) -> Functions:
    functions: list[Function] = []
    sound, is_open, position = True, False, begin
    visited: list[int] = []
    while True:
        kind = tags.kinds[at]
        sound = sound and tags.blank(position, tags.starts[at])
        if kind in (TOOL_CALL_END, TOOL_CALL_OPEN, EOF) or (bare is not None and _ends_bare(kind, at, functions, bare)):
            break
        visited.append(at)
        position = tags.ends[at]
        if kind == PARAMETER and tags.name(at) is not None:
            end = tags.value_end(at + 1)
            if end < 0:
                at, is_open = tags.next_call(at + 1), True
                sound, kind = False, EOF
                break
            name = tags.name(at)
            sound = sound and is_open and bool(name) and name not in functions[-1].parameters
            if sound and name:
                functions[-1].parameters[name] = tags.text[position : tags.starts[end]]
            at, position = end, tags.starts[end]
            if tags.kinds[end] == PARAMETER_END:
                at, position = end + 1, tags.ends[end]
            continue
        if kind == FUNCTION:
            name = tags.name(at)
            sound = sound and bool(name)
            functions.append(Function(name or ""))
            is_open = True
        elif kind == FUNCTION_END and is_open:
            is_open = False
            if bare is not None:
                return Functions(tuple(functions) if sound else None, at, complete=True)
        else:
            sound = False
        at += 1
    if bare is not None:
        bare.update(visited)
    complete = bare is None and not (kind == EOF and is_open)
    return Functions(tuple(functions) if sound and complete and functions else None, at, complete)


def _ends_bare(kind: int, at: int, functions: list[Function], hopeless: set[int]) -> bool:
    return at in hopeless or (kind == FUNCTION and bool(functions))
