"""A policy and a prompt in other processes, each of which opens its own connections."""

from __future__ import annotations

import dataclasses
import pickle
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

from focus.backends import Policy, PolicyFormat, PreparedPrompt, SamplingParams, VLLMPolicy
from focus_testing import DEMO_TOOLS, demo_engine, serve

WORKERS = 2
ROLLOUTS = 6


def rollout(policy: Policy[Any], prompt: PreparedPrompt, seed: int) -> tuple[str, bool]:
    """Runs in a worker, where the policy makes its client with the first call."""
    with_seed = dataclasses.replace(policy.default_params, seed=seed)
    try:
        result = policy.generate(prompt, with_seed)
        return policy.parse(result).tool_calls[0].name, policy.is_exact(result)
    finally:
        policy.close()


def main() -> None:
    engine = demo_engine()
    with serve(engine, wire="vllm", model="demo", api_key="a key") as server:
        policy = VLLMPolicy(
            model="demo",
            format=PolicyFormat.resolve("demo", tokenizer=engine.tokenizer),
            base_url=f"{server.url}/v1",
            api_key="a key",
            default_params=SamplingParams(temperature=1.0, max_tokens=64, logprobs=0),
        )
        prompt = policy.prepare([{"role": "user", "content": "Flip the coin."}], DEMO_TOOLS)
        print(f"prompt of {len(prompt.tokens)} ids, under 10 kB as a pickle: {len(pickle.dumps(prompt)) < 10_000}")
        # "spawn" and "forkserver" start clean; "fork" works, too, as long as no thread holds a lock at that moment.
        with ProcessPoolExecutor(WORKERS, mp_context=get_context("spawn")) as pool:
            for future in [pool.submit(rollout, policy, prompt, seed) for seed in range(ROLLOUTS)]:
                print(*future.result())
        print(f"{len(server.requests)} requests, {server.open_connections} connections left open")


if __name__ == "__main__":
    main()
