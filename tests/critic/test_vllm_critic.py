"""VLLMCritic against a loopback server whose values are known exactly."""

from __future__ import annotations

import asyncio
import logging
import pickle
import tracemalloc
from collections.abc import Iterator
from typing import Any

import pytest

from focus_critic import Critic, VLLMCritic, score
from focus_testing import Fault, Server
from focus_types import ContextLengthError, InvalidRequestError, ProtocolError, ScoringError
from support.misbehaving import until
from support.value_model import CONTEXT, MODEL, FakeClient, known, pooling, token_ids

__all__: list[str] = []

pytestmark = pytest.mark.anyio

TEXTS = [
    "The agent solved it.",
    "x",
    "é",
    "日本語のテキスト",
    "🦜 sings <|im_end|> and goes on",
    "\n\n  blanks  \n",
    "<think>hm</think>",
    "long " * 200,
    "🦜" * 100,
]


@pytest.fixture(scope="module")
def token_server() -> Iterator[Server]:
    """Gives one value per token."""
    with pooling() as server:
        yield server


@pytest.fixture(scope="module")
def pooled_server() -> Iterator[Server]:
    """Gives one value per context."""
    with pooling("classify") as server:
        yield server


def critic_of(server: Server, **options: Any) -> VLLMCritic:
    return VLLMCritic(base_url=server.url, model=MODEL, **options)


@pytest.mark.parametrize("reduce", ["last", "first", "sum", "mean"])
async def test_every_reduction_of_texts_and_of_ids(token_server: Server, reduce: str) -> None:
    critic = critic_of(token_server, reduce=reduce)
    expected = [known(token_ids(text), reduce) for text in TEXTS]
    tolerances = [1e-6 * min(len(token_ids(text)), CONTEXT) if reduce == "sum" else 1e-5 for text in TEXTS]
    for values in (await critic.predict(TEXTS), await critic.predict_tokens([token_ids(text) for text in TEXTS])):
        assert [abs(a - b) < most for a, b, most in zip(values, expected, tolerances, strict=True)] == [True] * len(
            TEXTS
        )
        assert {type(value) for value in values} == {float}
    await critic.aclose()


async def test_what_is_sent(token_server: Server) -> None:
    token_server.requests.clear()
    critic = critic_of(token_server, api_key="sesame-1")
    assert critic.context is not None
    await critic.predict(["ab", "c"])
    await critic.aclose()
    probe, models, request = token_server.requests
    assert (probe.path, probe.body["input"]) == ("/pooling", [[0, 0], [0]])
    assert (models.method, models.path) == ("GET", "/v1/models")
    assert request.headers["authorization"] == "Bearer sesame-1"
    assert request.body == {
        "model": "focus",
        "input": ["ab", "c"],
        "use_activation": False,
        "encoding_format": "base64",
        "endianness": "little",
        "truncate_prompt_tokens": -1,
        "truncation_side": "left",
    }


async def test_a_server_that_pools_by_itself_gives_the_last_value(pooled_server: Server) -> None:
    critic = critic_of(pooled_server)
    assert await critic.predict(TEXTS) == pytest.approx([known(token_ids(text)) for text in TEXTS], abs=1e-6)
    await critic.aclose()


@pytest.mark.parametrize("reduce", ["first", "sum", "mean"])
async def test_a_server_that_pools_by_itself_has_no_other_reduction(pooled_server: Server, reduce: str) -> None:
    pooled_server.requests.clear()
    critic = critic_of(pooled_server, reduce=reduce)
    with pytest.raises(InvalidRequestError, match=f"reduce='{reduce}' needs one value per token.*token_classify"):
        await critic.predict(["secret context"])
    with pytest.raises(InvalidRequestError, match="token_classify"):
        await critic.predict_tokens([(1, 2)])
    assert "secret context" not in str([request.body for request in pooled_server.requests])
    with pytest.raises(ScoringError) as caught:
        await score(critic, ["a"])
    assert isinstance(caught.value.__cause__, InvalidRequestError)
    await critic.aclose()


