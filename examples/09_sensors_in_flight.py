"""Sensors on a vehicle: a depth camera and a rolling LiDAR sample on their own steps while it flies, and arrive late.

Writes runs/09_sensors_in_flight: depth.png, lidar.png (the last images) and cloud.ply (the last scan, in the world).
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from airworthy.pilots import FlightPlan, fly, tracker
from airworthy.scenes import SceneBatch, scene, write_points_ply
from airworthy.sensors import device, packed_points
from airworthy.simulation import Contact, MountedSensor, MountedSensors, Simulator, SimulatorConfig
from airworthy.trajectories import course
from airworthy.vehicles import vehicle

hall = SceneBatch(scene("mid_gate"))
path = course("robustness").trajectory()  # leads through the gate of this hall
pilot = tracker("geometric", path)
config = SimulatorConfig(level=pilot.level, contact=Contact("freeze"))
simulator = Simulator(vehicle("carl"), config, geometry=hall.geometry)
simulator.reset(position=path.sample(0.0).position)

lidar = device("ouster_os0_64_datasheet").variant(rate=10.0, rolling=True, points_in_world=True)
camera = MountedSensor("realsense_d455", rate=14.5, latency=0.03, noise=True)
mounted = MountedSensors(simulator, hall, {"front": camera, "top": MountedSensor(lidar, channels=("range", "points"))})
fly(simulator, pilot, FlightPlan(path.duration), mounted=mounted)

front, top = mounted.latest("front"), mounted.latest("top")  # the newest that have arrived, per vehicle
cloud, folder = packed_points(top["points"])[0], Path("runs/09_sensors_in_flight")
folder.mkdir(parents=True, exist_ok=True)
plt.imsave(folder / "depth.png", np.clip(front["depth"][0], 0.0, 0.4))
plt.imsave(folder / "lidar.png", np.repeat(np.clip(top["range"][0], 0.0, 12.0), 4, axis=0))
write_points_ply(folder / "cloud.ply", cloud)
print(f"at {simulator.time[0]:.3f} s: image {front.number[0]}, taken at {front.time[0]:.3f} s; scan of {len(cloud)} points")
