"""The critic: predict the remaining return of a context.

``VLLMCritic`` and its HTTP client are imported when the name is first touched, so ``Critic`` stays light.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from focus_critic.critic import Critic, PredictFn
from focus_critic.scoring import score

if TYPE_CHECKING:
    from focus_critic.vllm import VLLMCritic

__all__ = ["Critic", "PredictFn", "VLLMCritic", "score"]

if not TYPE_CHECKING:
    # Hidden from type checkers: a visible __getattr__ would make every misspelt name of the module valid.
    def __getattr__(name: str) -> object:
        if name != "VLLMCritic":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        try:
            from focus_critic.vllm import VLLMCritic
        except ModuleNotFoundError as error:
            if error.name not in ("focus_http", "msgspec"):
                raise
            raise ImportError(
                "VLLMCritic needs the HTTP client: install focus-critic[vllm]", name=error.name
            ) from error
        return VLLMCritic
