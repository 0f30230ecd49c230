"""Every recorded reply of a real vLLM server becomes the result or the error that it should."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from focus.backends import PolicyFormat, SamplingParams
from focus.errors import BackendError, ContextLengthError, ProtocolError
from focus_format.exchange import TokenRequest
from focus_format.result import build_result
from focus_http import HttpReply, error_for
from focus_vllm import wire

# focus asks for keys by id, so it never causes this; many recorded requests did not.
BY_TEXT = "top log-probabilities are keyed by token text, which several ids can share"


class Recorded(NamedTuple):
    tokens: tuple[int, ...]
    stop_reason: str
    matched_stop: int | str | None
    text: str
    logprobs: int
    exact: bool
    reason: str | None


RESULTS: dict[str, Recorded] = {
    "completions_echo": Recorded(
        (2326, 3040),
        "length",
        None,
        " three four",
        0,
        False,
        f"{BY_TEXT}; 5 log-probabilities came for 2 tokens",
    ),
    "completions_length_equals_eos": Recorded(
        (825, 1378, 2326, 3040, 4236, 4743, 151645), "stop", 151645, " one two three four five six", 7, True, None
    ),
    "completions_logit_bias_ban": Recorded((63514,), "length", None, " tails", 1, True, BY_TEXT),
    "completions_logprob_token_ids": Recorded((63514,), "length", None, " tails", 1, True, None),
    "completions_logprobs_1": Recorded(
        (825, 1378, 2326, 3040, 4236, 4743, 151645), "stop", 151645, " one two three four five six", 7, True, BY_TEXT
    ),
    "completions_logprobs_5": Recorded((63514, 16254), "length", None, " tails coin", 2, True, BY_TEXT),
    "completions_logprobs_none": Recorded(
        (825, 1378, 2326, 3040, 4236, 4743, 151645), "stop", 151645, " one two three four five six", 0, True, None
    ),
    "completions_max_tokens_1": Recorded((825,), "length", None, " one", 1, True, None),
    "completions_max_tokens_null": Recorded(
        (825, 1378, 2326, 3040, 4236, 4743, 151645), "stop", 151645, " one two three four five six", 7, True, None
    ),
    "completions_max_tokens_null_never_ends": Recorded(
        (
            14629,
            16254,
            14629,
            16254,
            14629,
            16254,
            14629,
            16254,
            14629,
            16254,
            14629,
            16254,
            14629,
            16254,
            14629,
            16254,
        ),
        "length",
        None,
        " heads coin heads coin heads coin heads coin heads coin heads coin heads coin heads coin",
        16,
        True,
        None,
    ),
    "completions_max_tokens_omitted_never_ends": Recorded(
        (
            14629,
            16254,
            14629,
            16254,
            14629,
            16254,
            14629,
            16254,
            14629,
            16254,
            14629,
            16254,
            14629,
            16254,
            14629,
            16254,
        ),
        "length",
        None,
        " heads coin heads coin heads coin heads coin heads coin heads coin heads coin heads coin",
        16,
        True,
        None,
    ),
    "completions_prompt_lp_0": Recorded((2326, 3040), "length", None, " three four", 0, True, None),
    "completions_prompt_lp_1": Recorded((2326, 3040), "length", None, " three four", 0, True, None),
    "completions_prompt_lp_2": Recorded((16254, 14629), "length", None, " coin heads", 0, True, None),
    "completions_prompt_lp_unlikely": Recorded((2326,), "length", None, " three", 0, True, None),
    "completions_repetition_penalty": Recorded(
        (63514, 16254, 14629), "length", None, " tails coin heads", 3, True, BY_TEXT
    ),
    "completions_special_skip_false": Recorded(
        (151654, 9787, 151645), "stop", 151645, "<|vision_pad|> tail", 3, True, None
    ),
    "completions_special_skip_true": Recorded(
        (151654, 9787, 151645), "stop", 151645, "<|vision_pad|> tail", 3, True, None
    ),
    "completions_stop_eos_included": Recorded(
        (825, 1378, 2326, 3040, 4236, 4743, 151645), "stop", 151645, " one two three four five six", 7, True, None
    ),
    "completions_stop_string_across_tokens": Recorded(
        (825, 1378, 2326, 3040), "stop", "ree fo", " one two th", 4, True, None
    ),
    "completions_stop_string_eos_text_skip_false": Recorded(
        (825, 1378, 2326, 3040, 4236, 4743, 151645), "stop", 151645, " one two three four five six", 7, True, None
    ),
    "completions_stop_string_included": Recorded(
        (825, 1378, 2326, 3040), "stop", "ree fo", " one two th", 4, True, None
    ),
    "completions_stop_string_mid_token": Recorded((825, 1378, 2326), "stop", "ree", " one two th", 3, True, None),
    "completions_stop_string_two_both": Recorded((825, 1378, 2326), "stop", " three", " one two", 3, True, None),
    "completions_stop_token_ids": Recorded((825, 1378, 2326), "stop", 2326, " one two", 3, True, None),
    "completions_stop_token_ids_eos": Recorded(
        (825, 1378, 2326, 3040, 4236, 4743, 151645), "stop", 151645, " one two three four five six", 7, True, None
    ),
    "completions_stop_token_ids_included": Recorded((825, 1378, 2326), "stop", 2326, " one two", 3, True, None),
    "completions_temperature_0.7": Recorded((14629,), "length", None, " heads", 1, True, BY_TEXT),
    "completions_temperature_0": Recorded((14629,), "length", None, " heads", 1, True, BY_TEXT),
    "completions_temperature_1.0": Recorded((14629,), "length", None, " heads", 1, True, BY_TEXT),
    "completions_temperature_1e-5": Recorded((14629,), "length", None, " heads", 1, True, BY_TEXT),
    "completions_temperature_2.0": Recorded((14629,), "length", None, " heads", 1, True, BY_TEXT),
    "completions_temperature_null": Recorded((14629,), "length", None, " heads", 1, True, BY_TEXT),
    "completions_token_padded_vocab": Recorded((16254,), "length", None, " coin", 1, True, None),
    "completions_tokens_as_ids": Recorded(
        (825, 1378, 2326, 3040, 4236, 4743, 151645), "stop", 151645, " one two three four five six", 7, True, None
    ),
    "completions_top_k_0": Recorded((63514,), "length", None, " tails", 1, True, BY_TEXT),
    "completions_top_k_1": Recorded((14629,), "length", None, " heads", 1, True, BY_TEXT),
    "completions_top_k_minus1": Recorded((63514,), "length", None, " tails", 1, True, BY_TEXT),
    "completions_top_p_0.5": Recorded((14629,), "length", None, " heads", 1, True, BY_TEXT),
    "completions_truncate_prompt": Recorded(
        (1378, 2326), "length", None, " two three", 2, False, "the server continued other prompt ids than the ones sent"
    ),
    "completions_utf8_cut": Recorded((123918,), "length", None, "�", 1, True, None),
    "completions_utf8_whole": Recorded((123918, 250, 67241, 151645), "stop", 151645, "🦜 sings", 4, True, None),
    "processed_temperature_0.7": Recorded((63514,), "length", None, " tails", 1, True, BY_TEXT),
    "processed_temperature_0": Recorded((14629,), "length", None, " heads", 1, True, BY_TEXT),
    "processed_temperature_1.0": Recorded((63514,), "length", None, " tails", 1, True, BY_TEXT),
    "processed_temperature_2.0": Recorded((63514,), "length", None, " tails", 1, True, BY_TEXT),
    "processed_top_k_1": Recorded((14629,), "length", None, " heads", 1, True, BY_TEXT),
    "processed_top_p_0.5": Recorded((14629,), "length", None, " heads", 1, True, BY_TEXT),
    "random_explicit_t1": Recorded(
        (95556, 71672, 110723, 9474, 54806, 102680, 22759, 41263, 150734, 92829, 44928, 67554),
        "length",
        None,
        "methodPointerTypeSeattle跌幅 unf pretending劫EqualTo(animated⨍ hunts章clare",
        12,
        True,
        BY_TEXT,
    ),
    "random_prompt_lp_processed": Recorded((113391,), "length", None, "国道", 0, True, None),
    "random_server_defaults": Recorded(
        (71161, 88115, 17621, 117326, 127344, 106148, 87152, 147974, 32872, 86663, 13526, 147512),
        "length",
        None,
        ' Dennypical")));\n很长时间буд般的 Vish➮>());\n outliers ya🕹',
        12,
        True,
        BY_TEXT,
    ),
    "random_t0.7_processed": Recorded(
        (95556, 92712, 104941), "length", None, "methodPointerType.HE汪", 3, True, BY_TEXT
    ),
    "random_t1_topk_null": Recorded(
        (71161, 123596, 13823, 95253, 105895, 30445, 89413, 71972, 127901, 75679, 82584, 6884),
        "length",
        None,
        " Denn𤩽 generator Notices内涵 endDateısı/domain働`\r\n.CSS wide",
        12,
        True,
        BY_TEXT,
    ),
    "random_topk2_processed": Recorded((109568, 55255, 24529), "length", None, "市面上 Gone=array", 3, True, BY_TEXT),
}

ERRORS: dict[str, tuple[type[BackendError], int]] = {
    "completions_err_prompt_empty": (BackendError, 400),
    "completions_err_prompt_full": (ContextLengthError, 400),
    "completions_err_token_float": (BackendError, 400),
    "completions_err_token_negative": (BackendError, 400),
    "completions_err_token_out_of_range": (BackendError, 400),
    "completions_logprobs_21_over_cap": (BackendError, 400),
    "completions_max_tokens_0": (ContextLengthError, 400),
    "completions_n2": (ProtocolError, 200),
    "completions_on_pooling": (BackendError, 404),
    "completions_prompt_batch": (ProtocolError, 200),
    "completions_render": (ProtocolError, 200),
    "completions_repetition_penalty_0": (BackendError, 400),
    "completions_seed_big": (BackendError, 400),
    "completions_seed_neg": (ProtocolError, 200),
    "completions_stop_many": (BackendError, 400),
    "completions_temperature_neg": (BackendError, 400),
    "completions_top_k_minus2": (BackendError, 400),
    "completions_top_p_0": (BackendError, 400),
    "processed_defaults": (ProtocolError, 200),
    "processed_prompt_lp": (ProtocolError, 200),
    "processed_repetition_penalty": (ProtocolError, 200),
}

EXCLUDED = {
    "completions_aborted": "an array of the reply was cut when it was recorded",
    "completions_prompt_4095": "an array of the reply was cut when it was recorded",
    "completions_prompt_plus_max_tokens_clamped": "an array of the reply was cut when it was recorded",
    "completions_seed": "an array of the reply was cut when it was recorded",
    "random_garbage_text": "an array of the reply was cut when it was recorded",
}


def exchange(shared: Path, name: str) -> tuple[TokenRequest, HttpReply]:
    recorded: dict[str, Any] = json.loads((shared / "wire" / "vllm" / f"{name}.json").read_text())
    body = recorded["request"]["body"]
    ids = body["prompt"]
    if not isinstance(ids, list) or not ids or not all(isinstance(token, int) for token in ids):
        ids = [9707]  # a text, a batch or a bad prompt: focus never sends it, only the reply matters
    params = SamplingParams(
        max_tokens=body.get("max_tokens") or 16,
        logprobs=body.get("logprobs"),
        prompt_logprobs=body.get("prompt_logprobs"),
    )
    assert params.max_tokens is not None
    reply = HttpReply(recorded["status"], {}, json.dumps(recorded["response"]).encode(), 1, 0.0)
    return TokenRequest(tuple(ids), params, params.max_tokens), reply


@pytest.fixture(scope="module")
def qwen3(tokenizers: Path) -> PolicyFormat[Any]:
    return PolicyFormat.resolve(str(tokenizers / "qwen3"), profile="hermes")


@pytest.mark.parametrize("name", RESULTS)
def test_reply(shared: Path, qwen3: PolicyFormat[Any], name: str) -> None:
    request, reply = exchange(shared, name)
    result, _ = build_result(request, wire.decode_reply(reply, request), qwen3.codec, "unknown")
    assert result.meta is not None
    seen = Recorded(
        result.tokens,
        result.stop_reason,
        result.matched_stop,
        result.text,
        len(result.logprobs),
        result.exact_generation,
        result.meta.inexact_reason,
    )
    assert seen == RESULTS[name]
    assert result.prefix_tokens == request.tokens


@pytest.mark.parametrize("name", ERRORS)
def test_error(shared: Path, name: str) -> None:
    request, reply = exchange(shared, name)
    kind, status = ERRORS[name]
    if reply.status == 200:
        with pytest.raises(BackendError) as caught:
            wire.decode_reply(reply, request)
        error = caught.value
    else:
        error = error_for(reply, backend=wire.BACKEND, refine=wire.refine_error)
    assert (type(error), error.status) == (kind, status)


def test_every_recording_is_accounted_for(shared: Path) -> None:
    patterns = ("completions_*.json", "processed_*.json", "random_*.json")
    names = [path.stem for pattern in patterns for path in (shared / "wire" / "vllm").glob(pattern)]
    assert sorted(names) == sorted([*RESULTS, *ERRORS, *EXCLUDED])


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("completions_prompt_lp_2", [None, -1.3862940073013306, 0.0, -0.2876822054386139]),
        ("completions_prompt_lp_unlikely", [None, -30.0, -30.0]),
    ],
)
def test_prompt_logprobs_are_those_of_the_prompts_own_tokens(
    shared: Path, qwen3: PolicyFormat[Any], name: str, values: list[float | None]
) -> None:
    request, reply = exchange(shared, name)
    result, _ = build_result(request, wire.decode_reply(reply, request), qwen3.codec, "unknown")
    assert result.prompt_logprobs == values


def test_top_logprobs_by_id(shared: Path, qwen3: PolicyFormat[Any]) -> None:
    request, reply = exchange(shared, "completions_tokens_as_ids")
    result, _ = build_result(request, wire.decode_reply(reply, request), qwen3.codec, "unknown")
    assert result.top_logprobs == [{f"token_id:{token}": 0.0} for token in result.tokens]
