"""The structure of JSON calls: strict objects, their members with the text they were read from."""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple, Never

from focus_parsing.tags import EOF, TOOL_CALL_END, TOOL_CALL_OPEN, Tags

__all__ = ["Member", "json_end", "read_json", "read_objects"]


class Member(NamedTuple):
    """The value of one key."""

    value: Any
    """Good for its type, and for its content if it is a string."""
    text: str
    """As it is written."""


def _refuse(constant: str) -> Never:
    raise ValueError(f"{constant} is not JSON")


# Numbers stay text in the raw slices, so they are not converted: that has limits (digits) and costs time.
_DECODER = json.JSONDecoder(parse_constant=_refuse, parse_int=len, parse_float=len)
_SPACE = re.compile(r"[ \t\n\r]*")
_QUOTE = re.compile(r'[^"\\]*+(?:\\.[^"\\]*+)*+(?=")', re.DOTALL)
_STRING_BODY = re.compile(r'[^"\\\x00-\x1f]*+(?:\\.[^"\\\x00-\x1f]*+)*+')
_GOES_ON = re.compile(r"\s*[,:}\]]")


def read_json(text: str) -> Any:
    """The value of a strict JSON text, numbers replaced by their length.

    Raises:
        ValueError: It is not strict JSON.
        RecursionError: It is nested too deep to read.
    """
    at = _skip(text, 0)
    value, end = _DECODER.raw_decode(text, at)
    if _skip(text, end) != len(text):
        raise ValueError("text after the value")
    return value


def read_objects(text: str) -> list[dict[str, Member]] | None:
    """The objects of a text that is one or more JSON objects, or one list of them; None if it is not."""
    try:
        return _objects(text)
    except (ValueError, RecursionError):
        return None


def _objects(text: str) -> list[dict[str, Member]]:
    objects: list[dict[str, Member]] = []
    at = _skip(text, 0)
    if text.startswith("[", at):
        separator = "["
        while separator != "]":
            members, at = _object(text, _skip(text, at + 1))
            objects.append(members)
            separator, at = _next(text, at, ",]")
        at = _skip(text, at + 1)
    else:
        while at < len(text):
            members, at = _object(text, at)
            objects.append(members)
            at = _skip(text, at)
    if at != len(text) or not objects:
        raise ValueError("not objects alone")
    return objects


def _object(text: str, at: int) -> tuple[dict[str, Member], int]:
    members: dict[str, Member] = {}
    separator, at = _next(text, at, "{")
    if text.startswith("}", _skip(text, at + 1)):
        return members, _skip(text, at + 1) + 1
    while separator != "}":
        _, at = _next(text, at + 1, '"')
        key, at = _DECODER.raw_decode(text, at)
        _, at = _next(text, at, ":")
        at = _skip(text, at + 1)
        value, end = _DECODER.raw_decode(text, at)
        if key in members:
            raise ValueError(f"{key} twice")
        members[key] = Member(value, text[at:end])
        separator, at = _next(text, end, ",}")
    return members, at + 1


def _skip(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match else at


def _next(text: str, at: int, wanted: str) -> tuple[str, int]:
    at = _skip(text, at)
    found = text[at : at + 1]
    if not found or found not in wanted:
        raise ValueError(f"{found!r} instead of one of {wanted}")
    return found, at


def json_end(tags: Tags, at: int, begin: int) -> int:
    """Index of the first tag from ``at`` on that ends a JSON body: an end or an opening outside strings, or EOF.

    A string is what stands between quotes on one line, before ``,``, ``:``, ``}`` or ``]``: so a forgotten or
    a stray quote does not hide the end of its own block or the next block.
    """
    text, position = tags.text, begin
    while tags.kinds[at] != EOF:
        start = tags.starts[at]
        if tags.kinds[at] in (TOOL_CALL_END, TOOL_CALL_OPEN):
            while position <= start and (quote := _QUOTE.match(text, position, start)):
                body = _STRING_BODY.match(text, quote.end() + 1)
                stop = body.end() if body else len(text)
                closes = text.startswith('"', stop) and _GOES_ON.match(text, stop + 1)
                position = stop + 1 if closes else stop
            if position <= start:
                break
        at += 1
    return at
