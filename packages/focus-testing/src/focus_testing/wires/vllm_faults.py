"""What the faults that know the wire do to a completion of vLLM."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from copy import deepcopy
from typing import Any

__all__ = ["SPOILERS", "Body"]

type Body = dict[str, Any]


def _changed(change: Callable[[Body], None]) -> Callable[[Any], Any]:
    """A spoiler that changes the first choice of a completion, and leaves other replies as they are."""

    def spoil(body: Any) -> Any:
        if "choices" not in body:
            return body
        spoiled: Body = deepcopy(body)
        change(spoiled["choices"][0])
        return spoiled

    return spoil


def _missing_ids(choice: Body) -> None:
    del choice["token_ids"], choice["prompt_token_ids"]


def _wrong_prompt(choice: Body) -> None:
    choice["prompt_token_ids"] = [0, *(choice["prompt_token_ids"] or [])]


def _wrong_types(choice: Body) -> None:
    choice["token_ids"] = [str(token) for token in choice["token_ids"] or [0]]


def _missing_logprobs(choice: Body) -> None:
    choice["logprobs"] = None


def _fewer_logprobs(choice: Body) -> None:
    logprobs: dict[str, list[Any]] = choice["logprobs"] or {}
    for values in logprobs.values():
        values.pop()


def _logprob(value: float) -> Callable[[Body], None]:
    def change(choice: Body) -> None:
        if choice["logprobs"]:
            choice["logprobs"]["token_logprobs"][0] = value

    return change


def _choices(count: int) -> Callable[[Any], Any]:
    def spoil(body: Any) -> Any:
        return body if "choices" not in body else {**body, "choices": body["choices"][:1] * count}

    return spoil


SPOILERS: Mapping[str, Callable[[Any], Any]] = {
    "abort": lambda body: body,  # the engine does it
    "missing_ids": _changed(_missing_ids),
    "wrong_prompt": _changed(_wrong_prompt),
    "wrong_types": _changed(_wrong_types),
    "missing_logprobs": _changed(_missing_logprobs),
    "fewer_logprobs": _changed(_fewer_logprobs),
    "nan": _changed(_logprob(math.nan)),
    "filler": _changed(_logprob(-9999.0)),
    "no_choice": _choices(0),
    "two_choices": _choices(2),
}
"""Fault kind to what it does to a reply."""
