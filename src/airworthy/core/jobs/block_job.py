"""Jobs of blocks: work in parts, each whole on disk or not there, that is stopped at any time and gone on with.

Whoever runs one holds its folder (`lock_folder`), asks its store which blocks are left (`left_of`), keeps each as it is
finished (`keep_each`), and then writes summary and report of what is there (`done_of`), whether somebody stopped it or not.
"""

from __future__ import annotations

import os
import platform
import sys
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

from airworthy.core.errors import AirworthyError, AssetWarning, telling_refusals
from airworthy.core.jobs.progress import ProgressLine, progress

__all__ = [
    "KINDS",
    "SUMMARY_FILE",
    "BlocksDone",
    "Keeper",
    "NamedBlock",
    "counting",
    "done_of",
    "keep_each",
    "kind_of",
    "left_of",
    "refuse_foreign",
    "refuse_unknown_figures",
    "warn_of_kept",
    "where_else",
]

# -----------------------------------------------------------------------------------------------------------------------------
# What a folder holds, told by the file that each kind of work leaves in it: nothing writes over what another made.

KINDS = {
    "demo.json": "a demo",
    "dataset.json": "a data set",
    "evaluation.json": "an evaluation",
    "training.json": "a training",
    "contract.json": "a policy",
    "tuning.json": "a tuning",
    "gates.json": "labelled situations",
    "gates_bench.json": "a gates benchmark",
    "race_bench.json": "a race benchmark",
    "verification.json": "a verification",
    "flight.parquet": "recorded flights",
    "meta/info.json": "a data set in the layout of LeRobot",
    "scene.toml": "a scene",
    "video.json": "a place from a film",
    "render.json": "pictures of a log",
}
"""File -> what a folder with it holds; the first that is there counts."""
_FIGURES = ("summary.json", "report.html")
"""That every kind of work writes when it ends."""
_CHILDREN_MAX = 1000
"""Folders that are looked into, at most."""


def kind_of(folder: str | Path) -> str:
    """Return what a folder holds; empty where it is none of `KINDS`."""
    return next((what for name, what in KINDS.items() if os.path.lexists(os.path.join(folder, name))), "")


def refuse_foreign(folder: str | Path, *own: str) -> None:
    """Refuse to write into a folder that holds something else; one with other files, or none, is nobody's, but for the folder
    that one works in, and for files that would be written over.

    Args:
        folder: To be written in.
        own: Files of `KINDS` that the writer leaves itself: a folder with one of them is its own.

    Raises:
        AirworthyError: It is a file, holds what another command made or a summary of nobody knows what, or is the working
            directory and holds other files.
    """
    where = Path(folder)
    # Of os.path: a name that is too long for the system is none that exists, and whoever makes the folder says so.
    if os.path.exists(where) and not os.path.isdir(where):
        raise AirworthyError(f"{str(folder)!r} is a file; --out names a folder, which is made where it is missing.")
    held = kind_of(where)
    if held and not any(os.path.lexists(where / name) for name in own):
        raise AirworthyError(f"{str(folder)!r} holds {held}, over which nothing else is written: choose another --out.")
    if not held:
        refuse_unknown_figures(where, *own)
    if not held and os.path.isdir(where) and os.path.samefile(where, os.curdir):
        others = sorted(os.listdir(where))
        if others:
            named = ", ".join(others[:3]) + ("" if len(others) <= 3 else ", ...")
            raise AirworthyError(
                f"{str(folder)!r} is the folder you work in, and holds other files ({named}): choose an --out of its own."
            )


def refuse_unknown_figures(folder: str | Path, *own: str) -> None:
    """Refuse a folder with a summary or page that nobody knows who left, and that would be written over.

    Args:
        folder: To be written in.
        own: Files that the writer leaves first: where one of them lies, summary and page are its own.

    Raises:
        AirworthyError: There is one.
    """
    where = Path(folder)
    if any(os.path.lexists(where / name) for name in own):
        return
    strange = next((name for name in _FIGURES if os.path.lexists(where / name)), "")
    if strange:
        raise AirworthyError(
            f"{str(folder)!r} holds a {strange} that no run here has left, which would be written over: choose another --out."
        )


@telling_refusals()
def where_else(folder: str | Path, wanted: str) -> str:
    """Return why a folder without a file of `KINDS` is not what was asked for, and which folder below it is.

    Args:
        folder: That was given.
        wanted: The file that it lacks.

    Returns:
        A sentence, as "'runs/demo' holds a demo, not a data set: did you mean 'runs/demo/data'?".
    """
    where, what = Path(folder), KINDS[wanted]
    if not where.is_dir():
        found = f"{str(folder)!r} is a file" if where.exists() else f"There is no folder {str(folder)!r}"
        return f"{found}; expected the folder of {what}."
    held = kind_of(where)
    below = _below(where, wanted)
    first = f"holds {held}, not {what}" if held else f"does not hold {what}: there is no {wanted} in it"
    if below:
        return f"{str(folder)!r} {first}; did you mean {str(below)!r}?"
    return f"{str(folder)!r} {first}."


