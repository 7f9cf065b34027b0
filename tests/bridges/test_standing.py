"""Before a flight: what an estimator learns of its sensors while the vehicle stands must hold when it flies."""

from __future__ import annotations

from typing import Any

import numpy as np
from tests.bridges.conftest import ARDUPILOT_RATE, free_port, make_pilot, simulator

from airworthy.bridges.external_pilot import MotorReply
from airworthy.pilots import FlightPlan, fly
from airworthy.simulation import Imu


def test_the_standing_sensors_have_the_biases_of_the_flight(loopback: None, monkeypatch: Any) -> None:
    """ArduCopter learnt half a degree per second that was no bias, and was off by a metre after take-off."""
    count, seen = 2000, []
    with make_pilot("ardupilot", free_port()) as pilot:

        def exchange(sample: Any, standing: bool) -> MotorReply:
            seen.append(np.concatenate([sample.acceleration, sample.rate_measured]))
            return MotorReply(np.zeros(4), len(seen) >= count)

        monkeypatch.setattr(pilot, "exchange", exchange)
        made = simulator(rate=ARDUPILOT_RATE)
        # Biases alone: a mount that is off would show in both, and is another test's.
        biases = np.concatenate([made.field("accelerometer_bias")[0], made.field("gyroscope_bias")[0]])
        mount = np.asarray(made.parameter("imu_rotation"))[0].reshape(3, 3)
        fly(made, pilot, FlightPlan(duration=0.004))
    device = Imu.named("bmi088")
    deviation = np.array([*device.accelerometer_noise, *device.gyroscope_noise]) * np.sqrt(ARDUPILOT_RATE / count)
    turn = np.diag([1.0, -1, -1])
    expected = np.concatenate([turn @ (mount.T @ [0, 0, 9.81] + biases[:3]), turn @ biases[3:]])
    assert np.all(np.abs(np.mean(seen[:count], axis=0) - expected) < 4.0 * deviation)
