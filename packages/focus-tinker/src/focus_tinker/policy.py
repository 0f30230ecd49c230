"""TinkerPolicy: exact generation through a Tinker sampling client."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from focus_format import Policy, PolicyFormat
from focus_format.probe import require_usable, warn_about_logprobs
from focus_format.resolve_format import resolve_format
from focus_format.sync import run_sync
from focus_tinker.probing import Prober
from focus_tinker.service import sample
from focus_tinker.stops import plan_stops
from focus_tinker.wire import refuse_unsupported
from focus_types import GenerateResult, InvalidRequestError, SamplingParams, ServerReport, TokenId

if TYPE_CHECKING:
    import tinker

__all__ = ["TinkerPolicy"]

_log = logging.getLogger("focus")
_UNTEMPERED = "Sample at temperature 1 with top_p=1.0 and top_k=-1, or score the replies again with the trained model."
_REMEDY = {
    "raw": _UNTEMPERED,
    "tempered": _UNTEMPERED,
    "behavior": "Greedy replies have no sampling distribution: use a temperature above 0.",
}


class TinkerPolicy(Policy[Any]):
    """Generate from token prompts through a Tinker sampling client, keeping exact ids and log-probabilities.

    What the log-probabilities are of depends on the server. The hosted service is said to return those it sampled
    with, the temperature included; skyrl returns the model's own, at temperature 1, whatever the temperature. They
    agree only at temperature 1 without top-p and top-k, and **the default temperature is 0.7**. Nothing is rescaled
    here: `probe` finds the mode, and `startup_check` warns where it does not fit the policy's default sampling.

    One seed gives the same reply again, and k equal branches for k requests; the hosted service does not promise it.
    The SDK retries a dead or failing server for up to two hours: put calls under ``asyncio.timeout``. A cancelled
    call cancels its request.

    The client stays the caller's: it is never closed, several policies may share it, and the policy pickles if it
    does. Pickling a client includes its API key.

    Args:
        sampling_client: The client itself, not the future that ``create_sampling_client`` returns.
        model: Model and tokenizer; the format is resolved from it unless ``format`` is given.
        format: Codec and parser.
        profile: The parser's profile when the format is resolved; not together with ``format``.
        default_params: Sampling parameters where a call gives none.

    Raises:
        InvalidRequestError: Bad arguments.
    """

    def __init__(
        self,
        sampling_client: tinker.SamplingClient,
        *,
        model: str,
        format: PolicyFormat[Any] | None = None,
        profile: str | None = None,
        default_params: SamplingParams | None = None,
    ):
        _require_client(sampling_client)
        super().__init__(format=resolve_format(model, format, profile), model=model, default_params=default_params)
        self._client = sampling_client

    def startup_check(self) -> None:
        """Probe the service, and refuse it or warn.

        Raises:
            AuthenticationError: Wrong key.
            ServerUnavailableError: No answer within 10 s, or not every sample within 3 minutes.
            BackendError: The service refuses to sample, or its replies cannot be read.

        Warns:
            LogprobWarning: Under the policy's default sampling, log-probabilities are not those of the distribution
                that is sampled from, or truncation gives it another support than a trainer assumes.
        """
        report = self.probe()
        require_usable(report, self.served_model, model_must_match=False)
        for note in report.notes:
            _log.warning("TinkerPolicy: %s", note)
        warn_about_logprobs(report, self.default_params, _REMEDY)

    def probe(self, prompt: Sequence[TokenId] | None = None) -> ServerReport:
        """Find out what the service is and what its log-probabilities mean, with about a dozen one-token requests.

        Args:
            prompt: Ids that leave the model a choice; a short user message by default.

        Raises:
            ServerUnavailableError: No answer within 10 s, or not every sample within 3 minutes.
            BackendError: The service cannot be asked.
        """
        return run_sync(self.aprobe(prompt))

    async def aprobe(self, prompt: Sequence[TokenId] | None = None) -> ServerReport:
        """`probe` for async code."""
        ids = self._probe_prompt(prompt)
        report = await Prober(self._client, self._channel, self._format.codec).report(ids, self._model)
        return self._channel.learn(report)

    async def agenerate_tokens(  # pyright: ignore[reportIncompatibleMethodOverride] - the documented parameter name
        self, prefix_tokens: Sequence[TokenId], sampling_params: SamplingParams | None = None
    ) -> GenerateResult:
        """Generate one reply to exactly these ids.

        The format's stop ids end a reply. Stop strings that are one control token each are sent as ids beside them;
        any other stop string takes their place, and a server may then generate on past the end of the turn: the reply
        is cut there.

        Raises:
            InvalidRequestError: Bad ids or parameters, or ``repetition_penalty``; nothing was sent.
            ContextLengthError: The prompt leaves no room for a reply.
            ProtocolError: Top or prompt log-probabilities were asked for and the server does not give them.
            BackendError: The service failed; see `focus_types.errors`. The cause is the SDK's own error.
        """
        request = self._channel.request(prefix_tokens, sampling_params, self._default_params)
        refuse_unsupported(request)
        codec = self._format.codec
        reply = await sample(self._client, request, plan_stops(request.sampling.stop, codec), codec)
        return self._channel.result(request, reply)

    def close(self) -> None:
        """Release nothing: the sampling client and its service stay open, and stay the caller's."""

    def __enter__(self) -> TinkerPolicy:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def _require_client(client: object) -> None:
    # The future of a client is a client by its type, and warns about every attribute that is read from it.
    kind = type(client)
    if hasattr(kind, "result_async"):
        raise InvalidRequestError(
            "sampling_client is the future of a client: pass what it resolves to,"
            " service.create_sampling_client(...).result(), or await it in async code"
        )
    if not callable(getattr(client, "sample", None)):
        raise InvalidRequestError(
            f"sampling_client must be a tinker.SamplingClient, got {kind.__name__}: a ServiceClient's"
            " create_sampling_client(...).result() gives one"
        )
