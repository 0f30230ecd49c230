"""A policy that needs no server: it answers from a list."""

from __future__ import annotations

from collections.abc import Sequence

from focus.backends import GenerateResult, Policy, PolicyFormat, SamplingParams, TokenId

from .codec import CLOSE, ByteCodec
from .parser import NumberParser

__all__ = ["ListPolicy", "number_format"]


def number_format() -> PolicyFormat[int]:
    return PolicyFormat("number-game", ByteCodec(), NumberParser())


class ListPolicy(Policy[int]):
    """Gives its replies one after the other."""

    def __init__(self, replies: Sequence[str]) -> None:
        super().__init__(format=number_format(), model="list")
        self._replies = list(replies)

    async def agenerate_tokens(
        self, tokens: Sequence[TokenId], sampling_params: SamplingParams | None = None
    ) -> GenerateResult:
        text = self._replies.pop(0)
        return GenerateResult(
            tokens=(*self.format.codec.encode(text), CLOSE), prefix_tokens=tuple(tokens), text=text, matched_stop=CLOSE
        )
