"""Windows of prediction: where they start, what the rotors did, and where the vehicle really was at each horizon.

What the vehicle really did: its state at any time of a log, from motion capture and gyro.

Attitude: the gyro is integrated, and a rotation that drifts slowly ties it to the captured attitudes; a local mean of that
rotation is a local fit on the rotation group with the gyro as its shape. Position and velocity: a local cubic in the captured
positions, moved from the markers to the vehicle. Body rate: a local quadratic in the gyro. Poses whose attitude leaves the
gyro's for a moment (the capture system swaps markers: 45 degrees in one flight) are thrown away.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.spatial.transform import Rotation

from airworthy.benchmarks.validation.calibration import Calibration, at_times, attitude_at
from airworthy.benchmarks.validation.logs import FlightLog
from airworthy.core.arrays import Array, ArrayBool, NDArray
from airworthy.logs import integrate_gyro

__all__ = [
    "HORIZONS",
    "HORIZON_STEPS",
    "OUTLIER_ANGLE",
    "POSE_HALF_WIDTH",
    "RATE_HALF_WIDTH",
    "STEPS",
    "TIME_STEP",
    "WINDOW_STEP",
    "LogReference",
    "LogWindows",
    "States",
    "cut_windows",
    "join_windows",
    "reference",
]


POSE_HALF_WIDTH = 0.1
"""Half width of the local fit of position and attitude [s]."""
RATE_HALF_WIDTH = 0.012
"""Half width of the local fit of the body rate [s]."""
OUTLIER_ANGLE = np.deg2rad(3.0)
"""A pose whose attitude is this far from its surroundings' is a mistake of the capture system."""
_SURROUNDINGS = 2.0
_POSES_MIN, _POSES_EACH_SIDE = 7, 3
_GAP_MAX = 0.065


@dataclass(frozen=True)
class States:
    """Reference states at given times; `valid` says where the poses around suffice."""

    time: Array
    position: Array
    """World [m], (n, 3)."""
    velocity: Array
    """World [m/s], (n, 3)."""
    attitude: Array
    """Body to world, x, y, z, w, (n, 4)."""
    rate: Array
    """Body [rad/s], (n, 3)."""
    valid: ArrayBool


@dataclass(frozen=True)
class LogReference:
    """A log made ready for questions about its state."""

    log: FlightLog
    calibration: Calibration
    pose_time: Array
    """Capture times with the latency taken off, accepted poses only [s], (m,)."""
    position: Array
    """Body origin (IMU) in the world [m], (m, 3)."""
    turned: Array
    """Gyro-integrated attitude over the log's time, (n, 4)."""
    tie: Array
    """World rotation that ties the integrated to the captured attitude, at each accepted pose, quaternions (m, 4)."""
    rejected: int
    """Poses thrown away."""

    def states(self, time: Array) -> States:
        """Return reference states at times of the log [s], (n,)."""
        fits = [self._local(t) for t in time]
        near = attitude_at(self.log.time, self.turned, time)
        tie = Rotation.from_quat(np.stack([f[0] for f in fits]))
        return States(
            time=time,
            position=np.stack([f[1] for f in fits]),
            velocity=np.stack([f[2] for f in fits]),
            attitude=(tie * near).as_quat(),
            rate=np.stack([self._rate(t) for t in time]),
            valid=np.array([f[3] for f in fits]) & (time >= self.log.time[0]) & (time <= self.log.time[-1]),
        )

    def _local(self, time: float) -> tuple[Array, Array, Array, bool]:
        """Tie rotation, position and velocity at one time from the poses around it, and whether there are enough."""
        inside = slice(*np.searchsorted(self.pose_time, [time - POSE_HALF_WIDTH, time + POSE_HALF_WIDTH]))
        offset = self.pose_time[inside] - time
        if offset.size < _POSES_MIN or min(np.sum(offset < 0), np.sum(offset > 0)) < _POSES_EACH_SIDE:
            return np.array([0.0, 0.0, 0.0, 1.0]), np.zeros(3), np.zeros(3), False
        edges = np.concatenate([[-POSE_HALF_WIDTH], offset, [POSE_HALF_WIDTH]])
        tie = Rotation.from_quat(self.tie[inside]).mean().as_quat()
        cubic = np.linalg.lstsq(np.vander(offset, 4, increasing=True), self.position[inside], rcond=None)[0]
        return tie, cubic[0], cubic[1], bool(np.diff(edges).max() <= _GAP_MAX)

    def _rate(self, time: float) -> Array:
        inside = slice(*np.searchsorted(self.log.time, [time - RATE_HALF_WIDTH, time + RATE_HALF_WIDTH]))
        offset = self.log.time[inside] - time
        if offset.size < 4:
            return at_times(self.log.time, self.log.gyro, np.array([time]))[0] - self.calibration.gyro_bias
        quadratic = np.linalg.lstsq(np.vander(offset, 3, increasing=True), self.log.gyro[inside], rcond=None)[0]
        return quadratic[0] - self.calibration.gyro_bias


