"""VLLMPolicy on the loopback wire: what it sends, what it refuses, what it says of the server."""

from __future__ import annotations

import asyncio
import logging
import math
import pickle
import warnings
from collections.abc import Iterator
from typing import Any

import pytest

from focus.backends import PolicyFormat, SamplingParams, VLLMPolicy
from focus.errors import (
    AuthenticationError,
    BackendError,
    ContextLengthError,
    InvalidRequestError,
    LogprobWarning,
    RequestTimeoutError,
    ServerUnavailableError,
)
from focus_testing import ByteTokenizer, Engine, Fault, ScriptModel, Server, serve
from servers.process import free_port
from support.formats import byte_format

KEY = "secret-key-0123456789"
COIN = tuple(b"coin")
END = 258


def coin_engine(**options: Any) -> Engine:
    tokenizer = ByteTokenizer()
    script: dict[str, Any] = {"coin": {"H<|im_end|>": 0.75, "T<|im_end|>": 0.25}, "long": "abcdefghij<|im_end|>"}
    return Engine(ScriptModel.texts(script, tokenizer), tokenizer, **options)


@pytest.fixture
def server() -> Iterator[Server]:
    with serve(coin_engine(), model="coin", api_key=KEY) as running:
        yield running


def make(server: Server | str, **changed: Any) -> VLLMPolicy:
    url = server if isinstance(server, str) else server.url
    arguments: dict[str, Any] = {
        "model": "coin",
        "format": byte_format(),
        "base_url": f"{url}/v1",
        "api_key": KEY,
        "timeout": 30.0,
    }
    return VLLMPolicy(**{**arguments, **changed})


@pytest.fixture
def policy(server: Server) -> Iterator[VLLMPolicy]:
    made = make(server)
    yield made
    made.close()


def test_every_sampling_field_is_sent(server: Server, policy: VLLMPolicy) -> None:
    params = SamplingParams(
        temperature=0.5, max_tokens=9, top_p=0.9, top_k=3, stop=["x"], logprobs=2, prompt_logprobs=1, seed=4
    )
    policy.generate_tokens(COIN, params)
    assert server.requests[0].path == "/v1/completions"
    assert server.requests[0].body == {
        "model": "coin",
        "prompt": list(COIN),
        "max_tokens": 9,
        "temperature": 0.5,
        "top_p": 0.9,
        "top_k": 3,
        "min_p": 0.0,
        "presence_penalty": 0.0,
        "frequency_penalty": 0.0,
        "repetition_penalty": 1.0,
        "stop": ["x"],
        "stop_token_ids": [END],
        "logprobs": 2,
        "prompt_logprobs": 1,
        "seed": 4,
        "return_token_ids": True,
        "return_tokens_as_token_ids": True,
        "skip_special_tokens": False,
        "spaces_between_special_tokens": False,
        "add_special_tokens": False,
    }
    assert params == SamplingParams(
        temperature=0.5, max_tokens=9, top_p=0.9, top_k=3, stop=["x"], logprobs=2, prompt_logprobs=1, seed=4
    )


def test_nothing_is_left_for_the_server_to_fill_in(server: Server, policy: VLLMPolicy) -> None:
    policy.generate_tokens(COIN)
    body = server.requests[0].body
    sent = {name: body[name] for name in ("max_tokens", "temperature", "top_p", "top_k", "repetition_penalty", "stop")}
    assert sent == {
        "max_tokens": 512,
        "temperature": 0.7,
        "top_p": 1.0,
        "top_k": 0,
        "repetition_penalty": 1.0,
        "stop": [],
    }
    assert {"seed", "logprobs", "prompt_logprobs", "n"}.isdisjoint(body)


