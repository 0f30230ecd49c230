"""SGLangPolicy: exact generation through SGLang's native /generate."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from typing import Any

from focus_format import Policy, PolicyFormat, PreparedPrompt
from focus_format.channel import TokenChannel
from focus_format.exchange import TokenRequest
from focus_format.probe import require_usable, warn_about_logprobs
from focus_format.resolve_format import resolve_format
from focus_http import HttpReply, JsonClient, Step, adrive, drive, encode_json
from focus_sglang import wire
from focus_sglang.probing import REMEDY
from focus_sglang.server import BACKEND, GENERATE, parse, probe_server
from focus_types import GenerateResult, ProtocolError, SamplingParams, ServerReport, TokenId

__all__ = ["SGLangPolicy"]

_PROBE_TIMEOUT_S = 60.0
_ROUTED_WORKER = "x-smg-routed-worker-id"


class SGLangPolicy(Policy[Any]):
    """Generate from token prompts through an SGLang server or a router before it, keeping exact ids.

    Log-probabilities of the reply are divided by the temperature ("tempered") and leave top_p and top_k out, unless
    the server's environment makes them raw: `startup_check` finds out and warns. Those of the prompt are always at
    temperature 1, so scoring a reply as a prompt does not give the ones it was sampled with.

    The server ignores ``seed`` without ``--enable-deterministic-inference``; with it, one seed for k branches gives k
    equal branches. ``repetition_penalty`` is at most 2 and looks at the reply alone. ``top_k=1`` with log-probabilities
    is refused unless the temperature is 0 or 1.

    A cancelled task closes its connection, which ends the request on the server.

    Args:
        model: Model and tokenizer; the format is resolved from it unless ``format`` is given.
        base_url: The server's or the router's address.
        format: Codec and parser.
        profile: The parser's profile when the format is resolved; not together with ``format``.
        default_params: Sampling parameters where a call gives none.
        api_key: Sent as ``Authorization: Bearer``.
        headers: Sent with every request, such as a router's routing key: it ties everything this policy sends to one
            worker.
        timeout: Deadline of one call in seconds, retries included. None: 60 s to connect, 600 s between bytes. Allow
            for queueing when many requests share the server.

    Raises:
        InvalidRequestError: Bad arguments.
    """

    def __init__(
        self,
        *,
        model: str,
        base_url: str,
        format: PolicyFormat[Any] | None = None,
        profile: str | None = None,
        default_params: SamplingParams | None = None,
        api_key: str | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float | None = None,
    ) -> None:
        super().__init__(format=resolve_format(model, format, profile), model=model, default_params=default_params)
        self._channel = TokenChannel(self._format.codec, type(self).__name__, reserved=wire.RESERVED)
        self._client = JsonClient(
            base_url, backend=BACKEND, api_key=api_key, headers=headers, timeout=timeout, refine=wire.refine
        )
        self._probe_timeout = _PROBE_TIMEOUT_S if timeout is None else timeout

    def startup_check(self) -> None:
        """Probe the server, and refuse it or warn.

        Raises:
            AuthenticationError: Wrong key.
            BackendError: Another vocabulary, no token ids, or a tokenizer that is not the format's; says what to
                change.
            ServerUnavailableError: Nothing answers, or a router has no worker.

        Warns:
            LogprobWarning: Under the policy's default sampling, log-probabilities are not those of the distribution
                that is sampled from, or truncation gives it another support than a trainer assumes.
        """
        report = self.probe()
        require_usable(report, self.served_model, model_must_match=False)
        warn_about_logprobs(report, self.default_params, REMEDY)

    def probe(self, prompt: Sequence[TokenId] | None = None) -> ServerReport:
        """Find out what the server is, with five small requests.

        Args:
            prompt: Ids that leave the model a choice; a short user message by default.

        Raises:
            BackendError: The server cannot be asked, or has another vocabulary.
        """
        return self._channel.learn(drive(self._client, self._probe_steps(prompt), timeout=self._probe_timeout))

    async def aprobe(self, prompt: Sequence[TokenId] | None = None) -> ServerReport:
        """`probe` for async code."""
        return self._channel.learn(await adrive(self._client, self._probe_steps(prompt), timeout=self._probe_timeout))

    def generate(self, prompt: PreparedPrompt, sampling_params: SamplingParams | None = None) -> GenerateResult:
        """Generate one reply to a prepared prompt; see `agenerate_tokens`."""
        self._require_prompt(prompt)
        return self.generate_tokens(prompt.tokens, sampling_params)

    def generate_tokens(  # pyright: ignore[reportIncompatibleMethodOverride] - the documented parameter name
        self, prefix_tokens: Sequence[TokenId], sampling_params: SamplingParams | None = None
    ) -> GenerateResult:
        """`agenerate_tokens` for ordinary code; works where an event loop is running, too."""
        request, body = self._request(prefix_tokens, sampling_params)
        return self._result(request, self._client.post(GENERATE, body))

    async def agenerate_tokens(  # pyright: ignore[reportIncompatibleMethodOverride] - the documented parameter name
        self, prefix_tokens: Sequence[TokenId], sampling_params: SamplingParams | None = None
    ) -> GenerateResult:
        """Generate one reply to exactly these ids.

        Raises:
            InvalidRequestError: Bad ids or parameters; nothing was sent.
            ContextLengthError: The prompt leaves no room for a reply.
            BackendError: The server failed; see `focus_types.errors`.
        """
        request, body = self._request(prefix_tokens, sampling_params)
        return self._result(request, await self._client.apost(GENERATE, body))

    def close(self) -> None:
        """Close every connection. May be called more than once; a later call opens new ones."""
        self._client.close()

    async def aclose(self) -> None:
        """`close` for async code."""
        await self._client.aclose()

    def _request(self, tokens: Sequence[TokenId], params: SamplingParams | None) -> tuple[TokenRequest, bytes]:
        request = self._channel.request(tokens, params, self._default_params)
        return request, encode_json(wire.encode(request, self._format.codec))

    def _result(self, request: TokenRequest, http_reply: HttpReply) -> GenerateResult:
        try:
            reply = wire.decode(parse(http_reply), request)
        except ProtocolError as error:
            error.status, error.attempts = http_reply.status, http_reply.attempts
            error.request_id = error.request_id or http_reply.request_id
            raise
        reply.server = http_reply.headers.get(_ROUTED_WORKER)
        reply.attempts, reply.latency_s = http_reply.attempts, http_reply.latency_s
        return self._channel.result(request, reply)

    def _probe_steps(self, prompt: Sequence[TokenId] | None) -> Generator[Step, HttpReply, ServerReport]:
        ids = self._probe_prompt(prompt)
        url = self._client.base_url
        return probe_server(ids, self._format.codec, self._channel, url=url, expected=self.served_model)
