"""How to make each backend's policy and server for the fault table."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import httpx

from focus.backends import (
    OpenAIChatPolicy,
    OpenAIResponsesPolicy,
    Policy,
    SamplingParams,
    SGLangPolicy,
    SlimePolicy,
    VLLMPolicy,
)
from focus_testing.server import WireName
from support.formats import byte_format

__all__ = ["COLUMNS", "Column"]

PARAMS = SamplingParams(temperature=1.0, max_tokens=8, logprobs=0, seed=1)


@dataclass(frozen=True)
class Column:
    wire: WireName
    path: str
    """Where the policy's generations arrive."""
    make: Callable[[str, float], Policy[Any]]
    """URL and deadline in seconds to a policy."""
    resends: bool = True
    """Whether the policy sends again what was refused; else its transport's owner does."""
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


def slime(url: str, timeout: float) -> Policy[Any]:
    async def post(url: str, payload: dict[str, Any], headers: Mapping[str, str]) -> Any:
        # One try of Slime's transport: the errors of an HTTP client, and text where there is no JSON.
        async with asyncio.timeout(timeout), httpx.AsyncClient(timeout=None, trust_env=False) as client:
            response = await client.post(url, json=payload, headers=headers)
        response.raise_for_status()
        try:
            return response.json()
        except json.JSONDecodeError:
            return response.text

    headers = {"Authorization": "Bearer EMPTY"}
    return SlimePolicy(
        post, f"{url}/generate", model="focus", format=byte_format(), default_params=PARAMS, headers=headers
    )


def openai_chat(url: str, timeout: float) -> Policy[Any]:
    return OpenAIChatPolicy(model="focus", base_url=f"{url}/v1", api_key="EMPTY", default_params=PARAMS)


def openai_responses(url: str, timeout: float) -> Policy[Any]:
    params = replace(PARAMS, seed=None)
    return OpenAIResponsesPolicy(model="focus", base_url=f"{url}/v1", api_key="EMPTY", default_params=params)


COLUMNS: dict[str, Column] = {
    "vllm": Column("vllm", "/v1/completions", vllm),
    "sglang": Column("sglang", "/generate", sglang),
    "slime": Column("sglang", "/generate", slime, resends=False),
    "openai chat": Column("openai", "/v1/chat/completions", openai_chat, native=True),
    "openai responses": Column("openai", "/v1/responses", openai_responses, native=True),
}
