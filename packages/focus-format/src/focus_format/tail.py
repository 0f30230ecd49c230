"""What a chat template writes after a reply: the tail that carries a conversation on.

The template renders a short conversation whose assistant text is a sentinel. What follows the sentinel closes the
reply, adds the new messages and opens the next reply. It begins with a control token, where every tokenizer cuts, so it
encodes alone as it would in place. No knowledge of the model is needed; but a template can make the tail depend on what
stands before it, so each kind of continuation is tried on stand-in messages first.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from focus_format.template import ChatTemplate
from focus_types import InvalidRequestError, Message, TokenId

__all__ = ["NoTail", "Tail", "TailWriter"]

# Names that no message and no tool can hold by chance or by intent.
_SENTINEL = f"r{uuid.uuid4().hex}"
_OPENING: list[Message] = [{"role": "user", "content": "u"}]
_REPLY: Message = {"role": "assistant", "content": _SENTINEL}
_EARLIER: list[Message] = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
_TOOL = f"t{uuid.uuid4().hex}"
# Trials are small; the bound matters to those who make new tools for every conversation.
_MOST_TRIALS = 512
_TOOLS: list[dict[str, Any]] = [
    {
        "type": "function",
        "function": {
            "name": _TOOL,
            "description": "Looks it up.",
            "parameters": {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]},
        },
    }
]


def _call(argument: str, call_id: str = "call00000") -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": _TOOL, "arguments": {"q": argument}}}


def _stand_in(role: str, index: int) -> Message:
    if role == "tool":
        # Nine letters and digits: the form that the strictest templates ask of an id.
        return {"role": role, "tool_call_id": f"call{index:05}", "name": _TOOL, "content": f"m{index}"}
    return {"role": role, "content": f"m{index}"}


# Turns that some templates do not take: then no conversation has them.
_PERHAPS_EARLIER: list[list[Message]] = [
    [{"role": "system", "content": "s"}],
    [
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": "", "tool_calls": [_call("c")]},
        _stand_in("tool", 0),
        {"role": "assistant", "content": "b"},
    ],
]


class NoTail(Exception):
    """The template's tail cannot be had, or not be trusted; the message says why."""


class Tail(NamedTuple):
    """Text that follows a reply."""

    close: str
    """The control token that closes the reply."""
    rest: str
    """What comes after it, the generation prompt last."""


class TailWriter:
    """Tails of one template.

    Args:
        template: The chat template.
        control: Strings of control tokens and their ids.
    """

    def __init__(self, template: ChatTemplate, control: Mapping[str, TokenId]) -> None:
        self._template = template
        self._control = control
        self._trials: dict[tuple[tuple[str, ...], str], str | Sequence[dict[str, Any]]] = {}

    def write(self, messages: Sequence[Message], tools: Sequence[dict[str, Any]]) -> Tail:
        """The tail for new messages.

        Raises:
            NoTail: An assistant message is among them, the template raises, rewrites or loses the reply's text, does
                not close it with one control token, or lets the tail depend on tools or on earlier messages.
        """
        roles = tuple(str(message["role"]) for message in messages)
        if "assistant" in roles:
            raise NoTail("an assistant message is among the new ones: only sampled replies continue exactly")
        kind = (roles, repr(tools))
        trial = self._trials.get(kind)
        if trial is None:
            if len(self._trials) >= _MOST_TRIALS:
                self._trials.clear()
            trial = self._trials[kind] = self._trial(roles, tools)
        if isinstance(trial, str):
            raise NoTail(trial)
        return self._tail([*_OPENING, _REPLY, *messages], trial)

    def close(self) -> str | None:
        """The control token that the template closes a reply with, if it does."""
        conversation = [*_OPENING, _REPLY]
        try:
            return self._tail(conversation, self._fewest_tools(conversation)).close
        except NoTail:
            return None

    def _tail(self, conversation: Sequence[Message], tools: Sequence[dict[str, Any]]) -> Tail:
        text = self._text(conversation, tools)
        if text.count(_SENTINEL) != 1:
            raise NoTail("the template does not write a reply's text exactly once and as it is")
        return self._split(text.partition(_SENTINEL)[2])

    def _text(self, conversation: Sequence[Message], tools: Sequence[dict[str, Any]]) -> str:
        try:
            return self._template.render(conversation, tools)
        except InvalidRequestError as error:
            raise NoTail(str(error)) from error

    def _split(self, text: str) -> Tail:
        close = max((control for control in self._control if text.startswith(control)), key=len, default="")
        if not close:
            raise NoTail("the template does not close a reply with a control token right after its text")
        return Tail(close, text[len(close) :])

    def _trial(self, roles: tuple[str, ...], tools: Sequence[dict[str, Any]]) -> str | Sequence[dict[str, Any]]:
        """Why tails for messages of these roles are not to be trusted, or the tools to render them with.

        As the tail is the same with other tools, the real ones need not be rendered each time.
        """
        new = [_stand_in(role, index) for index, role in enumerate(roles)]
        conversation = [*_OPENING, _REPLY, *new]
        try:
            tail = self._tail(conversation, tools)
            if roles[0] == "tool" and self._after_calls(new, tools, tail.close) != tail:
                return "the template writes tool results depending on the calls that they answer"
            earlier = [_EARLIER, *(turns for turns in _PERHAPS_EARLIER if self._takes([*turns, *conversation], tools))]
            if any(self._tail([*turns, *conversation], tools) != tail for turns in earlier):
                return "the template's tail depends on earlier messages"
            if not tools:
                return ()
            fewest = self._fewest_tools(conversation)
            if self._tail(conversation, fewest) != tail:
                return "the template writes the tools again behind the new messages"
        except NoTail as error:
            return str(error)
        return fewest

    def _fewest_tools(self, conversation: Sequence[Message]) -> Sequence[dict[str, Any]]:
        # Some templates need tools.
        return () if self._takes(conversation, ()) else _TOOLS

    def _takes(self, conversation: Sequence[Message], tools: Sequence[dict[str, Any]]) -> bool:
        try:
            self._text(conversation, tools)
        except NoTail:
            return False
        return True

    def _after_calls(self, new: Sequence[Message], tools: Sequence[dict[str, Any]], close: str) -> Tail:
        """The tail after a reply that made calls, behind the sentinel in the last call's arguments."""
        calls = [_call(_SENTINEL, message["tool_call_id"]) for message in new if message["role"] == "tool"]
        text = self._text([*_OPENING, {**_REPLY, "tool_calls": calls}, *new], tools)
        before, _, after = text.rpartition(_SENTINEL)
        if not before or close not in after:
            raise NoTail("the template does not write a reply's tool calls")
        return self._split(after[after.index(close) :])
