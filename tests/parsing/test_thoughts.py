"""Where a thought begins and ends, and what of it can run."""

from __future__ import annotations

import pytest

from focus_types import ToolCall, ToolTurn
from support.turns import bad, hermes, turn, xml, xml_call

__all__: list[str] = []

CALL = '<tool_call>{"name": "f"}</tool_call>'
F = ToolCall("f", "{}")
WRITES_TAG = '<tool_call>{"name": "f", "arguments": {"t": "</think>"}}</tool_call>'
WRITES = ToolCall("f", '{"t": "</think>"}')


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("</think>b", turn("b")),
        ("a</think></think>\n</think> b</think>", turn("b</think>", reasoning="a")),
        ("<think> <think>\na</think>b", turn("b", reasoning="a")),
        ("before\n<think>a</think>\nafter", turn("before\n\nafter", reasoning="a")),
        (f"{CALL}<think>a {CALL}</think>b", turn("b", F, reasoning=f"a {CALL}")),
        # Thoughts with nothing between are one; a later one is text, since nothing says that it is a thought.
        ("<think></think>\n\n<think>a</think>b", turn("b", reasoning="a")),
        ("<think>a</think><think>b\n</think>\n<think>c", turn("", reasoning="a\nb\nc")),
        ("<think>a</think>b<think>c</think>", turn("b<think>c</think>", reasoning="a")),
        # A </think> that a call writes is data; one in a broken block is not.
        (WRITES_TAG, turn("", WRITES)),
        (f"<think>a {WRITES_TAG} b</think>c", turn("c", reasoning=f"a {WRITES_TAG} b")),
        (f"a<tool_call>{{oops</think>{CALL}", turn("", F, reasoning="a<tool_call>{oops")),
        ("<tool_call>{<think>a</think>}</tool_call>", turn("}</tool_call>", reasoning="<tool_call>{<think>a")),
    ],
)
def test_the_end_of_a_thought(text: str, expected: ToolTurn) -> None:
    assert hermes(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<think>a", turn("", reasoning="a")),
        ("  \n <think>a", turn("", reasoning="a")),
        ("b\n<think>\na", turn("b", reasoning="a")),
        ("The <think> tag opens a thought.", turn("The <think> tag opens a thought.")),
        (f"<think>a {CALL} b {CALL}\n{CALL}\n", turn("", F, F, reasoning=f"a {CALL} b")),
        (f"<think>a {CALL} b", turn("", reasoning=f"a {CALL} b")),
        (f"{CALL}\n<think>a {CALL}", turn("", F, F, reasoning="a")),
        ("<think>a <tool_call>{bad}</tool_call>", turn("", bad("{bad}"), reasoning="a")),
        ('<think>a <tool_call>{"name": "f", "argu', turn("", bad('{"name": "f", "argu'), reasoning="a")),
        (f"<think></think>\n<think>a {CALL}", turn("", F, reasoning="a")),
    ],
)
def test_a_thought_without_end(text: str, expected: ToolTurn) -> None:
    assert hermes(text) == expected


@pytest.mark.parametrize(
    ("prefix", "text", "expected"),
    [
        ((1, 8, 9), "cut off in the mid", turn("", reasoning="cut off in the mid")),
        ((1, 8, 9), "a</think>b", turn("b", reasoning="a")),
        ((1, 8, 9), "<think>\na</think>b", turn("b", reasoning="a")),
        ((1, 8, 9), "use <think> a</think>b", turn("b", reasoning="use <think> a")),
        ((1, 8, 9), f"{CALL} or not</think>b", turn("b", reasoning=f"{CALL} or not")),
        ((1, 8, 9), f"a {CALL} b", turn("", reasoning=f"a {CALL} b")),
        ((1, 8, 9), f"a {CALL}", turn("", F, reasoning="a")),
        ((1, 8, 9), "", turn("")),
        ((8, 9), "a", turn("", reasoning="a")),
        ((9,), "a", turn("a")),
        ((), "a", turn("a")),
        ((1, 8, 9, 7), "a", turn("a")),
    ],
)
def test_a_prompt_that_opens_the_thought(prefix: tuple[int, ...], text: str, expected: ToolTurn) -> None:
    assert hermes(text, prefix=prefix, reasoning_open=[8, 9]) == expected


def test_an_xml_draft_whose_value_the_thought_ends_in_does_not_run() -> None:
    draft = "Perhaps\n<tool_call>\n<function=rm>\n<parameter=p>\n/"
    assert xml(f"{draft}\n</think>\n\n{xml_call('ls', p='/')}") == turn(
        "", ToolCall("ls", '{"p": "/"}'), reasoning=draft
    )


def test_a_bare_function_ends_an_open_thought() -> None:
    assert xml("<think>\na\n<function=f>\n</function>") == turn("", F, reasoning="a")
