"""The mapping itself: whatever JSON comes back is a judged reply or a ProtocolError, and nothing else."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from focus.backends import SamplingParams
from focus.errors import BackendError, ContextLengthError, ProtocolError
from focus_format.channel import TokenChannel
from focus_sglang import wire
from support.formats import byte_format

GOOD: dict[str, Any] = {
    "text": "hi",
    "output_ids": [104, 105],
    "meta_info": {
        "id": "r",
        "finish_reason": {"type": "stop", "matched": 105},
        "prompt_tokens": 3,
        "completion_tokens": 2,
        "cached_tokens": 1,
        "weight_version": "v1",
        "weight_versions": [{"version": "v1", "start": 0, "end": 2}],
        "input_token_logprobs": [[None, 1, None], [-0.5, 2, None], [-0.25, 3, None]],
        "input_top_logprobs": [None, [[-0.1, 9, None], [-0.5, 2, None]], [[-0.25, 3, None], [-3.0, 8, None]]],
        "output_token_logprobs": [[-0.5, 104, None], [-0.25, 105, None]],
        "output_top_logprobs": [[[-0.5, 104, None], [-1.5, 7, None]], [[-0.1, 8, None], [-0.2, 9, None]]],
    },
}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path of every value in a tree, the root left out."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [place for key, inner in items for place in ((*path, key), *places(inner, (*path, key)))]


@settings(deadline=None, derandomize=True, max_examples=300)
@given(place=st.sampled_from(places(GOOD)), value=JSON, leave_out=st.booleans())
def test_one_wrong_value_anywhere(place: tuple[Any, ...], value: Any, leave_out: bool) -> None:
    body = deepcopy(GOOD)
    parent: Any = body
    for key in place[:-1]:
        parent = parent[key]
    if leave_out:
        del parent[place[-1]]
    else:
        parent[place[-1]] = value
    channel = TokenChannel(byte_format().codec, "test")
    request = channel.request([1, 2, 3], SamplingParams(logprobs=2, prompt_logprobs=2), None)
    try:
        result = channel.result(request, wire.decode(body, request))
    except ProtocolError:
        return
    assert result.prefix_tokens == (1, 2, 3)
    assert all(type(token) is int for token in result.tokens)
    assert len(result.logprobs) in (0, len(result.tokens))
    assert len(result.prompt_logprobs) in (0, 3)
    if result.exact_generation:
        assert result.tokens == (104, 105)


def test_one_number_of_candidates_serves_prompt_and_reply() -> None:
    channel = TokenChannel(byte_format().codec, "test")
    request = channel.request([1, 2, 3], SamplingParams(logprobs=1, prompt_logprobs=2), None)
    assert wire.encode(request, byte_format().codec)["top_logprobs_num"] == 2
    reply = wire.decode(GOOD, request)
    # One candidate was asked for; the sampled token is always among them.
    assert reply.top_logprobs == [{"token_id:104": -0.5}, {"token_id:8": -0.1, "token_id:105": -0.25}]
    assert reply.prompt_top_logprobs == [
        None,
        {"token_id:9": -0.1, "token_id:2": -0.5},
        {"token_id:3": -0.25, "token_id:8": -3.0},
    ]
    assert reply.prompt_tokens == (1, 2, 3)


def test_which_refusals_mean_a_full_context() -> None:
    def kind(status: int, message: str) -> type[BackendError] | None:
        return wire.refine(status, message, b"")

    full = "Input length (4090 tokens) exceeds the maximum allowed length (4090 tokens)."
    assert kind(400, full) is ContextLengthError
    assert kind(500, full) is None
    assert kind(400, "top_p must be in (0, 1], got 0.") is None
