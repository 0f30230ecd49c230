"""The packages as users get them: wheels, and clean environments that hold a choice of them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["Environment", "Wheels"]

_ROOT = Path(__file__).resolve().parents[2]
_UV = os.environ.get("UV", "uv")


def _run(*command: str | Path, **environment: str) -> str:
    done = subprocess.run(
        [str(part) for part in command], cwd=_ROOT, env={**os.environ, **environment}, capture_output=True, text=True
    )
    assert done.returncode == 0, f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}"
    return done.stdout


@dataclass(frozen=True)
class Environment:
    """A virtual environment apart from the checkout."""

    folder: Path

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return self.folder / "bin" / "python"

    def run(self, *arguments: str | Path) -> Any:
        """What a program prints as JSON. Nothing of the checkout is importable, no proxy and no key is set."""
        kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG", "TMPDIR") if name in os.environ}
        command = [str(self.python), "-I", "-W", "error", *map(str, arguments)]
        done = subprocess.run(command, cwd=self.folder, env=kept, capture_output=True, text=True)
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
        return json.loads(done.stdout)

    def distributions(self) -> set[str]:
        """Names of everything installed."""
        listed = json.loads(_run(_UV, "pip", "list", "--python", self.python, "--format", "json"))
        return {one["name"] for one in listed}

    def size(self) -> int:
        """Bytes of everything installed."""
        library = self.folder / "lib"
        return sum(path.stat().st_size for path in library.rglob("*") if path.is_file() and not path.is_symlink())


@dataclass(frozen=True)
class Wheels:
    """A folder with a wheel of every package, and the versions that the lock file gives everything else."""

    folder: Path

    @classmethod
    def build(cls, folder: Path) -> Wheels:
        """Build them."""
        _run(_UV, "build", "--quiet", "--all-packages", "--wheel", "--out-dir", folder)
        export = ("--frozen", "--all-packages", "--all-extras", "--no-dev", "--no-hashes", "--no-emit-workspace")
        _run(_UV, "export", "--quiet", *export, "--output-file", folder / "constraints.txt")
        return cls(folder)

    def names(self) -> set[str]:
        """The distributions that there is a wheel of."""
        return {path.name.partition("-")[0].replace("_", "-") for path in self.folder.glob("*.whl")}

    def environment(self, folder: Path, *requirements: str) -> Environment:
        """A clean environment with these, each a name of ours with extras: ``focus[vllm]``."""
        _run(_UV, "venv", "--quiet", "--python", sys.executable, folder)
        made = Environment(folder)
        sources: list[str | Path] = ["--find-links", self.folder, "--constraints", self.folder / "constraints.txt"]
        given = [f"{one} @ {self._wheel(one).as_uri()}" for one in requirements]
        _run(_UV, "pip", "install", "--quiet", "--python", made.python, *sources, *given)
        return made

    def _wheel(self, requirement: str) -> Path:
        name = requirement.partition("[")[0].replace("-", "_")
        [wheel] = self.folder.glob(f"{name}-[0-9]*.whl")
        return wheel
