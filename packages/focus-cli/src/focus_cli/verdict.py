"""What a live server is worth: its report, what to change, and whether it can be used at all."""

from __future__ import annotations

import asyncio
import warnings
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from focus_cli.backends import Target, open_critic, open_server
from focus_cli.failure import describe
from focus_types import BackendError, InvalidRequestError, SamplingParams, ServerReport

if TYPE_CHECKING:
    from focus_sglang import SGLangPolicy
    from focus_vllm import VLLMPolicy

__all__ = ["CHECKED", "Verdict", "judge"]

CHECKED = ("vllm", "sglang", "pooling")
_ELSEWHERE = {
    "embedded": "there is no server to check",
    "openai-chat": "a chat API tells neither token ids nor what its log-probabilities are of",
    "openai-responses": "a responses API tells neither token ids nor what its log-probabilities are of",
    "tinker": "the service is reached through the sampling client of your script: TinkerPolicy(...).probe() asks it",
    "slime": "its router and workers are SGLang's: --backend sglang",
}
_PLAIN_TEXT = "The"
"""Goes on in many ways where a greeting may have one reply only."""
_NO_SUCH_PATH = (404, 405)


@dataclass(frozen=True)
class Verdict:
    """What a check found."""

    report: ServerReport | None = None
    """None if nothing could be found out."""
    model: str | None = None
    """The tokenizer that the server's text was compared with."""
    changes: tuple[str, ...] = ()
    """What to change, although the server can be used."""
    error: str | None = None
    """Why it cannot be used."""

    @property
    def status(self) -> str:
        """``ok``, ``change`` or ``unusable``."""
        return "unusable" if self.error is not None else "change" if self.changes else "ok"


def judge(target: Target, params: SamplingParams, prompt: str | None) -> Verdict:
    """Ask a server with a handful of small requests.

    Args:
        target: The server.
        params: The sampling that the log-probabilities are meant for.
        prompt: A text that leaves the model a choice; None tries a greeting, then a plain word.

    Raises:
        InvalidRequestError: The options do not fit, or the tokenizer cannot be found.
        ImportError: The backend is not installed.
    """
    if target.backend not in CHECKED:
        reason = _ELSEWHERE.get(target.backend, "there is no such backend")
        raise InvalidRequestError(f"--backend {target.backend}: {reason}. Choose one of {', '.join(CHECKED)}")
    try:
        if target.backend == "pooling":
            return Verdict(asyncio.run(_ask_critic(target)))
        return _judge_policy(target, params, prompt)
    except BackendError as error:
        return Verdict(error=describe(error))


def _judge_policy(target: Target, params: SamplingParams, prompt: str | None) -> Verdict:
    policy = open_server(target, params)
    try:
        report = _probe(policy, prompt)
        error = None
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                policy.startup_check()
            except BackendError as refusal:
                error = str(refusal)
    except BackendError as refusal:
        if target.backend == "vllm" and refusal.status in _NO_SUCH_PATH:
            refusal.add_note("a server that pools instead of generating is checked with --backend pooling")
        raise
    finally:
        policy.close()
    changes = [str(one.message) for one in caught]
    if report.logprob_mode == "unknown":
        changes.append(
            "what the log-probabilities are of stays unknown: --prompt TEXT, one that can go on in many ways"
        )
    return Verdict(report, policy.format.name, tuple(changes), error)


def _probe(policy: VLLMPolicy | SGLangPolicy, prompt: str | None) -> ServerReport:
    if prompt is not None:
        return policy.probe(policy.format.codec.encode(prompt))
    first = policy.probe()
    if first.logprob_mode != "unknown":
        return first
    second = policy.probe(policy.format.codec.encode(_PLAIN_TEXT))
    agreements = (first.text_agrees, second.text_agrees)
    return replace(
        second,
        text_agrees=False if False in agreements else True if True in agreements else None,
        stop_token_kept=first.stop_token_kept if second.stop_token_kept is None else second.stop_token_kept,
    )


async def _ask_critic(target: Target) -> ServerReport:
    critic = open_critic(target)
    try:
        return await critic.startup_check()
    finally:
        await critic.aclose()
