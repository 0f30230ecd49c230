"""Many contexts in few requests: split by size, a few in flight, order kept, a refused batch taken apart."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Iterator, Sequence

from focus_types import BackendError, InvalidRequestError, ScoringError

__all__ = ["evaluate", "split"]

_MOST_BAD = 8
"""After so many refused contexts the fault is not one context's, and looking on would cost requests for nothing."""


def split(sizes: Sequence[int], limit: int) -> Iterator[range]:
    """Consecutive batches of at most ``limit`` in total; a single item above it is a batch of its own."""
    start = total = 0
    for at, size in enumerate(sizes):
        if at > start and total + size > limit:
            yield range(start, at)
            start, total = at, 0
        total += size
    if start < len(sizes):
        yield range(start, len(sizes))


async def evaluate(
    sizes: Sequence[int], fetch: Callable[[range], Awaitable[Sequence[float]]], *, limit: int, in_flight: int
) -> list[float]:
    """Fetch one value per context, batch by batch.

    A batch that the server refuses with status 400 is halved until the contexts at fault are found; the others
    keep their values. Any other error ends the evaluation at once.

    Args:
        sizes: Tokens of each context, exact or estimated.
        fetch: Gives the values of a range of contexts.
        limit: Tokens in one request.
        in_flight: Requests at the same time.

    Raises:
        InvalidRequestError: ``in_flight`` allows no request.
        ScoringError: Contexts were refused: ``index`` is the first, ``values`` are those of the others, its
            cause the server's answer.
        BackendError: What else ``fetch`` raised.
    """
    if in_flight < 1:
        raise InvalidRequestError(f"in_flight must be at least 1, got {in_flight}")
    values: list[float | None] = [None] * len(sizes)
    refused: dict[int, BackendError] = {}
    waiting = split(sizes, limit)

    async def attempt(batch: range) -> None:
        try:
            values[batch.start : batch.stop] = await fetch(batch)
        except BackendError as error:
            if error.status != 400:
                raise
            if len(batch) > 1:
                half = len(batch) // 2
                await attempt(batch[:half])
                await attempt(batch[half:])
                return
            refused[batch.start] = error
            if len(refused) == _MOST_BAD:
                raise _refusal(refused, values) from error

    async def work() -> None:
        for batch in waiting:
            await attempt(batch)

    workers = [asyncio.create_task(work()) for _ in range(in_flight)]
    try:
        await asyncio.gather(*workers)
    finally:
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
    if refused:
        raise _refusal(refused, values) from refused[min(refused)]
    return [value for value in values if value is not None]


def _refusal(refused: dict[int, BackendError], values: list[float | None]) -> ScoringError:
    first, *others = sorted(refused)
    also = f" (refused as well: {', '.join(map(str, others))})" if others else ""
    good = [value if value is not None and math.isfinite(value) else None for value in values]
    return ScoringError(f"the server refused context {first}{also}: {refused[first]}", index=first, values=good)
