import itertools
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from airworthy.control import (
    BodyState,
    MellingerState,
    Reference,
    hover_integral,
    mellinger_control,
    mellinger_for,
    mellinger_parameters,
    mixer_for,
    motor_commands,
    reference_rates,
    si_gains,
    speed_of_command,
    thrust_of_command,
)
from airworthy.core.errors import AirworthyError
from airworthy.vehicles import vehicle

DT = 1 / 500
REST = MellingerState((0.0,) * 3, (0.0,) * 3, (0.0,) * 3)
FIRMWARE = mellinger_parameters()
unit = st.floats(-1.0, 1.0)
triples = st.tuples(unit, unit, unit)


def level(position=(0.0, 0.0, 0.0), velocity=(0.0, 0.0, 0.0), attitude=(0.0, 0.0, 0.0, 1.0), rate=(0.0, 0.0, 0.0)):
    return BodyState(position, velocity, tuple(attitude), rate)


def run(state, reference=Reference(), rates=(0.0,) * 3, memory=REST, started=1.0, p=FIRMWARE):  # noqa: B008
    return mellinger_control(state, reference, rates, memory, started, DT, p)


def test_gain_sets_equal_the_reference_file(data_dir):
    table = json.loads((data_dir / "boundary_predictor/mellinger_gains.json").read_text())
    pairs = {"kp": "kp", "kd": "kd", "ki": "ki", "integral_max": "i_range", "attitude_gain": "kR", "rate_gain": "kw"}
    for name in ("firmware", "crazyswarm", "crazyflow"):
        p, published = mellinger_parameters(f"mellinger_{name}"), table[name]
        for ours, theirs in pairs.items():
            assert getattr(p, ours) == (published[f"{theirs}_xy"],) * 2 + (published[f"{theirs}_z"],)
        assert p.attitude_integral_gain[2] == published["ki_m_z"]
        assert p.attitude_integral_max[2] == published["i_range_m_z"]
        assert p.rate_derivative_gain == (published["kd_omega_rp"],) * 2 + (0.0,)
        assert p.thrust_scale == published["massThrust"]
        assert p.moment_max == (table["torque_command_limit"],) * 3
    si = si_gains(FIRMWARE, 0.12, 0.03253, 0.00735)
    equivalents = table["si_equivalents"]
    # Printed to four digits.
    assert si.attitude_gain[0] == pytest.approx(equivalents["kR_xy_Nm_per_rad"], rel=2e-4)
    assert si.rate_gain[0] == pytest.approx(equivalents["kw_xy_Nms"], rel=2e-4)
    assert si.attitude_gain[2] == pytest.approx(equivalents["kR_z_Nm_per_rad"], rel=2e-3)
    assert si.rate_gain[2] == pytest.approx(equivalents["kw_z_Nms"], rel=2e-3)


def test_one_step_by_hand():
    # Rolled by 0.1 rad, 0.2 m too low, 0.1 m/s upwards, rolling at 0.3 rad/s; first step.
    state = level((0.0, 0.0, -0.2), (0.0, 0.0, 0.1), Rotation.from_rotvec([0.1, 0, 0]).as_quat(), (0.3, 0.0, 0.0))
    thrust, moment, memory = run(state, started=0.0)
    integral = 0.2 * DT
    force = 0.029 * 9.81 + 1.25 * 0.2 - 0.4 * 0.1 + 0.05 * integral
    assert thrust == pytest.approx(132000 * force * np.cos(0.1))
    # Not halved: e_R = 2 sin 0.1 about x.
    assert moment == pytest.approx((-70000 * 2 * np.sin(0.1) - 20000 * 0.3, 0.0, 0.0), abs=1e-6)
    assert memory.position_integral == pytest.approx((0.0, 0.0, integral))
    assert memory.attitude_integral == pytest.approx((-2 * np.sin(0.1) * DT, 0.0, 0.0), abs=1e-9)
    assert memory.rate_error == pytest.approx((-0.3, 0.0, 0.0))

    # Second step, rolling at 0.31 rad/s and 0.05 rad of yaw: kd_omega acts on the difference, ki_m on yaw alone.
    turned = level(attitude=Rotation.from_rotvec([0, 0, 0.05]).as_quat(), rate=(0.31, 0.0, 0.0))
    _, moment, memory = run(turned, memory=memory)
    expected_x = -20000 * 0.31 + 200 * (-0.01 / DT)
    expected_z = -60000 * 2 * np.sin(0.05) - 500 * 2 * np.sin(0.05) * DT
    assert moment == pytest.approx((expected_x, 0.0, expected_z), abs=1e-6)


