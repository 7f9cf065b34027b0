"""Gates as landmarks: where their corners are, in which pixels they are seen, and the slopes of both.

A gate is three numbers (dx, dy, dyaw): moved by dx, dy and turned by dyaw about the vertical line through its pivot, from where
it nominally stands. Decoys, where they bear beacons, are numbered behind the gates, and are not moved. Everything is batched
over leading axes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from airworthy.core import frames
from airworthy.core.arrays import Array, ArrayIndex
from airworthy.race.briefing import MARKERS, RaceBriefing
from airworthy.race.estimation.inertial import InertialMotion, skew

NEAREST = 0.3
"""Depth at which predictions are held [m]: nearer points have no useful slope. Ours; corners are passed at half a metre."""


def gate_corners(briefing: RaceBriefing, which: ArrayIndex, shift: Array) -> tuple[Array, Array]:
    """Return corners of gates, and their slopes by dyaw.

    Args:
        briefing: Where they nominally stand.
        which: Numbers of gates and decoys, (..., k).
        shift: dx, dy [m] and dyaw [rad], (..., k, 3).

    Returns:
        World [m], (..., k, 4, 3), and [m/rad], of the same shape.
    """
    nominal, pivot = briefing.landmarks[which], briefing.axes[which]
    x, y = nominal[..., 0] - pivot[..., None, 0], nominal[..., 1] - pivot[..., None, 1]
    cosine, sine = np.cos(shift[..., 2])[..., None], np.sin(shift[..., 2])[..., None]
    east, north = cosine * x - sine * y, sine * x + cosine * y
    place = pivot + shift[..., :2]
    corners = np.stack([east + place[..., None, 0], north + place[..., None, 1], nominal[..., 2]], -1)
    return corners, np.stack([-north, east, np.zeros_like(east)], -1)


@dataclass(frozen=True)
class Sighting:
    """Where corners should be seen, and how that changes; m = 4 k corners of k gates, each as one camera sees it."""

    pixel: Array
    """[px], (n, m, 2)."""
    depth: Array
    """In front of the camera [m], (n, m)."""
    by_position: Array
    """Pixels by the vehicle's position [px/m], (n, m, 2, 3)."""
    by_turn: Array
    """By the attitude's error about world axes [px/rad], (n, m, 2, 3)."""
    by_gate: Array
    """By dx, dy [px/m] and dyaw [px/rad] of the corner's own gate, (n, m, 2, 3)."""


def sighted(briefing: RaceBriefing, motion: InertialMotion, which: ArrayIndex, shift: Array) -> Sighting:
    """Return where corners of gates should be seen.

    Args:
        briefing: Nominal gates and the cameras.
        motion: Vehicles, n of them.
        which: Numbers of gates and decoys, (n, k); as a second camera sees them all numbers once more, behind these.
        shift: Of these, (n, k, 3); 0 of decoys.
    """
    camera, landmark = np.divmod(which, len(briefing.landmarks))
    corners, by_yaw = gate_corners(briefing, landmark, shift)
    n = len(corners)
    corners, by_yaw = corners.reshape(n, -1, 3), by_yaw.reshape(n, -1, 3)
    away = corners - motion.position[:, None]
    to_camera = frames.conjugate(frames.camera_attitude(motion.attitude, briefing.camera_attitude))
    # Each corner is seen from its own camera; both look the same way.
    lever = frames.rotate(motion.attitude[:, None], briefing.eyes[camera]).repeat(MARKERS, axis=1)
    local = frames.rotate(to_camera[:, None], away - lever)
    depth = np.maximum(local[..., 2], NEAREST)
    ratio = local[..., :2] / depth[..., None]
    # Slope of pixels by a shift of the point in the world: the lens behind the camera's rotation.
    lens = np.zeros((*depth.shape, 2, 3))
    lens[..., 0, 0] = lens[..., 1, 1] = 1.0 / depth
    lens[..., 2] = -ratio / depth[..., None]
    by_point = (briefing.focal[:, None] * lens) @ frames.to_matrix(to_camera)[:, None]
    # exp(-theta) (C - p) = (C - p) + [C - p] theta; the lever arm turns with the body and does not see theta.
    by_turn = by_point @ skew(away)
    turned = (by_point @ by_yaw[..., None])[..., 0]
    by_gate = np.stack([by_point[..., 0], by_point[..., 1], turned], -1)
    return Sighting(briefing.center + briefing.focal * ratio, local[..., 2], -by_point, by_turn, by_gate)


def gate_axes(briefing: RaceBriefing, shift: Array) -> tuple[Array, Array, Array]:
    """Return centres of all gates as believed, the level direction to the left of who flies through, and the centres' slopes.

    Args:
        briefing: Where they nominally stand.
        shift: Of all gates, (n, gates, 3).

    Returns:
        [m], (n, gates, 3); unit length, (n, gates, 3); by dyaw [m/rad], (n, gates, 3).
    """
    which = np.broadcast_to(np.arange(len(briefing.gates)), shift.shape[:-1])
    corners, by_yaw = gate_corners(briefing, which, shift)
    # The four are added in order, so that a batch gives what its flights give one by one.
    center, slope = (0.25 * (c[..., 0, :] + c[..., 1, :] + c[..., 2, :] + c[..., 3, :]) for c in (corners, by_yaw))
    level = np.hypot(briefing.normal[:, 0], briefing.normal[:, 1])
    # A gate that lies flat has no left of its own; world y stands in, as in `gate_geometry`.
    flat = level < 1e-6
    x = np.where(flat, 0.0, -briefing.normal[:, 1] / np.where(flat, 1.0, level))
    y = np.where(flat, 1.0, briefing.normal[:, 0] / np.where(flat, 1.0, level))
    cosine, sine = np.cos(shift[..., 2]), np.sin(shift[..., 2])
    left = np.stack([cosine * x - sine * y, sine * x + cosine * y, np.zeros_like(cosine)], -1)
    return center, left, slope
