"""One call of the caller, and why an attempt of it failed."""

from __future__ import annotations

import copy
import time
from dataclasses import dataclass, field

from focus_types.errors import (
    BackendError,
    ProtocolError,
    RequestTimeoutError,
    ServerUnavailableError,
)

__all__ = ["CONNECT_S", "READ_S", "Call", "Failure"]

CONNECT_S = 60.0
READ_S = 600.0


@dataclass(slots=True)
class Call:
    """What is sent, until when, how often so far."""

    backend: str
    method: str
    url: str
    body: bytes | None
    timeout: float | None
    attempts: int = 0
    unsent: bool = False
    """Known to have sent nothing in this attempt."""
    started: float = field(default_factory=time.monotonic)

    @property
    def name(self) -> str:
        """Backend, method and address, for messages."""
        return f"{self.backend} ({self.method} {self.url})"

    @property
    def left(self) -> float | None:
        """Seconds until the deadline, never below a millisecond; None without a deadline."""
        return None if self.timeout is None else max(0.001, self.started + self.timeout - time.monotonic())

    @property
    def age(self) -> float:
        """Seconds since the first attempt began."""
        return time.monotonic() - self.started


@dataclass(frozen=True, slots=True)
class Failure:
    """Why an attempt brought no usable reply.

    A value, not an exception: it is raised after the last attempt and outside every ``except`` block, so that no
    exception of an HTTP library, which can show the request's headers, hangs on it as its context.
    """

    error: BackendError
    never_started: bool = False
    retry_after: float | None = None

    @classmethod
    def unreachable(cls, call: Call, reason: str, *, cause: BaseException | None = None, retry: bool = True) -> Failure:
        """No connection: nothing was sent."""
        detail = f" ({cause})" if cause else ""
        text = f"{reason}{detail}; nothing was sent. Is the server running, and is base_url right?"
        failure = cls._of(ServerUnavailableError, call, text, never_started=retry)
        # A copy: no traceback, no context.
        failure.error.__cause__ = copy.copy(cause)
        return failure

    @classmethod
    def closed(cls, call: Call) -> Failure:
        """The client was closed before the request was sent again."""
        return cls._of(ServerUnavailableError, call, "the client was closed; nothing was sent")

    @classmethod
    def late(cls, call: Call) -> Failure:
        """The deadline passed after the request was sent."""
        limit = f"in {READ_S:g} s without a byte" if call.timeout is None else f"within {call.timeout:g} s"
        reason = f"no complete reply {limit}; the request may still be running on the server and was not sent again"
        return cls._of(RequestTimeoutError, call, reason)

    @classmethod
    def lost(cls, call: Call) -> Failure:
        """The connection ended before the reply did."""
        reason = (
            "the server closed the connection before its reply was complete; the request may have run, "
            "or have ended the server, and was not sent again"
        )
        return cls._of(ServerUnavailableError, call, reason)

    @classmethod
    def gone(cls, call: Call) -> Failure:
        """The watch found the server refusing new connections."""
        reason = f"no reply after {call.age:.0f} s, and the server refuses new connections: it has stopped"
        return cls._of(ServerUnavailableError, call, reason)

    @classmethod
    def not_http(cls, call: Call) -> Failure:
        """The reply is no HTTP."""
        return cls._of(ProtocolError, call, "the reply is not HTTP; base_url may lead to something else")

    @classmethod
    def _of(cls, kind: type[BackendError], call: Call, reason: str, *, never_started: bool = False) -> Failure:
        return cls(kind(f"{call.name}: {reason}", attempts=call.attempts), never_started)
