"""What tests of maps share: missions, a small camera, images of a wall, and comparison with the twin."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from airworthy.core import frames
from airworthy.core.arrays import Array, ArrayF32
from airworthy.optics.projections import Pinhole
from airworthy.planners.common.interface import MapSettings, Mission
from airworthy.planners.mapping import LocalMaps
from airworthy.planners.mapping.twin import MapTwin

CAMERA = Pinhole(48, 36, 29.0, 29.0, 24.1, 18.3, integer_pixels=True)
"""The published field of view with few pixels."""
EVERY = MapSettings(border=0, skip=1)
ROUNDING = 8 / 4096
"""Log-odds in 16 bits: half a unit for each of at most 7 additions between two clamps, and for the clamp."""


def mission(lower: Sequence[Sequence[float]], upper: Sequence[Sequence[float]]) -> Mission:
    """Flights of which only the boxes matter."""
    n = len(lower)
    zero = np.zeros((n, 3))
    return Mission(zero, zero, np.ones(n), np.ones(n), np.array(lower, float), np.array(upper, float), np.arange(n))


def looking(yaw: float = 0.0, pitch: float = 0.0, roll: float = 0.0) -> Array:
    """Attitude of an optical frame on a body with these angles."""
    return frames.camera_attitude(frames.from_euler(roll, pitch, yaw))


def centres(maps: LocalMaps, flight: int) -> Array:
    """Middles of all cells of a flight's window, (nx, ny, nz, 3)."""
    cells, lower = maps.inflated(flight)
    return lower + maps.settings.resolution * (np.moveaxis(np.indices(cells.shape), 0, -1) + 0.5)


def assert_equals_twin(maps: LocalMaps, twin: MapTwin, flight: int) -> None:
    """Every cell of the window: state and inflation alike, log-odds to their rounding, distances to the last bit."""
    cells, lower = maps.inflated(flight)
    first = np.rint((lower - twin.origin) / maps.settings.resolution).astype(int)
    window = tuple(slice(a, a + n) for a, n in zip(first, cells.shape, strict=True))
    asked = centres(maps, flight).reshape(1, -1, 3)
    odds = maps.log_odds([flight], asked).reshape(cells.shape)
    np.testing.assert_allclose(odds, twin.odds[window], atol=ROUNDING, rtol=0)
    state = np.where(twin.odds >= twin.least, np.where(twin.odds > np.log(4.0), 1, 0), -1)[window]
    np.testing.assert_array_equal(maps.state([flight], asked).reshape(cells.shape), state)
    np.testing.assert_array_equal(cells.astype(bool), twin.inflated[window])
    if maps.settings.field:
        s = twin.squared[window]
        h = maps.settings.resolution
        metres = np.where(s >= 0, h * np.sqrt(np.abs(s)), h - h * np.sqrt(np.abs(s)))
        np.testing.assert_array_equal(maps.field(flight)[0], metres.astype(np.float32))


def wall_image(count: int, distance: float = 2.0) -> ArrayF32:
    """A wall across the view [m], seen by `CAMERA`; (count, h, w)."""
    return np.full((count, CAMERA.height, CAMERA.width), distance, np.float32)
