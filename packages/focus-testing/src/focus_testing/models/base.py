"""What the engine asks of a language model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from focus_types import HFTokenizer, InvalidRequestError

__all__ = ["LanguageModel", "Logits", "end_token", "freeze"]

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


def end_token(tokenizer: HFTokenizer) -> int:
    """The id that ends a reply.

    Raises:
        InvalidRequestError: The tokenizer has none.
    """
    token = tokenizer.eos_token_id
    if not isinstance(token, int):
        raise InvalidRequestError(f"{type(tokenizer).__name__} has no end token (eos_token_id is {token!r})")
    return token
