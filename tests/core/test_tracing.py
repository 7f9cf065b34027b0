"""The tracer: what is shared, folded and dropped, what the C looks like, and how misuse is told."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from airworthy.core import ops
from airworthy.core.errors import AirworthyError
from airworthy.core.layout import Layout
from airworthy.core.tracing import Graph, Mask, TracedBlock, Value, jacobian, trace
from airworthy.core.tracing.graph import NODE_LIMIT, TracingError
from airworthy.core.vectors import cross, matrix_columns, rotate

X3: dict[str, int | None] = {"x": None, "y": None, "z": None}


def scalar(function: Callable[..., Any]) -> TracedBlock:
    """Trace a function of x, y, z with one result."""
    return trace(function, "f", X3, {"out": None})


def body(block: TracedBlock) -> list[str]:
    return [line.strip() for line in block.source.splitlines()[1:-1]]


# ---- sharing ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("function", "count"),
    [
        (lambda x, y, z: x + y, 1),
        (lambda x, y, z: (x + y) * (x + y), 2),
        (lambda x, y, z: (x + y) * (y + x), 2),  # sums and products commute
        (lambda x, y, z: (x * y) + (y * x) * z, 3),
        (lambda x, y, z: (x - y) * (y - x), 3),  # differences do not
        (lambda x, y, z: x / y + x / y, 2),
        (lambda x, y, z: ops.sqrt(x) + ops.sqrt(x), 2),
        (lambda x, y, z: ops.where(x < y, x, y) + ops.where(x < y, x, y), 3),
        (lambda x, y, z: -(x + y), 1),  # signs are free
        (lambda x, y, z: ops.sin(x) + ops.cos(x), 50),  # reduction 11, series 24, quadrant 14, sum 1
    ],
)
def test_equal_terms_are_computed_once(function: Callable[..., Any], count: int) -> None:
    assert scalar(function).operation_count == count


def test_operations_of_known_vector_expressions() -> None:
    """Counted by hand: a cross product has 6 products and 3 differences; the rotation's forms are those of its docstring."""
    assert trace(cross, "f", {"a": 3, "b": 3}, {"out": 3}).operation_count == 9
    # Two cross products, t = 2 u x v (3), w t (3), two sums of vectors (6).
    assert trace(rotate, "f", {"q": 4, "v": 3}, {"out": 3}).operation_count == 30
    # Nine products of components, nine sums, each doubled, and three times 1 - 2 (..).
    assert trace(matrix_columns, "f", {"q": 4}, {"out": 9}).operation_count == 30


def test_a_shared_term_is_a_line_of_its_own_and_a_single_use_is_not() -> None:
    shared = body(scalar(lambda x, y, z: (x + y) * (x + y)))
    assert shared == ["const F t3_ = x + y;", "const F r0_ = (t3_ * t3_);", "*out = r0_;"]
    assert body(scalar(lambda x, y, z: (x + y) * z)) == ["const F r0_ = (z * (x + y));", "*out = r0_;"]


def test_what_no_result_needs_is_not_printed() -> None:
    def wasteful(x: Value, y: Value, z: Value) -> Value:
        _ = ops.sqrt(x * y * z)
        return x + y

    block = scalar(wasteful)
    assert block.operation_count == 1
    assert "sqrt" not in block.source


def test_a_long_chain_stays_within_any_bracket_limit() -> None:
    def chain(x: Value, y: Value, z: Value) -> Value:
        for k in range(500):
            x = y + x * (k + 1.5)
        return x

    deepest = max(line.count("(") - line.count("N::c(") for line in scalar(chain).source.splitlines())
    assert 8 < deepest < 64


