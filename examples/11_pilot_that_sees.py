"""A pilot with eyes: it is given its camera's images and its height above ground, and stops before a wall.

Sixteen drones fly at walls at different distances; none is told where its wall is.
"""

import numpy as np

from airworthy.geometry import Box
from airworthy.pilots import FlightPlan, Observation, fly
from airworthy.scenes import Instance, Scene, SceneBatch
from airworthy.simulation import Contact, MountedSensor, MountedSensors, Simulator, SimulatorConfig
from airworthy.vehicles import vehicle


class Careful:
    """Flies ahead, the slower the nearer what it sees."""

    name, level = "careful", "velocity"  # commands: velocity [m/s], in the drone's heading, and yaw rate
    observes = ("sensor:front", "sensor:down")

    def command(self, observation: Observation) -> np.ndarray:
        front, down = observation.sample("front"), observation.sample("down")  # the newest that have arrived
        ahead = 10.0 * np.abs(front["depth"])[:, 57:77, 80:160].min(axis=(1, 2))  # the camera tells tenths of 10 m
        forward = front.valid * np.clip(0.8 * (ahead - 1.5), 0.0, 3.0)
        up = down.valid * np.clip(1.5 - down["range"][:, 0], -1.0, 1.0)
        return np.stack([forward, 0 * up, up, 0 * up], axis=1)


distances, shapes = np.linspace(4.0, 19.0, 16), {"floor": Box((40.0, 20.0, 0.1)), "wall": Box((0.1, 10.0, 3.0))}
walls = [(Instance("floor", (0, 0, -0.1)), Instance("wall", (distance + 0.1, 0, 3.0))) for distance in distances]
places = SceneBatch([Scene("walled", shapes, instances=pair) for pair in walls])
config = SimulatorConfig(level="velocity", contact=Contact("freeze"))
simulator = Simulator(vehicle("lmf2"), config, env_count=16, geometry=places.geometry)
simulator.reset(position=(0.0, 0.0, 1.5))
sensors = {"front": MountedSensor("base_depth_camera", randomize_mount=False), "down": "lightware_sf11b"}
fly(simulator, Careful(), FlightPlan(15.0), mounted=MountedSensors(simulator, places, sensors))
left = distances - simulator.position[:, 0]
print(f"{np.sum(simulator.contacts.count)} of 16 hit something; they stand {left.min():.2f} to {left.max():.2f} m before it")
