"""Token ids are checked before they are sent: one bad id can kill a server and every worker behind a router."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from focus_types.aliases import TokenId
from focus_types.errors import InvalidRequestError

__all__ = ["check_token_ids"]

_WIRE_LIMIT = 2**31


def check_token_ids(tokens: Sequence[TokenId], bound: int | None = None) -> tuple[TokenId, ...]:
    """The prompt as a tuple of ids that are safe to send; a tuple comes back itself, uncopied.

    Args:
        tokens: Ids, each a plain ``int``.
        bound: Ids must be below it; None if the vocabulary is unknown.

    Raises:
        InvalidRequestError: Empty, or naming the first position that is not an ``int`` (bools and numpy
            integers included), negative, or not below the bound.
    """
    if isinstance(tokens, str | bytes):
        raise InvalidRequestError("tokens must be a sequence of token ids, got text: encode it with the format's codec")
    try:
        ids = tuple(tokens)
    except TypeError:
        raise InvalidRequestError(f"tokens must be a sequence of token ids, got {type(tokens).__name__}") from None
    if not ids:
        raise InvalidRequestError("the prompt is empty: a model cannot continue zero tokens")
    kinds: set[Any] = set(map(type, ids))
    if kinds != {int}:
        at = next(i for i, token in enumerate(ids) if type(token) is not int)
        raise InvalidRequestError(
            f"token {at} of {len(ids)} is {ids[at]!r} ({type(ids[at]).__name__}); ids must be plain int"
            " (an array's .tolist() gives them)"
        )
    limit = _WIRE_LIMIT if bound is None else bound
    if min(ids) < 0 or max(ids) >= limit:
        at = next(i for i, token in enumerate(ids) if not 0 <= token < limit)
        raise InvalidRequestError(
            f"token {at} of {len(ids)} is {ids[at]}, outside 0..{limit - 1}: it was encoded with another"
            " tokenizer, or the codec does not know the model's padded vocab_size"
        )
    return ids
