"""Clients, loops, keys and closing of the chat API policies."""

from __future__ import annotations

import asyncio
import concurrent.futures
import logging
import multiprocessing
import pickle
from typing import Any

import pytest

from focus.backends import GenerateResult, OpenAIChatPolicy, OpenAIResponsesPolicy
from focus.errors import AuthenticationError, FocusError, InvalidRequestError, ProtocolError, ServerUnavailableError
from focus_testing import Fault, serve
from support.misbehaving import misbehaving, raw, reply, until

type Policies = type[OpenAIChatPolicy] | type[OpenAIResponsesPolicy]

KEY = "sk-test-12345678"
BOTH = pytest.mark.parametrize("kind", [OpenAIChatPolicy, OpenAIResponsesPolicy])


def make(kind: Policies, url: str, **changed: Any) -> OpenAIChatPolicy | OpenAIResponsesPolicy:
    return kind(model="focus", **{"api_key": KEY, "base_url": f"{url}/v1", **changed})


async def many(policy: OpenAIChatPolicy | OpenAIResponsesPolicy, count: int) -> list[GenerateResult]:
    prompt = policy.prepare([{"role": "user", "content": "Hi"}])
    return await asyncio.gather(*(policy.agenerate(prompt) for _ in range(count)))


@BOTH
def test_three_loops_one_after_the_other(kind: Policies) -> None:
    with serve(wire="openai", api_key=KEY) as server:
        policy = make(kind, server.url)
        for _ in range(3):
            assert len(asyncio.run(many(policy, 2))) == 2
            assert until(lambda: server.open_connections == 0)


@pytest.mark.anyio
@BOTH
async def test_blocking_calls_inside_a_running_loop(kind: Policies) -> None:
    with serve(wire="openai", api_key=KEY) as server:
        policy = make(kind, server.url)
        prompt = policy.prepare([{"role": "user", "content": "Hi"}])
        here, there = policy.generate(prompt), await policy.agenerate(prompt)
        assert here.stop_reason == there.stop_reason == "stop"
        await policy.aclose()
        await policy.aclose()
        assert await asyncio.to_thread(until, lambda: server.open_connections == 0)


@pytest.mark.anyio
@BOTH
async def test_200_at_once_on_200_connections(kind: Policies) -> None:
    with serve(wire="openai", api_key=KEY, fault=Fault("slow", seconds=1.0)) as server:
        policy = make(kind, server.url)
        assert len(await many(policy, 200)) == 200
        assert len({exchange.client for exchange in server.requests}) == 200
        await policy.aclose()


@BOTH
def test_close_and_use_again(kind: Policies) -> None:
    with serve(wire="openai", api_key=KEY) as server:
        policy = make(kind, server.url)
        prompt = policy.prepare([{"role": "user", "content": "Hi"}])
        for _ in range(2):
            assert policy.generate(prompt).stop_reason == "stop"
            policy.close()
            policy.close()
            assert until(lambda: server.open_connections == 0)


@pytest.mark.anyio
@BOTH
async def test_a_cancelled_task_closes_its_connection(kind: Policies) -> None:
    with serve(wire="openai", api_key=KEY, token_delay=5.0) as server:
        policy = make(kind, server.url)
        task = asyncio.create_task(policy.agenerate(policy.prepare([{"role": "user", "content": "Hi"}])))
        assert await asyncio.to_thread(until, lambda: bool(server.requests))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await asyncio.to_thread(until, lambda: server.requests[0].disconnected)
        await policy.aclose()


@BOTH
def test_a_pickled_policy_works_in_another_process(kind: Policies) -> None:
    with serve(wire="openai", api_key=KEY) as server:
        policy = make(kind, server.url)
        prompt = policy.prepare([{"role": "user", "content": "Hi"}])
        policy.generate(prompt)
        spawn = multiprocessing.get_context("spawn")
        with concurrent.futures.ProcessPoolExecutor(1, mp_context=spawn) as pool:
            assert pool.submit(policy.generate, prompt).result(120).stop_reason == "stop"
        policy.close()


