"""Where the marker of a rendered film lies: on floor that the walk sees, nothing in between."""

from __future__ import annotations

import numpy as np

from airworthy.capture.filming.walk import HandWalk, WalkLoop
from airworthy.core import frames
from airworthy.core.arrays import Array, ArrayBool
from airworthy.core.errors import AirworthyError
from airworthy.geometry import RayTable, cast
from airworthy.optics.projections import Pinhole
from airworthy.scenes import SceneBatch
from airworthy.scenes.viewpoints import look_at

__all__ = ["marker_place"]

LIFT = 0.004
"""Of a marker over the floor [m]: the thickness of cardboard, so that no ray confuses the two."""
_VIEWS = 48
"""Instants of the walk that are looked from."""
_PLACES = 160
"""Free places that are tried, the nearest to the middle first."""
_FLAT = 0.03
"""Above the lowest place under which something is no longer the floor [m]."""
_GRAZING = 0.2
"""Sine of the least angle at which a marker is seen well enough to be read; ours: a side of 30 px is 6 px high there."""
_SHARE = 0.5
"""Of the views of the place that is seen most: the nearest to the middle with as many is taken."""
_AHEAD = 0.01
"""By which something must be nearer than the marker to hide it [m]."""


def marker_place(batch: SceneBatch, walk: HandWalk, lens: Pinhole, side: float) -> Array:
    """Return where a marker lies (3,), world [m]: near the middle of the room, seen whole from much of the walk.

    Args:
        batch: Of one scene.
        walk: Of the camera.
        lens: Of the camera.
        side: Of the marker's black square [m]; a white cell lies around it.

    Raises:
        AirworthyError: No floor is seen from the walk.
    """
    places = _floor_places(batch, walk.loop, walk.height)
    position, attitude = walk.poses(walk.seconds * (np.arange(_VIEWS) + 0.5) / _VIEWS)
    # The sheet's corners however it is turned: half of its diagonal away from the middle.
    reach = side * 8.0 / 6.0 * np.sqrt(0.5)
    spots = reach * np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [-1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, -1.0, 0.0]])
    whole = np.ones((len(places), _VIEWS), bool)
    for spot in spots:
        whole &= _seen(batch, places + spot, position, attitude, lens, whole)
    views = whole.sum(axis=1)
    if not views.max():
        raise AirworthyError(
            f"The walk through the scene {batch.scenes[0].name!r} sees no floor for a marker: choose another --hand-height or"
            " scene, or --marker-side 0."
        )
    return np.asarray(places[int(np.argmax(views >= _SHARE * views.max()))])


def _floor_places(batch: SceneBatch, loop: WalkLoop, hand: float) -> Array:
    """Return free places (n, 3) on the floor, the nearest to the middle of the room first."""
    order = np.argsort(np.linalg.norm(loop.free - loop.centre, axis=1), kind="stable")
    free = loop.free[order]
    eye = np.column_stack((free, np.full(len(free), loop.floor + hand)))
    depth = _distance(batch, eye, eye - (0.0, 0.0, 1.0))
    # Nothing below: the floor of the bounds.
    height = np.where(np.isfinite(depth) & (depth < 2.0 * hand), eye[:, 2] - depth, loop.floor)
    flat = height < height.min() + _FLAT
    return np.column_stack((free, height + LIFT))[flat][:_PLACES]


def _seen(batch: SceneBatch, points: Array, position: Array, attitude: Array, lens: Pinhole, asked: ArrayBool) -> ArrayBool:
    """Return which points (n, 3) are in the picture of which views (m), not too flat and with nothing before them (n, m)."""
    way = points[:, None] - position
    distance = np.linalg.norm(way, axis=-1)
    eye = frames.rotate_inverse(attitude[None], way)
    with np.errstate(all="ignore"):
        pixel = eye[..., :2] / eye[..., 2:] * (lens.fx, lens.fy) + (lens.cx, lens.cy)
    inside = (eye[..., 2] > 0.0) & ((pixel > 0.0) & (pixel < (lens.width, lens.height))).all(axis=-1)
    found = asked & inside & (-way[..., 2] > _GRAZING * distance)
    place, view = found.nonzero()
    if len(place):
        clear = _distance(batch, position[view], points[place]) > distance[place, view] - _AHEAD
        found[place, view] = clear
    return found


def _distance(batch: SceneBatch, start: Array, target: Array) -> Array:
    """Return how far the first thing is from each start towards its target (n,) [m]; infinite where there is none."""
    way = target - start
    # Straight up and down no heading tells how a camera is held; along a ray it does not matter.
    aside = np.where(np.linalg.norm(way[:, :2], axis=1) < 1e-9, 1e-6, 0.0)
    turn = np.stack(
        [look_at(a, b) for a, b in zip(start, target + np.column_stack((aside, 0.0 * aside, 0.0 * aside)), strict=True)]
    )
    ray = RayTable(np.array([[[0.0, 0.0, 1.0]]]))
    found = cast(batch.geometry, ray, start, turn, np.zeros(len(start), np.int32), ("depth",))["depth"]
    return np.asarray(found, np.float64).reshape(-1)
