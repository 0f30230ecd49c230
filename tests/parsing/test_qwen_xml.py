"""The Qwen XML parser beyond the corpus: structure, quoted tags, bare functions."""

from __future__ import annotations

import pytest

from focus_types import ToolCall, ToolTurn
from support.turns import bad, turn, xml, xml_call

__all__: list[str] = []

F = ToolCall("f", "{}")
G = ToolCall("g", '{"b": "y"}')
F_X = ToolCall("f", '{"a": "x"}')
OPEN_F = "<tool_call>\n<function=f>\n<parameter=a>\nx"
CALL_G = xml_call("g", b="y")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # Forgotten end tags.
        (f"{OPEN_F}\n</parameter>\n{CALL_G}", turn("", F_X, G)),
        (f"{OPEN_F}\n</function>\n{CALL_G}", turn("", F_X, G)),
        (f"{OPEN_F}\n</tool_call>\n{CALL_G}", turn("", F_X, G)),
        (f"{OPEN_F}\n</tool_call>", turn("", F_X)),
        (f"{OPEN_F}\n</function>", turn("", F_X)),
        (f"{OPEN_F}\n</parameter>\n</function>\n</tool_ca", turn("", F_X)),
        ("<tool_call><function=f><function=g><parameter=b>y</parameter></function></tool_call>", turn("", F, G)),
        (f"{OPEN_F}\n</parameter>\n<function=g>\n<parameter=b>\ny\n</parameter>\n</tool_call>", turn("", F_X, G)),
        # A value that nothing ends is never run: its block ends where another call plainly begins.
        (f"{OPEN_F}\n{CALL_G}", turn("", bad("<function=f>\n<parameter=a>\nx"), G)),
        (f"{OPEN_F}\n{CALL_G}\n{CALL_G}", turn("", bad("<function=f>\n<parameter=a>\nx"), G, G)),
        (f"{OPEN_F}\n</parameter>\n</func", turn("", bad("<function=f>\n<parameter=a>\nx\n</parameter>\n</func"))),
        (f"{OPEN_F}\n</parameter>\n</", turn("", bad("<function=f>\n<parameter=a>\nx\n</parameter>\n</"))),
        (f"{OPEN_F}\n</function> and on", turn("", bad("<function=f>\n<parameter=a>\nx\n</function> and on"))),
        # Out of place.
        ("<tool_call><function=f>now</function></tool_call>", turn("", bad("<function=f>now</function>"))),
        ("<tool_call><function=f></function>now</tool_call>", turn("", bad("<function=f></function>now"))),
        ("<tool_call><function=f\n></function></tool_call>", turn("", bad("<function=f\n></function>"))),
        (
            "<tool_call><function=f><parameter=a\n>x</parameter></function></tool_call>",
            turn("", bad("<function=f><parameter=a\n>x</parameter></function>")),
        ),
        (
            "<tool_call><function=f></function><parameter=a>x</parameter></tool_call>b",
            turn("b", bad("<function=f></function><parameter=a>x</parameter>")),
        ),
        (
            "<tool_call><function=f></function></function></tool_call>",
            turn("", bad("<function=f></function></function>")),
        ),
        (
            "<tool_call><function=f></function><function= ></function></tool_call>",
            turn("", bad("<function=f></function><function= ></function>")),
        ),
        ('<tool_call><function name="f"></function></tool_call>', turn("", bad('<function name="f"></function>'))),
        ('<tool_call>{"a": "</tool_call>"}</tool_call>', turn("", bad('{"a": "</tool_call>"}'))),
    ],
)
def test_structure(text: str, expected: ToolTurn) -> None:
    assert xml(text) == expected


