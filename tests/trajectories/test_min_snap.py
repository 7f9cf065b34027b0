"""Minimum snap against the project's reference, textbook KKT and first principles."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airworthy.core import frames
from airworthy.core.arrays import Array
from airworthy.core.errors import AirworthyError
from airworthy.trajectories import Keyframe, course, kinematic_state, minimum_snap, thrust_command
from airworthy.trajectories.min_snap import hermite_spline, solve_dense
from airworthy.trajectories.polynomial import basis_row, derivative_factor

PUBLISHED = ("robustness", "extended", "cluttered", "infinity", "line", "hover", "sigmoid")
Columns = dict[str, Array]
FREE = (None, None, None)


def compare(name: str, reference: Columns) -> None:
    """Positions, velocities, attitudes and inputs, turned to z down; spec/sousvide 12 asks for 1e-4, seven decimals are
    printed."""
    sample = course(name).trajectory().sample(reference["t"])
    state = kinematic_state(sample)
    ours = {
        "p": frames.z_down_vector(sample.position),
        "v": frames.z_down_vector(sample.velocity),
        "q": frames.z_down_attitude(state.attitude),
        "w": frames.z_down_rates(state.body_rate),
    }
    for key, values in ours.items():
        columns = np.stack([reference[key + axis] for axis in ("xyzw" if key == "q" else "xyz")], axis=-1)
        np.testing.assert_allclose(values, columns, atol=6e-8)
    command = frames.z_down_thrust(thrust_command(state.thrust, mass=1.144, thrust_max=27.6))
    np.testing.assert_allclose(command, reference["thrust"], atol=6e-8)


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_courses_match_the_reference(name: str, course_reference: dict[str, Columns]) -> None:
    compare(name, course_reference[name])


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_courses_match_every_sample(name: str, data_dir: Path) -> None:
    table = np.genfromtxt(data_dir / "sousvide" / f"reference_{name}.csv", delimiter=",", names=True)
    compare(name, {column: table[column] for column in table.dtype.names})


def random_keyframes(rng: np.random.Generator, count: int) -> list[Keyframe]:
    times = np.concatenate(([0.0], np.cumsum(rng.uniform(0.3, 3.0, count - 1))))
    frames_: list[Keyframe] = []
    for i, t in enumerate(times):
        tail = (0.0, 0.0) if i in (0, count - 1) else FREE
        values = [(float(rng.normal()), *tail) for _ in range(4)]
        frames_.append(Keyframe(float(t), *values))  # type: ignore[arg-type]
    return frames_


def textbook(keyframes: list[Keyframe], count: int, axis: str) -> Array:
    """The KKT system of spec/sousvide section 3 in plain time, solved with NumPy: badly scaled, but for short paths good
    enough."""
    times = [k.time for k in keyframes]
    spans, n = np.diff(times), (len(keyframes) - 1) * count
    cost, rows, right = np.zeros((n, n)), [], []
    order = 2 if axis == "yaw" else 4
    for s, span in enumerate(spans):
        factor = derivative_factor(count, order) * span ** (np.arange(count) - order + 0.5)
        cost[s * count : (s + 1) * count, s * count : (s + 1) * count] = factor.T @ factor
    for i, keyframe in enumerate(keyframes):
        for d, value in enumerate(getattr(keyframe, axis)):
            left, here = np.zeros(n), np.zeros(n)
            if i > 0:
                left[(i - 1) * count : i * count] = basis_row(count, d, spans[i - 1])
            if i < len(spans):
                here[i * count : (i + 1) * count] = basis_row(count, d, 0.0)
            if value is None:
                rows.append(left - here)
                right.append(0.0)
            else:
                rows += [row for row in (left, here) if np.any(row)]
                right += [value] * (int(np.any(left)) + int(np.any(here)))
    a = np.array(rows)
    kkt = np.block([[cost, a.T], [a, np.zeros((len(a), len(a)))]])
    solution = np.linalg.lstsq(kkt, np.concatenate((np.zeros(n), right)), rcond=None)[0]
    return solution[:n].reshape(-1, count)


@pytest.mark.parametrize("count", [6, 7, 8])
def test_agrees_with_the_textbook_system(count: int) -> None:
    keyframes = random_keyframes(np.random.default_rng(count), 5)
    path = minimum_snap(keyframes, count)
    # In plain time the system loses about ten digits.
    powers = np.diff(path.knots)[:, None] ** np.arange(count)
    for index, axis in enumerate(("x", "y", "z")):
        np.testing.assert_allclose(path.coefficients[:, index], textbook(keyframes, count, axis) * powers, atol=1e-5)
    np.testing.assert_allclose(path.yaw_coefficients, textbook(keyframes, count, "yaw") * powers, atol=1e-5)


@settings(max_examples=30)
@given(st.integers(0, 10_000), st.integers(2, 12))
def test_the_banded_solve_agrees_with_the_dense_one(seed: int, count: int) -> None:
    keyframes = random_keyframes(np.random.default_rng(seed), count)
    path = minimum_snap(keyframes)
    for index, axis in enumerate(("x", "y", "z")):
        dense = solve_dense(np.diff(path.knots), [getattr(k, axis) for k in keyframes], 8, 4)
        # Neighbouring durations differ by up to 10: the seventh powers in the cost cost ten digits.
        np.testing.assert_allclose(dense, path.coefficients[:, index], atol=1e-6 * np.max(np.abs(dense)))


def test_free_nodes_are_smooth_to_the_sixth_derivative() -> None:
    path = minimum_snap(random_keyframes(np.random.default_rng(3), 7))
    before, after = (path.sample(path.knots[1:-1] + shift) for shift in (-1e-9, 1e-9))
    for name in ("position", "velocity", "acceleration", "jerk", "snap"):
        np.testing.assert_allclose(getattr(before, name), getattr(after, name), atol=1e-5)


def test_conditions_are_met_and_costs_are_least() -> None:
    rng = np.random.default_rng(5)
    keyframes = random_keyframes(rng, 6)
    path = minimum_snap(keyframes)
    for keyframe in keyframes:
        at = path.sample(keyframe.time)
        np.testing.assert_allclose(at.position, [keyframe.x[0], keyframe.y[0], keyframe.z[0]], atol=1e-9)
        assert at.yaw == pytest.approx(keyframe.yaw[0], abs=1e-9)
    # Any other spline through the same points, here with other node velocities, has more snap.
    spans, values = np.diff(path.knots), np.zeros((6, 4, 3))
    values[:, 0] = path.sample(path.knots).position
    fixed = np.zeros((6, 4), dtype=bool)
    fixed[:, 0] = fixed[0, :3] = fixed[-1, :3] = True
    fixed[2, 1] = True
    values[2, 1] = path.sample(path.knots[2]).velocity + 0.1
    other = hermite_spline(spans, values, fixed)
    assert _snap(other, spans) > _snap(path.coefficients, spans)


def _snap(coefficients: Array, spans: Array) -> float:
    return float(sum(np.sum((derivative_factor(8, 4) @ c.T) ** 2) / t**7 for c, t in zip(coefficients, spans, strict=True)))


def test_prescribed_inner_derivatives_hold() -> None:
    keyframes = [
        Keyframe(0.0, (0.0, 0.0), (0.0, 0.0), (1.0, 0.0), (0.0,)),
        Keyframe(1.0, (1.0, 2.0, None, None), (None, None, 0.5, None), (1.0, None, None, None), (0.3, None, None)),
        Keyframe(2.0, (0.0, 0.0), (1.0, 0.0), (1.0, 0.0), (0.0,)),
    ]
    path = minimum_snap(keyframes)
    for shift in (-1e-10, 0.0):
        at = path.sample(1.0 + shift)
        assert (at.velocity[0], at.acceleration[1]) == pytest.approx((2.0, 0.5), abs=1e-7)


def test_what_is_left_open_is_closed_by_lower_derivatives() -> None:
    # Two positions and nothing else: snap, jerk, acceleration can all vanish, so the flight is a straight line at even speed.
    path = minimum_snap([Keyframe(0.0, (0.0,), (1.0,), (2.0,), ()), Keyframe(2.0, (4.0,), (1.0,), (2.0,), ())])
    sample = path.sample(np.linspace(0.0, 2.0, 9))
    np.testing.assert_allclose(sample.velocity, np.broadcast_to([2.0, 0.0, 0.0], (9, 3)), atol=1e-9)
    np.testing.assert_allclose(sample.yaw, 0.0, atol=1e-12)


def test_long_paths_take_the_banded_solve() -> None:
    t = np.arange(1001.0)
    keyframes = [
        Keyframe(float(s), (float(np.cos(s)), *FREE), (float(np.sin(s)), *FREE), (1.0, *FREE), (0.0,))
        if 0 < s < 1000
        else Keyframe(float(s), (float(np.cos(s)), 0.0), (float(np.sin(s)), 0.0), (1.0, 0.0), (0.0,))
        for s in t
    ]
    with pytest.raises(AirworthyError, match="unknowns"):
        minimum_snap(keyframes)  # yaw goes through the dense solve
    spans, values, fixed = np.ones(1000), np.zeros((1001, 4, 1)), np.zeros((1001, 4), dtype=bool)
    values[:, 0, 0], fixed[:, 0] = np.cos(t), True
    fixed[[0, -1], 1] = True
    coefficients = hermite_spline(spans, values, fixed)
    np.testing.assert_allclose(coefficients[:, 0, 0], np.cos(t[:-1]), atol=1e-12)


@pytest.mark.parametrize(
    ("keyframes", "count", "message"),
    [
        ([Keyframe(0.0)], 8, "at least 2"),
        ([Keyframe(0.0), Keyframe(0.0)], 8, "increase"),
        ([Keyframe(1.0), Keyframe(2.0)], 8, "from 0"),
        ([Keyframe(0.0), Keyframe(1.0, (float("nan"),))], 8, "finite"),
        ([Keyframe(0.0), Keyframe(1.0, (0.0,) * 5)], 8, "at most 4"),
        ([Keyframe(0.0), Keyframe(1.0)], 1, "2 to 12"),
        ([Keyframe(0.0, (0.0, 0.0, 0.0, 0.0)), Keyframe(1.0, (1.0, 0.0, 0.0, 0.0))], 6, "contradict"),
    ],
)
def test_impossible_keyframes_are_refused(keyframes: list[Keyframe], count: int, message: str) -> None:
    with pytest.raises(AirworthyError, match=message):
        minimum_snap(keyframes, count)


def test_too_little_fixed_for_the_banded_solve() -> None:
    with pytest.raises(AirworthyError, match="Too little"):
        hermite_spline(np.ones(2), np.zeros((3, 4, 1)), np.zeros((3, 4), dtype=bool))
