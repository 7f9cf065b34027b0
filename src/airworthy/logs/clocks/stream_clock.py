"""The clock of a stream of attitudes, from how it and a gyro turn: offset, drift, and how long a second of the log is.

Over half a second both tell one rotation. Where attitudes are stamped late, or by a clock that drifts away, the gyro's rotation
must be taken elsewhere to agree; where the clock of all counts seconds that are too long, it turns too little everywhere. All
of it is fitted at once, with the gyro's bias and how the sensor sits in the body, robustly, to the rotations of all half
seconds. Source: spec/identify section 3.1; blocks of a second stand for independent errors (section 6.5).
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np

from airworthy.core.arrays import Array, ArrayAny
from airworthy.core.errors import AirworthyError
from airworthy.core.frames import from_matrix, from_rotation_vector, multiply, rotate, to_rotation_vector
from airworthy.logs.clocks.turn_windows import REACH, TurnWindows
from airworthy.logs.record import Log, LogStream

_ROUNDS = 12
_HUBER = 2.0
_SHORTEST = 5.0
"""Attitudes and gyro must overlap for so long [s]."""
_TURNED = 0.02
"""Rotations of a window must deviate by this to tell anything [rad]: five times the noise of a good capture system."""
_SECOND_MAX = 0.05
"""A gyro whose turns are off by more than this share has another unit or frame; no clock is that wrong."""
_SECOND_LEAST = 0.003
_COMMON_RATES = (10.0, 20.0, 25.0, 30.0, 50.0, 60.0, 90.0, 100.0, 120.0, 200.0, 240.0, 250.0, 400.0, 500.0, 1000.0)
"""Rates that devices are set to [Hz]."""
_HALF_CIRCLE = 2.5
"""Rotations over this have no certain direction [rad]."""
_STRAIGHT = 0.01
_AXIS_TOLD = 0.8
"""Ours: correlation of rotations about an axis from which on its sign is told; of what hardly turned, noise has less."""
_DRIFT_TIME = 10.0
"""Shortest overlap over which a drift is looked for [s]; ours: in less, late and drifting look alike."""
_DRIFT_SIGNIFICANT = 4.0
_DRIFT_MAX = 0.1


@dataclass(frozen=True)
class ClockFit:
    """How a stream's clock goes beside that of the gyro, each with its standard deviation.

    True time, on the gyro's clock, is `offset + scale x stamp`.
    """

    stream: str
    offset: float
    """[s]"""
    scale: float
    """Exactly 1 where no drift was found, or the log is too short for one [-]."""
    late: float
    """By how much stamps come late in the middle of the log [s]."""
    late_deviation: float
    scale_deviation: float
    second: float
    """True seconds per second of the log, if the gyro's own scale is right: attitudes turn by so much of what the gyro says."""
    second_deviation: float
    rate: float
    """Samples per second of the lattice that fits the stamps [Hz]; 0 where none does."""
    windows: int
    """Rotations that were compared."""
    upside_down: bool
    """Whether the gyro's z points down where that of the attitudes points up, by axes about which both turned."""
    askew: float
    """Angle by which the gyro is turned against the body of the attitudes [rad]; 0 to pi, near 0 by axes that did not turn."""

    @property
    def drifts(self) -> bool:
        """Whether the stream's clock goes at another speed than the gyro's."""
        return self.scale != 1.0

    @property
    def wrong_second(self) -> bool:
        """Whether a second of the log is none, by over three standard deviations and over 0.3 %: gyros are that good."""
        return abs(self.second - 1.0) > max(3.0 * self.second_deviation, _SECOND_LEAST)

    def sentence(self) -> str:
        """Return what was found."""
        said = f"Stamps of {self.stream} come {1e3 * self.late:+.1f} +- {1e3 * self.late_deviation:.1f} ms late"
        drift = f"their clock gains {1e3 * (1.0 / self.scale - 1.0):+.2f} +- {1e3 * self.scale_deviation:.2f} ms a second"
        said += f"; {drift}" if self.drifts else ", and do not drift" * bool(np.isfinite(self.scale_deviation))
        said += f". They turn by {self.second:.4f} +- {self.second_deviation:.4f} of what the gyro says"
        nominal = self.nominal_rate()
        by_rate = self.rate / nominal if nominal else 1.0
        if self.wrong_second:
            said += f": a second of this log lasts {self.second:.3f} s, or a scale is off that is no clock's"
        if nominal and abs(by_rate - 1.0) > _SECOND_LEAST:
            said += f"; where they come at {nominal:g} Hz, which are {self.rate:.2f} here, it lasts {by_rate:.4f} s"
        return said + "."

    def nominal_rate(self) -> float:
        """Return the rate that the stream's device may be set to, were the second as found; 0 where none is near."""
        if not self.rate:
            return 0.0
        near = min(_COMMON_RATES, key=lambda rate: abs(np.log(self.rate / self.second / rate)))
        within = max(3.0 * self.second_deviation, _SECOND_LEAST)
        return near if abs(self.rate / self.second / near - 1.0) < within else 0.0


