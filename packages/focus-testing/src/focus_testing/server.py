"""`serve`: a wire on loopback, in a thread of its own."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Literal

from focus_testing.demo import demo_engine
from focus_testing.engine import Engine
from focus_testing.wires.base import Exchange, HangUp, Refusal, Reply, Wire
from focus_testing.wires.faults import Fault, FaultPlan
from focus_testing.wires.http import Connection, HttpRequest
from focus_testing.wires.openai import OpenAIWire
from focus_testing.wires.pooling import PoolingWire
from focus_testing.wires.sglang import SGLangWire
from focus_testing.wires.vllm import VLLMWire
from focus_types import InvalidRequestError

__all__ = ["Server", "WireName", "serve"]

type WireName = Literal["vllm", "pooling", "sglang", "openai"]

_WIRES: dict[str, type[Wire]] = {
    "vllm": VLLMWire,
    "pooling": PoolingWire,
    "sglang": SGLangWire,
    "openai": OpenAIWire,
}
_log = logging.getLogger("focus")


class Server:
    """A running server. Made by `serve`."""

    def __init__(self, wire: Wire, faults: Sequence[Fault], host: str, port: int) -> None:
        self.wire = wire
        self.requests: list[Exchange] = []
        """Everything that arrived, in order."""
        self._routes = wire.routes()
        self._plan = FaultPlan(faults, wire.spoilers())
        self._connections: set[Connection] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="focus-testing", daemon=True)
        self._thread.start()
        listen = self._loop.create_server(self._connection, host, port, backlog=4096)
        try:
            # In the thread from the start: the caller may be a coroutine, whose thread can run no other loop.
            self._listener = asyncio.run_coroutine_threadsafe(listen, self._loop).result()
        except BaseException:
            self._end()
            raise
        self._address = self._listener.sockets[0].getsockname()

    @property
    def url(self) -> str:
        """``http://host:port``, without a path."""
        return f"http://{self._address[0]}:{self._address[1]}"

    @property
    def open_connections(self) -> int:
        """How many clients are connected now."""
        return len(self._connections)

    def set_fault(self, *faults: Fault) -> None:
        """Replace the faults, counting requests anew; without arguments nothing fails any more.

        Raises:
            InvalidRequestError: A kind that the wire cannot express.
        """
        self._plan = FaultPlan(faults, self.wire.spoilers())

    def close(self) -> None:
        """Cut every connection and stop."""
        asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result()
        self._end()

    def _end(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _stop(self) -> None:
        self._listener.close()
        for connection in list(self._connections):
            connection.abort()
        me = asyncio.current_task()
        tasks = [task for task in asyncio.all_tasks() if task is not me]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _connection(self) -> Connection:
        return Connection(self._handle, self._connections)

    async def _handle(self, request: HttpRequest, connection: Connection) -> None:
        exchange = Exchange(request.method, request.path, request.headers, request.body, connection.peer)
        exchange.fault = self._plan.next(request.method, request.path)
        self.requests.append(exchange)
        try:
            if exchange.fault_kind == "drop_before":
                connection.close()
                return
            if exchange.fault is not None and exchange.fault.kind == "slow":
                await asyncio.sleep(exchange.fault.seconds)
            self._send(await self._answer(exchange), exchange, connection)
        except HangUp:
            connection.close()
        except asyncio.CancelledError:
            exchange.disconnected = True
            raise

    async def _answer(self, exchange: Exchange) -> Reply:
        fault = exchange.fault
        if fault is not None and fault.kind == "status":
            headers = {} if fault.retry_after is None else {"retry-after": f"{fault.retry_after:g}"}
            return replace(self.wire.error(fault.status or 500, "a fault that was asked for"), headers=headers)
        if fault is not None and fault.kind == "redirect":
            # Another host by name, whose requests arrive here all the same: whoever follows is seen.
            return Reply(None, 307, {"location": f"http://localhost:{self._address[1]}{exchange.path}"})
        if not self.wire.authorised(exchange):
            return self.wire.error(401, "Unauthorized")
        handler = self._routes.get((exchange.method, exchange.path))
        if handler is None:
            known = any(path == exchange.path for _, path in self._routes)
            return Reply({"detail": "Method Not Allowed" if known else "Not Found"}, 405 if known else 404)
        try:
            return await handler(exchange)
        except Refusal as refusal:
            return refusal.reply
        except HangUp:
            raise
        except Exception:
            _log.exception("the %s failed", type(self.wire).__name__)
            return self.wire.error(500, "Internal Server Error")

    def _send(self, reply: Reply, exchange: Exchange, connection: Connection) -> None:
        kind = exchange.fault_kind
        body, status, media_type = reply.body, reply.status, reply.media_type
        spoil = self.wire.spoilers().get(kind or "")
        if spoil is not None and status == 200 and isinstance(body, dict):
            body = spoil(body)
        if kind == "list":
            body = [body]
        data = b"" if body is None else (body if isinstance(body, str) else json.dumps(body)).encode()
        if kind == "html" and exchange.fault is not None:
            data, status, media_type = (
                b"<html><body>Bad gateway</body></html>",
                exchange.fault.status or 200,
                "text/html",
            )
        elif kind == "malformed":
            data = b"{'this': is no JSON"
        elif kind == "empty":
            data = b""
        elif kind == "truncated":
            data = data[: len(data) // 2]
        elif kind == "huge" and exchange.fault is not None:
            data += b" " * exchange.fault.size
        headers = {**({"content-type": media_type} if body is not None else {}), **reply.headers}
        exchange.status = status
        if kind == "drop_after":
            connection.reply_half(status, headers, data)
        else:
            connection.reply(status, headers, data)


@contextmanager
def serve(
    engine: Engine | None = None,
    *,
    wire: WireName = "vllm",
    fault: Fault | Sequence[Fault] = (),
    host: str = "127.0.0.1",
    port: int = 0,
    **options: Any,
) -> Generator[Server]:
    """Serve an engine on loopback until the block ends.

        with serve(engine, wire="vllm", api_key="secret") as server:
            policy = VLLMPolicy(model="focus", base_url=server.url + "/v1", api_key="secret", format=...)

    Args:
        engine: The model, and what the server reports of it: real vLLM servers report "raw" unless told otherwise,
            SGLang ones "tempered". The default is `demo_engine`.
        wire: Whose wire to speak.
        fault: What goes wrong; the first that strikes a request decides. See also `Server.set_fault`.
        host: Address to listen on.
        port: 0 takes a free one.
        options: Fields of the wire's class, such as ``model``, ``api_key`` and ``token_delay``.

    Raises:
        InvalidRequestError: An unknown wire, or a fault that it cannot express.
    """
    if wire not in _WIRES:
        raise InvalidRequestError(f"unknown wire {wire!r}; there are {', '.join(_WIRES)}")
    faults = [fault] if isinstance(fault, Fault) else list(fault)
    server = Server(_WIRES[wire](demo_engine() if engine is None else engine, **options), faults, host, port)
    try:
        yield server
    finally:
        server.close()
