"""What holds on a real SGLang server whether it is reached directly or through a router.

The script model: after " coin" comes " heads" with .75 and " tails" with .25; " Hello" is followed by " one two three
four five six" and the end token; an assistant turn is the call add(x=2), and after a tool result " Done.".
"""

from __future__ import annotations

import asyncio
import json
import math
import time
import urllib.request
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from transformers import AutoTokenizer

from focus.backends import GenerateResult, PolicyFormat, SamplingParams, SGLangPolicy
from focus.errors import AbortedError, BackendError, ContextLengthError, InvalidRequestError
from focus_format import ChatTemplateCodec
from servers import sglang
from servers.process import Server

__all__ = ["ADD", "COIN", "END", "HELLO", "KEY", "ONE_TO_SIX", "Checks", "Site", "coin_logprob", "worker_call"]

COIN, HEADS, TAILS = 16254, 14629, 63514
HELLO, ONE_TO_SIX, END = 9707, (825, 1378, 2326, 3040, 4236, 4743), 151645
THREE = ONE_TO_SIX[2]
KEY = "the-servers-key"
GREEDY = SamplingParams(temperature=0.0, max_tokens=64, logprobs=0)
ADD = {
    "type": "function",
    "function": {
        "name": "add",
        "description": "Add to the counter.",
        "parameters": {"type": "object", "properties": {"x": {"type": "integer"}}},
    },
}


@dataclass
class Site:
    """A worker, and the address that the policy is given."""

    worker: Server
    url: str
    api_key: str | None
    tells_context: bool
    """Whether the address says how long the context is."""

    def policy(self, format: PolicyFormat[Any], **changed: Any) -> SGLangPolicy:
        """A policy for the address; its replies are greedy by default."""
        arguments: dict[str, Any] = {
            "model": "focus-script",
            "base_url": self.url,
            "format": format,
            "api_key": self.api_key,
            "default_params": GREEDY,
            "timeout": 120.0,
        }
        return SGLangPolicy(**{**arguments, **changed})


def coin_logprob(token: int, temperature: float) -> float:
    weights = {HEADS: 0.75 ** (1 / temperature), TAILS: 0.25 ** (1 / temperature)}
    return math.log(weights[token] / sum(weights.values()))


def worker_call(site: Site, path: str, body: dict[str, Any] | None = None) -> Any:
    """Speak to the worker past any router, as another client."""
    headers = {"Content-Type": "application/json"}
    if site.api_key is not None:
        headers["Authorization"] = f"Bearer {site.api_key}"
    data = None if body is None else json.dumps(body).encode()
    with urllib.request.urlopen(urllib.request.Request(f"{site.worker.url}{path}", data, headers)) as answer:
        text = answer.read()
    return json.loads(text) if text else None


def running_requests(site: Site) -> int:
    count: int = worker_call(site, "/v1/loads?include=core")["loads"][0]["num_running_reqs"]
    return count


async def wait_until(condition: Callable[[], bool], seconds: float) -> float:
    """Seconds that it took."""
    started = time.monotonic()
    while not await asyncio.to_thread(condition):
        assert time.monotonic() - started < seconds, "it never came"
        await asyncio.sleep(0.2)
    return time.monotonic() - started


