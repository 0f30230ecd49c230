"""Every recorded exchange with a real SGLang server or router decodes into the result or error that it means."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from focus.backends import GenerateResult, PolicyFormat, SamplingParams, SGLangPolicy, SlimePolicy
from focus.errors import (
    AbortedError,
    AuthenticationError,
    BackendError,
    ContextLengthError,
    ProtocolError,
    ServerUnavailableError,
)
from support.misbehaving import misbehaving, reply

PROMPT = [9707, 1879, 11, 1246, 525, 498]
ONE, TWO, FOUR = (148798,), (148798, 19776), (148798, 19776, 38658, 136003)
THREE = FOUR[:3]
LP = SamplingParams(logprobs=0)

RESULTS: dict[str, tuple[SamplingParams, tuple[int, ...], str, int | str | None, str]] = {
    "01_generate_min": (SamplingParams(), FOUR, "length", None, "⇊DepthComparator trú"),
    "02_generate_logprob": (LP, FOUR, "length", None, "⇊DepthComparator trú"),
    "04_generate_top2_prompt_lp_text": (SamplingParams(logprobs=2, prompt_logprobs=2), TWO, "length", None, "⇊Depth"),
    "05_generate_token_ids_logprob": (SamplingParams(logprobs=0, prompt_logprobs=0), TWO, "length", None, "⇊Depth"),
    "06_stop_string_trimmed": (LP, THREE, "stop", "thComp", "⇊Dep"),
    "07_stop_string_no_trim": (LP, THREE, "stop", "thCompa", "⇊Dep"),
    "08_stop_token": (LP, THREE, "stop", 38658, "⇊Depth"),
    "10_eos_kept_in_text": (LP, (151645,), "stop", 151645, ""),
    "11_max_new_tokens_0": (SamplingParams(logprobs=0, prompt_logprobs=0), (), "length", None, ""),
    "12_temperature_t0": (LP, ONE, "length", None, "⇊"),
    "12_temperature_t07": (LP, (100828,), "length", None, "大力"),
    "12_temperature_t1": (LP, (70466,), "length", None, " Zack"),
    "13_sampling_mask": (LP, TWO, "length", None, "⇊Depth"),
    "14_prompt_token_ids": (SamplingParams(), ONE, "length", None, "⇊"),
    "48_auth_ok": (SamplingParams(), ONE, "length", None, "⇊"),
    "60_sglang_router_generate": (LP, TWO, "length", None, "⇊Depth"),
    "60_smg_generate": (LP, TWO, "length", None, "⇊Depth"),
    "61_sglang_router_unknown_param_dropped": (SamplingParams(), ONE, "length", None, "⇊"),
    "61_smg_unknown_param_dropped": (SamplingParams(), ONE, "length", None, "⇊"),
}
ABORTED = {"30_aborted": 11, "34_aborted_in_queue": 0}
ERRORS: dict[str, tuple[type[BackendError], int]] = {
    "15_batch": (ProtocolError, 200),
    "20_err_unknown_sampling_param": (BackendError, 400),
    "22_err_prompt_too_long": (ContextLengthError, 400),
    "23_err_prompt_plus_max_new": (ContextLengthError, 400),
    "24_err_context_edge": (ContextLengthError, 400),
    "25_err_empty_ids": (BackendError, 400),
    "26_err_float_ids": (BackendError, 400),
    "27_err_start_len": (BackendError, 400),
    "28_err_token_ids_logprob": (BackendError, 400),
    "33_queue_full": (ServerUnavailableError, 503),
    "46_auth_missing": (AuthenticationError, 401),
    "50_stream": (ProtocolError, 200),
    "62_sglang_router_bad_types": (BackendError, 422),
    "62_smg_bad_types": (BackendError, 422),
    "66_sglang_router_no_worker": (ServerUnavailableError, 503),
    "66_smg_no_worker": (ServerUnavailableError, 404),
}
ELSEWHERE = {"31_two_weight_versions"}

type Play = Callable[[str, SamplingParams | None], GenerateResult]


class HTTPStatusError(Exception):
    """What Slime's transport raises in the end: its HTTP client's error, which holds the response."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(f"Client error '{status}' for url 'http://router/generate'")
        self.response = Response(status, text)


class Response:
    def __init__(self, status: int, text: str) -> None:
        self.status_code = status
        self.text = text


def content(body: Any) -> str:
    if isinstance(body, list) and body and isinstance(body[0], str):
        return "\n\n".join(body)
    return body if isinstance(body, str) else json.dumps(body)


@pytest.fixture(scope="module")
def format(tokenizers: Path) -> PolicyFormat[Any]:
    return PolicyFormat.resolve(str(tokenizers / "qwen3"), profile="text")


