"""Options that several commands share."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from focus_cli.failure import USAGE, fail
from focus_types import DEFAULT_MAX_TOKENS, DEFAULT_TEMPERATURE, DEFAULT_TOP_P, SamplingParams

__all__ = [
    "ApiKeyEnv",
    "MaxTokens",
    "Model",
    "RepetitionPenalty",
    "Seed",
    "ServedModel",
    "Stop",
    "Temperature",
    "TopK",
    "TopP",
    "read_key",
    "sampling_of",
]

Model = Annotated[
    str | None,
    typer.Option(
        help="Tokenizer and chat template: a hub's name, a folder, or 'byte' for that of focus serve. By default the"
        " server is asked what it loaded.",
        show_default=False,
    ),
]
ServedModel = Annotated[
    str | None,
    typer.Option(help="The server's name for the model, if it serves several.", show_default=False),
]
ApiKeyEnv = Annotated[
    str | None,
    typer.Option(
        help="Environment variable that holds the key. By default OPENAI_API_KEY for OpenAI's APIs and FOCUS_API_KEY,"
        " where it is set, for every other server.",
        show_default=False,
        metavar="NAME",
    ),
]
Temperature = Annotated[float, typer.Option(help="Sampling temperature; 0 is greedy.")]
MaxTokens = Annotated[int, typer.Option(help="Most tokens of a reply.")]
TopP = Annotated[float, typer.Option(help="Nucleus probability; 1 is off.")]
TopK = Annotated[int | None, typer.Option(help="Candidates kept; off by default.", show_default=False)]
RepetitionPenalty = Annotated[float | None, typer.Option(help="Off by default.", show_default=False)]
Stop = Annotated[list[str] | None, typer.Option(help="A string that ends a reply; may be repeated.")]
Seed = Annotated[int | None, typer.Option(help="One seed for every reply: equal prompts give equal replies.")]


def sampling_of(
    *,
    temperature: float = DEFAULT_TEMPERATURE,
    max_tokens: int = DEFAULT_MAX_TOKENS,
    top_p: float = DEFAULT_TOP_P,
    top_k: int | None = None,
    repetition_penalty: float | None = None,
    stop: list[str] | None = None,
    seed: int | None = None,
    logprobs: int | None = None,
) -> SamplingParams:
    """Options as parameters."""
    return SamplingParams(
        temperature=temperature,
        max_tokens=max_tokens,
        top_p=top_p,
        top_k=top_k,
        repetition_penalty=repetition_penalty,
        stop=stop or None,
        seed=seed,
        logprobs=logprobs,
    )


def read_key(name: str | None, default: str) -> str | None:
    """The key in an environment variable; None where the default one is not set.

    Args:
        name: What the user named; it must be set.
        default: Looked at otherwise.
    """
    key = os.environ.get(default if name is None else name)
    if name is not None and not key:
        fail(f"--api-key-env {name}: there is no such environment variable", USAGE)
    return key or None
