"""The published procedure of Eschmann, Albani and Loianno (2024, arXiv 2404.07837), for comparison with the joint method.

Thrust curve and lag from one flight, inertia from another with that curve and lag, equation by equation and without dead time:
the lag takes the dead time up, and inertia comes out too small (specification identify, 11.5). Its script reads the z of the
accelerometer in multiples of 9.18 in place of 9.81 m/s^2, by which all it prints is 6.4 % too small; `gravity_as_published`
repeats that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from airworthy.core.arrays import Array
from airworthy.core.errors import AirworthyError
from airworthy.vehicles.identification.prediction.signals import FlightSignals

__all__ = ["PublishedFit", "identify_published"]

GRID = np.linspace(0.001, 0.5, 100)
"""Lags that are tried [s]."""
GRAVITY, GRAVITY_PUBLISHED = 9.81, 9.18
IZZ_RATIO = 1.832
"""Izz over the mean of Ixx and Iyy that they take where a flight has no yaw excitation."""


@dataclass(frozen=True)
class PublishedFit:
    """What the published procedure finds."""

    lag: float
    """[s], from a grid of 100."""
    thrust: tuple[float, float, float]
    """Per rotor, c0 + c1 u + c2 u^2 of the lagged command fraction [N]."""
    thrust_square: float
    """The same as a square alone [N]."""
    inertia: tuple[float, float, float]
    """xx, yy, and zz by its ratio [kg m^2], by the regression of moment on angular acceleration."""
    inertia_inverse: tuple[float, float]
    """xx, yy by the regression the other way round: the truth lies between where noise is independent."""
    correlation: tuple[float, float]
    """Of moment and angular acceleration about x and y."""


def identify_published(
    thrust_flight: FlightSignals,
    turning_flight: FlightSignals,
    mass: float,
    positions: Array,
    axes: Array,
    gravity_as_published: bool = False,
) -> PublishedFit:
    """Fit thrust curve and lag to one flight and inertia to another, as published.

    Args:
        thrust_flight: With collective excitation; gyro, force and commands must share their stamps.
        turning_flight: With roll and pitch excitation.
        mass: [kg]
        positions: Of rotors from the centre of mass [m], (n, 3).
        axes: Of thrust, (n, 3).
        gravity_as_published: Read the accelerometer's z with 9.18 in place of 9.81.

    Raises:
        AirworthyError: A flight has no usable part, or its streams do not share their stamps.
    """
    factor = GRAVITY_PUBLISHED / GRAVITY if gravity_as_published else 1.0
    stretches = _stretches(thrust_flight)
    vertical = np.concatenate([mass * factor * part.force[:, 2] for part in stretches])
    lags = [_rms(vertical, _features(_joined(stretches, lag, even=True))) for lag in GRID]
    lag = float(GRID[int(np.argmin(lags))])
    state = _joined(stretches, lag)
    thrust = np.linalg.lstsq(_features(state), vertical, rcond=None)[0]
    square = (state**2).sum(axis=1)
    arms = np.cross(positions, axes)[:, :2]
    moments, turns = [], []
    for part in _stretches(turning_flight):
        u = _lagged(part.time, part.command, lag)
        moments.append((thrust[0] + thrust[1] * u + thrust[2] * u**2) @ arms)
        turns.append(np.gradient(part.gyro[:, :2], part.time, axis=0))
    moment, turn = np.concatenate(moments), np.concatenate(turns)
    cross = (moment * turn).sum(axis=0)
    direct = cross / (turn**2).sum(axis=0)
    inverse = (moment**2).sum(axis=0) / cross
    related = [float(np.corrcoef(moment[:, k], turn[:, k])[0, 1]) for k in range(2)]
    return PublishedFit(
        lag,
        (float(thrust[0]), float(thrust[1]), float(thrust[2])),
        float(square @ vertical / (square @ square)),
        (float(direct[0]), float(direct[1]), IZZ_RATIO * float(direct.mean())),
        (float(inverse[0]), float(inverse[1])),
        (related[0], related[1]),
    )


@dataclass(frozen=True)
class _Stretch:
    """Samples without a gap, all streams at the same stamps."""

    time: Array
    force: Array
    gyro: Array
    command: Array


def _stretches(flight: FlightSignals) -> list[_Stretch]:
    """Usable parts, as the gyro's stamps have them."""
    time = flight.gyro.time
    others = (flight.force.time, flight.commanded.time)
    if not all(len(time) == len(other) and np.array_equal(time, other) for other in others):
        raise AirworthyError(
            f"The published method needs commands, gyro and accelerometer at the same stamps, and those of {flight.name!r}"
            " differ; use --method joint."
        )
    found = []
    for start, stop in flight.spans:
        inside = np.flatnonzero((time > start) & (time < stop))
        if len(inside) >= 100:
            parts = (flight.force.values, flight.gyro.values, flight.commanded.values)
            found.append(_Stretch(time[inside], *(values[inside] for values in parts)))
    if not found:
        raise AirworthyError(f"No usable part of {flight.name!r} has 100 samples; widen --use.")
    return found


def _lagged(time: Array, command: Array, lag: float) -> Array:
    """Lag with the exact update for uneven steps: each sample's command acts over the step before it, as published."""
    state = np.empty_like(command)
    state[0] = command[0]
    keep = np.exp(-np.diff(time) / lag)
    for k, a in enumerate(keep, start=1):
        state[k] = a * state[k - 1] + (1.0 - a) * command[k]
    return state


def _lagged_even(time: Array, command: Array, lag: float) -> Array:
    """Return the same with the median step for all, which a grid of lags can afford."""
    from scipy.signal import lfilter

    keep = float(np.exp(-np.median(np.diff(time)) / lag))
    return np.asarray(lfilter([1.0 - keep], [1.0, -keep], command, axis=0, zi=keep * command[:1])[0])


def _joined(stretches: Sequence[_Stretch], lag: float, even: bool = False) -> Array:
    run = _lagged_even if even else _lagged
    return np.concatenate([run(part.time, part.command, lag) for part in stretches])


def _features(state: Array) -> Array:
    return np.stack([np.full(len(state), float(state.shape[1])), state.sum(axis=1), (state**2).sum(axis=1)], axis=1)


def _rms(target: Array, features: Array) -> float:
    left = target - features @ np.linalg.lstsq(features, target, rcond=None)[0]
    return float(np.sqrt(np.mean(left**2)))
