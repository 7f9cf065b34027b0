"""Contact: a vehicle that hits something bounces, freezes where it is, or starts again.

Drops drones with their rotors off onto a floor and shoots one at a thin wall; prints what each run recorded.
"""

import numpy as np

from airworthy.geometry import Box, GeometryBatch, Placement
from airworthy.simulation import Contact, Simulator, SimulatorConfig
from airworthy.vehicles import vehicle

shapes = [Box((9.0, 9.0, 0.25)), Box((0.025, 9.0, 9.0))]
place = GeometryBatch(shapes, [Placement.of(shape=[0, 1], position=[(0.0, 0.0, -0.25), (4.0, 0.0, 0.0)])])
names, off = np.array(["floor", "wall"]), np.zeros(4)
start = [(0.0, 0.0, 1.0), (0.3, 0.0, 1.5), (0.0, 0.5, 2.0), (0.0, 0.0, 3.0)]
velocity = [(0.0, 0.0, 0.0)] * 3 + [(30.0, 0.0, 0.0)]  # the last one: 31 mm per step, at 5 cm

for contact in (Contact("respond", restitution=0.6, friction=0.3), Contact("freeze"), Contact("reset")):
    simulator = Simulator(vehicle("carl"), SimulatorConfig(contact=contact), 4, geometry=place, geometry_env=np.zeros(4, int))
    simulator.reset(position=start, velocity=velocity, rotor_speed=off)
    simulator.advance(1200, off)  # 1.25 s
    met = simulator.contacts  # how often, and of the last one when, where, how fast and with what
    for drone, (count, speed, height) in enumerate(zip(met.count, met.speed, simulator.position[:, 2], strict=True)):
        with_what = f"{names[met.instance[drone]]} at {speed:4.1f} m/s, {met.time[drone]:.2f} s"
        print(f"{contact.mode:8} drone {drone}: impacts {count}, last with the {with_what}; now {height:+.2f} m high")
