"""The Hermes parser beyond the corpus: shapes, strictness, where a block ends."""

from __future__ import annotations

import pytest

from focus_types import ToolCall, ToolTurn
from support.turns import bad, hermes, turn

__all__: list[str] = []

F = ToolCall("f", "{}")
G = ToolCall("g", "{}")


def block(body: str) -> str:
    return f"<tool_call>\n{body}\n</tool_call>"


@pytest.mark.parametrize(
    ("body", "call"),
    [
        ('{"name": "f"}', F),
        ('{"name": "f", "arguments": null}', F),
        ('{"name": "f", "parameters": {"a": 1}}', ToolCall("f", '{"a": 1}')),
        ('{"arguments": {"a": 1}, "id": "x", "name": "f"}', ToolCall("f", '{"a": 1}')),
        ('{"name": "f", "arguments": " {\\"a\\": 1} "}', ToolCall("f", '{"a": 1}')),
        ('{"n\\u0061me": "\\u0066", "arguments": {}}', F),
        ('{"name": "f", "arguments": { "a" :1e400,\n"b":  [ ] }}', ToolCall("f", '{ "a" :1e400,\n"b":  [ ] }')),
        ('{"name": "f", "arguments": {"a": 1, "a": 2}}', ToolCall("f", '{"a": 1, "a": 2}')),
        ('{"name": "f", "arguments": {"a": "\\ud800"}}', ToolCall("f", '{"a": "\\ud800"}')),
        ('{"name": "f", "arguments": "{\\"a\\": \\"\\ud800\\"}"}', ToolCall("f", '{"a": "\\ud800"}')),
        (f'{{"name": "f", "arguments": {{"n": {"9" * 5000}}}}}', ToolCall("f", f'{{"n": {"9" * 5000}}}')),
    ],
)
def test_shapes_that_are_read(body: str, call: ToolCall) -> None:
    assert hermes(block(body)) == turn("", call)


@pytest.mark.parametrize(
    "body",
    [
        '{"name": 7, "arguments": {}}',
        '{"name": null, "arguments": {}}',
        '{"name": "\\ud800", "arguments": {}}',
        '{"name": "f", "arguments": 3}',
        '{"name": "f", "arguments": "null"}',
        '{"name": "f", "arguments": "\\"{}\\""}',
        '{"name": "f", "arguments": "{\\"a\\": NaN}"}',
        '{"name": "f", "city": "Oslo"}',
        '{"name": "f", "description": "d", "parameters": {"type": "object", "properties": {}}}',
        '{"name": "f", "arguments": {}, "parameters": {"a": 1}}',
        '{"name": "f", "name": "g", "arguments": {}}',
        '{"type": "function", "function": {"name": "f", "arguments": {}}}',
        "[]",
        "[1]",
        '[{"name": "f"}, {"title": "g"}]',
        '[[{"name": "f"}]]',
        '[{"name": "f"}] [{"name": "g"}]',
        '{"name": "f"}, {"name": "g"}',
        '{"name": "f"} [{"name": "g"}]',
        "null",
        '"f"',
        '{"name": "f", "arguments": {"a": -Infinity}}',
        '{"name": "f", "arguments": {"a": 01}}',
        '{"name": "f", "arguments": {} /* now */}',
        '{"name": "f", "arguments": {"a": "tab\there"}}',
        '{"name": "f", "arguments": {"a": "\\x"}}',
        "{}",
        "{",
        '[{"name": "f"}',
    ],
)
def test_everything_else_is_reported_as_it_is_written(body: str) -> None:
    assert hermes(f"a {block(body)} b") == turn("a  b", bad(body))


def test_nesting_too_deep_to_read_is_reported() -> None:
    body = '{"name": "f", "arguments": ' + '{"a": ' * 200_000 + "1" + "}" * 200_001
    assert hermes(block(body)) == turn("", bad(body))


def test_a_body_read_in_part_is_no_call_at_all() -> None:
    assert hermes(block('{"name": "f"}\n{"name": "g", "arguments": {oops}}')) == turn(
        "", bad('{"name": "f"}\n{"name": "g", "arguments": {oops}}')
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # A broken body keeps the end tags that stand in its strings ...
        ('<tool_call>{"a": "</tool_call>", }</tool_call>tail', turn("tail", bad('{"a": "</tool_call>", }'))),
        ('<tool_call>{"a": ["<tool_call>{}", "b"}</tool_call>', turn("", bad('{"a": ["<tool_call>{}", "b"}'))),
        # ... but a forgotten or stray quote hides neither its own end nor the next block.
        (
            '<tool_call>{"a": "x}</tool_call><tool_call>{"name": "f", "arguments": {}}</tool_call>',
            turn("", bad('{"a": "x}'), F),
        ),
        ('<tool_call>\n{"a": "5" tall"}\n</tool_call>\nHe said "hi".', turn('He said "hi".', bad('{"a": "5" tall"}'))),
        ('<tool_call>{"a": "x\ny}</tool_call>: "z"', turn(': "z"', bad('{"a": "x\ny}'))),
        ('<tool_call>{"a": "\\"}</tool_call><tool_call>{"name": "f"}', turn("", bad('{"a": "\\"}'), F)),
    ],
)
def test_where_a_broken_body_ends(text: str, expected: ToolTurn) -> None:
    assert hermes(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('<tool_call>{"name": "f"}<tool_call>{"name": "g"}', turn("", F, G)),
        ('<tool_call> <tool_call>\n<tool_call>{"name": "f"}</tool_call>', turn("", F)),
        ('<tool_call>{"name": "f"}</tool_call></tool_call>\n</tool_call> x', turn("x", F)),
        ('<tool_call>{"name": "f"}\n<', turn("", F)),
        ('<tool_call>{"name": "f"}\n</tool_call', turn("", F)),
        ('<tool_call>{"name": "f"}\n</tools', turn("", bad('{"name": "f"}\n</tools'))),
        ('<tool_call>{"name": "f"</tool_call', turn("", bad('{"name": "f"</tool_call'))),
        ('<tool_call>{"name": "f"} and now', turn("", bad('{"name": "f"} and now'))),
        ('<tool_call>\n{"name": "f"}\nwords\n<tool_call>{"name": "g"}', turn("", bad('{"name": "f"}\nwords'), G)),
        ("a <tool_call>", turn("a", bad(""))),
        ("a <tool_call>\n<func", turn("a", bad("<func"))),
        ("a <tool_call>\n<fund", turn("a <tool_call>\n<fund")),
        ("a <tool_ca", turn("a <tool_ca")),
        ("<tool_call> is <tool_call> and </tool_call>", turn("<tool_call> is", bad("and"))),
        ('say <tool_call> then <tool_call>{"name": "f"}</tool_call>', turn("say <tool_call> then", F)),
        ("</tool_call> ends it", turn("</tool_call> ends it")),
        ("<function=f>\n</function>", turn("<function=f>\n</function>")),
    ],
)
def test_where_a_block_begins_and_ends(text: str, expected: ToolTurn) -> None:
    assert hermes(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a<|im_end|>\n<|endoftext|> ", turn("a")),
        ("a<|im_end|>b", turn("a<|im_end|>b")),
        ('<tool_call>{"name": "f"}<|im_end|>', turn("", F)),
        (
            '<tool_call>{"name": "f", "arguments": {"t": "<|im_end|>"}}</tool_call>',
            turn("", ToolCall("f", '{"t": "<|im_end|>"}')),
        ),
        ("<|im_end|>", turn("")),
    ],
)
def test_end_tokens_are_no_text_at_the_very_end_alone(text: str, expected: ToolTurn) -> None:
    assert hermes(text) == expected
