"""Hand-made flights: every metric against a number worked out by hand, every outcome class once."""

from __future__ import annotations

from collections.abc import Callable
from math import degrees, radians
from typing import Any

import numpy as np
import pytest

from airworthy.core import frames
from airworthy.core.errors import AirworthyError
from airworthy.evaluation import FlightResult, evaluate_tracking
from airworthy.evaluation.metrics import FlownRows, _thinning, tilt_of
from airworthy.simulation.flights import FlightTable
from airworthy.tasks import FlightStatus, TrackingProtocol, TrackingReference

# A straight line along x at 1 m/s for 10 s, nose along x, 1 m up.
TIMES = np.linspace(0.0, 10.0, 201)
LINE = TrackingReference(
    TIMES,
    np.stack((TIMES, 0 * TIMES, 0 * TIMES + 1.0), axis=-1),
    np.tile([1.0, 0.0, 0.0], (201, 1)),
    np.zeros(201),
)
STEPS = np.linspace(0.0, 10.0, 1001)


def hand(
    *,
    offset: Any = 0.0,
    yaw: Any = 0.0,
    until: float = 10.0,
    env: int = 0,
    status: np.ndarray | None = None,
    saturated: np.ndarray | None = None,
    **extra: np.ndarray,
) -> dict[str, np.ndarray]:
    """Columns of a flight along the line at 100 Hz, `offset` [m] to its left and `yaw` [rad] from its heading."""
    t = STEPS[until + 1e-9 >= STEPS]
    ones = np.ones(t.size)
    q = frames.from_euler(0.0 * t, 0.0 * t, yaw * ones)
    columns = {"env": env * ones, "t": t, "position_x_m": t.copy(), "position_y_m": offset * ones, "position_z_m": ones.copy()}
    columns |= {"velocity_x_m_s": ones, "velocity_y_m_s": 0 * ones, "velocity_z_m_s": 0 * ones}
    columns |= {f"attitude_{axis}": q[:, k] for k, axis in enumerate("xyzw")}
    columns |= {f"rate_{axis}_rad_s": 0 * ones for axis in "xyz"}
    columns["status"] = np.zeros(t.size) if status is None else status
    columns["saturated"] = np.zeros(t.size) if saturated is None else saturated
    return columns | extra


def evaluate(columns: dict[str, np.ndarray], **options: Any) -> FlightResult:
    return evaluate_tracking(FlightTable.from_columns(columns), LINE, **options)[0]


def statuses(**spans: tuple[float, float]) -> np.ndarray:
    status = np.zeros(STEPS.size)
    for name, (first, last) in spans.items():
        status[(first - 1e-9 <= STEPS) & (last + 1e-9 >= STEPS)] = FlightStatus[name.upper()]
    return status


def test_perfect_flight() -> None:
    result = evaluate(hand())
    assert result.outcome == "success"
    # float32 positions up to 10 m: rounding of at most 5e-7 m.
    assert result.tracking_error_m == pytest.approx(0.0, abs=1e-6)
    assert result.time_matched_error_m == pytest.approx(0.0, abs=1e-6)
    assert result.proximity_percent == 100.0
    assert result.path_length_m == pytest.approx(10.0, rel=1e-6)
    assert result.duration_s == pytest.approx(10.0)
    assert result.speed_max_m_s == 1.0
    assert (result.collisions, result.samples) == (0, 1001)


def test_constant_offset_is_the_tracking_error() -> None:
    result = evaluate(hand(offset=0.25))
    # float32 columns: 0.25 is exact, distances are good to 1e-7.
    assert result.tracking_error_m == pytest.approx(0.25, abs=1e-6)
    assert result.tracking_error_max_m == pytest.approx(0.25, abs=1e-6)
    assert result.outcome == "success"


def test_flying_behind_costs_time_matched_error_only() -> None:
    columns = hand()
    columns["position_x_m"] = np.maximum(columns["t"] - 0.5, 0.0)
    result = evaluate(columns)
    assert result.tracking_error_m == pytest.approx(0.0, abs=1e-6)
    # Behind by t for half a second, then by 0.5: (sum of 0 .. 0.49 by 0.01 + 951 * 0.5) / 1001.
    assert result.time_matched_error_m == pytest.approx((12.25 + 951 * 0.5) / 1001, abs=1e-5)


def test_proximity_counts_the_share_of_samples() -> None:
    offset = np.where(np.arange(1001) < 701, 0.29, 0.31)
    assert evaluate(hand(offset=offset)).proximity_percent == pytest.approx(100 * 701 / 1001)


