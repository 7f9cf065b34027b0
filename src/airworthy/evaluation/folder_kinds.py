"""What a folder holds, told by the file that each kind of work leaves in it: nothing writes over what another made."""

from __future__ import annotations

import os
from pathlib import Path

from airworthy.core.errors import AirworthyError

__all__ = ["KINDS", "kind_of", "refuse_foreign", "where_else"]

KINDS = {
    "demo.json": "a demo",
    "dataset.json": "a data set",
    "evaluation.json": "an evaluation",
    "training.json": "a training",
    "contract.json": "a policy",
    "gates.json": "labelled situations",
    "gates_bench.json": "a gates benchmark",
    "flight.parquet": "recorded flights",
    "meta/info.json": "a data set in the layout of LeRobot",
    "scene.toml": "a scene",
}
"""File -> what a folder with it holds; the first that is there counts."""
_CHILDREN_MAX = 1000
"""Folders that are looked into, at most."""


def kind_of(folder: str | Path) -> str:
    """What a folder holds; empty where it is none of `KINDS`."""
    return next((what for name, what in KINDS.items() if os.path.lexists(os.path.join(folder, name))), "")


def refuse_foreign(folder: str | Path, *own: str) -> None:
    """Refuse to write into a folder that holds something else; one with other files, or none, is nobody's.

    Args:
        folder: To be written in.
        own: Files of `KINDS` that the writer leaves itself: a folder with one of them is its own.

    Raises:
        AirworthyError: It is a file, or holds what another command made.
    """
    where = Path(folder)
    # Of os.path: a name that is too long for the system is none that exists, and whoever makes the folder says so.
    if os.path.exists(where) and not os.path.isdir(where):
        raise AirworthyError(f"{str(folder)!r} is a file; --out names a folder, which is made where it is missing.")
    held = kind_of(where)
    if held and not any(os.path.lexists(where / name) for name in own):
        raise AirworthyError(f"{str(folder)!r} holds {held}, over which nothing else is written: choose another --out.")


def where_else(folder: str | Path, wanted: str) -> str:
    """Why a folder without a file of `KINDS` is not what was asked for, and which folder below it is.

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
    """The first folder inside, by name, that has a file."""
    try:
        with os.scandir(folder) as entries:
            names = sorted(entry.name for entry, _ in zip(entries, range(_CHILDREN_MAX), strict=False) if entry.is_dir())
    except OSError:
        return None
    return next((folder / name for name in names if (folder / name / wanted).is_file()), None)
