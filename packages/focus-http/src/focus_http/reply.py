"""A server's reply, and JSON in both directions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, cast

import msgspec

from focus_types.errors import ProtocolError

__all__ = ["HttpReply", "decode_json", "encode_json", "excerpt"]

_EXCERPT_CHARS = 500


@dataclass(frozen=True, slots=True)
class HttpReply:
    """One complete HTTP reply."""

    status: int
    headers: Mapping[str, str]
    """Lower-case names."""
    body: bytes
    attempts: int
    """Times the request was sent."""
    latency_s: float
    """Seconds from the first attempt to the last byte."""
    redact: Callable[[str], str] = field(default=str, repr=False, compare=False)
    """Removes the request's secrets from a text, in case the server echoed them."""

    @property
    def request_id(self) -> str | None:
        """The ``x-request-id`` header."""
        return self.headers.get("x-request-id")


def excerpt(reply: HttpReply) -> str:
    """The first 500 characters of a reply's body, without the request's secrets."""
    # Replaced before it is cut, so that no part of a secret survives at the edge.
    return reply.redact(reply.body[: 8 * _EXCERPT_CHARS].decode("utf-8", "replace"))[:_EXCERPT_CHARS]


_encode = msgspec.json.Encoder().encode


@cache
def _decoder(kind: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(kind)


def encode_json(value: object) -> bytes:
    """``value`` as UTF-8 JSON. Integers of a tuple or list cost no Python call each."""
    return _encode(value)


def decode_json[T](reply: HttpReply, kind: type[T], *, backend: str) -> T:
    """Decode a reply into a typed structure; fields that ``kind`` does not name are skipped.

    Args:
        reply: The reply of a successful request.
        kind: A ``msgspec.Struct`` or any type msgspec decodes.
        backend: Name of the backend, for the message.

    Raises:
        ProtocolError: The body is empty, not JSON, cut off, or a field is missing or of another type. The message
            gives the field's path.
    """
    try:
        value: T = _decoder(cast("Any", kind)).decode(reply.body)
    except (msgspec.DecodeError, RecursionError) as exc:
        problem = _problem(reply, exc)
    else:
        return value
    raise ProtocolError(
        reply.redact(f"{backend} answered {reply.status} with a body that is not what the protocol says: {problem}"),
        status=reply.status,
        request_id=reply.request_id,
        body=excerpt(reply),
        attempts=reply.attempts,
    )


def _problem(reply: HttpReply, exc: Exception) -> str:
    kind = reply.headers.get("content-type", "no content type")
    if not reply.body:
        return "it is empty"
    if reply.headers.get("content-encoding", "identity") != "identity":
        return f"it is compressed ({reply.headers['content-encoding']}), which was not asked for"
    if isinstance(exc, msgspec.ValidationError):
        return str(exc)
    if reply.body.lstrip()[:1] == b"<":
        return f"it is a web page ({kind}); base_url may lead to something other than the server"
    return f"{exc} ({len(reply.body)} bytes, {kind})"
