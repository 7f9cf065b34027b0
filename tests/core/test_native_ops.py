"""Generated code as it runs, on lanes and one by one, against the same functions on NumPy float32: to the bit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from airworthy.core.arrays import ArrayAny, ArrayF32
from airworthy.core.tracing import jacobian

Rows = dict[str, ArrayAny]

PATHS = ("lanes", "scalar")

ZEROS_AND_SMALL = [0.0, -0.0, 1e-45, -1e-40, 1.17549435e-38]  # denormals, the smallest normal number
ORDINARY = [1.0, -1.0, 1.0 + 2.0**-23, 0.5, -2.5, 3.0, 8388609.0]
HUGE = [3.4028235e38, -1e38, np.inf, -np.inf, np.nan]
SPECIAL = np.array(ZEROS_AND_SMALL + ORDINARY + HUGE, np.float32)


def _inputs() -> ArrayF32:
    """Every pair of special values with a few thirds, and random numbers of many sizes, shape (3, 16 k)."""
    a, b, c = (x.ravel() for x in np.meshgrid(SPECIAL, SPECIAL, SPECIAL[[1, 5, 9, 14, 16]], indexing="ij"))
    rng = np.random.default_rng(2)
    near, wide = rng.normal(size=(3, 2000)), rng.normal(size=(3, 2000)) * 10.0 ** rng.uniform(-20, 20, (3, 2000))
    angles = rng.uniform(-200.0, 200.0, (3, 2000))
    values = np.concatenate([np.stack([a, b, c]), near, wide, angles], axis=1).astype(np.float32)
    return np.ascontiguousarray(values[:, : values.shape[1] // 16 * 16])


INPUTS = _inputs()


@pytest.fixture(scope="module", params=PATHS)
def ran(request: pytest.FixtureRequest, probe: Callable[..., Rows]) -> Rows:
    """What generated code made of `INPUTS`, on lanes and one by one."""
    return probe(request.param, INPUTS)


@pytest.fixture(scope="module")
def expected(traced_operations: Callable[..., dict[str, Any]]) -> Rows:
    """The same functions on NumPy float32 arrays."""
    with np.errstate(all="ignore"):
        rows = traced_operations(*INPUTS)
    return {name: np.asarray(value, np.float32) for name, value in rows.items()}


def assert_same_bits(actual: ArrayF32, expected: ArrayF32, what: str = "") -> None:
    """Equal bits; of NaN only that it is one, since its sign and payload are nobody's promise."""
    assert actual.dtype == expected.dtype == np.float32
    differ = actual.view(np.uint32) != expected.view(np.uint32)
    differ &= ~(np.isnan(actual) & np.isnan(expected))
    where = np.flatnonzero(differ)[:4]
    assert not differ.any(), (
        f"{what}: {differ.sum()} differ, e.g. of {INPUTS[:, where].T}: {actual[where]}, not {expected[where]}"
    )


def test_every_operation_equals_numpy_to_the_bit(ran: Rows, expected: Rows) -> None:
    assert len(expected) >= 36
    for name, value in expected.items():
        assert_same_bits(ran[name], value, name)


def test_special_values_are_really_met(expected: Rows) -> None:
    """Otherwise the test above could not fail: denormal, infinite, undefined and signed-zero results occur."""
    for name in ("add", "multiply", "divide"):
        value = expected[name]
        assert np.isnan(value).any()
        assert np.isinf(value).any()
        assert ((value == 0.0) & np.signbit(value)).any()
        assert ((value != 0.0) & (np.abs(value) < np.finfo(np.float32).tiny)).any()


@pytest.mark.parametrize("name", ["multiply_add", "multiply_subtract", "negated_multiply_add"])
def test_multiply_adds_round_twice(ran: Rows, expected: Rows, name: str) -> None:
    """A contracted one rounds once. In float64 that is seen: there the product of two float32 is exact."""
    a, b, c = INPUTS.astype(np.float64)
    with np.errstate(all="ignore"):
        exact = {"multiply_add": b * c + a, "multiply_subtract": a * c - b, "negated_multiply_add": a - c * c}[name]
        once = exact.astype(np.float32)
    ordinary = np.isfinite(once) & (np.abs(once) > 1e-30)
    contracted = ordinary & (once != expected[name])
    assert contracted.sum() > 100  # so many inputs would show it
    np.testing.assert_array_equal(ran[name][contracted], expected[name][contracted])


