"""VLLMCritic on real pooling servers whose value model is known exactly: token t has the value (t % 63 - 31) / 10."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from transformers import AutoTokenizer

from focus.backends import VLLMCritic
from focus.critic import score
from focus.errors import ContextLengthError, InvalidRequestError, ScoringError
from servers import vllm
from servers.process import Server

__all__: list[str] = []

pytestmark = pytest.mark.anyio

MODEL = "focus-critic"
CONTEXT = 4096
LAST_ID = 151_935
"""The vocabulary is padded; the tokenizer ends at 151668."""


@pytest.fixture(scope="module")
def token_server() -> Iterator[Server]:
    with vllm.pooling("token_classify") as running:
        yield running


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    return AutoTokenizer.from_pretrained(str(vllm.model_folder("critic")))


@pytest.fixture(scope="module")
def texts() -> list[str]:
    """64 contexts from one token to beyond the context window, in many scripts."""
    words = [
        "The",
        " agent",
        " solved",
        "é",
        "日本語",
        "🦜",
        "\n",
        ' {"x":',
        " 2}",
        "Ω",
        "\u200d",
        "नमस्ते",
        "<|im_end|>",
        "  ",
        "ß",
    ]
    draw = random.Random(8)
    lengths = [1, 2, 3, 5000, 6000, *(int(10 ** draw.uniform(0, 3.4)) for _ in range(59))]
    return ["".join(draw.choice(words) for _ in range(length)) for length in lengths]


def known(tokens: Sequence[int], reduce: str = "last") -> float:
    values = [(token % 63 - 31) / 10 for token in tokens[-CONTEXT:]]
    match reduce:
        case "last":
            return values[-1]
        case "first":
            return values[0]
        case "sum":
            return math.fsum(values)
        case _:
            return math.fsum(values) / len(values)


def worst(found: Sequence[float], expected: Sequence[float]) -> float:
    return max(abs(a - b) for a, b in zip(found, expected, strict=True))


@pytest.mark.parametrize("reduce", ["last", "first", "mean", "sum"])
async def test_64_contexts_as_texts_and_as_ids(
    token_server: Server, tokenizer: Any, texts: list[str], reduce: str, capsys: pytest.CaptureFixture[str]
) -> None:
    ids = [tuple(tokenizer.encode(text, add_special_tokens=False)) for text in texts]
    assert len(ids) == 64
    assert sum(len(tokens) > CONTEXT for tokens in ids) >= 2
    expected = [known(tokens, reduce) for tokens in ids]
    # The sum of n values of float32 may be off by n roundings.
    scale = [min(len(tokens), CONTEXT) if reduce == "sum" else 1 for tokens in ids]
    most = 1e-6 if reduce == "sum" else 1e-5
    critic = VLLMCritic(base_url=token_server.url, model=MODEL, reduce=reduce)
    try:
        for kind, found in (("texts", await critic.predict(texts)), ("ids", await critic.predict_tokens(ids))):
            error = max(abs(a - b) / n for a, b, n in zip(found, expected, scale, strict=True))
            with capsys.disabled():
                print(f"\n  {reduce} of {kind}: largest difference {error:.1e}, {most:.0e} allowed", end="")
            assert error <= most
    finally:
        await critic.aclose()


async def test_every_checkpoint_of_a_trajectory(token_server: Server, tokenizer: Any) -> None:
    text = 'The agent flips a coin 🦜🦜 日本語 and calls <tool_call>{"x": 2}</tool_call><|im_end|>' * 20
    tokens = tokenizer.encode(text, add_special_tokens=False)
    critic = VLLMCritic(base_url=token_server.url, model=MODEL)
    values = await critic.values_at(tokens, range(len(tokens)))
    assert worst(values, [known(tokens[: at + 1]) for at in range(len(tokens))]) <= 1e-5
    prefixes = await critic.predict_tokens([tokens[: at + 1] for at in range(0, len(tokens), 50)])
    assert worst(prefixes, values[::50]) <= 1e-5
    await critic.aclose()


async def test_a_text_cut_inside_a_character(token_server: Server, tokenizer: Any) -> None:
    tokens = tokenizer.encode("It sings 🦜", add_special_tokens=False)
    cut = tokens[:-1]
    assert tokenizer.decode(cut).endswith("\ufffd")
    critic = VLLMCritic(base_url=token_server.url, model=MODEL)
    assert worst(await critic.predict_tokens([cut]), [known(cut)]) <= 1e-5
    assert worst(await critic.values_at(tokens, [len(cut) - 1]), [known(cut)]) <= 1e-5
    [as_text] = await critic.predict([tokenizer.decode(cut)])
    assert abs(as_text - known(cut)) > 0.01
    await critic.aclose()


async def test_the_sigmoid_is_off(token_server: Server) -> None:
    critic = VLLMCritic(base_url=token_server.url, model=MODEL)
    lowest, highest = await critic.predict_tokens([(0,), (62,)])
    assert (lowest, highest) == pytest.approx((-3.1, 3.1), abs=1e-5)
    await critic.aclose()


async def test_the_padded_vocabulary_and_its_end(token_server: Server) -> None:
    critic = VLLMCritic(base_url=token_server.url, model=MODEL)
    with pytest.raises(ScoringError, match=r"refused context 1: .*151936 is out of vocabulary") as caught:
        await critic.predict_tokens([(5, LAST_ID), (5, LAST_ID + 1), (7,)])
    assert caught.value.index == 1
    assert caught.value.values == pytest.approx((known((LAST_ID,)), None, known((7,))), abs=1e-5)
    await critic.aclose()


async def test_a_trajectory_beyond_the_context(token_server: Server) -> None:
    critic = VLLMCritic(base_url=token_server.url, model=MODEL)
    with pytest.raises(ContextLengthError):
        await critic.values_at([5] * (CONTEXT + 1), [0])
    await critic.aclose()


async def test_two_thousand_contexts_in_order(token_server: Server, tokenizer: Any) -> None:
    contexts = [f"{at} heads" + " and on" * (at % 7) for at in range(2000)]
    critic = VLLMCritic(base_url=token_server.url, model=MODEL, reduce="mean", timeout=300.0)
    expected = [known(tokenizer.encode(context, add_special_tokens=False), "mean") for context in contexts]
    assert worst(await score(critic, contexts), expected) <= 1e-5
    await critic.aclose()


async def test_the_check_of_a_per_token_server(token_server: Server) -> None:
    critic = VLLMCritic(base_url=token_server.url, model=MODEL, reduce="mean")
    report = await critic.startup_check()
    assert (report.served_models, report.context_length) == ((MODEL,), CONTEXT)
    assert report.notes == ("one value per token: every reduce and values_at",)
    await critic.aclose()


async def test_a_server_in_classify_mode_is_recognised(tokenizer: Any, texts: list[str]) -> None:
    with vllm.pooling("classify") as server:
        critic = VLLMCritic(base_url=server.url, model=MODEL)
        assert (await critic.startup_check()).notes[0].startswith("one value per context: reduce='last' alone")
        expected = [known(tokenizer.encode(text, add_special_tokens=False)) for text in texts]
        assert worst(await critic.predict(texts), expected) <= 1e-5
        with pytest.raises(InvalidRequestError, match="values_at needs one value per token"):
            await critic.values_at((1, 2), [0])
        await critic.aclose()
        for reduce in ("first", "sum", "mean"):
            refused = VLLMCritic(base_url=server.url, model=MODEL, reduce=reduce)
            with pytest.raises(InvalidRequestError, match=f"reduce='{reduce}' needs one value per token"):
                await refused.startup_check()
            with pytest.raises(InvalidRequestError, match=f"reduce='{reduce}' needs one value per token"):
                await refused.predict(["a"])
            await refused.aclose()