def _below(folder: Path, wanted: str) -> Path | None:
    """Return the first folder inside, by name, that has a file."""
    try:
        with os.scandir(folder) as entries:
            names = sorted(entry.name for entry, _ in zip(entries, range(_CHILDREN_MAX), strict=False) if entry.is_dir())
    except OSError:
        return None
    return next((folder / name for name in names if (folder / name / wanted).is_file()), None)


# ---- The machine that a result was made on, for the record -----------------------------------------------------------------


def describe_machine() -> dict[str, str | int]:
    """Return processor, usable cores, operating system and Python: the `hardware` of a result's meta."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return {
        "processor": _processor(),
        "cores": cores,
        "system": f"{platform.system()} {platform.machine()}",
        "python": f"Python {platform.python_version()}",
    }


def _processor() -> str:
    """Name of the processor; the architecture where the system does not tell."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            names = (line.partition(":")[2].strip() for line in file if line.startswith("model name"))
            return next(names, "") or platform.processor() or platform.machine()
    except OSError:
        return platform.processor() or platform.machine()


# -----------------------------------------------------------------------------------------------------------------------------

SUMMARY_FILE = "summary.json"


class NamedBlock(Protocol):
    """A block: some work, by a name of its own."""

    @property
    def name(self) -> str:
        """Of its file."""


class Keeper(Protocol):
    """A store of finished blocks."""

    def has(self, name: str) -> bool:
        """Tell whether a block is finished and whole; raises AssetError where it was changed since."""


Block = TypeVar("Block", bound=NamedBlock)
Part = TypeVar("Part")
Result = TypeVar("Result")


@dataclass(frozen=True)
class BlocksDone:
    """What a run left."""

    folder: Path
    summary: dict[str, Any]
    """Content of summary.json."""
    finished: int
    """Blocks that are whole, of `blocks`."""
    blocks: int
    interrupted: bool
    report: Path | None

    @property
    def complete(self) -> bool:
        """Whether everything was done."""
        return self.finished == self.blocks


def left_of(blocks: Iterable[Block], store: Keeper) -> list[Block]:
    """Return blocks that are still to be done, in order."""
    return [block for block in blocks if not store.has(block.name)]


def done_of(blocks: Iterable[Block], store: Keeper) -> list[Block]:
    """Return blocks that are finished and whole, in order."""
    return [block for block in blocks if store.has(block.name)]


def warn_of_kept(outside: Iterable[Block], store: Keeper, folder: str | Path) -> None:
    """Say that flights of programs outside are an earlier run's: of our own pilots weights and settings are compared.

    Args:
        outside: Blocks that are asked for, of programs whose decisions depend on what nobody here can know.
        store: Of the folder.
        folder: That it is in.
    """
    kept = sum(store.has(block.name) for block in outside)
    if kept:
        warnings.warn(
            f"{str(folder)!r} holds {kept:,} of the blocks of programs outside from an earlier run, which are not flown again,"
            " and nobody can tell whether these programs have changed since: name another --out to fly them anew.",
            AssetWarning,
            stacklevel=3,
        )


def keep_each(
    finished: Generator[tuple[Part, Result], None, None],
    keep: Callable[[Part, Result], None],
    step: Callable[[str], None] | None = None,
) -> bool:
    """Keep parts as they are finished, until somebody stops it: KeyboardInterrupt, here or where they are made.

    Args:
        finished: Makes parts (blocks, or numbers of shards) and their results; it is closed in any case.
        keep: Writes one.
        step: Told the name of each part when it is kept.

    Returns:
        Whether somebody stopped it.
    """
    try:
        with closing(finished):
            for part, result in finished:
                keep(part, result)
                if step is not None:
                    step(str(getattr(part, "name", part)))
    except KeyboardInterrupt:
        return True
    return False


@contextmanager
def counting(total: int, text: str, quiet: bool) -> Iterator[Callable[..., None]]:
    """Yield a function that moves a line of progress on, by one or by so many as it is given.

    Args:
        total: Things to be done; a block that ends early jumps its rest.
        text: What is being done.
        quiet: Show nothing.
    """
    bar = progress(range(total + 1), text, total, quiet=quiet or not sys.stderr.isatty())
    line, done = ProgressLine(text, total), 0

    def advance(count: int = 1) -> None:
        nonlocal done
        for _ in range(count):
            next(bar, None)
        done += count
        if not quiet and not sys.stderr.isatty():
            # After all that came together: the first of five flights did not take as long as the five.
            line.at(done)

    next(bar, None)  # the line is there from the beginning
    try:
        yield advance
    finally:
        bar.close()  # type: ignore[attr-defined]