def test_integrals_and_moments_stay_within_their_ranges():
    far = level((-1e4, 1e4, -1e4), attitude=Rotation.from_rotvec([1.0, -1.0, 0.2]).as_quat(), rate=(9.0, -9.0, 9.0))
    reference = Reference(acceleration=(0.0, 0.0, 1e6))  # straight up, so that thrust stays positive
    thrust, moment, memory = run(far, reference)
    assert thrust > 0.0
    assert memory.position_integral == (2.0, -2.0, 0.4)
    assert np.abs(moment).max() == 32000.0


def test_without_thrust_everything_resets():
    memory = MellingerState((1.0, 1.0, 0.1), (0.5, 0.5, 2.0), (0.1, 0.1, 0.1))
    state = level(attitude=(1.0, 0.0, 0.0, 0.0), rate=(0.2, 0.0, 0.0))  # upside down: F . z_B < 0
    thrust, moment, after = run(state, memory=memory)
    assert thrust < 0.0
    assert not np.any(moment)
    assert not np.any(after.position_integral)
    assert not np.any(after.attitude_integral)
    assert after.rate_error == pytest.approx((-0.2, 0.0, 0.0))


@given(triples, triples, st.tuples(unit, unit, unit), triples, triples, st.floats(-3.0, 3.0))
def test_the_law_with_matrices(x, v, tilt, w, a, yaw):
    attitude = Rotation.from_rotvec(tilt)
    state = level(x, v, attitude.as_quat(), w)
    reference = Reference(acceleration=a, yaw=yaw)
    r = attitude.as_matrix()
    force = (
        0.029 * (np.array(a) + np.array([0, 0, 9.81]))
        + np.diag([0.4, 0.4, 1.25]) @ (-np.array(x))
        - np.diag([0.2, 0.2, 0.4]) @ v
    )
    force = force - np.diag([0.05] * 3) @ np.array(x) * DT
    z = force / np.linalg.norm(force)
    y = np.cross(z, [np.cos(yaw), np.sin(yaw), 0.0])
    if np.linalg.norm(y) < 0.01 or force @ r[:, 2] <= 0.0:
        return
    y /= np.linalg.norm(y)
    rd = np.column_stack([np.cross(y, z), y, z])
    skew = rd.T @ r - r.T @ rd
    error = np.array([skew[2, 1], skew[0, 2], skew[1, 0]])
    expected = -np.array([70000, 70000, 60000]) * error - np.array([20000, 20000, 12000]) * w
    expected[2] -= 500 * error[2] * DT
    thrust, moment, _ = run(state, reference, started=0.0)
    assert thrust == pytest.approx(132000 * force @ r[:, 2], rel=1e-9)
    assert np.allclose(moment, np.clip(expected, -32000, 32000), atol=1e-4)


def firmware_mixer(thrust, moment):
    """m1 to m4 as printed, in the firmware's axes: its pitch has the other sign."""
    r, p, y = moment[0] / 2, -moment[1] / 2, -moment[2]
    return np.array([thrust - r + p + y, thrust - r - p - y, thrust + r - p + y, thrust + r + p - y])


@pytest.mark.parametrize("name", ["cf2x_L250", "cf2x_P250", "rotorpy_crazyflie"])
def test_mixer_is_the_firmwares_with_its_motors_found_by_position(name):
    body = vehicle(name)
    corners = [(1, -1), (-1, -1), (-1, 1), (1, 1)]  # m1 front right, m2 back right, m3 back left, m4 front left
    mine = [(int(np.sign(r.position[0])), int(np.sign(r.position[1]))) for r in body.rotors]
    moment = (900.0, -2100.0, 3300.0)
    expected = firmware_mixer(30000.0, moment)
    for corner, command in zip(mine, motor_commands(30000.0, moment, mixer_for(body)), strict=True):
        assert float(command) == pytest.approx(expected[corners.index(corner)])


@pytest.mark.parametrize("name", ["cf2x_scg_iros2022", "cf2x_gym_pybullet_drones", "cf2x_L250", "flightgoggles"])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_mixed_moments_turn_the_body_about_the_axis_asked_for(name, axis):
    # The gym-pybullet lineage numbers and spins its motors as the mirror image of the real Crazyflie: spins decide.
    body = vehicle(name)
    moment = tuple(1000.0 if i == axis else 0.0 for i in range(3))
    lift = np.array([float(c) for c in motor_commands(30000.0, moment, mixer_for(body))])
    x, y = np.array([r.position[0] for r in body.rotors]), np.array([r.position[1] for r in body.rotors])
    achieved = np.array([y @ lift, -x @ lift, np.array([r.spin for r in body.rotors]) @ lift])
    assert achieved[axis] > 0.0
    assert np.allclose(np.delete(achieved, axis), 0.0, atol=1e-9)


