"""The wire of a vLLM server that pools: /pooling over a value model that is known exactly."""

from __future__ import annotations

import base64
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NoReturn

import numpy as np
from numpy.typing import NDArray

from focus_testing.wires.base import Exchange, Handler, Refusal, Reply, Wire, new_id
from focus_testing.wires.fields import Fields, is_list
from focus_testing.wires.vllm import VLLMWire
from focus_testing.wires.vllm_choice import usage
from focus_testing.wires.vllm_errors import invalid, refuse, request_fields, vllm_error
from focus_testing.wires.vllm_request import check_length

__all__ = ["PoolingWire", "token_value"]

_TASKS = ("embed", "classify", "token_embed", "token_classify", "plugin")


def token_value(token: int) -> float:
    """The value model: a number from -3.1 to 3.1 that depends on the token alone."""
    return (token % 63 - 31) / 10


@dataclass
class PoolingWire(Wire):
    """A pooling vLLM server with one label.

    A sequence's value is `token_value` of its last token, or of every token under ``task="token_classify"``. The
    engine gives the tokenizer, the vocabulary and the context length; its model is not asked.
    """

    task: Literal["classify", "token_classify"] = "classify"
    """What the server was started for; a real one needs ``--pooler-config`` for "token_classify"."""
    nan_tokens: frozenset[int] = frozenset()
    """Tokens whose value is NaN. As on a real server it fails the whole request, unless base64 is asked for."""

    def routes(self) -> Mapping[tuple[str, str], Handler]:
        """Method and path to handler: /pooling, and what every vLLM server has."""
        shared = VLLMWire(self.engine, self.model, self.api_key).routes()
        own: dict[tuple[str, str], Handler] = {("POST", "/pooling"): self._pooling}
        return own | {key: handler for key, handler in shared.items() if key != ("POST", "/v1/completions")}

    def error(self, status: int, message: str) -> Reply:
        """``{"error": {...}}``, except for the key."""
        return vllm_error(status, message)

    def spoilers(self) -> Mapping[str, Callable[[Any], Any]]:
        """What each fault does to a pooling reply."""
        return _SPOILERS

    def guarded(self, path: str) -> bool:
        """The key does not guard /pooling."""
        return path.startswith("/v1/")

    async def _pooling(self, exchange: Exchange) -> Reply:
        fields = request_fields(exchange)
        name = fields.text("model")
        if name not in (None, self.model):
            raise Refusal(vllm_error(404, f"The model `{name}` does not exist."))
        self._check_task(fields)
        sequences = [self._truncated(ids, fields) for ids in self._inputs(fields)]
        for ids in sequences:
            check_length(len(ids), self.engine.context_length)
        activate = fields.boolean("use_activation", True)
        encoded = fields.text("encoding_format") == "base64"
        values = [self._values(ids, activate) for ids in sequences]
        if not encoded and any(not np.isfinite(one).all() for one in values):
            refuse("Out of range float values are not JSON compliant")
        count = sum(map(len, sequences))
        return Reply(
            {
                "id": new_id("pooling-"),
                "object": "list",
                "created": int(time.time()),
                "model": self.model,
                "data": [
                    {
                        "index": i,
                        "object": "pooling",
                        "data": base64.b64encode(one.tobytes()).decode() if encoded else one.tolist(),
                    }
                    for i, one in enumerate(values)
                ],
                "usage": usage(count, 0),
            }
        )

    def _check_task(self, fields: Fields) -> None:
        if fields.raw("normalize") is not None:
            _refused("Parameter `normalize` was removed; use `use_activation` instead.", "normalize")
        task = fields.text("task")
        if task in (None, self.task):
            return
        if task in ("classify", "token_classify"):
            _refused(f"Try switching the model's pooling_task via --pooler-config.task {task}.", "task")
        if task in ("score", "encode"):
            _refused(f"`{task}` task was removed.", "task")
        if task not in _TASKS:
            invalid("task", "literal_error", f"Input should be one of {', '.join(_TASKS)}")
        _refused(f"Unsupported task: '{task}' Supported tasks: ['token_classify', 'classify']", "task")

    def _inputs(self, fields: Fields) -> list[list[int]]:
        tokenizer, given = self.engine.tokenizer, fields.raw("input")
        messages = fields.raw("messages")
        if messages is not None:
            given = tokenizer.apply_chat_template(messages, tokenize=False)
        if is_list(given) and given and isinstance(given[0], int):
            given = [given]
        many: list[Any] = given if is_list(given) else [given]
        if not many:
            refuse("The decoder prompt cannot be empty")
        return [self._ids(one) for one in many]

    def _ids(self, one: Any) -> list[int]:
        if isinstance(one, str):
            return self.engine.tokenizer.encode(one, add_special_tokens=False)
        if not is_list(one) or not all(type(token) is int for token in one):
            invalid("input", "string_type", "Input should be a valid string")
        for token in one:
            if not 0 <= token < self.engine.vocab_size:
                refuse(f"Token id {token} is out of vocabulary")
        return one

    def _truncated(self, ids: list[int], fields: Fields) -> list[int]:
        limit = fields.integer("truncate_prompt_tokens")
        if limit is None:
            return ids
        if limit > self.engine.context_length:
            message = "truncate_prompt_tokens value is greater than max_model_len."
            refuse(f"{message} Please request a smaller truncation size.")
        limit = self.engine.context_length if limit < 0 else limit
        return ids[max(len(ids) - limit, 0) :] if fields.text("truncation_side") == "left" else ids[:limit]

    def _values(self, ids: list[int], activate: bool) -> NDArray[np.float32]:
        raw = [math.nan if token in self.nan_tokens else token_value(token) for token in ids]
        values: NDArray[np.float32] = np.array(raw, dtype="<f4")
        if activate:
            values = (1 / (1 + np.exp(-values))).astype("<f4")
        return values[-1:] if self.task == "classify" else values[:, None]


def _refused(message: str, param: str) -> NoReturn:
    raise Refusal(vllm_error(400, f"{message} (parameter={param})", param=param))


def _on_data(change: Callable[[list[Any]], list[Any]]) -> Callable[[Any], Any]:
    def spoil(body: Any) -> Any:
        return body if body.get("object") != "list" else {**body, "data": change(body["data"])}

    return spoil


def _with_value(value: Any) -> Callable[[list[Any]], list[Any]]:
    return lambda data: [{**data[0], "data": value}, *data[1:]]


_SPOILERS: Mapping[str, Callable[[Any], Any]] = {
    "no_choice": _on_data(lambda data: data[:-1]),
    "two_choices": _on_data(lambda data: [*data, data[-1]]),
    "nan": _on_data(_with_value([math.nan])),
    "wrong_types": _on_data(_with_value(["high"])),
    "missing_logprobs": _on_data(_with_value(None)),
}
"""One value too few, one too many, NaN, text, null in place of the first value."""
