"""The real SDK against a service on loopback: refusals, silence, and nobody there."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from focus_format import PolicyFormat
from focus_tinker import TinkerPolicy, probing, service
from focus_types import AuthenticationError, BackendError, ContextLengthError, ServerUnavailableError
from support.tinker_service import API_KEY, client_of, serving

MODELS = (200, {"supported_models": [{"model_name": "tiny", "max_context_length": 100}, {"model_name": "other"}]})


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "CONTACT_TIMEOUT", 1.0)
    monkeypatch.setattr(probing, "_PATIENCE", 1.0)
    monkeypatch.setenv("TINKER_TELEMETRY", "0")


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        ((401, {"detail": f"bad key {API_KEY}"}), AuthenticationError),
        ((400, {"detail": "exceeds the model's context window: 9 > 8"}), ContextLengthError),
        ((422, {"detail": "no"}), BackendError),
    ],
)
def test_refusals_are_typed_and_hold_no_key(
    hermes: PolicyFormat[Any], answer: tuple[int, Any], kind: type[BackendError]
) -> None:
    with serving(asample=answer) as live, client_of(live.url) as client, pytest.raises(kind) as caught:
        TinkerPolicy(client, model="tiny", format=hermes).generate_tokens([5])
    assert type(caught.value) is kind
    assert (caught.value.status, caught.value.request_id) == (answer[0], "req-1")
    assert API_KEY not in f"{caught.value} {caught.value.body} {caught.value!r}"
    assert caught.value.__cause__ is not None


@pytest.mark.anyio
async def test_a_call_on_a_silent_service_ends_with_its_timeout(hermes: PolicyFormat[Any]) -> None:
    with serving(asample=None) as live, client_of(live.url) as client:
        policy = TinkerPolicy(client, model="tiny", format=hermes)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.5):
                await policy.agenerate_tokens([5])
    assert live.asked.count("asample") == 1


def test_startup_check_on_a_wrong_key(hermes: PolicyFormat[Any]) -> None:
    with serving(get_server_capabilities=(401, {"detail": "no"})) as live, client_of(live.url) as client:
        policy = TinkerPolicy(client, model="tiny", format=hermes)
        with pytest.raises(AuthenticationError):
            policy.startup_check()
    assert "asample" not in live.asked


def test_startup_check_where_nobody_listens(hermes: PolicyFormat[Any]) -> None:
    with serving() as gone:
        pass
    with client_of(gone.url) as client:
        policy = TinkerPolicy(client, model="tiny", format=hermes)
        with pytest.raises(ServerUnavailableError, match=f"{gone.url} gave no answer within 1 s"):
            policy.startup_check()


def test_startup_check_where_no_sample_comes(hermes: PolicyFormat[Any]) -> None:
    with serving(get_server_capabilities=MODELS, asample=None) as live, client_of(live.url) as client:
        policy = TinkerPolicy(client, model="tiny", format=hermes)
        with pytest.raises(ServerUnavailableError, match="no sample within 1 s"):
            policy.startup_check()


def contacted(url: str) -> service.Service | None:
    with client_of(url) as client:
        return asyncio.run(service.contact(client))


def test_a_service_says_its_models_and_context() -> None:
    with serving(get_server_capabilities=MODELS) as live:
        assert contacted(live.url) == service.Service(live.url, ("tiny", "other"), 100)


def test_a_service_without_that_question_still_lives() -> None:
    with serving(get_server_capabilities=(404, {"detail": "Not Found"})) as live:
        assert contacted(live.url) == service.Service(live.url, (), None)


def test_the_url_never_holds_credentials() -> None:
    with serving(get_server_capabilities=MODELS) as live:
        found = contacted(live.url.replace("//", "//me:secret@"))
    assert found is not None
    assert found.url == live.url
