"""Replies of odd shape that no recording holds."""

from __future__ import annotations

import json
from typing import Any

import pytest

from focus.backends import GenerateResult, OpenAIChatPolicy, OpenAIResponsesPolicy, SamplingParams
from focus.errors import ProtocolError
from support.misbehaving import misbehaving, reply

type Policies = type[OpenAIChatPolicy] | type[OpenAIResponsesPolicy]

Json = dict[str, Any]


def ask(kind: Policies, body: Json, params: SamplingParams | None = None) -> tuple[GenerateResult, list[Json]]:
    """The result, and the conversation with the recorded reply, which must be fit to be sent again."""
    messages: list[Json] = [{"role": "user", "content": "Hi"}]
    answer = reply(200, json.dumps(body).encode())
    with misbehaving(answer, answer) as server:
        policy = kind(model="m", api_key="EMPTY", base_url=server.url)
        try:
            result = policy.generate(policy.prepare(messages), params)
            policy.record_reply(result, messages)
            calls = result.native_tool_calls or ()
            answers = [{"role": "tool", "tool_call_id": call.call_id, "content": "1"} for call in calls]
            policy.generate(policy.prepare([*messages, *answers, {"role": "user", "content": "More"}]), params)
        finally:
            policy.close()
    return result, messages


def completion(message: Json, **fields: Any) -> Json:
    return {"choices": [{"message": message, "finish_reason": "stop", **fields}]}


def response(*items: Json, status: str = "completed", **fields: Any) -> Json:
    return {"status": status, "output": list(items), **fields}


def said(*parts: Json) -> Json:
    return {"type": "message", "role": "assistant", "content": list(parts)}


def test_a_stable_id_is_never_one_that_the_server_gave() -> None:
    calls = [
        {"id": call_id, "function": {"name": "f", "arguments": "{}"}} for call_id in ("call_1_1", None, "call_1_1")
    ]
    result, _ = ask(OpenAIChatPolicy, completion({"content": None, "tool_calls": calls}))
    ids = [call.call_id for call in result.native_tool_calls or ()]
    assert ids == ["call_1_1", "call_1_1_", "call_1_2"]


@pytest.mark.parametrize(
    ("token", "reason"),
    [
        ({"token": "x", "logprob": 0.5}, "above zero"),
        ({"token": "x", "logprob": -9999.0}, "a filler for minus infinity"),
    ],
)
def test_a_log_probability_that_is_none(token: Json, reason: str) -> None:
    body = completion({"content": "x"}, logprobs={"content": [token]})
    result, _ = ask(OpenAIChatPolicy, body, SamplingParams(logprobs=0))
    assert (result.logprobs, result.entropy) == ([], 0.0)
    assert result.meta is not None
    assert reason in str(result.meta.inexact_reason)


def test_text_in_place_of_content_parts() -> None:
    result, messages = ask(OpenAIResponsesPolicy, response({"type": "message", "role": "assistant", "content": "Hi"}))
    assert (result.text, result.stop_reason) == ("Hi", "stop")
    assert messages[1]["content"] == "Hi"


def test_a_cut_response_keeps_its_cut_call() -> None:
    items: list[Json] = [
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "eA=="},
        {
            "type": "function_call",
            "id": "fc_1",
            "call_id": "c",
            "name": "f",
            "arguments": '{"x',
            "status": "incomplete",
        },
    ]
    body = response(*items, status="incomplete", incomplete_details={"reason": "max_output_tokens"})
    result, messages = ask(OpenAIResponsesPolicy, body)
    assert result.stop_reason == "length"
    assert [(call.name, call.arguments) for call in result.native_tool_calls or ()] == [("f", '{"x')]
    assert messages[1]["native_output"] == items


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        (
            OpenAIChatPolicy,
            completion(
                {
                    "content": None,
                    "refusal": "No.",
                    "tool_calls": [{"id": "c", "function": {"name": "f", "arguments": "{}"}}],
                }
            ),
        ),
        (
            OpenAIResponsesPolicy,
            response(
                said({"type": "refusal", "refusal": "No."}),
                {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
            ),
        ),
    ],
)
def test_a_refusal_beside_a_call_keeps_both(kind: Policies, body: Json) -> None:
    result, _ = ask(kind, body)
    assert (result.text, result.stop_reason) == ("No.", "refusal")
    assert [call.call_id for call in result.native_tool_calls or ()] == ["c"]


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        (OpenAIChatPolicy, {"id": "x"}),
        (OpenAIChatPolicy, completion({"content": 3})),
        (OpenAIChatPolicy, completion({"content": "half a character: \ud83d"})),
        (OpenAIChatPolicy, completion({"content": None, "tool_calls": [{"id": "c", "type": "custom", "custom": {}}]})),
        (OpenAIChatPolicy, completion({"content": None, "function_call": {"name": "f", "arguments": "{}"}})),
        (OpenAIResponsesPolicy, response(said(), status="in_progress")),
        (OpenAIResponsesPolicy, response({"type": "function_call", "call_id": "c", "name": 3})),
    ],
)
def test_what_is_no_reply(kind: Policies, body: Json) -> None:
    with pytest.raises(ProtocolError):
        ask(kind, body)
