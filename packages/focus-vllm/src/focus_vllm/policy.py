"""VLLMPolicy: exact generation through vLLM's /v1/completions."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any

from focus_format import Policy, PolicyFormat, PreparedPrompt
from focus_format.exchange import TokenRequest
from focus_format.probe import require_usable, warn_about_logprobs
from focus_format.resolve_format import resolve_format
from focus_http import HttpReply, JsonClient, Step, adrive, drive
from focus_types import GenerateResult, InvalidRequestError, SamplingParams, ServerReport, TokenId
from focus_vllm import wire
from focus_vllm.probing import STOP_STRING_LIMIT, probe_steps

__all__ = ["VLLMPolicy"]

_PROBE_TIMEOUT = 60.0
_PATH = "/completions"
_REMEDY = {
    "raw": (
        "Start the server with --logprobs-mode processed_logprobs, or sample at temperature 1 with top_p, top_k and"
        " repetition_penalty off."
    ),
    "behavior": "Greedy replies have no sampling distribution: use a temperature above 0.",
}


class VLLMPolicy(Policy[Any]):
    """Generate from token prompts through a vLLM server, keeping exact ids and log-probabilities.

    The server's flag ``--logprobs-mode`` decides what its log-probabilities are of, and no reply says so: the default,
    raw_logprobs, ignores temperature, truncation and penalties. `startup_check` finds out and warns.

    One seed gives the same reply again, also among other requests; one seed for k branches gives k equal branches.
    At most 4 stop strings are sent unless `probe` found that the server takes more.

    Args:
        model: Model and tokenizer; the format is resolved from it unless ``format`` is given.
        format: Codec and parser.
        profile: The parser's profile when the format is resolved; not together with ``format``.
        served_model: The server's name for the model, if it differs.
        base_url: Ends in ``/v1``.
        api_key: "EMPTY" for a server without a key.
        default_params: Sampling parameters where a call gives none.
        timeout: Deadline of one call in seconds, retries included. None: 60 s to connect, 600 s between bytes. Allow
            for queueing when many requests share the server.

    Raises:
        InvalidRequestError: Bad arguments.
    """

    def __init__(
        self,
        *,
        model: str,
        format: PolicyFormat[Any] | None = None,
        profile: str | None = None,
        served_model: str | None = None,
        base_url: str,
        api_key: str,
        default_params: SamplingParams | None = None,
        timeout: float | None = None,
    ) -> None:
        if not api_key:
            raise InvalidRequestError("api_key is empty: pass 'EMPTY' for a server without a key")
        super().__init__(
            format=resolve_format(model, format, profile),
            model=model,
            served_model=served_model,
            default_params=default_params,
        )
        self._client = JsonClient(
            base_url, backend=wire.BACKEND, api_key=api_key, timeout=timeout, refine=wire.refine_error
        )
        self._probe_timeout = _PROBE_TIMEOUT if timeout is None else timeout
        self._stop_string_limit: int | None = STOP_STRING_LIMIT

    def startup_check(self) -> None:
        """Probe the server, and refuse it or warn.

        Raises:
            AuthenticationError: Wrong key.
            BackendError: Wrong model, no token ids, or a tokenizer that is not the format's; says what to change.
            ServerUnavailableError: Nothing answers.

        Warns:
            LogprobWarning: Under the policy's default sampling, log-probabilities are not those of the distribution
                that is sampled from, or truncation gives it another support than a trainer assumes. A model that is
                certain of its whole reply to the probe leaves the mode unknown; ``probe(prompt=ids)`` before this check
                finds it with another prompt.
        """
        report = self.probe()
        require_usable(report, self.served_model)
        warn_about_logprobs(report, self.default_params, _REMEDY)

    def probe(self, prompt: Sequence[TokenId] | None = None) -> ServerReport:
        """Find out what the server is, with four small requests.

        Args:
            prompt: Ids that leave the model a choice; a short user message by default.

        Raises:
            BackendError: The server cannot be asked, or serves another model.
        """
        return self._learn(drive(self._client, self._probe_steps(prompt), timeout=self._probe_timeout))

    async def aprobe(self, prompt: Sequence[TokenId] | None = None) -> ServerReport:
        """`probe` for async code."""
        return self._learn(await adrive(self._client, self._probe_steps(prompt), timeout=self._probe_timeout))

    def generate(self, prompt: PreparedPrompt, sampling_params: SamplingParams | None = None) -> GenerateResult:
        """Generate one reply to a prepared prompt; see `agenerate_tokens`."""
        self._require_prompt(prompt)
        return self.generate_tokens(prompt.tokens, sampling_params)

    def generate_tokens(  # pyright: ignore[reportIncompatibleMethodOverride] - the documented parameter name
        self, prefix_tokens: Sequence[TokenId], sampling_params: SamplingParams | None = None
    ) -> GenerateResult:
        """`agenerate_tokens` for ordinary code; works where an event loop is running, too."""
        request = self._request(prefix_tokens, sampling_params)
        return self._result(request, self._client.post(_PATH, self._body(request)))

    async def agenerate_tokens(  # pyright: ignore[reportIncompatibleMethodOverride] - the documented parameter name
        self, prefix_tokens: Sequence[TokenId], sampling_params: SamplingParams | None = None
    ) -> GenerateResult:
        """Generate one reply to exactly these ids.

        Raises:
            InvalidRequestError: Bad ids or parameters; nothing was sent.
            ContextLengthError: The prompt leaves no room for a reply.
            BackendError: The server failed; see `focus_types.errors`.
        """
        request = self._request(prefix_tokens, sampling_params)
        return self._result(request, await self._client.apost(_PATH, self._body(request)))

    def close(self) -> None:
        """Close every connection. May be called more than once; a later call opens new ones."""
        self._client.close()

    async def aclose(self) -> None:
        """`close` for async code."""
        await self._client.aclose()

    def _request(self, tokens: Sequence[TokenId], params: SamplingParams | None) -> TokenRequest:
        request = self._channel.request(tokens, params, self._default_params)
        limit, stop = self._stop_string_limit, request.sampling.stop
        if limit is not None and stop and len(stop) > limit:
            raise InvalidRequestError(
                f"vLLM takes at most {limit} stop strings, got {len(stop)}: start the server with"
                " VLLM_MAX_STOP_STRINGS raised and call probe(), or send fewer"
            )
        return request

    def _body(self, request: TokenRequest) -> bytes:
        return wire.encode_request(request, self.served_model, self._format.codec.stop_tokens)

    def _result(self, request: TokenRequest, reply: HttpReply) -> GenerateResult:
        return self._channel.result(request, wire.decode_reply(reply, request))

    def _probe_steps(self, prompt: Sequence[TokenId] | None) -> Generator[Step, HttpReply, ServerReport]:
        ids = self._probe_prompt(prompt)
        return probe_steps(ids, self._client.base_url, self.served_model, self._format.codec, self._channel)

    def _learn(self, report: ServerReport) -> ServerReport:
        self._stop_string_limit = report.stop_string_limit
        return self._channel.learn(report)
