"""The engine: real sampling from a model whose next-token probabilities are known."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from focus_testing.models.base import LanguageModel, Logits, end_token
from focus_testing.sampling import Distribution, ReportedMode, penalised, sampling_distribution
from focus_types import ContextLengthError, HFTokenizer, SamplingParams
from focus_types.sampling import validate_params
from focus_types.tokens import check_token_ids

__all__ = ["Candidate", "Engine", "Generation", "Run"]

_CACHED_VALUES = 2**23
"""Values of prepared distributions kept at once: 64 MiB of float64 per array."""
_PLAIN = SamplingParams(temperature=1.0, top_p=1.0)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A token of the vocabulary at one position."""

    token: int
    logprob: float
    """Natural log; ``-inf`` for a token that truncation cut off."""
    rank: int | None = None
    """1 for the most probable token; None where nobody asked."""


@dataclass(frozen=True)
class Generation:
    """One reply of the engine."""

    tokens: tuple[int, ...]
    """Every generated id, the stop token and all tokens of a stop string included."""
    text: str
    """Decoded from the tokens without a final stop token, special tokens kept, cut where a stop string begins."""
    finish_reason: str
    """"stop", "length" or "abort"."""
    matched_stop: int | str | None
    """The stop token's id or the stop string."""
    logprobs: list[float]
    """One per token, in the engine's ``logprob_mode``."""
    top: list[list[Candidate]] | None
    """Per token, the sampled token and then the top k; None if ``params.logprobs`` is None."""
    prompt: list[list[Candidate]] | None
    """Per prompt token, the token itself and then the top k, always of the raw distribution; the first is empty.
    None if ``params.prompt_logprobs`` is None."""
    context_full: bool
    """A "length" that came from the end of the context, not from ``max_tokens``."""


@dataclass
class Engine:
    """A model, a tokenizer and the rules of a server.

    Args:
        model: Scores the next token.
        tokenizer: Decodes, and says which token ends a reply; it belongs to the model.
        context_length: Most tokens of prompt and reply together.
        logprob_mode: Which distribution the log-probabilities of generated tokens are of.
        seed: Makes the sampling of requests without a seed repeatable, in order of their arrival.
    """

    model: LanguageModel
    tokenizer: HFTokenizer
    context_length: int = 4096
    logprob_mode: ReportedMode = "behavior"
    seed: int | None = None
    _random: random.Random = field(init=False, repr=False)
    _prepared: dict[tuple[object, ...], tuple[Logits, Distribution]] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)
        self._prepared = {}

    def __getstate__(self) -> dict[str, object]:
        # Prepared distributions are found by the address of their logits, which does not travel.
        return {**self.__dict__, "_prepared": {}}

    @property
    def vocab_size(self) -> int:
        """How many ids the model accepts."""
        return self.model.vocab_size

    def generate(self, tokens: Sequence[int], params: SamplingParams, stop_token_ids: Sequence[int] = ()) -> Generation:
        """Continue ``tokens`` until something stops the reply.

        The same seed gives the same ids whatever else runs.

        Args:
            tokens: The prompt's ids.
            params: How to sample; ``max_tokens=None`` means to the end of the context, every other None is off.
            stop_token_ids: Ids that end a reply besides the tokenizer's end token.

        Raises:
            InvalidRequestError: Bad parameters or ids outside the vocabulary.
            ContextLengthError: The prompt leaves no room for a token.
        """
        run = self.start(tokens, params, stop_token_ids)
        while not run.finished:
            run.step()
        return run.result()

    def start(
        self,
        tokens: Sequence[int],
        params: SamplingParams,
        stop_token_ids: Sequence[int] = (),
        *,
        penalise_prompt: bool = True,
    ) -> Run:
        """The same one token at a time, for whoever wants to stream or to abort.

        Args:
            tokens: The prompt's ids.
            params: How to sample.
            stop_token_ids: Ids that end a reply besides the tokenizer's end token.
            penalise_prompt: Whether the repetition penalty counts the prompt's tokens as seen.

        Raises:
            InvalidRequestError: Bad parameters or ids outside the vocabulary.
            ContextLengthError: The prompt leaves no room for a token.
        """
        validate_params(params)
        ids = check_token_ids(tokens, self.vocab_size)
        room = self.context_length - len(ids)
        if room < 1:
            raise ContextLengthError(
                f"the prompt has {len(ids)} tokens and the context {self.context_length}: no room for a reply"
            )
        seed = self._random.getrandbits(64) if params.seed is None else params.seed
        limit = room if params.max_tokens is None else min(params.max_tokens, room)
        stops = frozenset((end_token(self.tokenizer), *stop_token_ids))
        return Run(self, ids, replace(params, max_tokens=limit), stops, seed, penalise_prompt)

    def distribution(self, context: Sequence[int], params: SamplingParams, seen: frozenset[int]) -> Distribution:
        """What the next token is drawn from; ``seen`` are the tokens that a repetition penalty counts."""
        logits = self.model.next_logits(context)
        penalty = params.repetition_penalty or 1.0
        if penalty != 1.0 and seen:
            scored = sampling_distribution(penalised(logits, penalty, seen), params, self.logprob_mode)
            return scored if self.logprob_mode != "raw" else scored.reporting(self.raw(logits))
        return self._cached(logits, params, self.logprob_mode)

    def raw(self, logits: Logits) -> Distribution:
        """The model's own distribution."""
        return self._cached(logits, _PLAIN, "raw")

    def _cached(self, logits: Logits, params: SamplingParams, mode: ReportedMode) -> Distribution:
        key = (id(logits), params.temperature, params.top_k, params.top_p, mode)
        known = self._prepared.get(key)
        if known is None:
            if len(self._prepared) * len(logits) > _CACHED_VALUES:
                self._prepared.clear()
            # The logits are kept too: their id stands for them only while they live.
            known = self._prepared[key] = (logits, sampling_distribution(logits, params, mode))
        return known[1]


