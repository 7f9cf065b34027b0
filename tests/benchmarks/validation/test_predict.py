from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from airworthy.benchmarks.validation.calibration import Calibration
from airworthy.benchmarks.validation.errors import attitude_error, comparators, error_samples, in_log_order, pooled
from airworthy.benchmarks.validation.structure import DisturbanceDecay, VehicleModel, predict
from airworthy.benchmarks.validation.windows import HORIZONS, PAST_COUNT, STEPS, LogWindows, cut_windows, reference
from airworthy.vehicles import Drag, vehicle

IDENTITY = Calibration(np.array([0.0, 0.0, 0.0, 1.0]), np.zeros(3), np.zeros(3), 0.0)


def window(speed, velocity=(0.0, 0.0, 0.0), rate=(0.0, 0.0, 0.0), attitude=(0.0, 0.0, 0.0, 1.0)):
    """One window with rotors at a steady speed; its reference stays at the start, its past is the same steady state."""
    horizons = 1 + len(HORIZONS)
    speed = np.broadcast_to(np.asarray(speed, float), (4,))

    def rows(value, count):
        return np.tile(np.asarray(value, float), (1, count, 1))

    return LogWindows(
        flight=np.array(["test"]),
        time=np.zeros(1),
        position=np.zeros((1, horizons, 3)),
        velocity=rows(velocity, horizons),
        attitude=rows(attitude, horizons),
        rate=rows(rate, horizons),
        valid=np.ones((1, len(HORIZONS)), bool),
        rotor_speed=rows(speed, 2 * STEPS + 1),
        past_velocity=rows(velocity, PAST_COUNT),
        past_attitude=rows(attitude, PAST_COUNT),
        past_rate=rows(rate, PAST_COUNT),
        past_speed=rows(speed, PAST_COUNT),
        past_valid=np.ones(1, bool),
    )


def bare():
    """A Crazyflie without drag."""
    return replace(in_log_order(vehicle("cf2x_gym_pybullet_drones")), drag=Drag())


def test_free_fall():
    found = predict(window(0.0, velocity=(1.0, 0.0, 2.0)), [VehicleModel(bare())])
    t = np.array(HORIZONS)
    gravity = bare().gravity
    np.testing.assert_allclose(found.position[0, 0, :, 2], 2.0 * t - 0.5 * gravity * t**2, atol=1e-12)
    np.testing.assert_allclose(found.velocity[0, 0, :, 0], 1.0, atol=1e-12)


def test_steady_turn_about_a_principal_axis():
    found = predict(window(0.0, rate=(0.0, 0.0, 3.0)), [VehicleModel(bare())])
    angle = Rotation.from_quat(found.attitude[0, 0]).as_rotvec()[:, 2]
    # RK4 on the quaternion: (w dt)^5 / (120 2^5) per step, 50 steps.
    np.testing.assert_allclose(angle, 3.0 * np.array(HORIZONS), atol=1e-9)


def test_torque_of_one_rotor_turns_about_both_axes():
    airframe = bare()
    hover = np.sqrt(airframe.mass * airframe.gravity / 4.0 / airframe.rotors[0].thrust[2])
    speeds = np.array([1.02, 1.0, 1.0, 1.0]) * hover
    found = predict(window(speeds), [VehicleModel(airframe)])
    extra = airframe.rotors[0].thrust[2] * (speeds[0] ** 2 - hover**2)
    # M1 sits front right: more thrust there rolls left side down (negative) and pitches the nose up (negative).
    x, y, _ = airframe.rotors[0].position
    expected = np.array([y * extra / airframe.inertia[0], -x * extra / airframe.inertia[1]]) * HORIZONS[0]
    # The rotor's reaction torque also starts a yaw, which bends the axis of the turn: half a percent after 0.1 s.
    np.testing.assert_allclose(found.rate[0, 0, 0, :2], expected, rtol=0.01)


def test_drag_above_the_centre_of_mass_tilts_backwards():
    airframe = VehicleModel(replace(bare(), drag=Drag(linear=(0.01, 0.01, 0.0))), drag_center=(0.0, 0.0, 0.02))
    found = predict(window(0.0, velocity=(1.0, 0.0, 0.0)), [airframe])
    # Force -0.01 N along x at 2 cm: moment about y of -2e-4 N m; velocity changes by a few percent in 0.1 s.
    assert found.rate[0, 0, 0, 1] == pytest.approx(-2e-4 / airframe.vehicle.inertia[1] * HORIZONS[0], rel=0.05)


