"""SlimePolicy: exact generation through the transport of a Slime training run."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from focus_format import Policy, PolicyFormat
from focus_format.channel import TokenChannel
from focus_format.probe import require_usable, warn_about_logprobs
from focus_format.resolve_format import resolve_format
from focus_format.sync import run_sync
from focus_sglang import wire
from focus_sglang.probing import REMEDY, probe_replies
from focus_slime.failure import transport_error
from focus_types import (
    FocusError,
    GenerateResult,
    InvalidRequestError,
    ProtocolError,
    SamplingParams,
    ServerReport,
    TokenId,
)

__all__ = ["PostFn", "SlimePolicy"]

PostFn = Callable[..., Awaitable[Mapping[str, Any]]]
"""``await post(url, payload)`` sends JSON and returns the parsed reply; ``headers=`` is added when there are any."""

_EXCERPT_CHARS = 200
# Shorter values are no secrets, and replacing them would garble every message.
_SHORTEST_SECRET = 4


class SlimePolicy(Policy[Any]):
    """Generate from token prompts through Slime's router, over Slime's own HTTP transport, keeping exact ids.

    Sends what Slime's rollout sends and calls ``post`` once per reply: retries, limits and connections are Slime's.
    An aborted reply comes back with ``stop_reason`` "abort" and the tokens it had, so a rollout can mark its sample.

    Log-probabilities are divided by the temperature, which is what Slime's trainer assumes; keep
    SGLANG_RETURN_ORIGINAL_LOGPROB out of the servers' environment unless the temperature is 1. ``seed`` is ignored
    without ``--sglang-enable-deterministic-inference``.

    Slime's client belongs to the event loop it was made in: inside a rollout use the async methods and `aprobe`. The
    blocking ones call ``post`` on a loop of their own.

    Args:
        post: Slime's ``slime.utils.http_utils.post``, or a wrapper that keeps what it needs of the reply.
        url: The generation endpoint, such as ``http://ROUTER/generate``.
        model: Model and tokenizer; the format is resolved from it unless ``format`` is given.
        format: Codec and parser.
        profile: The parser's profile when the format is resolved; not together with ``format``.
        default_params: Sampling parameters where a call gives none.
        headers: Passed to ``post`` with every request, such as a session's routing key.

    Raises:
        InvalidRequestError: Bad arguments.
    """

    def __init__(
        self,
        post: PostFn,
        url: str,
        *,
        model: str,
        format: PolicyFormat[Any] | None = None,
        profile: str | None = None,
        default_params: SamplingParams | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        if not callable(post):
            raise InvalidRequestError(f"post must be an async function, got {type(post).__name__}")
        if not url:
            raise InvalidRequestError("url must be the address of the generation endpoint, it is empty")
        super().__init__(format=resolve_format(model, format, profile), model=model, default_params=default_params)
        self._channel = TokenChannel(self._format.codec, type(self).__name__, reserved=wire.RESERVED)
        self._post = post
        self._url = url
        self._headers = dict(headers or {})

    def startup_check(self) -> None:
        """Probe the server, and refuse it or warn.

        Raises:
            BackendError: Another vocabulary, no token ids, or a tokenizer that is not the format's; says what to
                change.

        Warns:
            LogprobWarning: Under the policy's default sampling, log-probabilities are not those of the distribution
                that is sampled from, or truncation gives it another support than a trainer assumes.
        """
        report = self.probe()
        require_usable(report, self.served_model, model_must_match=False)
        warn_about_logprobs(report, self.default_params, REMEDY)

    def probe(self, prompt: Sequence[TokenId] | None = None) -> ServerReport:
        """Find out what the server's replies mean, with three small requests.

        Args:
            prompt: Ids that leave the model a choice; a short user message by default.

        Raises:
            BackendError: The server cannot be asked, or has another vocabulary.
        """
        return run_sync(self.aprobe(prompt))

    async def aprobe(self, prompt: Sequence[TokenId] | None = None) -> ServerReport:
        """`probe` for async code, on the caller's event loop."""
        ids = self._probe_prompt(prompt)
        replies = probe_replies(ids, self._format.codec, self._channel, backend="slime", url=self._url)
        body = next(replies)
        try:
            while True:
                try:
                    reply = await self._send(body)
                except FocusError as error:
                    body = replies.throw(error)
                else:
                    body = replies.send(reply)
        except StopIteration as stop:
            report: ServerReport = stop.value
            return self._channel.learn(report)

    async def agenerate_tokens(  # pyright: ignore[reportIncompatibleMethodOverride] - the documented parameter name
        self, prefix_tokens: Sequence[TokenId], sampling_params: SamplingParams | None = None
    ) -> GenerateResult:
        """Generate one reply to exactly these ids.

        Raises:
            InvalidRequestError: Bad ids or parameters; nothing was sent.
            ContextLengthError: The prompt leaves no room for a reply.
            ProtocolError: ``post`` returned something other than SGLang's reply object.
            BackendError: ``post`` raised; by its HTTP status where it has one, with the exception as its cause.
        """
        request = self._channel.request(prefix_tokens, sampling_params, self._default_params)
        started = time.monotonic()
        reply = wire.decode(await self._send(wire.encode(request, self._format.codec)), request)
        reply.latency_s = time.monotonic() - started
        return self._channel.result(request, reply)

    async def _send(self, body: dict[str, Any]) -> Mapping[str, Any]:
        # Slime's post has had three signatures; `headers` is not in all of them.
        extra = {"headers": dict(self._headers)} if self._headers else {}
        try:
            reply: object = await self._post(self._url, body, **extra)
        except Exception as error:
            raise transport_error(error, self._redact) from error
        if not isinstance(reply, Mapping):
            text = self._redact(reply if isinstance(reply, str) else repr(reply))[:_EXCERPT_CHARS]
            raise ProtocolError(f"post() returned {type(reply).__name__} instead of SGLang's reply object: {text}")
        return reply

    def _redact(self, text: str) -> str:
        """``text`` with every header's value, and a key behind its scheme word, replaced by ``***``."""
        for value in self._headers.values():
            for secret in (value, value.rpartition(" ")[2]):
                if len(secret) >= _SHORTEST_SECRET:
                    text = text.replace(secret, "***")
        return text
