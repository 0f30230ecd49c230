"""What a probe of a live server can conclude, and what a start-up check makes of it."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Literal

from focus_types import BackendError, LogprobWarning, SamplingParams, ServerReport
from focus_types.meta import logprobs_match_sampling
from focus_types.sampling import effective_params, truncates

__all__ = [
    "PROBE_PARAMS",
    "PROBE_TEMPERATURE",
    "compare_logprobs",
    "require_usable",
    "text_agrees",
    "warn_about_logprobs",
]

PROBE_TEMPERATURE = 2.0
PROBE_PARAMS = SamplingParams(temperature=PROBE_TEMPERATURE, max_tokens=8, top_p=1.0, logprobs=2, seed=0)

# A candidate this close to certain leaves its rivals in numerical noise.
_CERTAIN = -1e-3
_TOLERANCE = 0.02


def compare_logprobs(
    sampled: Sequence[Mapping[str, float]], raw: Sequence[Mapping[str, float]]
) -> Literal["raw", "scaled", "unknown"]:
    """Whether log-probabilities sampled at `PROBE_TEMPERATURE` are the model's own or were divided by it.

    The difference between two candidates' log-probabilities is free of the normalisation: at temperature T it is
    1/T of the model's own. Positions where the model is certain, and pairs that are equally likely, tell nothing.

    Args:
        sampled: Per generated token, candidates and log-probabilities as they came with the reply.
        raw: The same positions scored at temperature 1.
    """
    votes = {"raw": 0, "scaled": 0}
    for here, there in zip(sampled, raw, strict=False):
        if not there or max(there.values()) >= _CERTAIN:
            continue
        both = sorted(here.keys() & there.keys(), key=lambda key: there[key])
        if len(both) < 2:
            continue
        own, seen = there[both[-1]] - there[both[0]], here[both[-1]] - here[both[0]]
        if own < 0.1:
            continue
        if abs(seen - own) < _TOLERANCE * own:
            votes["raw"] += 1
        elif abs(seen - own / PROBE_TEMPERATURE) < _TOLERANCE * own:
            votes["scaled"] += 1
    if votes["raw"] and not votes["scaled"]:
        return "raw"
    if votes["scaled"] and not votes["raw"]:
        return "scaled"
    return "unknown"


def text_agrees(server_text: str, local_text: str) -> bool | None:
    """Whether the server's text is the local decoding.

    None where nothing was said, or where a cut character leaves both free to differ.
    """
    if not (server_text or local_text) or "\ufffd" in local_text or "\ufffd" in server_text:
        return None
    return server_text == local_text


def require_usable(report: ServerReport, served_model: str, *, model_must_match: bool = True) -> None:
    """Refuse a server that cannot give exact replies for this policy.

    Raises:
        BackendError: Saying what to change.
    """
    if model_must_match and report.served_models and served_model not in report.served_models:
        raise BackendError(
            f"{report.url} serves {', '.join(report.served_models)}, not {served_model!r}: pass"
            f" served_model={report.served_models[0]!r}"
        )
    if not report.ids_confirmed:
        raise BackendError(f"{report.url} returns no token ids, so nothing about its replies would be exact")
    if report.prompt_confirmed is False:
        raise BackendError(f"{report.url} continues other prompt ids than the ones it is sent")
    if report.text_agrees is False:
        raise BackendError(
            f"{report.url} decodes its token ids to another text than the policy's format does: the format's tokenizer"
            " is not the served model's. Pass the model whose tokenizer the server uses, or a format built from it"
        )


def warn_about_logprobs(report: ServerReport, defaults: SamplingParams, remedy: Mapping[str, str]) -> None:
    """Warn when log-probabilities under the default sampling are not what a trainer will assume.

    Args:
        report: What the probe found.
        defaults: The policy's default parameters.
        remedy: Per mode, how to make this backend's log-probabilities match.
    """
    params = effective_params(defaults, None)
    mode = report.logprob_mode
    if logprobs_match_sampling(mode, params) is False:
        warnings.warn(
            f"{report.url} returns {mode!r} log-probabilities, which are not those of the distribution sampled with"
            f" {_describe(params)}. {remedy.get(mode, 'Sample at temperature 1 with top_p, top_k and penalty off.')}",
            LogprobWarning,
            stacklevel=3,
        )
    elif truncates(params):
        warnings.warn(
            f"sampling with {_describe(params)} cuts candidates off: a trainer's full softmax has another support, so"
            " its ratios to these log-probabilities are not importance weights. Sample with top_p=1.0 and top_k=-1.",
            LogprobWarning,
            stacklevel=3,
        )


def _describe(params: SamplingParams) -> str:
    parts = [f"temperature={params.temperature}", f"top_p={params.top_p}"]
    if params.top_k not in (None, -1):
        parts.append(f"top_k={params.top_k}")
    if params.repetition_penalty not in (None, 1):
        parts.append(f"repetition_penalty={params.repetition_penalty}")
    return ", ".join(parts)
