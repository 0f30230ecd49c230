"""Two type checkers read `spec/` and the downstream program as their users' checkers would, once each."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import pytest

from support.public_api import ROOT, public_api

SPEC = ROOT / "spec"
NEGATIVE = SPEC / "negative.py"
CHECKED = [SPEC / "protocols.py", SPEC / "surface.py", NEGATIVE, ROOT / "tests" / "downstream"]
PACKAGES = sorted(path.name.replace("-", "_") for path in (ROOT / "packages").iterdir())


class Problem(NamedTuple):
    """What a checker reports."""

    file: str
    line: int
    code: str
    message: str


@pytest.fixture(scope="module")
def mypy() -> list[Problem]:
    # The project's configuration and cache: a run after `mypy` itself reads almost everything from the cache.
    found = [json.loads(line) for line in checker("mypy", "--output=json", *map(str, CHECKED)).splitlines()]
    return [
        Problem(str(ROOT / one["file"]), one["line"], one["code"], one["message"])
        for one in found
        if one["severity"] == "error"
    ]


@pytest.fixture(scope="module")
def pyright() -> list[Problem]:
    found = json.loads(checker("pyright", "--outputjson", *map(str, CHECKED)))
    assert found["summary"]["filesAnalyzed"] > len(CHECKED)
    return [
        Problem(one["file"], one["range"]["start"]["line"] + 1, one.get("rule", one["severity"]), one["message"])
        for one in found["generalDiagnostics"]
    ]


def checker(module: str, *arguments: str) -> str:
    environment = {**os.environ, "PYRIGHT_PYTHON_IGNORE_WARNINGS": "1"}
    command = [sys.executable, "-m", module, *arguments]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return done.stdout


def expected(mark: str) -> set[tuple[int, str]]:
    found: set[tuple[int, str]] = set()
    for number, line in enumerate(NEGATIVE.read_text(encoding="utf-8").splitlines(), 1):
        for codes in re.findall(rf"# {mark}: ([\w\-, ]+)", line):
            found.update((number, code) for code in codes.strip().split(", "))
    return found


def refused(problems: list[Problem]) -> set[tuple[int, str]]:
    return {(one.line, one.code) for one in problems if one.file == str(NEGATIVE)}


def elsewhere(problems: list[Problem]) -> list[Problem]:
    return [one for one in problems if one.file != str(NEGATIVE)]


def test_mypy_accepts_the_spec_and_the_downstream_program(mypy: list[Problem]) -> None:
    assert elsewhere(mypy) == []


def test_pyright_accepts_the_spec_and_the_downstream_program(pyright: list[Problem]) -> None:
    assert elsewhere(pyright) == []


def test_mypy_refuses_exactly_the_wrong_uses(mypy: list[Problem]) -> None:
    assert refused(mypy) == expected("E")


def test_pyright_refuses_exactly_the_wrong_uses(pyright: list[Problem]) -> None:
    assert refused(pyright) == expected("P")


@pytest.fixture(scope="module")
def completeness() -> dict[str, dict[str, Any]]:
    def verify(package: str) -> dict[str, Any]:
        report = json.loads(checker("pyright", "--verifytypes", package, "--ignoreexternal", "--outputjson"))
        found: dict[str, Any] = report["typeCompleteness"]
        return found

    with ThreadPoolExecutor(2) as pool:
        return dict(zip(PACKAGES, pool.map(verify, PACKAGES), strict=True))


@pytest.mark.parametrize("package", PACKAGES)
def test_every_public_type_is_known(completeness: dict[str, dict[str, Any]], package: str) -> None:
    report = completeness[package]
    assert report["pyTypedPath"], "py.typed is part of the package"
    unknown = [one["name"] for one in report["symbols"] if one["isExported"] and not one["isTypeKnown"]]
    ambiguous = [one["name"] for one in report["symbols"] if one["isExported"] and one["isTypeAmbiguous"]]
    assert (unknown, ambiguous) == ([], [])
    counts = report["exportedSymbolCounts"]
    assert report["completenessScore"] == 1 or not any(counts.values())


def test_the_surface_covers_every_documented_name_and_member() -> None:
    api: dict[str, dict[str, Any]] = public_api()
    documented = {
        f"{home}.{name}"
        for module, names in api["modules"].items()
        if module.split(".")[0] == "focus"
        for name, home in names.items()
    }
    tree = ast.parse((SPEC / "surface.py").read_text(encoding="utf-8"))
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} | set(touched(tree))
    for key in sorted(documented):
        name = key.rpartition(".")[2]
        assert name in used, f"spec/surface.py does not use {name}"
        missing = [f"{name}.{one}" for one in members(api["definitions"][key]) if f"{name}.{one}" not in used]
        assert not missing, f"spec/surface.py does not use {missing}"


def members(lines: list[str]) -> list[str]:
    """The public members of a class that are used by name."""
    found = [re.sub(r"^self\.|^(@\S+ )*(async )?def ", "", line) for line in lines[1:]]
    return [name for name in (re.split(r"\W", line)[0] for line in found) if not name.startswith("_")]


def touched(tree: ast.Module) -> Iterator[str]:
    """``Class.member`` for every attribute of a parameter of that class, or of the class itself."""
    for function in tree.body:
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        classes = {one.arg: class_of(one.annotation) for one in function.args.args}
        for node in ast.walk(function):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                yield f"{classes.get(node.value.id, node.value.id)}.{node.attr}"


def class_of(annotation: ast.expr | None) -> str:
    return ast.unparse(annotation).partition("[")[0] if annotation is not None else ""
