"""Every way a server can answer or fail, sync and async, from one table."""

from __future__ import annotations

import asyncio
import ssl
from dataclasses import dataclass, field
from email.utils import formatdate
from typing import Literal

import pytest

from focus_http import HttpReply, JsonClient
from focus_types import (
    AuthenticationError,
    BackendError,
    ContextLengthError,
    ProtocolError,
    RateLimitError,
    RequestTimeoutError,
    ServerUnavailableError,
)
from support.misbehaving import Act, cut, drop, misbehaving, raw, reply, silent, trickle

type Mode = Literal["sync", "async"]
KEY = "sk-0123456789abcdef"


def send(mode: Mode, client: JsonClient, body: bytes = b"{}") -> HttpReply:
    if mode == "sync":
        try:
            return client.post("/v1/x", body)
        finally:
            client.close()

    async def one() -> HttpReply:
        return await client.apost("/v1/x", body)

    return asyncio.run(one())


def too_long(status: int, message: str, body: bytes) -> type[BackendError] | None:
    return ContextLengthError if status == 400 and "context" in message and b"context" in body else None


@dataclass(frozen=True)
class Row:
    name: str
    acts: tuple[Act, ...]
    outcome: type[BackendError] | int
    """The error's exact class, or the status of the reply."""
    sent: int = 1
    """Requests that the server saw."""
    text: str = ""
    """Part of the message."""
    status: int | None = None
    request_id: str | None = None
    body: str | None = field(default=None)
    timeout: float = 20.0


def error(text: str) -> bytes:
    return f'{{"error": {{"message": "{text}", "type": "T", "param": null, "code": 400}}}}'.encode()


NO_WORKERS = b'{"error": {"type": "T", "code": "no_available_workers", "message": "No available workers"}}'
NO_WORKERS_404 = (
    b'{"error": {"code": "model_not_found", "message": "No worker available for model \'m\'", "param": null}}'
)
WRONG_MODEL = b'{"error": {"code": "model_not_found", "message": "The model `m` does not exist"}}'
ENVOY = b"upstream connect error or disconnect/reset before headers. reset reason: "
PAGE = b"<!DOCTYPE html><html><body>Bad gateway</body></html>"

