"""The wire of a generating vLLM server: /v1/completions with token ids, and the small endpoints around it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from focus_testing.wires.base import Exchange, Handler, Refusal, Reply, Wire, new_id, run_to_end
from focus_testing.wires.fields import Fields
from focus_testing.wires.vllm_choice import ChoiceOptions, completion_choice, usage
from focus_testing.wires.vllm_errors import request_fields, vllm_error
from focus_testing.wires.vllm_faults import SPOILERS
from focus_testing.wires.vllm_request import read_params, read_prompts
from focus_types import SamplingParams

__all__ = ["VLLMWire", "model_card"]

_VERSION = "0.32.0"
_FINGERPRINT = f"vllm-{_VERSION}-focus-testing"


@dataclass
class VLLMWire(Wire):
    """A generating vLLM server.

    Its log-probabilities are those of the engine's ``logprob_mode``, "raw" on a real server unless it was started
    with ``--logprobs-mode processed_logprobs``, which is "behavior". Requests may hold fields that neither server
    knows; fields that only the real one knows are refused.
    """

    max_stop_strings: int = 4
    max_logprobs: int = 20
    defaults: SamplingParams = field(default_factory=lambda: SamplingParams(temperature=1.0, top_p=1.0, max_tokens=16))
    """What an omitted or null field means: a real server reads it from the model's generation_config.json."""

    def routes(self) -> Mapping[tuple[str, str], Handler]:
        """Method and path to handler."""
        return {
            ("POST", "/v1/completions"): self._completions,
            ("GET", "/v1/models"): self._models,
            ("POST", "/tokenize"): self._tokenize,
            ("POST", "/detokenize"): self._detokenize,
            ("GET", "/health"): _nothing,
            ("GET", "/ping"): _nothing,
            ("GET", "/version"): _version,
            ("GET", "/load"): self._load,
            ("GET", "/metrics"): self._metrics,
        }

    def error(self, status: int, message: str) -> Reply:
        """``{"error": {...}}``, except for the key."""
        return vllm_error(status, message)

    def spoilers(self) -> Mapping[str, Callable[[Any], Any]]:
        """What each fault does to a completion."""
        return SPOILERS

    def guarded(self, path: str) -> bool:
        """The key guards only these paths."""
        return path.startswith(("/v1/", "/inference/"))

    async def _completions(self, exchange: Exchange) -> Reply:
        fields = request_fields(exchange)
        self.check_model(fields)
        prompts = read_prompts(fields, self.engine)
        params = read_params(fields, self.defaults, self.max_stop_strings, self.max_logprobs)
        options = self._options(fields)
        stops = fields.integers("stop_token_ids")
        request_id = fields.text("request_id") or new_id()
        choices: list[dict[str, Any]] = []
        generated = 0
        for prompt in prompts:
            for n in range(fields.integer("n") or 1):
                seed = None if params.seed is None else params.seed + n
                run = self.engine.start(prompt, replace(params, seed=seed), stops)
                generation = await run_to_end(self, run, exchange, f"{request_id}-{len(choices)}")
                generated += len(generation.tokens)
                choices.append(completion_choice(len(choices), prompt, generation, options, self.engine.tokenizer))
        prompted = sum(map(len, prompts))
        return Reply(
            {
                "id": f"cmpl-{request_id}",
                "object": "text_completion",
                "created": int(time.time()),
                "model": fields.text("model") or self.model,
                "choices": choices,
                "service_tier": None,
                "system_fingerprint": _FINGERPRINT,
                "usage": usage(prompted, generated),
                "kv_transfer_params": None,
                "ec_transfer_params": None,
                "metrics": None,
            }
        )

    def check_model(self, fields: Fields) -> None:
        """Refuse a model that is not served; an omitted one is."""
        name = fields.text("model")
        if name not in (None, self.model):
            message = f"The model `{name}` does not exist. Valid aliases: {self.model}."
            raise Refusal(vllm_error(404, message, param="model"))

    def _options(self, fields: Fields) -> ChoiceOptions:
        return ChoiceOptions(
            return_token_ids=fields.boolean("return_token_ids"),
            tokens_as_ids=fields.boolean("return_tokens_as_token_ids"),
            skip_special_tokens=fields.boolean("skip_special_tokens", True),
            include_stop=fields.boolean("include_stop_str_in_output"),
            hidden_stop=self.engine.tokenizer.eos_token_id,
        )

    async def _models(self, exchange: Exchange) -> Reply:
        return Reply({"object": "list", "data": [model_card(self.model, self.engine.context_length)]})

    async def _tokenize(self, exchange: Exchange) -> Reply:
        fields = request_fields(exchange)
        messages, tokenizer = fields.raw("messages"), self.engine.tokenizer
        text = fields.text("prompt") or ""
        if messages is not None:
            tools = fields.raw("tools")
            prompted = fields.boolean("add_generation_prompt", True)
            text = tokenizer.apply_chat_template(messages, tools, add_generation_prompt=prompted, tokenize=False)
        ids = tokenizer.encode(text, add_special_tokens=False)
        shown = [str(tokenizer.decode([token])) for token in ids] if fields.boolean("return_token_strs") else None
        length = self.engine.context_length
        return Reply({"count": len(ids), "max_model_len": length, "tokens": ids, "token_strs": shown})

    async def _detokenize(self, exchange: Exchange) -> Reply:
        return Reply({"prompt": self.engine.tokenizer.decode(request_fields(exchange).integers("tokens"))})

    async def _load(self, exchange: Exchange) -> Reply:
        return Reply({"server_load": len(self.running)})

    async def _metrics(self, exchange: Exchange) -> Reply:
        name = "vllm:num_requests_running"
        text = f'# TYPE {name} gauge\n{name}{{model_name="{self.model}"}} {len(self.running)}\n'
        return Reply(text, media_type="text/plain; version=0.0.4")


async def _nothing(exchange: Exchange) -> Reply:
    return Reply()


async def _version(exchange: Exchange) -> Reply:
    return Reply({"version": _VERSION})


def model_card(name: str, context_length: int) -> dict[str, Any]:
    """One entry of /v1/models."""
    created = int(time.time())
    rights = ("create_engine", "sampling", "logprobs", "search_indices", "view", "fine_tuning")
    permission = {"id": new_id("modelperm-"), "object": "model_permission", "created": created}
    permission |= {f"allow_{right}": right in ("sampling", "logprobs", "view") for right in rights}
    permission |= {"organization": "*", "group": None, "is_blocking": False}
    return {
        "id": name,
        "object": "model",
        "created": created,
        "owned_by": "vllm",
        "root": name,
        "parent": None,
        "max_model_len": context_length,
        "permission": [permission],
    }
