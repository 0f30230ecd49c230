"""The acceptance corpus: one test for each case of ``cases/*.jsonl``."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Never

import pytest

from focus_parsing import (
    ActionParser,
    HermesToolCallParser,
    NativeToolCallParser,
    QwenXMLToolCallParser,
    TextActionParser,
    TokenChunkParser,
    tool_turn,
)
from focus_types import GenerateResult, NativeToolCall, ParseError, TokenChunk, ToolCall, ToolTurn

__all__: list[str] = []

type Case = dict[str, Any]

PARSERS: dict[str, type[ActionParser[Any]]] = {
    "hermes": HermesToolCallParser,
    "qwen_xml": QwenXMLToolCallParser,
    "native": NativeToolCallParser,
    "text": TextActionParser,
    "token_chunk": TokenChunkParser,
}


def load() -> list[Case]:
    files = sorted((Path(__file__).parent / "cases").glob("*.jsonl"))
    return [json.loads(line) for file in files for line in file.read_text(encoding="utf-8").split("\n") if line]


CASES = load()


def text_of(spec: Any) -> str:
    """A string, or a list of [string, count] to repeat and join."""
    return spec if isinstance(spec, str) else "".join(part * count for part, count in spec)


def matches(want: Any, got: str) -> bool:
    """Compare a text with a string, {"any": [...]}, or {"pieces": [...]} with white space between."""
    if isinstance(want, dict) and "any" in want:
        return any(matches(one, got) for one in want["any"])
    if isinstance(want, dict):
        words = " ".join(got.split())
        return words == " ".join(" ".join(piece.split()) for piece in want["pieces"])
    return got.strip() == text_of(want).strip()


def refuse(constant: str) -> Never:
    raise ValueError(constant)


def kept_apart(value: Any) -> Any:
    """The value in a form in which True, 1 and 1.0 differ."""
    if isinstance(value, dict):
        return {key: kept_apart(item) for key, item in value.items()}
    if isinstance(value, list):
        return [kept_apart(item) for item in value]
    return type(value).__name__, value


def check_call(want: Case, got: ToolCall) -> None:
    assert got.name == want["name"]
    assert got.call_id == want.get("call_id", got.call_id)
    if "arguments_raw" in want:
        assert got.arguments.strip() == text_of(want["arguments_raw"]).strip()
        return
    got.arguments.encode("utf-8")
    value = kept_apart(json.loads(got.arguments, parse_constant=refuse))
    assert value in [kept_apart(one) for one in want.get("arguments_any", [want.get("arguments")])]


def check_turn(expect: Case, got: Any) -> None:
    assert isinstance(got, ToolTurn)
    assert matches(expect.get("text", got.text), got.text), got.text
    assert matches(expect.get("reasoning", got.reasoning), got.reasoning), got.reasoning
    assert isinstance(got.tool_calls, tuple)
    assert len(got.tool_calls) == expect.get("n_calls", len(got.tool_calls))
    if "tool_calls" in expect:
        assert len(got.tool_calls) == len(expect["tool_calls"]), got.tool_calls
        for want, call in zip(expect["tool_calls"], got.tool_calls, strict=True):
            check_call(want, call)


def decode_json(body: str) -> ToolCall:
    value = json.loads(body)
    return ToolCall(name=value["name"], arguments=json.dumps(value["arguments"]))


def decode_echo(body: str) -> ToolCall:
    return ToolCall(name="echo", arguments=json.dumps({"block": body.strip()}))


def decode_int(body: str) -> ToolCall:
    return ToolCall(name=f"n{int(body)}", arguments="{}", call_id=f"c{int(body)}")


DECODERS = {"json": decode_json, "echo": decode_echo, "int": decode_int}


def action_of(case: Case) -> Callable[[], Any]:
    given = dict(case["input"])
    if case["parser"] == "tool_turn":
        return lambda: tool_turn(text_of(given["text"]), DECODERS[given["decoder"]])
    if "text" in given:
        given["text"] = text_of(given["text"])
    for name in ("tokens", "prefix_tokens"):
        given[name] = tuple(given.get(name, ()))
    if given.get("native_tool_calls") is not None:
        given["native_tool_calls"] = tuple(NativeToolCall(**call) for call in given["native_tool_calls"])
    tools = {"tools": case["tools"]} if case.get("tools") is not None else {}
    parser = PARSERS[case["parser"]](**tools)
    return lambda: parser.parse(GenerateResult(**given))


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_case(case: Case) -> None:
    expect, act = case["expect"], action_of(case)
    if "error" in expect:
        with pytest.raises(ParseError, match=expect["error_mentions"]):
            act()
        return
    start = time.process_time()
    got = act()
    if "max_seconds" in expect:  # part of the case: many times what is needed, so that only a square is caught
        assert time.process_time() - start <= expect["max_seconds"]
    else:
        assert act() == got
    for name, value in expect.get("attrs", {}).items():
        assert getattr(PARSERS[case["parser"]](), name) == value
    if case["parser"] == "text":
        assert got == text_of(expect["text"])
    elif case["parser"] == "token_chunk":
        assert got == TokenChunk(tokens=tuple(expect["tokens"]), finished=expect["finished"])
    else:
        check_turn(expect, got)


def test_the_corpus_is_whole() -> None:
    assert len(CASES) == 217
    assert len({case["id"] for case in CASES}) == 217
