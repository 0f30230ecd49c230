"""Synchronous transport: httpcore's connections, any number of threads.

httpcore is the engine of httpx. Its pluggable network layer is what makes an exact deadline and the liveness watch
possible without a second thread: every read is made here, in the caller's thread. Its own pool looks at every
connection for every request, which a thousand threads cannot afford; one server needs no more than a stack.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
import time
from collections import deque
from collections.abc import Iterable
from typing import Any

import httpcore

from focus_http import liveness
from focus_http.call import CONNECT_S, READ_S, Call, Failure
from focus_http.endpoint import Endpoint
from focus_http.reply import HttpReply

__all__ = ["Pool"]

_KEEPALIVE_S = 4.0


class Pool:
    """The connections of one client."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.closed: bool = False
        self._endpoint = endpoint
        self._headers = list(endpoint.headers.items())
        self._network = _Network(endpoint)
        self._origin = httpcore.URL(endpoint.base_url).origin
        self._tls = ssl.create_default_context() if endpoint.base_url.startswith("https:") else None
        self._lock = threading.Lock()
        self._busy = set[httpcore.HTTPConnection]()
        # The one at the left has been idle longest.
        self._idle = deque[httpcore.HTTPConnection]()

    def close(self) -> None:
        """Close every connection, for good."""
        with self._lock:
            self.closed = True
            connections = [*self._busy, *self._idle]
            self._idle.clear()
        for connection in connections:
            connection.close()

    def send(self, call: Call) -> HttpReply | Failure:
        """One attempt: a reply of any status, or why there is none."""
        call.attempts += 1
        current = self._network.current
        current.call, current.ended = call, False
        connection = self._take()
        try:
            response = connection.request(call.method, call.url, headers=self._headers, content=call.body)
        except (httpcore.NetworkError, httpcore.TimeoutException, httpcore.ProtocolError, _StoppedError) as exc:
            # Returned, not raised from here: see Failure.
            return _failure(call, exc, ended=current.ended)
        finally:
            current.call = None
            self._give_back(connection)
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in response.headers}
        return HttpReply(response.status, headers, response.content, call.attempts, call.age, self._endpoint.redact)

    def _take(self) -> httpcore.HTTPConnection:
        expired = list[httpcore.HTTPConnection]()
        with self._lock:
            while self._idle and self._idle[0].has_expired():
                expired.append(self._idle.popleft())
            connection = self._idle.pop() if self._idle else None
            if connection is not None and connection.has_expired():
                expired.append(connection)
                connection = None
            if connection is None:
                connection = httpcore.HTTPConnection(
                    self._origin, self._tls, keepalive_expiry=_KEEPALIVE_S, network_backend=self._network
                )
            self._busy.add(connection)
        for old in expired:
            old.close()
        return connection

    def _give_back(self, connection: httpcore.HTTPConnection) -> None:
        with self._lock:
            self._busy.discard(connection)
            reusable = connection.is_available() and not self.closed
            if reusable:
                self._idle.append(connection)
        if not reusable:
            connection.close()


class _StoppedError(Exception):
    """The server of a silent request refuses new connections."""


class _Current(threading.local):
    """What the thread is doing."""

    call: Call | None = None
    ended: bool = False
    """The server has closed the connection."""


class _Network(httpcore.NetworkBackend):
    """Connections whose every operation ends at the deadline of the thread's call."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.current = _Current()
        self._endpoint = endpoint
        self._inner = httpcore.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.NetworkStream:
        stream = self._inner.connect_tcp(host, port, min(CONNECT_S, self.left()))
        liveness.keep_alive(stream.get_extra_info("socket"))
        return _Stream(stream, self)

    def left(self) -> float:
        """Seconds that the next operation may take."""
        call = self.current.call
        left = None if call is None else call.left
        return READ_S if left is None else left

    def check_alive(self, refusals: int) -> int:
        """The number of refusals in a row after one more probe.

        Raises:
            _StoppedError: They are enough.
        """
        refusals = refusals + 1 if liveness.refuses(self._endpoint.host, self._endpoint.port) else 0
        if refusals >= liveness.REFUSALS:
            raise _StoppedError
        return refusals


class _Stream(httpcore.NetworkStream):
    def __init__(self, inner: httpcore.NetworkStream, network: _Network) -> None:
        self._inner = inner
        self._network = network

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        limit = time.monotonic() + self._network.left()
        wait, refusals = liveness.SILENCE_S, 0
        while True:
            try:
                data = self._inner.read(max_bytes, max(0.001, min(wait, limit - time.monotonic())))
            except httpcore.ReadTimeout:
                if time.monotonic() >= limit:
                    raise
                wait, refusals = liveness.PROBE_S, self._network.check_alive(refusals)
            else:
                self._network.current.ended = not data
                return data

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._inner.write(buffer, self._network.left())

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        limit = min(CONNECT_S, self._network.left())
        return _Stream(self._inner.start_tls(ssl_context, server_hostname, limit), self._network)

    def close(self) -> None:
        # Wakes a thread that waits for this connection; closing alone would not.
        with contextlib.suppress(OSError):
            self._inner.get_extra_info("socket").shutdown(socket.SHUT_RDWR)
        self._inner.close()

    def __del__(self) -> None:
        # A client that nobody closed leaves no open socket behind. No shutdown: a forked child shares its parent's.
        self._inner.close()

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)


def _failure(call: Call, exc: Exception, *, ended: bool) -> Failure:
    # httpcore raises its own error from within the handling of the system's.
    cause = exc.__context__
    match exc:
        case httpcore.ConnectTimeout():
            return Failure.unreachable(call, "no connection in time")
        case httpcore.ConnectError():
            return Failure.unreachable(call, "no connection", cause=cause, retry=not isinstance(cause, ssl.SSLError))
        case httpcore.TimeoutException():
            return Failure.late(call)
        case _StoppedError():
            return Failure.gone(call)
        case httpcore.RemoteProtocolError() if not ended:
            return Failure.not_http(call)
        case _:
            return Failure.lost(call)
