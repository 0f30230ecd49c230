"""A conversation as Chat Completions takes it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from focus_format.narrow import is_mapping
from focus_openai.calls import arguments_text
from focus_types import InvalidRequestError, Message

__all__ = ["sent_messages"]


def sent_messages(messages: Sequence[Message]) -> list[Message]:
    """The messages, recorded replies as they came, arguments as JSON text.

    Raises:
        InvalidRequestError: A message that cannot be sent, by its index.
    """
    return [_message(message, index) for index, message in enumerate(messages)]


def _message(message: Message, index: int) -> Message:
    if message["role"] == "assistant":
        return _assistant(message, index)
    content: Any = message.get("content")
    if not isinstance(content, str | list):
        raise InvalidRequestError(
            f"message {index} ({message['role']}) must have text or a list of parts as content, got {content!r}"
        )
    return message


def _assistant(message: Message, index: int) -> Message:
    # ``native_output`` belongs to the Responses API; null fields come from servers that send back every field.
    sent = {key: value for key, value in message.items() if value is not None and key != "native_output"}
    calls = sent.pop("tool_calls", None)
    if calls:
        sent["tool_calls"] = [_sent_call(call, index) for call in calls]
    sent.setdefault("content", None if calls or sent.get("refusal") else "")
    return sent


def _sent_call(call: Any, index: int) -> dict[str, Any]:
    function: Any = call.get("function")
    if not is_mapping(function) or not isinstance(function.get("name"), str):
        raise InvalidRequestError(f"message {index}: every tool call needs a 'function' with a name and arguments")
    sent = {**function, "arguments": arguments_text(function.get("arguments"))}
    return {**call, "type": "function", "function": sent}
