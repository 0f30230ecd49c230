"""A model that follows a script: after this text, these continuations with these probabilities."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from focus_testing.models.base import Logits, end_token, freeze
from focus_types import HFTokenizer, InvalidRequestError

__all__ = ["Continuations", "ScriptModel", "Texts"]

type Continuations = Mapping[tuple[int, ...], float]
type Texts = str | Mapping[str, float]

_CACHED_VALUES = 2**23
"""Logits kept at once: 64 MiB of float64."""


@dataclass(eq=False)
class _Node:
    """The next tokens after a piece of a continuation, with the probability mass that goes through each."""

    mass: float = 0.0
    children: dict[int, _Node] = field(default_factory=dict[int, "_Node"])

    def add(self, tokens: Sequence[int], probability: float) -> None:
        node = self
        for token in tokens:
            node = node.children.setdefault(token, _Node())
            node.mass += probability

    def follow(self, tokens: Sequence[int]) -> _Node | None:
        node = self
        for token in tokens:
            child = node.children.get(token)
            if child is None:
                return None
            node = child
        return node


@dataclass(frozen=True)
class _Rule:
    suffix: list[int]
    marker: list[int]
    turns: list[_Node]

    def start(self, context: Sequence[int], end: int) -> _Node:
        """The continuations for the suffix that ends at ``end``, by how often the marker came until there."""
        if len(self.turns) == 1:
            return self.turns[0]
        return self.turns[min(max(_count(self.marker, context, end) - 1, 0), len(self.turns) - 1)]


def _count(marker: list[int], context: Sequence[int], end: int) -> int:
    found, at = 0, 0
    while True:
        try:
            at = context.index(marker[0], at, end)
        except ValueError:
            return found
        found += list(context[at : min(at + len(marker), end)]) == marker
        at += 1


def _tree(continuations: Continuations) -> _Node:
    probabilities = list(continuations.values())
    if not probabilities or min(probabilities) <= 0 or not math.isclose(sum(probabilities), 1, abs_tol=1e-6):
        raise InvalidRequestError(
            f"probabilities of continuations must be positive and sum to 1, got {probabilities!r}"
        )
    root = _Node()
    for tokens, probability in continuations.items():
        if not tokens:
            raise InvalidRequestError("a continuation is empty: give at least its end token")
        root.add(tokens, probability)
    for tokens in continuations:
        node = root.follow(tokens)
        if node is not None and node.children:
            raise InvalidRequestError(
                f"the continuation {tokens!r} is the beginning of another one: end it with a stop token"
            )
    return root


class ScriptModel:
    """Exactly known next-token probabilities.

    The rule whose suffix, followed by the continuation so far, covers most of the context's end decides. What
    has no rule is followed by ``default``.

    Args:
        rules: Suffix ids to continuations with their probabilities, which sum to 1. A list of such mappings
            plays one after the other: the n-th for the n-th time that the suffix occurs in the context, the
            last one from then on.
        vocab_size: How many ids there are.
        default: The token that follows where no rule applies.
        floor: Logit of every token that is not scripted, where scripted ones have the log of their
            probability. Finite, as in real models, so that any prompt has finite log-probabilities;
            ``-math.inf`` makes the rest impossible.

    Raises:
        InvalidRequestError: A rule that cannot be played, saying why.
    """

    def __init__(
        self,
        rules: Mapping[tuple[int, ...], Continuations | Sequence[Continuations]],
        *,
        vocab_size: int,
        default: int,
        floor: float = -40.0,
    ) -> None:
        self.vocab_size: int = vocab_size
        self._floor = floor
        self._default = _Node()
        self._default.add([default], 1.0)
        self._depth = 0
        self._by_last: dict[int, list[_Rule]] = {}
        self._logits: dict[_Node, Logits] = {}
        self._given: list[tuple[Sequence[int], Sequence[int], Sequence[Continuations]]] = []
        for suffix, value in rules.items():
            self._add_rule(suffix, suffix, [value] if isinstance(value, Mapping) else value)

    def _add_rule(self, suffix: Sequence[int], marker: Sequence[int], turns: Sequence[Continuations]) -> None:
        if not suffix or not turns:
            raise InvalidRequestError("a rule needs a suffix of at least one token and something to play")
        self._given.append((suffix, marker, turns))
        self._depth = max(self._depth, *(len(tokens) for turn in turns for tokens in turn), 0)
        rule = _Rule(list(suffix), list(marker), [_tree(turn) for turn in turns])
        self._by_last.setdefault(suffix[-1], []).append(rule)

    def __getstate__(self) -> tuple[int, float, _Node, list[Any]]:
        return self.vocab_size, self._floor, self._default, self._given

    def __setstate__(self, state: tuple[int, float, _Node, list[Any]]) -> None:
        # The trees are as deep as replies are long, too deep to pickle: they grow again from what was given.
        self.vocab_size, self._floor, self._default, given = state
        self._depth, self._by_last, self._logits, self._given = 0, {}, {}, []
        for rule in given:
            self._add_rule(*rule)

    @classmethod
    def texts(
        cls,
        rules: Mapping[str, Texts | Sequence[Texts]],
        tokenizer: HFTokenizer,
        *,
        vocab_size: int | None = None,
        floor: float = -40.0,
    ) -> Self:
        """The same from texts: ``{" coin": {" heads": 0.75, " tails": 0.25}, "Say hello": "Hello<|im_end|>"}``.

        Where no rule applies the model ends its reply.
        """
        model = cls({}, vocab_size=vocab_size or len(tokenizer), default=end_token(tokenizer), floor=floor)
        for suffix, value in rules.items():
            ids = tokenizer.encode(suffix, add_special_tokens=False)
            turns = [value] if isinstance(value, str | Mapping) else value
            model._add_rule(ids, ids, [_encoded(turn, tokenizer) for turn in turns])
        return model

    @classmethod
    def replies(
        cls,
        replies: Sequence[Texts],
        tokenizer: HFTokenizer,
        *,
        vocab_size: int | None = None,
        floor: float = -40.0,
    ) -> Self:
        """A model that plays one reply per assistant turn, then the last one again and again.

        Args:
            replies: Texts, or texts with their probabilities; the tokenizer's end token is added to each that
                lacks it.
            tokenizer: Its chat template says where an assistant turn begins.
            vocab_size: As above; the tokenizer's length by default.
            floor: As above.
        """
        end = str(tokenizer.decode([end_token(tokenizer)]))
        turns = [_encoded(_ended(reply, end), tokenizer) for reply in replies]
        openings = {_opening(tokenizer): None, _opening(tokenizer, enable_thinking=False): None}
        model = cls({}, vocab_size=vocab_size or len(tokenizer), default=end_token(tokenizer), floor=floor)
        marker = min(openings, key=len)
        for opening in openings:
            model._add_rule(opening, marker, turns)
        return model

    def next_logits(self, context: Sequence[int]) -> Logits:
        """The script's distribution, as logits of shape ``[vocab_size]``."""
        node = self._find(context)
        logits = self._logits.get(node)
        if logits is None:
            logits = np.full(self.vocab_size, self._floor)
            total = sum(child.mass for child in node.children.values())
            for token, child in node.children.items():
                logits[token] = math.log(child.mass / total)
            if len(self._logits) * self.vocab_size > _CACHED_VALUES:
                self._logits.clear()
            self._logits[node] = freeze(logits)
        return logits

    def _find(self, context: Sequence[int]) -> _Node:
        best, covered, size = self._default, 0, len(context)
        known = self._by_last
        # A rule's suffix ends at most as far back as its continuations are long.
        offset = max(size - self._depth, 0)
        ends = [i for i, token in enumerate(context[offset:], offset + 1) if token in known]
        for end in reversed(ends):
            for rule in known[context[end - 1]]:
                start = end - len(rule.suffix)
                if start < 0 or size - start <= covered or context[start] != rule.suffix[0]:
                    continue
                if list(context[start:end]) != rule.suffix:
                    continue
                node = rule.start(context, end).follow(context[end:])
                if node is not None and node.children:
                    best, covered = node, size - start
        return best


def _encoded(texts: Texts, tokenizer: HFTokenizer) -> Continuations:
    given = {texts: 1.0} if isinstance(texts, str) else texts
    return {tuple(tokenizer.encode(text, add_special_tokens=False)): p for text, p in given.items()}


def _ended(texts: Texts, end: str) -> Texts:
    if isinstance(texts, str):
        return texts if texts.endswith(end) else texts + end
    return {text if text.endswith(end) else text + end: p for text, p in texts.items()}


def _opening(tokenizer: HFTokenizer, **variables: bool) -> tuple[int, ...]:
    """The generation prompt that the tokenizer's chat template writes."""
    messages = [{"role": "user", "content": "?"}]
    without, prompt = (
        str(tokenizer.apply_chat_template(messages, add_generation_prompt=on, tokenize=False, **variables))
        for on in (False, True)
    )
    if not prompt.startswith(without) or prompt == without:
        raise InvalidRequestError("the tokenizer's chat template has no generation prompt: use ScriptModel.texts")
    return tuple(tokenizer.encode(prompt[len(without) :], add_special_tokens=False))
