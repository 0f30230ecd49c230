"""What both OpenAI endpoints share: errors, usage, the chat prompt, and a reply taken apart."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from focus_testing.engine import Engine, Generation
from focus_testing.wires.base import Refusal, Reply, token_texts
from focus_testing.wires.fields import Fields
from focus_testing.wires.vllm_choice import finite
from focus_types import HFTokenizer, SamplingParams

__all__ = ["Said", "api_logprobs", "check_fields", "invalid", "openai_error", "read_reply", "refuse", "render_chat"]

_KINDS = {401: "invalid_request_error", 429: "requests", 500: "server_error", 503: "server_error"}
_CODES = {401: "invalid_api_key", 429: "rate_limit_exceeded"}
_THOUGHT = re.compile(r"\A<think>\n?(.*?)\n?</think>\s*", re.DOTALL)
_CALL = re.compile(r"<tool_call>\s*(\{.*?\})\s*</tool_call>", re.DOTALL)


def openai_error(status: int, message: str, *, param: str | None = None, code: str | None = None) -> Reply:
    """``{"error": {message, type, param, code}}``."""
    kind = _KINDS.get(status, "invalid_request_error")
    error = {"message": message, "type": kind, "param": param, "code": code or _CODES.get(status)}
    return Reply({"error": error}, status)


def refuse(message: str, *, param: str | None = None, code: str | None = None, status: int = 400) -> NoReturn:
    """End the request with an error."""
    raise Refusal(openai_error(status, message, param=param, code=code))


def invalid(name: str, kind: str, message: str) -> NoReturn:
    """400 for a field of the wrong type."""
    refuse(f"Invalid type for '{name}': {message}", param=name or None, code="invalid_type")


def check_fields(body: Any, known: Sequence[str], model: str, *, locked: bool) -> Fields:
    """The fields of a request: none unknown, the served model, and no sampling on a model that fixes its own.

    Raises:
        Refusal: As the API refuses them.
    """
    fields = Fields(body, invalid)
    unknown = [name for name in body if name not in known]
    if unknown:
        refuse(f"Unknown parameter: '{unknown[0]}'.", param=unknown[0], code="unknown_parameter")
    if fields.text("model") != model:
        refuse(f"The model `{fields.text('model')}` does not exist.", code="model_not_found", status=404)
    for name in ("temperature", "top_p"):
        value = fields.number(name)
        if locked and value not in (None, 1.0):
            message = f"Unsupported value: '{name}' does not support {value} with this model."
            refuse(message, param=name, code="unsupported_value")
    return fields


def render_chat(engine: Engine, messages: Sequence[Mapping[str, Any]], tools: Sequence[Any], limit: int | None) -> Any:
    """The prompt's ids; it leaves room for a reply.

    Raises:
        Refusal: The template refuses the messages, or they do not fit the context.
    """
    from jinja2 import TemplateError

    shaped = [_shaped(message) for message in messages]
    try:
        text = engine.tokenizer.apply_chat_template(
            shaped, list(tools) or None, add_generation_prompt=True, tokenize=False
        )
    except TemplateError as error:
        refuse(f"Invalid 'messages': {error}", param="messages")
    ids = engine.tokenizer.encode(text, add_special_tokens=False)
    if len(ids) + (limit or 1) > engine.context_length:
        refuse(
            f"This model's maximum context length is {engine.context_length} tokens. However, you requested"
            f" {len(ids) + (limit or 1)} tokens ({len(ids)} in the messages, {limit or 1} in the completion).",
            param="messages",
            code="context_length_exceeded",
        )
    return ids


def _shaped(message: Mapping[str, Any]) -> dict[str, Any]:
    """A message as chat templates expect it."""
    shaped = {key: value for key, value in message.items() if value is not None}
    shaped["role"] = "system" if message["role"] == "developer" else message["role"]
    content: Any = message.get("content") or message.get("refusal") or ""
    shaped["content"] = content if isinstance(content, str) else "".join(part.get("text", "") for part in content)
    calls: list[Any] = message.get("tool_calls") or []
    shaped["tool_calls"] = [
        {**call, "function": {**call["function"], "arguments": _parsed(call["function"]["arguments"])}}
        for call in calls
    ]
    return shaped


def _parsed(arguments: str) -> Any:
    try:
        return json.loads(arguments)
    except ValueError:
        return arguments


@dataclass(frozen=True)
class Said:
    """A reply taken apart."""

    reasoning: str
    content: str
    calls: list[tuple[str, str]]
    """Name and arguments as JSON text."""


def read_reply(generation: Generation, *, tools: bool) -> Said:
    """Thought, text and, if there were tools, Hermes calls; a call that is no JSON leaves all of them in the text."""
    text, reasoning = generation.text, ""
    thought = _THOUGHT.match(text)
    if thought is not None:
        text, reasoning = text[thought.end() :], thought[1]
    calls: list[tuple[str, str]] = []
    for block in _CALL.findall(text) if tools else ():
        call = _parsed(block)
        if not isinstance(call, dict) or "name" not in call:
            return Said(reasoning, text, [])
        calls.append((str(call["name"]), json.dumps(call.get("arguments", {}), ensure_ascii=False)))  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType] - JSON
    return Said(reasoning, _CALL.sub("", text).strip() if calls else text, calls)


def api_logprobs(generation: Generation, tokenizer: HFTokenizer, params: SamplingParams) -> list[dict[str, Any]] | None:
    """One object per token, keyed by text; None where they were not asked for."""
    if generation.top is None:
        return None
    texts = token_texts(tokenizer, generation.tokens)

    def shown(text: str, logprob: float) -> dict[str, Any]:
        return {"token": text, "logprob": finite(logprob), "bytes": list(text.encode())}

    return [
        {
            **shown(text, candidates[0].logprob),
            "top_logprobs": [shown(token_texts(tokenizer, [one.token])[0], one.logprob) for one in candidates][
                : params.logprobs or 0
            ],
        }
        for text, candidates in zip(texts, generation.top, strict=True)
    ]
