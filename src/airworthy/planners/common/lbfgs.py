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
from math import copysign, sqrt

import numpy as np

from airworthy.core.arrays import Array, ArrayLike
from airworthy.core.schema import check_fields

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

# ---- The line search of More and Thuente (ACM TOMS 20, 1994), one trial at a time, in the form of MINPACK-2 -----------------

# Source: spec/planners 3.6: Armijo 1e-4, curvature 0.9, xtol 1e-16, steps of 1e-20 to 1e20, at most 40 per line search.
DECREASE, CURVATURE, WIDTH = 1e-4, 0.9, 1e-16
STEP_MIN, STEP_MAX = 1e-20, 1e20
TRIALS = 40


@dataclass
class _End:
    """A step, the function's value there, and its slope."""

    step: float
    value: float
    slope: float

    def tilted(self, slope: float) -> _End:
        return _End(self.step, self.value - self.step * slope, self.slope - slope)


class LineSearch:
    """Asks for values along a line until the strong Wolfe conditions hold.

    Args:
        value: At step 0.
        slope: There, below 0.
        step: The first trial, above 0.

    Attributes:
        step: What to try next.
        over: Nothing better will come of further trials.
    """

    def __init__(self, value: float, slope: float, step: float):
        self.step, self.over = step, False
        self._start = _End(0.0, value, slope)
        self._best, self._other = _End(0.0, value, slope), _End(0.0, value, slope)
        self._bracketed, self._first_stage, self._trials = False, True, 0
        self._width, self._width_before = STEP_MAX - STEP_MIN, 2.0 * (STEP_MAX - STEP_MIN)
        # MINPACK-2's xtrapu = 4: while nothing is bracketed a trial grows by at most this factor.
        self._low, self._high = 0.0, step + 4.0 * step

    def accept(self, value: float, slope: float) -> bool:
        """Take the value and slope at `step`; True: it is good enough, else `step` is the next trial."""
        self._trials += 1
        test = DECREASE * self._start.slope
        level = self._start.value + self.step * test
        # End of the paper's first stage: from the first point with enough decrease and a rising line on, the function itself is
        # searched.
        if self._first_stage and value <= level and slope >= 0.0:
            self._first_stage = False
        if value <= level and abs(slope) <= CURVATURE * -self._start.slope:
            return True
        self.over = self._hopeless(value, slope, level, test)
        if not self.over:
            self._move(_End(self.step, value, slope), level, test)
        return False

    def _hopeless(self, value: float, slope: float, level: float, test: float) -> bool:
        outside = self._bracketed and (self.step <= self._low or self.step >= self._high)
        narrow = self._bracketed and self._high - self._low <= WIDTH * self._high
        longest = self.step >= STEP_MAX and value <= level and slope <= test
        shortest = self.step <= STEP_MIN and (value > level or slope >= test)
        return outside or narrow or longest or shortest or self._trials >= TRIALS

    def _move(self, trial: _End, level: float, test: float) -> None:
        """Choose the next trial. In the first stage the search goes on the function less the decrease that is asked for."""
        # Lower, but not by enough: only on the tilted function is the interval sure to hold a point that will do.
        if self._first_stage and trial.value <= self._best.value and trial.value > level:
            ends = self._best.tilted(test), self._other.tilted(test)
            best, other = self._update(*ends, trial.tilted(test))
            self._best, self._other = best.tilted(-test), other.tilted(-test)
        else:
            self._best, self._other = self._update(self._best, self._other, trial)
        if self._bracketed:
            # The paper's delta: an interval that shrinks by less than a third in two trials is halved, or convergence may
            # stall.
            if abs(self._other.step - self._best.step) >= 0.66 * self._width_before:
                self.step = self._best.step + 0.5 * (self._other.step - self._best.step)
            self._width_before, self._width = self._width, abs(self._other.step - self._best.step)
            self._low = min(self._best.step, self._other.step)
            self._high = max(self._best.step, self._other.step)
        else:
            # MINPACK-2's xtrapl = 1.1 and xtrapu = 4: the next trial goes on, and not for ever.
            self._low = self.step + 1.1 * (self.step - self._best.step)
            self._high = self.step + 4.0 * (self.step - self._best.step)
        self.step = min(max(self.step, STEP_MIN), STEP_MAX)
        narrow = self._bracketed and self._high - self._low <= WIDTH * self._high
        # Nothing new can be asked: the last trial is the best point, so that the caller ends there.
        if self._bracketed and (self.step <= self._low or self.step >= self._high or narrow):
            self.step = self._best.step

    def _update(self, best: _End, other: _End, trial: _End) -> tuple[_End, _End]:
        """Choose `step` safely and narrow the interval to it (section 4 of the paper)."""
        opposite = trial.slope * copysign(1.0, best.slope) < 0.0
        if trial.value > best.value:
            step, bracketed = _higher(best, trial), True
        elif opposite:
            step, bracketed = _turned(best, trial), True
        elif abs(trial.slope) < abs(best.slope):
            step, bracketed = self._flatter(best, other, trial), self._bracketed
        else:
            step, bracketed = self._steeper(best, other, trial), self._bracketed
        self._bracketed = bracketed
        self.step = step
        if trial.value > best.value:
            return best, trial
        return (trial, best) if opposite else (trial, other)

    def _flatter(self, best: _End, other: _End, trial: _End) -> float:
        theta, gamma = _cubic(best, trial)
        gamma = -gamma if trial.step > best.step else gamma
        r = ((gamma - trial.slope) + theta) / ((gamma + (best.slope - trial.slope)) + gamma)
        # The cubic may have no minimum beyond the trial: then the interval's end stands for it.
        if r < 0.0 and gamma != 0.0:
            cubic = trial.step + r * (best.step - trial.step)
        else:
            cubic = self._high if trial.step > best.step else self._low
        secant = trial.step + trial.slope / (trial.slope - best.slope) * (best.step - trial.step)
        nearer = abs(cubic - trial.step) < abs(secant - trial.step)
        if self._bracketed:
            step = cubic if nearer else secant
            # Not next to the far end, where the interval would hardly shrink.
            most = trial.step + 0.66 * (other.step - trial.step)
            return min(most, step) if trial.step > best.step else max(most, step)
        return max(self._low, min(self._high, secant if nearer else cubic))

    def _steeper(self, best: _End, other: _End, trial: _End) -> float:
        if not self._bracketed:
            return self._high if trial.step > best.step else self._low
        theta, gamma = _cubic(other, trial)
        gamma = -gamma if trial.step > other.step else gamma
        r = ((gamma - trial.slope) + theta) / (((gamma - trial.slope) + gamma) + other.slope)
        return trial.step + r * (other.step - trial.step)


