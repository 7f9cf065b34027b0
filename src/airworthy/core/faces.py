"""Faces of packages: names that are imported from the file that has them when they are first asked for."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterable
from functools import cache
from importlib.util import find_spec
from typing import Any

__all__ = ["lazy_names"]


def lazy_names(package: str, modules: Iterable[str] = ()) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Make a package's `__getattr__` and `__dir__`: importing the package then loads none of the files behind its face.

    The names and the modules that have them are the imports under the package's own `if TYPE_CHECKING:`, which type checkers
    follow, without renaming; a name imported from the package itself is a module of it. Nobody else's name may be that of a
    file or folder of the package: importing that would put the module in the name's place.

    Args:
        package: `__name__` of the package.
        modules: Modules of the package that are found as its attributes too, without being imported there; they need not exist.

    Returns:
        `__getattr__`, which raises AttributeError for names without such an import, and `__dir__`.

    Raises:
        ImportError: The package's source is not there to be read; when a name is first asked for.
    """

    @cache
    def homes() -> dict[str, str]:
        # Read when asked for, not when imported: `import airworthy` needs neither the source nor the parser. The same is done
        # with stubs by the package lazy-loader (Scientific Python's SPEC 1).
        return dict.fromkeys(modules, package) | _imports_for_types(package)

    def load(name: str) -> Any:
        home = None if name.startswith("__") else homes().get(name)
        if home is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        if home == package:
            return _module(package, name)
        value = getattr(importlib.import_module(home), name)
        setattr(sys.modules[package], name, value)  # asked for once: from now on an ordinary attribute
        return value

    def listed() -> list[str]:
        # A room that is named in the order of rooms and not built yet is nothing to offer.
        absent = {name for name in modules if find_spec(f"{package}.{name}") is None}
        return sorted({*vars(sys.modules[package]).get("__all__", ()), *homes()} - absent)

    return load, listed


def _imports_for_types(package: str) -> dict[str, str]:
    """Name to module of the imports under `if TYPE_CHECKING:` at the top of a package's `__init__.py`."""
    import ast  # here, for `import airworthy` does without

    spec = sys.modules[package].__spec__
    source = getattr(spec and spec.loader, "get_source", lambda _: None)(package)
    if source is None:
        raise ImportError(f"The source of {package} is not there: what it offers is read from its imports.", name=package)
    blocks = (node for node in ast.parse(source).body if isinstance(node, ast.If))
    found = (node for block in blocks if getattr(block.test, "id", "") == "TYPE_CHECKING" for node in block.body)
    statements = [node for node in found if isinstance(node, ast.ImportFrom) and node.module]
    return {alias.name: str(node.module) for node in statements for alias in node.names}


def _module(package: str, name: str) -> Any:
    try:
        return importlib.import_module(f"{package}.{name}")
    except ModuleNotFoundError as error:
        if error.name != f"{package}.{name}":  # what the module itself needs is missing: that is not our name
            raise
        raise AttributeError(f"module {package!r} has no attribute {name!r}") from None
