"""A conversation as the input items of the Responses API."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from focus_format.narrow import is_list, is_mapping
from focus_openai.calls import arguments_text, check_tools
from focus_openai.responses_items import read_items
from focus_types import InvalidRequestError, Message

__all__ = ["input_items", "response_tools"]


def input_items(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """The items of a whole conversation, since nothing is stored on the server.

    Recorded replies go back as the output items they came as, in order, reasoning included. Other assistant messages
    become a message and function calls; their reasoning, which this API takes only in its own encrypted items, stays
    behind.

    Raises:
        InvalidRequestError: A message that cannot be sent, by its index.
    """
    items: list[dict[str, Any]] = []
    for index, message in enumerate(messages):
        role = message["role"]
        if role == "assistant":
            items += _assistant(message, index)
        elif role == "tool":
            output = _content(message, index)
            items.append({"type": "function_call_output", "call_id": message["tool_call_id"], "output": output})
        else:
            if message.get("name") is not None:
                raise InvalidRequestError(f"message {index}: the Responses API has no 'name' of a {role} message")
            items.append({"role": role, "content": _content(message, index)})
    return items


def response_tools(tools: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Chat-shaped tools in the flat shape of this API, which reads a missing ``strict`` as true.

    Raises:
        InvalidRequestError: A tool that is no function.
    """
    no_parameters: dict[str, Any] = {"type": "object", "properties": {}}
    return [
        {"parameters": no_parameters, "strict": False, **function, "type": "function"}
        for function in check_tools(tools)
    ]


def _assistant(message: Message, index: int) -> list[dict[str, Any]]:
    recorded: Any = message.get("native_output")
    if recorded:
        return _recorded(message, recorded, index)
    text = _text(message, index)
    calls = _calls(message, index)
    items: list[dict[str, Any]] = [{"role": "assistant", "content": text}] if text or not calls else []
    return items + calls


def _recorded(message: Message, recorded: Any, index: int) -> list[dict[str, Any]]:
    if not is_list(recorded) or not all(map(is_mapping, recorded)):
        raise InvalidRequestError(f"message {index}: native_output must be the list of output items that came")
    seen = read_items(recorded)
    calls = _calls(message, index)
    said = [(call.call_id, call.name, call.arguments) for call in seen.calls]
    if _text(message, index) != (seen.text or seen.refusal) or said != [
        (call["call_id"], call["name"], call["arguments"]) for call in calls
    ]:
        raise InvalidRequestError(
            f"message {index} was edited: its native_output, which is what is sent, says something else than its"
            " content and tool_calls. Delete native_output to send the edited message"
        )
    # Servers that send back every field write null where nothing is, and refuse it as input.
    return [{key: value for key, value in item.items() if value is not None} for item in recorded]


def _calls(message: Message, index: int) -> list[dict[str, Any]]:
    calls: Any = message.get("tool_calls")
    return [_call(call, index) for call in calls] if is_list(calls) else []


def _call(call: Any, index: int) -> dict[str, Any]:
    function: Any = call.get("function") if is_mapping(call) else None
    if not is_mapping(function) or not isinstance(function.get("name"), str):
        raise InvalidRequestError(f"message {index}: every tool call needs a 'function' with a name and arguments")
    arguments = arguments_text(function.get("arguments"))
    return {"type": "function_call", "call_id": call["id"], "name": function["name"], "arguments": arguments}


def _text(message: Message, index: int) -> str:
    content: Any = message.get("content")
    if content is None:
        refusal: Any = message.get("refusal") or ""
        return str(refusal)
    if isinstance(content, str):
        return content
    if is_list(content) and all(is_mapping(part) and isinstance(part.get("text"), str) for part in content):
        return "".join(part["text"] for part in content)
    raise InvalidRequestError(f"message {index} (assistant) must have text or a list of text parts as content")


def _content(message: Message, index: int) -> str | list[dict[str, Any]]:
    content: Any = message.get("content")
    if isinstance(content, str):
        return content
    if not is_list(content):
        raise InvalidRequestError(
            f"message {index} ({message['role']}) must have text or a list of parts as content, got {content!r}"
        )
    return [_part(part, index) for part in content]


def _part(part: Any, index: int) -> dict[str, Any]:
    match part:
        case {"type": "text", "text": str(text)}:
            return {"type": "input_text", "text": text}
        case {"type": "image_url", "image_url": {"url": str(url)} as image}:
            return {"type": "input_image", "image_url": url, "detail": image.get("detail", "auto")}
        case {"type": "input_text" | "input_image" | "input_file"}:
            return dict(part)
        case _:
            raise InvalidRequestError(f"message {index} has a content part that the Responses API does not take")
