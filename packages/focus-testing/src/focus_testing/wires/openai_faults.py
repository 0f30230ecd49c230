"""What the faults that know the wire do to a completion or a response: the varieties of servers in the wild."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from copy import deepcopy
from typing import Any

__all__ = ["SPOILERS", "Body", "Change"]

type Body = dict[str, Any]
type Change = Callable[[Body], object]

_REFUSAL = "I cannot help with that."
_THOUGHT = "Let me think."


def _spoiler(chat: Change, responses: Change) -> Callable[[Any], Any]:
    """A spoiler that changes a completion's first choice, or a response, and leaves other replies as they are."""

    def spoil(body: Any) -> Any:
        spoiled: Body = deepcopy(body)
        if "choices" in spoiled:
            chat(spoiled["choices"][0])
        elif "output" in spoiled:
            responses(spoiled)
        return spoiled

    return spoil


def _replaced(chat: Body, responses: Body) -> Callable[[Any], Any]:
    """A spoiler that replaces fields of the whole reply."""

    def spoil(body: Any) -> Any:
        return {**body, **(chat if "choices" in body else responses if "output" in body else {})}

    return spoil


def _message(**fields: Any) -> Change:
    return lambda choice: choice["message"].update(fields)


def _items(*items: Body) -> Change:
    return lambda body: body.update(output=list(items))


def _before(item: Body) -> Change:
    return lambda body: body.update(output=[item, *body["output"]])


def _said(*parts: Body) -> Body:
    return {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "content": list(parts)}


def _chat_parts(choice: Body) -> None:
    message = choice["message"]
    message["content"] = [{"type": "text", "text": message["content"] or ""}]


def _two_parts(body: Body) -> None:
    for item in body["output"]:
        if item["type"] == "message":
            text = item["content"][0]["text"]
            parts = (text[: len(text) // 2], text[len(text) // 2 :])
            item["content"] = [{"type": "output_text", "text": part, "annotations": []} for part in parts]


def _calls(chat: Change, responses: Change) -> Callable[[Any], Any]:
    def each_chat(choice: Body) -> None:
        calls: list[Body] = choice["message"].get("tool_calls") or []
        for call in calls:
            chat(call)

    def each_item(body: Body) -> None:
        for item in body["output"]:
            if item["type"] == "function_call":
                responses(item)

    return _spoiler(each_chat, each_item)


def _arguments(value: Any) -> Callable[[Any], Any]:
    return _calls(lambda call: call["function"].update(arguments=value), lambda item: item.update(arguments=value))


def _logprobs(change: Callable[[list[Body]], object]) -> Callable[[Any], Any]:
    def in_chat(choice: Body) -> None:
        if choice["logprobs"]:
            change(choice["logprobs"]["content"])

    def in_items(body: Body) -> None:
        for item in body["output"]:
            if item["type"] == "message":
                change(item["content"][0]["logprobs"])

    return _spoiler(in_chat, in_items)


def _no_logprobs(body: Body) -> None:
    for item in body["output"]:
        if item["type"] == "message":
            item["content"][0]["logprobs"] = None


def _choices(count: int) -> Callable[[Any], Any]:
    def spoil(body: Any) -> Any:
        return {**body, "choices": body["choices"][:1] * count} if "choices" in body else body

    return spoil


def _error_body(body: Any) -> Any:
    return {"error": {"message": "Provider returned error", "code": 502}} if {"choices", "output"} & set(body) else body


_FAILED = {"code": "server_error", "message": "The model failed."}

SPOILERS: Mapping[str, Callable[[Any], Any]] = {
    "abort": lambda body: body,  # the engine does it
    "refusal": _spoiler(
        _message(content=None, refusal=_REFUSAL, tool_calls=None),
        _items(_said({"type": "refusal", "refusal": _REFUSAL})),
    ),
    "reasoning": _spoiler(
        _message(reasoning=_THOUGHT, reasoning_details=[{"type": "reasoning.text", "text": _THOUGHT}]),
        _before(
            {
                "id": "rs_1",
                "type": "reasoning",
                "summary": [{"type": "summary_text", "text": _THOUGHT}],
                "encrypted_content": "TGV0IG1lIHRoaW5rLg==",
                "status": None,
            }
        ),
    ),
    "reasoning_content": _spoiler(
        _message(reasoning_content=_THOUGHT),
        _before({"id": "rs_1", "type": "reasoning", "summary": [], "encrypted_content": "TGV0IG1lIHRoaW5rLg=="}),
    ),
    "no_content": _spoiler(_message(content=None, tool_calls=None), _items()),
    "content_parts": _spoiler(_chat_parts, _two_parts),
    "arguments_object": _arguments({"times": 1}),
    "arguments_null": _arguments(None),
    "arguments_cut": _arguments('{"times": '),
    "no_call_id": _calls(lambda call: call.update(id=None, type=None), lambda item: item.update(call_id=None)),
    "no_finish": _spoiler(lambda choice: choice.update(finish_reason=None), lambda body: body.update(status=None)),
    "filtered": _spoiler(
        lambda choice: choice.update(finish_reason="content_filter"),
        lambda body: body.update(status="incomplete", incomplete_details={"reason": "content_filter"}),
    ),
    "no_result": _replaced({"choices": None}, {"output": None}),
    "error_body": _error_body,
    "failed": _replaced({"choices": None, "error": _FAILED}, {"status": "failed", "error": _FAILED, "output": []}),
    "wrong_types": _spoiler(lambda choice: choice.update(message="text"), lambda body: body.update(output=["text"])),
    "missing_logprobs": _spoiler(lambda choice: choice.update(logprobs=None), _no_logprobs),
    "nan": _logprobs(lambda tokens: tokens[0].update(logprob=math.nan)),
    "filler": _logprobs(lambda tokens: tokens[0].update(logprob=-9999.0)),
    "no_choice": _choices(0),
    "two_choices": _choices(2),
}
"""Fault kind to what it does to a reply."""
