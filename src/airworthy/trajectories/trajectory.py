"""A trajectory: piecewise polynomials of position and yaw, sampled at any times."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from airworthy.core.arrays import Array, ArrayLike
from airworthy.core.errors import AirworthyError

ORDERS = 5
_FACTORIAL = (1.0, 1.0, 2.0, 6.0, 24.0)
_BLOCK = 16384  # times evaluated together: five derivatives of three axes stay within a core's cache


@dataclass(frozen=True)
class FlatSample:
    """Flat outputs and their derivatives at times of shape (...); world frame, SI."""

    position: Array
    """[m], shape (..., 3)."""
    velocity: Array
    """[m/s], shape (..., 3)."""
    acceleration: Array
    """[m/s^2], shape (..., 3)."""
    jerk: Array
    """[m/s^3], shape (..., 3)."""
    snap: Array
    """[m/s^4], shape (..., 3)."""
    yaw: Array
    """[rad], continuous: not wrapped, shape (...)."""
    yaw_rate: Array
    """[rad/s], shape (...)."""
    yaw_acceleration: Array
    """[rad/s^2], shape (...)."""


class Trajectory:
    """Position and yaw as piecewise polynomials, each over knots of its own.

    Before the start and after the end the pose there is held, with zero derivatives. At a knot the later piece speaks.

    Args:
        knots: Times where position pieces begin and end [s], from 0, increasing, shape (n + 1,).
        coefficients: Ascending coefficients of tau = (t - knot) / duration [m], shape (n, 3, k).
        yaw_knots: The same for yaw, with the same end, shape (m + 1,).
        yaw_coefficients: [rad], shape (m, k).

    Raises:
        AirworthyError: Shapes that do not fit, times that do not increase from 0, numbers that are not finite.
    """

    def __init__(self, knots: ArrayLike, coefficients: ArrayLike, yaw_knots: ArrayLike, yaw_coefficients: ArrayLike) -> None:
        self.knots = _constant(knots)
        self.coefficients = _constant(coefficients)
        self.yaw_knots = _constant(yaw_knots)
        self.yaw_coefficients = _constant(yaw_coefficients)
        _check_pieces("position", self.knots, self.coefficients, (3,))
        _check_pieces("yaw", self.yaw_knots, self.yaw_coefficients, ())
        if abs(self.yaw_knots[-1] - self.knots[-1]) > 1e-9 * max(1.0, self.knots[-1]):
            raise AirworthyError(f"Yaw ends at {self.yaw_knots[-1]:g} s, position at {self.knots[-1]:g} s: give both one end.")

    @property
    def duration(self) -> float:
        """[s]"""
        return float(self.knots[-1])

    def sample(self, t: ArrayLike) -> FlatSample:
        """Return flat outputs at times t [s] of any shape (...)."""
        t = np.asarray(t, dtype=np.float64)
        flat = t.reshape(-1)
        space = _sample_pieces(flat, self.knots, self.coefficients, ORDERS).reshape(ORDERS, 3, *t.shape)
        heading = _sample_pieces(flat, self.yaw_knots, self.yaw_coefficients[:, None], 3).reshape(3, *t.shape)
        return FlatSample(*(np.moveaxis(x, 0, -1) for x in space), *heading)

    def length(self) -> float:
        """Return the length of the path [m]: Gauss-Legendre with 64 nodes per piece."""
        nodes, weights = np.polynomial.legendre.leggauss(64)
        spans = np.diff(self.knots)[:, None]
        speed = np.linalg.norm(self.sample(self.knots[:-1, None] + 0.5 * (nodes + 1.0) * spans).velocity, axis=-1)
        return float(np.sum(0.5 * spans * weights * speed))

    def save(self, path: str | Path) -> None:
        """Write as JSON, atomically; `load` gives back the same numbers, to the bit."""
        from airworthy.trajectories.trajectory_file import save

        save(self, path)

    @classmethod
    def load(cls, path: str | Path) -> Trajectory:
        """Read what `save` wrote; raises AssetError for anything else."""
        from airworthy.trajectories.trajectory_file import load

        return load(path)

    def reversed(self) -> Trajectory:
        """Return the same path flown backwards in time; yaw stays the yaw at each place."""
        from airworthy.trajectories.polynomial import substitute

        one, zero = np.ones(()), np.zeros(())
        position = substitute(self.coefficients[::-1], one, zero)
        yaw = substitute(self.yaw_coefficients[::-1], one, zero)
        return Trajectory(self.duration - self.knots[::-1], position, self.duration - self.yaw_knots[::-1], yaw)

    def scaled(self, factor: float) -> Trajectory:
        """Return the same path, `factor` times as long in time; raises AirworthyError unless the factor is positive."""
        if not (np.isfinite(factor) and factor > 0.0):
            raise AirworthyError(f"A time scale must be a positive number, but is {factor!r}.")
        return Trajectory(self.knots * factor, self.coefficients, self.yaw_knots * factor, self.yaw_coefficients)

    def turned(self, yaw_offset: float) -> Trajectory:
        """Return the same path with `yaw_offset` [rad] added to yaw."""
        yaw = self.yaw_coefficients.copy()
        yaw[:, 0] += yaw_offset
        return Trajectory(self.knots, self.coefficients, self.yaw_knots, yaw)

    def moved(self, offset: ArrayLike) -> Trajectory:
        """Return the same path displaced by `offset` [m], shape (3,)."""
        position = self.coefficients.copy()
        position[:, :, 0] += np.asarray(offset, dtype=np.float64)
        return Trajectory(self.knots, position, self.yaw_knots, self.yaw_coefficients)


def concatenate(*parts: Trajectory) -> Trajectory:
    """Return trajectories flown one after the other; each must begin where the one before ends, yaw up to whole turns.

    Raises:
        AirworthyError: No part, or a gap of more than a micrometre or microradian.
    """
    if not parts:
        raise AirworthyError("Concatenation needs at least one trajectory.")
    joined = [parts[0]]
    for part in parts[1:]:
        before, after = joined[-1].sample(joined[-1].duration), part.sample(0.0)
        gap = float(np.linalg.norm(after.position - before.position))
        turns = np.round((before.yaw - after.yaw) / (2.0 * np.pi)) * 2.0 * np.pi
        yaw_gap = float(abs(after.yaw + turns - before.yaw))
        if max(gap, yaw_gap) > 1e-6:
            raise AirworthyError(f"Trajectories do not meet: {gap:.3g} m and {yaw_gap:.3g} rad apart at part {len(joined)}.")
        joined.append(part.turned(float(turns)))
    ends = np.cumsum([0.0] + [part.duration for part in joined])
    knots = np.concatenate([[0.0]] + [part.knots[1:] + start for part, start in zip(joined, ends[:-1], strict=True)])
    yaw_knots = np.concatenate([[0.0]] + [part.yaw_knots[1:] + start for part, start in zip(joined, ends[:-1], strict=True)])
    position = _stack([part.coefficients for part in joined])
    return Trajectory(knots, position, yaw_knots, _stack([part.yaw_coefficients for part in joined]))


def laps(trajectory: Trajectory, count: int) -> Trajectory:
    """Return a closed trajectory flown `count` times; raises AirworthyError where it does not close."""
    if count < 1:
        raise AirworthyError(f"The number of laps must be 1 or more, but is {count!r}.")
    return concatenate(*[trajectory] * count)


def _stack(pieces: list[Array]) -> Array:
    """Coefficient arrays of different degrees, one after the other."""
    count = max(piece.shape[-1] for piece in pieces)
    widths = [[(0, 0)] * (piece.ndim - 1) + [(0, count - piece.shape[-1])] for piece in pieces]
    return np.concatenate([np.pad(piece, width) for piece, width in zip(pieces, widths, strict=True)])


def _sample_pieces(t: Array, knots: Array, coefficients: Array, orders: int) -> Array:
    """Return derivatives 0 to orders - 1 at times (N,), shape (orders, axes, N)."""
    result = np.empty((orders, coefficients.shape[1], len(t)))
    table = np.ascontiguousarray(np.moveaxis(coefficients, 0, -1))
    for begin in range(0, len(t), _BLOCK):
        block = slice(begin, begin + _BLOCK)
        _sample_block(t[block], knots, table, result[:, :, block])
    return result


def _sample_block(t: Array, knots: Array, table: Array, result: Array) -> None:
    """Horner's rule for the polynomial and its derivatives at once; elementwise: a time's bits do not depend on the others."""
    piece = np.searchsorted(knots[1:-1], t, side="right")
    first = knots[piece]
    span = knots[piece + 1] - first
    tau = np.minimum(np.maximum((t - first) / span, 0.0), 1.0)
    orders, count = len(result), table.shape[1]
    rows = np.zeros((orders, len(table), len(t)))
    before = np.empty_like(rows)
    for k in range(count - 1, -1, -1):
        rows, before = before, rows
        np.multiply(before, tau, out=rows)
        rows[1:] += before[:-1]
        rows[0] += table[:, k, piece]
    # Outside the trajectory the pose is held: derivatives vanish.
    rate = np.where((t < knots[0]) | (t > knots[-1]), 0.0, 1.0 / span)
    scale = np.ones_like(rate)
    result[0] = rows[0]
    for order in range(1, orders):
        scale = scale * rate
        np.multiply(rows[order], scale * _FACTORIAL[order], out=result[order])


def _constant(values: ArrayLike) -> Array:
    array = np.array(values, dtype=np.float64)
    array.setflags(write=False)
    return array


def _check_pieces(name: str, knots: Array, coefficients: Array, axes: tuple[int, ...]) -> None:
    if knots.ndim != 1 or len(knots) < 2 or coefficients.ndim != 2 + len(axes):
        raise AirworthyError(f"A trajectory's {name} needs knots (n + 1,) and coefficients {('n', *axes, 'k')}.")
    if coefficients.shape[:-1] != (len(knots) - 1, *axes) or coefficients.shape[-1] < 1:
        raise AirworthyError(f"A trajectory's {name} has {len(knots)} knots but coefficients of shape {coefficients.shape}.")
    if not (np.all(np.isfinite(knots)) and np.all(np.isfinite(coefficients))):
        raise AirworthyError(f"A trajectory's {name} holds numbers that are not finite.")
    if knots[0] != 0.0 or np.any(np.diff(knots) <= 0.0):
        raise AirworthyError(f"Knots of a trajectory's {name} must increase from 0 s, but are {knots[:4]} ...")
