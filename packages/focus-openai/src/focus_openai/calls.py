"""Tools and tool calls, as both APIs and their compatible servers write them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from focus_format.narrow import is_mapping
from focus_types import InvalidRequestError, NativeToolCall, ProtocolError

__all__ = ["CallIds", "arguments_text", "call_from", "check_tools"]


def arguments_text(arguments: Any) -> str:
    """Arguments as JSON text: text byte for byte, even if it is no JSON; none at all as ``{}``; data encoded."""
    if isinstance(arguments, str):
        return arguments
    return "{}" if arguments is None else json.dumps(arguments, ensure_ascii=False)


class CallIds:
    """Ids for one reply's calls: the server's where they can be answered, else stable ones.

    Some servers send no id, an empty one, or the same one twice. A tool message needs one to refer to, so such a call
    is named after its place: ``call_<index of the reply's message>_<index of the call>``, the same on every reading.

    Args:
        message: Index that the reply will have in the conversation.
    """

    def __init__(self, message: int) -> None:
        self._message = message
        self._used: list[str] = []

    def __call__(self, given: Any) -> str:
        """The id of the next call."""
        known = isinstance(given, str) and given != "" and given not in self._used
        call_id: str = given if known else f"call_{self._message}_{len(self._used)}"
        while call_id in self._used:
            call_id += "_"
        self._used.append(call_id)
        return call_id


def call_from(call: Mapping[str, Any], call_id: str) -> NativeToolCall:
    """A call from its ``name`` and ``arguments`` fields.

    Raises:
        ProtocolError: The name is no text.
    """
    name: Any = call.get("name")
    if name is not None and not isinstance(name, str):
        raise ProtocolError(f"a tool call's name is {name!r}, not text")
    return NativeToolCall(name or "", arguments_text(call.get("arguments")), call_id)


def check_tools(tools: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The ``function`` object of every tool.

    Raises:
        InvalidRequestError: A tool is not ``{"type": "function", "function": {"name": ...}}``.
    """
    functions: list[dict[str, Any]] = []
    for index, tool in enumerate(tools):
        function: Any = tool.get("function")
        name: Any = function.get("name") if is_mapping(function) else None
        if tool.get("type") != "function" or not is_mapping(function) or not isinstance(name, str) or not name:
            raise InvalidRequestError(
                f'tool {index} must be {{"type": "function", "function": {{"name": ..., "parameters": ...}}}}'
            )
        functions.append(dict(function))
    return functions
