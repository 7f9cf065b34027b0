"""Our simulated inertial sensor at rest, for the same statistics that real sensors get."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from airworthy.simulation import Ground, Imu, Simulator, SimulatorConfig
from airworthy.vehicles import vehicle

RATE = 200.0
"""As the EuRoC log [Hz]."""
HOURS = 0.5


def simulated_at_rest(device: str = "adis16448", seed: int = 0) -> NDArray[np.float64]:
    """Samples of a sensor on a vehicle that stands on the ground with its rotors still.

    Args:
        device: Name of an inertial sensor.
        seed: Of its noise.

    Returns:
        Gyroscope [rad/s], then accelerometer [m/s^2], shape (samples, 6), at `RATE`.
    """
    config = SimulatorConfig(
        physics_rate=RATE, control_rate=RATE, ground=Ground(), imu=Imu.named(device), wrench_noise=False, disturbance=False
    )
    craft = vehicle("flightgoggles")
    sim = Simulator(craft, config, seed=seed)
    sim.reset(position=[0.0, 0.0, craft.body.size[0] - craft.body.center[2]], rotor_speed=np.zeros(4))
    sim.advance(int(2 * RATE), np.zeros(4))
    steps, parts = int(HOURS * 3600 * RATE), []
    while steps > 0:
        count = min(steps, 20_000)
        samples = sim.advance(count, np.zeros(4), imu_log=True)
        assert samples is not None
        parts.append(samples[:, 0].astype(np.float64))
        steps -= count
    both = np.concatenate(parts)
    return np.concatenate([both[:, 3:], both[:, :3]], axis=1)
