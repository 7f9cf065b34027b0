"""Time allocation, shortening, and waypoints to trajectories."""

from __future__ import annotations

import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import ArrayLike

from airworthy.core.errors import AirworthyError, AssetError
from airworthy.trajectories import (
    Course,
    Limits,
    Trajectory,
    allocation,
    course,
    from_waypoints,
    prove,
    read_course,
    shorten,
    slow_to,
    time_allocation_trapezoid,
)
from airworthy.trajectories.allocation import shorten_durations, stretch_until_proven
from airworthy.trajectories.course_file import write_course
from airworthy.trajectories.polynomial import REST_PEAK_ACCELERATION, REST_PEAK_SPEED
from airworthy.trajectories.yaw import yaw_fixed, yaw_held_back
from airworthy.vehicles import vehicle

LINE = [[0.0, 0.0, 1.0], [4.0, 0.0, 1.0]]
BENDS = np.array([[0, 0, 1], [2, 1, 1.5], [3, -1, 1], [5, 0, 2], [6, 2, 1], [4, 4, 1.2]], dtype=np.float64)


def test_trapezoids_have_their_closed_form() -> None:
    # L = 4 m: v/a to speed up, L/v + v/a in all while v^2/a <= L, else 2 sqrt(L/a).
    assert time_allocation_trapezoid(LINE, 2.0, 3.0) == pytest.approx([4.0 / 2.0 + 2.0 / 3.0])
    assert time_allocation_trapezoid(LINE, 10.0, 3.0) == pytest.approx([2.0 * np.sqrt(4.0 / 3.0)])
    # A point on the way, straight on, changes nothing; stopping at it costs; so does a reversal.
    with_middle = [LINE[0], [1.5, 0.0, 1.0], LINE[1]]
    assert np.sum(time_allocation_trapezoid(with_middle, 2.0, 3.0)) == pytest.approx(4.0 / 2.0 + 2.0 / 3.0)
    stops = time_allocation_trapezoid(with_middle, 2.0, 3.0, stop=True)
    assert stops == pytest.approx([1.5 / 2.0 + 2.0 / 3.0, 2.5 / 2.0 + 2.0 / 3.0])
    there_and_back = time_allocation_trapezoid([LINE[0], LINE[1], LINE[0]], 2.0, 3.0)
    assert there_and_back == pytest.approx([4.0 / 2.0 + 2.0 / 3.0] * 2)


@pytest.mark.parametrize("split", [0.01, 0.4, 2.0, 3.6, 3.99])
@pytest.mark.parametrize("speed", [2.0, 10.0])
def test_a_point_straight_on_near_an_end_changes_nothing(split: float, speed: float) -> None:
    """The flight may only be as fast at the point as what is left lets it speed up from, or brake to, rest: sqrt(2 a s)."""
    first, second = time_allocation_trapezoid([LINE[0], [split, 0.0, 1.0], LINE[1]], speed, 3.0)
    assert first + second == pytest.approx(time_allocation_trapezoid(LINE, speed, 3.0)[0], rel=1e-12)
    if split <= 0.4:
        assert first == pytest.approx(np.sqrt(2.0 * split / 3.0), rel=1e-12)
    if split >= 3.6:
        assert second == pytest.approx(np.sqrt(2.0 * (4.0 - split) / 3.0), rel=1e-9)


