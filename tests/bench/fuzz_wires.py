"""Throw replies that are almost right at every wire decoder.

usage: uv run python tests/bench/fuzz_wires.py [--minutes N] [--seed N] [WIRE ...]

The minutes are for each wire, 5 unless given. Replies of the loopback servers, and recorded ones where FOCUS_SHARED
names them, are changed a little and go the whole way of a real one: through probes, decoding, parsing and into the next
request. Each must end in a sound result or in one of focus's errors. Prints the replies at fault and exits with 1, else
says how many were tried.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import math
import os
import pickle
import random
import sys
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import tinker

from focus.backends import (
    GenerateResult,
    OpenAIChatPolicy,
    OpenAIResponsesPolicy,
    Policy,
    PolicyFormat,
    SamplingParams,
    SGLangPolicy,
    SlimePolicy,
    TinkerPolicy,
    VLLMPolicy,
)
from focus.errors import FocusError
from focus_critic import VLLMCritic, score
from focus_http import ErrorRefiner, HttpReply
from focus_http.call import Call, Failure
from focus_http.retry import judge
from focus_openai.errors import refine_error as refine_openai
from focus_openai.native import NativePolicy
from focus_sglang.wire import refine as refine_sglang
from focus_testing import DEMO_TOOLS, ByteTokenizer, demo_engine, serve
from focus_vllm.wire import refine_error as refine_vllm
from support.mutate import mutated, spoiled
from support.raw_http import post
from support.tinker_client import EngineClient, ReplyClient

__all__: list[str] = []

PLAIN = SamplingParams(temperature=1.0, max_tokens=90)
LOGPROBS = SamplingParams(temperature=1.0, max_tokens=90, logprobs=2)
EVERYTHING = SamplingParams(temperature=1.0, max_tokens=20, logprobs=2, prompt_logprobs=2, stop=["times"], seed=2)
STATUSES = (300, 301, 307, 400, 401, 404, 409, 413, 422, 429, 500, 502, 503, 504)
RUNNER = asyncio.Runner()


class Tokenizer(ByteTokenizer):
    """Like real tokenizers it cannot take ids of more than 32 bits."""

    def decode(self, token_ids: Any, skip_special_tokens: bool = False) -> str:
        ids = list(token_ids)
        if any(not 0 <= token < 2**32 for token in ids):
            raise OverflowError("out of range integral type conversion attempted")
        return super().decode(ids, skip_special_tokens)


HERMES: PolicyFormat[Any] = PolicyFormat.resolve("byte", tokenizer=Tokenizer(), profile="hermes")


@dataclass
class Tape:
    """Stands in for a backend's HTTP client: records a real one's replies, then plays them, changed."""

    dice: random.Random
    share: float
    """Of the replies are changed when they are played."""
    any: bool = False
    """Play replies in any order, instead of the order in which they were recorded."""
    base_url: str = "http://host"
    recording: bool = True
    client: Any = None
    replies: list[Any] = field(default_factory=list[Any])
    played: list[bytes] = field(default_factory=list[bytes])

    def over(self, client: Any) -> Any:
        """Take the place of a client."""
        self.client, self.played = client, []
        return self

    def post(self, *given: Any, **named: Any) -> HttpReply:
        return self._keep(self.client.post(*given, **named)) if self.recording else self._play()

    def get(self, *given: Any, **named: Any) -> HttpReply:
        return self._keep(self.client.get(*given, **named)) if self.recording else self._play()

    async def apost(self, *given: Any, **named: Any) -> HttpReply:
        return self._keep(await self.client.apost(*given, **named)) if self.recording else self._play()

    async def aget(self, *given: Any, **named: Any) -> HttpReply:
        return self._keep(await self.client.aget(*given, **named)) if self.recording else self._play()

    def changed(self) -> Any:
        """The next reply's document."""
        at = self.dice.randrange(len(self.replies)) if self.any else min(len(self.played), len(self.replies) - 1)
        document = self.replies[at]
        return mutated(self.dice, document) if self.dice.random() < self.share else document

    def _keep(self, reply: HttpReply) -> HttpReply:
        self.replies.append(json.loads(reply.body))
        return reply

    def _play(self) -> HttpReply:
        self.played.append(spoiled(self.dice, json.dumps(self.changed()).encode()))
        return HttpReply(200, {}, self.played[-1], 1, 0.1)


