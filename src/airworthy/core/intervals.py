"""Intervals: what an equation can at most and at least be, while its inputs lie between two ends.

An equation that is written with `airworthy.core.ops` runs on intervals as it runs on numbers, so that a bound speaks of the
very function that a kernel flies. Ends are float64 arrays; the result holds every value that the equation takes for inputs
inside (rounding apart: whoever needs the last bit adds an allowance, as `airworthy.trajectories.quantities` does). It is never
too narrow, and too wide by an amount that falls with the inputs' widths.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from airworthy.core.arrays import Array

__all__ = ["Interval", "Maybe"]


class Maybe:
    """A comparison of intervals: surely true, surely false, or neither."""

    __array_ufunc__ = None

    def __init__(self, true: Any, false: Any):
        self.true, self.false = np.asarray(true), np.asarray(false)

    @property
    def scalar_ops(self) -> type[IntervalOps]:
        return IntervalOps

    def __and__(self, other: Any) -> Maybe:
        o = _maybe(other)
        return Maybe(self.true & o.true, self.false | o.false)

    __rand__ = __and__

    def __or__(self, other: Any) -> Maybe:
        o = _maybe(other)
        return Maybe(self.true | o.true, self.false & o.false)

    __ror__ = __or__

    def __bool__(self) -> bool:
        raise TypeError("A comparison of intervals was used as a truth value; write where(condition, a, b) instead.")


class Interval:
    """All numbers from `low` to `high`, arrays of one shape; 1 / [-1, 1] is everything."""

    __array_ufunc__ = None
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, low: Any, high: Any):
        self.low, self.high = np.asarray(low, np.float64), np.asarray(high, np.float64)

    @property
    def scalar_ops(self) -> type[IntervalOps]:
        return IntervalOps

    @classmethod
    def around(cls, values: Array, slack: Any = 0.0) -> Interval:
        """Return the interval from the least to the greatest along the last axis, wider by `slack` on both sides."""
        return cls(np.min(values, axis=-1) - slack, np.max(values, axis=-1) + slack)

    @property
    def magnitude(self) -> Array:
        """Largest absolute value."""
        return np.maximum(np.abs(self.low), np.abs(self.high))

    def __add__(self, other: Any) -> Interval:
        o = _lift(other)
        return Interval(self.low + o.low, self.high + o.high)

    __radd__ = __add__

    def __neg__(self) -> Interval:
        return Interval(-self.high, -self.low)

    def __sub__(self, other: Any) -> Interval:
        o = _lift(other)
        return Interval(self.low - o.high, self.high - o.low)

    def __rsub__(self, other: Any) -> Interval:
        return _lift(other) - self

    def __mul__(self, other: Any) -> Interval:
        if other is self:  # a square has no negative values
            top = self.magnitude
            return Interval(np.maximum(0.0, np.maximum(self.low, -self.high)) ** 2, top * top)
        if isinstance(other, int | float) and other != 0:
            ends = self.low * other, self.high * other
            return Interval(*ends) if other > 0 else Interval(*ends[::-1])
        o = _lift(other)
        with np.errstate(invalid="ignore"):
            a, b, c, d = self.low * o.low, self.low * o.high, self.high * o.low, self.high * o.high
        low, high = np.minimum(np.minimum(a, b), np.minimum(c, d)), np.maximum(np.maximum(a, b), np.maximum(c, d))
        # 0 times infinity: nothing is known.
        return Interval(np.where(np.isnan(low), -np.inf, low), np.where(np.isnan(high), np.inf, high))

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Interval:
        return self * _inverse(_lift(other))

    def __rtruediv__(self, other: Any) -> Interval:
        return _lift(other) * _inverse(self)

    def __lt__(self, other: Any) -> Maybe:
        o = _lift(other)
        return Maybe(self.high < o.low, self.low >= o.high)

    def __le__(self, other: Any) -> Maybe:
        o = _lift(other)
        return Maybe(self.high <= o.low, self.low > o.high)

    def __gt__(self, other: Any) -> Maybe:
        return _lift(other) < self

    def __ge__(self, other: Any) -> Maybe:
        return _lift(other) <= self

    def __repr__(self) -> str:
        return f"Interval({self.low!r}, {self.high!r})"


def _lift(value: Any) -> Interval:
    return value if isinstance(value, Interval) else Interval(value, value)


def _maybe(value: Any) -> Maybe:
    return value if isinstance(value, Maybe) else Maybe(value, np.logical_not(value))


def _inverse(x: Interval) -> Interval:
    with np.errstate(divide="ignore", invalid="ignore"):
        low, high = 1.0 / x.high, 1.0 / x.low
    through = (x.low <= 0.0) & (x.high >= 0.0)
    return Interval(np.where(through, -np.inf, low), np.where(through, np.inf, high))


class IntervalOps:
    """The operations of `airworthy.core.ops` on intervals."""

    rank = 3

    @staticmethod
    def where(condition: Any, a: Any, b: Any) -> Interval:
        """Return the hull of both sides, where the condition is open.

        Args:
            condition: Comparison of intervals: true, false, or open.
            a: Where it is true.
            b: Where it is false; where it is open, the result encloses both.
        """
        # Both sides are enclosed where the condition is open: the result must hold whichever of them it is.
        sure, x, y = _maybe(condition), _lift(a), _lift(b)
        low, high = np.minimum(x.low, y.low), np.maximum(x.high, y.high)
        return Interval(
            np.where(sure.true, x.low, np.where(sure.false, y.low, low)),
            np.where(sure.true, x.high, np.where(sure.false, y.high, high)),
        )

    @staticmethod
    def sqrt(x: Interval) -> Interval:
        """Return the square root of what is not negative in it."""
        return Interval(np.sqrt(np.maximum(x.low, 0.0)), np.sqrt(np.maximum(x.high, 0.0)))

    @staticmethod
    def absolute(x: Interval) -> Interval:
        return Interval(np.maximum(0.0, np.maximum(x.low, -x.high)), x.magnitude)

    @staticmethod
    def floor(x: Interval) -> Interval:
        return Interval(np.floor(x.low), np.floor(x.high))
