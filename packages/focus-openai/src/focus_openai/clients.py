"""The SDK's clients, one per event loop; a request is sent again only if it never started to run."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

from focus_http import HttpReply
from focus_http.call import Call, Failure
from focus_http.endpoint import Endpoint
from focus_http.loops import PerLoop
from focus_http.retry import again_async, judge
from focus_openai.errors import out_of_quota, refine_error
from focus_openai.sdk import LoopClient
from focus_types import InvalidRequestError

__all__ = ["SdkClients"]

_HOSTED = "https://api.openai.com/v1"


class SdkClients:
    """The clients of one policy. They pickle as their configuration; connections do not travel.

    Args:
        api_key: None reads ``OPENAI_API_KEY`` when a client is made.
        base_url: None reads ``OPENAI_BASE_URL``, else the hosted API.
        backend: Name of the API, for messages.
    """

    def __init__(self, api_key: str | None, base_url: str | None, backend: str) -> None:
        self._api_key = api_key
        self._base_url = base_url
        self._backend = backend
        self._clients = PerLoop[LoopClient]()

    async def post(self, path: str, body: bytes) -> HttpReply:
        """POST a JSON body and wait for the complete reply; a cancelled task closes its connection.

        Args:
            path: Below the base URL.
            body: Encoded JSON.

        Returns:
            A reply whose status is 2xx.

        Raises:
            InvalidRequestError: There is no key, or it or the URL cannot be sent.
            BackendError: One of its subclasses, by what went wrong.
        """
        # Before the clock starts: the first use imports the SDK.
        client = await self._clients.get(self._new_client)
        call = Call(self._backend, "POST", client.endpoint.url(path), body, None)

        async def attempt() -> HttpReply | Failure:
            return Failure.closed(call) if client.closed else await _attempt(client, path, call)

        outcome = await attempt()
        if isinstance(outcome, Failure) and outcome.never_started:
            outcome = await again_async(call, outcome, attempt)
        return _reply(outcome)

    async def get(self, path: str) -> HttpReply:
        """GET a path, once; as `post` otherwise."""
        client = await self._clients.get(self._new_client)
        return _reply(await _attempt(client, path, Call(self._backend, "GET", client.endpoint.url(path), None, None)))

    def close(self) -> None:
        """Close every connection of every loop. Those of loops that run at the moment close in their next turn."""
        self._clients.close()

    async def aclose(self) -> None:
        """As `close`; the connections of the running loop are closed when it returns."""
        await self._clients.aclose()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_clients"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._clients = PerLoop[LoopClient]()

    def _new_client(self) -> LoopClient:
        key = self._api_key or os.environ.get("OPENAI_API_KEY")
        if not key:
            raise InvalidRequestError(
                "no API key: pass api_key=, or set the environment variable OPENAI_API_KEY (a server that checks"
                " none takes any, such as 'EMPTY')"
            )
        url = self._base_url or os.environ.get("OPENAI_BASE_URL") or _HOSTED
        return LoopClient(Endpoint.of(url, key, None), key)


async def _attempt(client: LoopClient, path: str, call: Call) -> HttpReply | Failure:
    outcome = await client.send(path, call)
    if isinstance(outcome, Failure):
        return outcome
    judged = judge(call, outcome, refine_error)
    # A 429 that no wait will cure.
    if isinstance(judged, Failure) and out_of_quota(judged.error):
        return replace(judged, never_started=False)
    return judged


def _reply(outcome: HttpReply | Failure) -> HttpReply:
    if isinstance(outcome, Failure):
        raise outcome.error
    return outcome