type Make = Callable[[str, Tape], Any]
"""URL of the server and a tape to a backend that talks through the tape."""


def vllm(url: str, tape: Tape) -> Any:
    policy: Any = VLLMPolicy(model="focus", format=HERMES, base_url=f"{url}/v1", api_key="EMPTY")
    policy._client = tape.over(policy._client)
    return policy


def sglang(url: str, tape: Tape) -> Any:
    policy: Any = SGLangPolicy(model="focus", format=HERMES, base_url=url)
    policy._client = tape.over(policy._client)
    return policy


def slime(url: str, tape: Tape) -> Any:
    async def real(url: str, body: Any) -> HttpReply:
        answer = post(url.removesuffix("/generate"), "/generate", body)
        return HttpReply(answer.status, {}, json.dumps(answer.body).encode(), 1, 0.0)

    async def send(url: str, body: Any) -> Any:
        # Slime reads replies with the standard library's parser and keeps text where there is no JSON.
        reply = await tape.apost(url, body)
        try:
            return json.loads(reply.body)
        except ValueError:
            return reply.body.decode("utf-8", "replace")

    tape.over(SimpleNamespace(apost=real))
    return SlimePolicy(send, f"{url}/generate", model="focus", format=HERMES)


def native(kind: type[OpenAIChatPolicy] | type[OpenAIResponsesPolicy]) -> Make:
    def make(url: str, tape: Tape) -> Any:
        policy: Any = kind(model="focus", base_url=f"{url}/v1", api_key="EMPTY")
        policy._clients = SimpleNamespace(post=tape.over(SimpleNamespace(apost=policy._clients.post)).apost)
        return policy

    return make


def pooling(url: str, tape: Tape) -> Any:
    critic: Any = VLLMCritic(base_url=url, model="focus")
    critic._transport._client = tape.over(critic._transport._client)
    return critic


def tinker_sdk(url: str, tape: Tape) -> Any:
    """What the SDK hands on is typed to a degree: right kinds of containers, any numbers in them."""

    def answer(request: dict[str, Any]) -> tinker.SampleResponse:
        if tape.recording:
            made = EngineClient(demo_engine())._generate(request)
            tape.replies.append(_document(made))
            return made
        document = tape.changed()
        tape.played.append(json.dumps(document).encode())
        return _response(document)

    tape.over(None)
    return TinkerPolicy(ReplyClient(answer), model="focus", format=HERMES)


def _document(response: tinker.SampleResponse) -> Any:
    one = response.sequences[0]
    fields = {"tokens": one.tokens, "logprobs": one.logprobs, "top": one.topk_logprobs, "stop": one.stop_reason}
    return {"sequences": [fields], "prompt": response.prompt_logprobs, "prompt_top": response.topk_prompt_logprobs}


def _response(document: Any) -> tinker.SampleResponse:
    try:
        return tinker.SampleResponse(
            sequences=[
                tinker.SampledSequence(
                    stop_reason="stop" if one["stop"] == "stop" else "length",
                    sequence_id="7:0",
                    _tokens_list=[int(token) for token in one["tokens"]],
                    _logprobs_list=_listed(one["logprobs"], float),
                    _topk_logprobs_list=_listed(one["top"], _row),
                )
                for one in document["sequences"]
            ],
            _prompt_logprobs_list=_listed(document["prompt"], float),
            _topk_prompt_logprobs_list=_listed(document["prompt_top"], _row),
        )
    except Exception as error:
        # The SDK would not have come this far, and says so in this way.
        raise ValueError("unreadable") from error


def _listed(values: Any, kind: Callable[[Any], Any]) -> list[Any] | None:
    return None if values is None else [None if value is None else kind(value) for value in values]


def _row(values: Any) -> Any:
    return [(int(token), float(value)) for token, value in values]


