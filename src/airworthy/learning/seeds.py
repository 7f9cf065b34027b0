"""Several seeds of one training: each in a folder of its own, and one summary above them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from airworthy.core.errors import AirworthyError
from airworthy.core.files import write_json
from airworthy.learning.timed_training import SUMMARY_FILE
from airworthy.learning.training_folder import IDENTITY_FILE
from airworthy.pilots.network_files import CONTRACT_FILE

__all__ = ["refuse_single_training", "write_seeds"]

SCHEMA_VERSION = 1


def write_seeds(out: str | Path, about: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> None:
    """Write the summary of several seeds: every one, and the median of each figure.

    Args:
        out: Folder above those of the seeds.
        about: What they have in common.
        rows: Figures of each seed; the first is the seed.
    """
    # A seed that lost half of its flights has no median error: it counts as infinitely far.
    columns = {name: [np.inf if row[name] is None else float(row[name]) for row in rows] for name in list(rows[0])[1:]}
    medians = {name: float(np.median(values)) for name, values in columns.items()}
    middle = {name: value if np.isfinite(value) else None for name, value in medians.items()}
    write_json(Path(out) / SUMMARY_FILE, {"schema_version": SCHEMA_VERSION, **about, "median": middle, "seeds": list(rows)})


def refuse_single_training(out: str | Path) -> None:
    """Refuse to train several seeds in the folder of one, whose summary theirs would take the place of.

    Raises:
        AirworthyError: It holds a single training.
    """
    if any((Path(out) / name).exists() for name in (IDENTITY_FILE, CONTRACT_FILE)):
        raise AirworthyError(f"{str(out)!r} holds a single training; several seeds need a folder of their own: choose another.")
