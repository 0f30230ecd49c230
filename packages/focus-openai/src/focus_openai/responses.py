"""OpenAIResponsesPolicy: conversations through a Responses endpoint."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from focus_format import PolicyFormat, PreparedPrompt
from focus_http import HttpReply
from focus_openai import responses_wire
from focus_openai.native import NativePolicy
from focus_openai.result import native_result
from focus_types import BackendError, GenerateResult, SamplingParams

__all__ = ["OpenAIResponsesPolicy"]


class OpenAIResponsesPolicy(NativePolicy):
    """Run agent interactions through a Responses endpoint, storing nothing on the server.

    All output items of a reply are kept in order in ``native_output``; ``record_reply`` keeps them in the recorded
    message, and the next request sends them back, reasoning included. Reasoning is asked for in encrypted form, the
    only one that can be sent back; a server that refuses that is asked without it from then on. A refusal is the
    ``text`` of a result whose ``stop_reason`` is "refusal".

    The API has neither ``stop`` nor ``seed``: both are refused. Tools are sent with ``strict: false`` unless their
    ``function`` says otherwise.

    Args:
        model: The server's name for the model.
        format: See `NativePolicy`.
        default_params: See `NativePolicy`.
        api_key: See `NativePolicy`.
        base_url: See `NativePolicy`.
        system_prompt: Sent as ``instructions``.
        locked_sampling: See `NativePolicy`.
        reasoning_effort: The API's own words: none, minimal, low, medium, high, xhigh, max. None leaves it to the
            server.
    """

    _backend: ClassVar[str] = responses_wire.BACKEND
    _refused: ClassVar[tuple[str, ...]] = (*NativePolicy._refused, "stop", "seed")

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
        reasoning_effort: str | None = None,
    ) -> None:
        super().__init__(
            model=model,
            format=format,
            default_params=default_params,
            api_key=api_key,
            base_url=base_url,
            system_prompt=system_prompt,
            locked_sampling=locked_sampling,
        )
        self._reasoning_effort = reasoning_effort
        self._encrypted_reasoning = True

    async def agenerate(self, prompt: PreparedPrompt, sampling_params: SamplingParams | None = None) -> GenerateResult:
        """Generate one reply to a prepared prompt.

        Raises:
            InvalidRequestError: Bad input, or no key; nothing was sent.
            BackendError: The server failed or refused, or the response failed or was cancelled; see
                `focus_types.errors`.
        """
        messages = self._messages(prompt)
        sampling = self._sampling(sampling_params)

        def body(encrypted_reasoning: bool) -> bytes:
            return responses_wire.encode_request(
                messages,
                prompt.tools,
                sampling,
                self.served_model,
                self._system_prompt,
                reasoning_effort=self._reasoning_effort,
                encrypted_reasoning=encrypted_reasoning,
            )

        reply = await self._ask(body)
        return native_result(prompt, sampling, responses_wire.decode_reply(reply, len(messages)), reply)

    async def _ask(self, body: Callable[[bool], bytes]) -> HttpReply:
        if self._encrypted_reasoning:
            try:
                return await self._post("responses", body(True))
            except BackendError as error:
                if error.status != 400 or "encrypted" not in str(error).lower():
                    raise
        reply = await self._post("responses", body(False))
        self._encrypted_reasoning = False
        return reply
