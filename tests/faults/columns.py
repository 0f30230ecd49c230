"""How to make each backend and its server for the fault table, and how to ask it once."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import httpx
import pytest

from focus.backends import (
    GenerateResult,
    OpenAIChatPolicy,
    OpenAIResponsesPolicy,
    Policy,
    SamplingParams,
    SGLangPolicy,
    SlimePolicy,
    VLLMPolicy,
)
from focus_critic import VLLMCritic, score
from focus_testing import Server
from focus_testing.server import WireName
from support.formats import byte_format

__all__ = [
    "COLUMNS",
    "Answer",
    "Backend",
    "Column",
    "Mode",
    "answer",
    "answer_async",
    "answers_elsewhere",
    "arrived",
    "check_answer",
]

type Mode = Literal["sync", "async"]
type Backend = Policy[Any] | VLLMCritic
type Answer = GenerateResult | list[float]

PROMPT: list[dict[str, Any]] = [{"role": "user", "content": "Flip the coin."}]
PARAMS = SamplingParams(temperature=1.0, max_tokens=8, logprobs=0, seed=1)


@dataclass(frozen=True)
class Column:
    wire: WireName
    path: str
    """Where the backend's requests arrive."""
    make: Callable[[str, float], Backend]
    """URL and deadline in seconds to a policy or critic."""
    modes: tuple[Mode, ...] = ("sync", "async")
    asks: int = 1
    """Requests of a call that goes well; the first bad one ends a call."""
    warm: bool = False
    """A call has gone well before."""
    resends: bool = True
    """Whether the backend sends again what was refused; else its transport's owner does."""
    native: bool = False
    """A chat API: nothing is exact, log-probabilities have no ids to stand beside, and the deadlines are fixed."""


def vllm(url: str, timeout: float) -> Policy[Any]:
    return VLLMPolicy(
        model="focus",
        format=byte_format(),
        base_url=f"{url}/v1",
        api_key="EMPTY",
        default_params=PARAMS,
        timeout=timeout,
    )


def sglang(url: str, timeout: float) -> Policy[Any]:
    return SGLangPolicy(
        model="focus", format=byte_format(), base_url=url, api_key="EMPTY", default_params=PARAMS, timeout=timeout
    )


async def slime_post(url: str, payload: dict[str, Any], headers: Mapping[str, str], *, timeout: float) -> Any:
    # One try of Slime's transport: the errors of an HTTP client, and text where there is no JSON.
    async with asyncio.timeout(timeout), httpx.AsyncClient(timeout=None, trust_env=False) as client:
        response = await client.post(url, json=payload, headers=headers)
    response.raise_for_status()
    try:
        return response.json()
    except json.JSONDecodeError:
        return response.text


def slime(url: str, timeout: float) -> Policy[Any]:
    return SlimePolicy(
        partial(slime_post, timeout=timeout),
        f"{url}/generate",
        model="focus",
        format=byte_format(),
        default_params=PARAMS,
        headers={"Authorization": "Bearer EMPTY"},
    )


def openai_chat(url: str, timeout: float) -> Policy[Any]:
    return OpenAIChatPolicy(model="focus", base_url=f"{url}/v1", api_key="EMPTY", default_params=PARAMS)


def openai_responses(url: str, timeout: float) -> Policy[Any]:
    params = replace(PARAMS, seed=None)
    return OpenAIResponsesPolicy(model="focus", base_url=f"{url}/v1", api_key="EMPTY", default_params=params)


def pooling(url: str, timeout: float) -> VLLMCritic:
    return VLLMCritic(base_url=url, model="focus", http_timeout=timeout)


async def answer_async(backend: Backend) -> Answer:
    """One call: a reply, or the value of one context."""
    if isinstance(backend, VLLMCritic):
        return await score(backend, ["abc"])
    return await backend.agenerate(backend.prepare(PROMPT))


def answer(backend: Backend) -> Answer:
    """As `answer_async`, from ordinary code."""
    if isinstance(backend, VLLMCritic):
        return asyncio.run(answer_async(backend))
    return backend.generate(backend.prepare(PROMPT))


def answers_elsewhere(backend: Backend) -> list[str]:
    """What another process gets, from ordinary and from async code."""
    answers = answer(backend), asyncio.run(answer_async(backend))
    asyncio.run(backend.aclose())
    return [one.text if isinstance(one, GenerateResult) else str(one) for one in answers]


def arrived(column: Column, server: Server) -> int:
    """The backend's requests that the server saw."""
    return sum(exchange.path == column.path for exchange in server.requests)


def check_answer(column: Column, outcome: str, got: Answer) -> None:
    """Hold an answer against an outcome of the table."""
    if isinstance(got, list):
        assert got == pytest.approx([0.5], abs=1e-6)
        return
    assert got.exact_generation is (outcome != "inexact" and not column.native)
    assert (got.stop_reason == "abort") is (outcome == "abort")
    # What cannot be trusted is emptied, never padded.
    assert column.native or len(got.logprobs) in (0, len(got.tokens))
    assert got.meta is not None
    assert (got.meta.inexact_reason is not None) is (outcome == "inexact" or column.native)


COLUMNS: dict[str, Column] = {
    "vllm": Column("vllm", "/v1/completions", vllm),
    "sglang": Column("sglang", "/generate", sglang),
    "slime": Column("sglang", "/generate", slime, resends=False),
    "openai chat": Column("openai", "/v1/chat/completions", openai_chat, native=True),
    "openai responses": Column("openai", "/v1/responses", openai_responses, native=True),
    # The first call begins with a request that finds out which kind of server it is.
    "pooling, first call": Column("pooling", "/pooling", pooling, modes=("async",), asks=2),
    "pooling": Column("pooling", "/pooling", pooling, modes=("async",), warm=True),
}
