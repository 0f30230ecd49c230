"""What a client holds open: one session per event loop, and none that belongs to a parent process."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable
from typing import Any, Protocol

__all__ = ["LoopBound", "PerLoop"]


class LoopBound(Protocol):
    """A session that lives and closes in one event loop."""

    loop: asyncio.AbstractEventLoop

    @property
    def closed(self) -> bool:
        """Whether it can be used no more."""
        ...

    async def open(self) -> Any:
        """Called once, before its first use, in its loop."""
        ...

    async def close(self) -> None:
        """Close every connection; called in its loop."""
        ...


class PerLoop[B: LoopBound]:
    """The sessions of one client, made on first use in each loop."""

    def __init__(self) -> None:
        self._process = os.getpid()
        self._bound: dict[asyncio.AbstractEventLoop, B] = {}

    async def get(self, make: Callable[[], B]) -> B:
        """The running loop's session, a new one if there is none that is open."""
        bound, loop = self._here(), asyncio.get_running_loop()
        found = bound.get(loop)
        if found is None or found.closed:
            for old in [one for one in list(bound) if one.is_closed()]:
                bound.pop(old, None)
            found = bound[loop] = make()
            await found.open()
        return found

    def close(self) -> None:
        """Close the sessions of every loop; those of loops that run at the moment close in their next turn."""
        bound = self._here()
        for loop in list(bound):
            session = bound.pop(loop, None)
            if session is None or loop.is_closed():
                continue
            if loop.is_running():
                asyncio.run_coroutine_threadsafe(session.close(), loop)
            else:
                # A loop at rest, perhaps beneath another one that runs in this thread.
                closer = threading.Thread(target=loop.run_until_complete, args=(session.close(),))
                closer.start()
                closer.join()

    async def aclose(self) -> None:
        """As `close`; the running loop's session is closed when it returns."""
        mine = self._here().pop(asyncio.get_running_loop(), None)
        if mine is not None:
            await mine.close()
        self.close()

    def _here(self) -> dict[asyncio.AbstractEventLoop, B]:
        if self._process != os.getpid():
            # Closing what the parent still uses would reach into its event loop: it is kept, untouched.
            _inherited.append(self._bound)
            self._bound, self._process = {}, os.getpid()
        return self._bound


_inherited: list[Any] = []
