"""Ids are checked before they are sent."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from focus_types import InvalidRequestError
from focus_types.tokens import check_token_ids

BAD: list[tuple[Any, int | None, str]] = [
    ((), None, "the prompt is empty: a model cannot continue zero tokens"),
    ("text", None, "tokens must be a sequence of token ids, got text: encode it with the format's codec"),
    (7, None, "tokens must be a sequence of token ids, got int"),
    ((1, True), None, "token 1 of 2 is True (bool); ids must be plain int (an array's .tolist() gives them)"),
    ((1, 2.0), None, "token 1 of 2 is 2.0 (float); ids must be plain int (an array's .tolist() gives them)"),
    (("a",), None, "token 0 of 1 is 'a' (str); ids must be plain int (an array's .tolist() gives them)"),
]


@pytest.mark.parametrize(("tokens", "bound", "message"), BAD)
def test_what_is_no_id_is_refused_by_position(tokens: Any, bound: int | None, message: str) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        check_token_ids(tokens, bound)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("tokens", "bound", "start"),
    [
        ((5, -1), None, "token 1 of 2 is -1, outside 0..2147483647:"),
        ((2**31,), None, "token 0 of 1 is 2147483648, outside 0..2147483647:"),
        ((9, 10), 10, "token 1 of 2 is 10, outside 0..9:"),
    ],
)
def test_out_of_range_is_refused_with_the_range(tokens: tuple[int, ...], bound: int | None, start: str) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        check_token_ids(tokens, bound)
    assert str(caught.value).startswith(start)


def test_numpy_integers_are_refused() -> None:
    array: Any = np.array([1, 2])
    with pytest.raises(InvalidRequestError, match=r"int64"):
        check_token_ids(array)
    assert check_token_ids(array.tolist()) == (1, 2)


def test_a_tuple_comes_back_itself() -> None:
    tokens = (0, 9)
    assert check_token_ids(tokens, 10) is tokens
    assert check_token_ids([0, 9], 10) == (0, 9)
