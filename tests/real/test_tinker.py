"""TinkerPolicy on a real Tinker-compatible server: skyrl on JAX, with a tiny random Qwen3 model.

The model is random and its weights fixed, so what it says is noise, but always the same noise: the ids below were
recorded from the same weights by the SDK alone.
"""

from __future__ import annotations

import asyncio
import gc
import pickle
import time
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest
import tinker
from transformers import AutoTokenizer

from focus.backends import GenerateResult, PolicyFormat, SamplingParams, TextActionParser, TinkerPolicy
from focus.errors import BackendError, LogprobWarning, ProtocolError, ServerUnavailableError
from focus_format import ChatTemplateCodec
from servers import tinker as server_of
from servers.process import Server

PROMPT = (9707, 1879, 11, 1128, 374)
SEED_7 = (374, 25365, 25365, 71367, 71367, 71367, 71367, 71367)
END = 151645
NAM = 71367
TOLERANCE = 1e-4


@pytest.fixture(scope="module")
def format() -> PolicyFormat[Any]:
    return PolicyFormat.resolve(str(server_of.model_folder()), profile="hermes")


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with server_of.serve() as running:
        yield running


@contextmanager
def connected(url: str) -> Iterator[tinker.SamplingClient]:
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        patch.setenv("TINKER_TELEMETRY", "0")  # which a closing client would go on to offer to a killed server
        warnings.simplefilter("ignore", ResourceWarning)  # the SDK drops the connection of its first request
        service = tinker.ServiceClient(base_url=url, api_key=server_of.API_KEY)
        client = service.create_sampling_client(base_model=server_of.BASE_MODEL).result(timeout=60)
        gc.collect()
    yield client
    disconnect(client)


def disconnect(client: tinker.SamplingClient) -> None:
    """Left to the garbage collector, the SDK's connections would be reported as unclosed in a later test."""
    client.holder.run_coroutine_threadsafe(client.holder.aclose()).result(60)


@pytest.fixture(scope="module")
def client(server: Server) -> Iterator[tinker.SamplingClient]:
    with connected(server.url) as made:
        yield made


@pytest.fixture(scope="module")
def policy(client: tinker.SamplingClient, format: PolicyFormat[Any]) -> TinkerPolicy:
    return TinkerPolicy(client, model=server_of.BASE_MODEL, format=format)


def params(**given: Any) -> SamplingParams:
    return SamplingParams(**{"temperature": 1.0, "max_tokens": 8, "logprobs": 0, **given})


def scored(client: tinker.SamplingClient, tokens: tuple[int, ...]) -> list[float | None]:
    return client.compute_logprobs(tinker.ModelInput.from_ints(list(tokens))).result(timeout=120)


def test_greedy(policy: TinkerPolicy) -> None:
    first, second = (policy.generate_tokens(PROMPT, params(temperature=0.0)) for _ in range(2))
    assert first.tokens == second.tokens == (374,) * 8
    assert first.logprobs == pytest.approx(second.logprobs, abs=TOLERANCE)
    assert (first.stop_reason, first.matched_stop, first.exact_generation) == ("length", None, True)
    assert first.prefix_tokens is PROMPT


def test_seeds(policy: TinkerPolicy) -> None:
    first, again, other = (policy.generate_tokens(PROMPT, params(seed=seed)).tokens for seed in (7, 7, 8))
    assert first == again == SEED_7
    assert other == (102618, *(94252,) * 7)


@pytest.mark.parametrize(
    "given",
    [
        {"temperature": 0.0},
        {"seed": 7},
        {"seed": 7, "temperature": 2.0},
        {"seed": 7, "temperature": 0.7},
        {"seed": 7, "top_p": 0.5},
        {"seed": 7, "top_k": 3},
    ],
)
def test_logprobs_are_the_models_own_whatever_the_sampling(
    policy: TinkerPolicy, client: tinker.SamplingClient, given: dict[str, Any]
) -> None:
    result = policy.generate_tokens(PROMPT, params(**given))
    assert len(result.logprobs) == len(result.tokens)
    own = scored(client, PROMPT + result.tokens)[-len(result.tokens) :]
    worst = max(abs(got - (want or 0.0)) for got, want in zip(result.logprobs, own, strict=True))
    print(f"{given}: largest difference {worst:.1e}")
    assert result.logprobs == pytest.approx(own, abs=TOLERANCE)


