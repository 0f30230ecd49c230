"""What the engine asks of a language model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

__all__ = ["LanguageModel", "Logits", "freeze"]

type Logits = NDArray[np.float64]
"""One value per id of the vocabulary."""


class LanguageModel(Protocol):
    """Anything that scores the next token of a context."""

    @property
    def vocab_size(self) -> int:
        """How many ids there are, padding included."""
        ...

    def next_logits(self, context: Sequence[int]) -> Logits:
        """Unnormalised log-probabilities of the next token, shape ``[vocab_size]``.

        The array is not written to. Returning the same object for the same distribution lets the engine reuse
        what it computed from it.
        """
        ...


def freeze(logits: Logits) -> Logits:
    """The array itself, made read-only because it is shared from here on."""
    logits.flags.writeable = False
    return logits
