"""The SDK's clients, one per event loop; a request is sent again only if it never started to run."""

from __future__ import annotations

import asyncio
import os
import threading
from dataclasses import replace
from typing import Any

from focus_http import HttpReply
from focus_http.call import Call, Failure
from focus_http.endpoint import Endpoint
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
        self._open = _Open()

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
        client = await self._client()
        call = Call(self._backend, "POST", client.endpoint.url(path), body, None)

        async def attempt() -> HttpReply | Failure:
            client = await self._client()
            outcome = await client.send(path, call)
            if isinstance(outcome, Failure):
                return outcome
            judged = judge(call, outcome, refine_error)
            # A 429 that no wait will cure.
            if isinstance(judged, Failure) and out_of_quota(judged.error):
                return replace(judged, never_started=False)
            return judged

        outcome = await attempt()
        if isinstance(outcome, Failure) and outcome.never_started:
            outcome = await again_async(call, outcome, attempt)
        if isinstance(outcome, Failure):
            raise outcome.error
        return outcome

    def close(self) -> None:
        """Close every connection of every loop. Those of loops that run at the moment close in their next turn."""
        for client in self._here().take():
            if client.loop.is_running():
                asyncio.run_coroutine_threadsafe(client.close(), client.loop)
            elif not client.loop.is_closed():
                # A loop at rest, perhaps beneath another one that runs in this thread.
                closer = threading.Thread(target=client.loop.run_until_complete, args=(client.close(),))
                closer.start()
                closer.join()

    async def aclose(self) -> None:
        """As `close`; the connections of the running loop are closed when it returns."""
        mine = self._here().clients.pop(asyncio.get_running_loop(), None)
        if mine is not None:
            await mine.close()
        self.close()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_open"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._open = _Open()

    async def _client(self) -> LoopClient:
        here, loop = self._here(), asyncio.get_running_loop()
        client = here.clients.get(loop)
        if client is None:
            for old in [one for one in here.clients if one.is_closed()]:
                # Its owner closed it without shutting its generators down; nothing can be closed in it any more.
                here.clients.pop(old, None)
            key = self._api_key or os.environ.get("OPENAI_API_KEY")
            if not key:
                raise InvalidRequestError(
                    "no API key: pass api_key=, or set the environment variable OPENAI_API_KEY (a server that checks"
                    " none takes any, such as 'EMPTY')"
                )
            url = self._base_url or os.environ.get("OPENAI_BASE_URL") or _HOSTED
            client = here.clients[loop] = LoopClient(Endpoint.of(url, key, None), key, here.forget)
            await client.open()
        return client

    def _here(self) -> _Open:
        if self._open.process != os.getpid():
            # Closing what the parent still uses would reach into its event loop: it is kept, untouched.
            _inherited.append(self._open)
            self._open = _Open()
        return self._open


_inherited: list[_Open] = []


class _Open:
    """What a policy holds open in one process."""

    def __init__(self) -> None:
        self.process = os.getpid()
        self.clients: dict[asyncio.AbstractEventLoop, LoopClient] = {}

    def forget(self, client: LoopClient) -> None:
        if self.clients.get(client.loop) is client:
            del self.clients[client.loop]

    def take(self) -> list[LoopClient]:
        return [client for loop in list(self.clients) if (client := self.clients.pop(loop, None))]
