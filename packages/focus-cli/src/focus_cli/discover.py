"""What a server says about its model: the name it goes by, and the tokenizer it was started with."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from focus_types import BackendError, InvalidRequestError

__all__ = ["ServedModel", "ask_model", "ask_sglang", "root_of"]

_TIMEOUT_S = 30.0


class ServedModel(NamedTuple):
    """One model of a server."""

    name: str
    tokenizer: str | None
    """What the server loaded it from, in its own words; a folder may exist on its machine only."""


class _Card(msgspec.Struct):
    id: str
    root: str | None = None
    parent: str | None = None
    owned_by: str | None = None


class _Cards(msgspec.Struct):
    data: list[_Card]


class _ModelInfo(msgspec.Struct):
    model_path: str | None = None
    served_model_name: str | None = None
    tokenizer_path: str | None = None


def root_of(url: str) -> str:
    """A server's address without a trailing ``/v1``, so that users may give either."""
    return url.rstrip("/").removesuffix("/v1")


def ask_model(url: str, key: str | None, wanted: str | None) -> ServedModel:
    """The model of a vLLM server, generating or pooling.

    Args:
        url: With or without ``/v1``.
        key: The server's key.
        wanted: A served name; None takes the only model that is no adapter.

    Raises:
        InvalidRequestError: It serves several models and none was named, or not the one that was.
        BackendError: It does not answer, or not as a vLLM server.
    """
    from focus_http import JsonClient, decode_json

    client = JsonClient(root_of(url) + "/v1", backend="vLLM", api_key=key, timeout=_TIMEOUT_S, retry=False)
    try:
        cards = decode_json(client.get("/models"), _Cards, backend="vLLM").data
    finally:
        client.close()
    if any(card.owned_by == "sglang" for card in cards):
        raise BackendError(f"{root_of(url)} is an SGLang server: use --backend sglang")
    names = ", ".join(card.id for card in cards) or "no model"
    if wanted is None:
        cards = [card for card in cards if card.parent is None]
        if len(cards) != 1:
            raise InvalidRequestError(f"{root_of(url)} serves {names}: choose one with --served-model")
        return ServedModel(cards[0].id, cards[0].root)
    card = next((card for card in cards if card.id == wanted), None)
    if card is None:
        raise InvalidRequestError(f"{root_of(url)} serves {names}, not {wanted!r}: change --served-model")
    # An adapter's root is the adapter; its tokenizer is that of the model it belongs to.
    base = next((one for one in cards if one.id == card.parent), card)
    return ServedModel(card.id, base.root)


def ask_sglang(url: str, key: str | None) -> ServedModel:
    """The model of an SGLang server or router.

    Raises:
        BackendError: It does not answer, or not as an SGLang server.
    """
    from focus_http import JsonClient, decode_json

    client = JsonClient(root_of(url), backend="SGLang", api_key=key, timeout=_TIMEOUT_S, retry=False)
    try:
        try:
            reply = client.get("/model_info")
        except BackendError as error:
            if error.status != 404:
                raise
            reply = client.get("/get_model_info")
    except BackendError as error:
        if error.status == 404:
            raise BackendError(f"{root_of(url)} has no /model_info, so it is no SGLang server", status=404) from error
        raise
    finally:
        client.close()
    info = decode_json(reply, _ModelInfo, backend="SGLang")
    tokenizer = info.tokenizer_path or info.model_path
    return ServedModel(info.served_model_name or info.model_path or "", tokenizer)
