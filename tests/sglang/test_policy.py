"""SGLangPolicy on a loopback server: what it sends, what it refuses, what it learns."""

from __future__ import annotations

import asyncio
import math
import pickle
import warnings
from collections.abc import Iterator
from typing import Any, Literal

import pytest

from focus.backends import GenerateResult, PolicyFormat, SamplingParams, SGLangPolicy
from focus.errors import (
    AuthenticationError,
    BackendError,
    ContextLengthError,
    InvalidRequestError,
    LogprobWarning,
    ServerUnavailableError,
)
from focus_testing import ByteTokenizer, Engine, Fault, ScriptModel, serve
from focus_testing.server import Server
from support.formats import byte_format
from support.waiting import until

TOKENIZER = ByteTokenizer()
ASK, HEADS, TAILS = TOKENIZER.encode("?")[0], TOKENIZER.encode("h")[0], TOKENIZER.encode("t")[0]
END = TOKENIZER.eos_token_id


def coin_engine(logprob_mode: Literal["raw", "tempered"] = "tempered", context_length: int = 4096) -> Engine:
    """A question mark is followed by "h" with .75 and "t" with .25, and either ends the reply."""
    rules: dict[tuple[int, ...], dict[tuple[int, ...], float]] = {(ASK,): {(HEADS, END): 0.75, (TAILS, END): 0.25}}
    model = ScriptModel(rules, vocab_size=len(TOKENIZER), default=ASK)
    return Engine(model, TOKENIZER, logprob_mode=logprob_mode, context_length=context_length)


def make(server: Server, **changed: Any) -> SGLangPolicy:
    return SGLangPolicy(**{"model": "focus", "base_url": server.url, "format": byte_format(), **changed})


@pytest.fixture
def server() -> Iterator[Server]:
    with serve(coin_engine(), wire="sglang") as running:
        yield running


@pytest.fixture
def policy(server: Server) -> Iterator[SGLangPolicy]:
    made = make(server)
    yield made
    made.close()


def test_everything_is_sent_explicitly(policy: SGLangPolicy, server: Server) -> None:
    policy.generate_tokens([ASK])
    policy.generate_tokens(
        [ASK],
        SamplingParams(
            temperature=0.5,
            max_tokens=7,
            top_p=0.9,
            top_k=3,
            stop=["zz"],
            logprobs=1,
            prompt_logprobs=2,
            repetition_penalty=1.5,
            seed=11,
        ),
    )
    plain, full = (exchange.body for exchange in server.requests)
    always = {
        "min_p": 0.0,
        "presence_penalty": 0.0,
        "frequency_penalty": 0.0,
        "skip_special_tokens": False,
        "no_stop_trim": True,
        "spaces_between_special_tokens": False,
        "stop_token_ids": sorted(policy.format.codec.stop_tokens),
    }
    assert plain == {
        "input_ids": [ASK],
        "return_logprob": True,
        "sampling_params": {
            **always,
            "temperature": 0.7,
            "max_new_tokens": 512,
            "top_p": 1.0,
            "top_k": -1,
            "repetition_penalty": 1.0,
            "stop": [],
        },
    }
    assert full == {
        "input_ids": [ASK],
        "return_logprob": True,
        "logprob_start_len": 0,
        "top_logprobs_num": 2,
        "sampling_params": {
            **always,
            "temperature": 0.5,
            "max_new_tokens": 7,
            "top_p": 0.9,
            "top_k": 3,
            "repetition_penalty": 1.5,
            "stop": ["zz"],
            "sampling_seed": 11,
        },
    }


def test_key_and_headers_are_sent() -> None:
    with serve(coin_engine(), wire="sglang", api_key="secret") as server:
        policy = make(server, api_key="secret", headers={"X-SMG-Routing-Key": "episode"})
        policy.generate_tokens([ASK])
        policy.close()
        (exchange,) = server.requests
    assert exchange.headers["authorization"] == "Bearer secret"
    assert exchange.headers["x-smg-routing-key"] == "episode"


@pytest.mark.parametrize(
    ("tokens", "params", "message"),
    [
        ([ASK, -1], None, "token 1 of 2 is -1"),
        ([ASK, 2**31], None, "token 1 of 2"),
        ([ASK, len(TOKENIZER)], None, "token 1 of 2"),
        ([ASK, True], None, "plain int"),
        ([], None, "empty"),
        ([ASK], SamplingParams(repetition_penalty=2.1), "repetition_penalty of at most 2"),
        ([ASK], SamplingParams(top_k=1, logprobs=0), "use temperature=0"),
        ([ASK], SamplingParams(logprobs=10_000), "would end the SGLang server"),
        ([ASK], SamplingParams(prompt_logprobs=10_000), "would end the SGLang server"),
    ],
)
def test_what_could_end_or_mislead_the_server_is_not_sent(
    policy: SGLangPolicy, server: Server, tokens: list[int], params: SamplingParams | None, message: str
) -> None:
    with pytest.raises(InvalidRequestError, match=message):
        policy.generate_tokens(tokens, params)
    assert server.requests == []


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_top_k_1_where_it_means_one_thing(policy: SGLangPolicy, temperature: float) -> None:
    result = policy.generate_tokens([ASK], SamplingParams(temperature=temperature, top_k=1, max_tokens=1, logprobs=0))
    assert result.tokens == (HEADS,)
    assert result.logprobs == pytest.approx([math.log(0.75)])


