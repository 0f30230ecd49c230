"""How to make each backend's policy and server for the fault table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from focus.backends import Policy, SamplingParams, VLLMPolicy
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


def vllm(url: str, timeout: float) -> Policy[Any]:
    return VLLMPolicy(
        model="focus",
        format=byte_format(),
        base_url=f"{url}/v1",
        api_key="EMPTY",
        default_params=PARAMS,
        timeout=timeout,
    )


COLUMNS: dict[str, Column] = {
    "vllm": Column("vllm", "/v1/completions", vllm),
}
