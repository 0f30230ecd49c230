"""The script model of the real servers' recipes, on the desk: same ids, same logits, no weights."""

from __future__ import annotations

import itertools

from focus_testing import ScriptModel
from support.table_tokenizer import TableTokenizer

__all__ = ["COIN", "END", "HEADS", "HELLO", "TAILS", "script_model", "table_tokenizer"]

COIN, HEADS, TAILS, HELLO, END = 16254, 14629, 63514, 9707, 151645
_WORDS = {
    COIN: " coin", HEADS: " heads", TAILS: " tails", HELLO: "Hello", 825: " one", 1378: " two", 2326: " three",
    3040: " four", 4236: " five", 4743: " six", 11958: " bird", 67241: " sings", 3281: " special", 9787: " tail",
    151654: "<|vision_pad|>", END: "<|im_end|>", 0: "!", 1: '"', 3: "$", 4: "%",
}  # fmt: skip
_HALVES = {123918: b"\xf0\x9f\xa6", 250: b"\x9c"}
_TEXTS = {
    "The agent solved it.": [785, 8315, 27956, 432, 13],
    "Hi": [13048],
    "x y z": [87, 379, 1147],
    "a b c d e f": [64, 293, 272, 294, 384, 282],
    "a b": [64, 293],
}
_CHAINS = (
    (HELLO, 825, 1378, 2326, 3040, 4236, 4743, END),
    (11958, 123918, 250, 67241, END),
    (3281, 151654, 9787, END),
)


def table_tokenizer() -> TableTokenizer:
    """The texts of the ids that the script and the recorded exchanges speak of."""
    table = {token: word.encode() for token, word in _WORDS.items()} | _HALVES
    return TableTokenizer(table, special=(END, 151654), texts=_TEXTS)


def script_model() -> ScriptModel:
    """The next token depends on the last one: the coin, three chains that end, and the coin after anything else.

    The tool dialogue of the recipe's model is left out.
    """
    rules: dict[tuple[int, ...], dict[tuple[int, ...], float]] = {(COIN,): {(HEADS,): 0.75, (TAILS,): 0.25}}
    for chain in _CHAINS:
        rules |= {(here,): {(there,): 1.0} for here, there in itertools.pairwise(chain)}
    return ScriptModel(rules, vocab_size=151936, default=COIN, floor=-30.0)
