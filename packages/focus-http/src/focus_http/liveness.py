"""Is the server of a silent request still there?

A server that was told to stop may refuse new connections while it neither answers nor closes the open ones.
"""

from __future__ import annotations

import asyncio
import socket

__all__ = ["PROBE_S", "REFUSALS", "SILENCE_S", "Silent", "Watch", "keep_alive", "refuses"]

SILENCE_S = 30.0
PROBE_S = 15.0
REFUSALS = 2
_PROBE_CONNECT_S = 5.0


def refuses(host: str, port: int) -> bool:
    """Whether every address of the host refuses a new TCP connection; an unclear answer is no refusal."""
    try:
        socket.create_connection((host, port), timeout=_PROBE_CONNECT_S, all_errors=True).close()
    except ExceptionGroup as group:
        return all(isinstance(exc, ConnectionRefusedError) for exc in group.exceptions)
    except OSError:
        return False
    return False


def keep_alive(connection: socket.socket) -> socket.socket:
    """Have the system confirm an idle connection every minute.

    A gateway forgets connections that are silent for a few minutes, and a host that vanished refuses nothing.
    """
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    # macOS names the idle time otherwise; its defaults of two hours stay there.
    for name, value in (("TCP_KEEPIDLE", 60), ("TCP_KEEPINTVL", 60), ("TCP_KEEPCNT", 5)):
        if option := getattr(socket, name, None):
            connection.setsockopt(socket.IPPROTO_TCP, option, value)
    return connection


class Silent:
    """A request that waits for the first byte of its reply."""

    __slots__ = ("refused", "scope", "since")

    def __init__(self, scope: asyncio.Timeout, since: float) -> None:
        self.scope: asyncio.Timeout = scope
        self.since: float = since
        self.refused: bool = False
        """Set when the watch ended the request."""


class Watch:
    """Ends the silent requests of one event loop when their server refuses twice in a row.

    One timer and at most one probe at a time, however many requests wait.
    """

    def __init__(self, host: str, port: int) -> None:
        self._host = host
        self._port = port
        self._loop = asyncio.get_running_loop()
        # In order of their start: the first is the one that has been silent longest.
        self._waiting: dict[Silent, None] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._probe: asyncio.Task[None] | None = None
        self._refusals = 0

    def add(self, scope: asyncio.Timeout) -> Silent:
        """Watch a request that was just sent; the watch ends it by expiring its ``scope``."""
        silent = Silent(scope, self._loop.time())
        self._waiting[silent] = None
        if self._timer is None and self._probe is None:
            self._timer = self._loop.call_later(SILENCE_S, self._look)
        return silent

    def discard(self, silent: Silent) -> None:
        """Watch no longer."""
        self._waiting.pop(silent, None)

    def stop(self) -> None:
        """Stop the timer and the probe."""
        if self._timer is not None:
            self._timer.cancel()
        if self._probe is not None:
            self._probe.cancel()

    def _look(self) -> None:
        self._timer = None
        oldest = next(iter(self._waiting), None)
        if oldest is None:
            self._refusals = 0
            return
        left = oldest.since + SILENCE_S - self._loop.time()
        if left > 0:
            self._refusals = 0
            self._timer = self._loop.call_later(left, self._look)
        else:
            self._probe = self._loop.create_task(self._ask())

    async def _ask(self) -> None:
        refused = await asyncio.to_thread(refuses, self._host, self._port)
        self._refusals = self._refusals + 1 if refused else 0
        now = self._loop.time()
        if self._refusals >= REFUSALS:
            # A scope whose own deadline has just come can be changed no more.
            over = [one for one in self._waiting if now - one.since >= SILENCE_S and not one.scope.expired()]
            for silent in over:
                silent.refused = True
                silent.scope.reschedule(now)
                self.discard(silent)
        self._probe = None
        self._timer = self._loop.call_later(PROBE_S, self._look)
