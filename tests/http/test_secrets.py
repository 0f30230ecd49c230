"""No key or header value in anything that a client shows."""

from __future__ import annotations

import asyncio
import logging
import pickle
import traceback
from collections.abc import Iterator

import pytest

from focus_http import HttpReply, JsonClient, decode_json, error_for
from focus_types import BackendError, InvalidRequestError, ProtocolError
from support.misbehaving import Act, cut, drop, misbehaving, raw, reply, silent

KEY = "sk-0123456789abcdef"
TOKEN = "gateway-token-42"
ECHO = f'{{"error": {{"message": "you sent Bearer {KEY} and {TOKEN}", "id": "{KEY}"}}}}'.encode()
ACTS = {
    "401": reply(401, ECHO),
    "400": reply(400, ECHO),
    "500 in plain text": reply(500, f"x-gateway: {TOKEN}, authorization: Bearer {KEY}".encode()),
    "key at the edge of the excerpt": reply(400, b"x" * 495 + KEY.encode() + b"y" * 600),
    "key at the edge of the message": reply(400, b'{"message": "' + b"x" * 995 + KEY.encode() + b'"}'),
    "key in a redirect": reply(307, ECHO, location=f"http://{KEY}@other/?key={KEY}"),
    "key in the request id": reply(400, b"{}", x_request_id=KEY),
    "dropped": drop(),
    "cut": cut(KEY.encode(), 1000),
    "not HTTP": raw(f"{KEY} {TOKEN}\r\n\r\n".encode()),
    "silent": silent(),
}


def client_for(url: str) -> JsonClient:
    return JsonClient(url, backend="unit", api_key=KEY, headers={"X-Gateway": TOKEN}, timeout=0.5)


def chain(exc: BaseException | None) -> Iterator[BaseException]:
    while exc is not None:
        yield exc
        yield from chain(exc.__context__)
        exc = exc.__cause__


def shown(exc: BaseException) -> str:
    """Everything that a log or a debugger prints of an error."""
    parts = ["".join(traceback.format_exception(exc))]
    for one in chain(exc):
        parts += [str(one), repr(one), repr(one.args), repr(vars(one)), repr(pickle.dumps(one))]
    return "\n".join(parts)


@pytest.mark.parametrize("name", ACTS)
def test_errors_show_no_secret(name: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    caught: list[BackendError] = []

    async def one(client: JsonClient) -> None:
        await client.apost("/x", b"{}")

    with misbehaving(ACTS[name]) as server:
        client = client_for(server.url)
        for attempt in (lambda: client.post("/x", b"{}"), lambda: asyncio.run(one(client))):
            with pytest.raises(BackendError) as info:
                attempt()
            caught.append(info.value)
        client.close()
    for exc in caught:
        text = shown(exc)
        assert KEY not in text
        assert KEY[:12] not in text
        assert TOKEN not in text
        again = pickle.loads(pickle.dumps(exc))
        assert (type(again), str(again), vars(again)) == (type(exc), str(exc), vars(exc))


def test_a_refused_connection_shows_no_secret() -> None:
    with misbehaving(reply()) as server:
        url = server.url
    client = client_for(url)

    async def one() -> None:
        await client.apost("/x", b"{}")

    for attempt in (lambda: client.post("/x", b"{}"), lambda: asyncio.run(one())):
        with pytest.raises(BackendError) as info:
            attempt()
        assert isinstance(info.value.__cause__, ConnectionRefusedError)
        assert KEY not in shown(info.value)
        assert TOKEN not in shown(info.value)


def test_a_reply_that_echoes_the_request_shows_no_secret() -> None:
    page = f"<html>Authorization: Bearer {KEY}</html>".encode()
    act: Act = reply(200, page)
    with misbehaving(act) as server:
        client = client_for(server.url)
        got = client.post("/x", b"{}")
        client.close()
    assert got.body == page
    with pytest.raises(ProtocolError, match="web page") as info:
        decode_json(got, list[int], backend="unit")
    assert info.value.body == "<html>Authorization: ***</html>"
    assert KEY not in shown(info.value)
    assert KEY not in str(error_for(HttpReply(400, {}, page, 1, 0.0, got.redact), backend="unit"))


def test_representations_show_no_secret() -> None:
    client = client_for("http://host:8000/")
    assert repr(client) == "JsonClient('http://host:8000', backend='unit')"
    assert client.base_url == "http://host:8000"
    assert KEY not in f"{client} {vars(client)}"
    assert TOKEN not in f"{client} {vars(client)}"


def test_values_too_short_to_be_secret_leave_messages_readable() -> None:
    with misbehaving(reply(400, b"an error at 1")) as server:
        client = JsonClient(server.url, backend="unit", api_key="1", headers={"X-Rank": "an"})
        with pytest.raises(BackendError, match="an error at 1"):
            client.post("/x", b"{}")
        client.close()


@pytest.mark.parametrize(
    ("headers", "name"),
    [
        ({"X-Token": f"{KEY}\n"}, "X-Token"),
        ({"X-Token": f"a\r\n{KEY}: b"}, "X-Token"),
        ({"X-Token": f"{KEY}é"}, "X-Token"),
        ({"X-Token": f"{KEY}\u4e2d"}, "X-Token"),
        ({"X-Token": f"\x00{KEY}"}, "X-Token"),
        ({"X-Token": f" {KEY}"}, "X-Token"),
        ({"X-Token": ""}, "X-Token"),
        ({"X Token": KEY}, "X Token"),
        ({"": KEY}, "header name"),
        ({"Content-Length": KEY}, "Content-Length"),
        ({"Authorization": KEY}, "Authorization"),
    ],
)
def test_headers_that_cannot_be_sent_are_refused_by_name(headers: dict[str, str], name: str) -> None:
    with pytest.raises(InvalidRequestError, match=name) as info:
        JsonClient("http://host", backend="unit", api_key="EMPTY", headers=headers)
    assert KEY not in shown(info.value)


@pytest.mark.parametrize("key", [f"{KEY}\n", f" {KEY}", "", f"{KEY}\u2028", b"bytes", 7])
def test_keys_that_cannot_be_sent_are_refused(key: str) -> None:
    with pytest.raises(InvalidRequestError, match="api_key") as info:
        JsonClient("http://host", backend="unit", api_key=key)
    assert KEY not in shown(info.value)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "localhost:8000",
        "ftp://host",
        "http://",
        "http://:8000",
        "http://host:port",
        "http://host:99999",
        f"http://user:{KEY}@host",
        f"http://{KEY}@host",
        f"http://user:{KEY}@host:port",
        f"http://host?key={KEY}",
        f"http://host#{KEY}",
        "http://ho st",
        "http://host\n",
        "http://hôst",
        "http://[::1",
        "http://a..b",
        f"http://{'a' * 64}.example",
        None,
        8000,
    ],
)
def test_addresses_that_cannot_work_are_refused(url: str) -> None:
    with pytest.raises(InvalidRequestError, match="base_url") as info:
        JsonClient(url, backend="unit")
    assert KEY not in shown(info.value)


@pytest.mark.parametrize("timeout", [0, -1, float("inf"), float("nan"), True, "5"])
def test_deadlines_that_are_none_are_refused(timeout: float) -> None:
    with pytest.raises(InvalidRequestError, match="timeout"):
        JsonClient("http://host", backend="unit", timeout=timeout)
    with pytest.raises(InvalidRequestError, match="timeout"):
        JsonClient("http://host", backend="unit").post("/x", b"{}", timeout=timeout)
