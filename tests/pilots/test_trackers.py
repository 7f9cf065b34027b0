"""Built-in pilots: each follows a trajectory, on every vehicle of the catalogue that it fits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from airworthy.benchmarks.fly.job import FlyConfig, run_fly
from airworthy.control.kernel import LEVELS
from airworthy.core.errors import AirworthyError, UnknownNameError
from airworthy.pilots import Observation, TrackerPilot, tracker
from airworthy.pilots.trackers import pilot_names
from airworthy.trajectories import course
from airworthy.vehicles import vehicle_names

CATALOGUE = tuple(vehicle_names())
# Four and eight rotors, lightest and heaviest, fastest and slowest rotors, least lift and least moment: all
# that laws have to cope with. The whole catalogue flies in `make test-slow`.
SPAN = ("base_octarotor", "base_random", "cf2x_gym_pybullet_drones", "cf2x_L250", "real_18", "tinyprop", "real_09", "carl")
CRAZYFLIES = tuple(name for name in CATALOGUE if name.startswith(("cf2x", "rotorpy")))
WHO = pytest.mark.parametrize("names", [SPAN, pytest.param(CATALOGUE, marks=pytest.mark.slow)], ids=["span", "catalogue"])
TIMES = np.array([0.0, 0.7, 3.0, 100.0])


def flights(tmp_path: Path, pilot: str, place: str, names: tuple[str, ...]) -> list[dict[str, Any]]:
    """All these vehicles in one batch; results by vehicle."""
    config = FlyConfig(vehicle=names, course=place, pilot=pilot, envs=len(names), out=tmp_path, report=False)
    return list(run_fly(config).summary["flights"])


def worst(results: list[dict[str, Any]], metric: str) -> float:
    return max(float(result[metric]) for result in results)


@WHO
@pytest.mark.parametrize("place", ["straight_8", "robustness"])
@pytest.mark.parametrize("pilot", ["geometric", "mellinger"])
def test_the_whole_catalogue_flies_in_one_batch(pilot: str, place: str, names: tuple[str, ...], tmp_path: Path) -> None:
    results = flights(tmp_path, pilot, place, names)
    assert {result["vehicle"]: result["outcome"] for result in results} == dict.fromkeys(names, "success")
    # Measured: at most 18 mm off the path and 10 mm from where it should be at the time; bounds of three times that.
    assert worst(results, "tracking_error_max_m") < 0.05
    assert worst(results, "time_matched_error_m") < 0.03


@pytest.mark.slow
@pytest.mark.parametrize("pilot", ["geometric", "mellinger"])
def test_the_whole_catalogue_flies_every_course(pilot: str, tmp_path: Path) -> None:
    from airworthy.trajectories import course_names

    for place in course_names():
        results = flights(tmp_path, pilot, place, CATALOGUE)
        assert {result["outcome"] for result in results} == {"success"}, place
        assert worst(results, "tracking_error_max_m") < 0.25, place


@WHO
def test_set_points_without_feed_forward_lag_but_stay_on_the_path(names: tuple[str, ...], tmp_path: Path) -> None:
    results = flights(tmp_path, "position", "straight_8", names)
    assert {result["outcome"] for result in results} == {"success"}
    assert worst(results, "tracking_error_max_m") < 0.05  # the path is straight
    assert 0.3 < worst(results, "time_matched_error_m") < 1.5  # a lag of about half a second at 1.6 m/s


@WHO
def test_velocity_alone_drifts_and_breaks_nothing(names: tuple[str, ...], tmp_path: Path) -> None:
    results = flights(tmp_path, "velocity", "robustness", names)
    assert {result["outcome"] for result in results} <= {"success", "off_course"}
    assert 0.1 < worst(results, "tracking_error_max_m") < 1.5


@pytest.mark.parametrize("place", ["straight_8", "robustness"])
def test_the_firmware_s_law_flies_crazyflies(place: str, tmp_path: Path) -> None:
    assert len(CRAZYFLIES) == 5
    results = flights(tmp_path, "crazyflie", place, CRAZYFLIES)
    assert {result["outcome"] for result in results} == {"success"}
    assert worst(results, "tracking_error_max_m") < 0.15  # measured 0.05: its gains are in motor units, tuned by hand


def test_the_firmware_s_law_refuses_what_is_no_quadrotor_in_x(tmp_path: Path) -> None:
    with pytest.raises(AirworthyError, match="base_octarotor is not a quadrotor in X"):
        flights(tmp_path, "crazyflie", "line", ("base_octarotor",))


# ---- commands ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", pilot_names())
def test_commands_have_the_width_of_their_level(name: str) -> None:
    pilot = tracker(name, course("line").trajectory())
    command = pilot.command(Observation(TIMES, {}))
    assert command.shape == (len(TIMES), LEVELS[pilot.level].width(4))
    assert np.isfinite(command).all()
    assert pilot.observes == ()


@pytest.mark.parametrize("name", pilot_names())
def test_the_end_is_held(name: str) -> None:
    path = course("line").trajectory()
    pilot = tracker(name, path)
    # Just after the end: at it, a published course may still brake.
    end, later = pilot.command(Observation(np.array([path.duration + 1e-9, path.duration + 50.0]), {}))
    np.testing.assert_allclose(later, end, atol=1e-12)
    if pilot.level != "velocity_steering":
        np.testing.assert_allclose(later[:3], path.sample(path.duration).position, atol=1e-12)


def test_velocity_is_said_in_the_turned_frame() -> None:
    path = course("infinity").trajectory()
    flat = path.sample(TIMES)
    command = tracker("velocity", path).command(Observation(TIMES, {}))
    forward = np.stack([np.cos(flat.yaw), np.sin(flat.yaw)], axis=1)
    left = np.stack([-np.sin(flat.yaw), np.cos(flat.yaw)], axis=1)
    world = command[:, :1] * forward + command[:, 1:2] * left
    np.testing.assert_allclose(world, flat.velocity[:, :2], atol=1e-12)
    np.testing.assert_allclose(command[:, 2], flat.velocity[:, 2], atol=0.0)


@pytest.mark.parametrize("make", [tracker, lambda name, path: TrackerPilot(path, name)])
def test_an_unknown_pilot(make: Any) -> None:
    with pytest.raises(UnknownNameError, match=r"Unknown pilot 'geometrik'\. Closest: 'geometric'"):
        make("geometrik", course("line").trajectory())
