"""Joints: a chain of four links hovers as a square, closes it to 55 degrees and opens it again.

Prints how far its centre of mass strays, with rotors allocated by the measured joints and as at the start.
"""

import numpy as np

from airworthy.control import ControlConfig
from airworthy.simulation import Simulator, SimulatorConfig
from airworthy.vehicles import vehicle

chain = vehicle("snakey")  # between links a joint about z and one about x, driven to rates
for allocation in ("measured", "neutral"):
    config = SimulatorConfig(
        dynamics="articulated",
        physics_rate=500.0,
        integrator="extrapolated",  # servos are too fast for explicit steps
        level="position",
        control=ControlConfig(joint_allocation=allocation),
        disturbance=False,
    )
    simulator = Simulator(chain, config)
    place, away = simulator.center[0].copy(), 0.0
    for t in np.arange(0.0, 12.0, 0.01):
        bend = np.radians(35.0) * 0.5 * (1.0 - np.cos(2.0 * np.pi * t / 12.0))
        # NaN: the joints about x hold the angle that they have.
        simulator.set_joint_command(angle=[np.pi / 2 - bend, np.nan] * 3)
        simulator.step((*place, 0.0))
        away = max(away, float(np.linalg.norm(simulator.center[0] - place)))
    angles = np.degrees(simulator.field("joint")[0, ::2])
    print(f"allocation {allocation}: at most {100.0 * away:.1f} cm off; now at {', '.join(f'{a:.1f}' for a in angles)} degrees")
