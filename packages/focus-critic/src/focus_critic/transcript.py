"""The default text of a conversation: role labels, readable tool calls and results.

A pure function of the messages, with nothing in it that differs between two runs of the same conversation:
calls are numbered, because their ids are random, and the keys of structured values are sorted. The text of a
conversation begins with the text of its first messages, so a server's prefix cache can serve every checkpoint
of a rollout.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

from focus_types import InvalidRequestError, Message

__all__ = ["transcript"]

_REASONING = ("reasoning", "reasoning_content")


def transcript(messages: Sequence[Message]) -> str:
    """Write a conversation as text.

    Each message is a block under its role, blocks are separated by an empty line::

        [user]
        What is 2 + 3?

        [assistant]
        call 1: add({"x": 2, "y": 3})

        [tool, call 1: add]
        5

    Args:
        messages: OpenAI-shaped messages. ``content`` is text, ``None``, or a list of parts; a part that is not
            text appears as its type, for example ``[image_url]``. Calls are read from ``tool_calls``, and what a
            chat API keeps apart from ``reasoning`` or ``reasoning_content``, and from ``refusal``.

    Raises:
        InvalidRequestError: A message has no role, or holds a value that has no text form.
    """
    calls: dict[Any, str] = {}
    count = 0
    blocks: list[str] = []
    for at, message in enumerate(messages):
        try:
            lines = [_label(message, calls)]
            # Some servers write one thought under both names.
            thoughts = dict.fromkeys(_text(message[key]) for key in _REASONING if message.get(key))
            lines += [f"reasoning: {thought}" for thought in thoughts]
            lines += [_content(message.get("content")), _content(message.get("refusal"))]
            for call in message.get("tool_calls") or ():
                count += 1
                function: Mapping[str, Any] = call["function"]
                lines.append(f"call {count}: {function['name']}({_text(function.get('arguments', ''))})")
                calls[call.get("id")] = f"call {count}: {function['name']}"
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise InvalidRequestError(
                f"message {at} cannot be written as text ({type(error).__name__}: {error}); pass context= to render it"
            ) from error
        blocks.append("\n".join(line for line in lines if line))
    return "\n\n".join(blocks)


def _label(message: Message, calls: Mapping[Any, str]) -> str:
    role = message["role"]
    if role != "tool":
        return f"[{role}]"
    answered = message.get("tool_call_id")
    if answered and answered in calls:
        return f"[tool, {calls[answered]}]"
    return f"[tool: {message['name']}]" if message.get("name") else "[tool]"


def _content(content: Any) -> str:
    if content is None:
        return ""
    if isinstance(content, list | tuple):
        return "\n".join(map(_part, cast("Sequence[Any]", content)))
    return _text(content)


def _part(part: Any) -> str:
    if isinstance(part, Mapping):
        fields = cast("Mapping[str, Any]", part)
        text = fields.get("text", fields.get("refusal"))
        return f"[{fields['type']}]" if text is None else _text(text)
    return _text(part)


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, sort_keys=True, allow_nan=False)
