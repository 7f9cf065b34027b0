"""Scalar operations for equations that are written once and run three ways.

An equation is a plain function of scalars that uses `+ - * /` and the functions of this module. The same function

* runs on NumPy float64 arrays (the readable twin),
* is traced into straight-line code for kernels (`airworthy.core.tracing`),
* runs on dual numbers, which yields exact Jacobians.

A traced value or dual carries its operations in the attribute `scalar_ops`; anything else is taken for NumPy. Rules that keep
tracing simple: no `if`/`while` on a value (use `where`), denominators and roots guarded *before* `where`, since both sides
are evaluated. `minimum(a, b)` is `where(a < b, a, b)` and `maximum(a, b)` is `where(a > b, a, b)` on every backend, so a NaN
in the first argument yields the second, everywhere alike.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

__all__ = [
    "absolute",
    "arccos",
    "arctan2",
    "clip",
    "cos",
    "exp",
    "floor",
    "log",
    "maximum",
    "minimum",
    "sign",
    "sin",
    "sin_cos",
    "softplus",
    "sqrt",
    "tanh",
    "where",
]


class NumpyOps:
    """The operations on NumPy arrays and Python numbers."""

    rank = 0
    """Where kinds of scalar meet in one operation, the highest rank carries it out."""

    @staticmethod
    def where(condition: Any, a: Any, b: Any) -> Any:
        """Return an array, elements of `a` where the condition holds and of `b` elsewhere.

        Args:
            condition: Boolean, of any shape that broadcasts.
            a: Where it holds: a number or an array.
            b: Elsewhere, alike.
        """
        return np.where(condition, a, b)

    @staticmethod
    def sqrt(x: Any) -> Any:
        with np.errstate(invalid="ignore"):
            return np.sqrt(x)

    absolute = staticmethod(np.abs)
    floor = staticmethod(np.floor)

    @staticmethod
    def power_of_two(k: Any) -> Any:
        k = np.asarray(k)
        whole = np.clip(np.nan_to_num(k), -126.0, 127.0).astype(np.int32)
        return np.ldexp(k.dtype.type(1.0) if k.dtype.kind == "f" else 1.0, whole)

    @staticmethod
    def binary_parts(x: Any) -> tuple[Any, Any]:
        mantissa, exponent = np.frexp(x)
        return mantissa * 2, (exponent - 1).astype(np.asarray(mantissa).dtype)

    @staticmethod
    def repeat(count: int, step: Any, start: Any, fixed: Any, goes_on: Any) -> Any:
        """Take steps until no element goes on; those that do not keep their state.

        Args:
            count: Times at most.
            step: As of `airworthy.core.ops.repeat`, like those that follow.
            start: State.
            fixed: What steps read.
            goes_on: Of the state.
        """
        state = start
        for _ in range(count):
            on = np.asarray(goes_on(state))
            if not on.any():
                break
            after = zip(scalars_of(step(state, fixed)), scalars_of(state), strict=True)
            state = packed(state, iter([np.where(on, new, old) for new, old in after]))
        return state

    @staticmethod
    def known_slope(x: Any, value: Callable[[Any], Any], slope: Callable[[Any, Any], Any]) -> Any:
        """Return the result alone: numbers carry no slope.

        Args:
            x: Number or array.
            value: Makes the result of `x`.
            slope: Makes the result's derivative by `x` of `x` and the result.
        """
        return value(x)


def ops_of(*values: Any) -> Any:
    """Return the operations to use on these values: duals' before traced values', those before NumPy's."""
    found: Any = NumpyOps
    for value in values:
        ops = getattr(value, "scalar_ops", found)
        if ops.rank > found.rank:
            found = ops
    return found


def where(condition: Any, a: Any, b: Any) -> Any:
    """Return `a` where the condition holds, else `b`; both are evaluated.

    Args:
        condition: A comparison, of one element per lane.
        a: Number, array, traced value or dual.
        b: Alike, broadcast against `a`.
    """
    return ops_of(condition, a, b).where(condition, a, b)


def sqrt(x: Any) -> Any:
    """Return the square root; NaN below zero."""
    return getattr(x, "scalar_ops", NumpyOps).sqrt(x)


def absolute(x: Any) -> Any:
    """Return the magnitude of a scalar."""
    return getattr(x, "scalar_ops", NumpyOps).absolute(x)


