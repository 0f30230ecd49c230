"""The downstream program runs, over its own policy and over a server."""

from __future__ import annotations

import pytest

from downstream.number_game.critic import GuessCritic
from downstream.number_game.game import play
from downstream.number_game.policy import ListPolicy, number_format
from focus.backends import SamplingParams, VLLMPolicy
from focus.errors import ParseError
from focus_testing import ByteTokenizer, Engine, ScriptModel, serve


@pytest.mark.anyio
async def test_a_game_over_its_own_policy() -> None:
    game = await play(ListPolicy(["It is 5?", "Then 9.", "So 7"]), GuessCritic(), secret=7)
    assert game.guesses == [5, 9, 7]
    assert game.values == [1 / 2, 1 / 3, 1 / 4]
    assert [prompt.exact_continuation for prompt in game.prompts] == [False, True, True]
    assert game.prompts[2].tokens[: len(game.prompts[1].tokens)] == game.prompts[1].tokens


@pytest.mark.anyio
async def test_a_reply_without_a_number_is_no_action() -> None:
    with pytest.raises(ParseError, match="no number in 'Who knows'"):
        await play(ListPolicy(["Who knows"]), GuessCritic(), secret=7)


@pytest.mark.anyio
async def test_a_game_over_a_server() -> None:
    tokenizer = ByteTokenizer()
    engine = Engine(ScriptModel.replies(["5", "9", "7"], tokenizer), tokenizer, seed=0)
    with serve(engine, wire="vllm", model="number-game") as server:
        policy = VLLMPolicy(
            model="number-game",
            format=number_format(),
            base_url=f"{server.url}/v1",
            api_key="EMPTY",
            default_params=SamplingParams(max_tokens=16, logprobs=0),
        )
        game = await play(policy, GuessCritic(), secret=7)
        await policy.aclose()
    assert game.guesses == [5, 9, 7]
    assert [prompt.exact_continuation for prompt in game.prompts] == [False, True, True]
