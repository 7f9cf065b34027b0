"""The loading of Python files of users' own, of pilots, sensors and tasks, with what each imports from beside itself.

Found by reading the imports of the sources, not by running them: the same files are found again beside a copy.
"""

from __future__ import annotations

import ast
import importlib.util
import site
import sys
import sysconfig
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.machinery import (
    BYTECODE_SUFFIXES,
    EXTENSION_SUFFIXES,
    SOURCE_SUFFIXES,
    ExtensionFileLoader,
    FileFinder,
    SourceFileLoader,
    SourcelessFileLoader,
)
from itertools import islice
from pathlib import Path
from types import CodeType
from typing import Any

from airworthy.core.errors import AirworthyError, AssetError
from airworthy.core.files import sha256, sha256_file

__all__ = ["ImportFailure", "OwnModules", "load_own", "load_with", "not_copied", "own_digest", "own_modules"]

# Ours: a pilot's own modules are some files of some kilobytes; a folder of everything is not what flies.
FILES_MAX, BYTES_MAX = 200, 4 << 20
"""Most files beside a pilot that a run keeps, and most bytes of them."""
_COMPILED = (".so", ".pyd", ".pyc")
# Ours: what strangers' code says may be pages long.
_REASON_LENGTH = 300


class UncachedSource(SourceFileLoader):
    """Compiles a source each time it is imported.

    Python takes its own compiled file for the source's where both have the same size and second of writing: what is edited
    twice within a second would run as it was before.
    """

    def get_code(self, fullname: str) -> CodeType:
        """Return the source's code."""
        path = self.get_filename(fullname)
        code: CodeType = self.source_to_code(self.get_data(path), path)
        return code


@dataclass(frozen=True)
class OwnModules:
    """What a file imports, directly or through others, that is no library."""

    files: tuple[Path, ...]
    """Sources below the file's folder, relative to it, sorted; of a package all of them."""
    left_out: dict[str, str]
    """Modules that cannot be kept, and why, in words."""


def own_modules(path: str | Path) -> OwnModules:
    """Return what a Python file imports from beside itself.

    Args:
        path: The file.

    Raises:
        AssetError: It is not there or cannot be read.
    """
    folder, left_out = Path(path).parent.resolve(), dict[str, str]()
    seen: set[str] = set()
    found: dict[Path, int] = {}
    pending = [Path(path)]
    while pending:
        for name in sorted(_imported(pending.pop()) - seen):
            seen.add(name)
            sources = _sources_of(folder, name)
            sizes = {source: source.stat().st_size for source in sources}
            if len(found) + len(sizes) > FILES_MAX or sum(found.values()) + sum(sizes.values()) > BYTES_MAX:
                left_out[name] = f"which is more than {FILES_MAX} files or {BYTES_MAX >> 20} MB"
                continue
            found |= sizes
            pending += sources
            if not sources and (why := _why_not(folder, name)):
                left_out[name] = why
    return OwnModules(tuple(sorted(source.relative_to(folder) for source in found)), left_out)


def not_copied(path: str | Path) -> dict[str, str]:
    """Return the modules that a loaded file uses and a copy of it would lack, and why.

    Args:
        path: The file, loaded by `load_own`.
    """
    found = own_modules(path)
    known = {*found.left_out, *_tops(found)}
    used = {name.partition(".")[0] for name in _BESIDE.get(_module_name(own_digest(path)), {})}
    return {**found.left_out, **dict.fromkeys(sorted(used - known), "which no import statement names")}


def _tops(found: OwnModules) -> set[str]:
    return {file.parts[0].removesuffix(".py") for file in found.files}


def _module_name(digest: str) -> str:
    return f"airworthy_own_{digest[:16]}"


def own_digest(path: str | Path) -> str:
    """Return the SHA-256 of a file and of what it imports from beside itself; that of the file alone where there is nothing."""
    files = own_modules(path).files
    if not files:
        return sha256_file(path)
    folder = Path(path).parent.resolve()
    lines = [f"{file.as_posix()} {sha256_file(folder / file)}\n" for file in files]
    return sha256("".join([f"{sha256_file(path)}\n", *lines]))


class ImportFailure(Exception):
    """A file's own code failed while it was imported; the message says what it raised."""


def load_own(path: Path, digest: str) -> Any:
    """Return a file as a module; its own code runs, as the user asks.

    Args:
        path: The file.
        digest: From `own_digest`: the same contents are one module, edited ones are another.

    Raises:
        AirworthyError: It cannot be imported.
    """
    return load_with(_plainly, path, digest)


def _plainly(run: Callable[[Any], None], module: Any) -> None:
    try:
        run(module)
    # A stranger's code may raise anything, and one sentence is owed for each.
    except Exception as error:
        reason = (str(error).splitlines() or [""])[0][:_REASON_LENGTH]
        raise ImportFailure(f"{type(error).__name__}: {reason}{_where(error, Path(module.__file__).parent)}") from error


def _where(error: Exception, folder: Path) -> str:
    """Return the file and line of a folder that an error came through last, in brackets; empty where its words have them."""
    if isinstance(error, SyntaxError) and error.lineno is not None:
        return ""
    whole = traceback.extract_tb(error.__traceback__)
    frames = [frame for frame in whole if Path(frame.filename).resolve().parent == folder.resolve()]
    return f" ({Path(frames[-1].filename).name}, line {frames[-1].lineno})" if frames else ""


