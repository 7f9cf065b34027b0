"""Derivatives by dual numbers: against closed forms, CasADi and finite differences, on numbers and while tracing."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from airworthy.core import ops
from airworthy.core.tracing import Dual, Graph, Value, jacobian, trace
from airworthy.core.tracing.graph import TracingError
from airworthy.dynamics.equations import derivative
from airworthy.dynamics.state import body_parameters, rigid_layout
from airworthy.vehicles import vehicle

numbers = st.floats(-5.0, 5.0)

ROTORS = 4
SIZES = {
    "velocity": 3,
    "attitude": 4,
    "rate": 3,
    "rotor_speed": 4,
    "command": 4,
    "wind": 3,
    "force": 3,
    "moment": 3,
    "factor": 4,
}
INPUTS = sum(SIZES.values())
OUTPUTS = 17


def slope(function: Callable[[Any], Any], x: Any) -> Any:
    """Derivative of a function of one scalar."""
    return jacobian(lambda a: (function(a),), (x,))[1][0][0]


# ---- closed forms ----------------------------------------------------------------------------------------------------


@given(numbers, numbers)
def test_arithmetic(x: float, y: float) -> None:
    y = y if abs(y) > 0.1 else 1.0
    values, slopes = jacobian(lambda a, b: (a + b, a - b, a * b, a / b, 2.0 - a, 3.0 / b, -a, +a, a**2, abs(a)), (x, y))
    np.testing.assert_allclose(values, [x + y, x - y, x * y, x / y, 2 - x, 3 / y, -x, x, x * x, abs(x)], rtol=1e-15)
    side = -1.0 if x < 0.0 else 1.0
    expected = [(1, 1), (1, -1), (y, x), (1 / y, -x / y / y), (-1, 0), (0, -3 / y / y), (-1, 0), (1, 0), (2 * x, 0), (side, 0)]
    np.testing.assert_allclose(slopes, expected, rtol=1e-14)


@given(numbers)
def test_functions(x: float) -> None:
    # The derivative of a series is a series with one term less: 1e-9 for the sine, 3e-9 for the arc tangent.
    assert abs(slope(ops.sin, x) - np.cos(x)) < 1e-9
    assert abs(slope(ops.cos, x) + np.sin(x)) < 1e-9
    assert abs(slope(lambda a: ops.arctan2(a, 2.0), x) - 2.0 / (4.0 + x * x)) < 1e-8
    assert abs(slope(lambda a: ops.arctan2(2.0, a), x) + 2.0 / (4.0 + x * x)) < 1e-8
    assert slope(lambda a: ops.sqrt(a * a + 1.0), x) == pytest.approx(x / np.sqrt(x * x + 1.0), abs=1e-15)
    assert slope(ops.floor, x) == 0.0


@pytest.mark.parametrize(
    ("function", "x", "expected"),
    [
        (lambda a: ops.where(a > 1.0, a * a, 5.0 * a), 2.0, 4.0),
        (lambda a: ops.where(a > 1.0, a * a, 5.0 * a), 0.5, 5.0),
        (lambda a: ops.where(a > 1.0, a * a, 5.0 * a), 1.0, 5.0),  # at the kink: the side that is taken
        (lambda a: ops.where(a >= 1.0, a * a, 5.0 * a), 1.0, 2.0),
        (lambda a: ops.where(a == 1.0, a * a, 5.0 * a), 1.0, 2.0),
        (lambda a: ops.where(a != 1.0, a * a, 5.0 * a), 1.0, 5.0),
        (lambda a: ops.where(a <= 1.0, 7.0, a), 0.0, 0.0),  # a number on the side that is taken
        (lambda a: ops.where(a <= 1.0, 7.0, a), 2.0, 1.0),
        (lambda a: ops.minimum(a, 3.0 * a), 2.0, 1.0),
        (lambda a: ops.maximum(a, 3.0 * a), 2.0, 3.0),
        (lambda a: ops.clip(a, -1.0, 1.0), 0.5, 1.0),
        (lambda a: ops.clip(a, -1.0, 1.0), 1.5, 0.0),
        (ops.absolute, 0.0, 1.0),
        (lambda a: ops.sign(a) * a, -2.0, -1.0),
    ],
)
def test_kinks_have_the_derivative_of_the_side_taken(function: Callable[[Any], Any], x: float, expected: float) -> None:
    assert float(slope(function, x)) == expected
    np.testing.assert_array_equal(slope(function, np.array([x])), [expected])


def test_a_length_has_a_derivative_where_the_vector_vanishes() -> None:
    """Drag is v |v|: its derivative at rest is 0, not NaN."""
    _, slopes = jacobian(lambda x, y: (ops.sqrt(x * x + y * y), x * ops.sqrt(x * x + y * y)), (0.0, 0.0))
    np.testing.assert_array_equal(np.array(slopes, float), np.zeros((2, 2)))


def test_arrays_give_a_jacobian_per_element() -> None:
    x, y = np.linspace(-2.0, 2.0, 9), np.linspace(1.0, 3.0, 9)
    _, ((by_x, by_y),) = jacobian(lambda a, b: (ops.where(a > 0.0, a * b, a / b),), (x, y))
    np.testing.assert_allclose(by_x, np.where(x > 0.0, y, 1.0 / y))
    np.testing.assert_allclose(by_y, np.where(x > 0.0, x, -x / y**2))


def test_arrays_on_the_left_leave_the_operation_to_the_dual() -> None:
    weights = np.array([2.0, 3.0])
    assert isinstance(weights * Dual(1.0, (1.0,)), Dual)
    assert isinstance(np.float64(2.0) - Dual(1.0, (1.0,)), Dual)
    np.testing.assert_array_equal(slope(lambda a: weights * a + weights, np.ones(2)), weights)


def test_structural_zeros_are_the_number_zero() -> None:
    x = np.ones(3)
    _, slopes = jacobian(lambda a, b, c: (a + 1.0, b * 0.0, ops.floor(a * b), 4.0, a * b), (x, x, x))
    zero = [[isinstance(s, float) and s == 0.0 for s in row] for row in slopes]
    assert zero == [[False, True, True], [True] * 3, [True] * 3, [True] * 3, [False, False, True]]


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda a: a if a else -a, "A dual was used as a truth value; write where(condition, a, b) instead."),
        (lambda a: a**3, "Only the power 2 has a derivative here, not 3; multiply instead."),
    ],
)
def test_misuse_says_what_to_write_instead(function: Callable[[Any], Any], message: str) -> None:
    with pytest.raises(TracingError) as error:
        slope(function, 1.0)
    assert str(error.value) == message


# ---- while tracing ---------------------------------------------------------------------------------------------------


def test_traced_values_and_duals_mix_in_every_operation() -> None:
    """A Jacobian by the state alone has traced parameters on the left of duals."""
    graph = Graph()
    gain, x = graph.input("gain"), Dual(graph.input("x"), (1.0,))
    for mixed in (gain + x, gain - x, gain * x, gain / x, x + gain, x - gain, x * gain, x / gain):
        assert isinstance(mixed, Dual)
        assert isinstance(mixed.value, Value)
    for condition in (gain < x, gain > x, gain <= x, gain >= x, gain == x, gain != x, x < gain):
        assert isinstance(ops.where(condition, gain, x), Dual)
        assert isinstance(ops.where(condition, 1.0, gain), Value)


def test_zeros_that_tracing_finds_are_structural_too() -> None:
    def at(v: Value) -> list[list[Any]]:
        nothing = v.graph.constant(0.0)
        return jacobian(lambda a, b: (nothing * a, a * b, ops.where(a > b, a, 2.0 * a)), (v, v * 2.0))[1]

    slopes = at(Graph().input("v"))
    assert slopes[0] == [0.0, 0.0]
    assert slopes[2][1] == 0.0


def test_a_traced_jacobian_shares_terms_with_the_values() -> None:
    def law(x: Any, y: Any) -> tuple[Any, ...]:
        return (ops.sqrt(x * x + y * y),)

    value = trace(law, "f", {"x": None, "y": None}, {"out": None})
    both = trace(lambda x, y: jacobian(law, (x, y)), "f", {"x": None, "y": None}, {"value": 1, "slope": 2})
    # 4 for the value; guard (3), 0.5 / r, and 2 x f per slope: x + x, times f.
    assert value.operation_count == 4
    assert both.operation_count <= value.operation_count + 8


# ---- the rigid body against other derivatives ------------------------------------------------------------------------


def _parameters(name: str) -> SimpleNamespace:
    layout = rigid_layout(ROTORS)
    column = body_parameters(vehicle(name), layout, ROTORS)
    # Terms that this vehicle lacks, so that every path has a slope.
    rng = np.random.default_rng(11)
    for field in ("drag_linear", "drag_norm", "drag_axis", "drag_rotor", "angular_linear", "angular_norm", "angular_axis"):
        rows = layout.rows(field)
        scale = 1e-4 if field == "drag_rotor" else 0.05
        column[rows] += scale * rng.uniform(0.5, 1.0, rows.stop - rows.start)
    axes = column[layout.rows("rotor_axis")].reshape(ROTORS, 3)
    axes += 0.2 * rng.normal(size=axes.shape)
    return layout.record(lambda row: float(column[row]))


def _split(values: Any) -> list[tuple[Any, ...]]:
    ends = np.cumsum(list(SIZES.values()))
    return [tuple(values[k] for k in range(a, b)) for a, b in zip((0, *ends[:-1]), ends, strict=True)]


def _motion(p: Any, **forms: Any) -> Callable[..., list[Any]]:
    """The rigid body as a flat function of all its inputs."""
    return lambda *x: [y for part in derivative(*_split(x), p, **forms) for y in part]


def _states(count: int, hover: float) -> np.ndarray:
    """Random inputs away from kinks, shape (INPUTS, count)."""
    rng = np.random.default_rng(7)
    x = rng.normal(size=(INPUTS, count))
    x[3:7] /= np.linalg.norm(x[3:7], axis=0)
    x[10:18] = hover * rng.uniform(0.5, 1.5, (8, count))
    x[27:31] = rng.uniform(0.9, 1.2, (4, count))
    return x


@pytest.fixture(scope="module")
def rigid() -> tuple[Any, np.ndarray, np.ndarray]:
    """The rigid body, 32 states, and its Jacobian there by duals, shape (OUTPUTS, INPUTS, 32)."""
    motion, x = _motion(_parameters("flightgoggles")), _states(32, 1000.0)
    _, slopes = jacobian(motion, tuple(x))
    return motion, x, np.array([[np.broadcast_to(s, x.shape[1:]) for s in row] for row in slopes])


class _CasadiOps:
    """The operations on CasADi's symbols: an independent differentiation of the same text."""

    rank = 3

    @staticmethod
    def where(condition: Any, a: Any, b: Any) -> Any:
        import casadi

        return _Symbol(casadi.if_else(_bare(condition), _bare(a), _bare(b)))

    @staticmethod
    def sqrt(x: Any) -> Any:
        import casadi

        return _Symbol(casadi.sqrt(_bare(x)))

    @staticmethod
    def absolute(x: Any) -> Any:
        import casadi

        return _Symbol(casadi.fabs(_bare(x)))


