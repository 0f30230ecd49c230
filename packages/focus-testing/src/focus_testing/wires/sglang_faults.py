"""What the faults that know the wire do to a reply of SGLang."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from copy import deepcopy
from typing import Any

__all__ = ["SPOILERS", "Body"]

type Body = dict[str, Any]


def _changed(change: Callable[[Body, Body], None]) -> Callable[[Any], Any]:
    """A spoiler that changes a reply and its meta_info, and leaves other replies as they are."""

    def spoil(body: Any) -> Any:
        if "meta_info" not in body:
            return body
        spoiled: Body = deepcopy(body)
        change(spoiled, spoiled["meta_info"])
        return spoiled

    return spoil


def _missing_ids(body: Body, meta: Body) -> None:
    del body["output_ids"]


def _wrong_prompt(body: Body, meta: Body) -> None:
    meta["prompt_tokens"] += 1


def _wrong_ids(body: Body, meta: Body) -> None:
    for triple in meta.get("output_token_logprobs", [])[:1]:
        triple[1] += 1


def _wrong_types(body: Body, meta: Body) -> None:
    body["output_ids"] = [str(token) for token in body["output_ids"]]


def _missing_logprobs(body: Body, meta: Body) -> None:
    meta.pop("output_token_logprobs", None)


def _fewer_logprobs(body: Body, meta: Body) -> None:
    for name in ("output_token_logprobs", "output_top_logprobs"):
        if name in meta:
            meta[name].pop()


def _logprob(value: float) -> Callable[[Body, Body], None]:
    def change(body: Body, meta: Body) -> None:
        for triple in meta.get("output_token_logprobs", [])[:1]:
            triple[0] = value

    return change


SPOILERS: Mapping[str, Callable[[Any], Any]] = {
    "abort": lambda body: body,  # the engine does it
    "missing_ids": _changed(_missing_ids),
    "wrong_prompt": _changed(_wrong_prompt),
    "wrong_ids": _changed(_wrong_ids),
    "wrong_types": _changed(_wrong_types),
    "missing_logprobs": _changed(_missing_logprobs),
    "fewer_logprobs": _changed(_fewer_logprobs),
    "nan": _changed(_logprob(math.nan)),
    "filler": _changed(_logprob(-3.4028234663852886e38)),
}
"""Fault kind to what it does to a reply."""
