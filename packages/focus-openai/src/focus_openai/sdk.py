"""The SDK's client of one event loop: sends one request, once, and says exactly how that ended."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING

from focus_http import HttpReply
from focus_http.call import CONNECT_S, READ_S, Call, Failure
from focus_http.endpoint import Endpoint

if TYPE_CHECKING:
    import aiohttp
    import httpx2
    from openai import AsyncOpenAI

__all__ = ["LoopClient"]

# uvicorn closes idle connections after 5 s: below that, no request meets a connection that is being closed.
_KEEPALIVE_S = 4.0
# aiohttp warns about larger bytes, and takes the same bytes in pieces.
_LARGEST_BYTES_BODY = 2**20
# OpenAI's own error messages quote the ends of a refused key.
_KEY_LIKE = re.compile(r"\bsk-[\w*-]{4,}")


class LoopClient:
    """The client of the running event loop; it closes with the loop.

    Args:
        endpoint: Where to send.
        key: The API key.
    """

    def __init__(self, endpoint: Endpoint, key: str) -> None:
        self.loop: asyncio.AbstractEventLoop = asyncio.get_running_loop()
        self.endpoint = endpoint
        self._sdk = _sdk_client(endpoint.base_url, key)
        self._holder = self._hold()

    @property
    def closed(self) -> bool:
        """Whether it can be used no more."""
        return self._sdk.is_closed()

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

        body = call.body
        call.attempts += 1
        try:
            if body is None:
                response = await self._sdk.get(f"/{path}", cast_to=httpx2.Response)
            else:
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

    async def _hold(self) -> AsyncGenerator[None]:
        try:
            yield
        finally:
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
