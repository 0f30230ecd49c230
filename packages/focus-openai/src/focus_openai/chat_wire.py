"""The wire of Chat Completions: pure functions between messages, JSON and replies.

https://platform.openai.com/docs/api-reference/chat
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from focus_format.narrow import is_list, is_mapping
from focus_http import HttpReply, decode_json
from focus_openai.body import encode_body
from focus_openai.calls import CallIds, call_from, check_tools
from focus_openai.chat_messages import sent_messages
from focus_openai.errors import body_error, protocol_error
from focus_openai.result import ApiToken, NativeReply
from focus_types import Message, NativeToolCall, SamplingParams

__all__ = ["BACKEND", "decode_reply", "encode_request"]

BACKEND = "Chat Completions"

_ENDED = ("stop", "tool_calls", "function_call")


def encode_request(
    messages: Sequence[Message],
    tools: Sequence[dict[str, Any]],
    sampling: SamplingParams,
    model: str,
    system_prompt: str | None,
) -> bytes:
    """The JSON body of one request.

    Args:
        messages: The conversation, its tool calls and tool messages paired.
        tools: Tool schemas.
        sampling: Effective parameters; temperature and top_p are None where they are locked.
        model: The server's name for the model.
        system_prompt: Sent before the conversation.

    Raises:
        InvalidRequestError: A message or tool that cannot be sent, by its index.
    """
    check_tools(tools)
    system = [] if system_prompt is None else [{"role": "system", "content": system_prompt}]
    body: dict[str, Any] = {
        "model": model,
        "messages": system + sent_messages(messages),
        "max_completion_tokens": sampling.max_tokens,
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "stop": sampling.stop or None,
        "seed": sampling.seed,
        "logprobs": None if sampling.logprobs is None else True,
        "top_logprobs": sampling.logprobs or None,
        "tools": list(tools) or None,
    }
    return encode_body(body)


class _Logprobs(msgspec.Struct):
    content: list[ApiToken] | None = None
    refusal: list[ApiToken] | None = None


class _Choice(msgspec.Struct):
    message: dict[str, Any]
    finish_reason: str | None = None
    logprobs: _Logprobs | None = None
    stop_reason: Any = None
    """The stop token or string, on vLLM."""
    matched_stop: Any = None
    """The same on SGLang."""


class _CachedTokens(msgspec.Struct):
    cached_tokens: int | None = None


class _Usage(msgspec.Struct):
    prompt_tokens_details: _CachedTokens | None = None


class _Completion(msgspec.Struct):
    choices: list[_Choice] | None = None
    id: str | None = None
    system_fingerprint: str | None = None
    usage: _Usage | None = None
    error: Any = None


def decode_reply(reply: HttpReply, message: int) -> NativeReply:
    """The one choice of a completion, its message kept as received.

    Args:
        reply: The reply.
        message: Index that the reply will have in the conversation.

    Raises:
        ProtocolError: Not a completion, or not exactly one choice.
        BackendError: An error with status 200.
    """
    completion = decode_json(reply, _Completion, backend=BACKEND)
    if completion.choices is None:
        raise body_error(reply, BACKEND, completion.error)
    if len(completion.choices) != 1:
        raise protocol_error(reply, BACKEND, f"one choice was asked for, {len(completion.choices)} came")
    choice = completion.choices[0]
    received = {key: value for key, value in choice.message.items() if value is not None and key != "type"}
    calls, sent_calls = _calls(received.pop("tool_calls", None), message, reply)
    if "function_call" in received and not calls:
        raise protocol_error(reply, BACKEND, "the reply uses function_call, which tools replaced")
    text, refusal = _text(received, reply)
    output = {**received, "role": "assistant", "content": choice.message.get("content")}
    if sent_calls:
        output["tool_calls"] = sent_calls
    logprobs = choice.logprobs
    details = completion.usage.prompt_tokens_details if completion.usage else None
    return NativeReply(
        text=text or refusal,
        stop_reason="refusal" if refusal else _stop_reason(choice.finish_reason, calls),
        calls=calls,
        output=(output,),
        matched_stop=next(filter(_is_stop, (choice.stop_reason, choice.matched_stop)), None),
        logprobs=(logprobs.content or logprobs.refusal) if logprobs else None,
        cached_tokens=details.cached_tokens if details else None,
        server=completion.system_fingerprint,
        reply_id=completion.id,
    )


def _stop_reason(reason: str | None, calls: tuple[NativeToolCall, ...]) -> str:
    if reason is None:
        return "unknown"
    # Servers disagree on the word for a turn that ended in calls; a cut turn keeps "length".
    return "stop" if calls and reason in _ENDED else reason


def _is_stop(value: Any) -> bool:
    return isinstance(value, int | str) and not isinstance(value, bool)


def _text(message: Mapping[str, Any], reply: HttpReply) -> tuple[str, str]:
    """The visible text and the refusal of a message whose content is text, parts, or neither."""
    content: Any = message.get("content")
    refusal: Any = message.get("refusal") or ""
    if not isinstance(refusal, str):
        raise protocol_error(reply, BACKEND, f"the refusal is {type(refusal).__name__}, not text")
    if content is None or isinstance(content, str):
        return content or "", refusal
    if not is_list(content):
        raise protocol_error(reply, BACKEND, f"the content is {type(content).__name__}, not text or a list of parts")
    parts = [part for part in content if is_mapping(part)]
    texts = [part.get("text") for part in parts if part.get("type", "text") in ("text", "output_text")]
    refusals = [part.get("refusal") for part in parts if part.get("type") == "refusal"]
    return _joined(texts), refusal or _joined(refusals)


def _joined(texts: list[Any]) -> str:
    return "".join(text for text in texts if isinstance(text, str))


def _calls(calls: Any, message: int, reply: HttpReply) -> tuple[tuple[NativeToolCall, ...], list[dict[str, Any]]]:
    """The calls, and as they are sent back: with the ids and arguments that the calls have."""
    if calls is None:
        return (), []
    ids = CallIds(message)
    found: list[NativeToolCall] = []
    sent: list[dict[str, Any]] = []
    for call in calls if is_list(calls) else [calls]:
        function: Any = call.get("function") if is_mapping(call) else None
        if not is_mapping(call) or not is_mapping(function):
            raise protocol_error(reply, BACKEND, "a tool call is not a function call, and no other kind was offered")
        one = call_from(function, ids(call.get("id")))
        found.append(one)
        sent.append(
            {
                **call,
                "id": one.call_id,
                "type": "function",
                "function": {**function, "name": one.name, "arguments": one.arguments},
            }
        )
    return tuple(found), sent
