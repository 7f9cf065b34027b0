"""Which way is up: from lines that stand upright, from the floor, from a marker on it, from accelerations, from how cameras
are held; what agrees is combined, and each says how sure it is.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from airworthy.capture.images import mean_up
from airworthy.capture.record import CaptureImages
from airworthy.core import files, frames
from airworthy.core.arrays import Array, ArrayLike
from airworthy.core.errors import AirworthyError

__all__ = [
    "Accelerations",
    "PlaceLevel",
    "UpDirection",
    "angle_of",
    "combined_level",
    "read_accelerations",
    "up_by_accelerations",
    "up_by_cameras",
]

CAMERAS_SIGMA = np.radians(10.0)
"""Standard deviation of the mean of the cameras' upward directions about each level axis; ours: telephones are held tilted."""
RADIUS_95 = 2.447747
"""Radius that holds 95 % of a round normal distribution in the plane, in standard deviations."""
_TOLD_MAX = np.radians(5.0)
"""A level that may be off by more than this is not told."""


@dataclass(frozen=True, eq=False)
class UpDirection:
    """A direction that is up, as one kind of evidence has it."""

    name: str
    """"verticals", "floor", "marker", "accelerations" or "cameras"."""
    direction: Array
    """(3,) unit, frame of the capture."""
    sigma: float
    """Standard deviation about each of two level axes [rad]."""
    words: str
    """What it rests on."""

    @property
    def tilt95(self) -> float:
        """Angle within which it is right in 95 of 100 cases [rad]."""
        return RADIUS_95 * self.sigma


@dataclass(frozen=True, eq=False)
class PlaceLevel:
    """Up, as all evidence together has it."""

    direction: Array
    """(3,) unit, frame of the capture."""
    sigma: float
    """Standard deviation about each of two level axes [rad]."""
    sources: tuple[UpDirection, ...]
    """What was found, used or not."""
    used: tuple[str, ...]
    """Names of those that agree."""
    against: tuple[str, ...]
    """A sentence for each that does not."""

    @property
    def tilt95(self) -> float:
        """Angle within which it is right in 95 of 100 cases [rad]."""
        return RADIUS_95 * self.sigma

    @property
    def told(self) -> bool:
        """Whether it is known well enough to be called level: better than cameras alone can say."""
        return bool(self.tilt95 <= _TOLD_MAX)

    def record(self) -> dict[str, Any]:
        """Return figures for files."""
        return {
            "up_in_capture": self.direction.tolist(),
            "told": self.told,
            "tilt_95_deg": float(np.degrees(self.tilt95)),
            "used": list(self.used),
            "against": list(self.against),
            "sources": [
                {
                    "name": one.name,
                    "up_in_capture": one.direction.tolist(),
                    "tilt_95_deg": float(np.degrees(one.tilt95)),
                    "from_result_deg": float(np.degrees(angle_of(one.direction, self.direction))),
                    "words": one.words,
                }
                for one in self.sources
            ],
        }


def angle_of(a: ArrayLike, b: ArrayLike) -> float:
    """Return the angle between two directions (3,) [rad]."""
    first, second = np.asarray(a, np.float64), np.asarray(b, np.float64)
    return float(np.arctan2(np.linalg.norm(np.cross(first, second)), first @ second))


def combined_level(sources: Sequence[UpDirection]) -> PlaceLevel | None:
    """Return the mean of what agrees with the surest, weighted by how sure each is; None of no evidence.

    What differs from the surest by more than three standard deviations of the difference is left out, and said.
    """
    if not sources:
        return None
    best = min(sources, key=lambda one: one.sigma)
    used, against = [], []
    for one in sources:
        apart, sure = angle_of(one.direction, best.direction), float(np.hypot(one.sigma, best.sigma))
        if apart <= 3.0 * sure or one is best:
            used.append(one)
        else:
            against.append(
                f"up by {one.name} is {np.degrees(apart):.2f} degrees from up by {best.name}, and both are sure within"
                f" {np.degrees(RADIUS_95 * sure):.2f}; {one.name} left out"
            )
    weight = np.array([1.0 / one.sigma**2 for one in used])
    mean = weight @ np.array([one.direction for one in used])
    sigma = float(1.0 / np.sqrt(weight.sum()))
    return PlaceLevel(mean / np.linalg.norm(mean), sigma, tuple(sources), tuple(one.name for one in used), tuple(against))


def tangents(direction: ArrayLike) -> Array:
    """Return two unit directions (2, 3) across a unit direction (3,) and each other."""
    axis = np.asarray(direction, np.float64)
    first = np.cross(axis, np.eye(3)[int(np.argmin(np.abs(axis)))])
    first /= np.linalg.norm(first)
    return np.array([first, np.cross(axis, first)])


def up_by_cameras(images: CaptureImages) -> UpDirection | None:
    """Return the mean of the cameras' upward directions; None where they disagree (a mean shorter than 0.3)."""
    direction, length = mean_up(images.attitude)
    if length < 0.3:
        return None
    return UpDirection("cameras", direction, float(CAMERAS_SIGMA), f"the mean of {len(images)} cameras' upward directions")


# ---- Accelerations ----------------------------------------------------------------------------------------------------------
#
# An accelerometer at rest measures g upwards. Over a walk the accelerations of the hand cancel (they sum to the change of
# speed), so the mean of what is measured, turned into the frame of the capture by the poses of the images, points up.

