"""One small model with known probabilities, behind a Tinker client."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from focus_format import PolicyFormat
from focus_testing import ByteTokenizer, Engine, ScriptModel
from focus_tinker import TinkerPolicy
from focus_types import SamplingParams
from support.tinker_client import EngineClient

__all__: list[str] = []

type MakePolicy = Callable[..., TinkerPolicy]


@pytest.fixture
def hermes() -> PolicyFormat[Any]:
    return PolicyFormat.resolve("tiny", tokenizer=ByteTokenizer(), profile="hermes")


@pytest.fixture
def engine() -> Engine:
    tokenizer = ByteTokenizer()
    rules: dict[str, str | dict[str, float]] = {
        "coin:": {"H<|im_end|>": 0.75, "T<|im_end|>": 0.25},
        "count:": "1 2 3 4<|im_end|>",
        "Hello<|im_end|>\n<|im_start|>assistant\n": {"Hi<|im_end|>": 0.5, "Oh<|im_end|>": 0.3, "No<|im_end|>": 0.2},
    }
    return Engine(ScriptModel.texts(rules, tokenizer), tokenizer, logprob_mode="raw")


@pytest.fixture
def make(engine: Engine, hermes: PolicyFormat[Any]) -> MakePolicy:
    def policy(client: Any = None, **given: Any) -> TinkerPolicy:
        defaults = SamplingParams(temperature=1.0, logprobs=0, seed=0)
        arguments: dict[str, Any] = {"model": "tiny", "format": hermes, "default_params": defaults, **given}
        return TinkerPolicy(client or EngineClient(engine), **arguments)

    return policy
