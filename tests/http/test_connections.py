"""Connections: reuse, several loops, threads, closing, cancelling, processes."""

from __future__ import annotations

import asyncio
import concurrent.futures
import copy
import multiprocessing
import os
import pickle
import shutil
import signal
import ssl
import subprocess
import sys
import textwrap
import threading
from pathlib import Path
from types import FrameType

import pytest

from focus_http import JsonClient
from focus_types import RequestTimeoutError, ServerUnavailableError
from support.misbehaving import drop, misbehaving, reply, silent, until


def test_a_post_on_a_reused_connection_is_not_sent_again_when_it_drops() -> None:
    with misbehaving(reply(), drop(), reply()) as server:
        client = JsonClient(server.url, backend="unit")
        client.post("/x", b"1")
        with pytest.raises(ServerUnavailableError):
            client.post("/x", b"2")
        client.close()
        assert server.connections == 1
    assert [one.body for one in server.requests] == [b"1", b"2"]


@pytest.mark.anyio
async def test_an_async_post_on_a_reused_connection_is_not_sent_again_when_it_drops() -> None:
    with misbehaving(reply(), drop(), reply()) as server:
        client = JsonClient(server.url, backend="unit")
        await client.apost("/x", b"1")
        with pytest.raises(ServerUnavailableError):
            await client.apost("/x", b"2")
        await client.aclose()
        assert server.connections == 1
    assert [one.body for one in server.requests] == [b"1", b"2"]


@pytest.mark.anyio
async def test_many_at_once_have_no_limit_and_all_close() -> None:
    with misbehaving(reply(200, b"{}", after=0.5)) as server:
        client = JsonClient(server.url, backend="unit")
        replies = await asyncio.gather(*(client.apost("/x", b"{}") for _ in range(300)))
        assert len(replies) == 300
        assert server.connections == 300
        await client.aclose()
        await client.aclose()
        assert await asyncio.to_thread(until, lambda: server.open == 0)


def test_threads_share_a_client() -> None:
    with misbehaving(reply(200, b"{}", after=0.2)) as server:
        client = JsonClient(server.url, backend="unit")
        with concurrent.futures.ThreadPoolExecutor(32) as pool:
            replies = list(pool.map(lambda _: client.post("/x", b"{}"), range(64)))
        assert len(replies) == 64
        assert server.connections == 32
        client.close()
        client.close()
        assert until(lambda: server.open == 0)
        assert client.post("/x", b"{}").status == 200
        client.close()


def test_loops_one_after_the_other_and_at_the_same_time() -> None:
    with misbehaving(reply()) as server:
        client = JsonClient(server.url, backend="unit")

        async def twice() -> int:
            await client.apost("/x", b"{}")
            return (await client.apost("/x", b"{}")).status

        assert [asyncio.run(twice()) for _ in range(3)] == [200, 200, 200]
        assert server.connections == 3
        # Each loop took its connections with it.
        assert until(lambda: server.open == 0)
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            assert list(pool.map(lambda _: asyncio.run(twice()), range(8))) == [200] * 8
        assert until(lambda: server.open == 0)


def test_close_reaches_a_loop_at_rest_and_a_loop_of_another_thread() -> None:
    with misbehaving(reply()) as server:
        client = JsonClient(server.url, backend="unit")
        loop = asyncio.new_event_loop()
        loop.run_until_complete(client.apost("/x", b"{}"))
        busy = asyncio.new_event_loop()
        thread = threading.Thread(target=busy.run_forever)
        thread.start()
        asyncio.run_coroutine_threadsafe(client.apost("/x", b"{}"), busy).result(5)
        assert server.open == 2
        client.close()
        assert until(lambda: server.open == 0)
        busy.call_soon_threadsafe(busy.stop)
        thread.join()
        busy.close()
        loop.close()


def test_close_within_a_running_loop_closes_in_its_next_turn() -> None:
    with misbehaving(reply()) as server:

        async def main() -> None:
            client = JsonClient(server.url, backend="unit")
            await client.apost("/x", b"{}")
            client.close()
            assert await asyncio.to_thread(until, lambda: server.open == 0)

        asyncio.run(main())


