"""The real tokenizers with their chat templates, as the tests use them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from focus_format import PolicyFormat
from focus_types import HFTokenizer, Message
from support.conversations import Dialect

__all__ = ["REAL", "RealTemplate", "load_real"]

REAL: dict[str, Dialect] = {"qwen2.5": "hermes", "qwen3": "hermes", "qwen3-coder": "qwen_xml", "qwen3.5": "qwen_xml"}
"""Folder of each real tokenizer and the dialect that its template writes."""


@dataclass(frozen=True)
class RealTemplate:
    """A real tokenizer and the format that is resolved for it."""

    tokenizer: HFTokenizer
    format: PolicyFormat[Any]
    dialect: Dialect

    def reference(
        self, messages: Sequence[Message], tools: Sequence[dict[str, Any]], **variables: Any
    ) -> tuple[int, ...]:
        """The prompt as transformers renders and encodes it."""
        text = self.tokenizer.apply_chat_template(
            list(messages), tools=list(tools) or None, add_generation_prompt=True, tokenize=False, **variables
        )
        return tuple(self.tokenizer.encode(text, add_special_tokens=False))


@cache
def load_real(folder: Path, name: str) -> RealTemplate:
    """The tokenizer in ``folder / name``, loaded once."""
    from transformers import AutoTokenizer

    tokenizer: HFTokenizer = AutoTokenizer.from_pretrained(str(folder / name), trust_remote_code=False)
    return RealTemplate(tokenizer, PolicyFormat.resolve(name, tokenizer=tokenizer), REAL[name])