def test_stop_token(policy: TinkerPolicy, client: tinker.SamplingClient) -> None:
    tokenizer = AutoTokenizer.from_pretrained(server_of.model_folder())
    codec = ChatTemplateCodec(tokenizer, vocab_size=151936, stop_tokens=[NAM])
    stopping = TinkerPolicy(client, model="any", format=PolicyFormat("stopping", codec, TextActionParser()))
    result = stopping.generate_tokens(PROMPT, params(seed=7))
    assert (result.tokens, result.stop_reason, result.matched_stop) == (SEED_7[:4], "stop", NAM)
    assert result.text == tokenizer.decode(SEED_7[:3])
    ended = policy.generate_tokens((9707, END), params(temperature=0.0, max_tokens=4))
    assert (ended.tokens, ended.stop_reason, ended.matched_stop, ended.text) == ((END,), "stop", END, "")


@pytest.mark.parametrize("string", ["Nam", "am"])
def test_stop_string(policy: TinkerPolicy, format: PolicyFormat[Any], string: str) -> None:
    result = policy.generate_tokens(PROMPT, params(seed=7, stop=[string]))
    assert (result.tokens, result.stop_reason, result.matched_stop) == (SEED_7[:4], "stop", string)
    assert result.text == format.codec.decode(SEED_7[:4]).removesuffix(string)
    assert result.exact_generation


def test_a_control_token_as_a_string_is_sent_as_its_id(policy: TinkerPolicy) -> None:
    result = policy.generate_tokens((9707, END), params(temperature=0.0, max_tokens=4, stop=["<|im_end|>"]))
    assert (result.tokens, result.matched_stop) == ((END,), END)


def test_beside_a_stop_string_the_reply_is_cut_at_its_end_of_turn(
    policy: TinkerPolicy, client: tinker.SamplingClient
) -> None:
    result = policy.generate_tokens((9707, END), params(temperature=0.0, max_tokens=4, stop=["never said"]))
    assert (result.tokens, result.stop_reason, result.matched_stop) == ((END,), "stop", END)
    assert result.logprobs == pytest.approx(scored(client, (9707, END, END))[-1:], abs=TOLERANCE)


def test_prompt_logprobs(policy: TinkerPolicy, client: tinker.SamplingClient) -> None:
    result = policy.generate_tokens(PROMPT, params(temperature=0.0, max_tokens=2, prompt_logprobs=0))
    assert len(result.prompt_logprobs) == len(PROMPT)
    assert result.prompt_logprobs[0] is None
    assert result.prompt_logprobs[1:] == pytest.approx(scored(client, PROMPT)[-4:], abs=TOLERANCE)


def test_what_this_server_cannot_is_an_error(policy: TinkerPolicy) -> None:
    with pytest.raises(ProtocolError, match="use logprobs=0"):
        policy.generate_tokens(PROMPT, params(temperature=0.0, max_tokens=2, logprobs=3))
    with pytest.raises(BackendError, match="not supported by the JAX backend") as caught:
        policy.generate_tokens(PROMPT, params(temperature=0.0, max_tokens=2, prompt_logprobs=3))
    assert caught.value.status == 400
    assert isinstance(caught.value.__cause__, ValueError)


def test_fifty_at_once(policy: TinkerPolicy) -> None:
    async def many() -> list[tuple[int, ...]]:
        results = await asyncio.gather(*[policy.agenerate_tokens(PROMPT, params(seed=seed)) for seed in range(50)])
        assert all(result.exact_generation and len(result.logprobs) == len(result.tokens) for result in results)
        return [result.tokens for result in results]

    start = time.monotonic()
    tokens = asyncio.run(many())
    print(f"50 requests in {time.monotonic() - start:.1f} s")
    assert tokens[7] == SEED_7
    assert len(set(tokens)) > 25


