"""Poses of a log at any instant between them, in the axes of our bodies and at a place of a scene."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from airworthy.bridges.loop.pose_track import RoomAlignment
from airworthy.core.arrays import Array, ArrayBool
from airworthy.core.errors import AirworthyError, unknown_name
from airworthy.core.files import read_text
from airworthy.core.frames import from_matrix, multiply, normalize, rotate, slerp, yaw_of
from airworthy.logs.clocks.clock import NS
from airworthy.logs.record import Log, LogStream
from airworthy.logs.writing.pairing import beside

__all__ = ["DIRECTIONS", "PosePath", "alignment", "body_axes", "camera_stamps", "logged_path", "read_stamps"]

DIRECTIONS = {
    "forward": (1, 0, 0), "back": (-1, 0, 0), "left": (0, 1, 0), "right": (0, -1, 0), "up": (0, 0, 1), "down": (0, 0, -1),
}  # fmt: skip
"""Where an axis of a body may point, in our axes."""
_STAMP = re.compile(r"\s*([+-]?\d{1,19})\s*(,.*|[ \t].*)?")


@dataclass(frozen=True, eq=False)
class PosePath:
    """Poses by rising stamps."""

    stamps: Any
    """By the log's own clock [ns], int64, (n,)."""
    position: Array
    """[m], (n, 3)."""
    attitude: Array
    """Body to world, x, y, z, w, (n, 4)."""
    velocity: Array
    """World [m/s], (n, 3)."""
    measured_velocity: bool
    """The log has the velocities; else they are differences of positions."""
    origin: LogStream
    """Positions as the log has them."""
    notes: tuple[str, ...] = ()

    def at(self, stamps: Any, gap: float) -> tuple[Array, Array, ArrayBool, ArrayBool]:
        """Return positions and attitudes at instants, which of them the poses reach, and which of these lie in a gap.

        Linear in position, spherical-linear in attitude; at a pose's own stamp exactly that pose.

        Args:
            stamps: [ns], int64, (k,).
            gap: Poses farther apart say nothing of the time between them [s].
        """
        asked = np.asarray(stamps, np.int64)
        after = np.clip(np.searchsorted(self.stamps, asked, side="left"), 0, len(self.stamps) - 1)
        met = self.stamps[after] == asked
        before = np.where(met, after, np.maximum(after - 1, 0))
        reached = (asked >= self.stamps[0]) & (asked <= self.stamps[-1])
        step = self.stamps[after] - self.stamps[before]
        share = np.where(step > 0, (asked - self.stamps[before]) / np.maximum(step, 1), 0.0)
        position = self.position[before] + share[:, None] * (self.position[after] - self.position[before])
        attitude = slerp(self.attitude[before], self.attitude[after], share)
        attitude[met], position[met] = self.attitude[after[met]], self.position[after[met]]
        return position, attitude, reached, reached & (step > gap * NS)

    def placed(self, align: RoomAlignment) -> PosePath:
        """Return the path at a place of a scene."""
        position, attitude = align.poses(self.position, self.attitude)
        velocity = rotate(align.turn, self.velocity)
        told = (self.measured_velocity, self.origin, self.notes)
        return PosePath(self.stamps, position, attitude, velocity, *told)

    def turned(self, axes: Array) -> PosePath:
        """Return the path of a body whose axes are turned in this one, x, y, z, w."""
        told = (self.velocity, self.measured_velocity, self.origin, self.notes)
        return PosePath(self.stamps, self.position, normalize(multiply(self.attitude, axes)), *told)


def logged_path(log: Log, label: str = "") -> PosePath:
    """Return the poses of a log.

    Args:
        log: The log.
        label: Of the positions ("capture", "truth"); empty: the first ones that have attitudes at the same stamps.

    Raises:
        AirworthyError: There are no two of them.
    """
    places = [place for place in log.of_kind("position") if not label or label in (place.label, place.name)]
    if label and not places:
        known = [place.label or place.name for place in log.of_kind("position")]
        raise unknown_name("stream of positions", label, known, f"Log {log.name!r} has no other ones.")
    found = next(((place, turn) for place in places if (turn := beside(log, place, "attitude")) is not None), None)
    if found is None:
        raise AirworthyError(
            f"Log {log.name!r} holds no positions with attitudes at the same stamps; `airworthy logs show` lists what it has."
        )
    return _path(log, *found)


