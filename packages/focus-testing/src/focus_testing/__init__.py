"""An engine on the desk: exactly known models, real sampling, the servers' wires on loopback."""

from __future__ import annotations

from focus_testing.engine import Candidate, Engine, Generation, Run
from focus_testing.models import LanguageModel, NGramModel, ScriptModel
from focus_testing.tokenizer import ByteTokenizer

__all__ = ["ByteTokenizer", "Candidate", "Engine", "Generation", "LanguageModel", "NGramModel", "Run", "ScriptModel"]
