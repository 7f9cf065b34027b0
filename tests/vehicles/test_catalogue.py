"""The catalogue's promises: names, sources, values per family, and light loading."""

from __future__ import annotations

import math
import subprocess
import sys

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from airworthy.core.errors import UnknownNameError
from airworthy.vehicles import RotorResponse, control_effectiveness, rotor_thrust, vehicle, vehicle_names
from airworthy.vehicles.files import missing_sources

RPM = 2 * math.pi / 60
AERIAL_GYM = {
    "base_quadrotor": 4,
    "base_quad_root_link_control": 4,
    "base_octarotor": 6,
    "base_random": 6,
    "lmf1": 4,
    "lmf2": 4,
    "magpie": 4,
    "x500": 4,
    "tinyprop": 4,
    "morphy_stiff": 4,
}
CRAZYFLIES = ["cf2x_scg_iros2022", "cf2x_gym_pybullet_drones", "cf2x_L250", "cf2x_P250", "rotorpy_crazyflie"]


def test_names_are_the_published_ones() -> None:
    fleet = [f"real_{i:02d}" for i in range(1, 19)] + [f"virt_{i:02d}" for i in range(1, 19)]
    assert sorted([*fleet, "carl", "flightgoggles", "flightgoggles_2019", *CRAZYFLIES, *AERIAL_GYM]) == vehicle_names()


def test_an_unknown_name_suggests_the_closest() -> None:
    with pytest.raises(UnknownNameError, match=r"Unknown vehicle 'crl'\. Closest: 'carl'\."):
        vehicle("crl")


@pytest.mark.parametrize("name", vehicle_names())
def test_every_value_has_a_source(name: str) -> None:
    assert missing_sources(vehicle(name)) == []
    assert vehicle(name).name == name


def test_callers_cannot_spoil_the_catalogue() -> None:
    vehicle("carl").extra["family"] = "spoiled"
    assert vehicle("carl").extra["family"] == "figs"


@pytest.mark.parametrize("name", AERIAL_GYM)
def test_rank_of_the_effectiveness(name: str) -> None:
    assert np.linalg.matrix_rank(control_effectiveness(vehicle(name)), tol=1e-6) == AERIAL_GYM[name]


def test_full_rank_airframes_have_a_right_inverse() -> None:
    for name in ("base_octarotor", "base_random"):
        matrix = control_effectiveness(vehicle(name))
        np.testing.assert_allclose(matrix @ np.linalg.pinv(matrix), np.eye(6), atol=1e-12)


def test_golden_effectiveness_about_the_root() -> None:
    # Printed matrices of base_quadrotor and tinyprop: rotors front right, back right, back left, front left.
    for name, arm in (("base_quadrotor", 0.13), ("tinyprop", 0.16)):
        roll, pitch = [-arm, -arm, arm, arm], [-arm, arm, arm, -arm]
        expected = [[0] * 4, [0] * 4, [1] * 4, roll, pitch, [-0.01, 0.01, -0.01, 0.01]]
        np.testing.assert_allclose(control_effectiveness(vehicle(name), "root"), expected, atol=1e-6)


def test_crazyflie_polynomials_keep_their_force() -> None:
    # crazyflow: f = -5.382e-7 rpm + 2.458e-10 rpm^2; the same force at the same speed in rad/s.
    rotor = vehicle("cf2x_L250").rotors[0]
    for rpm in (9_000.0, 20_000.0):
        expected = -5.382196214637237e-07 * rpm + 2.4582929831265485e-10 * rpm**2
        assert rotor_thrust(rotor, rpm * RPM) == pytest.approx(expected, rel=1e-12)
    assert rotor_thrust(rotor, rotor.speed_min) == pytest.approx(0.012817578393224994, rel=1e-12)
    assert rotor_thrust(rotor, rotor.speed_max) == pytest.approx(0.12, rel=1e-12)


