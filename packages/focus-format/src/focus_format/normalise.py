"""OpenAI-shaped messages as chat templates expect them.

Templates differ in what they survive: arguments as a JSON string are encoded twice by one and crash another, a
``developer`` message is dropped without a word, ``None`` as content is an undefined value. So every message is brought
to one shape first, on a copy, and what has no such shape is refused.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from focus_format.narrow import is_list, is_mapping
from focus_format.snapshot import as_message
from focus_types import InvalidRequestError, Message

__all__ = ["normalise_messages", "normalise_tools"]

# Reasoning goes by three names; templates know the first.
_REASONING = ("reasoning_content", "reasoning", "thinking")
# What a Responses API returned, kept for sending it back; no template knows it.
_NOT_FOR_TEMPLATES = ("native_output", *_REASONING)


def normalise_messages(messages: Iterable[Any], name: str = "message") -> list[Message]:
    """Messages in the one shape that templates get; the given ones are not changed.

    Args:
        messages: Dicts, other mappings or pydantic models.
        name: What errors call one of them, before its index.

    Raises:
        InvalidRequestError: Naming the message and what to change.
    """
    return [
        _message(as_message(message, f"{name} {index}"), f"{name} {index}") for index, message in enumerate(messages)
    ]


def normalise_tools(tools: Sequence[Any]) -> list[dict[str, Any]]:
    """Tool schemas, each checked to be ``{"type": "function", "function": {"name": ..., ...}}``.

    Raises:
        InvalidRequestError: Naming the tool; templates would render any other shape without a word.
    """
    for index, tool in enumerate(tools):
        function: Any = tool.get("function") if is_mapping(tool) else None
        if not is_mapping(function) or tool.get("type") != "function" or not _is_name(function.get("name")):
            raise InvalidRequestError(
                f'tool {index} must be {{"type": "function", "function": {{"name": ..., "parameters": ...}}}},'
                f" got {_short(tool)}"
            )
    return list(tools)


def _message(message: Message, where: str) -> Message:
    role = message.get("role")
    if not isinstance(role, str) or not role:
        raise InvalidRequestError(f"{where} has no role: it must be a dict with a role and content")
    # Templates test for a key's presence and stumble over None, so a key without a value goes.
    shaped = {key: value for key, value in message.items() if value is not None and key not in _NOT_FOR_TEMPLATES}
    shaped["role"] = "system" if role == "developer" else role
    shaped["content"] = _content(message.get("content"), role, where)
    calls = shaped.pop("tool_calls", None)
    if calls is not None and not is_list(calls):
        raise InvalidRequestError(f"{where} has tool_calls that are no list: {_short(calls)}")
    if calls:
        shaped["tool_calls"] = [_tool_call(call, where) for call in calls]
    reasoning = next((message[key] for key in _REASONING if message.get(key) is not None), None)
    if reasoning is not None:
        if not isinstance(reasoning, str):
            raise InvalidRequestError(f"{where} has reasoning that is not text: {_short(reasoning)}")
        shaped["reasoning_content"] = reasoning
    return shaped


def _content(content: Any, role: str, where: str) -> str:
    if isinstance(content, str):
        return content
    if content is None and role == "assistant":
        return ""
    if is_list(content):
        return "".join(_part(part, where) for part in content)
    raise InvalidRequestError(
        f"{where} ({role}) must have text or a list of text parts as content, got {_short(content)}"
    )


def _part(part: Any, where: str) -> str:
    if isinstance(part, str):
        return part
    text: Any = part.get("text") if is_mapping(part) else None
    if not isinstance(text, str) or part.get("type", "text") not in ("text", "input_text", "output_text"):
        raise InvalidRequestError(f"{where} has a content part that is not text: {_short(part)}")
    return text


def _tool_call(call: Any, where: str) -> dict[str, Any]:
    if is_mapping(call):
        inner: Any = call.get("function", call)
        if is_mapping(inner) and _is_name(inner.get("name")):
            function = {**inner, "arguments": _arguments(inner.get("arguments"), where)}
            return {**call, "function": function} if "function" in call else function
    raise InvalidRequestError(
        f'{where} has a tool call that is not {{"function": {{"name": ..., "arguments": ...}}}}: {_short(call)}'
    )


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and value != ""


def _arguments(arguments: Any, where: str) -> Any:
    if arguments is None or (isinstance(arguments, str) and not arguments.strip()):
        return {}
    value: Any = arguments
    if isinstance(arguments, str):
        try:
            value = json.loads(arguments)
        except (ValueError, RecursionError) as error:
            raise InvalidRequestError(
                f"{where} has tool call arguments that are not JSON ({error}): {_short(arguments)}"
            ) from None
    if not is_mapping(value):
        raise InvalidRequestError(f"{where} has tool call arguments that are no JSON object: {_short(arguments)}")
    return value


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 120 else f"{text[:120]}..."
