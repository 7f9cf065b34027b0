"""Which gate each opening of an image is, and where its beacons would be seen: a `BeaconFrame` from an image.

Of each gate the four corners of its visible opening are predicted from what a filter believes, with the covariance of all eight
coordinates together: a gate that is not known yet may be far from where it is expected, but then its corners are so alike, and
its shape hardly changes. An opening's squared Mahalanobis distance from each gate is that of its corners in the order round it
that fits best. Openings and gates are matched one to one by the least sum (as `estimation.association` does with single
corners); what fits nothing, or two gates about equally well, is left out. Of openings that the picture's edge cuts off the
corners in the picture are taken, where the gate is known well enough that they cannot be confused.

Corners are then moved by what the tube's thickness hides at the believed pose (`holes`), to the mid plane's.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np

from airworthy.core import frames
from airworthy.core.arrays import Array, ArrayIndex, ArrayU8
from airworthy.race.briefing import MARKERS, BeaconFrame, RaceBriefing
from airworthy.race.estimation.estimator import Belief
from airworthy.race.estimation.inertial import TURN, P
from airworthy.race.estimation.landmarks import gate_corners, sighted
from airworthy.race.vision.holes import around, visible_corners
from airworthy.race.vision.openings import Opening, find_openings

__all__ = ["PIXEL_SIGMA", "Expected", "expected_openings", "named", "seen_gates"]

PIXEL_SIGMA = 0.3
"""Assumed standard deviation of a corner's coordinates [px], prediction of the tube's thickness included; ours. Corners of lone
gates are found to 0.1 px or so; what is seen behind a gate, and thickness at a pose that is wrong, add."""
_FIT = 5.0
"""An opening fits a gate within so many standard deviations of chi-square above its mean."""
_CLEAR = 9.0
"""It fits no other gate as well, if that one's squared distance is larger by so much: 3 sigma."""
_CONFUSED = 0.25
"""Corners of openings that are cut off are known by their place, if that is certain to this part of their shortest side."""
_CORNER = 20.0
"""By how much an opening that fits is taken before another for each corner that it has more; ours: several times what
chi-square has for one."""
_NEAR = 1.0
"""Least distance at which it counts how well a gate's distance is known [m]."""
_FAR, _NONE = 1e6, 1e5
"""Stands for what fits nothing, and is beyond all that fits."""


@dataclass(frozen=True)
class Expected:
    """Where a gate's visible opening should be."""

    gate: int
    order: ArrayIndex
    """Markers round the opening, (4,)."""
    corners: Array
    """Visible ones in that order, (4, 2) [px]; NaN of those that are beside the camera or behind it."""
    hidden: Array
    """From these to the corners of the mid plane, (4, 2) [px]."""
    spread: Array
    """Covariance of the corners, two coordinates each, (8, 8) [px^2]."""


def expected_openings(briefing: RaceBriefing, belief: Belief, gates_at: int, camera: int = 0) -> list[Expected]:
    """Return gates whose openings are believed to lie before a camera, of one flight.

    Args:
        briefing: Nominal gates, the lens and the cameras.
        belief: Of one flight, with the covariance of its moment.
        gates_at: Where gates begin in it.
        camera: 0, or 1 for the second one.
    """
    which = np.arange(len(briefing.gates))[None]
    view = sighted(briefing, belief.motion, which + camera * len(briefing.landmarks), belief.gates)
    corners, _ = gate_corners(briefing, which, belief.gates)
    attitude = frames.camera_attitude(belief.motion.attitude, briefing.camera_attitude)[0]
    eye = belief.motion.position[0] + frames.rotate(belief.motion.attitude[0], briefing.eyes[camera])
    found = []
    for gate in which[0]:
        order = around(corners[0, gate])
        local = frames.rotate_inverse(attitude, corners[0, gate][order] - eye)
        normal = np.cross(local[1] - local[0], local[3] - local[0])
        hole = visible_corners(local, normal / np.linalg.norm(normal), briefing.focal, briefing.center)
        if np.isnan(hole).all():
            continue
        rows = MARKERS * gate + order
        slope = np.concatenate([view.by_position[0, rows], view.by_turn[0, rows], view.by_gate[0, rows]], axis=-1).reshape(8, 9)
        columns = np.r_[P, TURN, gates_at + 3 * gate : gates_at + 3 * gate + 3]
        own = belief.covariance[0][np.ix_(columns, columns)]
        hidden = view.pixel[0, rows] - hole
        # What slopes leave out of a gate that may stand nearer or farther: of its size the square of that share, of the
        # thickness the share itself.
        far = np.sqrt(max(own[0, 0] + own[6, 6], own[1, 1] + own[7, 7])) / max(float(np.mean(view.depth[0, rows])), _NEAR)
        left_out = far**2 * _extent(hole) + far * float(np.nanmax(np.abs(hidden)))
        spread = slope @ own @ slope.T + (PIXEL_SIGMA**2 + left_out**2) * np.eye(8)
        found.append(Expected(int(gate), order, hole, hidden, spread))
    return found


