"""Named inertial sensors: the numbers against their sources, and what the simulated device does with them."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from airworthy.core.arrays import Array
from airworthy.core.errors import AirworthyError, UnknownNameError
from airworthy.sensors import devices as imu
from airworthy.sensors import imu_device, imu_names
from airworthy.simulation import Imu, Simulator, SimulatorConfig
from airworthy.vehicles import vehicle

NAMES = ["adis16448", "aerial_gym_base", "bmi085", "bmi088", "bmi088_levelled", "flightgoggles", "ideal", "vn100"]
RATE = 960.0
CARL = vehicle("carl")

# spec/aerial_gym 7.8: accelerometer and gyroscope noise densities, then their bias random walks.
PUBLISHED: dict[str, tuple[Any, float, float, float]] = {
    "aerial_gym_base": (1.68896e-3, 1.06793e-3, 9.7828e-7, 2.6542e-5),
    "vn100": (1.372931e-3, 6.108652e-5, 9.7828e-7, 2.6542e-5),
    "bmi088": ((1.569064e-3, 1.569064e-3, 1.863263e-3), 2.443461e-4, 1.356466e-3, 1.435270e-5),
    "bmi085": ((1.569064e-3, 1.569064e-3, 1.863263e-3), 2.443461e-4, 1.356466e-3, 1.435270e-5),
}


def simulated(device: Imu, envs: int = 1, **options: Any) -> Simulator:
    config = SimulatorConfig(imu=device, wrench_noise=False, disturbance=False, physics_rate=RATE, **options)
    return Simulator(CARL, config, env_count=envs, seed=11)


def samples(name: str, envs: int, steps: int) -> Array:
    """What a device adds to the truth while a vehicle falls freely, (steps, env, 6)."""
    logs = []
    for device in (Imu.named(name), Imu()):
        sim = simulated(device, envs)
        log = sim.advance(steps, np.zeros(4), imu_log=True)
        assert log is not None
        logs.append(log.astype(np.float64))
    return np.asarray(logs[0] - logs[1])


# ---- the numbers ------------------------------------------------------------------------------------------------------------


def test_the_catalogue() -> None:
    assert imu_names() == NAMES


def test_a_levelled_bmi088_is_one_whose_mount_has_no_error() -> None:
    plain, levelled = Imu.named("bmi088"), Imu.named("bmi088_levelled")
    assert plain.bias_initial[2] > 0.0
    assert levelled == replace(plain, bias_initial=(*plain.bias_initial[:2], 0.0))


@pytest.mark.parametrize("name", NAMES)
def test_every_device_can_be_built_and_mounted(name: str) -> None:
    device = Imu.named(name, position=(0.1, 0.0, -0.02), orientation=(1.0, 0.0, 0.0, 0.0))
    assert device.position == (0.1, 0.0, -0.02)
    assert device.orientation == (1.0, 0.0, 0.0, 0.0)
    for field in ("accelerometer_noise", "gyroscope_noise", "accelerometer_walk", "gyroscope_walk"):
        values = getattr(device, field)
        assert len(values) == 3
        assert all(0.0 <= value < 0.01 for value in values)
    assert device.accelerometer_limit > 0.0
    assert device.gyroscope_limit > 0.0
    assert imu._devices()[name]["source"]


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_aerial_gym_devices_are_those_of_the_specification(name: str) -> None:
    device = Imu.named(name)
    accelerometer, gyroscope, accelerometer_walk, gyroscope_walk = PUBLISHED[name]
    assert device.accelerometer_noise == (accelerometer if isinstance(accelerometer, tuple) else (accelerometer,) * 3)
    assert device.gyroscope_noise == (gyroscope,) * 3
    assert device.accelerometer_walk == (accelerometer_walk,) * 3
    assert device.gyroscope_walk == (gyroscope_walk,) * 3
    assert (device.accelerometer_limit, device.gyroscope_limit) == (100.0, 10.0)
    assert device.bias_initial == (1e-3, 1e-3, pytest.approx(math.radians(2.0)))


def test_the_flightgoggles_device_is_that_of_the_specification() -> None:
    """spec/flightgoggles 4.2 gives sample variances at 960 Hz, autocorrelations of the walks, and no initial bias."""
    device = Imu.named("flightgoggles")
    np.testing.assert_allclose(np.array(device.accelerometer_noise) ** 2 * 960.0, 0.005, rtol=1e-12)
    np.testing.assert_allclose(np.array(device.gyroscope_noise) ** 2 * 960.0, 0.003, rtol=1e-12)
    np.testing.assert_allclose(np.array([*device.accelerometer_walk, *device.gyroscope_walk]) ** 2, 1e-7, rtol=1e-12)
    assert device.bias_initial == (0.0, 0.0, 0.0)
    assert math.isinf(device.accelerometer_limit)


def test_the_ideal_device_adds_nothing() -> None:
    np.testing.assert_array_equal(samples("ideal", 2, 50), 0.0)


def test_a_name_that_is_none() -> None:
    with pytest.raises(UnknownNameError, match=r"Unknown inertial sensor 'bmi88'\. Closest: 'bmi088', 'bmi085'"):
        imu_device("bmi88")
    with pytest.raises(UnknownNameError, match="'BMI088'"):
        Imu.named("BMI088")


def test_a_device_with_two_numbers_for_three_axes(monkeypatch: pytest.MonkeyPatch) -> None:
    devices = {"mine": imu._devices()["ideal"] | {"gyroscope_noise": [0.1, 0.2]}}
    monkeypatch.setattr(imu, "_devices", lambda: devices)
    with pytest.raises(AirworthyError, match="'mine' has 2 numbers for gyroscope_noise; expected 1 or 3"):
        imu_device("mine")


# ---- the device -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["flightgoggles", "bmi088"])
def test_sample_variances_at_960_hz(name: str) -> None:
    """White noise has variance density^2 rate. 61,440 samples per axis: one part in 175 is a standard deviation of it."""
    device = Imu.named(name)
    noise = samples(name, 64, 960)
    # Differences of neighbours hold no bias and double the variance; the walk adds less than 1e-4 of it.
    variance = 0.5 * np.mean(np.diff(noise, axis=0) ** 2, axis=(0, 1))
    density = np.array([*device.accelerometer_noise, *device.gyroscope_noise])
    np.testing.assert_allclose(variance, density**2 * RATE, rtol=0.03)
    if name == "flightgoggles":
        np.testing.assert_allclose(variance, [0.005] * 3 + [0.003] * 3, rtol=0.03)


def test_biases_walk_as_the_square_root_of_time() -> None:
    """After t seconds a bias has variance walk^2 t: 256 flights of three axes give it to 5 %, three of those allowed."""
    sim = simulated(Imu.named("flightgoggles"), 256)
    for seconds in (1.0, 4.0):
        sim.reset()
        sim.advance(round(seconds * RATE), np.zeros(4))
        for field in ("accelerometer_bias", "gyroscope_bias"):
            assert np.var(sim.field(field)) == pytest.approx(1e-7 * seconds, rel=0.15), field


def test_initial_biases_and_mounting_are_uniform_within_their_half_widths() -> None:
    sim = simulated(Imu.named("bmi088"), 512)
    for field in ("accelerometer_bias", "gyroscope_bias"):
        bias = np.abs(sim.field(field))
        assert 0.99e-3 < bias.max() <= 1e-3
        assert np.mean(bias) == pytest.approx(0.5e-3, rel=0.05)
    rotation = sim.parameter("imu_rotation").reshape(-1, 3, 3)
    np.testing.assert_allclose(rotation @ rotation.transpose(0, 2, 1), np.tile(np.eye(3), (512, 1, 1)), atol=1e-12)
    turned = np.arccos(np.clip((np.trace(rotation, axis1=1, axis2=2) - 1.0) / 2.0, -1.0, 1.0))
    assert 0.03 < turned.max() < math.radians(2.0) * math.sqrt(3.0)


def test_at_hover_it_feels_gravity_upwards() -> None:
    sim = simulated(Imu())
    sim.set_command(sim.rotor_speed)
    # float32 thrusts of four rotors, each to 6e-8 of about 2.5 m/s^2.
    np.testing.assert_allclose(sim.imu[0], [0.0, 0.0, 9.81, 0.0, 0.0, 0.0], atol=2e-5)


def test_a_device_mounted_upside_down_and_off_centre() -> None:
    """Turned by half a turn about x it feels gravity along -z; at a lever r a spin w adds w x (w x r)."""
    spin, lever = 3.0, 0.2
    x, y, z = CARL.center_of_mass
    device = Imu(position=(x + lever, y, z), orientation=(1.0, 0.0, 0.0, 0.0))
    sim = simulated(device)
    sim.reset(rate=(0.0, 0.0, spin))
    sim.set_command(sim.rotor_speed)
    np.testing.assert_allclose(sim.imu[0, [0, 2]], [-(spin**2) * lever, -9.81], atol=1e-3)
    np.testing.assert_allclose(sim.imu[0, 3:], [0.0, 0.0, -spin], atol=1e-6)


def test_it_saturates() -> None:
    sim = simulated(Imu.named("vn100"))
    sim.reset(rate=(0.0, 0.0, 20.0))
    sim.set_command(np.zeros(4))
    assert sim.imu[0, 5] == 10.0
    sim.set_external(force=(0.0, 0.0, 150.0 * CARL.mass))
    assert sim.imu[0, 2] == 100.0
