"""The critic's own rules: which text, which functions, which predictions."""

from __future__ import annotations

import asyncio
import functools
import pickle
import threading
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from focus_critic import Critic
from focus_types import AnyRollout, InvalidRequestError, Message, ScoringError

__all__: list[str] = []


@dataclass
class Rollout:
    messages: Sequence[Message]


HI = Rollout([{"role": "user", "content": "Hi"}])


class Halves(Critic):
    async def predict(self, contexts: Sequence[str]) -> list[float]:
        return [0.5] * len(contexts)


class Shouting(Halves):
    def context(self, rollout: AnyRollout) -> str:
        return str(rollout.messages[-1]["content"]).upper() + "!"


class Rendering(Halves):
    def render(self, rollout: AnyRollout) -> str:
        return "rendered"


def first_message(rollout: AnyRollout) -> str:
    return f"<{rollout.messages[0]['content']}>"


def test_the_default_context_is_the_transcript() -> None:
    assert Halves().context(HI) == "[user]\nHi"
    assert Critic.constant(0).context(HI) == "[user]\nHi"
    assert Critic.from_fn(lambda contexts: [0.0 for _ in contexts]).context(HI) == "[user]\nHi"


def test_context_of_the_factories_is_render() -> None:
    constant = Critic.constant(0.5, context=first_message)
    assert constant.render is first_message
    assert constant.context(HI) == "<Hi>"
    assert Critic.from_fn(lambda contexts: [0.0 for _ in contexts], context=first_message).context(HI) == "<Hi>"


def test_render_of_the_class_and_of_the_instance() -> None:
    critic = Halves()
    critic.render = first_message
    assert critic.context(HI) == "<Hi>"
    assert Halves().context(HI) == "[user]\nHi"
    assert Rendering().context(HI) == "rendered"


def test_an_overridden_context_beats_render() -> None:
    critic = Shouting()
    critic.render = first_message
    assert critic.context(HI) == "HI!"


def test_predict_must_be_defined() -> None:
    with pytest.raises(TypeError, match="abstract"):
        Critic()  # type: ignore[abstract]


def test_timeouts() -> None:
    assert Halves().timeout is None
    assert Critic.constant(0.0, timeout=3).timeout == 3
    assert Critic.from_fn(lambda contexts: [0.0 for _ in contexts], timeout=0.5).timeout == 0.5


@pytest.mark.parametrize("timeout", [0, -1.0, float("inf"), float("nan"), "3", True])
def test_a_timeout_that_cannot_be_kept_is_refused(timeout: Any) -> None:
    with pytest.raises(InvalidRequestError, match="timeout must be None or a finite number of seconds > 0"):
        Critic.constant(0.0, timeout=timeout)
    with pytest.raises(InvalidRequestError, match="timeout"):
        Critic.from_fn(lambda contexts: [0.0 for _ in contexts], timeout=timeout)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf"), "0.5", None, True, 10**400, 1j, [0.5]])
def test_a_constant_is_a_finite_number(value: Any) -> None:
    with pytest.raises(InvalidRequestError, match="value must be a finite number"):
        Critic.constant(value)


@pytest.mark.parametrize("value", [0.5, np.float32(0.5), np.float64(0.5), Decimal("0.5"), Fraction(1, 2)])
def test_a_constant_of_any_library(value: Any) -> None:
    assert asyncio.run(Critic.constant(value).predict(["a"])) == [0.5]


def test_from_fn_takes_a_function() -> None:
    not_callable: Any = [0.5]
    with pytest.raises(InvalidRequestError, match="fn must be a function"):
        Critic.from_fn(not_callable)


@pytest.mark.anyio
async def test_constant_predicts_everywhere() -> None:
    critic = Critic.constant(1)
    values = await critic.predict(["a", "b", "c"])
    assert values == [1.0, 1.0, 1.0]
    assert await critic.predict([]) == []
    await critic.aclose()


@pytest.mark.anyio
async def test_a_synchronous_function_runs_in_another_thread() -> None:
    threads: list[int] = []

    def predict(contexts: Sequence[str]) -> list[float]:
        threads.append(threading.get_ident())
        return [float(len(context)) for context in contexts]

    assert await Critic.from_fn(predict).predict(["a", "bcd"]) == [1.0, 3.0]
    assert threads != [threading.get_ident()]


@pytest.mark.anyio
async def test_the_loop_goes_on_while_a_synchronous_function_blocks() -> None:
    released = threading.Event()

    def predict(contexts: Sequence[str]) -> list[float]:
        assert released.wait(10)
        return [1.0 for _ in contexts]

    async def release() -> None:
        released.set()

    values, _ = await asyncio.gather(Critic.from_fn(predict).predict(["a"]), release())
    assert values == [1.0]


async def lengths(contexts: Sequence[str]) -> list[float]:
    asyncio.get_running_loop()
    return [float(len(context)) for context in contexts]


