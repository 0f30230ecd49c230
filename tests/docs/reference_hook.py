"""A hook of the docs build: every public name stands in the reference, or the build fails.

mkdocstrings writes what it documented into ``objects.inv``, an inventory in Sphinx' format.
"""

from __future__ import annotations

import logging
import sys
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from support.public_api import public_api

__all__ = ["on_post_build"]

_HEADER_LINES = 4

# MkDocs counts the warnings of its own loggers.
_log = logging.getLogger("mkdocs.hooks.reference")


def on_post_build(config: Mapping[str, Any]) -> None:
    """Warn of each public name that the site's inventory lacks; with ``--strict`` that is an error."""
    *_, packed = (Path(config["site_dir"]) / "objects.inv").read_bytes().split(b"\n", _HEADER_LINES)
    documented = {line.partition(" ")[0] for line in zlib.decompress(packed).decode().splitlines()}
    modules: dict[str, Any] = public_api()["modules"]
    public = {f"{home}.{name}" for names in modules.values() for name, home in names.items()}
    for name in sorted(public - documented):
        _log.warning("%s is public and not in the reference: add its module to a page of docs/reference", name)
