"""Faults on request: what goes wrong, and for which requests."""

from __future__ import annotations

import random
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from focus_types import InvalidRequestError

__all__ = ["Fault", "FaultKind", "FaultPlan", "Transport"]

type Transport = Literal[
    "slow",
    "drop_before",
    "drop_after",
    "status",
    "redirect",
    "html",
    "empty",
    "malformed",
    "truncated",
    "list",
    "huge",
]
"""Faults that need no knowledge of the wire: late; connection cut before or in the middle of the reply; an error
status; a redirect; an HTML page; no body; bytes that are no JSON; JSON that ends half way; the reply inside a list;
the reply followed by ``size`` spaces."""

type FaultKind = (
    Transport
    | Literal[
        "abort",
        "missing_ids",
        "wrong_prompt",
        "wrong_ids",
        "wrong_types",
        "missing_logprobs",
        "fewer_logprobs",
        "nan",
        "filler",
        "no_choice",
        "two_choices",
        "refusal",
        "reasoning",
        "reasoning_content",
        "no_content",
        "content_parts",
        "arguments_object",
        "arguments_null",
        "arguments_cut",
        "no_call_id",
        "no_finish",
        "filtered",
        "no_result",
        "error_body",
        "failed",
    ]
)
"""The rest changes what the wire says: an aborted reply; ids left out; another prompt echoed; log-probabilities of
other ids; text where numbers belong; log-probabilities left out, one too few, NaN, or the number that stands for minus
infinity; no choice, two choices. From "refusal" on they are varieties of chat servers: a refusal; reasoning in one
field or the other; content that is null or a list of parts; arguments as an object, null or cut; no call id; no finish
reason or status; a content filter; null instead of choices or output items; an error with status 200; a response that
failed. Each wire knows those that it can express."""

_TRANSPORT: tuple[str, ...] = get_args(Transport.__value__)


@dataclass(frozen=True)
class Fault:
    """Something that goes wrong.

    A fault meets every POST request, or every request to ``path``, unless ``calls`` or ``rate`` choose among them.
    """

    kind: FaultKind
    calls: Collection[int] | None = None
    """Numbers of the requests that it strikes, counted from 0 since the fault was set; None for all."""
    rate: float = 1.0
    """The share of requests that it strikes, drawn per request from ``seed`` and the request's number."""
    seed: int = 0
    path: str | None = None
    """The only path that it strikes, whatever the method."""
    status: int | None = None
    """For "status" (500 by default) and "html" (200 by default)."""
    retry_after: float | None = None
    """Seconds, for "status"."""
    seconds: float = 1.0
    """For "slow": the reply's delay."""
    size: int = 2**24
    """For "huge": bytes appended to the reply."""

    def strikes(self, number: int) -> bool:
        """Whether this fault strikes the request of this number."""
        if self.calls is not None and number not in self.calls:
            return False
        return self.rate >= 1 or random.Random(f"{self.seed}:{number}").random() < self.rate


class FaultPlan:
    """The faults of one server, with the number of requests that each has met.

    Args:
        faults: The first that strikes decides.
        expressible: Kinds that the wire can express besides those of `Transport`.

    Raises:
        InvalidRequestError: A kind that the wire cannot express.
    """

    def __init__(self, faults: Sequence[Fault], expressible: Collection[str]) -> None:
        for fault in faults:
            if fault.kind not in _TRANSPORT and fault.kind not in expressible:
                known = ", ".join((*_TRANSPORT, *expressible))
                raise InvalidRequestError(f"this wire has no fault {fault.kind!r}; it has {known}")
        self._faults = tuple(faults)
        self._met = [0] * len(self._faults)

    def next(self, method: str, path: str) -> Fault | None:
        """The fault of the next request."""
        struck: Fault | None = None
        for i, fault in enumerate(self._faults):
            if (fault.path is None and method != "POST") or fault.path not in (None, path):
                continue
            number, self._met[i] = self._met[i], self._met[i] + 1
            if struck is None and fault.strikes(number):
                struck = fault
        return struck
