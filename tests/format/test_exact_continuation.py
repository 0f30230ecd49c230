"""prompt + reply is kept, id for id, on four real tokenizers: shared and random conversations, awkward replies."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from focus_format import PolicyFormat
from focus_types import GenerateResult, Message
from support.conversations import Conversation, Dialect, random_conversations, reply_text, shared_conversations
from support.templates import RealTemplate, load_real

CLOSE = "<|im_end|>"
THOUGHT = "<think>\n"

type Reply = Callable[[PolicyFormat[Any], str, int], tuple[int, ...]]
"""From a format, a reply's text and its index in the conversation to the ids that the model sampled."""


def as_written(format: PolicyFormat[Any], text: str, at: int) -> tuple[int, ...]:
    return format.codec.encode(text + CLOSE)


def newlines_first(format: PolicyFormat[Any], text: str, at: int) -> tuple[int, ...]:
    return format.codec.encode("\n\n" + text + CLOSE)


def white_space_last(format: PolicyFormat[Any], text: str, at: int) -> tuple[int, ...]:
    return format.codec.encode(text + " \n" + CLOSE)


def truncated(format: PolicyFormat[Any], text: str, at: int) -> tuple[int, ...]:
    ids = format.codec.encode(text)
    return ids[: 1 + len(ids) // 2]


def recut(format: PolicyFormat[Any], text: str, at: int) -> tuple[int, ...]:
    """The same text, but a third of the longer tokens sampled as two."""
    rng = random.Random(at)
    encode, decode = format.codec.encode, format.codec.decode
    ids: list[int] = []
    for token in encode(text):
        piece = decode([token])
        halves = encode(piece[:1]) + encode(piece[1:])
        ids += halves if len(piece) > 2 and piece.isascii() and rng.random() < 1 / 3 else [token]
    return (*ids, *encode(CLOSE))


@dataclass
class Outcome:
    """What came of the transitions from one prompt to the next."""

    transitions: int = 0
    refused: int = 0
    violations: int = 0
    """The next prompt does not start with prompt and reply."""
    full_render_agrees: int = 0
    """A full render starts with prompt and reply, too, and equals ours."""
    full_render_differs: int = 0
    """It starts with them, but goes on otherwise."""


def replay(
    real: RealTemplate,
    conversations: Iterable[Conversation],
    reply: Reply,
    *,
    text: Callable[[Message, Dialect], str] = reply_text,
    parsed: bool = False,
    compare: bool = False,
    thinking: bool = True,
) -> Outcome:
    """Carry conversations on by `extend`.

    The replies go into the conversation raw, or, if ``parsed``, as the conversation's own assistant messages.
    ``compare`` compares each prompt with a full render.
    """
    outcome = Outcome()
    format = real.format if thinking else real.format.with_template(enable_thinking=False)
    opened, close = format.codec.encode(THOUGHT), format.codec.encode(CLOSE)
    for conversation in conversations:
        replies = conversation.replies
        messages = list(conversation.messages[: replies[0]])
        prompt = format.prepare(messages, conversation.tools)
        for at, following in itertools.pairwise(replies):
            written = text(conversation.messages[at], real.dialect)
            if prompt.tokens[-len(opened) :] == opened:
                written = written.removeprefix(THOUGHT)
            sampled = reply(format, written, at)
            finished = sampled[-1:] == close
            result = GenerateResult(
                tokens=sampled,
                prefix_tokens=prompt.tokens,
                text=format.codec.decode(sampled[:-1] if finished else sampled),
                stop_reason="stop" if finished else "length",
            )
            if parsed:
                messages.append(conversation.messages[at])
            else:
                format.record_reply(result, messages)
            messages += conversation.messages[at + 1 : following]
            extended = format.extend(prompt, result, messages)
            kept = prompt.tokens + sampled
            outcome.transitions += 1
            outcome.refused += not extended.exact_continuation
            outcome.violations += extended.tokens[: len(kept)] != kept
            if compare:
                rendered = format.prepare(messages, conversation.tools).tokens
                starts_alike = rendered[: len(kept)] == kept
                outcome.full_render_agrees += starts_alike and rendered == extended.tokens
                outcome.full_render_differs += starts_alike and rendered != extended.tokens
            prompt = extended
    return outcome


@pytest.fixture(scope="session")
def conversations(shared: Path) -> list[Conversation]:
    return shared_conversations(shared)


@pytest.fixture(scope="session")
def own() -> list[Conversation]:
    return random_conversations(32, seed=7)


def test_prepare_equals_transformers(
    real: RealTemplate, conversations: list[Conversation], own: list[Conversation]
) -> None:
    prompts = [(c, at) for c in conversations for at in c.replies] + [(c, c.replies[-1]) for c in own]
    for conversation, at in prompts:
        messages, tools = conversation.messages[:at], conversation.tools
        assert real.format.prepare(messages, tools).tokens == real.reference(messages, tools), conversation.name


def test_prepare_gives_the_template_its_variables(real: RealTemplate, own: list[Conversation]) -> None:
    quick = real.format.with_template(enable_thinking=False)
    for conversation in own:
        messages, tools = conversation.messages[: conversation.replies[-1]], conversation.tools
        assert quick.prepare(messages, tools).tokens == real.reference(messages, tools, enable_thinking=False)


def test_our_writer_writes_the_shared_replies(conversations: list[Conversation]) -> None:
    for conversation in conversations:
        for at, literal in conversation.literal.items():
            assert reply_text(conversation.messages[at], "hermes") == literal["hermes"]
            assert reply_text(conversation.messages[at], "qwen_xml") == literal["qwen_xml"]


@pytest.mark.parametrize("reply", [as_written, recut, newlines_first, white_space_last, truncated])
def test_every_reply_is_kept(
    real: RealTemplate, conversations: list[Conversation], own: list[Conversation], reply: Reply
) -> None:
    assert replay(real, conversations, reply) == Outcome(transitions=438)
    assert replay(real, own[:12], reply) == Outcome(transitions=77)


def test_replies_in_another_layout_are_kept(real: RealTemplate, conversations: list[Conversation]) -> None:
    text = partial(reply_text, compact=True)
    assert replay(real, conversations, as_written, text=text) == Outcome(transitions=438)


def test_replies_are_kept_with_thinking_off(real: RealTemplate, conversations: list[Conversation]) -> None:
    def visible(message: Message, dialect: Dialect) -> str:
        return reply_text({key: value for key, value in message.items() if key != "reasoning_content"}, dialect)

    assert replay(real, conversations, as_written, text=visible, thinking=False) == Outcome(transitions=438)


@pytest.mark.parametrize(("name", "agrees"), [("qwen2.5", 254), ("qwen3", 292), ("qwen3-coder", 248), ("qwen3.5", 32)])
def test_where_a_full_render_keeps_the_reply_it_equals_ours(
    tokenizers: Path, conversations: list[Conversation], own: list[Conversation], name: str, agrees: int
) -> None:
    outcome = replay(load_real(tokenizers, name), [*conversations, *own], as_written, parsed=True, compare=True)
    assert outcome == Outcome(transitions=438 + 213, full_render_agrees=agrees)


def test_a_full_render_of_raw_replies_equals_ours_where_it_keeps_them(
    tokenizers: Path, conversations: list[Conversation]
) -> None:
    outcome = replay(load_real(tokenizers, "qwen2.5"), conversations, truncated, compare=True)
    assert outcome == Outcome(transitions=438, full_render_agrees=438)
