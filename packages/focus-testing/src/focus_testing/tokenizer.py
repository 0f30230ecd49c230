"""A tokenizer that needs no file: one token per byte, and named control tokens."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from focus_testing.template import CHAT_TEMPLATE, render_template

__all__ = ["ByteTokenizer"]

_BYTES = 256
_CONTROL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
_TAGS = ("<think>", "</think>", "<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>")


class ByteTokenizer:
    """256 byte tokens, whose id is the byte, then named control tokens and tags.

    These are ``<|endoftext|>``, ``<|im_start|>``, ``<|im_end|>`` and the tags of thoughts, tool calls and tool
    responses. It satisfies ``focus_types.HFTokenizer`` and pickles. As in the tokenizers of Qwen, control tokens are
    "special", so that ``skip_special_tokens`` leaves them out, while tags are not.

    Args:
        chat_template: A jinja2 chat template; the default is a Hermes-style one that also takes
            ``enable_thinking=False``, which closes an empty thought in the generation prompt.
    """

    def __init__(self, *, chat_template: str = CHAT_TEMPLATE) -> None:
        self.chat_template = chat_template
        self._added = {text: _BYTES + i for i, text in enumerate((*_CONTROL, *_TAGS))}
        self._texts = {token: text.encode() for text, token in self._added.items()}
        self._special = frozenset(self._added[text] for text in _CONTROL)
        self._split = re.compile("(" + "|".join(map(re.escape, self._added)) + ")")

    @property
    def eos_token_id(self) -> int:
        """The id of ``<|im_end|>``."""
        return self._added["<|im_end|>"]

    def __len__(self) -> int:
        return _BYTES + len(self._added)

    def get_added_vocab(self) -> dict[str, int]:
        """Text to id of the control tokens and tags."""
        return dict(self._added)

    def convert_tokens_to_ids(self, tokens: str) -> int:
        """The id of one control token, tag or single-byte character.

        Raises:
            KeyError: Not one token.
        """
        if tokens in self._added:
            return self._added[tokens]
        encoded = tokens.encode()
        if len(encoded) != 1:
            raise KeyError(f"{tokens!r} is not one token")
        return encoded[0]

    def encode(self, text: str, *, add_special_tokens: bool = False) -> list[int]:
        """Control tokens and tags as one id each, everything else as its UTF-8 bytes; nothing is added."""
        ids: list[int] = []
        for i, piece in enumerate(self._split.split(text)):
            if i % 2:
                ids.append(self._added[piece])
            else:
                ids.extend(piece.encode(errors="surrogatepass"))
        return ids

    def decode(self, token_ids: Iterable[int], skip_special_tokens: bool = False) -> str:
        """The text; bytes that are not UTF-8 become U+FFFD, ids beyond the vocabulary nothing."""
        skipped = self._special if skip_special_tokens else frozenset[int]()
        pieces = bytearray()
        for token in token_ids:
            if 0 <= token < _BYTES:
                pieces.append(token)
            elif token not in skipped:
                pieces += self._texts.get(token, b"")
        return pieces.decode(errors="replace")

    def apply_chat_template(
        self,
        conversation: Sequence[Mapping[str, Any]],
        tools: Sequence[Mapping[str, Any]] | None = None,
        *,
        add_generation_prompt: bool = False,
        tokenize: bool = True,
        **kwargs: Any,
    ) -> Any:
        """Messages as text, or as ids with ``tokenize``; further keyword arguments reach the template.

        Returns:
            ``str``, or ``list[int]`` with ``tokenize``.

        Raises:
            jinja2.TemplateError: The template refuses these messages.
        """
        text = render_template(self.chat_template, conversation, tools, add_generation_prompt, kwargs)
        return self.encode(text) if tokenize else text
