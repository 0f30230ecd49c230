"""What `startup_check` says of each kind of server, in words that tell what to change."""

from __future__ import annotations

import socket
from typing import Any, Literal

import pytest

from focus_critic import VLLMCritic
from focus_testing import Fault, serve
from focus_types import (
    AuthenticationError,
    BackendError,
    InvalidRequestError,
    ProtocolError,
    ServerReport,
    ServerUnavailableError,
)
from support.value_model import CONTEXT, MODEL, FakeClient, Reply, pooling

__all__: list[str] = []

pytestmark = pytest.mark.anyio


async def check(base_url: str, **options: Any) -> ServerReport:
    critic = VLLMCritic(base_url=base_url, **{"model": MODEL} | options)
    try:
        return await critic.startup_check()
    finally:
        await critic.aclose()


async def test_a_server_as_it_should_be() -> None:
    with pooling() as server:
        assert await check(server.url, reduce="mean") == ServerReport(
            backend="vllm",
            url=server.url,
            served_models=("focus",),
            context_length=CONTEXT,
            notes=("one value per token: every reduce and values_at",),
        )


async def test_a_server_that_pools_by_itself() -> None:
    with pooling("classify") as server:
        report = await check(server.url)
        assert report.notes == (
            "one value per context: reduce='last' alone;"
            """ --pooler-config '{"task": "token_classify"}' gives one per token""",
        )
        with pytest.raises(InvalidRequestError, match=r"reduce='sum' needs one value per token.*--pooler-config"):
            await check(server.url, reduce="sum")


async def test_nobody_listens() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with pytest.raises(ServerUnavailableError, match="Is the server running"):
        await check(f"http://127.0.0.1:{port}")


async def test_an_address_with_v1() -> None:
    with pooling() as server, pytest.raises(BackendError, match=r"/v1 is not the root of a vLLM server.*without /v1"):
        await check(f"{server.url}/v1")


async def test_a_web_page() -> None:
    with (
        pooling(fault=Fault("html", path="/v1/models")) as server,
        pytest.raises(BackendError, match=r"is not the root of a vLLM server.*web page"),
    ):
        await check(server.url)


async def test_another_model() -> None:
    with pooling() as server, pytest.raises(BackendError, match="serves focus, not critic: pass its name as model="):
        await check(server.url, model="critic")


@pytest.mark.parametrize("wire", ["vllm", "sglang"])
async def test_a_server_that_generates(wire: Literal["vllm", "sglang"]) -> None:
    with (
        serve(wire=wire) as server,
        pytest.raises(BackendError, match="serves focus, but not for pooling: start it with --runner pooling"),
    ):
        await check(server.url)


async def test_a_wrong_key() -> None:
    with pooling(api_key="sesame-1") as server:
        with pytest.raises(AuthenticationError, match="check the api_key") as caught:
            await check(server.url, api_key="sesame-2")
        assert "sesame" not in str(caught.value)
        assert (await check(server.url, api_key="sesame-1")).served_models == ("focus",)


@pytest.mark.parametrize(
    ("labels", "pooled", "complaint"),
    [
        (3, True, "gives 3 numbers per context: a value model gives one"),
        (1024, True, "gives 1024 numbers per context"),
        (51, False, "gives 51 numbers per token"),
        (2, False, "gives 2 numbers per token"),
    ],
)
async def test_a_model_that_is_no_value_model(labels: int, pooled: bool, complaint: str) -> None:
    client = FakeClient(labels=labels, pooled=pooled)
    with pytest.raises(ProtocolError, match=complaint):
        await check("http://server", client=client)
    with pytest.raises(ProtocolError, match=complaint):
        await VLLMCritic(base_url="http://server", model=MODEL, client=client).predict(["abc"])


async def test_an_injected_client_is_asked_for_predictions_alone() -> None:
    report = await check("http://server", client=FakeClient())
    assert (report.served_models, report.context_length) == ((), None)


async def test_counts_of_no_known_server() -> None:
    class Odd(FakeClient):
        async def post(self, url: str, *, json: dict[str, Any], headers: dict[str, str], timeout: float) -> Reply:
            return Reply({"data": [{"index": 0, "data": [1, 2, 3]}, {"index": 1, "data": [1, 2]}]})

    with pytest.raises(ProtocolError, match="contexts of 2 tokens and 1 token with 3 and 2 numbers"):
        await check("http://server", client=Odd())
