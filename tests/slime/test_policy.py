"""SlimePolicy: what it gives to post(), and what it makes of what comes back."""

from __future__ import annotations

import math
import pickle
from collections.abc import Iterator
from typing import Any

import pytest

from focus.backends import SamplingParams, SGLangPolicy, SlimePolicy
from focus.errors import (
    AbortedError,
    AuthenticationError,
    BackendError,
    ContextLengthError,
    InvalidRequestError,
    LogprobWarning,
    ProtocolError,
    RateLimitError,
    RequestTimeoutError,
    ServerUnavailableError,
)
from focus_format.sync import run_sync
from focus_testing import ByteTokenizer, Engine, Fault, ScriptModel, serve
from focus_testing.server import Server
from support.formats import byte_format
from support.slime_post import SlimeTransport

TOKENIZER = ByteTokenizer()
ASK, HEADS, TAILS = TOKENIZER.encode("?")[0], TOKENIZER.encode("h")[0], TOKENIZER.encode("t")[0]
END = TOKENIZER.eos_token_id
REPLY: dict[str, Any] = {
    "text": "h",
    "output_ids": [HEADS],
    "meta_info": {"id": "r", "finish_reason": {"type": "length", "length": 1}, "prompt_tokens": 1},
}


def coin_engine() -> Engine:
    """A question mark is followed by "h" with .75 and "t" with .25, and either ends the reply."""
    rules: dict[tuple[int, ...], dict[tuple[int, ...], float]] = {(ASK,): {(HEADS, END): 0.75, (TAILS, END): 0.25}}
    return Engine(ScriptModel(rules, vocab_size=len(TOKENIZER), default=ASK), TOKENIZER, logprob_mode="tempered")


class Recorder:
    """A post() without headers, as in older versions of Slime: it remembers its calls."""

    def __init__(self, reply: object = REPLY) -> None:
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.reply = reply

    async def __call__(self, url: str, payload: dict[str, Any], max_retries: int = 60) -> Any:
        self.calls.append((url, payload))
        if isinstance(self.reply, Exception):
            raise self.reply
        return self.reply


def make(post: Any, **changed: Any) -> SlimePolicy:
    arguments: dict[str, Any] = {"model": "focus", "format": byte_format(), **changed}
    return SlimePolicy(post, arguments.pop("url", "http://router/generate"), **arguments)


@pytest.fixture
def server() -> Iterator[Server]:
    with serve(coin_engine(), wire="sglang", router=True) as running:
        yield running


def test_post_gets_url_and_payload_and_no_headers() -> None:
    post = Recorder()
    result = make(post).generate_tokens([ASK], SamplingParams(temperature=0.5, max_tokens=9, stop=["zz"]))
    assert result.tokens == (HEADS,)
    assert post.calls == [
        (
            "http://router/generate",
            {
                "input_ids": [ASK],
                "return_logprob": True,
                "sampling_params": {
                    "temperature": 0.5,
                    "top_p": 1.0,
                    "top_k": -1,
                    "max_new_tokens": 9,
                    "stop": ["zz"],
                    "stop_token_ids": sorted(byte_format().codec.stop_tokens),
                    "min_p": 0.0,
                    "presence_penalty": 0.0,
                    "frequency_penalty": 0.0,
                    "repetition_penalty": 1.0,
                    "skip_special_tokens": False,
                    "no_stop_trim": True,
                    "spaces_between_special_tokens": False,
                },
            },
        )
    ]


@pytest.mark.anyio
async def test_headers_reach_the_server(server: Server) -> None:
    transport = SlimeTransport()
    policy = make(transport.post, url=f"{server.url}/generate", headers={"X-SMG-Routing-Key": "episode"})
    await policy.agenerate_tokens([ASK])
    await transport.aclose()
    assert transport.headers == [{"X-SMG-Routing-Key": "episode"}]
    assert server.requests[0].headers["x-smg-routing-key"] == "episode"


@pytest.mark.anyio
async def test_it_sends_what_sglangpolicy_sends(server: Server) -> None:
    params = SamplingParams(temperature=0, logprobs=2, prompt_logprobs=1, seed=3, stop=["zz"])
    transport = SlimeTransport()
    slime = make(transport.post, url=f"{server.url}/generate")
    sglang = SGLangPolicy(model="focus", base_url=server.url, format=byte_format())
    one, other = await slime.agenerate_tokens([ASK], params), await sglang.agenerate_tokens([ASK], params)
    await transport.aclose()
    await sglang.aclose()
    assert server.requests[0].body == server.requests[1].body
    assert (one.tokens, one.text, one.logprobs, one.top_logprobs) == (
        other.tokens,
        other.text,
        other.logprobs,
        other.top_logprobs,
    )
    assert one.tokens == (HEADS, END)
    assert one.logprobs == pytest.approx([math.log(0.75), 0.0])
    assert one.exact_generation


