"""Several seeds of one training: each in a folder of its own, and one summary above them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np

from airworthy.core.errors import AirworthyError, AssetError, telling_refusals
from airworthy.core.files import path_given, read_json, write_json
from airworthy.learning.held_figures import telling_figures
from airworthy.learning.timed_training import SUMMARY_FILE, Trained
from airworthy.learning.training_folder import IDENTITY_FILE, say
from airworthy.pilots.network_files import CONTRACT_FILE

__all__ = ["SEEDS_MAX", "refuse_judged_seed", "refuse_single_training", "seed_rows", "train_each", "write_seeds"]

SCHEMA_VERSION = 1
SEEDS_MAX = 100
"""Ours: each is a training and an evaluation."""


def train_each(
    out: str | Path, seeds: Sequence[int], train: Callable[[int, Path, str], Trained], commands: Sequence[str] = ()
) -> list[Trained]:
    """Train several seeds, one after the other, each in a folder `seed_K` of its own.

    Args:
        out: Folder above those of the seeds.
        seeds: Of each.
        train: Called with a seed, its folder, and the command that makes it again, or an empty text.
        commands: That make each again; none: nothing is told of them.

    Returns:
        Those that were finished, and one that was not behind them.

    Raises:
        AirworthyError: There are too many or too few seeds, the folder holds a single training, or one cannot be trained.
    """
    if not 1 <= len(seeds) <= SEEDS_MAX:
        raise AirworthyError(f"{len(seeds)} seeds are to be trained; expected 1 to {SEEDS_MAX}.")
    refuse_single_training(out)
    done: list[Trained] = []
    for k, seed in enumerate(seeds):
        done.append(train(seed, Path(out) / f"seed_{seed}", commands[k] if commands else ""))
        if not done[-1].finished:
            break
    return done


def seed_rows(done: Sequence[Trained], row: Callable[[Mapping[str, Any]], Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return a row of figures per training.

    Args:
        done: Finished.
        row: Given the figures of one.

    Raises:
        AssetError: The figures of one were read from a file that does not hold them.
    """
    rows = []
    for item in done:
        with telling_figures(item.folder / SUMMARY_FILE) if item.read_back else nullcontext():
            rows.append(row(item.figures))
    return rows


def write_seeds(out: str | Path, about: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> None:
    """Write the summary of several seeds: every one, and the median of each figure.

    Args:
        out: Folder above those of the seeds.
        about: What they have in common.
        rows: Figures of each seed; the first is the seed.
    """
    _say_left_out(Path(out) / SUMMARY_FILE, {row["seed"] for row in rows if "seed" in row})
    # A seed that lost half of its flights has no median error: it counts as infinitely far.
    columns = {name: [np.inf if row[name] is None else float(row[name]) for row in rows] for name in list(rows[0])[1:]}
    medians = {name: float(np.median(values)) for name, values in columns.items()}
    middle = {name: value if np.isfinite(value) else None for name, value in medians.items()}
    write_json(Path(out) / SUMMARY_FILE, {"schema_version": SCHEMA_VERSION, **about, "median": middle, "seeds": list(rows)})


def _say_left_out(path: Path, seeds: set[int]) -> None:
    """Say which seeds of an earlier summary are not in the one that takes its place: their folders stay."""
    try:
        held = read_json(path)["seeds"] if path.is_file() else []
        left = sorted(row["seed"] for row in held if row["seed"] not in seeds)
    except (AssetError, KeyError, TypeError):
        return
    if left:
        named = ", ".join(map(str, left))
        say(False, f"{path}: left without seed {named}, which this command does not ask for; ask for more --seeds to have all.")


@telling_refusals()
def refuse_single_training(out: str | Path) -> None:
    """Refuse to train several seeds in the folder of one, whose summary theirs would take the place of.

    Raises:
        AirworthyError: It holds a single training.
    """
    if any((path_given(out, "out") / name).exists() for name in (IDENTITY_FILE, CONTRACT_FILE)):
        raise AirworthyError(f"{str(out)!r} holds a single training; several seeds need a folder of their own: choose another.")


def refuse_judged_seed(seeds: Iterable[int], judged: int, where: str = "starts on which policies are judged") -> None:
    """Refuse to learn from what policies are judged on; of several seeds before the first of them learns.

    Args:
        seeds: That are to be trained.
        judged: Seed of the judgement.
        where: What is drawn from it.

    Raises:
        AirworthyError: One of them is that of the judgement.
    """
    if judged in seeds:
        raise AirworthyError(f"The seed {judged} is that of the {where}: choose another.")
