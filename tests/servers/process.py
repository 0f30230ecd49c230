"""Install a server once, start it, wait until it is healthy, stop all of it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Server", "cache_folder", "free_port", "install", "interpreter", "running"]

RECIPES = Path(__file__).parent / "recipes"


def cache_folder(name: str) -> Path:
    """Where an install is kept between runs, outside the checkout."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "focus-servers" / name


def interpreter(version: str) -> str:
    """An absolute path: inside a folder with .python-version, version shims answer for another Python."""
    found = subprocess.run(
        ["uv", "python", "find", "--no-project", version], capture_output=True, text=True, cwd="/", check=False
    )
    if found.returncode != 0:
        raise RuntimeError(f"Python {version} is needed to install this server: {found.stderr.strip()}")
    return found.stdout.strip()


def install(name: str, command: Sequence[str], env: Mapping[str, str] | None = None) -> Path:
    """Run a recipe's set-up once; a finished install leaves a mark."""
    folder = cache_folder(name)
    mark = folder / ".installed"
    if not mark.exists():
        folder.mkdir(parents=True, exist_ok=True)
        print(f"installing {name} into {folder} (minutes, once)", file=sys.stderr)
        subprocess.run([*command], check=True, cwd="/", env={**os.environ, **(env or {})})
        mark.touch()
    return folder


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@dataclass
class Server:
    """A running server and the processes it started."""

    url: str
    process: subprocess.Popen[bytes]
    log: Path

    def signal(self, number: int) -> None:
        """Send a signal to the server's first process only."""
        self.process.send_signal(number)

    def kill_group(self) -> None:
        """Kill the server and everything it started."""
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            return
        self.process.wait(30)


def _healthy(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False


@contextmanager
def running(command: Sequence[str], *, url: str, health: str, log: Path, wait: float = 300) -> Iterator[Server]:
    """Start a server in a process group of its own and stop the whole group at the end."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as output:
        process = subprocess.Popen([*command], stdout=output, stderr=subprocess.STDOUT, start_new_session=True, cwd="/")
    server = Server(url, process, log)
    try:
        deadline = time.monotonic() + wait
        while not _healthy(health):
            if process.poll() is not None or time.monotonic() > deadline:
                tail = log.read_text(errors="replace")[-3000:]
                raise RuntimeError(f"the server did not become healthy; the end of {log}:\n{tail}")
            time.sleep(0.5)
        yield server
    finally:
        if process.poll() is None:
            process.terminate()
            with suppress(subprocess.TimeoutExpired):
                process.wait(20)
        server.kill_group()