def test_success_needs_the_end_within_half_a_metre() -> None:
    columns = hand()
    columns["position_x_m"] = np.minimum(columns["t"], 9.45)
    assert evaluate(columns).outcome == "off_course"
    columns["position_x_m"] = np.minimum(columns["t"], 9.55)
    assert evaluate(columns).outcome == "success"


def test_leaving_the_path_is_off_course_even_if_it_comes_back() -> None:
    away = 1.6 * np.exp(-(((STEPS - 5.0) / 0.5) ** 2))
    assert evaluate(hand(offset=away)).outcome == "off_course"
    assert evaluate(hand(offset=0.9 * away)).outcome == "success"


def test_partial_by_median_yaw_error_and_by_the_last() -> None:
    assert evaluate(hand(yaw=radians(35.0))).outcome == "partial"
    assert evaluate(hand(yaw=radians(25.0))).outcome == "success"
    end = np.where(STEPS > 9.9, radians(-40.0), 0.0)
    result = evaluate(hand(yaw=end))
    assert result.outcome == "partial"
    assert degrees(result.yaw_error_end_rad) == pytest.approx(40.0, abs=1e-3)
    assert result.yaw_error_median_rad == pytest.approx(0.0, abs=1e-6)


def test_yaw_error_wraps() -> None:
    turned = TrackingReference(TIMES, LINE.position, LINE.velocity, np.full(201, radians(179.0)))
    result = evaluate_tracking(FlightTable.from_columns(hand(yaw=radians(-179.0))), turned)[0]
    assert degrees(result.yaw_error_median_rad) == pytest.approx(2.0, abs=1e-3)


def circle(late: float = 0.0) -> dict[str, np.ndarray]:
    """Columns of a flight round a circle of 2 m that faces its middle, so many seconds late."""
    angle = 0.5 * (STEPS - late)
    columns = hand(yaw=np.angle(np.exp(1j * (angle + np.pi))))
    columns["position_x_m"], columns["position_y_m"] = 2.0 * np.cos(angle), 2.0 * np.sin(angle)
    return columns


@pytest.mark.parametrize(("late", "window", "expected"), [(1.0, 1.5, 0.0), (-1.0, 1.5, 0.0), (1.0, 0.0, 0.5), (3.0, 1.5, 0.75)])
def test_heading_is_compared_where_the_vehicle_is(late: float, window: float, expected: float) -> None:
    """0.5 rad/s: a second late faces 0.5 rad off the clock's heading; beyond the window what lies beyond it counts."""
    angle = 0.5 * TIMES
    position = np.stack([2.0 * np.cos(angle), 2.0 * np.sin(angle), np.full(201, LINE.position[0, 2])], axis=1)
    velocity = np.stack([-np.sin(angle), np.cos(angle), np.zeros(201)], axis=1)
    reference = TrackingReference(TIMES, position, velocity, angle + np.pi)
    protocol = TrackingProtocol(yaw_window_s=window)
    result = evaluate_tracking(FlightTable.from_columns(circle(late)), reference, protocol)[0]
    assert result.yaw_error_median_rad == pytest.approx(expected, abs=0.01)
    # A second late is a metre short of the end.
    assert result.outcome == ("success" if late < 0.0 else "off_course")


def test_where_a_vehicle_waits_and_turns_the_clock_decides() -> None:
    place = np.tile(LINE.position[0], (201, 1))
    reference = TrackingReference(TIMES, place, np.zeros((201, 3)), 0.3 * TIMES)
    headings = reference.yaw_along(np.array([2.0, 5.0]), place[:2] + np.array([0.02, 0.0, 0.0]), 1.5)
    np.testing.assert_allclose(headings, [0.6, 1.5], atol=1e-9)


def test_on_a_path_that_crosses_itself_the_leg_that_is_flown_counts() -> None:
    """A figure of eight crosses its middle at two headings, half a round apart."""
    angle = 2.0 * np.pi * TIMES / TIMES[-1]
    position = np.stack([4.0 * np.sin(angle), 2.0 * np.sin(2.0 * angle), np.ones(201)], axis=1)
    velocity = np.gradient(position, TIMES, axis=0)
    reference = TrackingReference(TIMES, position, velocity, np.unwrap(np.arctan2(velocity[:, 1], velocity[:, 0])))
    middle = 0.5 * TIMES[-1]
    late = reference.yaw_along(np.array([middle + 0.4]), np.array([[0.0, 0.0, 1.0]]), 1.5)
    assert late[0] == pytest.approx(float(reference.yaw_at(middle)), abs=0.02)


