"""Reverse mode over a traced graph: all derivatives of one number for about the price of the number.

Where `Dual` carries a derivative by every input along, an adjoint walks back once from the results. It pays where inputs
are many and results few: the cost of a flight by the weights of a network. Terms that value and derivative share are one
node, as everywhere in a graph.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from airworthy.core import ops
from airworthy.core.arrays import Array
from airworthy.core.tracing.graph import Graph, Loop, Mask, TracingError, Value, as_value


def adjoint(function: Callable[..., Sequence[Any]], inputs: Sequence[Any], seeds: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """Return values of `function(*inputs)`, and the derivative of their sum, weighted by `seeds`, by each input.

    On numbers and NumPy arrays it is the float64 twin of the same traced code. At kinks it takes the side that `where` takes;
    a root has slope 0 at zero, like `Dual`; comparisons and `floor` have none.

    Args:
        function: An equation returning a flat sequence of scalars.
        inputs: Scalars: all traced values of one graph, or all numbers or NumPy arrays.
        seeds: Weight of each result: the derivative by it of what is asked for.

    Returns:
        The results, and the derivatives, one per input. Both may be the results of a traced function.

    Raises:
        TracingError: If there is not one seed per result, or inputs of two kinds are mixed.
    """
    traced = [x for x in (*inputs, *seeds) if isinstance(x, Value)]
    if not traced:
        return _on_numbers(function, inputs, seeds)
    graph = traced[0].graph
    results = [as_value(graph, y) for y in function(*(as_value(graph, x) for x in inputs))]
    return list(results), vector_jacobian(graph, results, [as_value(graph, s) for s in seeds], inputs)


def vector_jacobian(graph: Graph, results: Sequence[Value], seeds: Sequence[Value], inputs: Sequence[Value]) -> list[Value]:
    """Derive sum(seeds * results) by inputs, as further nodes of the same graph.

    Args:
        graph: That all values belong to.
        results: Traced results.
        seeds: Weight of each.
        inputs: By which to derive, each with the others held: any nodes of the graph, also some in the middle of it.

    Raises:
        TracingError: If there is not one seed per result.
    """
    if len(results) != len(seeds):
        raise TracingError(f"An adjoint of {len(results)} results got {len(seeds)} seeds; expected one for each.")
    wanted = {x.index for x in inputs}
    slopes: dict[int, Value] = {}

    def add(index: int, slope: Value) -> None:
        slopes[index] = slopes[index] + slope if index in slopes else slope

    for result, seed in zip(results, seeds, strict=True):
        add(result.index, seed)
    # Nodes are in order of creation, so whoever uses a node stands after it: its slope is whole when its turn comes.
    reached = _reach(graph, wanted)
    for index in range(max((r.index for r in results), default=-1), -1, -1):
        slope = slopes.get(index)
        if slope is None or slope.constant == 0.0 or index in wanted:
            continue
        for argument, part in _parts(graph, index, slope):
            if argument in reached:
                add(argument, part())
    zero = as_value(graph, 0.0)
    return [slopes.get(x.index, zero) for x in inputs]


def _reach(graph: Graph, wanted: set[int]) -> set[int]:
    """Return the nodes that depend on a wanted one: what flows back to others would be dropped in the end."""
    reached = set(wanted)
    for index, node in enumerate(graph.nodes):
        if node[0] not in ("input", "const") and any(a in reached for a in node[1:]):
            reached.add(index)
    return reached


def _parts(graph: Graph, index: int, slope: Value) -> list[tuple[int, Callable[[], Value]]]:
    """Return the arguments of a node, and what yields the share of its slope that each receives."""
    node, result = graph.nodes[index], Value(graph, index)
    if index in graph.known_slopes:
        argument, by_argument = graph.known_slopes[index]
        return [(argument, lambda: slope * by_argument())]
    operation = node[0]
    if operation in ("input", "const", *_FLAT):
        return []
    if operation == "result":
        raise TracingError("A repeated step has no derivative; keep `repeat` out of what is differentiated.")
    a = node[1]
    x = Value(graph, a)
    if operation == "neg":
        return [(a, lambda: -slope)]
    if operation == "sqrt":
        zero = result == 0.0
        return [(a, lambda: ops.where(zero, 0.0, slope * (0.5 / ops.where(zero, 1.0, result))))]
    if operation == "abs":
        return [(a, lambda: ops.where(x < 0.0, -slope, slope))]
    b = node[2]
    y = Value(graph, b)
    if operation == "select":
        mask, c = Mask(graph, a), node[3]
        return [(b, lambda: ops.where(mask, slope, 0.0)), (c, lambda: ops.where(mask, 0.0, slope))]
    return {
        "+": [(a, lambda: slope), (b, lambda: slope)],
        "-": [(a, lambda: slope), (b, lambda: -slope)],
        "*": [(a, lambda: slope * y), (b, lambda: slope * x)],
        "/": [(a, lambda: slope / y), (b, lambda: -(slope / y * result))],
    }[operation]


_FLAT = ("floor", "exponent", "mantissa", "power_of_two", "<", "<=", ">", ">=", "==", "!=", "and", "or", "not")
"""Operations without a slope: steps, and the parts of a number, which only occur within functions of known slope."""


def _on_numbers(
    function: Callable[..., Sequence[Any]], inputs: Sequence[Any], seeds: Sequence[Any]
) -> tuple[list[Any], list[Any]]:
    graph = Graph()
    values = [graph.input(f"x{i}") for i in range(len(inputs))]
    weights = [graph.input(f"s{i}") for i in range(len(seeds))]
    results, slopes = adjoint(function, values, weights)
    numbers = {v.index: x for v, x in zip((*values, *weights), (*inputs, *seeds), strict=True)}
    both = evaluate(graph, [*results, *slopes], numbers)
    return both[: len(results)], both[len(results) :]


def evaluate(graph: Graph, values: Sequence[Value], numbers: Mapping[int, Any]) -> list[Array]:
    """Compute traced values in float64 NumPy: the readable twin of what is printed as C.

    Args:
        graph: That the values belong to.
        values: What to compute.
        numbers: Of each input node its number or array, by index.

    Raises:
        TracingError: If an input that is needed has no number.
    """
    needed = _needed(graph, [v.index for v in values])
    known: dict[int, Any] = {}
    with np.errstate(all="ignore"):  # both sides of every `where` are computed, as on lanes
        for index in sorted(needed):
            operation, *arguments = graph.nodes[index]
            if operation == "input":
                if index not in numbers:
                    raise TracingError(f"The traced input {arguments[0]!r} has no number.")
                known[index] = np.asarray(numbers[index], np.float64)
            elif operation == "const":
                known[index] = np.float64(arguments[0])
            elif operation == "loop":
                known[index] = _repeated(graph.loops[index], [known[a] for a in arguments])
            elif operation == "result":
                known[index] = known[arguments[0]][int(known[arguments[1]])]
            else:
                known[index] = _NUMPY[operation](*(known[a] for a in arguments))
    return [known[v.index] for v in values]


def _repeated(loop: Loop, arguments: list[Any]) -> list[Any]:
    size = len(loop.state)
    fixed = dict(zip(loop.fixed, arguments[size:], strict=True))

    def numbers(state: Any) -> dict[int, Any]:
        return {**fixed, **dict(zip(loop.state, state, strict=True))}

    def step(state: Any, _: Any) -> Any:
        return tuple(evaluate(loop.graph, loop.results, numbers(state)))

    goes_on = Value(loop.graph, loop.goes_on.index)
    return list(
        ops.repeat(loop.times, step, tuple(arguments[:size]), (), lambda s: evaluate(loop.graph, [goes_on], numbers(s))[0])
    )


def needed_inputs(graph: Graph, results: Sequence[Any]) -> set[int]:
    """Return the input nodes, by index, that traced results depend on."""
    needed = _needed(graph, [r.index for r in results if isinstance(r, Value)])
    return {index for index in needed if graph.nodes[index][0] == "input"}


def _needed(graph: Graph, roots: Sequence[int]) -> set[int]:
    found: set[int] = set()
    stack = list(roots)
    while stack:
        index = stack.pop()
        if index not in found:
            found.add(index)
            if graph.nodes[index][0] not in ("input", "const"):
                stack.extend(graph.nodes[index][1:])
    return found


_NUMPY: dict[str, Callable[..., Any]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.divide,
    "neg": np.negative,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
    "==": np.equal,
    "!=": np.not_equal,
    "and": np.logical_and,
    "or": np.logical_or,
    "not": np.logical_not,
    "select": np.where,
    "sqrt": np.sqrt,
    "abs": np.abs,
    "floor": np.floor,
    "power_of_two": ops.NumpyOps.power_of_two,
    "mantissa": lambda x: ops.NumpyOps.binary_parts(x)[0],
    "exponent": lambda x: ops.NumpyOps.binary_parts(x)[1],
}
