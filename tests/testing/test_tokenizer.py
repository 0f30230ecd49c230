"""The byte tokenizer and its chat template."""

from __future__ import annotations

import pickle
from typing import Any

import jinja2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from focus_testing import ByteTokenizer
from focus_types import HFTokenizer

TOKENIZER = ByteTokenizer()
TOOLS = [{"type": "function", "function": {"name": "add", "parameters": {"type": "object"}}}]


def render(messages: list[dict[str, Any]], tools: list[dict[str, Any]] | None = None, **kwargs: Any) -> str:
    text = TOKENIZER.apply_chat_template(messages, tools, tokenize=False, **kwargs)
    assert isinstance(text, str)
    return text


def test_it_satisfies_the_protocol() -> None:
    tokenizer: HFTokenizer = TOKENIZER
    assert isinstance(tokenizer, HFTokenizer)
    assert len(tokenizer) == 265
    assert tokenizer.eos_token_id == 258


@settings(deadline=None, derandomize=True)
@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_text_comes_back(text: str) -> None:
    assert TOKENIZER.decode(TOKENIZER.encode(text)) == text


@settings(deadline=None, derandomize=True)
@given(st.lists(st.integers(0, 300)))
def test_any_ids_decode(ids: list[int]) -> None:
    assert isinstance(TOKENIZER.decode(ids), str)


def test_control_tokens_are_one_id_and_text_is_its_bytes() -> None:
    ids = TOKENIZER.encode("<|im_start|>a<tool_call>é")
    assert ids == [257, 97, 261, 0xC3, 0xA9]
    assert TOKENIZER.decode(ids) == "<|im_start|>a<tool_call>é"
    assert TOKENIZER.decode(ids, skip_special_tokens=True) == "a<tool_call>é"
    assert TOKENIZER.get_added_vocab()["<tool_call>"] == 261
    assert TOKENIZER.convert_tokens_to_ids("<|endoftext|>") == 256
    assert TOKENIZER.convert_tokens_to_ids("a") == 97
    with pytest.raises(KeyError, match="not one token"):
        TOKENIZER.convert_tokens_to_ids("<|nope|>")


def test_half_a_character_and_ids_beyond_the_vocabulary_decode() -> None:
    assert TOKENIZER.decode([0xF0, 0x9F]) == "\ufffd"
    assert TOKENIZER.decode([97, 5000, 98]) == "ab"
    assert TOKENIZER.decode(TOKENIZER.encode("\ud800")) == "\ufffd\ufffd\ufffd"


def test_a_whole_conversation_with_tools_renders_literally() -> None:
    call = {"type": "function", "function": {"name": "add", "arguments": {"x": "é"}}}
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Add"},
        {"role": "assistant", "content": "Adding.", "reasoning_content": "easy", "tool_calls": [call, call]},
        {"role": "tool", "content": "4"},
        {"role": "tool", "content": "5"},
        {"role": "assistant", "content": None},
    ]
    assert render(messages, TOOLS, add_generation_prompt=True) == (
        "<|im_start|>system\nBe brief.\n\n"
        "These functions can be called, one JSON schema per line:\n<tools>\n"
        '{"type": "function", "function": {"name": "add", "parameters": {"type": "object"}}}\n</tools>\n'
        "Each call is one JSON object with name and arguments inside <tool_call></tool_call>:\n"
        '<tool_call>\n{"name": ..., "arguments": {...}}\n</tool_call><|im_end|>\n'
        "<|im_start|>user\nAdd<|im_end|>\n"
        "<|im_start|>assistant\n<think>\neasy\n</think>\n\nAdding.\n"
        '<tool_call>\n{"name": "add", "arguments": {"x": "é"}}\n</tool_call>\n'
        '<tool_call>\n{"name": "add", "arguments": {"x": "é"}}\n</tool_call><|im_end|>\n'
        "<|im_start|>user\n<tool_response>\n4\n</tool_response>\n<tool_response>\n5\n</tool_response><|im_end|>\n"
        "<|im_start|>assistant\n<|im_end|>\n"
        "<|im_start|>assistant\n"
    )


def test_without_tools_or_system_there_is_no_system_turn() -> None:
    assert render([{"role": "user", "content": "Hi"}]) == "<|im_start|>user\nHi<|im_end|>\n"


def test_thinking_can_be_switched_off() -> None:
    messages = [{"role": "user", "content": "Hi"}]
    prompt = "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"
    assert render(messages, add_generation_prompt=True, enable_thinking=True) == prompt
    assert render(messages, add_generation_prompt=True, enable_thinking=False) == prompt + "<think>\n\n</think>\n\n"


def test_an_unknown_role_is_refused() -> None:
    with pytest.raises(jinja2.TemplateError, match="unknown role critic"):
        render([{"role": "critic", "content": "Hm"}])


def test_ids_and_text_of_a_template_agree_and_another_template_can_be_given() -> None:
    tokenizer = ByteTokenizer(chat_template="{% for m in messages %}{{ m | tojson }}{% endfor %}")
    messages = [{"role": "user", "content": "ü"}]
    assert tokenizer.apply_chat_template(messages) == tokenizer.encode('{"role": "user", "content": "ü"}')


def test_it_pickles() -> None:
    copy = pickle.loads(pickle.dumps(TOKENIZER))
    assert copy.encode("<think>x") == TOKENIZER.encode("<think>x")
    assert copy.apply_chat_template([{"role": "user", "content": "Hi"}], tokenize=False) == render(
        [{"role": "user", "content": "Hi"}]
    )