def _cubic(end: _End, trial: _End) -> tuple[float, float]:
    """Theta and gamma of the cubic through two values and slopes."""
    theta = 3.0 * (end.value - trial.value) / (trial.step - end.step) + end.slope + trial.slope
    # Scaled before squaring: slopes of 1e200 would overflow, slopes of 1e-200 vanish.
    scale = max(abs(theta), abs(end.slope), abs(trial.slope))
    if scale == 0.0:
        return theta, 0.0
    under = (theta / scale) * (theta / scale) - (end.slope / scale) * (trial.slope / scale)
    return theta, scale * sqrt(max(0.0, under))


def _higher(best: _End, trial: _End) -> float:
    theta, gamma = _cubic(best, trial)
    gamma = -gamma if trial.step < best.step else gamma
    r = ((gamma - best.slope) + theta) / (((gamma - best.slope) + gamma) + trial.slope)
    length = trial.step - best.step
    cubic = best.step + r * length
    square = best.step + best.slope / ((best.value - trial.value) / length + best.slope) / 2.0 * length
    return cubic if abs(cubic - best.step) < abs(square - best.step) else cubic + (square - cubic) / 2.0


def _turned(best: _End, trial: _End) -> float:
    theta, gamma = _cubic(best, trial)
    gamma = -gamma if trial.step > best.step else gamma
    r = ((gamma - trial.slope) + theta) / (((gamma - trial.slope) + gamma) + best.slope)
    cubic = trial.step + r * (best.step - trial.step)
    secant = trial.step + trial.slope / (trial.slope - best.slope) * (best.step - trial.step)
    return cubic if abs(cubic - trial.step) > abs(secant - trial.step) else secant


# -----------------------------------------------------------------------------------------------------------------------------

# Source: spec/planners 3.6: L-BFGS with memory 16.
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

    def __post_init__(self) -> None:
        check_fields(self, "LbfgsConfig.")


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
    """Return the native text of the minimiser for one struct of problems; two kinds in one kernel take two names."""
    text = files("airworthy.planners.common").joinpath("native", "lbfgs.h").read_text()
    return text.replace("LBFGS_PROBLEM", problem).replace("LBFGS_NAME", name)


def lbfgs_work(size: int, memory: int = MEMORY) -> int:
    """Return doubles of work memory of one native problem of `size` unknowns."""
    return (2 * memory + 5) * size + 2 * memory


def ordered_dot(a: Array, b: Array) -> float:
    """Return the sum of products from the first to the last, as a loop adds them."""
    # `np.dot` sums in an order of its own, by the processor's width.
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
        # Nothing is known of the curvature yet: the first trial moves by a length of 1, whatever the gradient's scale.
        step = 1.0 / np.sqrt(ordered_dot(direction, direction))
        while True:
            before, slope = self.x, ordered_dot(gradient, direction)
            # Rounding can turn a direction upwards; no line search can help there.
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
            # The best point is kept even where the search gives up: a planner would rather have a worse path than none.
            if value < best:
                best = value
                self.x, self.value = x, value
            if line.accept(value, ordered_dot(gradient, direction)):
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
        """Return the two-loop recursion, after taking in the newest pair."""
        bend = ordered_dot(s, y)
        # A pair without positive curvature would make the estimated inverse Hessian indefinite, and its direction no descent.
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
        # Equation 7.20: the scale of the inverse Hessian along the newest step, by which a step of 1 is nearly right.
        direction = direction * (product / ordered_dot(change, change))
        for (old, change, product), share in zip(self._pairs, reversed(shares), strict=True):
            back = ordered_dot(change, direction) / product
            direction = direction + (share - back) * old
        return direction
