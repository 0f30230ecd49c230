"""Responses, as the hosted API answers requests that store nothing."""

from __future__ import annotations

import base64
import time
from collections.abc import Sequence
from typing import Any

from focus_testing.engine import Engine, Generation
from focus_testing.wires.base import new_id
from focus_testing.wires.fields import Fields, is_list
from focus_testing.wires.openai_shapes import api_logprobs, read_reply, refuse
from focus_types import SamplingParams

__all__ = ["ENCRYPTED", "LOGPROBS", "RESPONSES_FIELDS", "Item", "response", "response_messages", "response_params"]

RESPONSES_FIELDS = (
    "model",
    "input",
    "instructions",
    "tools",
    "tool_choice",
    "max_output_tokens",
    "temperature",
    "top_p",
    "top_logprobs",
    "include",
    "reasoning",
    "store",
)
"""What a request may hold."""
ENCRYPTED = "reasoning.encrypted_content"
LOGPROBS = "message.output_text.logprobs"

type Item = dict[str, Any]


def response_params(fields: Fields) -> SamplingParams:
    """The sampling parameters of a request."""
    asked = LOGPROBS in fields.texts("include")
    return SamplingParams(
        temperature=fields.number("temperature", 1.0),
        top_p=fields.number("top_p", 1.0),
        max_tokens=fields.integer("max_output_tokens"),
        logprobs=fields.integer("top_logprobs", 0) if asked else None,
    )


def response_messages(fields: Fields) -> list[Item]:
    """The input items as chat messages: reasoning is decrypted, calls join the assistant's turn.

    Raises:
        Refusal: As the API refuses them.
    """
    given: Any = fields.raw("input")
    items: list[Any] = given if is_list(given) else [{"role": "user", "content": given}]
    system = fields.text("instructions")
    messages: list[Item] = [] if system is None else [{"role": "system", "content": system}]
    answered: set[str] = set()
    for i, item in enumerate(items):
        null = next((key for key, value in item.items() if value is None), None)
        if null is not None:
            refuse(f"Invalid type for 'input[{i}].{null}': got null.", param=f"input[{i}].{null}", code="invalid_type")
        _add(item, i, messages, answered)
    calls = [call["id"] for message in messages for call in message.get("tool_calls", ())]
    missing = next((call_id for call_id in calls if call_id not in answered), None)
    if missing is not None:
        refuse(f"No tool output found for function call {missing}.", param="input")
    return messages


def _add(item: Item, index: int, messages: list[Item], answered: set[str]) -> None:
    match item.get("type", "message"):
        case "message" if item["role"] == "assistant":
            _turn(messages)["content"] += _text(item["content"])
        case "message":
            messages.append({"role": item["role"], "content": _text(item["content"])})
        case "reasoning" if "encrypted_content" in item:
            _turn(messages)["reasoning_content"] = base64.b64decode(item["encrypted_content"]).decode()
        case "reasoning":
            refuse(
                f"Item with id '{item['id']}' not found. Items are not persisted when `store` is set to false.",
                status=404,
            )
        case "function_call":
            function = {"name": item["name"], "arguments": item["arguments"]}
            _turn(messages)["tool_calls"].append({"id": item["call_id"], "type": "function", "function": function})
        case "function_call_output":
            known = {call["id"] for message in messages for call in message.get("tool_calls", ())}
            if item["call_id"] not in known:
                refuse(f"No tool call found for function call output with call_id {item['call_id']}.", param="input")
            answered.add(item["call_id"])
            messages.append({"role": "tool", "tool_call_id": item["call_id"], "content": _text(item["output"])})
        case other:
            refuse(f"Invalid value: '{other}'.", param=f"input[{index}].type", code="invalid_value")


def _turn(messages: list[Item]) -> Item:
    """The assistant message that is being put together."""
    if not messages or messages[-1]["role"] != "assistant":
        messages.append({"role": "assistant", "content": "", "tool_calls": []})
    return messages[-1]


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "".join(part.get("text") or part.get("refusal") or "" for part in content)


def response(
    engine: Engine, model: str, prompt: Sequence[int], generation: Generation, params: SamplingParams, fields: Fields
) -> dict[str, Any]:
    """The reply's object."""
    said = read_reply(generation, tools=bool(fields.raw("tools")))
    output: list[Item] = []
    if said.reasoning:
        hidden = base64.b64encode(said.reasoning.encode()).decode()
        shown = {"encrypted_content": hidden} if ENCRYPTED in fields.texts("include") else {}
        output.append({"id": new_id("rs_"), "type": "reasoning", "summary": [], **shown})
    if said.content or not said.calls:
        logprobs = api_logprobs(generation, engine.tokenizer, params) or []
        part = {"type": "output_text", "text": said.content, "annotations": [], "logprobs": logprobs}
        item = {"id": new_id("msg_"), "type": "message", "role": "assistant", "status": "completed", "content": [part]}
        output.append(item)
    for name, arguments in said.calls:
        call = {"type": "function_call", "call_id": new_id("call_"), "name": name, "arguments": arguments}
        output.append({"id": new_id("fc_"), "status": "completed", **call})
    status = {"stop": "completed", "abort": "cancelled"}.get(generation.finish_reason, "incomplete")
    return {
        "id": new_id("resp_"),
        "object": "response",
        "created_at": int(time.time()),
        "model": model,
        "status": status,
        "error": None,
        "incomplete_details": {"reason": "max_output_tokens"} if status == "incomplete" else None,
        "output": output,
        "tools": fields.raw("tools") or [],
        "store": False,
        "usage": {
            "input_tokens": len(prompt),
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": len(generation.tokens),
            "total_tokens": len(prompt) + len(generation.tokens),
        },
    }
