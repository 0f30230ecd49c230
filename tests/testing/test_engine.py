"""The engine: what it samples, what it reports, when it stops."""

from __future__ import annotations

import math
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from focus_testing import ByteTokenizer, Engine, NGramModel, ScriptModel
from focus_types import ContextLengthError, InvalidRequestError, SamplingParams

TOKENIZER = ByteTokenizer()
HEADS, TAILS = ord("h"), ord("t")
COIN = ScriptModel.texts({" coin ": {"h": 0.75, "t": 0.25}, "h": " coin ", "t": " coin "}, TOKENIZER)
FLIP = TOKENIZER.encode("a coin ")
ONE = SamplingParams(temperature=1, max_tokens=1)
COUNT = ScriptModel.texts({"go": " one two three four five<|im_end|>"}, TOKENIZER)
GO = TOKENIZER.encode("go")
GREEDY = SamplingParams(temperature=0, max_tokens=100)


def test_the_frequencies_are_the_probabilities() -> None:
    engine = Engine(COIN, TOKENIZER, seed=1)
    for temperature, heads in ((1.0, 0.75), (2.0, 0.634), (0.5, 0.9)):
        params = replace(ONE, temperature=temperature)
        counts = Counter(engine.generate(FLIP, params).tokens[0] for _ in range(4000))
        assert counts[HEADS] / 4000 == pytest.approx(heads, abs=0.02)
        assert counts[HEADS] + counts[TAILS] == 4000


@pytest.mark.parametrize(
    ("mode", "params", "heads", "tails"),
    [
        ("raw", replace(ONE, temperature=0.7), -0.287682, -1.386294),
        ("tempered", replace(ONE, temperature=0.7), -0.189099, -1.758545),
        ("behavior", replace(ONE, temperature=0.7), -0.189099, -1.758545),
        ("raw", replace(ONE, top_p=0.5), -0.287682, -1.386294),
        ("tempered", replace(ONE, top_p=0.5), -0.287682, -1.386294),
        ("behavior", replace(ONE, top_p=0.5), 0.0, -math.inf),
        ("behavior", replace(ONE, top_k=1), 0.0, -math.inf),
        ("behavior", replace(ONE, top_k=-1, top_p=0.76), -0.287682, -1.386294),
        ("raw", replace(ONE, temperature=0), -0.287682, -1.386294),
        ("tempered", replace(ONE, temperature=0), -0.287682, -1.386294),
        ("behavior", replace(ONE, temperature=0, top_k=1), -0.287682, -1.386294),
    ],
)
def test_what_is_reported(
    mode: Literal["raw", "tempered", "behavior"], params: SamplingParams, heads: float, tails: float
) -> None:
    engine = Engine(COIN, TOKENIZER, logprob_mode=mode, seed=3)
    reply = engine.generate(FLIP, replace(params, logprobs=2))
    assert reply.top is not None
    found = {one.token: one.logprob for one in reply.top[0]}
    assert found[HEADS] == pytest.approx(heads, abs=1e-6)
    assert found.get(TAILS, -math.inf) == pytest.approx(tails, abs=1e-6)
    assert reply.logprobs == [found[reply.tokens[0]]]


def test_the_repetition_penalty_counts_the_prompt_unless_told_not_to() -> None:
    params = replace(ONE, repetition_penalty=2.0, logprobs=2)
    prompt = TOKENIZER.encode("h coin ")
    seen = {one.token: one.logprob for one in (Engine(COIN, TOKENIZER).generate(prompt, params).top or [])[0]}
    # log 0.75 and log 0.25 are negative logits, so a penalty of 2 doubles that of heads; "t" is not in the prompt.
    heads, tails = 0.75**2 / (0.75**2 + 0.25), 0.25 / (0.75**2 + 0.25)
    assert seen == {HEADS: pytest.approx(math.log(heads)), TAILS: pytest.approx(math.log(tails))}
    run = Engine(COIN, TOKENIZER).start(prompt, params, penalise_prompt=False)
    run.step()
    assert run.result().logprobs[0] in (pytest.approx(math.log(0.75)), pytest.approx(math.log(0.25)))
    raw = Engine(COIN, TOKENIZER, logprob_mode="raw").generate(prompt, params)
    assert raw.top is not None
    assert {one.token: one.logprob for one in raw.top[0]}[HEADS] == pytest.approx(math.log(0.75))


