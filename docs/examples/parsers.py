"""Replies as models really write them, and the turns that they express."""

from __future__ import annotations

from focus.backends import GenerateResult, HermesToolCallParser, QwenXMLToolCallParser, ToolTurn

PARAMETERS = {"path": {"type": "string"}, "lines": {"type": "integer"}}
TOOLS = [{"type": "function", "function": {"name": "read", "parameters": {"properties": PARAMETERS}}}]

XML = """Let me look.
<tool_call>
<function=read>
<parameter=path>
007
</parameter>
<parameter=lines>
20
</parameter>
</function>
</tool_call>"""
HERMES = {
    "a thought": 'I need the file.</think><tool_call>{"name": "read", "arguments": {"lines": 1.0}}</tool_call>',
    "two calls, one malformed": '<tool_call>{"name": "read"}</tool_call><tool_call>{"name": "read",}</tool_call>',
    "cut off": 'One moment.<tool_call>{"name": "read", "argum',
    "a mention": "Calls stand between <tool_call> and an end tag.",
}


def show(turn: ToolTurn) -> None:
    print(f"  text {turn.text!r} reasoning {turn.reasoning!r}")
    for call in turn.tool_calls:
        if call.name:
            print(f"  call {call.name}({call.arguments})")
        else:
            print(f"  could not be read: {call.arguments!r}")


def main() -> None:
    print("Qwen XML, with a schema: a declared string stays a string")
    show(QwenXMLToolCallParser(tools=TOOLS).parse(GenerateResult(text=XML)))
    for kind, text in HERMES.items():
        print(f"Hermes, {kind}")
        show(HermesToolCallParser().parse(GenerateResult(text=text)))


if __name__ == "__main__":
    main()
