"""Reading a request's JSON fields, refusing wrong types the way pydantic servers do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn, TypeGuard

__all__ = ["Fields", "is_list"]


def is_list(value: Any) -> TypeGuard[list[Any]]:
    """Whether a JSON value is an array."""
    return isinstance(value, list)


class Fields:
    """A JSON object whose fields are read by type; null counts as absent.

    Args:
        body: The decoded body.
        refuse: Raises for the field's name, the kind of problem, and a sentence.

    Raises:
        Refusal: From ``refuse``, where the body is no object or a field has another type.
    """

    def __init__(self, body: Any, refuse: Callable[[str, str, str], NoReturn]) -> None:
        self._refuse = refuse
        if not isinstance(body, dict):
            refuse("", "json_invalid", "Input should be a valid JSON object")
        self._body: dict[str, Any] = dict(body)  # pyright: ignore[reportUnknownArgumentType] - JSON

    def raw(self, name: str) -> Any:
        """Whatever was sent."""
        return self._body.get(name)

    def names(self) -> frozenset[str]:
        """Names of the fields that were sent."""
        return frozenset(self._body)

    def integer(self, name: str, default: int | None = None) -> int | None:
        """A whole number."""
        value = self._body.get(name)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, int | float) or value != int(value):
            self._refuse(name, "int_type", "Input should be a valid integer")
        return int(value)

    def number(self, name: str, default: float | None = None) -> float | None:
        """Any number."""
        value = self._body.get(name)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, int | float):
            self._refuse(name, "float_type", "Input should be a valid number")
        return float(value)

    def boolean(self, name: str, default: bool = False) -> bool:
        """True or false."""
        value = self._body.get(name)
        if value is None:
            return default
        if not isinstance(value, bool):
            self._refuse(name, "bool_type", "Input should be a valid boolean")
        return value

    def text(self, name: str) -> str | None:
        """A string."""
        value = self._body.get(name)
        if value is not None and not isinstance(value, str):
            self._refuse(name, "string_type", "Input should be a valid string")
        return value

    def texts(self, name: str) -> list[str]:
        """A string or a list of strings, as a list."""
        value: Any = self._body.get(name)
        if value is None:
            return []
        items: list[Any] = value if is_list(value) else [value]
        if not all(isinstance(item, str) for item in items):
            self._refuse(name, "string_type", "Input should be a valid string")
        return items

    def integers(self, name: str) -> list[int]:
        """A list of whole numbers."""
        items: list[Any] = self._body.get(name) or []
        if not is_list(items) or not all(type(item) is int for item in items):
            self._refuse(name, "int_type", "Input should be a valid list of integers")
        return items
