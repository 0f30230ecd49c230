"""OpenAIChatPolicy: conversations through a Chat Completions endpoint."""

from __future__ import annotations

from typing import ClassVar

from focus_format import PreparedPrompt
from focus_openai import chat_wire
from focus_openai.native import NativePolicy
from focus_openai.result import native_result
from focus_types import GenerateResult, SamplingParams

__all__ = ["OpenAIChatPolicy"]


class OpenAIChatPolicy(NativePolicy):
    """Run agent interactions through a Chat Completions endpoint, OpenAI's or a compatible server's.

    A reply's message is kept in ``native_output`` with every field that came (refusal, ``reasoning``,
    ``reasoning_content``, ``reasoning_details``), and is what ``record_reply`` appends and the next request sends.
    Only its tool calls are made uniform: arguments as JSON text, and an id where the server gave none. A refusal is
    the ``text`` of a result whose ``stop_reason`` is "refusal".

    The reply's length is sent as ``max_completion_tokens``. See `NativePolicy` for the arguments.
    """

    _backend: ClassVar[str] = chat_wire.BACKEND

    async def agenerate(self, prompt: PreparedPrompt, sampling_params: SamplingParams | None = None) -> GenerateResult:
        """Generate one reply to a prepared prompt.

        Raises:
            InvalidRequestError: Bad input, or no key; nothing was sent.
            BackendError: The server failed or refused; see `focus_types.errors`.
        """
        messages = self._messages(prompt)
        sampling = self._sampling(sampling_params)
        body = chat_wire.encode_request(messages, prompt.tools, sampling, self.served_model, self._system_prompt)
        reply = await self._post("chat/completions", body)
        return native_result(prompt, sampling, chat_wire.decode_reply(reply, len(messages)), reply)
