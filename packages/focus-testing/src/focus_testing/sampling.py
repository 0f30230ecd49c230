"""From logits to the distribution that is sampled from, and to the one that is reported."""

from __future__ import annotations

from collections.abc import Collection
from copy import copy
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from focus_testing.models.base import Logits
from focus_types import SamplingParams

__all__ = ["Distribution", "ReportedMode", "penalised", "sampling_distribution"]

type ReportedMode = Literal["raw", "tempered", "behavior"]
"""The distributions that an engine can report log-probabilities of; see ``focus_types.LogprobMode``."""


class Distribution:
    """A next-token distribution: drawn from by ``behavior``, reported by ``reported``.

    Both are log-probabilities of shape ``[vocab_size]``; they may be the same array.
    """

    def __init__(self, behavior: Logits, reported: Logits, *, greedy: bool) -> None:
        self._reported = reported
        self._greedy = int(np.argmax(behavior)) if greedy else None
        self._cumulative = _cumulative(behavior if not greedy else behavior[:0])
        self._top: dict[int, list[tuple[int, float]]] = {}

    def reporting(self, other: Distribution) -> Distribution:
        """Drawn from as this one, reported as the other one."""
        mixed = copy(self)
        mixed._reported, mixed._top = other._reported, other._top
        return mixed

    def draw(self, uniform: float) -> int:
        """The token at this point of the cumulative distribution, ``uniform`` being in [0, 1)."""
        if self._greedy is not None:
            return self._greedy
        total = float(self._cumulative[-1])
        found = int(self._cumulative.searchsorted(uniform * total, side="right"))
        # A product that rounds up to the total would fall behind the last possible token.
        return found if found < len(self._cumulative) else int(self._cumulative.searchsorted(total, side="left"))

    def logprob(self, token: int) -> float:
        """The reported log-probability, ``-inf`` for a token that was cut off."""
        return float(self._reported[token])

    def rank(self, token: int) -> int:
        """How many tokens are at least as probable, the token included: 1 for the most probable one."""
        return int(np.count_nonzero(self._reported >= self._reported[token]))

    def top(self, k: int) -> list[tuple[int, float]]:
        """The k most probable tokens with their reported log-probabilities, best first."""
        if k not in self._top:
            size = len(self._reported)
            best = np.argpartition(-self._reported, k - 1)[:k] if 0 < k < size else np.arange(min(k, size))
            ids: NDArray[np.intp] = best.astype(np.intp)
            order = np.lexsort((ids, -self._reported[ids]))
            self._top[k] = [(int(token), float(self._reported[token])) for token in ids[order]]
        return self._top[k]


def sampling_distribution(logits: Logits, params: SamplingParams, mode: ReportedMode) -> Distribution:
    """Temperature, then top-k, then top-p over what top-k left, as vLLM and SGLang do it.

    Args:
        logits: The model's, after penalties; shape ``[vocab_size]``.
        params: ``temperature``, ``top_k`` and ``top_p`` are read. Temperature 0 is greedy; what it reports is at
            temperature 1, because a point mass says nothing about the model.
        mode: What to report. "raw" is right only for logits without a penalty.
    """
    temperature = 1.0 if params.temperature is None else params.temperature
    greedy = temperature == 0
    tempered = _log_softmax(logits if greedy or temperature == 1 else logits / temperature)
    behavior = tempered
    if not greedy:
        if params.top_k is not None and 0 < params.top_k < len(logits):
            threshold = np.partition(behavior, -params.top_k)[-params.top_k]
            behavior = _log_softmax(np.where(behavior >= threshold, behavior, -np.inf))
        if params.top_p is not None and params.top_p < 1:
            behavior = _nucleus(behavior, params.top_p)
    if mode == "raw" and temperature not in (0, 1):
        reported = _log_softmax(logits)
    else:
        reported = behavior if mode == "behavior" else tempered
    return Distribution(behavior, reported, greedy=greedy)


def penalised(logits: Logits, penalty: float, seen: Collection[int]) -> Logits:
    """Logits after the repetition penalty of Keskar et al. (2019): those of seen tokens pushed towards less."""
    ids = np.fromiter(seen, dtype=np.intp)
    out = logits.copy()
    out[ids] = np.where(out[ids] > 0, out[ids] / penalty, out[ids] * penalty)
    return out


def _log_softmax(values: Logits) -> Logits:
    shifted: Logits = values - values.max()
    normalised: Logits = shifted - np.log(np.exp(shifted).sum())
    return normalised


def _cumulative(logprobs: Logits) -> Logits:
    out: Logits = np.cumsum(np.exp(logprobs))
    return out


def _nucleus(logprobs: Logits, top_p: float) -> Logits:
    """The fewest most probable tokens that hold ``top_p``, renormalised."""
    order = np.argsort(-logprobs, kind="stable")
    before = np.cumsum(np.exp(logprobs[order])) - np.exp(logprobs[order])
    kept = np.full_like(logprobs, -np.inf)
    chosen = order[before < top_p]
    kept[chosen] = logprobs[chosen]
    return _log_softmax(kept)