# ---- folding ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (lambda x, y, z: x + 0.0, "x"),
        (lambda x, y, z: 0.0 + x, "x"),
        (lambda x, y, z: x - 0.0, "x"),
        (lambda x, y, z: 0.0 - x, "(-x)"),
        (lambda x, y, z: x * 1.0, "x"),
        (lambda x, y, z: x * -1.0, "(-x)"),
        (lambda x, y, z: x * 0.0, "N::c(0.0f)"),
        (lambda x, y, z: 0.0 * (x / y), "N::c(0.0f)"),
        (lambda x, y, z: x - x, "N::c(0.0f)"),
        (lambda x, y, z: 0.0 / x, "N::c(0.0f)"),
        (lambda x, y, z: x / 1.0, "x"),
        (lambda x, y, z: x / 4.0, "(x * N::c(0.25f))"),
        (lambda x, y, z: x / -0.5, "(x * N::c(-2.0f))"),
        (lambda x, y, z: x / 3.0, "(x / N::c(3.0f))"),
        (lambda x, y, z: -(-x), "x"),  # noqa: B002
        (lambda x, y, z: +x, "x"),
        (lambda x, y, z: x + (-y), "(x - y)"),
        (lambda x, y, z: (-x) + y, "(y - x)"),
        (lambda x, y, z: x - (-y), "(x + y)"),
        (lambda x, y, z: (-x) * (-y), "(x * y)"),
        (lambda x, y, z: (-x) * y, "(-(x * y))"),
        (lambda x, y, z: abs(x) ** 2, "(t3_ * t3_)"),
        (lambda x, y, z: ops.where(x < y, z, z), "z"),
        (lambda x, y, z: ops.where(True, x, y), "x"),
        (lambda x, y, z: ops.where(2.0 < 1.0, x, y), "y"),
        (lambda x, y, z: Value(x.graph, x.graph.constant(2.0).index) * 3.0 + 1.0, "N::c(7.0f)"),
        (lambda x, y, z: ops.sqrt(x.graph.constant(2.25)), "N::c(1.5f)"),
        (lambda x, y, z: ops.absolute(x.graph.constant(-2.0)), "N::c(2.0f)"),
        (lambda x, y, z: ops.floor(x.graph.constant(-1.5)), "N::c(-2.0f)"),
        (lambda x, y, z: x.graph.constant(3.0) - x.graph.constant(1.0), "N::c(2.0f)"),
        (lambda x, y, z: x.graph.constant(3.0) / x.graph.constant(8.0), "N::c(0.375f)"),
        (lambda x, y, z: -x.graph.constant(3.0), "N::c(-3.0f)"),
    ],
)
def test_simplifications(function: Callable[..., Any], text: str) -> None:
    assert body(scalar(function))[-2] == f"const F r0_ = {text};"


def test_structural_zeros_are_dropped_throughout() -> None:
    """A rotation about z applied to a vector along x: of 30 operations 5 remain."""
    block = trace(lambda z, w, v: rotate((0.0, 0.0, z, w), (v, 0.0, 0.0)), "f", {"z": None, "w": None, "v": None}, {"out": 3})
    # t = 2 z v along y (2); w t (1); v - z t (2).
    assert block.operation_count == 5
    assert body(block)[-1] == "out[2] = r2_;"
    assert "const F r2_ = N::c(0.0f);" in body(block)


@pytest.mark.parametrize("number", [2.0**127, 2.0**-127, 3.0, 2.0**-149, float("inf"), 0.1])
def test_a_quotient_stays_one_where_a_product_would_round_otherwise(number: float) -> None:
    assert " / " in scalar(lambda x, y, z: x / number).source


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (1.0, "N::c(1.0f)"),
        (0.1, "N::c(0.10000000149011612f)"),
        (-1e-9, "N::c(-9.999999717180685e-10f)"),
        # As a decimal this float64 lies above the middle of two float32, as a number exactly on it: ties go to even.
        (1.0 + 2.0**-24, "N::c(1.0f)"),
        (1e39, "N::from_bits(N::u(0x7f800000u))"),
        (float("-inf"), "N::from_bits(N::u(0xff800000u))"),
        (float("nan"), "N::from_bits(N::u(0x7fc00000u))"),
        (1e-50, "N::c(0.0f)"),
    ],
)
def test_constants_are_the_nearest_float32(number: float, text: str) -> None:
    assert body(scalar(lambda x, y, z: ops.where(x < y, x, number)))[-2] == f"const F r0_ = (N::select((x < y), x, {text}));"


def test_zeros_of_both_signs_and_no_number_are_constants_of_their_own() -> None:
    graph = Graph()
    assert graph.constant(0.0).index != graph.constant(-0.0).index
    assert graph.constant(float("nan")).index == graph.constant(float("nan")).index
    assert graph.constant(2).constant == 2.0
    assert graph.input("x").constant is None


