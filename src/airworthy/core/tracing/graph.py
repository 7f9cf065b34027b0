"""The graph of a traced function: values, masks, and the simplifications made while it grows."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from airworthy.core.errors import AirworthyError
from airworthy.core.layout import Layout
from airworthy.core.ops import packed, scalars_of

Number = int | float

NODE_LIMIT = 20_000
"""More nodes than this mean a loop that should not have been traced."""


class TracingError(AirworthyError):
    """An equation did something that cannot be traced; the message says what to write instead."""


class Graph:
    """Nodes in order of creation, each `(operation, *arguments)`; equal nodes are stored once.

    Simplifications hold for every finite number, to the bit but for the sign of a zero. A term that is zero whatever the data
    (0 x, x - x, 0 / x) is dropped, although NaN or infinity would have made it NaN.
    """

    def __init__(self) -> None:
        self.nodes: list[tuple[Any, ...]] = []
        self.known_slopes: dict[int, tuple[int, Callable[[], Any]]] = {}
        """Of a node that is a function of another as a whole: that one, and what yields its slope by it."""
        self.loops: dict[int, Loop] = {}
        """Of a node that is a loop: what it repeats."""
        self._index: dict[tuple[Any, ...], int] = {}

    def add(self, *node: Any) -> int:
        """Return the index of the node, new or already there."""
        # A float key would merge 0.0 with -0.0 and never find NaN again: key constants by their bits.
        key = (node[0], node[1].hex()) if node[0] == "const" else node
        found = self._index.get(key)
        if found is not None:
            return found
        if len(self.nodes) >= NODE_LIMIT:
            raise TracingError(f"A traced function exceeded {NODE_LIMIT} operations; keep loops outside it.")
        self.nodes.append(node)
        self._index[key] = len(self.nodes) - 1
        return len(self.nodes) - 1

    def add_loop(self, loop: Loop, arguments: Sequence[int]) -> int:
        """Return the index of a new loop; its arguments are where its state starts, then what is fixed."""
        self.nodes.append(("loop", *arguments))
        self.loops[len(self.nodes) - 1] = loop
        return len(self.nodes) - 1

    def input(self, code: str) -> Value:
        """Return a value that the surrounding native code names `code`."""
        return Value(self, self.add("input", code))

    def constant(self, number: Number) -> Value:
        """Return a build-time number."""
        return Value(self, self.add("const", float(number)))

    def needed(self, results: Sequence[int]) -> list[int]:
        """Return the nodes that results are made of, themselves among them, arguments first."""
        found, stack = set[int](), list(results)
        while stack:
            index = stack.pop()
            if index not in found:
                found.add(index)
                stack += self.nodes[index][1:] if self.nodes[index][0] not in ("input", "const") else ()
        return sorted(found)

    def number(self, index: int) -> float | None:
        """Return the number at a node, None where it is not a constant."""
        node = self.nodes[index]
        return node[1] if node[0] == "const" else None


class Loop(NamedTuple):
    """A step that is traced once, in a graph of its own, and repeated."""

    times: int
    """At most."""
    graph: Graph
    state: list[int]
    """Input nodes of the step's graph: its state,"""
    fixed: list[int]
    """and what it reads beside."""
    results: list[Value]
    """The next state."""
    goes_on: Mask


def _truth_error(kind: str) -> TracingError:
    return TracingError(
        f"A traced {kind} was used as a truth value (if, while, and, or, min, max); write where(condition, a, b) instead."
    )


class Mask:
    """Result of a comparison, for `where` only; `&`, `|` and `~` combine masks."""

    def __init__(self, graph: Graph, index: int):
        self.graph, self.index = graph, index

    @property
    def scalar_ops(self) -> type[ValueOps]:
        return ValueOps

    def __bool__(self) -> bool:
        raise _truth_error("comparison")

    def __and__(self, other: Mask) -> Mask:
        return Mask(self.graph, self.graph.add("and", self.index, _mask_index(other)))

    def __or__(self, other: Mask) -> Mask:
        return Mask(self.graph, self.graph.add("or", self.index, _mask_index(other)))

    def __invert__(self) -> Mask:
        return Mask(self.graph, self.graph.add("not", self.index))


