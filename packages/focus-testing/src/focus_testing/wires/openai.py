"""The wire of the hosted OpenAI API: /v1/chat/completions, /v1/responses and /v1/models."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from focus_testing.wires.base import Exchange, Handler, Reply, Wire, new_id, run_to_end
from focus_testing.wires.openai_chat import CHAT_FIELDS, chat_messages, chat_params, completion
from focus_testing.wires.openai_faults import SPOILERS
from focus_testing.wires.openai_responses import (
    ENCRYPTED,
    RESPONSES_FIELDS,
    response,
    response_messages,
    response_params,
)
from focus_testing.wires.openai_shapes import check_fields, openai_error, refuse, render_chat

__all__ = ["OpenAIWire"]


@dataclass
class OpenAIWire(Wire):
    """The hosted API, strict about fields it does not know.

    Messages are rendered with the tokenizer's chat template, calls are read out of the reply as Hermes writes them, a
    leading ``<think>`` block is reasoning.
    """

    locked_sampling: bool = False
    """As reasoning models: temperature and top_p other than 1 are refused, and so is ``max_tokens``."""
    encrypted_reasoning: bool = True
    """Whether the model can give its reasoning encrypted; otherwise asking for it is refused."""

    def routes(self) -> Mapping[tuple[str, str], Handler]:
        """Method and path to handler."""
        return {
            ("POST", "/v1/chat/completions"): self._chat,
            ("POST", "/v1/responses"): self._responses,
            ("GET", "/v1/models"): self._models,
        }

    def error(self, status: int, message: str) -> Reply:
        """``{"error": {...}}``."""
        return openai_error(status, message)

    def spoilers(self) -> Mapping[str, Callable[[Any], Any]]:
        """What each fault does to a completion or a response."""
        return SPOILERS

    def guarded(self, path: str) -> bool:
        """The key guards everything."""
        return True

    async def _chat(self, exchange: Exchange) -> Reply:
        fields = check_fields(exchange.body, CHAT_FIELDS, self.model, locked=self.locked_sampling)
        params = chat_params(fields, locked=self.locked_sampling)
        tools: Any = fields.raw("tools") or []
        prompt = render_chat(self.engine, chat_messages(fields), tools, params.max_tokens)
        generation = await run_to_end(self, self.engine.start(prompt, params), exchange, new_id())
        return Reply(completion(self.engine, self.model, prompt, generation, params, tools=bool(tools)))

    async def _responses(self, exchange: Exchange) -> Reply:
        fields = check_fields(exchange.body, RESPONSES_FIELDS, self.model, locked=self.locked_sampling)
        params = response_params(fields)
        if ENCRYPTED in fields.texts("include") and not self.encrypted_reasoning:
            refuse("Encrypted content is not supported with this model.", param="include")
        tools: Any = fields.raw("tools") or []
        wrapped = [{"type": "function", "function": tool} for tool in tools]
        prompt = render_chat(self.engine, response_messages(fields), wrapped, params.max_tokens)
        generation = await run_to_end(self, self.engine.start(prompt, params), exchange, new_id())
        return Reply(response(self.engine, self.model, prompt, generation, params, fields))

    async def _models(self, exchange: Exchange) -> Reply:
        card = {"id": self.model, "object": "model", "created": 0, "owned_by": "focus-testing"}
        return Reply({"object": "list", "data": [card]})