@pytest.mark.parametrize(
    ("value", "arguments"),
    [
        ("see </parameter> there", '{"a": "see </parameter> there"}'),
        ("</parameter>\nmore", '{"a": "</parameter>\\nmore"}'),
        ("<think>a</think>", '{"a": "<think>a</think>"}'),
        ("x<|im_end|>", '{"a": "x<|im_end|>"}'),
        (
            "grep '<tool_call>' </tool_call>\n</function> .",
            '{"a": "grep \'<tool_call>\' </tool_call>\\n</function> ."}',
        ),
        ("<tool_call>\n<function=g>\nand so on", '{"a": "<tool_call>\\n<function=g>\\nand so on"}'),
        ("  <parameter=b>\nnot at a line start", '{"a": "  <parameter=b>\\nnot at a line start"}'),
        ("<parameter=b\nis not closed", '{"a": "<parameter=b\\nis not closed"}'),
        (f"Example:\n{xml_call('g', b='y')}\nend", f'{{"a": "Example:\\n{xml_call("g", b="y")}\\nend"}}'),
        (f"{xml_call('g', b='y')}\n{xml_call('g')}", f'{{"a": "{xml_call("g", b="y")}\\n{xml_call("g")}"}}'),
    ],
)
def test_quoted_tags_in_a_value_are_data(value: str, arguments: str) -> None:
    expected = turn("", ToolCall("f", arguments.replace("\n", "\\n")))
    assert xml(xml_call("f", a=value)) == expected
    assert xml(f"before\n{xml_call('f', a=value)}\n{CALL_G}") == turn("before", *expected.tool_calls, G)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        # Nothing can tell these values from structure: the parser takes the structure.
        ("x\n<parameter=b>\ny", turn("", ToolCall("f", '{"a": "x", "b": "y"}'))),
        (
            "x</parameter>\n</function>",
            turn("", bad("<function=f>\n<parameter=a>\nx</parameter>\n</function>\n</parameter>\n</function>")),
        ),
        ("x</function>\n</tool_call>", turn("</parameter>\n</function>\n</tool_call>", F_X)),
    ],
)
def test_values_that_no_rule_can_save(value: str, expected: ToolTurn) -> None:
    assert xml(xml_call("f", a=value)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a\n<function=f>\n</function>\n</tool_call>\nb", turn("a\n\nb", F)),
        ("<function=f></function> <function=f></function>", turn("", F, F)),
        (" <function=f>\n</function>", turn("", F)),
        ("<think>a</think><function=f>\n</function>", turn("", F, reasoning="a")),
        ("a <function=f>\n</function>", turn("a <function=f>\n</function>")),
        ("<function=f>\n<parameter=a>\nNew York", turn("<function=f>\n<parameter=a>\nNew York")),
        (
            "<function=f>\n<parameter=a>\nx\n</parameter>\n</tool_call>\nb",
            turn("<function=f>\n<parameter=a>\nx\n</parameter>\n</tool_call>\nb"),
        ),
        ("<function=f> opens a call,\n</function> ends it", turn("<function=f> opens a call,\n</function> ends it")),
        ("<function=f>\n<parameter=a>\nx\n</function>\nb", turn("<function=f>\n<parameter=a>\nx\n</function>\nb")),
        ("<function=f>\n<parameter=a>\nx\n</parameter>\n</function>\nb", turn("b", F_X)),
        ("<function= >\n</function>", turn("", bad("<function= >\n</function>"))),
        (
            "<function=f>\n<parameter=a>\nx\n</parameter>\nwords</function>",
            turn("", ToolCall("f", '{"a": "x\\n</parameter>\\nwords"}')),
        ),
    ],
)
def test_functions_without_a_block(text: str, expected: ToolTurn) -> None:
    assert xml(text) == expected


def test_a_name_that_cannot_be_sent_is_reported() -> None:
    body = "<function=\ud800></function>"
    assert xml(f"<tool_call>{body}</tool_call>") == turn("", bad(body))


def test_names_and_keys_are_json_strings() -> None:
    assert xml('<tool_call><function=a"b><parameter=k"\\>\u6771\ud800</parameter></function></tool_call>') == turn(
        "", ToolCall('a"b', '{"k\\"\\\\": "\u6771\\ud800"}')
    )


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        ("", '""'),
        ("\n", '""'),
        ("\r\n", '""'),
        ("\n\n", '""'),
        ("\r\n\r\n", '""'),
        ("\n\n\n", '"\\n"'),
        ("\r", '"\\r"'),
        ("\n\r\n", '""'),
        ("x\r\n", '"x"'),
        (" \nx\n ", '" \\nx\\n "'),
        ("&lt;\\n", '"&lt;\\\\n"'),
    ],
)
def test_one_line_end_on_each_side_is_layout(raw: str, value: str) -> None:
    text = f"<tool_call><function=f><parameter=a>{raw}</parameter></function></tool_call>"
    assert xml(text) == turn("", ToolCall("f", f'{{"a": {value}}}'))