def check(policy: Policy[Any], result: GenerateResult, asked: SamplingParams) -> None:
    assert type(result.tokens) is tuple
    assert all(type(token) is int and 0 <= token < 2**32 for token in result.tokens)
    assert not policy.trainable or len(result.logprobs) in (0, len(result.tokens))
    assert all(type(value) in (float, int) and math.isfinite(value) for value in result.logprobs)
    assert math.isfinite(result.entropy)
    assert type(result.text) is type(result.stop_reason) is str
    assert result.matched_stop is None or type(result.matched_stop) in (int, str)
    assert result.meta is not None
    if result.exact_generation:
        assert asked.logprobs is None or len(result.logprobs) == len(result.tokens)
    else:
        assert result.meta.inexact_reason
    assert pickle.loads(pickle.dumps(result)).tokens == result.tokens
    repr(result)


def converse(asked: SamplingParams) -> Callable[[Any], None]:
    def two_turns(policy: Any) -> None:
        messages: list[dict[str, Any]] = [{"role": "user", "content": "Flip the coin."}]
        prompt = policy.prepare(messages, () if asked.prompt_logprobs else DEMO_TOOLS)
        result = RUNNER.run(policy.agenerate(prompt, asked))
        check(policy, result, asked)
        policy.record_reply(result, messages)
        calls = messages[-1].get("tool_calls") or [{"id": call.call_id} for call in result.native_tool_calls or ()]
        messages += [{"role": "tool", "tool_call_id": call["id"], "content": "heads"} for call in calls]
        messages += [] if calls else [{"role": "user", "content": "Again."}]
        policy.validate_context(messages)
        prompt = policy.extend(prompt, result, messages)
        check(policy, RUNNER.run(policy.agenerate(prompt, asked)), asked)
        policy.parse(result)

    return two_turns


def answer(policy: Any) -> None:
    """One turn, as a recorded reply belongs to a prompt of its own."""
    for asked in (PLAIN, LOGPROBS) if isinstance(policy, NativePolicy) else (PLAIN, EVERYTHING):
        result = RUNNER.run(policy.agenerate(policy.prepare([{"role": "user", "content": "Hi"}]), asked))
        check(policy, result, asked)
        policy.parse(result)


