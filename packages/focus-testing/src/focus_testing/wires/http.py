"""A small HTTP/1.1 front that leaves the socket in reach, so that a fault can cut it anywhere.

It is for clients under test on loopback, not for the open network.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus

__all__ = ["Connection", "HttpRequest"]

_LIMIT = 2**28


@dataclass(frozen=True)
class HttpRequest:
    """One request as it came."""

    method: str
    path: str
    """Without the query."""
    query: str
    headers: dict[str, str]
    """Names in lower case."""
    body: bytes


class Connection(asyncio.Protocol):
    """One client connection: requests in, one after the other, and whatever the handler writes out.

    Args:
        handle: Awaited for each request; cancelled when the client goes away first.
        connections: Where the connection enters itself while it is open.
    """

    def __init__(
        self, handle: Callable[[HttpRequest, Connection], Awaitable[None]], connections: set[Connection]
    ) -> None:
        self._handle = handle
        self._connections = connections
        self._buffer = bytearray()
        self._transport: asyncio.Transport | None = None
        self._task: asyncio.Task[None] | None = None
        self.peer: tuple[str, int] = ("", 0)
        """Host and port of the client."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Called by the event loop."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self.peer = transport.get_extra_info("peername")[:2]
        self._connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Called by the event loop: whoever still works for this client stops."""
        self._connections.discard(self)
        self._transport = None
        if self._task is not None:
            self._task.cancel()

    def data_received(self, data: bytes) -> None:
        """Called by the event loop."""
        self._buffer += data
        self._advance()

    def write(self, data: bytes) -> None:
        """Send bytes; nothing happens when the client is gone."""
        if self._transport is not None:
            self._transport.write(data)

    def reply(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        """Send a whole response."""
        self.write(self.head(status, headers, len(body)) + body)

    @staticmethod
    def head(status: int, headers: Mapping[str, str], length: int) -> bytes:
        """The head of a response whose body has ``length`` bytes."""
        lines = [f"HTTP/1.1 {status} {HTTPStatus(status).phrase}", f"content-length: {length}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")

    def close(self) -> None:
        """Close after what was written has been sent."""
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        """Close at once."""
        if self._transport is not None:
            self._transport.abort()

    def _advance(self) -> None:
        if self._task is not None:
            return
        try:
            request = self._take_request()
        except ValueError:
            self.reply(400, {"connection": "close"}, b"")
            self.close()
            return
        if request is not None:
            self._task = asyncio.get_running_loop().create_task(self._serve(request))

    async def _serve(self, request: HttpRequest) -> None:
        try:
            await self._handle(request, self)
        finally:
            self._task = None
        if request.headers.get("connection", "").lower() == "close":
            self.close()
        else:
            self._advance()

    def _take_request(self) -> HttpRequest | None:
        """The next complete request out of the buffer."""
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            return None
        first, *lines = self._buffer[:end].decode("latin-1").split("\r\n")
        method, target, _ = first.split(" ")
        pairs = (line.split(":", 1) for line in lines)
        headers = {name.strip().lower(): value.strip() for name, value in pairs}
        taken = self._body(end + 4, headers)
        if taken is None:
            return None
        body, stop = taken
        del self._buffer[:stop]
        path, _, query = target.partition("?")
        return HttpRequest(method, path, query, headers, body)

    def _body(self, start: int, headers: Mapping[str, str]) -> tuple[bytes, int] | None:
        if headers.get("expect", "").lower() == "100-continue" and len(self._buffer) == start:
            self.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        if headers.get("transfer-encoding", "").lower() == "chunked":
            return self._chunks(start)
        stop = start + int(headers.get("content-length", "0"))
        if stop > _LIMIT:
            raise ValueError("request too large")
        return None if len(self._buffer) < stop else (bytes(self._buffer[start:stop]), stop)

    def _chunks(self, at: int) -> tuple[bytes, int] | None:
        body = bytearray()
        while True:
            end = self._buffer.find(b"\r\n", at)
            if end < 0:
                return None
            size = int(self._buffer[at:end].split(b";")[0], 16)
            at = end + 2
            if len(self._buffer) < at + size + 2:
                return None
            body += self._buffer[at : at + size]
            at += size + 2
            if not size:
                return bytes(body), at