class Run:
    """One reply in the making."""

    def __init__(
        self,
        engine: Engine,
        prompt: tuple[int, ...],
        params: SamplingParams,
        stop_tokens: frozenset[int],
        seed: int,
        penalise_prompt: bool,
    ) -> None:
        self._engine = engine
        self._prompt = prompt
        self._params = params
        self._stop_tokens = stop_tokens
        self._random = random.Random(seed % 2**64)
        self._seen = frozenset(prompt if penalise_prompt else ())
        self._context = list(prompt)
        self._logprobs: list[float] = []
        self._top: list[list[Candidate]] | None = None if params.logprobs is None else []
        self._finish: str | None = None
        self._matched: int | str | None = None
        self._window = max((4 * len(text) + 8 for text in params.stop or ()), default=0)

    @property
    def finished(self) -> bool:
        """Whether the reply has ended."""
        return self._finish is not None

    @property
    def tokens(self) -> list[int]:
        """The ids so far."""
        return self._context[len(self._prompt) :]

    def __len__(self) -> int:
        return len(self._logprobs)

    def step(self) -> int:
        """Draw one token and return it. Not to be called on a finished run."""
        distribution = self._engine.distribution(self._context, self._params, self._seen)
        token = distribution.draw(self._random.random())
        self._context.append(token)
        self._logprobs.append(distribution.logprob(token))
        if self._top is not None:
            self._top.append(_candidates(distribution, token, self._params.logprobs or 0))
        if self._params.repetition_penalty not in (None, 1.0):
            self._seen |= {token}
        self._check(token)
        return token

    def abort(self) -> None:
        """End the reply here, with what there is."""
        self._finish, self._matched = "abort", None

    def result(self) -> Generation:
        """The reply so far."""
        tokens = tuple(self.tokens)
        shown = tokens[:-1] if isinstance(self._matched, int) else tokens
        text = self._decode(shown)
        if isinstance(self._matched, str):
            text = text.partition(self._matched)[0]
        return Generation(
            tokens=tokens,
            text=text,
            finish_reason=self._finish or "abort",
            matched_stop=self._matched,
            logprobs=self._logprobs,
            top=self._top,
            prompt=None if self._params.prompt_logprobs is None else self._score_prompt(self._params.prompt_logprobs),
            context_full=self._finish == "length" and len(self._context) >= self._engine.context_length,
        )

    def _check(self, token: int) -> None:
        if token in self._stop_tokens:
            self._finish, self._matched = "stop", token
            return
        if len(self._logprobs) >= (self._params.max_tokens or 0):
            self._finish = "length"
        if self._window:
            tail = self._decode(self.tokens[-self._window :])
            matched = next((text for text in self._params.stop or () if text in tail), None)
            if matched is not None:
                self._finish, self._matched = "stop", matched

    def _score_prompt(self, k: int) -> list[list[Candidate]]:
        scored: list[list[Candidate]] = [[]]
        for i in range(1, len(self._prompt)):
            distribution = self._engine.raw(self._engine.model.next_logits(self._prompt[:i]))
            best = _candidates(distribution, self._prompt[i], k)
            scored.append([replace(one, rank=distribution.rank(one.token)) for one in best])
        return scored

    def _decode(self, tokens: Sequence[int]) -> str:
        return str(self._engine.tokenizer.decode(list(tokens)))


def _candidates(distribution: Distribution, token: int, k: int) -> list[Candidate]:
    first = Candidate(token, distribution.logprob(token))
    return [first, *(Candidate(other, logprob) for other, logprob in distribution.top(k) if other != token)]
