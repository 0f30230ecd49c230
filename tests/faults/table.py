"""What each backend makes of each fault: one literal table, a row a fault, a column a backend.

Faults of the Tinker SDK, which speaks its own wire, have their table in ``tests/tinker/test_faults.py``.
"""

from __future__ import annotations

from typing import Literal

from focus.errors import (
    AuthenticationError,
    BackendError,
    ProtocolError,
    RateLimitError,
    RequestTimeoutError,
    ServerUnavailableError,
)
from focus_testing import Fault

__all__ = ["FAULTS", "OUTCOMES", "Outcome"]

type Outcome = type[BackendError] | Literal["exact", "inexact", "abort"]

FAULTS: dict[str, Fault] = {
    "none": Fault("status", calls=()),
    "slow": Fault("slow", seconds=30),
    "dropped before the reply": Fault("drop_before"),
    "dropped in the reply": Fault("drop_after"),
    "truncated JSON": Fault("truncated"),
    "no JSON": Fault("malformed"),
    "no body": Fault("empty"),
    "HTML with 200": Fault("html"),
    "HTML with 502": Fault("html", status=502),
    "reply in a list": Fault("list"),
    "wrong types": Fault("wrong_types"),
    "NaN": Fault("nan"),
    "filler": Fault("filler"),
    "missing ids": Fault("missing_ids"),
    "wrong prompt": Fault("wrong_prompt"),
    "log-probabilities of other ids": Fault("wrong_ids"),
    "no log-probabilities": Fault("missing_logprobs"),
    "fewer log-probabilities": Fault("fewer_logprobs"),
    "no choice": Fault("no_choice"),
    "two choices": Fault("two_choices"),
    "no result": Fault("no_result"),
    "error with 200": Fault("error_body"),
    "failed with 200": Fault("failed"),
    "filtered": Fault("filtered"),
    "abort": Fault("abort"),
    "400": Fault("status", status=400),
    "401": Fault("status", status=401),
    "404": Fault("status", status=404),
    "409": Fault("status", status=409),
    "422": Fault("status", status=422),
    "429 for ever": Fault("status", status=429),
    "429 once": Fault("status", status=429, calls={0}),
    "429 once, Retry-After": Fault("status", status=429, retry_after=0.1, calls={0}),
    "500": Fault("status", status=500),
    "503 for ever": Fault("status", status=503),
    "503 once": Fault("status", status=503, calls={0}),
    "redirect": Fault("redirect"),
    "100 MB": Fault("huge", size=100_000_000),
}

_HTTP: dict[str, Outcome] = {
    "none": "exact",
    "slow": RequestTimeoutError,
    "dropped before the reply": ServerUnavailableError,
    "dropped in the reply": ServerUnavailableError,
    "truncated JSON": ProtocolError,
    "no JSON": ProtocolError,
    "no body": ProtocolError,
    "HTML with 200": ProtocolError,
    "HTML with 502": ServerUnavailableError,
    "reply in a list": ProtocolError,
    "wrong types": ProtocolError,
    "NaN": ProtocolError,
    "400": BackendError,
    "401": AuthenticationError,
    "404": BackendError,
    "409": BackendError,
    "422": BackendError,
    "429 for ever": RateLimitError,
    "429 once": "exact",
    "429 once, Retry-After": "exact",
    "500": ServerUnavailableError,
    "503 for ever": ServerUnavailableError,
    "503 once": "exact",
    "redirect": ProtocolError,
    "100 MB": "exact",
}
_TOKENS: dict[str, Outcome] = {
    "filler": "inexact",
    "missing ids": ProtocolError,
    "wrong prompt": "inexact",
    "no log-probabilities": "inexact",
    "fewer log-probabilities": "inexact",
    "abort": "abort",
}
# A chat API gives no token ids, so the best of its results is not exact.
_CHAT: dict[str, Outcome] = {
    **{fault: "inexact" if outcome == "exact" else outcome for fault, outcome in _HTTP.items()},
    "filler": "inexact",
    "no log-probabilities": "inexact",
    "no result": ProtocolError,
    "error with 200": ServerUnavailableError,
    "failed with 200": ServerUnavailableError,
    "filtered": "inexact",
}

# A critic raises one ScoringError, whose cause this is; a row of choices is one of values.
_POOLING: dict[str, Outcome] = {
    **_HTTP,
    "no log-probabilities": ProtocolError,  # null for a value
    "no choice": ProtocolError,
    "two choices": ProtocolError,
}

OUTCOMES: dict[str, dict[str, Outcome]] = {
    "vllm": {**_HTTP, **_TOKENS, "no choice": ProtocolError, "two choices": ProtocolError},
    "sglang": {**_HTTP, **_TOKENS, "log-probabilities of other ids": "inexact"},
    "slime": {
        **_HTTP,
        **_TOKENS,
        "log-probabilities of other ids": "inexact",
        "NaN": "inexact",  # Slime's JSON parser reads it as a number
        "429 once": RateLimitError,
        "429 once, Retry-After": RateLimitError,
        "503 once": ServerUnavailableError,
    },
    "openai chat": {**_CHAT, "no choice": ProtocolError, "two choices": ProtocolError, "abort": "abort"},
    "openai responses": {**_CHAT, "abort": BackendError},  # a cancelled response holds nothing to carry on from
    "pooling, first call": _POOLING,
    "pooling": _POOLING,
}
