"""Talking to the service behind a sampling client: one call, and whether anybody is there."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from focus_format.exchange import TokenReply, TokenRequest
from focus_tinker.errors import translate_error
from focus_tinker.stops import Stops
from focus_tinker.wire import decode_response, submit
from focus_types import BackendError, ChatCodec, ServerUnavailableError

if TYPE_CHECKING:
    import tinker

__all__ = ["CONTACT_TIMEOUT", "Service", "contact", "sample"]

CONTACT_TIMEOUT = 8.0
"""Seconds in which a live service answers a request that needs no model."""


@dataclass(frozen=True)
class Service:
    """What a live service says about itself."""

    url: str
    models: tuple[str, ...]
    context_length: int | None


async def sample(client: tinker.SamplingClient, request: TokenRequest, stops: Stops, codec: ChatCodec) -> TokenReply:
    """One reply. Cancelling it cancels the request.

    Raises:
        BackendError: From whatever the SDK raised.
    """
    started = time.perf_counter()
    response = await _answer(lambda: submit(client, request, stops))
    reply = decode_response(response, request, stops, codec)
    reply.latency_s = time.perf_counter() - started
    return reply


async def contact(client: tinker.SamplingClient) -> Service | None:
    """Ask the client's service for its models; None if the client is not one of the SDK's own.

    The SDK hides a dead server behind hours of retries, so this has its own deadline.

    Raises:
        ServerUnavailableError: No answer within `CONTACT_TIMEOUT`.
        AuthenticationError: Wrong key.
    """
    holder = getattr(client, "holder", None)
    if holder is None:
        return None
    import tinker

    url = _url(holder)
    try:
        async with asyncio.timeout(CONTACT_TIMEOUT):
            found = await _answer(lambda: tinker.RestClient(holder).get_server_capabilities())
    except TimeoutError as error:
        raise ServerUnavailableError(
            f"{url} gave no answer within {CONTACT_TIMEOUT:g} s: nothing listens there, or it holds requests back"
            " (billing, capacity)"
        ) from error
    except BackendError as error:
        if error.status != 404:
            raise
        return Service(url, (), None)
    base_model = client.get_base_model()
    lengths = [one.max_context_length for one in found.supported_models if one.model_name == base_model]
    names = tuple(one.model_name for one in found.supported_models if one.model_name is not None)
    return Service(url, names, lengths[0] if lengths else None)


async def _answer[T](start: Callable[[], tinker.APIFuture[T]]) -> T:
    try:
        return await start().result_async()
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        # Nobody cancelled this task: the SDK gave the request up, and a bare CancelledError would say otherwise.
        raise ServerUnavailableError("the Tinker client cancelled the request: was its service closed?") from error
    except Exception as error:
        raise translate_error(error) from error


def _url(holder: Any) -> str:
    base = getattr(getattr(holder, "shadow_config", None), "base_url", None)
    if not isinstance(base, str):
        return "the Tinker service"
    parts = urlsplit(base)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
