"""By what axes and how many times as fast a gyro turns as attitudes do, where attitudes are noisy or far from it.

A clock is fitted where both turn nearly alike (`stream_clock`). Where they do not, the turns of attitudes over windows are
regressed on those of the gyro: over half a second and more a gyro has hardly any noise, so noise of attitudes leaves the slope
right and widens its interval only; the other way round it would lengthen turns. What noise the gyro has is bounded by its
second differences and widens the interval, too. So does what windows of other lengths say: a scale is the same over all, while
an estimator that takes acceleration for tilt turns further the longer it is watched (up to a tenth in shared logs). Every order
and sign of the axes is tried.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import permutations, product

import numpy as np

from airworthy.core.arrays import Array, ArrayAny
from airworthy.core.errors import AirworthyError
from airworthy.core.frames import conjugate
from airworthy.logs.clocks.turn_windows import REACH, TurnWindows
from airworthy.logs.record import LogStream

DEGREES = 180.0 / np.pi
"""[deg/rad]"""
_WINDOW_LENGTHS = (0.25, 0.5, 1.0, 2.0)
"""Ours: rotations are compared over each [s]; noise of attitudes weighs less over long ones, bends of a turn over short."""
_FACTORS = (1.0, 1.0 / DEGREES, DEGREES)
"""By what a gyro in another unit is brought near."""
_TURN_MOST = 2.5
"""Rotations over this have no certain direction [rad]."""
_ASKEW = np.deg2rad(30.0)
"""Ours: a sensor or the markers of a capture system sit no further askew; more are other axes."""
_STRAIGHT = 0.01
"""Share of the turns that speaks for a straight sensor: it decides about axes about which nothing turned."""
_LIKELY = 5.0
"""Ours: gain in log-likelihood for which a simple order of axes is given up; by chance 48 orders gain as much once in 50."""
_TOLD = 5.0
"""A slope is told that is so many deviations above 0."""
_WELL = 0.0125
"""A slope is told well whose deviation is under this share of it."""
_APART = 0.5
"""Ours: slope under which attitudes surely do not follow a gyro. By chance those of another flight of 45 s have one of 0.1,
with a deviation of 0.05 to 0.1."""
_NOISE_MOST = 0.99
_LEAST_LEFT = 1e-3
"""Ours: shares of the turns under this decide about no axes: sensors are not that straight."""
_SLOPE_LEAST = 1e-9
"""Stands for a slope that is none."""
_INVERTED = 0.2
"""Ours: attitudes are taken for inverse ones if these explain so much more of the turns."""
_CLIP = 3.0
"""Residuals beyond so many robust deviations weigh as if they were there."""


@dataclass(frozen=True, eq=False)
class TurnMap:
    """What takes the turns of a gyro to those of attitudes."""

    slope: float
    """How far attitudes turn for each turn of the gyro."""
    slope_deviation: float
    axes: Array
    """Signed permutation from the gyro's axes to those of the attitudes, (3, 3): the simplest that turns allow."""
    mount: Array
    """Rotation that is left behind it, (3, 3)."""
    late: float
    """By how much attitudes come late [s]."""
    explained: float
    """Share of the turns of attitudes that the gyro's explain, 0 to 1."""
    spread: float = 0.0
    """By how much slopes over windows of other lengths differ, where they are told well."""
    inverse: bool = False
    """Whether attitudes had to be inverted: they turn from the world to the body."""

    @property
    def told(self) -> bool:
        """Whether the gyro's turns are in those of the attitudes beyond chance, at no end of the lags that are tried."""
        return self.slope > _TOLD * self.slope_deviation and abs(self.late) < 0.99 * REACH

    @property
    def apart(self) -> bool:
        """Whether attitudes surely do not follow the gyro, at no lag that is tried."""
        return not self.told and self.slope + 3.0 * self.slope_deviation < _APART

    @property
    def ratio(self) -> float:
        """How many times as fast as attitudes the gyro turns."""
        return 1.0 / self.slope

    @property
    def within(self) -> float:
        """Half of the interval of the ratio: two deviations, and what windows of other lengths say."""
        return (2.0 * self.slope_deviation + self.spread) / self.slope**2

    @property
    def yaw(self) -> float:
        """Angle about z by which the gyro's axes are turned against the attitudes' [rad], -pi to pi."""
        whole = self.mount @ self.axes
        return float(np.arctan2(whole[1, 0] - whole[0, 1], whole[0, 0] + whole[1, 1]))


