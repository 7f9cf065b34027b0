"""The cheapest candidate of each situation: Algorithm 1 of spec/boundary_predictor, pruned without loss or exhaustive.

Pruning: no term of the cost is negative, so it is at least t0. Candidates are visited by rising t0 until it exceeds the best
cost, and a flight ends once its error so far does. Both ways return the same labels: of equal costs the first candidate wins.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields

import numpy as np

from airworthy.core.arrays import Array, ArrayBool, ArrayInt, ArrayLike
from airworthy.core.errors import AirworthyError
from airworthy.gates.labels.candidates import Candidates, candidates, fastest
from airworthy.gates.labels.controller_model import ControllerModel, make_controller_model
from airworthy.gates.labels.options import SearchOptions
from airworthy.gates.labels.rollouts import Flights, cost_of, fly
from airworthy.gates.labels.situations import FIELDS, draw

__all__ = ["Labels", "join_labels", "label"]


# Ours: on a GPU more flights are needed before all of it is busy; either way the arrays of a launch stay below a gigabyte.
CHUNK, CHUNK_GPU = 1 << 15, 1 << 18
"""Rollouts of one launch."""


@dataclass(frozen=True)
class Labels:
    """Of k situations, shapes (k,). Without a candidate: NaN, candidate -1."""

    v: Array
    """Speed through gate i [m/s]."""
    t0: Array
    """Duration of the segment to it [s]; not clipped at `t_max`."""
    cost: Array
    """Equation 7."""
    error_mean: Array
    """Mean tracking error of the label's flight [m]."""
    feasible: ArrayBool
    """A candidate keeps the limit, and the best one flies without a crash."""
    admissible: ArrayBool
    """A candidate keeps the limit."""
    saturated: ArrayBool
    """t0 is above `t_max`."""
    crashed: ArrayBool
    """Every candidate crashes."""
    skipped: ArrayBool
    """The best one misses gate i."""
    candidate: ArrayInt
    """Its number, speed-major."""
    analytic: ArrayInt
    """The fastest candidate that keeps the limit."""
    changed: ArrayBool
    """Simulation chose another one than `analytic`."""
    passing: ArrayInt
    """Candidates that keep the limit."""
    reach: ArrayInt
    """Candidates whose t0 alone does not exceed the label's cost."""
    tried: ArrayInt
    """Candidates that were flown."""
    steps: ArrayInt
    """Of all flights."""
    index: ArrayInt
    """Number of the situation, from which its draws came."""

    def __len__(self) -> int:
        return len(self.index)


def join_labels(parts: list[Labels]) -> Labels:
    """Return labels of several calls, one after the other."""
    return Labels(*(np.concatenate([getattr(part, item.name) for part in parts]) for item in fields(Labels)))


def label(
    situations: ArrayLike, options: SearchOptions | None = None, index: ArrayLike | None = None, device: str = "cpu"
) -> Labels:
    """Search the best speed and duration of situations.

    Args:
        situations: Shape (k, 8); on the grid or off it.
        options: Candidates, vehicle, controller, randomisation, cost.
        index: Numbers from which draws come, 0 to 2^32 - 1, shape (k,); 0 to k - 1 by default.
        device: cpu or cuda:0.

    Raises:
        AirworthyError: A situation cannot be flown, or something of the options.
    """
    o = options or SearchOptions()
    e = np.asarray(situations, dtype=np.float64)
    numbers = np.arange(len(e)) if index is None else np.asarray(index, dtype=np.int64)
    _check(e, numbers)
    search = _Search(e, numbers, o, device)
    if o.exhaustive:
        search.all()
    else:
        search.pruned()
    return search.labels()


def _check(e: Array, numbers: ArrayInt) -> None:
    if e.ndim != 2 or e.shape[1] != len(FIELDS):
        raise AirworthyError(f"Situations have shape {e.shape}; expected rows of eight numbers: {', '.join(FIELDS)}.")
    if len(numbers) != len(e) or np.any(numbers < 0) or np.any(numbers >= 2**32):
        raise AirworthyError(f"{len(e)} situations need as many numbers from 0 to 2^32 - 1 to draw from; {len(numbers)} came.")
    if not np.all(np.isfinite(e)) or np.any(e[:, 0] < 0.0) or np.any(e[:, (2, 5)] <= 0.0):
        raise AirworthyError("A situation needs finite numbers, a speed that is not negative and distances above zero.")


