"""The order that chat APIs demand: every tool call answered once, by id, before the next turn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from focus_format.snapshot import as_message
from focus_types import InvalidRequestError, Message

__all__ = ["check_tool_order"]

_ROLES = ("system", "developer", "user", "assistant", "tool")


def _call_ids(index: int, message: Message) -> list[str]:
    calls: Any = message.get("tool_calls")
    if calls is None:
        return []
    if not isinstance(calls, Sequence) or isinstance(calls, str):
        raise InvalidRequestError(f"message {index}: tool_calls must be a list")
    ids: list[str] = []
    entries: list[Any] = list(calls)  # pyright: ignore[reportUnknownArgumentType] - narrowed from Any on purpose
    for call in entries:
        call_id: Any = call.get("id") if isinstance(call, Mapping) else None  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType] - narrowed from Any on purpose
        if not isinstance(call_id, str) or not call_id:
            raise InvalidRequestError(f"message {index}: every tool call needs a non-empty string id")
        if call_id in ids:
            raise InvalidRequestError(f"message {index}: tool call id {call_id!r} occurs twice")
        ids.append(call_id)
    return ids


def check_tool_order(messages: Sequence[Message], *, finished: bool) -> None:
    """Refuse a conversation that a chat API would refuse, or silently misread.

    Args:
        messages: The whole conversation.
        finished: The conversation is about to be sent, so no call may still be open at its end.

    Raises:
        InvalidRequestError: Naming the index of the message at fault.
    """
    open_ids: list[str] = []
    opened_at = -1
    for index, given in enumerate(messages):
        message = as_message(given, f"message {index}")
        role: Any = message.get("role")
        if role not in _ROLES:
            raise InvalidRequestError(f"message {index}: role must be one of {', '.join(_ROLES)}, got {role!r}")
        if role == "tool":
            call_id: Any = message.get("tool_call_id")
            if call_id not in open_ids:
                raise InvalidRequestError(
                    f"message {index}: tool message answers {call_id!r}, which is not an open call of the assistant"
                    " message before it (missing, already answered, or out of place)"
                )
            open_ids.remove(call_id)
            continue
        if open_ids:
            raise InvalidRequestError(
                f"message {index}: a {role} message follows, but message {opened_at} has unanswered tool calls:"
                f" {', '.join(open_ids)}"
            )
        if role == "assistant":
            open_ids, opened_at = _call_ids(index, message), index
    if finished and open_ids:
        raise InvalidRequestError(f"message {opened_at} has unanswered tool calls: {', '.join(open_ids)}")
