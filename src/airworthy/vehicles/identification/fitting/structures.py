"""Which structure of the rotors' response a flight tells: fits of each, judged by stretches of flight that were left out.

Leaving a stretch out moves a fit by one step of Gauss-Newton, whose curvature and gradient are those of the other windows
(Giordano, Stephenson, Liu, Jordan and Broderick 2019 call it the infinitesimal jackknife; here the step is whole). What is
predicted with that fit counts by the logarithm of its density: errors over their covariance, and the covariance itself. Of
structures that are within a standard error of the best, the simplest is taken.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from airworthy.core.arrays import Array, ArrayInt
from airworthy.vehicles.identification.fitting.parameters import Parameters
from airworthy.vehicles.identification.fitting.refine import Descent, Fit, FitProblem, left_out_scores, refine
from airworthy.vehicles.identification.fitting.start import StartValues
from airworthy.vehicles.identification.known import Known
from airworthy.vehicles.identification.prediction.predict import cut_windows
from airworthy.vehicles.identification.prediction.signals import FlightSignals

__all__ = ["STRUCTURES", "Compared", "RotorStructure", "compared", "fitted", "folds_of", "start_vector"]

WINDOWS, WINDOWS_QUICK = 96, 40
"""Of each flight."""
STARTS, STARTS_QUICK = 4, 1
"""Of the grid's best cells."""
FOLDS = 10
"""Stretches that are left out, one after the other; each is whole, since neighbouring windows share what disturbs them."""


@dataclass(frozen=True)
class RotorStructure:
    """How rotors respond."""

    name: str
    square: bool
    """By the square of their speeds; else by the first power."""
    apart: bool
    """Whether rise and fall have lags of their own."""


STRUCTURES = (
    RotorStructure("first power", False, False),
    RotorStructure("square", True, False),
    RotorStructure("first power, rise and fall apart", False, True),
    RotorStructure("square, rise and fall apart", True, True),
)
"""Simple ones first."""


@dataclass(frozen=True)
class Compared:
    """What left-out stretches say of structures."""

    chosen: str
    scores: Mapping[str, float]
    """Minus the logarithm of the density of what was left out, over that of the best; less is better."""
    errors: Mapping[str, float]
    """Standard error of each difference to the best."""

    def sentence(self) -> str:
        """Return what was chosen, and by how much, in words."""

        def shown(name: str) -> str:
            return f"{self.scores[name]:+.1f} +- {self.errors[name]:.1f}"

        others = [f"{name} {shown(name)}" for name in self.scores if name != self.chosen]
        head = f"Rotors respond by the {self.chosen} ({shown(self.chosen)} by left-out flight"
        return f"{head}, against {'; '.join(others)}; less is better, 0 the best, within one error the simplest)."


def compared(fits: Mapping[str, Fit]) -> Compared:
    """Judge structures by what fits without a stretch foretell of it.

    Args:
        fits: To the same windows, by names of `STRUCTURES`.
    """
    folds = folds_of(next(iter(fits.values())).problem)
    each = {name: left_out_scores(fit, folds) for name, fit in fits.items()}
    totals = {name: np.bincount(folds, weights=score) for name, score in each.items()}
    best = min(totals, key=lambda name: float(totals[name].sum()))
    apart = {name: total - totals[best] for name, total in totals.items()}
    count = len(totals[best])
    errors = {name: float(d.std(ddof=1) * math.sqrt(count)) if count > 1 else math.inf for name, d in apart.items()}
    known = {s.name: s for s in STRUCTURES}
    near = [name for name in fits if name == best or float(apart[name].sum()) <= errors[name]]
    simple = [name for name in near if not known[name].apart] or near
    # Both powers are alike simple: the better one of them.
    chosen = min(simple, key=lambda name: float(totals[name].sum()))
    return Compared(chosen, {name: float(d.sum()) for name, d in apart.items()}, errors)


def folds_of(problem: FitProblem) -> ArrayInt:
    """Return the stretch of each window: as many from every flight as its windows are of all."""
    count = sum(len(w) for w in problem.windows)
    found, first = [], 0
    for windows in problem.windows:
        folds = max(round(FOLDS * len(windows) / count), 1)
        order = np.argsort(np.argsort(windows.start, kind="stable"), kind="stable")
        found.append(first + order * folds // len(windows))
        first += folds
    return np.concatenate(found)


def fitted(
    flights: Sequence[FlightSignals],
    parameters: Parameters,
    starts: Sequence[Array],
    told: Mapping[str, bool],
    known: Known,
    quick: bool,
    say: Callable[[str], None],
    descend: Descent | None = None,
    told_of: Sequence[Mapping[str, bool]] = (),
) -> Fit:
    """Fit parameters to windows of flights.

    Args:
        flights: Signals, rotor states known throughout their spans.
        parameters: What is fitted.
        starts: Vectors from which it begins.
        told: What the logs can tell.
        known: What was measured beside them.
        quick: Fewer windows.
        say: Told each stage.
        descend: As of `refine`.
        told_of: What each flight can tell alone; empty: all what they can together.
    """
    turns = told["turns"] and told["inertia_xx"]
    yaw = told["turns"] and told["torque_ratio"]
    across = told["imu_tilt"] and told["turns"]
    windows = tuple(cut_windows(flight, WINDOWS_QUICK if quick else WINDOWS) for flight in flights)
    unheard = tuple(_unheard(one) for one in told_of) if len(told_of) > 1 else ()
    unheard = unheard if any(any(one) for one in unheard) else ()
    problem = FitProblem(parameters, windows, (turns, turns, yaw, across, across, True), known.izz, unheard)
    return refine(problem, starts, say, descend)


def _unheard(told: Mapping[str, bool]) -> tuple[bool, ...]:
    """Return which of rate x, y, z and force x, y, z do not count in a flight, by what it can tell alone."""
    turns = told["turns"] and told["inertia_xx"]
    return (not turns, not turns, not (told["turns"] and told["torque_ratio"]), False, False, False)


def start_vector(parameters: Parameters, begin: StartValues, cell: tuple[float, float]) -> Array:
    """Return a vector at the closed form's values; what is not fitted stays at its prior."""
    theta = parameters.mean
    c1, c2 = begin.thrust
    hover = parameters.state / parameters.base.rotors[0].speed_max
    whole = c1 * hover + c2 * hover**2
    found = {
        "thrust": math.log(whole) if whole > 0.0 else math.nan,
        "thrust_linear": c1 * hover / whole if whole > 0.0 else math.nan,
        "lag": math.log(cell[0]),
        "command_delay": cell[1],
        "center_x": parameters.base.center_of_mass[0] + begin.center[0],
        "center_y": parameters.base.center_of_mass[1] + begin.center[1],
    }
    for axis, name in enumerate(("inertia_xx", "inertia_yy")):
        # The truth lies between the two regressions.
        pair = (begin.inertia[axis], begin.inertia_other[axis])
        found[name] = 0.5 * (math.log(pair[0]) + math.log(pair[1])) if min(pair) > 0.0 else math.nan
    for name, value in found.items():
        place = parameters.place(name)
        item = parameters.items[place]
        if parameters.free[place] and math.isfinite(value):
            # No start lies where its prior hardly reaches.
            theta[place] = float(np.clip(value, item.mean - 3.0 * item.sd, item.mean + 3.0 * item.sd))
    return theta
