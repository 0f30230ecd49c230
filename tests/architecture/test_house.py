"""The house rules that a script can check."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGES = Path(__file__).resolve().parents[2] / "packages"
MODULES = sorted(PACKAGES.glob("*/src/**/*.py"))
ROOTS = sorted(path.name for path in PACKAGES.glob("*/src/*") if path.is_dir())


def name_of(path: Path) -> str:
    return str(path.relative_to(PACKAGES))


def literal_all(tree: ast.Module) -> list[str] | None:
    for node in tree.body:
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        if any(isinstance(target, ast.Name) and target.id == "__all__" for target in targets):
            value: object = ast.literal_eval(node.value)  # type: ignore[attr-defined] # an assignment has a value
            assert isinstance(value, list)
            return [str(item) for item in value]
    return None


def defined(tree: ast.Module) -> Iterator[str]:
    """The names that a module's own statements give a value."""
    for node in tree.body:
        match node:
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield name
            case ast.Assign(targets=targets):
                yield from (one.id for target in targets for one in ast.walk(target) if isinstance(one, ast.Name))
            case ast.AnnAssign(target=ast.Name(id=name)) | ast.TypeAlias(name=ast.Name(id=name)):
                yield name
            case _:
                pass


def test_there_are_thirteen_packages() -> None:
    assert len(ROOTS) == 13
    assert all((PACKAGES / root.replace("_", "-") / "src" / root / "py.typed").is_file() for root in ROOTS)


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_module(path: Path) -> None:
    source = path.read_text(encoding="utf-8")
    assert source.count("\n") <= 400
    tree = ast.parse(source)
    assert ast.get_docstring(tree), "a module says what it holds"
    assert "from __future__ import annotations" in source
    names = literal_all(tree)
    assert names is not None, "a literal __all__"
    public = {name for name in defined(tree) if not name.startswith("_")}
    assert public <= set(names), f"public but not in __all__: {sorted(public - set(names))}"


@pytest.mark.parametrize("path", [path for path in MODULES if "_SOURCES" in path.read_text()], ids=name_of)
def test_lazy_names_are_the_type_checked_ones(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    checked: dict[str, str] = {}
    for node in tree.body:
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            for statement in node.body:
                assert isinstance(statement, ast.ImportFrom)
                assert statement.module is not None
                checked.update({alias.name: statement.module for alias in statement.names})
    names = [name for name, _ in inspect.getmembers(_loaded(path)) if not name.startswith("_")]
    sources: dict[str, str] = vars(_loaded(path))["_SOURCES"]
    assert sources == checked
    assert set(sources) <= set(literal_all(tree) or [])
    assert set(literal_all(tree) or []) <= set(names)


def _loaded(path: Path) -> object:
    parts = path.relative_to(PACKAGES).with_suffix("").parts[2:]
    return importlib.import_module(".".join(part for part in parts if part != "__init__"))


@pytest.mark.parametrize("root", ROOTS)
def test_every_module_imports(root: str) -> None:
    package = importlib.import_module(root)
    for module in pkgutil.walk_packages(package.__path__, f"{root}."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
