"""The SDK's client, one per event loop, sending each request as often as the project's retry rule allows."""

from __future__ import annotations

import asyncio
import os
import re
import threading
from collections.abc import AsyncGenerator, Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from focus_http import HttpReply
from focus_http.call import CONNECT_S, READ_S, Call, Failure
from focus_http.endpoint import Endpoint
from focus_http.retry import again_async, judge
from focus_openai.errors import out_of_quota, refine_error
from focus_types import InvalidRequestError

if TYPE_CHECKING:
    import aiohttp
    import httpx2
    from openai import AsyncOpenAI

__all__ = ["SdkClients"]

_HOSTED = "https://api.openai.com/v1"
# uvicorn closes idle connections after 5 s: below that, no request meets a connection that is being closed.
_KEEPALIVE_S = 4.0
# aiohttp warns about larger bytes, and takes the same bytes in pieces.
_LARGEST_BYTES_BODY = 2**20
# OpenAI's own error messages quote the ends of a refused key.
_KEY_LIKE = re.compile(r"\bsk-[\w*-]{4,}")


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

    async def _client(self) -> _LoopClient:
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
            client = here.clients[loop] = _LoopClient(Endpoint.of(url, key, None), key, here.forget)
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
        self.clients: dict[asyncio.AbstractEventLoop, _LoopClient] = {}

    def forget(self, client: _LoopClient) -> None:
        if self.clients.get(client.loop) is client:
            del self.clients[client.loop]

    def take(self) -> list[_LoopClient]:
        return [client for loop in list(self.clients) if (client := self.clients.pop(loop, None))]


class _LoopClient:
    """The client of one event loop; it closes with the loop."""

    def __init__(self, endpoint: Endpoint, key: str, on_close: Callable[[_LoopClient], None]) -> None:
        self.loop = asyncio.get_running_loop()
        self.endpoint = endpoint
        self._sdk = _sdk_client(endpoint.base_url, key)
        self._holder = self._hold(on_close)

    async def open(self) -> None:
        """Tie the client to the loop: a loop closes its asynchronous generators, and so the client, at its end."""
        await anext(self._holder)

    async def close(self) -> None:
        """Close every connection; called in the client's own loop."""
        await self._holder.aclose()

    async def send(self, path: str, call: Call) -> HttpReply | Failure:
        """One attempt: a reply of any status, or why there is none."""
        import aiohttp
        import httpx2
        import openai

        from focus_http.aio import failure_of

        body = call.body or b""
        call.attempts += 1
        try:
            response = await self._sdk.post(
                f"/{path}",
                cast_to=httpx2.Response,
                content=_pieces(body) if len(body) > _LARGEST_BYTES_BODY else body,
                options={"headers": {"Content-Length": str(len(body))}},
            )
        except openai.APIStatusError as error:
            response = error.response
        except (openai.APIConnectionError, aiohttp.ClientError) as error:
            # Returned, not raised from here: these exceptions hold the request and its headers.
            return failure_of(call, _origin(error))
        return self._reply(response, call)

    async def _hold(self, on_close: Callable[[_LoopClient], None]) -> AsyncGenerator[None]:
        try:
            yield
        finally:
            on_close(self)
            await self._sdk.close()

    def _reply(self, response: httpx2.Response, call: Call) -> HttpReply:
        headers = {name.lower(): value for name, value in response.headers.items()}
        return HttpReply(response.status_code, headers, response.content, call.attempts, call.age, self._redact)

    def _redact(self, text: str) -> str:
        return _KEY_LIKE.sub("***", self.endpoint.redact(text))


def _sdk_client(base_url: str, key: str) -> AsyncOpenAI:
    import httpx2
    import openai

    timeout = httpx2.Timeout(READ_S, connect=CONNECT_S)
    return openai.AsyncOpenAI(
        api_key=key,
        base_url=base_url,
        timeout=timeout,
        # The SDK would send requests again that may have run.
        max_retries=0,
        http_client=openai.DefaultAioHttpClient(
            timeout=timeout,
            # 0 is no limit here, while None falls back to aiohttp's 100.
            limits=httpx2.Limits(max_connections=0, keepalive_expiry=_KEEPALIVE_S),
            follow_redirects=False,
        ),
    )


async def _pieces(body: bytes) -> AsyncGenerator[bytes]:
    for start in range(0, len(body), _LARGEST_BYTES_BODY):
        yield body[start : start + _LARGEST_BYTES_BODY]


def _origin(error: Exception) -> aiohttp.ClientError | TimeoutError:
    """What aiohttp raised: the SDK's transport calls a connection lost after sending a connect timeout."""
    import aiohttp

    found: BaseException | None = error
    while found is not None and not isinstance(found, aiohttp.ClientError | TimeoutError):
        found = found.__cause__ or found.__context__
    return found or aiohttp.ClientConnectionError()