def test_a_result_holds_what_was_sampled(policy: VLLMPolicy) -> None:
    result = policy.generate_tokens(COIN, SamplingParams(temperature=0.0, logprobs=2, prompt_logprobs=0))
    assert result.tokens == (ord("H"), END)
    assert result.prefix_tokens == COIN
    assert (result.text, result.stop_reason, result.matched_stop) == ("H", "stop", END)
    assert result.logprobs == pytest.approx([math.log(0.75), 0.0], abs=1e-6)
    assert result.top_logprobs is not None
    assert result.top_logprobs[0] == pytest.approx(
        {f"token_id:{ord('H')}": math.log(0.75), f"token_id:{ord('T')}": math.log(0.25)}, abs=1e-6
    )
    assert result.prompt_logprobs[0] is None
    assert len(result.prompt_logprobs) == 4
    assert result.entropy == pytest.approx(-math.log(0.75) / 2, abs=1e-6)
    assert policy.is_exact(result)
    meta = result.meta
    assert meta is not None
    assert (meta.attempts, meta.context_full, meta.inexact_reason) == (1, False, None)
    assert meta.request_id is not None
    assert meta.request_id.startswith("cmpl-")
    assert meta.server == "vllm-0.32.0-focus-testing"
    assert meta.sampling == SamplingParams(temperature=0.0, logprobs=2, prompt_logprobs=0)


def test_default_params_apply_field_by_field(server: Server) -> None:
    policy = make(server, default_params=SamplingParams(temperature=None, max_tokens=5, seed=3))
    policy.generate_tokens(COIN)
    policy.generate_tokens(COIN, SamplingParams(temperature=1.5, max_tokens=None))
    policy.close()
    first, second = (exchange.body for exchange in server.requests)
    assert (first["temperature"], first["max_tokens"], first["seed"]) == (0.7, 5, 3)
    assert (second["temperature"], second["max_tokens"], second["seed"]) == (1.5, 5, 3)


def test_stop_strings(server: Server, policy: VLLMPolicy) -> None:
    result = policy.generate_tokens(tuple(b"long"), SamplingParams(temperature=0.0, stop=["ef"], logprobs=0))
    assert (bytes(result.tokens), result.text, result.matched_stop) == (b"abcdef", "abcd", "ef")
    assert len(result.logprobs) == 6
    many = SamplingParams(stop=list("12345"))
    with pytest.raises(InvalidRequestError, match="at most 4 stop strings, got 5"):
        policy.generate_tokens(COIN, many)
    assert len(server.requests) == 1


def test_more_stop_strings_where_the_server_is_known_to_take_them() -> None:
    with serve(coin_engine(), model="coin", max_stop_strings=64) as server:
        policy = make(server)
        assert policy.probe().stop_string_limit is None
        assert policy.generate_tokens(COIN, SamplingParams(stop=list("12345"))).tokens
        policy.close()


@pytest.mark.parametrize("tokens", [(), [-1], [True], [1.5], [265], [2**31], "coin"], ids=repr)
def test_bad_ids_are_refused_with_nothing_sent(server: Server, policy: VLLMPolicy, tokens: Any) -> None:
    with pytest.raises(InvalidRequestError):
        policy.generate_tokens(tokens)
    with pytest.raises(InvalidRequestError):
        asyncio.run(policy.agenerate_tokens(tokens))
    assert server.requests == []


def test_context_of_unknown_length() -> None:
    with serve(coin_engine(context_length=16), model="coin") as server:
        policy = make(server)
        result = policy.generate_tokens(tuple(b"long") * 3, SamplingParams(temperature=0.0, max_tokens=9))
        assert (len(result.tokens), result.stop_reason) == (4, "length")
        assert result.meta is not None
        assert result.meta.context_full
        with pytest.raises(ContextLengthError) as caught:
            policy.generate_tokens(tuple(b"long") * 4)
        assert caught.value.status == 400
        policy.close()


