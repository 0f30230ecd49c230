"""The sources and what they become at run time are the API of `spec/api.json`, both ways."""

from __future__ import annotations

import ast
import dataclasses
import importlib
import inspect
import json
import sys
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from support.public_api import ROOT, public_api

SPEC: dict[str, dict[str, Any]] = json.loads((ROOT / "spec" / "api.json").read_text(encoding="utf-8"))
FOUND: dict[str, dict[str, Any]] = public_api()
CLASSES = sorted(key for key, lines in SPEC["definitions"].items() if "class " in lines[0])
FUNCTIONS = sorted(key for key, lines in SPEC["definitions"].items() if "def " in lines[0])


@pytest.mark.parametrize("module", sorted({*SPEC["modules"], *FOUND["modules"]}))
def test_public_names(module: str) -> None:
    assert FOUND["modules"].get(module) == SPEC["modules"].get(module)


@pytest.mark.parametrize("name", sorted({*SPEC["definitions"], *FOUND["definitions"]}))
def test_definition(name: str) -> None:
    assert FOUND["definitions"].get(name) == SPEC["definitions"].get(name)


@pytest.mark.parametrize("module", sorted(SPEC["modules"]))
def test_names_at_run_time(module: str) -> None:
    loaded = importlib.import_module(module)
    names: dict[str, str] = SPEC["modules"][module]
    assert sorted(loaded.__all__) == sorted(names)
    for name, home in names.items():
        assert getattr(loaded, name) is getattr(importlib.import_module(home), name), name
    helpers = {"annotations", "TYPE_CHECKING"}
    if module == "focus_testing.fixtures":  # no package root: it keeps the names that it imports
        return
    visible = {name for name in dir(loaded) if not name.startswith("_")} - helpers
    assert {name for name in visible if not isinstance(getattr(loaded, name), ModuleType)} <= set(names)


@pytest.mark.parametrize("key", CLASSES)
def test_members_at_run_time(key: str) -> None:
    module, _, name = key.rpartition(".")
    cls: type = getattr(importlib.import_module(module), name)
    members = [line for line in SPEC["definitions"][key][1:] if not line.startswith("self.")]
    for line in members:
        if "def " in line:
            _check_function(cls, line)
    specified = {_name(line) for line in members}
    public = {one for one in vars(cls) if not one.startswith("_")}
    assert public <= specified
    if dataclasses.is_dataclass(cls):
        fields = [one.name for one in dataclasses.fields(cls) if one.name in specified]
        assert fields == [_name(line) for line in members if "def " not in line and ":" in line]


@pytest.mark.parametrize("key", FUNCTIONS)
def test_function_at_run_time(key: str) -> None:
    module, _, _ = key.rpartition(".")
    if not SPEC["definitions"][key][0].startswith("@pytest.fixture"):
        _check_function(importlib.import_module(module), SPEC["definitions"][key][0])


def test_the_reference_pages(shared: Path) -> None:
    """The names that this API started from, with a checker of their own."""
    sys.path.insert(0, str(shared / "api"))
    try:
        check_api = importlib.import_module("check_api")
        reference = json.loads((shared / "api" / "api.json").read_text(encoding="utf-8"))
        assert [problem for spec in reference for problem in check_api.compare(spec)] == []
    finally:
        sys.path.remove(str(shared / "api"))
    assert len(reference) == 34


def _name(line: str) -> str:
    statement = ast.parse(_statement(line)).body[0]
    match statement:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            return name
        case ast.AnnAssign(target=ast.Name(id=name)) | ast.Assign(targets=[ast.Name(id=name)]):
            return name
        case _:
            raise AssertionError(line)


def _statement(line: str) -> str:
    """A line of the spec as Python: decorators stand on lines of their own, a body follows."""
    if "def " not in line:
        return line
    decorators, keyword, rest = line.partition("async def ") if "async def " in line else line.partition("def ")
    return "".join(f"{one}\n" for one in decorators.split()) + f"{keyword}{rest}: ..."


def _check_function(owner: Any, line: str) -> None:
    statement = ast.parse(_statement(line)).body[0]
    assert isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef)
    found = inspect.getattr_static(owner, statement.name)
    decorators = {ast.unparse(one) for one in statement.decorator_list}
    for decorator, kind in (("staticmethod", staticmethod), ("classmethod", classmethod)):
        assert isinstance(found, kind) is (decorator in decorators), line
    is_property = bool(decorators & {"property", "cached_property"}) or any(
        one.endswith(".setter") for one in decorators
    )
    assert isinstance(found, property | cached_property) is is_property, line
    if is_property:
        return
    function = inspect.unwrap(found.__func__ if isinstance(found, staticmethod | classmethod) else found)
    assert inspect.iscoroutinefunction(function) is isinstance(statement, ast.AsyncFunctionDef), line
    assert _parameters(inspect.signature(function)) == _parameters(_signature(statement)), line


def _signature(statement: ast.FunctionDef | ast.AsyncFunctionDef) -> inspect.Signature:
    """The signature of the statement's own, every default being None."""
    copy = ast.parse(ast.unparse(statement)).body[0]
    assert isinstance(copy, ast.FunctionDef | ast.AsyncFunctionDef)
    copy.decorator_list = []
    copy.args.defaults = [ast.Constant(None) for _ in copy.args.defaults]
    copy.args.kw_defaults = [None if one is None else ast.Constant(None) for one in copy.args.kw_defaults]
    scope: dict[str, Any] = {}
    exec("from __future__ import annotations\n" + ast.unparse(copy), scope)
    return inspect.signature(scope[statement.name])


def _parameters(signature: inspect.Signature) -> list[tuple[str, object, bool, object]]:
    return [
        (one.name, one.kind, one.default is not inspect.Parameter.empty, one.annotation)
        for one in signature.parameters.values()
    ]