def clock_fit(log: Log, attitude: LogStream) -> ClockFit:
    """Fit the clock of a stream of attitudes to the log's gyro.

    Args:
        log: With a gyro.
        attitude: One of its streams of attitudes.

    Raises:
        AirworthyError: There is no gyro, stamps go back, both overlap by less than 5 s, or the vehicle hardly turned.
    """
    if not log.has("gyro"):
        raise AirworthyError(f"The clock of {attitude.name} is told by a gyro, and the log has none.")
    if log.stream("gyro").quality.backward or attitude.quality.backward:
        raise AirworthyError(f"Stamps of the gyro or of {attitude.name} go back; no clock can be fitted.")
    gyro, poses = ascending(log.stream("gyro")), ascending(attitude)
    if (
        min(len(gyro.time), len(poses.time)) < 50
        or min(gyro.time[-1], poses.time[-1]) - max(gyro.time[0], poses.time[0]) < _SHORTEST
    ):
        raise AirworthyError(f"Gyro and {attitude.name} overlap by less than {_SHORTEST:g} s; a clock needs more.")
    return _Fit(gyro, poses).found()


def ascending(stream: LogStream) -> LogStream:
    """Return the stream without missing values and without stamps that do not go on."""
    good = np.isfinite(stream.values).all(axis=1)
    if good.all() and np.all(np.diff(stream.time) > 0.0):
        return stream
    time, values = stream.time[good], stream.values[good]
    order = np.argsort(time, kind="stable")
    time, values = time[order], values[order]
    keep: ArrayAny = np.concatenate([[True], np.diff(time) > 0.0]) if time.size else np.zeros(0, bool)
    return replace(stream, time=time[keep], values=values[keep])


@dataclass(frozen=True)
class _Clock:
    """What is fitted."""

    mount: Array
    """Gyro to body, (4,)."""
    bias: Array
    """[rad/s], (3,)."""
    late: float
    """[s]"""
    drift: float
    """Lateness gained per second [-]."""
    second: float
    deviations: tuple[float, float, float] = (np.inf, np.inf, np.inf)
    """Of late, drift and second."""


class _Fit(TurnWindows):
    """Rotations of windows, and the clock that makes them agree."""

    def found(self) -> ClockFit:
        """Fit, with a drift where the log is long enough to tell one."""
        usual = self.size[self.size < _HALF_CIRCLE]
        if len(usual) < 20 or float(np.std(usual)) < _TURNED:
            raise AirworthyError(f"The vehicle hardly turned by {self.name}: its clock cannot be told.")
        late = self.coarse()
        mount = _mounting(self.rotation(late, 0.0), self.measured)
        known = self._solved(_Clock(mount, np.zeros(3), late, 0.0, 1.0), drifting=False)
        if self.stop[-1] - self.start[0] >= _DRIFT_TIME:
            drifting = self._solved(known, drifting=True)
            if abs(drifting.drift) > _DRIFT_SIGNIFICANT * drifting.deviations[1]:
                known = drifting
            else:
                known = replace(known, deviations=(known.deviations[0], drifting.deviations[1], known.deviations[2]))
        late_sd, drift_sd, second_sd = known.deviations
        return ClockFit(
            self.name, -known.late + known.drift * self.middle, 1.0 - known.drift, known.late, late_sd, drift_sd,
            known.second, second_sd, self.rate, len(self.start), self._upside_down(known),
            float(np.linalg.norm(to_rotation_vector(known.mount))),
        )  # fmt: skip

    def _upside_down(self, known: _Clock) -> bool:
        """Return whether z is opposite by both: by turns about it, or by those about x and y, if these go by themselves."""
        turned = self.rotation(known.late, known.drift) - known.bias * (self.stop - self.start)[:, None]
        short = (np.linalg.norm(turned, axis=1) < _HALF_CIRCLE) & (self.size < _HALF_CIRCLE)
        a, b = turned[short], self.measured[short]
        alike = _cosines(a, b)
        x, y, z = np.where(np.abs(alike) > _AXIS_TOLD, np.sign(alike), 0.0)
        # Turns about one line between x and y leave open how far the sensor is turned about z.
        apart = float(np.abs(_cosines(a[:, 0], a[:, 1]))) < _AXIS_TOLD
        return bool(z < 0.0 or (z == 0.0 and apart and x * y < 0.0))

    def _solved(self, known: _Clock, drifting: bool) -> _Clock:
        """Gauss-Newton from a guess; refused where the rotations are not the same motion."""
        mount, bias, late, drift, second, _ = (getattr(known, item.name) for item in fields(known))
        span = (self.stop - self.start)[:, None]
        far = (0.5 * (self.start + self.stop) - self.middle)[:, None]
        step = 2e-3
        for _ in range(_ROUNDS):
            turned = self.rotation(late, drift)
            by_late = (self.rotation(late + step, drift) - self.rotation(late - step, drift)) / (2.0 * step)
            unbiased = turned - bias * span
            model = rotate(mount, second * unbiased)
            residual = self.measured - model
            columns = [np.cross(axis, model) for axis in np.eye(3)]
            columns += [rotate(mount, -second * span * axis) for axis in np.eye(3)]
            # The derivative by the drift is that by the lag, times how far from the middle.
            columns += [rotate(mount, second * by_late), rotate(mount, unbiased)]
            columns += [columns[6] * far] if drifting else []
            weight = _weights(residual, self.size)
            delta, deviation = _least(np.stack(columns, axis=2), residual, weight, self.start)
            mount = multiply(from_rotation_vector(delta[:3]), mount)
            bias, late, second = bias + delta[3:6], late + float(delta[6]), second + float(delta[7])
            drift += float(delta[8]) if drifting else 0.0
            if not (np.isfinite(delta).all() and abs(late) <= REACH and abs(drift) < _DRIFT_MAX):
                raise AirworthyError(f"Gyro and {self.name} do not turn alike: no clock fits.")
        left = float(np.sum(weight[:, None] * np.square(residual)))
        share = left / max(float(np.sum(weight[:, None] * np.square(self.measured))), 1e-300)
        if abs(second - 1.0) > _SECOND_MAX or share > 0.5:
            raise AirworthyError(
                f"Gyro and {self.name} do not turn alike: {100.0 * share:.0f} % of the rotations is left over, and attitudes"
                f" turn {second:.3f} times as far. No clock is that wrong."
            )
        told = (float(deviation[6]), float(deviation[8]) if drifting else np.inf, float(deviation[7]))
        return _Clock(mount, bias, late, drift, second, told)


