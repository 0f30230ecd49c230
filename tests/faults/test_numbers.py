"""Numbers that JSON can write and that no token id and no log-probability can be."""

from __future__ import annotations

import asyncio
import json
import math
from typing import Any

import pytest

from focus.backends import (
    GenerateResult,
    OpenAIChatPolicy,
    OpenAIResponsesPolicy,
    SamplingParams,
    SGLangPolicy,
    SlimePolicy,
    TinkerPolicy,
    VLLMPolicy,
)
from focus.errors import ProtocolError
from focus_format.exchange import TokenReply, TokenRequest
from focus_format.result import build_result
from support.formats import byte_format
from support.misbehaving import misbehaving, reply
from support.tinker_client import ReplyClient, sequence

IDS = [-1, 2**31, 2**32, 2**64]
LOGPROBS = SamplingParams(temperature=1.0, max_tokens=8, logprobs=0)


def vllm(tokens: list[int]) -> GenerateResult:
    choice = {"finish_reason": "length", "token_ids": tokens, "logprobs": {"token_logprobs": [-1.0] * len(tokens)}}
    with misbehaving(reply(200, json.dumps({"choices": [choice]}).encode())) as server:
        policy = VLLMPolicy(model="m", format=byte_format(), base_url=server.url, api_key="EMPTY")
        try:
            return policy.generate_tokens([1], LOGPROBS)
        finally:
            policy.close()


def generate_reply(tokens: list[int], logprob: Any = -1.0, **meta: Any) -> dict[str, Any]:
    entries = [[logprob, token, None] for token in tokens]
    known = {"id": "r", "finish_reason": {"type": "length"}, "output_token_logprobs": entries}
    return {"output_ids": tokens, "meta_info": {**known, **meta}}


def sglang(body: dict[str, Any]) -> GenerateResult:
    with misbehaving(reply(200, json.dumps(body).encode())) as server:
        policy = SGLangPolicy(model="m", format=byte_format(), base_url=server.url)
        try:
            return policy.generate_tokens([1], LOGPROBS)
        finally:
            policy.close()


def slime(body: dict[str, Any]) -> GenerateResult:
    async def post(url: str, payload: dict[str, Any]) -> Any:
        return json.loads(json.dumps(body))

    policy = SlimePolicy(post, "http://router/generate", model="m", format=byte_format())
    return asyncio.run(policy.agenerate_tokens([1], LOGPROBS))


@pytest.mark.parametrize("token", IDS)
def test_what_cannot_be_an_id(token: int) -> None:
    tokens = [97, token, 98]
    with pytest.raises(ProtocolError, match=f"the token id {token}"):
        vllm(tokens)
    with pytest.raises(ProtocolError, match=f"the token id {token}"):
        sglang(generate_reply(tokens))
    with pytest.raises(ProtocolError, match=f"the token id {token}"):
        slime(generate_reply(tokens))
    request = TokenRequest((1,), LOGPROBS, 8)
    with pytest.raises(ProtocolError, match=f"the token id {token}"):
        build_result(request, TokenReply(tokens, "length"), byte_format().codec, "unknown")


@pytest.mark.parametrize("stop", [None, ["never"]])
def test_what_cannot_be_an_id_of_tinkers(stop: list[str] | None) -> None:
    import tinker

    client = ReplyClient(lambda _: tinker.SampleResponse([sequence([97, -1], stop_reason="stop")]))
    policy = TinkerPolicy(client, model="m", format=byte_format())
    with pytest.raises(ProtocolError, match="not integers"):
        policy.generate_tokens([1], SamplingParams(max_tokens=8, stop=stop))


@pytest.mark.parametrize("ask", [sglang, slime])
@pytest.mark.parametrize("logprob", [10**400, -(10**400)], ids=["above", "below"])
def test_an_integer_that_no_float_can_hold(ask: Any, logprob: int) -> None:
    with pytest.raises(ProtocolError, match="no float can hold"):
        ask(generate_reply([97], logprob))


@pytest.mark.parametrize("ask", [sglang, slime])
def test_an_integer_that_is_a_log_probability(ask: Any) -> None:
    result = ask(generate_reply([97], -2))
    assert (result.logprobs, type(result.logprobs[0]), result.exact_generation) == ([-2.0], float, True)


def test_versions_of_weights_that_begin_at_infinity() -> None:
    result = slime(generate_reply([97], weight_versions=[{"version": "1", "start": math.inf, "end": 1}]))
    assert result.meta is not None
    assert result.meta.weight_versions == ()


@pytest.mark.parametrize("logprob", [1e308, 5.0])
def test_log_probabilities_above_zero_from_chat_apis(logprob: float) -> None:
    tokens = [{"token": "a", "logprob": logprob, "top_logprobs": []}] * 2
    chat = {"message": {"content": "aa"}, "finish_reason": "stop", "logprobs": {"content": tokens}}
    text = {"type": "output_text", "text": "aa", "logprobs": tokens}
    response = {"status": "completed", "output": [{"type": "message", "content": [text]}]}
    params = SamplingParams(max_tokens=8, logprobs=0)
    for kind, body in ((OpenAIChatPolicy, {"choices": [chat]}), (OpenAIResponsesPolicy, response)):
        with misbehaving(reply(200, json.dumps(body).encode())) as server:
            policy = kind(model="m", base_url=server.url, api_key="EMPTY")
            result = policy.generate(policy.prepare([{"role": "user", "content": "Hi"}]), params)
            policy.close()
        assert (result.text, result.logprobs, result.entropy) == ("aa", [], 0.0)
        assert result.meta is not None
        assert result.meta.inexact_reason is not None
        assert result.meta.inexact_reason.endswith(f"a log-probability of {logprob} is above zero")
