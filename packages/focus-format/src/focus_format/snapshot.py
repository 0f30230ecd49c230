"""Copies of messages and tool schemas that nobody else can change."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import deepcopy
from typing import Any

from focus_format.narrow import is_list, is_mapping
from focus_types import InvalidRequestError, Message

__all__ = ["as_message", "freeze", "freeze_tools", "join", "starts_with", "thaw"]


class _Frozen(tuple[dict[str, Any], ...]):
    """Detached copies: the class tells that they are ours and may be shared between prompts."""

    __slots__ = ()


def as_message(message: Any, where: str) -> Message:
    """A message as a dict: dicts as they are, other mappings and pydantic models converted.

    Args:
        message: The message.
        where: What errors call it.

    Raises:
        InvalidRequestError: It is none of these.
    """
    if isinstance(message, dict):
        return message  # pyright: ignore[reportUnknownVariableType] - its keys are looked at where they are read
    dump = getattr(message, "model_dump", None)
    shaped: Any = dump(exclude_none=True) if callable(dump) else message
    if is_mapping(shaped):
        return dict(shaped)
    raise InvalidRequestError(f"{where} must be a dict with a role and content, got {type(message).__name__}")


def freeze(messages: Iterable[Any], start: int = 0) -> tuple[Message, ...]:
    """Detached copies; what are detached copies already come back themselves.

    Args:
        messages: Dicts, other mappings or pydantic models.
        start: Index of the first in its conversation, for error messages.

    Raises:
        InvalidRequestError: Not messages.
    """
    if isinstance(messages, _Frozen):
        return messages
    _require_iterable(messages, "messages")
    return _Frozen(
        _copy(as_message(message, f"message {at}"), f"message {at}") for at, message in enumerate(messages, start)
    )


def freeze_tools(tools: Iterable[Any]) -> tuple[dict[str, Any], ...]:
    """The same for tool schemas.

    Raises:
        InvalidRequestError: A tool is not a mapping.
    """
    if isinstance(tools, _Frozen):
        return tools
    _require_iterable(tools, "tools")
    copies: list[dict[str, Any]] = []
    for index, tool in enumerate(tools):
        if not is_mapping(tool):
            raise InvalidRequestError(f"tool {index} must be a dict, got {type(tool).__name__}")
        copies.append(_copy(tool, f"tool {index}"))
    return _Frozen(copies)


def join(first: tuple[Message, ...], second: tuple[Message, ...]) -> tuple[Message, ...]:
    """One snapshot out of two, which share their messages with it."""
    return _Frozen(first + second)


def thaw(value: Any) -> Any:
    """A deep copy in plain containers; much faster than `copy.deepcopy` on JSON-like data."""
    if isinstance(value, str) or value is None:
        return value
    if is_mapping(value):
        return {key: thaw(item) for key, item in value.items()}
    if is_list(value):
        copies = [thaw(item) for item in value]
        return copies if isinstance(value, list) else tuple(copies)
    return value if isinstance(value, bool | int | float) else deepcopy(value)


def _copy(value: Any, where: str) -> Any:
    try:
        return thaw(value)
    except RecursionError:
        raise InvalidRequestError(f"{where} is nested too deeply to be copied") from None


def starts_with(messages: Sequence[Any], snapshot: tuple[Message, ...]) -> bool:
    """Whether ``messages`` begin with what the snapshot holds.

    Raises:
        InvalidRequestError: Not messages, or with values that cannot be compared.
    """
    given = tuple(messages[: len(snapshot)])
    try:
        # The first comparison is one call in C, and almost always enough.
        return given == snapshot or snapshot == tuple(as_message(m, f"message {at}") for at, m in enumerate(given))
    except InvalidRequestError:
        raise
    except ValueError as error:
        raise InvalidRequestError(
            f"the messages hold a value without a plain comparison, such as an array: keep it elsewhere ({error})"
        ) from error


def _require_iterable(values: Any, name: str) -> None:
    if not isinstance(values, Iterable):
        raise InvalidRequestError(f"{name} must be a sequence, got {type(values).__name__}")
