"""A silent request ends when its server refuses new connections, and only then."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib

import pytest

from focus_http import JsonClient
from focus_http.liveness import Watch
from focus_types import ServerUnavailableError
from support.misbehaving import misbehaving, reply, silent, until


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("focus_http.liveness.SILENCE_S", 0.3)
    monkeypatch.setattr("focus_http.liveness.PROBE_S", 0.1)


def test_a_stopped_server_ends_the_waiting_threads() -> None:
    with misbehaving(silent()) as server:
        client = JsonClient(server.url, backend="unit", timeout=20)
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            waiting = [pool.submit(client.post, "/x", b"{}") for _ in range(2)]
            assert until(lambda: len(server.requests) == 2)
            server.stop_listening()
            for one in waiting:
                with pytest.raises(ServerUnavailableError, match="refuses new connections") as caught:
                    one.result(10)
                assert caught.value.attempts == 1
                assert caught.value.__context__ is None
        client.close()


@pytest.mark.anyio
async def test_a_stopped_server_ends_the_waiting_tasks_those_that_start_later_too() -> None:
    with misbehaving(silent()) as server:
        client = JsonClient(server.url, backend="unit", timeout=20)

        async def expect_the_end() -> None:
            with pytest.raises(ServerUnavailableError, match="refuses new connections") as caught:
                await client.apost("/x", b"{}")
            assert caught.value.attempts == 1
            assert caught.value.__context__ is None

        async with asyncio.TaskGroup() as group:
            for pause in (0.0, 0.0, 0.1, 0.2):
                await asyncio.sleep(pause)
                group.create_task(expect_the_end())
            assert await asyncio.to_thread(until, lambda: len(server.requests) == 4)
            await asyncio.to_thread(server.stop_listening)
        await client.aclose()


@pytest.mark.parametrize("timeout", [None, 20.0])
def test_a_slow_reply_of_a_listening_server_arrives(timeout: float | None) -> None:
    with misbehaving(reply(200, b"[1]", after=1.2)) as server:
        client = JsonClient(server.url, backend="unit", timeout=timeout)
        assert client.post("/x", b"{}").body == b"[1]"
        # The request's own connection, and those that only asked whether somebody is there.
        assert server.connections > 2
        assert len(server.requests) == 1
        client.close()


@pytest.mark.anyio
@pytest.mark.parametrize("timeout", [None, 20.0])
async def test_a_slow_reply_of_a_listening_server_arrives_async(timeout: float | None) -> None:
    before = asyncio.all_tasks()
    with misbehaving(reply(200, b"[1]", after=1.2)) as server:
        client = JsonClient(server.url, backend="unit", timeout=timeout)
        replies = await asyncio.gather(*(client.apost("/x", b"{}") for _ in range(20)))
        assert [one.body for one in replies] == [b"[1]"] * 20
        # However many wait, one asks at a time.
        assert 22 < server.connections <= 30
        assert len(server.requests) == 20
        await client.aclose()
        await asyncio.sleep(0)
        assert asyncio.all_tasks() == before


@pytest.mark.anyio
async def test_nobody_asks_when_replies_come_in_time() -> None:
    with misbehaving(reply(200, b"[1]", after=0.1)) as server:
        client = JsonClient(server.url, backend="unit")
        for _ in range(6):
            await client.apost("/x", b"{}")
        await asyncio.sleep(0.5)
        assert server.connections == 1
        await client.aclose()


@pytest.mark.anyio
async def test_deadlines_that_pass_while_the_server_refuses_do_not_stop_the_watch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loop, scopes = asyncio.get_running_loop(), list[asyncio.Timeout]()

    def expire(at: int) -> None:
        # One deadline in each turn of the loop, so that one comes in the turn that hears of the refusal.
        if at < 200 and not scopes[at].expired():
            scopes[at].reschedule(loop.time() - 1)
            loop.call_soon(expire, at + 1)

    def refuses(host: str, port: int) -> bool:
        loop.call_soon_threadsafe(expire, 0)
        return True

    async def wait(watch: Watch) -> bool:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(5) as scope:
                silent = watch.add(scope)
                scopes.append(scope)
                try:
                    await asyncio.sleep(10)
                finally:
                    watch.discard(silent)
        return silent.refused

    monkeypatch.setattr("focus_http.liveness.refuses", refuses)
    monkeypatch.setattr("focus_http.liveness.REFUSALS", 1)
    watch = Watch("127.0.0.1", 1)
    ended = await asyncio.gather(*(wait(watch) for _ in range(400)))
    # Each request ended as it should: of its deadline, or of the refusal.
    assert False in ended[:200]
    assert ended[200:] == [True] * 200
    watch.stop()
