"""Where a continuation cannot be proven exact, the conversation is rendered again and the prompt says why."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from focus_format import ChatTemplateCodec, PolicyFormat, PreparedPrompt
from focus_parsing import TextActionParser
from focus_testing import ByteTokenizer
from focus_types import GenerateResult, InvalidRequestError, Message

USER: Message = {"role": "user", "content": "hi"}
MORE: Message = {"role": "user", "content": "more"}
TOOL_RESULT: Message = {"role": "tool", "tool_call_id": "c1", "content": "42"}
TOOLS: list[dict[str, Any]] = [{"type": "function", "function": {"name": "add", "parameters": {"type": "object"}}}]

TURN = "<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>{{ '\\n' }}"
OPEN = "<|im_start|>assistant{{ '\\n' }}"
EACH = "{% for m in messages %}" + TURN + "{% endfor %}" + OPEN


def format_of(template: str) -> PolicyFormat[str]:
    return PolicyFormat("own", ChatTemplateCodec(ByteTokenizer(chat_template=template)), TextActionParser())


def ask(
    format: PolicyFormat[str],
    *new: Message,
    reply: str = "yes<|im_end|>",
    tools: list[dict[str, Any]] | None = None,
    **changes: Any,
) -> tuple[PreparedPrompt, list[Message], PreparedPrompt]:
    """The prompt, the conversation with reply and new messages, and what `extend` makes of it."""
    messages = [USER]
    prompt = format.prepare(messages, tools or [])
    sampled = format.codec.encode(reply)
    result = GenerateResult(**{"tokens": sampled, "prefix_tokens": prompt.tokens, "text": "yes", **changes})
    format.record_reply(result, messages)
    messages += new
    return prompt, messages, format.extend(prompt, result, messages)


def check_refused(format: PolicyFormat[str], messages: list[Message], got: PreparedPrompt, reason: str) -> None:
    assert got.refusal is not None
    assert reason in got.refusal
    assert got.exact_continuation is False
    again = format.prepare(messages, got.tools)
    assert (got.tokens, got.messages, got.format) == (again.tokens, messages, format)
    assert again.refusal is None


def test_the_plain_case_continues() -> None:
    format = format_of(EACH)
    prompt, messages, got = ask(format, MORE)
    assert format.codec.decode(got.tokens) == (
        "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\nyes<|im_end|>\n"
        "<|im_start|>user\nmore<|im_end|>\n<|im_start|>assistant\n"
    )
    assert got.exact_continuation is True
    assert got.refusal is None
    assert got.messages == messages
    assert prompt.exact_continuation is False


def test_a_cut_reply_is_closed_by_the_prompt() -> None:
    format = format_of(EACH)
    _, _, got = ask(format, MORE, reply="ye")
    assert "assistant\nye<|im_end|>\n<|im_start|>user\nmore" in format.codec.decode(got.tokens)


def test_an_unfinished_reply_goes_on_without_new_messages() -> None:
    format = format_of(EACH)
    prompt, messages, got = ask(format, reply="ye")
    assert got.tokens == (*prompt.tokens, *b"ye")
    assert got.exact_continuation is True
    assert got.messages == messages


TEMPLATES = {
    "tools near the end": (
        "{% for m in messages %}{% if loop.last and tools %}[{{ tools[0].function.name }}]{% endif %}"
        + TURN
        + "{% endfor %}"
        + OPEN,
        "writes the tools again",
    ),
    "other text near the end with tools": (
        EACH.removesuffix(OPEN) + "{% if tools %}Use them.{% endif %}" + OPEN,
        "writes the tools again",
    ),
    "assistant text rewritten": (EACH.replace("m.content", "m.content | upper"), "exactly once and as it is"),
    "assistant text dropped": (
        "{% for m in messages if m.role != 'assistant' %}" + TURN + "{% endfor %}",
        "exactly once and as it is",
    ),
    "assistant text written twice": (EACH.replace("m.content", "m.content ~ m.content"), "exactly once"),
    "no close token": (EACH.replace("<|im_end|>", "</s>"), "does not close a reply with a control token"),
    "a newline before the close token": (EACH.replace("<|im_end|>", "\n<|im_end|>"), "does not close a reply"),
    "the turn's number in the tail": (
        EACH.replace("{{ m.role }}\n", "{{ m.role }} {{ loop.index }}\n"),
        "depends on earlier messages",
    ),
    "the system message near the end": (
        "{% for m in messages if m.role != 'system' %}{% if loop.last and messages[0].role == 'system' %}"
        "{{ messages[0].content }}{% endif %}" + TURN + "{% endfor %}" + OPEN,
        "depends on earlier messages",
    ),
    "a trace of earlier tool results": (
        "{% set ns = namespace(used='') %}{% for m in messages %}{% if m.role == 'tool' %}{% set ns.used = '!' %}"
        "{% endif %}" + TURN + "{% endfor %}{{ ns.used }}" + OPEN,
        "depends on earlier messages",
    ),
    "a raise on the short conversation": (
        "{% if messages[1:] %}{{ raise_exception('one message only') }}{% endif %}" + EACH,
        "one message only",
    ),
}


@pytest.mark.parametrize("name", TEMPLATES)
def test_a_template_that_cannot_be_continued_is_refused(name: str) -> None:
    template, reason = TEMPLATES[name]
    format = format_of(template)
    if name == "a raise on the short conversation":
        with pytest.raises(InvalidRequestError, match="one message only"):
            ask(format, MORE)
        assert format.codec.extend((1,), [MORE]) is None
        return
    _, messages, got = ask(format, MORE, tools=TOOLS)
    check_refused(format, messages, got, reason)


def test_without_tools_a_template_that_moves_them_continues() -> None:
    format = format_of(TEMPLATES["tools near the end"][0])
    assert ask(format, MORE)[2].exact_continuation is True


def test_a_template_that_needs_tools_continues_with_them() -> None:
    calls = "{% if m.tool_calls %}{{ m.tool_calls | tojson }}<|im_end|>{{ '\\n' }}{% else %}" + TURN + "{% endif %}"
    format = format_of("{{ tools[0].function.name }}" + EACH.replace(TURN, calls))
    _, messages, got = ask(format, TOOL_RESULT, tools=TOOLS)
    assert got.exact_continuation is True
    assert got.tokens == format.prepare(messages, TOOLS).tokens


TOOL_TEMPLATES = {
    "results that look at the calls": (
        "{% set ns = namespace(calls='none') %}{% for m in messages %}"
        "{% if m.tool_calls %}{% set ns.calls = m.tool_calls[0].id %}{% endif %}"
        "<|im_start|>{{ m.role }}\n{{ m.content }}{% if m.tool_calls %}{{ m.tool_calls | tojson }}{% endif %}"
        "{% if m.role == 'tool' %} for {{ ns.calls }}{% endif %}<|im_end|>\n"
        "{% endfor %}" + OPEN,
        "depending on the calls",
    ),
    "results without calls raise": (
        "{% for m in messages %}{% if m.role == 'tool' and not messages[loop.index0 - 1].tool_calls %}"
        "{{ raise_exception('which call is this?') }}{% endif %}" + TURN + "{% endfor %}" + OPEN,
        "which call is this?",
    ),
    "calls are not written": (
        EACH.replace("{{ m.content }}", "{% if not m.tool_calls %}{{ m.content }}{% endif %}"),
        "does not write a reply's tool calls",
    ),
}


@pytest.mark.parametrize("name", TOOL_TEMPLATES)
def test_tool_results_that_depend_on_calls_are_refused(name: str) -> None:
    template, reason = TOOL_TEMPLATES[name]
    format = format_of(template)
    refusal = ChatTemplateCodec.refusal(format.codec, (1,), [TOOL_RESULT])  # type: ignore[arg-type]
    assert refusal is not None
    assert reason in refusal
    assert format.codec.extend((1,), [TOOL_RESULT]) is None
    assert format.codec.extend(format.codec.encode("a"), [MORE]) is not None


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"exact_generation": False}, "not exact"),
        ({"prefix_tokens": ()}, "prefix_tokens is empty"),
        ({"prefix_tokens": (1, 2)}, "other ids"),
    ],
)
def test_a_reply_that_does_not_belong_is_refused(changes: dict[str, Any], reason: str) -> None:
    format = format_of(EACH)
    _, messages, got = ask(format, MORE, **changes)
    check_refused(format, messages, got, reason)


def test_a_prompt_of_another_format_is_refused() -> None:
    format = format_of(EACH)
    prompt, messages, _ = ask(format, MORE)
    result = GenerateResult(tokens=(65,), prefix_tokens=prompt.tokens, text="A")
    other = PolicyFormat("other", ChatTemplateCodec(ByteTokenizer(chat_template=EACH)), TextActionParser())
    check_refused(other, messages, other.extend(prompt, result, messages), "prepared by another format, 'own'")
    assert format.with_template(date="today").extend(prompt, result, messages).exact_continuation is True


def test_values_that_cannot_be_compared_are_named() -> None:
    format = format_of(EACH)
    message: Message = {**USER, "scores": np.array([1, 2])}
    prompt = format.prepare([message])
    result = GenerateResult(tokens=(65,), prefix_tokens=prompt.tokens, text="A")
    with pytest.raises(InvalidRequestError, match="a value without a plain comparison"):
        format.extend(prompt, result, [message, {"role": "assistant", "content": "A"}, MORE])


def test_nothing_new_after_a_finished_reply_is_refused() -> None:
    format = format_of(EACH)
    _, messages, got = ask(format)
    check_refused(format, messages, got, "nothing is new")


def test_an_assistant_message_among_the_new_ones_is_refused() -> None:
    format = format_of(EACH)
    _, messages, got = ask(format, MORE, {"role": "assistant", "content": "made up"}, MORE)
    check_refused(format, messages, got, "an assistant message")


def test_a_system_message_that_the_template_raises_on_is_refused() -> None:
    late = (
        "{% for m in messages %}{% if m.role == 'system' and not loop.first %}{{ raise_exception('late') }}{% endif %}"
    )
    format = format_of(late + TURN + "{% endfor %}" + OPEN)
    assert format.codec.extend((1,), [{"role": "developer", "content": "x"}]) is None
    with pytest.raises(InvalidRequestError, match="refuses this conversation: late"):
        ask(format, {"role": "developer", "content": "x"})


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ([{"role": "user", "content": "edited"}, {"role": "assistant", "content": "yes"}, MORE], "edited or compacted"),
        ([], "edited or compacted"),
        ([USER], "call record_reply first"),
        ([USER, MORE], "must be the recorded reply, with role 'assistant', and has role 'user'"),
    ],
)
def test_changed_messages_are_refused(changed: list[Message], reason: str) -> None:
    format = format_of("{{ messages | length }}" + EACH)
    prompt = format.prepare([USER])
    result = GenerateResult(tokens=(65,), prefix_tokens=prompt.tokens, text="A")
    if not changed:
        with pytest.raises(InvalidRequestError, match="no messages"):
            format.extend(prompt, result, changed)
        return
    check_refused(format, changed, format.extend(prompt, result, changed), reason)


def test_the_recorded_reply_may_be_edited() -> None:
    format = format_of(EACH)
    prompt = format.prepare([USER])
    result = GenerateResult(tokens=(65,), prefix_tokens=prompt.tokens, text="A")
    got = format.extend(prompt, result, [USER, {"role": "assistant", "content": "shortened"}, MORE])
    assert got.exact_continuation is True
    assert got.tokens[: len(prompt.tokens) + 1] == (*prompt.tokens, 65)


def test_a_codec_of_ones_own_is_refused_by_name() -> None:
    class Full:
        stop_tokens = frozenset({0})
        vocab_size = None

        def encode(self, text: str) -> tuple[int, ...]:
            return tuple(text.encode())

        def decode(self, tokens: Any, *, skip_special_tokens: bool = False) -> str:
            return bytes(tokens).decode()

        def render(self, messages: Any, tools: Any = ()) -> tuple[int, ...]:
            return self.encode(repr(messages))

        def extend(self, tokens: Any, messages: Any, tools: Any = ()) -> tuple[int, ...] | None:
            return None

    format = PolicyFormat("own", Full(), TextActionParser())
    _, messages, got = ask(format, MORE)
    check_refused(format, messages, got, "Full cannot continue these messages exactly")
    with pytest.raises(InvalidRequestError, match="Full has no chat template"):
        format.with_template(enable_thinking=False)
