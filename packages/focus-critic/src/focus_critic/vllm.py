"""A value model behind vLLM's ``/pooling``."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

from focus_critic.batches import evaluate
from focus_critic.critic import Critic
from focus_critic.pooling import check_layout, numbers, pooling_request
from focus_critic.reduction import reduction
from focus_critic.server import NO_POOLING, ServerKind, check_served, find_kind, generates, pools_itself
from focus_critic.transport import CallerTransport, OwnTransport, Transport
from focus_critic.values import check_texts, check_timeout, finite
from focus_types import (
    AnyRollout,
    BackendError,
    InvalidRequestError,
    ProtocolError,
    ScoringError,
    ServerReport,
    TokenId,
)
from focus_types.tokens import check_token_ids

__all__ = ["VLLMCritic"]

_log = logging.getLogger(__name__)

_BYTES_PER_TOKEN = 4
"""Typical of text; only the split into requests depends on it."""


class VLLMCritic(Critic):
    """A value model served by vLLM as a pooling model.

    Each context goes to ``{base_url}/pooling`` and is reduced to one predicted return: the raw output of the
    model, without the sigmoid that the server would apply. A context that is longer than the model's keeps its
    end; how many there were is logged. Requests hold about ``batch_tokens`` tokens, ``in_flight`` of them run at
    the same time, and a request that the server refuses is taken apart until the contexts at fault are found.

    The server must give one value per token: ``vllm serve MODEL --runner pooling --pooler-config '{"task":
    "token_classify"}'``. One that pools by itself (the default of a sequence classifier) works with
    ``reduce="last"`` alone.

    Args:
        base_url: Root of the server, without ``/v1``.
        model: The served name.
        api_key: Sent as a bearer token.
        reduce: How the values of a context's tokens become one: "last", "first", "sum" or "mean".
        http_timeout: Seconds that one request may take.
        timeout: Seconds that one prediction batch may take; applied by ``score``.
        context: Turns a rollout into the input text instead of the transcript.
        client: Use this HTTP client, which stays the caller's: ``await client.post(url, json=..., headers=...,
            timeout=...)`` must give an object with ``status_code`` and ``json()``, as ``httpx.AsyncClient`` does.

    Raises:
        InvalidRequestError: An unknown ``reduce``, a time limit that is no number of seconds, or a ``client``
            without ``post``.
    """

    batch_tokens: int = 16_384
    """Tokens in one request: exact for ids, a quarter of the UTF-8 bytes for texts."""
    in_flight: int = 4
    """Requests of one prediction batch at the same time."""

    def __init__(
        self,
        *,
        base_url: str,
        model: str,
        api_key: str = "EMPTY",
        reduce: str = "last",
        http_timeout: float = 60.0,
        timeout: float | None = None,
        context: Callable[[AnyRollout], str] | None = None,
        client: Any = None,
    ) -> None:
        reduction(reduce)
        check_timeout("http_timeout", http_timeout)
        check_timeout("timeout", timeout)
        self._transport: Transport = (
            OwnTransport(base_url, api_key, http_timeout)
            if client is None
            else CallerTransport(base_url, api_key, http_timeout, client)
        )
        self.base_url: str = base_url.rstrip("/")
        self.model = model
        self.reduce = reduce
        self.timeout = timeout
        self.render = context
        self._known: ServerKind | None = None

    async def predict(self, contexts: Sequence[str]) -> list[float]:
        """Send the contexts to the pooling endpoint and return one value per context.

        Args:
            contexts: Non-empty texts; the server's tokenizer turns them into tokens.

        Returns:
            One finite value per context, in order.

        Raises:
            ScoringError: A context is empty or no valid text (nothing was sent), was refused by the server, or has
                a value that is no finite number; ``index`` is the first of these, ``values`` are the good values.
            InvalidRequestError: ``reduce`` needs one value per token, and the server pools by itself.
            BackendError: The server cannot be reached, fails, or does not speak the protocol.
        """
        texts = check_texts(contexts)
        return await self._evaluate(texts, [_estimate(at, text) for at, text in enumerate(texts)])

    async def predict_tokens(self, contexts: Sequence[Sequence[TokenId]]) -> list[float]:
        """Predict from exact token ids.

        A reply that is cut inside a word becomes other tokens when its text is tokenised, so the value of its last
        token is the value of another prefix. With ids the scored prefix is the generated one.

        Args:
            contexts: Non-empty sequences of ids of the value model's vocabulary.

        Returns:
            One finite value per context, in order.

        Raises:
            ScoringError: A context is empty or holds something that is no id (nothing was sent); else as ``predict``.
            InvalidRequestError: As ``predict``.
            BackendError: As ``predict``.
        """
        ids: list[tuple[TokenId, ...]] = []
        for at, context in enumerate(contexts):
            try:
                ids.append(check_token_ids(context))
            except InvalidRequestError as error:
                raise ScoringError(f"context {at}: {error}", index=at) from error
        return await self._evaluate(ids, [len(context) for context in ids])

    async def values_at(self, tokens: Sequence[TokenId], positions: Sequence[int]) -> list[float]:
        """The values of several checkpoints of one trajectory, from one forward pass.

        The value at position ``p`` is that of the prefix ``tokens[: p + 1]``, so ``p`` is the index of the
        checkpoint's last token. ``reduce`` plays no part.

        Args:
            tokens: The trajectory; it must fit the model's context whole.
            positions: Indices into ``tokens``, in any order.

        Returns:
            One finite value per position, in the order of ``positions``.

        Raises:
            InvalidRequestError: No token ids, a position outside of them, or a server that pools by itself.
            ScoringError: A value is no finite number; ``index`` is the first such entry of ``positions``.
            ContextLengthError: The trajectory is too long.
            BackendError: As ``predict``.
        """
        ids = check_token_ids(tokens)
        places = list(positions)
        for place in places:
            if isinstance(place, bool) or not hasattr(place, "__index__"):
                raise InvalidRequestError(f"positions must be integers, got {place!r}")
            if not 0 <= place < len(ids):
                raise InvalidRequestError(f"position {place} is outside of the {len(ids)} tokens")
        if not places:
            return []
        kind = await self._kind()
        if kind.layout == "pooled":
            raise pools_itself(self.base_url, "values_at")
        [values] = await self._numbers(kind, [ids], truncate=False)
        if len(values) != len(ids):
            raise ProtocolError(f"the server gave {len(values)} values for {len(ids)} tokens")
        return finite([values[place] for place in places])

    async def startup_check(self) -> ServerReport:
        """Check that the server is there and serves this value model in a way that suits ``reduce``.

        Returns:
            What was found. An injected client is asked for predictions only, so its report names no models.

        Raises:
            AuthenticationError: The server refuses the key.
            BackendError: Nothing answers, it is no vLLM server, it serves another model, or it serves this one
                for generation; the message says what to change.
            InvalidRequestError: ``reduce`` needs one value per token, and the server pools by itself.
        """
        served = await check_served(self._transport, self.base_url, self.model)
        self._known = None
        try:
            kind = await self._kind()
        except BackendError as error:
            if served and error.status in NO_POOLING:
                raise generates(self.base_url, self.model, error) from error
            raise
        self._check_reduce(kind)
        return ServerReport(
            backend="vllm",
            url=self.base_url,
            served_models=tuple(model.id for model in served),
            context_length=kind.context_length,
            notes=(kind.note,),
        )

    async def aclose(self) -> None:
        """Close the HTTP client the critic created."""
        await self._transport.aclose()

    async def _kind(self) -> ServerKind:
        """Asked once, and again after an answer that does not fit."""
        if self._known is None:
            self._known = await find_kind(self._transport, self.model)
        return self._known

    def _check_reduce(self, kind: ServerKind) -> None:
        if kind.layout == "pooled" and self.reduce != "last":
            raise pools_itself(self.base_url, f"reduce={self.reduce!r}")

    async def _numbers(
        self, kind: ServerKind, contexts: Sequence[str | tuple[TokenId, ...]], *, truncate: bool
    ) -> list[Sequence[float]]:
        reply = await self._transport.pool(pooling_request(self.model, contexts, truncate=truncate))
        try:
            found = numbers(reply, len(contexts))
            check_layout(kind.layout, found, reply)
        except ProtocolError:
            self._known = None
            raise
        return found

    async def _evaluate(self, contexts: Sequence[str | tuple[TokenId, ...]], sizes: Sequence[int]) -> list[float]:
        if not contexts:
            return []
        kind = await self._kind()
        self._check_reduce(kind)
        reduce = reduction(self.reduce)
        cut = 0

        async def fetch(batch: range) -> list[float]:
            nonlocal cut
            found = await self._numbers(kind, contexts[batch.start : batch.stop], truncate=True)
            cut += sum(_was_cut(kind, contexts[at], values) for at, values in zip(batch, found, strict=True))
            return [reduce(values) for values in found]

        values = await evaluate(sizes, fetch, limit=self.batch_tokens, in_flight=self.in_flight)
        if cut:
            _log.warning(
                "%d of %d contexts reach the %s tokens of %s; what came before their last tokens was not seen",
                cut,
                len(contexts),
                kind.context_length or "most",
                self.model,
            )
        return finite(values)


def _estimate(at: int, text: str) -> int:
    if not text:
        raise ScoringError(f"context {at} is empty, and a model cannot score zero tokens", index=at)
    try:
        return -(-len(text.encode()) // _BYTES_PER_TOKEN)
    except UnicodeEncodeError as error:
        raise ScoringError(f"context {at} is no valid text: {error}", index=at) from error


def _was_cut(kind: ServerKind, context: str | tuple[TokenId, ...], values: Sequence[float]) -> bool:
    """Whether a context was too long, as far as that can be seen: not for a text on a server that pools by itself."""
    if kind.layout == "token":
        return len(values) < len(context) if isinstance(context, tuple) else len(values) == kind.context_length
    return isinstance(context, tuple) and kind.context_length is not None and len(context) > kind.context_length
