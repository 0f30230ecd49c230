"""``focus generate``: JSONL of conversations in, JSONL of replies out."""

from __future__ import annotations

import asyncio
import sys
import warnings
from contextlib import ExitStack
from io import FileIO
from pathlib import Path
from typing import Annotated, Any

import typer

from focus_cli.backends import GENERATING, Target, open_policy
from focus_cli.failure import FAILED, reported, say
from focus_cli.lines import count_lines, numbered_lines
from focus_cli.options import (
    ApiKeyEnv,
    MaxTokens,
    Model,
    RepetitionPenalty,
    Seed,
    ServedModel,
    Stop,
    Temperature,
    TopK,
    TopP,
    sampling_of,
)
from focus_cli.output import Output
from focus_cli.progress import Progress
from focus_cli.records import Settings
from focus_cli.runner import Run
from focus_format import Policy
from focus_types import DEFAULT_MAX_TOKENS, DEFAULT_TEMPERATURE, DEFAULT_TOP_P, InvalidRequestError

__all__ = ["generate"]

_STDIN = Path("-")


def generate(
    source: Annotated[
        Path, typer.Argument(metavar="IN.jsonl", help="Conversations, one a line; - is the standard input.")
    ],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="OUT.jsonl", help="Records, one a line, as they come.")],
    backend: Annotated[str, typer.Option(help=f"One of {', '.join(GENERATING)}.")] = GENERATING[0],
    url: Annotated[str | None, typer.Option(help="The server's address, with or without /v1.")] = None,
    model: Model = None,
    served_model: ServedModel = None,
    profile: Annotated[
        str | None, typer.Option(help="Parser of the replies; by default the chat template shows it.")
    ] = None,
    api_key_env: ApiKeyEnv = None,
    concurrency: Annotated[int, typer.Option(min=1, help="Most replies in the making.")] = 64,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with OUT.jsonl: answer what it does not.")] = False,
    temperature: Temperature = DEFAULT_TEMPERATURE,
    max_tokens: MaxTokens = DEFAULT_MAX_TOKENS,
    top_p: TopP = DEFAULT_TOP_P,
    top_k: TopK = None,
    repetition_penalty: RepetitionPenalty = None,
    stop: Stop = None,
    seed: Seed = None,
    logprobs: Annotated[
        int, typer.Option(help="Alternatives per token beside its own log-probability; -1 asks for none at all.")
    ] = 0,
) -> None:
    """Generate one reply for every conversation of a JSONL file.

    Exit status: 0 when every line has its reply, 1 when some have not, 2 when the command makes no sense.
    """
    params = sampling_of(
        temperature=temperature,
        max_tokens=max_tokens,
        top_p=top_p,
        top_k=top_k,
        repetition_penalty=repetition_penalty,
        stop=stop,
        seed=seed,
        logprobs=None if logprobs < 0 else logprobs,
    )
    target = Target(backend, url, model, served_model, profile, api_key_env)
    with reported(), ExitStack() as stack:
        stream = stack.enter_context(_open(source))
        policy = open_policy(target, params)
        stack.callback(policy.close)
        settings = Settings(backend, policy.format.name, policy.served_model, profile, params)
        output = stack.enter_context(Output(out, settings, resume=resume))
        if output.cut:
            say(f"{out}: the last line was not finished ({output.cut} bytes) and is cut off")
        _check(policy)
        total = count_lines(stream)
        progress = stack.enter_context(Progress(None if total is None else max(total - len(output.done), 0)))
        asyncio.run(Run(policy, settings, output, progress, concurrency).over(numbered_lines(stream)))
    before = f", {len(output.done)} were there before" if output.done else ""
    say(f"{out}: {progress.summary()}{before}")
    if progress.failures:
        raise typer.Exit(FAILED)


def _open(source: Path) -> FileIO:
    try:
        if source == _STDIN:
            return FileIO(sys.stdin.fileno(), closefd=False)
        return FileIO(source)
    except OSError as error:
        raise InvalidRequestError(f"{source}: {error.strerror or error}") from error


def _check(policy: Policy[Any]) -> None:
    """Refuse a server that is not the model's before any line is sent, and pass its warnings on."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        policy.startup_check()
    for one in caught:
        say(f"warning: {one.message}")
