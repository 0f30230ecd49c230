"""HTTP without a client library, to see exactly what a server does."""

from __future__ import annotations

import http.client
import json
from typing import Any, NamedTuple
from urllib.parse import urlsplit

__all__ = ["Answer", "ask", "post"]


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    """Names in lower case."""
    body: Any
    """Decoded JSON where it is JSON, else bytes."""


def ask(url: str, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None) -> Answer:
    """One request on a connection of its own; ``str`` bodies go out as they are, without a content type."""
    place = urlsplit(url)
    connection = http.client.HTTPConnection(place.hostname or "", place.port, timeout=30)
    try:
        data = body if isinstance(body, str) or body is None else json.dumps(body)
        kind = {} if data is None or isinstance(body, str) else {"content-type": "application/json"}
        connection.request(method, path, data, {**kind, **(headers or {})})
        reply = connection.getresponse()
        raw = reply.read()
        found = {name.lower(): value for name, value in reply.getheaders()}
        return Answer(reply.status, found, _decoded(raw))
    finally:
        connection.close()


def post(url: str, path: str, body: Any, headers: dict[str, str] | None = None) -> Answer:
    """A POST."""
    return ask(url, "POST", path, body, headers)


def _decoded(raw: bytes) -> Any:
    try:
        return json.loads(raw)
    except ValueError:
        return raw
