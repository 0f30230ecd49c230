"""What a policy knows about its model's ids and context: checks what is sent, judges what comes back."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace

from focus_format.exchange import TokenReply, TokenRequest
from focus_format.result import build_result
from focus_types import (
    ChatCodec,
    ContextLengthError,
    GenerateResult,
    LogprobMode,
    SamplingParams,
    ServerReport,
    TokenId,
)
from focus_types.sampling import effective_params
from focus_types.tokens import check_token_ids

__all__ = ["TokenChannel"]

_log = logging.getLogger("focus")


class TokenChannel:
    """Checks requests and builds results for one policy.

    Args:
        codec: Decodes replies and bounds ids.
        name: The backend's name, for messages.
        reserved: Positions at the end of the context that the server cannot use.
    """

    def __init__(self, codec: ChatCodec, name: str, *, reserved: int = 0) -> None:
        self._codec = codec
        self._name = name
        self._reserved = reserved
        self._seen = 0
        self._logged: set[str] = set()
        self.context_length: int | None = None
        """Most tokens of prompt and reply together; None while nobody has said."""
        self.logprob_mode: LogprobMode = "unknown"

    def check_tokens(self, tokens: Sequence[TokenId]) -> tuple[TokenId, ...]:
        """The ids as a tuple, each legal for the model.

        The bound is the model's vocabulary where the codec knows it. Otherwise it is the larger of the tokenizer's
        length and the ids that this policy got from its server: padded ids can be sampled, and must then be legal
        in the next prompt.

        Raises:
            InvalidRequestError: An id is out of range or no plain int, or there is none.
            ContextLengthError: The prompt leaves no room for a reply.
        """
        bound = self._codec.vocab_size
        if bound is None:
            known: int | None = getattr(self._codec, "tokenizer_length", None)
            bound = None if known is None else max(known, self._seen)
        ids = check_token_ids(tokens, bound)
        if self.context_length is not None and len(ids) + self._reserved >= self.context_length:
            reserved = f", of which the server cannot use the last {self._reserved}" if self._reserved else ""
            raise ContextLengthError(
                f"{self._name}: a prompt of {len(ids)} tokens leaves no room for a reply in a context of"
                f" {self.context_length}{reserved}; nothing was sent"
            )
        return ids

    def request(
        self, tokens: Sequence[TokenId], params: SamplingParams | None, defaults: SamplingParams | None
    ) -> TokenRequest:
        """A request with every parameter explicit, ``max_tokens`` fitted to a known context.

        Raises:
            InvalidRequestError: Bad ids or parameters.
            ContextLengthError: No room for a reply.
        """
        sampling = effective_params(params, defaults)
        ids = self.check_tokens(tokens)
        assert sampling.max_tokens is not None
        asked = sampling.max_tokens
        if self.context_length is not None:
            sampling.max_tokens = min(asked, self.context_length - self._reserved - len(ids))
        return TokenRequest(ids, sampling, asked)

    def result(self, request: TokenRequest, reply: TokenReply) -> GenerateResult:
        """The judged result; each kind of problem is logged once.

        Raises:
            ProtocolError: The reply holds ids that cannot be ids.
        """
        result, problems = build_result(request, reply, self._codec, self.logprob_mode)
        self.saw(result.tokens)
        for problem in problems:
            if problem.kind not in self._logged:
                self._logged.add(problem.kind)
                _log.warning("%s: %s (later ones of this kind are not logged)", self._name, problem.reason)
        return result

    def saw(self, tokens: Sequence[TokenId]) -> None:
        """Ids that the model produced are legal in its next prompt."""
        if tokens:
            self._seen = max(self._seen, max(tokens) + 1)

    def learn(self, report: ServerReport) -> ServerReport:
        """Keep what a probe found, and return the report with what was known before.

        A context length that the caller set stays, and so does a mode that an earlier probe found when this one's
        prompt left the model no choice.
        """
        if self.context_length is None:
            self.context_length = report.context_length
        if report.logprob_mode == "unknown":
            return replace(report, logprob_mode=self.logprob_mode)
        self.logprob_mode = report.logprob_mode
        return report