def floor(x: Any) -> Any:
    """Return the largest whole number not above `x`."""
    return getattr(x, "scalar_ops", NumpyOps).floor(x)


def minimum(a: Any, b: Any) -> Any:
    """Return the smaller of two scalars; `b` when `a` is NaN."""
    return where(a < b, a, b)


def maximum(a: Any, b: Any) -> Any:
    """Return the larger of two scalars; `b` when `a` is NaN."""
    return where(a > b, a, b)


def clip(x: Any, lower: Any, upper: Any) -> Any:
    """Return `x` held within [lower, upper]; `lower` when `x` is NaN.

    Args:
        x: Number, array, traced value or dual.
        lower: Least result.
        upper: Largest result.
    """
    return minimum(maximum(x, lower), upper)


def repeat(count: int, step: Callable[[Any, Any], Any], start: Any, fixed: Any, goes_on: Callable[[Any], Any]) -> Any:
    """Apply a step again and again: straight-line code of a step stays one step long.

    Args:
        count: Times at most.
        step: Of the state and of what is fixed, to the next state. Lanes that do not go on keep theirs.
        start: State: scalars in tuples, also nested and named ones.
        fixed: What steps read beside the state, alike.
        goes_on: Of the state, whether a lane takes another step.
    """
    return ops_of(*scalars_of(start), *scalars_of(fixed)).repeat(count, step, start, fixed, goes_on)


def scalars_of(tree: Any) -> list[Any]:
    """Return the scalars of nested tuples, in order."""
    return [x for part in tree for x in scalars_of(part)] if isinstance(tree, tuple) else [tree]


def packed(tree: Any, scalars: Iterator[Any]) -> Any:
    """Return a tree of tuples of the same form, its scalars replaced in order."""
    if not isinstance(tree, tuple):
        return next(scalars)
    parts = [packed(part, scalars) for part in tree]
    return type(tree)(*parts) if hasattr(tree, "_fields") else tuple(parts)


def sign(x: Any) -> Any:
    """Return -1, 0 or 1."""
    return where(x > 0.0, 1.0, where(x < 0.0, -1.0, 0.0))


# Sine, cosine and arc tangent are built from the operations above, so that every backend computes the same polynomial:
# Taylor series on a reduced range (|r| <= pi/4, |t| <= tan(pi/8)); truncation below 1e-10, far under float32 rounding.

_HALF_PI_HIGH = 1.5707855224609375  # 17 bits, so that k * high is exact in float32 for |k| < 128
_HALF_PI_LOW = 1.0804333959086246e-05


def _quadrant(x: Any) -> tuple[Any, Any]:
    """Quarter turn (0..3) nearest to `x` [rad] and the remainder in [-pi/4, pi/4]."""
    # 2 / pi, and half a step so that the remainder is around zero. In two parts, since k pi/2 in one would lose its low bits.
    k = floor(x * 0.6366197723675814 + 0.5)
    remainder = (x - k * _HALF_PI_HIGH) - k * _HALF_PI_LOW
    return k - 4.0 * floor(k * 0.25), remainder


def _sin_cos_series(r: Any) -> tuple[Any, Any]:
    s = r * r
    sine = r + r * s * (-1 / 6 + s * (1 / 120 + s * (-1 / 5040 + s * (1 / 362880 + s * (-1 / 39916800)))))
    cosine = 1.0 + s * (-0.5 + s * (1 / 24 + s * (-1 / 720 + s * (1 / 40320 + s * (-1 / 3628800 + s * (1 / 479001600))))))
    return sine, cosine


def sin_cos(x: Any) -> tuple[Any, Any]:
    """Return sine and cosine of an angle [rad]; in float32 right to rounding for |x| < 200, to 4e-5 below 1e3 and 6e-4 below
    1e4."""
    q, r = _quadrant(x)
    s, c = _sin_cos_series(r)
    # Comparisons of halves instead of equality: floats that hold small whole numbers, in every backend.
    swap = q - 2.0 * floor(q * 0.5) > 0.5
    sine = where(swap, c, s)
    cosine = where(swap, s, c)
    sine = where(q > 1.5, -sine, sine)
    cosine = where((q - 0.5) * (q - 2.5) < 0.0, -cosine, cosine)
    return sine, cosine