def test_a_client_that_nobody_closed_leaves_nothing_open() -> None:
    with misbehaving(reply()) as server:

        async def main() -> None:
            client = JsonClient(server.url, backend="unit")
            client.post("/x", b"{}")
            await client.apost("/x", b"{}")
            assert server.open == 2
            del client
            assert await asyncio.to_thread(until, lambda: server.open == 0)

        asyncio.run(main())


@pytest.mark.anyio
async def test_a_cancelled_task_closes_its_connection() -> None:
    with misbehaving(silent()) as server:
        client = JsonClient(server.url, backend="unit")
        task = asyncio.create_task(client.apost("/x", b"{}"))
        assert await asyncio.to_thread(server.arrived.wait, 5)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await asyncio.to_thread(server.closed.wait, 5)
        await client.aclose()


@pytest.mark.anyio
async def test_the_callers_own_timeout_stays_a_plain_timeout() -> None:
    with misbehaving(silent()) as server:
        client = JsonClient(server.url, backend="unit", timeout=20)
        with pytest.raises(TimeoutError) as caught:
            async with asyncio.timeout(0.2):
                await client.apost("/x", b"{}")
        assert not isinstance(caught.value, RequestTimeoutError)
        assert await asyncio.to_thread(server.closed.wait, 5)
        await client.aclose()


def test_close_ends_the_requests_of_other_threads() -> None:
    with misbehaving(silent()) as server:
        client = JsonClient(server.url, backend="unit", timeout=20)
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(client.post, "/x", b"{}")
            assert server.arrived.wait(5)
            client.close()
            with pytest.raises(ServerUnavailableError):
                waiting.result(5)
        assert server.closed.wait(5)


@pytest.mark.anyio
async def test_closing_ends_the_requests_in_flight() -> None:
    with misbehaving(silent()) as server:
        client = JsonClient(server.url, backend="unit", timeout=20)
        tasks = [asyncio.create_task(client.apost("/x", b"{}")) for _ in range(3)]
        assert await asyncio.to_thread(until, lambda: len(server.requests) == 3)
        await client.aclose()
        for outcome in await asyncio.gather(*tasks, return_exceptions=True):
            assert isinstance(outcome, ServerUnavailableError)


def test_closing_ends_what_waits_to_be_sent_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("focus_http.retry._LONGEST_BACKOFF_S", 0.5)
    with misbehaving(reply(503)) as server:
        client = JsonClient(server.url, backend="unit", timeout=60)
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            waiting = [pool.submit(client.post, "/x", b"{}"), pool.submit(asyncio.run, client.apost("/x", b"{}"))]
            assert until(lambda: len(server.requests) >= 4)
            client.close()
            for one in waiting:
                with pytest.raises(ServerUnavailableError, match="the client was closed"):
                    one.result(5)
        assert until(lambda: server.open == 0)


def test_an_interrupted_call_closes_its_connection_and_leaves_the_client_usable() -> None:
    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    with misbehaving(silent(), reply()) as server:
        client = JsonClient(server.url, backend="unit", timeout=20)
        before = signal.signal(signal.SIGALRM, interrupt)
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.3)
            with pytest.raises(KeyboardInterrupt):
                client.post("/x", b"{}")
        finally:
            signal.signal(signal.SIGALRM, before)
        assert server.closed.wait(5)
        assert client.post("/x", b"{}").status == 200
        client.close()


def test_copies_and_pickles_carry_the_configuration_and_open_their_own_connections() -> None:
    with misbehaving(reply()) as server:
        client = JsonClient(server.url, backend="unit", api_key="sk-0123456789", timeout=7)
        client.post("/x", b"{}")
        for twin in (pickle.loads(pickle.dumps(client)), copy.deepcopy(client), copy.copy(client)):
            assert twin.post("/x", b"{}").status == 200
            twin.close()
        client.close()
        assert server.connections == 4
        assert {one.headers["authorization"] for one in server.requests} == {"Bearer sk-0123456789"}


def test_a_spawned_process_uses_a_pickled_client() -> None:
    with misbehaving(reply()) as server:
        client = JsonClient(server.url, backend="unit")
        client.post("/x", b"{}")
        spawn = multiprocessing.get_context("spawn")
        with concurrent.futures.ProcessPoolExecutor(1, mp_context=spawn) as pool:
            assert pool.submit(client.post, "/x", b"{}").result(60).body == b"{}"
        client.close()


