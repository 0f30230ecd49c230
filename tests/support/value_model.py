"""Value models whose every value is known, on loopback and without a network."""

from __future__ import annotations

import asyncio
import base64
import math
import struct
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from focus_testing import ByteTokenizer, Fault, Server, demo_engine, serve

__all__ = ["CONTEXT", "MODEL", "FakeClient", "Reply", "known", "pooling", "token_ids"]

MODEL = "focus"
CONTEXT = 256
"""Tokens of the loopback model's context."""


def pooling(
    task: Literal["classify", "token_classify"] = "token_classify",
    *,
    fault: Fault | Sequence[Fault] = (),
    **options: Any,
) -> AbstractContextManager[Server]:
    return serve(replace(demo_engine(), context_length=CONTEXT), wire="pooling", fault=fault, task=task, **options)


def token_ids(text: str) -> tuple[int, ...]:
    return tuple(ByteTokenizer().encode(text))


def known(tokens: Sequence[int], reduce: str = "last") -> float:
    """The value that the model gives, by its definition."""
    values = [(token % 63 - 31) / 10 for token in tokens[-CONTEXT:]]
    match reduce:
        case "last":
            return values[-1]
        case "first":
            return values[0]
        case "sum":
            return math.fsum(values)
        case _:
            return math.fsum(values) / len(values)


@dataclass
class Reply:
    """The part of an HTTP response that an injected client must give."""

    body: Any
    status_code: int = 200

    def json(self) -> Any:
        if isinstance(self.body, Exception):
            raise self.body
        return self.body


@dataclass
class FakeClient:
    """A server behind the documented interface of ``client=``; texts are scored as their bytes."""

    labels: int = 1
    pooled: bool = False
    answers: dict[str, Reply] = field(default_factory=dict[str, Reply])
    """Replies to the requests that hold these texts."""
    requests: list[tuple[str, Any, dict[str, str], float]] = field(default_factory=list[Any])
    """url, contexts, headers, timeout."""
    keep: bool = True
    """Remember the requests."""
    running: int = 0
    most_running: int = 0

    async def post(self, url: str, *, json: dict[str, Any], headers: dict[str, str], timeout: float) -> Reply:
        if self.keep:
            self.requests.append((url, json["input"], headers, timeout))
        self.running += 1
        self.most_running = max(self.most_running, self.running)
        await asyncio.sleep(0)
        self.running -= 1
        for text, reply in self.answers.items():
            if text in json["input"]:
                return reply
        contexts = [one.encode() if isinstance(one, str) else one for one in json["input"]]
        data = [
            {"index": index, "object": "pooling", "data": self._packed(tokens[-1:] if self.pooled else tokens)}
            for index, tokens in enumerate(contexts)
        ]
        return Reply({"data": data, "usage": {"prompt_tokens": sum(map(len, contexts))}})

    def _packed(self, tokens: Sequence[int]) -> str:
        values = [(token % 63 - 31) / 10 for token in tokens for _ in range(self.labels)]
        return base64.b64encode(struct.pack(f"<{len(values)}f", *values)).decode()
