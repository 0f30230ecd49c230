"""When log-probabilities are those of the distribution that is sampled from."""

from __future__ import annotations

import typing

import pytest

from focus_types import GenerateMeta, GenerateResult, LogprobMode, SamplingParams
from focus_types.meta import logprobs_match_sampling

PLAIN = SamplingParams(temperature=1.0)
WARM = SamplingParams(temperature=0.7)
GREEDY = SamplingParams(temperature=0)
NUCLEUS = SamplingParams(temperature=1.0, top_p=0.9)
TOP_K = SamplingParams(temperature=1.0, top_k=20)
PENALTY = SamplingParams(temperature=1.0, repetition_penalty=1.1)
OFF = SamplingParams(temperature=1.0, top_k=-1, repetition_penalty=1.0)


@pytest.mark.parametrize(
    ("mode", "params", "expected"),
    [
        ("raw", PLAIN, True),
        ("raw", OFF, True),
        ("raw", WARM, False),
        ("raw", NUCLEUS, False),
        ("raw", TOP_K, False),
        ("raw", PENALTY, False),
        ("tempered", WARM, True),
        ("tempered", PENALTY, True),
        ("tempered", NUCLEUS, False),
        ("tempered", TOP_K, False),
        ("behavior", WARM, True),
        ("behavior", NUCLEUS, True),
        ("raw", GREEDY, False),
        ("tempered", GREEDY, False),
        ("behavior", GREEDY, False),
        ("unknown", PLAIN, None),
    ],
)
def test_match(mode: LogprobMode, params: SamplingParams, expected: bool | None) -> None:
    assert logprobs_match_sampling(mode, params) is expected


def test_records_resolve_their_annotations() -> None:
    assert typing.get_type_hints(GenerateResult)["meta"] == GenerateMeta | None
    assert typing.get_type_hints(GenerateMeta)["sampling"] == SamplingParams | None
