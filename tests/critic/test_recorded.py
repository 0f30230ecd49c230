"""Every recorded answer of a real pooling server becomes the values or the error that it should."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from focus_critic import VLLMCritic
from focus_types import BackendError, ContextLengthError, ScoringError
from support.value_model import FakeClient, Reply

__all__: list[str] = []

# The server was started for one value per context.
POOLED: dict[str, list[float]] = {
    "pooling_bad_key": [0.14185106754302979],
    "pooling_base64": [-1.7999999523162842],
    "pooling_classify_noact": [-1.7999999523162842],
    "pooling_default": [0.14185106754302979],
    "pooling_ids": [-1.7999999523162842],
    "pooling_many": [-1.7999999523162842, -2.4000000953674316, -1.7999999523162842],
    "pooling_messages": [-2.200000047683716],
    "pooling_noact": [-1.7999999523162842],
    "pooling_old_activation_flag": [0.14185106754302979],
    "pooling_old_softmax_flag": [0.14185106754302979],
    "pooling_task_classify": [0.14185106754302979],
    "pooling_truncate_ids_default": [-1.100000023841858],
    "pooling_truncate_ids_right": [-1.100000023841858],
    "pooling_truncate_left": [-1.100000023841858],
    "pooling_truncate_minus1": [-1.899999976158142],
    "pooling_truncate_minus1_left": [-1.7999999523162842],
    "pooling_truncate_right": [-1.100000023841858],
    "pooling_truncate_side_left": [-0.10000000149011612],
}

# One value per token; here the last of each context.
PER_TOKEN: dict[str, list[float]] = {
    "nan_pooling_ok": [-0.20000000298023224],
    "tok_pooling_base64": [-1.7999999523162842],
    "tok_pooling_default": [0.14185106754302979],
    "tok_pooling_ids_many": [-1.7999999523162842, -3.0],
    "tok_pooling_many": [-1.7999999523162842, -2.4000000953674316, -1.7999999523162842],
    "tok_pooling_noact": [-1.7999999523162842],
    "tok_pooling_one_token": [-2.4000000953674316],
    "tok_pooling_prefix_cached_again": [-1.7999999523162842],
    "tok_pooling_truncate_left": [-0.10000000149011612],
}

# Status 400 speaks of the context, so it becomes a ScoringError with this cause and this in its text.
REFUSED: dict[str, tuple[type[BackendError], str]] = {
    "nan_pooling_nan": (BackendError, "Out of range float values are not JSON compliant"),
    "nan_pooling_nan_last_activation": (BackendError, "Out of range float values"),
    "pooling_empty_in_list": (BackendError, "The decoder prompt cannot be empty"),
    "pooling_old_normalize_flag": (BackendError, "Parameter `normalize` was removed"),
    "pooling_one_too_long": (ContextLengthError, "maximum context length is 4096 tokens"),
    "pooling_task_embed": (BackendError, "Unsupported task: 'embed'"),
    "pooling_task_encode": (BackendError, "`encode` task was removed"),
    "pooling_task_plugin": (BackendError, "No IOProcessor plugin installed"),
    "pooling_task_reward": (BackendError, "validation errors"),
    "pooling_task_score": (BackendError, "`score` task was removed"),
    "pooling_task_token_classify": (BackendError, "--pooler-config.task token_classify"),
    "pooling_task_token_embed": (BackendError, "Unsupported task: 'token_embed'"),
    "pooling_token_classify_noact": (BackendError, "--pooler-config.task token_classify"),
    "pooling_too_long": (ContextLengthError, "maximum context length is 4096 tokens"),
    "pooling_truncate_over_max": (BackendError, "greater than max_model_len"),
    "tok_pooling_classify": (BackendError, "--pooler-config.task classify"),
    "tok_pooling_empty_string": (BackendError, "The decoder prompt cannot be empty"),
}

# Any other status passes as it is.
FAILED: dict[str, str] = {
    "pooling_err_model": "404: The model `nope` does not exist.",
    "pooling_v1": "404: Not Found",
    "tok_classify": "501: The model does not support Classification API",
}


def recorded(shared: Path, name: str) -> tuple[list[str], Reply]:
    """As many contexts as the answer has items, and the answer."""
    record = json.loads((shared / "wire" / "vllm" / f"{name}.json").read_text())
    answer: Any = record["response"]
    count = len(answer["data"]) if "data" in answer else 1
    return ["context", "b", "c"][:count], Reply(answer, record["status"])


def critic_for(reply: Reply, *, pooled: bool, reduce: str = "last") -> VLLMCritic:
    client = FakeClient(pooled=pooled, answers={"context": reply})
    return VLLMCritic(base_url="http://server", model="focus-critic", reduce=reduce, client=client)


def test_every_recording_has_its_expectation(shared: Path) -> None:
    patterns = ("pooling_*.json", "tok_*.json", "nan_pooling_*.json")
    names = {path.stem for pattern in patterns for path in (shared / "wire" / "vllm").glob(pattern)}
    assert names == {*POOLED, *PER_TOKEN, *REFUSED, *FAILED}


@pytest.mark.anyio
@pytest.mark.parametrize("name", [*POOLED, *PER_TOKEN])
async def test_values(shared: Path, name: str) -> None:
    contexts, reply = recorded(shared, name)
    critic = critic_for(reply, pooled=name in POOLED)
    assert await critic.predict(contexts) == (POOLED | PER_TOKEN)[name]


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("reduce", "values"),
    [
        ("last", [-1.8, -2.4, -1.8]),
        ("first", [-0.2, -2.4, -0.7]),
        ("sum", [5.0, -2.4, -5.5]),
        ("mean", [1.0, -2.4, -5.5 / 3]),
    ],
)
async def test_every_reduction(shared: Path, reduce: str, values: list[float]) -> None:
    contexts, reply = recorded(shared, "tok_pooling_many")
    assert await critic_for(reply, pooled=False, reduce=reduce).predict(contexts) == pytest.approx(values, abs=1e-6)


@pytest.mark.anyio
@pytest.mark.parametrize("name", REFUSED)
async def test_refusals(shared: Path, name: str) -> None:
    contexts, reply = recorded(shared, name)
    kind, words = REFUSED[name]
    with pytest.raises(ScoringError) as caught:
        await critic_for(reply, pooled=not name.startswith("tok_")).predict(contexts)
    assert caught.value.index == 0
    assert words in str(caught.value)
    assert type(caught.value.__cause__) is kind


@pytest.mark.anyio
@pytest.mark.parametrize("name", FAILED)
async def test_failures(shared: Path, name: str) -> None:
    contexts, reply = recorded(shared, name)
    with pytest.raises(BackendError) as caught:
        await critic_for(reply, pooled=True).predict(contexts)
    assert FAILED[name] in str(caught.value)


@pytest.mark.anyio
@pytest.mark.parametrize("name", ["classify", "classify_noact", "score"])
async def test_answers_of_other_endpoints_are_not_mistaken_for_values(shared: Path, name: str) -> None:
    contexts, reply = recorded(shared, name)
    with pytest.raises(BackendError, match="missing required field `data`"):
        await critic_for(reply, pooled=True).predict(contexts)