def test_generated_tokens_are_penalised_from_then_on() -> None:
    model = ScriptModel({(1,): {(2,): 0.6, (3,): 0.4}, (2,): {(2,): 0.6, (3,): 0.4}}, vocab_size=300, default=3)
    reply = Engine(model, TOKENIZER).generate([1], replace(GREEDY, max_tokens=3, repetition_penalty=5.0))
    assert reply.tokens == (2, 3, 3)


def test_one_seed_gives_one_reply_whatever_else_runs() -> None:
    engine = Engine(NGramModel("the cat sat on the mat, the dog sat on the log", TOKENIZER), TOKENIZER)
    params = SamplingParams(temperature=1.5, max_tokens=40, logprobs=0)
    prompt = TOKENIZER.encode("the ")
    alone = [engine.generate(prompt, replace(params, seed=seed)) for seed in (-7, 0, 7)]
    with ThreadPoolExecutor(8) as pool:
        crowd = list(pool.map(lambda i: engine.generate(prompt, replace(params, seed=i % 15 - 7)), range(120)))
    for seed, reply in zip((-7, 0, 7), alone, strict=True):
        assert all(other == reply for i, other in enumerate(crowd) if i % 15 - 7 == seed)
    assert len({reply.tokens for reply in crowd}) == 15


def test_an_engine_with_a_seed_repeats_its_unseeded_replies() -> None:
    params = replace(ONE, max_tokens=80)
    first, second = (Engine(COIN, TOKENIZER, seed=5) for _ in range(2))
    replies = [first.generate(FLIP, params).tokens for _ in range(5)]
    assert replies == [second.generate(FLIP, params).tokens for _ in range(5)]
    assert len(set(replies)) == 5


def test_the_end_token_is_kept_in_the_tokens_only() -> None:
    reply = Engine(COUNT, TOKENIZER).generate(GO, GREEDY)
    assert reply.tokens == (*TOKENIZER.encode(" one two three four five"), 258)
    assert (reply.text, reply.finish_reason, reply.matched_stop) == (" one two three four five", "stop", 258)
    assert len(reply.logprobs) == len(reply.tokens)
    assert reply.top is None
    assert reply.prompt is None


def test_a_stop_string_cuts_the_text_and_keeps_the_tokens() -> None:
    reply = Engine(COUNT, TOKENIZER).generate(GO, replace(GREEDY, stop=["zzz", "ree f"]))
    assert TOKENIZER.decode(reply.tokens) == " one two three f"
    assert (reply.text, reply.finish_reason, reply.matched_stop) == (" one two th", "stop", "ree f")


def test_a_stop_token_wins_over_a_stop_string_and_a_stop_over_the_length() -> None:
    engine = Engine(COUNT, TOKENIZER)
    assert engine.generate(GO, replace(GREEDY, stop=["<|im_end|>"])).matched_stop == 258
    reply = engine.generate(GO, GREEDY, stop_token_ids=[ord("w")])
    assert (reply.text, reply.matched_stop, reply.tokens[-1]) == (" one t", ord("w"), ord("w"))
    assert engine.generate(GO, replace(GREEDY, max_tokens=4, stop=["one"])).finish_reason == "stop"
    assert engine.generate(GO, replace(GREEDY, max_tokens=25)).finish_reason == "stop"


def test_length_says_whether_the_context_was_full() -> None:
    engine = Engine(COUNT, TOKENIZER, context_length=10)
    asked = engine.generate(GO, replace(GREEDY, max_tokens=5))
    assert (asked.text, asked.finish_reason, asked.context_full) == (" one ", "length", False)
    full = engine.generate(GO, replace(GREEDY, max_tokens=None))
    assert (full.text, full.finish_reason, full.context_full) == (" one two", "length", True)
    with pytest.raises(ContextLengthError, match="10 tokens and the context 10"):
        engine.generate([1] * 10, GREEDY)