def _cosines(first: Array, second: Array) -> Array:
    """Return the cosine between columns."""
    lengths = np.sqrt(np.square(first).sum(axis=0) * np.square(second).sum(axis=0))
    return np.asarray((first * second).sum(axis=0) / np.maximum(lengths, 1e-300))


def _mounting(turned: Array, measured: Array) -> Array:
    """Rotation that takes one set of vectors to another in the least squares, quaternion (4,)."""
    short = (np.linalg.norm(turned, axis=1) < _HALF_CIRCLE) & (np.linalg.norm(measured, axis=1) < _HALF_CIRCLE)
    products = measured[short].T @ turned[short]
    # Turns about one axis leave the angle about it open: the sensor is then taken to be mounted straight.
    products += _STRAIGHT * float(np.trace(turned[short].T @ turned[short])) * np.eye(3)
    u, _, v = np.linalg.svd(products)
    return from_matrix(u @ np.diag([1.0, 1.0, float(np.sign(np.linalg.det(u @ v)))]) @ v)


def _weights(residual: Array, size: Array) -> Array:
    """Huber weights over the robust variance, (n,); rotations near half a circle have no direction."""
    length = np.linalg.norm(residual, axis=1)
    scale = max(1.4826 * float(np.median(length)) / np.sqrt(3.0), 1e-9)
    weight = np.minimum(1.0, _HUBER * scale * np.sqrt(3.0) / np.maximum(length, 1e-12)) / scale**2
    return np.where(size < _HALF_CIRCLE, weight, 0.0)


def _least(columns: Array, residual: Array, weight: Array, start: Array) -> tuple[Array, Array]:
    """Step of weighted least squares, and deviations of its unknowns by blocks of a second (sandwich)."""
    normal = np.einsum("n,nij,nik->jk", weight, columns, columns)
    inverse = np.linalg.pinv(normal, rcond=1e-12, hermitian=True)
    delta = inverse @ np.einsum("n,nij,ni->j", weight, columns, residual)
    left = residual - np.einsum("nij,j->ni", columns, delta)
    scores = np.einsum("n,nij,ni->nj", weight, columns, left)
    # Windows overlap, and errors of an attitude filter last: blocks of a second count as independent.
    block = np.floor(start - start[0]).astype(np.int64)
    sums = np.zeros((int(block.max()) + 1, columns.shape[2]))
    np.add.at(sums, block, scores)
    return delta, np.sqrt(np.maximum(np.diag(inverse @ (sums.T @ sums) @ inverse), 0.0))


def on_gyro_clock(log: Log, fit: ClockFit) -> Log:
    """Return the log with the times of a stream of attitudes, and of its label's positions and velocities, on the gyro's clock.

    A wrong second is left alone: it is the whole log's.

    Args:
        log: As it was read.
        fit: Of one of its streams of attitudes.
    """
    label = log.stream(fit.stream).label

    def moved(stream: LogStream) -> LogStream:
        time = fit.offset + fit.scale * stream.time
        offset = fit.offset + fit.scale * stream.clock_offset
        return replace(stream, time=time, clock_offset=offset, clock_scale=fit.scale * stream.clock_scale)

    own = [s.name for s in log.streams if s.label == label and s.kind in ("attitude", "position", "velocity")]
    return replace(log, streams=tuple(moved(s) if s.name in own else s for s in log.streams))