def run_script(script: str, url: str, *options: str, env: dict[str, str] | None = None) -> str:
    """Run a script by itself; whatever it writes to stderr fails the test."""
    program = [sys.executable, *options, "-c", textwrap.dedent(script), url]
    done = subprocess.run(
        program, capture_output=True, text=True, timeout=60, check=False, env={**os.environ, **(env or {})}
    )
    assert done.stderr == ""
    assert done.returncode == 0
    return done.stdout


def test_a_forked_child_opens_its_own_connections() -> None:
    script = """
        import asyncio, os, sys
        from focus_http import JsonClient

        client = JsonClient(sys.argv[1], backend="unit")

        async def twice():
            await client.apost("/async", b"{}")
            return (await client.apost("/async", b"{}")).status

        async def main():
            await twice()
            client.post("/sync", b"{}")
            child = os.fork()
            if child == 0:
                try:
                    client.post("/sync", b"{}")
                    asyncio.new_event_loop  # the child leaves its parent's loop alone
                finally:
                    os._exit(0)
            assert os.waitpid(child, 0)[1] == 0
            client.post("/sync", b"{}")
            return await twice()

        assert asyncio.run(main()) == 200
        child = os.fork()
        if child == 0:
            asyncio.run(twice())
            client.post("/sync", b"{}")
            client.close()
            sys.exit(0)
        assert os.waitpid(child, 0)[1] == 0
        client.close()
    """
    with misbehaving(reply()) as server:
        run_script(script, server.url, "-W", "error")
        paths = [one.path for one in server.requests]
        assert paths.count("/async") == 6
        assert paths.count("/sync") == 4
        # One for the parent's loop and one sync; the first child's; the second child's two.
        assert server.connections == 5
        assert until(lambda: server.open == 0)


@pytest.mark.parametrize("closing", ["", "client.close()"])
def test_a_program_that_runs_several_loops_ends_without_a_word(closing: str) -> None:
    script = f"""
        import asyncio, sys
        from focus_http import JsonClient

        client = JsonClient(sys.argv[1], backend="unit")
        for _ in range(3):
            assert asyncio.run(client.apost("/x", b"{{}}")).status == 200
        client.post("/x", b"{{}}")
        {closing}
    """
    with misbehaving(reply()) as server:
        assert run_script(script, server.url, "-W", "error") == ""
        assert len(server.requests) == 4
        assert until(lambda: server.open == 0)


def test_a_loop_that_its_owner_closed_by_hand_is_forgotten() -> None:
    script = """
        import asyncio, sys
        from focus_http import JsonClient

        client = JsonClient(sys.argv[1], backend="unit")
        for _ in range(3):
            loop = asyncio.new_event_loop()
            assert loop.run_until_complete(client.apost("/x", b"{}")).status == 200
            loop.close()
    """
    # asyncio itself warns, where warnings are on, that the loop was closed before its connections.
    with misbehaving(reply()) as server:
        run_script(script, server.url)
        assert len(server.requests) == 3


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl to make a certificate")
def test_certificates_are_checked_against_the_systems_store(tmp_path: Path) -> None:
    certificate = tmp_path / "certificate.pem"
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=unit"
    names = ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(tmp_path / "key.pem"), "-out", str(certificate)]
    subprocess.run([*command.split(), *names], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, tmp_path / "key.pem")
    script = """
        import asyncio, sys
        from focus_http import JsonClient
        from focus_types import ServerUnavailableError

        client = JsonClient(sys.argv[1], backend="unit", timeout=20)
        for call in (lambda: client.post("/x", b"{}"), lambda: asyncio.run(client.apost("/x", b"{}"))):
            try:
                print(call().status)
            except ServerUnavailableError as error:
                print(error.attempts, "certificate verify failed" in str(error))
    """
    with misbehaving(reply(), tls=context) as server:
        assert run_script(script, server.url).split("\n") == ["1 True", "1 True", ""]
        assert server.requests == []
        trusting = {"SSL_CERT_FILE": str(certificate)}
        assert run_script(script, server.url, env=trusting).split("\n") == ["200", "200", ""]
