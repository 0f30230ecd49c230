"""Every recorded reply of the two APIs and their compatible servers becomes the result or the error it should be.

Each body is answered by a server on loopback, so that it passes through the SDK as well.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from focus.backends import GenerateResult, OpenAIChatPolicy, OpenAIResponsesPolicy, SamplingParams
from focus.errors import (
    AuthenticationError,
    BackendError,
    ContextLengthError,
    InvalidRequestError,
    ProtocolError,
    RateLimitError,
    RequestTimeoutError,
    ServerUnavailableError,
)
from focus.generation import NativeToolCall
from focus_openai import sdk
from support.misbehaving import Act, drop, misbehaving, reply, silent

type Policies = type[OpenAIChatPolicy] | type[OpenAIResponsesPolicy]

HELLO: list[dict[str, Any]] = [{"role": "user", "content": "hi"}]


def ask(kind: Policies, *acts: Act, params: SamplingParams | None = None, **options: Any) -> GenerateResult:
    with misbehaving(*acts) as server:
        policy = kind(model="m", api_key="EMPTY", base_url=server.url, **options)
        try:
            return policy.generate(policy.prepare(HELLO), params)
        finally:
            policy.close()


def body_of(path: Path) -> bytes:
    record: dict[str, Any] = json.loads(path.read_text())
    body: Any = record["server"]["body"] if "server" in record else record["response"]
    return json.dumps(body).encode()


def call(name: str, arguments: str, call_id: str) -> tuple[NativeToolCall, ...]:
    return (NativeToolCall(name, arguments, call_id),)


# name: text, stop_reason, calls
CHAT: dict[str, tuple[str, str, tuple[NativeToolCall, ...]]] = {
    "openai/openai_chat_content_parts_list": ("x", "stop", ()),
    "openai/openai_chat_empty_tool_list": ("x", "stop", ()),
    "openai/openai_chat_logprobs_vllm_token_ids": ("x", "stop", ()),
    "openai/openai_chat_none_params": ("x", "stop", ()),
    "openai/openai_chat_null_content_null_tools": ("", "stop", ()),
    "openai/openai_chat_null_finish_reason": ("x", "unknown", ()),
    "openai/openai_chat_reasoning_content": ("4", "stop", ()),
    "openai/openai_chat_reasoning_field": ("4", "stop", ()),
    "openai/openai_chat_refusal": ("I can't help with that.", "refusal", ()),
    "openai/openai_chat_tool_args_dict": ("", "stop", call("f", '{"x": 1}', "call_1")),
    "openai/openai_chat_tool_call": ("", "stop", call("f", '{"x": 1}', "call_1")),
    "openai/openai_chat_tool_empty_name": ("", "stop", call("", "", "call_1_0")),
    "openai/openai_chat_tool_no_id_no_type": ("", "stop", call("f", "{}", "call_1_0")),
    "openai/openai_chat_tool_null_id": ("", "stop", call("f", "{}", "call_1_0")),
    "openai/openai_chat_tool_truncated_args": ("", "length", call("f", '{"x": ', "a")),
    "openai/openai_chat_unknown_finish_reason": ("x", "abort", ()),
    "vllm/chat_no_max_tokens": ('<tool_call>{"name":"add","arguments":{"x":2}}</tool_call>', "stop", ()),
    "vllm/chat_no_think": (" coin heads" * 30, "length", ()),
    "vllm/chat_plain": ('<tool_call>{"name":"add","arguments":{"x":2}}</tool_call>', "stop", ()),
    "vllm/chat_tool_result": (" Done.", "stop", ()),
    "vllm/chat_tool_result_bad_args": (" Done.", "stop", ()),
    "vllm/chat_tools_auto": ("", "stop", call("add", '{"x": 2}', "chatcmpl-tool-84e431b67da35952")),
    "vllm/chat_tools_cut": ('<tool_call>{"name":"add","', "length", ()),
    "vllm/chat_tools_named": (
        '<tool_call>{"name": "add", "arguments": "' + " coin heads" * 16 + " coin",
        "length",
        (),
    ),
    "vllm/chat_tools_none": ('<tool_call>{"name":"add","arguments":{"x":2}}</tool_call>', "stop", ()),
    "vllm/chat_tools_required_processed": ('<tool_call>{"name": "a', "length", ()),
}
RESPONSES: dict[str, tuple[str, str, tuple[NativeToolCall, ...]]] = {
    "openai/openai_responses_async_call_alias": ("", "stop", call("f", '{"x": 1}', "call_1")),
    "openai/openai_responses_message": ("4", "stop", ()),
    "openai/openai_responses_refusal": ("No.", "refusal", ()),
    "openai/openai_responses_unknown_item": ("4", "stop", ()),
    "openai/openai_responses_vllm_like_nulls": ("", "stop", call("f", "{}", "call_2")),
    "vllm/responses_cut": ('<tool_call>{"name":"add', "length", ()),
    "vllm/responses_logprobs": ('<tool_call>{"name":"add","arguments":{"x":2}}</tool_call>', "stop", ()),
    "vllm/responses_tool_result": (" Done.", "stop", ()),
    "vllm/responses_tools": ("", "stop", call("add", '{"x": 2}', "chatcmpl-tool-97d88e13ca58a604")),
}
# name: status, error, its message
ERRORS: dict[str, tuple[int, type[BackendError], str]] = {
    "openai/openai_chat_200_error_body": (200, ServerUnavailableError, "Provider returned error"),
    "openai/openai_chat_no_choices": (200, ProtocolError, "one choice was asked for, 0 came"),
    "openai/openai_err_400_max_tokens": (400, BackendError, "Use 'max_completion_tokens' instead"),
    "openai/openai_err_400_temperature": (400, BackendError, "pass locked_sampling=True"),
    "openai/openai_err_400_vllm_shape": (400, ContextLengthError, "maximum context length is 2048"),
    "openai/openai_err_401": (401, AuthenticationError, "api_key"),
    "openai/openai_err_429_quota": (429, RateLimitError, "exceeded your current quota"),
    "openai/openai_err_500": (500, ServerUnavailableError, "oops"),
    "openai/openai_responses_failed": (200, ServerUnavailableError, "The model failed."),
    "openai/openai_responses_output_null": (200, ProtocolError, "no result"),
    "vllm/chat_err_bad_tool_choice": (400, BackendError, "does not match any of the specified `tools`"),
    "vllm/responses_previous_id": (404, BackendError, "not found"),
}
# Exchanges without a server's body, or about what the SDK sends: each has its own test below.
OTHERS = {
    "openai/openai_chat_200_html",
    "openai/openai_chat_200_text_json_ct",
    "openai/openai_err_429",
    "openai/openai_err_drop",
    "openai/openai_err_timeout",
    "openai/openai_responses_second_turn_input",
    *(f"openai/openai_sdk_refuses_chat_{name}" for name in ("prompt_logprobs", "repetition_penalty", "top_k")),
    *(f"openai/openai_sdk_refuses_responses_{name}" for name in ("logprobs", "max_tokens", "seed", "stop")),
}


def test_no_recorded_exchange_is_left_out(shared: Path) -> None:
    wire = shared / "wire"
    found = [*wire.glob("openai/openai_*.json"), *wire.glob("vllm/chat_*.json"), *wire.glob("vllm/responses_*.json")]
    names = {str(path.relative_to(wire).with_suffix("")) for path in found}
    assert names == {*CHAT, *RESPONSES, *ERRORS, *OTHERS}


@pytest.mark.parametrize("name", [*CHAT, *RESPONSES])
def test_result(shared: Path, name: str) -> None:
    kind: Policies = OpenAIChatPolicy if name in CHAT else OpenAIResponsesPolicy
    text, stop_reason, calls = {**CHAT, **RESPONSES}[name]
    result = ask(kind, reply(200, body_of(shared / "wire" / f"{name}.json")))
    assert (result.text, result.stop_reason, result.native_tool_calls) == (text, stop_reason, calls)
    assert result.tokens == ()
    assert not result.exact_generation
    assert result.meta is not None
    assert result.meta.inexact_reason == (
        "a chat API takes messages and returns no token ids: the prompt's ids are an estimate"
    )


@pytest.mark.parametrize("name", ERRORS)
def test_error(shared: Path, name: str) -> None:
    kind: Policies = OpenAIResponsesPolicy if "responses" in name else OpenAIChatPolicy
    status, error, message = ERRORS[name]
    with pytest.raises(error, match=message) as caught:
        ask(kind, reply(status, body_of(shared / "wire" / f"{name}.json")))
    assert type(caught.value) is error
    assert caught.value.attempts == 1


@pytest.mark.parametrize("kind", [OpenAIChatPolicy, OpenAIResponsesPolicy])
def test_web_page_and_text_with_status_200(kind: Policies) -> None:
    with pytest.raises(ProtocolError, match="web page"):
        ask(kind, reply(200, b"<html>oops</html>", content_type="text/html"))
    with pytest.raises(ProtocolError, match="malformed"):
        ask(kind, reply(200, b"oops"))


@pytest.mark.parametrize("kind", [OpenAIChatPolicy, OpenAIResponsesPolicy])
def test_dropped_connection_is_not_sent_again(kind: Policies) -> None:
    with pytest.raises(ServerUnavailableError, match="not sent again") as caught:
        ask(kind, drop())
    assert caught.value.attempts == 1


def test_rate_limit_is_waited_for(shared: Path) -> None:
    limited = reply(429, body_of(shared / "wire/openai/openai_err_429.json"), retry_after="0")
    good = reply(200, body_of(shared / "wire/openai/openai_chat_tool_call.json"))
    result = ask(OpenAIChatPolicy, limited, limited, good)
    assert result.meta is not None
    assert result.meta.attempts == 3


def test_read_timeout_is_not_sent_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sdk, "READ_S", 0.3)
    with pytest.raises(RequestTimeoutError, match="not sent again") as caught:
        ask(OpenAIChatPolicy, silent())
    assert isinstance(caught.value, TimeoutError)
    assert caught.value.attempts == 1


@pytest.mark.parametrize(
    ("kind", "params", "message"),
    [
        (OpenAIChatPolicy, SamplingParams(prompt_logprobs=0), "Chat Completions has no prompt_logprobs"),
        (OpenAIChatPolicy, SamplingParams(repetition_penalty=1.1), "Chat Completions has no repetition_penalty"),
        (OpenAIChatPolicy, SamplingParams(top_k=5), "Chat Completions has no top_k"),
        (OpenAIResponsesPolicy, SamplingParams(prompt_logprobs=0), "Responses has no prompt_logprobs"),
        (OpenAIResponsesPolicy, SamplingParams(repetition_penalty=1.1), "Responses has no repetition_penalty"),
        (OpenAIResponsesPolicy, SamplingParams(top_k=5), "Responses has no top_k"),
        (OpenAIResponsesPolicy, SamplingParams(seed=1), "Responses has no seed"),
        (OpenAIResponsesPolicy, SamplingParams(stop=["x"]), "Responses has no stop"),
    ],
)
def test_what_the_api_lacks_is_refused_by_name(kind: Policies, params: SamplingParams, message: str) -> None:
    with misbehaving(reply()) as server:
        policy = kind(model="m", api_key="EMPTY", base_url=server.url)
        with pytest.raises(InvalidRequestError, match=message):
            policy.generate(policy.prepare(HELLO), params)
        assert server.requests == []
    with pytest.raises(InvalidRequestError, match=message):
        kind(model="m", default_params=params)


def test_a_recorded_turn_returns_as_the_input_of_the_next(shared: Path) -> None:
    expected = json.loads((shared / "wire/openai/openai_responses_second_turn_input.json").read_text())["to_dict"]
    user, reasoning, called, output = expected
    # The null that the server sent is dropped; everything else goes back as it came, "async" under its own name.
    response = {"status": "completed", "output": [reasoning, called]}
    with misbehaving(reply(200, json.dumps(response).encode())) as server:
        policy = OpenAIResponsesPolicy(model="m", api_key="EMPTY", base_url=server.url)
        messages = [dict(user)]
        policy.record_reply(policy.generate(policy.prepare(messages)), messages)
        messages.append({"role": "tool", "tool_call_id": "call_1", "content": "42"})
        policy.generate(policy.prepare(messages))
        policy.close()
        sent = json.loads(server.requests[1].body)
    del reasoning["status"]
    assert sent["input"] == [user, reasoning, called, output]


def test_nothing_is_sent_as_null() -> None:
    with misbehaving(reply(200, b'{"choices": [{"message": {"content": "x"}, "finish_reason": "stop"}]}')) as server:
        policy = OpenAIChatPolicy(model="m", api_key="EMPTY", base_url=server.url)
        policy.generate(policy.prepare(HELLO))
        asyncio.run(policy.aclose())
        policy.close()
        assert json.loads(server.requests[0].body) == {
            "model": "m",
            "messages": HELLO,
            "max_completion_tokens": 512,
            "temperature": 0.7,
            "top_p": 1.0,
        }
