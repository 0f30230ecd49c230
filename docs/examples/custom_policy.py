"""A policy around an inference engine of your own: one async function is all it takes."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

from focus.backends import GenerateResult, Policy, PolicyFormat, SamplingParams, TokenId
from focus.errors import InvalidRequestError, ServerUnavailableError
from focus_testing import ByteTokenizer, Engine, ScriptModel

TOKENIZER = ByteTokenizer()


@dataclass
class Transport:
    """Stands for the client of your training framework."""

    engine: Engine
    connected: bool = True

    async def sample(self, ids: list[int], max_tokens: int, temperature: float) -> tuple[list[int], list[float], str]:
        """The reply's ids, their log-probabilities and "stop" or "length"."""
        if not self.connected:
            raise ConnectionError("the engine is gone")
        params = SamplingParams(temperature=temperature, max_tokens=max_tokens, logprobs=0)
        reply = self.engine.generate(ids, params, stop_token_ids=[TOKENIZER.eos_token_id])
        return list(reply.tokens), reply.logprobs, reply.finish_reason


def refuse_what_is_not_sent(params: SamplingParams) -> None:
    """A parameter that the engine cannot honour is an error, never dropped."""
    off = SamplingParams(params.temperature, params.max_tokens, logprobs=params.logprobs)
    for one in dataclasses.fields(SamplingParams):
        if (given := getattr(params, one.name)) not in (None, getattr(off, one.name)):
            raise InvalidRequestError(f"{one.name}={given!r}: this engine takes temperature and max_tokens alone")


def make_policy(transport: Transport) -> Policy[str]:
    format = PolicyFormat.resolve("mine", tokenizer=TOKENIZER, profile="text")

    async def complete(tokens: Sequence[TokenId], params: SamplingParams | None) -> GenerateResult:
        # The call's parameters over the policy's; None if both are absent, so the defaults here are your own.
        params = params or SamplingParams(temperature=1.0, max_tokens=64, logprobs=0)
        refuse_what_is_not_sent(params)
        try:
            ids, logprobs, reason = await transport.sample(
                list(tokens), params.max_tokens or 64, 1.0 if params.temperature is None else params.temperature
            )
        except ConnectionError as error:
            raise ServerUnavailableError(f"the engine does not answer: {error}") from error
        ended = reason == "stop" and ids[-1] in format.codec.stop_tokens
        return GenerateResult(
            tokens=tuple(ids),
            text=format.codec.decode(ids[:-1] if ended else ids),
            stop_reason=reason,
            matched_stop=ids[-1] if ended else None,
            logprobs=logprobs,
            exact_generation=len(logprobs) == len(ids),
        )

    return Policy(format=format, model="mine", complete=complete)


def main() -> None:
    model = ScriptModel.replies([{"Yes.": 0.75, "No.": 0.25}], TOKENIZER)
    transport = Transport(Engine(model, TOKENIZER, seed=1))
    policy = make_policy(transport)

    prompt = policy.prepare([{"role": "user", "content": "Is 7 prime?"}])
    result = policy.generate(prompt)
    print(f"{policy.parse(result)!r} {len(result.tokens)} tokens, logprob {sum(result.logprobs):+.4f}")
    print(f"trainable={policy.trainable} exact={policy.is_exact(result)}")
    print(f"continues what was sent: {result.prefix_tokens == prompt.tokens}")

    try:
        policy.generate(prompt, SamplingParams(top_k=20))
    except InvalidRequestError as error:
        print(error)
    transport.connected = False
    try:
        asyncio.run(policy.agenerate(prompt))
    except ServerUnavailableError as error:
        print(error)


if __name__ == "__main__":
    main()
