"""What a real server answered to the real SDK, replayed: each recording becomes the result or error it must."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx
import pytest
import tinker

from focus_format import PolicyFormat
from focus_parsing import TextActionParser
from focus_tinker import TinkerPolicy
from focus_tinker.errors import translate_error
from focus_tinker.wire import align_prompt
from focus_types import (
    BackendError,
    GenerateResult,
    InvalidRequestError,
    Message,
    ProtocolError,
    RequestTimeoutError,
    SamplingParams,
)
from support.tinker_client import ReplyClient

PROMPT = (9707, 1879, 11, 1128, 374)
SEED_7 = (374, 25365, 25365, 71367, 71367, 71367, 71367, 71367)
STOPPED = SEED_7[:4]
NAM = 71367
END = 151645


class Codec:
    """The vocabulary of the recordings; of its texts only those that they stopped at matter."""

    vocab_size = 151936

    def __init__(self, stop: int = END) -> None:
        self.stop_tokens = frozenset({stop})

    def encode(self, text: str) -> tuple[int, ...]:
        return {"<|im_end|>": (END,), "Nam": (NAM,), "am": (309,)}[text]

    def decode(self, tokens: Sequence[int], *, skip_special_tokens: bool = False) -> str:
        return "".join({END: "" if skip_special_tokens else "<|im_end|>", NAM: "Nam"}.get(one, "?") for one in tokens)

    def render(self, messages: Sequence[Message], tools: Sequence[dict[str, Any]] = ()) -> tuple[int, ...]:
        raise NotImplementedError

    def extend(
        self, tokens: Sequence[int], messages: Sequence[Message], tools: Sequence[dict[str, Any]] = ()
    ) -> tuple[int, ...] | None:
        raise NotImplementedError


FORMAT = PolicyFormat("recorded", Codec(), TextActionParser())
STOPPING_AT_NAM = PolicyFormat("recorded", Codec(NAM), TextActionParser())


def load(shared: Path, name: str) -> dict[str, Any]:
    recorded: dict[str, Any] = json.loads((shared / "wire" / "tinker" / f"tinker_{name}.json").read_text())
    return recorded


def response(recorded: dict[str, Any]) -> tinker.SampleResponse:
    """The recorded fields in the SDK's own types."""
    body = recorded["response"]
    return tinker.SampleResponse(
        sequences=[
            tinker.SampledSequence(
                stop_reason=one["stop_reason"],
                sequence_id=one["sequence_id"],
                _tokens_list=one["tokens"],
                _logprobs_list=one["logprobs"],
                _topk_logprobs_list=one["topk_logprobs"],
            )
            for one in body["sequences"]
        ],
        prompt_cache_hit_tokens=body["prompt_cache_hit_tokens"],
        _prompt_logprobs_list=body["prompt_logprobs"],
        _topk_prompt_logprobs_list=body["topk_prompt_logprobs"],
    )


def error(recorded: dict[str, Any]) -> Exception:
    """The recorded exception, its cause included."""
    told = recorded["error"]
    if told["type"].startswith("tinker."):
        return _status_error(told["type"].removeprefix("tinker."), told["str"], told["body"], told["status_code"])
    made = {"ValueError": ValueError, "TimeoutError": TimeoutError}[told["type"].removeprefix("builtins.")](told["str"])
    if "cause" in told:
        made.__cause__ = _status_error(told["cause"]["type"], told["cause"]["str"], None, 400)
    return made


def _status_error(kind: str, text: str, body: object, status: int) -> tinker.APIStatusError:
    answer = httpx.Response(status, request=httpx.Request("POST", "http://tinker.test/api/v1/asample"))
    made = getattr(tinker, kind)(text, response=answer, body=body)
    assert isinstance(made, tinker.APIStatusError)
    return made


def replay(
    recorded: dict[str, Any], tokens: tuple[int, ...], params: SamplingParams, format: PolicyFormat[str] = FORMAT
) -> GenerateResult:
    client = ReplyClient(lambda _: error(recorded) if "error" in recorded else response(recorded))
    return TinkerPolicy(client, model="recorded", format=format).generate_tokens(tokens, params)


