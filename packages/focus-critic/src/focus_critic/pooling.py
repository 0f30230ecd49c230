"""The wire of vLLM's ``/pooling``: what is sent, and what the numbers that come back are.

A server either gives one number per token (``token_classify``) or pools by itself and gives one per context
(``classify``). Numbers travel as base64, a quarter of the size of JSON, and lose their shape on the way, so one
small request finds out which kind of server it is: two contexts of two tokens and of one are answered by 2 and 1
numbers, or by 1 and 1.
"""

from __future__ import annotations

import base64
import binascii
import math
import sys
from array import array
from collections.abc import Sequence
from typing import Any, Literal

import msgspec

from focus_types import ProtocolError, TokenId

__all__ = ["PROBE", "Layout", "PoolingReply", "check_layout", "find_layout", "numbers", "pooling_request"]

type Layout = Literal["token", "pooled"]
"""One number per token, or one per context."""

PROBE: tuple[tuple[TokenId, ...], ...] = ((0, 0), (0,))
"""Contexts that every model can score: the first id of its vocabulary, twice and once."""


class _Item(msgspec.Struct):
    index: int
    data: str | list[float | list[float | None] | None]


class _Usage(msgspec.Struct):
    prompt_tokens: int | None = None


class PoolingReply(msgspec.Struct):
    """The part of an answer that is read."""

    data: list[_Item]
    usage: _Usage | None = None


def pooling_request(model: str, contexts: Sequence[str | Sequence[TokenId]], *, truncate: bool) -> dict[str, Any]:
    """The body of one request.

    Args:
        model: The served name.
        contexts: Texts, or token ids.
        truncate: Let the server drop the beginning of a context that is too long. Its own default would drop the
            end, and with it the place that is to be scored.
    """
    body: dict[str, Any] = {
        "model": model,
        "input": contexts,
        # A server puts a sigmoid over a single label unless told otherwise.
        "use_activation": False,
        "encoding_format": "base64",
        "endianness": "little",
    }
    if truncate:
        body |= {"truncate_prompt_tokens": -1, "truncation_side": "left"}
    return body


def numbers(reply: PoolingReply, count: int) -> list[Sequence[float]]:
    """The numbers of each context, in order; what the server could not express as a number is NaN.

    Raises:
        ProtocolError: Not exactly one item per context, an item without numbers or that is not float32, or several
            numbers per token.
    """
    if sorted(item.index for item in reply.data) != list(range(count)):
        raise ProtocolError(f"the server answered {count} contexts with items {[item.index for item in reply.data]}")
    found: list[Sequence[float]] = [()] * count
    for item in reply.data:
        found[item.index] = _unpack(item.data) if isinstance(item.data, str) else _flatten(item.data)
        if not found[item.index]:
            raise ProtocolError(f"the server gave no number for context {item.index} of the request")
    return found


def _unpack(packed: str) -> Sequence[float]:
    floats = array("f")
    try:
        floats.frombytes(base64.b64decode(packed, validate=True))
    except (binascii.Error, ValueError) as error:
        raise ProtocolError(f"the server's numbers are not base64 of float32: {error}") from error
    if sys.byteorder == "big":
        floats.byteswap()
    return floats


def _flatten(data: Sequence[float | list[float | None] | None]) -> Sequence[float]:
    flat: list[float | None] = []
    for value in data:
        if not isinstance(value, list):
            flat.append(value)
        elif len(value) == 1:
            flat += value
        else:
            raise ProtocolError(_several(len(value), "token"))
    return [math.nan if value is None else value for value in flat]


def find_layout(probe: Sequence[Sequence[float]]) -> Layout:
    """Which kind of server answered ``PROBE``.

    Raises:
        ProtocolError: It gives several numbers per token or per context, so it serves no value model.
    """
    two, one = len(probe[0]), len(probe[1])
    if one == 1 and two in (1, 2):
        return "pooled" if two == 1 else "token"
    if two == one:
        raise ProtocolError(_several(one, "context"))
    if two == 2 * one:
        raise ProtocolError(_several(one, "token"))
    raise ProtocolError(f"the server answered contexts of 2 tokens and 1 token with {two} and {one} numbers")


def _several(count: int, per: str) -> str:
    return (
        f"the server gives {count} numbers per {per}: a value model gives one, while an embedding model, a classifier"
        " of several labels or a binned value head gives more; serve a sequence classifier with num_labels=1"
    )


def check_layout(layout: Layout, found: Sequence[Sequence[float]], reply: PoolingReply) -> None:
    """Hold an answer against the known layout.

    Raises:
        ProtocolError: The numbers are too many or too few, as after a restart with another pooler.
    """
    total = sum(map(len, found))
    if layout == "pooled":
        expected: int | None = len(found)
    else:
        expected = None if reply.usage is None else reply.usage.prompt_tokens
    if expected is not None and total != expected:
        per = "context" if layout == "pooled" else "token"
        raise ProtocolError(
            f"the server gave {total} numbers where one per {per} is {expected}: it is not the server it was at the"
            " first request"
        )
