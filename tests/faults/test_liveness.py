"""Whole calls to a server that is silent: a stopped one ends them, a slow one is waited for."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest

from faults.columns import COLUMNS, Answer, Backend, Mode, answer, answer_async, arrived, check_answer
from focus.errors import ScoringError, ServerUnavailableError
from focus_testing import Fault, serve
from support.misbehaving import misbehaving, silent, until

# The backends whose HTTP is focus's own.
CASES = [(name, mode) for name in ("vllm", "sglang", "pooling, first call") for mode in COLUMNS[name].modes]


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("focus_http.liveness.SILENCE_S", 0.3)
    monkeypatch.setattr("focus_http.liveness.PROBE_S", 0.1)


def call(backend: Backend, mode: Mode) -> Answer:
    async def one() -> Answer:
        try:
            return await answer_async(backend)
        finally:
            await backend.aclose()

    return answer(backend) if mode == "sync" else asyncio.run(one())


@pytest.mark.parametrize(("name", "mode"), CASES)
def test_a_stopped_server_ends_a_call(name: str, mode: Mode) -> None:
    with misbehaving(silent()) as server, ThreadPoolExecutor(1) as pool:
        backend = COLUMNS[name].make(server.url, 60.0)
        ended = pool.submit(call, backend, mode)
        assert until(lambda: len(server.requests) == 1)
        server.stop_listening()
        with pytest.raises((ServerUnavailableError, ScoringError), match="refuses new connections") as caught:
            ended.result(10)
        error = caught.value.__cause__ if isinstance(caught.value, ScoringError) else caught.value
        assert type(error) is ServerUnavailableError
        assert error.attempts == 1
        asyncio.run(backend.aclose())


@pytest.mark.parametrize(("name", "mode"), CASES)
def test_a_slow_reply_is_waited_for(name: str, mode: Mode) -> None:
    column = COLUMNS[name]
    with serve(wire=column.wire, fault=Fault("slow", seconds=1.2, calls={0})) as server:
        backend = column.make(server.url, 60.0)
        check_answer(column, "exact", call(backend, mode))
        asyncio.run(backend.aclose())
        assert arrived(column, server) == column.asks