# ---- the C function --------------------------------------------------------------------------------------------------


def test_signature_and_record_reading() -> None:
    layout = Layout({"mass": (), "gain": (2,)})
    block = trace(
        lambda v, s, p, doubled: ((v[0] * p.gain[1], s / p.mass), 2.0 * s if doubled else s),
        "law",
        {"v": 2, "s": None},
        {"pair": 2, "single": None},
        {"p": (layout, "ROW")},
        {"doubled": True},
        "const float* table",
    )
    assert block.source == (
        "static INLINE void law(const float* table, const F* v, const F s, F* pair, F* single) {\n"
        "  const F r0_ = (v[0] * ROW(2));\n"
        "  const F r1_ = (s / ROW(0));\n"
        "  const F r2_ = (s * N::c(2.0f));\n"
        "  pair[0] = r0_;\n"
        "  pair[1] = r1_;\n"
        "  *single = r2_;\n"
        "}\n"
    )
    assert block.name == "law"


def test_results_are_written_after_every_read() -> None:
    lines = body(trace(lambda v: (v[1], v[0]), "swap", {"v": 2}, {"out": 2}))
    stores = [k for k, line in enumerate(lines) if line.startswith("out[")]
    assert all(k >= 2 for k in stores)
    assert not any("v[" in lines[k] for k in stores)


def test_arguments_may_be_named_like_anything_of_the_traced_code() -> None:
    names = trace(lambda r0, t3, t4: (r0 + t3) * (r0 + t3) * t4, "f", dict.fromkeys(("r0", "t3", "t4")), {"out": None})
    declared = re.findall(r"const F (\w+) =", names.source)
    assert not {"r0", "t3", "t4"} & set(declared)


def test_equal_functions_give_equal_text() -> None:
    """Kernels are found in the cache by their text."""
    assert trace(rotate, "f", {"q": 4, "v": 3}, {"out": 3}).source == trace(rotate, "f", {"q": 4, "v": 3}, {"out": 3}).source


def test_numbers_of_numpy_are_numbers() -> None:
    gain = np.float64(2.5)
    assert body(scalar(lambda x, y, z: gain * x - np.float32(0.5)))[0] == "const F r0_ = ((x * N::c(2.5f)) - N::c(0.5f));"


# ---- misuse ----------------------------------------------------------------------------------------------------------


TRUTH = "was used as a truth value (if, while, and, or, min, max); write where(condition, a, b) instead."


def _too_many(x: Value, y: Value, z: Value) -> Value:
    for k in range(NODE_LIMIT):
        x = x * y + k
    return x


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (
            lambda x, y, z: x if x > y else y,
            f"A traced comparison {TRUTH}",
        ),
        (
            lambda x, y, z: max(y, x),
            f"A traced comparison {TRUTH}",
        ),
        (
            lambda x, y, z: x or y,
            f"A traced value {TRUTH}",
        ),
        (
            lambda x, y, z: ops.where(z, x, y),
            f"A traced value {TRUTH}",
        ),
        (lambda x, y, z: float(x), "A traced value was turned into a number; use the functions of airworthy.core.ops."),
        (lambda x, y, z: x**3, "Only the powers 2 and 0.5 are traced, not 3; multiply instead."),
        (lambda x, y, z: x**1.5, "Only the powers 2 and 0.5 are traced, not 1.5; multiply instead."),
        (lambda x, y, z: x / 0.0, "A traced equation divides by the constant zero; guard the denominator."),
        (lambda x, y, z: 1.0 / (y * 0.0), "A traced equation divides by the constant zero; guard the denominator."),
        (lambda x, y, z: (x, y), "f returned 2 scalars where its outputs name 1."),
        (lambda x, y, z: x < y, "A traced function returned a comparison; return where(condition, 1.0, 0.0)."),
        (lambda x, y, z: x + np.zeros(3), "A traced equation met ndarray; expected a scalar."),
        (lambda x, y, z: np.zeros(3) + x, "A traced equation met ndarray; expected a scalar."),
        (lambda x, y, z: x + None, "A traced equation met NoneType; expected a scalar."),
        (lambda x, y, z: {"sum": x}, "A traced equation met dict; expected a scalar."),
        (
            lambda x, y, z: ops.where((x < y) & True, x, y),
            "A traced comparison was combined with bool; expected another comparison.",
        ),
        (
            lambda x, y, z: ops.where((x < y) | z, x, y),
            "A traced comparison was combined with Value; expected another comparison.",
        ),
        (lambda x, y, z: x + Graph().input("x"), "A traced equation met a value of another trace; hand it over as an input."),
        (_too_many, f"A traced function exceeded {NODE_LIMIT} operations; keep loops outside it."),
    ],
)
def test_misuse_says_what_to_write_instead(function: Callable[..., Any], message: str) -> None:
    with pytest.raises(TracingError) as error:
        scalar(function)
    assert str(error.value) == message
    assert isinstance(error.value, AirworthyError)


