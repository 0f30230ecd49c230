"""Scoring: what a search calls, and the one way in which it can fail."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from focus_critic.critic import Critic
from focus_critic.values import as_floats, check_texts, check_timeout
from focus_types import ScoringError

__all__ = ["score"]


async def score(critic: Critic, contexts: Sequence[str]) -> list[float]:
    """Predict a batch within the critic's timeout.

    Args:
        critic: The critic; its ``timeout`` bounds this one batch.
        contexts: Input texts, as ``critic.context`` writes them. An empty batch is answered without a call.

    Returns:
        One finite float per context, in order.

    Raises:
        ScoringError: For every way to fail: a bad context, the timeout, an error of the critic (its cause), a
            wrong number of predictions, one that is no finite number. ``index`` is the context at fault where
            there is one, ``values`` the good values where some were obtained. Cancelling the task that scores is
            no failure and passes through.
    """
    deadline = asyncio.timeout(None)
    try:
        check_timeout("timeout", critic.timeout)
        texts = check_texts(contexts)
        if not texts:
            return []
        if critic.timeout is not None:
            deadline = asyncio.timeout(critic.timeout)
        async with deadline:
            predicted = await critic.predict(texts)
        return as_floats(predicted, len(texts))
    except ScoringError:
        raise
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        # Nobody cancelled this task, and a bare CancelledError would say so to whoever waits for it.
        raise ScoringError("the critic cancelled its own prediction") from error
    except Exception as error:
        if deadline.expired():
            message = f"the critic gave no prediction within its timeout of {critic.timeout} s"
        else:
            message = f"the critic failed: {type(error).__name__}: {error}"
        raise ScoringError(message) from error
