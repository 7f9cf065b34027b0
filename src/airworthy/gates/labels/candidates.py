"""The 70 pairs of speed and duration that the search tries, and which of them the acceleration limit admits.

Source: spec/boundary_predictor section 6 (Algorithm 1, eq. 3). The limit on the first segment depends on (v_prev, d0, theta0,
z_i - z_prev) and the candidate, on the second on (df, thetaf, z_next - z_i) and its speed: each distinct one is evaluated once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from airworthy.core.arrays import Array, ArrayBool, ArrayInt, ArrayLike
from airworthy.gates.labels.options import GRAVITY, Choices
from airworthy.trajectories.polynomial import BASIS_END_SPEED, BASIS_START_SPEED, BASIS_STEP, differentiate, evaluate

__all__ = ["SAME_TIME", "Candidates", "candidates", "fastest", "segment_admissible"]


# Source: spec/boundary_predictor section 6, ours there: Euclidean norms at 101 points per segment, strict inequality.
POINTS = 101
"""Evenly spaced points of a segment at which the limit is checked."""
# Source: spec/boundary_predictor section 6, ours there: ties go to the first found.
SAME_TIME = 1e-9
"""Durations closer than this [s] are equal; then the first candidate wins."""
# Source: Algorithm 1: eps = 1e-10, and 1.5 s where both speeds are below it.
_STILL = 1e-10
"""Speeds below this count as none [m/s]."""
_STILL_TIME = 1.5
"""Duration of a segment from rest to rest before it is scaled [s]."""
_CHUNK = 1 << 10
"""Segments at once: their 101 points each stay in a processor's second cache, in half the time of larger blocks."""


@dataclass(frozen=True)
class Candidates:
    """What may be flown in each situation, speed-major: candidate n has speed n // ratios and ratio n % ratios."""

    v: Array
    """Speed through gate i [m/s], shape (k, n)."""
    t0: Array
    """Duration of the first segment [s], shape (k, n)."""
    tf: Array
    """Of the second [s], shape (k, n)."""
    admissible: ArrayBool
    """Both segments keep the limit, shape (k, n)."""


def candidates(situations: ArrayLike, choices: Choices | None = None) -> Candidates:
    """Return speeds, durations and the limit's verdict for situations, shape (k, 8).

    Args:
        situations: Shape (k, 8).
        choices: Numbers of speeds and ratios, their ranges, and the limit; the published ones by default.
    """
    c = choices or Choices()
    e = np.asarray(situations, dtype=np.float64)
    speeds, ratios = np.linspace(0.0, c.speed_max, c.speeds), np.linspace(c.ratio_min, c.ratio_max, c.ratios)
    total = e[:, 0:1] + speeds
    linear = np.where(total >= _STILL, 2.0 * e[:, 2:3] / np.where(total >= _STILL, total, 1.0), _STILL_TIME)
    t0 = (linear[..., None] * ratios).reshape(len(e), -1)
    moving = speeds >= _STILL
    # From rest to rest the printed "2 df" is taken in seconds (Algorithm 1).
    second = np.where(moving, 2.0 * e[:, 5:6] / np.where(moving, speeds, 1.0), 2.0 * e[:, 5:6])
    v, tf = np.broadcast_to(np.repeat(speeds, c.ratios), t0.shape), np.repeat(second, c.ratios, axis=1)
    admissible = _first(e, speeds, ratios, c) & np.repeat(_second(e, speeds, c), c.ratios, axis=1)
    return Candidates(v, t0, tf, admissible)


def fastest(found: Candidates) -> ArrayInt:
    """Return the analytic choice: the admissible candidate of shortest t0, the first of equal ones; -1 where none is; shape
    (k,).
    """
    times = np.where(found.admissible, found.t0, np.inf)
    least = times.min(axis=1)
    # Times that differ by rounding alone are ties, and ties go to the first.
    first = np.argmax(times <= least[:, None] + SAME_TIME, axis=1)
    return np.where(np.isfinite(least), first, -1)


