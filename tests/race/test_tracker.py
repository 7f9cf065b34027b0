"""The tracker: on the plan it does what the plan does, off it it pulls back, and its moments survive where rotors saturate."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from airworthy.core import frames
from airworthy.core.arrays import Array
from airworthy.race import RacerModel, RaceTracker, TrackerGains, course_of, load_race, stored_plan
from airworthy.race.pilots.tracker import rotation_error
from airworthy.vehicles import vehicle

RACER = RacerModel.of(vehicle("flightgoggles_2019"))
PLAN = stored_plan(course_of(load_race("alphapilot"), "nominal"), RACER)
TIMES = np.linspace(0.3, 13.0, 40)


def told(state: Array, gains: TrackerGains | None = None) -> tuple[Array, Array]:
    """What the tracker commands in a state at each of `TIMES`."""
    tracker = RaceTracker(RACER, gains)
    reference, inputs = PLAN.at(TIMES)
    return tracker.command(state, reference, inputs, PLAN.at(TIMES + tracker.gains.lead)[1])


def test_on_the_plan_it_commands_the_plan() -> None:
    reference, inputs = PLAN.at(TIMES)
    thrust, alpha = told(reference.copy(), TrackerGains(lead=0.0))
    assert thrust == pytest.approx(inputs[:, 0], abs=1e-6)
    assert alpha == pytest.approx(inputs[:, 1:], abs=1e-6)
    led, turned = told(reference.copy())
    ahead = PLAN.at(TIMES + 0.03)[1]
    assert led == pytest.approx(ahead[:, 0], abs=1e-6)
    assert turned == pytest.approx(ahead[:, 1:], abs=1e-6)


def test_errors_of_position_and_velocity_pull_back() -> None:
    """Thrust on the plan's attitude: the share of 14 e_p + 7 e_v along body z, and the drag of the velocity that there is."""
    reference, inputs = PLAN.at(TIMES)
    reduced = TrackerGains(lead=0.0)
    state = reference.copy()
    off, slow = np.array([0.02, -0.03, 0.01]), np.array([0.1, 0.0, -0.1])
    state[:, :3] -= off
    state[:, 3:6] -= slow
    axis = frames.to_matrix(reference[:, 6:10])[..., 2]

    def drag(v: Array) -> Array:
        return 0.1 * np.linalg.norm(v, axis=1, keepdims=True) * v

    force = inputs[:, :1] * axis + 14.0 * off + 7.0 * slow + drag(state[:, 3:6]) - drag(reference[:, 3:6])
    thrust, alpha = told(state, reduced)
    open_ = np.abs(thrust - np.sum(force * axis, axis=1)) < 1e-6
    # Where rotors saturate the thrust is less.
    assert np.count_nonzero(open_) > 20
    assert np.all((thrust <= np.sum(force * axis, axis=1) + 1e-6) | open_)
    # It turns body z towards the force: the change of alpha about the axis from z to f, for small angles.
    lean = np.cross(axis, force / np.linalg.norm(force, axis=1, keepdims=True))
    turn = (np.swapaxes(frames.to_matrix(reference[:, 6:10]), 1, 2) @ lean[..., None])[..., 0]
    assert (alpha - inputs[:, 1:])[:, :2] == pytest.approx(220.0 * turn[:, :2], abs=0.2)


def test_attitude_and_rate_errors() -> None:
    reference, inputs = PLAN.at(TIMES)
    small = np.array([0.01, -0.02, 0.03])
    state = reference.copy()
    state[:, 6:10] = frames.multiply(reference[:, 6:10], frames.from_rotation_vector(np.tile(-small, (len(TIMES), 1))))
    assert rotation_error(state[:, 6:10], reference[:, 6:10]) == pytest.approx(np.tile(small, (len(TIMES), 1)), abs=1e-9)
    # The sign of a quaternion means nothing.
    assert rotation_error(-state[:, 6:10], reference[:, 6:10]) == pytest.approx(np.tile(small, (len(TIMES), 1)), abs=1e-9)
    faster = reference.copy()
    faster[:, 10:13] += [0.1, 0.2, -0.3]
    _, alpha = told(faster, TrackerGains(lead=0.0))
    expected = inputs[:, 1:] - 26.0 * np.array([1.0, 1.0, 0.7]) * [0.1, 0.2, -0.3]
    assert alpha == pytest.approx(expected, abs=1e-6)


