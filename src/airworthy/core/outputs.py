"""What a command may write: never over what it reads."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from airworthy.core.errors import AirworthyError

__all__ = ["refuse_input"]


def refuse_input(out: str | Path, inputs: Iterable[str | Path], what: str) -> None:
    """Refuse an output that is an input, by name, link or inode.

    Args:
        out: File that would be written.
        inputs: Files and folders that are read. Every file that is in such a folder already counts as read.
        what: What an input is, for the message: "log", "table".

    Raises:
        AirworthyError: The output is one of them.
    """
    target = Path(out)
    if not target.exists():
        return
    for item in map(Path, inputs):
        if not item.exists():
            continue
        within = item.is_dir() and Path(os.path.realpath(item)) in Path(os.path.realpath(target)).parents
        if within or os.path.samefile(target, item):
            raise AirworthyError(
                f"{str(target)!r} is {'a file of ' if within else ''}the {what} that is read, and would be written over: choose"
                " another --out."
            )
