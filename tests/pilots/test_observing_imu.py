"""The inertial sensor as pilots are given it."""

import numpy as np

from airworthy.pilots import observe
from airworthy.simulation import Imu, Simulator, SimulatorConfig
from airworthy.vehicles import vehicle


def test_a_flight_begins_with_a_sample_and_not_with_zeros() -> None:
    flown = vehicle("x500")
    simulator = Simulator(flown, SimulatorConfig(imu=Imu.named("ideal")), env_count=2)
    # In hover: specific force is what carries the vehicle, upwards.
    np.testing.assert_allclose(observe(simulator, ("imu",))["imu"], [[0, 0, flown.gravity, 0, 0, 0]] * 2, atol=1e-3)
    before = np.array(simulator.field("imu"))
    simulator.step(np.array(simulator.rotor_speed))
    np.testing.assert_array_equal(observe(simulator, ("imu",))["imu"], simulator.field("imu"))
    assert not before.any()
