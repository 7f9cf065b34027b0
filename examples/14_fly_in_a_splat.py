"""Flight in splats: two drones in the hall of Gaussian splats, one in full light, one in 40 % of it; a ball of splats rolls by.

Writes runs/14_fly_in_a_splat/seen.png: what their cameras saw on the way, bright above, dim below.
"""

from pathlib import Path

import numpy as np
from PIL import Image

from airworthy.optics import to_8bit
from airworthy.pilots import FlightPlan, fly, tracker
from airworthy.rendering import relit
from airworthy.scenes import Actor, SceneBatch, Splats, Waypoint, add_splat_actor, scene
from airworthy.simulation import Contact, MountedSensor, MountedSensors, Simulator, SimulatorConfig
from airworthy.trajectories import course
from airworthy.vehicles import vehicle

spots = np.random.default_rng(0).normal(size=(3000, 3))
spots *= 0.4 / np.linalg.norm(spots, axis=1, keepdims=True)  # on a ball, as a file would bring them: `read_splats("ball.spz")`
upright = np.tile([0.0, 0.0, 0.0, 1.0], (3000, 1))
ball = Splats(spots, upright, np.full((3000, 3), 0.02), np.full(3000, 0.95), 4.0 * spots[:, None])  # coloured by its normals
waypoints = (Waypoint(0.0, (1.5, -2.6, 0.4)), Waypoint(4.0, (1.5, -0.9, 0.4), (1.0, 0.0, 0.0, 0.0)))
hall = add_splat_actor(scene("hall"), Actor("ball", (), "scripted", path=waypoints, repeat=True), ball)

places = SceneBatch([hall, relit(hall, 0.4)])
path = course("robustness").trajectory()  # leads through the gate of this hall
pilot = tracker("geometric", path)
config = SimulatorConfig(level=pilot.level, contact=Contact("freeze"))
simulator = Simulator(vehicle("carl"), config, env_count=2, geometry=places.geometry)
simulator.reset(position=path.sample(0.0).position)
mounted, seen = MountedSensors(simulator, places, {"camera": MountedSensor("d435", rate=1.0)}), []
mounted.listen(lambda capture: seen.append(np.concatenate(to_8bit(capture.data["rgb"]))[::2, ::2]))
fly(simulator, pilot, FlightPlan(8.0), mounted=mounted)
Path("runs/14_fly_in_a_splat").mkdir(parents=True, exist_ok=True)
Image.fromarray(np.concatenate(seen[1:8:2], axis=1)).save("runs/14_fly_in_a_splat/seen.png")
print(f"{len(seen)} pairs of images; {simulator.contacts.count.sum()} impacts")
