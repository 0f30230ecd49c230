"""When a request is sent again: only when it never started to run."""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable
from email.utils import parsedate_to_datetime
from typing import Any, TypedDict

import tenacity

from focus_http.call import Call, Failure
from focus_http.errors import ErrorRefiner, error_for, lost_upstream, no_workers
from focus_http.reply import HttpReply

__all__ = ["again", "again_async", "judge"]

_log = logging.getLogger("focus")

_BACKOFF_S = 0.5
_LONGEST_BACKOFF_S = 10.0
_RETRY_S = 120.0


def judge(call: Call, reply: HttpReply, refine: ErrorRefiner | None) -> HttpReply | Failure:
    """A 2xx reply as it is, anything else as the failure that its status and body tell."""
    if 200 <= reply.status < 300:
        return reply
    error = error_for(reply, backend=call.name, refine=refine)
    never_started = (reply.status in (429, 503) and not lost_upstream(reply)) or no_workers(reply)
    return Failure(error, never_started, _retry_after(reply) if never_started else None)


def again(call: Call, first: Failure, attempt: Callable[[], HttpReply | Failure]) -> HttpReply | Failure:
    """Go on after a first attempt that never started, until a reply, another kind of failure or the limit."""
    waiting: list[Failure] = [first]
    # tenacity is shown the first attempt as its own: it costs more than a call, and most calls need it not.
    return tenacity.Retrying(**_rule(call))(lambda: waiting.pop() if waiting else attempt())


async def again_async(
    call: Call, first: Failure, attempt: Callable[[], Awaitable[HttpReply | Failure]]
) -> HttpReply | Failure:
    """As ``again``."""
    waiting: list[Failure] = [first]

    async def step() -> HttpReply | Failure:
        return waiting.pop() if waiting else await attempt()

    return await tenacity.AsyncRetrying(**_rule(call))(step)


class _Rule(TypedDict):
    retry: Callable[[tenacity.RetryCallState], bool]
    wait: Callable[[tenacity.RetryCallState], float]
    stop: Callable[[tenacity.RetryCallState], bool]
    retry_error_callback: Callable[[tenacity.RetryCallState], Any]
    before_sleep: Callable[[tenacity.RetryCallState], None]


def _rule(call: Call) -> _Rule:
    limit = _RETRY_S if call.timeout is None else min(call.timeout, _RETRY_S)
    return {
        "retry": lambda state: (failure := _failure(state)) is not None and failure.never_started,
        "wait": _wait,
        "stop": tenacity.stop_before_delay(limit - call.age),
        "retry_error_callback": _outcome,
        "before_sleep": _say,
    }


def _outcome(state: tenacity.RetryCallState) -> Any:
    return None if state.outcome is None else state.outcome.result()


def _failure(state: tenacity.RetryCallState) -> Failure | None:
    # An exception of the attempt itself (a cancellation, a bug) is not ours to retry.
    if state.outcome is None or state.outcome.failed:
        return None
    result = state.outcome.result()
    return result if isinstance(result, Failure) else None


def _say(state: tenacity.RetryCallState) -> None:
    failure = _failure(state)
    if failure is not None:
        _log.info("attempt %d: %s; again in %.1f s", state.attempt_number, failure.error, state.upcoming_sleep)


def _wait(state: tenacity.RetryCallState) -> float:
    failure = _failure(state)
    jitter = tenacity.wait_random_exponential(multiplier=_BACKOFF_S, max=_LONGEST_BACKOFF_S)(state)
    # The jitter is kept on top of Retry-After: the server gave the same second to everyone.
    return jitter + (failure.retry_after or 0.0 if failure else 0.0)


def _retry_after(reply: HttpReply) -> float | None:
    text = reply.headers.get("retry-after", "").strip()
    if text.isascii() and text.isdecimal():
        return float(text)
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - time.time())
    except ValueError:
        return None
