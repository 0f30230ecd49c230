"""The critic: from checkpoint contexts to predicted remaining returns."""

from __future__ import annotations

import asyncio
import inspect
import math
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from focus_critic.transcript import transcript
from focus_critic.values import as_float, as_floats, check_texts, check_timeout
from focus_types import AnyRollout, InvalidRequestError

__all__ = ["Critic", "PredictFn"]

type PredictFn = Callable[[Sequence[str]], Sequence[float] | Awaitable[Sequence[float]]]
"""A batch prediction function: contexts in, one predicted return per context out, synchronously or as an awaitable."""


class Critic(ABC):
    """Predicts the remaining return from each checkpoint context.

    Subclass it and define ``predict``, or wrap a function with ``from_fn``. Whoever needs predictions calls
    ``focus_critic.score``, which applies ``timeout`` and checks what comes back; ``predict`` does neither.

    How a rollout becomes text, in order of precedence: an overridden ``context``, the instance's ``render``,
    the transcript with role labels.
    """

    timeout: float | None = None
    """Seconds that one prediction batch may take when it is scored; ``None`` for no limit."""
    render: Callable[[AnyRollout], str] | None = None
    """Turns a rollout into the input text; the factories set it on the instance from ``context=``."""

    @abstractmethod
    async def predict(self, contexts: Sequence[str]) -> Sequence[float]:
        """Predict the remaining returns of a batch.

        Args:
            contexts: Input texts, as ``context`` writes them.

        Returns:
            One predicted remaining return per context, in order.
        """

    def context(self, rollout: AnyRollout) -> str:
        """Render a checkpoint as the critic's input text.

        The same text is saved as the context of the critic's training record.

        Args:
            rollout: Anything with ``messages``, OpenAI-shaped.

        Returns:
            What ``render`` writes if it is set, else the transcript.

        Raises:
            InvalidRequestError: The transcript cannot write a message as text.
        """
        if self.render is not None:
            return self.render(rollout)
        return transcript(rollout.messages)

    async def aclose(self) -> None:  # noqa: B027 - a hook, most critics own nothing
        """Release resources the critic owns. The default does nothing."""

    @staticmethod
    def constant(
        value: float, *, context: Callable[[AnyRollout], str] | None = None, timeout: float | None = None
    ) -> Critic:
        """A critic that predicts ``value`` everywhere: the starting point before a value model is trained.

        Args:
            value: A finite number.
            context: Turns a rollout into the input text instead of the transcript.
            timeout: Seconds that one prediction batch may take.

        Raises:
            InvalidRequestError: ``value`` is no finite number, or ``timeout`` no number of seconds.
        """
        return _ConstantCritic(value, context, timeout)

    @staticmethod
    def from_fn(
        fn: PredictFn, *, context: Callable[[AnyRollout], str] | None = None, timeout: float | None = None
    ) -> Critic:
        """Wrap a function from a batch of contexts to a batch of predictions.

        An asynchronous function runs in the event loop. A synchronous one runs in a worker thread, so that a
        slow model does not stop the loop; batches that are scored at the same time call it from several
        threads, and after a timeout its call still runs to its end.

        Args:
            fn: Takes the contexts, returns one number per context: a list, a numpy array or a torch tensor of
                shape ``(len(contexts),)``.
            context: Turns a rollout into the input text instead of the transcript.
            timeout: Seconds that one prediction batch may take.

        Raises:
            InvalidRequestError: ``fn`` is not callable, or ``timeout`` no number of seconds.
        """
        return _FunctionCritic(fn, context, timeout)


class _ConstantCritic(Critic):
    def __init__(self, value: Any, render: Callable[[AnyRollout], str] | None, timeout: float | None) -> None:
        number = as_float(value)
        if number is None or isinstance(value, bool) or not math.isfinite(number):
            raise InvalidRequestError(f"value must be a finite number, got {value!r}")
        check_timeout("timeout", timeout)
        self.value = number
        self.render = render
        self.timeout = timeout

    async def predict(self, contexts: Sequence[str]) -> list[float]:
        return [self.value] * len(check_texts(contexts))


class _FunctionCritic(Critic):
    def __init__(self, fn: PredictFn, render: Callable[[AnyRollout], str] | None, timeout: float | None) -> None:
        if not callable(fn):
            raise InvalidRequestError(f"fn must be a function of a batch of contexts, got {type(fn).__name__}")
        check_timeout("timeout", timeout)
        self.fn = fn
        self.render = render
        self.timeout = timeout

    async def predict(self, contexts: Sequence[str]) -> list[float]:
        texts = check_texts(contexts)
        if _is_async(self.fn):
            predicted: Any = self.fn(texts)
        else:
            predicted = await asyncio.to_thread(_call, self.fn, texts)
        if inspect.isawaitable(predicted):
            predicted = await predicted
        return as_floats(predicted, len(texts))


def _call(fn: PredictFn, contexts: list[str]) -> Any:
    try:
        return fn(contexts)
    except StopIteration as error:
        # A future cannot hold it: whoever waits for the thread would wait for ever.
        raise RuntimeError("the function let a StopIteration out") from error


def _is_async(fn: Any) -> bool:
    return inspect.iscoroutinefunction(fn) or inspect.iscoroutinefunction(type(fn).__call__)