def test_context_of_known_length() -> None:
    with serve(coin_engine(context_length=16), model="coin") as server:
        policy = make(server)
        policy.context_length = 16
        result = policy.generate_tokens(tuple(b"long") * 3, SamplingParams(temperature=0.0, max_tokens=9))
        assert server.requests[0].body["max_tokens"] == 4
        assert result.meta is not None
        assert result.meta.context_full
        short = policy.generate_tokens(tuple(b"long"), SamplingParams(temperature=0.0, max_tokens=3))
        assert short.meta is not None
        assert (short.stop_reason, short.meta.context_full) == ("length", False)
        with pytest.raises(ContextLengthError, match="16 tokens leaves no room"):
            policy.generate_tokens(tuple(b"long") * 4)
        assert len(server.requests) == 2
        policy.close()


@pytest.mark.parametrize(("mode", "found"), [("raw", "raw"), ("behavior", "behavior")])
def test_probe_tells_the_mode(mode: Any, found: str) -> None:
    with serve(coin_engine(logprob_mode=mode), model="coin") as server:
        policy = make(server)
        unsure = policy.probe()
        assert unsure.logprob_mode == "unknown"
        assert "probe(prompt=ids)" in unsure.notes[0]
        report = asyncio.run(policy.aprobe(COIN))
        assert report.logprob_mode == found
        assert (report.backend, report.url) == ("vllm", f"{server.url}/v1")
        assert (report.served_models, report.context_length) == (("coin",), 4096)
        assert (report.ids_confirmed, report.prompt_confirmed, report.text_agrees) == (True, True, True)
        assert unsure.text_agrees is None  # the reply was the end token alone
        assert report.stop_token_kept is True
        # What one prompt found, another that leaves no choice does not undo.
        assert policy.probe().logprob_mode == found
        assert policy.context_length == 4096
        result = policy.generate_tokens(COIN, SamplingParams(temperature=2.0, logprobs=0))
        assert result.meta is not None
        assert (result.meta.logprob_mode, result.meta.logprobs_match_sampling) == (found, found == "behavior")
        policy.close()


def knows(policy: VLLMPolicy) -> VLLMPolicy:
    policy.probe(COIN)
    return policy


@pytest.mark.parametrize(
    ("mode", "params", "warning"),
    [
        ("raw", SamplingParams(temperature=0.7), "--logprobs-mode processed_logprobs, or sample at temperature 1"),
        ("raw", SamplingParams(temperature=1.0, top_k=5), "returns 'raw' log-probabilities"),
        ("raw", SamplingParams(temperature=1.0, repetition_penalty=1.2), "returns 'raw' log-probabilities"),
        ("raw", SamplingParams(temperature=1.0), None),
        ("behavior", SamplingParams(temperature=0.7), None),
        ("behavior", SamplingParams(temperature=1.0, top_p=0.9), "another support"),
        ("behavior", SamplingParams(temperature=1.0, top_k=5), "another support"),
    ],
)
def test_startup_check_warns(mode: Any, params: SamplingParams, warning: str | None) -> None:
    with serve(coin_engine(logprob_mode=mode), model="coin") as server:
        policy = knows(make(server, default_params=params))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            policy.startup_check()
        policy.close()
    assert [entry.category for entry in caught] == ([LogprobWarning] if warning else [])
    assert warning is None or warning in str(caught[0].message)


def test_startup_check_refuses_a_wrong_key(server: Server) -> None:
    policy = make(server, api_key="wrong-key-9876543210")
    with pytest.raises(AuthenticationError) as caught:
        policy.startup_check()
    assert caught.value.status == 401
    assert "9876543210" not in f"{caught.value} {caught.value!r} {policy!r}"
    policy.close()


def test_startup_check_refuses_a_wrong_model(server: Server) -> None:
    policy = make(server, served_model="dice")
    with pytest.raises(BackendError, match="serves coin, not 'dice': pass served_model='coin'"):
        policy.startup_check()
    policy.close()


def test_startup_check_refuses_a_server_without_ids(server: Server) -> None:
    server.set_fault(Fault("missing_ids"))
    policy = make(server)
    with pytest.raises(BackendError, match="no token_ids"):
        policy.startup_check()
    policy.close()


