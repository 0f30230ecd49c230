"""TinkerPolicy over the SDK's own types and an engine whose probabilities are known."""

from __future__ import annotations

import asyncio
import math
import pickle
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest
import tinker
from tinker.lib.public_interfaces.api_future import AwaitableConcurrentFuture

from focus_format import PolicyFormat
from focus_testing import Engine
from focus_tinker import TinkerPolicy
from focus_types import (
    ContextLengthError,
    InvalidRequestError,
    SamplingParams,
    ServerUnavailableError,
)
from support.tinker_client import EngineClient, ReplyClient, sequence

type MakePolicy = Callable[..., TinkerPolicy]


def test_a_reply_and_what_it_says(make: MakePolicy, hermes: PolicyFormat[Any]) -> None:
    policy = make()
    prompt = hermes.codec.encode("coin:")
    seen: set[str] = set()
    for seed in range(12):
        result = policy.generate_tokens(prompt, SamplingParams(temperature=1.0, logprobs=0, seed=seed))
        assert result.logprobs[0] == pytest.approx(math.log({"H": 0.75, "T": 0.25}[result.text]), abs=1e-6)
        assert result.tokens == hermes.codec.encode(result.text + "<|im_end|>")
        assert result.prefix_tokens is prompt
        assert (result.stop_reason, result.matched_stop) == ("stop", result.tokens[-1])
        assert result.exact_generation
        assert policy.is_exact(result)
        seen.add(result.text)
    assert seen == {"H", "T"}


def test_everything_effective_is_sent(make: MakePolicy) -> None:
    client = ReplyClient(lambda _: tinker.SampleResponse([sequence([1])]))
    policy = make(client, default_params=None)
    policy.generate_tokens([5, 6])
    end = min(policy.format.codec.stop_tokens)
    assert client.requests == [
        {
            "tokens": [5, 6],
            "num_samples": 1,
            "params": tinker.SamplingParams(
                max_tokens=512, seed=None, stop=[end], temperature=0.7, top_k=-1, top_p=1.0
            ),
            "include_prompt_logprobs": False,
            "topk_prompt_logprobs": 0,
            "topk_sample_logprobs": 0,
        }
    ]


def test_every_parameter_reaches_the_request(make: MakePolicy) -> None:
    client = ReplyClient(lambda _: RuntimeError("not asked for more"))
    policy = make(client)
    given = SamplingParams(
        temperature=0.5, max_tokens=9, top_p=0.9, top_k=5, stop=["."], logprobs=3, prompt_logprobs=2, seed=11
    )
    with pytest.raises(Exception, match="not asked for more"):
        policy.generate_tokens([5, 6], given)
    sent = client.requests[0]
    assert sent["params"] == tinker.SamplingParams(
        max_tokens=9, seed=11, stop=["."], temperature=0.5, top_k=5, top_p=0.9
    )
    assert (sent["include_prompt_logprobs"], sent["topk_prompt_logprobs"], sent["topk_sample_logprobs"]) == (True, 2, 3)


def test_top_and_prompt_logprobs_of_a_service_that_has_them(make: MakePolicy, hermes: PolicyFormat[Any]) -> None:
    prompt = hermes.codec.encode("coin:H")
    params = SamplingParams(temperature=1.0, max_tokens=1, logprobs=2, prompt_logprobs=1)
    result = make().generate_tokens(prompt, params)
    end = result.tokens[0]
    assert result.top_logprobs is not None
    assert result.top_logprobs[0][f"token_id:{end}"] == pytest.approx(0.0, abs=1e-6)
    assert len(result.prompt_logprobs) == len(prompt)
    assert result.prompt_logprobs[0] is None
    assert result.prompt_logprobs[-1] == pytest.approx(math.log(0.75), abs=1e-6)
    assert result.prompt_top_logprobs is not None
    top = result.prompt_top_logprobs[-1] or {}
    assert top[f"token_id:{prompt[-1]}"] == pytest.approx(math.log(0.75), abs=1e-6)


def test_stop_strings(make: MakePolicy, hermes: PolicyFormat[Any]) -> None:
    result = make().generate_tokens(hermes.codec.encode("count:"), SamplingParams(temperature=0.0, stop=["3"]))
    assert (result.text, result.stop_reason, result.matched_stop) == ("1 2 ", "stop", "3")
    assert result.tokens == hermes.codec.encode("1 2 3")


@pytest.mark.parametrize("penalty", [0.9, 1.1, 5.0])
def test_a_repetition_penalty_is_refused_before_sending(make: MakePolicy, penalty: float) -> None:
    client = ReplyClient(lambda _: None)
    with pytest.raises(InvalidRequestError, match=f"repetition_penalty={penalty}: Tinker has no repetition penalty"):
        make(client).generate_tokens([5], SamplingParams(repetition_penalty=penalty))
    assert client.requests == []


def test_an_explicitly_switched_off_penalty_is_none(make: MakePolicy) -> None:
    client = ReplyClient(lambda _: tinker.SampleResponse([sequence([1])]))
    make(client).generate_tokens([5], SamplingParams(repetition_penalty=1.0))
    assert len(client.requests) == 1


