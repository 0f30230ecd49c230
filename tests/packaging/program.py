"""Run by the interpreter of a clean environment: generate once, and say as JSON what came, what is loaded, what lacks.

Arguments: the folder of the downstream program, a key of `MAKERS`, and what the maker connects to.
"""

from __future__ import annotations

import asyncio
import json
import sys
import urllib.request
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

import focus
import focus.backends
import focus.critic
import focus.errors
import focus.extend
import focus.generation.parsing.base
import focus.generation.policy
import focus.generation.types
from focus.backends import Policy, PolicyFormat, SamplingParams

LAZY = (
    "OpenAIChatPolicy",
    "OpenAIResponsesPolicy",
    "SGLangPolicy",
    "SlimePolicy",
    "TinkerPolicy",
    "VLLMCritic",
    "VLLMPolicy",
)


def core(target: str, format: PolicyFormat[int]) -> Policy[Any]:
    policy: Policy[int] = import_module("number_game.policy").ListPolicy([target])
    return policy


def vllm(target: str, format: PolicyFormat[int]) -> Policy[Any]:
    from focus.backends import VLLMPolicy

    return VLLMPolicy(model="focus", base_url=f"{target}/v1", api_key="EMPTY", format=format)


def sglang(target: str, format: PolicyFormat[int]) -> Policy[Any]:
    from focus.backends import SGLangPolicy

    return SGLangPolicy(model="focus", base_url=target, format=format)


def slime(target: str, format: PolicyFormat[int]) -> Policy[Any]:
    from focus.backends import SlimePolicy

    def send(url: str, payload: dict[str, Any]) -> Mapping[str, Any]:
        request = urllib.request.Request(url, json.dumps(payload).encode(), {"content-type": "application/json"})
        with urllib.request.urlopen(request) as reply:
            found: dict[str, Any] = json.load(reply)
            return found

    async def post(url: str, payload: dict[str, Any]) -> Mapping[str, Any]:
        return await asyncio.to_thread(send, url, payload)

    return SlimePolicy(post, f"{target}/generate", model="focus", format=format)


def tinker(target: str, format: PolicyFormat[int]) -> Policy[Any]:
    from tinker import SamplingClient

    from focus.backends import TinkerPolicy

    return TinkerPolicy(SamplingClient.from_sampler_handle(target, api_key="tml-key"), model="focus", format=format)


def chat(target: str, format: PolicyFormat[int]) -> Policy[Any]:
    from focus.backends import OpenAIChatPolicy

    return OpenAIChatPolicy(model="focus", base_url=f"{target}/v1", api_key="key", format=format)


def responses(target: str, format: PolicyFormat[int]) -> Policy[Any]:
    from focus.backends import OpenAIResponsesPolicy

    return OpenAIResponsesPolicy(model="focus", base_url=f"{target}/v1", api_key="key", format=format)


MAKERS: dict[str, Callable[[str, PolicyFormat[int]], Policy[Any]]] = {
    maker.__name__: maker for maker in (core, vllm, sglang, slime, tinker, chat, responses)
}


def main(folder: str, name: str, target: str) -> None:
    imported = sorted(sys.modules)
    sys.path.insert(0, folder)
    policy = MAKERS[name](target, import_module("number_game.policy").number_format())
    prompt = policy.prepare([{"role": "user", "content": "Guess my number."}])
    result = policy.generate(prompt, SamplingParams(max_tokens=16))
    policy.close()
    generated = sorted(sys.modules)

    missing: dict[str, str] = {}
    for lazy in LAZY:
        try:
            getattr(focus.backends, lazy)
        except ImportError as error:
            missing[lazy] = str(error)
    starred: dict[str, object] = {}
    exec("from focus.backends import *", starred)
    report = {
        "action": policy.parse(result),
        "exact": policy.is_exact(result),
        "imported": imported,
        "generated": generated,
        "missing": missing,
        "starred": sorted(starred.keys() & set(LAZY)),
    }
    sys.stdout.write(json.dumps(report))


if __name__ == "__main__":
    main(*sys.argv[1:])
