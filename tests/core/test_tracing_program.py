"""Traced functions as text: the same numbers as the function, and what is refused of a stranger's lines."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from airworthy.core import ops
from airworthy.core.errors import AirworthyError
from airworthy.core.tracing.program import LINES_MAX, Program, record_program


def _function(x: Any, y: Any) -> list[Any]:
    inside = (x[0] > 0.0) & ~(y[0] < -1.0)
    return [ops.where(inside, ops.sqrt(ops.absolute(x[0])), ops.exp(y[0])), ops.arctan2(x[1], y[0]), x[0] * 2.0 + 1.0, 3.0]


def test_a_program_computes_what_the_function_does() -> None:
    program = record_program(_function, {"x": 2, "y": 1})
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(2, 500)), rng.normal(size=(1, 500))
    wanted = np.array([np.broadcast_to(v, 500) for v in _function(x, y)])
    # Functions beyond roots are polynomials in a program, as in kernels: right to float32.
    np.testing.assert_allclose(program.run(x=x, y=y), wanted, rtol=3e-7, atol=3e-7)
    again = Program(program.inputs, program.lines, program.results)
    np.testing.assert_array_equal(again.run(x=x, y=y), program.run(x=x, y=y))
    assert program.run(x=x[:, 0], y=y[:, 0]).shape == (4,)
    # A flight's numbers do not depend on the others.
    np.testing.assert_array_equal(program.run(x=x[:, 7:8], y=y[:, 7:8])[:, 0], program.run(x=x, y=y)[:, 7])


def test_what_is_read_is_known() -> None:
    program = record_program(lambda x, y: [x[1]], {"x": 2, "y": 3})
    assert (program.reads("x"), program.reads("x", 1), program.reads("x", 2), program.reads("y")) == (True, True, False, False)
    assert program.lines == ("x[1]",)


@pytest.mark.parametrize(
    ("lines", "results"),
    [
        (["x[2]"], [0]),  # beyond its length
        (["z[0]"], [0]),
        (["x[0]", "+ 0 1"], [1]),  # of itself
        (["x[0]", "+ 0"], [1]),
        (["x[0]", "< 0 0"], [1]),  # a comparison is no result
        (["x[0]", "select 0 0 0"], [1]),  # nor is a number a comparison
        (["x[0]", "__import__ 0"], [1]),
        (["nan"], [0]),
        (["x[0]", "+ -1 0"], [1]),
        (["x[0]", "+ 0 0 "], [1]),
        (["x[0]"], [1]),
        (["1.0"] * (LINES_MAX + 1), [0]),
    ],
)
def test_lines_that_are_none_are_refused(lines: list[str], results: list[int]) -> None:
    with pytest.raises(AirworthyError, match="program"):
        Program((("x", 2),), tuple(lines), tuple(results))


def test_inputs_of_another_length_are_refused() -> None:
    program = record_program(lambda x: [x[0]], {"x": 2})
    with pytest.raises(AirworthyError, match="got 3 numbers of x; expected 2"):
        program.run(x=np.zeros(3))
    with pytest.raises(AirworthyError, match="got none numbers of x"):
        program.run()
