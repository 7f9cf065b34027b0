"""Do logs turn as one vehicle? Angular acceleration over the moments of the motors, flight by flight.

Two vehicles may lift alike and turn unlike: other arms, another battery beneath, a camera in front. Increments of the gyro over
a tenth of a second, regressed on the moments that motors had meanwhile behind a common lag, tell each flight's turns at like
commands over those of all (specification identify, 3.3 and 12). Pilots react to pushes of air, which makes the slope of turns
over moments too small and its inverse too large: the truth lies between, and only flights whose brackets do not meet differ.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from airworthy.core.arrays import Array
from airworthy.core.errors import AirworthyError
from airworthy.vehicles.identification.prediction.signals import FlightSignals
from airworthy.vehicles.record import Vehicle

__all__ = ["TurnShare", "refuse_unlike_turns", "turn_notes", "turn_shares"]

LAGS = (0.01, 0.02, 0.035, 0.05, 0.07, 0.1, 0.14)
"""Of motors, tried one after the other; the one that explains most of all flights is kept [s]."""
INCREMENT = 0.1
"""Over which rates and moments are compared [s]."""
BLOCK = 10
"""Increments in a row, neighbours half apart, whose errors are taken for one: half a second."""
BLOCKS_MIN = 12
EXPLAINED = 0.3
"""Least share of a flight's turns that moments must explain for it to be asked."""
WORTH, REFUSED = 0.2, 0.8
"""Ours: shares by which turns differ that are told, and that no repair of one vehicle explains."""
SURE = 4.0
"""Standard errors beyond which a difference is one."""
AXES = "xy"


@dataclass(frozen=True)
class TurnShare:
    """How much a flight turns about an axis of what all flights together do at its commands."""

    name: str
    axis: str
    share: float
    """By the slope of turns over moments: too small where air pushes."""
    most: float
    """By the inverse of the slope of moments over turns: too large there."""
    error: float
    """Standard error of the first."""


def turn_shares(flights: Sequence[FlightSignals], base: Vehicle) -> list[TurnShare]:
    """Return turns about x and y of each flight over those of all of them at like commands.

    Args:
        flights: Signals, motors in the vehicle's order.
        base: Whose rotors they are.
    """
    arms = np.array([rotor.position for rotor in base.rotors]) - np.array(base.center_of_mass)
    levers = np.cross(arms, [rotor.axis for rotor in base.rotors])[:, :2]
    pairs = [_pairs(flight, levers) for flight in flights]
    if not pairs or any(len(turned) < BLOCKS_MIN * BLOCK for _, turned in pairs):
        return []
    turned = np.concatenate([t for _, t in pairs])
    left = []
    for k in range(len(LAGS)):
        moment = np.concatenate([m[k] for m, _ in pairs])
        left.append(float(((turned - moment * _gain(moment, turned)) ** 2).sum()))
    k = int(np.argmin(left))
    pooled = _gain(np.concatenate([m[k] for m, _ in pairs]), turned)
    found = []
    for flight, (moments, own) in zip(flights, pairs, strict=True):
        for axis in range(2):
            moment, turn = moments[k][:, axis], own[:, axis]
            square = float(moment @ moment)
            gain = float(moment @ turn) / max(square, 1e-300)
            rest = turn - gain * moment
            explained = 1.0 - float(rest @ rest) / max(float(turn @ turn), 1e-300)
            if pooled[axis] <= 0.0 or gain <= 0.0 or explained < EXPLAINED:
                continue
            whole = len(turn) // BLOCK * BLOCK
            scatter = (moment * rest)[:whole].reshape(-1, BLOCK).sum(axis=1)
            error = float(np.sqrt((scatter**2).sum())) / square
            share, unit = gain / float(pooled[axis]), 1.0 / float(pooled[axis])
            found.append(TurnShare(flight.name, AXES[axis], share, share / explained, error * unit))
    return found


def _gain(moment: Array, turned: Array) -> Array:
    """Return turns by moment about each axis, least squares, (2,)."""
    return np.asarray((moment * turned).sum(axis=0) / np.maximum((moment**2).sum(axis=0), 1e-300))


def _pairs(flight: FlightSignals, levers: Array) -> tuple[Array, Array]:
    """Moments for each lag, (lags, n, 2), and angular accelerations, (n, 2), in increments, less their means."""
    command = flight.command
    responses = np.array([[1.0 / lag, 0.0, 1.0 / lag, 0.0] for lag in LAGS])
    states = command.states(responses)
    # Squares of the command: scales and curves are the same for all flights, and only ratios are told.
    area = np.cumsum((states * np.abs(states)) @ levers, axis=1) * command.period
    edges = np.asarray(command.start + command.period * np.arange(area.shape[1]), np.float64)
    begins = [np.arange(a, b - INCREMENT, 0.5 * INCREMENT) for a, b in flight.spans]
    begin = np.concatenate(begins) if begins else np.zeros(0)
    if not begin.size:
        return np.zeros((len(LAGS), 0, 2)), np.zeros((0, 2))
    width = max(0.01, flight.gyro.period)
    turned = (flight.gyro.mean(begin + INCREMENT, width) - flight.gyro.mean(begin, width))[:, :2] / INCREMENT
    moments = np.stack([_increase(edges, one, begin) for one in area])
    return moments - moments.mean(axis=1, keepdims=True), turned - turned.mean(axis=0)


def _increase(edges: Array, area: Array, begin: Array) -> Array:
    ends = [np.stack([np.interp(begin + late, edges, column) for column in area.T], axis=1) for late in (0.0, INCREMENT)]
    return np.asarray((ends[1] - ends[0]) / INCREMENT)


def _furthest(shares: Sequence[TurnShare]) -> list[tuple[TurnShare, TurnShare]]:
    """Return for each axis the least and the greatest, where they differ beyond chance."""
    pairs = []
    for axis in AXES:
        own = [s for s in shares if s.axis == axis]
        if len(own) < 2:
            continue
        low, high = min(own, key=lambda s: s.most), max(own, key=lambda s: s.share)
        if high.share - low.most > SURE * float(np.hypot(low.error, high.error)):
            pairs.append((low, high))
    return pairs


def refuse_unlike_turns(shares: Sequence[TurnShare]) -> None:
    """Refuse flights that cannot be of one vehicle.

    Args:
        shares: Of `turn_shares`.

    Raises:
        AirworthyError: At like commands one turns so much more than another that no repair explains it.
    """
    for low, high in _furthest(shares):
        if high.share > (1.0 + REFUSED) * low.most:
            raise AirworthyError(
                f"At like commands {high.name!r} turns at least {high.share / low.most:.2f} times as much about {high.axis} as"
                f" {low.name!r}: these logs are not of one vehicle (other arms, or weight elsewhere); identify or validate them"
                " apart."
            )


def turn_notes(shares: Sequence[TurnShare]) -> list[str]:
    """Return sentences about flights that turn differently by more than chance.

    Args:
        shares: Of `turn_shares`.
    """
    return [
        f"Turns about {high.axis} at like commands change between flights: {high.name} has"
        f" {100.0 * (high.share / low.most - 1.0):.0f} % more than {low.name}. Weight elsewhere, other arms or another vehicle;"
        " one vehicle fits them only on average."
        for low, high in _furthest(shares)
        if high.share > (1.0 + WORTH) * low.most
    ]
