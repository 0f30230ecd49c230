"""A verdict for people, line by line, and for scripts, as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict

from focus_cli.backends import Target
from focus_cli.verdict import Verdict
from focus_types import SamplingParams, ServerReport
from focus_types.meta import logprobs_match_sampling

__all__ = ["as_json", "as_lines"]

_NAMES = {"vllm": "vLLM", "sglang": "SGLang", "pooling": "vLLM (pooling)"}
_MEANINGS = {
    "raw": "the model's own distribution at temperature 1, before top-p, top-k and penalties",
    "tempered": "the distribution after temperature and penalties, before top-p and top-k",
    "behavior": "the very distribution that is sampled from",
    "unknown": "nobody knows what: the model was certain of every token of the probe",
}
_VERDICTS = {"ok": "usable as it is", "change": "usable, with something to change", "unusable": "not usable"}


def as_json(target: Target, verdict: Verdict) -> str:
    """``status``, ``backend``, ``url``, ``model``, ``report``, ``changes`` and ``error``."""
    fields = {
        "status": verdict.status,
        "backend": target.backend,
        "url": target.url,
        "model": verdict.model,
        "report": None if verdict.report is None else asdict(verdict.report),
        "changes": verdict.changes,
        "error": verdict.error,
    }
    return json.dumps(fields, ensure_ascii=False, indent=2)


def as_lines(target: Target, verdict: Verdict, params: SamplingParams) -> Iterator[tuple[str, str]]:
    """Labels and what there is to say under each."""
    report = verdict.report
    if report is not None:
        version = "" if report.version is None else f" {report.version}"
        yield "server", f"{_NAMES[target.backend]}{version} at {report.url}"
        yield "model", ", ".join(report.served_models) or "the server does not tell"
        if target.backend == "pooling":
            yield from (("values", note) for note in report.notes)
        else:
            yield from _generation(report, verdict, params)
        length = report.context_length
        yield "context", "the server does not tell" if length is None else f"{length} tokens, prompt and reply together"
        if target.backend != "pooling":
            yield from (("note", note) for note in report.notes)
    yield from (("change", change) for change in verdict.changes)
    if verdict.error is not None:
        yield "error", verdict.error
    yield "verdict", _VERDICTS[verdict.status]


def _generation(report: ServerReport, verdict: Verdict, params: SamplingParams) -> Iterator[tuple[str, str]]:
    yield "token ids", "confirmed: replies carry them" if report.ids_confirmed else "missing from replies"
    yield "prompt", _told(report.prompt_confirmed, "the server continues the ids it is sent", "it continues other ids")
    yield (
        "tokenizer",
        _told(
            report.text_agrees,
            f"the server's text is what {verdict.model} decodes",
            f"the server's text is not what {verdict.model} decodes",
        ),
    )
    yield "logprobs", f"{report.logprob_mode}: of {_MEANINGS[report.logprob_mode]}"
    matches = logprobs_match_sampling(report.logprob_mode, params)
    if matches is not None:
        asked = f"those of sampling with temperature={params.temperature}, top_p={params.top_p}"
        yield "", f"they are {asked}" if matches else f"they are not {asked}"
    yield "stop", _stop(report)


def _told(fact: bool | None, yes: str, no: str) -> str:
    if fact is None:
        return "not confirmed: the server did not tell"
    return f"confirmed: {yes}" if fact else f"wrong: {no}"


def _stop(report: ServerReport) -> str:
    kept = {
        True: "the token that ends a reply is its last id",
        False: "the token that ends a reply is missing from its ids",
        None: "no reply of the probe was ended by a token",
    }[report.stop_token_kept]
    limit = report.stop_string_limit
    return kept if limit is None else f"{kept}; at most {limit} stop strings"
