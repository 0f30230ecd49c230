"""Exact generation through an SGLang server."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from focus_sglang.policy import SGLangPolicy

__all__ = ["SGLangPolicy"]

if not TYPE_CHECKING:

    def __getattr__(name):
        # A transport of its own needs `wire` alone: the HTTP client loads when the policy is asked for.
        if name != "SGLangPolicy":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from focus_sglang.policy import SGLangPolicy

        return SGLangPolicy
