"""Conversations with literal replies: those of the shared cases, and random ones of our own."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from focus_types import Message

__all__ = ["Conversation", "Dialect", "random_conversations", "reply_text", "shared_conversations"]

type Dialect = Literal["hermes", "qwen_xml"]


@dataclass(frozen=True)
class Conversation:
    """Messages that end with a reply, and the tools that were offered."""

    name: str
    messages: list[Message]
    tools: list[dict[str, Any]]
    literal: dict[int, dict[str, str]]
    """By index of an assistant message, the reply's text in each dialect as the shared cases give it."""

    @property
    def replies(self) -> list[int]:
        """Indices of the assistant messages."""
        return [at for at, message in enumerate(self.messages) if message["role"] == "assistant"]


def shared_conversations(shared: Path) -> list[Conversation]:
    """The 60 conversations of the shared cases."""
    lines = (shared / "cases" / "conversations" / "conversations_open.jsonl").read_text(encoding="utf-8").splitlines()
    return [
        Conversation(case["id"], case["messages"], case["tools"] or [], {r["index"]: r for r in case["replies"]})
        for case in map(json.loads, lines)
    ]


def reply_text(message: Message, dialect: Dialect, *, compact: bool = False) -> str:
    """What a model writes for this message; ``compact`` leaves out the white space that templates would write."""
    text = str(message["content"])
    if "reasoning_content" in message:
        text = f"<think>\n{message['reasoning_content']}\n</think>\n\n{text}"
    calls = [call["function"] for call in message.get("tool_calls", ())]
    blocks = [_hermes(call, compact) if dialect == "hermes" else _xml(call, compact) for call in calls]
    gap = "\n\n" if dialect == "qwen_xml" else "\n"
    before = gap if message["content"] and blocks else ""
    return text + before + ("" if compact else "\n").join(blocks)


def _hermes(call: dict[str, Any], compact: bool) -> str:
    separators = (",", ":") if compact else (", ", ": ")
    arguments = json.dumps(call["arguments"], ensure_ascii=compact, separators=separators)
    if compact:
        return f'<tool_call>{{"arguments":{arguments},"name":"{call["name"]}"}}</tool_call>'
    return f'<tool_call>\n{{"name": "{call["name"]}", "arguments": {arguments}}}\n</tool_call>'


def _xml(call: dict[str, Any], compact: bool) -> str:
    gap = "" if compact else "\n"
    items = reversed(call["arguments"].items()) if compact else call["arguments"].items()
    parameters = "".join(f"<parameter={key}>\n{_value(value)}\n</parameter>{gap}" for key, value in items)
    return f"<tool_call>{gap}<function={call['name']}>\n{parameters}</function>{gap}</tool_call>"


def _value(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list) else str(value)


_TEXTS = (
    "What is 17 * 23?",
    "  spaces at both ends  ",
    "\n\nnewlines first",
    "tabs\tand\r\nreturns\r\n",
    "Grüße, 世界, مرحبا, नमस्ते, 👩‍🔬🏽, e\u0301 \u00e9",
    "```python\nfor i in range(3):\n    print(f'{i:>4}')\n```",
    '{"a": [1, 2.50, null, true], "b": "<b>&amp;</b>"}',
    "<b>not a control token</b> <tool> </function> <parameter=x>",
    "ends with a backslash \\",
    "\u200b\ufeff\u00a0zero width",
    "0",
    "don't you'll WE'RE 1234567890 3.14159 1e-5",
)
_VALUES: tuple[Any, ...] = (
    "",
    "北京",
    "line\nline\n",
    0,
    -1,
    2.5,
    True,
    None,
    [1, "two", {"three": 3}],
    {"k": "v"},
    "02134",
    '"quoted"',
)
_NAMES = ("read_file", "search", "add", "get-weather", "ns.call")


def random_conversations(count: int, seed: int) -> list[Conversation]:
    """Random conversations: several user turns, parallel calls, empty texts, reasoning in some, hostile white space."""
    rng = random.Random(seed)
    return [_random_conversation(f"random-{seed}-{index}", rng) for index in range(count)]


def _random_conversation(name: str, rng: random.Random) -> Conversation:
    tools = [_tool(tool, rng) for tool in rng.sample(_NAMES, rng.randint(1, 4))] if rng.random() < 0.8 else []
    thinks = rng.random() < 0.5
    messages: list[Message] = []
    if rng.random() < 0.6:
        messages.append({"role": "system", "content": rng.choice(("", "Be brief.", *_TEXTS))})
    for turn in range(rng.randint(2, 5)):
        messages.append({"role": "user", "content": _text(rng)})
        for step in range(rng.randint(0, 3) if tools else 0):
            calls = [_call(f"c{turn}_{step}_{i}", tools, rng) for i in range(rng.choice((1, 1, 2, 3)))]
            messages.append(_reply(rng.choice(("", _text(rng))), thinks, rng) | {"tool_calls": calls})
            messages += [{"role": "tool", "tool_call_id": call["id"], "content": _text(rng)} for call in calls]
        messages.append(_reply(_text(rng), thinks, rng))
    return Conversation(name, messages, tools, {})


def _reply(content: str, thinks: bool, rng: random.Random) -> Message:
    return {"role": "assistant", "content": content} | ({"reasoning_content": _text(rng)} if thinks else {})


def _text(rng: random.Random) -> str:
    return "".join(rng.choice(("", " ", "\n", "x"))[:1] + rng.choice(_TEXTS) for _ in range(rng.randint(1, 3)))


def _tool(name: str, rng: random.Random) -> dict[str, Any]:
    properties = {key: {"type": "string", "description": rng.choice(_TEXTS)} for key in ("a", "b")}
    parameters = {"type": "object", "properties": properties, "required": ["a"]}
    return {"type": "function", "function": {"name": name, "description": rng.choice(_TEXTS), "parameters": parameters}}


def _call(call_id: str, tools: list[dict[str, Any]], rng: random.Random) -> dict[str, Any]:
    arguments = {key: rng.choice(_VALUES) for key in rng.sample(("a", "b", "ключ"), rng.randint(0, 3))}
    function = {"name": rng.choice(tools)["function"]["name"], "arguments": arguments}
    return {"id": call_id, "type": "function", "function": function}
