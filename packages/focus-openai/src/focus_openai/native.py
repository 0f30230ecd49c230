"""NativePolicy: what the policies of chat APIs share."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

from focus_format import Policy, PolicyFormat, PreparedPrompt
from focus_format.sync import run_sync
from focus_format.tool_order import check_tool_order
from focus_http import HttpReply
from focus_openai.clients import SdkClients
from focus_openai.estimate import native_format
from focus_openai.served import advice, model_names
from focus_types import BackendError, InvalidRequestError, Message, RequestTimeoutError, SamplingParams
from focus_types.sampling import effective_params

__all__ = ["NativePolicy"]

_PATIENCE_S = 60.0
# The least that the Responses API accepts.
_CHECK_TOKENS = 16


class NativePolicy(Policy[Any]):
    """Message validation and client lifecycle of the chat API policies; use one of its subclasses.

    Messages are sent, not tokens, so nothing about a reply is exact: ``trainable`` and ``is_exact`` are False and
    ``agenerate_tokens`` refuses. Without a format no tokenizer is needed: a prompt's ids are then placeholders, one
    per four bytes, and only their number means something.

    Log-probabilities, where the API gives them, belong to the API's own tokens, whose ids it does not tell:
    ``logprobs`` has one entry per token of the API, ``top_logprobs`` is keyed by their text, and ``tokens`` is empty.

    ``top_k``, ``repetition_penalty`` and ``prompt_logprobs`` are refused, whatever the server: neither API has them,
    and no reply of a compatible server tells an honoured extra field from an ignored one. Values that mean "off" are
    accepted and left out.

    Args:
        model: The server's name for the model.
        format: Codec and parser; by default an estimating codec and the parser of structured tool calls.
        default_params: Sampling parameters where a call gives none.
        api_key: None reads the environment variable OPENAI_API_KEY when it is needed.
        base_url: None reads OPENAI_BASE_URL, else the hosted API is used.
        system_prompt: Sent before every conversation, whose own system messages follow it.
        locked_sampling: The model fixes its sampling: temperature and top_p are never sent, and a seed or stop
            strings are refused.

    Raises:
        InvalidRequestError: ``default_params`` ask for something that the API cannot do.
    """

    _backend: ClassVar[str] = ""
    _refused: ClassVar[tuple[str, ...]] = ("top_k", "repetition_penalty", "prompt_logprobs")

    def __init__(
        self,
        *,
        model: str,
        format: PolicyFormat[Any] | None = None,
        default_params: SamplingParams | None = None,
        api_key: str | None = None,
        base_url: str | None = None,
        system_prompt: str | None = None,
        locked_sampling: bool = False,
    ) -> None:
        super().__init__(
            format=native_format(model) if format is None else format,
            model=model,
            default_params=default_params,
            exact=False,
            native=True,
        )
        self._system_prompt = system_prompt
        self._locked_sampling = locked_sampling
        self._clients = SdkClients(api_key, base_url, self._backend)
        self._sampling(None)

    def validate_context(self, messages: Sequence[Message]) -> None:
        """Check that every tool call is answered once, by id, before the next turn; no request is made.

        Calls may still be open at the end.

        Raises:
            InvalidRequestError: Naming the index of the message at fault.
        """
        check_tool_order(messages, finished=False)

    def startup_check(self) -> None:
        """Ask for the models and for one reply of at most 16 tokens, under the policy's default sampling.

        The reply alone decides: not every server lists its models, or all of their names.

        Raises:
            AuthenticationError: Wrong key.
            BackendError: Wrong address, model or sampling; says what to change.
            ServerUnavailableError: Nothing answers.
            RequestTimeoutError: No reply within a minute.
            InvalidRequestError: There is no key.
        """
        run_sync(self._check())

    async def _check(self) -> None:
        try:
            async with asyncio.timeout(_PATIENCE_S):
                names = await self._model_names()
                try:
                    prompt = self.prepare([{"role": "user", "content": "Hello"}])
                    await self.agenerate(prompt, replace(self.default_params, max_tokens=_CHECK_TOKENS))
                except BackendError as error:
                    error.args = (f"{error} {advice(error, self.served_model, names)}".rstrip(),)
                    raise
        except RequestTimeoutError:
            raise
        except TimeoutError as error:
            raise RequestTimeoutError(
                f"{self._backend}: no reply to the start-up check within {_PATIENCE_S:g} s"
            ) from error

    async def _model_names(self) -> list[str]:
        try:
            return model_names(await self._clients.get("models"))
        except BackendError as error:
            if error.status is None:
                raise
            return []

    def close(self) -> None:
        """Close every connection. May be called more than once; a later call opens new ones."""
        self._clients.close()

    async def aclose(self) -> None:
        """`close` for async code."""
        await self._clients.aclose()

    def _messages(self, prompt: PreparedPrompt) -> list[Message]:
        """The conversation, checked.

        Raises:
            InvalidRequestError: No prepared prompt, no messages, or tool calls and tool messages that do not pair up.
        """
        self._require_prompt(prompt)
        messages = prompt.messages
        if not messages:
            raise InvalidRequestError("the conversation is empty: a chat API needs at least one message")
        check_tool_order(messages, finished=True)
        return messages

    def _sampling(self, params: SamplingParams | None) -> SamplingParams:
        """Effective parameters, with temperature and top_p None where they are locked.

        Raises:
            InvalidRequestError: Naming a parameter that the API or the model cannot honour.
        """
        sampling = effective_params(params, self._default_params)
        for name in self._refused:
            value = getattr(sampling, name)
            if value is not None and value != _OFF.get(name):
                raise InvalidRequestError(f"{self._backend} has no {name}, so {name}={value!r} cannot be honoured")
        if not self._locked_sampling:
            return sampling
        for name in ("seed", "stop"):
            value = getattr(sampling, name)
            if value is not None and value != _OFF.get(name):
                raise InvalidRequestError(
                    f"{name}={value!r} cannot be honoured with locked_sampling=True: leave it out"
                )
        return replace(sampling, temperature=None, top_p=None)

    async def _post(self, path: str, body: bytes) -> HttpReply:
        try:
            return await self._clients.post(path, body)
        except BackendError as error:
            refused = error.status == 400 and any(name in str(error) for name in ("temperature", "top_p"))
            if refused and not self._locked_sampling:
                error.args = (f"{error} If the model fixes its sampling, pass locked_sampling=True.",)
            raise


# What means "explicitly off", and is therefore honoured by leaving it out.
_OFF: dict[str, Any] = {"top_k": -1, "repetition_penalty": 1, "stop": []}
