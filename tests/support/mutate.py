"""Replies that are almost right: one or a few changes somewhere in a JSON document."""

from __future__ import annotations

import copy
import pickle
import random
from typing import Any

__all__ = ["mutated", "spoiled"]

NUMBERS: tuple[Any, ...] = (
    *(0, -1, 1, 2**31, 2**32, 2**63, 2**64, -(2**63) - 1, 2**200, 10**400, -(10**400)),
    *(0.5, -0.0, -1e308, 1e308, 1e-320, -9999.0, -3.4028234663852886e38),
    *(float("inf"), float("-inf"), float("nan")),
)
ODD: tuple[Any, ...] = (
    *(None, True, False, *NUMBERS),
    *("", "x", "1", "NaN", "stop", "\ud800", "\x00", "\ufffd", "token_id:1", "token_id:-1", "é" * 3, "x" * 10_000),
    *([], {}, [[]], [{}], [None], {"": None}, {"x": {"y": []}}, [0] * 100, list(range(300))),
)
"""Values that are right somewhere and wrong elsewhere."""
NOISE = (
    b"",
    b"\x00",
    b"\xff",
    b'"',
    b"{",
    b"]",
    b",",
    b"1e999",
    b"NaN",
    b"[" * 100_000,
    b'{"a":' * 50_000,
    b"9" * 5000,
)


def mutated(dice: random.Random, document: Any) -> Any:
    """A copy of a JSON document with one to four changes."""
    changed: Any = pickle.loads(pickle.dumps(document))
    for _ in range(dice.choice((1, 1, 1, 2, 4))):
        changed = _changed(dice, changed)
    return changed


def spoiled(dice: random.Random, data: bytes) -> bytes:
    """The bytes of a document; every tenth time cut, doubled, or with noise in them."""
    if dice.random() > 0.1:
        return data
    at = dice.randrange(len(data) + 1)
    match dice.randrange(4):
        case 0:
            return data[:at]
        case 1:
            return data + data[at:]
        case 2:
            return data[:at] + data[at + dice.randrange(20) :]
        case _:
            return data[:at] + dice.choice(NOISE) + data[at:]


def _place(dice: random.Random, document: Any) -> tuple[Any, Any]:
    """A container somewhere in the document, and one of its keys; deep places are as likely as shallow ones."""
    container = document
    while True:
        key = dice.choice(list(container) if isinstance(container, dict) else range(len(container)))
        inner = container[key]
        if not (isinstance(inner, dict | list) and inner) or dice.random() < 0.25:
            return container, key
        container = inner


def _changed(dice: random.Random, document: Any) -> Any:
    if not (isinstance(document, dict | list) and document) or dice.random() < 0.02:
        return copy.deepcopy(dice.choice(ODD))
    parent, key = _place(dice, document)
    match dice.randrange(8):
        case 0:
            del parent[key]
        case 1 if isinstance(parent, list):
            parent.insert(key, parent[key])
        case 2:
            # What stands elsewhere in the document is the most plausible wrong value.
            other, name = _place(dice, document)
            parent[key] = copy.deepcopy(other[name])
        case 3:
            parent[key] = [parent[key]]
        case 4 if isinstance(parent, dict):
            parent[dice.choice(("x", "", "error", "token_id:7", str(key) + " "))] = parent.pop(key)
        case 5 if isinstance(parent, list):
            # All of them: sums and ranges go wrong together.
            parent[:] = [dice.choice(NUMBERS)] * len(parent)
        case 6 if isinstance(parent[key], int | float):
            parent[key] = dice.choice(NUMBERS)
        case _:
            parent[key] = copy.deepcopy(dice.choice(ODD))
    return document
