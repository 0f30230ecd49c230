"""Errors of chat APIs, also those that arrive with status 200."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from focus_format.narrow import is_mapping
from focus_http import HttpReply, error_for
from focus_http.reply import excerpt
from focus_types import BackendError, ContextLengthError, ProtocolError, RateLimitError, ServerUnavailableError

__all__ = ["body_error", "out_of_quota", "protocol_error", "refine_error", "reported_error"]

_CODES: dict[str, type[BackendError]] = {
    "context_length_exceeded": ContextLengthError,
    "rate_limit_exceeded": RateLimitError,
    "server_error": ServerUnavailableError,
}


def refine_error(status: int, message: str, body: bytes) -> type[BackendError] | None:
    """A conversation that does not fit has a code on OpenAI and a wording of its own elsewhere."""
    if status not in (400, 413):
        return None
    lowered = message.lower()
    wordings = ("maximum context length", "context window", "maximum model length")
    if b"context_length_exceeded" in body or any(wording in lowered for wording in wordings):
        return ContextLengthError
    return None


def out_of_quota(error: BackendError) -> bool:
    """Whether a 429 will still be one after any wait."""
    return error.status == 429 and "insufficient_quota" in (error.body or "")


def protocol_error(reply: HttpReply, backend: str, problem: str) -> ProtocolError:
    """A reply that is not what the protocol says."""
    return ProtocolError(
        reply.redact(f"{backend}: {problem}"),
        status=reply.status,
        request_id=reply.request_id,
        body=excerpt(reply),
        attempts=reply.attempts,
    )


def body_error(reply: HttpReply, backend: str, error: Any) -> BackendError:
    """The error of a reply that has status 200 and no result.

    Args:
        reply: The reply.
        backend: Name of the API, for the message.
        error: The body's ``error``; a router puts the status of the provider behind it into ``code``.
    """
    if not is_mapping(error):
        return protocol_error(reply, backend, "the reply holds no result")
    code: Any = error.get("code")
    if isinstance(code, int) and 400 <= code < 600:
        return error_for(replace(reply, status=code), backend=backend, refine=refine_error)
    return reported_error(reply, backend, "error", error)


def reported_error(reply: HttpReply, backend: str, status: str, error: Any) -> BackendError:
    """The error that a reply of status 200 reports with a code and a message."""
    fields: Mapping[str, Any] = error if is_mapping(error) else {}
    code, message = fields.get("code"), fields.get("message") or "no message"
    kind = _CODES.get(code, BackendError) if isinstance(code, str) else BackendError
    return kind(
        reply.redact(f"{backend} answered with status {status!r}: {message}" + (f" ({code})" if code else "")),
        status=reply.status,
        request_id=reply.request_id,
        body=excerpt(reply),
        attempts=reply.attempts,
    )
