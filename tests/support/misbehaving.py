"""A loopback server that answers as it is told, in its own thread, and remembers what it saw."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from dataclasses import dataclass

__all__ = ["Act", "Misbehaving", "Seen", "cut", "drop", "misbehaving", "raw", "reply", "silent", "trickle", "until"]


@dataclass(frozen=True, slots=True)
class Seen:
    """A request as it arrived."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


type Act = Callable[[asyncio.StreamWriter], Awaitable[bool]]
"""Answers one request; False when the connection is to be closed."""


def reply(status: int = 200, body: bytes = b"{}", *, after: float = 0.0, **headers: str) -> Act:
    """A well-formed reply; header names with underscores for dashes."""
    lines = [f"HTTP/1.1 {status} Reason", "content-type: application/json", f"content-length: {len(body)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return raw("\r\n".join([*lines, "", ""]).encode() + body, keep=True, after=after)


def raw(content: bytes, *, keep: bool = False, after: float = 0.0) -> Act:
    """These bytes."""

    async def act(writer: asyncio.StreamWriter) -> bool:
        await asyncio.sleep(after)
        writer.write(content)
        await writer.drain()
        return keep

    return act


def cut(body: bytes, promised: int) -> Act:
    """A reply that ends before the promised length."""
    return raw(f"HTTP/1.1 200 OK\r\ncontent-length: {promised}\r\n\r\n".encode() + body)


def drop() -> Act:
    """No reply: the connection closes."""
    return raw(b"")


def silent() -> Act:
    """No reply, and the connection stays."""
    return raw(b"", keep=True)


def trickle(every: float) -> Act:
    """One byte of the body at a time, for as long as the connection lasts."""

    async def act(writer: asyncio.StreamWriter) -> bool:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n")
        for _ in range(1000):
            writer.write(b"1")
            await writer.drain()
            await asyncio.sleep(every)
        return True

    return act


class Misbehaving:
    """Made by `misbehaving`."""

    def __init__(self, acts: tuple[Act, ...], tls: ssl.SSLContext | None) -> None:
        self._acts = acts
        self._tls = tls
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._server: asyncio.Server
        self._handlers: set[asyncio.Task[object]] = set()
        self.url = ""
        self.requests: list[Seen] = []
        self.connections = 0
        self.arrived = threading.Event()
        """A request has arrived."""
        self.closed = threading.Event()
        """A client has closed a connection on which it had sent a request."""
        self.open = 0
        """Connections that are open now."""

    def start(self) -> None:
        """Listen on a free port."""
        self._thread.start()
        self._run(self._start())

    def stop_listening(self) -> None:
        """Refuse new connections; those that are open stay."""
        self._run(self._stop_listening())

    def stop(self) -> None:
        """Close everything."""
        self._run(self._finish())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _run(self, job: Coroutine[object, object, None]) -> None:
        asyncio.run_coroutine_threadsafe(job, self._loop).result(10)

    async def _start(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, backlog=1024, ssl=self._tls)
        self.url = f"http{'s' if self._tls else ''}://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def _stop_listening(self) -> None:
        # A server that is closed between accepting a connection and handling it leaves that connection open.
        while accepting := asyncio.all_tasks() - self._handlers - {asyncio.current_task()}:
            await asyncio.wait(accepting, timeout=0.01)
        self._server.close()

    async def _finish(self) -> None:
        await self._stop_listening()
        handlers = list(self._handlers)
        for handler in handlers:
            handler.cancel()
        await asyncio.gather(*handlers)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.open += 1
        handler = asyncio.current_task()
        assert handler is not None
        self._handlers.add(handler)
        served = False
        try:
            while (request := await _read(reader)) is not None:
                if request.method == "TLS":
                    await self._acts[0](writer)
                    await reader.read()
                    return
                served = True
                act = self._acts[min(len(self.requests), len(self._acts) - 1)]
                self.requests.append(request)
                self.arrived.set()
                if not await act(writer):
                    return
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            self._handlers.discard(handler)
            self.open -= 1
            if served:
                self.closed.set()
            writer.close()


async def _read(reader: asyncio.StreamReader) -> Seen | None:
    try:
        first = await reader.readexactly(1)
        if first == b"\x16":
            return Seen("TLS", "", {}, b"")
        head = (first + await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    except asyncio.IncompleteReadError:
        return None
    method, path, _ = head[0].split(" ")
    headers = dict(line.split(": ", 1) for line in head[1:] if line)
    headers = {name.lower(): value for name, value in headers.items()}
    return Seen(method, path, headers, await reader.readexactly(int(headers.get("content-length", "0"))))


@contextlib.contextmanager
def misbehaving(*acts: Act, tls: ssl.SSLContext | None = None) -> Iterator[Misbehaving]:
    """Serve: each request of the server's life is answered by the next act, the last one repeats."""
    server = Misbehaving(acts, tls)
    server.start()
    try:
        yield server
    finally:
        server.stop()


def until(condition: Callable[[], bool]) -> bool:
    """Whether the condition comes true within 5 s."""
    end = time.monotonic() + 5
    while not condition() and time.monotonic() < end:
        time.sleep(0.01)
    return condition()
