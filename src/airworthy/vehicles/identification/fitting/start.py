"""Start values in closed form: a grid of lags and dead times, and in each of its points thrust curve and inertia by regression.

Force and rotation are compared behind the same filter: means over bins, and rate increments over a tenth of a second against
the moment's mean over the same tenth. Nothing is differentiated. Both vote on lag and dead time: thrust alone would let every
error of the lag go into the inertia (specification identify, 6.1 and 13.3).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from airworthy.core.arrays import Array, ArrayInt
from airworthy.core.errors import AirworthyError
from airworthy.vehicles.identification.prediction.held_command import HeldCommand
from airworthy.vehicles.identification.prediction.signals import FlightSignals
from airworthy.vehicles.record import Vehicle

__all__ = ["StartValues", "start_values"]

LAGS = np.geomspace(0.005, 0.5, 40)
"""[s]"""
DELAYS = np.arange(0.0, 0.0401, 0.002)
"""[s]"""
BIN = 0.025
"""Of means [s]."""
INCREMENT = 4
"""Bins over which rates grow."""
BLOCK = 40
"""Bins of a block, a second, whose residual variance counts once."""
BINS_MIN = 2 * BLOCK


@dataclass(frozen=True, eq=False)
class StartValues:
    """What the grid finds."""

    lag: float
    """[s]"""
    delay: float
    """[s]"""
    thrust: tuple[float, float]
    """c1, c2 of f = c1 s + c2 s|s|, s the rotor state as a fraction of full command [N]; f(0) = 0."""
    inertia: tuple[float, float]
    """xx, yy by the regression of angular acceleration on moment [kg m^2]: too large if moments are noisy."""
    inertia_other: tuple[float, float]
    """The same by the regression of moment on angular acceleration: too small if rates are noisy."""
    correlation: tuple[float, float]
    """Of moment and angular acceleration."""
    center: tuple[float, float]
    """Centre of mass from where it was taken to be, x and y [m]."""
    yaw: float
    """Factor on the reaction torques about z over Izz that the flight shows, against the record's; NaN where it shows none."""
    near: tuple[float, float, float, float]
    """Lags within which the force's rms stays within 1 %, and within 5 %, of its least, at the best dead time of each [s]."""
    cells: tuple[tuple[float, float], ...]
    """Lags and dead times in the order of their score, the best first [s]."""
    score: float
    """Of the best: sum of the logs of residual variances over blocks."""
    force_rms: float
    """Of the specific force along z that is left in means over bins [m/s^2]."""

    def bracket_width(self, axis: int) -> float:
        """Return how far apart the two regressions of an inertia lie, over their mean."""
        a, b = self.inertia[axis], self.inertia_other[axis]
        return abs(a - b) / max(0.5 * abs(a + b), 1e-300)


@dataclass(frozen=True, eq=False)
class _Bins:
    """Bins of one flight: edges of all, and which of them begin an increment within one span."""

    flight: FlightSignals
    edges: Array
    """Both edges of each bin [s], (bins, 2)."""
    force: Array
    """Mean specific force along z, (bins,)."""
    first: ArrayInt
    """Bins that begin an increment."""
    turn: Array
    """Mean angular acceleration over each increment, (increments, 3)."""


