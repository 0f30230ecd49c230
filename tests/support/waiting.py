"""Wait for what another thread does."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

__all__ = ["until"]


async def until(condition: Callable[[], bool], seconds: float = 10) -> None:
    """Return as soon as the condition holds; TimeoutError if it never does."""
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 - the condition is another thread's, which sets no event here
            await asyncio.sleep(0.01)