def sin(x: Any) -> Any:
    """Return the sine of an angle [rad]; see `sin_cos`."""
    return sin_cos(x)[0]


def cos(x: Any) -> Any:
    """Return the cosine of an angle [rad]; see `sin_cos`."""
    return sin_cos(x)[1]


def _arctan_series(t: Any) -> Any:
    s = t * t
    tail = 1 / 13 + s * (-1 / 15 + s * (1 / 17 + s * (-1 / 19 + s * (1 / 21))))
    return t + t * s * (-1 / 3 + s * (1 / 5 + s * (-1 / 7 + s * (1 / 9 + s * (-1 / 11 + s * tail)))))


def arctan2(y: Any, x: Any) -> Any:
    """Return the angle of the vector (x, y) [rad] in [-pi, pi]; 0 at the origin, NaN where x or y is NaN or both are
    infinite."""
    ax, ay = absolute(x), absolute(y)
    swapped = ay > ax
    low, high = where(swapped, ax, ay), where(swapped, ay, ax)
    # The smaller over the larger: at most 1, and no overflow.
    t = low / where(high == 0.0, 1.0, high)
    # tan(pi/8): above it the angle is taken from 45 degrees, so that the series' argument stays below it.
    steep = t > 0.41421356237309503
    angle = _arctan_series(where(steep, (t - 1.0) / (t + 1.0), t))
    angle = where(steep, angle + 0.7853981633974483, angle)
    angle = where(swapped, 1.5707963267948966 - angle, angle)
    angle = where(x < 0.0, 3.141592653589793 - angle, angle)
    return where(y < 0.0, -angle, angle)


# Exponential and logarithm: a power of two, exact, times or plus a series on a reduced range. Their derivatives are known in
# closed form and taken from the result, instead of through the series (`_known_slope`).

_LOG2_E = 1.4426950408889634
_LN2_HIGH = 0.693145751953125  # 15 bits, so that k * high is exact in float32 for |k| <= 256
_LN2_LOW = 1.4286068203094172e-06
_EXP_LOWEST = -87.0  # exp of less is 0: float32 has no normal number below exp(-87.34)
_EXP_HIGHEST = 88.72283172607422  # largest float32 whose exponential is one; beyond it the result is infinite
_SMALLEST_NORMAL = 1.1754943508222875e-38  # of float32


def _known_slope(x: Any, value: Callable[[Any], Any], slope: Callable[[Any, Any], Any]) -> Any:
    """`value(x)`, whose derivative by x is `slope(x, value(x))` wherever one is asked for."""
    return getattr(x, "scalar_ops", NumpyOps).known_slope(x, value, slope)


def exp(x: Any) -> Any:
    """Return exponential: 0 below -87, infinite above 88.72 (the range of float32 on every backend), NaN for NaN.

    Right to 1e-10 in float64 and to 1e-7 in float32, relatively.
    """
    return _known_slope(x, _exponential, lambda x, y: y)


def _exponential(x: Any) -> Any:
    ops = getattr(x, "scalar_ops", NumpyOps)
    inside = clip(x, _EXP_LOWEST, _EXP_HIGHEST)
    k = floor(inside * _LOG2_E + 0.5)
    r = (inside - k * _LN2_HIGH) - k * _LN2_LOW
    # Taylor series on |r| <= ln(2)/2: the first omitted term is 0.3466^10 / 10! = 7e-12.
    tail = 1 / 720 + r * (1 / 5040 + r * (1 / 40320 + r * (1 / 362880)))
    series = 1.0 + r * (1.0 + r * (0.5 + r * (1 / 6 + r * (1 / 24 + r * (1 / 120 + r * tail)))))
    # In two factors: 2^128 is no float32, though its product with a series below 1 is one.
    half = floor(k * 0.5)
    value = series * ops.power_of_two(half) * ops.power_of_two(k - half)
    value = where(x < _EXP_LOWEST, 0.0, where(x > _EXP_HIGHEST, float("inf"), value))
    return where(x == x, value, x)  # NaN stays NaN: `clip` made a number of it


def log(x: Any) -> Any:
    """Return the natural logarithm: -infinite at 0, NaN below and for NaN.

    Right to 1e-10 in float64 and to 1e-7 in float32, relatively.
    """
    return _known_slope(x, _logarithm, lambda x, y: 1.0 / x)


