"""From the raw value of an XML parameter to JSON text."""

from __future__ import annotations

import re
from collections.abc import Callable

from focus_parsing.json_text import encodable, string_json
from focus_parsing.objects import read_json
from focus_parsing.schema import Types

__all__ = ["value_json"]

_LITERALS = {"true": "true", "True": "true", "false": "false", "False": "false", "null": "null", "None": "null"}
_INTEGER = re.compile(r"-?[0-9]+")
_DECIMAL = re.compile(r"-?[0-9]+(?:\.[0-9]+)?(?:e[+-][0-9]+)?")
_ANY_INTEGER = re.compile(r"[+-]?[0-9]+")
_ANY_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_LONGEST_NUMBER = 400
"""Characters; beyond it a literal is kept as text, since consumers cannot convert it (Python stops at 4,300 digits)."""


def value_json(raw: str, types: Types) -> str:
    """The JSON text of a parameter's value.

    Args:
        raw: What stands between the tags; one line end on each side is layout.
        types: The declared types; without any, only what templates write for a non-string is decoded.
    """
    start = 2 if raw.startswith("\r\n") else raw.startswith("\n")
    end = len(raw) - (2 if raw.endswith("\r\n", start) else raw.endswith("\n", start))
    value = raw[start:end]
    text = _untyped(value) if not types else _typed(value, types)
    return string_json(value) if text is None else encodable(text)


def _untyped(value: str) -> str | None:
    """Literals that print back exactly as written, JSON objects and lists; None for a string."""
    if value in _LITERALS:
        return _LITERALS[value]
    if len(value) <= _LONGEST_NUMBER:
        if _INTEGER.fullmatch(value):
            return value if str(int(value)) == value else None
        if _DECIMAL.fullmatch(value):
            return value if repr(float(value)) == value else None
    return _container(value, dict) or _container(value, list)


def _typed(value: str, types: Types) -> str | None:
    if types == frozenset(("string",)):
        return None
    text = value if "string" in types else value.strip()
    return next((found for name, fit in _FITS if name in types and (found := fit(text)) is not None), None)


def _null(text: str) -> str | None:
    return "null" if text in ("null", "None") else None


def _integer(text: str) -> str | None:
    return str(int(text)) if len(text) <= _LONGEST_NUMBER and _ANY_INTEGER.fullmatch(text) else None


def _number(text: str) -> str | None:
    if len(text) > _LONGEST_NUMBER or not _ANY_NUMBER.fullmatch(text):
        return None
    if _ANY_INTEGER.fullmatch(text):
        return str(int(text))
    number = float(text)
    return repr(number) if number - number == 0 else None


def _boolean(text: str) -> str | None:
    return text.lower() if text.lower() in ("true", "false") else None


def _object(text: str) -> str | None:
    return _container(text, dict)


def _array(text: str) -> str | None:
    return _container(text, list)


_FITS: tuple[tuple[str, Callable[[str], str | None]], ...] = (
    ("null", _null),
    ("integer", _integer),
    ("number", _number),
    ("boolean", _boolean),
    ("object", _object),
    ("array", _array),
)


def _container(text: str, kind: type) -> str | None:
    """The text of a strict JSON object or list, as written; None for anything else."""
    written = text.strip()
    if not written.startswith("{" if kind is dict else "["):
        return None
    try:
        read_json(written)
    except (ValueError, RecursionError):
        return None
    return written