TABLE = (
    Row("200", (reply(200, b'{"a": 1}'),), 200),
    Row("201 without a body", (reply(201, b""),), 201),
    Row("no length, ends with the connection", (raw(b"HTTP/1.1 200 OK\r\n\r\n{}"),), 200),
    Row(
        "chunked", (raw(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", keep=True),), 200
    ),
    # Never started: sent again.
    Row("429 then 200", (reply(429, b""), reply()), 200, 2),
    Row("429 with Retry-After in seconds", (reply(429, b"", retry_after="0"), reply()), 200, 2),
    Row("503 twice then 200", (reply(503, b""), reply(503, b""), reply()), 200, 3),
    Row("503 with a past Retry-After date", (reply(503, b"", retry_after=formatdate(0)), reply()), 200, 2),
    Row("503 with an unreadable Retry-After", (reply(503, b"", retry_after="soon"), reply()), 200, 2),
    Row("no workers then 200", (reply(503, NO_WORKERS), reply(404, NO_WORKERS_404), reply()), 200, 3),
    Row(
        "Retry-After beyond the deadline",
        (reply(429, error("busy"), retry_after="30"),),
        RateLimitError,
        1,
        "busy",
        429,
    ),
    Row(
        "Retry-After date beyond the deadline",
        (reply(429, b"", retry_after=formatdate(4e9)),),
        RateLimitError,
        1,
        "",
        429,
    ),
    Row(
        "503, Retry-After beyond the deadline", (reply(503, b"", retry_after="30"),), ServerUnavailableError, 1, "", 503
    ),
    Row("503, a proxy reached nobody", (reply(503, ENVOY + b"connection failure"), reply()), 200, 2),
    Row("503, a proxy is full", (reply(503, ENVOY + b"overflow"), reply()), 200, 2),
    # May have run: never sent again.
    Row(
        "503, a proxy lost the server",
        (reply(503, ENVOY + b"connection termination"), reply()),
        ServerUnavailableError,
        1,
        "connection termination",
        503,
    ),
    Row("dropped before the reply", (drop(), reply()), ServerUnavailableError, 1, "was not sent again"),
    Row("cut off in the body", (cut(b'{"a', 100), reply()), ServerUnavailableError, 1, "was not sent again"),
    Row("cut off in the header", (raw(b"HTTP/1.1 200 OK\r\nconte"), reply()), ServerUnavailableError, 1),
    Row("no reply", (silent(),), RequestTimeoutError, 1, "within 0.3 s", timeout=0.3),
    Row("trickling reply", (trickle(0.02),), RequestTimeoutError, 1, "within 0.4 s", timeout=0.4),
    Row("not HTTP", (raw(b"hello\r\n\r\n"), reply()), ProtocolError, 1, "not HTTP"),
    Row(
        "500",
        (reply(500, error("EngineCore encountered an issue")), reply()),
        ServerUnavailableError,
        1,
        "EngineCore",
        500,
    ),
    Row("500 with a page", (reply(500, PAGE),), ServerUnavailableError, 1, "a web page", 500, body=PAGE.decode()),
    Row("502", (reply(502, b""),), ServerUnavailableError, 1, "no message", 502, body=""),
    Row("408", (reply(408, b""),), RequestTimeoutError, 1, "", 408),
    Row("504", (reply(504, b""),), RequestTimeoutError, 1, "", 504),
    # Refused.
    Row("401 with a string", (reply(401, b'{"error": "Unauthorized"}'),), AuthenticationError, 1, "Unauthorized", 401),
    Row("401 that shows the key", (reply(401, error(f"bad key {KEY}")),), AuthenticationError, 1, "bad key ***", 401),
    Row("403", (reply(403, b"no"),), AuthenticationError, 1, "no (check the api_key", 403, body="no"),
    Row("404 of a path", (reply(404, b'{"detail": "Not Found"}'),), BackendError, 1, "check base_url", 404),
    Row("404 of a model", (reply(404, WRONG_MODEL),), BackendError, 1, "does not exist", 404),
    Row("405", (reply(405, b'{"detail": "Method Not Allowed"}'),), BackendError, 1, "Method Not Allowed (check", 405),
    Row("413", (reply(413, PAGE),), BackendError, 1, "larger", 413),
    Row("400 with an object", (reply(400, error("top_p must be in (0, 1]")),), BackendError, 1, "top_p must be", 400),
    Row("400, refined", (reply(400, error("longer than the context")),), ContextLengthError, 1, "context", 400),
    Row("400, flat", (reply(400, b'{"object": "error", "message": "not JSON"}'),), BackendError, 1, "not JSON", 400),
    Row("409", (reply(409, b""),), BackendError, 1, "", 409),
    Row("422 as plain text", (reply(422, b"expected i32"),), BackendError, 1, "expected i32", 422),
    Row("422 with a list", (reply(422, b'{"detail": [{"loc": ["n"], "msg": "bad"}]}'),), BackendError, 1, '"loc"', 422),
    Row("400 with a list", (reply(400, b"[1, 2]"),), BackendError, 1, "[1, 2]", 400),
    Row("400, request id in a header", (reply(400, b"", x_request_id="r-7"),), BackendError, 1, "", 400, "r-7"),
    Row(
        "400, request id in the body", (reply(400, b'{"message": "m", "id": "r-8"}'),), BackendError, 1, "", 400, "r-8"
    ),
    Row("400 with 3 MB", (reply(400, b"x" * 3_000_000),), BackendError, 1, "x", 400, body="x" * 500),
    Row(
        "redirect to another host",
        (reply(307, b"", location="http://user:pass@other.example:81/v1/x?key=1"), reply()),
        ProtocolError,
        1,
        "redirects to other.example:81;",
        307,
    ),
    Row("redirect to nowhere", (reply(302, b"", location="http://[::1"),), ProtocolError, 1, "unreadable address", 302),
    Row(
        "redirect within the host",
        (reply(302, b"", location="/login"), reply()),
        ProtocolError,
        1,
        "the same host",
        302,
    ),
)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("focus_http.retry._BACKOFF_S", 0.01)


@pytest.mark.parametrize("mode", ["sync", "async"])
@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.name)
def test_outcome(row: Row, mode: Mode) -> None:
    with misbehaving(*row.acts) as server:
        client = JsonClient(server.url, backend="unit", api_key=KEY, timeout=row.timeout, refine=too_long)
        try:
            got: HttpReply | BackendError = send(mode, client)
        except BackendError as exc:
            got = exc
        seen = server.requests
    assert len(seen) == row.sent
    assert {(one.method, one.path, one.body) for one in seen} == {("POST", "/v1/x", b"{}")}
    assert seen[0].headers["authorization"] == f"Bearer {KEY}"
    assert got.attempts == row.sent
    if isinstance(row.outcome, int):
        assert isinstance(got, HttpReply)
        assert got.status == row.outcome
        return
    assert type(got) is row.outcome
    assert row.text in str(got)
    assert f"unit (POST {server.url}/v1/x)" in str(got)
    assert got.status == row.status
    assert got.request_id == row.request_id
    if row.body is not None:
        assert got.body == row.body
    assert KEY not in f"{got!r} {got.body}"
    assert got.__context__ is None


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_nothing_listens(mode: Mode) -> None:
    with misbehaving(reply()) as server:
        url = server.url
    with pytest.raises(ServerUnavailableError, match="nothing was sent") as caught:
        send(mode, JsonClient(url, backend="unit", api_key=KEY, timeout=0.3))
    assert caught.value.attempts > 1
    assert isinstance(caught.value.__cause__, ConnectionRefusedError)
    assert caught.value.status is None


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_a_name_that_nobody_knows_is_tried_again_until_the_deadline(mode: Mode) -> None:
    with pytest.raises(ServerUnavailableError, match="nothing was sent") as caught:
        send(mode, JsonClient("http://nowhere.invalid:8000", backend="unit", timeout=1))
    assert caught.value.attempts > 1


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_without_a_deadline_trying_again_has_a_limit_of_its_own(
    mode: Mode, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("focus_http.retry._RETRY_S", 0.3)
    caplog.set_level("INFO", "focus")
    with misbehaving(reply(503, error("full"))) as server, pytest.raises(ServerUnavailableError) as caught:
        send(mode, JsonClient(server.url, backend="unit"))
    assert caught.value.attempts == len(server.requests) > 1
    assert caught.value.__notes__[0].startswith(f"after {len(server.requests)} attempts in 0.")
    assert len(caplog.messages) == len(server.requests) - 1
    assert "attempt 1: unit (POST" in caplog.messages[0]


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_tls_to_a_server_without_it_is_not_tried_again(mode: Mode) -> None:
    with misbehaving(raw(b"HTTP/1.1 400 Bad Request\r\n\r\n")) as server:
        client = JsonClient(server.url.replace("http:", "https:"), backend="unit", timeout=20)
        with pytest.raises(ServerUnavailableError, match="nothing was sent") as caught:
            send(mode, client)
        assert server.connections == 1
    assert caught.value.attempts == 1
    assert isinstance(caught.value.__cause__, ssl.SSLError)


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_a_host_that_cannot_be_reached_in_time_is_told_from_a_server_that_does_not_answer(mode: Mode) -> None:
    with misbehaving(silent()) as server:
        client = JsonClient(server.url.replace("http:", "https:"), backend="unit", timeout=0.4)
        with pytest.raises(ServerUnavailableError, match="no connection in time; nothing was sent"):
            send(mode, client)


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_get(mode: Mode) -> None:
    async def one(client: JsonClient) -> HttpReply:
        return await client.aget("/v1/models", timeout=5, retry=False)

    with misbehaving(reply(200, b"[]")) as server:
        client = JsonClient(server.url, backend="unit")
        got = client.get("/v1/models", timeout=5, retry=False) if mode == "sync" else asyncio.run(one(client))
        client.close()
    assert got.body == b"[]"
    assert [(one.method, one.path, one.body) for one in server.requests] == [("GET", "/v1/models", b"")]


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_retrying_can_be_turned_off(mode: Mode) -> None:
    with misbehaving(reply(503), reply()) as server, pytest.raises(ServerUnavailableError) as caught:
        send(mode, JsonClient(server.url, backend="unit", retry=False))
    assert caught.value.attempts == 1
    assert len(server.requests) == 1


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_retry_after_is_waited_for(mode: Mode) -> None:
    with misbehaving(reply(503, b"", retry_after="1"), reply()) as server:
        got = send(mode, JsonClient(server.url, backend="unit"))
    assert got.attempts == 2
    assert got.latency_s >= 1


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_a_large_body_travels_both_ways(mode: Mode) -> None:
    large = b'"' + b"x" * 100_000_000 + b'"'
    with misbehaving(reply(200, large)) as server:
        got = send(mode, JsonClient(server.url, backend="unit", timeout=60), b"[" + b"1," * 2_000_000 + b"1]")
        assert len(server.requests[0].body) == 4_000_003
    assert got.body == large


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_headers_of_the_caller_are_sent_and_cookies_are_not_kept(mode: Mode) -> None:
    with misbehaving(reply(200, b"{}", set_cookie="a=b; Path=/", X_Thing="Y")) as server:
        client = JsonClient(f"{server.url}/prefix/", backend="unit", headers={"X-Route": "east"})
        assert send(mode, client).headers["x-thing"] == "Y"
        send(mode, client)
    first, second = server.requests
    assert first.path == "/prefix/v1/x"
    assert first.headers["x-route"] == "east"
    assert first.headers["content-type"] == "application/json"
    assert first.headers["accept-encoding"] == "identity"
    assert "cookie" not in second.headers
