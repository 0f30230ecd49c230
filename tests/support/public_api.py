"""The public API as the sources define it; run as a script it prints `spec/api.json`.

Everything is read from syntax trees, so that no backend and no SDK is imported.
"""

from __future__ import annotations

import ast
import json
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

__all__ = ["ROOT", "Definition", "public_api", "public_definition"]

ROOT = Path(__file__).resolve().parents[2]

_SOURCES = sorted((ROOT / "packages").glob("*/src"))
_INTERNAL = frozenset(("focus._lazy",))
"""Modules of `focus`, all of whose others are public."""
_PUBLIC_BESIDE_ROOTS = ("focus_testing.fixtures",)
"""Modules of other packages that users name; of these packages only the root is public otherwise."""
_CALLED_BY_SYNTAX = frozenset(
    f"__{name}__" for name in ("init", "call", "len", "iter", "getitem", "enter", "exit", "aenter", "aexit")
)

type _Function = ast.FunctionDef | ast.AsyncFunctionDef
type _Statement = ast.ClassDef | _Function | ast.Assign | ast.AnnAssign | ast.TypeAlias


class Definition(NamedTuple):
    """Where a name is defined."""

    module: str
    statement: _Statement


def public_api() -> dict[str, dict[str, object]]:
    """The data of `spec/api.json`.

    Returns:
        ``modules``: public module to its names, each with the package that it comes from. ``definitions``: package
        and name to the definition, as the lines of a stub: the header, then for a class its public members.
    """
    modules = {module: {name: _home(module, name) for name in _exported(module)} for module in _public_modules()}
    definitions: dict[str, object] = {}
    for names in modules.values():
        for name, home in names.items():
            definitions[f"{home}.{name}"] = list(_lines(public_definition(home, name).statement))
    return {"modules": dict(modules), "definitions": dict(sorted(definitions.items()))}


def public_definition(module: str, name: str) -> Definition:
    """The definition that a module's name leads to, through any number of imports.

    Raises:
        LookupError: Nothing of that name is defined or imported there.
    """
    for statement in _toplevel(module):
        match statement:
            case ast.ImportFrom(module=str(source), names=names) if name in [alias.name for alias in names]:
                return public_definition(source, name)
            case ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef() if statement.name == name:
                return Definition(module, statement)
            case (
                ast.Assign(targets=[ast.Name(id=found)])
                | ast.AnnAssign(target=ast.Name(id=found))
                | ast.TypeAlias(name=ast.Name(id=found))
            ) if found == name:
                return Definition(module, statement)
            case _:
                pass
    raise LookupError(f"{module} exports {name}, but neither defines nor imports it")


def _public_modules() -> list[str]:
    roots = [folder.name for source in _SOURCES for folder in source.iterdir() if folder.is_dir()]
    whole = ROOT / "packages" / "focus" / "src"
    parts = [path.relative_to(whole).with_suffix("").parts for path in whole.glob("**/*.py")]
    facade = {".".join(part for part in path if part != "__init__") for path in parts}
    return sorted({*roots, *facade, *_PUBLIC_BESIDE_ROOTS} - _INTERNAL)


def _home(module: str, name: str) -> str:
    """The package whose root exports the name; the module that defines it if the root does not."""
    defined = public_definition(module, name).module
    root = defined.partition(".")[0]
    return root if name in _exported(root) else defined


@cache
def _tree(module: str) -> ast.Module:
    path = Path(*module.split("."))
    for source in _SOURCES:
        for file in (source / path.with_suffix(".py"), source / path / "__init__.py"):
            if file.is_file():
                return ast.parse(file.read_text(encoding="utf-8"))
    raise LookupError(f"{module} is no module of the packages")


def _toplevel(module: str) -> Iterator[ast.stmt]:
    """The statements that a type checker sees."""
    for statement in _tree(module).body:
        if isinstance(statement, ast.If) and ast.unparse(statement.test) == "TYPE_CHECKING":
            yield from statement.body
        else:
            yield statement


@cache
def _exported(module: str) -> list[str]:
    names = ast.literal_eval(_value_of_all(module))
    assert isinstance(names, list)
    return sorted(names)


def _value_of_all(module: str) -> ast.expr:
    statement = public_definition(module, "__all__").statement
    assert isinstance(statement, ast.Assign | ast.AnnAssign)
    assert statement.value is not None
    return statement.value


def _lines(statement: _Statement) -> Iterator[str]:
    match statement:
        case ast.ClassDef():
            yield _header(statement)
            yield from _members(statement)
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            yield _header(statement)
        case ast.AnnAssign():
            yield f"{ast.unparse(statement.target)}: {ast.unparse(statement.annotation)}"
        case _:
            yield ast.unparse(statement)


def _header(statement: ast.ClassDef | _Function) -> str:
    """``@dataclass class Name[A](Base)`` or ``@property def name(self) -> str``, on one line."""
    copy = ast.parse(ast.unparse(statement)).body[0]
    assert isinstance(copy, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
    copy.body = [ast.Expr(ast.Constant(...))]
    return " ".join(ast.unparse(copy).removesuffix(":\n    ...").split("\n"))


def _members(node: ast.ClassDef) -> Iterator[str]:
    decorators = " ".join(map(ast.unparse, node.decorator_list))
    # Of these, a private field is a parameter, too.
    is_constructed = "dataclass" in decorators and "init=False" not in decorators
    for statement in node.body:
        match statement:
            case ast.AnnAssign(target=ast.Name(id=name)):
                text = ast.unparse(statement)
                if not name.startswith("_") or (is_constructed and "init=False" not in text):
                    yield text
            case ast.Assign(targets=[ast.Name(id=name)]) if not name.startswith("_"):
                yield ast.unparse(statement)
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                if not statement.name.startswith("_") or statement.name in _CALLED_BY_SYNTAX:
                    yield _header(statement)
                if statement.name == "__init__":
                    yield from _instance_attributes(statement)
            case _:
                pass


def _instance_attributes(init: _Function) -> Iterator[str]:
    arguments = {one.arg: one.annotation for one in (*init.args.args, *init.args.kwonlyargs)}
    for statement in ast.walk(init):
        given: ast.expr | None
        match statement:
            case ast.AnnAssign(target=ast.Attribute(value=ast.Name(id="self"), attr=name)):
                given = statement.annotation
            case ast.Assign(targets=[ast.Attribute(value=ast.Name(id="self"), attr=name)], value=ast.Name(id=source)):
                given = arguments.get(source)
            case ast.Assign(targets=[ast.Attribute(value=ast.Name(id="self"), attr=name)]):
                given = None
            case _:
                continue
        if not name.startswith("_"):
            yield f"self.{name}" + ("" if given is None else f": {ast.unparse(given)}")


if __name__ == "__main__":
    sys.stdout.write(json.dumps(public_api(), indent=2) + "\n")
