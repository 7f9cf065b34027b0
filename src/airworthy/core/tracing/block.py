"""A traced function as C: the block that hand-written native code calls."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from airworthy.core.layout import Layout
from airworthy.core.tracing.graph import Graph, Mask, TracingError, Value, as_value

_INLINE_DEPTH = 24
"""Nesting of single-use terms within one C expression; keeps the text short and within any compiler's bracket limit."""


class Block:
    """C source of a traced function.

    Attributes:
        name: Name of the C function.
        source: A static member function: inputs as `const F*` (vectors) or `F` (scalars), outputs as `F*`.
        operation_count: Arithmetic operations after sharing common terms.
    """

    def __init__(self, name: str, source: str, operation_count: int):
        self.name, self.source, self.operation_count = name, source, operation_count


def trace(
    function: Callable[..., Any],
    name: str,
    inputs: Mapping[str, int | None],
    outputs: Mapping[str, int | None],
    records: dict[str, tuple[Layout, str]] | None = None,
    constants: dict[str, Any] | None = None,
    context: str = "",
) -> Block:
    """Trace an equation into a C function.

    Args:
        function: The equation; called as `function(**inputs, **records, **constants)`.
        name: Name of the C function.
        inputs: Per argument None for a scalar or the length of a vector.
        outputs: Per result, in the order returned, None for a scalar or the length of a vector.
        records: Per argument a `Layout` and the C macro that reads one of its rows, e.g. `(layout, "PAR")`.
        constants: Build-time arguments, handed over as they are.
        context: C declaration of what the record macros need, put before the other parameters.

    Raises:
        TracingError: If the function branches on a value or returns something of another shape.
    """
    graph = Graph()
    arguments: dict[str, Any] = dict(constants or {})
    for argument, length in inputs.items():
        arguments[argument] = _input(graph, argument, length)
    for argument, (layout, macro) in (records or {}).items():
        arguments[argument] = layout.record(_reader(graph, macro))
    results = _flatten(function(**arguments))
    targets = [t for out, length in outputs.items() for t in _targets(out, length)]
    if len(results) != len(targets):
        raise TracingError(f"{name} returned {len(results)} scalars where its outputs name {len(targets)}.")
    values = [as_value(graph, r) for r in results]
    signature = ", ".join(
        [*([context] if context else []), *(_parameter(n, k) for n, k in inputs.items()), *(f"F* {n}" for n in outputs)]
    )
    body, count = _emit(graph, values, targets)
    return Block(name, f"static INLINE void {name}({signature}) {{\n{body}}}\n", count)


def _input(graph: Graph, name: str, length: int | None) -> Value | tuple[Value, ...]:
    if length is None:
        return graph.input(name)
    return tuple(graph.input(f"{name}[{i}]") for i in range(length))


def _reader(graph: Graph, macro: str) -> Callable[[int], Value]:
    return lambda row: graph.input(f"{macro}({row})")


def _parameter(name: str, length: int | None) -> str:
    return f"const F {name}" if length is None else f"const F* {name}"


def _targets(name: str, length: int | None) -> list[str]:
    return [f"*{name}"] if length is None else [f"{name}[{i}]" for i in range(length)]


def _flatten(result: Any) -> list[Any]:
    if isinstance(result, tuple | list):
        return [x for item in result for x in _flatten(item)]
    if isinstance(result, Mask):
        raise TracingError("A traced function returned a comparison; return where(condition, 1.0, 0.0).")
    return [result]


def _emit(graph: Graph, values: list[Value], targets: list[str]) -> tuple[str, int]:
    uses = _uses(graph, [v.index for v in values])
    text: dict[int, str] = {}
    depth: dict[int, int] = {}
    lines: list[str] = []
    count = 0
    for index in sorted(uses):
        node = graph.nodes[index]
        expression = _expression(node, text)
        if node[0] in ("input", "const"):
            text[index], depth[index] = expression, 0
            continue
        count += node[0] != "neg"
        level = 1 + max(depth[a] for a in node[1:])
        if uses[index] == 1 and level < _INLINE_DEPTH:
            text[index], depth[index] = f"({expression})", level
        else:
            kind = "M" if node[0] in _MASKS else "F"
            lines.append(f"  const {kind} t{index}_ = {expression};\n")
            text[index], depth[index] = f"t{index}_", 0
    # Results are written after every read: an output may be the array that an input came from.
    finals = [f"  const F r{i}_ = {text[v.index]};\n" for i, v in enumerate(values)]
    stores = [f"  {target} = r{i}_;\n" for i, target in enumerate(targets)]
    return "".join([*lines, *finals, *stores]), count


def _uses(graph: Graph, roots: Iterable[int]) -> dict[int, int]:
    """How often each needed node is used."""
    uses: dict[int, int] = {}
    stack = list(roots)
    while stack:
        index = stack.pop()
        uses[index] = uses.get(index, 0) + 1
        if uses[index] == 1 and graph.nodes[index][0] not in ("input", "const"):
            stack.extend(graph.nodes[index][1:])
    return uses


_MASKS = {"<", "<=", ">", ">=", "==", "!=", "and", "or", "not"}
_INFIX = {"+", "-", "*", "/", "<", "<=", ">", ">=", "==", "!="}
_CALLS = {"sqrt": "N::sqrt", "abs": "N::abs", "floor": "N::floor"}


def _expression(node: tuple[Any, ...], text: dict[int, str]) -> str:
    operation = node[0]
    if operation == "input":
        return str(node[1])
    if operation == "const":
        return _literal(node[1])
    arguments = [text[a] for a in node[1:]]
    if operation in _INFIX:
        return f"{arguments[0]} {operation} {arguments[1]}"
    if operation in _CALLS:
        return f"{_CALLS[operation]}({arguments[0]})"
    return {
        "neg": "-{0}",
        "select": "N::select({0}, {1}, {2})",
        "and": "({0} & {1})",
        "or": "({0} | {1})",
        "not": "N::invert({0})",
    }[operation].format(*arguments)


def _literal(number: float) -> str:
    """C of the float32 nearest to a number. Decimals of the float64 itself could round to its neighbour."""
    with np.errstate(over="ignore", under="ignore"):
        nearest = np.float32(number)
    if not np.isfinite(nearest):
        return f"N::from_bits(N::u({nearest.view(np.uint32):#x}u))"
    return f"N::c({float(nearest)!r}f)"