def test_functions_of_numpy_do_not_take_traced_values() -> None:
    with pytest.raises(TypeError):
        scalar(lambda x, y, z: np.sin(x))


def test_traced_values_are_no_keys() -> None:
    """A value compares to a mask, so a set or dictionary of values could not work."""
    with pytest.raises(TypeError):
        scalar(lambda x, y, z: {x: y}[x])


def test_comparisons_are_masks_and_reversed_ones_too() -> None:
    graph = Graph()
    x = graph.input("x")
    for mask in (x < 1.0, x == 1.0, x != 1.0, ~(x <= 1.0), (x < 1.0) | (x > 2.0)):
        assert isinstance(mask, Mask)
    one = 1.0
    assert (one > x).index == (x < one).index


def test_a_traced_jacobian_is_a_traced_function() -> None:
    block = trace(
        lambda x, y: jacobian(lambda a, b: (a * b, a + 1.0), (x, y)), "f", {"x": None, "y": None}, {"value": 2, "slope": 4}
    )
    # Slopes: y, x, 1, 0, with nothing to compute.
    assert block.operation_count == 2
    assert body(block)[2:6] == [
        f"const F r{k}_ = {text};" for k, text in zip(range(2, 6), ("y", "x", "N::c(1.0f)", "N::c(0.0f)"), strict=True)
    ]


def test_the_example_of_the_documentation_runs(repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a file of its own: Warp reads the source of kernels."""
    page = (repository / "docs" / "concepts" / "tracing.md").read_text()
    code, backwards = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    (tmp_path / "write_once.py").write_text(code)
    monkeypatch.syspath_prepend(str(tmp_path))
    example = importlib.import_module("write_once")
    x, force, slopes = example.velocity, example.force, example.slopes
    np.testing.assert_allclose(force, -0.3 * np.linalg.norm(x, axis=0) * x, rtol=0.0, atol=2e-6)
    length = np.linalg.norm(x, axis=0)
    expected = -0.3 * (np.eye(3)[:, :, None] * length + x[:, None] * x[None] / length)
    np.testing.assert_allclose(np.array(slopes), expected, rtol=0.0, atol=1e-14)

    found: dict[str, Any] = {}
    exec(compile(backwards, "tracing.md", "exec"), found)
    (height,), slopes = found["values"], found["slopes"]
    assert height == pytest.approx(1.0 + (np.log1p(np.exp(12.0)) - 9.81) * 0.125)
    np.testing.assert_allclose(slopes, [0.5, 0.125 / (1.0 + np.exp(-12.0))], rtol=1e-9)


def test_a_repeated_step_is_printed_once_whatever_the_count() -> None:
    def function(a: Any, b: Any) -> Any:
        read = a * b  # worked out before the loop, not in it
        return ops.repeat(count, lambda s, f: (s[0] * f[0] + f[1], s[0]), (a, 0.0), (read, b), lambda s: s[0] < 100.0)

    sizes = set()
    for count in (3, 300):
        block = trace(function, "f", dict.fromkeys("ab"), {"out": 2})
        sizes.add(block.operation_count)
        assert f"< {count};" in block.source
        before, _, body = block.source.partition("for (int")
        assert "a * b" in before
        assert "a * b" not in body
    assert len(sizes) == 1
    with pytest.raises(TracingError, match="returned 1 scalars for a state of 2"):
        trace(lambda a: ops.repeat(2, lambda s, f: (s[0],), (a, a), (), lambda s: s[0] < 1.0), "f", {"a": None}, {"out": 2})
