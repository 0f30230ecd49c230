"""The default context: readable, deterministic, and the same text for the same conversation."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from focus_critic.transcript import transcript
from focus_types import InvalidRequestError

__all__: list[str] = []


def tool_call(name: str, arguments: Any, call_id: str = "call_1") -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


DIALOGUE: list[dict[str, Any]] = [
    {"role": "system", "content": "You add numbers."},
    {"role": "user", "content": "What is 2 + 3, and 4 + 5?"},
    {
        "role": "assistant",
        "content": "Let me see.",
        "tool_calls": [
            tool_call("add", '{"x":2, "y":3}', "call_8f2a"),
            tool_call("add", {"y": 5, "x": 4}, "call_77b1"),
        ],
    },
    {"role": "tool", "tool_call_id": "call_77b1", "content": "9"},
    {"role": "tool", "tool_call_id": "call_8f2a", "content": "5"},
    {"role": "assistant", "content": "5 and 9 ✓"},
]

TEXT = """\
[system]
You add numbers.

[user]
What is 2 + 3, and 4 + 5?

[assistant]
Let me see.
call 1: add({"x":2, "y":3})
call 2: add({"x": 4, "y": 5})

[tool, call 2: add]
9

[tool, call 1: add]
5

[assistant]
5 and 9 ✓"""


def test_a_dialogue_with_tools() -> None:
    assert transcript(DIALOGUE) == TEXT


def test_random_call_ids_do_not_show() -> None:
    other = copy.deepcopy(DIALOGUE)
    other[2]["tool_calls"][0]["id"] = other[4]["tool_call_id"] = "chatcmpl-tool-1"
    other[2]["tool_calls"][1]["id"] = other[3]["tool_call_id"] = "chatcmpl-tool-2"
    assert transcript(other) == TEXT


def test_the_messages_are_left_as_they_were() -> None:
    before = copy.deepcopy(DIALOGUE)
    transcript(DIALOGUE)
    assert before == DIALOGUE


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ({"role": "user", "content": None}, "[user]"),
        ({"role": "user"}, "[user]"),
        ({"role": "user", "content": ""}, "[user]"),
        ({"role": "developer", "content": "Be brief."}, "[developer]\nBe brief."),
        ({"role": "assistant", "content": "4", "reasoning_content": "2 + 2"}, "[assistant]\nreasoning: 2 + 2\n4"),
        ({"role": "assistant", "content": "4", "reasoning": "2 + 2"}, "[assistant]\nreasoning: 2 + 2\n4"),
        (
            {"role": "assistant", "content": "4", "reasoning": "2 + 2", "reasoning_content": "2 + 2"},
            "[assistant]\nreasoning: 2 + 2\n4",
        ),
        ({"role": "assistant", "content": None, "refusal": "No."}, "[assistant]\nNo."),
        ({"role": "assistant", "content": None, "tool_calls": None}, "[assistant]"),
        ({"role": "tool", "content": "9", "name": "add"}, "[tool: add]\n9"),
        ({"role": "tool", "content": "9"}, "[tool]\n9"),
        ({"role": "tool", "content": "9", "tool_call_id": "of another conversation"}, "[tool]\n9"),
        ({"role": "tool", "content": {"sum": 9, "ok": True}}, '[tool]\n{"ok": true, "sum": 9}'),
        (
            {
                "role": "user",
                "content": [{"type": "text", "text": "Look:"}, {"type": "image_url", "image_url": {"url": "data:..."}}],
            },
            "[user]\nLook:\n[image_url]",
        ),
        ({"role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]}, "[assistant]\nNo."),
        ({"role": "assistant", "tool_calls": [tool_call("now", "")]}, "[assistant]\ncall 1: now()"),
    ],
)
def test_one_message(message: dict[str, Any], text: str) -> None:
    assert transcript([message]) == text


def test_calls_without_ids_are_numbered_and_results_take_no_false_name() -> None:
    messages: list[dict[str, Any]] = [
        {"role": "assistant", "content": None, "tool_calls": [{"function": {"name": "now", "arguments": "{}"}}]},
        {"role": "tool", "content": "12:00"},
    ]
    assert transcript(messages) == "[assistant]\ncall 1: now({})\n\n[tool]\n12:00"


def test_an_id_that_is_used_again_names_the_later_call() -> None:
    messages: list[dict[str, Any]] = [
        {"role": "assistant", "tool_calls": [tool_call("add", "{}", "call_0")]},
        {"role": "tool", "tool_call_id": "call_0", "content": "1"},
        {"role": "assistant", "tool_calls": [tool_call("now", "{}", "call_0")]},
        {"role": "tool", "tool_call_id": "call_0", "content": "2"},
    ]
    assert transcript(messages).endswith("[assistant]\ncall 2: now({})\n\n[tool, call 2: now]\n2")


@pytest.mark.parametrize(
    ("message", "complaint"),
    [
        ({"content": "hi"}, "message 1 cannot be written as text (KeyError: 'role')"),
        ({"role": "user", "content": object()}, "message 1 .*TypeError"),
        ({"role": "user", "content": [{"image": 1}]}, "message 1 .*KeyError: 'type'"),
        ({"role": "tool", "content": float("nan")}, "message 1 .*ValueError"),
        ({"role": "assistant", "tool_calls": [{"id": "x"}]}, "message 1 .*KeyError: 'function'"),
        ("hello", "message 1 .*TypeError"),
    ],
)
def test_what_has_no_text_form_is_refused_by_its_index(message: Any, complaint: str) -> None:
    complaint = complaint.replace("(KeyError: 'role')", r"\(KeyError: 'role'\)")
    with pytest.raises(InvalidRequestError, match=complaint):
        transcript([{"role": "user", "content": "first"}, message])


messages_strategy = st.lists(
    st.one_of(
        st.fixed_dictionaries({"role": st.sampled_from(["system", "user"]), "content": st.text()}),
        st.fixed_dictionaries(
            {
                "role": st.just("assistant"),
                "content": st.one_of(st.none(), st.text()),
                "tool_calls": st.lists(
                    st.builds(tool_call, st.text(min_size=1), st.text(), st.sampled_from(["a", "b"])), max_size=2
                ),
            }
        ),
        st.fixed_dictionaries(
            {"role": st.just("tool"), "content": st.text(), "tool_call_id": st.sampled_from(["a", "b", "c"])}
        ),
    ),
    max_size=8,
)


@settings(deadline=None, derandomize=True)
@given(messages_strategy, st.integers(0, 8))
def test_a_checkpoint_is_a_prefix_of_what_follows(messages: list[dict[str, Any]], cut: int) -> None:
    whole = transcript(messages)
    assert whole.startswith(transcript(messages[:cut]))
    assert all(message["content"] is None or message["content"] in whole for message in messages)
