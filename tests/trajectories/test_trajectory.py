"""Sampling, files, reversal, scaling, joining."""

from __future__ import annotations

import contextlib
import json
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airworthy.core.errors import AirworthyError, AssetError
from airworthy.trajectories import FlatSample, Limits, Trajectory, concatenate, course, laps, septic, yaw_fixed, yaw_ramp
from airworthy.trajectories.limits import path_usage
from airworthy.trajectories.yaw import path_headings

NAMES = [field.name for field in fields(FlatSample)]


@pytest.fixture(scope="module")
def path() -> Trajectory:
    return course("robustness").trajectory()


def cubic() -> Trajectory:
    """x = t^3, y = 1, z = 2 t over 2 s; yaw = t^2 / 4."""
    position = np.zeros((1, 3, 4))
    position[0, 0, 3], position[0, 1, 0], position[0, 2, 1] = 8.0, 1.0, 4.0
    return Trajectory([0.0, 2.0], position, [0.0, 2.0], [[0.0, 0.0, 1.0]])


def test_derivatives_of_a_cubic() -> None:
    t = np.array([[0.0, 0.5], [1.0, 2.0]])
    s = cubic().sample(t)
    zero, one = np.zeros_like(t), np.ones_like(t)
    np.testing.assert_allclose(s.position, np.stack((t**3, one, 2 * t), axis=-1), atol=1e-15)
    np.testing.assert_allclose(s.velocity, np.stack((3 * t**2, zero, 2 * one), axis=-1), atol=1e-15)
    np.testing.assert_allclose(s.acceleration, np.stack((6 * t, zero, zero), axis=-1), atol=1e-15)
    np.testing.assert_allclose(s.jerk, np.stack((6 * one, zero, zero), axis=-1), atol=1e-15)
    np.testing.assert_array_equal(s.snap, 0.0)
    np.testing.assert_allclose(s.yaw, t**2 / 4, atol=1e-15)
    np.testing.assert_allclose(s.yaw_rate, t / 2, atol=1e-15)
    np.testing.assert_allclose(s.yaw_acceleration, one / 2, atol=1e-15)


def test_each_derivative_is_that_of_the_one_before(path: Trajectory) -> None:
    # Central differences of a smooth function: error h^2 f'''/6, under 1e-5 for h = 1e-4.
    t, h = np.linspace(0.1, 14.9, 311) + 0.0042, 1e-4
    before, after, s = path.sample(t - h), path.sample(t + h), path.sample(t)
    for lower, higher in (("position", "velocity"), ("velocity", "acceleration"), ("acceleration", "jerk"), ("jerk", "snap")):
        slope = (getattr(after, lower) - getattr(before, lower)) / (2 * h)
        np.testing.assert_allclose(slope, getattr(s, higher), atol=1e-5)
    np.testing.assert_allclose((after.yaw - before.yaw) / (2 * h), s.yaw_rate, atol=1e-5)


def test_the_end_pose_is_held(path: Trajectory) -> None:
    end, later, early = path.sample(path.duration), path.sample([path.duration + 1e-9, 1e9]), path.sample(-1.0)
    np.testing.assert_array_equal(later.position, np.broadcast_to(end.position, (2, 3)))
    np.testing.assert_array_equal(early.position, path.sample(0.0).position)
    for name in ("velocity", "acceleration", "jerk", "snap", "yaw_rate", "yaw_acceleration"):
        assert not np.any(getattr(later, name))
        assert not np.any(getattr(early, name))


def test_a_time_has_the_same_bits_alone_and_among_others(path: Trajectory) -> None:
    t = np.random.default_rng(0).uniform(-1.0, path.duration + 1.0, size=20_000)
    together = path.sample(t)
    for index in (0, 1, 777, 16_383, 16_384, 19_999):
        alone = path.sample(t[index])
        for name in NAMES:
            np.testing.assert_array_equal(getattr(together, name)[index], getattr(alone, name))