def test_result(policy: SGLangPolicy) -> None:
    result = policy.generate_tokens([ASK], SamplingParams(temperature=0, logprobs=2, prompt_logprobs=0))
    assert result.tokens == (HEADS, END)
    assert result.prefix_tokens == (ASK,)
    assert result.text == "h"
    assert (result.stop_reason, result.matched_stop) == ("stop", END)
    assert result.logprobs == pytest.approx([math.log(0.75), 0.0])
    assert result.top_logprobs is not None
    assert result.top_logprobs[0] == pytest.approx(
        {f"token_id:{HEADS}": math.log(0.75), f"token_id:{TAILS}": math.log(0.25)}
    )
    assert result.prompt_logprobs == [None]
    assert result.prompt_top_logprobs is None
    assert result.exact_generation
    assert result.meta is not None
    assert result.meta.weight_versions == (("default", 0, 2),)
    assert result.meta.attempts == 1


def test_tempered_logprobs(policy: SGLangPolicy) -> None:
    result = policy.generate_tokens([ASK], SamplingParams(temperature=0.5, max_tokens=1, logprobs=0))
    share = {HEADS: 0.9, TAILS: 0.1}[result.tokens[0]]
    assert result.logprobs == pytest.approx([math.log(share)])


def test_context_of_a_server_that_was_probed() -> None:
    with serve(coin_engine(context_length=64), wire="sglang") as server:
        policy = make(server)
        with pytest.raises(ContextLengthError) as refused:
            policy.generate_tokens([ASK] * 60)
        assert refused.value.status == 400
        assert policy.probe([ASK]).context_length == 64
        sent = len(server.requests)
        result = policy.generate_tokens([0] * 50, SamplingParams(temperature=0, max_tokens=100))
        assert server.requests[-1].body["sampling_params"]["max_new_tokens"] == 8
        assert result.meta is not None
        with pytest.raises(ContextLengthError, match="cannot use the last 6"):
            policy.generate_tokens([ASK] * 58)
        assert len(server.requests) == sent + 1
        policy.close()


def test_probe(policy: SGLangPolicy, server: Server) -> None:
    report = policy.probe([ASK])
    assert report.backend == "sglang"
    assert report.url == server.url
    assert report.served_models == ("focus",)
    assert report.version == "focus-testing"
    assert (report.ids_confirmed, report.prompt_confirmed, report.text_agrees) == (True, True, True)
    assert (report.logprob_mode, report.stop_token_kept) == ("tempered", True)
    assert report.notes == ()
    result = policy.generate_tokens([ASK], SamplingParams(logprobs=0))
    assert result.meta is not None
    assert (result.meta.logprob_mode, result.meta.logprobs_match_sampling) == ("tempered", True)


def test_probe_behind_a_router() -> None:
    with serve(coin_engine(), wire="sglang", router=True) as server:
        policy = make(server, model="mine")
        report = policy.probe([ASK])
        policy.startup_check()
        policy.close()
    assert [exchange.path for exchange in server.requests[:4]] == [
        "/model_info",
        "/get_model_info",
        "/server_info",
        "/get_server_info",
    ]
    assert report.context_length is None
    assert report.logprob_mode == "tempered"
    name, context = report.notes
    assert "'focus'" in name
    assert "'mine'" in name
    assert "policy.context_length" in context


def test_startup_check_warns_of_raw_logprobs() -> None:
    with serve(coin_engine("raw"), wire="sglang") as server:
        policy = make(server, format=asking_format(), default_params=SamplingParams(temperature=0.7))
        with pytest.warns(LogprobWarning, match="SGLANG_RETURN_ORIGINAL_LOGPROB"):
            policy.startup_check()
        untempered = make(server, format=asking_format(), default_params=SamplingParams(temperature=1.0))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            untempered.startup_check()
        policy.close()
        untempered.close()


def asking_format() -> PolicyFormat[Any]:
    """Every prompt ends in "?", so that the default probe leaves the coin a choice."""

    asking = ByteTokenizer(chat_template="{% for message in messages %}{{ message.content }}{% endfor %}?")
    return PolicyFormat.resolve("byte", tokenizer=asking, profile="text")


