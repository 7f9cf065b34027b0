"""Reverse mode: against dual numbers, central differences and torch, on numbers and as generated code."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from airworthy.core import ops
from airworthy.core.arrays import Array
from airworthy.core.tracing import Graph, adjoint, evaluate, jacobian, trace, vector_jacobian
from airworthy.core.tracing.graph import TracingError
from airworthy.dynamics.equations import derivative
from airworthy.dynamics.state import body_parameters, padded_rotor_count, rigid_layout
from airworthy.vehicles import vehicle


def bent(x: Any, y: Any, z: Any) -> tuple[Any, ...]:
    """Every operation that has a slope, with terms that are used more than once."""
    length = ops.sqrt(x * x + y * y + z * z)
    return (
        x / length - y,
        ops.absolute(x) * y + ops.floor(z),
        ops.where((x > y) & (z > -2.0), x * x, -(y * z)),
        ops.arctan2(y, x) + ops.arccos(z / length),
        ops.sin(z) * ops.exp(x * 0.3) + ops.tanh(y * length),
        ops.log(length) + ops.softplus(x - y),
    )


def transposed(slopes: list[list[Any]], seeds: list[Any]) -> list[Any]:
    """The same derivative from a whole Jacobian."""
    return [sum(s * row[j] for s, row in zip(seeds, slopes, strict=True)) for j in range(len(slopes[0]))]


@pytest.fixture
def points() -> Array:
    return np.random.default_rng(3).uniform(-2.0, 2.0, (3, 500))


def test_equals_the_transposed_jacobian_of_duals(points: Array) -> None:
    seeds = list(np.random.default_rng(4).normal(size=(6, 500)))
    values, slopes = adjoint(bent, list(points), seeds)
    by_duals, matrix = jacobian(bent, list(points))
    for ours, theirs in zip(values, by_duals, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-14)
    for ours, theirs in zip(slopes, transposed(matrix, seeds), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-11, atol=1e-12)


def test_equals_central_differences(points: Array) -> None:
    seeds = list(np.random.default_rng(5).normal(size=(6, 500)))
    smooth = (np.abs(points[0] - points[1]) > 0.01) & (np.abs(points) > 0.01).all(axis=0)
    _, slopes = adjoint(bent, list(points), seeds)

    def total(x: Array) -> Array:
        return np.asarray(sum(s * y for s, y in zip(seeds, bent(*x), strict=True)))

    for k in range(3):
        step = np.zeros((3, 1))
        step[k] = 1e-6
        by_differences = (total(points + step) - total(points - step)) / 2e-6
        np.testing.assert_allclose(slopes[k][smooth], by_differences[smooth], rtol=1e-6, atol=1e-7)


def test_torch_confirms_it(points: Array) -> None:
    """`gradcheck` perturbs each input by itself and compares with what the backward pass gives."""
    torch = pytest.importorskip("torch")

    class Bent(torch.autograd.Function):  # type: ignore[misc, name-defined]
        @staticmethod
        def forward(context: Any, x: Any) -> Any:
            context.save_for_backward(x)
            return torch.as_tensor(np.stack(bent(*x.numpy())))

        @staticmethod
        def backward(context: Any, seeds: Any) -> Any:
            (x,) = context.saved_tensors
            return torch.as_tensor(np.stack(adjoint(bent, list(x.detach().numpy()), list(seeds.numpy()))[1]))

    x = torch.tensor([[0.5, -1.2], [1.3, 0.4], [-0.7, 0.9]], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(Bent.apply, (x,), eps=1e-7, atol=1e-6)


def test_kinks_and_what_has_no_slope() -> None:
    _, slopes = adjoint(lambda x, y: (ops.sqrt(x), ops.floor(y), ops.absolute(x)), [0.0, 0.3], [1.0, 1.0, 1.0])
    assert [float(s) for s in slopes] == [1.0, 0.0]  # a root's at zero is 0, |x| there that of x
    _, (slope,) = adjoint(lambda x: (ops.arccos(x),), [1.0], [1.0])
    assert slope == 0.0


def test_an_input_may_stand_in_the_middle_and_is_one_by_itself() -> None:
    graph = Graph()
    x = graph.input("x")
    middle = x * x
    result = middle * x
    by_x, by_middle = vector_jacobian(graph, [result], [graph.constant(1.0)], [x, middle])
    at = {x.index: 3.0}
    assert evaluate(graph, [by_x, by_middle], at) == [9.0, 3.0]  # with the middle held


def test_a_known_slope_is_taken_instead_of_the_series() -> None:
    """exp costs its series once: its slope is itself. One product by the seed, one by the factor within."""
    value = trace(lambda x: ops.exp(2.0 * x), "f", {"x": None}, {"out": None}).operation_count
    both = trace(
        lambda x, s: adjoint(lambda a: (ops.exp(2.0 * a),), [x], [s]), "f", {"x": None, "s": None}, {"y": None, "out": None}
    )
    assert both.operation_count == value + 2


@pytest.mark.parametrize("name", ["lmf2", "cf2x_L250"])
def test_code_of_the_adjoint_costs_two_to_three_times_that_of_the_equation(name: str) -> None:
    layout = rigid_layout(padded_rotor_count(4))
    column = body_parameters(vehicle(name), layout, 4)
    record = layout.record(lambda row: float(column[row]))
    zero = (0.0, 0.0, 0.0)

    def rates(*x: Any) -> list[Any]:
        parts = (x[:3], x[3:7], x[7:10], x[10:14], x[14:18])
        return [y for part in derivative(*parts, zero, zero, zero, None, record, planar=True)[:4] for y in part]

    flat: dict[str, int | None] = {"x": 18}
    forward = trace(lambda x: rates(*x), "f", flat, {"y": 14}).operation_count
    backward = trace(lambda x, s: adjoint(rates, x, s)[1], "b", {**flat, "s": 14}, {"g": 18}).operation_count
    assert 1.5 < backward / forward < 3.0  # the value is computed anew within it


def test_mistakes_are_told() -> None:
    with pytest.raises(TracingError, match="2 results got 1 seeds; expected one for each"):
        adjoint(lambda x: (x, x), [1.0], [1.0])
    graph = Graph()
    with pytest.raises(TracingError, match="input 'x' has no number"):
        evaluate(graph, [graph.input("x")], {})


def test_the_twin_of_generated_code_covers_every_operation() -> None:
    """`evaluate` of a trace equals the function itself in float64."""
    graph = Graph()
    inputs = [graph.input(name) for name in "xyz"]
    points = np.random.default_rng(8).uniform(-2.0, 2.0, (3, 200))
    values = evaluate(graph, list(bent(*inputs)), {v.index: x for v, x in zip(inputs, points, strict=True)})
    for ours, theirs in zip(values, bent(*points), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_what_is_repeated_is_refused_where_it_is_differentiated_and_else_evaluated() -> None:
    def repeated(x: Any) -> Any:
        return ops.repeat(3, lambda state, fixed: (state[0] * fixed[0],), (x,), (0.5,), lambda state: state[0] > 1.0)[0]

    with pytest.raises(TracingError, match="no derivative; keep `repeat` out"):
        adjoint(lambda x: (repeated(x),), [4.0], [1.0])
    with pytest.raises(TracingError, match="no derivative; keep `repeat` out"):
        jacobian(lambda x: (repeated(x),), (4.0,))
    graph = Graph()
    x = graph.input("x")
    assert evaluate(graph, [repeated(x)], {x.index: np.array([0.5, 4.0, 64.0])})[0].tolist() == [0.5, 1.0, 8.0]