@pytest.fixture(params=["sglang", "slime"])
def play(request: pytest.FixtureRequest, shared: Path, format: PolicyFormat[Any]) -> Play:
    """Has a recorded response answer one call, over HTTP or through a post() of Slime's shape."""

    def response_of(name: str) -> tuple[int, str]:
        recorded = json.loads((shared / "wire" / "sglang" / f"{name}.json").read_text())["response"]
        return recorded["status"], content(recorded["body"])

    def over_http(name: str, params: SamplingParams | None) -> GenerateResult:
        status, text = response_of(name)
        with misbehaving(reply(status, text.encode())) as server:
            policy = SGLangPolicy(model="tiny", base_url=server.url, format=format, timeout=0.2)
            try:
                return policy.generate_tokens(PROMPT, params)
            finally:
                policy.close()

    def through_post(name: str, params: SamplingParams | None) -> GenerateResult:
        status, text = response_of(name)

        async def post(url: str, payload: dict[str, Any], max_retries: int = 60) -> Mapping[str, Any]:
            if status >= 400:
                raise HTTPStatusError(status, text)
            try:
                body: Mapping[str, Any] = json.loads(text)
            except json.JSONDecodeError:
                return text  # type: ignore[return-value] # as Slime's does
            return body

        return SlimePolicy(post, "http://router/generate", model="tiny", format=format).generate_tokens(PROMPT, params)

    return over_http if request.param == "sglang" else through_post


def test_the_tables_hold_every_generation(shared: Path) -> None:
    recorded = {
        path.stem
        for path in (shared / "wire" / "sglang").glob("*.json")
        if json.loads(path.read_text())["request"]["path"] == "/generate"
    }
    assert recorded == RESULTS.keys() | ABORTED.keys() | ERRORS.keys() | ELSEWHERE


@pytest.mark.parametrize("name", RESULTS)
def test_result(name: str, play: Play) -> None:
    params, tokens, stop_reason, matched, text = RESULTS[name]
    result = play(name, params)
    assert result.tokens == tokens
    assert result.prefix_tokens == tuple(PROMPT)
    assert (result.stop_reason, result.matched_stop, result.text) == (stop_reason, matched, text)
    assert len(result.logprobs) == (0 if params.logprobs is None else len(tokens))
    assert result.exact_generation
    assert result.meta is not None
    assert result.meta.inexact_reason is None
    assert result.meta.request_id


def test_logprobs_and_top_logprobs(play: Play) -> None:
    result = play("04_generate_top2_prompt_lp_text", SamplingParams(logprobs=2, prompt_logprobs=1))
    assert result.logprobs == [-4.9044389724731445, -5.518673419952393]
    assert result.top_logprobs is not None
    assert result.top_logprobs[0] == {"token_id:148798": -4.9044389724731445, "token_id:144033": -5.007543563842773}
    assert result.prompt_logprobs[:2] == [None, -15.186856269836426]
    assert len(result.prompt_logprobs) == len(PROMPT)
    assert result.prompt_top_logprobs is not None
    assert result.prompt_top_logprobs[0] is None
    # One candidate was asked for; the prompt's own token is always among them.
    assert result.prompt_top_logprobs[1] == {
        "token_id:120962": -4.451435089111328,
        "token_id:1879": -15.186856269836426,
    }
    assert result.entropy == pytest.approx((4.9044389724731445 + 5.518673419952393) / 2)


@pytest.mark.parametrize("name", ABORTED)
def test_abort_is_exact_and_no_action(name: str, play: Play, format: PolicyFormat[Any]) -> None:
    result = play(name, LP)
    assert result.stop_reason == "abort"
    assert len(result.tokens) == len(result.logprobs) == ABORTED[name]
    assert result.exact_generation
    policy = SGLangPolicy(model="tiny", base_url="http://localhost:1", format=format)
    with pytest.raises(AbortedError) as caught:
        policy.parse(result)
    assert caught.value.result is result


def test_weight_versions_that_change_in_mid_reply(play: Play) -> None:
    result = play("31_two_weight_versions", LP)
    assert result.meta is not None
    assert result.meta.weight_versions == (("v1", 0, 19), ("v2", 19, 24))
    assert result.meta.cached_tokens == 5
    assert len(result.tokens) == 24
    assert result.exact_generation


@pytest.mark.parametrize("name", ERRORS)
def test_error(name: str, play: Play, request: pytest.FixtureRequest) -> None:
    kind, status = ERRORS[name]
    with pytest.raises(BackendError) as caught:
        play(name, LP)
    assert type(caught.value) is kind
    if "sglang]" in request.node.name:
        assert caught.value.status == status


def test_a_router_names_the_worker(shared: Path, format: PolicyFormat[Any]) -> None:
    recorded = json.loads((shared / "wire" / "sglang" / "60_smg_generate.json").read_text())["response"]
    body = json.dumps(recorded["body"]).encode()
    with misbehaving(reply(200, body, x_smg_routed_worker_id="http://worker:1")) as server:
        policy = SGLangPolicy(model="tiny", base_url=server.url, format=format)
        result = policy.generate_tokens(PROMPT, LP)
        policy.close()
    assert result.meta is not None
    assert result.meta.server == "http://worker:1"
