"""A walk through a scene with a camera in the hand: a loop at hand height, looking about, with steps and tremor.

Poses are functions of time, so that exposures between frames and rows of a rolling shutter ask for the instants that they need.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from airworthy.core import frames
from airworthy.core.arrays import Array, ArrayBool, ArrayLike
from airworthy.core.errors import AirworthyError
from airworthy.geometry.distance import clearance
from airworthy.scenes import SceneBatch

__all__ = ["HandWalk", "WalkLoop", "find_loop"]

_CELL = 0.15
"""Between places that are tried [m]."""
_MARGIN = 0.45
"""Ours: half a person's width and an arm [m]."""
_NEAREST = 0.25
"""What the smoothed loop must keep from everything [m]."""
_ANGLES = 48
_SHARES = (0.75, 0.65, 0.55, 0.45, 0.35, 0.25)
"""Of the way from the middle to where the free room ends; the first that is free all along is walked."""


@dataclass(frozen=True, eq=False)
class WalkLoop:
    """A closed way round a free room."""

    corners: Array
    """(n, 2) places in order [m]; the last leads to the first."""
    centre: Array
    """(2,) what it goes round [m]."""
    floor: float
    """Height of the floor under the scene's free room [m]."""
    free: Array
    """(m, 2) free places of the room at hand height [m]."""

    @cached_property
    def spline(self) -> tuple[object, float]:
        """A closed curve through the corners by arc length, and its length [m]."""
        from scipy.interpolate import CubicSpline

        closed = np.vstack((self.corners, self.corners[:1]))
        along = np.concatenate(([0.0], np.cumsum(np.linalg.norm(np.diff(closed, axis=0), axis=1))))
        return CubicSpline(along, closed, bc_type="periodic"), float(along[-1])


def find_loop(batch: SceneBatch, height: float = 1.5) -> WalkLoop:
    """Return a loop round the largest free room of a scene.

    From the middle of the free places the room is followed in all directions to where it ends; the loop runs at a share of
    that way, smoothed, the largest share at which nothing is near.

    Args:
        batch: Of one scene.
        height: Of the hand over the floor of the scene's bounds [m].

    Raises:
        AirworthyError: There is no free room of a few metres at that height.
    """
    name, bounds = batch.scenes[0].name, batch.scenes[0].bounds
    low, high, z = np.array(bounds.lower), np.array(bounds.upper), bounds.lower[2] + height
    sides = [np.arange(low[k] + _MARGIN, high[k] - _MARGIN + 1e-9, _CELL) for k in (0, 1)]
    # Bounds of open country would be millions of places: 60 m round the middle are enough of a walk.
    sides = [side[np.abs(side - 0.5 * (low[k] + high[k])) < 30.0] for k, side in enumerate(sides)]
    if z > high[2] - 0.2 or min(map(len, sides)) < 4:
        raise AirworthyError(f"The scene {name!r} has no room for a walk at {height:g} m; choose another height or scene.")
    room = _largest(_free(batch, sides, z, _MARGIN))
    places = np.stack((sides[0][room.nonzero()[0]], sides[1][room.nonzero()[1]]), axis=1)
    if len(places) < 40:
        raise AirworthyError(f"The scene {name!r} has hardly free room at {height:g} m; choose another height or scene.")
    centre = places.mean(axis=0)
    for share in _SHARES:
        corners = _ring(places, centre, share)
        found = WalkLoop(corners, centre, float(low[2]), places)
        curve, length = found.spline
        dense = curve(np.arange(0.0, length, 0.05))  # type: ignore[operator]
        if length > 3.0 and (_distance(batch, dense, z, 2.0 * _NEAREST) > _NEAREST).all():
            return found
    raise AirworthyError(f"No closed way of a few metres is free in the scene {name!r} at {height:g} m; choose another height.")


def _distance(batch: SceneBatch, places: Array, z: float, limit: float) -> Array:
    points = np.column_stack((places, np.full(len(places), z)))
    return np.asarray(clearance(batch.geometry, points, np.zeros(len(points), np.int32), limit).distance)


def _free(batch: SceneBatch, sides: list[Array], z: float, margin: float) -> ArrayBool:
    grid = np.stack(np.meshgrid(*sides, indexing="ij"), axis=-1)
    distance = _distance(batch, grid.reshape(-1, 2), z, 2.0 * margin)
    return np.asarray(distance.reshape(grid.shape[:2]) > margin)


def _largest(free: ArrayBool) -> ArrayBool:
    """Return the largest connected part."""
    from scipy.ndimage import label

    parts, count = label(free)
    if not count:
        return free
    sizes = np.bincount(parts.ravel())[1:]
    return np.asarray(parts == 1 + int(np.argmax(sizes)))