def _mask_index(x: Any) -> int:
    if not isinstance(x, Mask):
        raise TracingError(f"A traced comparison was combined with {type(x).__name__}; expected another comparison.")
    return x.index


class Value:
    """A traced scalar."""

    __array_ufunc__ = None  # numpy numbers on the left defer to the operators below
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, graph: Graph, index: int):
        self.graph, self.index = graph, index

    @property
    def scalar_ops(self) -> type[ValueOps]:
        return ValueOps

    @property
    def constant(self) -> float | None:
        """The number that this value is known to be while tracing, else None."""
        return self.graph.number(self.index)

    def _with(self, operation: Callable[[Value, Value], Any], other: Any) -> Any:
        # Duals of traced values carry out operations with traced values themselves.
        if getattr(other, "scalar_ops", ValueOps).rank > ValueOps.rank:
            return NotImplemented
        return operation(self, as_value(self.graph, other))

    def __add__(self, other: Any) -> Value:
        return self._with(_add, other)

    def __radd__(self, other: Any) -> Value:
        return _add(as_value(self.graph, other), self)

    def __sub__(self, other: Any) -> Value:
        return self._with(_subtract, other)

    def __rsub__(self, other: Any) -> Value:
        return _subtract(as_value(self.graph, other), self)

    def __mul__(self, other: Any) -> Value:
        return self._with(_multiply, other)

    def __rmul__(self, other: Any) -> Value:
        return _multiply(as_value(self.graph, other), self)

    def __truediv__(self, other: Any) -> Value:
        return self._with(_divide, other)

    def __rtruediv__(self, other: Any) -> Value:
        return _divide(as_value(self.graph, other), self)

    def __neg__(self) -> Value:
        return _negate(self)

    def __pos__(self) -> Value:
        return self

    def __abs__(self) -> Value:
        return ValueOps.absolute(self)

    def __pow__(self, exponent: float) -> Value:
        if exponent == 0.5:
            return ValueOps.sqrt(self)
        if exponent != 2:
            raise TracingError(f"Only the powers 2 and 0.5 are traced, not {exponent!r}; multiply instead.")
        return _multiply(self, self)

    def __lt__(self, other: Any) -> Mask:
        return self._with(partial(_compare, "<"), other)

    def __le__(self, other: Any) -> Mask:
        return self._with(partial(_compare, "<="), other)

    def __gt__(self, other: Any) -> Mask:
        return self._with(partial(_compare, ">"), other)

    def __ge__(self, other: Any) -> Mask:
        return self._with(partial(_compare, ">="), other)

    def __eq__(self, other: object) -> Mask:  # type: ignore[override]
        return self._with(partial(_compare, "=="), other)

    def __ne__(self, other: object) -> Mask:  # type: ignore[override]
        return self._with(partial(_compare, "!="), other)

    def __bool__(self) -> bool:
        raise _truth_error("value")

    def __float__(self) -> float:
        raise TracingError("A traced value was turned into a number; use the functions of airworthy.core.ops.")


def as_value(graph: Graph, x: Any) -> Value:
    """Return `x` as a value of this graph; numbers become constants."""
    if isinstance(x, Value):
        if x.graph is not graph:
            raise TracingError("A traced equation met a value of another trace; hand it over as an input.")
        return x
    try:
        return graph.constant(float(x))
    except (TypeError, ValueError):
        raise TracingError(f"A traced equation met {type(x).__name__}; expected a scalar.") from None


def _constant(x: Any) -> Any:
    return x.constant if isinstance(x, Value) else x


def _fold(a: Value, b: Value) -> tuple[float | None, float | None]:
    return a.graph.number(a.index), b.graph.number(b.index)


