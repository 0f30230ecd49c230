"""From a model's name to tokenizer, template and parser."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest

from focus_format import ChatTemplateCodec, PolicyFormat
from focus_parsing import (
    HermesToolCallParser,
    NativeToolCallParser,
    QwenXMLToolCallParser,
    TextActionParser,
    TokenChunkParser,
)
from focus_testing import ByteTokenizer
from focus_types import ChatCodec, GenerateResult, HFTokenizer, InvalidRequestError, Message
from support.templates import load_real

PLAIN = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>{% endfor %}<|im_start|>assistant"
USER: list[Message] = [{"role": "user", "content": "hi"}]


def plain() -> ByteTokenizer:
    """A tokenizer whose template says nothing of tool calls."""
    return ByteTokenizer(chat_template=PLAIN)


def run(code: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, **env}, check=False
    )


@pytest.mark.parametrize(
    ("profile", "parser"),
    [
        ("qwen_xml", QwenXMLToolCallParser),
        ("hermes", HermesToolCallParser),
        ("native", NativeToolCallParser),
        ("text", TextActionParser),
        ("token_chunk", TokenChunkParser),
    ],
)
def test_a_profile_names_the_parser(profile: str, parser: type) -> None:
    format = PolicyFormat.resolve("anything", tokenizer=plain(), profile=profile)
    assert type(format.parser) is parser
    assert format.name == "anything"
    assert isinstance(format.codec, ChatCodec)


@pytest.mark.parametrize(
    ("name", "parser"),
    [
        ("qwen2.5", HermesToolCallParser),
        ("qwen3", HermesToolCallParser),
        ("qwen3-coder", QwenXMLToolCallParser),
        ("qwen3.5", QwenXMLToolCallParser),
    ],
)
def test_the_template_shows_the_dialect(tokenizers: Path, name: str, parser: type) -> None:
    tokenizer = load_real(tokenizers, name).tokenizer
    assert type(PolicyFormat.resolve("my-org/my-tune", tokenizer=tokenizer).parser) is parser


@pytest.mark.parametrize(
    ("model", "parser"),
    [
        ("Qwen/Qwen3-Coder-30B-A3B-Instruct", QwenXMLToolCallParser),
        ("Qwen/Qwen3.5-4B", QwenXMLToolCallParser),
        ("qwen/QWEN3.6-plus", QwenXMLToolCallParser),
        ("Qwen3.8", QwenXMLToolCallParser),
        ("Qwen/Qwen2.5-7B-Instruct", HermesToolCallParser),
        ("Qwen/Qwen3-8B/", HermesToolCallParser),
        ("Qwen/QwQ-32B", HermesToolCallParser),
        ("NousResearch/Hermes-3-Llama-3.1-8B", HermesToolCallParser),
        ("NousResearch/Nous-Hermes-2-Pro", HermesToolCallParser),
        ("NousResearch/Hermes-2-Pro-Mistral-7B", HermesToolCallParser),
    ],
)
def test_the_name_tells_where_the_template_does_not(model: str, parser: type) -> None:
    assert type(PolicyFormat.resolve(model, tokenizer=plain()).parser) is parser


@pytest.mark.parametrize(
    "model", ["some/model", "Qwen/Qwen-7B", "Qwen/Qwen30-x", "NousResearch/Hermes-2-Theta", "./qwen3-8b", "/m/qwen2.5"]
)
def test_an_unknown_model_asks_for_a_profile(model: str) -> None:
    with pytest.raises(InvalidRequestError, match=r"pass profile=, one of qwen_xml, hermes, native, text, token_chunk"):
        PolicyFormat.resolve(model, tokenizer=plain())


def test_the_template_wins_over_the_name_and_says_so(tokenizers: Path) -> None:
    coder = load_real(tokenizers, "qwen3-coder").tokenizer
    with pytest.warns(UserWarning, match="its chat template writes qwen_xml calls"):
        format = PolicyFormat.resolve("PrimeIntellect/Qwen3-0.6B", tokenizer=coder)
    assert type(format.parser) is QwenXMLToolCallParser
    assert type(PolicyFormat.resolve("Qwen/Qwen3-0.6B", tokenizer=coder, profile="hermes").parser) is (
        HermesToolCallParser
    )


def test_a_model_that_rarely_calls_is_warned_of(tokenizers: Path) -> None:
    with pytest.warns(UserWarning, match="bare JSON"):
        PolicyFormat.resolve("Qwen/Qwen2.5-Coder-7B-Instruct", tokenizer=load_real(tokenizers, "qwen2.5").tokenizer)


def test_an_unknown_profile_is_refused() -> None:
    with pytest.raises(InvalidRequestError, match="unknown profile 'json': choose one of qwen_xml, hermes"):
        PolicyFormat.resolve("m", tokenizer=plain(), profile="json")


def test_a_tokenizer_without_a_template_is_refused() -> None:
    with pytest.raises(InvalidRequestError, match=r"this ByteTokenizer has no chat template: set tokenizer\."):
        PolicyFormat.resolve("m", tokenizer=ByteTokenizer(chat_template=""), profile="text")


@pytest.mark.parametrize("taken", ["tools", "tokenize", "add_generation_prompt"])
def test_the_render_keeps_its_own_variables(taken: str) -> None:
    with pytest.raises(InvalidRequestError, match=f"'{taken}' is not a variable of the template"):
        PolicyFormat.resolve("m", tokenizer=plain(), profile="text").with_template(**{taken: True})


# Reasoning


def reasoning_open(format: PolicyFormat[Any]) -> tuple[int, ...]:
    assert isinstance(format.parser, HermesToolCallParser | QwenXMLToolCallParser)
    return format.parser.reasoning_open


def test_a_generation_prompt_that_opens_a_thought_is_found(tokenizers: Path) -> None:
    real = load_real(tokenizers, "qwen3.5")
    opened = real.format.codec.encode("<think>\n")
    assert reasoning_open(real.format) == opened
    quick = real.format.with_template(enable_thinking=False)
    assert reasoning_open(quick) == ()
    assert reasoning_open(quick.with_template(enable_thinking=True)) == opened
    assert reasoning_open(real.format.with_parser(QwenXMLToolCallParser())) == opened
    prompt = real.format.prepare(USER)
    cut = GenerateResult(tokens=(1,), prefix_tokens=prompt.tokens, text="Let me see", stop_reason="length")
    assert (real.format.parser.parse(cut).reasoning, real.format.parser.parse(cut).text) == ("Let me see", "")


@pytest.mark.parametrize("name", ["qwen2.5", "qwen3", "qwen3-coder"])
def test_other_generation_prompts_open_none(tokenizers: Path, name: str) -> None:
    format = load_real(tokenizers, name).format
    assert reasoning_open(format) == reasoning_open(format.with_template(enable_thinking=False)) == ()


def test_a_thought_in_the_system_prompt_opens_none() -> None:
    tokenizer = ByteTokenizer(chat_template="Think in <think> tags." + PLAIN)
    assert ChatTemplateCodec(tokenizer).reasoning_open == ()


def test_with_parser_takes_any_kind_of_parser() -> None:
    format = PolicyFormat.resolve("m", tokenizer=plain(), profile="hermes").with_parser(TextActionParser())
    action: str = format.parser.parse(GenerateResult(text=" 4 "))
    assert action == "4"


# Stop tokens and vocabulary


def test_stop_tokens_are_the_tokenizers_the_templates_and_the_given() -> None:
    class Other(ByteTokenizer):
        @property
        def eos_token_id(self) -> int:
            return 256

    assert ChatTemplateCodec(Other(chat_template=PLAIN)).stop_tokens == {256, 258}
    assert ChatTemplateCodec(Other(chat_template=PLAIN), stop_tokens=[7]).stop_tokens == {7, 256, 258}
    assert ChatTemplateCodec(Other(chat_template="{{ tools[0].function.name }}" + PLAIN)).stop_tokens == {256, 258}
    assert ChatTemplateCodec(Other(chat_template=PLAIN.replace("<|im_end|>", "."))).stop_tokens == {256}


def folder(path: Path, config: dict[str, Any], generation: dict[str, Any] | None = None) -> ByteTokenizer:
    path.mkdir(parents=True, exist_ok=True)
    (path / "config.json").write_text(json.dumps(config))
    if generation is not None:
        (path / "generation_config.json").write_text(json.dumps(generation))
    tokenizer = plain()
    tokenizer.name_or_path = str(path)  # type: ignore[attr-defined]
    return tokenizer


def test_the_files_beside_the_tokenizer_are_read(tmp_path: Path) -> None:
    tokenizer = folder(tmp_path, {"vocab_size": 512}, {"eos_token_id": [258, 256]})
    codec = PolicyFormat.resolve("m", tokenizer=tokenizer, profile="text").codec
    assert (codec.vocab_size, codec.stop_tokens) == (512, frozenset({256, 258}))


def test_a_nested_vocabulary_and_a_single_end_token_are_read(tmp_path: Path) -> None:
    tokenizer = folder(tmp_path, {"text_config": {"vocab_size": 300}}, {"eos_token_id": 9})
    codec = PolicyFormat.resolve("m", tokenizer=tokenizer, profile="text").codec
    assert (codec.vocab_size, codec.stop_tokens) == (300, frozenset({9, 258}))


def test_without_files_the_vocabulary_is_unknown() -> None:
    codec = PolicyFormat.resolve("m", tokenizer=plain(), profile="text").codec
    assert codec.vocab_size is None
    assert isinstance(codec, ChatTemplateCodec)
    assert codec.tokenizer_length == 265
    assert ChatTemplateCodec(plain(), vocab_size=320).with_template(x=1).vocab_size == 320


# Loading


def test_a_given_tokenizer_needs_neither_transformers_nor_a_network() -> None:
    code = (
        "import sys; from focus_format import PolicyFormat; from focus_testing import ByteTokenizer;"
        "f = PolicyFormat.resolve('Qwen/Qwen3-8B', tokenizer=ByteTokenizer(), profile='hermes');"
        "f.prepare([{'role': 'user', 'content': 'hi'}]);"
        "print(sorted({'transformers', 'tokenizers', 'torch'} & set(sys.modules)))"
    )
    assert run(code).stdout == "[]\n"


def test_without_transformers_the_error_names_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(ImportError, match=r"pip install 'focus-format\[transformers\]'"):
        PolicyFormat.resolve("Qwen/Qwen3-8B")


def test_a_name_without_a_tokenizer_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequestError, match="transformers finds no tokenizer for"):
        PolicyFormat.resolve(str(tmp_path))


def test_code_that_comes_with_a_model_never_runs(tokenizers: Path, tmp_path: Path) -> None:
    model = tmp_path / "model"
    shutil.copytree(tokenizers / "qwen2.5", model)
    config = json.loads((model / "tokenizer_config.json").read_text())
    config |= {"tokenizer_class": "Own", "auto_map": {"AutoTokenizer": ["own.Own", None]}}
    (model / "tokenizer_config.json").write_text(json.dumps(config))
    (model / "own.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w').close()\nclass Own: pass\n")
    with pytest.raises(InvalidRequestError, match="transformers finds no tokenizer"):
        PolicyFormat.resolve(str(model))
    assert not (tmp_path / "ran").exists()


def test_a_hub_model_is_loaded_from_the_cache_with_its_files(tokenizers: Path, tmp_path: Path) -> None:
    snapshot = tmp_path / "models--org--model" / "snapshots" / "0"
    shutil.copytree(tokenizers / "qwen2.5", snapshot)
    folder(snapshot, {"vocab_size": 152064, "model_type": "qwen2"}, {"eos_token_id": [151645, 151643]})
    refs = snapshot.parents[1] / "refs"
    refs.mkdir()
    (refs / "main").write_text("0")
    code = (
        "from focus_format import PolicyFormat; c = PolicyFormat.resolve('org/model').codec;"
        "print(c.vocab_size, sorted(c.stop_tokens))"
    )
    done = run(code, HF_HUB_CACHE=str(tmp_path), HF_HUB_OFFLINE="1")
    assert done.stdout == "152064 [151643, 151645]\n", done.stderr


# Pickling


def test_a_resolved_format_pickles_by_name(tokenizers: Path) -> None:
    format = PolicyFormat.resolve(str(tokenizers / "qwen3.5")).with_template(enable_thinking=False)
    messages: list[Message] = [{"role": "user", "content": "The quick brown fox jumps over the lazy dog. " * 99}]
    prompt = format.prepare(messages)
    assert len(prompt.tokens) > 1000
    data = pickle.dumps(prompt)
    assert len(data) <= 10_000
    back = pickle.loads(data)
    assert (back.tokens, back.messages, back.format.name) == (prompt.tokens, messages, format.name)
    assert back.format.codec is format.codec
    assert back.format.parser.parse(GenerateResult(text="a")).text == "a"


def test_a_process_loads_a_tokenizer_once(tokenizers: Path) -> None:
    format = PolicyFormat.resolve(str(tokenizers / "qwen2.5"))
    data = [pickle.dumps(format.prepare(USER)), pickle.dumps(format.with_template(x=1).prepare(USER))]
    code = (
        "import pickle, sys, transformers; load = transformers.AutoTokenizer.from_pretrained; loads = [];"
        "transformers.AutoTokenizer.from_pretrained = lambda *a, **k: loads.append(a) or load(*a, **k);"
        f"prompts = [pickle.loads(d) for d in {data!r} * 3];"
        "print(len(loads), len({id(p.format.codec) for p in prompts}), len({p.tokens for p in prompts}))"
    )
    done = run(code)
    assert done.stdout == "1 2 1\n", done.stderr


def test_a_format_around_a_given_tokenizer_pickles_whole() -> None:
    format = PolicyFormat.resolve("m", tokenizer=plain(), profile="text")
    assert pickle.loads(pickle.dumps(format)).prepare(USER).tokens == format.prepare(USER).tokens


# Types


class TenLines:
    """The least that is a tokenizer."""

    eos_token_id = 0
    chat_template = "any"

    def __len__(self) -> int:
        return 0x110000

    def get_added_vocab(self) -> dict[str, int]:
        return {}

    def encode(self, text: str, *, add_special_tokens: bool = True) -> list[int]:
        return [ord(c) for c in text]

    def decode(self, token_ids: list[int], skip_special_tokens: bool = False) -> str:
        return "".join(map(chr, token_ids))

    def convert_tokens_to_ids(self, tokens: str) -> int:
        return ord(tokens)

    def apply_chat_template(
        self,
        conversation: Any,
        tools: Any = None,
        *,
        add_generation_prompt: bool = False,
        tokenize: bool = True,
        **kwargs: Any,
    ) -> Any:
        return "".join(f"{m['role']}: {m['content']}\n" for m in conversation)  # fmt: skip


def test_a_fake_of_ten_lines_is_a_tokenizer() -> None:
    fake: HFTokenizer = TenLines()
    format = PolicyFormat.resolve("fake", tokenizer=fake, profile="text")
    prompt = format.prepare(USER)
    assert format.codec.decode(prompt.tokens) == "user: hi\n"
    result = GenerateResult(tokens=(65,), prefix_tokens=prompt.tokens, text="A")
    messages = [*USER]
    format.record_reply(result, messages)
    messages += USER
    refused = format.extend(prompt, result, messages)
    assert refused.refusal == "the template does not close a reply with a control token right after its text"


def test_a_real_tokenizer_type_checks_as_it_is(tokenizers: Path) -> None:
    from transformers import PreTrainedTokenizerFast

    tokenizer: PreTrainedTokenizerFast = PreTrainedTokenizerFast.from_pretrained(str(tokenizers / "qwen3.5"))
    typed: HFTokenizer = tokenizer
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        format = PolicyFormat.resolve("Qwen/Qwen3.5-4B", tokenizer=typed)
    assert type(format.parser) is QwenXMLToolCallParser