def _bare(x: Any) -> Any:
    return x.sx if isinstance(x, _Symbol) else x


class _Symbol:
    """A CasADi scalar that carries its operations."""

    scalar_ops = _CasadiOps

    def __init__(self, sx: Any):
        self.sx = sx


for _name in ("add", "radd", "sub", "rsub", "mul", "rmul", "truediv", "rtruediv", "neg", "lt", "le", "gt", "ge"):

    def _apply(self: _Symbol, *other: Any, _name: str = f"__{_name}__") -> _Symbol:
        return _Symbol(getattr(self.sx, _name)(*map(_bare, other)))

    setattr(_Symbol, f"__{_name}__", _apply)


def test_the_rigid_body_has_the_jacobian_that_casadi_finds(rigid: tuple[Any, np.ndarray, np.ndarray]) -> None:
    casadi = pytest.importorskip("casadi")
    motion, x, slopes = rigid
    symbols = casadi.SX.sym("x", INPUTS)
    outputs = motion(*[_Symbol(symbols[k]) for k in range(INPUTS)])
    at = casadi.Function("j", [symbols], [casadi.jacobian(casadi.vertcat(*map(_bare, outputs)), symbols)])
    for k in range(x.shape[1]):
        expected = np.array(at(x[:, k]))
        # Products of some twenty factors in another order; measured 1e-16 of the largest entry of each row.
        scale = np.abs(expected).max(axis=1, keepdims=True)
        np.testing.assert_allclose(slopes[:, :, k] / scale, expected / scale, rtol=0.0, atol=1e-14)


