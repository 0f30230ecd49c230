"""What every wire shares: the record of an exchange, replies, the key, and running the engine."""

from __future__ import annotations

import asyncio
import json
import secrets
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from focus_testing.engine import Engine, Generation, Run
from focus_testing.wires.faults import Fault
from focus_types import HFTokenizer

__all__ = ["Exchange", "Handler", "HangUp", "Refusal", "Reply", "Wire", "new_id", "run_to_end", "token_texts"]


@dataclass
class Exchange:
    """One request that arrived, and what became of it."""

    method: str
    path: str
    headers: dict[str, str]
    """Names in lower case."""
    data: bytes
    """The body as it came."""
    client: tuple[str, int]
    """Host and port of the connection: equal ones mean one connection."""
    fault: Fault | None = None
    """The fault that struck."""
    status: int | None = None
    """What was answered; None if nothing was."""
    disconnected: bool = False
    """The client closed the connection before it had the reply."""

    @property
    def body(self) -> Any:
        """The decoded JSON; bytes where it is none."""
        try:
            return json.loads(self.data)
        except ValueError:
            return self.data

    @property
    def fault_kind(self) -> str | None:
        """The kind of the fault that struck."""
        return None if self.fault is None else self.fault.kind


@dataclass(frozen=True)
class Reply:
    """What is answered: ``body`` is sent as JSON, ``str`` as it is, None as nothing."""

    body: Any = None
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    media_type: str = "application/json"


class HangUp(Exception):
    """Ends a handler without a reply: the connection is closed."""


class Refusal(Exception):
    """Ends a handler with an error reply."""

    def __init__(self, reply: Reply) -> None:
        super().__init__(reply.status)
        self.reply = reply


type Handler = Callable[[Exchange], Awaitable[Reply]]


@dataclass
class Wire(ABC):
    """One server's wire. Subclasses give `routes`, `error`, `spoilers` and `guarded`."""

    engine: Engine
    model: str = "focus"
    """The served model's name."""
    api_key: str | None = None
    """None: no key is asked for."""
    token_delay: float = 0.0
    """Seconds per generated token, for tests that cancel or abort."""
    running: dict[str, Run] = field(init=False, repr=False, default_factory=dict[str, Run])
    """Replies in the making, by request id."""

    @abstractmethod
    def routes(self) -> Mapping[tuple[str, str], Handler]:
        """Method and path to handler."""

    @abstractmethod
    def error(self, status: int, message: str) -> Reply:
        """The wire's error body for a status."""

    @abstractmethod
    def spoilers(self) -> Mapping[str, Callable[[Any], Any]]:
        """Fault kinds that the wire can express, with what each does to a reply's body."""

    @abstractmethod
    def guarded(self, path: str) -> bool:
        """Whether this path asks for the key."""

    def authorised(self, exchange: Exchange) -> bool:
        """Whether the request may pass."""
        if self.api_key is None or not self.guarded(exchange.path):
            return True
        scheme, _, key = exchange.headers.get("authorization", "").partition(" ")
        return scheme.lower() == "bearer" and secrets.compare_digest(key.encode(), self.api_key.encode())


async def run_to_end(
    wire: Wire, run: Run, exchange: Exchange, request_id: str, on_token: Callable[[], None] | None = None
) -> Generation:
    """Let a run finish without keeping other requests waiting; an "abort" fault ends it after one token."""
    wire.running[request_id] = run
    try:
        while not run.finished:
            run.step()
            if on_token is not None:
                on_token()
            if exchange.fault_kind == "abort":
                run.abort()
            if wire.token_delay or len(run) % 64 == 0:
                await asyncio.sleep(wire.token_delay)
    finally:
        del wire.running[request_id]
    return run.result()


def new_id(prefix: str = "") -> str:
    """An id as servers make them."""
    return prefix + secrets.token_hex(8)


def token_texts(tokenizer: HFTokenizer, tokens: list[int] | tuple[int, ...]) -> list[str]:
    """The text that each token adds: nothing for the first parts of a character, all of it for its last part."""
    texts: list[str] = []
    pending: list[int] = []
    for token in tokens:
        pending.append(token)
        text = str(tokenizer.decode(pending))
        if text.endswith("\ufffd") and len(pending) < 4:
            texts.append("")
        else:
            texts.append(text)
            pending = []
    return texts
