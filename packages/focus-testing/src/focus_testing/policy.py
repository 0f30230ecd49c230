"""EmbeddedPolicy: the engine behind the interface of every other policy, in this process."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Any

from focus_format import Policy, PolicyFormat
from focus_format.exchange import TokenReply, TokenRequest
from focus_format.resolve_format import resolve_format
from focus_testing.demo import demo_engine
from focus_testing.engine import Candidate, Engine, Generation, Run
from focus_types import GenerateResult, SamplingParams, TokenId

__all__ = ["EmbeddedPolicy"]

_TOKENS_PER_TURN = 64
"""Tokens between two looks at the event loop."""


class EmbeddedPolicy(Policy[Any]):
    """Generate with an embedded engine: no server, no download, the same checks and results as over a wire.

    One seed gives the same reply again; one seed for k branches gives k equal branches.

    Args:
        engine: What generates; `demo_engine` by default.
        model: The model's name; the format's too when it is resolved.
        format: Codec and parser. By default those of the engine's tokenizer, whose chat template shows the dialect
            of its tool calls.
        profile: The parser's profile when the format is resolved; not together with ``format``.
        default_params: Sampling parameters where a call gives none.

    Raises:
        InvalidRequestError: Bad arguments, or a chat template that shows no dialect and no ``profile``.
    """

    def __init__(
        self,
        engine: Engine | None = None,
        *,
        model: str = "embedded",
        format: PolicyFormat[Any] | None = None,
        profile: str | None = None,
        default_params: SamplingParams | None = None,
    ) -> None:
        self.engine: Engine = demo_engine() if engine is None else engine
        if format is None:
            format = PolicyFormat.resolve(model, tokenizer=self.engine.tokenizer, profile=profile)
        else:
            format = resolve_format(model, format, profile)
        super().__init__(format=format, model=model, default_params=default_params)
        self._channel.context_length = self.engine.context_length
        self._channel.logprob_mode = self.engine.logprob_mode

    def generate_tokens(  # pyright: ignore[reportIncompatibleMethodOverride] - the documented parameter name
        self, prefix_tokens: Sequence[TokenId], sampling_params: SamplingParams | None = None
    ) -> GenerateResult:
        """`agenerate_tokens` for ordinary code."""
        started = time.perf_counter()
        request, run = self._start(prefix_tokens, sampling_params)
        while not run.finished:
            run.step()
        return self._channel.result(request, _reply(request, run.result(), started))

    async def agenerate_tokens(  # pyright: ignore[reportIncompatibleMethodOverride] - the documented parameter name
        self, prefix_tokens: Sequence[TokenId], sampling_params: SamplingParams | None = None
    ) -> GenerateResult:
        """Generate one reply to exactly these ids.

        Raises:
            InvalidRequestError: Bad ids or parameters.
            ContextLengthError: The prompt leaves no room for a reply.
        """
        started = time.perf_counter()
        request, run = self._start(prefix_tokens, sampling_params)
        while not run.finished:
            run.step()
            if len(run) % _TOKENS_PER_TURN == 0:
                await asyncio.sleep(0)
        return self._channel.result(request, _reply(request, run.result(), started))

    def _start(self, tokens: Sequence[TokenId], params: SamplingParams | None) -> tuple[TokenRequest, Run]:
        request = self._channel.request(tokens, params, self._default_params)
        stops = sorted(self._format.codec.stop_tokens)
        return request, self.engine.start(request.tokens, request.sampling, stops)


def _reply(request: TokenRequest, generation: Generation, started: float) -> TokenReply:
    prompt = generation.prompt
    return TokenReply(
        tokens=generation.tokens,
        stop_reason=generation.finish_reason,
        matched_stop=generation.matched_stop,
        logprobs=generation.logprobs,
        top_logprobs=None if generation.top is None else [_keyed(entry) for entry in generation.top],
        prompt_logprobs=None if prompt is None else [entry[0].logprob if entry else None for entry in prompt],
        prompt_top_logprobs=None if prompt is None else [_keyed(entry) if entry else None for entry in prompt],
        prompt_tokens=request.tokens,
        server="focus-testing",
        latency_s=time.perf_counter() - started,
    )


def _keyed(candidates: list[Candidate]) -> dict[str, float]:
    return {f"token_id:{one.token}": one.logprob for one in candidates}
