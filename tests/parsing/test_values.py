"""What an XML value becomes, with and without a schema."""

from __future__ import annotations

import json
from typing import Any

import pytest

from focus_parsing import QwenXMLToolCallParser
from focus_types import InvalidRequestError, ToolCall
from support.turns import turn, xml, xml_call

__all__: list[str] = []


def tool(**properties: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": "f", "parameters": {"properties": properties}}}


def read(value: str, schema: Any = None) -> str:
    """The JSON text of a value; ``schema`` is the parameter's."""
    [call] = xml(xml_call("f", a=value), tools=[] if schema is None else [tool(a=schema)]).tool_calls
    assert call.name == "f"
    return call.arguments.removeprefix('{"a": ').removesuffix("}")


LITERALS = (
    *("true", "false", "null", "0", "-1", "42", "9007199254740993", "1" * 300, "0.5", "-3.25", "100.0", "1e-05"),
    *("1.5e+300", "{}", "[]", '{"a":  [1e400, null]}', "[\n 1\n]", '["\\ud800"]'),
)
TEXTS = (
    *("02134", "1.10", "1.", ".5", "1e5", "1E-05", "+5", "-0", "--1", "-", "NaN", "nan", "inf", "Infinity", "1e400"),
    *("0x10", "1_000", "\u0663", "\uff11", "TRUE", "none", "undefined", " 42", "42 ", "\u00a042", "4 2", "1,000"),
    *("2026-01-15", '"q"', "'q'", "{'a': 1}", "[1,]", "[1] [2]", '{"a": NaN}', '{"a": 1', "[1, 2", "{a: 1}"),
    *("1" * 5000, "[" * 100_000, '{"a":' * 100_000),
)
ODD_TOOLS: tuple[Any, ...] = (
    *(None, "f", 7, [], {}, {"type": "web_search"}, {"function": "f"}, {"name": "f"}),
    {"function": {"parameters": {"properties": {"a": {}}}}},
    {"name": "f", "parameters": []},
    {"name": "f", "parameters": {"properties": ["a"]}},
    {"name": 7, "parameters": {"properties": {"a": {"type": "string"}}}},
)


@pytest.mark.parametrize("literal", LITERALS)
def test_what_templates_write_is_decoded_and_kept_as_written(literal: str) -> None:
    assert read(literal) == literal


@pytest.mark.parametrize(
    ("value", "expected"), [("True", "true"), ("False", "false"), ("None", "null"), (" [1]\n", "[1]"), ("-0.0", "-0.0")]
)
def test_other_spellings_that_are_decoded(value: str, expected: str) -> None:
    assert read(value) == expected


@pytest.mark.parametrize("text", TEXTS)
def test_everything_else_is_the_text(text: str) -> None:
    assert read(text) == json.dumps(text, ensure_ascii=False)


@pytest.mark.parametrize(
    ("schema", "value", "expected"),
    [
        ({"type": "string"}, "null", '"null"'),
        ({"type": ["string"]}, " 1 ", '" 1 "'),
        ({"type": "integer"}, " 5\n", "5"),
        ({"type": "integer"}, "+5", "5"),
        ({"type": "integer"}, "007", "7"),
        ({"type": "integer"}, "5.0", '"5.0"'),
        ({"type": "integer"}, "1_000", '"1_000"'),
        ({"type": "integer"}, "\u0663", '"\u0663"'),
        ({"type": "integer"}, "9" * 5000, f'"{"9" * 5000}"'),
        ({"type": "number"}, "5", "5"),
        ({"type": "number"}, "1e5", "100000.0"),
        ({"type": "number"}, ".5", "0.5"),
        ({"type": "number"}, "1e400", '"1e400"'),
        ({"type": "number"}, "nan", '"nan"'),
        ({"type": "number"}, "-Infinity", '"-Infinity"'),
        ({"type": "boolean"}, "tRUE", "true"),
        ({"type": "boolean"}, "1", '"1"'),
        ({"type": "null"}, "None", "null"),
        ({"type": "null"}, "", '""'),
        ({"type": "object"}, '{"a": 1e400}', '{"a": 1e400}'),
        ({"type": "object"}, "[1]", '"[1]"'),
        ({"type": "array"}, " [1]", "[1]"),
        ({"type": "array"}, "1, 2", '"1, 2"'),
        ({"type": ["string", "integer"]}, " 5", '" 5"'),
        ({"type": ["object", "array"]}, "[1]", "[1]"),
        ({"type": ["boolean", "integer"]}, "1", "1"),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, "None", "null"),
        ({"oneOf": [{"type": "number"}, {"type": "array"}]}, "2.50", "2.5"),
        ({"anyOf": [{"anyOf": [{"type": "string"}]}, {"enum": [1]}]}, "1", "1"),
        ({"allOf": [{"type": "string"}, {"minLength": 1}]}, "1", '"1"'),
        ({"type": "string", "anyOf": [{"type": "integer"}]}, "1", '"1"'),
        ({"enum": ["1", "2"]}, "1", '"1"'),
        ({"enum": [1.5, None, True]}, "True", "true"),
        ({"enum": [True]}, "1", '"1"'),
        ({"enum": [{"a": 1}, [1]]}, '{"a": 1}', '{"a": 1}'),
        # An alternative of an unknown type may be the one that is meant.
        ({"anyOf": [{"$ref": "#/$defs/P"}, {"type": "null"}]}, '{"a": 1}', '{"a": 1}'),
        ({"type": "str"}, "1", "1"),
        ({"type": ["string", "any"]}, "1", "1"),
        ({"type": []}, "1", "1"),
        ({"type": None}, "1", "1"),
        ({"anyOf": []}, "1", "1"),
        ({"enum": []}, "1", "1"),
        ({}, "1", "1"),
        (True, "1", "1"),
    ],
)
def test_a_declared_type_reads_what_fits_it(schema: Any, value: str, expected: str) -> None:
    assert read(value, schema) == expected


def test_the_schema_is_that_of_the_named_tool_and_parameter() -> None:
    tools = [tool(a={"type": "string"}), {"name": "g", "parameters": {"properties": {"a": {"type": "array"}}}}]
    assert xml(xml_call("f", a="1", b="1") + xml_call("g", a="1") + xml_call("h", a="1"), tools=tools) == turn(
        "",
        ToolCall("f", '{"a": "1", "b": 1}'),
        ToolCall("g", '{"a": "1"}'),
        ToolCall("h", '{"a": 1}'),
    )


@pytest.mark.parametrize("entry", ODD_TOOLS)
def test_odd_tool_entries_are_left_out(entry: Any) -> None:
    assert xml(xml_call("f", a="1"), tools=[entry]) == turn("", ToolCall("f", '{"a": 1}'))
    assert xml(xml_call("f", a="1"), tools=[entry, tool(a={"type": "string"})]) == turn("", ToolCall("f", '{"a": "1"}'))


@pytest.mark.parametrize("tools", ["tools", b"tools", {"name": "f"}, 7, None])
def test_tools_that_are_no_list_are_refused(tools: Any) -> None:
    with pytest.raises(InvalidRequestError, match="tools must be a list of tool schemas"):
        QwenXMLToolCallParser(tools=tools)