def _path(log: Log, place: LogStream, turn: LogStream) -> PosePath:
    stamps = np.rint(place.time * NS).astype(np.int64) + log.source.start_ns
    known = np.asarray(np.isfinite(np.hstack([place.values, turn.values])).all(axis=1))
    notes = []
    if not known.all():
        notes.append(f"{int((~known).sum()):,} of {len(known):,} poses are missing, and left out")
    rows = np.flatnonzero(known)
    rows = rows[np.argsort(stamps[rows], kind="stable")]
    again = np.zeros(len(rows), bool)
    again[1:] = np.diff(stamps[rows]) == 0
    if again.any():
        notes.append(f"{int(again.sum()):,} poses have the stamp of another one, of which the first counts")
    if place.quality.backward:
        notes.append("stamps of poses go back, and are taken in their order")
    rows = rows[~again]
    if len(rows) < 2:
        raise AirworthyError(f"Log {log.name!r} holds {len(rows)} poses at different stamps; expected at least 2.")
    speed = beside(log, place, "velocity")
    seconds = (stamps[rows] - stamps[rows[0]]) / NS
    measured = speed is not None and bool(np.isfinite(speed.values[rows]).all())
    velocity = speed.values[rows] if speed is not None and measured else np.gradient(place.values[rows], seconds, axis=0)
    return PosePath(stamps[rows], place.values[rows], normalize(turn.values[rows]), velocity, measured, place, tuple(notes))


def body_axes(names: tuple[str, str, str]) -> Array:
    """Return the rotation from a log's body to ours, x, y, z, w, by where its x, y and z point.

    Raises:
        AirworthyError: They are not three of `DIRECTIONS` that make a right-handed frame.
    """
    for name in names:
        if name not in DIRECTIONS:
            raise unknown_name("direction of --axes", name, DIRECTIONS)
    columns = np.array([DIRECTIONS[name] for name in names], float).T
    if abs(np.linalg.det(columns) - 1.0) > 1e-9:
        raise AirworthyError(
            f"--axes {' '.join(names)} make no right-handed frame: x, y, z of the log's body, as forward left up, or up right"
            " forward for EuRoC's."
        )
    return from_matrix(columns)


def alignment(
    path: PosePath, align: tuple[float, float, float, float] | None, start: tuple[float, float, float, float] | None
) -> RoomAlignment:
    """Return where the log's world lies in the scene.

    Args:
        path: Of our body.
        align: Its origin in the scene [m] and how far it is turned to the left [deg]; or None.
        start: Where the first pose is to lie [m], and its heading [deg]; or None.

    Raises:
        AirworthyError: Both are given.
    """
    if align is not None and start is not None:
        raise AirworthyError("--align and --start both say where the log lies in the scene: give one of them.")
    if start is None:
        given = align or (0.0, 0.0, 0.0, 0.0)
        return RoomAlignment(given[:3], given[3])
    yaw = start[3] - float(np.degrees(yaw_of(path.attitude[0])))
    turned = RoomAlignment((0.0, 0.0, 0.0), yaw).poses(path.position[:1], path.attitude[:1])[0][0]
    x, y, z = (float(value) for value in np.asarray(start[:3]) - turned)
    return RoomAlignment((x, y, z), yaw)


# ---- Instants -------------------------------------------------------------------------------------------------------------


def camera_stamps(path: PosePath, rate: float) -> Any:
    """Return the instants of a camera that begins with the first pose, [ns]: the k-th at k / rate, to the nanosecond."""
    first, last = int(path.stamps[0]), int(path.stamps[-1])
    count = int((last - first) / NS * rate + 1e-6) + 1
    return first + np.rint(np.arange(count) / rate * NS).astype(np.int64)


def read_stamps(path: Path) -> Any:
    """Return the instants of a file, [ns], rising: whole numbers, one a line, before whatever follows a comma or blank.

    Raises:
        AirworthyError: A line holds none, or they do not rise.
    """
    found: list[int] = []
    for number, line in enumerate(read_text(path, 256 << 20).splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        match = _STAMP.fullmatch(line)
        if match is None:
            raise AirworthyError(
                f"{str(path)!r}, line {number}, begins with {line.strip()[:40]!r}; expected a stamp in whole nanoseconds."
            )
        found.append(int(match[1]))
        if len(found) > 1 and found[-1] <= found[-2]:
            raise AirworthyError(f"{str(path)!r}, line {number}: the stamp {found[-1]} does not come after the one before.")
    if not found:
        raise AirworthyError(f"{str(path)!r} holds no stamp; expected whole nanoseconds, one a line.")
    if max(abs(found[0]), abs(found[-1])) >= 2**62:
        raise AirworthyError(f"{str(path)!r} holds stamps beyond 146 years; expected nanoseconds.")
    return np.array(found, np.int64)