AXES = "x,-y,-z"
"""Axes of the camera (right, down, forward) in those of a telephone (right, up, out of its screen), held upright."""
_GAP = 1.0
"""Between images that are further apart in time than this, attitudes are not interpolated [s]."""
_BLOCK = 1.0
"""Errors of samples are taken as one for so long [s]: steps of a walk are half of it."""
_BYTES_MAX = 64 * 1024 * 1024
_SYSTEMATIC = np.radians(0.3)
"""Ours: bias of a telephone's accelerometer (0.05 m/s^2), and how its axes lie to the camera's."""


@dataclass(frozen=True, eq=False)
class Accelerations:
    """What an accelerometer measured while the images were taken."""

    samples: Array
    """(n, 4) time [s], acceleration [m/s^2] in the device's axes; at rest it points up."""
    times: Mapping[str, float]
    """When images were taken, by name, on the same clock [s]."""
    axes: str = AXES
    """The camera's right, down and forward in the device's axes."""


def read_accelerations(path: str | Path) -> Array:
    """Return (n, 4) time [s] and acceleration [m/s^2] of a CSV file with the columns t, ax, ay, az.

    Raises:
        AirworthyError: It lacks a column, or a row is no four numbers.
    """
    text = files.read_bytes(Path(path), _BYTES_MAX).decode("utf-8", "replace")
    rows = list(csv.reader(io.StringIO(text)))
    head = [name.strip().lower() for name in rows[0]] if rows else []
    missing = [name for name in ("t", "ax", "ay", "az") if name not in head]
    if missing:
        raise AirworthyError(f"{str(path)!r} has no column {', '.join(missing)}; expected t [s], ax, ay, az [m/s^2].")
    columns = [head.index(name) for name in ("t", "ax", "ay", "az")]
    try:
        values = np.array([[float(row[column]) for column in columns] for row in rows[1:] if row])
    except (ValueError, IndexError) as error:
        raise AirworthyError(f"{str(path)!r} has a row that is not four numbers; expected t, ax, ay, az in each.") from error
    if len(values) < 10 or not np.isfinite(values).all():
        raise AirworthyError(f"{str(path)!r} has {len(values)} rows of finite numbers; expected 10 or more.")
    return values[np.argsort(values[:, 0])]


def up_by_accelerations(images: CaptureImages, given: Accelerations) -> UpDirection:
    """Return up by an accelerometer that was filming along.

    Args:
        images: The capture.
        given: What it measured.

    Raises:
        AirworthyError: Axes are none, too few images or samples have a common time, or what is measured points down.
    """
    turn, times = _axes(given.axes), given.times
    values = np.asarray(given.samples, np.float64)
    order = sorted((times[name], k) for k, name in enumerate(images.names) if name in times)
    if len(order) < 2:
        raise AirworthyError(f"{len(order)} of {len(images)} images have a time, and 2 are needed to turn accelerations.")
    clock, numbers = np.array([t for t, _ in order]), np.array([k for _, k in order])
    after = np.clip(np.searchsorted(clock, values[:, 0]), 1, len(clock) - 1)
    gap = clock[after] - clock[after - 1]
    inside = (values[:, 0] >= clock[0]) & (values[:, 0] <= clock[-1]) & (gap <= _GAP) & (gap > 0.0)
    values, after, gap = values[inside], after[inside], gap[inside]
    if len(values) < 10 or values[-1, 0] - values[0, 0] < 5.0 * _BLOCK:
        raise AirworthyError("Accelerations and images share less than 5 s: check that both clocks are the same.")
    share = (values[:, 0] - clock[after - 1]) / gap
    held = frames.slerp(images.attitude[numbers[after - 1]], images.attitude[numbers[after]], share)
    found = frames.rotate(held, values[:, 1:] @ turn.T)
    block = np.floor((values[:, 0] - values[0, 0]) / _BLOCK).astype(int)
    means = np.array([found[block == k].mean(axis=0) for k in np.unique(block)])
    mean = means.mean(axis=0)
    size = float(np.linalg.norm(mean))
    if not 8.0 < size < 11.5:
        raise AirworthyError(f"The mean acceleration is {size:.2f} m/s^2; expected about 9.81: check its unit and --imu-axes.")
    up = mean / size
    across = tangents(up) @ (means - mean).T
    sigma = float(np.sqrt(across.var(axis=1, ddof=1).max() / len(means)) / size)
    cameras = up_by_cameras(images)
    if cameras is not None and up @ cameras.direction < 0.0:
        raise AirworthyError("The accelerations point down in the images: negate them (at rest they must point up).")
    words = f"{len(values):,} accelerations over {values[-1, 0] - values[0, 0]:.0f} s"
    return UpDirection("accelerations", up, float(np.hypot(sigma, _SYSTEMATIC)), words)


def _axes(text: str) -> Array:
    """(3, 3) from the device's axes to the camera's."""
    rows: list[Array] = []
    for part in text.replace(" ", "").split(","):
        name = part.lstrip("+-")
        if name not in ("x", "y", "z") or len(part) - len(name) > 1:
            rows = []
            break
        rows.append((-1.0 if part.startswith("-") else 1.0) * np.eye(3)["xyz".index(name)])
    matrix = np.array(rows)
    if matrix.shape != (3, 3) or not np.linalg.det(matrix) > 0.5:
        raise AirworthyError(f"The axes {text!r} are no right-handed x, y, z with signs; expected such as {AXES!r}.")
    return matrix
