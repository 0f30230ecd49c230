"""Whether the loopback wire answers like the real server that it imitates."""

from __future__ import annotations

from typing import Any

import pytest

from focus_testing import Engine, serve
from focus_testing.sampling import ReportedMode
from support.raw_http import post
from support.script_model import COIN, HELLO, TAILS, script_model, table_tokenizer

__all__ = ["check_desk_against"]

_ALWAYS = {"return_token_ids": True, "return_tokens_as_token_ids": True, "skip_special_tokens": False}
_GREEDY = {"temperature": 0, "max_tokens": 20, "logprobs": 1}
_BODIES: list[dict[str, Any]] = [
    {"prompt": [HELLO], **_GREEDY},
    {"prompt": [COIN], **_GREEDY},
    {"prompt": [11958], **_GREEDY},
    {"prompt": [11958], **_GREEDY, "max_tokens": 1},
    {"prompt": [3281], **_GREEDY},
    {"prompt": [HELLO], **_GREEDY, "stop": ["ree fo"]},
    {"prompt": [HELLO], **_GREEDY, "stop": ["four", " three"]},
    {"prompt": [HELLO], **_GREEDY, "stop_token_ids": [2326]},
    {"prompt": [HELLO], **_GREEDY, "max_tokens": 7},
    {"prompt": [HELLO], **_GREEDY, "max_tokens": 3},
    {"prompt": [HELLO, 825, COIN, TAILS], **_GREEDY, "prompt_logprobs": 1},
    {"prompt": [COIN] * 4090, **_GREEDY},
    *(
        {"prompt": [COIN], "max_tokens": 1, "logprobs": 2, "temperature": temperature, "seed": seed, **cut}
        for temperature in (0.7, 1.0, 2.0)
        for seed in (1, 2, 3)
        for cut in ({}, {"top_k": 1}, {"top_p": 0.5}, {"repetition_penalty": 1.5})
    ),
]


def check_desk_against(url: str, mode: ReportedMode, api_key: str) -> int:
    """Send both the same requests: the same ids without chance, and log-probabilities to 1e-4 for the same token.

    Args:
        url: The real server that serves the script model, without a path.
        mode: What its log-probabilities are of.
        api_key: Its key.

    Returns:
        How many log-probabilities were compared.
    """
    headers = {"Authorization": f"Bearer {api_key}"}
    compared = 0
    with serve(Engine(script_model(), table_tokenizer(), logprob_mode=mode), model="focus-script") as desk:
        for body in _BODIES:
            request = {"model": "focus-script", **_ALWAYS, **body}
            theirs = post(url, "/v1/completions", request, headers).body["choices"][0]
            ours = post(desk.url, "/v1/completions", request).body["choices"][0]
            if body["temperature"] == 0:
                for key in ("token_ids", "text", "finish_reason", "stop_reason", "prompt_token_ids"):
                    assert (body, key, ours[key]) == (body, key, theirs[key])
            sides = ours["logprobs"]["top_logprobs"], theirs["logprobs"]["top_logprobs"]
            for mine, real in zip(*sides, strict=True):
                compared += _compare(body, mine, real)
            for mine, real in zip(ours["prompt_logprobs"] or [], theirs["prompt_logprobs"] or [], strict=True):
                compared += _compare(body, _plain(mine), _plain(real))
    return compared


def _compare(body: Any, mine: dict[str, float], real: dict[str, float]) -> int:
    """Candidates that both name; those with a filler on one side are cut off on the other, too."""
    likely = [key for key in mine.keys() & real.keys() if max(mine[key], real[key]) > -29]
    for key in likely:
        assert mine[key] == pytest.approx(real[key], abs=1e-4), (body, key)
    return len(likely)


def _plain(entry: dict[str, dict[str, float]] | None) -> dict[str, float]:
    return {key: one["logprob"] for key, one in (entry or {}).items()}