def _logarithm(x: Any) -> Any:
    ops = getattr(x, "scalar_ops", NumpyOps)
    small = x < _SMALLEST_NORMAL  # such numbers have no exponent of their own in float32
    raised = minimum(x, _SMALLEST_NORMAL) * 16777216.0
    # 0, negative numbers and infinity are answered below; 1 in their place keeps the bits in order.
    ordinary = (x > 0.0) & (x < float("inf"))
    mantissa, exponent = ops.binary_parts(where(ordinary, where(small, raised, x), 1.0))
    exponent = where(small & ordinary, exponent - 24.0, exponent)
    large = mantissa > 1.4142135623730951
    mantissa, exponent = where(large, mantissa * 0.5, mantissa), where(large, exponent + 1.0, exponent)
    value = exponent * _LN2_HIGH + (_log_near_one(mantissa - 1.0) + exponent * _LN2_LOW)
    value = where(x == 0.0, -float("inf"), where(x < 0.0, float("nan"), value))
    return where(ordinary | (x <= 0.0), value, x)  # infinity and NaN are their own


def _log_near_one(f: Any) -> Any:
    """log(1 + f) for |f| <= 0.42: 2 artanh(t), t = f / (2 + f), |t| <= 0.1716; the first omitted term is t^13 / 6.5 < 2e-11."""
    t = f / (2.0 + f)
    s = t * t
    # f - t f instead of 2 t: the leading term is then exact.
    return f - t * (f - 2.0 * (s * (1 / 3 + s * (1 / 5 + s * (1 / 7 + s * (1 / 9 + s * (1 / 11)))))))


def softplus(x: Any) -> Any:
    """Return log(1 + exp(x)), a smooth max(x, 0); right to 1e-10 in float64 and to 3e-7 in float32, relatively."""
    return _known_slope(x, _soft_positive, lambda x, y: _logistic(x))


def _soft_positive(x: Any) -> Any:
    e = _exponential(-absolute(x))
    # log(1 + e) = 2 artanh(t) for e in [0, 1], t = e / (2 + e) <= 1/3; the first omitted term is t^21 / 10.5 = 9e-12.
    t = e / (2.0 + e)
    s = t * t
    tail = 1 / 9 + s * (1 / 11 + s * (1 / 13 + s * (1 / 15 + s * (1 / 17 + s * (1 / 19)))))
    return where(x < 0.0, 0.0, x) + 2.0 * t * (1.0 + s * (1 / 3 + s * (1 / 5 + s * (1 / 7 + s * tail))))


def _logistic(x: Any) -> Any:
    """1 / (1 + exp(-x)), the slope of `softplus`, from the exponential that does not overflow."""
    e = _exponential(-absolute(x))
    return where(x < 0.0, e, 1.0) / (1.0 + e)


def tanh(x: Any) -> Any:
    """Return the hyperbolic tangent, right to 1e-10 in float64 and to 2e-7 in float32, relatively."""
    return _known_slope(x, _hyperbolic_tangent, lambda x, y: 1.0 - y * y)


def _hyperbolic_tangent(x: Any) -> Any:
    size = absolute(x)
    # Its continued fraction x / (1 + x^2 / (3 + x^2 / (5 + ...))), cut after 13 and made one quotient: 1e-13 at 0.625. Beyond
    # it 1 - 2 / (1 + exp(2 |x|)) loses no digits.
    s = x * x
    near = x * (135135.0 + s * (17325.0 + s * (378.0 + s))) / (135135.0 + s * (62370.0 + s * (3150.0 + s * 28.0)))
    far = 1.0 - 2.0 / (1.0 + _exponential(2.0 * size))
    return where(size < 0.625, near, where(x < 0.0, -far, far))


def arccos(x: Any) -> Any:
    """Return the angle [rad] in [0, pi] whose cosine is x; beyond -1 and 1 that of the nearer, where its slope is 0. NaN for
    NaN.

    Right to 2e-10 in float64 and to 3e-7 in float32, relatively.
    """
    # 1 - x and 1 + x are exact near 1 and -1, so that small angles keep their digits.
    return arctan2(sqrt(maximum((1.0 - x) * (1.0 + x), 0.0)), x)
