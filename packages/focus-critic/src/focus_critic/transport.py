"""How requests reach the server: through a client of our own, or through the caller's."""

from __future__ import annotations

from typing import Any, Protocol, override

import msgspec

from focus_critic.pooling import PoolingReply
from focus_http import HttpReply, JsonClient, decode_json, encode_json, error_for
from focus_http.endpoint import Endpoint
from focus_types import BackendError, ContextLengthError, InvalidRequestError

__all__ = ["CallerTransport", "OwnTransport", "ServedModel", "Transport"]

_BACKEND = "vLLM"


class ServedModel(msgspec.Struct):
    """One entry of ``/v1/models``."""

    id: str
    max_model_len: int | None = None
    """Tokens of the model's context."""


class _Served(msgspec.Struct):
    data: list[ServedModel]


class Transport(Protocol):
    """What the critic asks of a server; every failure of a request is a typed error."""

    async def pool(self, body: dict[str, Any]) -> PoolingReply:
        """The answer of ``/pooling``."""
        ...

    async def served(self) -> list[ServedModel]:
        """The served models; empty if they cannot be asked for."""
        ...

    async def aclose(self) -> None:
        """Close what this object opened."""
        ...


class OwnTransport(Transport):
    """Requests through a client that the critic owns."""

    def __init__(self, base_url: str, api_key: str, timeout: float) -> None:
        self._client = JsonClient(base_url, backend=_BACKEND, api_key=api_key, timeout=timeout, refine=_refine)

    @override
    async def pool(self, body: dict[str, Any]) -> PoolingReply:
        reply = await self._client.apost("/pooling", encode_json(body))
        return decode_json(reply, PoolingReply, backend=_BACKEND)

    @override
    async def served(self) -> list[ServedModel]:
        # Not retried: a check must not wait a minute for an address at which nobody listens.
        reply = await self._client.aget("/v1/models", retry=False)
        return decode_json(reply, _Served, backend=_BACKEND).data

    @override
    async def aclose(self) -> None:
        await self._client.aclose()


class CallerTransport(Transport):
    """Requests through the caller's client, which is asked for ``post`` only and never closed here."""

    def __init__(self, base_url: str, api_key: str, timeout: float, client: Any) -> None:
        if not callable(getattr(client, "post", None)):
            raise InvalidRequestError(
                "client must have `await post(url, json=..., headers=..., timeout=...)`, as httpx.AsyncClient has;"
                f" got {type(client).__name__}"
            )
        self._endpoint = Endpoint.of(base_url, api_key, None)
        self._headers = {"Authorization": f"Bearer {api_key}"}
        self._timeout = timeout
        self._client = client

    @override
    async def pool(self, body: dict[str, Any]) -> PoolingReply:
        url = self._endpoint.url("/pooling")
        response = await self._client.post(url, json=body, headers=self._headers, timeout=self._timeout)
        try:
            content = encode_json(response.json())
        except ValueError:
            content = b""
        reply = HttpReply(response.status_code, {}, content, 1, 0.0, self._endpoint.redact)
        if reply.status != 200:
            raise error_for(reply, backend=_BACKEND, refine=_refine)
        return decode_json(reply, PoolingReply, backend=_BACKEND)

    @override
    async def served(self) -> list[ServedModel]:
        return []

    @override
    async def aclose(self) -> None:
        pass


def _refine(status: int, message: str, body: bytes) -> type[BackendError] | None:
    return ContextLengthError if status == 400 and "maximum context length" in message else None
