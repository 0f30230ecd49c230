"""What the SDK raises, as typed errors."""

from __future__ import annotations

import httpx
import pytest
import tinker
from tinker.types import RequestErrorCategory

from focus_tinker.errors import translate_error
from focus_types import (
    AuthenticationError,
    BackendError,
    ContextLengthError,
    ProtocolError,
    RateLimitError,
    RequestTimeoutError,
    ServerUnavailableError,
)

REQUEST = httpx.Request("POST", "http://tinker.test/api/v1/asample")
KEY = "tml-Abc_123.xyz"
OVERFLOW = (
    "Prompt length plus max_tokens exceeds the model's context window: 33000 prompt tokens + 1 max_tokens > 32768."
)


def status(code: int, detail: str = "no") -> tinker.APIStatusError:
    answer = httpx.Response(code, request=REQUEST, headers={"x-request-id": "r-9"})
    return tinker.APIStatusError(f"Error code: {code} - {detail}", response=answer, body={"detail": detail})


@pytest.mark.parametrize(
    ("code", "detail", "kind"),
    [
        (400, "max_tokens must be a positive number", BackendError),
        (400, OVERFLOW, ContextLengthError),
        (401, "no key", AuthenticationError),
        (402, "set up billing", BackendError),
        (403, "not yours", AuthenticationError),
        (404, "no such sampler", BackendError),
        (409, "conflict", BackendError),
        (422, "not a list", BackendError),
        (429, "slow down", RateLimitError),
        (500, "NaN", ServerUnavailableError),
        (503, "down", ServerUnavailableError),
    ],
)
def test_statuses(code: int, detail: str, kind: type[BackendError]) -> None:
    found = translate_error(status(code, detail))
    assert (type(found), found.status, found.request_id) == (kind, code, "r-9")
    assert found.body == f"{{'detail': {detail!r}}}"
    assert detail in str(found)


def test_a_failure_found_after_submission_is_its_cause() -> None:
    late = ValueError("Error retrieving result: ... exceeded 3 retries")
    late.__cause__ = status(400, OVERFLOW)
    found = translate_error(late)
    assert (type(found), found.status) == (ContextLengthError, 400)


@pytest.mark.parametrize(
    ("category", "message", "kind"),
    [
        (RequestErrorCategory.User, "bad stop", BackendError),
        (RequestErrorCategory.User, OVERFLOW, ContextLengthError),
        (RequestErrorCategory.Server, "engine died", ServerUnavailableError),
        (RequestErrorCategory.Unknown, "?", BackendError),
    ],
)
def test_failed_requests(category: RequestErrorCategory, message: str, kind: type[BackendError]) -> None:
    found = translate_error(tinker.RequestFailedError(message, request_id="17", category=category))
    assert (type(found), found.request_id) == (kind, "17")
    assert message in str(found)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (TimeoutError(), RequestTimeoutError),
        (tinker.APITimeoutError(REQUEST), RequestTimeoutError),
        (tinker.APIConnectionError(REQUEST), ServerUnavailableError),
        (AssertionError("asample promises always carry sample_sequence_ids"), ProtocolError),
        (ValueError("Proto deserialization failed"), ProtocolError),
        (tinker.APIResponseValidationError(httpx.Response(200, request=REQUEST), None), ProtocolError),
        (RuntimeError("cannot schedule new futures after shutdown"), BackendError),
        (tinker.TinkerError("poller failed"), BackendError),
    ],
)
def test_everything_else(error: Exception, kind: type[BackendError]) -> None:
    found = translate_error(error)
    assert type(found) is kind
    assert (str(error) or "TimeoutError") in str(found)


@pytest.mark.parametrize(
    "text", [f"invalid key {KEY}", f"Authorization: Bearer {KEY}", "token eyJhb.eyJzd.sig_-1 expired"]
)
def test_no_credential_in_any_text(text: str) -> None:
    for error in (status(401, text), ValueError(text), tinker.RequestFailedError(text, "1", RequestErrorCategory.User)):
        found = translate_error(error)
        told = f"{found} {found.body}"
        assert "***" in told
        assert KEY not in told
        assert "sig_-1" not in told


def test_long_answers_are_cut() -> None:
    found = translate_error(status(500, "x" * 10_000))
    assert len(str(found)) < 600
    assert len(found.body or "") == 500
