"""``focus check``: what a live server is, before anything is trained on it."""

from __future__ import annotations

from typing import Annotated

import typer

from focus_cli.backends import Target
from focus_cli.failure import FAILED, reported
from focus_cli.options import (
    ApiKeyEnv,
    Model,
    RepetitionPenalty,
    ServedModel,
    Temperature,
    TopK,
    TopP,
    sampling_of,
)
from focus_cli.report import as_json, as_lines
from focus_cli.verdict import CHECKED, judge
from focus_types import DEFAULT_TEMPERATURE, DEFAULT_TOP_P
from focus_types.sampling import validate_params

__all__ = ["CHANGE", "check"]

CHANGE = 3
"""The server can be used, and something about it or the sampling should be changed."""


def check(
    url: Annotated[str, typer.Argument(metavar="URL", help="The server's address, with or without /v1.")],
    backend: Annotated[str, typer.Option(help=f"One of {', '.join(CHECKED)}.")],
    model: Model = None,
    served_model: ServedModel = None,
    api_key_env: ApiKeyEnv = None,
    temperature: Temperature = DEFAULT_TEMPERATURE,
    top_p: TopP = DEFAULT_TOP_P,
    top_k: TopK = None,
    repetition_penalty: RepetitionPenalty = None,
    prompt: Annotated[
        str | None,
        typer.Option(
            help="A text that can go on in many ways, for models that are certain of their replies to others.",
            show_default=False,
        ),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="For scripts.")] = False,
) -> None:
    """Say what a live server is, what its log-probabilities mean, and what to change.

    They are judged for the sampling that the options describe.

    Exit status: 0 usable as it is, 1 not usable, 2 when the command makes no sense, 3 usable with something to
    change.
    """
    params = sampling_of(temperature=temperature, top_p=top_p, top_k=top_k, repetition_penalty=repetition_penalty)
    target = Target(backend, url, model, served_model, "text", api_key_env)
    with reported():
        validate_params(params)
        verdict = judge(target, params, prompt)
    if json:
        typer.echo(as_json(target, verdict))
    else:
        for label, text in as_lines(target, verdict, params):
            typer.echo(f"{label:<10} {text}")
    raise typer.Exit({"ok": 0, "change": CHANGE, "unusable": FAILED}[verdict.status])
