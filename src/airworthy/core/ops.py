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

from typing import Any

import numpy as np

__all__ = [
    "absolute",
    "arctan2",
    "clip",
    "cos",
    "floor",
    "maximum",
    "minimum",
    "sign",
    "sin",
    "sin_cos",
    "sqrt",
    "where",
]


class NumpyOps:
    """The operations on NumPy arrays and Python numbers."""

    rank = 0
    """Where kinds of scalar meet in one operation, the highest rank carries it out."""

    @staticmethod
    def where(condition: Any, a: Any, b: Any) -> Any:
        return np.where(condition, a, b)

    @staticmethod
    def sqrt(x: Any) -> Any:
        with np.errstate(invalid="ignore"):
            return np.sqrt(x)

    absolute = staticmethod(np.abs)
    floor = staticmethod(np.floor)


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
    """Square root; NaN below zero."""
    return getattr(x, "scalar_ops", NumpyOps).sqrt(x)


def absolute(x: Any) -> Any:
    """Magnitude of a scalar."""
    return getattr(x, "scalar_ops", NumpyOps).absolute(x)


def floor(x: Any) -> Any:
    """Largest whole number not above `x`."""
    return getattr(x, "scalar_ops", NumpyOps).floor(x)


def minimum(a: Any, b: Any) -> Any:
    """Return the smaller of two scalars; `b` when `a` is NaN."""
    return where(a < b, a, b)


def maximum(a: Any, b: Any) -> Any:
    """Return the larger of two scalars; `b` when `a` is NaN."""
    return where(a > b, a, b)


def clip(x: Any, lower: Any, upper: Any) -> Any:
    """`x` held within [lower, upper]; `lower` when `x` is NaN.

    Args:
        x: Number, array, traced value or dual.
        lower: Least result.
        upper: Largest result.
    """
    return minimum(maximum(x, lower), upper)


def sign(x: Any) -> Any:
    """-1, 0 or 1."""
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
    """Sine and cosine of an angle [rad]; in float32 right to rounding for |x| < 200, to 4e-5 below 1e3 and 6e-4 below 1e4."""
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
    """Sine of an angle [rad]; see `sin_cos`."""
    return sin_cos(x)[0]


def cos(x: Any) -> Any:
    """Cosine of an angle [rad]; see `sin_cos`."""
    return sin_cos(x)[1]


def _arctan_series(t: Any) -> Any:
    s = t * t
    tail = 1 / 13 + s * (-1 / 15 + s * (1 / 17 + s * (-1 / 19 + s * (1 / 21))))
    return t + t * s * (-1 / 3 + s * (1 / 5 + s * (-1 / 7 + s * (1 / 9 + s * (-1 / 11 + s * tail)))))


def arctan2(y: Any, x: Any) -> Any:
    """Angle of the vector (x, y) [rad] in [-pi, pi]; 0 at the origin, NaN where x or y is NaN or both are infinite."""
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