def test_recovered_after_two_touches() -> None:
    status = statuses(collision=(3.0, 3.2)) + statuses(collision=(6.0, 6.0))
    result = evaluate(hand(status=status))
    assert (result.outcome, result.collisions) == ("success_recovered", 2)
    assert result.collisions_per_m == pytest.approx(0.2, rel=1e-5)


def test_collision_that_ends_the_flight_is_frozen_out_of_the_means() -> None:
    columns = hand(status=statuses(collision=(4.0, 10.0)))
    columns["position_x_m"] = np.minimum(columns["t"], 4.0)
    columns["position_y_m"] = np.where(columns["t"] < 4.0, 0.0, 1.0)
    result = evaluate(columns)
    assert (result.outcome, result.collisions) == ("collision", 1)
    assert result.duration_s == pytest.approx(4.0)
    # 400 samples on the line and the one in which it hit, 1 m beside it.
    assert result.samples == 401
    assert result.tracking_error_m == pytest.approx(1.0 / 401, rel=1e-4)


def test_the_fall_after_a_collision_is_not_flown() -> None:
    columns = hand(status=statuses(collision=(4.0, 10.0)))
    columns["position_z_m"] = 1.0 - 5.0 * np.maximum(columns["t"] - 4.0, 0.0) ** 2
    result = evaluate(columns)
    assert (result.outcome, result.samples, result.collisions) == ("collision", 401, 1)
    assert result.tracking_error_max_m < 1e-6


def test_still_touching_at_the_end_is_not_recovered() -> None:
    assert evaluate(hand(status=statuses(collision=(8.0, 10.0)))).outcome == "collision"
    assert evaluate(hand(status=statuses(collision=(8.0, 9.98)))).outcome == "success_recovered"


def test_out_of_bounds() -> None:
    columns = hand(status=statuses(out_of_bounds=(7.0, 10.0)))
    columns["position_x_m"] = np.minimum(columns["t"], 7.0)
    result = evaluate(columns)
    assert result.outcome == "out_of_bounds"
    assert result.duration_s == pytest.approx(7.0)


def test_out_of_bounds_at_the_very_end_is_no_success() -> None:
    assert evaluate(hand(status=statuses(out_of_bounds=(9.99, 10.0)))).outcome == "out_of_bounds"


@pytest.mark.parametrize("broken", ["position_z_m", "velocity_x_m_s", "attitude_w"])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_diverged_counts_up_to_divergence(broken: str, value: float) -> None:
    columns = hand(offset=0.1, status=statuses(diverged=(6.0, 10.0)))
    columns[broken] = columns[broken].copy()
    columns[broken][600:] = value
    result = evaluate(columns)
    assert (result.outcome, result.samples) == ("diverged", 600)
    assert result.tracking_error_m == pytest.approx(0.1, abs=1e-6)
    assert result.path_length_m == pytest.approx(5.99, rel=1e-5)


def test_not_a_number_without_a_status_is_diverged_too() -> None:
    columns = hand()
    columns["position_x_m"][-1] = np.nan
    assert evaluate(columns).outcome == "diverged"


def test_diverged_from_the_first_sample_has_no_metrics() -> None:
    columns = hand(status=statuses(diverged=(0.0, 10.0)))
    result = evaluate(columns)
    assert (result.outcome, result.samples, result.collisions) == ("diverged", 0, 0)
    assert np.isnan(result.tracking_error_m)


def test_a_record_that_ends_early_is_aborted() -> None:
    assert evaluate(hand(until=6.0)).outcome == "aborted"
    assert evaluate(hand(until=9.9)).outcome == "success"


def test_a_single_sample() -> None:
    result = evaluate(hand(until=0.0))
    assert (result.outcome, result.samples, result.duration_s, result.path_length_m) == ("aborted", 1, 0.0, 0.0)
    assert np.isnan(result.collisions_per_m)


def test_what_ended_it_from_outside() -> None:
    assert evaluate(hand(), ended_by={0: "pilot_error"}).outcome == "pilot_error"
    broken = hand(status=statuses(diverged=(6.0, 10.0)))
    assert evaluate(broken, ended_by={0: "aborted"}).outcome == "diverged"
    with pytest.raises(AirworthyError, match="outcome"):
        evaluate(hand(), ended_by={0: "sucess"})