class Checks:
    """Inherit, and give a ``site`` fixture."""

    @pytest.fixture
    def policy(self, site: Site, script_format: PolicyFormat[Any]) -> Iterator[SGLangPolicy]:
        made = site.policy(script_format)
        yield made
        made.close()

    def test_six_turns_by_exact_continuation(self, policy: SGLangPolicy) -> None:
        messages: list[dict[str, Any]] = [{"role": "user", "content": "Add 2."}]
        prompt = policy.prepare(messages, [ADD])
        texts: list[str] = []
        for turn in range(6):
            result = policy.generate(prompt)
            assert policy.is_exact(result)
            assert (result.stop_reason, result.matched_stop, result.tokens[-1]) == ("stop", END, END)
            assert len(result.logprobs) == len(result.tokens)
            texts.append(result.text)
            policy.record_reply(result, messages)
            if turn == 0:
                (call,) = policy.parse(result).tool_calls
                assert (call.name, call.arguments) == ("add", '{"x":2}')
                messages.append({"role": "tool", "tool_call_id": "", "content": "4 <|im_end|>"})
            else:
                messages.append({"role": "user", "content": f"Ünïcödé 🦜 {turn}"})
            following = policy.extend(prompt, result, messages)
            assert following.exact_continuation, following.refusal
            sampled = prompt.tokens + result.tokens
            assert following.tokens[: len(sampled)] == sampled
            prompt = following
        assert texts == ['<tool_call>{"name":"add","arguments":{"x":2}}</tool_call>', *[" Done."] * 5]

    def test_greedy_twice_gives_the_same_ids(self, policy: SGLangPolicy) -> None:
        first, second = policy.generate_tokens([HELLO]), policy.generate_tokens([HELLO])
        assert first.tokens == second.tokens == (*ONE_TO_SIX, END)
        assert first.text == " one two three four five six"
        assert (first.stop_reason, first.matched_stop) == ("stop", END)

    @pytest.mark.parametrize("temperature", [1.0, 0.7, 0.5])
    def test_logprobs_are_those_of_the_tempered_distribution(self, policy: SGLangPolicy, temperature: float) -> None:
        params = SamplingParams(temperature=temperature, max_tokens=1, logprobs=2)
        seen = set[int]()
        for _ in range(12):
            result = policy.generate_tokens([COIN], params)
            assert result.exact_generation
            (token,) = result.tokens
            seen.add(token)
            assert result.logprobs == pytest.approx([coin_logprob(token, temperature)], abs=1e-4)
            expected = {f"token_id:{either}": coin_logprob(either, temperature) for either in (HEADS, TAILS)}
            assert result.top_logprobs is not None
            assert result.top_logprobs[0] == pytest.approx(expected, abs=1e-4)
            assert result.entropy == pytest.approx(-result.logprobs[0])
        assert seen <= {HEADS, TAILS}

    def test_logprobs_leave_truncation_out(self, policy: SGLangPolicy) -> None:
        result = policy.generate_tokens([COIN], SamplingParams(temperature=1.0, top_p=0.5, max_tokens=1, logprobs=0))
        assert result.tokens == (HEADS,)
        assert result.logprobs == pytest.approx([math.log(0.75)], abs=1e-4)

    def test_greedy_logprobs_are_raw(self, policy: SGLangPolicy) -> None:
        result = policy.generate_tokens([COIN], SamplingParams(temperature=0.0, max_tokens=1, logprobs=0))
        assert result.logprobs == pytest.approx([math.log(0.75)], abs=1e-4)

    def test_prompt_logprobs_are_always_at_temperature_one(self, policy: SGLangPolicy) -> None:
        params = SamplingParams(temperature=0.7, max_tokens=1, logprobs=0, prompt_logprobs=2)
        result = policy.generate_tokens([COIN, TAILS, COIN, HEADS], params)
        assert result.prompt_logprobs[0] is None
        assert result.prompt_logprobs[1:] == pytest.approx([math.log(0.25), 0.0, math.log(0.75)], abs=1e-4)
        assert result.prompt_top_logprobs is not None
        assert result.prompt_top_logprobs[0] is None
        assert result.prompt_top_logprobs[1] == pytest.approx(
            {f"token_id:{HEADS}": math.log(0.75), f"token_id:{TAILS}": math.log(0.25)}, abs=1e-4
        )
        assert result.top_logprobs is None

    def test_prompt_logprobs_of_one_token(self, policy: SGLangPolicy) -> None:
        result = policy.generate_tokens([COIN], SamplingParams(temperature=0, max_tokens=1, prompt_logprobs=0))
        assert result.prompt_logprobs == [None]
        assert result.exact_generation

    def test_stop_string_inside_a_token(self, policy: SGLangPolicy) -> None:
        result = policy.generate_tokens([HELLO], SamplingParams(temperature=0, max_tokens=20, stop=["ree"], logprobs=0))
        assert result.tokens == ONE_TO_SIX[:3]
        assert result.text == " one two th"
        assert (result.stop_reason, result.matched_stop) == ("stop", "ree")
        assert len(result.logprobs) == 3
        assert result.exact_generation

    def test_stop_string_over_tokens(self, policy: SGLangPolicy) -> None:
        result = policy.generate_tokens([HELLO], SamplingParams(temperature=0, max_tokens=20, stop=["ree fo"]))
        assert result.tokens == ONE_TO_SIX[:4]
        assert result.text == " one two th"

    def test_the_formats_stop_tokens_end_a_reply(self, site: Site, script_format: PolicyFormat[Any]) -> None:
        tokenizer = AutoTokenizer.from_pretrained(sglang.model_folder())
        codec = ChatTemplateCodec(tokenizer, vocab_size=script_format.codec.vocab_size, stop_tokens=[THREE])
        policy = site.policy(PolicyFormat(script_format.name, codec, script_format.parser))
        result = policy.generate_tokens([HELLO])
        policy.close()
        assert result.tokens == ONE_TO_SIX[:3]
        assert (result.stop_reason, result.matched_stop) == ("stop", THREE)
        assert result.text == " one two"

    def test_a_special_token_and_a_cut_character_stay(self, policy: SGLangPolicy, script_format: Any) -> None:
        special, bird = script_format.codec.encode(" special"), script_format.codec.encode(" bird")
        assert policy.generate_tokens(special).text == "<|vision_pad|> tail"
        assert policy.generate_tokens(bird).text == "🦜 sings"
        cut = policy.generate_tokens(bird, SamplingParams(temperature=0, max_tokens=1, logprobs=0))
        assert len(cut.tokens) == len(cut.logprobs) == 1
        assert cut.exact_generation

    def test_length(self, policy: SGLangPolicy) -> None:
        result = policy.generate_tokens([HELLO], SamplingParams(temperature=0, max_tokens=2))
        assert (result.tokens, result.stop_reason, result.matched_stop) == (ONE_TO_SIX[:2], "length", None)
        assert result.meta is not None
        assert not result.meta.context_full

    def test_context_edge_without_known_length(self, policy: SGLangPolicy) -> None:
        # The server uses all but the last two positions, and says nothing.
        result = policy.generate_tokens([COIN] * 4000, SamplingParams(temperature=0, max_tokens=96))
        assert (len(result.tokens), result.stop_reason) == (94, "length")
        assert result.meta is not None
        assert result.meta.context_full
        for count, max_tokens in ((4090, 1), (4096, 1), (5000, 1), (4000, 97)):
            with pytest.raises(ContextLengthError) as caught:
                policy.generate_tokens([COIN] * count, SamplingParams(temperature=0, max_tokens=max_tokens))
            assert caught.value.status == 400

    def test_context_edge_with_known_length(self, policy: SGLangPolicy, site: Site) -> None:
        report = policy.probe()
        assert report.context_length == (4096 if site.tells_context else None)
        if not site.tells_context:
            assert any("policy.context_length" in note for note in report.notes)
        policy.context_length = 4096
        result = policy.generate_tokens([COIN] * 4000, SamplingParams(temperature=0, max_tokens=200))
        assert len(result.tokens) == 90
        assert result.meta is not None
        assert result.meta.context_full
        assert len(policy.generate_tokens([COIN] * 4089).tokens) == 1
        with pytest.raises(ContextLengthError, match="nothing was sent"):
            policy.generate_tokens([COIN] * 4090)

    @pytest.mark.parametrize("bad", [-1, 151936, 2**31])
    def test_a_bad_id_is_refused_and_the_server_stays_up(self, policy: SGLangPolicy, site: Site, bad: int) -> None:
        with pytest.raises(InvalidRequestError, match="token 1 of 2"):
            policy.generate_tokens([HELLO, bad])
        assert policy.generate_tokens([HELLO, 151935]).exact_generation
        assert worker_call(site, "/model_info")["served_model_name"] == "focus-script"

    def test_more_candidates_than_ids_are_refused(self, policy: SGLangPolicy) -> None:
        with pytest.raises(InvalidRequestError, match="would end the SGLang server"):
            policy.generate_tokens([HELLO], SamplingParams(prompt_logprobs=151937))
        assert policy.generate_tokens([HELLO]).exact_generation

    def test_another_models_format_is_refused_and_the_server_stays_up(self, site: Site, tokenizers: Any) -> None:
        policy = site.policy(PolicyFormat.resolve(str(tokenizers / "qwen3.5")))
        with pytest.raises(BackendError, match="the format belongs to another model"):
            policy.startup_check()
        policy.close()
        assert worker_call(site, "/model_info")["served_model_name"] == "focus-script"

    def test_probe(self, policy: SGLangPolicy) -> None:
        report = policy.probe([COIN])
        assert report.logprob_mode == "tempered"
        assert report.served_models == ("focus-script",)
        assert (report.ids_confirmed, report.prompt_confirmed, report.text_agrees) == (True, True, True)

    def test_abort_through_a_second_client(self, policy: SGLangPolicy, site: Site) -> None:
        async def main() -> GenerateResult:
            generation = asyncio.create_task(
                policy.agenerate_tokens([COIN], SamplingParams(temperature=1.0, max_tokens=3900, logprobs=0))
            )
            await wait_until(lambda: running_requests(site) == 1, 20)
            await asyncio.sleep(0.5)
            await asyncio.to_thread(worker_call, site, "/abort_request", {"abort_all": True})
            result = await generation
            await policy.aclose()
            return result

        result = asyncio.run(main())
        assert result.stop_reason == "abort"
        assert 0 < len(result.tokens) == len(result.logprobs) < 3900
        assert result.exact_generation
        with pytest.raises(AbortedError):
            policy.parse(result)

    def test_a_cancelled_task_frees_the_worker(self, policy: SGLangPolicy, site: Site) -> None:
        async def main() -> float:
            generation = asyncio.create_task(
                policy.agenerate_tokens([COIN], SamplingParams(temperature=1.0, max_tokens=3900))
            )
            await wait_until(lambda: running_requests(site) == 1, 20)
            generation.cancel()
            with pytest.raises(asyncio.CancelledError):
                await generation
            freed = await wait_until(lambda: running_requests(site) == 0, 5)
            await policy.aclose()
            return freed

        print(f"freed after {asyncio.run(main()):.1f} s")

    def test_weight_versions_that_change_in_mid_reply(self, policy: SGLangPolicy, site: Site) -> None:
        version = time.monotonic_ns()

        async def bump(name: str) -> None:
            body = {"new_version": name, "abort_all_requests": False}
            await asyncio.to_thread(worker_call, site, "/update_weight_version", body)

        async def main() -> GenerateResult:
            await bump(f"before-{version}")
            generation = asyncio.create_task(
                policy.agenerate_tokens([COIN], SamplingParams(temperature=1.0, max_tokens=200, logprobs=0))
            )
            await wait_until(lambda: running_requests(site) == 1, 20)
            await bump(f"after-{version}")
            result = await generation
            await policy.aclose()
            return result

        result = asyncio.run(main())
        assert result.meta is not None
        (first, start, middle), (second, again, end) = result.meta.weight_versions
        assert (first, second) == (f"before-{version}", f"after-{version}")
        assert (start, end) == (0, 200)
        assert 0 < middle == again < 200
        assert result.exact_generation

    def test_many_at_once_with_a_full_queue(self, policy: SGLangPolicy) -> None:
        async def main() -> list[GenerateResult]:
            calls: list[Coroutine[Any, Any, GenerateResult]] = [
                policy.agenerate_tokens([HELLO] * (1 + n % 3), GREEDY) for n in range(64)
            ]
            results = await asyncio.gather(*calls)
            await policy.aclose()
            return results

        results = asyncio.run(main())
        assert {result.tokens for result in results} == {(*ONE_TO_SIX, END)}
        assert all(result.exact_generation for result in results)
        sent = [result.meta.attempts for result in results if result.meta]
        print(f"64 replies, {sum(count > 1 for count in sent)} of them refused for a full queue first")

    @pytest.mark.anyio
    async def test_async_equals_sync(self, policy: SGLangPolicy) -> None:
        there = await policy.agenerate_tokens([HELLO])
        here = policy.generate_tokens([HELLO])
        assert (there.tokens, there.logprobs) == (here.tokens, here.logprobs)
        await policy.aclose()