def test_overflow_options():
    """With moments of all signs, so that each motor in turn is the largest."""
    mixer = mixer_for(vehicle("cf2x_L250"))
    largest = set()
    for signs in itertools.product((1.0, -1.0), repeat=3):
        moment = tuple(np.multiply(signs, (10000.0, 8000.0, 2000.0)))
        raw = firmware_mixer(60000.0, moment)
        largest.add(int(np.argmax([float(c) for c in motor_commands(30000.0, moment, mixer)])))
        kept = sorted(float(c) for c in motor_commands(60000.0, moment, mixer))
        clipped = sorted(float(c) for c in motor_commands(60000.0, moment, mixer, 0.0))
        assert kept == pytest.approx(sorted(raw - (raw.max() - 65535.0)))
        assert clipped == pytest.approx(sorted(np.clip(raw, 0.0, 65535.0)))
    assert largest == {0, 1, 2, 3}
    assert min(float(c) for c in motor_commands(100.0, (10000.0, 0.0, 0.0), mixer)) == 0.0


def test_mixer_refuses_other_airframes():
    for name in ("base_octarotor", "base_random"):
        with pytest.raises(AirworthyError, match="SI"):
            mixer_for(vehicle(name))
    with pytest.raises(AirworthyError, match="geometric law"):
        mellinger_parameters("lee")


def test_si_form_gives_the_same_forces():
    body = vehicle("cf2x_L250")
    state = level((0.1, -0.1, -0.05), (0.1, 0.0, 0.1), Rotation.from_rotvec([0.03, -0.02, 0.04]).as_quat(), (0.1, -0.2, 0.1))
    thrust, moment, _ = run(state)
    forces = np.array([thrust_of_command(c, 0.12) for c in motor_commands(thrust, moment, mixer_for(body))])
    _, si_moment, _ = run(state, p=si_gains(FIRMWARE, 0.12, 0.03253, 0.00735))
    y, x = np.array([r.position[1] for r in body.rotors]), np.array([r.position[0] for r in body.rotors])
    spin = np.array([r.spin for r in body.rotors])
    assert si_moment == pytest.approx((y @ forces, -x @ forces, 0.00735 * spin @ forces), rel=1e-9)
    si_thrust, *_ = run(state, p=si_gains(FIRMWARE, 0.12, 0.03253, 0.00735))
    # massThrust 132000 implies 0.1241 N at full command where the map has 0.12.
    assert si_thrust == pytest.approx(forces.sum() * 0.12412 / 0.12, rel=1e-4)


def test_voltage_chain_by_hand():
    chain = vehicle("cf2x_scg_iros2022").voltage_chain
    for u in (0.0, 30000.0, 65535.0):
        grams = 60.0 * u / 65536.0
        volts = 0.088 * grams - 0.0006239 * grams**2
        pwm = np.clip(65535.0 * min(1.0, volts / 3.0), 20000.0, 65535.0)
        rpm = 0.2685 * pwm + 4070.3
        assert speed_of_command(u, chain) == pytest.approx(rpm * np.pi / 30.0)


def test_hover_through_the_legacy_chain_is_6_percent_too_strong():
    # spec/boundary_predictor 9: 34.54 g flown with 0.027 kg settles 1.1 cm high.
    body = vehicle("cf2x_scg_iros2022")
    p = mellinger_parameters(gravity=9.8, mass=0.027)
    thrust, moment, _ = run(level(), p=p)
    k = body.rotors[0].thrust[2]
    lift = sum(k * float(speed_of_command(c, body.voltage_chain)) ** 2 for c in motor_commands(thrust, moment, mixer_for(body)))
    assert lift / (0.03454 * 9.8) == pytest.approx(1.06, abs=0.02)


def test_hover_integral():
    assert hover_integral(0.01, 0.05, 0.4) == pytest.approx(0.2)
    assert hover_integral(0.0739, 0.05, 0.4) == 0.4
    assert hover_integral(0.1, 0.0, 0.4) == 0.0


def test_reference_rates_turn_the_reference_attitude():
    assert reference_rates(Reference(yaw=0.4, yaw_rate=0.7), 9.81) == pytest.approx((0.0, 0.0, 0.7))
    # Level with jerk j: body z turns at j/g towards the jerk.
    assert reference_rates(Reference(jerk=(0.5, 0.0, 0.0)), 9.81) == pytest.approx((0.0, 0.5 / 9.81, 0.0))
    assert reference_rates(Reference(jerk=(0.0, 0.5, 0.0)), 9.81) == pytest.approx((-0.5 / 9.81, 0.0, 0.0))


def test_general_airframes_get_gains_of_their_own_size():
    small, large = mellinger_for(vehicle("flightgoggles")), mellinger_for(vehicle("real_18"))
    for p, body in ((small, vehicle("flightgoggles")), (large, vehicle("real_18"))):
        assert p.mass == body.mass
        thrust, moment, _ = run(level(), p=p)
        assert thrust == pytest.approx(body.mass * 9.81)
        assert not np.any(moment)
    assert large.attitude_gain[0] > small.attitude_gain[0]
