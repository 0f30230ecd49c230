"""The wire of an SGLang server: native /generate, directly or through a router."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Any

from focus_testing.engine import Candidate, Generation
from focus_testing.wires.base import Exchange, Handler, Refusal, Reply, Wire, new_id, run_to_end
from focus_testing.wires.fields import Fields
from focus_testing.wires.sglang_faults import SPOILERS
from focus_testing.wires.sglang_request import RESERVED, GenerateRequest, bad_type, read_generate, refuse
from focus_testing.wires.vllm_choice import ChoiceOptions, shown_text

__all__ = ["SGLangWire"]

_LOWEST = -3.4028234663852886e38


@dataclass
class SGLangWire(Wire):
    """An SGLang server.

    Its log-probabilities are those of the engine's ``logprob_mode``, "tempered" on a real server unless it was
    started with SGLANG_RETURN_ORIGINAL_LOGPROB=1, which is "raw". The repetition penalty counts generated tokens
    only. ``sampling_seed`` is heeded, as with ``--enable-deterministic-inference``.
    """

    weight_version: str = "default"
    """May change while a reply is being generated; see also POST /update_weight_version."""
    router: bool = False
    """Behind a router: /model_info and /abort_request are missing, unknown sampling parameters are dropped."""

    def routes(self) -> Mapping[tuple[str, str], Handler]:
        """Method and path to handler."""
        both: dict[tuple[str, str], Handler] = {
            ("POST", "/generate"): self._generate,
            ("GET", "/get_model_info"): self._model_info,
            ("GET", "/v1/models"): self._models,
            ("GET", "/health"): _nothing,
        }
        if self.router:
            return both
        return both | {
            ("GET", "/model_info"): self._model_info,
            ("GET", "/server_info"): self._server_info,
            ("GET", "/health_generate"): _nothing,
            ("POST", "/abort_request"): self._abort,
            ("POST", "/update_weight_version"): self._update_weight_version,
        }

    def error(self, status: int, message: str) -> Reply:
        """One of the server's several shapes."""
        if status == HTTPStatus.UNAUTHORIZED:
            return Reply({"error": "Unauthorized"}, status)
        kind = str(status) if status >= 500 else HTTPStatus(status).phrase
        return Reply({"object": "error", "message": message, "type": kind, "param": None, "code": status}, status)

    def spoilers(self) -> Mapping[str, Callable[[Any], Any]]:
        """What each fault does to a reply of /generate."""
        return SPOILERS

    def guarded(self, path: str) -> bool:
        """Only /health needs no key."""
        return not path.startswith("/health")

    async def _generate(self, exchange: Exchange) -> Reply:
        requests = read_generate(exchange.body, self.engine, router=self.router)
        fields = Fields(exchange.body, bad_type)
        request_id = fields.text("rid") or new_id()
        if request_id in self.running:
            refuse(f"Duplicate request ID detected: {request_id}")
        batch = isinstance(fields.raw("input_ids")[0], list)
        names = [f"{request_id}_{i}" for i in range(len(requests))] if batch else [request_id]
        replies = [await self._reply(one, exchange, name) for one, name in zip(requests, names, strict=True)]
        if fields.boolean("return_prompt_token_ids"):
            replies = [reply | {"prompt_token_ids": one.tokens} for reply, one in zip(replies, requests, strict=True)]
        return Reply(replies if batch else replies[0])

    async def _reply(self, request: GenerateRequest, exchange: Exchange, request_id: str) -> dict[str, Any]:
        started = time.time()
        params = replace(
            request.params,
            max_tokens=request.params.max_tokens or (None if request.params.max_tokens is None else 1),
            logprobs=request.top if request.return_logprob else None,
            prompt_logprobs=request.top if request.start < len(request.tokens) else None,
        )
        run = self.engine.start(request.tokens, params, request.stop_token_ids, penalise_prompt=False)
        versions: list[str] = []
        if request.params.max_tokens == 0:
            generation = replace(run.result(), finish_reason="length")
        else:
            note = lambda: versions.append(self.weight_version)  # noqa: E731 - one line says it
            generation = await run_to_end(self, run, exchange, request_id, note)
        options = ChoiceOptions(
            return_token_ids=True,
            tokens_as_ids=False,
            skip_special_tokens=request.skip_special_tokens,
            include_stop=request.no_stop_trim,
            hidden_stop=-1,
        )
        count = len(generation.tokens)
        meta = {
            "id": request_id,
            "finish_reason": _finish_reason(generation),
            "prompt_tokens": len(request.tokens),
            "weight_version": self.weight_version,
            "num_retractions": 0,
            **(self._logprobs(request, generation) if request.return_logprob else {}),
            "reasoning_tokens": 0,
            "completion_tokens": count,
            "cached_tokens": 0,
            "weight_versions": _stretches(versions) or [{"version": self.weight_version, "start": 0, "end": 0}],
            "cached_tokens_details": None,
            "dp_rank": None,
            "e2e_latency": time.time() - started,
            "response_sent_to_client_ts": time.time(),
        }
        text = shown_text(generation, options, self.engine.tokenizer)
        return {"text": text, "output_ids": list(generation.tokens), "meta_info": meta}

    def _logprobs(self, request: GenerateRequest, generation: Generation) -> dict[str, Any]:
        def triple(one: Candidate) -> list[Any]:
            text = str(self.engine.tokenizer.decode([one.token])) if request.text_in_logprobs else None
            return [max(one.logprob, _LOWEST), one.token, text]

        def best(candidates: list[Candidate]) -> list[list[Any]]:
            return [triple(one) for one in sorted(candidates, key=lambda one: -one.logprob)[: request.top]]

        sampled = [entry[0] for entry in generation.top or []]
        prompt = (generation.prompt or [])[request.start :]
        # The first position asked for has no log-probability, whether or not it is the prompt's first.
        own = [triple(entry[0]) for entry in prompt[1:]]
        first = [[None, *triple(Candidate(request.tokens[request.start], 0.0))[1:]]] if prompt else []
        found: dict[str, Any] = {
            "input_token_logprobs": first + own,
            "output_token_logprobs": [triple(one) for one in sampled],
            "output_token_logprobs_length": len(sampled),
        }
        if request.top:
            found["input_top_logprobs"] = [None, *map(best, prompt[1:])] if prompt else []
            found["output_top_logprobs"] = list(map(best, generation.top or []))
        return found

    async def _model_info(self, exchange: Exchange) -> Reply:
        return Reply(
            {
                "model_path": self.model,
                "served_model_name": self.model,
                "tokenizer_path": self.model,
                "is_generation": True,
                "preferred_sampling_params": None,
                "weight_version": self.weight_version,
                "model_type": "focus-testing",
                "architectures": [type(self.engine.model).__name__],
            }
        )

    async def _server_info(self, exchange: Exchange) -> Reply:
        usable = self.engine.context_length - RESERVED
        return Reply({"version": "focus-testing", "max_req_input_len": usable, "enable_deterministic_inference": True})

    async def _models(self, exchange: Exchange) -> Reply:
        card = {"id": self.model, "object": "model", "created": int(time.time()), "owned_by": "sglang"}
        card |= {"root": self.model, "parent": None, "max_model_len": self.engine.context_length}
        return Reply({"object": "list", "data": [card]})

    async def _abort(self, exchange: Exchange) -> Reply:
        fields = Fields(exchange.body, bad_type)
        for request_id, run in self.running.items():
            if fields.boolean("abort_all") or request_id == fields.text("rid"):
                run.abort()
        return Reply()

    async def _update_weight_version(self, exchange: Exchange) -> Reply:
        version = Fields(exchange.body, bad_type).text("new_version")
        if version is None:
            raise Refusal(self.error(400, "new_version is required"))
        self.weight_version = version
        message = f"Weight version updated to {version}"
        return Reply({"success": True, "message": message, "new_version": version})


async def _nothing(exchange: Exchange) -> Reply:
    return Reply()


def _finish_reason(generation: Generation) -> dict[str, Any]:
    if generation.finish_reason == "stop":
        return {"type": "stop", "matched": generation.matched_stop}
    if generation.finish_reason == "length":
        return {"type": "length", "length": len(generation.tokens)}
    return {"type": "abort", "message": "Aborted", "status_code": None, "err_type": None}


def _stretches(versions: list[str]) -> list[dict[str, Any]]:
    ends = list(itertools.accumulate(len(list(group)) for _, group in itertools.groupby(versions)))
    names = [version for version, _ in itertools.groupby(versions)]
    return [
        {"version": version, "start": start, "end": end}
        for version, start, end in zip(names, [0, *ends], ends, strict=False)
    ]
