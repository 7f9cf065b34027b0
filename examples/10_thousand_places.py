"""Thousands of places at once: every environment has a forest of its own, and all are seen in one call.

Prints what that costs and writes runs/10_thousand_places/forests.png, the first twenty-four of them.
"""

import time
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from airworthy.core import camera_attitude, from_euler
from airworthy.geometry import GeometryBatch, cast
from airworthy.optics import Pinhole
from airworthy.scenes import room_batch

COUNT = 4096
shapes, places = room_batch("gym_forest", COUNT, seed=1)  # each a pure function of (name, seed, number of the environment)
batch = GeometryBatch(shapes, places)
rays = Pinhole.from_fov(64, 48, horizontal=np.radians(87.0)).rays()
position = np.tile([0.5, 0.0, 1.5], (COUNT, 1))
megabytes = sum(batch.memory().values()) / 1e6
print(f"{COUNT} forests of {np.mean([place.visible.sum() for place in places]):.0f} things each in {megabytes:.0f} MB")

seen = {}
for turn in np.radians(np.arange(-30.0, 31.0, 6.0)):
    start = time.perf_counter()  # of the last call: the first one also builds the trees
    attitude = np.tile(camera_attitude(from_euler(0.0, 0.0, turn)), (COUNT, 1))
    seen = cast(batch, rays, position, attitude, channels=("depth", "semantic_id"), out=seen)
rate = COUNT / (time.perf_counter() - start)
print(f"{rate:,.0f} images of 64 x 48 per second: {rate * 64 * 48 / 1e6:.0f} million rays per second")

mosaic = np.clip(seen["depth"][:24], 0.0, 10.0).reshape(4, 6, 48, 64).swapaxes(1, 2).reshape(4 * 48, 6 * 64)
Path("runs/10_thousand_places").mkdir(parents=True, exist_ok=True)
plt.imsave("runs/10_thousand_places/forests.png", mosaic, cmap="magma_r")
