"""Every error and warning that focus raises on purpose."""

from __future__ import annotations

from focus_types import (
    AbortedError,
    AuthenticationError,
    BackendError,
    ContextLengthError,
    FocusError,
    InvalidRequestError,
    LogprobWarning,
    ParseError,
    ProtocolError,
    RateLimitError,
    RequestTimeoutError,
    ScoringError,
    ServerUnavailableError,
)

__all__ = [
    "AbortedError",
    "AuthenticationError",
    "BackendError",
    "ContextLengthError",
    "FocusError",
    "InvalidRequestError",
    "LogprobWarning",
    "ParseError",
    "ProtocolError",
    "RateLimitError",
    "RequestTimeoutError",
    "ScoringError",
    "ServerUnavailableError",
]