def start_values(
    flights: Sequence[FlightSignals],
    base: Vehicle,
    hover: float,
    square: bool = False,
    quick: bool = False,
    turning: bool = True,
    cell: tuple[float, float] | None = None,
) -> StartValues:
    """Search lag and dead time on a grid, with thrust and inertia in closed form.

    Args:
        flights: Signals.
        base: Mass, rotor geometry, spins and torque ratios; a command of 1 is its rotors' largest state.
        hover: Mean command in hover, at which a lag is told.
        square: Whether rotors respond by the square of their speeds; else by the first power.
        quick: Every second lag and dead time only.
        turning: Whether rotations count; else the force alone votes.
        cell: Lag and dead time that are known [s]; None: the grid is searched.

    Raises:
        AirworthyError: The flights hold under two seconds that can be used.
    """
    bins = [_binned(flight) for flight in flights]
    if sum(len(b.force) for b in bins) < BINS_MIN:
        raise AirworthyError("The logs hold under 2 s of usable flight; `airworthy logs show` says why the rest is not usable.")
    lags, delays = (LAGS[::2], DELAYS[::2]) if quick else (LAGS, DELAYS)
    if cell is not None:
        lags, delays = np.array([cell[0]]), np.array([cell[1]])
    geometry = _Geometry(base)
    score, rms = np.empty((len(lags), len(delays))), np.empty((len(lags), len(delays)))
    responses = _responses(lags, hover, square)
    every = [b.flight.command.states(responses) for b in bins]
    for i in range(len(lags)):
        areas = [_areas(b.flight.command, states[i]) for b, states in zip(bins, every, strict=True)]
        for j, delay in enumerate(delays):
            one = _Cell(bins, areas, float(delay), geometry)
            rms[i, j] = one.force_rms
            score[i, j] = one.force_score + (one.turn_score if turning else 0.0)
    order = np.argsort(score, axis=None)
    cells = tuple((float(lags[k // len(delays)]), float(delays[k % len(delays)])) for k in order)
    lag, delay = cells[0]
    best = responses[int(np.argmin(np.abs(lags - lag)))][None]
    areas = [_areas(b.flight.command, b.flight.command.states(best)[0]) for b in bins]
    return _finished(_Cell(bins, areas, delay, geometry), lag, delay, cells, _near(lags, rms.min(axis=1)), float(score.min()))


def _near(lags: Array, rms: Array) -> tuple[float, float, float, float]:
    ends: list[float] = []
    for share in (1.01, 1.05):
        inside = lags[rms <= share * rms.min()]
        ends += [float(inside.min()), float(inside.max())]
    return (ends[0], ends[1], ends[2], ends[3])


class _Geometry:
    """Of the base: directions, arms and reaction torques of its rotors, by command fraction."""

    def __init__(self, base: Vehicle) -> None:
        from airworthy.vehicles.trim import torque_ratio

        share = base.mass * base.gravity / base.rotor_count
        self.mass = base.mass
        self.axes = np.array([rotor.axis for rotor in base.rotors])
        arms = np.cross(np.array([r.position for r in base.rotors]) - np.array(base.center_of_mass), self.axes)
        reaction = np.array([rotor.spin * torque_ratio(rotor, share) for rotor in base.rotors])[:, None] * self.axes
        self.moments = arms + reaction
        self.inertia_z = base.inertia[2]


class _Cell:
    """Regressions of one lag and dead time."""

    def __init__(self, bins: Sequence[_Bins], areas: Sequence[tuple[Array, Array]], delay: float, geometry: _Geometry) -> None:
        self.geometry = geometry
        self.bins = bins
        means = [_means(b, area, delay) for b, area in zip(bins, areas, strict=True)]
        up = geometry.axes[:, 2]
        features = np.concatenate([np.stack([s @ up, q @ up], axis=1) for s, q in means])
        wanted = geometry.mass * np.concatenate([b.force for b in bins])
        self.thrust, left = _regressed(features, wanted)
        self.force_rms = float(np.sqrt(np.mean(left**2))) / geometry.mass
        self.force_score = _score(left)
        self.forces = [self.thrust[0] * s + self.thrust[1] * q for s, q in means]
        self.turn = np.concatenate([b.turn for b in bins])

    def over_increments(self, values: Sequence[Array]) -> Array:
        """Means over increments of what each bin has."""
        return np.concatenate([_running(v, b.first) for v, b in zip(values, self.bins, strict=True)])

    def regressors(self, axis: int) -> tuple[Array, Array]:
        """Return what turns about an axis, the moment, and what else may: total thrust (centre of mass) and a constant."""
        moment = self.over_increments([f @ self.geometry.moments[:, axis] for f in self.forces])
        total = self.over_increments([f @ self.geometry.axes[:, 2] for f in self.forces])
        beside = np.stack([total, np.ones_like(total)], axis=1)
        return moment, beside

    @property
    def turn_score(self) -> float:
        total = 0.0
        for axis in (0, 1):
            moment, beside = self.regressors(axis)
            _, left = _regressed(np.column_stack([moment, beside]), self.turn[:, axis])
            total += _score(left)
        return total


def _finished(
    cell: _Cell,
    lag: float,
    delay: float,
    cells: tuple[tuple[float, float], ...],
    near: tuple[float, float, float, float],
    score: float,
) -> StartValues:
    direct, other, related, shift = [], [], [], []
    for axis in (0, 1):
        moment, beside = cell.regressors(axis)
        found, _ = _regressed(np.column_stack([moment, beside]), cell.turn[:, axis])
        direct.append(1.0 / found[0] if found[0] > 0.0 else float("nan"))
        shift.append(float(found[1] / found[0]) if found[0] > 0.0 else 0.0)
        a, b = (v - beside @ np.linalg.lstsq(beside, v, rcond=None)[0] for v in (moment, cell.turn[:, axis]))
        other.append(float(a @ b / max(b @ b, 1e-300)))
        related.append(float(a @ b / np.sqrt(max((a @ a) * (b @ b), 1e-300))))
    moment, beside = cell.regressors(2)
    about_z, _ = _regressed(np.column_stack([moment, beside[:, 1:]]), cell.turn[:, 2])
    return StartValues(
        lag,
        delay,
        (float(cell.thrust[0]), float(cell.thrust[1])),
        (float(direct[0]), float(direct[1])),
        (other[0], other[1]),
        (related[0], related[1]),
        # The moment of thrust F at r about c is (r - c) x F: about x -c_y F, about y +c_x F.
        (shift[1], -shift[0]),
        float(about_z[0] * cell.geometry.inertia_z),
        near,
        cells,
        score,
        cell.force_rms,
    )


# ---- Bins --------------------------------------------------------------------------------------------------------------------


def _binned(flight: FlightSignals) -> _Bins:
    edges, first, count = [np.zeros((0, 2))], [np.zeros(0, np.int64)], 0
    for start, stop in flight.spans:
        number = int((stop - start - 0.01) / BIN)
        if number <= INCREMENT:
            continue
        line = start + 0.005 + BIN * np.arange(number + 1)
        edges.append(np.stack([line[:-1], line[1:]], axis=1))
        first.append(count + np.arange(number - INCREMENT + 1))
        count += number
    pairs, begin = np.concatenate(edges), np.concatenate(first)
    force = flight.force.mean(pairs.mean(axis=1), BIN)[:, 2] if count else np.zeros(0)
    low, high = (flight.gyro.mean(at, 0.005) for at in (pairs[begin, 0], pairs[begin + INCREMENT - 1, 1]))
    return _Bins(flight, pairs, force, begin, (high - low) / (INCREMENT * BIN))


def _responses(lags: Array, hover: float, square: bool) -> Array:
    """Responses that have these lags about hover, (lags, 4)."""
    a, b = (0.0 / lags, 0.5 / (lags * hover)) if square else (1.0 / lags, 0.0 / lags)
    return np.stack([a, b, a, b], axis=1)


def _areas(command: HeldCommand, states: Array) -> tuple[Array, Array]:
    """Integrals from the first command of s and s|s|, at the lattice's edges, (n + 1, rotors) each."""
    zero = np.zeros((1, states.shape[1]))

    def area(values: Array) -> Array:
        return np.concatenate([zero, np.cumsum(0.5 * command.period * (values[1:] + values[:-1]), axis=0)])

    return area(states), area(states * np.abs(states))


def _means(bins: _Bins, areas: tuple[Array, Array], delay: float) -> tuple[Array, Array]:
    """Means over bins of s and s|s|, (bins, rotors) each."""
    command = bins.flight.command
    step = np.clip((bins.edges - delay - command.start) / command.period, 0.0, len(command.values) - 1e-9)
    index = step.astype(np.int64)
    part = (step - index)[..., None]
    found = []
    for area in areas:
        at = area[index] * (1.0 - part) + area[index + 1] * part
        found.append((at[:, 1] - at[:, 0]) / BIN)
    return found[0], found[1]


def _running(values: Array, first: ArrayInt) -> Array:
    total = np.concatenate([[0.0], np.cumsum(values)])
    return np.asarray((total[first + INCREMENT] - total[first]) / INCREMENT)


def _regressed(features: Array, wanted: Array) -> tuple[Array, Array]:
    """Least squares by normal equations, columns scaled; coefficients and what is left."""
    scale = np.sqrt((features**2).mean(axis=0)) + 1e-300
    scaled = features / scale
    gram = scaled.T @ scaled
    found = np.linalg.lstsq(gram, scaled.T @ wanted, rcond=1e-12)[0] / scale
    return found, wanted - features @ found


def _score(left: Array) -> float:
    """Sum over blocks of the log of their variance: one bad second counts once."""
    count = max(len(left) // BLOCK, 1)
    least, more = divmod(len(left), count)
    # As `np.array_split` cuts: the first ones are longer by one.
    square, ends = left**2, more * (least + 1)
    parts = (square[:ends].reshape(more, least + 1), square[ends:].reshape(count - more, least))
    means = np.concatenate([part.mean(axis=1) for part in parts if part.size])
    return float(sum(np.log(means + 1e-300).tolist()))
