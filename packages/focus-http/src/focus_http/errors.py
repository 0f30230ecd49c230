"""An HTTP status and a body of any shape to one typed error."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, cast
from urllib.parse import urlsplit

from focus_http.reply import HttpReply, excerpt
from focus_types.errors import (
    AuthenticationError,
    BackendError,
    ProtocolError,
    RateLimitError,
    RequestTimeoutError,
    ServerUnavailableError,
)

__all__ = ["ErrorRefiner", "error_for", "lost_upstream", "no_workers"]

type ErrorRefiner = Callable[[int, str, bytes], type[BackendError] | None]
"""(status, the server's message, body) to a more exact error class, or None."""

_HINTS = {
    401: "check the api_key",
    403: "check the api_key, and that the server allows this endpoint",
    404: "check base_url and the served model's name",
    405: "check base_url",
    413: "the request is larger than the server, or a proxy before it, accepts",
}
_NEVER_SENT = (b"connection failure", b"connection timeout", b"overflow", b"refused stream")
_REASON_BYTES = 2000
_MESSAGE_CHARS = 1000
_LARGEST_ERROR_BODY = 2**20


def error_for(reply: HttpReply, *, backend: str, refine: ErrorRefiner | None = None) -> BackendError:
    """The typed error of a reply whose status is not 2xx.

    Args:
        reply: The reply.
        backend: Name of the backend, for the message.
        refine: May name a more exact class, such as ``ContextLengthError``.
    """
    status = reply.status
    kind = _class_of(status)
    fields = _fields(reply.body)
    if 300 <= status < 400:
        text = f"it redirects to {_target(reply)}; redirects are never followed, set base_url to the final address"
    else:
        message = _message(fields, reply)
        if no_workers(reply):
            kind = ServerUnavailableError
        elif refine is not None:
            kind = refine(status, message, reply.body) or kind
        text = f"{message or 'no message'}"
        if status in _HINTS and kind in (AuthenticationError, BackendError):
            text += f" ({_HINTS[status]})"
    found = reply.request_id or fields.get("request_id") or fields.get("id")
    return kind(
        reply.redact(f"{backend} answered {status}: {text}"),
        status=status,
        request_id=reply.redact(found) if isinstance(found, str) else None,
        body=excerpt(reply),
        attempts=reply.attempts,
    )


def no_workers(reply: HttpReply) -> bool:
    """Whether a router says that it has no worker, so that nothing has started.

    One router answers 503 with the code ``no_available_workers``, another 404 with the code of an unknown model and
    a message about workers.
    """
    if reply.status not in (404, 503):
        return False
    fields = _fields(reply.body)
    code = fields.get("code")
    return code == "no_available_workers" or (
        code == "model_not_found" and "no worker" in _message(fields, reply).lower()
    )


def lost_upstream(reply: HttpReply) -> bool:
    """Whether a proxy says that its connection to the server broke, perhaps after the request had started.

    Envoy answers that with 503, as it answers a server that it could not reach, and gives the reason in words.
    """
    text = reply.body[:_REASON_BYTES]
    return b"reset before headers" in text and not any(reason in text for reason in _NEVER_SENT)


def _target(reply: HttpReply) -> str:
    try:
        host = urlsplit(reply.headers.get("location", "")).netloc.rpartition("@")[2]
    except ValueError:
        return "an unreadable address"
    return host or "another path of the same host"


def _class_of(status: int) -> type[BackendError]:
    match status:
        case 401 | 403:
            return AuthenticationError
        case 408 | 504:
            return RequestTimeoutError
        case 429:
            return RateLimitError
        case _ if status >= 500:
            return ServerUnavailableError
        case _ if status < 400:
            return ProtocolError
        case _:
            return BackendError


def _fields(body: bytes) -> Mapping[str, Any]:
    """The innermost object that describes the error, ``{}`` if the body is none."""
    if len(body) > _LARGEST_ERROR_BODY:
        return {}
    try:
        value: object = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    if not isinstance(value, dict):
        return {}
    outer = cast("dict[str, Any]", value)
    inner = outer.get("error")
    return {**outer, **cast("dict[str, Any]", inner)} if isinstance(inner, dict) else outer


def _message(fields: Mapping[str, Any], reply: HttpReply) -> str:
    for key in ("message", "error", "detail"):
        value = fields.get(key)
        if value and not isinstance(value, dict):
            text = value if isinstance(value, str) else json.dumps(value)
            return reply.redact(text)[:_MESSAGE_CHARS]
    text = excerpt(reply).strip()
    return "a web page instead of a message" if text.startswith("<") else text