@pytest.mark.parametrize("tokens", [[], [ASK, -1], [ASK, 2**31], [ASK, len(TOKENIZER)], [1.0]])
def test_bad_ids_are_not_posted(tokens: Any) -> None:
    post = Recorder()
    with pytest.raises(InvalidRequestError):
        make(post).generate_tokens(tokens)
    assert post.calls == []


def test_a_full_context_is_not_posted_where_its_length_is_known() -> None:
    post = Recorder()
    policy = make(post)
    policy.context_length = 64
    with pytest.raises(ContextLengthError, match="nothing was sent"):
        policy.generate_tokens([ASK] * 58)
    assert post.calls == []


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        ("<html><body>Bad gateway</body></html>", "str instead of SGLang's reply object: <html><body>Bad gateway"),
        ([REPLY], "list instead of SGLang's reply object: [{'text': 'h'"),
        (None, "NoneType"),
        ({}, "meta_info is missing; the fields are none"),
        ({"error": {"message": "no"}}, "the fields are error"),
        ({**REPLY, "output_ids": None}, "output_ids is missing or no list"),
        ({**REPLY, "output_ids": ["104"]}, "something other than integer ids"),
        ({**REPLY, "output_ids": [True]}, "something other than integer ids"),
        ({**REPLY, "output_ids": [-4]}, "the token id -4"),
        ({**REPLY, "meta_info": []}, "meta_info is missing or no object"),
        ({**REPLY, "meta_info": {"finish_reason": None}}, "finish_reason is missing"),
        ({**REPLY, "meta_info": {"finish_reason": {"type": 3}}}, "finish_reason.type"),
    ],
)
def test_what_is_no_reply_is_a_protocol_error(reply: Any, words: str) -> None:
    post = Recorder(reply)
    with pytest.raises(ProtocolError) as caught:
        make(post).generate_tokens([ASK])
    assert words in str(caught.value)
    assert len(post.calls) == 1


@pytest.mark.parametrize(
    ("entries", "words"),
    [
        ([["-0.1", HEADS, None]], "no number"),
        ([[-0.1, str(HEADS), None]], "integer ids"),
        ([-0.1], "[logprob, id, text]"),
        ({}, "no list"),
    ],
)
def test_log_probabilities_of_another_shape(entries: Any, words: str) -> None:
    meta = {**REPLY["meta_info"], "output_token_logprobs": entries}
    with pytest.raises(ProtocolError) as caught:
        make(Recorder({**REPLY, "meta_info": meta})).generate_tokens([ASK])
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"prompt_tokens": 2}, "counted 2 prompt tokens, 1 were sent"),
        ({"completion_tokens": 2}, "counted 2 tokens and returned 1"),
        ({"output_token_logprobs": [[-0.1, TAILS, None]]}, "the ids of output_token_logprobs differ"),
        ({}, "log-probabilities were asked for and none came"),
        ({"output_token_logprobs": [[math.nan, HEADS, None]]}, "missing or not finite"),
        ({"output_token_logprobs": [[None, HEADS, None]]}, "missing or not finite"),
        ({"output_token_logprobs": [[-3.4028235e38, HEADS, None]]}, "filler"),
    ],
)
def test_doubt_about_a_reply_is_told(changed: dict[str, Any], reason: str) -> None:
    good = {**REPLY["meta_info"], "output_token_logprobs": [[-0.1, HEADS, None]]}
    meta = {**good, **changed} if changed else REPLY["meta_info"]
    result = make(Recorder({**REPLY, "meta_info": meta})).generate_tokens([ASK], SamplingParams(logprobs=0))
    assert not result.exact_generation
    assert result.meta is not None
    assert reason in (result.meta.inexact_reason or "")


def test_an_older_server_tells_the_last_weight_version() -> None:
    meta = {**REPLY["meta_info"], "weight_version": "step-7"}
    result = make(Recorder({**REPLY, "meta_info": meta})).generate_tokens([ASK])
    assert result.meta is not None
    assert result.meta.weight_versions == (("step-7", 1, 1),)


@pytest.mark.parametrize("spans", [{"v": 1}, [{}], [None], [{"version": 1, "start": math.inf, "end": 1}]])
def test_weight_versions_of_another_shape_are_left_out(spans: Any) -> None:
    meta = {**REPLY["meta_info"], "weight_versions": spans}
    result = make(Recorder({**REPLY, "meta_info": meta})).generate_tokens([ASK])
    assert result.meta is not None
    assert result.meta.weight_versions == ()


def test_abort_is_surfaced() -> None:
    meta = {"id": "r", "finish_reason": {"type": "abort", "message": "Abort in waiting queue"}}
    policy = make(Recorder({"text": "", "output_ids": [], "meta_info": meta}))
    result = policy.generate_tokens([ASK], SamplingParams(logprobs=0))
    assert (result.stop_reason, result.tokens, result.logprobs) == ("abort", (), [])
    assert result.exact_generation
    with pytest.raises(AbortedError):
        policy.parse(result)


