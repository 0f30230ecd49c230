"""A client that the caller gives, and what it may answer."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from focus_critic import VLLMCritic, score
from focus_types import (
    AuthenticationError,
    BackendError,
    InvalidRequestError,
    ProtocolError,
    ScoringError,
    ServerUnavailableError,
)
from support.value_model import MODEL, FakeClient, Reply, known, pooling, token_ids

__all__: list[str] = []

pytestmark = pytest.mark.anyio


def critic_with(client: Any, **options: Any) -> VLLMCritic:
    return VLLMCritic(base_url="http://server/", model=MODEL, client=client, **options)


async def test_an_httpx_client_stays_the_callers() -> None:
    with pooling() as server:
        async with httpx.AsyncClient() as client:
            critic = VLLMCritic(base_url=server.url, model=MODEL, client=client, reduce="mean", api_key="sesame-1")
            texts = ["The agent solved it.", "日本語"]
            expected = [known(token_ids(text), "mean") for text in texts]
            assert await critic.predict(texts) == pytest.approx(expected, abs=1e-6)
            await critic.aclose()
            assert not client.is_closed
            assert await score(critic, texts) == pytest.approx(expected, abs=1e-6)
        assert {request.headers["authorization"] for request in server.requests} == {"Bearer sesame-1"}
        assert {request.path for request in server.requests} == {"/pooling"}


async def test_what_the_client_is_given() -> None:
    client = FakeClient()
    await critic_with(client, api_key="k-1", http_timeout=7.0).predict(["ab"])
    assert client.requests == [
        ("http://server/pooling", ((0, 0), (0,)), {"Authorization": "Bearer k-1"}, 7.0),
        ("http://server/pooling", ["ab"], {"Authorization": "Bearer k-1"}, 7.0),
    ]


def item(data: Any, index: int = 0) -> dict[str, Any]:
    return {"index": index, "object": "pooling", "data": data}


@pytest.mark.parametrize(
    ("reply", "kind", "complaint"),
    [
        (Reply({}), ProtocolError, "missing required field `data`"),
        (Reply([]), ProtocolError, "Expected `object`"),
        (Reply(None), ProtocolError, "Expected `object`"),
        (Reply({"data": []}), ProtocolError, r"1 contexts with items \[\]"),
        (Reply({"data": [item([[1.0]]), item([[1.0]], 1)]}), ProtocolError, r"1 contexts with items \[0, 1\]"),
        (Reply({"data": [item([[1.0]], 7)]}), ProtocolError, r"1 contexts with items \[7\]"),
        (Reply({"data": [item([])]}), ProtocolError, "no number for context 0"),
        (Reply({"data": [item("")]}), ProtocolError, "no number for context 0"),
        (Reply({"data": [item("AAA")]}), ProtocolError, "not base64 of float32"),
        (Reply({"data": [item("AAAA")]}), ProtocolError, "not base64 of float32"),
        (Reply({"data": [item("ÄÄÄÄ")]}), ProtocolError, "not base64 of float32"),
        (Reply({"data": [item(None)]}), ProtocolError, r"\$\.data\[0\]\.data"),
        (Reply({"data": [item(["high"])]}), ProtocolError, r"\$\.data\[0\]\.data"),
        (Reply({"data": [item([[1.0, 2.0]])]}), ProtocolError, "2 numbers per token"),
        (Reply({"data": [item([[]])]}), ProtocolError, "0 numbers per token"),
        (
            Reply({"data": [item([[1.0]])], "usage": {"prompt_tokens": 3}}),
            ProtocolError,
            "1 numbers where one per token is 3",
        ),
        (Reply(json.JSONDecodeError("no JSON", "<html>", 0)), ProtocolError, "it is empty"),
        (Reply({"error": "Unauthorized"}, 401), AuthenticationError, "check the api_key"),
        (Reply({"detail": "Not Found"}, 404), BackendError, "404: Not Found"),
        (Reply(json.JSONDecodeError("no JSON", "<html>", 0), 502), ServerUnavailableError, "502"),
    ],
)
async def test_an_answer_that_is_none(reply: Reply, kind: type[BackendError], complaint: str) -> None:
    critic = critic_with(FakeClient(answers={"context": reply}))
    with pytest.raises(kind, match=complaint):
        await critic.predict(["context"])
    with pytest.raises(ScoringError, match="the critic failed") as caught:
        await score(critic, ["context"])
    assert isinstance(caught.value.__cause__, kind)


@pytest.mark.parametrize("data", [[[1.0], [None]], [[1.0], None], "AACAPwAAwH8=", "AACAPwAAgH8="])
async def test_a_value_that_is_no_finite_number_is_named(data: Any) -> None:
    good = item([[0.5]])
    reply = Reply({"data": [good, item(data, 1)], "usage": {"prompt_tokens": 3}})
    with pytest.raises(ScoringError, match=r"the prediction for context 1 is (nan|inf)") as caught:
        await critic_with(FakeClient(answers={"context": reply})).predict(["context", "other"])
    assert caught.value.index == 1
    assert caught.value.values == (0.5, None)


async def test_a_key_that_is_echoed_is_not_shown() -> None:
    echo = Reply({"error": {"message": "Incorrect API key provided: sesame-123"}}, 401)
    critic = critic_with(FakeClient(answers={"context": echo}), api_key="sesame-123")
    with pytest.raises(AuthenticationError, match=r"provided: \*\*\*") as caught:
        await critic.predict(["context"])
    assert "sesame-123" not in f"{caught.value.body}{critic!r}"


@pytest.mark.parametrize("changed", [{"base_url": None}, {"base_url": "server"}, {"api_key": "line\nbreak"}])
async def test_an_address_or_a_key_that_cannot_be_sent(changed: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequestError):
        VLLMCritic(**{"base_url": "http://server", "model": MODEL, "client": FakeClient(), **changed})


async def test_items_in_another_order() -> None:
    reply = Reply({"data": [item([[1.5]], 1), item([[0.5]], 0)]})
    assert await critic_with(FakeClient(answers={"context": reply})).predict(["context", "other"]) == [0.5, 1.5]


async def test_an_error_of_the_client_itself_passes() -> None:
    class Broken(FakeClient):
        async def post(self, url: str, *, json: dict[str, Any], headers: dict[str, str], timeout: float) -> Reply:
            raise httpx.ConnectError("refused")

    with pytest.raises(httpx.ConnectError):
        await critic_with(Broken()).predict(["a"])
    with pytest.raises(ScoringError, match="the critic failed: ConnectError: refused"):
        await score(critic_with(Broken()), ["a"])
