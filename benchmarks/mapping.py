"""How long one depth image takes to become a local map, in our kernels and in their NumPy twin.

    python benchmarks/mapping.py                 three scenes, about a minute
    python benchmarks/mapping.py --device cuda:0 --flights 256

A camera flies down the middle of each scene at 4 m/s and 20 Hz, looking about. Times are of the update alone: rays, log-odds,
forgetting, inflation, and with Fast-Planner's settings the distance field; processor time per flight on one core (on a GPU wall
time), the median over the images. The twin is given the first images of a flight.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from airworthy.core.arrays import Array, ArrayF32

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from airworthy.geometry import cast
from airworthy.planners.common.interface import MapSettings, Mission
from airworthy.planners.mapping import LocalMaps, camera_pose, mapping_camera, read_pixels
from airworthy.planners.mapping.twin import MapTwin
from airworthy.scenes.batch import SceneBatch
from airworthy.scenes.catalogue import scene
from airworthy.scenes.record import Scene
from benchmarks import hardware

Frames = list[tuple[ArrayF32, Array, Array]]
SCENES = ("forest:3", "urban:5", "maze:3")
SETTINGS = {
    "occupancy (EGO-Planner)": MapSettings(),
    "with field (Fast-Planner)": MapSettings(ray_min=0.5, margin=50, ground=-1.0, border=2, field=True),
}
AIMS = {("occupancy (EGO-Planner)", "fast"): 1.5, ("with field (Fast-Planner)", "fast"): 4.0}
"""Milliseconds per flight and image."""
IMAGES = 50


@cache
def place_of(name: str) -> Scene:
    """Return a scene of the benchmark."""
    return scene(name)


def mission(name: str, count: int) -> Mission:
    """Flights that need no more than the box of a scene."""
    region, zero = place_of(name).bounds, np.zeros((count, 3))
    lower, upper = (np.tile(np.array(c, float), (count, 1)) for c in (region.lower, region.upper))
    return Mission(zero, zero, np.ones(count), np.ones(count), lower, upper, np.arange(count))


def frames(name: str, settings: MapSettings, mode: str, count: int = IMAGES) -> Frames:
    """Depth (h, w), place (3,) and attitude (4,) of a camera on its way."""
    place = place_of(name)
    batch, rays = SceneBatch(place, 1), read_pixels(mapping_camera(mode), settings).rays()
    start = place.start.position if place.start else (0.0, 0.0, 1.0)
    out = []
    for k in range(count):
        yaw = 0.5 * np.sin(0.15 * k)
        body = np.array([start]) + np.array([0.2 * k, 0.3 * np.sin(0.1 * k), 0.0])
        at, turn = camera_pose(body, [[0.0, 0.0, np.sin(yaw / 2), np.cos(yaw / 2)]])
        out.append((cast(batch.geometry, rays, at, turn)["depth"][0], at[0], turn[0]))
    return out


def ours(task: Mission, settings: MapSettings, mode: str, seen: Frames, device: str) -> float:
    """Milliseconds per flight and image; every flight of the mission gets the same images."""
    maps, count = LocalMaps(settings, task, mapping_camera(mode), device, threads=1), len(task.flight)
    clock = time.thread_time if device == "cpu" else time.perf_counter
    times = []
    for depth, at, turn in seen:
        given = [np.repeat(x[None], count, 0) for x in (depth, at, turn)]
        begin = clock()
        maps.update(np.arange(count), *given)
        times.append(clock() - begin)
    return float(np.median(times[3:])) * 1e3 / count


def theirs(task: Mission, settings: MapSettings, mode: str, seen: Frames) -> float:
    """Milliseconds per image of the twin."""
    twin, times = MapTwin(settings, task, mapping_camera(mode)), []
    for depth, at, turn in seen[:2]:
        begin = time.thread_time()
        twin.update(depth, at, turn)
        times.append(time.thread_time() - begin)
    return min(times) * 1e3


def questions(task: Mission, seen: Frames) -> dict[str, float]:
    """Microseconds per point of the two questions, 100 points of each flight at a time."""
    settings = SETTINGS["with field (Fast-Planner)"]
    maps, count = LocalMaps(settings, task, threads=1), len(task.flight)
    depth, at, turn = seen[0]
    maps.update(np.arange(count), *(np.repeat(x[None], count, 0) for x in (depth, at, turn)))
    points = at + np.random.default_rng(0).uniform(-1.0, 4.0, (count, 100, 3)) * (1.0, 1.0, 0.2)
    asked: dict[str, Callable[..., Any]] = {"occupied": maps.occupied, "distance and gradient": maps.distance}
    out = {}
    for name, ask in asked.items():
        times = []
        for _ in range(30):
            begin = time.thread_time()
            ask(np.arange(count), points)
            times.append(time.thread_time() - begin)
        out[name] = float(np.median(times)) * 1e6 / (100 * count)
    return out


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--flights", type=int, default=8, help="in one batch (default 8)")
    parser.add_argument("--device", default="cpu", help="cpu or a CUDA device of Warp")
    parser.add_argument("--no-twin", action="store_true", help="leave out the twin, which takes seconds per image")
    parser.add_argument("--json", type=Path, help="also write the numbers to this file")
    asked = parser.parse_args()
    about = hardware.describe([0])  # one thread, by its own clock: nothing is pinned
    for name, value in about.items():
        print(f"{name}: {value}")
    print(
        f"\n{'scene':10} {'map':26} {'mode':5} {'ms/flight':>9} {'alone':>8} {'aim':>6} {'twin, ms':>9} {'ratio':>8} {'MB':>6}"
    )
    rows: list[dict[str, Any]] = []
    for name in SCENES:
        for label, settings in SETTINGS.items():
            for mode in ("fast", "full"):
                seen, many, one = frames(name, settings, mode), mission(name, asked.flights), mission(name, 1)
                took, alone = ours(many, settings, mode, seen, asked.device), ours(one, settings, mode, seen, asked.device)
                slow = theirs(one, settings, mode, seen) if mode == "fast" and not asked.no_twin else float("nan")
                aim, size = AIMS.get((label, mode), float("nan")), LocalMaps(settings, one).memory / 1e6
                rows.append(
                    {"scene": name, "map": label, "mode": mode, "ms": took, "alone_ms": alone, "twin_ms": slow, "mb": size}
                )
                print(f"{name:10} {label:26} {mode:5} {took:9.3f} {alone:8.3f} {aim:6.1f}", end="")
                print(f" {slow:9.0f} {slow / took:8,.0f} {size:6.1f}", flush=True)
    answers = questions(mission(SCENES[0], asked.flights), frames(SCENES[0], SETTINGS["with field (Fast-Planner)"], "fast", 1))
    for name, took in answers.items():
        print(f"{name}: {took:.3f} us per point")
    if asked.json:
        asked.json.write_text(json.dumps({"hardware": about, "rows": rows, "questions_us": answers}, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
