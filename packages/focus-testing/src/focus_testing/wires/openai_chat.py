"""Chat Completions, as the hosted API answers."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from focus_testing.engine import Engine, Generation
from focus_testing.wires.base import new_id
from focus_testing.wires.fields import Fields, is_list
from focus_testing.wires.openai_shapes import api_logprobs, read_reply, refuse
from focus_types import SamplingParams

__all__ = ["CHAT_FIELDS", "chat_messages", "chat_params", "completion"]

CHAT_FIELDS = (
    "model",
    "messages",
    "tools",
    "tool_choice",
    "max_completion_tokens",
    "max_tokens",
    "temperature",
    "top_p",
    "stop",
    "seed",
    "logprobs",
    "top_logprobs",
    "n",
)
"""What a request may hold."""


def chat_messages(fields: Fields) -> list[dict[str, Any]]:
    """The conversation, with every call answered.

    Raises:
        Refusal: As the API refuses it.
    """
    messages = fields.raw("messages")
    if not is_list(messages) or not messages:
        refuse("Invalid 'messages': empty array.", param="messages", code="empty_array")
    waiting: list[str] = []
    for i, message in enumerate(messages):
        place = f"messages.[{i}]"
        if message["role"] == "tool":
            if message.get("tool_call_id") not in waiting:
                refuse("messages with role 'tool' must be a response to a preceding 'tool_calls'.", param=place)
            waiting.remove(message["tool_call_id"])
            continue
        if waiting:
            refuse(f"tool_call_ids did not have response messages: {', '.join(waiting)}", param=place)
        calls: list[Any] = message.get("tool_calls") or []
        waiting = [call["id"] for call in calls]
    return messages


def chat_params(fields: Fields, *, locked: bool) -> SamplingParams:
    """The sampling parameters of a request.

    Raises:
        Refusal: As the API refuses them.
    """
    if locked and fields.raw("max_tokens") is not None:
        message = "Unsupported parameter: 'max_tokens' is not supported. Use 'max_completion_tokens' instead."
        refuse(message, param="max_tokens", code="unsupported_parameter")
    if len(fields.texts("stop")) > 4:
        refuse("Invalid 'stop': array too long.", param="stop", code="array_above_max_length")
    return SamplingParams(
        temperature=fields.number("temperature", 1.0),
        top_p=fields.number("top_p", 1.0),
        max_tokens=fields.integer("max_completion_tokens", fields.integer("max_tokens")),
        stop=fields.texts("stop"),
        seed=fields.integer("seed"),
        logprobs=fields.integer("top_logprobs", 0) if fields.boolean("logprobs") else None,
    )


def completion(
    engine: Engine, model: str, prompt: Sequence[int], generation: Generation, params: SamplingParams, *, tools: bool
) -> dict[str, Any]:
    """The reply's object."""
    said = read_reply(generation, tools=tools)
    message: dict[str, Any] = {"role": "assistant", "content": said.content or None, "refusal": None, "annotations": []}
    if said.calls:
        message["tool_calls"] = [
            {"id": new_id("call_"), "type": "function", "function": {"name": name, "arguments": arguments}}
            for name, arguments in said.calls
        ]
    logprobs = api_logprobs(generation, engine.tokenizer, params)
    ended = "tool_calls" if said.calls and generation.finish_reason == "stop" else generation.finish_reason
    return {
        "id": new_id("chatcmpl-"),
        "object": "chat.completion",
        "created": int(time.time()),
        "model": model,
        "choices": [
            {
                "index": 0,
                "message": message,
                "logprobs": None if logprobs is None else {"content": logprobs, "refusal": None},
                "finish_reason": ended,
            }
        ],
        "usage": {
            "prompt_tokens": len(prompt),
            "completion_tokens": len(generation.tokens),
            "total_tokens": len(prompt) + len(generation.tokens),
            "prompt_tokens_details": {"cached_tokens": 0},
        },
        "system_fingerprint": "fp_focus_testing",
    }
