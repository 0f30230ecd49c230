"""Language models whose next-token probabilities are exactly known."""

from __future__ import annotations

from focus_testing.models.base import LanguageModel, Logits
from focus_testing.models.ngram import NGramModel
from focus_testing.models.script import ScriptModel

__all__ = ["LanguageModel", "Logits", "NGramModel", "ScriptModel"]