@pytest.mark.parametrize("reduce", ["max", "", "LAST", None, ["last"]])
def test_an_unknown_reduction_is_refused_by_name(reduce: Any) -> None:
    with pytest.raises(InvalidRequestError, match="reduce must be one of 'last', 'first', 'sum', 'mean', got"):
        VLLMCritic(base_url="http://127.0.0.1:1", model=MODEL, reduce=reduce)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"http_timeout": 0}, "http_timeout must be None or a finite number"),
        ({"timeout": -1}, "timeout must be None or a finite number"),
        ({"base_url": "127.0.0.1:8001"}, "base_url '127.0.0.1:8001' is no http"),
        ({"client": object()}, "client must have `await post"),
    ],
)
def test_arguments_that_cannot_work(options: dict[str, Any], complaint: str) -> None:
    with pytest.raises(InvalidRequestError, match=complaint):
        VLLMCritic(**{"base_url": "http://127.0.0.1:1", "model": MODEL} | options)


async def test_a_reply_cut_inside_a_character_needs_its_ids(token_server: Server) -> None:
    critic = critic_of(token_server)
    whole = token_ids("a 🦜")
    cut = whole[:-2]
    assert await critic.predict_tokens([cut]) == pytest.approx([known(cut)], abs=1e-6)
    text = bytes(cut).decode(errors="replace")
    assert await critic.predict([text]) != pytest.approx([known(cut)], abs=1e-3)
    await critic.aclose()


async def test_the_values_of_every_checkpoint(token_server: Server) -> None:
    tokens = token_ids("A trajectory 🦜 of several steps.")
    critic = critic_of(token_server, reduce="mean")
    token_server.requests.clear()
    values = await critic.values_at(tokens, range(len(tokens)))
    assert values == pytest.approx([known(tokens[: p + 1]) for p in range(len(tokens))], abs=1e-6)
    assert await critic.values_at(tokens, [5, 0, 5]) == [values[5], values[0], values[5]]
    assert [request.path for request in token_server.requests].count("/pooling") == 3
    assert await critic.values_at(tokens, []) == []
    await critic.aclose()


@pytest.mark.parametrize(
    ("tokens", "positions", "complaint"),
    [
        ((1, 2), [2], "position 2 is outside of the 2 tokens"),
        ((1, 2), [0, -1], "position -1 is outside"),
        ((1, 2), [0.5], "positions must be integers, got 0.5"),
        ((1, 2), [True], "positions must be integers, got True"),
        ((), [0], "the prompt is empty"),
        ((1, -2), [0], "token 1 of 2 is -2"),
        ("text", [0], "got text"),
    ],
)
async def test_positions_and_tokens_that_cannot_be(
    token_server: Server, tokens: Any, positions: Any, complaint: str
) -> None:
    token_server.requests.clear()
    with pytest.raises(InvalidRequestError, match=complaint):
        await critic_of(token_server).values_at(tokens, positions)
    assert token_server.requests == []


async def test_a_trajectory_is_never_cut(token_server: Server) -> None:
    critic = critic_of(token_server)
    with pytest.raises(ContextLengthError):
        await critic.values_at([65] * (CONTEXT + 1), [0])
    await critic.aclose()


async def test_values_at_needs_one_value_per_token(pooled_server: Server) -> None:
    critic = critic_of(pooled_server)
    with pytest.raises(InvalidRequestError, match=r"values_at needs one value per token.*token_classify"):
        await critic.values_at((1, 2), [0])
    await critic.aclose()


@pytest.mark.parametrize(
    ("contexts", "index", "complaint"),
    [
        (["a", ""], 1, "context 1 is empty"),
        (["\ud83d lone surrogate", "b"], 0, "context 0 is no valid text"),
    ],
)
async def test_texts_that_cannot_be_scored(
    token_server: Server, contexts: list[str], index: int, complaint: str
) -> None:
    token_server.requests.clear()
    with pytest.raises(ScoringError, match=complaint) as caught:
        await critic_of(token_server).predict(contexts)
    assert caught.value.index == index
    assert token_server.requests == []


@pytest.mark.parametrize(
    ("contexts", "complaint"),
    [([(1,), ()], "context 1: the prompt is empty"), ([(1,), (2, True)], "context 1: token 1 of 2 is True")],
)
async def test_ids_that_cannot_be_scored(token_server: Server, contexts: Any, complaint: str) -> None:
    token_server.requests.clear()
    with pytest.raises(ScoringError, match=complaint) as caught:
        await critic_of(token_server).predict_tokens(contexts)
    assert caught.value.index == 1
    assert token_server.requests == []


