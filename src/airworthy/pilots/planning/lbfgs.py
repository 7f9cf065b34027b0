"""Limited-memory BFGS with the line search of More and Thuente: readable twin, and the native text for compiled planners.

One problem is one flight; problems never mix, evaluations are counted and budgets count them, never the clock. Sources:
Nocedal and Wright, Numerical Optimization, algorithm 7.4; More and Thuente, "Line search algorithms with guaranteed sufficient
decrease", ACM TOMS 20 (1994), in the form of MINPACK-2. Sums run in index order, so `native/lbfgs.h` gives the same bits.

A planner's kernel takes the text by `lbfgs_source(problem)`: `problem` is the name of a struct defined before it, with

    double value(const double* x, double* gradient);   // and its gradient
    bool halt;                                         // set by value(): stop here, now

and then writes, with `work` of `lbfgs_work(size)` doubles,

    Lbfgs solver = {size, memory, iterations, evaluations, gradient_tolerance, step_tolerance, work};
    int status = solver.minimise(problem, x);          // x: start, then the best; solver.evaluations_done, .value
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from importlib.resources import files

import numpy as np
from numpy.typing import ArrayLike, NDArray

from airworthy.pilots.planning.lbfgs_line import LineSearch

__all__ = [
    "Function",
    "Halt",
    "LbfgsConfig",
    "LbfgsResult",
    "LbfgsStatus",
    "lbfgs_source",
    "lbfgs_work",
    "minimise",
    "ordered_dot",
]

Array = NDArray[np.float64]
MEMORY = 16


class LbfgsStatus(IntEnum):
    """Why a minimisation ended; the numbers are those of the native text."""

    CONVERGED = 0
    ITERATIONS = 1
    EVALUATIONS = 2
    STALLED = 3
    """The line search found nothing better; the best point is kept."""
    HALTED = 4
    """The problem asked for it; the point is the one just evaluated."""
    NOT_FINITE = 5


@dataclass(frozen=True)
class LbfgsConfig:
    """How far a minimisation goes."""

    memory: int = MEMORY
    """Pairs of steps and gradient changes that are kept."""
    iterations: int = 200
    evaluations: int = 2_000
    gradient_tolerance: float = 0.01
    """Ends when |g| < this times max(1, |x|)."""
    step_tolerance: float = 0.0
    """Ends when every |x_i| changed by less than this share of itself."""


@dataclass(frozen=True, eq=False)
class LbfgsResult:
    """Where a minimisation ended."""

    x: Array
    value: float
    status: LbfgsStatus
    iterations: int
    evaluations: int


class Halt(Exception):
    """Raised by a function to stop `minimise` at the point that it was given."""


Function = Callable[[Array], tuple[float, Array]]


def lbfgs_source(problem: str, name: str = "Lbfgs") -> str:
    """Native text of the minimiser for one struct of problems; two kinds in one kernel take two names."""
    text = files("airworthy.pilots.planning").joinpath("native", "lbfgs.h").read_text()
    return text.replace("LBFGS_PROBLEM", problem).replace("LBFGS_NAME", name)


def lbfgs_work(size: int, memory: int = MEMORY) -> int:
    """Doubles of work memory of one native problem of `size` unknowns."""
    return (2 * memory + 5) * size + 2 * memory


def ordered_dot(a: Array, b: Array) -> float:
    """Sum of products from the first to the last, as a loop adds them."""
    return float(np.add.accumulate(a * b)[-1])


def minimise(function: Function, start: ArrayLike, config: LbfgsConfig | None = None) -> LbfgsResult:
    """Minimise a smooth function; the twin of the native text.

    Args:
        function: From x (size,) to its value and gradient (size,); may raise `Halt`.
        start: Shape (size,).
        config: Budgets and tolerances; None: the defaults.
    """
    return _Run(function, np.array(start, np.float64), config or LbfgsConfig()).result()


class _Run:
    def __init__(self, function: Function, x: Array, config: LbfgsConfig):
        self._function, self._config, self.x = function, config, x
        self.evaluations = self.iterations = 0
        self._pairs: list[tuple[Array, Array, float]] = []
        self.value = np.inf
        self._tried = x

    def result(self) -> LbfgsResult:
        try:
            status = self._minimise()
        except Halt:
            self.x, status = self._tried, LbfgsStatus.HALTED
        return LbfgsResult(self.x, self.value, status, self.iterations, self.evaluations)

    def _evaluate(self, x: Array) -> tuple[float, Array]:
        self.evaluations += 1
        self._tried = x
        return self._function(x)

    def _minimise(self) -> LbfgsStatus:
        self.value, gradient = self._evaluate(self.x)
        if not np.isfinite(self.value):
            return LbfgsStatus.NOT_FINITE
        if self._converged(gradient):
            return LbfgsStatus.CONVERGED
        direction = -gradient
        step = 1.0 / np.sqrt(ordered_dot(direction, direction))
        while True:
            before, slope = self.x, ordered_dot(gradient, direction)
            if slope >= 0.0:
                return LbfgsStatus.STALLED
            found = self._line(direction, slope, step)
            if isinstance(found, LbfgsStatus):
                return found
            self.iterations += 1
            change = found - gradient
            gradient = found
            if self._converged(gradient) or self._still(before):
                return LbfgsStatus.CONVERGED
            if self.iterations >= self._config.iterations:
                return LbfgsStatus.ITERATIONS
            if self.evaluations >= self._config.evaluations:
                return LbfgsStatus.EVALUATIONS
            direction, step = self._direction(self.x - before, change, gradient), 1.0

    def _line(self, direction: Array, slope: float, step: float) -> Array | LbfgsStatus:
        """Move along a direction; the gradient there, or why not."""
        line, before, best = LineSearch(self.value, slope, step), self.x, self.value
        while True:
            x = before + line.step * direction
            value, gradient = self._evaluate(x)
            if not np.isfinite(value):
                return LbfgsStatus.NOT_FINITE
            if value < best:
                best = value
                self.x, self.value = x, value
            if line.judge(value, ordered_dot(gradient, direction)):
                self.x, self.value = x, value
                return gradient
            if line.over:
                return LbfgsStatus.STALLED
            if self.evaluations >= self._config.evaluations:
                return LbfgsStatus.EVALUATIONS

    def _converged(self, gradient: Array) -> bool:
        size = max(1.0, np.sqrt(ordered_dot(self.x, self.x)))
        return bool(np.sqrt(ordered_dot(gradient, gradient)) < self._config.gradient_tolerance * size)

    def _still(self, before: Array) -> bool:
        return bool(np.all(np.abs(self.x - before) < self._config.step_tolerance * np.abs(self.x)))

    def _direction(self, s: Array, y: Array, gradient: Array) -> Array:
        """The two-loop recursion, after taking in the newest pair."""
        bend = ordered_dot(s, y)
        if bend > 0.0:
            self._pairs = [*self._pairs, (s, y, bend)][-self._config.memory :]
        if not self._pairs:
            return -gradient
        direction, shares = -gradient, []
        for old, change, product in reversed(self._pairs):
            share = ordered_dot(old, direction) / product
            shares.append(share)
            direction = direction - share * change
        _, change, product = self._pairs[-1]
        direction = direction * (product / ordered_dot(change, change))
        for (old, change, product), share in zip(self._pairs, reversed(shares), strict=True):
            back = ordered_dot(change, direction) / product
            direction = direction + (share - back) * old
        return direction
