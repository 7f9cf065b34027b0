"""Named rows of a (row, environment) array: how parameters and state are stored for kernels and read by equations."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from types import SimpleNamespace
from typing import Any

import numpy as np

from airworthy.core.arrays import Array

Shape = tuple[int, ...]


class Layout:
    """Fields in order, each a scalar `()`, a vector `(k,)` or a matrix `(n, k)`, mapped to consecutive rows."""

    def __init__(self, fields: dict[str, Shape]):
        self.fields = dict(fields)
        self.offsets: dict[str, int] = {}
        size = 0
        for name, shape in fields.items():
            self.offsets[name] = size
            size += prod(shape)
        self.size = size
        """Number of rows."""

    def __contains__(self, name: str) -> bool:
        return name in self.fields

    def rows(self, name: str) -> slice:
        """Return the rows of a field, as a slice of the first axis."""
        start = self.offsets[name]
        return slice(start, start + prod(self.fields[name]))

    def writer(self, column: Array) -> Callable[[str, Any], None]:
        """Return a function (name, value) that fills a field's rows of one column, shape (size,)."""

        def put(name: str, value: Any) -> None:
            column[self.rows(name)] = np.asarray(value, float).ravel()

        return put

    def record(self, value: Callable[[int], Any]) -> SimpleNamespace:
        """Return fields as attributes: a scalar, a tuple, or a tuple of tuples of `value(row)`."""
        return SimpleNamespace(**{n: _nest(self.offsets[n], s, value)[0] for n, s in self.fields.items()})

    def c_enum(self, prefix: str) -> str:
        """Return C enumerators `PREFIX_name = row` for hand-written native code."""
        # Names instead of numbers in native code: a row that is added moves no other by hand.
        entries = ", ".join(f"{prefix}_{name} = {offset}" for name, offset in self.offsets.items())
        return f"enum {{ {entries}, {prefix}_COUNT = {self.size} }};"


def _nest(row: int, shape: Shape, value: Callable[[int], Any]) -> tuple[Any, int]:
    if not shape:
        return value(row), row + 1
    items = []
    for _ in range(shape[0]):
        item, row = _nest(row, shape[1:], value)
        items.append(item)
    return tuple(items), row