def params(**given: Any) -> SamplingParams:
    return SamplingParams(**{"temperature": 1.0, "max_tokens": 8, "logprobs": 0, **given})


@pytest.mark.parametrize(
    ("name", "given", "tokens", "reason", "matched"),
    [
        ("sample_greedy", {"temperature": 0.0}, (374,) * 8, "length", None),
        ("sample_seed7", {"seed": 7}, SEED_7, "length", None),
        ("sample_seed7_again", {"seed": 7}, SEED_7, "length", None),
        ("sample_seed8", {"seed": 8}, (102618, *(94252,) * 7), "length", None),
        ("sample_max_tokens_1", {"max_tokens": 1, "seed": 7}, (374,), "length", None),
        ("sample_stop_empty_list", {"seed": 7, "stop": []}, SEED_7, "length", None),
        ("sample_stop_string_list", {"seed": 7, "stop": ["Nam"]}, STOPPED, "stop", "Nam"),
        ("sample_stop_string_mid_token", {"seed": 7, "stop": ["am"]}, STOPPED, "stop", "am"),
        ("sample_temperature_2", {"temperature": 2.0}, (136077, 104692, 132384, 71367), "length", None),
        ("sample_temperature_2_again", {"temperature": 2.0}, (136077, 104692, 132384, 71367), "length", None),
        ("sample_top_p_half", {"top_p": 0.5}, (374, 374, 57194, 57194), "length", None),
        ("sample_top_p_small", {"top_p": 0.01}, (374,) * 4, "length", None),
        ("sample_topk1_topp", {"top_k": 1}, (374,) * 4, "length", None),
    ],
)
def test_samples(
    shared: Path, name: str, given: dict[str, Any], tokens: tuple[int, ...], reason: str, matched: str | None
) -> None:
    recorded = load(shared, name)
    result = replay(recorded, PROMPT, params(**given))
    assert result.tokens == tokens
    assert result.prefix_tokens == PROMPT
    assert (result.stop_reason, result.matched_stop) == (reason, matched)
    assert result.logprobs == recorded["response"]["sequences"][0]["logprobs"]
    assert result.exact_generation
    assert result.prompt_logprobs == []
    assert result.meta is not None
    assert result.meta.inexact_reason is None
    assert result.meta.cached_tokens is None
    assert result.meta.request_id == recorded["response"]["sequences"][0]["sequence_id"]


def test_the_matched_stop_token_is_the_last_id(shared: Path) -> None:
    result = replay(load(shared, "sample_stop_token"), PROMPT, params(seed=7), STOPPING_AT_NAM)
    assert (result.tokens, result.stop_reason, result.matched_stop, result.text) == (STOPPED, "stop", NAM, "???")


def test_a_matched_stop_string_is_cut_from_the_text_only(shared: Path) -> None:
    result = replay(load(shared, "sample_stop_string_mid_token"), PROMPT, params(stop=["am"]))
    assert result.text == "???N"


def test_the_end_of_turn_as_a_string_is_the_formats_id(shared: Path) -> None:
    result = replay(load(shared, "sample_eos_listed_as_stop_string"), (9707, END), params(stop=["<|im_end|>"]))
    assert (result.tokens, result.stop_reason, result.matched_stop, result.text) == ((END,), "stop", END, "")


def test_prompt_logprobs_without_the_first_are_aligned(shared: Path) -> None:
    result = replay(load(shared, "sample_prompt_logprobs"), PROMPT, params(temperature=0.0, prompt_logprobs=0))
    assert result.prompt_logprobs == [
        None,
        -17.490392684936523,
        -28.44121551513672,
        -24.813411712646484,
        -20.15898895263672,
    ]


@pytest.mark.parametrize("name", ["sample_n4", "sample_unknown_params_silently_dropped"])
def test_several_sequences_are_refused(shared: Path, name: str) -> None:
    with pytest.raises(ProtocolError, match=r"returned [24] sequences, 1 was asked for"):
        replay(load(shared, name), PROMPT, params())


def test_top_logprobs_that_the_server_ignores_are_an_error(shared: Path) -> None:
    with pytest.raises(ProtocolError, match="use logprobs=0"):
        replay(load(shared, "sample_seed7"), PROMPT, params(logprobs=3))