def _first(e: Array, speeds: Array, ratios: Array, c: Choices) -> ArrayBool:
    """Verdict on the first segments, shape (k, speeds * ratios)."""
    # First segments repeat over the grid (189,000 of them instead of nine million): each is judged once.
    keys, back = np.unique(np.stack((e[:, 0], e[:, 2], e[:, 3], e[:, 4] - e[:, 1]), axis=-1), axis=0, return_inverse=True)
    v, turn, rise = keys[:, 0:1], keys[:, 2], keys[:, 3]
    leg = np.stack((keys[:, 1] * np.cos(turn), keys[:, 1] * np.sin(turn), rise), axis=-1)
    total = v + speeds
    linear = np.where(total >= _STILL, 2.0 * keys[:, 1:2] / np.where(total >= _STILL, total, 1.0), _STILL_TIME)
    times = linear[..., None] * ratios
    out = np.stack((np.cos(turn), np.sin(turn)), axis=-1)
    shape = times.shape
    end = np.broadcast_to(out[:, None, None], (*shape, 2)) * speeds[:, None, None]
    start = np.zeros((*shape, 2))
    start[..., 0] = v[:, :, None]
    good = _verdicts(np.broadcast_to(leg[:, None, None], (*shape, 3)), start, end, times, c)
    return good.reshape(len(keys), -1)[back.ravel()]


def _second(e: Array, speeds: Array, c: Choices) -> ArrayBool:
    """Verdict on the second segments, in the frame of gate i, shape (k, speeds)."""
    # Second segments too: 540 of them (spec/boundary_predictor section 6, factored form).
    keys, back = np.unique(np.stack((e[:, 5], e[:, 6], e[:, 7] - e[:, 4]), axis=-1), axis=0, return_inverse=True)
    turn = keys[:, 1]
    leg = np.stack((keys[:, 0] * np.cos(turn), keys[:, 0] * np.sin(turn), keys[:, 2]), axis=-1)
    moving = speeds >= _STILL
    times = np.where(moving, 2.0 * keys[:, 0:1] / np.where(moving, speeds, 1.0), 2.0 * keys[:, 0:1])
    start = np.zeros((*times.shape, 2))
    start[..., 0] = speeds
    good = _verdicts(np.broadcast_to(leg[:, None], (*times.shape, 3)), start, np.zeros_like(start), times, c)
    return good[back.ravel()]


def _verdicts(leg: Array, start: Array, end: Array, times: Array, c: Choices) -> ArrayBool:
    legs, starts, ends, spans = leg.reshape(-1, 3), start.reshape(-1, 2), end.reshape(-1, 2), times.reshape(-1)
    found = np.empty(times.size, dtype=bool)
    for at in range(0, times.size, _CHUNK):
        part = slice(at, at + _CHUNK)
        # In chunks: 101 points of nine million segments would not fit into memory.
        found[part] = segment_admissible(legs[part], starts[part], ends[part], spans[part], c)
    return found.reshape(times.shape)


# The derivatives of the basis at all points, once: a segment is then three products.
_TAU = np.linspace(0.0, 1.0, POINTS)
_SPEED, _PUSH = (
    [evaluate(differentiate(basis, order), _TAU) for basis in (BASIS_STEP, BASIS_START_SPEED, BASIS_END_SPEED)]
    for order in (1, 2)
)


def segment_admissible(leg: Array, start: Array, end: Array, times: Array, choices: Choices) -> ArrayBool:
    """Tell whether segments with no acceleration and jerk at their ends keep the limits at every point.

    The limits are |a| < a0 - k |v|^3 and, where a most thrust over mass is given, |a + g| less than that.

    Args:
        leg: From begin to end [m], shape (n, 3).
        start: Horizontal velocity at the begin [m/s], shape (n, 2); none is vertical.
        end: At the end, shape (n, 2).
        times: Duration [s], shape (n,).
        choices: Holds a0, k and the thrust.
    """
    most, cubic = choices.limit
    if not np.isfinite(most) and choices.thrust is None:
        return np.ones(len(times), dtype=bool)
    speed, push = np.zeros((len(times), POINTS)), np.zeros((len(times), POINTS))
    pace = 1.0 / times
    for axis in range(2):
        mean = (leg[:, axis] * pace)[:, None]
        v = mean * _SPEED[0] + start[:, axis, None] * _SPEED[1] + end[:, axis, None] * _SPEED[2]
        a = mean * _PUSH[0] + start[:, axis, None] * _PUSH[1] + end[:, axis, None] * _PUSH[2]
        speed += v * v
        push += a * a
    climb = (leg[:, 2] * pace)[:, None]
    up = climb * _PUSH[0]
    speed += (climb * _SPEED[0]) ** 2
    push += up * up
    good = np.ones(len(times), dtype=bool)
    if np.isfinite(most):
        good &= np.all(np.sqrt(push) * pace[:, None] < most - cubic * speed * np.sqrt(speed), axis=1)
    if choices.thrust is not None:
        # |a + g|^2 = |a|^2 + 2 a_z g + g^2
        lifted = push * pace[:, None] ** 2 + 2.0 * GRAVITY * up * pace[:, None] + GRAVITY**2
        good &= np.all(lifted < choices.thrust**2, axis=1)
    return good
