"""Rollouts in Ray actors. Ray is no dependency of focus."""

from __future__ import annotations

import dataclasses
import importlib
from typing import Any

from focus.backends import Policy, PolicyFormat, PreparedPrompt, SamplingParams, VLLMPolicy
from focus_testing import DEMO_TOOLS, demo_engine, serve

ACTORS = 2
ROLLOUTS = 6


class Worker:
    """Holds one policy for its life, and so one pool of connections."""

    def __init__(self, policy: Policy[Any]) -> None:
        self.policy = policy

    async def rollout(self, prompt: PreparedPrompt, seed: int) -> tuple[str, bool]:
        """An async method: one actor runs many rollouts at a time, on its event loop."""
        result = await self.policy.agenerate(prompt, dataclasses.replace(self.policy.default_params, seed=seed))
        return self.policy.parse(result).tool_calls[0].name, self.policy.is_exact(result)

    async def close(self) -> None:
        await self.policy.aclose()


def main() -> None:
    ray: Any = importlib.import_module("ray")  # usually: import ray
    ray.init(num_cpus=ACTORS, include_dashboard=False, log_to_driver=False)
    engine = demo_engine()
    with serve(engine, wire="vllm", model="demo", api_key="a key") as server:
        policy = VLLMPolicy(
            model="demo",
            format=PolicyFormat.resolve("demo", tokenizer=engine.tokenizer),
            base_url=f"{server.url}/v1",
            api_key="a key",
            default_params=SamplingParams(temperature=1.0, max_tokens=64, logprobs=0),
        )
        prompt = ray.put(policy.prepare([{"role": "user", "content": "Flip the coin."}], DEMO_TOOLS))
        workers = [ray.remote(Worker).options(max_concurrency=64).remote(policy) for _ in range(ACTORS)]
        for name, exact in ray.get([workers[n % ACTORS].rollout.remote(prompt, n) for n in range(ROLLOUTS)]):
            print(name, exact)
        ray.get([worker.close.remote() for worker in workers])
        print(f"{len(server.requests)} requests, {server.open_connections} connections left open")
    ray.shutdown()


if __name__ == "__main__":
    main()
