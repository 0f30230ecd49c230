"""Names that are imported when they are touched, so that only the backend in use is loaded, or installed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any

__all__ = ["installed", "lazy_attributes"]


def installed(names: Sequence[str], sources: Mapping[str, str]) -> list[str]:
    """The names whose distribution is present; ``from ... import *`` and ``dir()`` must not raise."""
    return sorted(name for name in names if name not in sources or find_spec(sources[name]) is not None)


def lazy_attributes(
    module: str, names: Sequence[str], sources: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """A module's ``__getattr__`` and ``__dir__``.

    Args:
        module: The module's name.
        names: Its ``__all__``.
        sources: Lazy name to the package it comes from.
    """

    def __getattr__(name: str) -> Any:
        source = sources.get(name)
        if source is None:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        try:
            found = import_module(source)
        except ModuleNotFoundError as error:
            # Only the backend itself is translated: a missing SDK inside it speaks for itself.
            if error.name != source:
                raise
            distribution = source.replace("_", "-")
            raise ImportError(
                f"{module}.{name} needs the distribution {distribution!r}, which is not installed: install it, or"
                f" focus with the extra that brings it",
                name=source,
            ) from None
        return getattr(found, name)

    def __dir__() -> list[str]:
        return installed(names, sources)

    return __getattr__, __dir__
