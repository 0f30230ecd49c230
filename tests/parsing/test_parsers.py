"""The parsers as objects, and those that read no markup."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from focus_parsing import (
    ActionParser,
    HermesToolCallParser,
    NativeToolCallParser,
    OpensReasoning,
    QwenXMLToolCallParser,
    TextActionParser,
    TokenChunkParser,
)
from focus_types import (
    GenerateResult,
    InvalidRequestError,
    NativeToolCall,
    ParseError,
    TokenChunk,
    ToolCall,
    ToolTurn,
)
from support.turns import turn, xml_call

__all__: list[str] = []

STRING_TOOL = {"name": "f", "parameters": {"properties": {"a": {"type": "string"}}}}
MAKERS: list[Callable[[], ActionParser[Any]]] = [
    HermesToolCallParser,
    lambda: HermesToolCallParser(reasoning_open=[8, 9]),
    QwenXMLToolCallParser,
    lambda: QwenXMLToolCallParser(reasoning_open=(8, 9)),
    lambda: QwenXMLToolCallParser(tools=[STRING_TOOL]),
    NativeToolCallParser,
    TextActionParser,
    TokenChunkParser,
]


@pytest.mark.parametrize("make", MAKERS)
def test_parsers_are_values(make: Callable[[], ActionParser[Any]]) -> None:
    parser = make()
    others = [other() for other in MAKERS if other is not make]
    for twin in (make(), copy.copy(parser), copy.deepcopy(parser), pickle.loads(pickle.dumps(parser))):
        assert twin == parser
        assert hash(twin) == hash(parser)
    assert parser not in others
    with pytest.raises(dataclasses.FrozenInstanceError):
        parser.action = "text"


@pytest.mark.parametrize(
    ("parser", "trainable", "native", "action"),
    [
        (HermesToolCallParser, True, False, "tool"),
        (QwenXMLToolCallParser, True, False, "tool"),
        (NativeToolCallParser, False, True, "tool"),
        (TextActionParser, True, False, "text"),
        (TokenChunkParser, True, False, "tokens"),
        (ActionParser, True, False, None),
    ],
)
def test_what_parsers_declare(
    parser: type[ActionParser[Any]], trainable: bool, native: bool, action: str | None
) -> None:
    assert (parser.trainable, parser.requires_native_channel, parser.action) == (trainable, native, action)


@pytest.mark.parametrize("parser", [HermesToolCallParser(), QwenXMLToolCallParser(tools=[STRING_TOOL])])
def test_a_copy_that_knows_what_opens_a_thought(parser: HermesToolCallParser | QwenXMLToolCallParser) -> None:
    assert isinstance(parser, OpensReasoning)
    told = parser.with_reasoning_open([8, 9])
    assert (parser.reasoning_open, told.reasoning_open) == ((), (8, 9))
    assert type(told) is type(parser)
    assert told != parser
    assert told.with_reasoning_open(()) == parser
    assert told.parse(GenerateResult(text="a", prefix_tokens=(8, 9))) == ToolTurn("", reasoning="a")
    with pytest.raises(InvalidRequestError, match="token 1 of 2"):
        parser.with_reasoning_open([8, -9])


def test_a_copy_keeps_the_schema() -> None:
    parser = QwenXMLToolCallParser(tools=[STRING_TOOL]).with_reasoning_open([9])
    assert parser.parse(GenerateResult(text=xml_call("f", a="1"))) == turn("", ToolCall("f", '{"a": "1"}'))


def test_the_schema_is_taken_when_the_parser_is_made() -> None:
    tools = [copy.deepcopy(STRING_TOOL)]
    parser = QwenXMLToolCallParser(tools=tools)
    tools.clear()
    assert parser == QwenXMLToolCallParser(tools=[STRING_TOOL])


def test_parsers_that_open_no_thoughts() -> None:
    assert not any(isinstance(parser, OpensReasoning) for parser in (TextActionParser(), TokenChunkParser()))


def test_one_parser_in_many_threads() -> None:
    parser = QwenXMLToolCallParser(tools=[STRING_TOOL])
    results = [GenerateResult(text=xml_call("f", a=str(n)) * (n % 7 + 1)) for n in range(200)]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(parser.parse, results)) == [parser.parse(result) for result in results]


def test_a_parser_of_the_task_s_own() -> None:
    class IntegerAction(ActionParser[int]):
        def parse(self, result: GenerateResult) -> int:
            return int(result.text.strip())

    assert IntegerAction().parse(GenerateResult(text=" 42\n")) == 42
    assert IntegerAction.action is None


def test_a_parser_must_parse() -> None:
    with pytest.raises(TypeError, match="abstract method 'parse'"):
        ActionParser()  # type: ignore[abstract]


@pytest.mark.parametrize(
    ("text", "action"), [(" \u00a0a\n b \x1c", "a\n b"), ("<think>a</think><|im_end|>", "<think>a</think><|im_end|>")]
)
def test_text_is_stripped_and_nothing_else(text: str, action: str) -> None:
    assert TextActionParser().parse(GenerateResult(text=text)) == action


@pytest.mark.parametrize(("reason", "finished"), [("stop", True), ("length", False)])
def test_a_token_chunk(reason: str, finished: bool) -> None:
    result = GenerateResult(tokens=(5, 0, 5), prefix_tokens=(1,), text="x", stop_reason=reason)
    assert TokenChunkParser().parse(result) == TokenChunk((5, 0, 5), finished)


@pytest.mark.parametrize("reason", ["abort", "tool_calls", "content_filter", "", "Stop"])
def test_a_token_chunk_names_any_other_reason(reason: str) -> None:
    with pytest.raises(ParseError, match=f"ended by '{reason}'"):
        TokenChunkParser().parse(GenerateResult(tokens=(5,), stop_reason=reason))


def test_native_calls_are_copied() -> None:
    given = (
        NativeToolCall("f", '{"a":1,', "c1"),
        NativeToolCall("", " ", "c2"),
        NativeToolCall("<tool_call>", "\t{ }"),
    )
    result = GenerateResult(text=" <think>a</think>\n", native_tool_calls=given)
    assert NativeToolCallParser().parse(result) == turn(
        "<think>a</think>", ToolCall("f", '{"a":1,', "c1"), ToolCall("", "{}", "c2"), ToolCall("<tool_call>", "\t{ }")
    )
