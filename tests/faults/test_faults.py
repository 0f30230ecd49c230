"""Each fault x each backend x sync and async ends as the table says, and no request is ever sampled twice."""

from __future__ import annotations

import asyncio
from typing import Literal

import pytest

from faults.columns import COLUMNS, Column
from faults.table import FAULTS, OUTCOMES
from focus.backends import GenerateResult
from focus.errors import BackendError
from focus_testing import Server, serve
from support.waiting import until

CASES = [(column, fault) for column, outcomes in OUTCOMES.items() for fault in outcomes]
# Faults that last are met with a short deadline; the others never come near theirs.
LASTING = {"slow", "429 for ever", "503 for ever"}
RESENT = {"429 for ever", "503 for ever", "429 once", "429 once, Retry-After", "503 once"}


def run(column: Column, server: Server, mode: Literal["sync", "async"], timeout: float) -> GenerateResult:
    policy = column.make(server.url, timeout)
    prompt = policy.prepare([{"role": "user", "content": "Flip the coin."}])
    if mode == "sync":
        try:
            return policy.generate(prompt)
        finally:
            policy.close()

    async def one() -> GenerateResult:
        try:
            return await policy.agenerate(prompt)
        finally:
            await policy.aclose()

    return asyncio.run(one())


@pytest.mark.parametrize("mode", ["sync", "async"])
@pytest.mark.parametrize(("name", "fault"), CASES)
def test_fault(name: str, fault: str, mode: Literal["sync", "async"], monkeypatch: pytest.MonkeyPatch) -> None:
    column, outcome = COLUMNS[name], OUTCOMES[name][fault]
    timeout = 1.0 if fault in LASTING else 60.0
    if column.native:
        monkeypatch.setattr("focus_openai.sdk.READ_S", timeout)
        monkeypatch.setattr("focus_http.retry._RETRY_S", timeout)
    with serve(wire=column.wire, fault=FAULTS[fault]) as server:
        if isinstance(outcome, str):
            result = run(column, server, mode, timeout)
            assert result.exact_generation is (outcome != "inexact" and not column.native)
            assert (result.stop_reason == "abort") is (outcome == "abort")
            # What cannot be trusted is emptied, never padded.
            assert column.native or len(result.logprobs) in (0, len(result.tokens))
            assert result.meta is not None
            assert (result.meta.inexact_reason is not None) is (outcome == "inexact" or column.native)
        else:
            with pytest.raises(BackendError) as caught:
                run(column, server, mode, timeout)
            assert type(caught.value) is outcome
            assert "EMPTY" not in str(caught.value)
        sent = [exchange for exchange in server.requests if exchange.path == column.path]
        assert len(sent) >= 2 if fault in RESENT and column.resends else len(sent) == 1


@pytest.mark.parametrize("name", COLUMNS)
def test_a_cancelled_task_closes_its_request(name: str) -> None:
    column = COLUMNS[name]
    with serve(wire=column.wire, fault=FAULTS["slow"]) as server:

        async def main() -> None:
            policy = column.make(server.url, 60.0)
            prompt = policy.prepare([{"role": "user", "content": "Flip the coin."}])
            task = asyncio.create_task(policy.agenerate(prompt))
            await until(lambda: bool(server.requests))
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await until(lambda: server.requests[0].disconnected)
            await policy.aclose()

        asyncio.run(main())


@pytest.mark.parametrize("name", COLUMNS)
def test_event_loops_in_a_row_and_a_closed_one(name: str) -> None:
    column = COLUMNS[name]
    with serve(wire=column.wire) as server:
        policy = column.make(server.url, 60.0)
        prompt = policy.prepare([{"role": "user", "content": "Flip the coin."}])
        for _ in range(3):
            assert asyncio.run(policy.agenerate(prompt)).text
        assert policy.generate(prompt).text
        policy.close()
        asyncio.run(policy.aclose())
        assert len(server.requests) == 4


@pytest.mark.parametrize("name", COLUMNS)
def test_a_server_that_stops_in_mid_request(name: str) -> None:
    column = COLUMNS[name]
    with serve(wire=column.wire, fault=FAULTS["slow"]) as server:

        async def main() -> None:
            policy = column.make(server.url, 60.0)
            prompt = policy.prepare([{"role": "user", "content": "Flip the coin."}])
            task = asyncio.create_task(policy.agenerate(prompt))
            await until(lambda: bool(server.requests))
            await asyncio.to_thread(server.close)
            async with asyncio.timeout(5):
                with pytest.raises(BackendError):
                    await task
            await policy.aclose()

        asyncio.run(main())
        server.close = lambda: None  # type: ignore[method-assign] # it is closed already
