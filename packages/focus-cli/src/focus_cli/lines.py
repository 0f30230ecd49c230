"""Numbered lines of a stream, read without holding up the event loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable
from contextlib import suppress
from io import BufferedReader, RawIOBase

__all__ = ["count_lines", "numbered_lines"]

_CHUNK = 2**16


def count_lines(stream: RawIOBase) -> int | None:
    """How many lines with something in them there are; None for a stream that can be read once only."""
    if not stream.seekable():
        return None
    reader = BufferedReader(stream)
    count = sum(1 for line in reader if line.strip())
    reader.detach().seek(0)
    return count


async def numbered_lines(stream: RawIOBase) -> AsyncGenerator[tuple[int, bytes]]:
    """Lines as soon as they arrive, with their numbers from 1; blank ones are left out.

    Args:
        stream: Unbuffered: it gives what a pipe holds at the moment, and a read that waits holds no lock that the
            interpreter needs in order to end.
    """
    number, rest = 0, bytearray()
    while chunk := await _in_thread(lambda: stream.read(_CHUNK)):
        rest += chunk
        if b"\n" not in chunk:
            continue
        *whole, last = rest.split(b"\n")
        rest = last
        for line in whole:
            number += 1
            if line.strip():
                yield number, bytes(line)
    if rest.strip():
        yield number + 1, bytes(rest)


async def _in_thread[T](call: Callable[[], T]) -> T:
    """The result of a blocking call. Its thread does not keep an interrupted process alive."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def settle(result: T | None, error: BaseException | None) -> None:
        if future.cancelled():
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(result)  # type: ignore[arg-type] # the call's own T

    def run() -> None:
        result, error = None, None
        try:
            result = call()
        except Exception as caught:
            error = caught
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(settle, result, error)

    threading.Thread(target=run, name="focus-lines", daemon=True).start()
    return await future