def test_saturation_and_effort() -> None:
    rotors = {f"rotor_{kind}_{i}_rad_s": np.full(1001, 100.0 * (i + 1)) for kind in ("speed", "command") for i in range(2)}
    result = evaluate(hand(saturated=(np.arange(1001) < 250).astype(float), **rotors))
    assert result.saturation_percent == pytest.approx(100 * 250 / 1001)
    assert result.command_mean_square_rad2_s2 == pytest.approx((100.0**2 + 200.0**2) / 2)


def test_missing_rotors_of_a_smaller_vehicle_do_not_count() -> None:
    rotors = {"rotor_speed_0_rad_s": np.full(1001, 1.0), "rotor_command_0_rad_s": np.full(1001, 300.0)}
    rotors |= {"rotor_speed_1_rad_s": np.full(1001, np.nan), "rotor_command_1_rad_s": np.full(1001, np.nan)}
    assert evaluate(hand(**rotors)).command_mean_square_rad2_s2 == pytest.approx(300.0**2)


def test_clearance_decides_collisions_where_it_was_recorded() -> None:
    clearance = np.where((STEPS > 2) & (STEPS < 3), 0.10, 1.0) - np.where((STEPS > 5) & (STEPS < 6), 0.8, 0.0)
    result = evaluate(hand(clearance_m=clearance))
    assert (result.outcome, result.collisions) == ("success_recovered", 1)


def test_tilt_is_the_angle_of_the_vertical() -> None:
    axes = np.random.default_rng(0).normal(size=(50, 3))
    q = frames.from_rotation_vector(axes)
    expected = np.arccos(np.clip(frames.rotate(q, np.array([0.0, 0.0, 1.0]))[:, 2], -1, 1))
    np.testing.assert_allclose(tilt_of(q), expected, atol=1e-7)


def test_thresholds_are_parameters() -> None:
    assert evaluate(hand(offset=0.25)).outcome == "success"
    assert evaluate(hand(offset=0.25), protocol=TrackingProtocol(path_distance_max_m=0.2)).outcome == "off_course"
    with pytest.raises(AirworthyError, match="end_radius_m"):
        TrackingProtocol(end_radius_m=-1.0)


def test_every_environment_by_its_own_reference_and_alone_as_in_a_batch() -> None:
    shifted = TrackingReference(TIMES, LINE.position + np.array([0.0, 2.0, 0.0]), LINE.velocity, LINE.yaw)
    flights = [hand(env=3), hand(env=7, offset=2.0), hand(env=9, offset=2.2)]
    table = FlightTable.from_columns({name: np.concatenate([f[name] for f in flights]) for name in flights[0]})
    results = evaluate_tracking(table, [LINE, shifted], reference_of_env={7: 1, 9: 1})
    assert [r.env for r in results] == [3, 7, 9]
    assert [r.outcome for r in results] == ["success"] * 3
    assert [r.tracking_error_m for r in results] == pytest.approx([0.0, 0.0, 0.2], abs=1e-6)
    # As texts: what is not a number equals nothing, from Python 3.13 on not even in records.
    assert repr(evaluate_tracking(table.flight(9), shifted)) == repr(results[2:])
    with pytest.raises(AirworthyError, match="reference 4"):
        evaluate_tracking(table, LINE, reference_of_env={3: 4})


def test_an_empty_table_has_no_results() -> None:
    empty = {name: values[:0] for name, values in hand().items()}
    assert evaluate_tracking(FlightTable.from_columns(empty), LINE) == []


def test_permuted_rows_change_nothing(reference: TrackingReference, make_flights: Callable[..., Any]) -> None:
    table, _ = make_flights(reference, 6, failures=True)
    order = np.random.default_rng(0).permutation(table.row_count)
    shuffled = FlightTable.from_columns({name: values[order] for name, values in table.columns.items()})
    results = evaluate_tracking(table, reference)
    assert repr(results) == repr(evaluate_tracking(shuffled, reference))
    assert [r.outcome for r in results] == ["success", "diverged", "collision", "off_course", "success_recovered", "success"]


# ---- a closed course must be flown, not only its end be near ----

TURN = 2.0 * np.pi * TIMES / 10.0