def test_startup_check_refuses_another_prompt(server: Server) -> None:
    server.set_fault(Fault("wrong_prompt"))
    policy = make(server)
    with pytest.raises(BackendError, match="continues other prompt ids"):
        policy.startup_check()
    policy.close()


class Shifted(ByteTokenizer):
    """Another tokenizer: the same ids, other texts."""

    def decode(self, token_ids: Any, skip_special_tokens: bool = False) -> str:
        return super().decode([(token + 1) % 256 for token in token_ids], skip_special_tokens)


def test_startup_check_refuses_another_tokenizer() -> None:
    tokenizer = ByteTokenizer()
    engine = Engine(ScriptModel.replies(["Hello."], tokenizer), tokenizer)
    with serve(engine, model="coin") as server:
        policy = make(server, format=PolicyFormat.resolve("shifted", tokenizer=Shifted(), profile="text"))
        with pytest.raises(BackendError, match="the format's tokenizer is not the served model's"):
            policy.startup_check()
        policy.close()


def test_startup_check_of_nothing_is_quick_and_not_repeated() -> None:
    policy = make(f"http://127.0.0.1:{free_port()}", timeout=20.0)
    with pytest.raises(ServerUnavailableError) as caught:
        policy.startup_check()
    assert caught.value.attempts == 1
    policy.close()


def test_deadline(server: Server) -> None:
    server.set_fault(Fault("slow", seconds=20))
    policy = make(server, timeout=0.2)
    for call in (policy.generate_tokens, lambda tokens: asyncio.run(policy.agenerate_tokens(tokens))):
        with pytest.raises(RequestTimeoutError, match=r"0\.2 s"):
            call(COIN)
    assert len(server.requests) == 2
    policy.close()


def test_each_kind_of_inexactness_is_logged_once(
    server: Server, policy: VLLMPolicy, caplog: pytest.LogCaptureFixture
) -> None:
    server.set_fault(Fault("wrong_prompt"))
    with caplog.at_level(logging.WARNING, "focus"):
        results = [policy.generate_tokens(COIN, SamplingParams(logprobs=0)) for _ in range(3)]
    reason = "the server continued other prompt ids than the ones sent"
    assert [result.meta.inexact_reason for result in results if result.meta] == [reason] * 3
    assert [record.message for record in caplog.records] == [
        f"VLLMPolicy: {reason} (later ones of this kind are not logged)"
    ]


def test_arguments_that_contradict_are_refused() -> None:
    with pytest.raises(InvalidRequestError, match="pass format= or profile=, not both"):
        make("http://127.0.0.1:1", profile="text")
    with pytest.raises(InvalidRequestError, match="pass 'EMPTY' for a server without a key"):
        make("http://127.0.0.1:1", api_key="")
    with pytest.raises(InvalidRequestError):
        make("not a url")


def test_a_pickled_policy_carries_its_configuration_and_no_client(server: Server) -> None:
    policy = make(server, default_params=SamplingParams(max_tokens=3))
    policy.generate_tokens(COIN)
    copy = pickle.loads(pickle.dumps(policy))
    assert copy.generate_tokens(COIN).prefix_tokens == COIN
    assert (copy.model, copy.default_params) == ("coin", SamplingParams(max_tokens=3))
    copy.close()
    policy.close()


def test_closing_leaves_nothing_open(server: Server) -> None:
    async def main(policy: VLLMPolicy) -> None:
        await asyncio.gather(*[policy.agenerate_tokens(COIN) for _ in range(20)])
        await policy.aclose()
        await policy.aclose()

    policy = make(server)
    policy.generate_tokens(COIN)
    asyncio.run(main(policy))
    policy.close()
    policy.close()
    for _ in range(200):
        if server.open_connections == 0:
            break
        asyncio.run(asyncio.sleep(0.01))
    assert server.open_connections == 0
    # A closed policy opens new connections when it is used again.
    assert policy.generate_tokens(COIN).tokens
    policy.close()
