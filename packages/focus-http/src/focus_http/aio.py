"""Asynchronous transport: one aiohttp session per event loop."""

from __future__ import annotations

import asyncio
import contextlib
import io
import socket
from collections.abc import AsyncGenerator
from types import SimpleNamespace

import aiohttp

from focus_http.call import CONNECT_S, READ_S, Call, Failure
from focus_http.endpoint import Endpoint
from focus_http.liveness import Watch, keep_alive
from focus_http.reply import HttpReply

__all__ = ["LoopSession", "failure_of"]

# uvicorn closes idle connections after 5 s: below that, no request meets a connection that is being closed.
_KEEPALIVE_S = 4.0
# aiohttp warns about larger bytes, and takes the same bytes as a file.
_LARGEST_BYTES_BODY = 2**20
_UNLIMITED = aiohttp.ClientTimeout(connect=CONNECT_S, sock_read=READ_S)
_LIMITED = aiohttp.ClientTimeout(connect=CONNECT_S)


class LoopSession:
    """The session of one event loop; it closes with the loop, or when nobody holds it any more."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.loop: asyncio.AbstractEventLoop = asyncio.get_running_loop()
        self._endpoint = endpoint
        self._watch = Watch(endpoint.host, endpoint.port)
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=_KEEPALIVE_S, socket_factory=_socket),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers=endpoint.headers,
            trust_env=False,
            auto_decompress=False,
            trace_configs=[_tracing()],
        )
        self._holder = _hold(self._session, self._watch)

    async def open(self) -> LoopSession:
        """Tie the session to the loop: a loop closes its asynchronous generators, and so the session, at its end."""
        await anext(self._holder)
        return self

    @property
    def closed(self) -> bool:
        """Whether it can be used no more."""
        return self._session.closed

    async def close(self) -> None:
        """Close every connection; called in the session's own loop."""
        await self._holder.aclose()

    def __del__(self) -> None:
        if self.loop.is_closed() and not self.closed:
            # Its owner closed the loop without shutting its generators down. Nothing is left to wait for in there,
            # so that the first step is the last; without it aiohttp logs an error about a session left open.
            with contextlib.suppress(StopIteration):
                self._session.close().send(None)

    async def send(self, call: Call) -> HttpReply | Failure:
        """One attempt: a reply of any status, or why there is none."""
        call.attempts += 1
        call.unsent = True
        left = call.left
        data = io.BytesIO(call.body) if call.body and len(call.body) > _LARGEST_BYTES_BODY else call.body
        refused = False
        try:
            async with asyncio.timeout(left) as scope:
                silent = self._watch.add(scope)
                try:
                    async with self._session.request(
                        call.method,
                        call.url,
                        data=data,
                        allow_redirects=False,
                        timeout=_UNLIMITED if left is None else _LIMITED,
                        trace_request_ctx=call,
                    ) as response:
                        self._watch.discard(silent)
                        body = await response.read()
                finally:
                    refused = silent.refused
                    self._watch.discard(silent)
            headers = {name.lower(): value for name, value in response.headers.items()}
            return HttpReply(response.status, headers, body, call.attempts, call.age, self._endpoint.redact)
        except (aiohttp.ClientError, TimeoutError) as exc:
            # Returned, not raised from here: aiohttp's exceptions can show the request's headers.
            return failure_of(call, exc, refused=refused)


async def _hold(session: aiohttp.ClientSession, watch: Watch) -> AsyncGenerator[None]:
    try:
        yield
    finally:
        watch.stop()
        await session.close()


def _socket(address: tuple[int, int, int, str, object]) -> socket.socket:
    family, kind, protocol, _, _ = address
    return keep_alive(socket.socket(family, kind, protocol))


async def _mark_sent(session: aiohttp.ClientSession, context: SimpleNamespace, params: object) -> None:
    context.trace_request_ctx.unsent = False


def _tracing() -> aiohttp.TraceConfig:
    # What tells a host that cannot be reached in time from a server that does not answer in time.
    config = aiohttp.TraceConfig()
    config.on_request_headers_sent.append(_mark_sent)
    return config


def failure_of(call: Call, exc: aiohttp.ClientError | TimeoutError, *, refused: bool = False) -> Failure:
    """Why an attempt brought no reply, by the exception that aiohttp raised.

    Args:
        call: What was sent.
        exc: What aiohttp raised.
        refused: The watch found the server refusing new connections.
    """
    match exc:
        case TimeoutError() if call.unsent:
            return Failure.unreachable(call, "no connection in time")
        case aiohttp.ClientConnectorError():
            tls = isinstance(exc, aiohttp.ClientSSLError)
            return Failure.unreachable(call, "no connection", cause=exc.os_error, retry=not tls)
        case TimeoutError():
            return Failure.gone(call) if refused else Failure.late(call)
        case aiohttp.InvalidURL():
            return Failure.unreachable(call, "no address that can be connected to", retry=False)
        case aiohttp.ClientResponseError():
            return Failure.not_http(call)
        case _:
            return Failure.lost(call)
