"""The wire of the Responses API: pure functions between prompts, JSON and replies.

https://platform.openai.com/docs/api-reference/responses
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from focus_http import HttpReply, decode_json
from focus_openai.body import encode_body
from focus_openai.calls import CallIds, arguments_text
from focus_openai.errors import body_error, protocol_error, reported_error
from focus_openai.responses_input import input_items, response_tools
from focus_openai.responses_items import read_items
from focus_openai.result import ApiToken, NativeReply
from focus_types import Message, SamplingParams

__all__ = ["BACKEND", "decode_reply", "encode_request"]

BACKEND = "Responses"


def encode_request(
    messages: Sequence[Message],
    tools: Sequence[dict[str, Any]],
    sampling: SamplingParams,
    model: str,
    system_prompt: str | None,
    *,
    reasoning_effort: str | None,
    encrypted_reasoning: bool,
) -> bytes:
    """The JSON body of one request that stores nothing on the server.

    Args:
        messages: The conversation, its tool calls and tool messages paired.
        tools: Tool schemas.
        sampling: Effective parameters; temperature and top_p are None where they are locked.
        model: The server's name for the model.
        system_prompt: Sent as ``instructions``.
        reasoning_effort: The API's own words, such as "low"; None leaves it to the server.
        encrypted_reasoning: Ask for reasoning in the form that can be sent back.

    Raises:
        InvalidRequestError: A message or tool that cannot be sent, by its index.
    """
    include = ["reasoning.encrypted_content"] if encrypted_reasoning else []
    if sampling.logprobs is not None:
        include.append("message.output_text.logprobs")
    body: dict[str, Any] = {
        "model": model,
        "input": input_items(messages),
        "instructions": system_prompt,
        "max_output_tokens": sampling.max_tokens,
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "top_logprobs": sampling.logprobs or None,
        "include": include or None,
        "reasoning": None if reasoning_effort is None else {"effort": reasoning_effort},
        "tools": response_tools(tools) or None,
        "store": False,
    }
    return encode_body(body)


class _Incomplete(msgspec.Struct):
    reason: str | None = None


class _CachedTokens(msgspec.Struct):
    cached_tokens: int | None = None


class _Usage(msgspec.Struct):
    input_tokens_details: _CachedTokens | None = None


class _Response(msgspec.Struct):
    status: str | None = None
    output: list[dict[str, Any]] | None = None
    id: str | None = None
    incomplete_details: _Incomplete | None = None
    usage: _Usage | None = None
    error: Any = None


def decode_reply(reply: HttpReply, message: int) -> NativeReply:
    """All output items of a finished response, in order, as received.

    Args:
        reply: The reply.
        message: Index that the reply will have in the conversation.

    Raises:
        ProtocolError: Not a response, or one that is not finished.
        BackendError: The response failed or was cancelled, although the status is 200.
    """
    response = decode_json(reply, _Response, backend=BACKEND)
    if response.status in ("failed", "cancelled"):
        raise reported_error(reply, BACKEND, response.status, response.error)
    if response.output is None:
        raise body_error(reply, BACKEND, response.error)
    if response.status not in ("completed", "incomplete"):
        raise protocol_error(reply, BACKEND, f"the response is not finished: its status is {response.status!r}")
    ids = CallIds(message)
    output = [_with_call(item, ids) if item.get("type") == "function_call" else item for item in response.output]
    items = read_items(output)
    try:
        logprobs = msgspec.convert(items.logprobs, list[ApiToken])
    except msgspec.ValidationError as error:
        problem = f"the log-probabilities are malformed: {error}"
    else:
        details = response.usage.input_tokens_details if response.usage else None
        return NativeReply(
            text=items.text or items.refusal,
            stop_reason="refusal" if items.refusal else _stop_reason(response),
            calls=tuple(items.calls),
            output=tuple(output),
            logprobs=logprobs,
            cached_tokens=details.cached_tokens if details else None,
            reply_id=response.id,
        )
    raise protocol_error(reply, BACKEND, problem)


def _with_call(item: dict[str, Any], ids: CallIds) -> dict[str, Any]:
    return {**item, "call_id": ids(item.get("call_id")), "arguments": arguments_text(item.get("arguments"))}


def _stop_reason(response: _Response) -> str:
    if response.status == "completed":
        return "stop"
    reason = response.incomplete_details.reason if response.incomplete_details else None
    return "length" if reason == "max_output_tokens" else reason or "unknown"
