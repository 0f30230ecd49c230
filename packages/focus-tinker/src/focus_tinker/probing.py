"""What the service behind a sampling client is, and what its log-probabilities mean."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

from focus_format.channel import TokenChannel
from focus_format.probe import PROBE_PARAMS, PROBE_TEMPERATURE, compare_logprobs
from focus_tinker.service import contact, sample
from focus_tinker.stops import Stops, plan_stops
from focus_types import (
    ChatCodec,
    GenerateResult,
    LogprobMode,
    ProtocolError,
    RequestTimeoutError,
    SamplingParams,
    ServerReport,
    ServerUnavailableError,
    TokenId,
)

if TYPE_CHECKING:
    import tinker

__all__ = ["Prober"]

_PATIENCE = 180.0
"""Seconds for all of the probe's samples once the service is known to live: it may still load or compile."""
_IMPATIENCE = 9.0
"""The same where only the samples themselves can tell whether anybody is there."""
_SEEDS = range(4)
_POSITIONS = 3
_TRUNCATED = 0.02
_GREEDY = SamplingParams(temperature=0.0, max_tokens=1, top_p=1.0)
_SCORE = SamplingParams(temperature=1.0, max_tokens=1, top_p=1.0, prompt_logprobs=0)


class Prober:
    """Asks one sampling client a dozen small questions."""

    def __init__(self, client: tinker.SamplingClient, channel: TokenChannel, codec: ChatCodec) -> None:
        self._client = client
        self._channel = channel
        self._codec = codec

    async def report(self, prompt: tuple[TokenId, ...], model: str) -> ServerReport:
        """Everything that can be found out.

        Raises:
            BackendError: The service cannot be asked, or cannot be understood.
        """
        service = await contact(self._client)
        deadline = _IMPATIENCE if service is None else _PATIENCE
        try:
            async with asyncio.timeout(deadline):
                mode = await self._mode(prompt)
                kept = await self._stop_token_kept(prompt)
        except RequestTimeoutError:
            raise
        except TimeoutError as error:
            raise ServerUnavailableError(f"Tinker returned no sample within {deadline:g} s") from error
        base_model = self._client.get_base_model()
        notes: list[str] = []
        if _last_part(base_model) != _last_part(model):
            notes.append(
                f"the client samples from {base_model!r}, the policy's model is {model!r}: Tinker returns no text, so"
                " nothing else would show that the format's tokenizer is another model's"
            )
        if mode == "unknown":
            notes.append(
                "the model was certain of every token of the probe, so its log-probabilities tell no mode: probe with a"
                " prompt that leaves it a choice, probe(prompt=ids)"
            )
        return ServerReport(
            backend="tinker",
            url=service.url if service is not None else "the Tinker client",
            served_models=service.models if service is not None else (base_model,),
            context_length=None if service is None else service.context_length,
            ids_confirmed=True,
            logprob_mode=mode,
            stop_token_kept=kept,
            notes=tuple(notes),
        )

    async def _mode(self, prompt: tuple[TokenId, ...]) -> LogprobMode:
        """Which distribution the log-probabilities are of.

        Tokens that were sampled at one position are compared with each other, because the difference of two
        log-probabilities is free of the normalisation, and not every server returns alternatives.
        """
        prefix = prompt
        for _ in range(_POSITIONS):
            sampled: dict[TokenId, float] = {}
            for seed in _SEEDS:
                sampled.update([await self._sampled(prefix, seed=seed)])
            own = {token: await self._own(prefix, token) for token in sampled}
            found = compare_logprobs([_keyed(sampled)], [_keyed(own)])
            if found == "raw":
                return "raw"
            if found == "scaled":
                return await self._scaled_mode(prefix, sampled, own)
            prefix = (*prefix, next(iter(sampled)))
        return "unknown"

    async def _scaled_mode(
        self, prefix: tuple[TokenId, ...], sampled: dict[TokenId, float], own: dict[TokenId, float]
    ) -> LogprobMode:
        """Whether truncation changes them, too: top-k 2 moves the mass of all other tokens to the first two."""
        known = next(iter(sampled))
        log_normaliser = own[known] / PROBE_TEMPERATURE - sampled[known]
        token, logprob = await self._sampled(prefix, seed=0, top_k=2)
        untruncated = await self._own(prefix, token) / PROBE_TEMPERATURE - log_normaliser
        return "behavior" if logprob - untruncated > _TRUNCATED else "tempered"

    async def _sampled(
        self, prefix: tuple[TokenId, ...], *, seed: int, top_k: int | None = None
    ) -> tuple[TokenId, float]:
        params = replace(PROBE_PARAMS, max_tokens=1, logprobs=0, seed=seed, top_k=top_k)
        result = await self._ask(prefix, params, plan_stops(None, self._codec))
        if not result.tokens or not result.logprobs:
            reason = result.meta and result.meta.inexact_reason
            raise ProtocolError(f"Tinker returned no usable sample: {reason or 'no token'}")
        return result.tokens[0], result.logprobs[0]

    async def _own(self, prefix: tuple[TokenId, ...], token: TokenId) -> float:
        """The model's own log-probability of a token: what ``compute_logprobs`` returns for it."""
        result = await self._ask((*prefix, token), _SCORE, plan_stops(None, self._codec))
        own = result.prompt_logprobs[-1]
        assert own is not None
        return own

    async def _stop_token_kept(self, prompt: tuple[TokenId, ...]) -> bool | None:
        first = (await self._ask(prompt, _GREEDY, plan_stops(None, self._codec))).tokens
        if not first:
            return None
        return (await self._ask(prompt, _GREEDY, Stops(frozenset(first)))).tokens == first

    async def _ask(self, tokens: tuple[TokenId, ...], params: SamplingParams, stops: Stops) -> GenerateResult:
        request = self._channel.request(tokens, params, None)
        return self._channel.result(request, await sample(self._client, request, stops, self._codec))


def _keyed(logprobs: dict[TokenId, float]) -> dict[str, float]:
    return {str(token): logprob for token, logprob in logprobs.items()}


def _last_part(name: str) -> str:
    return name.rstrip("/").rpartition("/")[2].casefold()
