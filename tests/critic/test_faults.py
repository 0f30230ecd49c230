"""Each fault of a pooling server becomes one ScoringError with a typed cause, and the next call works."""

from __future__ import annotations

import pytest

from focus_critic import VLLMCritic, score
from focus_testing import Fault
from focus_types import (
    AuthenticationError,
    BackendError,
    ProtocolError,
    RateLimitError,
    RequestTimeoutError,
    ScoringError,
    ServerUnavailableError,
)
from support.value_model import MODEL, known, pooling

__all__: list[str] = []

PATH = "/pooling"

FAULTS: dict[str, tuple[Fault, type[BackendError]]] = {
    "slow": (Fault("slow", path=PATH, seconds=30), RequestTimeoutError),
    "drop before": (Fault("drop_before", path=PATH), ServerUnavailableError),
    "drop in the middle": (Fault("drop_after", path=PATH), ServerUnavailableError),
    "400": (Fault("status", path=PATH, status=400), BackendError),
    "401": (Fault("status", path=PATH, status=401), AuthenticationError),
    "404": (Fault("status", path=PATH, status=404), BackendError),
    "429": (Fault("status", path=PATH, status=429), RateLimitError),
    "500": (Fault("status", path=PATH, status=500), ServerUnavailableError),
    "503": (Fault("status", path=PATH, status=503), ServerUnavailableError),
    "redirect": (Fault("redirect", path=PATH), ProtocolError),
    "html": (Fault("html", path=PATH), ProtocolError),
    "html 502": (Fault("html", path=PATH, status=502), ServerUnavailableError),
    "empty": (Fault("empty", path=PATH), ProtocolError),
    "malformed": (Fault("malformed", path=PATH), ProtocolError),
    "truncated": (Fault("truncated", path=PATH), ProtocolError),
    "list": (Fault("list", path=PATH), ProtocolError),
    "nan": (Fault("nan", path=PATH), ProtocolError),
    "wrong types": (Fault("wrong_types", path=PATH), ProtocolError),
    "null": (Fault("missing_logprobs", path=PATH), ProtocolError),
    "one item too few": (Fault("no_choice", path=PATH), ProtocolError),
    "one item too many": (Fault("two_choices", path=PATH), ProtocolError),
}


@pytest.mark.anyio
@pytest.mark.parametrize("name", FAULTS)
@pytest.mark.parametrize("known_before", [False, True], ids=["first call", "later call"])
async def test_a_fault(name: str, known_before: bool) -> None:
    fault, cause = FAULTS[name]
    with pooling() as server:
        critic = VLLMCritic(base_url=server.url, model=MODEL, http_timeout=1.0)
        if known_before:
            await critic.predict(["abc"])
        server.set_fault(fault)
        with pytest.raises(ScoringError) as caught:
            await score(critic, ["abc"])
        assert type(caught.value.__cause__) is cause
        assert caught.value.index == (0 if name == "400" and known_before else None)
        server.set_fault()
        assert await score(critic, ["abc"]) == pytest.approx([known(b"abc")], abs=1e-6)
        await critic.aclose()


@pytest.mark.anyio
async def test_what_never_started_is_sent_again() -> None:
    with pooling(fault=Fault("status", calls={0, 2}, path=PATH, status=503, retry_after=0)) as server:
        critic = VLLMCritic(base_url=server.url, model=MODEL)
        assert await score(critic, ["abc"]) == pytest.approx([known(b"abc")], abs=1e-6)
        await critic.aclose()
        assert [request.status for request in server.requests if request.path == PATH] == [503, 200, 503, 200]


@pytest.mark.anyio
async def test_spaces_after_the_answer_do_no_harm() -> None:
    with pooling(fault=Fault("huge", path=PATH)) as server:
        critic = VLLMCritic(base_url=server.url, model=MODEL)
        assert await score(critic, ["abc"]) == pytest.approx([known(b"abc")], abs=1e-6)
        await critic.aclose()