def _node(operation: str, *values: Value | Mask) -> Value:
    graph = values[0].graph
    return Value(graph, graph.add(operation, *(v.index for v in values)))


def _negated(value: Value) -> Value | None:
    """`x` where the value is `-x`."""
    node = value.graph.nodes[value.index]
    return Value(value.graph, node[1]) if node[0] == "neg" else None


def _add(a: Value, b: Value) -> Value:
    x, y = _fold(a, b)
    if x is not None and y is not None:
        return a.graph.constant(x + y)
    if x == 0.0:
        return b
    if y == 0.0:
        return a
    if (n := _negated(b)) is not None:
        return _subtract(a, n)
    if (n := _negated(a)) is not None:
        return _subtract(b, n)
    return _node("+", *sorted((a, b), key=lambda v: v.index))


def _subtract(a: Value, b: Value) -> Value:
    x, y = _fold(a, b)
    if x is not None and y is not None:
        return a.graph.constant(x - y)
    if y == 0.0:
        return a
    if x == 0.0:
        return _negate(b)
    if a.index == b.index:  # a structural zero, also for NaN and infinity
        return a.graph.constant(0.0)
    if (n := _negated(b)) is not None:
        return _add(a, n)
    return _node("-", a, b)


def _multiply(a: Value, b: Value) -> Value:
    x, y = _fold(a, b)
    if x is not None and y is not None:
        return a.graph.constant(x * y)
    if x is not None:
        a, b, x, y = b, a, y, x
    if y == 0.0:  # a structural zero, also against NaN: it is known before any data is
        return b
    if y == 1.0:
        return a
    if y == -1.0:
        return _negate(a)
    if (n := _negated(a)) is not None:
        return _negate(_multiply(n, b))
    if (n := _negated(b)) is not None:
        return _negate(_multiply(a, n))
    return _node("*", *sorted((a, b), key=lambda v: v.index))


def _divide(a: Value, b: Value) -> Value:
    x, y = _fold(a, b)
    if y == 0.0:
        raise TracingError("A traced equation divides by the constant zero; guard the denominator.")
    if x is not None and y is not None:
        return a.graph.constant(x / y)
    if x == 0.0:
        return a
    if y is not None and _is_power_of_two(y):  # exact as a product
        return _multiply(a, a.graph.constant(1.0 / y))
    return _node("/", a, b)


def _is_power_of_two(number: float) -> bool:
    """Tell whether dividing by the number and multiplying by its inverse agree to the bit in float32."""
    return math.frexp(number)[0] in (0.5, -0.5) and 2.0**-126 <= abs(number) <= 2.0**126


def _negate(a: Value) -> Value:
    number = a.graph.number(a.index)
    if number is not None:
        return a.graph.constant(-number)
    return n if (n := _negated(a)) is not None else _node("neg", a)


def _compare(operation: str, a: Value, b: Value) -> Mask:
    return Mask(a.graph, a.graph.add(operation, a.index, b.index))


