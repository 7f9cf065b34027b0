"""One update of a Kalman filter by corners of gates: iterated (Gauss-Newton), in Joseph's form, of flights that see as many.

What is believed comes as arrays of the flights that are updated together, and goes so; which of them belong together, and when
a frame is taken, is the filter's matter (`airworthy.race.estimation.estimator`). Source: spec/race 5.3; the iterated update:
Bell & Cathey 1993.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from airworthy.core import frames
from airworthy.core.arrays import Array, ArrayBool, ArrayIndex
from airworthy.race.briefing import MARKERS, RaceBriefing
from airworthy.race.estimation.association import match_corners
from airworthy.race.estimation.inertial import TURN, InertialMotion, P, V
from airworthy.race.estimation.landmarks import NEAREST, sighted

__all__ = ["CornerUpdate", "SeenPart", "motion_of", "symmetric"]


@dataclass(frozen=True)
class SeenPart:
    """Some flights of a belief, and what each of them sees, (n, k): gates and decoys, each by one camera."""

    motion: InertialMotion
    gates: Array
    covariance: Array
    which: ArrayIndex
    """Decoys are numbered behind the gates, and what a second camera sees behind all that the first one does."""


class CornerUpdate:
    """See the module.

    Args:
        briefing: Nominal gates and the cameras.
        iterations: Of Gauss-Newton.
        gate_sigma: Corners whose innovation is farther off are left out.
        variance: Assumed of a pixel's coordinate [px^2].
        gates_at: Where the gates' errors begin in the state.
    """

    def __init__(self, briefing: RaceBriefing, iterations: int, gate_sigma: float, variance: float, gates_at: int) -> None:
        self._briefing, self._iterations, self._gate_sigma = briefing, iterations, gate_sigma
        self._variance, self._gates_at = variance, gates_at

    def named(self, part: SeenPart, pixel: Array) -> Array:
        """Return the pixels of one flight's corners under the names that they fit, (k, 4, 2).

        Args:
            part: The flight, and which gates it sees, k of them.
            pixel: Of these [px], (k, 4, 2); NaN of corners that are not seen.
        """
        slope, off, _ = self._innovation(part, pixel.reshape(1, -1, 2))
        columns = self._columns(part.which)
        _, spread = _spread(slope, np.take_along_axis(part.covariance, columns[:, :, None], axis=1), columns)
        given = pixel.reshape(-1, 2).copy()
        corner = np.flatnonzero(np.isfinite(given).all(-1))
        expected = given - off.reshape(-1, 2)
        axes = 2 * corner[:, None] + np.arange(2)
        own = spread[0][axes[:, :, None], axes[:, None, :]] + self._variance * np.eye(2)
        given[corner] = given[corner][match_corners(expected[corner], own, given[corner])]
        return given.reshape(-1, MARKERS, 2)

    def corrected(self, part: SeenPart, pixel: Array) -> tuple[SeenPart, tuple[Array, ArrayBool]]:
        """Return flights after the iterated update by all that they see, NIS (n,), and which corners were used, (n, k, 4).

        Args:
            part: Flights that see k gates each.
            pixel: (n, k, 4, 2) [px].
        """
        n, variance = len(pixel), self._variance
        pixel = pixel.reshape(n, -1, 2)
        seen = np.isfinite(pixel).all(-1)
        columns = self._columns(part.which)
        rows_of = np.take_along_axis(part.covariance, columns[:, :, None], axis=1)
        used, at = seen, part
        step = np.zeros((n, part.covariance.shape[1]))
        nis = np.zeros(n)
        for iteration in range(self._iterations):
            slope, off, depth = self._innovation(at, pixel)
            if iteration == 0:
                used = self._believable(slope, off, seen & (depth > NEAREST), rows_of, columns)
            slope = np.where(used.repeat(2, axis=1)[..., None], slope, 0.0)
            off = np.where(used.repeat(2, axis=1), off, 0.0)
            across, spread = _spread(slope, rows_of, columns)
            spread = spread + variance * np.eye(spread.shape[1])
            if iteration == 0:
                nis = (off[:, None] @ np.linalg.solve(spread, off[..., None]))[:, 0, 0]
            gain = np.swapaxes(np.linalg.solve(spread, across), 1, 2)
            # The state goes from where the update began, the slope is that of where it has come to. Attitude errors are added
            # as vectors: second order in corrections that are hundredths of a radian.
            target = off + (slope @ np.take_along_axis(step, columns, axis=1)[..., None])[..., 0]
            step = (gain @ target[..., None])[..., 0]
            at = self._stepped(part, step)
        # Joseph's form: (I - K H) C (I - K H)^T + K R K^T, with H on its few columns.
        left = part.covariance - gain @ across
        by_columns = np.take_along_axis(left, columns[:, None, :], axis=2)
        left = left - (by_columns @ np.swapaxes(slope, 1, 2)) @ np.swapaxes(gain, 1, 2)
        left = left + variance * (gain @ np.swapaxes(gain, 1, 2).copy())
        return replace(at, covariance=symmetric(left)), (nis, used.reshape(n, -1, MARKERS))

    def _columns(self, which: ArrayIndex) -> ArrayIndex:
        """Numbers of the errors that corners depend on: position, attitude, and the seen gates', (n, 6 + 3 k)."""
        own = np.broadcast_to(np.r_[P, TURN], (len(which), 6))
        # Of a gate that both cameras see the columns are there twice, each with the slopes of one of them. A decoy has no
        # errors of its own: its slopes are 0, whichever column they are held against.
        landmark = which[..., None] % len(self._briefing.landmarks)
        moves = landmark < len(self._briefing.gates)
        gates = np.where(moves, self._gates_at + 3 * landmark, 0) + np.arange(3)
        return np.concatenate([own, gates.reshape(len(which), -1)], axis=1)

    def _innovation(self, part: SeenPart, pixel: Array) -> tuple[Array, Array, Array]:
        """Slopes (n, 2 m, 6 + 3 k), innovations (n, 2 m) [px] and depths (n, m) [m] of the m = 4 k corners."""
        n, k = part.which.shape
        last = part.gates.shape[1] - 1
        landmark = part.which % len(self._briefing.landmarks)
        moves = (landmark <= last)[..., None]
        shift = np.take_along_axis(part.gates, np.minimum(landmark, last)[..., None], axis=1) * moves
        view = sighted(self._briefing, part.motion, part.which, shift)
        slope = np.zeros((n, MARKERS * k, 2, 6 + 3 * k))
        slope[..., 0:3], slope[..., 3:6] = view.by_position, view.by_turn
        corner = np.arange(MARKERS * k)
        by_gate = view.by_gate * moves.repeat(MARKERS, axis=1)[..., None]
        for axis in range(3):
            slope[:, corner, :, 6 + 3 * (corner // MARKERS) + axis] = np.moveaxis(by_gate[..., axis], 1, 0)
        return slope.reshape(n, 2 * MARKERS * k, -1), (pixel - view.pixel).reshape(n, -1), view.depth

    def _believable(self, slope: Array, off: Array, able: ArrayBool, rows_of: Array, columns: ArrayIndex) -> ArrayBool:
        """Which corners lie within `gate_sigma` of where they are expected, by Mahalanobis distance, (n, m)."""
        slope = np.where(able.repeat(2, axis=1)[..., None], slope, 0.0)
        _, spread = _spread(slope, rows_of, columns)
        u, v = (np.arange(k, spread.shape[1], 2) for k in (0, 1))
        a, b, c = spread[:, u, u] + self._variance, spread[:, u, v], spread[:, v, v] + self._variance
        x, y = np.where(able, off[:, u], 0.0), np.where(able, off[:, v], 0.0)
        distance = (c * x * x - 2.0 * b * x * y + a * y * y) / (a * c - b * b)
        return np.asarray(able & (distance <= self._gate_sigma**2))

    def _stepped(self, part: SeenPart, step: Array) -> SeenPart:
        motion = part.motion
        turned = frames.multiply(frames.from_rotation_vector(step[:, TURN]), motion.attitude)
        motion = replace(
            motion,
            position=motion.position + step[:, P],
            velocity=motion.velocity + step[:, V],
            attitude=frames.normalize(turned),
            bias=motion.bias + step[:, TURN.stop : self._gates_at],
        )
        return replace(part, motion=motion, gates=part.gates + step[:, self._gates_at :].reshape(part.gates.shape))


def motion_of(motion: InertialMotion, rows: ArrayIndex) -> InertialMotion:
    """Return the motion of some flights."""
    names = ("position", "velocity", "attitude", "bias", "velocity_slope", "position_slope", "turning")
    return replace(motion, **{name: getattr(motion, name)[rows] for name in names})


def _spread(slope: Array, rows_of: Array, columns: ArrayIndex) -> tuple[Array, Array]:
    """H C, (n, 2 m, d), and H C H^T, from slopes on some columns and the covariance's rows there."""
    across = slope @ rows_of
    return across, np.take_along_axis(across, columns[:, None, :], axis=2) @ np.swapaxes(slope, 1, 2)


def symmetric(covariance: Array) -> Array:
    """Return a covariance without what rounding makes of its symmetry, (n, d, d)."""
    return np.asarray(0.5 * (covariance + np.swapaxes(covariance, 1, 2)))