@pytest.mark.parametrize(("name", "allowed"), [("sin", 9e-8), ("cos", 9e-8)])
def test_sine_and_cosine_are_right_to_rounding(ran: Rows, name: str, allowed: float) -> None:
    a = INPUTS[0].astype(np.float64)
    near = np.abs(a) < 200.0
    error = np.abs(ran[name][near] - getattr(np, name)(a[near]))
    assert error.max() <= allowed


def test_arctan2_is_right_to_two_roundings(ran: Rows) -> None:
    a, b = INPUTS[:2].astype(np.float64)
    good = np.isfinite(a) & np.isfinite(b) & (a != 0.0) & (np.maximum(np.abs(a), np.abs(b)) > 1e-37)
    exact = np.arctan2(a, b)[good]
    spacing = np.spacing(np.abs(exact).astype(np.float32))
    assert (np.abs(ran["arctan2"][good] - exact) <= 2.0 * np.maximum(spacing, 2.0**-24)).all()


@pytest.mark.parametrize(
    ("name", "exact", "allowed"),
    [
        ("exp", np.exp, 1e-7),
        ("log", np.log, 1e-7),
        ("tanh", np.tanh, 2e-7),
        ("softplus", lambda x: np.log1p(np.exp(x)), 3e-7),
        ("arccos", np.arccos, 3e-7),
    ],
)
def test_functions_are_right_to_a_few_roundings(
    ran: Rows, name: str, exact: Callable[[ArrayAny], ArrayAny], allowed: float
) -> None:
    x = INPUTS[0].astype(np.float64)
    with np.errstate(all="ignore"):
        good = {"log": x > 0.0, "arccos": np.abs(x) < 1.0}.get(name, (x >= -87.0) & (x < 88.7)) & np.isfinite(x)
        truth = exact(x[good])
    large = np.abs(truth) > 1e-37  # below, float32 itself has less digits
    assert large.sum() > 1000
    assert (np.abs(ran[name][good][large] / truth[large] - 1.0) <= allowed).all()


def test_lanes_and_single_numbers_agree_to_the_bit(probe: Callable[..., Rows]) -> None:
    lanes, scalar = (probe(path, INPUTS) for path in PATHS)
    for name, value in lanes.items():
        for k, (row, other) in enumerate(zip(np.atleast_2d(value), np.atleast_2d(scalar[name]), strict=True)):
            if name == "words":
                np.testing.assert_array_equal(row, other)
            else:
                assert_same_bits(row, other, f"{name} {k}")


def test_a_lane_does_not_depend_on_its_place_or_neighbours(probe: Callable[..., Rows]) -> None:
    order = np.random.default_rng(4).permutation(INPUTS.shape[1])
    straight, shuffled = probe("lanes", INPUTS), probe("lanes", np.ascontiguousarray(INPUTS[:, order]))
    for name, value in straight.items():
        moved = np.ascontiguousarray(value[..., order])
        for k, (row, other) in enumerate(zip(np.atleast_2d(shuffled[name]), np.atleast_2d(moved), strict=True)):
            if name == "words":
                np.testing.assert_array_equal(row, other)
            else:
                assert_same_bits(row, other, f"{name} {k}")


def test_results_may_overwrite_arguments(ran: Rows) -> None:
    """The probe hands `with_record` one array for its argument and its results; parameters read 1, 1.5 and 2."""
    a, b, c = INPUTS
    with np.errstate(all="ignore"):
        for row, value in zip(ran["record"], (b + np.float32(1.5), c + a, a * np.float32(2.0)), strict=True):
            assert_same_bits(row, value)


def test_a_traced_jacobian_equals_the_same_on_float64(ran: Rows, bent_equation: Callable[..., Any]) -> None:
    points = ((np.abs(INPUTS) > 0.05) & (np.abs(INPUTS) < 5.0)).all(axis=0)
    assert points.sum() > 1500
    x = INPUTS[:, points].astype(np.float64)
    values, slopes = jacobian(bent_equation, tuple(x))
    # Some ten roundings of 6e-8; measured 4e-7 of values up to 5, 6e-7 of slopes up to 10.
    np.testing.assert_allclose(ran["bent"][:, points], values, rtol=1e-6, atol=1e-6)
    for row, slope in zip(ran["bent_slopes"][:, points], [s for per_output in slopes for s in per_output], strict=True):
        np.testing.assert_allclose(row, np.broadcast_to(slope, row.shape), rtol=1e-6, atol=2e-6)
