"""A model's codec: around a given tokenizer, or loaded once per process and pickled by name."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from focus_format.codec import ChatTemplateCodec
from focus_format.narrow import is_list, is_mapping
from focus_types import HFTokenizer, InvalidRequestError, TokenId

__all__ = ["codec_for"]


def codec_for(model: str, tokenizer: HFTokenizer | None) -> ChatTemplateCodec:
    """The codec of ``tokenizer``, or of the tokenizer that transformers finds for ``model``.

    Raises:
        InvalidRequestError: No chat template, or no tokenizer under that name.
        ImportError: transformers is needed and not installed.
    """
    if tokenizer is None:
        return _named_codec(model, {})
    files = _files(getattr(tokenizer, "name_or_path", ""))
    return ChatTemplateCodec(tokenizer, vocab_size=files.vocab_size, stop_tokens=files.stop_tokens)


class _NamedCodec(ChatTemplateCodec):
    """A codec that pickles as its model's name, so that prompts stay small and a process loads a tokenizer once."""

    def __init__(self, model: str, tokenizer: HFTokenizer, variables: Mapping[str, Any]) -> None:
        files = _files(model)
        super().__init__(tokenizer, vocab_size=files.vocab_size, stop_tokens=files.stop_tokens, variables=variables)
        self._model = model

    def _with_variables(self, variables: Mapping[str, Any]) -> ChatTemplateCodec:
        return _named_codec(self._model, variables)

    def __reduce__(self) -> tuple[Any, ...]:
        return _named_codec, (self._model, self.template.variables)


_codecs: dict[tuple[str, str], _NamedCodec] = {}
_tokenizers: dict[str, HFTokenizer] = {}
_lock = threading.Lock()


def _named_codec(model: str, variables: Mapping[str, Any]) -> _NamedCodec:
    key = (model, repr(sorted(variables.items())))
    with _lock:
        if model not in _tokenizers:
            _tokenizers[model] = _load(model)
        if key not in _codecs:
            _codecs[key] = _NamedCodec(model, _tokenizers[model], variables)
        return _codecs[key]


def _load(model: str) -> HFTokenizer:
    try:
        from transformers import AutoTokenizer
    except ImportError as error:
        raise ImportError(
            "loading a tokenizer needs transformers: pip install 'focus-format[transformers]', or pass tokenizer="
        ) from error
    auto: Any = AutoTokenizer  # untyped
    try:
        tokenizer: HFTokenizer = auto.from_pretrained(model, trust_remote_code=False)
    except (OSError, ValueError) as error:
        raise InvalidRequestError(
            f"transformers finds no tokenizer for {model!r}: name a model of the hub or a folder, or pass tokenizer="
            f" ({error})"
        ) from error
    return tokenizer


class _Files(NamedTuple):
    """What the files beside a tokenizer say about the model."""

    vocab_size: int | None = None
    stop_tokens: tuple[TokenId, ...] = ()


def _files(model: str) -> _Files:
    config = _read(model, "config.json")
    text: Any = config.get("text_config")
    size: Any = config.get("vocab_size") or (text.get("vocab_size") if is_mapping(text) else None)
    eos: Any = _read(model, "generation_config.json").get("eos_token_id")
    ids: list[Any] = [*eos] if is_list(eos) else [eos]
    return _Files(size if isinstance(size, int) else None, tuple(token for token in ids if isinstance(token, int)))


def _read(model: str, name: str) -> Mapping[str, Any]:
    path = _find(model, name)
    value: Any = json.loads(path.read_text(encoding="utf-8")) if path is not None else {}
    return value if is_mapping(value) else {}


def _find(model: str, name: str) -> Path | None:
    """The file in the model's folder, or in the hub's cache on this machine; nothing is downloaded."""
    if not model:
        return None
    if Path(model).is_dir():
        path = Path(model) / name
        return path if path.is_file() else None
    try:
        from huggingface_hub import try_to_load_from_cache

        found: Any = try_to_load_from_cache(model, name)
    except (ImportError, ValueError):  # no hub library, or no name of the hub
        return None
    return Path(found) if isinstance(found, str) else None
