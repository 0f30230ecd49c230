"""Blocking calls on one background event loop, so that they work anywhere, a running loop included."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any

__all__ = ["run_sync"]


class _LoopThread:
    """A daemon thread that runs one event loop for the life of the process."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, name="focus-sync", daemon=True)
        self.thread.start()


_lock = threading.Lock()
_background: _LoopThread | None = None


def _loop_thread() -> _LoopThread:
    global _background
    with _lock:
        # A forked child inherits the object but not the thread.
        if _background is None or _background.pid != os.getpid():
            _background = _LoopThread()
        return _background


def run_sync[T](coroutine: Coroutine[Any, Any, T]) -> T:
    """Wait for a coroutine from ordinary code.

    The same loop serves every call, so clients that belong to a loop are made once. An interrupt cancels the
    coroutine.
    """
    background = _loop_thread()
    if threading.current_thread() is background.thread:
        # A callback that itself makes a blocking call would wait for the loop it is blocking.
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(asyncio.run, coroutine).result()
    future = asyncio.run_coroutine_threadsafe(coroutine, background.loop)
    try:
        return future.result()
    except BaseException:
        future.cancel()
        raise