def _extent(ring: Array) -> float:
    """Return width or height of corners, whichever is larger [px]; those that are not known are left out."""
    return float(np.max(np.nanmax(ring, axis=0) - np.nanmin(ring, axis=0)))


def named(openings: list[Opening], expected: list[Expected], gates: int) -> Array:
    """Return pixels of the corners of the mid plane by gate and marker, NaN where none is seen, (gates, 4, 2).

    Args:
        openings: Of one image.
        expected: See `expected_openings`.
        gates: How many there are.
    """
    from scipy.optimize import linear_sum_assignment

    pixel = np.full((gates, MARKERS, 2), np.nan)
    if not openings or not expected:
        return pixel
    fits = [[_fit(opening, gate) for gate in expected] for opening in openings]
    # Of an opening and pieces of it that all fit, that with most corners is taken.
    worth = _CORNER * np.array([len(opening.corners) for opening in openings])
    cost = np.array([[distance for distance, _ in row] for row in fits]) - worth[:, None]
    for row, column in zip(*linear_sum_assignment(np.minimum(cost, _FAR)), strict=True):
        best = cost[row, column]
        others = np.append(np.delete(cost[row], column), np.delete(cost[:, column], row))
        if best >= _NONE or np.any(others < best + _CLEAR):
            continue
        gate, corners = expected[column], fits[row][column][1]
        pixel[gate.gate, gate.order[corners]] = openings[row].corners + gate.hidden[corners]
    return pixel


def _fit(opening: Opening, gate: Expected) -> tuple[float, ArrayIndex]:
    """Return the squared Mahalanobis distance of an opening from a gate, and which of its corners are seen, in order."""
    seen = opening.corners
    count = len(seen)
    able = np.flatnonzero(np.isfinite(gate.corners[:, 0]))
    if len(able) < count:
        return _FAR, able
    # Both lead round, perhaps in opposite directions: gates are seen from both sides.
    turn = 1 if count < 3 or _clockwise(gate.corners[able]) == _clockwise(seen) else -1
    tried = [
        np.roll(subset[::turn], start)
        for subset in (np.array(chosen) for chosen in combinations(able, count))
        for start in range(count)
    ]
    distances = np.array([_distance(seen, gate, corners) for corners in tried])
    first = int(np.argmin(distances))
    best = float(distances[first])
    if best > 2 * count + _FIT * np.sqrt(4.0 * count):
        return _FAR, tried[first]
    if count < MARKERS:
        # Any corner may be any other, where the gate may be anywhere.
        deviation = float(np.sqrt(np.linalg.eigvalsh(_part(gate.spread, tried[first]))[-1]))
        rivals = np.sort(distances)[1:]
        if deviation > _CONFUSED * opening.side or np.any(rivals < best + _CLEAR):
            return _FAR, tried[first]
    return best, tried[first]


def _clockwise(ring: Array) -> bool:
    after = np.roll(ring, -1, axis=0)
    return bool(np.sum(ring[:, 0] * after[:, 1] - ring[:, 1] * after[:, 0]) > 0.0)


def _part(spread: Array, corners: ArrayIndex) -> Array:
    axes = (2 * corners[:, None] + np.arange(2)).ravel()
    return np.asarray(spread[np.ix_(axes, axes)])


def _distance(seen: Array, gate: Expected, corners: ArrayIndex) -> float:
    off = (seen - gate.corners[corners]).ravel()
    return float(off @ np.linalg.solve(_part(gate.spread, corners), off))


def seen_gates(
    briefing: RaceBriefing, belief: Belief, gates_at: int, stamp: float, pixels: ArrayU8, right: ArrayU8 | None = None
) -> BeaconFrame:
    """Return an image of one flight, or those of both cameras, as a frame of beacons.

    Each image is named by itself, by what was believed before either of them: neither can lead the other astray.

    Args:
        briefing: Nominal gates, the lens and the cameras.
        belief: Of the image's moment.
        gates_at: Where gates begin in its covariance.
        stamp: Of the image [s].
        pixels: (height, width, 3).
        right: Of the second camera, of the same shape; None: there is none.
    """

    def corners(image: ArrayU8, camera: int) -> Array:
        expected = expected_openings(briefing, belief, gates_at, camera)
        return named(find_openings(image), expected, len(briefing.gates))[None]

    return BeaconFrame(stamp, corners(pixels, 0), right=None if right is None else corners(right, 1))