def test_a_refusal_after_submission_is_typed(shared: Path) -> None:
    recorded = load(shared, "sample_topk_prompt_logprobs")
    with pytest.raises(BackendError, match="not supported by the JAX backend") as caught:
        replay(recorded, PROMPT, params(prompt_logprobs=3))
    assert (type(caught.value), caught.value.status) == (BackendError, 400)
    assert isinstance(caught.value.__cause__, ValueError)


def test_an_endless_wait_that_the_sdk_ends_is_a_timeout(shared: Path) -> None:
    with pytest.raises(RequestTimeoutError):
        replay(load(shared, "error_out_of_range_id"), PROMPT, params())


@pytest.mark.parametrize(
    ("name", "status", "text"),
    [
        ("sample_max_tokens_0", 400, "max_tokens must be a positive number"),
        ("sample_max_tokens_none", 400, "max_tokens is currently required"),
        ("sample_stop_bare_string", 422, "Input should be a valid list"),
        ("unknown_model_path", 404, "Model not found"),
        ("unknown_base_model", 400, "request specified 'no/such-model'"),
    ],
)
def test_refusals(shared: Path, name: str, status: int, text: str) -> None:
    found = translate_error(error(load(shared, name)))
    assert (type(found), found.status) == (BackendError, status)
    assert text in str(found)


@pytest.mark.parametrize(
    ("name", "tokens", "given", "message"),
    [
        ("error_negative_id", (9707, -1), {}, "token 1 of 2 is -1"),
        ("error_out_of_range_id", (9707, 200000), {}, r"token 1 of 2 is 200000, outside 0\.\.151935"),
        ("error_empty_prompt", (), {}, "the prompt is empty"),
        ("sample_negative_temperature", PROMPT, {"temperature": -1.0}, "temperature must be"),
        ("sample_max_tokens_0", PROMPT, {"max_tokens": 0}, "max_tokens must be"),
        ("sample_stop_bare_string", PROMPT, {"stop": "Nam"}, "stop must be a list"),
        ("sample_unknown_params_silently_dropped", PROMPT, {"repetition_penalty": 5.0}, "repetition_penalty=5.0"),
    ],
)
def test_what_the_server_took_or_choked_on_is_refused_before_it_is_sent(
    shared: Path, name: str, tokens: tuple[int, ...], given: dict[str, Any], message: str
) -> None:
    assert load(shared, name)
    client = ReplyClient(lambda _: None)
    policy = TinkerPolicy(client, model="recorded", format=FORMAT)
    with pytest.raises(InvalidRequestError, match=message):
        policy.generate_tokens(tokens, params(**given))
    assert client.requests == []


@pytest.mark.parametrize("name", ["tuple_ids", "numpy_int64_ids", "long_prompt_3000_ids_window_2048"])
def test_ids_reach_the_sdk_as_a_list_of_int(shared: Path, name: str) -> None:
    recorded = load(shared, name)
    client = ReplyClient(lambda _: response(recorded))
    policy = TinkerPolicy(client, model="recorded", format=FORMAT)
    result = policy.generate_tokens((9707,) * 3000)
    assert client.requests[0]["tokens"] == [9707] * 3000
    assert result.tokens == tuple(recorded["response"]["sequences"][0]["tokens"])


def test_compute_logprobs_lines_up_with_the_sample(shared: Path) -> None:
    scored = load(shared, "compute_logprobs_of_sampled")
    aligned = align_prompt(scored["response"], len(scored["request"]["prompt"]))
    sampled = load(shared, "sample_seed7")["response"]["sequences"][0]
    assert tuple(scored["request"]["prompt"]) == PROMPT + tuple(sampled["tokens"])
    assert aligned[-8:] == pytest.approx(sampled["logprobs"], abs=1e-4)
    assert align_prompt(load(shared, "compute_logprobs")["response"], 5) == aligned[:5]


def test_every_recording_is_used(shared: Path) -> None:
    source = Path(__file__).read_text()
    names = {file.stem.removeprefix("tinker_") for file in (shared / "wire" / "tinker").glob("*.json")}
    assert {name for name in names if f'"{name}"' not in source} == set()
