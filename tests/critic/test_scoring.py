"""What a search calls: one list of finite floats, or one ScoringError."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from focus_critic import Critic, score
from focus_types import RequestTimeoutError, ScoringError, ServerUnavailableError

__all__: list[str] = []

pytestmark = pytest.mark.anyio


class Scripted(Critic):
    """Returns or raises what it was told, and counts its calls."""

    def __init__(self, outcome: Any, timeout: float | None = None) -> None:
        self.outcome = outcome
        self.timeout = timeout
        self.calls: list[list[str]] = []

    async def predict(self, contexts: Sequence[str]) -> Any:
        self.calls.append(list(contexts))
        if isinstance(self.outcome, BaseException):
            raise self.outcome
        return self.outcome


async def test_one_float_per_context_in_order() -> None:
    critic = Critic.from_fn(lambda contexts: [float(context) for context in contexts])
    assert await score(critic, ["3", "1", "2"]) == [3.0, 1.0, 2.0]


async def test_an_empty_batch_is_no_call() -> None:
    critic = Scripted([])
    assert await score(critic, []) == []
    assert critic.calls == []


async def test_predictions_of_a_subclass_are_checked_too() -> None:
    with pytest.raises(ScoringError, match="got 1 for 2 contexts"):
        await score(Scripted([0.5]), ["a", "b"])
    with pytest.raises(ScoringError) as caught:
        await score(Scripted([0.5, float("nan"), 1]), ["a", "b", "c"])
    assert caught.value.index == 1
    assert caught.value.values == (0.5, None, 1.0)


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("out of memory"),
        ServerUnavailableError("gone", status=503),
        RequestTimeoutError("60 s"),
        TimeoutError("x"),
    ],
)
async def test_every_error_of_the_critic_is_the_cause_of_one(error: Exception) -> None:
    with pytest.raises(ScoringError, match=f"the critic failed: {type(error).__name__}: {error}") as caught:
        await score(Scripted(error, timeout=30.0), ["a"])
    assert caught.value.__cause__ is error
    assert caught.value.index is None


async def test_a_scoring_error_passes_as_it_is() -> None:
    error = ScoringError("context 1 is too long", index=1, values=[0.5, None])
    with pytest.raises(ScoringError) as caught:
        await score(Scripted(error), ["a", "b"])
    assert caught.value is error


async def test_an_error_in_the_worker_thread() -> None:
    def predict(contexts: Sequence[str]) -> list[float]:
        raise ZeroDivisionError("no contexts of this kind")

    with pytest.raises(ScoringError, match="ZeroDivisionError") as caught:
        await score(Critic.from_fn(predict), ["a"])
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


async def test_stop_iteration_in_the_worker_thread_does_not_hang() -> None:
    def predict(contexts: Sequence[str]) -> list[float]:
        return [next(iter(()))]

    with pytest.raises(ScoringError, match="the critic failed"):
        await score(Critic.from_fn(predict), ["a"])


@pytest.mark.parametrize(
    ("contexts", "index", "complaint"),
    [
        ("one text", None, "got one text"),
        (None, None, "a sequence of texts, got NoneType"),
        ([b"bytes"], 0, "context 0 must be text, got bytes"),
        (["a", None], 1, "context 1 must be text, got NoneType"),
        ([["a"]], 0, "context 0 must be text, got list"),
    ],
)
async def test_contexts_that_are_no_texts(contexts: Any, index: int | None, complaint: str) -> None:
    critic = Scripted([0.5])
    with pytest.raises(ScoringError, match=complaint) as caught:
        await score(critic, contexts)
    assert caught.value.index == index
    assert critic.calls == []


@pytest.mark.parametrize("timeout", [0, -1.0, float("nan"), float("inf"), "3", True])
async def test_a_timeout_that_cannot_be_kept_is_a_failure(timeout: Any) -> None:
    critic = Scripted([0.5])
    critic.timeout = timeout
    with pytest.raises(ScoringError, match="timeout must be None or a finite number of seconds > 0"):
        await score(critic, ["a"])
    assert critic.calls == []


async def test_what_is_no_critic_cannot_score() -> None:
    no_critic: Any = [0.5]
    with pytest.raises(ScoringError, match="AttributeError"):
        await score(no_critic, ["a"])


async def test_a_critic_of_critics() -> None:
    async def slow(contexts: Sequence[str]) -> list[float]:
        await asyncio.sleep(60)
        return []

    async def outer(contexts: Sequence[str]) -> list[float]:
        return await score(inner, contexts)

    for first, second in ((0.05, 30.0), (30.0, 0.05)):
        inner = Critic.from_fn(slow, timeout=first)
        with pytest.raises(ScoringError, match=r"no prediction within its timeout of 0\.05 s"):
            await score(Critic.from_fn(outer, timeout=second), ["a"])


async def test_a_cancellation_that_nobody_asked_for_is_a_failure() -> None:
    async def predict(contexts: Sequence[str]) -> list[float]:
        raise asyncio.CancelledError

    with pytest.raises(ScoringError, match="cancelled its own prediction") as caught:
        await score(Critic.from_fn(predict, timeout=30.0), ["a"])
    assert isinstance(caught.value.__cause__, asyncio.CancelledError)


def slow_once(blocker: threading.Event) -> Callable[[Sequence[str]], list[float]]:
    def predict(contexts: Sequence[str]) -> list[float]:
        if "slow" in contexts:
            blocker.wait(10)
        return [1.0 for _ in contexts]

    return predict


async def test_a_slow_batch_is_one_failure_and_the_next_call_works() -> None:
    blocker = threading.Event()
    critic = Critic.from_fn(slow_once(blocker), timeout=0.05)
    try:
        with pytest.raises(ScoringError, match=r"no prediction within its timeout of 0\.05 s") as caught:
            await score(critic, ["slow"] * 1000)
        assert isinstance(caught.value.__cause__, TimeoutError)
        critic.timeout = 10.0
        assert await score(critic, ["quick", "quick"]) == [1.0, 1.0]
    finally:
        blocker.set()


async def test_a_slow_asynchronous_critic_is_cancelled() -> None:
    cancelled = asyncio.Event()

    async def predict(contexts: Sequence[str]) -> list[float]:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cancelled.set()
            raise
        return [0.0 for _ in contexts]

    with pytest.raises(ScoringError, match="timeout"):
        await score(Critic.from_fn(predict, timeout=0.05), ["a"])
    assert cancelled.is_set()


async def test_predict_itself_knows_no_timeout() -> None:
    async def predict(contexts: Sequence[str]) -> list[float]:
        await asyncio.sleep(0.05)
        return [0.0 for _ in contexts]

    assert await Critic.from_fn(predict, timeout=0.001).predict(["a"]) == [0.0]


async def test_cancellation_passes_through() -> None:
    started = asyncio.Event()

    async def predict(contexts: Sequence[str]) -> list[float]:
        started.set()
        await asyncio.sleep(60)
        return []

    task = asyncio.create_task(score(Critic.from_fn(predict, timeout=30.0), ["a"]))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
