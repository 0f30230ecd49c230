"""Generate a stream of conversations with bounded concurrency; one that fails does not stop the others."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

from focus_cli.failure import describe
from focus_cli.output import Output
from focus_cli.progress import Progress
from focus_cli.records import Conversation, Settings, digest, encode, make_record, read_conversation
from focus_format import Policy
from focus_types import AuthenticationError, GenerateResult

__all__ = ["Run"]


@dataclass
class Run:
    """One run over the lines of an input.

    Args:
        policy: What generates.
        settings: Written into every record.
        output: Where records go.
        progress: Told of every line.
        concurrency: Most replies in the making.
    """

    policy: Policy[Any]
    settings: Settings
    output: Output
    progress: Progress
    concurrency: int

    async def over(self, lines: AsyncIterator[tuple[int, bytes]]) -> None:
        """Answer every line that the output does not answer yet.

        Raises:
            AuthenticationError: The key is refused, so no other line would fare better.
            InvalidRequestError: A line is not the one that the output answers.
            OSError: The output cannot be written.
        """
        gate = asyncio.Semaphore(self.concurrency)
        try:
            async with asyncio.TaskGroup() as group:
                async for number, line in lines:
                    if not self.output.answered(number, line):
                        await gate.acquire()
                        group.create_task(self._answer(number, line, gate))
        except* Exception as errors:
            raise errors.exceptions[0] from None
        finally:
            await self.policy.aclose()

    async def _answer(self, number: int, line: bytes, gate: asyncio.Semaphore) -> None:
        try:
            conversation = read_conversation(line)
            result = await self._generate(conversation)
            record = make_record(self.policy, result, conversation, number, digest(line), self.settings)
        except AuthenticationError:
            raise
        except Exception as error:
            self.progress.failed(f"line {number}: {describe(error)}")
            return
        finally:
            gate.release()
        self.output.append(encode(record))
        self.progress.generated(exact=record.exact, acted=record.action is not None)

    async def _generate(self, conversation: Conversation) -> GenerateResult:
        if conversation.messages is None:
            return await self.policy.agenerate_tokens(conversation.prompt_tokens or [])
        return await self.policy.agenerate(self.policy.prepare(conversation.messages, conversation.tools))