class ValueOps:
    """The operations of `airworthy.core.ops` on traced values."""

    rank = 1

    @staticmethod
    def where(condition: Any, a: Any, b: Any) -> Value:
        """Return a select node; none where the condition is known while tracing, or both sides are one node.

        Args:
            condition: A mask of the graph, or a bool.
            a: Where it holds: a traced value or a number.
            b: Elsewhere, alike.
        """
        if not isinstance(condition, Mask):
            graph = a.graph if isinstance(a, Value) else b.graph
            return as_value(graph, a) if condition else as_value(graph, b)
        graph = condition.graph
        a, b = as_value(graph, a), as_value(graph, b)
        return a if a.index == b.index else _node("select", condition, a, b)

    @staticmethod
    def sqrt(x: Value) -> Value:
        number = x.graph.number(x.index)
        return x.graph.constant(math.sqrt(number)) if number is not None and number >= 0 else _node("sqrt", x)

    @staticmethod
    def absolute(x: Value) -> Value:
        number = x.graph.number(x.index)
        return x.graph.constant(abs(number)) if number is not None else _node("abs", x)

    @staticmethod
    def floor(x: Value) -> Value:
        number = x.graph.number(x.index)
        return x.graph.constant(math.floor(number)) if number is not None and math.isfinite(number) else _node("floor", x)

    @staticmethod
    def power_of_two(k: Value) -> Value:
        number = k.graph.number(k.index)
        return _node("power_of_two", k) if number is None else k.graph.constant(2.0 ** min(max(number, -126.0), 127.0))

    @staticmethod
    def binary_parts(x: Value) -> tuple[Value, Value]:
        number = x.graph.number(x.index)
        if number is None:
            return _node("mantissa", x), _node("exponent", x)
        mantissa, exponent = math.frexp(number)
        return x.graph.constant(2.0 * mantissa), x.graph.constant(exponent - 1)

    @staticmethod
    def repeat(count: int, step: Any, start: Any, fixed: Any, goes_on: Any) -> Any:
        """Trace a step once, as the body of a loop.

        Args:
            count: Times at most.
            step: As of `airworthy.core.ops.repeat`, like those that follow.
            start: State.
            fixed: What steps read; numbers stay numbers.
            goes_on: Of the state.
        """
        graph = next(x.graph for x in (*scalars_of(start), *scalars_of(fixed)) if isinstance(x, Value))
        begin, body = [as_value(graph, x) for x in scalars_of(start)], Graph()
        state = [body.input(f"state{i}") for i in range(len(begin))]
        read: dict[int, Value] = {}
        for x in scalars_of(fixed):
            if isinstance(x, Value) and x.constant is None:
                as_value(graph, x)
                read.setdefault(x.index, body.input(f"fixed{len(read)}"))
        numbers = (read[x.index] if isinstance(x, Value) and x.constant is None else _constant(x) for x in scalars_of(fixed))
        inside = packed(start, iter(state))
        after = [as_value(body, x) for x in scalars_of(step(inside, packed(fixed, numbers)))]
        if len(after) != len(state):
            raise TracingError(f"A repeated step returned {len(after)} scalars for a state of {len(state)}.")
        loop = Loop(count, body, [v.index for v in state], [v.index for v in read.values()], after, goes_on(inside))
        index = graph.add_loop(loop, [*(v.index for v in begin), *read])
        results = [Value(graph, graph.add("result", index, graph.constant(i).index)) for i in range(len(state))]
        return packed(start, iter(results))

    @staticmethod
    def known_slope(x: Value, value: Callable[[Any], Any], slope: Callable[[Any, Any], Any]) -> Value:
        """Return the traced result, and note its slope for whoever derives the graph backwards.

        Args:
            x: Traced value.
            value: Makes the result of `x`.
            slope: Makes the result's derivative by `x` of `x` and the result.
        """
        result: Value = value(x)
        if result.constant is None:
            x.graph.known_slopes.setdefault(result.index, (x.index, lambda: slope(x, result)))
        return result


# ---- A traced function as C: the block that hand-written native code calls --------------------------------------------------

_INLINE_DEPTH = 24
"""Nesting of single-use terms within one C expression; keeps the text short and within any compiler's bracket limit."""


class TracedBlock:
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
) -> TracedBlock:
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
    return TracedBlock(name, f"static INLINE void {name}({signature}) {{\n{body}}}\n", count)


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
    lines, text, count = _lines(graph, [v.index for v in values], {}, "t")
    # Results are written after every read: an output may be the array that an input came from.
    finals = [f"  const F r{i}_ = {text[v.index]};\n" for i, v in enumerate(values)]
    stores = [f"  {target} = r{i}_;\n" for i, target in enumerate(targets)]
    return "".join([*lines, *finals, *stores]), count


