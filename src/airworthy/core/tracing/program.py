"""A traced function as text: short lines that another machine reads, checks and computes, without the code that they came from.

A line is an input (`state[3]`), a number (`0.5`) or an operation with the numbers of earlier lines (`* 0 1`). What comes from
a stranger can compute numbers and nothing else.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from airworthy.core.arrays import Array, ArrayFloat
from airworthy.core.errors import AirworthyError
from airworthy.core.tracing.graph import Graph, Value, as_value
from airworthy.core.tracing.reverse import evaluate

__all__ = ["Program", "record_program"]

LINES_MAX = 8_000
"""Ours: the largest that is shipped has a few hundred."""
_MASK, _VALUE = "m", "v"
_COMPARISON, _ARITHMETIC = (_MASK, (_VALUE, _VALUE)), (_VALUE, (_VALUE, _VALUE))
_FUNCTION = (_VALUE, (_VALUE,))
_OPERATIONS: dict[str, tuple[str, tuple[str, ...]]] = {
    **dict.fromkeys(("+", "-", "*", "/"), _ARITHMETIC),
    **dict.fromkeys(("<", "<=", ">", ">=", "==", "!="), _COMPARISON),
    **dict.fromkeys(("neg", "sqrt", "abs", "floor", "power_of_two", "mantissa", "exponent"), _FUNCTION),
    "and": (_MASK, (_MASK, _MASK)),
    "or": (_MASK, (_MASK, _MASK)),
    "not": (_MASK, (_MASK,)),
    "select": (_VALUE, (_MASK, _VALUE, _VALUE)),
}
"""What an operation yields, and takes: values or masks."""
_INPUT = re.compile(r"([a-z_]{1,32})\[(\d{1,4})\]")


@dataclass(frozen=True)
class Program:
    """Lines that compute results from named vectors.

    Raises:
        AirworthyError: A line is none, or takes what is not there.
    """

    inputs: tuple[tuple[str, int], ...]
    """Name and length of each vector."""
    lines: tuple[str, ...]
    results: tuple[int, ...]
    """Line of each result."""

    def __post_init__(self) -> None:
        if len(self.lines) > LINES_MAX:
            raise AirworthyError(f"A program has {len(self.lines):,} lines; expected at most {LINES_MAX:,}.")
        kinds = self._built[2]
        for line in self.results:
            if not 0 <= line < len(kinds) or kinds[line] != _VALUE:
                raise AirworthyError(f"A program's result is line {line}; expected the number of a line that is a value.")

    @cached_property
    def _built(self) -> tuple[Graph, dict[int, tuple[str, int]], list[str], list[int]]:
        """Graph, which input its nodes are, kind of each line, and node of each line."""
        graph, held, kinds, nodes = Graph(), dict[int, tuple[str, int]](), list[str](), list[int]()
        sizes = dict(self.inputs)
        for number, line in enumerate(self.lines):
            node, kind = _node(line, sizes, kinds, nodes)
            if node is None:
                raise AirworthyError(f"Line {number} of a program is {line[:80]!r}, which is no operation on earlier lines.")
            nodes.append(graph.add(*node))
            kinds.append(kind)
            if node[0] == "input":
                name, _, place = node[1][:-1].partition("[")
                held[nodes[-1]] = name, int(place)
        return graph, held, kinds, nodes

    def reads(self, name: str, first: int = 0) -> bool:
        """Tell whether an input is read at all, from one of its numbers on."""
        return any(of == name and place >= first for of, place in self._built[1].values())

    def run(self, **given: ArrayFloat | Sequence[Any]) -> Array:
        """Compute the results, (results, env), float64.

        Args:
            given: Of each input its numbers, (length, env), or (length,) of one flight.

        Raises:
            AirworthyError: An input is missing or of another length.
        """
        for name, size in self.inputs:
            if name not in given or len(given[name]) != size:
                found = len(given[name]) if name in given else "none"
                raise AirworthyError(f"A program got {found} numbers of {name}; expected {size}.")
        graph, held, _, nodes = self._built
        numbers = {node: given[name][place] for node, (name, place) in held.items()}
        found_values = evaluate(graph, [Value(graph, nodes[line]) for line in self.results], numbers)
        shape = np.broadcast_shapes(*(np.shape(x) for values in given.values() for x in values)) if given else ()
        return np.array([np.broadcast_to(x, shape) for x in found_values], float).reshape(len(self.results), *shape)


def _node(line: str, sizes: Mapping[str, int], kinds: Sequence[str], nodes: Sequence[int]) -> tuple[Any, str]:
    """Return the node of a line and its kind; (None, "") where it is none."""
    if found := _INPUT.fullmatch(line):
        return (("input", line), _VALUE) if int(found[2]) < sizes.get(found[1], 0) else (None, "")
    word, *arguments = line.split(" ")
    if word in _OPERATIONS:
        kind, wanted = _OPERATIONS[word]
        places = [int(x) if x.isdecimal() and x.isascii() and len(x) < 6 else -1 for x in arguments]
        fits = len(places) == len(wanted) and all(0 <= place < len(kinds) for place in places)
        if not fits or tuple(kinds[place] for place in places) != wanted:
            return None, ""
        return (word, *(nodes[place] for place in places)), kind
    try:
        number = float(line)
    except ValueError:
        return None, ""
    # Functions of `core.ops` compare with infinity; what is no number has no use.
    return (("const", number), _VALUE) if not math.isnan(number) else (None, "")


def record_program(function: Callable[..., Sequence[Any]], inputs: Mapping[str, int]) -> Program:
    """Trace an equation into a program.

    Args:
        function: Called as `function(**inputs)` with tuples of traced scalars; returns a flat sequence.
        inputs: Name and length of each.

    Raises:
        TracingError: The function branches on a value.
    """
    graph = Graph()
    given = {name: tuple(graph.input(f"{name}[{i}]") for i in range(size)) for name, size in inputs.items()}
    results = [as_value(graph, x).index for x in function(**given)]
    needed = graph.needed(results)
    order = {index: number for number, index in enumerate(needed)}

    def text(index: int) -> str:
        word, *arguments = graph.nodes[index]
        if word in ("input", "const"):
            return str(arguments[0]) if word == "input" else repr(float(arguments[0]))
        return " ".join([word, *(str(order[x]) for x in arguments)])

    lines = tuple(text(index) for index in needed)
    return Program(tuple(inputs.items()), lines, tuple(order[index] for index in results))