async def scaled(factor: float, contexts: Sequence[str]) -> list[float]:
    return [factor * len(context) for context in contexts]


class Model:
    async def __call__(self, contexts: Sequence[str]) -> list[float]:
        return await lengths(contexts)

    async def method(self, contexts: Sequence[str]) -> list[float]:
        return await lengths(contexts)


def returns_a_coroutine(contexts: Sequence[str]) -> Awaitable[Sequence[float]]:
    return lengths(contexts)


@pytest.mark.anyio
@pytest.mark.parametrize(
    "fn",
    [lengths, functools.partial(scaled, 1.0), Model(), Model().method, returns_a_coroutine],
    ids=["function", "partial", "callable object", "method", "plain function that returns an awaitable"],
)
async def test_asynchronous_functions_of_every_shape(
    fn: Callable[[Sequence[str]], Awaitable[Sequence[float]]],
) -> None:
    assert await Critic.from_fn(fn).predict(["a", "bcd"]) == [1.0, 3.0]


class Tensor:
    """Like a torch tensor: no Sequence, iterates over scalars of its own type, ``tolist`` gives floats."""

    def __init__(self, values: Any) -> None:
        self.values = values

    def __len__(self) -> int:
        return len(self.values)

    def tolist(self) -> Any:
        return self.values


class Scalar:
    def __init__(self, value: float) -> None:
        self.value = value

    def __float__(self) -> float:
        return self.value


@pytest.mark.anyio
@pytest.mark.parametrize(
    "predicted",
    [
        [0.5, -1.0],
        (0.5, -1.0),
        np.array([0.5, -1.0]),
        np.array([0.5, -1.0], dtype=np.float16),
        [np.float32(0.5), np.float64(-1.0)],
        Tensor([0.5, -1.0]),
        [Scalar(0.5), Scalar(-1.0)],
        [Decimal("0.5"), Fraction(-1)],
    ],
    ids=["list", "tuple", "array", "half array", "numpy scalars", "tensor", "tensor scalars", "exact numbers"],
)
async def test_numbers_of_every_library(predicted: Any) -> None:
    values = await Critic.from_fn(lambda contexts: predicted).predict(["a", "b"])
    assert values == [0.5, -1.0]
    assert [type(value) for value in values] == [float, float]


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("predicted", "index", "complaint"),
    [
        ([0.5], None, "got 1 for 2 contexts"),
        ([0.5, 0.5, 0.5], None, "got 3 for 2 contexts"),
        (0.5, None, "a sequence of 2 numbers, got float"),
        (np.float64(0.5), None, "a sequence of 2 numbers, got float64"),
        (None, None, "a sequence of 2 numbers, got NoneType"),
        ({0: 0.5, 1: 0.5}, None, "a sequence of 2 numbers, got dict"),
        ({0.5, 0.6}, None, "a sequence of 2 numbers, got set"),
        ("ab", None, "a sequence of 2 numbers, got str"),
        (["0.5", 0.5], 0, "context 0 is no number but str"),
        ([0.5, None], 1, "context 1 is no number but NoneType"),
        (np.array([[0.5], [0.6]]), 0, "context 0 is no number but list; .* flat sequence"),
        ([0.5, 1j], 1, "context 1 is no number but complex"),
        ([0.5, np.array([0.5, 0.6])], 1, "context 1 is no number but ndarray"),
        ([0.5, 10**400], 1, "context 1 is no number but int"),
        ([0.5, Decimal("sNaN")], 1, "context 1 is no number but Decimal"),
        ((0.5 for _ in range(2)), None, "a sequence of 2 numbers, got generator"),
        ([0.5, float("nan")], 1, "context 1 is nan"),
        ([float("inf"), float("nan")], 0, "context 0 is inf, and 1 more"),
    ],
)
async def test_anything_but_one_finite_number_each_is_refused(
    predicted: Any, index: int | None, complaint: str
) -> None:
    with pytest.raises(ScoringError, match=complaint) as caught:
        await Critic.from_fn(lambda contexts: predicted).predict(["a", "b"])
    assert caught.value.index == index


@pytest.mark.anyio
async def test_one_text_is_not_a_batch() -> None:
    with pytest.raises(InvalidRequestError, match="got one text: wrap it in a list"):
        await Critic.constant(0.0).predict("abc")


def mean_length(contexts: Sequence[str]) -> list[float]:
    return [float(len(context)) for context in contexts]


@pytest.mark.anyio
async def test_critics_pickle() -> None:
    constant = pickle.loads(pickle.dumps(Critic.constant(0.25, timeout=2.0, context=first_message)))
    assert (await constant.predict(["a"]), constant.timeout, constant.context(HI)) == ([0.25], 2.0, "<Hi>")
    function = pickle.loads(pickle.dumps(Critic.from_fn(mean_length)))
    assert await function.predict(["abc"]) == [3.0]
