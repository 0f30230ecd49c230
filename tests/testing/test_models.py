"""Models whose next-token probabilities are known."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from focus_testing import ByteTokenizer, Engine, NGramModel, ScriptModel
from focus_testing.models import LanguageModel
from focus_types import InvalidRequestError, SamplingParams

TOKENIZER = ByteTokenizer()
GREEDY = SamplingParams(temperature=0, max_tokens=200)


def probabilities(model: LanguageModel, context: str) -> dict[int, float]:
    """The next tokens that have at least one in a million."""
    logits = model.next_logits(TOKENIZER.encode(context))
    shares = np.exp(logits - np.log(np.exp(logits).sum()))
    return {int(token): round(float(shares[token]), 6) for token in np.flatnonzero(shares > 1e-6)}


def test_a_coin_has_its_probabilities_at_the_byte_where_they_part() -> None:
    model = ScriptModel.texts({" coin": {" heads": 0.75, " tails": 0.25}}, TOKENIZER)
    assert probabilities(model, "a coin") == {ord(" "): 1.0}
    assert probabilities(model, "a coin ") == {ord("h"): 0.75, ord("t"): 0.25}
    assert probabilities(model, "a coin t") == {ord("a"): 1.0}


def test_the_longest_match_decides_and_the_rest_ends_the_reply() -> None:
    model = ScriptModel.texts({"a": "X", "ba": "Y", "say": "cba!"}, TOKENIZER)
    assert probabilities(model, "a") == {ord("X"): 1.0}
    assert probabilities(model, "ba") == {ord("Y"): 1.0}
    assert probabilities(model, "saycba") == {ord("!"): 1.0}
    assert probabilities(model, "zzz") == {258: 1.0}


def test_replies_play_one_per_turn_and_then_the_last_one() -> None:
    model = ScriptModel.replies(["one", {"two": 0.5, "dos": 0.5}], TOKENIZER)
    turn = "<|im_start|>assistant\n"
    assert probabilities(model, f"hi{turn}") == {ord("o"): 1.0}
    assert probabilities(model, f"hi{turn}one<|im_end|>\n{turn}") == {ord("t"): 0.5, ord("d"): 0.5}
    assert probabilities(model, f"{turn}x{turn}y{turn}tw") == {ord("o"): 1.0}
    assert probabilities(model, f"{turn}x{turn}two") == {258: 1.0}


def test_replies_also_follow_a_generation_prompt_with_an_empty_thought() -> None:
    model = ScriptModel.replies(["one", "two"], TOKENIZER)
    messages = [{"role": "user", "content": "?"}]
    prompt = TOKENIZER.apply_chat_template(messages, add_generation_prompt=True, enable_thinking=False)
    assert Engine(model, TOKENIZER).generate(prompt, GREEDY).text == "one"
    later = [*prompt, *TOKENIZER.encode("one<|im_end|>\n"), *prompt]
    assert Engine(model, TOKENIZER).generate(later, GREEDY).text == "two"


def test_ids_with_a_finite_floor_give_the_real_logits() -> None:
    model = ScriptModel({(5,): {(7,): 0.75, (8, 9): 0.25}}, vocab_size=20, default=5, floor=-30.0)
    logits = model.next_logits([1, 5])
    assert logits[7] == math.log(0.75)
    assert logits[8] == math.log(0.25)
    assert logits[6] == -30.0
    assert model.next_logits([5, 8])[9] == 0.0
    assert model.next_logits([6])[5] == 0.0
    assert model.next_logits([1, 5]) is logits


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ({"a": {"x": 0.5, "y": 0.4}}, "sum to 1"),
        ({"a": {"x": 1.5, "y": -0.5}}, "must be positive"),
        ({"a": {}}, "must be positive"),
        ({"a": ""}, "continuation is empty"),
        ({"a": {"x": 0.5, "xy": 0.5}}, "beginning of another"),
        ({"": "x"}, "suffix of at least one token"),
        ({"a": []}, "something to play"),
    ],
)
def test_a_rule_that_cannot_be_played_is_refused(rules: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidRequestError, match=message):
        ScriptModel.texts(rules, TOKENIZER)


def test_a_template_without_generation_prompt_is_refused() -> None:
    tokenizer = ByteTokenizer(chat_template="{{ messages[0].content }}")
    with pytest.raises(InvalidRequestError, match="no generation prompt"):
        ScriptModel.replies(["x"], tokenizer)


def test_n_grams_have_the_smoothed_counts() -> None:
    model = NGramModel("abac", TOKENIZER, order=2, smoothing=1.0)
    uniform = 1 / 265
    unigram = (1 + uniform) / (5 + 1)  # "b" once among a, b, a, c, end
    logits = model.next_logits(TOKENIZER.encode("xa"))
    assert math.exp(logits[ord("b")]) == pytest.approx((1 + unigram) / (2 + 1), rel=1e-12)
    assert math.exp(logits[ord("z")]) == pytest.approx((uniform / 6) / 3, rel=1e-12)
    assert np.exp(logits).sum() == pytest.approx(1.0, rel=1e-12)
    unseen = model.next_logits(TOKENIZER.encode("q"))
    assert math.exp(unseen[ord("b")]) == pytest.approx(unigram, rel=1e-12)


def test_an_n_gram_model_writes_the_text_that_it_knows() -> None:
    model = NGramModel(["to be, or not", "to do"], TOKENIZER, order=7, smoothing=1e-6)
    reply = Engine(model, TOKENIZER).generate(TOKENIZER.encode("to be"), GREEDY)
    assert (reply.text, reply.finish_reason, reply.matched_stop) == (", or not", "stop", 258)


def test_bad_n_gram_settings_are_refused() -> None:
    for order, smoothing in ((0, 0.1), (3, 0.0)):
        with pytest.raises(InvalidRequestError, match="order must be >= 1 and smoothing > 0"):
            NGramModel("a", TOKENIZER, order=order, smoothing=smoothing)
