"""What the Tinker SDK raises, as focus's errors."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from focus_types import (
    AuthenticationError,
    BackendError,
    ContextLengthError,
    ProtocolError,
    RateLimitError,
    RequestTimeoutError,
    ServerUnavailableError,
)

if TYPE_CHECKING:
    import tinker

__all__ = ["translate_error"]

_EXCERPT = 500
_CONTEXT = re.compile(r"context (?:window|length)", re.IGNORECASE)
# A service that repeats a credential in its answer must not make it part of our message.
_SECRET = re.compile(r"\btml-[\w.\-]+|\beyJ[\w\-]+\.[\w\-]+\.[\w\-]*|(?<=bearer )\S+", re.IGNORECASE)


def translate_error(error: Exception) -> BackendError:
    """The typed error for whatever a Tinker call raised; raise it ``from`` the original.

    A failure that is found after the request was accepted reaches the caller as a plain ``ValueError`` whose cause
    is the refusal, so causes are searched, too.
    """
    import tinker

    detail = _SECRET.sub("***", str(error) or type(error).__name__)[:_EXCERPT]
    for one in _chain(error):
        if isinstance(one, tinker.APIStatusError):
            return _from_status(one)
        if isinstance(one, tinker.RequestFailedError):
            kind = _context_or(BackendError, detail)
            if one.category == "server":
                kind = ServerUnavailableError
            return kind(f"Tinker failed the request: {detail}", request_id=one.request_id)
        if isinstance(one, TimeoutError | tinker.APITimeoutError):
            return RequestTimeoutError(f"Tinker did not answer in time: {detail}")
        if isinstance(one, tinker.APIConnectionError):
            return ServerUnavailableError(f"Tinker cannot be reached: {detail}")
    if isinstance(error, AssertionError | ValueError | tinker.APIResponseValidationError):
        return ProtocolError(f"the Tinker SDK cannot read the server's answer: {detail}")
    return BackendError(f"Tinker failed: {type(error).__name__}: {detail}")


def _from_status(error: tinker.APIStatusError) -> BackendError:
    status = error.status_code
    detail = _SECRET.sub("***", str(error))[:_EXCERPT]
    kind: type[BackendError] = BackendError
    if status in (401, 403):
        kind = AuthenticationError
    elif status == 429:
        kind = RateLimitError
    elif status >= 500:
        kind = ServerUnavailableError
    else:
        kind = _context_or(BackendError, detail)
    return kind(
        f"Tinker refused the request: {detail}",
        status=status,
        request_id=error.response.headers.get("x-request-id"),
        body=None if error.body is None else _SECRET.sub("***", str(error.body))[:_EXCERPT],
    )


def _context_or(kind: type[BackendError], detail: str) -> type[BackendError]:
    return ContextLengthError if _CONTEXT.search(detail) else kind


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__
