"""Several requests in a row, written once for blocking and async callers."""

from __future__ import annotations

from collections.abc import Generator
from typing import NamedTuple

from focus_http.client import JsonClient
from focus_http.reply import HttpReply
from focus_types import BackendError

__all__ = ["Step", "adrive", "drive"]


class Step(NamedTuple):
    """One request to make."""

    method: str
    """"GET" or "POST"."""
    path: str
    body: bytes = b""


def drive[T](client: JsonClient, steps: Generator[Step, HttpReply, T], *, timeout: float) -> T:
    """Make each request that ``steps`` yields, once each, and return what it returns.

    A typed error of a request is raised inside ``steps``, at its yield.

    Args:
        client: Makes the requests.
        steps: Yields requests and is sent their replies.
        timeout: Seconds for each request.
    """
    try:
        step = next(steps)
        while True:
            try:
                if step.method == "GET":
                    reply = client.get(step.path, timeout=timeout, retry=False)
                else:
                    reply = client.post(step.path, step.body, timeout=timeout, retry=False)
            except BackendError as error:
                step = steps.throw(error)
            else:
                step = steps.send(reply)
    except StopIteration as stop:
        result: T = stop.value
        return result


async def adrive[T](client: JsonClient, steps: Generator[Step, HttpReply, T], *, timeout: float) -> T:
    """`drive` for async code."""
    try:
        step = next(steps)
        while True:
            try:
                if step.method == "GET":
                    reply = await client.aget(step.path, timeout=timeout, retry=False)
                else:
                    reply = await client.apost(step.path, step.body, timeout=timeout, retry=False)
            except BackendError as error:
                step = steps.throw(error)
            else:
                step = steps.send(reply)
    except StopIteration as stop:
        result: T = stop.value
        return result
