"""Faces of packages: names that are imported from the file that has them when they are first asked for."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["lazy_names"]


def lazy_names(package: str, where: Mapping[str, tuple[str, ...]]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Make a package's `__getattr__` and `__dir__`: importing the package then loads none of the files behind its face.

    A name must not be that of a file or folder of the package: importing that would put the module in the name's place.

    Args:
        package: `__name__` of the package.
        where: Module, dotted and relative to the package, to the names that come from it; "" to the package's own modules.

    Returns:
        `__getattr__`, which raises AttributeError for names not in `where`, and `__dir__`.
    """
    homes = {name: module for module, names in where.items() for name in names}

    def load(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        if homes[name] == "":
            return _module(package, name)
        value = getattr(importlib.import_module(f"{package}.{homes[name]}"), name)
        setattr(sys.modules[package], name, value)  # asked for once: from now on an ordinary attribute
        return value

    def listed() -> list[str]:
        return sorted({*vars(sys.modules[package]).get("__all__", ()), *homes})

    return load, listed


def _module(package: str, name: str) -> Any:
    try:
        return importlib.import_module(f"{package}.{name}")
    except ModuleNotFoundError as error:
        if error.name != f"{package}.{name}":  # what the module itself needs is missing: that is not our name
            raise
        raise AttributeError(f"module {package!r} has no attribute {name!r}") from None
