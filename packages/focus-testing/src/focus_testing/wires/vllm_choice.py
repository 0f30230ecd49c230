"""One choice of a completion, as vLLM writes it."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any

from focus_testing.engine import Candidate, Generation
from focus_testing.wires.base import token_texts
from focus_types import HFTokenizer

__all__ = ["ChoiceOptions", "completion_choice", "finite", "shown_text", "usage"]

_FILLER = -9999.0


@dataclass(frozen=True)
class ChoiceOptions:
    """How a completion is written."""

    return_token_ids: bool
    tokens_as_ids: bool
    """Tokens and keys are ``token_id:N`` instead of texts."""
    skip_special_tokens: bool
    include_stop: bool
    hidden_stop: int
    """The end token: its reply has no ``stop_reason``."""


def completion_choice(
    index: int, prompt: list[int], generation: Generation, options: ChoiceOptions, tokenizer: HFTokenizer
) -> dict[str, Any]:
    """The choice's object."""
    matched = generation.matched_stop
    return {
        "index": index,
        "text": shown_text(generation, options, tokenizer),
        "logprobs": _logprobs(generation, options, tokenizer),
        "finish_reason": generation.finish_reason,
        "stop_reason": None if matched == options.hidden_stop else matched,
        "token_ids": list(generation.tokens) if options.return_token_ids else None,
        "prompt_logprobs": _prompt_logprobs(generation, tokenizer),
        "prompt_token_ids": prompt if options.return_token_ids else None,
        "routed_experts": None,
    }


def shown_text(generation: Generation, options: ChoiceOptions, tokenizer: HFTokenizer) -> str:
    """The text: without the stop token and from a stop string on, and without a last character that is cut."""
    matched, tokens = generation.matched_stop, list(generation.tokens)
    if isinstance(matched, int) and not options.include_stop:
        tokens = tokens[:-1]
    text = str(tokenizer.decode(tokens, skip_special_tokens=options.skip_special_tokens))
    if isinstance(matched, str) and matched in text:
        text = text[: text.find(matched)] + (matched if options.include_stop else "")
    return text.rstrip("\ufffd")


def usage(prompt: int, completion: int) -> dict[str, Any]:
    """Token counts."""
    return {
        "prompt_tokens": prompt,
        "total_tokens": prompt + completion,
        "completion_tokens": completion,
        "prompt_tokens_details": None,
        "completion_tokens_details": None,
    }


def finite(logprob: float) -> float:
    """JSON has no minus infinity."""
    return logprob if math.isfinite(logprob) else _FILLER


def _logprobs(generation: Generation, options: ChoiceOptions, tokenizer: HFTokenizer) -> dict[str, Any] | None:
    if generation.top is None:
        return None
    texts = token_texts(tokenizer, generation.tokens)
    if options.tokens_as_ids:
        texts = [_key(token) for token in generation.tokens]
    lengths = [len(text) for text in texts]
    return {
        "text_offset": list(itertools.accumulate(lengths, initial=0))[:-1],
        "token_logprobs": [finite(value) for value in generation.logprobs],
        "tokens": texts,
        "top_logprobs": [
            _alternatives(text, candidates, options, tokenizer)
            for text, candidates in zip(texts, generation.top, strict=True)
        ],
    }


def _alternatives(
    text: str, candidates: list[Candidate], options: ChoiceOptions, tokenizer: HFTokenizer
) -> dict[str, float]:
    sampled, *others = candidates
    entries = {text: finite(sampled.logprob)}
    for one in others:
        key = _key(one.token) if options.tokens_as_ids else token_texts(tokenizer, [one.token])[0]
        entries[key] = finite(one.logprob)
    return entries


def _key(token: int) -> str:
    return f"token_id:{token}"


def _prompt_logprobs(generation: Generation, tokenizer: HFTokenizer) -> list[dict[str, Any] | None] | None:
    if generation.prompt is None:
        return None
    return [
        {
            str(one.token): {
                "logprob": finite(one.logprob),
                "rank": one.rank,
                "decoded_token": token_texts(tokenizer, [one.token])[0],
            }
            for one in position
        }
        or None
        for position in generation.prompt
    ]
