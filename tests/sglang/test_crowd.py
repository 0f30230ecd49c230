"""Five hundred requests at once to a server that fails some of them: nothing lost, nothing sampled twice."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from focus.backends import GenerateResult, SamplingParams, SGLangPolicy, SlimePolicy
from focus.errors import BackendError, ProtocolError, ServerUnavailableError
from focus_testing import Fault, serve
from focus_testing.server import Server
from support.formats import byte_format
from support.slime_post import SlimeTransport

COUNT = 500
FAULTS = (
    Fault("drop_before", rate=0.025, seed=1),
    Fault("drop_after", rate=0.025, seed=2),
    Fault("status", rate=0.05, seed=3, status=503),
    Fault("malformed", rate=0.01, seed=4),
)
ENDINGS: dict[str | None, str] = {
    None: "result",
    "drop_before": "ServerUnavailableError",
    "drop_after": "ServerUnavailableError",
    "malformed": "ProtocolError",
}


def prompt_of(number: int) -> list[int]:
    """A prompt that no other request has."""
    return [1, number // 200, number % 200, 7]


async def crowd(call: Callable[[int], Awaitable[GenerateResult]]) -> list[GenerateResult | BackendError]:
    async def outcome(number: int) -> GenerateResult | BackendError:
        try:
            return await call(number)
        except BackendError as error:
            return error

    return await asyncio.gather(*map(outcome, range(COUNT)))


def attempts_by_prompt(server: Server) -> dict[tuple[int, ...], list[str | None]]:
    """For each prompt, the faults that its requests met, in order."""
    met: dict[tuple[int, ...], list[str | None]] = defaultdict(list)
    for exchange in server.requests:
        met[tuple(exchange.body["input_ids"])].append(exchange.fault_kind)
    return met


@pytest.mark.anyio
async def test_sglang() -> None:
    with serve(wire="sglang", fault=FAULTS) as server:
        policy = SGLangPolicy(model="focus", base_url=server.url, format=byte_format(), timeout=60.0)
        params = SamplingParams(temperature=1.0, max_tokens=4, logprobs=0)
        outcomes = await crowd(lambda number: policy.agenerate_tokens(prompt_of(number), params))
        await policy.aclose()
        met = attempts_by_prompt(server)
    assert len(met) == COUNT
    for number, outcome in enumerate(outcomes):
        *refused, last = met[tuple(prompt_of(number))]
        # Only a refusal is sent again; a request that was dropped or spoilt never is.
        assert set(refused) <= {"status"}
        if isinstance(outcome, GenerateResult):
            assert outcome.prefix_tokens == tuple(prompt_of(number))
            assert len(outcome.tokens) == len(outcome.logprobs) > 0
            assert outcome.exact_generation
            assert outcome.meta is not None
            assert outcome.meta.attempts == len(refused) + 1
            ending = "result"
        else:
            assert outcome.attempts == len(refused) + 1
            ending = type(outcome).__name__
        assert ending == ENDINGS[last]
    kinds = Counter(type(outcome).__name__ for outcome in outcomes)
    assert kinds["ServerUnavailableError"] > 10
    assert kinds["ProtocolError"] > 0
    assert sum(len(attempts) > 1 for attempts in met.values()) > 10


@pytest.mark.anyio
async def test_slime() -> None:
    with serve(wire="sglang", router=True, fault=FAULTS) as server:
        transport = SlimeTransport()

        async def post(url: str, payload: dict[str, Any]) -> Any:
            return await transport.post(url, payload, max_retries=1)

        policy = SlimePolicy(post, f"{server.url}/generate", model="focus", format=byte_format())
        params = SamplingParams(temperature=1.0, max_tokens=4, logprobs=0)
        outcomes = await crowd(lambda number: policy.agenerate_tokens(prompt_of(number), params))
        await transport.aclose()
        met = attempts_by_prompt(server)
    assert len(met) == transport.calls == COUNT
    for number, outcome in enumerate(outcomes):
        (fault,) = met[tuple(prompt_of(number))]
        if fault is None:
            assert isinstance(outcome, GenerateResult)
            assert outcome.exact_generation
        else:
            assert isinstance(outcome, ProtocolError if fault == "malformed" else ServerUnavailableError)
