"""Which column of a log commands which rotor, and whether signs agree: turns of the vehicle against motor commands.

A wrong order is the commonest reason why a log fits nothing. Rates of a vehicle answer each motor by its place and spin: the
increments of rates over a tenth of a second, regressed on what the motors did meanwhile, must look as the geometry says. Every
assignment is scored, and one is accepted where no other is nearly as good (specification identify, 3.3).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise, permutations
from typing import Literal

import numpy as np

from airworthy.core.arrays import Array
from airworthy.core.errors import AirworthyError
from airworthy.logs.record import Log, RotorGeometry
from airworthy.logs.segments import LogSegments

__all__ = ["MotorOrder", "motor_order"]

LAGS = (0.01, 0.02, 0.035, 0.05, 0.07, 0.1, 0.14)
"""Of motors, tried one after the other; the one that explains most is kept [s]. Small to large vehicles (ours)."""
STRETCH = 300.0
"""Lags after which sums of what commands add begin anew: exp(300) is far within what numbers hold."""
INCREMENT = 0.1
"""Over which rates and motors are compared [s] (specification identify, 6.1)."""
DECIDED = 0.5
"""An order is accepted whose cost is at most this share of the second's (specification identify, 3.3)."""
FRAMED = ("ULog", "Crazyflie", ".npz of Airworthy", "run")
"""How the names of formats begin that say which frame a gyro is in: what they say is no question."""
MIRRORED = 0.1
"""Most that motors in the vehicle's order may leave unexplained for a gyro with other axes to be the reason: its neighbours in
the table of orders leave a third and more (ours)."""
EXPLAINED = 0.15
"""Least share of the turns about x or y that motors must explain in any order; of less they tell nothing (ours: of the shared
logs, flights of excitation explain 0.3 to 0.8, such that only follow a path 0.1 to 0.2)."""
ROTORS_MAX = 6
"""More have too many orders to try."""
SHOWN = 5
"""Candidates that are told."""


@dataclass(frozen=True)
class MotorOrder:
    """What motors of a log are."""

    order: tuple[int, ...]
    """For each rotor of the vehicle, the number of the log's column that commands it, from 0."""
    cost: float
    """Share of what motors explain of the turns about x and y that this order does not explain, 0 to 1."""
    second: float
    """The same of the best other order."""
    explained: tuple[float, float, float]
    """Share of the turns about x, y, z that motors explain in any order."""
    spins: Literal["recorded", "reversed", "assumed"]
    """Which way the rotors turn: as the record says, the other way round, or not told by this log."""
    lag: float
    """Of the motors, the best of `LAGS` [s]."""
    table: tuple[tuple[tuple[int, ...], float], ...]
    """The best candidates: order and cost."""
    turned_axes: str = ""
    """Axes of the gyro, as "y and z", that point the other way if motors come in the vehicle's order after all: turns explain
    both alike. Empty where no such gyro explains them, or the log's format says its frame."""

    @property
    def told(self) -> bool:
        """Whether motors explain enough for any order to be told."""
        return max(self.explained[:2]) >= EXPLAINED

    @property
    def accepted(self) -> bool:
        """Whether no other order is nearly as good."""
        return self.told and self.cost <= DECIDED * self.second

    def sentence(self) -> str:
        """Return it in words."""
        if not self.told:
            most = 100.0 * max(self.explained[:2])
            return f"Motors explain {most:.0f} % of the turns about x and y, too little to tell their order. {_HELPS}"
        numbers = f"rotors 1 to {len(self.order)}"
        if not self.accepted:
            rows = "; ".join(f"{_columns(order)}: {cost:.2f}" for order, cost in self.table)
            return f"The order of motors is not decided. Columns of the log for {numbers}, and their costs: {rows}. {_HELPS}"
        same = self.order == tuple(range(len(self.order)))
        found = "Motors are in the vehicle's order" if same else f"For {numbers} the log has columns {_columns(self.order)}"
        spins = {
            "recorded": "spins are the record's",
            "reversed": "rotors TURN THE OTHER WAY ROUND than the record says",
            "assumed": "spins are assumed, since motors explain too little of the turns about z",
        }
        other = f" {self.mirrored()}" if self.turned_axes else ""
        return f"{found} (cost {self.cost:.2f}, the next {self.second:.2f}); {spins[self.spins]}.{other}"

    def mirrored(self) -> str:
        """Return in words what else explains the turns: another frame of the gyro."""
        frd = ", as of one in FRD that is named FLU," if self.turned_axes == "y and z" else ""
        way = f"A gyro whose {self.turned_axes} point the other way{frd}"
        return f"{way} would show the same with motors in the vehicle's order: turns cannot tell which."