def test_loops_threads_and_blocking_calls(policy: TinkerPolicy) -> None:
    async def once() -> tuple[int, ...]:
        return (await policy.agenerate_tokens(PROMPT, params(seed=7))).tokens

    async def blocking() -> tuple[int, ...]:
        return policy.generate_tokens(PROMPT, params(seed=7)).tokens

    tokens = [asyncio.run(once()), asyncio.run(once()), asyncio.run(blocking())]
    with ThreadPoolExecutor(3) as pool:
        tokens += [made.result() for made in [pool.submit(asyncio.run, once()) for _ in range(3)]]
    assert tokens == [SEED_7] * 6


def test_a_dialogue_of_four_turns_by_extend(policy: TinkerPolicy, client: tinker.SamplingClient) -> None:
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Say something."}]
    prompt = policy.prepare(messages)
    replies: list[tuple[int, GenerateResult]] = []
    for turn in range(4):
        result = policy.generate(prompt, params(temperature=1.5, seed=turn))
        assert policy.is_exact(result)
        replies.append((len(prompt.tokens), result))
        whole = prompt.tokens + result.tokens
        policy.record_reply(result, messages)
        messages.append({"role": "user", "content": f"And {turn}?"})
        prompt = policy.extend(prompt, result, messages)
        assert prompt.exact_continuation, prompt.refusal
        assert prompt.tokens[: len(whole)] == whole
    own = scored(client, prompt.tokens)
    own = own[-len(prompt.tokens) + 1 :]
    for start, result in replies:
        assert result.logprobs == pytest.approx(own[start - 1 : start - 1 + len(result.tokens)], abs=TOLERANCE)


def test_the_probe(policy: TinkerPolicy, server: Server) -> None:
    report = policy.probe()
    print(report)
    assert report.logprob_mode == "raw"
    assert report.url == server.url
    assert report.served_models == (server_of.BASE_MODEL,)
    assert report.stop_token_kept is True
    assert report.notes == ()


def test_startup_check_warns_of_raw_logprobs_at_the_default_temperature(policy: TinkerPolicy) -> None:
    with pytest.warns(LogprobWarning, match="'raw' log-probabilities"):
        policy.startup_check()


def test_startup_check_is_silent_at_temperature_1(client: tinker.SamplingClient, format: PolicyFormat[Any]) -> None:
    plain = TinkerPolicy(
        client, model=server_of.BASE_MODEL, format=format, default_params=SamplingParams(temperature=1.0)
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plain.startup_check()


def test_the_policy_pickles(policy: TinkerPolicy) -> None:
    copy: TinkerPolicy = pickle.loads(pickle.dumps(policy))
    assert copy.generate_tokens(PROMPT, params(seed=7)).tokens == SEED_7
    disconnect(copy._client)


def test_a_killed_server(format: PolicyFormat[Any]) -> None:
    with server_of.serve() as doomed, connected(doomed.url) as client:
        policy = TinkerPolicy(client, model=server_of.BASE_MODEL, format=format)
        assert policy.generate_tokens(PROMPT, params(seed=7)).tokens == SEED_7
        doomed.kill_group()
        start = time.monotonic()
        with pytest.raises(ServerUnavailableError, match="nothing listens there") as caught:
            policy.startup_check()
        took = time.monotonic() - start
        print(f"startup_check on a killed server: {took:.1f} s: {caught.value}")
        assert took < 10

        futures: list[tinker.APIFuture[tinker.SampleResponse]] = []
        sample = client.sample

        def watched(*args: Any, **kwargs: Any) -> tinker.APIFuture[tinker.SampleResponse]:
            futures.append(sample(*args, **kwargs))
            return futures[-1]

        async def bounded() -> None:
            async with asyncio.timeout(2):
                await policy.agenerate_tokens(PROMPT, params(seed=7))

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(client, "sample", watched)
            with pytest.raises(TimeoutError):
                asyncio.run(bounded())
        assert [future.future().cancelled() for future in futures] == [True]
