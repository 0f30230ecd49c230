"""SGLangPolicy and SlimePolicy behind the two routers, before one real SGLang worker."""

from __future__ import annotations

import asyncio
import time
import urllib.request
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from focus.backends import GenerateResult, PolicyFormat, SamplingParams, SGLangPolicy, SlimePolicy
from focus.errors import BackendError, ContextLengthError, InvalidRequestError, ServerUnavailableError
from focus_format.sync import run_sync
from real.sglang_checks import (
    ADD,
    COIN,
    END,
    GREEDY,
    HELLO,
    ONE_TO_SIX,
    Checks,
    Site,
    coin_logprob,
    running_requests,
    wait_until,
    worker_call,
)
from servers import sglang
from servers.process import Server
from support.slime_post import SlimeTransport


@pytest.fixture(scope="module")
def worker() -> Iterator[Server]:
    with sglang.script("--max-queued-requests", "8", "--weight-version", "v1") as server:
        yield server


@pytest.fixture(scope="module", params=["sglang_router", "smg"])
def site(request: pytest.FixtureRequest, worker: Server) -> Iterator[Site]:
    with sglang.router(request.param, worker.url) as router:
        yield Site(worker, router.url, None, tells_context=request.param == "smg")


class TestBehindARouter(Checks):
    def test_the_router_does_not_know_the_workers_address(self, site: Site) -> None:
        with pytest.raises(urllib.error.HTTPError) as caught:
            urllib.request.urlopen(f"{site.url}/model_info")
        with caught.value as refused:
            assert refused.code == 404

    def test_a_routing_key(self, site: Site, script_format: PolicyFormat[Any]) -> None:
        policy = site.policy(script_format, headers={"X-SMG-Routing-Key": "episode-1"})
        result = policy.generate_tokens([HELLO])
        policy.close()
        assert result.tokens == (*ONE_TO_SIX, END)
        assert result.meta is not None
        assert result.meta.server in (None, site.worker.url)


class TestSlime:
    """The policy calls a post() of Slime's shape, with its retries, on the loop that the client belongs to."""

    def run(self, site: Site, format: PolicyFormat[Any], job: Any, retries: int = 3) -> tuple[Any, SlimeTransport]:
        async def main() -> tuple[Any, SlimeTransport]:
            transport = SlimeTransport()

            async def post(url: str, payload: dict[str, Any], headers: Any = None) -> Any:
                return await transport.post(url, payload, retries, headers)

            policy = SlimePolicy(
                post, f"{site.url}/generate", model="focus-script", format=format, default_params=GREEDY
            )
            try:
                return await job(policy), transport
            finally:
                await transport.aclose()

        return asyncio.run(main())

    def test_a_conversation_by_exact_continuation(self, site: Site, script_format: PolicyFormat[Any]) -> None:
        async def job(policy: SlimePolicy) -> list[str]:
            messages: list[dict[str, Any]] = [{"role": "user", "content": "Add 2."}]
            prompt = policy.prepare(messages, [ADD])
            texts: list[str] = []
            for turn in range(6):
                result = await policy.agenerate(prompt)
                assert policy.is_exact(result)
                assert (result.stop_reason, result.matched_stop) == ("stop", END)
                assert len(result.logprobs) == len(result.tokens)
                texts.append(result.text)
                policy.record_reply(result, messages)
                messages.append({"role": "user" if turn else "tool", "content": f"{turn} 🦜"})
                following = policy.extend(prompt, result, messages)
                assert following.exact_continuation, following.refusal
                prompt = following
            return texts

        texts, transport = self.run(site, script_format, job)
        assert texts == ['<tool_call>{"name":"add","arguments":{"x":2}}</tool_call>', *[" Done."] * 5]
        assert len(transport.sent) == transport.calls == 6
        assert transport.headers == [None] * 6

    def test_tempered_logprobs_and_probe(self, site: Site, script_format: PolicyFormat[Any]) -> None:
        async def job(policy: SlimePolicy) -> GenerateResult:
            report = await policy.aprobe([COIN])
            assert (report.backend, report.logprob_mode) == ("slime", "tempered")
            assert (report.ids_confirmed, report.prompt_confirmed, report.text_agrees) == (True, True, True)
            return await policy.agenerate_tokens([COIN], SamplingParams(temperature=0.7, max_tokens=1, logprobs=0))

        result, _ = self.run(site, script_format, job)
        assert result.logprobs == pytest.approx([coin_logprob(result.tokens[0], 0.7)], abs=1e-4)
        assert result.meta.logprobs_match_sampling is True

    def test_abort(self, site: Site, script_format: PolicyFormat[Any]) -> None:
        async def job(policy: SlimePolicy) -> GenerateResult:
            generation = asyncio.create_task(
                policy.agenerate_tokens([COIN], SamplingParams(temperature=1.0, max_tokens=3900, logprobs=0))
            )
            await wait_until(lambda: running_requests(site) == 1, 20)
            await asyncio.sleep(0.5)
            await asyncio.to_thread(worker_call, site, "/abort_request", {"abort_all": True})
            return await generation

        result, transport = self.run(site, script_format, job)
        assert result.stop_reason == "abort"
        assert 0 < len(result.tokens) == len(result.logprobs)
        assert result.exact_generation
        assert len(transport.sent) == 1

    def test_refusals_are_typed(self, site: Site, script_format: PolicyFormat[Any]) -> None:
        async def job(policy: SlimePolicy) -> BaseException:
            with pytest.raises(InvalidRequestError):
                await policy.agenerate_tokens([HELLO, 151936])
            with pytest.raises(ContextLengthError) as caught:
                await policy.agenerate_tokens([COIN] * 4090)
            assert isinstance(caught.value.__cause__, httpx.HTTPStatusError)
            return caught.value

        error, transport = self.run(site, script_format, job)
        assert error.status == 400
        # The policy called once; what is sent again is the transport's doing.
        assert (transport.calls, len(transport.sent)) == (1, 3)

    def test_startup_check_in_ordinary_code(
        self, site: Site, script_format: PolicyFormat[Any], tokenizers: Any
    ) -> None:
        transport = SlimeTransport()
        url = f"{site.url}/generate"
        SlimePolicy(transport.post, url, model="focus-script", format=script_format).startup_check()

        async def post_once(url: str, payload: dict[str, Any]) -> Any:
            # Ten refusals in a row would open sglang_router's circuit breaker.
            return await transport.post(url, payload, max_retries=1)

        other = PolicyFormat.resolve(str(tokenizers / "qwen3.5"))
        policy = SlimePolicy(post_once, url, model="focus-script", format=other)
        with pytest.raises(BackendError, match="the format belongs to another model"):
            policy.startup_check()
        run_sync(transport.aclose())
        assert worker_call(site, "/model_info")["served_model_name"] == "focus-script"


@pytest.mark.parametrize("name", ["sglang_router", "smg"])
def test_no_worker(name: sglang.RouterName, script_format: PolicyFormat[Any]) -> None:
    with sglang.router(name) as router:
        policy = SGLangPolicy(model="focus-script", base_url=router.url, format=script_format, timeout=3.0)
        started = time.monotonic()
        for call in (lambda: policy.generate_tokens([HELLO]), policy.startup_check):
            with pytest.raises(ServerUnavailableError):
                call()
        print(f"{name} without workers: given up after {time.monotonic() - started:.1f} s")
        policy.close()
