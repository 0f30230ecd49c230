"""What a real vLLM server answered to recorded requests, the loopback wire answers too."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from focus_testing import Engine, serve
from support.raw_http import Answer, ask
from support.script_model import COIN, script_model, table_tokenizer

RAW = Engine(script_model(), table_tokenizer(), logprob_mode="raw")
BEHAVIOR = Engine(script_model(), table_tokenizer(), logprob_mode="behavior")

LEFT_OUT = {
    "completions_aborted": "its arrays were cut when it was recorded",
    "completions_err_prompt_full": "its arrays were cut when it was recorded",
    "completions_prompt_4095": "its arrays were cut when it was recorded",
    "completions_prompt_plus_max_tokens_clamped": "its arrays were cut when it was recorded",
    "completions_seed": "its arrays were cut when it was recorded",
    "completions_stop_many": "its arrays were cut when it was recorded",
    "completions_echo": "echo is refused",
    "completions_logit_bias_ban": "logit_bias is refused",
    "completions_logprob_token_ids": "logprob_token_ids is refused",
    "completions_render": "/v1/completions/render is not served",
    "pooling_messages": "the table has no chat template",
    "pooling_too_long": "a long text of the real tokenizer",
    "pooling_one_too_long": "a long text of the real tokenizer",
    "pooling_truncate_minus1": "a long text of the real tokenizer",
    "pooling_truncate_minus1_left": "a long text of the real tokenizer",
    "pooling_task_plugin": "the message speaks of a plugin",
}
KINDS = (
    *("completions_", "processed_", "pooling_", "nan_pooling_", "err_", "unknown_field"),
    *("version", "models", "health", "ping", "load", "detokenize"),
)
CERTAIN = -29
"""Below are candidates that came only because k were asked for: which ones is the server's choice."""


class Pair(NamedTuple):
    """What the real server answered, and what the loopback server does."""

    name: str
    request: dict[str, Any]
    status: tuple[int, int]
    media_type: tuple[str | None, str | None]
    theirs: Any
    ours: Any


@pytest.fixture(scope="module")
def pairs(shared: Path) -> list[Pair]:
    found: list[Pair] = []
    for path in sorted((shared / "wire" / "vllm").glob("*.json")):
        if path.stem.startswith(KINDS) and path.stem not in LEFT_OUT:
            exchange = json.loads(path.read_text())
            ours = answer(path.stem, exchange["request"])
            body = "" if ours.body == b"" else ours.body
            status = exchange["status"], ours.status
            media_type = exchange["content_type"], ours.headers.get("content-type")
            found.append(Pair(path.stem, exchange["request"], status, media_type, exchange["response"], body))
    assert len(found) >= 95
    return found


def answer(name: str, request: dict[str, Any]) -> Answer:
    """What the loopback server answers to a recorded request."""
    body = request["body"]
    pooling = "pooling" in name or name == "models"
    key = "secret" if name in ("err_bad_key", "models_bad_key") else None
    options: dict[str, Any] = {"model": "focus-critic" if pooling else "focus-script", "api_key": key}
    if name.startswith("nan_"):
        options |= {"task": "token_classify", "nan_tokens": frozenset({1})}
    engine = BEHAVIOR if name.startswith("processed_") else RAW
    with serve(engine, wire="pooling" if pooling else "vllm", **options) as server:
        return ask(server.url, request["method"], request["path"], body)


def kinds(value: Any) -> Any:
    """The structure of a reply: keys and types, with lists reduced to the kinds of their items."""
    if isinstance(value, dict):
        return {key: kinds(item) for key, item in value.items()}
    if isinstance(value, list):
        return [kind for i, kind in enumerate(map(kinds, value)) if kind not in map(kinds, value[:i])]
    return type(value).__name__


def choices(body: Any) -> list[dict[str, Any]]:
    return list(body.get("choices", ())) if isinstance(body, dict) else []


def comparable(choice: dict[str, Any], number: Callable[[float], Any]) -> dict[str, Any]:
    """A choice without candidates that nobody would sample; its log-probabilities through ``number``."""

    def likely(entries: dict[str, Any] | None) -> dict[str, Any] | None:
        values = {key: one["logprob"] if isinstance(one, dict) else one for key, one in (entries or {}).items()}
        return {key: number(value) for key, value in values.items() if value > CERTAIN}

    choice = dict(choice)
    if logprobs := choice["logprobs"]:
        sampled = list(map(number, logprobs["token_logprobs"]))
        top = list(map(likely, logprobs["top_logprobs"]))
        choice["logprobs"] = {**logprobs, "token_logprobs": sampled, "top_logprobs": top}
    if choice["prompt_logprobs"]:
        choice["prompt_logprobs"] = list(map(likely, choice["prompt_logprobs"]))
    return choice