def test_a_known_context_length_is_kept_to(make: MakePolicy) -> None:
    client = ReplyClient(lambda _: tinker.SampleResponse([sequence([1])]))
    policy = make(client)
    policy.context_length = 8
    policy.generate_tokens([5] * 6)
    assert client.requests[0]["params"].max_tokens == 2
    with pytest.raises(ContextLengthError, match="nothing was sent"):
        policy.generate_tokens([5] * 8)
    assert len(client.requests) == 1


def test_the_future_of_a_client_is_refused_with_what_to_call(hermes: PolicyFormat[Any]) -> None:
    pending = tinker.BackcompatSamplingClientFuture(AwaitableConcurrentFuture(Future()))
    with pytest.raises(InvalidRequestError, match=r"\.result\(\), or await it"):
        TinkerPolicy(pending, model="tiny", format=hermes)


@pytest.mark.parametrize("wrong", [None, "tinker", object()])
def test_what_cannot_sample_is_refused(hermes: PolicyFormat[Any], wrong: Any) -> None:
    with pytest.raises(InvalidRequestError, match=r"must be a tinker\.SamplingClient, got"):
        TinkerPolicy(wrong, model="tiny", format=hermes)


def test_format_and_profile_together_are_refused(engine: Engine, hermes: PolicyFormat[Any]) -> None:
    with pytest.raises(InvalidRequestError, match="not both"):
        TinkerPolicy(EngineClient(engine), model="tiny", format=hermes, profile="hermes")


@pytest.mark.anyio
async def test_cancelling_cancels_the_request(make: MakePolicy) -> None:
    client = ReplyClient(lambda _: None)
    policy = make(client)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await policy.agenerate_tokens([5])
    task = asyncio.create_task(policy.agenerate_tokens([5]))
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert [future.cancelled() for future in client.futures] == [True, True]


@pytest.mark.anyio
async def test_a_request_that_the_sdk_cancels_is_an_error_and_no_cancellation(make: MakePolicy) -> None:
    client = ReplyClient(lambda _: None)
    task = asyncio.create_task(make(client).agenerate_tokens([5]))
    await asyncio.sleep(0.01)
    client.futures[0].cancel()
    with pytest.raises(ServerUnavailableError, match="client cancelled the request"):
        await task


@pytest.mark.anyio
async def test_blocking_calls_work_where_a_loop_runs(make: MakePolicy, hermes: PolicyFormat[Any]) -> None:
    assert make().generate_tokens(hermes.codec.encode("count:")).text == "1 2 3 4"


def test_loops_and_threads_share_one_policy(make: MakePolicy, hermes: PolicyFormat[Any]) -> None:
    policy = make()
    prompt = hermes.codec.encode("count:")
    texts = [asyncio.run(policy.agenerate_tokens(prompt)).text for _ in range(3)]

    async def many() -> list[str]:
        results = await asyncio.gather(*[policy.agenerate_tokens(prompt) for _ in range(10)])
        return [result.text for result in results]

    with ThreadPoolExecutor(4) as pool:
        for future in [pool.submit(asyncio.run, many()) for _ in range(4)]:
            texts += future.result()
        texts += pool.map(lambda _: policy.generate_tokens(prompt).text, range(4))
    assert texts == ["1 2 3 4"] * (3 + 40 + 4)


def test_the_policy_pickles_with_its_client(make: MakePolicy, hermes: PolicyFormat[Any]) -> None:
    policy = make()
    copy = pickle.loads(pickle.dumps(policy))
    assert isinstance(copy, TinkerPolicy)
    assert copy.default_params == policy.default_params
    assert copy.generate_tokens(hermes.codec.encode("count:")).text == "1 2 3 4"


def test_closing_leaves_the_client_alone(make: MakePolicy, hermes: PolicyFormat[Any]) -> None:
    with make() as policy:
        assert isinstance(policy, TinkerPolicy)
    policy.close()
    asyncio.run(policy.aclose())
    assert policy.generate_tokens(hermes.codec.encode("count:")).text == "1 2 3 4"


def test_a_dialogue_by_extend(make: MakePolicy) -> None:
    policy = make(default_params=SamplingParams(temperature=0.0, logprobs=0))
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Hello"}]
    prompt = policy.prepare(messages)
    for turn in range(4):
        result = policy.generate(prompt)
        policy.record_reply(result, messages)
        messages.append({"role": "user", "content": f"Hello {turn}"})
        following = policy.extend(prompt, result, messages)
        assert following.exact_continuation
        assert following.tokens[: len(prompt.tokens) + len(result.tokens)] == prompt.tokens + result.tokens
        prompt = following


def test_importing_the_package_loads_no_sdk() -> None:
    heavy = {"tinker", "transformers", "numpy", "httpx", "pydantic"}
    check = f"import focus_tinker, sys; print(*sorted({heavy} & {{*sys.modules}}))"
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
