"""Tinker sampling clients without a service, in the SDK's own types."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any

import numpy as np
import tinker
from tinker.lib.public_interfaces.api_future import AwaitableConcurrentFuture
from tinker.types.topk_logprobs import TopkLogprobs

from focus_testing import Candidate, Engine
from focus_types import SamplingParams

__all__ = ["EngineClient", "Reply", "ReplyClient", "sequence"]

type Reply = tinker.SampleResponse | BaseException
"""What a request is answered with; an exception is raised."""


class ReplyClient(tinker.SamplingClient):
    """Answers each request with what ``answer`` makes of its arguments, and remembers both.

    Args:
        answer: From the arguments of `sample` to a reply; None leaves the request running.
        base_model: What the client says it samples from.
    """

    def __init__(self, answer: Callable[[dict[str, Any]], Reply | None], base_model: str = "tiny") -> None:
        self._answer = answer
        self._name = base_model
        self.requests: list[dict[str, Any]] = []
        self.futures: list[Future[tinker.SampleResponse]] = []

    def sample(
        self,
        prompt: tinker.ModelInput,
        num_samples: int,
        sampling_params: tinker.SamplingParams,
        include_prompt_logprobs: bool = False,
        topk_prompt_logprobs: int = 0,
        topk_sample_logprobs: int = 0,
        *_args: Any,
        **_kwargs: Any,
    ) -> tinker.APIFuture[tinker.SampleResponse]:
        request = {
            "tokens": prompt.to_ints(),
            "num_samples": num_samples,
            "params": sampling_params,
            "include_prompt_logprobs": include_prompt_logprobs,
            "topk_prompt_logprobs": topk_prompt_logprobs,
            "topk_sample_logprobs": topk_sample_logprobs,
        }
        future = Future[tinker.SampleResponse]()
        self.requests.append(request)
        self.futures.append(future)
        reply = self._answer(request)
        if isinstance(reply, BaseException):
            future.set_exception(reply)
        elif reply is not None:
            future.set_result(reply)
        return AwaitableConcurrentFuture(future)

    def get_base_model(self) -> str:
        return self._name

    def __reduce__(self) -> tuple[Any, Any]:
        return (type(self), (self._answer, self._name))


class EngineClient(ReplyClient):
    """Samples from an engine in this process, as the hosted service's contract says.

    Args:
        engine: The model, its tokenizer and what its log-probabilities are of.
        base_model: What the client says it samples from.
    """

    def __init__(self, engine: Engine, base_model: str = "tiny") -> None:
        super().__init__(self._generate, base_model)
        self._engine = engine

    def _generate(self, request: dict[str, Any]) -> tinker.SampleResponse:
        params: tinker.SamplingParams = request["params"]
        given: list[Any] = [params.stop] if isinstance(params.stop, str) else list(params.stop or ())
        k = request["topk_sample_logprobs"]
        k_prompt = request["topk_prompt_logprobs"]
        made = self._engine.generate(
            request["tokens"],
            SamplingParams(
                temperature=params.temperature,
                max_tokens=params.max_tokens,
                top_p=params.top_p,
                top_k=params.top_k,
                stop=[stop for stop in given if isinstance(stop, str)],
                logprobs=k,
                prompt_logprobs=k_prompt if request["include_prompt_logprobs"] else None,
                seed=params.seed,
            ),
            [stop for stop in given if isinstance(stop, int)],
        )
        prompt = [np.nan, *(entry[0].logprob for entry in (made.prompt or [])[1:])]
        return tinker.SampleResponse(
            sequences=[
                tinker.SampledSequence(
                    stop_reason="stop" if made.finish_reason == "stop" else "length",
                    sequence_id="engine:0",
                    tokens_np=np.array(made.tokens, np.int32),
                    logprobs_np=np.array(made.logprobs, np.float32),
                    topk_logprobs_np=_topk(made.top or [], k) if k else None,
                )
            ],
            prompt_logprobs_np=np.array(prompt, np.float32) if made.prompt else None,
            topk_prompt_logprobs_np=_topk(made.prompt, k_prompt) if made.prompt and k_prompt else None,
        )

    def __reduce__(self) -> tuple[Any, Any]:
        return (type(self), (self._engine, self._name))


def _topk(rows: Sequence[Sequence[Candidate]], k: int) -> TopkLogprobs:
    ids = np.zeros((len(rows), k), np.int32)
    values = np.full((len(rows), k), -99999.0, np.float32)
    for i, row in enumerate(rows):
        for j, one in enumerate(sorted(row, key=lambda one: -one.logprob)[:k]):
            ids[i, j], values[i, j] = one.token, one.logprob
    return TopkLogprobs(ids, values)


def sequence(
    tokens: Sequence[int],
    logprobs: Sequence[float] | None = None,
    stop_reason: Any = "length",
    top: Sequence[Sequence[tuple[int, float]] | None] | None = None,
) -> tinker.SampledSequence:
    """One sequence in the SDK's type; log-probabilities of -1 each unless given."""
    return tinker.SampledSequence(
        stop_reason=stop_reason,
        sequence_id="7:0",
        tokens_np=np.array(tokens, np.int32),
        logprobs_np=np.array([-1.0] * len(tokens) if logprobs is None else logprobs, np.float32),
        _topk_logprobs_list=None if top is None else [None if row is None else list(row) for row in top],
    )