def test_an_aborted_run_keeps_what_it_has() -> None:
    run = Engine(COUNT, TOKENIZER).start(GO, GREEDY)
    assert [run.step() for _ in range(3)] == TOKENIZER.encode(" on")
    run.abort()
    assert run.finished
    reply = run.result()
    assert (reply.text, reply.finish_reason, reply.matched_stop) == (" on", "abort", None)


def test_prompt_scores_are_raw_and_ranked() -> None:
    params = replace(ONE, temperature=0.1, top_k=1, prompt_logprobs=1)
    reply = Engine(COIN, TOKENIZER).generate(TOKENIZER.encode("a coin t"), params)
    assert reply.prompt is not None
    assert reply.prompt[0] == []
    last = reply.prompt[-1]
    assert [(one.token, one.rank) for one in last] == [(TAILS, 2), (HEADS, 1)]
    assert [one.logprob for one in last] == [pytest.approx(math.log(0.25)), pytest.approx(math.log(0.75))]
    unscripted = reply.prompt[1][0]
    assert (unscripted.token, round(unscripted.logprob, 6)) == (ord(" "), -40.0)


def test_the_sampled_token_comes_first_among_the_top() -> None:
    reply = Engine(COIN, TOKENIZER).generate(FLIP, replace(ONE, logprobs=1, seed=2))
    assert reply.top is not None
    assert reply.tokens == (TAILS,)
    assert [(one.token, round(one.logprob, 6)) for one in reply.top[0]] == [(TAILS, -1.386294), (HEADS, -0.287682)]


def test_a_reply_that_ended_can_still_be_called_aborted() -> None:
    run = Engine(COUNT, TOKENIZER).start(TOKENIZER.encode("go one two three four five"), GREEDY)
    assert run.step() == 258
    run.abort()
    assert (run.result().finish_reason, run.result().matched_stop, run.result().tokens) == ("abort", None, (258,))


def test_a_tokenizer_without_end_token_is_refused() -> None:
    class Endless(ByteTokenizer):
        eos_token_id = None  # type: ignore[assignment] # as base models have it

    with pytest.raises(InvalidRequestError, match="Endless has no end token"):
        Engine(COIN, Endless()).generate(FLIP, ONE)
    with pytest.raises(InvalidRequestError, match="Endless has no end token"):
        ScriptModel.texts({"a": "b"}, Endless())


def test_bad_requests_are_refused() -> None:
    engine = Engine(COIN, TOKENIZER)
    for tokens in ([], [265], [-1], [True]):
        with pytest.raises(InvalidRequestError):
            engine.generate(tokens, ONE)
    with pytest.raises(InvalidRequestError, match="temperature"):
        engine.generate(FLIP, replace(ONE, temperature=-1))


@settings(deadline=None, derandomize=True, max_examples=60)
@given(
    st.floats(0.2, 3),
    st.one_of(st.none(), st.integers(1, 12)),
    st.floats(0.1, 1),
    st.sampled_from([1.0, 1.3]),
    st.integers(0, 2**31),
)
def test_behavior_logprobs_are_those_of_an_honest_computation(
    temperature: float, top_k: int | None, top_p: float, penalty: float, seed: int
) -> None:
    """Every reported value against a slow, separate computation with plain lists."""
    model = NGramModel("abracadabra, avada kedavra", TOKENIZER, order=2)
    params = SamplingParams(temperature, 4, top_p, top_k, repetition_penalty=penalty, seed=seed)
    reply = Engine(model, TOKENIZER).generate(FLIP, params)
    context = list(FLIP)
    for token, logprob in zip(reply.tokens, reply.logprobs, strict=True):
        logits = model.next_logits(context).tolist()
        for seen in set(context) if penalty != 1 else set():
            logits[seen] *= penalty  # all log-probabilities, so never positive
        weights = [math.exp(x / temperature) for x in logits]
        order = sorted(range(len(weights)), key=lambda i: (-weights[i], i))
        if top_k is not None:
            order = [i for i in order if weights[i] >= weights[order[top_k - 1]]]
        total, kept, mass = sum(weights[i] for i in order), list[int](), 0.0
        for i in order:
            if top_p < 1 and mass >= top_p * total * (1 + 1e-12):
                break
            kept.append(i)
            mass += weights[i]
        assert token in kept
        assert logprob == pytest.approx(math.log(weights[token] / mass), abs=1e-6)
        context.append(token)
