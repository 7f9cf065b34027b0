"""The line search of More and Thuente (ACM TOMS 20, 1994), one trial at a time, in the form of MINPACK-2."""

from __future__ import annotations

from dataclasses import dataclass
from math import copysign, sqrt

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
        self._low, self._high = 0.0, step + 4.0 * step

    def judge(self, value: float, slope: float) -> bool:
        """Take the value and slope at `step`; True: it is good enough, else `step` is the next trial."""
        self._trials += 1
        test = DECREASE * self._start.slope
        level = self._start.value + self.step * test
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
        """The next trial. In the first stage the search goes on the function less the decrease that is asked for."""
        if self._first_stage and trial.value <= self._best.value and trial.value > level:
            ends = self._best.tilted(test), self._other.tilted(test)
            best, other = self._update(*ends, trial.tilted(test))
            self._best, self._other = best.tilted(-test), other.tilted(-test)
        else:
            self._best, self._other = self._update(self._best, self._other, trial)
        if self._bracketed:
            if abs(self._other.step - self._best.step) >= 0.66 * self._width_before:
                self.step = self._best.step + 0.5 * (self._other.step - self._best.step)
            self._width_before, self._width = self._width, abs(self._other.step - self._best.step)
            self._low = min(self._best.step, self._other.step)
            self._high = max(self._best.step, self._other.step)
        else:
            self._low = self.step + 1.1 * (self.step - self._best.step)
            self._high = self.step + 4.0 * (self.step - self._best.step)
        self.step = min(max(self.step, STEP_MIN), STEP_MAX)
        narrow = self._bracketed and self._high - self._low <= WIDTH * self._high
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
        if r < 0.0 and gamma != 0.0:
            cubic = trial.step + r * (best.step - trial.step)
        else:
            cubic = self._high if trial.step > best.step else self._low
        secant = trial.step + trial.slope / (trial.slope - best.slope) * (best.step - trial.step)
        nearer = abs(cubic - trial.step) < abs(secant - trial.step)
        if self._bracketed:
            step = cubic if nearer else secant
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
