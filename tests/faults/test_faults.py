"""Each fault x each backend x sync and async ends as the table says, and no request is ever sampled twice."""

from __future__ import annotations

import asyncio
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest

from faults.columns import COLUMNS, Answer, Column, Mode, answer, answer_async, answers_elsewhere, arrived, check_answer
from faults.table import FAULTS, OUTCOMES
from focus.errors import BackendError, ScoringError, ServerUnavailableError
from focus_testing import Server, serve
from support.waiting import until

CASES = [(name, fault, mode) for name, faults in OUTCOMES.items() for fault in faults for mode in COLUMNS[name].modes]
BACKENDS = [name for name, column in COLUMNS.items() if not column.warm]
# Faults that last are met with a short deadline; the others never come near theirs.
LASTING = {"slow", "429 for ever", "503 for ever"}
RESENT = {"429 for ever", "503 for ever", "429 once", "429 once, Retry-After", "503 once"}


def run(column: Column, server: Server, mode: Mode, fault: str, timeout: float) -> tuple[Answer | Exception, int]:
    """How a call under a fault ends and the requests it made; the next call, when the fault is over, goes well."""
    backend = column.make(server.url, timeout)
    with asyncio.Runner() as runner:

        def call() -> Answer:
            return answer(backend) if mode == "sync" else runner.run(answer_async(backend))

        if column.warm:
            call()
        before = arrived(column, server)
        server.set_fault(FAULTS[fault])
        try:
            ended: Answer | Exception = call()
        except (BackendError, ScoringError) as error:
            ended = error
        sent = arrived(column, server) - before
        server.set_fault()
        check_answer(column, "exact", call())
        runner.run(backend.aclose())
    return ended, sent


@pytest.mark.parametrize(("name", "fault", "mode"), CASES)
def test_fault(name: str, fault: str, mode: Mode, monkeypatch: pytest.MonkeyPatch) -> None:
    column, outcome = COLUMNS[name], OUTCOMES[name][fault]
    timeout = 1.0 if fault in LASTING else 60.0
    if column.native:
        monkeypatch.setattr("focus_openai.sdk.READ_S", timeout)
        monkeypatch.setattr("focus_http.retry._RETRY_S", timeout)
    with serve(wire=column.wire) as server:
        ended, sent = run(column, server, mode, fault, timeout)
    if isinstance(outcome, str):
        assert not isinstance(ended, Exception)
        check_answer(column, outcome, ended)
        expected = column.asks
    else:
        # A critic fails in one way, and its cause says why.
        error = ended.__cause__ if isinstance(ended, ScoringError) else ended
        assert type(error) is outcome
        assert "EMPTY" not in f"{ended} {error}"
        expected = 1
    assert sent > expected if fault in RESENT and column.resends else sent == expected


@pytest.mark.parametrize("name", BACKENDS)
def test_a_cancelled_task_closes_its_request(name: str) -> None:
    column = COLUMNS[name]
    with serve(wire=column.wire, fault=FAULTS["slow"]) as server:

        async def main() -> None:
            backend = column.make(server.url, 60.0)
            task = asyncio.create_task(answer_async(backend))
            await until(lambda: bool(server.requests))
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await until(lambda: server.requests[0].disconnected)
            await backend.aclose()

        asyncio.run(main())
        assert len(server.requests) == 1


@pytest.mark.parametrize("name", BACKENDS)
def test_event_loops_in_a_row_and_a_closed_one(name: str) -> None:
    column = COLUMNS[name]
    with serve(wire=column.wire) as server:
        backend = column.make(server.url, 60.0)
        for _ in range(3):
            check_answer(column, "exact", asyncio.run(answer_async(backend)))
        check_answer(column, "exact", answer(backend))
        asyncio.run(backend.aclose())
        assert arrived(column, server) == 3 + column.asks


@pytest.mark.parametrize("name", BACKENDS)
def test_a_server_that_stops_in_mid_request(name: str) -> None:
    column = COLUMNS[name]
    with serve(wire=column.wire, fault=FAULTS["slow"]) as server:

        async def main() -> None:
            backend = column.make(server.url, 60.0)
            task = asyncio.create_task(answer_async(backend))
            await until(lambda: bool(server.requests))
            await asyncio.to_thread(server.close)
            async with asyncio.timeout(5):
                with pytest.raises((BackendError, ScoringError)) as caught:
                    await task
            cause = caught.value.__cause__ if isinstance(caught.value, ScoringError) else caught.value
            assert type(cause) is ServerUnavailableError
            assert "may have run" in str(cause) or name == "slime"
            await backend.aclose()

        asyncio.run(main())
        assert len(server.requests) == 1
        server.close = lambda: None  # type: ignore[method-assign] # it is closed already


@pytest.mark.parametrize("method", ["spawn", "fork"])
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_process_pool_asks_over_connections_of_its_own(method: str) -> None:
    with ProcessPoolExecutor(1, mp_context=get_context(method)) as pool:
        for column in (COLUMNS[name] for name in BACKENDS):
            with serve(wire=column.wire) as server:
                backend = column.make(server.url, 60.0)
                check_answer(column, "exact", answer(backend))
                here = {exchange.client for exchange in server.requests}
                first, second = pool.submit(answers_elsewhere, backend).result(60)
                assert first == second
                there = {exchange.client for exchange in server.requests} - here
                assert len(there) == 2
                check_answer(column, "exact", answer(backend))
                asyncio.run(backend.aclose())
