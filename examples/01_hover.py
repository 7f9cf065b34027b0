"""A simulator: make it, step it, read its state.

Two drones are told to hold a place and a heading; one of them starts tilted. Prints where they are once per second.
"""

import numpy as np

from airworthy.core import from_euler
from airworthy.simulation import Simulator, SimulatorConfig
from airworthy.vehicles import vehicle

# A command of the level "position" is x, y, z [m] and yaw [rad]; it is given at 100 Hz, the physics run at 960 Hz.
simulator = Simulator(vehicle("flightgoggles"), SimulatorConfig(level="position"), env_count=2)
command = np.array([[0.0, 0.0, 1.0, 0.0], [0.0, 0.0, 1.0, 1.57]])

simulator.reset(position=(0.0, 0.0, 0.5), attitude=[(0.0, 0.0, 0.0, 1.0), from_euler(0.6, 0.0, 0.0)])
for second in range(5):
    for drone, (x, y, z) in enumerate(simulator.position):
        rotors = ", ".join(f"{speed:.0f}" for speed in simulator.rotor_speed[drone])
        print(f"{second} s, drone {drone}: at {x:+.3f}, {y:+.3f}, {z:+.3f} m, rotors at {rotors} rad/s")
    for _ in range(100):
        simulator.step(command)
print(f"off by {np.linalg.norm(simulator.position - command[:, :3], axis=1).max() * 1000.0:.1f} mm at the end")
