"""Why roll-outs were not kept: counts and numbers from what a data set's files tell of every roll-out that was flown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from airworthy.core.arrays import Array, ArrayBool
from airworthy.learning.datasets.config import DatasetConfig
from airworthy.trajectories import course

__all__ = ["Dropped", "dropped_of"]

_WORTH = 0.01
"""Ours: what keeps fewer than this share of the roll-outs more is no advice."""
_MOST = 0.9
"""Share of the roll-outs that an advised distance would keep."""


@dataclass(frozen=True)
class Dropped:
    """Of the roll-outs that were flown along one course, those that were not kept."""

    course: str
    flown: int
    kept: int
    unsolved: int
    """The expert found no solution at some tick."""
    lost: int
    """Of the others: their state was no number in the end."""
    between: int
    """Ended as near to the course's path as asked for, or could have: farther from its samples than that by no more than half
    of what lies between two of them."""
    far: int
    """Ended farther away than that."""
    far_median: float
    """Of those, from the course's samples [m]; NaN where there are none."""
    spacing: float
    """Most between two samples of the course [m]."""
    keeps_most: float
    """Within which nine tenths of all roll-outs with a solution ended [m]; NaN where there are none."""
    weight_far: float
    """Mean thrust over weight of the drones that ended far; `weight_kept` of those that were kept; NaN where there are none."""
    weight_kept: float
    far_from: tuple[float, float]
    """Between which times of the course the middle half of those that ended far began [s]; NaN where there are none."""

    def lines(self, config: DatasetConfig) -> list[str]:
        """Return why, in sentences, and what would keep more; none where all were kept.

        Args:
            config: Of the data set.
        """
        if self.kept == self.flown:
            return []
        head = f"{self.course}: {self.flown - self.kept:,} of {self.flown:,} roll-outs were not kept"
        why = [f"{self.unsolved:,} without a solution of the expert at some tick"] if self.unsolved else []
        why += [f"{self.lost:,} whose state was no number any more"] if self.lost else []
        if self.between:
            why.append(
                f"{self.between:,} that ended within {config.keep_within + 0.5 * self.spacing:.2f} m of the course's samples,"
                f" which lie up to {self.spacing:.2f} m apart (--keep-rate {config.keep_rate:g})"
            )
        if self.far:
            why.append(
                f"{self.far:,} that ended farther off, {self.far_median:.2f} m in the median; half of them began at"
                f" {self.far_from[0]:.1f} to {self.far_from[1]:.1f} s; thrust over weight {self.weight_far:.2f} against"
                f" {self.weight_kept:.2f} of those kept"
            )
        return [f"{head}: {'; '.join(why)}.", *self._advice(config)]

    def _advice(self, config: DatasetConfig) -> list[str]:
        found = []
        if self.between > _WORTH * self.flown:
            fine = max(10.0 * config.keep_rate, 100.0)
            found.append(f"--keep-rate {fine:g} counts those that ended on the course between its samples.")
        if self.far > _WORTH * self.flown and self.keeps_most > config.keep_within:
            found.append(f"--keep-within {self.keeps_most:.2f} would keep nine of ten of those with a solution.")
        if self.far > _WORTH * self.flown and config.length < 2.0:
            found.append(f"The expert has {config.length:g} s to come back to the course: 2 s is the published --length.")
        return found


def dropped_of(config: DatasetConfig, flown: Mapping[str, Any], rotor_count: int, gravity: float) -> list[Dropped]:
    """Return why roll-outs were not kept, course by course.

    Args:
        config: Of the data set.
        flown: Columns of `rollouts.parquet` of all its roll-outs.
        rotor_count: Of the vehicle.
        gravity: [m/s^2]
    """
    found = []
    for index, name in enumerate(config.courses):
        mine = np.asarray(flown["course"]) == index
        part = {key: np.asarray(flown[key])[mine] for key in ("kept", "failed_ticks", "end_error_m", "start_s")}
        weight = rotor_count * np.asarray(flown["rotor_force_N"])[mine] / (np.asarray(flown["mass_kg"])[mine] * gravity)
        found.append(_of_course(config, name, part, weight))
    return found


def _of_course(config: DatasetConfig, name: str, part: Mapping[str, Any], weight: Array) -> Dropped:
    kept, error, start = part["kept"], part["end_error_m"], part["start_s"]
    path = course(name).trajectory()
    points = path.sample(np.arange(0.0, path.duration + 1e-9, 1.0 / config.keep_rate)).position
    spacing = float(np.linalg.norm(np.diff(points, axis=0), axis=-1).max()) if len(points) > 1 else 0.0
    unsolved = ~kept & (part["failed_ticks"] > 0)
    lost = ~kept & ~unsolved & ~np.isfinite(error)
    left: ArrayBool = ~kept & ~unsolved & ~lost
    far = left & (error > config.keep_within + 0.5 * spacing)
    solved = (part["failed_ticks"] == 0) & np.isfinite(error)
    low, high = np.quantile(start[far], [0.25, 0.75]) if far.any() else (np.nan, np.nan)
    return Dropped(
        course=name,
        flown=len(kept),
        kept=int(kept.sum()),
        unsolved=int(unsolved.sum()),
        lost=int(lost.sum()),
        between=int((left & ~far).sum()),
        far=int(far.sum()),
        far_median=float(np.median(error[far])) if far.any() else float("nan"),
        spacing=spacing,
        keeps_most=_up(float(np.quantile(error[solved], _MOST))) if solved.any() else float("nan"),
        weight_far=float(weight[far].mean()) if far.any() else float("nan"),
        weight_kept=float(weight[kept].mean()) if kept.any() else float("nan"),
        far_from=(float(low), float(high)),
    )


def _up(value: float) -> float:
    """Round up to the centimetre: what is advised keeps what it says."""
    return float(np.ceil(100.0 * value) / 100.0)
