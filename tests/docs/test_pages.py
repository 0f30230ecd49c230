"""Pages lead where they say, their code could run, and their figures come from a command."""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.report import BENCHMARKS, COMMAND
from support.public_api import ROOT

DOCS = ROOT / "docs"
PAGES = sorted(
    path.relative_to(ROOT).as_posix()
    for folder, pattern in ((ROOT, "*.md"), (DOCS, "**/*.md"), (ROOT / "packages", "*/README.md"))
    for path in folder.glob(pattern)
)
NOT_INSTALLED = {"slime"}
"""Modules that examples import from the user's own environment."""

CODE_BLOCK = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SNIPPET = re.compile(r"^--8<--\n(.*)\n--8<--$", re.MULTILINE)
LINK = re.compile(r"\[[^\]]+\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
FIGURE = re.compile(r"\d ?(ms|µs|[kMG]B|GiB|MiB)\b|\d(\.\d+)?x\b|\d times the (CPU|time)|\d ?% of")
"""What a benchmark measures: times, sizes, ratios. Limits in seconds are the code's own, and tests hold them."""


def text_of(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def blocks(page: str, language: str) -> Iterator[str]:
    return (body for found, body in CODE_BLOCK.findall(text_of(page)) if found == language)


def prose(page: str) -> str:
    return CODE_BLOCK.sub("", text_of(page))


def anchors(page: Path) -> set[str]:
    headings = HEADING.findall(CODE_BLOCK.sub("", page.read_text(encoding="utf-8")))
    kept = (re.sub(r"[^\w\s-]", "", heading.replace("`", "")).strip().lower() for heading in headings)
    return {re.sub(r"[\s-]+", "-", heading) for heading in kept}


def test_every_example_stands_on_one_page() -> None:
    included = [name for page in PAGES for name in SNIPPET.findall(text_of(page))]
    assert sorted(included) == sorted(f"examples/{path.name}" for path in (DOCS / "examples").glob("*.py"))


@pytest.mark.parametrize("page", PAGES)
def test_links(page: str) -> None:
    wrong: list[str] = []
    for link in LINK.findall(prose(page)):
        if "://" in link:
            continue
        path, _, anchor = link.partition("#")
        target = ((ROOT / page).parent / path).resolve() if path else ROOT / page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            wrong.append(link)
    assert wrong == []


@pytest.mark.parametrize("page", [page for page in PAGES if any(blocks(page, "python"))])
def test_python_blocks(page: str) -> None:
    """They compile, and what they import is there."""
    for block in blocks(page, "python"):
        if SNIPPET.match(block):
            continue
        # Pages await at the top level, as a notebook does.
        flags = ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
        for statement in ast.walk(compile(block, page, "exec", flags, dont_inherit=True)):
            for module, names in imported(statement):
                if module.partition(".")[0] in NOT_INSTALLED:
                    continue
                loaded = importlib.import_module(module)
                assert [name for name in names if not hasattr(loaded, name)] == [], module


def imported(statement: ast.AST) -> list[tuple[str, list[str]]]:
    """Modules that a statement imports, with the names taken out of each."""
    match statement:
        case ast.Import(names=names):
            return [(alias.name, []) for alias in names]
        case ast.ImportFrom(module=str(module), names=names):
            return [(module, [alias.name for alias in names])]
        case _:
            return []


@pytest.mark.parametrize("page", [page for page in PAGES if page != "docs/benchmarks.md"])
def test_figures_stand_on_the_page_that_a_command_writes(page: str) -> None:
    assert [line for line in prose(page).splitlines() if FIGURE.search(line)] == []


def test_the_page_of_figures() -> None:
    page = text_of("docs/benchmarks.md")
    assert COMMAND in page
    assert re.findall(r"^## (.+)$", page, re.MULTILINE) == list(BENCHMARKS.values())
    sections = re.findall(r"^`tests/bench/(\w+)\.py`.*\n\n```text\n((?:.+\n)+)```$", page, re.MULTILINE)
    assert [name for name, _ in sections] == list(BENCHMARKS)
    assert not re.search(r"/(home|root|work|tmp|Users)/", page)


@pytest.mark.parametrize("page", [page for page in PAGES if page.startswith("docs/backends/")])
def test_what_was_measured_on_a_server_can_be_repeated(page: str) -> None:
    runs = re.findall(r"tests/real/run (\w+)", text_of(page))
    assert runs
    assert all((ROOT / "tests" / "real" / f"test_{name}.py").is_file() for name in runs)
