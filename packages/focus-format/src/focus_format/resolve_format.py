"""A policy's format: the one it was given, or the one of its model."""

from __future__ import annotations

from typing import Any

from focus_format.format import PolicyFormat
from focus_types import InvalidRequestError

__all__ = ["resolve_format"]


def resolve_format(model: str, format: PolicyFormat[Any] | None, profile: str | None) -> PolicyFormat[Any]:
    """The given format, else the one resolved from ``model`` with the parser that ``profile`` names.

    Raises:
        InvalidRequestError: Both are given, or ``model`` resolves to none.
    """
    if format is None:
        return PolicyFormat.resolve(model, profile=profile)
    if profile is not None:
        raise InvalidRequestError(
            "pass format= or profile=, not both: a format already has its parser (format.with_parser() changes it)"
        )
    return format