async def test_an_empty_batch_is_no_request(token_server: Server) -> None:
    token_server.requests.clear()
    critic = critic_of(token_server)
    assert (await critic.predict([]), await critic.predict_tokens([]), await score(critic, [])) == ([], [], [])
    assert token_server.requests == []


async def test_batches_are_bounded_ordered_and_few_at_a_time() -> None:
    client = FakeClient()
    critic = VLLMCritic(base_url="http://server", model=MODEL, client=client)
    critic.batch_tokens, critic.in_flight = 100, 3
    contexts = [tuple(range(1, 2 + at % 90)) for at in range(500)]
    values = await critic.predict_tokens(contexts)
    assert values == pytest.approx([known(context) for context in contexts], abs=1e-6)
    batches = [request[1] for request in client.requests[1:]]
    assert [context for batch in batches for context in batch] == contexts
    assert max(sum(map(len, batch)) for batch in batches) <= 100
    assert client.most_running == 3


@pytest.mark.parametrize("in_flight", [0, -1])
async def test_no_request_at_a_time_is_refused(token_server: Server, in_flight: int) -> None:
    critic = critic_of(token_server)
    critic.in_flight = in_flight
    with pytest.raises(InvalidRequestError, match=f"in_flight must be at least 1, got {in_flight}"):
        await critic.predict(["a", "b"])
    await critic.aclose()


async def test_one_context_above_the_limit_travels_alone() -> None:
    client = FakeClient()
    critic = VLLMCritic(base_url="http://server", model=MODEL, client=client)
    critic.batch_tokens = 10
    await critic.predict_tokens([(1,), (2,) * 50, (3,)])
    assert [len(batch) for _, batch, _, _ in client.requests[1:]] == [1, 1, 1]


async def test_ten_thousand_contexts_need_little_memory() -> None:
    client = FakeClient(keep=False)
    critic = VLLMCritic(base_url="http://server", model=MODEL, reduce="mean", client=client)
    contexts = [f"{at:05d} " + "x" * (at % 100) for at in range(10_000)]
    tracemalloc.start()
    values = await critic.predict(contexts)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert values == pytest.approx([known(context.encode(), "mean") for context in contexts], abs=1e-5)
    # As many as 2,000 contexts need; the values of all tokens at once would be 18 MB as a list of floats.
    assert peak < 4_000_000


async def test_a_slow_batch_among_ten_thousand_contexts_is_one_failure() -> None:
    with pooling(fault=Fault("slow", calls={5}, seconds=30, path="/pooling")) as server:
        critic = critic_of(server, timeout=3.0)
        critic.batch_tokens = 1000
        contexts = [f"{at:05d}" for at in range(10_000)]
        with pytest.raises(ScoringError, match=r"within its timeout of 3\.0 s") as caught:
            await score(critic, contexts)
        assert isinstance(caught.value.__cause__, TimeoutError)
        server.set_fault()
        critic.timeout = 60.0
        expected = [known(context.encode()) for context in contexts]
        assert await score(critic, contexts) == pytest.approx(expected, abs=1e-6)
        await critic.aclose()


async def test_cancelling_closes_the_requests() -> None:
    with pooling(fault=Fault("slow", seconds=30, calls=range(1, 100), path="/pooling")) as server:
        critic = critic_of(server)
        task = asyncio.create_task(score(critic, ["a"]))
        assert await asyncio.to_thread(until, lambda: len(server.requests) == 3)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await asyncio.to_thread(until, lambda: server.requests[-1].disconnected)
        await critic.aclose()


async def test_a_refused_batch_is_taken_apart() -> None:
    with pooling() as server:
        critic = critic_of(server)
        contexts = [token_ids(f"context {at}") for at in range(100)]
        contexts[37] = contexts[80] = (65, 999_999)
        complaint = r"refused context 37 \(refused as well: 80\): .*999999 is out of vocabulary"
        with pytest.raises(ScoringError, match=complaint) as caught:
            await critic.predict_tokens(contexts)
        error = caught.value
        assert error.index == 37
        expected = [None if at in (37, 80) else known(tokens) for at, tokens in enumerate(contexts)]
        assert error.values == pytest.approx(expected, abs=1e-6)
        # The two requests before, the batch, and two halves on each of 7 levels for each of the two.
        assert len(server.requests) <= 3 + 2 * 14
        await critic.aclose()