def test_startup_check_warns_of_truncation(server: Server) -> None:
    policy = make(server, format=asking_format(), default_params=SamplingParams(temperature=1.0, top_p=0.9))
    with pytest.warns(LogprobWarning, match="top_p"):
        policy.startup_check()
    policy.close()


def test_startup_check_refuses_a_vocabulary_that_is_too_large() -> None:
    small = Engine(ScriptModel({(1,): {(2,): 1.0}}, vocab_size=20, default=1), TOKENIZER)
    with serve(small, wire="sglang") as server:
        policy = make(server)
        with pytest.raises(BackendError, match="the format belongs to another model"):
            policy.startup_check()
        policy.close()
        # No prompt with such an id was sent: a real server would have ended.
        assert all(max(exchange.body["input_ids"]) < 20 for exchange in server.requests if exchange.method == "POST")


def test_startup_check_refuses_another_tokenizer(server: Server) -> None:
    class Shouting(ByteTokenizer):
        def decode(self, *args: Any, **kwargs: Any) -> str:
            return super().decode(*args, **kwargs).upper()

    policy = make(server, format=PolicyFormat.resolve("byte", tokenizer=Shouting(), profile="text"))
    with pytest.raises(BackendError, match="another text than the policy's format"):
        policy.startup_check()
    policy.close()


def test_startup_check_with_a_wrong_key() -> None:
    with serve(coin_engine(), wire="sglang", api_key="secret") as server:
        policy = make(server, api_key="guess-work")
        with pytest.raises(AuthenticationError) as caught:
            policy.startup_check()
        policy.close()
    assert caught.value.status == 401
    assert "guess-work" not in f"{caught.value}{caught.value!r}{policy!r}"


def test_startup_check_without_a_server() -> None:
    with serve(coin_engine(), wire="sglang") as server:
        policy = make(server)
    with pytest.raises(ServerUnavailableError):
        policy.startup_check()
    policy.close()


@pytest.mark.anyio
async def test_abort() -> None:
    with serve(coin_engine(), wire="sglang", token_delay=0.02) as server:
        policy = make(server)
        generation = asyncio.create_task(
            policy.agenerate_tokens([0], SamplingParams(temperature=0, max_tokens=2000, logprobs=0, stop=["never"]))
        )
        await until(lambda: bool(server.wire.running))
        for run in list(server.wire.running.values()):
            run.abort()
        result = await generation
        await policy.aclose()
    assert result.stop_reason == "abort"
    assert len(result.tokens) == len(result.logprobs) < 2000
    assert result.exact_generation


@pytest.mark.anyio
async def test_a_cancelled_task_ends_its_request() -> None:
    with serve(coin_engine(), wire="sglang", token_delay=0.05) as server:
        policy = make(server)
        generation = asyncio.create_task(policy.agenerate_tokens([0], SamplingParams(temperature=0, max_tokens=2000)))
        await until(lambda: bool(server.wire.running))
        generation.cancel()
        with pytest.raises(asyncio.CancelledError):
            await generation
        await until(lambda: not server.wire.running)
        assert server.requests[0].disconnected
        await policy.aclose()


def test_weight_versions(server: Server) -> None:
    policy = make(server)
    first = policy.generate_tokens([ASK])
    server.wire.weight_version = "step-2"  # type: ignore[attr-defined] # the SGLang wire's
    second = policy.generate_tokens([ASK])
    policy.close()
    assert [result.meta and result.meta.weight_versions for result in (first, second)] == [
        (("default", 0, len(first.tokens)),),
        (("step-2", 0, len(second.tokens)),),
    ]


def test_a_policy_pickles_without_its_connections(policy: SGLangPolicy, server: Server) -> None:
    before = policy.generate_tokens([ASK], SamplingParams(temperature=0))
    copy: SGLangPolicy = pickle.loads(pickle.dumps(policy))
    after = copy.generate_tokens([ASK], SamplingParams(temperature=0))
    copy.close()
    assert before.tokens == after.tokens


def test_close_leaves_nothing_open_and_the_policy_usable(policy: SGLangPolicy, server: Server) -> None:
    async def twice() -> list[GenerateResult]:
        return [await policy.agenerate_tokens([ASK]), await policy.agenerate_tokens([ASK])]

    policy.generate_tokens([ASK])
    for _ in range(2):
        asyncio.run(twice())
    policy.close()
    policy.close()
    assert policy.generate_tokens([ASK]).exact_generation


def test_format_and_profile_together_are_refused() -> None:
    with pytest.raises(InvalidRequestError, match="not both"):
        SGLangPolicy(model="focus", base_url="http://localhost:1", format=byte_format(), profile="text")


def test_a_gateway_that_lets_only_some_paths_through() -> None:
    with serve(coin_engine(), wire="sglang", fault=Fault("status", path="/server_info", status=403)) as server:
        policy = make(server)
        report = policy.probe([ASK])
        policy.close()
    assert (report.version, report.context_length, report.logprob_mode) == (None, None, "tempered")
