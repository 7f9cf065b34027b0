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
    """Of all bins, each once [s], (edges,)."""
    begin: ArrayInt
    """Edge at which each bin begins, the next one being its end, (bins,)."""
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
        row = _Cells(bins, [states[i] for states in every], delays, geometry, 2 if turning else 0)
        rms[i] = row.force_rms
        score[i] = row.force_score + (row.turn_score if turning else 0.0)
    order = np.argsort(score, axis=None)
    cells = tuple((float(lags[k // len(delays)]), float(delays[k % len(delays)])) for k in order)
    lag, delay = cells[0]
    best = responses[int(np.argmin(np.abs(lags - lag)))][None]
    one = _Cells(bins, [b.flight.command.states(best)[0] for b in bins], np.array([delay]), geometry, 3)
    return _finished(one, lag, delay, cells, _near(lags, rms.min(axis=1)), float(score.min()))


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
        axes = np.array([rotor.axis for rotor in base.rotors])
        arms = np.cross(np.array([r.position for r in base.rotors]) - np.array(base.center_of_mass), axes)
        reaction = np.array([rotor.spin * torque_ratio(rotor, share) for rotor in base.rotors])[:, None] * axes
        self.along = np.column_stack([axes[:, 2], arms + reaction])
        """Of each rotor's newton: force along z, and moments about x, y, z, (rotors, 4)."""
        self.inertia_z = base.inertia[2]


class _Cells:
    """Regressions of one lag and several dead times.

    Args:
        bins: Of each flight.
        states: Of rotors of each flight that follow by that lag, at the lattice's edges, (n + 1, rotors).
        delays: Dead times [s], (cells,).
        geometry: Of the rotors.
        axes: So many of x, y, z about which turns are looked at.
    """

    def __init__(self, bins: Sequence[_Bins], states: Sequence[Array], delays: Array, geometry: _Geometry, axes: int) -> None:
        self.geometry = geometry
        means, grown = [], []
        for b, state in zip(bins, states, strict=True):
            at = _areas_at(b, _areas(b.flight.command, state, geometry.along[:, : 1 + axes]), delays)
            up = at[..., 0]
            means.append((up[:, b.begin + 1] - up[:, b.begin]) / BIN)
            first = b.begin[b.first]
            grown.append((at[:, first + INCREMENT] - at[:, first]) / (INCREMENT * BIN))
        features, increments = np.concatenate(means, axis=1), np.concatenate(grown, axis=1)
        self.thrust, left = _regressed(features, geometry.mass * np.concatenate([b.force for b in bins]))
        self.force_rms = np.sqrt(np.mean(left**2, axis=-1)) / geometry.mass
        self.force_score = _score(left)
        by = self.thrust[:, None, :, None]
        self.pushed = by[:, :, 0] * increments[:, :, 0] + by[:, :, 1] * increments[:, :, 1]
        """Mean force along z and moments over increments, (cells, increments, 1 + axes)."""
        self.turn = np.concatenate([b.turn for b in bins])

    def regressors(self, axis: int) -> Array:
        """Return what turns about an axis, the moment, and what else may: total thrust (centre of mass) and a constant."""
        moment, total = self.pushed[..., 1 + axis], self.pushed[..., 0]
        return np.stack([moment, total, np.ones_like(total)], axis=-1)

    @property
    def turn_score(self) -> Array:
        total = np.zeros(len(self.thrust))
        for axis in (0, 1):
            _, left = _regressed(self.regressors(axis), self.turn[:, axis])
            total += _score(left)
        return total


def _finished(
    cell: _Cells,
    lag: float,
    delay: float,
    cells: tuple[tuple[float, float], ...],
    near: tuple[float, float, float, float],
    score: float,
) -> StartValues:
    direct, other, related, shift = [], [], [], []
    for axis in (0, 1):
        features = cell.regressors(axis)[0]
        moment, beside = features[:, 0], features[:, 1:]
        found, _ = _regressed(features, cell.turn[:, axis])
        direct.append(1.0 / found[0] if found[0] > 0.0 else float("nan"))
        shift.append(float(found[1] / found[0]) if found[0] > 0.0 else 0.0)
        a, b = (v - beside @ np.linalg.lstsq(beside, v, rcond=None)[0] for v in (moment, cell.turn[:, axis]))
        other.append(float(a @ b / max(b @ b, 1e-300)))
        related.append(float(a @ b / np.sqrt(max((a @ a) * (b @ b), 1e-300))))
    about_z, _ = _regressed(cell.regressors(2)[0][:, [0, 2]], cell.turn[:, 2])
    thrust = cell.thrust[0]
    return StartValues(
        lag,
        delay,
        (float(thrust[0]), float(thrust[1])),
        (float(direct[0]), float(direct[1])),
        (other[0], other[1]),
        (related[0], related[1]),
        # The moment of thrust F at r about c is (r - c) x F: about x -c_y F, about y +c_x F.
        (shift[1], -shift[0]),
        float(about_z[0] * cell.geometry.inertia_z),
        near,
        cells,
        score,
        float(cell.force_rms[0]),
    )


# ---- Bins --------------------------------------------------------------------------------------------------------------------


def _binned(flight: FlightSignals) -> _Bins:
    edges: list[Array] = [np.zeros(0)]
    begin, first = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    places = count = 0
    for start, stop in flight.spans:
        number = int((stop - start - 0.01) / BIN)
        if number <= INCREMENT:
            continue
        edges.append(np.asarray(start + 0.005 + BIN * np.arange(number + 1), np.float64))
        begin.append(places + np.arange(number))
        first.append(count + np.arange(number - INCREMENT + 1))
        places, count = places + number + 1, count + number
    line, begins, firsts = np.concatenate(edges), np.concatenate(begin), np.concatenate(first)
    force = flight.force.mean(0.5 * (line[begins] + line[begins + 1]), BIN)[:, 2] if count else np.zeros(0)
    low, high = (flight.gyro.mean(line[begins[firsts] + later], 0.005) for later in (0, INCREMENT))
    return _Bins(flight, line, begins, force, firsts, (high - low) / (INCREMENT * BIN))


def _responses(lags: Array, hover: float, square: bool) -> Array:
    """Responses that have these lags about hover, (lags, 4)."""
    a, b = (0.0 / lags, 0.5 / (lags * hover)) if square else (1.0 / lags, 0.0 / lags)
    return np.stack([a, b, a, b], axis=1)


def _areas(command: HeldCommand, states: Array, along: Array) -> Array:
    """Integrals from the first command of s and s|s|, summed over rotors, at the lattice's edges, (n + 1, 2, sums).

    Args:
        command: Whose lattice it is.
        states: Of rotors, (n + 1, rotors).
        along: By which each rotor counts in each sum, (rotors, sums).
    """
    values = np.concatenate([states @ along, (states * np.abs(states)) @ along], axis=1)
    area = np.zeros_like(values)
    np.cumsum(0.5 * command.period * (values[1:] + values[:-1]), axis=0, out=area[1:])
    return area.reshape(len(area), 2, -1)


def _areas_at(bins: _Bins, area: Array, delays: Array) -> Array:
    """Integrals at the edges of bins, by dead times, (cells, edges, 2, sums)."""
    command = bins.flight.command
    step = np.clip((bins.edges - delays[:, None] - command.start) / command.period, 0.0, len(command.values) - 1e-9)
    index = step.astype(np.int64)
    low, high = area[index], area[index + 1]
    high -= low
    high *= (step - index)[..., None, None]
    high += low
    return high


def _regressed(features: Array, wanted: Array) -> tuple[Array, Array]:
    """Least squares by normal equations, columns scaled; coefficients and what is left.

    Args:
        features: (..., n, k).
        wanted: (n,).
    """
    scale = np.sqrt((features**2).mean(axis=-2)) + 1e-300
    turned = np.swapaxes(features / scale[..., None, :], -1, -2)
    found = np.linalg.pinv(turned @ np.swapaxes(turned, -1, -2), rcond=1e-12) @ (turned @ wanted)[..., None]
    answer = found[..., 0] / scale
    return answer, wanted - (features @ answer[..., None])[..., 0]


def _score(left: Array) -> Array:
    """Sum over blocks of the log of their variance, (...): one bad second counts once.

    Args:
        left: (..., n).
    """
    number = left.shape[-1]
    count = max(number // BLOCK, 1)
    least, more = divmod(number, count)
    # As `np.array_split` cuts: the first ones are longer by one.
    square, ends = left**2, more * (least + 1)
    parts = (square[..., :ends], more, least + 1), (square[..., ends:], count - more, least)
    total = np.zeros(left.shape[:-1])
    for part, blocks, length in parts:
        if blocks and length:
            total += np.log(part.reshape(*left.shape[:-1], blocks, length).mean(axis=-1) + 1e-300).sum(axis=-1)
    return total
