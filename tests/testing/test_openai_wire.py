"""What the loopback OpenAI server refuses, in the API's own shape."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from focus_testing import DEMO_TOOLS, Server, serve

KEY = "sk-test"
HI: list[dict[str, Any]] = [{"role": "user", "content": "Hi"}]
CALL = {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
ITEM = {"type": "function_call", "call_id": "call_1", "name": "f", "arguments": "{}"}


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serve(wire="openai", api_key=KEY, locked_sampling=True) as running:
        yield running


def post(server: Server, path: str, body: Any, key: str = KEY) -> tuple[int, dict[str, Any]]:
    headers = {"content-type": "application/json", "authorization": f"Bearer {key}"}
    request = urllib.request.Request(f"{server.url}/v1/{path}", json.dumps(body).encode(), headers)
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)["error"]


CHAT: list[tuple[dict[str, Any], int, str | None, str | None]] = [
    ({"messages": HI, "top_k": 5}, 400, "top_k", "unknown_parameter"),
    ({"messages": HI, "model": "other"}, 404, None, "model_not_found"),
    ({"messages": []}, 400, "messages", "empty_array"),
    ({"messages": HI, "temperature": 0.7}, 400, "temperature", "unsupported_value"),
    ({"messages": HI, "max_tokens": 5}, 400, "max_tokens", "unsupported_parameter"),
    ({"messages": HI, "stop": ["a", "b", "c", "d", "e"]}, 400, "stop", "array_above_max_length"),
    ({"messages": HI, "max_completion_tokens": "5"}, 400, "max_completion_tokens", "invalid_type"),
    ({"messages": HI, "max_completion_tokens": 5000}, 400, "messages", "context_length_exceeded"),
    ({"messages": [*HI, {"role": "tool", "tool_call_id": "a", "content": ""}]}, 400, "messages.[1]", None),
    ({"messages": [*HI, {"role": "assistant", "tool_calls": [CALL]}, *HI]}, 400, "messages.[2]", None),
]
RESPONSES: list[tuple[dict[str, Any], int, str | None, str | None]] = [
    ({"input": "Hi", "stop": ["a"]}, 400, "stop", "unknown_parameter"),
    ({"input": [*HI, ITEM]}, 400, "input", None),
    ({"input": [*HI, {"type": "function_call_output", "call_id": "a", "output": ""}]}, 400, "input", None),
    ({"input": [{"role": "user", "content": "Hi", "status": None}]}, 400, "input[0].status", "invalid_type"),
    ({"input": [*HI, {"type": "reasoning", "id": "rs_1", "summary": []}]}, 404, None, None),
    ({"input": [{"type": "telepathy"}]}, 400, "input[0].type", "invalid_value"),
]


@pytest.mark.parametrize(
    ("path", "body", "status", "param", "code"),
    [("chat/completions", *case) for case in CHAT] + [("responses", *case) for case in RESPONSES],
)
def test_refusal(
    server: Server, path: str, body: dict[str, Any], status: int, param: str | None, code: str | None
) -> None:
    got, error = post(server, path, {"model": "focus", **body})
    assert (got, error["param"], error["code"]) == (status, param, code)


def test_wrong_key(server: Server) -> None:
    status, error = post(server, "responses", {"model": "focus", "input": "Hi"}, "sk-wrong")
    assert (status, error["type"], error["code"]) == (401, "invalid_request_error", "invalid_api_key")


def test_a_text_as_input_and_a_chat_reply_in_the_apis_shape(server: Server) -> None:
    status, response = post(server, "responses", {"model": "focus", "input": "Hi", "max_output_tokens": 3})
    assert (status, response["status"]) == (200, "incomplete")
    assert response["incomplete_details"] == {"reason": "max_output_tokens"}
    status, reply = post(server, "chat/completions", {"model": "focus", "messages": HI, "tools": DEMO_TOOLS})
    assert status == 200
    assert reply["choices"][0]["finish_reason"] == "tool_calls"
    assert reply["choices"][0]["message"]["content"] is None
    assert reply["usage"]["total_tokens"] == reply["usage"]["prompt_tokens"] + reply["usage"]["completion_tokens"]