_HELPS = "A flight of quick roll and pitch steps would tell."


def _columns(order: tuple[int, ...]) -> str:
    return " ".join(str(k + 1) for k in order)


def motor_order(log: Log, segments: LogSegments, rotors: RotorGeometry) -> MotorOrder | None:
    """Return which columns of a log's motor commands are which rotors; None where it has no commands, rates or usable flight.

    Args:
        log: With "motor_command" and "gyro".
        segments: Of it; their usable parts are read.
        rotors: Of the vehicle, from its centre of mass.

    Raises:
        AirworthyError: The log commands another number of motors than the vehicle has rotors, or more than are tried.
    """
    if not (log.has("motor_command") and log.has("gyro")):
        return None
    count, has = log.stream("motor_command").values.shape[1], len(rotors.position)
    if count != has:
        raise AirworthyError(
            f"The log commands {count} motors, and the vehicle has {has} rotors; name the vehicle that flew it."
        )
    if count > ROTORS_MAX:
        raise AirworthyError(f"The log commands {count} motors; orders of up to {ROTORS_MAX} are tried.")
    pairs = _increments(log, segments)
    if pairs is None:
        return None
    candidates, turned = pairs
    left = [_unexplained(candidates[:, k], turned)[:2].sum() for k in range(len(LAGS))]
    chosen = int(np.argmin(left))
    moved, kept = candidates[:, chosen], LAGS[chosen]
    explained = 1.0 - _unexplained(moved, turned)
    shares = (float(explained[0]), float(explained[1]), float(explained[2]))
    pattern = _pattern(rotors)
    ranked = _ranked(moved, turned[:, :2], pattern[:2])
    (order, cost), (_, second) = ranked[:2]
    about_z = _gain(moved, turned[:, 2:], _in_columns(pattern[2:], order))
    spins: Literal["recorded", "reversed", "assumed"] = "assumed"
    if shares[2] >= EXPLAINED and rotors.spin.all() and float(about_z[1][0]) >= DECIDED:
        spins = "recorded" if about_z[0][0] > 0.0 else "reversed"
    table = tuple(ranked[:SHOWN])
    doubtful = cost <= DECIDED * second and order != tuple(range(count)) and not log.source.format.startswith(FRAMED)
    other = _turned_axes(moved, turned, pattern, spins != "assumed") if doubtful else ""
    return MotorOrder(order, cost, second, shares, spins, kept, table, other)


def _pattern(rotors: RotorGeometry) -> Array:
    """(3, rotors): about x and y the moment per newton of each [m]; about z the sign of the reaction to its spin."""
    moments = np.cross(rotors.position, rotors.axis).T
    return np.stack([moments[0], moments[1], -rotors.spin * rotors.axis[:, 2]])


def _increments(log: Log, segments: LogSegments) -> tuple[Array, Array] | None:
    """Mean of the motors over increments, for each of `LAGS`, and of the angular acceleration, less their means: (k, lags,
    motors), (k, 3)."""
    command, gyro = log.stream("motor_command"), log.stream("gyro")
    time, state = command.time, _lagged(command.time, np.nan_to_num(command.values))
    area = np.zeros_like(state)
    np.cumsum(0.5 * (state[1:] + state[:-1]) * np.diff(time)[:, None, None], axis=0, out=area[1:])
    fine = np.isfinite(gyro.values).all(axis=1)
    moved, turned = list[Array](), list[Array]()
    for span in segments.usable:
        grid = np.arange(span.start, span.stop - INCREMENT, 0.5 * INCREMENT)
        turned.append(_increase(gyro.time[fine], gyro.values[fine], grid))
        moved.append(_increase(time, area, grid))
    if not moved or sum(len(part) for part in moved) < 10 * state.shape[2]:
        return None
    x, y = np.concatenate(moved), np.concatenate(turned)
    return x - x.mean(axis=0), y - y.mean(axis=0)


def _increase(time: Array, values: Array, begin: Array) -> Array:
    """Of values over increments, per second."""
    return (_at(time, values, begin + INCREMENT) - _at(time, values, begin)) / INCREMENT