def probe(policy: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        repr(RUNNER.run(policy.aprobe()))
        if not isinstance(policy, SlimePolicy):
            policy.startup_check()


def value(critic: VLLMCritic) -> None:
    async def everything() -> None:
        for values in (await score(critic, ["abc", "de", "f"]), await critic.values_at((1, 2, 3), [2, 0])):
            assert all(type(one) is float and math.isfinite(one) for one in values)
        repr(await critic.startup_check())

    RUNNER.run(everything())


TOKENS = [converse(PLAIN), converse(EVERYTHING), probe]
CHAT = [converse(PLAIN), converse(LOGPROBS)]
WIRES: dict[str, tuple[Any, dict[str, Any], Make, list[Callable[[Any], None]]]] = {
    "vllm": ("vllm", {}, vllm, TOKENS),
    "sglang": ("sglang", {}, sglang, TOKENS),
    "slime": ("sglang", {}, slime, TOKENS),
    "chat": ("openai", {}, native(OpenAIChatPolicy), CHAT),
    "responses": ("openai", {}, native(OpenAIResponsesPolicy), CHAT),
    "pooling": ("pooling", {"task": "token_classify"}, pooling, [value]),
    "tinker": ("vllm", {}, tinker_sdk, [converse(PLAIN), converse(EVERYTHING)]),
}
"""Name to the loopback wire, its options, what makes the backend, and what is done with it."""

RECORDED = {
    "vllm": ("vllm/completions_*.json", "vllm/processed_*.json"),
    "sglang": ("sglang/*.json",),
    "slime": ("sglang/*.json",),
    "chat": ("openai/openai_chat_*.json", "vllm/chat_*.json"),
    "responses": ("openai/openai_responses_*.json", "vllm/responses_*.json"),
    "pooling": ("vllm/*pooling*.json",),
}
"""Replies of real servers, below ``wire/`` of the folder that ``FOCUS_SHARED`` names."""


def recorded(name: str) -> list[Any]:
    """The recorded replies of one wire; none without ``FOCUS_SHARED``."""
    root = Path(os.environ.get("FOCUS_SHARED", "/nowhere")) / "wire"
    files = [json.loads(path.read_text()) for pattern in RECORDED.get(name, ()) for path in sorted(root.glob(pattern))]
    replies = [one.get("response") or one.get("server") or {} for one in files]
    return [reply.get("body", reply) for reply in replies if isinstance(reply, dict)]


REFINERS: list[ErrorRefiner | None] = [None, refine_vllm, refine_sglang, refine_openai]
ERRORS: list[Any] = [
    {"error": {"message": "maximum context length", "type": "T", "param": None, "code": 400, "request_id": "r"}},
    {"object": "error", "message": "The request queue is full.", "type": "503", "code": 503},
    {"detail": [{"loc": ["n"], "msg": "bad"}]},
    {"error": {"code": "no_available_workers", "message": "No available workers"}},
    {"error": "Unauthorized"},
]
HEADERS = {
    "retry-after": ["1", "9" * 400, "soon", "Mon, 01 Jan 0001 00:00:00 -0000", "Fri, 31 Dec 9999 23:59:59 -2359", "²"],
    "location": ["/x", "http://[::1", "http://u:p@h:1/", "//[", "\x00", ""],
    "x-request-id": ["r", "", "\udcff"],
    "content-type": ["text/html", ""],
}


def refuse(dice: random.Random) -> bytes:
    """An error status with a body and headers of any kind."""
    body = spoiled(dice, json.dumps(mutated(dice, dice.choice(ERRORS))).encode())
    headers = {name: dice.choice(values) for name, values in HEADERS.items() if dice.random() < 0.7}
    call = Call("unit", "POST", "http://host/x", b"", None, attempts=1)
    outcome = judge(call, HttpReply(dice.choice(STATUSES), headers, body, 1, 0.1), dice.choice(REFINERS))
    assert isinstance(outcome, Failure)
    pickle.loads(pickle.dumps(outcome.error))
    repr(outcome)
    return body


def fuzz(name: str, seed: int, minutes: float) -> str | None:
    """The fault that was found."""
    dice, ends, counts = random.Random(f"{name} {seed}"), time.monotonic() + 60 * minutes, Counter[str]()
    wire, options, make, uses = WIRES.get(name, ("vllm", {}, vllm, []))
    with serve(demo_engine(), wire=wire, **options) as server:
        tapes = [Tape(dice, 0.6) for _ in uses]
        for use, tape in zip(uses, tapes, strict=True):
            use(make(server.url, tape))
            tape.recording = False
        url = server.url
    if real := recorded(name):
        uses = [*uses, value if name == "pooling" else answer]
        tapes.append(Tape(dice, 0.9, any=True, recording=False, replies=real))
    while time.monotonic() < ends:
        at = dice.randrange(len(uses)) if uses else 0
        try:
            if uses:
                uses[at](make(url, tapes[at]))
            else:
                refuse(dice)
            counts["results"] += 1
        except FocusError as error:
            counts[type(error).__name__] += 1
        except BaseException as error:
            replies = b"\n".join(reply[:3000] for reply in (tapes[at].played if uses else []))
            return f"{''.join(traceback.format_exception(error)[-12:])}\n{replies.decode('utf-8', 'replace')}"
    print(f"{name}: {counts.total()} tried: {', '.join(f'{n} {kind}' for kind, n in counts.most_common())}", flush=True)
    return None


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("wires", nargs="*", default=[*WIRES, "errors"], metavar="WIRE")
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(2**32))
    args = parser.parse_args()
    logging.disable()
    print(f"seed {args.seed}", flush=True)
    faults = 0
    for name in args.wires:
        if fault := fuzz(name, args.seed, args.minutes):
            print(f"{name}: {fault}", flush=True)
            faults += 1
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
