"""One try of EGO-Planner, readable: the twin of `native/try.h`, in the same order of operations.

Source: spec/planners sections 3.3 to 3.7.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from airworthy.core.arrays import Array
from airworthy.planners.common.bspline import evaluate, evaluate_uniform, fit, lengthen, uniform_knots
from airworthy.planners.common.lbfgs import Function, Halt, LbfgsConfig, minimise
from airworthy.planners.common.search import Cells
from airworthy.planners.ego.config import EgoConfig, EgoOutcome
from airworthy.planners.ego.costs import collision_cost, feasibility_cost, fitness_cost, smooth_cost
from airworthy.planners.ego.initial import Initial, PairBook, initial_path, length, new_obstacles, scan
from airworthy.planners.ego.tries import Questions

__all__ = ["EgoTwin"]

# Source: spec/planners 3.6: "rebound" at most 20 times, at most 3 restarts with lambda_c doubled.
_REBOUNDS, _RESTARTS = 20, 3


class _EndTaken(Exception):
    """The far end lies in an obstacle."""


@dataclass
class EgoTwin:
    """One try.

    Args:
        config: Settings.
        cells: The flight's.
        questions: Tries, of which number `row` is made.
        row: Which.

    Attributes:
        q: Control points (N, 3) when it is done.
        interval: Their knot spacing [s].
    """

    config: EgoConfig
    cells: Cells
    questions: Questions
    row: int = 0
    q: Array = field(default_factory=lambda: np.zeros((0, 3)))
    interval: float = 0.0
    evaluations: int = 0
    rebounds: int = 0
    restarts: int = 0
    book: PairBook | None = None

    def run(self) -> EgoOutcome:
        """Run the whole try."""
        c, asked, row = self.config, self.questions, self.row
        self._speed, self._acceleration = float(asked.speed[row]), float(asked.acceleration[row])
        if length(asked.start[row, 0] - asked.target[row, 0]) < c.close:
            return EgoOutcome.CLOSE
        initial = initial_path(c, asked, row)
        if initial is None:
            return EgoOutcome.NO_START
        self._initial, self.interval = initial, initial.interval
        self.q = self._fitted(initial.points)
        self.book = PairBook(self.cells, c.expansions, [[] for _ in self.q])
        self.book.pair_up(self.q, scan(self.q, self.cells))
        outcome = self._rebound(self.book)
        return self._refine() if outcome == EgoOutcome.FOUND else outcome

    def _fitted(self, points: Array) -> Array:
        i: Initial = self._initial
        return fit(points[None], self.interval, i.velocity[None], i.acceleration[None])[0]

    # ---- rebound ----------------------------------------------------------------------------------------------------

    def _rebound(self, book: PairBook) -> EgoOutcome:
        weight = self.config.collision
        while True:
            try:
                again = self._minimise_rebound(book, weight)
            except _EndTaken:
                return EgoOutcome.END_TAKEN
            if again:
                self.rebounds += 1
                if self.rebounds > _REBOUNDS:
                    return EgoOutcome.REBOUNDS
                continue
            when = self._collision()
            if when is None:
                return EgoOutcome.FOUND
            if when <= self.interval:
                return EgoOutcome.IN_OBSTACLE
            self.restarts += 1
            if self.restarts > _RESTARTS:
                return EgoOutcome.IN_COLLISION
            book.pair_up(self.q, scan(self.q, self.cells))
            weight *= 2.0

    def _minimise_rebound(self, book: PairBook, weight: float) -> bool:
        """Minimise; whether new obstacles were discovered on the way."""
        c, done, discovered = self.config, 0, False

        def function(x: Array) -> tuple[float, Array]:
            nonlocal done, discovered
            self._put(x)
            rough, first = smooth_cost(self.q)
            done += 1
            if done > 4 and rough / (len(self.q) - 6) < 0.1:
                segments = new_obstacles(self.q, self.cells, book.pairs)
                if segments is None:
                    raise _EndTaken
                if segments:
                    book.pair_up(self.q, segments)
                    discovered = True
                    raise Halt
            near, second = collision_cost(self.q, book.pairs, c.clearance)
            fast, third = feasibility_cost(self.q, self.interval, self._speed, self._acceleration)
            gradient = c.smooth * first + weight * second + c.feasibility * third
            return c.smooth * rough + weight * near + c.feasibility * fast, gradient[3:-3].reshape(-1)

        self._minimise(function, c.gradient)
        return discovered

    def _minimise(self, function: Function, tolerance: float) -> None:
        counted = 0

        def counting(x: Array) -> tuple[float, Array]:
            nonlocal counted
            counted += 1
            return function(x)

        settings = LbfgsConfig(16, self.config.iterations, self.config.evaluations, tolerance)
        try:
            self._put(minimise(counting, self.q[3:-3].reshape(-1), settings).x)
        finally:
            self.evaluations += counted

    def _put(self, x: Array) -> None:
        self.q[3:-3] = x.reshape(-1, 3)

    def _collision(self) -> float | None:
        """Return when the first two thirds of the curve first meet an obstacle [s]."""
        gaps = np.array([length(g) for g in np.diff(self.q, axis=0)])
        total, time = float(np.add.accumulate(gaps)[-1]), (len(self.q) - 3) * self.interval
        step = time / (total / self.cells.resolution) if total > 0.0 else np.inf
        step = max(step, time / 10000.0)
        times, t = [], 0.0
        while t < time * 2.0 / 3.0:
            times.append(t)
            t += step
        points = evaluate_uniform(self.q[None], np.array([self.interval]), np.array([times]))[0]
        taken = np.flatnonzero(self.cells.taken(points))
        return times[taken[0]] if len(taken) else None

    # ---- refinement -------------------------------------------------------------------------------------------------

    def _refine(self) -> EgoOutcome:
        """Stretch the time of a trajectory that breaks its limits, and bring it back to the shape that it had."""
        c, dt = self.config, self.interval
        fastest = float(np.abs((self.q[1:] - self.q[:-1]) / dt).max())
        hardest = float(np.abs((self.q[2:] - 2.0 * self.q[1:-1] + self.q[:-2]) / (dt * dt)).max())
        grace = 1.0 + c.tolerance
        if fastest <= self._speed * grace + 1e-4 and hardest <= self._acceleration * grace + 1e-4:
            return EgoOutcome.FOUND
        reference = self._stretch(max(fastest / self._speed, float(np.sqrt(hardest / self._acceleration))))

        def function(x: Array) -> tuple[float, Array]:
            self._put(x)
            rough, first = smooth_cost(self.q)
            away, second = fitness_cost(self.q, reference)
            fast, third = feasibility_cost(self.q, self.interval, self._speed, self._acceleration)
            gradient = c.smooth * first + c.fitness * second + c.feasibility * third
            return c.smooth * rough + c.fitness * away + c.feasibility * fast, gradient[3:-3].reshape(-1)

        self._minimise(function, c.gradient / 10.0)
        return EgoOutcome.FOUND if self._collision() is None else EgoOutcome.REFINED_INTO

    def _stretch(self, ratio: float) -> Array:
        """Make the time longer; samples of the curve, evenly in time, to which the refinement keeps."""
        count = len(self.q)
        knots = lengthen(uniform_knots(count, self.interval), ratio)
        step = float(knots[0, count] - knots[0, 3]) / (count - 3)
        points = evaluate(self.q[None], knots, (np.arange(count - 2) * step)[None])[0]
        self.interval = step
        self.q = self._fitted(points)
        return evaluate_uniform(self.q[None], np.array([step]), (np.arange(count - 2) * step)[None])[0]