@pytest.mark.parametrize(("reduce", "bad"), [("last", [2]), ("first", [0]), ("mean", [0, 1, 2])])
async def test_a_value_that_is_nan_fails_its_context_alone(reduce: str, bad: list[int]) -> None:
    with pooling(nan_tokens=frozenset({66})) as server:
        critic = critic_of(server, reduce=reduce)
        contexts = ["BAA", "ABA", "AAB", "AAA"]
        with pytest.raises(ScoringError, match=f"context {bad[0]} is nan") as caught:
            await critic.predict(contexts)
        assert caught.value.index == bad[0]
        assert caught.value.values == pytest.approx([None if at in bad else -2.9 for at in range(4)], abs=1e-6)
        assert [request.path for request in server.requests].count("/pooling") == 2
        await critic.aclose()


async def test_when_everything_is_refused_it_ends_soon(token_server: Server) -> None:
    token_server.requests.clear()
    critic = critic_of(token_server)
    with pytest.raises(ScoringError) as caught:
        await critic.predict_tokens([(999_999,)] * 2000)
    assert caught.value.values == (None,) * 2000
    assert len(token_server.requests) < 60
    await critic.aclose()


async def test_contexts_that_were_cut_are_counted(token_server: Server, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, logger="focus_critic")
    critic = critic_of(token_server)
    await critic.predict(["short", "x" * CONTEXT, "y" * 500])
    await critic.predict_tokens([(1,) * 300, (1,) * CONTEXT])
    await critic.predict(["short"])
    assert [record.getMessage().partition(";")[0] for record in caplog.records] == [
        "2 of 3 contexts reach the 256 tokens of focus",
        "1 of 2 contexts reach the 256 tokens of focus",
    ]
    await critic.aclose()


async def test_ids_that_were_cut_are_counted_on_a_pooled_server(
    pooled_server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    critic = critic_of(pooled_server)
    await critic.predict_tokens([(1,) * 300, (1,) * CONTEXT])
    assert [record.getMessage().partition(" reach")[0] for record in caplog.records] == ["1 of 2 contexts"]
    await critic.aclose()


async def test_a_server_restarted_with_another_pooler_is_noticed_and_found_again() -> None:
    client = FakeClient(pooled=True)
    critic = VLLMCritic(base_url="http://server", model=MODEL, client=client)
    assert await critic.predict(["ab"]) == pytest.approx([known(b"ab")], abs=1e-6)
    client.pooled = False
    with pytest.raises(ProtocolError, match="2 numbers where one per context is 1"):
        await critic.predict(["ab"])
    assert await critic.predict(["ab"]) == pytest.approx([known(b"ab")], abs=1e-6)


async def test_closing_leaves_nothing_open_and_may_be_repeated() -> None:
    with pooling() as server:
        critic = critic_of(server)
        await critic.predict(["a"])
        await critic.aclose()
        assert await asyncio.to_thread(until, lambda: server.open_connections == 0)
        await critic.aclose()
        assert await critic.predict(["a"]) == pytest.approx([known(b"a")], abs=1e-6)
        await critic.aclose()


async def test_a_pickled_critic_works(token_server: Server) -> None:
    critic = critic_of(token_server, timeout=5.0)
    assert await critic.predict(["a"]) == pytest.approx([known(b"a")], abs=1e-6)
    copy = pickle.loads(pickle.dumps(critic))
    assert await copy.predict(["b"]) == pytest.approx([known(b"b")], abs=1e-6)
    assert (copy.timeout, copy.reduce, copy.model) == (5.0, "last", MODEL)
    await critic.aclose()
    await copy.aclose()


def test_several_loops_in_a_row(token_server: Server) -> None:
    critic = critic_of(token_server)
    for _ in range(3):
        assert asyncio.run(critic.predict(["a"])) == pytest.approx([known(b"a")], abs=1e-6)


def test_the_key_is_never_shown() -> None:
    critic = VLLMCritic(base_url="http://127.0.0.1:1", model=MODEL, api_key="sesame-1")
    assert "sesame" not in repr(critic)
    assert isinstance(critic, Critic)