def test_the_rigid_body_has_the_jacobian_of_finite_differences(rigid: tuple[Any, np.ndarray, np.ndarray]) -> None:
    motion, x, slopes = rigid
    for k in range(INPUTS):
        h = 1e-5 * np.maximum(1.0, np.abs(x[k]))  # central: truncation h^2, rounding 1e-16 / h of the size; measured 6e-11
        up, down = x.copy(), x.copy()
        up[k] += h
        down[k] -= h
        size = np.abs(np.array([np.broadcast_to(y, h.shape) for y in motion(*x)])) + np.abs(slopes[:, k]) + 1.0
        difference = (np.array(motion(*up)) - np.array(motion(*down))) / (2.0 * h)
        np.testing.assert_allclose(difference / size, slopes[:, k] / size, rtol=0.0, atol=1e-9)


def test_structural_zeros_of_the_rigid_body_are_found() -> None:
    """What cannot depend on each other has the number 0 for a slope, and the rest is nonzero at a random state."""
    _, slopes = jacobian(
        _motion(_parameters("flightgoggles"), planar=True, square=True, drag="simple"), tuple(_states(1, 1000.0)[:, 0])
    )
    zero = np.array([[isinstance(s, float) and s == 0.0 for s in row] for row in slopes])
    columns = dict(zip(SIZES, np.split(np.arange(INPUTS), np.cumsum(list(SIZES.values()))[:-1]), strict=True))
    attitude_rate, rotor_rate = zero[3:7], zero[10:14]
    for name in ("velocity", "rotor_speed", "command", "wind", "force", "moment", "factor"):
        assert attitude_rate[:, columns[name]].all()
    assert not attitude_rate[:, columns["rate"]].any()
    for name in ("velocity", "attitude", "rate", "wind", "force", "moment", "factor"):
        assert rotor_rate[:, columns[name]].all()
    np.testing.assert_array_equal(~rotor_rate[:, columns["rotor_speed"]], np.eye(ROTORS, dtype=bool))
    assert not zero[:3][:, columns["velocity"]].any()