def turn_map(gyro: LogStream, poses: LogStream) -> TurnMap:
    """Regress turns of attitudes on a gyro's.

    Args:
        gyro: Ascending, finite.
        poses: Attitudes, ascending, finite.

    Raises:
        AirworthyError: Both have too few windows in common, or nothing turned.
    """
    found: list[TurnMap] = []
    for factor in _FACTORS:
        made = _fitted(gyro, poses, factor, np.eye(3))
        found += [] if made is None else [made]
        if found and found[-1].told and found[-1].explained > 0.5:
            break
    if not found:
        raise AirworthyError(f"Neither the gyro nor {poses.name} turns far enough to be compared.")
    told = [item for item in found if item.told]
    best = max(told or found[:1], key=lambda item: item.explained)
    mirrored = bool(np.linalg.det(best.axes) < 0.0)
    if mirrored or best.explained < 1.0 - _INVERTED:
        inverse = _fitted(gyro, replace(poses, values=conjugate(poses.values)), 1.0, np.eye(3))
        # Near level the inverse turns as if all three axes were opposite, nearly: no sensor has them so.
        more = 0.0 if mirrored else _INVERTED
        if inverse is not None and inverse.told and inverse.explained > best.explained + more:
            return replace(inverse, inverse=True)
    straight = np.array_equal(best.axes, np.eye(3))
    if not told or (straight and abs(best.ratio - 1.0) < 0.02):
        return best
    # Once more with the gyro put right: rotations about changing axes do not add up where axes or scales are wrong.
    again = _fitted(gyro, poses, 1.0 / best.ratio, best.axes)
    if again is None or not again.told or again.explained < best.explained:
        return best
    return replace(again, axes=again.axes @ best.axes)


def _fitted(gyro: LogStream, poses: LogStream, factor: float, axes: Array) -> TurnMap | None:
    """Return the map over the windows that the gyro explains best; None where none can be made.

    Args:
        gyro: Of which.
        poses: Attitudes.
        factor: On the gyro beforehand.
        axes: Of the gyro beforehand, (3, 3).
    """
    try:
        windows = TurnWindows(replace(gyro, values=factor * gyro.values @ axes.T), poses)
    except AirworthyError:
        return None
    made = []
    for length in _WINDOW_LENGTHS:
        try:
            made.append(_over(windows.over(length), length))
        except AirworthyError:
            continue
    found = [item for item in made if item is not None]
    if not found:
        return None
    told = [item for item in found if item.told]
    # Where none is told, that one which is nearest to telling that attitudes turn by themselves.
    best = max(told, key=lambda item: item.explained) if told else min(found, key=lambda item: item.slope_deviation)
    well = [item.slope for item in found if item.slope_deviation < _WELL * item.slope]
    spread = max((abs(slope - best.slope) for slope in well), default=0.0)
    return replace(best, slope=best.slope * factor, slope_deviation=best.slope_deviation * factor, spread=spread * factor)


def _over(windows: TurnWindows, length: float) -> TurnMap | None:
    """Return the map over windows of one length; None where too little turned.

    Args:
        windows: Rotations.
        length: [s]
    """
    lags = np.linspace(-REACH, REACH, 41)
    left = [_unexplained(windows, float(lag)) for lag in lags]
    if not np.isfinite(left).any():
        return None
    best = int(np.nanargmin(left))
    late = float(lags[best])
    if 0 < best < len(lags) - 1 and np.isfinite(left[best - 1 : best + 2]).all():
        before, at, after = left[best - 1 : best + 2]
        late += 0.5 * (lags[1] - lags[0]) * (before - after) / max(before - 2.0 * at + after, 1e-300)
    turned, measured, rows = _centred(windows, late)
    weight = _clipped(turned, measured)
    a, b = np.einsum("n,ni,nj->ij", weight, turned, turned), float(np.einsum("n,ni,ni->", weight, measured, measured))
    c = np.einsum("n,ni,nj->ij", weight, measured, turned)
    blocks = np.floor((windows.start[rows] - windows.start[rows][0]) / max(1.0, length)).astype(np.int64)
    whole = [(axes, mount, _cost(a, b, c, mount @ axes)) for axes, mount in _orders(a, c)]
    least = min(cost for *_, cost in whole)
    # Of half seconds three numbers each are about independent: so much does a share of what is left weigh.
    likely = 1.5 * len(np.unique(blocks))
    axes, mount, cost = next(row for row in whole if likely * np.log(row[2] / least) <= _LIKELY)
    turned = turned @ (mount @ axes).T
    size = float(np.einsum("n,ni,ni->", weight, turned, turned))
    slope = float(np.einsum("n,ni,ni->", weight, measured, turned)) / size
    scores = np.bincount(blocks, weights=weight * np.einsum("ni,ni->n", turned, measured - slope * turned))
    # Noise of the gyro makes the slope too small, by this share at most: it lies between both ends.
    noise = min(windows.noise() * float(weight @ (windows.stop - windows.start)[rows]) / size, _NOISE_MOST)
    low, high = max(slope, _SLOPE_LEAST), max(slope, _SLOPE_LEAST) / (1.0 - noise)
    deviation = float(np.sqrt(np.sum(np.square(scores)))) / size / (1.0 - noise) + 0.25 * (high - low)
    return TurnMap(0.5 * (low + high), deviation, axes, mount, late, 1.0 - cost / b)


