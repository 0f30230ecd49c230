"""Every error that focus raises on purpose.

    FocusError
    ├── BackendError               the server or its reply; status, request_id, body as attributes
    │   ├── AuthenticationError
    │   ├── ContextLengthError
    │   ├── RateLimitError
    │   ├── ServerUnavailableError
    │   ├── RequestTimeoutError    (also a TimeoutError)
    │   └── ProtocolError          the reply is not what the protocol says
    ├── InvalidRequestError        (also a ValueError) refused before anything is sent
    ├── ParseError                 (also a ValueError)
    ├── AbortedError               carries the aborted result
    └── ScoringError               one failure of a critic

All of them pickle. None of them ever holds a key or a header.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from focus_types.records import GenerateResult

__all__ = [
    "AbortedError",
    "AuthenticationError",
    "BackendError",
    "ContextLengthError",
    "FocusError",
    "InvalidRequestError",
    "LogprobWarning",
    "ParseError",
    "ProtocolError",
    "RateLimitError",
    "RequestTimeoutError",
    "ScoringError",
    "ServerUnavailableError",
]


class FocusError(Exception):
    """Root of every error below."""


class BackendError(FocusError):
    """A backend failed, or answered with an error.

    Attributes:
        status: HTTP status, ``None`` when no answer came.
        request_id: The server's id of the request, where it gave one.
        body: A short excerpt of the answer.
        attempts: How many times the request was sent.
    """

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        request_id: str | None = None,
        body: str | None = None,
        attempts: int = 1,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.request_id = request_id
        self.body = body
        self.attempts = attempts


class AuthenticationError(BackendError):
    """The server refused the key (401, 403)."""


class ContextLengthError(BackendError):
    """Prompt, or prompt and reply, do not fit the model's context."""


class RateLimitError(BackendError):
    """The server is still refusing for load (429) when the deadline is reached."""


class ServerUnavailableError(BackendError):
    """Nothing answers, the server is failing (5xx), or the connection was lost."""


class RequestTimeoutError(BackendError, TimeoutError):
    """The deadline passed. The request may still be running on the server, so it was not sent again."""


class ProtocolError(BackendError):
    """The reply is not what the protocol promises: HTML, missing ids, wrong types, several choices."""


class InvalidRequestError(FocusError, ValueError):
    """Bad input, refused before anything is sent."""


class ParseError(FocusError, ValueError):
    """A reply that the parser cannot turn into an action."""


class AbortedError(FocusError):
    """The server aborted the generation: half a reply is no action.

    Attributes:
        result: What was generated until then.
    """

    def __init__(self, message: str, result: GenerateResult | None = None) -> None:
        super().__init__(message)
        self.result = result


class ScoringError(FocusError):
    """A critic did not give one finite number per context.

    Attributes:
        index: The context at fault, where it is known.
        values: The values that were obtained, ``None`` where there is none, when some were.
    """

    def __init__(
        self,
        message: str,
        *,
        index: int | None = None,
        values: Sequence[float | None] | None = None,
    ) -> None:
        super().__init__(message)
        self.index = index
        self.values: tuple[float | None, ...] | None = None if values is None else tuple(values)


class LogprobWarning(UserWarning):
    """The log-probabilities are not those of the distribution that is sampled from."""
