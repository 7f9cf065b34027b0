"""A sensor: log the inertial sensor of a drone that stands still, and plot its Allan deviation.

White noise falls with slope -1/2, the bias walk rises with +1/2. Writes runs/07_imu_allan/allan.png.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from airworthy.benchmarks import allan_deviation
from airworthy.simulation import Ground, Imu, Simulator, SimulatorConfig
from airworthy.vehicles import vehicle

RATE, DEVICES = 200.0, ("bmi088", "flightgoggles", "adis16448")
folder = Path("runs/07_imu_allan")
folder.mkdir(parents=True, exist_ok=True)
for device in DEVICES:
    config = SimulatorConfig(physics_rate=RATE, imu=Imu.named(device), ground=Ground(), wrench_noise=False)
    simulator = Simulator(vehicle("carl"), config, seed=7)
    simulator.reset(position=(0.0, 0.0, 0.1), rotor_speed=np.zeros(4))
    simulator.advance(1000, np.zeros(4))  # settles on the ground
    log = simulator.advance(100_000, np.zeros(4), imu_log=True)  # 500 s in one launch, (steps, env, 6)
    found = allan_deviation(log[:, 0], RATE)
    plt.loglog(found.tau, found.deviation[:, 3], label=f"{device}, gyroscope x [rad/s]")
    density = Imu.named(device).gyroscope_noise[0]
    print(f"{device}: {found.white_density(0.005, 0.05)[3]:.3e} rad/s/sqrt(Hz) measured, {density:.3e} configured")
plt.xlabel("averaging time [s]")
plt.ylabel("Allan deviation")
plt.legend()
plt.savefig(folder / "allan.png", dpi=120)