def test_crazyflie_rotor_response_keeps_its_rate() -> None:
    # crazyflow: d rpm/dt = a (c - w) + b (c^2 - w^2), rising pair first, in rpm.
    a, b, low, high = 5.172596691828673, 8.14774234381285e-05, 12_000.0, 15_000.0
    expected = (a * (high - low) + b * (high**2 - low**2)) * RPM
    rise = vehicle("cf2x_P250").rotors[0].response.rise
    assert rise[0] * (high - low) * RPM + rise[1] * (high**2 - low**2) * RPM**2 == pytest.approx(expected, rel=1e-12)
    assert vehicle("cf2x_P250").rotors[0].response.fall[0] == 0.0


def test_legacy_thrust_chain_and_its_limits() -> None:
    airframe = vehicle("cf2x_scg_iros2022")
    chain, rotor = airframe.voltage_chain, airframe.rotors[0]
    assert chain is not None
    assert chain.speed_slope * 65535 + chain.speed_offset == pytest.approx((0.2685 * 65535 + 4070.3) * RPM)
    assert rotor_thrust(rotor, rotor.speed_max) == pytest.approx(0.148, abs=5e-4)  # printed maximum
    assert rotor.speed_min == pytest.approx((0.2685 * 20000 + 4070.3) * RPM)
    assert airframe.gravity == 9.8
    assert vehicle("cf2x_gym_pybullet_drones").voltage_chain is None


@pytest.mark.parametrize(("name", "ratio"), [("cf2x_scg_iros2022", 0.0251), ("cf2x_L250", 0.00735), ("cf2x_P250", 0.00699)])
def test_crazyflie_torque_per_thrust(name: str, ratio: float) -> None:
    airframe = vehicle(name)
    yaw = control_effectiveness(airframe)[5]
    np.testing.assert_array_equal(np.sign(yaw), [rotor.spin for rotor in airframe.rotors])
    # The fits' ratio holds where it was taken, near full thrust; at hover the polynomials stray by a few per cent.
    np.testing.assert_allclose(np.abs(yaw), ratio, rtol=0.05)


def test_flightgoggles_versions() -> None:
    now, then = vehicle("flightgoggles"), vehicle("flightgoggles_2019")
    assert (now.inertia[2], then.inertia[2]) == (0.0069, 0.0049)
    assert now.wrench_noise.moment == (1.25e-7,) * 3
    np.testing.assert_allclose(then.wrench_noise.moment, 2.5e-4 * 0.0049**2)  # (N m)^2 s = (rad/s^2)^2 s times J^2
    assert then.rotors[0].inertia == 0.0
    assert then.drag.angular_norm == (0.0, 0.0, 0.0)
    assert len(now.sensors[0].parameters) > len(then.sensors[0].parameters)  # no bias model in 2019


def test_carl_camera_looks_forward() -> None:
    ideal, measured = (Rotation.from_quat(sensor.orientation).as_matrix() for sensor in vehicle("carl").sensors)
    # Columns: camera right, down and forward in the body (forward, left, up).
    np.testing.assert_allclose(ideal, [[0, 0, 1], [-1, 0, 0], [0, -1, 0]], atol=1e-12)
    # Published measured mount: optical axis -z_C = (0.9925, 0.00446, -0.12209) in z-down body, so 7 degrees up.
    np.testing.assert_allclose(measured[:, 2], [0.9925, -0.00446, 0.12209], atol=5e-5)
    assert vehicle("carl").sensors[0].position == (0.1, 0.03, 0.01)  # left and up of the centre


def test_agile_autonomy_has_two_motor_constants() -> None:
    assert vehicle("virt_02").rotors[0].response == RotorResponse.first_order(0.0125, 0.025)
    assert vehicle("virt_05").rotors[0].response == RotorResponse.first_order(1 / 30)


def test_loading_one_vehicle_reads_one_file() -> None:
    code = (
        "import sys, airworthy.vehicles as v; from airworthy.vehicles import lookup; v.vehicle('carl');"
        "heavy = {'scipy', 'warp', 'matplotlib', 'pyarrow', 'rich', 'tyro'} & set(sys.modules);"
        "assert not heavy, heavy; assert lookup._read.cache_info().currsize == 1"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