def _centred(windows: TurnWindows, late: float) -> tuple[Array, Array, ArrayAny]:
    """Return turns of gyro and attitudes less their means, which take the gyro's bias, and which windows they are of."""
    turned = windows.rotation(late, 0.0)
    rows = np.flatnonzero((np.linalg.norm(turned, axis=1) < _TURN_MOST) & (windows.size < _TURN_MOST))
    turned, measured = turned[rows], windows.measured[rows]
    if not len(rows):
        return turned, measured, rows
    return turned - turned.mean(axis=0), measured - measured.mean(axis=0), rows


def _unexplained(windows: TurnWindows, late: float) -> float:
    """Return the share of the turns of attitudes that no linear map of the gyro's explains; NaN of too few."""
    turned, measured, rows = _centred(windows, late)
    if len(rows) < max(20, len(windows.start) // 2):
        return float("nan")
    a, c, b = turned.T @ turned, measured.T @ turned, float(np.sum(np.square(measured)))
    if not (b > 0.0 and np.trace(a) > 0.0):
        return float("nan")
    return 1.0 - float(np.trace(c @ np.linalg.pinv(a, rcond=1e-6, hermitian=True) @ c.T)) / b


def _clipped(turned: Array, measured: Array) -> Array:
    """Return weights of windows: 1, less where much is left over, (n,)."""
    weight = np.ones(len(turned))
    for _ in range(2):
        a, c = np.einsum("n,ni,nj->ij", weight, turned, turned), np.einsum("n,ni,nj->ij", weight, measured, turned)
        left = np.linalg.norm(measured - turned @ (c @ np.linalg.pinv(a, rcond=1e-6, hermitian=True)).T, axis=1)
        weight = np.minimum(1.0, _CLIP * max(float(np.median(left)), 1e-12) / np.maximum(left, 1e-12))
    return weight


def _cost(a: Array, b: float, c: Array, rotation: Array) -> float:
    """Return what is left over of the turns of attitudes with the best slope of a rotation, never under a share of them."""
    along = max(float(np.sum(rotation * c)), 0.0)
    return max(b - along**2 / float(np.trace(a)), _LEAST_LEFT * b)


def _orders(a: Array, c: Array) -> Iterator[tuple[Array, Array]]:
    """Yield orders of axes, simple ones first, each with the rotation that is left behind it where that is small.

    Args:
        a: Products of the gyro's turns, (3, 3).
        c: Products of the attitudes' turns with them, (3, 3).
    """
    identity = np.eye(3)
    # A sensor may be turned about z by any angle, and lie a little askew.
    free = _rotation(c + _STRAIGHT * float(np.linalg.norm(c)) * identity)
    if free[2, 2] > np.cos(_ASKEW):
        yield identity, free
    else:
        yield identity, identity
    for axes in _ORDERS:
        mount = _rotation((c + _STRAIGHT * float(np.linalg.norm(c)) * axes) @ axes.T)
        small = np.trace(mount) > 1.0 + 2.0 * np.cos(_ASKEW)
        yield axes, mount if small else identity


def _rotation(products: Array) -> Array:
    """Return the rotation R of the largest trace of its transpose with some products, (3, 3)."""
    u, _, v = np.linalg.svd(products)
    return u @ np.diag([1.0, 1.0, float(np.sign(np.linalg.det(u @ v)))]) @ v


def _signed_orders() -> tuple[Array, ...]:
    """Return all signed permutations of three axes: identity, z down, two swapped, one opposite, then the others."""
    made = [np.diag(signs)[list(rows)] for rows in permutations(range(3)) for signs in product((1.0, -1.0), repeat=3)]

    def rank(axes: Array) -> tuple[float, ...]:
        flips = float((axes < 0.0).sum())
        moved = 3.0 - float(np.abs(np.diag(axes)).sum())
        turned_z = axes[2, 2] == 1.0 and np.linalg.det(axes) > 0.0
        frd = np.linalg.det(axes) > 0.0 and moved == 0.0
        return (0.0 if turned_z else 1.0 if frd else 2.0 if flips == 0.0 else 3.0 if moved == 0.0 else 4.0, moved, flips)

    return tuple(sorted(made, key=rank))


_ORDERS = _signed_orders()