def _lines(graph: Graph, roots: list[int], inputs: Mapping[int, str], prefix: str) -> tuple[list[str], dict[int, str], int]:
    """Return statements, the expression of each node behind them, and the number of operations.

    Args:
        graph: Of the nodes.
        roots: What is needed.
        inputs: Expressions of input nodes that stand for something else than they say.
        prefix: Of the names of temporaries.
    """
    uses = _uses(graph, roots)
    text: dict[int, str] = {}
    depth: dict[int, int] = {}
    lines: list[str] = []
    count = 0
    # What a loop reads is worked out before it, once.
    looped = {a for index in uses if graph.nodes[index][0] == "loop" for a in graph.nodes[index][1:]}
    for index in sorted(uses):
        node = graph.nodes[index]
        if node[0] == "loop":
            text[index], depth[index] = f"{prefix}{index}_", 0
            found, added = _loop_lines(graph.loops[index], text[index], [text[a] for a in node[1:]])
            lines, count = [*lines, *found], count + added
            continue
        if node[0] == "result":
            text[index], depth[index] = f"{text[node[1]]}[{int(graph.nodes[node[2]][1])}]", 0
            continue
        expression = inputs.get(index) or _expression(node, text)
        if node[0] in ("input", "const"):
            text[index], depth[index] = expression, 0
            continue
        count += node[0] != "neg"
        level = 1 + max(depth[a] for a in node[1:])
        if uses[index] == 1 and level < _INLINE_DEPTH and index not in looped:
            text[index], depth[index] = f"({expression})", level
        else:
            kind = "M" if node[0] in _MASKS else "F"
            lines.append(f"  const {kind} {prefix}{index}_ = {expression};\n")
            text[index], depth[index] = f"{prefix}{index}_", 0
    return lines, text, count


def _loop_lines(loop: Loop, name: str, arguments: list[str]) -> tuple[list[str], int]:
    """Return statements that repeat a step while any lane goes on, and its operations, counted once.

    Args:
        loop: The step.
        name: Of the array that holds its state.
        arguments: Expressions of where the state starts, then of what is fixed.
    """
    size = len(loop.state)
    inputs = {index: f"{name}[{i}]" for i, index in enumerate(loop.state)}
    inputs |= dict(zip(loop.fixed, arguments[size:], strict=True))
    head, mask, checks = _lines(loop.graph, [loop.goes_on.index], inputs, f"{name}g")
    body, text, count = _lines(loop.graph, [v.index for v in loop.results], inputs, f"{name}b")
    begin = [f"  {name}[{i}] = {a};\n" for i, a in enumerate(arguments[:size])]
    # The next state is written when all of it is known; lanes that are through keep theirs.
    after = [f"  const F {name}n{i}_ = {text[v.index]};\n" for i, v in enumerate(loop.results)]
    store = [f"  {name}[{i}] = N::select({name}on_, {name}n{i}_, {name}[{i}]);\n" for i in range(size)]
    return [
        f"  F {name}[{size}];\n",
        *begin,
        f"  PRAGMA_NOUNROLL for (int {name}i_ = 0; {name}i_ < {loop.times}; ++{name}i_) {{\n",
        *head,
        f"  const M {name}on_ = {mask[loop.goes_on.index]};\n",
        f"  if (!N::any({name}on_)) break;\n",
        *body,
        *after,
        *store,
        "  }\n",
    ], checks + count + size


def _uses(graph: Graph, roots: Iterable[int]) -> dict[int, int]:
    """Return how often each needed node is used."""
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
        # By the bits of a float32: sign, eight of the exponent and its offset 127, twenty-three of the mantissa.
        "power_of_two": "N::from_bits(N::whole({0} + N::c(127.0f)) << 23)",
        "exponent": "(N::from_int(N::signed_of(N::to_bits({0}) >> 23)) - N::c(127.0f))",
        "mantissa": "N::from_bits((N::to_bits({0}) & N::u(0x7fffffu)) | N::u(0x3f800000u))",
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