def in_air(**values):
    """The bare airframe with coefficients of the air at its hubs."""
    return replace(bare(), rotors=tuple(replace(rotor, **values) for rotor in bare().rotors))


def test_hub_drag_without_rotation_is_body_drag():
    """With no body rate at the start and symmetric rotors the two readings of drag by rotor speed agree at first."""
    body = VehicleModel(replace(bare(), drag=Drag(rotor_speed=(1e-6, 1e-6, 7e-7))))
    hubs = VehicleModel(in_air(hub_drag=(1e-6, 7e-7)))
    start = window(1500.0, velocity=(1.0, -0.5, 0.3))
    found = predict(start, [body, hubs])
    np.testing.assert_allclose(found.velocity[0], found.velocity[1], atol=1e-6)


def test_translational_lift_lifts():
    start = window(0.0, velocity=(2.0, 0.0, 0.0))
    found = predict(start, [VehicleModel(bare()), VehicleModel(in_air(translational_lift=1e-3))])
    gained = (found.velocity[1] - found.velocity[0])[0, 0, 2]
    assert gained == pytest.approx(4 * 1e-3 * 4.0 / bare().mass * HORIZONS[0], rel=1e-6)


def test_a_batch_is_its_members():
    start = window([1500.0, 1520.0, 1490.0, 1505.0], velocity=(1.0, 0.5, 0.0), rate=(0.5, -1.0, 0.2))
    crafts = list(comparators(brushless=True).values())
    together = predict(start, crafts)
    for index, airframe in enumerate(crafts):
        alone = predict(start, [airframe])
        np.testing.assert_allclose(together.attitude[index], alone.attitude[0], atol=1e-12)


def test_the_known_craft_predicts_its_own_flight(synthetic):
    windows = cut_windows(reference(synthetic.log, IDENTITY))
    assert len(windows) > 100
    errors = error_samples(predict(windows, [synthetic.model]), windows)
    # Left: the start state's local fits (millimetres per second, millirad) and rotor speeds averaged over 5 ms.
    assert errors.rms()[0, 2] < 1e-3
    assert errors.rms()[2, 2] < 0.15
    coarse = predict(windows, [synthetic.model], coarse=True)
    assert np.abs(coarse.position - predict(windows, [synthetic.model]).position).max() < 2e-3


def test_trim_finds_a_steady_disturbance():
    """An airframe that hovers with 2 % too little thrust in its model: the trim makes up for it and nothing else."""
    airframe = bare()
    hover = np.sqrt(airframe.mass * airframe.gravity / 4.0 / airframe.rotors[0].thrust[2])
    weak = replace(
        airframe,
        rotors=tuple(replace(r, thrust=(0.0, 0.0, 0.98 * r.thrust[2]), torque=(0.0, 0.0, 0.0)) for r in airframe.rotors),
    )
    start = window(hover)
    without, within = predict(start, [VehicleModel(weak)]), predict(start, [VehicleModel(weak)], DisturbanceDecay(1.0, 1e6))
    assert without.position[0, 0, -1, 2] == pytest.approx(-0.5 * 0.02 * airframe.gravity * 0.25, rel=1e-6)
    assert abs(within.position[0, 0, -1, 2]) < 1e-6


def test_attitude_error_is_the_geodesic_angle():
    rng = np.random.default_rng(1)
    a, b = Rotation.random(200, rng=rng), Rotation.random(200, rng=rng)
    found = np.linalg.norm(attitude_error(a.as_quat(), -b.as_quat()), axis=1)
    np.testing.assert_allclose(found, (b.inv() * a).magnitude(), atol=1e-9)


def test_divergence_counts_and_untrusted_references_do_not():
    start = window(0.0)
    found = predict(start, [VehicleModel(bare())])
    broken = replace(found, position=np.full_like(found.position, np.nan))
    samples = error_samples(broken, replace(start, valid=np.array([[True, False, True]])))
    assert samples.rms()[0, 0] == 1e3
    assert np.isnan(samples.values[0, 0, 1])
    np.testing.assert_array_equal(pooled([samples, samples]).count(), [2, 0, 2])
