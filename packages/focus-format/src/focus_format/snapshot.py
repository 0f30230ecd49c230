"""Copies of messages and tool schemas that nobody else can change."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import deepcopy
from typing import Any

from focus_format.narrow import is_list, is_mapping
from focus_types import InvalidRequestError, Message

__all__ = ["as_message", "freeze", "freeze_tools", "same_messages", "thaw"]


class _Frozen(dict[str, Any]):
    """A detached copy: its class tells that it is ours already and may be shared between prompts."""


def as_message(message: Any, where: str) -> Message:
    """A message as a dict: dicts as they are, other mappings and pydantic models converted.

    Raises:
        InvalidRequestError: It is none of these.
    """
    dump = getattr(message, "model_dump", None)
    shaped: Any = dump(exclude_none=True) if callable(dump) else message
    if is_mapping(shaped):
        return shaped if isinstance(shaped, dict) else dict(shaped)
    raise InvalidRequestError(f"{where} must be a dict with a role and content, got {type(message).__name__}")


def freeze(messages: Iterable[Any], start: int = 0) -> tuple[Message, ...]:
    """Detached copies; what is a detached copy already comes back itself.

    Args:
        messages: Dicts, other mappings or pydantic models.
        start: Index of the first in its conversation, for error messages.

    Raises:
        InvalidRequestError: Not a message.
    """
    return tuple(
        message if isinstance(message, _Frozen) else _Frozen(thaw(as_message(message, f"message {index}")))
        for index, message in enumerate(messages, start)
    )


def freeze_tools(tools: Iterable[Any]) -> tuple[dict[str, Any], ...]:
    """The same for tool schemas.

    Raises:
        InvalidRequestError: A tool is not a mapping.
    """
    frozen: list[dict[str, Any]] = []
    for index, tool in enumerate(tools):
        if not is_mapping(tool):
            raise InvalidRequestError(f"tool {index} must be a dict, got {type(tool).__name__}")
        frozen.append(tool if isinstance(tool, _Frozen) else _Frozen(thaw(tool)))
    return tuple(frozen)


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


def same_messages(snapshot: Sequence[Message], messages: Sequence[Any]) -> bool:
    """Whether ``messages`` begin with what the snapshot holds."""
    if len(messages) < len(snapshot):
        return False
    return all(
        kept is given or kept == as_message(given, f"message {index}")
        for index, (kept, given) in enumerate(zip(snapshot, messages, strict=False))
    )
