"""The structure of JSON calls: strict objects, their members with the text they were read from."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, NamedTuple, Never

from focus_parsing.tags import ENDS_BLOCK, EOF, Tags

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
_SPACE = r"[ \t\n\r]*"
_KEY = rf'"([^"\\\x00-\x1f]*+(?:\\.[^"\\\x00-\x1f]*+)*+)"{_SPACE}:{_SPACE}'
_FIRST_MEMBER = re.compile(rf"{_SPACE}\{{{_SPACE}(?:{_KEY}|\}})")
_NEXT_MEMBER = re.compile(rf"{_SPACE}(?:,{_SPACE}{_KEY}|\}})")
_NEXT_ITEM = re.compile(r"[ \t\n\r]*([,\]])")
_QUOTE = re.compile(r'[^"\\]*+(?:\\.[^"\\]*+)*+(?=")', re.DOTALL)
_STRING_BODY = re.compile(r'[^"\\\x00-\x1f]*+(?:\\.[^"\\\x00-\x1f]*+)*+')
_GOES_ON = re.compile(r"\s*[,:}\]]")


def read_json(text: str) -> Any:
    """The value of a strict JSON text, numbers replaced by their length.

    Raises:
        ValueError: It is not strict JSON.
        RecursionError: It is nested too deep to read.
    """
    return _DECODER.decode(text)


def read_objects(text: str) -> Sequence[dict[str, Member]]:
    """The objects of a text that is one or more JSON objects, or one list of them; none if it is not.

    Args:
        text: Without white space before it.
    """
    text = text.rstrip()
    try:
        if text.startswith("{") and text.endswith("}"):
            return _sequence(text)
        if text.startswith("[") and text.endswith("]"):
            return _list(text)
    except (ValueError, RecursionError):
        pass
    return ()


def _sequence(text: str) -> list[dict[str, Member]]:
    objects: list[dict[str, Member]] = []
    at = 0
    while at < len(text):
        members, at = _object(text, at)
        objects.append(members)
    return objects


def _list(text: str) -> Sequence[dict[str, Member]]:
    objects: list[dict[str, Member]] = []
    separator, at = ",", 1
    while separator == ",":
        members, at = _object(text, at)
        objects.append(members)
        following = _NEXT_ITEM.match(text, at)
        if following is None:
            raise ValueError("no separator")
        separator, at = following[1], following.end()
    return objects if at == len(text) else ()


def _object(text: str, at: int) -> tuple[dict[str, Member], int]:
    members: dict[str, Member] = {}
    written = _FIRST_MEMBER.match(text, at)
    while written:
        key = written[1]
        if key is None:  # the closing brace
            return members, written.end()
        if "\\" in key:
            key = _DECODER.decode(f'"{key}"')
        start = written.end()
        value, end = _DECODER.raw_decode(text, start)
        if key in members:
            break
        members[key] = Member(value, text[start:end])
        written = _NEXT_MEMBER.match(text, end)
    raise ValueError("not an object, or one with a repeated key")


def json_end(tags: Tags, at: int, begin: int) -> int:
    """Index of the first tag from ``at`` on that ends a JSON body: an end or an opening outside strings, or EOF.

    A string is what stands between quotes on one line, before ``,``, ``:``, ``}`` or ``]``: so a forgotten or
    a stray quote does not hide the end of its own block or the next block.
    """
    text, position = tags.text, begin
    while tags.kinds[at] != EOF:
        start = tags.starts[at]
        if tags.kinds[at] in ENDS_BLOCK:
            while position <= start and (quote := _QUOTE.match(text, position, start)):
                body = _STRING_BODY.match(text, quote.end() + 1)
                stop = body.end() if body else len(text)
                if text.startswith('"', stop) and _GOES_ON.match(text, stop + 1):
                    position = stop + 1
                elif stop > start:
                    return at
                else:
                    position = stop
            if position <= start:
                break
        at += 1
    return at
