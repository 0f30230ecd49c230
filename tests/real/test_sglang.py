"""SGLangPolicy directly on a real SGLang server whose model's next-token probabilities are known exactly."""

from __future__ import annotations

import asyncio
import math
import time
import warnings
from collections.abc import Iterator
from typing import Any

import pytest

from focus.backends import PolicyFormat, SamplingParams
from focus.errors import (
    AuthenticationError,
    BackendError,
    InvalidRequestError,
    RequestTimeoutError,
    ServerUnavailableError,
)
from real.sglang_checks import COIN, END, HELLO, KEY, ONE_TO_SIX, Checks, Site
from servers import sglang


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with sglang.script("--api-key", KEY, "--max-queued-requests", "8", "--weight-version", "v1") as server:
        yield Site(server, server.url, KEY, tells_context=True)


class TestDirect(Checks):
    pass


def test_startup_check_passes_without_a_warning(site: Site, script_format: PolicyFormat[Any]) -> None:
    policy = site.policy(script_format, default_params=SamplingParams(temperature=0.7, logprobs=0))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        policy.startup_check()
    policy.close()


@pytest.mark.parametrize("key", [None, "not-the-key"])
def test_wrong_key(site: Site, script_format: PolicyFormat[Any], key: str | None) -> None:
    policy = site.policy(script_format, api_key=key)
    for call in (policy.startup_check, lambda: policy.generate_tokens([HELLO])):
        with pytest.raises(AuthenticationError) as caught:
            call()
        assert caught.value.status == 401
        assert "not-the-key" not in f"{caught.value!r}{caught.value}"
    policy.close()


def test_another_tokenizer_of_the_same_size_is_refused(site: Site, tokenizers: Any) -> None:
    policy = site.policy(PolicyFormat.resolve(str(tokenizers / "qwen2.5")))
    report = policy.probe()
    policy.close()
    # The two vocabularies agree on every id of the probe: nothing to refuse.
    assert report.text_agrees is True


def test_greedy_by_top_k_depends_on_the_batch_and_is_refused(site: Site, script_format: PolicyFormat[Any]) -> None:
    policy = site.policy(script_format, default_params=SamplingParams())
    with pytest.raises(InvalidRequestError, match="use temperature=0"):
        policy.generate_tokens([COIN], SamplingParams(temperature=0.7, top_k=1, logprobs=0))
    assert policy.generate_tokens([COIN], SamplingParams(temperature=0.7, top_k=1, max_tokens=1)).exact_generation
    alone = policy.generate_tokens([COIN], SamplingParams(temperature=1.0, top_k=1, max_tokens=1, logprobs=0))
    assert alone.logprobs == pytest.approx([math.log(0.75)], abs=1e-4)
    with pytest.raises(InvalidRequestError, match="repetition_penalty"):
        policy.generate_tokens([COIN], SamplingParams(repetition_penalty=2.5))
    assert policy.generate_tokens([HELLO], SamplingParams(temperature=0.0, repetition_penalty=1.5)).exact_generation
    policy.close()


def test_a_seed_is_sent_and_the_report_says_that_it_is_ignored(site: Site, script_format: PolicyFormat[Any]) -> None:
    policy = site.policy(script_format)
    params = SamplingParams(temperature=1.0, max_tokens=32, seed=-5)
    assert len({policy.generate_tokens([COIN], params).tokens for _ in range(4)}) > 1
    assert any("--enable-deterministic-inference" in note for note in policy.probe().notes)
    policy.close()


def test_several_event_loops(site: Site, script_format: PolicyFormat[Any]) -> None:
    policy = site.policy(script_format)
    for _ in range(3):
        assert asyncio.run(policy.agenerate_tokens([HELLO])).tokens == (*ONE_TO_SIX, END)
    policy.close()


def test_a_deadline(site: Site, script_format: PolicyFormat[Any]) -> None:
    policy = site.policy(script_format, timeout=0.5)
    with pytest.raises(RequestTimeoutError) as caught:
        policy.generate_tokens([COIN], SamplingParams(temperature=1.0, max_tokens=3900))
    assert caught.value.attempts == 1
    policy.close()


@pytest.fixture(scope="module")
def bare() -> Iterator[Site]:
    """Raw log-probabilities and no tokenizer."""
    with sglang.script("--skip-tokenizer-init", env={"SGLANG_RETURN_ORIGINAL_LOGPROB": "1"}) as server:
        yield Site(server, server.url, None, tells_context=True)


def test_a_server_of_raw_logprobs(bare: Site, script_format: PolicyFormat[Any]) -> None:
    policy = bare.policy(script_format, default_params=SamplingParams(temperature=0.7, logprobs=0))
    report = policy.probe([COIN])
    assert (report.logprob_mode, report.text_agrees) == ("raw", None)
    assert any("--skip-tokenizer-init" in note for note in report.notes)
    result = policy.generate_tokens([COIN], SamplingParams(temperature=2.0, max_tokens=1, logprobs=0))
    assert result.logprobs[0] in (pytest.approx(math.log(0.75), abs=1e-4), pytest.approx(math.log(0.25), abs=1e-4))
    assert result.meta is not None
    assert (result.meta.logprob_mode, result.meta.logprobs_match_sampling) == ("raw", False)
    policy.close()


def test_without_a_tokenizer_ids_stops_and_text_are_the_same(bare: Site, script_format: PolicyFormat[Any]) -> None:
    policy = bare.policy(script_format)
    result = policy.generate_tokens([HELLO])
    assert (result.tokens, result.text) == ((*ONE_TO_SIX, END), " one two three four five six")
    assert (result.stop_reason, result.matched_stop) == ("stop", END)
    with pytest.raises(BackendError) as caught:
        policy.generate_tokens([HELLO], SamplingParams(stop=["ree"]))
    assert caught.value.status == 400
    policy.close()


def test_a_server_that_dies_in_mid_reply(bare: Site, script_format: PolicyFormat[Any]) -> None:
    policy = bare.policy(script_format)

    async def main() -> float:
        generation = asyncio.create_task(
            policy.agenerate_tokens([COIN], SamplingParams(temperature=1.0, max_tokens=3900))
        )
        await asyncio.sleep(2)
        started = time.monotonic()
        bare.worker.kill_group()
        with pytest.raises(ServerUnavailableError) as caught:
            await generation
        assert caught.value.attempts == 1
        await policy.aclose()
        return time.monotonic() - started

    print(f"noticed after {asyncio.run(main()):.2f} s")
