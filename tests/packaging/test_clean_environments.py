"""Each backend in an environment of its own: it works, the others say how to get them, nothing else came along."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, NamedTuple

import pytest

from focus_testing import ByteTokenizer, Engine, ScriptModel, serve
from focus_testing.server import WireName
from support.tinker_service import sampled, sampler_handle, serving
from support.wheels import Environment, Wheels

PROGRAM = Path(__file__).with_name("program.py")
DOWNSTREAM = PROGRAM.parents[1] / "downstream"
SPEC = PROGRAM.parents[2] / "spec" / "api.json"

HEAVY = {
    "aiohttp",
    "httpx",
    "httpx2",
    "jinja2",
    "msgspec",
    "numpy",
    "openai",
    "pydantic",
    "rich",
    "tinker",
    "tokenizers",
    "torch",
    "transformers",
    "typer",
}
HTTP = {"aiohttp", "msgspec"}
CORE = {"focus", "focus-critic", "focus-format", "focus-parsing", "focus-types", "typing-extensions"}
DISTRIBUTIONS = {
    "OpenAIChatPolicy": "focus-openai",
    "OpenAIResponsesPolicy": "focus-openai",
    "SGLangPolicy": "focus-sglang",
    "SlimePolicy": "focus-slime",
    "TinkerPolicy": "focus-tinker",
    "VLLMPolicy": "focus-vllm",
}
type Install = Callable[[str], Environment]
type Target = WireName | Literal["none", "tinker"]


class Case(NamedTuple):
    """One choice of a user."""

    requirement: str
    programs: dict[str, Target]
    """What the program generates through, and what it connects to."""
    present: set[str]
    """Backends that are there."""
    installed: set[str]
    """What is heavy and installed, because the backend needs it."""
    loaded: set[str]
    """What is heavy and loaded after generating."""
    exact: bool = True


OPENAI = HTTP | {"httpx2", "openai", "pydantic"}
TINKER = {"httpx", "httpx2", "numpy", "pydantic", "rich", "tinker", "tokenizers", "transformers", "typer"}
CASES = [
    Case("focus", {"core": "none"}, set(), set(), set()),
    Case("focus[vllm]", {"vllm": "vllm"}, {"VLLMPolicy"}, HTTP, HTTP),
    Case("focus[sglang]", {"sglang": "sglang"}, {"SGLangPolicy"}, HTTP, HTTP),
    Case("focus[slime]", {"slime": "sglang"}, {"SGLangPolicy", "SlimePolicy"}, HTTP, set()),
    Case(
        "focus[openai]",
        {"chat": "openai", "responses": "openai"},
        {"OpenAIChatPolicy", "OpenAIResponsesPolicy"},
        OPENAI,
        OPENAI,
        exact=False,
    ),
    Case("focus[tinker]", {"tinker": "tinker"}, {"TinkerPolicy"}, TINKER, TINKER),
]


@contextmanager
def seven(wire: WireName | Literal["none", "tinker"]) -> Iterator[str]:
    """What a client of the wire connects to; a model behind it answers every prompt with "7"."""
    if wire == "none":
        yield "7"
    elif wire == "tinker":
        with serving(**sampled([ord("7"), 258], [-0.5, -0.5])) as service:
            yield sampler_handle(service.url)
    else:
        tokenizer = ByteTokenizer()
        with serve(Engine(ScriptModel.replies(["7"], tokenizer), tokenizer), wire=wire) as server:
            yield server.url


@pytest.mark.parametrize("case", CASES, ids=[case.requirement for case in CASES])
def test_a_backend_alone(installed: Install, case: Case) -> None:
    environment = installed(case.requirement)
    distributions = environment.distributions()
    assert distributions >= CORE
    assert distributions & HEAVY == case.installed
    for program, wire in case.programs.items():
        with seven(wire) as target:
            report = environment.run(PROGRAM, DOWNSTREAM, program, target)
        assert (report["action"], report["exact"]) == (7, case.exact)
        assert HEAVY.isdisjoint(report["imported"])
        assert HEAVY.intersection(report["generated"]) <= case.loaded
        with_critic = {"VLLMCritic"} if "focus-http" in distributions else set[str]()
        assert set(report["starred"]) == case.present | with_critic
        expected = {
            name: f"focus.backends.{name} needs the distribution '{distribution}', which is not installed: install it,"
            " or focus with the extra that brings it"
            for name, distribution in DISTRIBUTIONS.items()
            if name not in case.present
        }
        if not with_critic:
            expected["VLLMCritic"] = "VLLMCritic needs the HTTP client: install focus-critic[vllm]"
        assert report["missing"] == expected


def test_the_core_is_six_distributions(installed: Install) -> None:
    assert installed("focus").distributions() == CORE


def test_everything(installed: Install, wheels: Wheels) -> None:
    environment = installed("focus[all]")
    assert environment.distributions() >= wheels.names()
    code = """
import importlib, json, sys
for module, names in json.load(open(sys.argv[1]))["modules"].items():
    if module != "focus_testing.fixtures":  # needs pytest
        exec(f"from {module} import *", found := {})
        assert set(names) <= set(found), (module, set(names) - set(found))
print(json.dumps(sorted(sys.modules)))
"""
    loaded = environment.run("-c", code, SPEC)
    assert {"openai", "tinker", "torch", "transformers"}.isdisjoint(loaded)
    help_text = subprocess.run([environment.folder / "bin" / "focus", "--help"], capture_output=True, check=True).stdout
    assert b"focus" in help_text


@pytest.mark.parametrize(
    "name",
    ["focus-vllm", "focus-sglang", "focus-slime", "focus-openai", "focus-tinker", "focus-critic", "focus-testing"],
)
def test_a_distribution_without_the_others(installed: Install, name: str) -> None:
    environment = installed(name)
    assert "focus" not in environment.distributions()
    module = name.replace("-", "_")
    eager = set(json.loads(SPEC.read_text())["modules"][module]) - {"VLLMCritic"}
    code = f"import json\nfrom {module} import {', '.join(sorted(eager))}\nprint(json.dumps({module}.__all__))"
    assert set(environment.run("-c", f"import {module}\n{code}")) >= eager


def test_a_downstream_checker_reads_the_types_of_the_wheels(installed: Install, tmp_path: Path) -> None:
    environment = installed("focus")
    program = tmp_path / "program"
    program.mkdir()
    (program / "number_game").symlink_to(DOWNSTREAM / "number_game")
    (program / "wrong.py").write_text("from focus import Critic\nreveal_type(Critic.constant(0.5).timeout)\nCritic()\n")
    command = [sys.executable, "-m", "mypy", "--strict", "--python-executable", str(environment.python), "."]
    done = subprocess.run(command, cwd=program, capture_output=True, text=True)
    assert done.stdout.splitlines()[:-1] == [
        'wrong.py:2: note: Revealed type is "float | None"',
        'wrong.py:3: error: Cannot instantiate abstract class "Critic" with abstract attribute "predict"  [abstract]',
    ]