def test_a_file_keeps_every_bit(path: Trajectory, tmp_path: Path) -> None:
    path.save(tmp_path / "path.json")
    again = Trajectory.load(tmp_path / "path.json")
    for name in ("knots", "coefficients", "yaw_knots", "yaw_coefficients"):
        np.testing.assert_array_equal(getattr(again, name), getattr(path, name))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "other"}, "format"),
        ({"version": 2}, "version"),
        ({"frame": "z_down"}, "z_up"),
        ({"extra": 1}, "unknown key"),
        ({"knots_s": [0.0, 1.0, 1.0]}, "position"),
        ({"knots_s": [0.0, "1"]}, "list of numbers"),
        ({"knots_s": [[0.0]]}, "list of numbers"),
        ({"position_coefficients_m": [[[1.0], [1.0]]]}, "shape"),
        ({"position_coefficients_m": [[[1.0], [1.0], [1.0, 2.0]]]}, "list of numbers"),
        ({"yaw_knots_s": None}, "list of numbers"),
        ({"yaw_knots_s": [0.0, 3.0]}, "one end"),
        ({"yaw_coefficients_rad": [[10**400]]}, "list of numbers"),
    ],
)
def test_a_damaged_file_is_refused(change: dict[str, object], message: str, tmp_path: Path) -> None:
    file = tmp_path / "path.json"
    cubic().save(file)
    file.write_text(json.dumps(json.loads(file.read_text()) | change))
    with pytest.raises(AssetError, match=message):
        Trajectory.load(file)


