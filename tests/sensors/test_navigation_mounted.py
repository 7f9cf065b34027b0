"""Magnetometer, barometer and satellite navigation, mounted by name: what they say of known places, and their noise."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from airworthy.benchmarks.fly.config import FlyConfig
from airworthy.benchmarks.fly.job import run_fly
from airworthy.core.arrays import Array
from airworthy.core.errors import AirworthyError
from airworthy.scenes import SceneBatch, scene
from airworthy.sensors import device_or_sensor
from airworthy.sensors.navigation.atmosphere import pressure
from airworthy.sensors.navigation.geodesy import Home
from airworthy.sensors.navigation.magnetic_field import magnetic_field
from airworthy.sensors.navigation.mounted import NavigationSensor, mounted_names
from airworthy.sensors.navigation.suite import navigation_device
from airworthy.sensors.noise import Draw
from airworthy.sensors.sampling import SensorView
from airworthy.simulation import MountedSensor, MountedSensors, Simulator, SimulatorConfig
from airworthy.vehicles import vehicle

HOME = Home()
UPRIGHT = np.array([[0.0, 0.0, 0.0, 1.0]])


def said(name: str, position: Any = (0.0, 0.0, 0.0), attitude: Array = UPRIGHT, velocity: Any = None) -> dict[str, Any]:
    moving = None if velocity is None else np.array([velocity], float)
    return NavigationSensor(name).capture(None, SensorView(np.array([position], float), attitude, velocity=moving))


def test_ideal_ones_tell_the_truth() -> None:
    field = magnetic_field(HOME)
    np.testing.assert_allclose(said("magnetometer_ideal")["magnetic_field"][0], field, atol=1e-15)
    # A quarter turn to the left: what was ahead (east) is to the right now, north is ahead.
    quarter = np.array([[0.0, 0.0, np.sqrt(0.5), np.sqrt(0.5)]])
    turned = said("magnetometer_ideal", attitude=quarter)["magnetic_field"][0]
    np.testing.assert_allclose(turned, [field[1], -field[0], field[2]], atol=1e-12)
    air = said("barometer_ideal", (1.0, 2.0, 100.0))
    assert air["pressure"][0, 0] == pytest.approx(float(pressure(HOME.altitude + 100.0)))
    assert air["pressure_altitude"][0, 0] == pytest.approx(HOME.altitude + 100.0, abs=1e-6)
    fix = said("gnss_ideal", (30.0, -40.0, 5.0), velocity=(1.0, 2.0, 3.0))
    np.testing.assert_allclose(HOME.local(*fix["geodetic"][0]), [30.0, -40.0, 5.0], atol=1e-6)
    np.testing.assert_array_equal(fix["velocity"][0], [1.0, 2.0, 3.0])


def test_noise_is_that_of_the_device_and_of_each_sensor_alone() -> None:
    count = 4000
    view = SensorView(np.zeros((count, 3)), np.tile(UPRIGHT, (count, 1)), draw=Draw.of(count, seed=3, sensor="a"))
    off = NavigationSensor("hmc5883l").capture(None, view)["magnetic_field"] - magnetic_field(HOME)
    # A standard deviation of 4,000 draws is known to 1.1 % (one sigma): four of them.
    np.testing.assert_allclose(off.std(axis=0), 2e-3, rtol=0.045)
    other = SensorView(np.zeros((count, 3)), np.tile(UPRIGHT, (count, 1)), draw=Draw.of(count, seed=3, sensor="b"))
    again = NavigationSensor("hmc5883l").capture(None, other)["magnetic_field"] - magnetic_field(HOME)
    assert abs(np.corrcoef(off[:, 0], again[:, 0])[0, 1]) < 0.07


@pytest.mark.slow
def test_what_wanders_grows_to_its_size_and_no_further() -> None:
    sensor, count = NavigationSensor("m8n"), 400
    errors = []
    device: Any = navigation_device("gnss", "m8n")
    for sample in range(3000):  # five minutes at 10 Hz, five correlation times
        view = SensorView(np.zeros((count, 3)), np.tile(UPRIGHT, (count, 1)), draw=Draw.of(count, sample=sample, sensor="g"),
                          velocity=np.zeros((count, 3)))  # fmt: skip
        found = sensor.capture(None, view)["geodetic"]
        if sample in (0, 2999):
            errors.append(HOME.local(*found.T).std(axis=0))
    # One period moves it by sqrt(1 - exp(-2 dt / T)) of its size; a deviation of 400 draws is known to 3.5 %: four of these.
    assert (device.rate, device.position_time) == (10.0, 60.0)
    sizes = np.array([device.horizontal] * 2)
    np.testing.assert_allclose(errors[0][:2], np.sqrt(1.0 - np.exp(-2.0 / 600.0)) * sizes, rtol=0.15)
    np.testing.assert_allclose(errors[1][:2], sizes, rtol=0.15)
    sensor.reset(np.arange(10))
    assert np.abs(sensor._state[:10]).max() == 0.0
    assert np.abs(sensor._state[10:]).min() > 0.0


def made(envs: int) -> tuple[Simulator, MountedSensors]:
    names = ("hmc5883l", "ms5611", "f9p_rtk")
    simulator = Simulator(vehicle("flightgoggles"), SimulatorConfig(level="velocity"), env_count=envs, seed=2)
    sensors = {name: MountedSensor(device_or_sensor(name)) for name in names}
    mounted = MountedSensors(simulator, SceneBatch([scene("hall")], envs), sensors)
    simulator.reset(position=(0.0, 0.0, 1.5))
    return simulator, mounted


def flown(envs: int, steps: int = 60) -> dict[str, Any]:
    simulator, mounted = made(envs)
    for _ in range(steps):
        simulator.step([0.5, 0.0, 0.0, 0.0])
    return {name: mounted.latest(name) for name in mounted.names}


def test_a_vehicle_hears_the_same_alone_and_among_others() -> None:
    alone, among = flown(1), flown(3)
    for name, sample in alone.items():
        for channel, array in sample.data.items():
            np.testing.assert_array_equal(array[0], among[name].data[channel][0], err_msg=f"{name} {channel}")
            assert not np.array_equal(among[name].data[channel][0], among[name].data[channel][1])


def test_a_fix_is_late_and_tells_of_its_instant() -> None:
    fix = flown(1)["f9p_rtk"]
    # At 0.6 s the newest fix that is 0.11 s old is that of 0.4 s.
    assert fix.time[0] == pytest.approx(0.4, abs=1e-3)


def test_a_snapshot_goes_on_with_the_same_errors() -> None:
    simulator, mounted = made(1)
    for _ in range(30):
        simulator.step([0.5, 0.0, 0.0, 0.0])
    kept, sensors = simulator.save(), mounted.save()
    found = []
    for _ in range(2):
        for _ in range(30):
            simulator.step([0.5, 0.0, 0.0, 0.0])
        found.append({name: {k: np.array(v) for k, v in mounted.latest(name).data.items()} for name in mounted.names})
        simulator.restore(kept)
        mounted.restore(sensors)
    for name, data in found[0].items():
        for channel, array in data.items():
            np.testing.assert_array_equal(array, found[1][name][channel])


def test_they_are_carried_and_recorded_by_name(tmp_path: Path) -> None:
    sensors = ("gps=f9p_rtk", "ms5611")
    config = FlyConfig(waypoints=("0,0,1.5", "0.2,0,1.5"), scene="hall", sensors=sensors, hold=0.0, report=False,
                       out=tmp_path / "run")  # fmt: skip
    run_fly(config)
    table = pq.read_table(tmp_path / "run" / "sensors" / "gps" / "index.parquet").to_pydict()
    assert np.all(np.abs(np.array(table["geodetic"])[:, 0] - HOME.latitude) < 1e-4)
    assert len(table["velocity"][0]) == 3


def test_names() -> None:
    assert {"hmc5883l", "ms5611", "f9p_rtk", "m8n", "gnss_ideal", "magnetometer_ideal", "barometer_ideal"} == set(
        mounted_names()
    )
    with pytest.raises(AirworthyError, match="Unknown navigation sensor 'f9p'"):
        NavigationSensor("f9p")
    with pytest.raises(AirworthyError, match="tells a velocity: mount it on the vehicle itself"):
        said("gnss_ideal")
