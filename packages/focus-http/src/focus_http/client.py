"""The JSON client of the token backends and the critic."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, final

from focus_http.call import Call, Failure
from focus_http.endpoint import Endpoint
from focus_http.errors import ErrorRefiner
from focus_http.loops import PerLoop
from focus_http.reply import HttpReply
from focus_http.retry import again, again_async, judge
from focus_types.errors import InvalidRequestError

if TYPE_CHECKING:
    from focus_http.aio import LoopSession
    from focus_http.sync import Pool

__all__ = ["JsonClient"]


@final
class JsonClient:
    """Posts JSON, returns complete 2xx replies, raises a typed error for everything else.

    Synchronous calls may come from any thread, asynchronous ones from any event loop: connections are made on first
    use, per loop, and close with their loop. After ``close`` the next call opens new ones. Concurrency is not
    limited here. Redirects, cookies and the environment's proxies are not followed.

    A client pickles: its configuration travels, the key included, its connections do not. A forked child opens its
    own.

    Args:
        base_url: ``http(s)://host[:port][/prefix]``.
        backend: Name of the backend, for messages.
        api_key: Sent as ``Authorization: Bearer``.
        headers: Sent with every request. ASCII.
        timeout: Deadline of one call in seconds, retries included. None: 60 s to connect, 600 s without a byte of
            the reply, no limit on the whole.
        refine: Names a more exact error class for a status, the server's message and the body. A module-level
            function, if the client is to be pickled.
        retry: Send again what never started to run: connection refused or timed out, name not found, 429, 503, a
            router without workers. Waits grow exponentially with full jitter and honour Retry-After, until the
            deadline, at most 120 s. Nothing else is ever sent twice, nor is a 503 by which a proxy says that it lost
            the server.

    Raises:
        InvalidRequestError: An argument that cannot work. Header values and keys are never shown.
    """

    def __init__(
        self,
        base_url: str,
        *,
        backend: str,
        api_key: str | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float | None = None,
        refine: ErrorRefiner | None = None,
        retry: bool = True,
    ) -> None:
        self._endpoint = Endpoint.of(base_url, api_key, headers)
        self._backend = backend
        self._timeout = _checked(timeout)
        self._refine = refine
        self._retry = retry
        self._open_nothing()

    @property
    def base_url(self) -> str:
        """The server's address, without credentials or trailing slash."""
        return self._endpoint.base_url

    def post(self, path: str, body: bytes, *, timeout: float | None = None, retry: bool | None = None) -> HttpReply:
        """POST a JSON body and wait for the complete reply.

        Args:
            path: Below ``base_url``.
            body: Encoded JSON.
            timeout: Deadline of this call in seconds; None is the client's.
            retry: Whether to send again what never started; None is the client's.

        Returns:
            A reply whose status is 2xx.

        Raises:
            BackendError: One of its subclasses, by what went wrong.
            InvalidRequestError: A timeout that is not a positive number.
        """
        return self._call("POST", path, body, timeout, retry)

    async def apost(
        self, path: str, body: bytes, *, timeout: float | None = None, retry: bool | None = None
    ) -> HttpReply:
        """As ``post``; a cancelled task closes its connection."""
        return await self._acall("POST", path, body, timeout, retry)

    def get(self, path: str, *, timeout: float | None = None, retry: bool | None = None) -> HttpReply:
        """GET a path; as ``post`` otherwise."""
        return self._call("GET", path, None, timeout, retry)

    async def aget(self, path: str, *, timeout: float | None = None, retry: bool | None = None) -> HttpReply:
        """As ``get``."""
        return await self._acall("GET", path, None, timeout, retry)

    def close(self) -> None:
        """Close every connection, of every thread and loop. Safe to call again.

        Requests in flight fail, and so do those that wait to be sent again.

        Sessions of loops that run at the moment close in those loops' next turn.
        """
        pool = self._pools.pop(os.getpid(), None)
        if pool is not None:
            pool.close()
        self._sessions.close()

    async def aclose(self) -> None:
        """As ``close``; the connections of the running loop are closed when it returns."""
        await self._sessions.aclose()
        self.close()

    def __repr__(self) -> str:
        return f"JsonClient({self.base_url!r}, backend={self._backend!r})"

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name not in ("_pools", "_sessions")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._open_nothing()

    def _open_nothing(self) -> None:
        # By process: a forked child leaves its parent's alone.
        self._pools: dict[int, Pool] = {}
        self._sessions = PerLoop["LoopSession"]()

    def _call(self, method: str, path: str, body: bytes | None, timeout: float | None, retry: bool | None) -> HttpReply:
        # Before the clock starts: the first use imports the HTTP library.
        pool = self._pool()
        call = self._new_call(method, path, body, timeout)

        def attempt() -> HttpReply | Failure:
            return self._judge(call, Failure.closed(call) if pool.closed else pool.send(call))

        outcome = attempt()
        if isinstance(outcome, Failure) and outcome.never_started and (self._retry if retry is None else retry):
            outcome = again(call, outcome, attempt)
        return _reply(call, outcome)

    async def _acall(
        self, method: str, path: str, body: bytes | None, timeout: float | None, retry: bool | None
    ) -> HttpReply:
        session = await self._session()
        call = self._new_call(method, path, body, timeout)

        async def attempt() -> HttpReply | Failure:
            return self._judge(call, Failure.closed(call) if session.closed else await session.send(call))

        outcome = await attempt()
        if isinstance(outcome, Failure) and outcome.never_started and (self._retry if retry is None else retry):
            outcome = await again_async(call, outcome, attempt)
        return _reply(call, outcome)

    def _new_call(self, method: str, path: str, body: bytes | None, timeout: float | None) -> Call:
        limit = self._timeout if timeout is None else _checked(timeout)
        return Call(self._backend, method, self._endpoint.url(path), body, limit)

    def _judge(self, call: Call, outcome: HttpReply | Failure) -> HttpReply | Failure:
        return outcome if isinstance(outcome, Failure) else judge(call, outcome, self._refine)

    def _pool(self) -> Pool:
        pool = self._pools.get(os.getpid())
        if pool is None:
            from focus_http.sync import Pool

            # Of several threads that come here at once, all take the first one's.
            pool = self._pools.setdefault(os.getpid(), Pool(self._endpoint))
        return pool

    async def _session(self) -> LoopSession:
        return await self._sessions.get(self._new_session)

    def _new_session(self) -> LoopSession:
        from focus_http.aio import LoopSession

        return LoopSession(self._endpoint)


def _reply(call: Call, outcome: HttpReply | Failure) -> HttpReply:
    if isinstance(outcome, Failure):
        if call.attempts > 1:
            outcome.error.add_note(f"after {call.attempts} attempts in {call.age:.1f} s")
        raise outcome.error
    return outcome


def _checked(timeout: object) -> float | None:
    if timeout is None:
        return None
    if not isinstance(timeout, int | float) or isinstance(timeout, bool) or not 0 < timeout < math.inf:
        raise InvalidRequestError(f"timeout must be a positive, finite number of seconds or None, got {timeout!r}")
    return timeout
