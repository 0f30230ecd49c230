"""An HTTP/1.1 front that leaves the socket in reach, so that a fault can cut it anywhere.

h11 speaks the protocol; this module moves bytes. It is for clients under test on loopback, not for the open network.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus

import h11

__all__ = ["Connection", "HttpRequest"]


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
        self._http = h11.Connection(h11.SERVER)
        self._request: h11.Request | None = None
        self._body = bytearray()
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
        self._http.receive_data(data)
        self._advance()

    def reply(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        """Send a whole response."""
        self._send(self._head(status, headers, len(body)), h11.Data(data=body), h11.EndOfMessage())

    def reply_half(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        """Promise ``body``, send half of it and close."""
        self._send(self._head(status, headers, len(body)), h11.Data(data=body[: len(body) // 2]))
        self.close()

    def close(self) -> None:
        """Close after what was written has been sent."""
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        """Close at once."""
        if self._transport is not None:
            self._transport.abort()

    @staticmethod
    def _head(status: int, headers: Mapping[str, str], length: int) -> h11.Response:
        pairs = [("content-length", str(length)), *headers.items()]
        return h11.Response(status_code=status, headers=pairs, reason=HTTPStatus(status).phrase)

    def _send(self, *events: h11.Event) -> None:
        for event in events:
            data = self._http.send(event)
            if data and self._transport is not None:
                self._transport.write(data)

    def _advance(self) -> None:
        while self._task is None:
            try:
                event = self._http.next_event()
            except h11.RemoteProtocolError:
                self._send(self._head(400, {"connection": "close"}, 0), h11.EndOfMessage())
                self.close()
                return
            if isinstance(event, h11.Request):
                self._request, self._body = event, bytearray()
                if self._http.they_are_waiting_for_100_continue:
                    self._send(h11.InformationalResponse(status_code=100, headers=[], reason="Continue"))
            elif isinstance(event, h11.Data):
                self._body += event.data
            elif isinstance(event, h11.EndOfMessage) and self._request is not None:
                request = _request(self._request, bytes(self._body))
                self._task = asyncio.get_running_loop().create_task(self._serve(request))
            else:
                return  # more bytes are needed, or the client has closed

    async def _serve(self, request: HttpRequest) -> None:
        try:
            await self._handle(request, self)
        finally:
            self._task = None
        if self._http.our_state is h11.MUST_CLOSE:
            self.close()
        elif self._http.our_state is h11.DONE:
            self._http.start_next_cycle()
            self._advance()


def _request(event: h11.Request, body: bytes) -> HttpRequest:
    path, _, query = event.target.decode("latin-1").partition("?")
    headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in event.headers}
    return HttpRequest(event.method.decode("latin-1"), path, query, headers, body)
