"""Tokens cut into readable pieces."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from focus_cli.pieces import cut, visible
from focus_testing import ByteTokenizer

TOKENIZER = ByteTokenizer()


def decode(tokens: Sequence[int]) -> str:
    return TOKENIZER.decode(tokens)


def decode_from(table: dict[int, bytes]) -> object:
    return lambda tokens: b"".join(table[token] for token in tokens).decode(errors="replace")


@settings(deadline=None, derandomize=True)
@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\ufffd")))
def test_characters_stay_whole(text: str) -> None:
    tokens = TOKENIZER.encode(text)
    pieces = cut(tokens, (), decode)
    assert "".join(piece.text for piece in pieces) == TOKENIZER.decode(tokens)
    assert [token for piece in pieces for token in piece.tokens] == tokens
    assert all("\ufffd" not in piece.text for piece in pieces)


@settings(deadline=None, derandomize=True)
@given(st.lists(st.integers(0, 264)))
def test_every_token_is_in_one_piece_whatever_comes(tokens: list[int]) -> None:
    logprobs = [-float(n) for n in range(len(tokens))]
    pieces = cut(tokens, logprobs, decode)
    assert [token for piece in pieces for token in piece.tokens] == tokens
    assert [value for piece in pieces for value in piece.logprobs] == logprobs
    starts = [piece.start for piece in pieces]
    assert starts == [sum(len(piece.tokens) for piece in pieces[:n]) for n in range(len(pieces))]


def test_bytes_that_are_no_text_stand_alone() -> None:
    pieces = cut([0xFF, *b"a", *"é".encode(), 0xE6, 0x97], (), decode)
    assert [(piece.text, len(piece.tokens)) for piece in pieces] == [
        ("\ufffd", 1), ("a", 1), ("é", 2), ("\ufffd", 1), ("\ufffd", 1),
    ]  # fmt: skip


def test_tokens_that_hold_parts_of_two_characters() -> None:
    first, second = "日".encode(), "本".encode()
    table = {0: b"A" + first[:1], 1: first[1:] + second[:2], 2: second[2:] + b"B", 3: b"C"}

    def decode_table(tokens: Sequence[int]) -> str:
        return b"".join(table[token] for token in tokens).decode(errors="replace")

    assert [(piece.text, piece.tokens) for piece in cut([0, 1, 2, 3], (), decode_table)] == [
        ("A日本B", (0, 1, 2)),
        ("C", (3,)),
    ]


def test_a_tokenizer_that_drops_the_first_blank() -> None:
    words = {0: " Hello", 1: " you", 2: "!"}

    def decode_words(tokens: Sequence[int]) -> str:
        return "".join(words[token] for token in tokens).removeprefix(" ")

    assert [piece.text for piece in cut([0, 1, 2], (), decode_words)] == ["Hello", " you", "!"]


def test_the_probability_of_a_split_character_is_that_of_all_its_tokens() -> None:
    [piece] = cut(TOKENIZER.encode("é"), (-0.5, -0.25), decode)
    assert piece.probability == pytest.approx(0.4723665527)


def test_visible() -> None:
    assert visible("a\nb\tc") == "a⏎\nb⇥c"
    assert visible("a\nb", line_break="") == "a⏎b"
    assert visible("\x1b[0m\x07\x7f\x9b") == "\\x1b[0m\\x07\\x7f\\x9b"
    assert visible("\u202e\u2066\u2028\ufeff") == "\\u202e\\u2066\\u2028\\ufeff"
    assert visible("👩\u200d🚀 日本 é") == "👩\u200d🚀 日本 é"