def test_hovering_in_still_air_has_a_finite_jacobian() -> None:
    """No airspeed and no rate: both norms of the drag vanish, where their textbook derivative does not exist."""
    x = _states(1, 1000.0)[:, 0]
    x[:3] = x[7:10] = x[18:21] = 0.0
    _, slopes = jacobian(_motion(_parameters("flightgoggles")), tuple(x))
    assert np.isfinite(np.array(slopes, float)).all()


def test_the_rigid_jacobian_can_be_traced() -> None:
    """By state and command, parameters staying parameters: what a predictive controller uses of it."""
    layout = rigid_layout(ROTORS)
    states = {"velocity": 3, "attitude": 4, "rate": 3, "rotor_speed": 4, "command": 4}

    def slopes(p: Any, **inputs: Any) -> Any:
        flat = [x for part in inputs.values() for x in part]
        zero3 = (0.0, 0.0, 0.0)

        def motion(*x: Any) -> list[Any]:
            parts = (x[:3], x[3:7], x[7:10], x[10:14], x[14:18])
            return [y for part in derivative(*parts, zero3, zero3, zero3, None, p, True, True, "simple")[:4] for y in part]

        return [s for row in jacobian(motion, flat)[1] for s in row]

    block = trace(slopes, "slopes", states, {"out": 14 * 18}, {"p": (layout, "PAR")})
    assert block.source.count("= N::c(0.0f);") >= 160  # structural zeros cost nothing
    assert block.operation_count < 700  # of 2,000 that tracing is meant for
