"""The chat template of a tokenizer, with the variables it is given."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from focus_types import HFTokenizer, InvalidRequestError, Message

__all__ = ["ChatTemplate"]

# What a render itself decides.
_RESERVED = frozenset(
    {"conversation", "messages", "tools", "add_generation_prompt", "tokenize", "return_dict", "continue_final_message"}
)

_MARK = f"d{uuid.uuid4().hex}"
_USER: Message = {"role": "user", "content": "u"}
_CALL: dict[str, Any] = {"id": "call00000", "type": "function", "function": {"name": "f", "arguments": {}}}
_TOOL: dict[str, Any] = {
    "type": "function",
    "function": {"name": "f", "description": "d", "parameters": {"type": "object"}},
}


class ChatTemplate:
    """Messages to the text of a prompt."""

    def __init__(self, tokenizer: HFTokenizer, variables: Mapping[str, Any]) -> None:
        if not tokenizer.chat_template:
            raise InvalidRequestError(
                f"this {type(tokenizer).__name__} has no chat template: set tokenizer.chat_template, or use the"
                " tokenizer of the instruction-tuned model"
            )
        taken = sorted(_RESERVED & variables.keys())
        if taken:
            raise InvalidRequestError(f"{taken[0]!r} is not a variable of the template: the render decides it")
        self._tokenizer = tokenizer
        self.variables: Mapping[str, Any] = dict(variables)
        self._drops: dict[str, bool] = {}

    def render(self, messages: Sequence[Message], tools: Sequence[dict[str, Any]]) -> str:
        """The text of a prompt, generation prompt included.

        Raises:
            InvalidRequestError: The template raises, or is not one that gives text.
        """
        try:
            text = self._tokenizer.apply_chat_template(
                list(messages), tools=list(tools) or None, add_generation_prompt=True, tokenize=False, **self.variables
            )
        except ImportError:
            raise
        except Exception as error:  # a template is somebody's program: it can raise anything
            raise InvalidRequestError(f"the chat template refuses this conversation: {error}") from error
        if not isinstance(text, str):
            raise InvalidRequestError(f"apply_chat_template(tokenize=False) gave {type(text).__name__}, not text")
        return text

    def drops(self, role: str) -> bool:
        """Whether messages of this role would be left out of every prompt without a word."""
        if role not in self._drops:
            message: Message = {"role": role, "content": _MARK}
            if role == "tool":
                call: Message = {"role": "assistant", "content": "", "tool_calls": [_CALL]}
                conversation = [_USER, call, {**message, "tool_call_id": _CALL["id"], "name": "f"}]
            else:
                conversation = [message, _USER] if role == "system" else [_USER, message]
            try:
                self._drops[role] = _MARK not in self.render(conversation, [_TOOL] if role == "tool" else ())
            except InvalidRequestError:  # it has its say where the message is rendered
                self._drops[role] = False
        return self._drops[role]