def load_with(call: Callable[[Callable[[Any], None], Any], None], path: Path, digest: str) -> Any:
    """Load as `load_own`, its code called as one says.

    Args:
        call: Runs the first argument on the second, and raises `ImportFailure` for what it lets be raised.
        path: The file.
        digest: From `own_digest`.

    Raises:
        AirworthyError: It cannot be imported.
    """
    name = _module_name(digest)
    if name in sys.modules:
        # What it imports while it flies are its own modules again, not those of a version that came in between.
        sys.modules.update(_BESIDE[name])
        _LOADED.update(_BESIDE[name])
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path, loader=UncachedSource(name, str(path)))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    try:
        with _beside(path, name):
            # Before it runs, as imports do: dataclasses look their module up there.
            sys.modules[name] = module
            call(spec.loader.exec_module, module)
    except ImportFailure as failure:
        sys.modules.pop(name, None)
        raise AirworthyError(f"{str(path)!r} cannot be imported: {failure}.") from failure
    return module


_LOADED: dict[str, Any] = {}
"""Modules that were loaded from beside files of the user's, by name, the latest of each."""
_BESIDE: dict[str, dict[str, Any]] = {}
"""The same of each file's module, by its name."""


def _finder_for(folder: str, tops: set[str]) -> Callable[[str], FileFinder]:
    """Return a hook of `sys.path_hooks` that finds uncached sources in a folder, and in the packages of these names in it."""

    def finder(path: str) -> FileFinder:
        place = Path(path)
        if not place.is_relative_to(folder) or place.relative_to(folder).parts[:1] not in ((), *((top,) for top in tops)):
            raise ImportError(path)
        return FileFinder(
            path,
            (ExtensionFileLoader, EXTENSION_SUFFIXES),
            (UncachedSource, SOURCE_SUFFIXES),
            (SourcelessFileLoader, BYTECODE_SUFFIXES),
        )

    return finder


def _forget_finders(folder: str) -> None:
    for path in [path for path in sys.path_importer_cache if Path(path).is_relative_to(folder)]:
        del sys.path_importer_cache[path]


@contextmanager
def _beside(path: Path, own: str) -> Iterator[None]:
    """Import from a file's folder first, and anew what an earlier file, or an earlier version, had of the same names."""
    folder = str(path.parent.resolve())
    tops = _tops(own_modules(path))
    names = [name for name, module in sys.modules.items() if name.partition(".")[0] in tops and not _is_library(module)]
    hidden = {name: sys.modules.pop(name) for name in names}
    before = set(sys.modules)
    sys.path.insert(0, folder)
    hook = _finder_for(folder, tops)
    sys.path_hooks.insert(0, hook)
    _forget_finders(folder)
    importlib.invalidate_caches()
    try:
        yield
    finally:
        sys.path.remove(folder)
        sys.path_hooks.remove(hook)
        _forget_finders(folder)
        # Those of the program that calls us are its own again; what the file imports while it flies is found as it was.
        sys.modules.update({name: module for name, module in hidden.items() if _LOADED.get(name) is not module})
        new = {name: sys.modules[name] for name in set(sys.modules) - before - {own}}
        _BESIDE[own] = {name: module for name, module in new.items() if _lies_below(module, folder)}
        _LOADED.update(_BESIDE[own])


def _imported(path: Path) -> set[str]:
    """Return the first parts of the absolute names that a source imports, anywhere in it; nothing where it is no Python."""
    try:
        tree = ast.parse(path.read_bytes())
    except OSError as error:
        raise AssetError(f"{str(path)!r} cannot be read: {error.strerror or error}.") from error
    except (SyntaxError, ValueError, RecursionError):
        return set()  # importing it says what is wrong
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module.partition(".")[0])
    return names - {"airworthy", "__future__"}


def _sources_of(folder: Path, name: str) -> list[Path]:
    package, module = folder / name, folder / f"{name}.py"
    if (package / "__init__.py").is_file() or (package.is_dir() and not module.is_file() and not _is_installed(name)):
        # No more than are too many: a folder of data may be called as an import.
        return sorted(islice((source for source in package.rglob("*.py") if source.is_file()), FILES_MAX + 1))
    return [module] if module.is_file() else []


def _is_installed(name: str) -> bool:
    """Tell whether a name is that of a module elsewhere, which Python prefers to a folder without `__init__.py`."""
    module = sys.modules.get(name)
    if module is not None:
        return _is_library(module)
    spec = importlib.util.find_spec(name)
    return spec is not None and spec.origin is not None


def _why_not(folder: Path, name: str) -> str:
    """Return why a module without sources beside the file cannot be kept; empty where it is a library, or not there."""
    if any(entry.suffix in _COMPILED for entry in folder.glob(f"{name}.*")):
        return "which is compiled"
    module = sys.modules.get(name)
    file = getattr(module, "__file__", None)
    if not isinstance(file, str) or _is_library(module) or name == "__main__":
        return ""
    return f"which lies outside of its folder, in {str(Path(file).parent)!r}"


def _lies_below(module: Any, folder: str) -> bool:
    file = getattr(module, "__file__", None)
    return isinstance(file, str) and Path(file).resolve().is_relative_to(folder) and not _is_library(module)


def _is_library(module: Any) -> bool:
    file = getattr(module, "__file__", None)
    if not isinstance(file, str):
        return not hasattr(module, "__path__")  # built in; a package without a file of its own is a folder
    place = Path(file).resolve()
    return {"site-packages", "dist-packages"} & set(place.parts) != set() or any(map(place.is_relative_to, _library_folders()))


def _library_folders() -> list[Path]:
    named = [sysconfig.get_paths()[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")]
    return [Path(name).resolve() for name in (*named, site.getusersitepackages())]