def _at(time: Array, values: Array, when: Array) -> Array:
    """Values between stamps, linear; before the first and behind the last one these."""
    index = np.clip(np.searchsorted(time, when, side="right") - 1, 0, len(time) - 2)
    step = time[index + 1] - time[index]
    share = np.clip((when - time[index]) / np.where(step > 0.0, step, 1.0), 0.0, 1.0)
    share = share.reshape(-1, *[1] * (values.ndim - 1))
    return np.asarray(values[index] * (1.0 - share) + values[index + 1] * share)


def _lagged(time: Array, command: Array) -> Array:
    """Commands through lags of first order, each held until the next, (n, lags, motors): exact for uneven steps.

    Over a stretch in which exp(t / lag) stays within what numbers hold, s(t) exp(t / lag) is a sum of what each command adds.
    """
    lags = np.array(LAGS)[:, None]
    state = np.repeat(command[:, None], len(LAGS), axis=1)
    begins = np.flatnonzero(np.diff(np.floor((time - time[0]) / (STRETCH * min(LAGS))))) + 1
    for first, stop in pairwise([0, *begins.tolist(), len(time)]):
        if first:
            gone = np.exp(-(time[first] - time[first - 1]) / lags)
            state[first] = command[first - 1] + (state[first - 1] - command[first - 1]) * gone
        grown = np.exp((time[first:stop] - time[first])[:, None, None] / lags)
        added = command[first : stop - 1, None] * np.diff(grown, axis=0)
        state[first + 1 : stop] = (state[first] + np.cumsum(added, axis=0)) / grown[1:]
    return state


def _unexplained(moved: Array, turned: Array) -> Array:
    """Share of the turns about each axis that no linear answer to the motors explains, (3,)."""
    answer = np.linalg.lstsq(moved, turned, rcond=None)[0]
    return np.asarray(((turned - moved @ answer) ** 2).sum(axis=0) / np.maximum((turned**2).sum(axis=0), 1e-12))


def _in_columns(pattern: Array, order: tuple[int, ...]) -> Array:
    """Pattern by the log's columns, of which order[i] is the vehicle's rotor i."""
    placed = np.empty_like(pattern)
    placed[:, list(order)] = pattern
    return placed


def _gain(moved: Array, turned: Array, expected: Array) -> tuple[Array, Array]:
    """Per axis: turns along what is expected, and the share of what any linear answer explains that it explains."""
    gram, answer = moved.T @ moved, moved.T @ turned
    most = np.einsum("ka,ka->a", np.linalg.lstsq(gram, answer, rcond=None)[0], answer)
    along = np.einsum("ak,ka->a", expected, answer)
    square = np.einsum("ak,kl,al->a", expected, gram, expected)
    return along, along**2 / np.maximum(square * most, 1e-24)


def _cost(moved: Array, turned: Array, expected: Array, weight: Array) -> float:
    """Share of what motors explain that what is expected does not."""
    along, share = _gain(moved, turned, expected)
    # A moment of the other sign explains nothing.
    explained = float((np.where(along > 0.0, share, 0.0) * weight).sum() / weight.sum())
    return max(1.0 - explained, 0.0)


def _turned_axes(moved: Array, turned: Array, pattern: Array, about_z: bool) -> str:
    """Axes that a gyro must have reversed for motors in the vehicle's order to explain its turns; empty where none does."""
    weight = np.maximum((turned[:, :2] ** 2).sum(axis=0) * (1.0 - _unexplained(moved, turned[:, :2])), 1e-24)
    for signs in ((1.0, -1.0), (-1.0, 1.0), (-1.0, -1.0)):
        if _cost(moved, turned[:, :2] * np.array(signs), pattern[:2], weight) <= MIRRORED:
            z = about_z and float(_gain(moved, turned[:, 2:], pattern[2:])[0][0]) < 0.0
            axes = [name for name, sign in zip("xyz", (*signs, -1.0 if z else 1.0), strict=True) if sign < 0.0]
            return " and ".join(axes) if len(axes) < 3 else "x, y and z"
    return ""


def _ranked(moved: Array, turned: Array, pattern: Array) -> list[tuple[tuple[int, ...], float]]:
    """Orders by their cost, the best first."""
    weight = np.maximum((turned**2).sum(axis=0) * (1.0 - _unexplained(moved, turned)), 1e-24)
    found = []
    for order in permutations(range(moved.shape[1])):
        found.append((order, _cost(moved, turned, _in_columns(pattern, order), weight)))
    return sorted(found, key=lambda item: (round(item[1], 9), item[0]))