def eight(size: float, count: int = 1) -> TrackingReference:
    """A figure of eight that begins, crosses itself and ends at the origin, `count` times, in ten seconds."""
    u = count * TURN
    at = np.stack((size * np.sin(u), size * np.sin(u) * np.cos(u), 0 * u + 1.0), axis=-1)
    speed = np.gradient(at, TIMES, axis=0)
    return TrackingReference(TIMES, at, speed, 0.0 * TIMES)


def flown_at(position: np.ndarray, reference: TrackingReference) -> FlightResult:
    columns = hand()
    for k, axis in enumerate("xyz"):
        columns[f"position_{axis}_m"] = position[:, k]
    return evaluate_tracking(FlightTable.from_columns(columns), reference)[0]


@pytest.mark.parametrize("size", [0.4, 1.0, 3.0, 20.0])
@pytest.mark.parametrize("laps", [1, 3])
def test_hovering_where_a_course_begins_is_no_success(size: float, laps: int) -> None:
    reference = eight(size, laps)
    jitter = 0.01 * np.random.default_rng(0).normal(size=(STEPS.size, 3)).cumsum(axis=0) / np.sqrt(STEPS.size)
    waiting = flown_at(np.tile([0.0, 0.0, 1.0], (STEPS.size, 1)) + jitter, reference)
    assert waiting.end_distance_m < 0.1
    assert waiting.coverage_percent < 20.0
    assert waiting.outcome == "off_course"


@pytest.mark.parametrize("size", [0.4, 1.0, 3.0, 20.0])
@pytest.mark.parametrize("laps", [1, 3])
def test_who_flies_a_course_has_covered_it(size: float, laps: int) -> None:
    """Late by 0.3 s, 10 cm too high and 5 % too small; the last sample is behind the end by what is late."""
    reference = eight(size, laps)
    late = reference.position_at(STEPS - 0.3) * (0.95, 0.95, 1.0) + (0.0, 0.0, 0.1)
    result = flown_at(late, reference)
    assert result.coverage_percent > 85.0
    left = 0.01 * (100.0 - result.coverage_percent) * reference.length
    assert left <= 0.35 * np.linalg.norm(reference.velocity[-1]) + 0.1
    exact = flown_at(reference.position_at(STEPS), reference)
    assert exact.coverage_percent > 98.5
    assert exact.outcome == "success"


def test_half_a_course_is_half_covered() -> None:
    """Along one loop of the eight, then back to where it crosses, and waiting there for the end."""
    reference = eight(3.0)
    half = reference.position_at(np.minimum(STEPS, 5.0))
    result = flown_at(half, reference)
    assert result.end_distance_m < 0.1
    assert result.coverage_percent == pytest.approx(50.0, abs=6.0)
    assert result.outcome == "off_course"
    one_of_three = flown_at(eight(3.0, 3).position_at(np.minimum(STEPS, 10.0 / 3.0)), eight(3.0, 3))
    assert one_of_three.coverage_percent == pytest.approx(100.0 / 3.0, abs=4.0)


def test_cut_corners_count_as_flown() -> None:
    """Who rounds the corners of a square within what a path may be left by has flown it."""
    corners = np.array([[0, 0, 1], [6, 0, 1], [6, 6, 1], [0, 6, 1], [0, 0, 1]], float)
    at = np.stack([np.interp(TIMES, np.linspace(0, 10, 5), corners[:, k]) for k in range(3)], axis=-1)
    reference = TrackingReference(TIMES, at, np.gradient(at, TIMES, axis=0), 0.0 * TIMES)
    blurred = np.mean([reference.position_at(STEPS + d) for d in np.linspace(-0.6, 0.6, 9)], axis=0)
    result = flown_at(blurred, reference)
    assert result.tracking_error_max_m > 0.2
    assert result.coverage_percent > 97.0
    assert result.outcome == "success"


@pytest.mark.parametrize(("speed", "every"), [(0.0, 10), (1.0, 10), (10.0, 5), (1000.0, 1)])
def test_a_flight_is_followed_ten_times_a_second_and_every_half_metre(speed: float, every: int) -> None:
    """Of a hundred rows a second, of the second flight alone; a flight of one row has nothing to thin."""
    reference = TrackingReference(TIMES, LINE.position, speed * LINE.velocity, LINE.yaw)
    two = np.zeros(2, dtype=np.bool_)
    flown = FlownRows(np.arange(1002), np.array([0, 1, 1002]), two, two)
    assert _thinning(np.concatenate(([0.0], STEPS)), flown, np.array([1]), reference) == every
    assert _thinning(np.concatenate(([0.0], STEPS)), flown, np.array([0]), reference) == 1
