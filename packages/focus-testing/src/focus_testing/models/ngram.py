"""An n-gram model of a given text."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

import numpy as np

from focus_testing.models.base import Logits, end_token, freeze
from focus_types import HFTokenizer, InvalidRequestError

__all__ = ["NGramModel"]

_CACHED_VALUES = 2**23
"""Logits kept at once: 64 MiB of float64."""


class NGramModel:
    """Next-token probabilities counted in a text and smoothed with those of shorter contexts.

    For a context ``c`` of n - 1 tokens, seen ``N(c)`` times and followed ``N(c, t)`` times by ``t``,

        P_n(t | c) = (N(c, t) + s * P_{n-1}(t | c')) / (N(c) + s),    P_0(t) = 1 / vocab_size

    with ``c'`` the context without its first token: the hierarchical Dirichlet language model of MacKay and
    Peto (1995) with one concentration ``s`` for all orders.

    Args:
        text: One text, or several; each is followed by the tokenizer's end token.
        tokenizer: Cuts the text into tokens.
        order: n: the next token depends on the n - 1 tokens before it.
        smoothing: s, > 0.
        vocab_size: How many ids there are; the tokenizer's length by default.

    Raises:
        InvalidRequestError: An order below 1 or a smoothing that is not positive.
    """

    def __init__(
        self,
        text: str | Sequence[str],
        tokenizer: HFTokenizer,
        *,
        order: int = 4,
        smoothing: float = 0.1,
        vocab_size: int | None = None,
    ) -> None:
        if order < 1 or not smoothing > 0:
            raise InvalidRequestError(f"order must be >= 1 and smoothing > 0, got {order!r} and {smoothing!r}")
        self.vocab_size: int = vocab_size or len(tokenizer)
        self._order = order
        self._smoothing = smoothing
        self._counts: defaultdict[tuple[int, ...], Counter[int]] = defaultdict(Counter)
        self._probabilities: dict[tuple[int, ...], Logits] = {}
        self._logits: dict[tuple[int, ...], Logits] = {}
        for one in [text] if isinstance(text, str) else text:
            ids = [*tokenizer.encode(one, add_special_tokens=False), end_token(tokenizer)]
            for i, token in enumerate(ids):
                for n in range(min(order, i + 1)):
                    self._counts[tuple(ids[i - n : i])][token] += 1

    def next_logits(self, context: Sequence[int]) -> Logits:
        """Log-probabilities of the next token, shape ``[vocab_size]``."""
        seen = tuple(context[len(context) - self._order + 1 :]) if len(context) >= self._order else tuple(context)
        while seen and seen not in self._counts:
            seen = seen[1:]
        logits = self._logits.get(seen)
        if logits is None:
            if len(self._logits) * self.vocab_size > _CACHED_VALUES:
                self._logits.clear()
                self._probabilities.clear()
            logits = self._logits[seen] = freeze(np.log(self._smoothed(seen)))
        return logits

    def _smoothed(self, context: tuple[int, ...]) -> Logits:
        known = self._probabilities.get(context)
        if known is not None:
            return known
        shorter = self._smoothed(context[1:]) if context else np.full(self.vocab_size, 1 / self.vocab_size)
        counts = self._counts.get(context, Counter[int]())
        probabilities = shorter * self._smoothing
        probabilities[list(counts)] += list(counts.values())
        probabilities /= counts.total() + self._smoothing
        self._probabilities[context] = freeze(probabilities)
        return probabilities