@given(st.integers(0, 100_000), st.integers(2, 9))
def test_the_way_back_takes_as_long_leg_by_leg(seed: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    points = np.cumsum(rng.normal(size=(count, 3)) * rng.uniform(0.05, 5.0, (count, 1)), axis=0)
    there, back = (time_allocation_trapezoid(path, 4.0, 3.0) for path in (points, points[::-1]))
    np.testing.assert_allclose(back[::-1], there, rtol=1e-9)


@given(st.integers(0, 100_000), st.integers(2, 9))
def test_trapezoids_keep_speed_and_acceleration(seed: int, count: int) -> None:
    points = np.random.default_rng(seed).normal(size=(count, 3)) * 3.0
    legs = np.linalg.norm(np.diff(points, axis=0), axis=1)
    durations = time_allocation_trapezoid(points, 2.0, 3.0)
    assert np.all(durations >= legs / 2.0 * (1 - 1e-12))
    assert np.all(durations <= legs / 2.0 + 2.0 * 2.0 / 3.0 + 1e-12)


def test_one_leg_is_as_fast_as_its_closed_form_allows() -> None:
    path = from_waypoints(LINE, Limits(speed=2.0), "fixed")
    assert path.duration == pytest.approx(REST_PEAK_SPEED * 4.0 / 2.0, rel=1e-3)
    path = from_waypoints(LINE, Limits(acceleration=3.0), "fixed")
    assert path.duration == pytest.approx(np.sqrt(REST_PEAK_ACCELERATION * 4.0 / 3.0), rel=1e-3)


LIMITS = [
    Limits(speed=2.0, acceleration=3.0),
    Limits(speed=5.0, acceleration=6.0, jerk=15.0),
    Limits(envelope=(2.0, 0.3)),
    Limits(speed=8.0, thrust_max=14.0, thrust_min=6.0),
    Limits(speed=3.0, acceleration=5.0, body_rate=2.0, yaw_rate=1.5),
    Limits.for_vehicle(vehicle("carl"), 0.7, speed=6.0, body_rate=6.0),
]


@pytest.mark.parametrize("limits", LIMITS, ids=range(len(LIMITS)))
def test_waypoints_are_passed_within_limits_and_limits_bind(limits: Limits) -> None:
    path = from_waypoints(BENDS, limits, evaluations=80)
    np.testing.assert_allclose(path.sample(path.knots).position, BENDS, atol=1e-9)
    ends = path.sample([0.0, path.duration])
    assert max(np.max(np.abs(getattr(ends, name))) for name in ("velocity", "acceleration", "jerk")) < 1e-9
    proof = prove(path, limits)
    assert proof.proven
    used = [
        check.attained / check.limit if check.sense == "at most" else check.limit / check.attained for check in proof.checks
    ]
    assert max(used) > 0.97


def test_more_search_is_never_slower() -> None:
    limits = Limits(speed=2.0, acceleration=3.0)
    durations = [from_waypoints(BENDS, limits, evaluations=n).duration for n in (1, 60, 600)]
    assert durations[2] <= durations[1] * (1 + 1e-3)
    assert durations[1] <= durations[0] * (1 + 1e-3)
    assert durations[2] < 0.97 * durations[0]


def test_two_legs_are_shortened_each_by_itself() -> None:
    """Legs of one length take as long each, though the search begins with twice the time for the second."""
    points, limits = [[0.0, 0.0, 1.0], [2.0, 0.0, 1.0], [4.0, 0.0, 1.0]], Limits(speed=2.0, acceleration=3.0)
    found = shorten_durations(points, [1.0, 2.0], limits, 60)
    # The last step of the search is 0.4 %, and near the best the sum is flat: durations are known worse than it is.
    assert found[0] == pytest.approx(found[1], rel=0.05)
    assert np.sum(found) == pytest.approx(np.sum(shorten_durations(points, [1.0, 1.0], limits, 60)), rel=0.01)


def test_the_search_repeats_itself() -> None:
    start, limits = time_allocation_trapezoid(BENDS, 2.0, 3.0), Limits(speed=2.0, acceleration=3.0)
    np.testing.assert_array_equal(shorten_durations(BENDS, start, limits, 80), shorten_durations(BENDS, start, limits, 80))


def test_yaw_follows_what_was_asked() -> None:
    forward = from_waypoints(BENDS, evaluations=20)
    at = forward.sample(forward.knots[1:-1])
    np.testing.assert_allclose(np.cos(at.yaw - np.arctan2(at.velocity[:, 1], at.velocity[:, 0])), 1.0, atol=1e-9)
    assert not np.any(from_waypoints(BENDS, yaw="fixed", evaluations=20).sample([0.0, 3.0]).yaw)
    assert from_waypoints(BENDS, yaw=0.7, evaluations=20).sample(2.0).yaw == 0.7
    angles = [0.0, 1.0, 2.0, 3.0, -3.0, -2.0]
    turning = from_waypoints(BENDS, yaw=angles, evaluations=20)
    np.testing.assert_allclose(turning.sample(turning.knots).yaw, np.unwrap(angles), atol=1e-9)
    assert from_waypoints([[0, 0, 0], [0, 0, 3]]).sample(1.0).yaw == 0.0


def test_shortening_reaches_the_limit_and_slowing_only_slows() -> None:
    path = course("sigmoid").trajectory()
    limits = Limits(speed=3.0, acceleration=4.0, thrust_max=15.0, body_rate=4.0)
    fast = shorten(path, limits)
    assert fast.duration < path.duration
    checks = prove(fast, limits)
    assert checks.proven
    assert max(check.attained / check.limit for check in checks.checks) > 0.99
    assert slow_to(path, limits) is path
    slow = slow_to(path, Limits(speed=1.0))
    assert slow.duration == pytest.approx(path.duration * 1.7834, rel=2e-3)
    assert prove(slow, Limits(speed=1.0)).proven


@settings(max_examples=15)
@given(st.integers(0, 100_000), st.integers(2, 8))
def test_random_waypoints_give_proven_paths(seed: int, count: int) -> None:
    points = np.random.default_rng(seed).normal(size=(count, 3)) * 2.0
    limits = Limits(speed=3.0, acceleration=4.0, thrust_max=13.0)
    assert prove(from_waypoints(points, limits, evaluations=20), limits).proven


@pytest.mark.parametrize(
    ("points", "options", "message"),
    [
        ([[0, 0, 0]], {}, "2 or more"),
        ([[0, 0], [1, 1]], {}, "2 or more"),
        ([[0, 0, 0], [0, 0, 0], [1, 0, 0]], {}, "same point"),
        ([[0, 0, 0], [np.nan, 0, 0]], {}, "finite"),
        ([[0.0, 0, 0]] * 3000, {}, "same point"),
        (np.arange(9000.0).reshape(-1, 3), {}, "more than"),
        (LINE, {"limits": Limits(yaw_rate=1.0)}, "must bound"),
        (LINE, {"yaw": "backwards"}, "Yaw must be"),
        (LINE, {"yaw": [0.0, 1.0, 2.0]}, "one angle per waypoint"),
        (LINE, {"yaw": [0.0, np.inf]}, "finite"),
    ],
)
def test_mistakes_are_named(points: ArrayLike, options: dict[str, object], message: str) -> None:
    with pytest.raises(AirworthyError, match=message):
        from_waypoints(points, **options)  # type: ignore[arg-type]


def test_what_cannot_be_scaled_is_said() -> None:
    with pytest.raises(AirworthyError, match="No limit binds"):
        shorten(course("hover").trajectory(), Limits(speed=1.0))
    with pytest.raises(AirworthyError, match="must be positive"):
        time_allocation_trapezoid(LINE, 0.0, 1.0)
    with pytest.raises(AirworthyError, match="time scale"):
        course("hover").trajectory().scaled(0.0)


def test_what_cannot_be_slowed_enough_says_which_limits_it_breaks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(allocation, "SLOWEST", 1.5)
    path = from_waypoints(LINE)
    stays = Limits(speed=10.0, acceleration=1e-3)
    with pytest.raises(AirworthyError, match=r"could not be slowed enough to keep its limits: acceleration.*\.$") as caught:
        stretch_until_proven(path, stays)
    assert "speed" not in str(caught.value).split(":", maxsplit=1)[1]


@pytest.mark.parametrize(("yaw_rate", "body_rate"), [(0.5, None), (0.1, None), (None, 1.0), (0.3, 1.0)])
def test_yaw_limits_do_not_slow_the_path(yaw_rate: float | None, body_rate: float | None) -> None:
    """Sharp bends, nose along the path: slowed as a whole for 0.1 rad/s they took many times as long."""
    free = from_waypoints(BENDS, Limits(speed=2.0, acceleration=3.0), evaluations=40)
    limits = Limits(speed=2.0, acceleration=3.0, yaw_rate=yaw_rate, body_rate=body_rate)
    still = from_waypoints(BENDS, limits, yaw="fixed", evaluations=40)
    found = from_waypoints(BENDS, limits, evaluations=40)
    assert prove(found, limits).proven
    assert found.duration <= 1.02 * still.duration
    if yaw_rate is not None and body_rate is None:
        assert found.duration <= 1.001 * free.duration
    assert np.abs(found.sample(np.linspace(0, found.duration, 999)).yaw_rate).max() > 0.05, "it still turns"


@given(st.integers(0, 2**31), st.floats(0.05, 5.0))
@settings(max_examples=12, deadline=None)
def test_a_heading_held_back_is_as_near_as_it_can_be(seed: int, rate: float) -> None:
    """Its rate is kept everywhere; no heading of that rate has a smaller largest deviation (but for what smoothing costs)."""
    rng = np.random.default_rng(seed)
    duration, knots = 20.0, np.linspace(0.0, 20.0, 9)
    values = rng.normal(size=9).cumsum()

    def wanted(t: np.ndarray) -> np.ndarray:
        return np.interp(t, knots, values)

    times, rows = yaw_held_back(duration, wanted, rate)
    held = Trajectory(times[[0, -1]], np.zeros((1, 3, 1)), times, rows)
    t = np.linspace(0.0, duration, 1001)
    sample = held.sample(t)
    assert np.abs(sample.yaw_rate).max() <= rate * (1.0 + 1e-12)
    assert np.abs(np.diff(sample.yaw)).max() <= 0.021 * rate, "continuous"
    times, rows = yaw_held_back(duration, wanted, rate, 0.7)
    soft = Trajectory(times[[0, -1]], np.zeros((1, 3, 1)), times, rows).sample(t)
    assert np.abs(soft.yaw_acceleration).max() <= 0.7 * (1.0 + 1e-9)
    assert np.abs(soft.yaw_rate).max() <= rate * (1.0 + 1e-9)
    assert soft.yaw[0] == pytest.approx(values[0], abs=1e-9)
    # The least largest deviation of any heading of this rate: half of the worst excess of a change over what time allows.
    gap = np.abs(wanted(t)[:, None] - wanted(t)) - rate * np.abs(t[:, None] - t)
    least = 0.5 * max(0.0, float(gap.max()))
    ends = max(abs(wanted(t[-1:])[0] - wanted(t[:1])[0]) - rate * duration, 0.0)
    found = np.abs(sample.yaw - wanted(t)).max()
    assert found >= least - 1e-9
    # Beginning and ending where it was asked to costs at most as much again.
    assert found <= 2.0 * least + ends + 0.25 * rate + 0.11 * np.abs(np.diff(values)).max()
    assert sample.yaw[0] == pytest.approx(values[0], abs=1e-12)


def test_peaks_between_samples_are_found() -> None:
    """Legs of a centimetre beside legs of a kilometre, at 80 m/s: refused before, and by a hair's breadth of samples wrong."""
    limits = Limits(speed=80.0, acceleration=20.0)
    hairpin = from_waypoints([[0, 0, 1], [1000, 0, 1], [1000, 0.01, 1], [0, 0.01, 1]], limits, evaluations=30)
    assert prove(hairpin, limits).proven
    assert hairpin.duration < 60.0  # two stops and two kilometres of 20 m/s^2 take 2 x 16.5 s at least
    crumbs = from_waypoints([[0, 0, 1], [0.01, 0, 1], [1000, 0, 1], [1000, 1000, 1]], limits, evaluations=30)
    assert prove(crumbs, limits).proven
    assert crumbs.duration < 90.0


def test_slowing_goes_as_far_as_a_peak_asks() -> None:
    """A pulse of acceleration that lasts a thousandth of its segment lies between samples: a factor of 3 was the most."""
    width = 5e-4
    knots = np.array([0.0, 5.0 - width, 5.0 + width, 10.0])
    flat = np.zeros((3, 3, 8))
    flat[1, 0] = 1e-3 * np.array([0, 0, 0, 0, 70, -168, 140, -40])[[0, 1, 2, 3, 4, 5, 6, 7]] / 2.0
    flat[2, 0, 0] = flat[1, 0].sum()
    path = Trajectory(knots, flat, *yaw_fixed(10.0, 0.0))
    limits = Limits(acceleration=1.0)
    slowed = stretch_until_proven(path, limits)
    assert slowed.duration > 30.0
    proof = prove(slowed, limits)
    assert proof.proven
    assert proof.check("acceleration").attained > 0.98, "slowed no more than needed"


def test_courses_take_limits(tmp_path: Path) -> None:
    base = Course("mine", "waypoints", waypoints=((0.0, 0.0, 1.0), (6.0, 0.0, 1.0), (6.0, 6.0, 1.0)))
    fast = replace(base, limits=Limits(speed=5.0, acceleration=8.0, yaw_rate=1.0))
    assert read_course(write_course(fast, tmp_path / "fast.json")) == fast
    assert read_course(write_course(base, tmp_path / "base.json")) == base
    assert prove(fast.trajectory(), fast.limits or Limits()).proven
    assert fast.trajectory().duration < 0.7 * base.trajectory().duration
    assert fast.trajectory(Limits(speed=1.0, acceleration=1.0)).duration > base.trajectory().duration
    for wrong, message_part in (
        ('{"speed": 3}', "unknown key 'speed'"),
        ('{"speed_m_s": -1}', "limits.speed_m_s must be"),
        ('{"speed_m_s": 0}', "must be positive"),
        ('{"jerk_m_s3": 3}', "bound neither speed nor acceleration"),
        ("3", "must be a table"),
    ):
        text = (tmp_path / "base.json").read_text().replace('"description"', f'"limits": {wrong}, "description"')
        (tmp_path / "wrong.json").write_text(text)
        with pytest.raises(AssetError, match=message_part):
            read_course(tmp_path / "wrong.json")


def test_many_waypoints_are_tried_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """800 took 37 s and were still in their first pass; up to 100 legs nothing changes."""
    asked: list[int] = []

    def listen(path: np.ndarray, start: np.ndarray, limits: Limits, evaluations: int) -> np.ndarray:
        asked.append(evaluations)
        return np.asarray(start)

    monkeypatch.setattr(sys.modules[from_waypoints.__module__], "shorten_durations", listen)
    for count in (10, 101, 801):
        from_waypoints(np.stack((np.arange(count), np.zeros(count), np.ones(count)), axis=-1))
    assert asked == [600, 600, 75]


def test_durations_get_shorter_the_more_they_are_tried() -> None:
    """Legs of one time for lengths of 1 to 9 m; no try makes it worse."""
    points = np.array([[0, 0, 1], [1, 0, 1], [1, 9, 1], [4, 9, 2], [4, 8, 2]], float)
    limits = Limits(speed=4.0, acceleration=3.0)
    sums = [float(np.sum(shorten_durations(points, np.full(4, 3.0), limits, count))) for count in (1, 3, 12, 30)]
    assert all(b <= a + 1e-12 for a, b in pairwise(sums))
    # All legs together, three times; one leg at a time takes far more tries.
    assert sums[1] < 0.88 * sums[0]


@pytest.mark.parametrize("acceleration", [0.5, 1.0, 3.0])
def test_a_heading_held_back_keeps_its_limits_whether_or_not_it_can_end_as_asked(acceleration: float) -> None:
    """Turns from well within reach to just beyond it: it ends as asked where that is, and is never faster for it."""
    duration, rate = 4.0, 1.0
    top = min(rate, 0.1 * acceleration * duration)
    turns, reached = np.linspace(0.1, 1.2, 56) * top * duration, []
    for turn in turns:
        times, rows = yaw_held_back(duration, lambda t, turn=turn: turn * (t > 0.5 * duration), rate, acceleration)
        sample = Trajectory(times[[0, -1]], np.zeros((1, 3, 1)), times, rows).sample(np.linspace(0.0, duration, 801))
        assert np.abs(sample.yaw_rate).max() <= rate * (1.0 + 1e-9)
        assert np.abs(sample.yaw_acceleration).max() <= acceleration * (1.0 + 1e-6)
        assert sample.yaw[0] == pytest.approx(0.0, abs=1e-9)
        assert sample.yaw_rate[-1] == pytest.approx(0.0, abs=1e-9)
        reached.append(abs(sample.yaw[-1] - turn) < 1e-9)
    far = int(np.sum(reached))
    assert all(reached[:far])
    assert not any(reached[far:])
    # It speeds up and slows down for twice as long as it must, and stands still for a knot at each end.
    most = top * (duration - 2.0 * top / acceleration)
    assert most - 0.3 * top <= turns[far - 1] <= most
