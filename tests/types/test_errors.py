"""The error tree: relations, attributes, pickling."""

from __future__ import annotations

import pickle

import pytest

import focus_types.errors
from focus_types import (
    AbortedError,
    AuthenticationError,
    BackendError,
    ContextLengthError,
    FocusError,
    GenerateResult,
    InvalidRequestError,
    ParseError,
    ProtocolError,
    RateLimitError,
    RequestTimeoutError,
    ScoringError,
    ServerUnavailableError,
)

BACKEND_ERRORS = [
    AuthenticationError,
    ContextLengthError,
    RateLimitError,
    ServerUnavailableError,
    RequestTimeoutError,
    ProtocolError,
]


@pytest.mark.parametrize("kind", BACKEND_ERRORS)
def test_backend_errors_keep_their_facts_through_pickle(kind: type[BackendError]) -> None:
    error = kind("what to change", status=429, request_id="r-1", body="excerpt", attempts=3)
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is kind
    assert isinstance(copy, BackendError)
    facts = (str(copy), copy.status, copy.request_id, copy.body, copy.attempts)
    assert facts == ("what to change", 429, "r-1", "excerpt", 3)


def test_relations_to_standard_errors() -> None:
    assert issubclass(RequestTimeoutError, TimeoutError)
    assert issubclass(InvalidRequestError, ValueError)
    assert issubclass(ParseError, ValueError)
    assert not issubclass(InvalidRequestError, BackendError)


def test_every_error_is_a_focus_error() -> None:
    kinds = [getattr(focus_types.errors, name) for name in focus_types.errors.__all__ if name.endswith("Error")]
    assert len(kinds) == 12
    assert all(issubclass(kind, FocusError) for kind in kinds)


def test_aborted_error_carries_the_result() -> None:
    error = pickle.loads(pickle.dumps(AbortedError("half", GenerateResult(tokens=(1, 2)))))
    assert error.result.tokens == (1, 2)


def test_scoring_error_names_the_context_and_keeps_the_good_values() -> None:
    error = pickle.loads(pickle.dumps(ScoringError("bad", index=1, values=[0.5, None])))
    assert (error.index, error.values) == (1, (0.5, None))