class _Search:
    """The state of a search over situations."""

    def __init__(self, e: Array, numbers: ArrayInt, options: SearchOptions, device: str):
        self._e, self._numbers, self._options, self._device = e, numbers, options, device
        self._controller_model: ControllerModel = make_controller_model(options)
        self._found: Candidates = candidates(e, options.choices)
        count = len(e)
        self._cost, self._best = np.full(count, np.inf), np.full(count, -1)
        self._error = np.full(count, np.nan)
        self._crashed, self._skipped = np.zeros(count, bool), np.zeros(count, bool)
        self._tried, self._steps = np.zeros(count, np.int64), np.zeros(count, np.int64)

    def pruned(self) -> None:
        """Fly by rising t0, in rounds over all situations, until no candidate can win."""
        times = np.where(self._found.admissible, self._found.t0, np.inf)
        order = np.argsort(times, axis=1, kind="stable")
        rows = np.arange(len(times))
        for visit in range(times.shape[1]):
            choice = order[rows, visit]
            time = times[rows, choice]
            keep = np.isfinite(time) & (time <= self._cost[rows])
            rows, choice = rows[keep], choice[keep]
            if not len(rows):
                return
            for part in self._chunks(len(rows)):
                self._take(rows[part], choice[part], self._cost[rows[part]])

    def all(self) -> None:
        """Fly every admissible candidate to its end."""
        rows, choice = np.nonzero(self._found.admissible)
        for part in self._chunks(len(rows)):
            self._take(rows[part], choice[part], None)

    def _chunks(self, count: int) -> Iterator[slice]:
        size = max((CHUNK if self._device == "cpu" else CHUNK_GPU) // self._options.draws, 1)
        return (slice(at, at + size) for at in range(0, count, size))

    def _take(self, rows: ArrayInt, choice: ArrayInt, best: Array | None) -> None:
        """Fly candidates and keep what is better; rows may repeat."""
        t0 = self._found.t0[rows, choice]
        flights = self._fly(rows, choice, t0, best)
        np.add.at(self._tried, rows, 1)
        np.add.at(self._steps, rows, flights.steps)
        # Per situation the cheapest, of equal ones the first; a flight given up has lost.
        order = np.lexsort((choice, np.where(flights.abandoned, np.inf, flights.cost), rows))
        lead = order[np.r_[True, rows[order][1:] != rows[order][:-1]]]
        at, cost = rows[lead], flights.cost[lead]
        better = (cost < self._cost[at]) | ((cost == self._cost[at]) & (choice[lead] < self._best[at]))
        lead = lead[better & ~flights.abandoned[lead]]
        at = rows[lead]
        self._cost[at], self._best[at], self._error[at] = flights.cost[lead], choice[lead], flights.error_mean[lead]
        self._crashed[at], self._skipped[at] = flights.crashed[lead], flights.skipped[lead]

    def _fly(self, rows: ArrayInt, choice: ArrayInt, t0: Array, best: Array | None) -> Flights:
        """Fly each candidate as often as there are draws; costs are averaged, a crash of one counts as a share of one."""
        draws, o = self._options.draws, self._options
        lane = np.repeat(np.arange(len(rows)), draws)
        drawn = draw(
            self._controller_model, o.randomisation, o.seed, self._numbers[rows][lane], np.tile(np.arange(draws), len(rows))
        )
        # The sum over draws of what lies above t0 has lost where one of its terms, none negative, has.
        budget = None if best is None else (t0 + draws * (best - t0))[lane]
        v = self._found.v[rows, choice]
        flights = fly(self._e[rows][lane], v[lane], t0[lane], o, draws=drawn, budget=budget, device=self._device)
        return flights if draws == 1 else _averaged(flights, t0, draws)

    def labels(self) -> Labels:
        """Return what was found."""
        rows = np.arange(len(self._e))
        some = self._best >= 0
        at = np.maximum(self._best, 0)
        v, t0 = (np.where(some, part[rows, at], np.nan) for part in (self._found.v, self._found.t0))
        analytic = fastest(self._found)
        reach = np.sum(self._found.admissible & (self._found.t0 <= self._cost[:, None]), axis=1)
        return Labels(
            v=v,
            t0=t0,
            cost=np.where(some, self._cost, np.nan),
            error_mean=self._error,
            feasible=some & ~self._crashed,
            admissible=some,
            saturated=some & (np.nan_to_num(t0) > self._options.t_max),
            crashed=self._crashed,
            skipped=self._skipped,
            candidate=self._best,
            analytic=analytic,
            changed=self._best != analytic,
            passing=self._found.admissible.sum(axis=1),
            reach=reach,
            tried=self._tried,
            steps=self._steps,
            index=self._numbers,
        )


def _averaged(flights: Flights, t0: Array, draws: int) -> Flights:
    crashed, skipped, error = (
        np.mean(getattr(flights, name).reshape(-1, draws), axis=1) for name in ("crashed", "skipped", "error_mean")
    )
    return Flights(
        error_mean=error,
        crashed=crashed > 0.0,
        skipped=skipped > 0.0,
        steps=flights.steps.reshape(-1, draws).sum(axis=1),
        cost=cost_of(crashed, skipped, error, t0),
        abandoned=np.any(flights.abandoned.reshape(-1, draws), axis=1, keepdims=True)[:, 0],
    )
