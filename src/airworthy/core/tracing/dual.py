"""Dual numbers: exact first derivatives of an equation, on numbers and while tracing alike."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from airworthy.core import ops
from airworthy.core.tracing.graph import TracingError


def _is_zero(x: Any) -> bool:
    number = getattr(x, "constant", x)  # a traced value may be known to be zero, too
    return isinstance(number, int | float) and number == 0


class Dual:
    """A value and its derivatives by a fixed set of inputs; a derivative that is the number 0 is structurally zero."""

    __array_ufunc__ = None
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, value: Any, slopes: Sequence[Any]):
        self.value, self.slopes = value, tuple(slopes)

    @property
    def scalar_ops(self) -> type[DualOps]:
        return DualOps

    def _lift(self, other: Any) -> Dual:
        return other if isinstance(other, Dual) else Dual(other, (0.0,) * len(self.slopes))

    def chain(self, value: Any, factor: Any) -> Dual:
        """Return a function of this dual: its value and its derivative by this one."""
        # Slopes that are known to vanish stay plain zeros: traced, each product would become code that computes nothing.
        zero = _is_zero(factor)
        return Dual(value, [0.0 if zero or _is_zero(s) else factor * s for s in self.slopes])

    def __add__(self, other: Any) -> Dual:
        o = self._lift(other)
        return Dual(self.value + o.value, [_plus(a, b) for a, b in zip(self.slopes, o.slopes, strict=True)])

    __radd__ = __add__

    def __neg__(self) -> Dual:
        return self.chain(-self.value, -1.0)

    def __sub__(self, other: Any) -> Dual:
        return self + (-self._lift(other))

    def __rsub__(self, other: Any) -> Dual:
        return self._lift(other) - self

    def __mul__(self, other: Any) -> Dual:
        o = self._lift(other)
        # The product rule as two chains; their values are not used.
        left, right = self.chain(0, o.value), o.chain(0, self.value)
        return Dual(self.value * o.value, [_plus(a, b) for a, b in zip(left.slopes, right.slopes, strict=True)])

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Dual:
        o = self._lift(other)
        quotient = self.value / o.value
        left, right = self.chain(0, 1.0 / o.value), o.chain(0, -quotient / o.value)
        return Dual(quotient, [_plus(a, b) for a, b in zip(left.slopes, right.slopes, strict=True)])

    def __rtruediv__(self, other: Any) -> Dual:
        return self._lift(other) / self

    def __lt__(self, other: Any) -> Any:
        return self.value < self._lift(other).value

    def __le__(self, other: Any) -> Any:
        return self.value <= self._lift(other).value

    def __gt__(self, other: Any) -> Any:
        return self.value > self._lift(other).value

    def __ge__(self, other: Any) -> Any:
        return self.value >= self._lift(other).value

    def __eq__(self, other: object) -> Any:
        return self.value == self._lift(other).value

    def __ne__(self, other: object) -> Any:
        return self.value != self._lift(other).value

    def __bool__(self) -> bool:
        raise TracingError("A dual was used as a truth value; write where(condition, a, b) instead.")

    def __pos__(self) -> Dual:
        return self

    def __abs__(self) -> Dual:
        return DualOps.absolute(self)

    def __pow__(self, exponent: int) -> Dual:
        if exponent != 2:
            raise TracingError(f"Only the power 2 has a derivative here, not {exponent!r}; multiply instead.")
        return self * self


def _plus(a: Any, b: Any) -> Any:
    if _is_zero(a):
        return b
    return a if _is_zero(b) else a + b


class DualOps:
    """The operations of `airworthy.core.ops` on duals; at kinks the derivative of the side that `where` takes.

    The derivative of a root at zero is taken as 0, so that a length has one (0) where the vector vanishes.
    """

    rank = 2

    @staticmethod
    def repeat(*_: Any) -> Any:
        """Refuse to repeat: how many steps it takes would jump with the value."""
        raise TracingError("A repeated step has no derivative; keep `repeat` out of what is differentiated.")

    @staticmethod
    def where(condition: Any, a: Any, b: Any) -> Dual:
        """Select value and slopes alike; a slope that is 0 on both sides stays structurally 0.

        Args:
            condition: Of values: an array or a traced mask.
            a: Where it holds: a dual or a scalar; one of the two is a dual.
            b: Elsewhere, alike.
        """
        a = a if isinstance(a, Dual) else b._lift(a)
        b = a._lift(b)
        slopes = [
            0.0 if _is_zero(x) and _is_zero(y) else ops.where(condition, x, y) for x, y in zip(a.slopes, b.slopes, strict=True)
        ]
        return Dual(ops.where(condition, a.value, b.value), slopes)

    @staticmethod
    def sqrt(x: Dual) -> Dual:
        root = ops.sqrt(x.value)
        zero = root == 0.0
        # Both sides of a `where` are evaluated: the divisor is made harmless before it divides.
        return x.chain(root, ops.where(zero, 0.0, 0.5 / ops.where(zero, 1.0, root)))

    @staticmethod
    def absolute(x: Dual) -> Dual:
        return x.chain(ops.absolute(x.value), ops.where(x.value < 0.0, -1.0, 1.0))

    @staticmethod
    def floor(x: Dual) -> Dual:
        return x.chain(ops.floor(x.value), 0.0)

    @staticmethod
    def known_slope(x: Dual, value: Callable[[Any], Any], slope: Callable[[Any, Any], Any]) -> Dual:
        """Return the result with the slope that is told, instead of one derived through its evaluation.

        Args:
            x: Dual.
            value: Makes the result of `x`.
            slope: Makes the result's derivative by `x` of `x` and the result.
        """
        inner = ops.ops_of(x.value).known_slope(x.value, value, slope)
        return x.chain(inner, slope(x.value, inner))


def jacobian(function: Callable[..., Sequence[Any]], inputs: Sequence[Any]) -> tuple[list[Any], list[list[Any]]]:
    """Return values and exact Jacobian of `function(*inputs)`.

    Args:
        function: An equation returning a flat sequence of scalars.
        inputs: Scalars: numbers, NumPy arrays or traced values.

    Returns:
        The outputs and, per output, its derivatives by each input; structural zeros are the number 0.0. Together they may be
        the results of a traced function.
    """
    count = len(inputs)
    duals = [Dual(x, [1.0 if i == j else 0.0 for j in range(count)]) for i, x in enumerate(inputs)]
    outputs = [y if isinstance(y, Dual) else Dual(y, [0.0] * count) for y in function(*duals)]
    return [y.value for y in outputs], [list(y.slopes) for y in outputs]
