"""Cubic B-splines against SciPy, their hull, and trajectories made from them."""

from __future__ import annotations

import numpy as np
import pytest
import scipy
from hypothesis import given, settings
from hypothesis import strategies as st

from airworthy.core.errors import AirworthyError
from airworthy.trajectories import Limits, UniformBspline, course, prove
from airworthy.trajectories.bspline import fit, interpolate


@given(st.integers(0, 100_000), st.integers(4, 12), st.floats(0.1, 3.0))
def test_agrees_with_scipy(seed: int, count: int, interval: float) -> None:
    points = np.random.default_rng(seed).normal(size=(count, 3))
    spline = UniformBspline(points, interval)
    reference = scipy.interpolate.BSpline(np.arange(-3, count + 1) * interval, points, 3)
    t = np.linspace(0.0, spline.duration, 50)[:-1]
    for order in range(3):
        np.testing.assert_allclose(spline.sample(t, order), reference(t, order), atol=1e-9 / interval**order)


def test_interpolation_is_the_clamped_cubic_spline() -> None:
    points = np.random.default_rng(0).normal(size=(7, 3))
    v0, v1 = np.array([1.0, 0.0, -1.0]), np.array([0.5, 0.2, 0.0])
    spline = interpolate(points, 0.5, v0, v1)
    reference = scipy.interpolate.CubicSpline(np.arange(7) * 0.5, points, bc_type=((1, v0), (1, v1)))
    t = np.linspace(0.0, 3.0, 61)
    np.testing.assert_allclose(spline.sample(t), reference(t), atol=1e-12)
    np.testing.assert_allclose(spline.sample(t, 1), reference(t, 1), atol=1e-11)
    np.testing.assert_allclose(interpolate(points[:2], 1.0).sample([0.0, 1.0]), points[:2], atol=1e-14)


@settings(max_examples=50)
@given(st.integers(0, 100_000))
def test_control_points_bound_derivatives(seed: int) -> None:
    spline = UniformBspline(np.random.default_rng(seed).normal(size=(8, 3)), 0.4)
    t = np.linspace(0.0, spline.duration, 500)
    for order in (1, 2):
        assert np.max(np.linalg.norm(spline.sample(t, order), axis=-1)) <= spline.bound(order) * (1 + 1e-12)
    slow = spline.slowed(1.0, 2.0)
    assert prove(slow.to_trajectory(0.0), Limits(speed=1.0 + 1e-9, acceleration=2.0 + 1e-9)).proven
    assert slow.slowed(1.0, 2.0).interval == pytest.approx(slow.interval)


def test_as_a_trajectory() -> None:
    spline = interpolate([[0, 0, 1], [1, 1, 1], [2, 0, 1.5], [3, 1, 1]], 1.0)
    path, t = spline.to_trajectory(), np.linspace(0.0, 3.0, 40)
    for order, name in enumerate(("position", "velocity", "acceleration")):
        np.testing.assert_allclose(getattr(path.sample(t), name), spline.sample(t, order), atol=1e-12)
    middle = path.sample(1.0)
    assert middle.yaw == pytest.approx(np.arctan2(middle.velocity[1], middle.velocity[0]), abs=1e-9)


def test_a_fit_follows_its_trajectory() -> None:
    path = course("sigmoid").trajectory()
    spline = fit(path, 0.25)
    t = np.linspace(0.0, path.duration, 300)
    # Cubic interpolation: error h^4 p'''' / 384, about 1e-4 here.
    np.testing.assert_allclose(spline.sample(t), path.sample(t).position, atol=5e-4)


@pytest.mark.parametrize(
    "call",
    [
        lambda: UniformBspline(np.zeros((3, 3)), 1.0),
        lambda: UniformBspline(np.zeros((4, 2)), 1.0),
        lambda: UniformBspline(np.full((4, 3), np.nan), 1.0),
        lambda: UniformBspline(np.zeros((4, 3)), 0.0),
        lambda: UniformBspline(np.zeros((4, 3)), 1.0).to_trajectory("sideways"),
        lambda: interpolate([[0, 0, 0]], 1.0),
    ],
)
def test_mistakes_are_named(call: object) -> None:
    with pytest.raises(AirworthyError):
        call()  # type: ignore[operator]


@pytest.mark.parametrize(("speed", "acceleration"), [(1.0, 1e6), (1e6, 2.0), (1.0, 2.0), (0.3, 2.0)])
def test_slowed_is_no_slower_than_one_of_its_limits_asks(speed: float, acceleration: float) -> None:
    spline = UniformBspline(np.random.default_rng(3).normal(size=(8, 3)), 0.1)
    slow = spline.slowed(speed, acceleration)
    # Flown f times as long, speeds are divided by f and accelerations by f^2: one of both is just met.
    assert max(slow.bound(1) / speed, slow.bound(2) / acceleration) == pytest.approx(1.0, rel=1e-12)
    assert spline.slowed(1e6, 1e6).interval == spline.interval