@settings(max_examples=300)
@given(data=st.data())
def test_hostile_bytes_never_do_more_than_raise(data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    file = tmp_path_factory.getbasetemp() / "hostile.json"
    cubic().save(file)
    text = bytearray(file.read_bytes())
    for _ in range(data.draw(st.integers(1, 6))):
        text[data.draw(st.integers(0, len(text) - 1))] = data.draw(st.integers(0, 255))
    file.write_bytes(bytes(text))
    with contextlib.suppress(AssetError):
        assert np.all(np.isfinite(Trajectory.load(file).sample(1.0).position))


def test_reversal_retraces(path: Trajectory) -> None:
    t = np.linspace(0.0, path.duration, 101)
    there, back = path.sample(t), path.reversed().sample(path.duration - t)
    for order, name in enumerate(("position", "velocity", "acceleration", "jerk")):
        np.testing.assert_allclose(getattr(back, name), (-1.0) ** order * getattr(there, name), atol=1e-10)
    np.testing.assert_allclose(back.yaw, there.yaw, atol=1e-12)


@given(st.floats(0.1, 10.0))
def test_scaling_divides_derivatives(factor: float) -> None:
    slow, t = cubic().scaled(factor), np.linspace(0.0, 2.0, 7)
    base, other = cubic().sample(t), slow.sample(t * factor)
    for order, name in enumerate(("position", "velocity", "acceleration", "jerk")):
        np.testing.assert_allclose(getattr(other, name) * factor**order, getattr(base, name), atol=1e-10)


def test_joining_and_laps() -> None:
    out = cubic()
    there_and_back = concatenate(out, out.reversed())
    assert there_and_back.duration == 4.0
    np.testing.assert_allclose(there_and_back.sample(4.0).position, [0.0, 1.0, 0.0], atol=1e-12)
    round_trips = laps(there_and_back, 3)
    np.testing.assert_allclose(round_trips.sample(9.0).position, there_and_back.sample(1.0).position, atol=1e-12)
    turned = concatenate(out, out.reversed().turned(2.0 * np.pi))
    np.testing.assert_allclose(turned.sample(3.0).yaw, there_and_back.sample(3.0).yaw, atol=1e-12)
    with pytest.raises(AirworthyError, match="do not meet"):
        laps(out, 2)
    np.testing.assert_allclose(laps(out, 1).moved([1.0, 0.0, 0.0]).sample(0.0).position, [1.0, 1.0, 0.0])


def test_the_length_of_a_straight_flight() -> None:
    c = septic([[0.0, 0, 0, 0]] * 3, [[3.0, 0, 0, 0], [4.0, 0, 0, 0], [0.0, 0, 0, 0]], 2.0)
    assert Trajectory([0.0, 2.0], c[None], *yaw_fixed(2.0, 0.0)).length() == pytest.approx(5.0, rel=1e-12)


@pytest.mark.parametrize("knots", [[0.0], [1.0, 2.0], [0.0, 0.0], [0.0, np.nan], [0.0, -1.0]])
def test_bad_knots_are_refused(knots: list[float]) -> None:
    with pytest.raises(AirworthyError):
        Trajectory(knots, np.zeros((max(len(knots) - 1, 1), 3, 2)), [0.0, 1.0], [[0.0]])


def test_the_ramp_of_yaw_is_the_specification_s(vectors: dict[str, object]) -> None:
    # Printed with six digits.
    for row in vectors["yaw"]:  # type: ignore[attr-defined]
        knots, c = yaw_ramp([0.0, row["T"]], [row["psi0"], row["psi1"]], row["R"])
        path = Trajectory([0.0, row["T"]], np.zeros((1, 3, 1)), knots, c)
        assert path.sample(row["t"]).yaw == pytest.approx(row["psi"], abs=1e-6)
    rate = 0.785398 / (0.25 * 2.0)
    ramp = Trajectory([0.0, 2.0], np.zeros((1, 3, 1)), *yaw_ramp([0.0, 2.0], [0.0, 0.785398]))
    np.testing.assert_allclose(ramp.sample([0.2, 1.0]).yaw_rate, [rate, 0.0])


def test_the_ramp_takes_the_shorter_arc() -> None:
    path = Trajectory([0.0, 1.0], np.zeros((1, 3, 1)), *yaw_ramp([0.0, 1.0], [3.0, -3.0]))
    assert path.sample(1.0).yaw == pytest.approx(2.0 * np.pi - 3.0)
    with pytest.raises(AirworthyError, match="share"):
        yaw_ramp([0.0, 1.0], [0.0, 1.0], 0.0)


def test_a_ramp_that_would_turn_too_fast_takes_longer_at_most_the_whole_segment() -> None:
    """From rest 0.8 rad in 1 s: in a quarter of it at 3.2 rad/s, at 2 rad/s in 0.4 s, at 0.5 rad/s not at all."""

    def rates(rate: float | None) -> list[float]:
        path = Trajectory([0.0, 1.0], np.zeros((1, 3, 1)), *yaw_ramp([0.0, 1.0], [0.0, 0.8], rate=rate))
        assert path.sample(1.0).yaw == pytest.approx(0.8)
        return path.sample([0.1, 0.3, 0.5]).yaw_rate.tolist()

    assert rates(None) == rates(4.0) == pytest.approx([3.2, 0.0, 0.0])
    assert rates(2.0) == pytest.approx([2.0, 2.0, 0.0])
    assert max(rates(2.0)) <= 2.0
    assert rates(0.5) == pytest.approx([0.8, 0.8, 0.8])


def test_headings_skip_where_nothing_moves() -> None:
    velocity = np.array([[0.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 3.0], [-1.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    np.testing.assert_allclose(path_headings(velocity), np.pi * np.array([0.5, 0.5, 0.75, 1.0, 1.0]))
    np.testing.assert_array_equal(path_headings(np.zeros((2, 3)), 1.5), [1.5, 1.5])


@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3])
def test_headings_do_not_depend_on_how_fast_a_path_is(size: float) -> None:
    """A twentieth of the largest speed has a heading just above it and none below, whatever the speed."""
    velocity = size * np.array([[1.0, 0.0, 0.0], [0.0, 0.051, 0.0], [-0.049, 0.0, 0.0], [0.0, 1.0, 0.0]])
    np.testing.assert_allclose(path_headings(velocity), np.pi * np.array([0.0, 0.5, 0.5, 0.5]))


def test_each_limit_is_used_as_its_formula_says() -> None:
    """By hand, at three times the durations: derivatives of order k fall with the k-th power, and the greatest share counts."""
    rng = np.random.default_rng(2)
    v, a, j = rng.normal(size=(3, 50, 3))
    s, p, q = (np.linalg.norm(x, axis=1) / 3.0**k for k, x in ((1, v), (2, a), (3, j)))
    force = a / 9.0 + np.array([0.0, 0.0, 9.81])
    thrust = np.linalg.norm(force, axis=1)
    cases = {
        Limits(speed=2.0): s / 2.0,
        Limits(acceleration=3.0): p / 3.0,
        Limits(jerk=4.0): q / 4.0,
        Limits(envelope=(2.0, 0.3)): (p + 0.3 * s**3) / 2.0,
        Limits(thrust_max=12.0): thrust / 12.0,
        Limits(speed=2.0, envelope=(2.0, 0.3), thrust_max=30.0): np.max(
            [s / 2.0, (p + 0.3 * s**3) / 2.0, thrust / 30.0], axis=0
        ),
    }
    for limits, expected in cases.items():
        np.testing.assert_allclose(path_usage(limits, v, a, j, 3.0), expected, rtol=1e-12)
    # A bound of the body rate: what of the jerk lies across the thrust, over the thrust; both to be held.
    across = np.linalg.norm(np.cross(force, j / 27.0), axis=1) / thrust**2
    np.testing.assert_allclose(path_usage(Limits(body_rate=0.5), v, a, j, 3.0), across / 0.5, rtol=1e-9)
