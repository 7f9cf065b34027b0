"""Figures of long verifications: measured in parts, told as they are found, and kept, so that a run that was killed goes on.

verification.json      what figures depend on, and its digest
blocks/NAME.json       rows of a part as far as they are found, or an intermediate result that took long
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import airworthy
from airworthy.core.files import data_dir
from airworthy.core.jobs.block_store import ManifestKind
from airworthy.core.jobs.json_blocks import JsonBlockStore
from airworthy.verification.published import Figure

__all__ = ["MANIFEST_FILE", "FigurePart", "FigureStore", "Memo", "figure_identity", "memo_in_memory"]

MANIFEST_FILE = "verification.json"
PACKAGES = ("numpy", "scipy", "warp-lang", "torch", "mujoco", "embreex")
"""Whose versions figures depend on; some figures are measured only where a package is there."""

Memo = Callable[[str, Callable[[], dict[str, Any]]], dict[str, Any]]
"""Returns a result (plain JSON content) by its name, and makes it where there is none of that name: memo(name, make)."""


@dataclass(frozen=True)
class FigurePart:
    """Figures that are measured together."""

    name: str
    """Of its block, within its group."""
    make: Callable[[Memo], Iterator[Figure]]
    """Measures them; what takes long and is no figure yet goes through the memo. The same figures each time, in one order."""


def memo_in_memory() -> Memo:
    """Return a memo that lasts as long as the program."""
    made: dict[str, dict[str, Any]] = {}

    def memo(name: str, make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        if name not in made:
            made[name] = make()
        return made[name]

    return memo


class FigureStore(JsonBlockStore):
    """The folder of a verification, held by the caller (`lock_folder`)."""

    kind = ManifestKind(MANIFEST_FILE, "a verification", 1)

    def memo(self, name: str, make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """Return a result that is kept, or make and keep it (a `Memo`).

        Args:
            name: Of its block.
            make: Makes it.
        """
        if not self.has(name):
            self.keep(name, make())
        return self.content(name)

    def figures(self, part: FigurePart) -> Iterator[Figure]:
        """Yield figures of a part: first those that an earlier run found, then, as they are measured and kept, the rest.

        Args:
            part: Named as its block is.
        """
        kept: dict[str, Any] = self.content(part.name) if self.has(part.name) else {"rows": [], "finished": False}
        rows: list[dict[str, Any]] = list(kept["rows"])
        yield from (_figure(row) for row in rows)
        if kept["finished"]:
            return
        told = len(rows)
        for number, figure in enumerate(part.make(self.memo)):
            # A part is measured from its beginning; what stands in the folder has been told.
            if number >= told:
                rows.append(asdict(figure))
                self.keep(part.name, {"rows": rows, "finished": False})
                yield figure
        self.keep(part.name, {"rows": rows, "finished": True})


def _figure(row: dict[str, Any]) -> Figure:
    """Return the figure of a kept row: JSON has null for what is no number."""
    return Figure(**{**row, "measured": math.nan if row["measured"] is None else row["measured"]})


def figure_identity(everything: bool) -> dict[str, Any]:
    """Return what figures depend on: this program to the byte, packages, whether reference files are there.

    Args:
        everything: Whether what takes minutes is measured, too.
    """
    return {
        "version": airworthy.__version__,
        "program": _program_digest(),
        "packages": {name: _version(name) for name in PACKAGES},
        "reference files": data_dir() is not None,
        "all": everything,
    }


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def _program_digest() -> str:
    """SHA-256 of the package's sources and tables, by their paths."""
    root, found = Path(airworthy.__file__).parent, sha256()
    for path in sorted(path for ending in ("py", "toml") for path in root.rglob(f"*.{ending}")):
        found.update(str(path.relative_to(root)).encode() + b"\0" + path.read_bytes())
    return found.hexdigest()