def reference(log: FlightLog, calibration: Calibration) -> LogReference:
    """Tie a log's gyro to its poses and drop poses that cannot be."""
    turned = integrate_gyro(log.time, log.gyro - calibration.gyro_bias)
    time = log.pose_time - calibration.latency
    inside = (time >= log.time[0]) & (time <= log.time[-1])
    time = time[inside]
    captured = Rotation.from_quat(log.attitude[inside]) * Rotation.from_quat(calibration.rotation)
    tie = captured * attitude_at(log.time, turned, time).inv()
    good = _consistent(time, tie)
    attitude = Rotation.from_quat(_smooth(time[good], tie[good])) * attitude_at(log.time, turned, time[good])
    return LogReference(
        log=log,
        calibration=calibration,
        pose_time=time[good],
        position=log.position[inside][good] - attitude.apply(calibration.lever),
        turned=turned,
        tie=tie[good].as_quat(),
        rejected=int(np.sum(~good)),
    )


def _consistent(time: Array, tie: Rotation) -> ArrayBool:
    """Return which poses agree with the (componentwise) median of the surrounding two seconds on either side."""
    quaternions = tie.as_quat()
    good = np.zeros(len(time), bool)
    for index, now in enumerate(time):
        around = quaternions[slice(*np.searchsorted(time, [now - _SURROUNDINGS, now + _SURROUNDINGS]))]
        aligned = around * np.where(around @ quaternions[index] < 0.0, -1.0, 1.0)[:, None]
        middle = Rotation.from_quat(np.median(aligned, axis=0))
        good[index] = (middle.inv() * tie[index]).magnitude() < OUTLIER_ANGLE
    return good


def _smooth(time: Array, tie: Rotation) -> Array:
    quaternions = tie.as_quat()
    return np.stack(
        [
            Rotation.from_quat(quaternions[slice(*np.searchsorted(time, [t - POSE_HALF_WIDTH, t + POSE_HALF_WIDTH]))])
            .mean()
            .as_quat()
            for t in time
        ]
    )


HORIZONS = (0.1, 0.25, 0.5)
"""Times after the start at which a prediction is judged [s]."""
WINDOW_STEP = 0.1
"""A window starts this often [s]."""
TIME_STEP = 0.01
"""Step of the prediction [s]: RK4, half of it changes errors by less than a thousandth. Speeds are sampled at half steps."""
STEPS = round(HORIZONS[-1] / TIME_STEP)
HORIZON_STEPS = tuple(round(h / TIME_STEP) for h in HORIZONS)
GYRO_DELAY = 0.004
"""The reference runs this much late [s]: gyro, and attitude tied to it, pass the firmware's 80 Hz low-pass, speeds do not."""
PAST_SPAN = 0.3
"""How much of the past a model may look at to find its trim [s]."""
PAST_COUNT = 13
_MARGIN = 0.12


@dataclass(frozen=True)
class LogWindows:
    """Windows of one or several logs; the first axis is the window."""

    flight: NDArray[np.str_]
    """Log that each window is from, (w,)."""
    time: Array
    """Start in that log [s], (w,)."""
    position: Array
    """Reference at the start and at each horizon: position [m], (w, 1 + h, 3)."""
    velocity: Array
    """[m/s], (w, 1 + h, 3)."""
    attitude: Array
    """x, y, z, w, (w, 1 + h, 4)."""
    rate: Array
    """Body [rad/s], (w, 1 + h, 3)."""
    valid: ArrayBool
    """Whether the reference at each horizon can be trusted, (w, h)."""
    rotor_speed: Array
    """What the models are fed [rad/s], at every half step, (w, 2 * STEPS + 1, 4)."""
    past_velocity: Array
    """Reference over the `PAST_SPAN` before the start, oldest first: velocity [m/s], (w, PAST_COUNT, 3)."""
    past_attitude: Array
    """x, y, z, w, (w, PAST_COUNT, 4)."""
    past_rate: Array
    """[rad/s], (w, PAST_COUNT, 3)."""
    past_speed: Array
    """Rotor speeds [rad/s], (w, PAST_COUNT, 4)."""
    past_valid: ArrayBool
    """Whether the past can be trusted, (w,)."""

    def __len__(self) -> int:
        return len(self.time)

    def select(self, keep: NDArray) -> LogWindows:
        """Return the windows of a mask or of indices."""
        return LogWindows(*(getattr(self, name)[keep] for name in self.__dataclass_fields__))