def _ring(places: Array, centre: Array, share: float) -> Array:
    """Return corners (n, 2) round the centre, at a share of the way to the farthest free place in each direction."""
    from scipy.ndimage import gaussian_filter1d

    away = places - centre
    sector = np.floor((np.arctan2(away[:, 1], away[:, 0]) + np.pi) / (2.0 * np.pi) * _ANGLES).astype(int) % _ANGLES
    radius = np.zeros(_ANGLES)
    np.maximum.at(radius, sector, np.linalg.norm(away, axis=1))
    # The least of neighbours first, so that no corner of the room makes a spike.
    least = np.min([np.roll(radius, k) for k in (-1, 0, 1)], axis=0)
    smooth = share * gaussian_filter1d(least, 2.0, mode="wrap")
    angle = (np.arange(_ANGLES) + 0.5) / _ANGLES * 2.0 * np.pi - np.pi
    return centre + smooth[:, None] * np.stack((np.cos(angle), np.sin(angle)), axis=1)


# ---- Steps and tremor: sums of sines, the same for the same seed ------------------------------------------------------------

_TREMOR_HZ = (0.5, 9.0)
"""Sway of a standing person and physiological tremor of hands (Elble and Randall, 1978: 8 to 12 Hz, small)."""
_SINES = 7
_TREMOR_M, _TREMOR_RAD = 0.006, 0.010
"""Root mean square of the hand's places and turns; ours: of a telephone held with care."""
_STEP_HZ, _STEP_UP, _STEP_SIDE = 1.8, 0.012, 0.010
"""Steps a second, and what is left of them in the hand [m]."""


class HandWalk:
    """A camera that is carried along a loop.

    It looks across the middle of the room, swaying to the sides and up and down, and rises and sinks slowly.

    Args:
        loop: Way.
        seconds: That all laps take [s].
        laps: How often it goes round; the film ends where it began.
        height: Mean of the hand over the floor [m].
        tremor: Factor on steps and tremor; 0: none.
        seed: Of the tremor and of where it looks.
    """

    def __init__(
        self, loop: WalkLoop, seconds: float, laps: float = 1.0, height: float = 1.5, tremor: float = 1.0, seed: int = 0
    ) -> None:
        self.loop, self.seconds, self.laps, self.height, self.tremor = loop, seconds, laps, height, tremor
        rng = np.random.default_rng([seed, 0x57A1])
        self._phase = rng.uniform(0.0, 2.0 * np.pi, 6)
        low, high = np.log(_TREMOR_HZ)
        self._hz = np.exp(rng.uniform(low, high, (_SINES, 6)))
        self._shift = rng.uniform(0.0, 2.0 * np.pi, (_SINES, 6))
        # Amplitudes fall with the frequency, so speeds are alike; then scaled to the root mean square.
        size = 1.0 / self._hz
        self._size = size / np.sqrt(0.5 * (size**2).sum(axis=0))

    def poses(self, time: ArrayLike) -> tuple[Array, Array]:
        """Return positions (..., 3), world [m], and attitudes (..., 4), camera (x right, y down, z forward) to world.

        Args:
            time: [s], any shape; 0 to `seconds`.
        """
        t = np.asarray(time, np.float64)
        curve, length = self.loop.spline
        lap = self.laps * t / self.seconds
        place = np.asarray(curve((lap * length) % length))  # type: ignore[operator]
        turn = 2.0 * np.pi * lap
        up = self.loop.floor + self.height + 0.16 * self.height * np.sin(1.5 * turn + self._phase[0])
        position = np.concatenate((place, up[..., None]), axis=-1)
        inward = self.loop.centre - place
        # Whole numbers of sways a lap would look at the same things each time round.
        yaw = np.arctan2(inward[..., 1], inward[..., 0]) + 0.5 * np.sin(2.7 * turn + self._phase[1])
        # Down far enough for the floor in the middle to be seen now and then, which in a small room is far.
        down = 0.6 * np.arctan2(0.6 * self.height, np.linalg.norm(inward, axis=-1))
        pitch = down + 0.20 * np.sin(3.3 * turn + self._phase[2])
        roll = 0.03 * np.sin(2.1 * turn + self._phase[3])
        shake = self.tremor * self._shake(t)
        step = 2.0 * np.pi * _STEP_HZ * t
        left = np.stack((-np.sin(yaw), np.cos(yaw), np.zeros_like(yaw)), axis=-1)
        position = position + _TREMOR_M * shake[..., :3]
        position[..., 2] += self.tremor * _STEP_UP * np.sin(step + self._phase[4])
        position += self.tremor * _STEP_SIDE * np.sin(0.5 * step + self._phase[5])[..., None] * left
        attitude = frames.camera_attitude(frames.from_euler(roll, pitch, yaw))
        return position, frames.multiply(attitude, frames.from_rotation_vector(_TREMOR_RAD * shake[..., 3:]))

    def _shake(self, t: Array) -> Array:
        """Six sums of sines of root mean square 1, (..., 6)."""
        angle = 2.0 * np.pi * self._hz * t[..., None, None] + self._shift
        return np.asarray((self._size * np.sin(angle)).sum(axis=-2))
