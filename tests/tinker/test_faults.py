"""Whatever a service or the SDK does wrong ends as the table says, in blocking and in async calls."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from typing import Any, Literal

import httpx
import numpy as np
import pytest
import tinker

from focus_tinker import TinkerPolicy
from focus_types import (
    AuthenticationError,
    BackendError,
    GenerateResult,
    ProtocolError,
    RateLimitError,
    RequestTimeoutError,
    ServerUnavailableError,
)
from support.tinker_client import Reply, ReplyClient, sequence

type MakePolicy = Callable[..., TinkerPolicy]
type Outcome = type[BackendError] | Literal["exact", "inexact"]

REQUEST = httpx.Request("POST", "http://tinker.test/api/v1/asample")


def response(*sequences: tinker.SampledSequence) -> tinker.SampleResponse:
    return tinker.SampleResponse(sequences)


def bare(**fields: Any) -> tinker.SampledSequence:
    return tinker.SampledSequence(stop_reason="length", sequence_id="1", **fields)


def status(code: int) -> tinker.APIStatusError:
    return tinker.APIStatusError("no", response=httpx.Response(code, request=REQUEST), body=None)


FAULTS: dict[str, tuple[Reply, Outcome]] = {
    "none": (response(sequence([1, 2])), "exact"),
    "no log-probabilities": (response(bare(_tokens_list=[1, 2])), "inexact"),
    "fewer log-probabilities": (response(sequence([1, 2], [-1.0])), "inexact"),
    "more log-probabilities": (response(sequence([1, 2], [-1.0, -1.0, -1.0])), "inexact"),
    "NaN": (response(sequence([1, 2], [-1.0, math.nan])), "inexact"),
    "minus infinity": (response(sequence([1, 2], [-1.0, -math.inf])), "inexact"),
    "filler": (response(sequence([1, 2], [-1.0, -9999.0])), "inexact"),
    "above zero": (response(sequence([1, 2], [-1.0, 0.5])), "inexact"),
    "negative id": (response(sequence([1, -2])), ProtocolError),
    "ids that are floats": (response(bare(tokens_np=np.array([1.0]))), ProtocolError),
    "no sequence": (response(), ProtocolError),
    "two sequences": (response(sequence([1]), sequence([2])), ProtocolError),
    "400": (status(400), BackendError),
    "401": (status(401), AuthenticationError),
    "404": (status(404), BackendError),
    "429": (status(429), RateLimitError),
    "500": (status(500), ServerUnavailableError),
    "timeout": (TimeoutError(), RequestTimeoutError),
    "HTTP timeout": (tinker.APITimeoutError(REQUEST), RequestTimeoutError),
    "connection": (tinker.APIConnectionError(REQUEST), ServerUnavailableError),
    "assertion": (AssertionError("asample promises always carry sample_sequence_ids"), ProtocolError),
    "unreadable": (ValueError("Proto deserialization failed"), ProtocolError),
    "anything": (RuntimeError("?"), BackendError),
}


def run(policy: TinkerPolicy, mode: str) -> GenerateResult:
    return policy.generate_tokens([5]) if mode == "sync" else asyncio.run(policy.agenerate_tokens([5]))


@pytest.mark.parametrize("mode", ["sync", "async"])
@pytest.mark.parametrize("fault", FAULTS)
def test_fault(make: MakePolicy, fault: str, mode: str) -> None:
    reply, outcome = FAULTS[fault]
    client = ReplyClient(lambda _: reply)
    if isinstance(outcome, str):
        result = run(make(client), mode)
        assert result.exact_generation is (outcome == "exact")
        # What cannot be trusted is emptied, never padded.
        assert len(result.logprobs) == (2 if outcome == "exact" else 0)
        assert result.meta is not None
        assert (result.meta.inexact_reason is not None) is (outcome == "inexact")
    else:
        with pytest.raises(BackendError) as caught:
            run(make(client), mode)
        assert type(caught.value) is outcome
        assert type(caught.value.__cause__) is (type(reply) if isinstance(reply, BaseException) else type(None))
    assert len(client.requests) == 1