def test_moments_come_before_thrust() -> None:
    rng = np.random.default_rng(5)
    tracker = RaceTracker(RACER)
    alpha = rng.uniform(-1.0, 1.0, (500, 3)) * [100.0, 100.0, 30.0]
    thrust = rng.uniform(-5.0, 60.0, 500)
    given = tracker.within_rotors(thrust, alpha)
    rotors = np.hstack([given[:, None], alpha]) @ RACER.mixer.T
    assert rotors.max() <= RACER.rotor_max + 1e-9
    spread = np.ptp(alpha @ RACER.mixer[:, 1:].T, axis=1)
    possible = spread < RACER.rotor_max - 0.02
    assert np.count_nonzero(possible) > 100
    assert rotors[possible].min() > 0.0
    # Untouched where nothing saturates.
    free = np.hstack([thrust[:, None], alpha]) @ RACER.mixer.T
    inside = np.all((free > 0.02) & (free < RACER.rotor_max), axis=1)
    assert np.count_nonzero(inside) > 20
    assert np.array_equal(given[inside], thrust[inside])


def test_a_batch_is_tracked_as_its_members() -> None:
    rng = np.random.default_rng(2)
    reference, inputs = PLAN.at(TIMES)
    state = reference + rng.normal(0.0, 0.01, reference.shape)
    thrust, alpha = told(state)
    tracker = RaceTracker(RACER)
    ahead = PLAN.at(TIMES + 0.03)[1]
    for k in range(len(TIMES)):
        one = tracker.command(state[k : k + 1], reference[k : k + 1], inputs[k : k + 1], ahead[k : k + 1])
        assert one[0][0] == pytest.approx(thrust[k], abs=1e-9)
        assert one[1][0] == pytest.approx(alpha[k], abs=1e-9)


def test_a_far_error_pulls_no_harder_than_a_near_one() -> None:
    reference, _ = PLAN.at(TIMES)
    near, far = reference.copy(), reference.copy()
    near[:, 0] -= 1.5
    far[:, 0] -= 100.0
    for one, other in zip(told(near), told(far), strict=True):
        assert one == pytest.approx(other, abs=1e-6)
    heavier = RaceTracker(replace(RACER, mass=2.0))
    assert heavier.model.mass == 2.0


def test_errors_tilt_a_coasting_racer_no_farther_than_one_that_hovers() -> None:
    """A plan that pushes with 0.6 N, and 0.7 m/s too slow: 4.9 N aside would turn the vehicle by 83 degrees."""
    reference, inputs = PLAN.at(np.array([5.0]))
    reference[:, 3:6], reference[:, 6:10], reference[:, 10:] = 0.0, [0.0, 0.0, 0.0, 1.0], 0.0
    inputs = np.array([[0.6, 0.0, 0.0, 0.0]])
    state = reference.copy()
    state[:, 4] -= 0.7

    def turned(least: float) -> float:
        _, alpha = RaceTracker(RACER, TrackerGains(lead=0.0, attitude=1.0, rate=0.0, least_push=least)).command(
            state, reference, inputs, inputs
        )
        return float(alpha[0, 0])

    # At 0.7 m/s the drag is 1 % of that; towards y is about minus x.
    push = RACER.mass * 7.0 * 0.7
    assert turned(0.0) == pytest.approx(-np.arctan2(push, 0.6), abs=0.02)
    assert turned(1.0) == pytest.approx(-np.arctan2(push, RACER.mass * RACER.gravity), abs=0.02)
    # Where the plan pushes with more it changes nothing at all.
    inputs = np.array([[2.0 * RACER.mass * RACER.gravity, 0.0, 0.0, 0.0]])
    assert turned(1.0) == turned(0.0)


def test_the_plans_angular_acceleration_is_about_the_plans_axes() -> None:
    """Turned away from the plan a racer is asked for the same acceleration in the world, not for the same numbers."""
    reference, _ = PLAN.at(TIMES[:1])
    state, still = reference.copy(), np.array([[9.81, 0.0, 0.0, 0.0]])
    state[:, 6:10] = frames.multiply(reference[:, 6:10], frames.from_rotation_vector(np.array([[0.0, 0.0, 0.4]])))
    tracker, wanted = RaceTracker(RACER), np.array([20.0, -10.0, 5.0])
    turning = np.array([[9.81, *wanted]])
    given = tracker.command(state, reference, still, turning)[1] - tracker.command(state, reference, still, still)[1]
    world = frames.rotate(reference[0, 6:10], wanted)
    assert given[0] == pytest.approx(frames.rotate(frames.conjugate(state[0, 6:10]), world), abs=1e-6)
    assert abs(given[0, 0] - wanted[0]) > 4.0