class Response:
    def __init__(self, status: int, text: str) -> None:
        self.status_code = status
        self.text = text


class Unread:
    """As an HTTP client's response whose body was never read."""

    status_code = 503

    @property
    def text(self) -> str:
        raise RuntimeError("the body was not read")


class StatusError(Exception):
    def __init__(self, status: int, text: str = "no") -> None:
        super().__init__(f"status {status}")
        self.response = Response(status, text)


class UnreadError(Exception):
    response = Unread()


FULL = '{"error":{"message":"The input (99 tokens) is longer than the model\'s context length (64 tokens)."}}'


@pytest.mark.parametrize(
    ("error", "kind", "status"),
    [
        (StatusError(400), BackendError, 400),
        (StatusError(400, FULL), ContextLengthError, 400),
        (StatusError(401), AuthenticationError, 401),
        (StatusError(429), RateLimitError, 429),
        (StatusError(504), RequestTimeoutError, 504),
        (StatusError(503), ServerUnavailableError, 503),
        (TimeoutError("late"), RequestTimeoutError, None),
        (ConnectionResetError("gone"), ServerUnavailableError, None),
        (UnreadError("status 503"), ServerUnavailableError, 503),
        (TypeError("post() got an unexpected keyword argument 'headers'"), BackendError, None),
        (AttributeError("'NoneType' object has no attribute 'post'"), BackendError, None),
    ],
)
def test_what_post_raises_is_typed_and_not_sent_again(
    error: Exception, kind: type[BackendError], status: int | None
) -> None:
    post = Recorder(error)
    with pytest.raises(BackendError) as caught:
        make(post).generate_tokens([ASK])
    assert type(caught.value) is kind
    assert caught.value.status == status
    assert caught.value.__cause__ is error
    assert len(post.calls) == 1


@pytest.mark.parametrize("reply", ["your key is sk-12345", StatusError(401, "your key is sk-12345")])
def test_a_key_that_is_echoed_is_not_shown(reply: object) -> None:
    async def post(url: str, payload: dict[str, Any], headers: dict[str, str]) -> Any:
        if isinstance(reply, Exception):
            raise reply
        return reply

    policy = make(post, headers={"Authorization": "Bearer sk-12345"})
    with pytest.raises(BackendError) as caught:
        policy.generate_tokens([ASK])
    assert "sk-12345" not in f"{caught.value}{caught.value!r}{caught.value.body}{policy!r}"
    assert "***" in str(caught.value)


@pytest.mark.anyio
async def test_probe(server: Server) -> None:
    transport = SlimeTransport()
    report = await make(transport.post, url=f"{server.url}/generate").aprobe([ASK])
    await transport.aclose()
    assert (report.backend, report.url) == ("slime", f"{server.url}/generate")
    assert (report.ids_confirmed, report.prompt_confirmed, report.text_agrees) == (True, True, True)
    assert (report.logprob_mode, report.stop_token_kept, report.context_length) == ("tempered", True, None)
    assert report.notes == ()
    assert transport.calls == 3


def test_startup_check(server: Server) -> None:
    transport = SlimeTransport()

    def policy(**changed: Any) -> SlimePolicy:
        return make(transport.post, url=f"{server.url}/generate", **changed)

    policy().startup_check()
    truncating = policy(default_params=SamplingParams(temperature=1.0, top_p=0.5))
    with pytest.warns(LogprobWarning, match="top_p"):
        truncating.startup_check()
    server.set_fault(Fault("wrong_prompt"))
    with pytest.raises(BackendError, match="other prompt ids"):
        policy().startup_check()
    # Blocking calls share one loop of their own, which the client now belongs to.
    run_sync(transport.aclose())


@pytest.mark.anyio
async def test_retries_are_the_transports(server: Server) -> None:
    server.set_fault(Fault("status", calls=[0, 1], status=503))
    transport = SlimeTransport()
    policy = make(transport.post, url=f"{server.url}/generate")
    assert (await policy.agenerate_tokens([ASK])).exact_generation
    await transport.aclose()
    assert (transport.calls, len(transport.sent)) == (1, 3)


def test_arguments_are_checked() -> None:
    with pytest.raises(InvalidRequestError, match="async function"):
        make(None)
    with pytest.raises(InvalidRequestError, match="url"):
        make(Recorder(), url="")
    with pytest.raises(InvalidRequestError, match="not both"):
        make(Recorder(), profile="text")


async def module_level_post(url: str, payload: dict[str, Any]) -> Any:
    return REPLY


def test_a_policy_pickles() -> None:
    copy: SlimePolicy = pickle.loads(pickle.dumps(make(module_level_post)))
    assert copy.generate_tokens([ASK]).tokens == (HEADS,)
