"""How contexts become requests."""

from __future__ import annotations

import asyncio
import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from focus_critic.batches import evaluate, split
from focus_types import BackendError, ScoringError, ServerUnavailableError

__all__: list[str] = []


@settings(deadline=None, derandomize=True)
@given(st.lists(st.integers(0, 30)), st.integers(1, 60))
def test_batches_cover_everything_once_in_order_and_keep_the_limit(sizes: list[int], limit: int) -> None:
    batches = list(split(sizes, limit))
    assert [at for batch in batches for at in batch] == list(range(len(sizes)))
    assert all(len(batch) > 0 for batch in batches)
    assert all(len(batch) == 1 or sum(sizes[at] for at in batch) <= limit for batch in batches)
    # No two neighbours fit into one request.
    assert all(
        sum(sizes[at] for at in batch) + sizes[after.start] > limit for batch, after in itertools.pairwise(batches)
    )


@settings(deadline=None, derandomize=True)
@given(st.integers(1, 60), st.sets(st.integers(0, 59), max_size=7), st.integers(1, 20), st.integers(1, 5))
def test_every_bad_context_is_found_and_every_other_value_kept(
    count: int, bad: set[int], limit: int, in_flight: int
) -> None:
    bad = {at for at in bad if at < count}

    async def fetch(batch: range) -> list[float]:
        await asyncio.sleep(0)
        if bad & set(batch):
            raise BackendError("refused", status=400)
        return [float(at) for at in batch]

    evaluation = evaluate([1] * count, fetch, limit=limit, in_flight=in_flight)
    if not bad:
        assert asyncio.run(evaluation) == [float(at) for at in range(count)]
        return
    with pytest.raises(ScoringError) as caught:
        asyncio.run(evaluation)
    assert caught.value.index == min(bad)
    assert caught.value.values == tuple(None if at in bad else float(at) for at in range(count))
    assert isinstance(caught.value.__cause__, BackendError)


@pytest.mark.anyio
async def test_any_other_error_ends_the_evaluation() -> None:
    calls: list[range] = []

    async def fetch(batch: range) -> list[float]:
        calls.append(batch)
        await asyncio.sleep(0)
        if batch.start == 1:
            raise ServerUnavailableError("gone", status=500)
        await asyncio.sleep(60)
        return [0.0]

    before = asyncio.all_tasks()
    with pytest.raises(ServerUnavailableError, match="gone"):
        await evaluate([1] * 10, fetch, limit=1, in_flight=2)
    assert calls == [range(0, 1), range(1, 2)]
    assert asyncio.all_tasks() == before
