"""Bodies against frames: an upright cylinder and the four bars of each gate, for many flights at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from airworthy.trajectories import Box, Gate

Array = NDArray[np.float64]
NOTHING = -9


@dataclass(frozen=True)
class Bars:
    """Distinct gates of every flight, padded to the most of any; f flights, g gates."""

    center: Array
    """[m], (f, g, 3)."""
    normal: Array
    """Direction of flight, (f, g, 3)."""
    left: Array
    """(f, g, 3)"""
    opening: Array
    """Half width and half height [m], (f, g, 2)."""
    bar: Array
    """Side of the bars [m], (f, g)."""
    present: NDArray[np.bool_]
    """(f, g)"""


def bars_of(courses: Sequence[Sequence[Gate]]) -> Bars:
    """Frames of each flight's distinct gates."""
    most = max(map(len, courses))
    shape = (len(courses), most)
    center, yaw = np.zeros((*shape, 3)), np.zeros(shape)
    opening, bar, present = np.ones((*shape, 2)), np.zeros(shape), np.zeros(shape, dtype=bool)
    for row, gates in enumerate(courses):
        n = len(gates)
        center[row, :n] = [gate.position for gate in gates]
        yaw[row, :n] = [gate.yaw for gate in gates]
        opening[row, :n] = [gate.opening for gate in gates]
        bar[row, :n] = [gate.bar for gate in gates]
        present[row, :n] = True
    zero = np.zeros(shape)
    normal = np.stack((np.cos(yaw), np.sin(yaw), zero), axis=-1)
    left = np.stack((-np.sin(yaw), np.cos(yaw), zero), axis=-1)
    return Bars(center, normal, left, 0.5 * opening, bar, present)


def body_extent(radius: float, half_height: float, up: Array | None) -> tuple[Array | float, Array | float]:
    """Radius and half height of the upright cylinder round a cylinder whose axis is `up` (..., 3): never too small."""
    if up is None:
        return radius, half_height
    upright = np.clip(np.abs(up[..., 2]) / np.maximum(np.linalg.norm(up, axis=-1), 1e-9), 0.0, 1.0)
    leaning = np.sqrt(1.0 - upright**2)
    return np.minimum(radius + half_height * leaning, np.hypot(radius, half_height)), half_height * upright + radius * leaning


def touched(
    bars: Bars, place: Array, radius: Array | float, half: Array | float, obstacles: Sequence[Box], obstacle: int
) -> NDArray[np.int64]:
    """What upright cylinders touch.

    Args:
        bars: Frames.
        place: Centres [m], (k, f, 3).
        radius: Of the cylinders [m], (k, f) or one number.
        half: Half their height, alike.
        obstacles: Boxes in every flight's way.
        obstacle: What to answer for one of them.

    Returns:
        Number of the gate, `obstacle` or NOTHING, (k, f).
    """
    into = np.full(place.shape[:2], NOTHING, np.int64)
    r, h = np.broadcast_to(radius, place.shape[:2]), np.broadcast_to(half, place.shape[:2])
    relative = place[:, :, None] - bars.center
    reach = np.max(bars.opening, axis=-1) * 1.5 + 2.0 * bars.bar + 0.2
    with np.errstate(invalid="ignore"):
        near = (np.max(np.abs(relative), axis=-1) < reach) & bars.present
    step, flight, gate = np.nonzero(near)
    if step.size:
        away = relative[step, flight, gate]
        ahead = np.sum(away * bars.normal[flight, gate], axis=-1)
        aside = np.sum(away * bars.left[flight, gate], axis=-1)
        frame = (bars.opening[flight, gate], bars.bar[flight, gate])
        hit = _frame_hit(ahead, aside, away[:, 2], *frame, r[step, flight], h[step, flight])
        into[step[hit], flight[hit]] = gate[hit]
    for box in obstacles:
        c, s = np.cos(box.yaw), np.sin(box.yaw)
        away = place - np.asarray(box.center)
        ahead, aside = c * away[..., 0] + s * away[..., 1], c * away[..., 1] - s * away[..., 0]
        into[_box_hit(ahead, aside, away[..., 2], box.half_size, r, h)] = obstacle
    return into


def _frame_hit(ahead: Array, aside: Array, above: Array, opening: Array, bar: Array, r: Array, h: Array) -> NDArray[np.bool_]:
    """Whether cylinders touch a frame, in its own coordinates: upright bars left and right, level ones over the corners."""
    wide, high, b = opening[:, 0], opening[:, 1], 0.5 * bar
    # The frame is symmetric: one upright and one level bar stand for both of each.
    upright = _box_hit(ahead, np.abs(aside) - (wide + b), above, (b, b, high), r, h)
    level = _box_hit(ahead, aside, np.abs(above) - (high + b), (b, wide + bar, b), r, h)
    return upright | level


def _box_hit(x: Array, y: Array, z: Array, size: Sequence[Array | float], r: Array, h: Array) -> NDArray[np.bool_]:
    gap = np.hypot(np.maximum(np.abs(x) - size[0], 0.0), np.maximum(np.abs(y) - size[1], 0.0))
    return np.asarray((gap <= r) & (np.abs(z) - size[2] <= h))
