"""ChatTemplateCodec: messages to token ids and back, for any Hugging Face tokenizer with a chat template."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

from focus_format.literal import LiteralText
from focus_format.narrow import is_list
from focus_format.normalise import normalise_messages, normalise_tools
from focus_format.tail import NoTail, TailWriter
from focus_format.template import ChatTemplate
from focus_types import HFTokenizer, InvalidRequestError, Message, TokenId

__all__ = ["ChatTemplateCodec"]

_ALWAYS_WRITTEN = ("user", "assistant")
_THINK_OPEN, _THINK_CLOSE = "<think>", "</think>"


class ChatTemplateCodec:
    """A tokenizer and its chat template.

    Args:
        tokenizer: Any object with the few methods of `HFTokenizer`.
        vocab_size: How many ids the model accepts, padding included; None if unknown.
        stop_tokens: Ids that end a reply besides the tokenizer's end token and the one that the template closes a
            reply with.
        variables: Given to the template at each render.

    Raises:
        InvalidRequestError: The tokenizer has no chat template.
    """

    def __init__(
        self,
        tokenizer: HFTokenizer,
        *,
        vocab_size: int | None = None,
        stop_tokens: Iterable[TokenId] = (),
        variables: Mapping[str, Any] | None = None,
    ) -> None:
        self._tokenizer = tokenizer
        self._vocab_size = vocab_size
        self._stop_tokens = frozenset(stop_tokens)
        self.template: ChatTemplate = ChatTemplate(tokenizer, variables or {})
        self.tokenizer_length: int = len(tokenizer)
        self._literal = LiteralText(tokenizer)
        self._tails = TailWriter(self.template, self._literal.control)
        self._all_stop_tokens: frozenset[TokenId] | None = None

    @property
    def vocab_size(self) -> int | None:
        """How many ids the model accepts, padding included; None if only the tokenizer is known."""
        return self._vocab_size

    @property
    def stop_tokens(self) -> frozenset[TokenId]:
        """The ids that end a reply: the tokenizer's end token, the template's, and those that were given."""
        if self._all_stop_tokens is None:
            self._all_stop_tokens = self._stop_tokens | self._found_stop_tokens()
        return self._all_stop_tokens

    def _found_stop_tokens(self) -> frozenset[TokenId]:
        eos: Any = self._tokenizer.eos_token_id
        found: list[Any] = [*eos] if is_list(eos) else [eos]
        close = self._tails.close()
        if close is not None:
            found.append(self._literal.control[close])
        return frozenset(token for token in found if isinstance(token, int))

    @cached_property
    def reasoning_open(self) -> tuple[TokenId, ...]:
        """The ids at the end of a generation prompt that open a thought; empty if it opens none."""
        probe = "focus"
        try:
            text = self.template.render([{"role": "user", "content": probe}], ())
        except InvalidRequestError:
            return ()
        prompt = text.rpartition(probe)[2]
        if prompt.rfind(_THINK_OPEN) <= prompt.rfind(_THINK_CLOSE):
            return ()
        ids = self.encode(text)
        start = next(at for at in reversed(range(len(ids))) if _THINK_OPEN in self.decode(ids[at:]))
        return ids[start:]

    def encode(self, text: str) -> tuple[TokenId, ...]:
        """The ids of a text as the tokenizer gives them, control tokens recognised, nothing added."""
        return self._literal.encode(text)

    def decode(self, tokens: Sequence[TokenId], *, skip_special_tokens: bool = False) -> str:
        """The text of ids. Ids of the model's padding, beyond the tokenizer, have none."""
        text = self._tokenizer.decode(list(tokens), skip_special_tokens=skip_special_tokens)
        return text if isinstance(text, str) else "".join(text)

    def render(self, messages: Sequence[Message], tools: Sequence[dict[str, Any]] = ()) -> tuple[TokenId, ...]:
        """A whole prompt, the generation prompt included.

        Raises:
            InvalidRequestError: No messages, or one (or a tool) that cannot be rendered, by its index.
        """
        shaped = self._shaped(messages)
        if not shaped:
            raise InvalidRequestError("there are no messages to render")
        plain = [self._literal.cut(tool) for tool in normalise_tools(tools)]
        return self._literal.encode(self.template.render(shaped, plain))

    def extend(
        self, tokens: Sequence[TokenId], messages: Sequence[Message], tools: Sequence[dict[str, Any]] = ()
    ) -> tuple[TokenId, ...] | None:
        """``tokens`` followed by what the template writes for new messages, or None if that cannot be exact.

        Args:
            tokens: A prompt and its reply, as sent and sampled.
            messages: The new ones. None of them and an unfinished reply: ``tokens`` themselves, to go on from.
            tools: The prompt's tools.

        Raises:
            InvalidRequestError: A message or tool that cannot be rendered, by its index.
        """
        try:
            return self._extend(tuple(tokens), messages, tools)
        except NoTail:
            return None

    def refusal(
        self, tokens: Sequence[TokenId], messages: Sequence[Message], tools: Sequence[dict[str, Any]] = ()
    ) -> str | None:
        """Why `extend` gives None for the same arguments; None if it does not."""
        try:
            self._extend(tuple(tokens), messages, tools)
        except NoTail as error:
            return str(error)
        return None

    def with_template(self, **variables: Any) -> ChatTemplateCodec:
        """A copy whose template gets these variables, over those it had.

        Raises:
            InvalidRequestError: A name that the render itself decides, such as ``tools``.
        """
        return self._with_variables({**self.template.variables, **variables})

    def _with_variables(self, variables: Mapping[str, Any]) -> ChatTemplateCodec:
        return ChatTemplateCodec(
            self._tokenizer, vocab_size=self._vocab_size, stop_tokens=self._stop_tokens, variables=variables
        )

    def _extend(
        self, tokens: tuple[TokenId, ...], messages: Sequence[Message], tools: Sequence[dict[str, Any]]
    ) -> tuple[TokenId, ...]:
        if not messages:
            if tokens and tokens[-1] in self.stop_tokens:
                raise NoTail("the reply is finished and nothing is new")
            return tokens
        tail = self._tails.write(self._shaped(messages, "new message"), normalise_tools(tools))
        ids = self._literal.encode(tail.close + tail.rest)
        close = self._literal.control[tail.close]
        if not ids or ids[0] != close:
            raise NoTail(f"the tokenizer does not encode {tail.close!r} as one token")
        # A reply that was cut has not sampled its end, which is then the prompt's to write.
        return tokens + (ids[1:] if tokens and tokens[-1] == close else ids)

    def _shaped(self, messages: Sequence[Message], name: str = "message") -> list[Message]:
        shaped = normalise_messages(messages, name)
        for index, message in enumerate(shaped):
            role = message["role"]
            if role not in _ALWAYS_WRITTEN and self.template.drops(role):
                raise InvalidRequestError(
                    f"{name} {index} has the role {role!r}, whose text this chat template leaves out of the prompt"
                )
        return self._literal.protect(shaped)
