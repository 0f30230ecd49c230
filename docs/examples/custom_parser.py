"""Two parsers of your own: an action that only your task knows, and tool calls in a syntax of your own."""

from __future__ import annotations

import ast
import json
import re
from dataclasses import dataclass

from focus.backends import GenerateResult, Policy, ToolTurn
from focus.extend import ActionKind
from focus.generation.parsing import ActionParser, ToolCall
from focus.generation.parsing.base import tool_turn
from focus_testing import ByteTokenizer, EmbeddedPolicy, Engine, ScriptModel


@dataclass(frozen=True)
class Move:
    """A move on a board; None where the reply names none, which the task may punish."""

    square: str | None


@dataclass(frozen=True)
class MoveParser(ActionParser[Move]):
    """The last square that the reply names."""

    def parse(self, result: GenerateResult) -> Move:
        squares: list[str] = re.findall(r"\b[a-c][1-3]\b", result.text)
        return Move(squares[-1] if squares else None)


@dataclass(frozen=True)
class PythonCallParser(ActionParser[ToolTurn]):
    """Calls as Python writes them: ``<tool_call>add(x=2, y=3)</tool_call>``."""

    action: ActionKind | None = "tool"

    def parse(self, result: GenerateResult) -> ToolTurn:
        return tool_turn(result.text, self._decode)

    @staticmethod
    def _decode(block: str) -> ToolCall:
        # What raises ValueError here is reported as a malformed call, with the block as its arguments.
        try:
            call = ast.parse(block.strip(), mode="eval").body
        except SyntaxError as error:
            raise ValueError("no Python expression") from error
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or call.args:
            raise ValueError("no call with keyword arguments")
        given = {one.arg: ast.literal_eval(one.value) for one in call.keywords if one.arg is not None}
        return ToolCall(name=call.func.id, arguments=json.dumps(given))


def main() -> None:
    tokenizer = ByteTokenizer()
    replies = ["a1 is taken, so b2.", "I add.<tool_call>add(x=2, y=3)</tool_call><tool_call>add(2</tool_call>"]
    embedded = EmbeddedPolicy(Engine(ScriptModel.replies(replies, tokenizer), tokenizer))

    # A format with another parser makes a policy with another type of action.
    player: Policy[Move] = EmbeddedPolicy(embedded.engine, format=embedded.format.with_parser(MoveParser()))
    messages = [{"role": "user", "content": "Your move."}]
    result = player.generate(player.prepare(messages))
    print(player.parse(result))

    player.record_reply(result, messages)
    messages.append({"role": "user", "content": "Add 2 and 3."})
    result = player.generate(player.prepare(messages))
    turn = PythonCallParser().parse(result)
    print(repr(turn.text), *turn.tool_calls, sep="\n")


if __name__ == "__main__":
    main()
