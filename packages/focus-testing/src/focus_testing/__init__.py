"""An engine on the desk: exactly known models, real sampling, the servers' wires on loopback."""

from __future__ import annotations

from focus_testing.demo import DEMO_TOOLS, demo_engine
from focus_testing.engine import Candidate, Engine, Generation, Run
from focus_testing.models import LanguageModel, NGramModel, ScriptModel
from focus_testing.policy import EmbeddedPolicy
from focus_testing.server import Server, serve
from focus_testing.tokenizer import ByteTokenizer
from focus_testing.wires.base import Exchange
from focus_testing.wires.faults import Fault

__all__ = [
    "DEMO_TOOLS",
    "ByteTokenizer",
    "Candidate",
    "EmbeddedPolicy",
    "Engine",
    "Exchange",
    "Fault",
    "Generation",
    "LanguageModel",
    "NGramModel",
    "Run",
    "ScriptModel",
    "Server",
    "demo_engine",
    "serve",
]
