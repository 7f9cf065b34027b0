"""What the commands share that train networks."""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterable
from pathlib import Path

from airworthy.core.errors import AirworthyError

__all__ = ["STOPPED", "load_torch", "refuse_begun"]

STOPPED = "Stopped; what is learnt is kept, and the same command goes on from there."


def load_torch() -> None:
    """First of all: without it there is nothing to wait for.

    Raises:
        ModuleNotFoundError: torch is not installed; the extra 'learn' brings it.
    """
    # Threads that wait by spinning starve one another where the machine does other things, too: thirty times slower.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    importlib.import_module("torch")


def refuse_begun(folders: Iterable[Path]) -> None:
    """For --no-resume: raise AirworthyError where a folder is not empty."""
    for folder in folders:
        if folder.is_dir() and any(folder.iterdir()):
            raise AirworthyError(f"{str(folder)!r} is not empty, and --no-resume was asked for: choose another folder.")
