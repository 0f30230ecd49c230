"""What a start-up check says about a key, an address and a model that are wrong."""

from __future__ import annotations

import json
import warnings
from typing import Any

import pytest

from focus.backends import OpenAIChatPolicy, OpenAIResponsesPolicy, SamplingParams
from focus.errors import (
    AuthenticationError,
    BackendError,
    InvalidRequestError,
    ProtocolError,
    RateLimitError,
    RequestTimeoutError,
    ServerUnavailableError,
)
from focus_openai import native
from focus_testing import Fault, serve
from focus_testing.server import Server
from support.misbehaving import misbehaving, reply, silent

type Policies = type[OpenAIChatPolicy] | type[OpenAIResponsesPolicy]

KEY = "sk-test-12345678"
PATHS = [(OpenAIChatPolicy, "/v1/chat/completions"), (OpenAIResponsesPolicy, "/v1/responses")]
BOTH = pytest.mark.parametrize(("kind", "path"), PATHS)


def check(kind: Policies, server: Server, **changed: Any) -> None:
    policy = kind(**{"model": "focus", "api_key": KEY, "base_url": f"{server.url}/v1", **changed})
    try:
        policy.startup_check()
    finally:
        policy.close()


@BOTH
def test_a_server_as_it_should_be(kind: Policies, path: str) -> None:
    with serve(wire="openai", api_key=KEY) as server, warnings.catch_warnings():
        warnings.simplefilter("error")
        check(kind, server, default_params=SamplingParams(max_tokens=2000, temperature=0.2))
    assert [(exchange.method, exchange.path) for exchange in server.requests] == [("GET", "/v1/models"), ("POST", path)]
    sent = server.requests[1].body
    assert sent.get("max_completion_tokens", sent.get("max_output_tokens")) == 16
    assert sent["temperature"] == 0.2


@BOTH
def test_a_wrong_key(kind: Policies, path: str) -> None:
    wrong = pytest.raises(AuthenticationError, match="OPENAI_API_KEY")
    with serve(wire="openai", api_key="another-key-1") as server, wrong as caught:
        check(kind, server)
    assert caught.value.status == 401
    assert KEY not in f"{caught.value!r}{caught.value.body}"


@BOTH
def test_a_wrong_model(kind: Policies, path: str) -> None:
    wrong = pytest.raises(BackendError, match="serves served, not focus: pass its name as model=")
    with serve(wire="openai", model="served", api_key=KEY) as server, wrong as caught:
        check(kind, server)
    assert caught.value.status == 404


@BOTH
def test_an_address_without_v1(kind: Policies, path: str) -> None:
    wrong = pytest.raises(BackendError, match=r"Nothing answers there: .* end in /v1")
    with serve(wire="openai", api_key=KEY) as server, wrong as caught:
        check(kind, server, base_url=server.url)
    assert caught.value.status == 404


@BOTH
def test_a_server_without_this_api(kind: Policies, path: str) -> None:
    missing = Fault("status", path=path, status=404)
    wrong = pytest.raises(BackendError, match="has the model focus, but not this API: use another policy")
    with serve(wire="openai", api_key=KEY, fault=missing) as server, wrong:
        check(kind, server)


@BOTH
def test_a_server_without_a_list_of_models(kind: Policies, path: str) -> None:
    for status in (403, 404, 501):
        with serve(wire="openai", api_key=KEY, fault=Fault("status", path="/v1/models", status=status)) as server:
            check(kind, server)
        assert [exchange.path for exchange in server.requests] == ["/v1/models", path]


@pytest.mark.parametrize(
    "listed",
    [
        b'{"data": [{"id": "org/m"}, {"id": "other"}]}',
        b'[{"id": "other"}]',
        b'{"data": null}',
        b'{"data": [{"id": 3}]}',
        b"<html></html>",
        b"",
    ],
)
def test_a_model_that_is_not_listed_and_answers(listed: bytes) -> None:
    message = {"role": "assistant", "content": "Hi"}
    answer = json.dumps({"choices": [{"message": message, "finish_reason": "stop"}]}).encode()
    with misbehaving(reply(200, listed), reply(200, answer)) as server:
        policy = OpenAIChatPolicy(model="m", api_key=KEY, base_url=server.url)
        policy.startup_check()
        policy.close()
    assert [request.path for request in server.requests] == ["/models", "/chat/completions"]


def test_a_web_page() -> None:
    page = reply(200, b"<html></html>")
    with misbehaving(page, page) as server:
        policy = OpenAIChatPolicy(model="m", api_key=KEY, base_url=server.url)
        with pytest.raises(ProtocolError, match="base_url may lead to something other"):
            policy.startup_check()
        policy.close()


@BOTH
def test_a_model_that_fixes_its_sampling(kind: Policies, path: str) -> None:
    with serve(wire="openai", api_key=KEY, locked_sampling=True) as server:
        with pytest.raises(BackendError, match="pass locked_sampling=True"):
            check(kind, server)
        check(kind, server, locked_sampling=True)


def test_nobody_listens_is_told_at_once() -> None:
    with serve(wire="openai") as server:
        pass
    with pytest.raises(ServerUnavailableError, match="Is the server running"):
        check(OpenAIChatPolicy, server)


def test_a_silent_server_is_not_waited_for_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "_PATIENCE_S", 0.2)
    with misbehaving(silent()) as server:
        policy = OpenAIChatPolicy(model="m", api_key=KEY, base_url=server.url)
        with pytest.raises(RequestTimeoutError, match=r"no reply to the start-up check within 0\.2 s"):
            policy.startup_check()
        policy.close()


@pytest.mark.parametrize(
    ("status", "message", "told"),
    [
        (400, "org/gone is not a valid model ID", True),
        (400, "max_completion_tokens is too small", False),
        (404, "no such thing", True),
    ],
)
def test_the_served_models_are_named_where_the_model_is_at_fault(status: int, message: str, told: bool) -> None:
    names = [{"id": "m9"}, {"id": "m10"}, {"id": KEY}]
    refusal = json.dumps({"error": {"message": message}}).encode()
    with misbehaving(reply(200, json.dumps({"data": names}).encode()), reply(status, refusal)) as server:
        policy = OpenAIChatPolicy(model="org/gone", api_key=KEY, base_url=server.url)
        with pytest.raises(BackendError) as caught:
            policy.startup_check()
        policy.close()
    assert ("The server serves m9, m10, ***, not org/gone" in str(caught.value)) is told


def test_no_money_is_told_as_it_is() -> None:
    quota = b'{"error": {"message": "You exceeded your current quota.", "code": "insufficient_quota"}}'
    with misbehaving(reply(200, b'{"data": [{"id": "m"}]}'), reply(429, quota)) as server:
        policy = OpenAIChatPolicy(model="m", api_key=KEY, base_url=server.url)
        with pytest.raises(RateLimitError, match="quota"):
            policy.startup_check()
        policy.close()


def test_a_missing_key_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(InvalidRequestError, match=r"api_key=.*OPENAI_API_KEY"):
        OpenAIChatPolicy(model="m").startup_check()


@pytest.mark.anyio
async def test_inside_a_running_loop() -> None:
    with serve(wire="openai", api_key=KEY) as server:
        policy = OpenAIChatPolicy(model="focus", api_key=KEY, base_url=f"{server.url}/v1")
        policy.startup_check()
        await policy.aclose()
