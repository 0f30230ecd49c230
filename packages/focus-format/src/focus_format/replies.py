"""A reply as the assistant message that goes into the conversation."""

from __future__ import annotations

from typing import Any

from focus_format.snapshot import thaw
from focus_types import GenerateResult, Message, NativeToolCall

__all__ = ["reply_message"]


def reply_message(result: GenerateResult) -> Message:
    """The assistant message of a reply.

    * Token backends: ``content`` is the reply's text, raw, with its reasoning and calls as the model wrote them.
    * Chat APIs (``native_output`` is one chat message): that message, fields as received.
    * Otherwise: ``content``, ``tool_calls``, and the output items of a Responses API under ``native_output``, which
      codecs leave out of prompts.
    """
    if _is_chat_message(result.native_output):
        message: Message = thaw(result.native_output[0])
        return message
    message = {"role": "assistant", "content": result.text}
    if result.native_tool_calls:
        message["tool_calls"] = [_tool_call(call) for call in result.native_tool_calls]
    if result.native_output:
        message["native_output"] = [thaw(item) for item in result.native_output]
    return message


def _is_chat_message(output: tuple[dict[str, Any], ...]) -> bool:
    # Items of a Responses API can have the role "assistant" as well, but always name their type.
    return len(output) == 1 and output[0].get("role") == "assistant" and "type" not in output[0]


def _tool_call(call: NativeToolCall) -> dict[str, Any]:
    function = {"name": call.name, "arguments": call.arguments}
    return {"id": call.call_id, "type": "function", "function": function}