def test_a_pickle_carries_a_key_only_if_it_was_an_argument(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-from-the-environment")
    with serve(wire="openai", api_key="sk-from-the-environment") as server:
        policy = make(OpenAIChatPolicy, server.url, api_key=None)
        assert policy.generate(policy.prepare([{"role": "user", "content": "Hi"}])).stop_reason == "stop"
        policy.close()
    assert b"sk-from-the-environment" not in pickle.dumps(policy)
    assert KEY.encode() in pickle.dumps(make(OpenAIChatPolicy, server.url))


@BOTH
def test_a_missing_key_is_named(kind: Policies, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    policy = kind(model="m")
    with pytest.raises(InvalidRequestError, match=r"api_key=.*OPENAI_API_KEY"):
        policy.generate(policy.prepare([{"role": "user", "content": "Hi"}]))


def test_base_url_comes_from_the_environment_unless_it_is_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    with serve(wire="openai", api_key=KEY) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
        policy = OpenAIChatPolicy(model="focus", api_key=KEY)
        assert policy.generate(policy.prepare([{"role": "user", "content": "Hi"}])).stop_reason == "stop"
        policy.close()


@BOTH
def test_the_key_is_shown_nowhere(kind: Policies, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    echo = b'{"error": {"message": "Incorrect API key provided: ' + KEY.encode() + b', or sk-proj-****wxyz"}}'
    shown: list[FocusError] = []
    policy = make(kind, "http://localhost:1")
    for act, error in (
        (reply(401, echo), AuthenticationError),
        (reply(200, echo), FocusError),
        (raw(b""), ServerUnavailableError),
        (raw(b"not http\r\n\r\n"), ProtocolError),
    ):
        with misbehaving(act) as server:
            policy = make(kind, server.url)
            with pytest.raises(error) as caught:
                policy.generate(policy.prepare([{"role": "user", "content": "Hi"}]))
            policy.close()
            assert KEY in server.requests[0].headers["authorization"]
            shown.append(caught.value)
    for one in shown:
        assert one.__context__ is None
        text = f"{one} {one!r} {vars(one)} {policy!r}"
        assert KEY not in text
        assert "wxyz" not in text
        assert KEY.encode() not in pickle.dumps(one)
    assert KEY not in caplog.text


def test_a_redirect_is_not_followed() -> None:
    with misbehaving(reply(307, b"", location="http://other.example/v1/chat/completions")) as server:
        policy = make(OpenAIChatPolicy, server.url)
        with pytest.raises(ProtocolError, match=r"redirects to other\.example"):
            policy.generate(policy.prepare([{"role": "user", "content": "Hi"}]))
        policy.close()
        assert len(server.requests) == 1


def test_nothing_listens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("focus_http.retry._RETRY_S", 1.5)
    with serve(wire="openai") as server:
        url = server.url
    policy = make(OpenAIChatPolicy, url)
    with pytest.raises(ServerUnavailableError, match="nothing was sent") as caught:
        policy.generate(policy.prepare([{"role": "user", "content": "Hi"}]))
    policy.close()
    assert caught.value.status is None
    assert caught.value.attempts > 1


def test_a_url_with_credentials_is_refused_without_showing_them() -> None:
    policy = OpenAIChatPolicy(model="m", api_key=KEY, base_url="https://user:secret@example.com/v1")
    with pytest.raises(InvalidRequestError) as caught:
        policy.generate(policy.prepare([{"role": "user", "content": "Hi"}]))
    assert "secret" not in str(caught.value)


def test_503_with_retry_after_is_sent_again() -> None:
    with serve(wire="openai", api_key=KEY, fault=Fault("status", calls={0}, status=503, retry_after=0)) as server:
        policy = make(OpenAIChatPolicy, server.url)
        result = policy.generate(policy.prepare([{"role": "user", "content": "Hi"}]))
        policy.close()
    assert result.meta is not None
    assert result.meta.attempts == 2


@BOTH
def test_what_may_have_run_is_not_sent_again(kind: Policies) -> None:
    for fault in (Fault("drop_before"), Fault("drop_after"), Fault("status", status=500)):
        with serve(wire="openai", api_key=KEY, fault=fault) as server:
            policy = make(kind, server.url)
            with pytest.raises(ServerUnavailableError):
                policy.generate(policy.prepare([{"role": "user", "content": "Hi"}]))
            policy.close()
            assert len(server.requests) == 1


OK = reply(200, b'{"choices": [{"message": {"content": "x"}, "finish_reason": "stop"}]}')


def test_a_large_conversation() -> None:
    with misbehaving(OK) as server:
        policy = make(OpenAIChatPolicy, server.url)
        assert policy.generate(policy.prepare([{"role": "user", "content": "x" * 3_000_000}])).text == "x"
        policy.close()
        (request,) = server.requests
    assert len(request.body) > 3_000_000
    assert request.headers["content-length"] == str(len(request.body))


def test_the_environments_proxy_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    with misbehaving(OK) as server:
        monkeypatch.setenv("HTTP_PROXY", server.url)
        monkeypatch.setenv("NO_PROXY", "")
        policy = make(OpenAIChatPolicy, "http://api.example")
        assert policy.generate(policy.prepare([{"role": "user", "content": "Hi"}])).text == "x"
        policy.close()
        assert server.requests[0].path == "http://api.example/v1/chat/completions"
