"""What holds for every text and every call."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from focus_parsing import ActionParser, tool_turn
from focus_types import GenerateResult, ToolCall, ToolTurn
from support.parser_invariants import PARSERS, check_accounting, check_turn, parse
from support.replies import hermes_calls, json_values, marked_replies, names, replies, xml_strings
from support.turns import hermes, turn, xml, xml_call

__all__: list[str] = []

EXAMPLES = settings(deadline=None, derandomize=True, max_examples=300)


@pytest.mark.parametrize("parser", PARSERS)
@EXAMPLES
@given(text=replies)
@example(text="<tool_call>\n<function=f>\n<parameter=\ud800>\n\ud800</parameter></function>")
@example(text='<tool_call>{"name": "f", "arguments": {"\ud800": "\ud800"}}</tool_call>')
def test_any_text_is_a_turn(parser: ActionParser[ToolTurn], text: str) -> None:
    got = parse(parser, text)
    check_turn(got)
    assert parse(parser, text) == got


@pytest.mark.parametrize("parser", PARSERS)
@EXAMPLES
@given(text=marked_replies())
def test_every_character_is_somewhere_once_and_in_order(parser: ActionParser[ToolTurn], text: str) -> None:
    check_accounting(text, parse(parser, text))


@EXAMPLES
@given(text=replies)
def test_without_tags_the_text_is_the_turn(text: str) -> None:
    assume(not re.search(r"</?(tool_call|think|function|parameter)|<\|(im_end|endoftext)\|>", text))
    for got in (hermes(text), xml(text), tool_turn(text, lambda body: ToolCall("x", body))):
        assert got == turn(text.strip())


@pytest.mark.parametrize("parser", PARSERS)
@EXAMPLES
@given(text=replies)
def test_visible_text_without_tags_is_parsed_to_itself(parser: ActionParser[ToolTurn], text: str) -> None:
    visible = parser.parse(GenerateResult(text=text)).text
    assume("<" not in visible)
    assert parser.parse(GenerateResult(text=visible)) == turn(visible)


@EXAMPLES
@given(
    calls=st.lists(hermes_calls(), max_size=4),
    texts=st.lists(st.text(st.characters(exclude_characters="<")), min_size=5, max_size=5),
)
def test_a_hermes_call_comes_back(calls: list[tuple[str, dict[str, Any], str]], texts: list[str]) -> None:
    written = "".join(text + call for text, (_, _, call) in zip(texts, calls, strict=False))
    got = hermes(written)
    assert [(call.name, json.loads(call.arguments)) for call in got.tool_calls] == [call[:2] for call in calls]
    assert got.text == "".join(texts[: len(calls)]).strip()


@EXAMPLES
@given(call=hermes_calls(write=lambda value: json.dumps(value, ensure_ascii=False, indent=1)))
def test_a_hermes_call_of_any_layout_comes_back(call: tuple[str, dict[str, Any], str]) -> None:
    name, arguments, text = call
    [got] = hermes(text).tool_calls
    assert (got.name, json.loads(got.arguments)) == (name, arguments)


AMBIGUOUS = re.compile(
    r"(?:^|\n)<parameter=[^<>\n]*>"
    r"|</parameter>\s*(?:<parameter=|</function>|</tool_call>|<function=|<tool_call>|\Z)"
    r"|</function>\s*(?:</tool_call>|<function=|<tool_call>|\Z)"
    r"|</tool_call>\s*(?:<tool_call>|\Z)"
    r"|(?:^|\n)<tool_call>\s*<function=[^<>\n]*>?\s*(?:<parameter=|</function>|\Z)"
    r"|\r\Z"
)


def is_ambiguous(value: str) -> bool:
    """Whether a value holds what XML structure looks like, so that no reader can tell them apart.

    An end tag with structure or the value's own end after it, a parameter or a call at the start of a line, and
    a carriage return at the end, which with the line end of the layout is one line end.
    """
    return bool(AMBIGUOUS.search(value))


def written(value: Any) -> str:
    """A value as the templates write it."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


xml_names = names.filter(lambda name: not re.search(r"[<>\n]", name))


@EXAMPLES
@given(
    name=xml_names, parameters=st.dictionaries(xml_names, xml_strings.filter(lambda v: not is_ambiguous(v)), max_size=4)
)
@example(name="f", parameters={"a": "</tool_call> x", "b": "\rb\n\r "})
def test_an_xml_call_with_declared_strings_comes_back(name: str, parameters: dict[str, str]) -> None:
    tools = [{"name": name, "parameters": {"properties": {key: {"type": "string"} for key in parameters}}}]
    [got] = xml(xml_call(name, **parameters), tools=tools).tool_calls
    assert (got.name, json.loads(got.arguments)) == (name, parameters)


@EXAMPLES
@given(parameters=st.dictionaries(xml_names, json_values.filter(lambda v: not is_ambiguous(written(v))), max_size=4))
def test_an_untyped_xml_call_comes_back_but_for_strings_that_look_like_literals(parameters: dict[str, Any]) -> None:
    [got] = xml(xml_call("f", **{key: written(value) for key, value in parameters.items()})).tool_calls
    assert got.name == "f"
    values = json.loads(got.arguments)
    assert values.keys() == parameters.keys()
    for key, value in parameters.items():
        assert values[key] == value or (
            (isinstance(value, str) and written(values[key]) == value.strip()) or value in ("True", "False", "None")
        )
