"""What a probe finds out."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest
import tinker

from focus_format import PolicyFormat
from focus_testing import ByteTokenizer, Engine, ScriptModel
from focus_tinker import TinkerPolicy, probing
from focus_types import LogprobMode, LogprobWarning, ProtocolError, SamplingParams, ServerUnavailableError
from support.tinker_client import EngineClient, ReplyClient, sequence

type MakePolicy = Callable[..., TinkerPolicy]


@pytest.mark.parametrize("mode", ["raw", "tempered", "behavior"])
def test_the_mode_is_found(make: MakePolicy, engine: Engine, mode: LogprobMode) -> None:
    assert mode != "unknown"
    engine.logprob_mode = mode
    policy = make()
    report = policy.probe()
    assert report.logprob_mode == mode
    assert report.stop_token_kept is True
    assert report.served_models == ("tiny",)
    assert report.notes == ()
    result = policy.generate_tokens([5])
    assert result.meta is not None
    assert result.meta.logprob_mode == mode


def test_a_certain_model_tells_no_mode(hermes: PolicyFormat[Any]) -> None:
    tokenizer = ByteTokenizer()
    certain = Engine(ScriptModel.texts({}, tokenizer), tokenizer, logprob_mode="raw")
    report = TinkerPolicy(EngineClient(certain), model="tiny", format=hermes).probe()
    assert report.logprob_mode == "unknown"
    assert [note.startswith("the model was certain") for note in report.notes] == [True]


def test_a_choice_in_the_given_prompt_tells_it(make: MakePolicy, hermes: PolicyFormat[Any]) -> None:
    assert make().probe(hermes.codec.encode("coin:")).logprob_mode == "raw"


def test_a_certain_prompt_forgets_no_mode(make: MakePolicy, hermes: PolicyFormat[Any]) -> None:
    policy = make()
    assert policy.probe(hermes.codec.encode("coin:")).logprob_mode == "raw"
    assert policy.probe(hermes.codec.encode("count:")).logprob_mode == "raw"


def test_another_base_model_is_noted(engine: Engine, hermes: PolicyFormat[Any]) -> None:
    report = TinkerPolicy(EngineClient(engine, "Qwen/Qwen3-8B"), model="org/tiny", format=hermes).probe()
    assert [note.partition(":")[0] for note in report.notes] == [
        "the client samples from 'Qwen/Qwen3-8B', the policy's model is 'org/tiny'"
    ]


def test_the_same_model_from_a_folder_is_not_noted(engine: Engine, hermes: PolicyFormat[Any]) -> None:
    assert TinkerPolicy(EngineClient(engine, "Qwen/Tiny"), model="/models/tiny/", format=hermes).probe().notes == ()


@pytest.mark.parametrize(
    ("mode", "given", "warned"),
    [
        ("raw", {}, "'raw' log-probabilities"),
        ("raw", {"temperature": 1.0}, None),
        ("raw", {"temperature": 1.0, "top_p": 0.9}, "'raw' log-probabilities"),
        ("tempered", {}, None),
        ("tempered", {"top_k": 20}, "'tempered' log-probabilities"),
        ("behavior", {}, None),
        ("behavior", {"top_k": 20}, "cuts candidates off"),
        ("behavior", {"temperature": 0.0}, "'behavior' log-probabilities"),
    ],
)
def test_startup_check_warns_where_logprobs_do_not_fit_the_default_sampling(
    make: MakePolicy, engine: Engine, mode: LogprobMode, given: dict[str, Any], warned: str | None
) -> None:
    assert mode != "unknown"
    engine.logprob_mode = mode
    policy = make(default_params=SamplingParams(**given))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        policy.startup_check()
    told = [str(warning.message) for warning in caught if warning.category is LogprobWarning]
    assert len(told) == (warned is not None)
    assert all(warned is not None and warned in text for text in told)
    assert all(warning.filename == __file__ for warning in caught)


def test_startup_check_on_a_client_that_never_answers(make: MakePolicy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probing, "_IMPATIENCE", 0.1)
    client = ReplyClient(lambda _: None)
    with pytest.raises(ServerUnavailableError, match=r"no sample within 0\.1 s"):
        make(client).startup_check()
    assert client.futures[0].cancelled()


def test_a_server_that_drops_the_stop_token_is_reported(make: MakePolicy) -> None:
    def answer(request: dict[str, Any]) -> tinker.SampleResponse:
        stops = request["params"].stop
        prompt = [-1.0] * len(request["tokens"])
        return tinker.SampleResponse(
            [sequence([] if 65 in stops else [65], stop_reason="stop" if 65 in stops else "length")],
            _prompt_logprobs_list=[None, *prompt[1:]],
        )

    assert make(ReplyClient(answer)).probe().stop_token_kept is False


def test_a_server_without_logprobs_cannot_be_probed(make: MakePolicy) -> None:
    bare = tinker.SampledSequence(stop_reason="length", sequence_id="1", _tokens_list=[65])
    with pytest.raises(ProtocolError, match="none came"):
        make(ReplyClient(lambda _: tinker.SampleResponse([bare]))).startup_check()
