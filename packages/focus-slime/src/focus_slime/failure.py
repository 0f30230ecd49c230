"""What Slime's transport raised, as the error that every backend raises for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from focus_sglang import wire
from focus_types import (
    AuthenticationError,
    BackendError,
    ProtocolError,
    RateLimitError,
    RequestTimeoutError,
    ServerUnavailableError,
)

__all__ = ["transport_error"]

_EXCERPT_CHARS = 500


def transport_error(error: Exception, redact: Callable[[str], str]) -> BackendError:
    """The typed error for an exception of the caller's transport.

    HTTP clients hang the response on their status errors, as ``response.status_code`` and ``response.text``: that
    much is read, and no client imported.

    Args:
        error: What ``post`` raised.
        redact: Removes the request's secrets from a text.
    """
    response: Any = getattr(error, "response", None)
    status: Any = getattr(response, "status_code", None)
    text = redact(f"post() failed with {type(error).__name__}: {error}")
    if isinstance(status, int):
        body = redact(_text(response))[:_EXCERPT_CHARS]
        return _class_of(status, body)(f"{text}: {body}", status=status, body=body)
    if isinstance(error, TimeoutError):
        return RequestTimeoutError(text)
    # A mistake in the transport, or one that was never set up: no server will cure it by coming back.
    return BackendError(text) if isinstance(error, TypeError | AttributeError) else ServerUnavailableError(text)


def _text(response: Any) -> str:
    try:
        return str(response.text)
    except Exception:
        return "its body was not read"


def _class_of(status: int, body: str) -> type[BackendError]:
    match status:
        case 401 | 403:
            return AuthenticationError
        case 408 | 504:
            return RequestTimeoutError
        case 429:
            return RateLimitError
        case _ if status >= 500 or "model_not_found" in body:  # a router without workers
            return ServerUnavailableError
        case _ if status < 400:
            return ProtocolError
        case _:
            return wire.refine(status, body, body.encode()) or BackendError