def cut_windows(source: LogReference, rotor_speed: Array | None = None, span: tuple[float, float] | None = None) -> LogWindows:
    """Return windows of one log, one every `WINDOW_STEP`; those without a trustworthy start or any trustworthy horizon are left
    out.

    Args:
        source: The log with its reference.
        rotor_speed: What to feed instead of the measured speeds, at the log's loop times [rad/s], (n, 4).
        span: Part of the log whose windows are wanted [s]; a window lies inside it whole. All of it by default.
    """
    log = source.log
    first, last = span if span is not None else (log.time[0], log.time[-1])
    last = min(last, log.time[-1]) - HORIZONS[-1]
    starts = np.arange(max(first, log.time[0] + _MARGIN), last, WINDOW_STEP)
    states = [source.states(starts + h) for h in (0.0, *HORIZONS)]
    speed = log.rotor_speed if rotor_speed is None else rotor_speed
    sampled = sample_columns(log.time, speed, window_times(starts) - GYRO_DELAY)
    valid = np.stack([s.valid for s in states[1:]], axis=1) & states[0].valid[:, None]

    def stacked(name: str) -> Array:
        return np.stack([getattr(s, name) for s in states], axis=1)

    past = [source.states(starts + offset) for offset in past_offsets()]
    windows = LogWindows(
        flight=np.full(len(starts), log.name),
        time=starts,
        position=stacked("position"),
        velocity=stacked("velocity"),
        attitude=stacked("attitude"),
        rate=stacked("rate"),
        valid=valid,
        rotor_speed=sampled,
        past_velocity=np.stack([s.velocity for s in past], axis=1),
        past_attitude=np.stack([s.attitude for s in past], axis=1),
        past_rate=np.stack([s.rate for s in past], axis=1),
        past_speed=past_speeds(log.time, speed, starts),
        past_valid=np.asarray(np.stack([s.valid for s in past], axis=1).all(axis=1)),
    )
    return windows.select(np.asarray(valid.any(axis=1)))


def window_times(starts: Array) -> Array:
    """Return times of the half steps of windows that start at given times, (w, 2 * STEPS + 1)."""
    return starts[:, None] + np.arange(2 * STEPS + 1) * (TIME_STEP / 2.0)


def past_offsets() -> Array:
    """Return times of the past samples from a window's start [s], (PAST_COUNT,)."""
    return np.linspace(-PAST_SPAN, 0.0, PAST_COUNT)


def past_speeds(time: Array, speed: Array, starts: Array) -> Array:
    """Return rotor speeds of the past samples, each a mean over their spacing, (w, PAST_COUNT, 4).

    Args:
        time: Of the samples [s], ascending, (n,).
        speed: Of the rotors [rad/s], (n, 4).
        starts: Of the windows [s], (w,).
    """
    return sample_columns(time, speed, starts[:, None] + past_offsets() - GYRO_DELAY, PAST_SPAN / (PAST_COUNT - 1))


def sample_columns(time: Array, values: Array, query: Array, width: float = TIME_STEP / 2.0) -> Array:
    """Return columns (n, k) at times of any shape, means over `width` [s] so that faster noise is not folded down, (..., k).

    Args:
        time: Of the samples [s], ascending, (n,).
        values: Samples, (n, k).
        query: Times [s], of any shape; clipped so that means lie inside of the samples.
        width: Of each mean [s].
    """
    # Means as differences of the running integral: exact for linear interpolation, and one pass for all times.
    edges = np.array([-0.5, 0.5]) * width
    step = np.diff(time)[:, None]
    integral = np.vstack([np.zeros(values.shape[1]), np.cumsum(0.5 * (values[1:] + values[:-1]) * step, axis=0)])
    inside = np.clip(query, time[0] - edges[0], time[-1] - edges[1])
    ends = [np.stack([np.interp(inside + e, time, column) for column in integral.T], axis=-1) for e in edges]
    return (ends[1] - ends[0]) / width


def join_windows(parts: Sequence[LogWindows]) -> LogWindows:
    """Return windows of several logs as one batch."""
    return LogWindows(*(np.concatenate([getattr(p, name) for p in parts]) for name in LogWindows.__dataclass_fields__))