def close(value: float) -> Any:
    return pytest.approx(value, abs=1e-4)


def test_every_exchange_has_the_same_status_keys_and_types(pairs: list[Pair]) -> None:
    for pair in pairs:
        assert (pair.name, pair.status[1]) == (pair.name, pair.status[0])
        assert (pair.name, pair.media_type[1]) == (pair.name, pair.media_type[0])
        if not choices(pair.theirs):
            assert (pair.name, kinds(pair.ours)) == (pair.name, kinds(pair.theirs))
            continue
        assert (pair.name, set(pair.ours)) == (pair.name, set(pair.theirs))
        assert (pair.name, kinds(pair.ours["usage"])) == (pair.name, kinds(pair.theirs["usage"]))
        for ours, theirs in zip(choices(pair.ours), choices(pair.theirs), strict=True):
            assert (pair.name, set(ours)) == (pair.name, set(theirs))
            assert (pair.name, set(ours["logprobs"] or {})) == (pair.name, set(theirs["logprobs"] or {}))
            assert (pair.name, ours["finish_reason"]) == (pair.name, theirs["finish_reason"])


def test_replies_without_chance_are_the_same_in_every_value(pairs: list[Pair]) -> None:
    compared = 0
    for pair in pairs:
        body = pair.request["body"]
        certain = choices(pair.theirs) and (
            body.get("temperature") in (0, 1e-5) or body.get("top_k") == 1 or body.get("top_p") == 0.5
        )
        if certain:
            ours = [comparable(choice, float) for choice in choices(pair.ours)]
            assert (pair.name, ours) == (pair.name, [comparable(choice, close) for choice in choices(pair.theirs)])
            assert (pair.name, pair.ours["usage"]) == (pair.name, pair.theirs["usage"])
            compared += 1
    assert compared >= 37


def test_sampled_tokens_have_the_recorded_logprobs(pairs: list[Pair]) -> None:
    """Which side of the coin comes is chance; what each side's log-probability is, is not."""
    compared = 0
    for pair in pairs:
        for ours, theirs in zip(choices(pair.ours), choices(pair.theirs), strict=False):
            if ours["logprobs"] and pair.request["body"]["prompt"][-1] == COIN:
                found, recorded = (one["logprobs"]["top_logprobs"][0] for one in (ours, theirs))
                for word in {" heads", " tails"} & found.keys() & recorded.keys():
                    assert (pair.name, word, found[word]) == (pair.name, word, close(recorded[word]))
                    compared += 1
    assert compared >= 35


def test_errors_carry_the_recorded_type_parameter_and_message(pairs: list[Pair]) -> None:
    for pair in pairs:
        if pair.status[0] == 200:
            continue
        if not isinstance(pair.theirs.get("error"), dict):
            assert (pair.name, pair.ours) == (pair.name, pair.theirs)
            continue
        ours, theirs = pair.ours["error"], pair.theirs["error"]
        assert (pair.name, ours["code"], ours["type"]) == (pair.name, theirs["code"], theirs["type"])
        if re.match(r"\d+ validation error", theirs["message"]) is None:
            assert (pair.name, ours["param"]) == (pair.name, theirs["param"])
            first, expected = (re.split("[`;]|[.] ", one["message"])[0] for one in (ours, theirs))
            assert (pair.name, first) == (pair.name, expected)


def test_pooled_values_are_the_recorded_ones(pairs: list[Pair]) -> None:
    compared = 0
    for pair in pairs:
        if "pooling" in pair.name and pair.status[0] == 200:
            assert (pair.name, pair.ours["usage"]) == (pair.name, pair.theirs["usage"])
            for ours, theirs in zip(pair.ours["data"], pair.theirs["data"], strict=True):
                value = theirs["data"] if isinstance(theirs["data"], str) else close_values(theirs["data"])
                assert (pair.name, ours["data"]) == (pair.name, value)
                compared += 1
    assert compared >= 15


def close_values(values: list[Any]) -> list[Any]:
    """Values of a sequence, or of its tokens, to 1e-6."""
    return [close_values(one) if isinstance(one, list) else pytest.approx(one, abs=1e-6) for one in values]
