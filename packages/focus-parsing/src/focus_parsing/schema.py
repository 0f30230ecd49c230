"""The types that tool schemas declare for their parameters."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from focus_types import InvalidRequestError

__all__ = ["UNKNOWN", "Types", "declared_types", "parameter_types"]

type Types = frozenset[str]
"""JSON Schema type names; empty if nothing is known."""

_NAMES = frozenset(("null", "integer", "number", "boolean", "object", "array", "string"))
UNKNOWN: Types = frozenset()


def parameter_types(tools: Sequence[Mapping[str, Any]]) -> dict[tuple[str, str], Types]:
    """The declared types by (tool, parameter); entries that are no function with properties are left out.

    Args:
        tools: OpenAI-shaped tools, ``{"type": "function", "function": {...}}`` or the inner mapping alone.

    Raises:
        InvalidRequestError: ``tools`` is not a sequence.
    """
    if isinstance(tools, str | bytes | Mapping) or not isinstance(tools, Iterable):
        raise InvalidRequestError(f"tools must be a list of tool schemas, got {type(tools).__name__}")
    types: dict[tuple[str, str], Types] = {}
    for tool in tools:
        function = _mapping(_mapping(tool).get("function", tool))
        name = function.get("name")
        for parameter, schema in _mapping(_mapping(function.get("parameters")).get("properties")).items():
            declared = declared_types(schema)
            if isinstance(name, str) and declared:
                types[name, parameter] = declared
    return types


def declared_types(schema: Any) -> Types:
    """The types of a JSON Schema: from ``type``, else ``anyOf`` or ``oneOf``, ``allOf``, the values of ``enum``.

    Returns:
        Nothing if any alternative is of an unknown type, because the value may be of that one.
    """
    given = _mapping(schema)
    if "type" in given:
        names = _sequence(given["type"]) or [given["type"]]
        known = frozenset(name for name in names if isinstance(name, str))
        return known if known <= _NAMES and len(known) == len(set(map(repr, names))) else UNKNOWN
    for key in ("anyOf", "oneOf"):
        if key in given:
            alternatives = [declared_types(part) for part in _sequence(given[key])]
            return UNKNOWN.union(*alternatives) if all(alternatives) else UNKNOWN
    if "allOf" in given:
        return UNKNOWN.union(*(declared_types(part) for part in _sequence(given["allOf"])))
    return frozenset(_type_of(value) for value in _sequence(given.get("enum")))


def _type_of(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return "integer"
    if isinstance(value, float):
        return "number"
    if isinstance(value, str):
        return "string"
    return "object" if isinstance(value, Mapping) else "array"


def _mapping(value: Any) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def _sequence(value: Any) -> Sequence[Any]:
    return cast("Sequence[Any]", value) if isinstance(value, list | tuple) else ()
