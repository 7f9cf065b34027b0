"""How fast rays are cast, beside Embree and Warp's mesh query, all measured in one run on the same rays.

    pip install embreex
    python benchmarks/rays.py --out rays.json        about 3 minutes
    python benchmarks/rays.py --quick                about 40 seconds

Every side delivers, per ray, a distance and the number of what is met; ours with its instances, materials and dynamic instances
in place. Before anything is timed all sides must agree on what is met. A scan is taken from AIRWORTHY_DATA where that is
set.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np

from benchmarks import hardware, ray_scenes, ray_sides, tables
from benchmarks.ray_sides import Frames, Task

OURS = "Airworthy"
SCAN = Path("meshes/threedscans/Plato/Plato.obj")
AGREEMENT = 0.999
"""Share of rays on which sides must agree; the rest lies on silhouettes."""
DYNAMIC_COUNT, MOVING_ENVS = 30, 1024


def main() -> int:
    """Run every contest, print the tables, write the JSON file."""
    options = _options()
    cores = hardware.use_cores(options.cores)
    found = hardware.describe(cores)
    found["versions"] = {name: hardware.version(name) for name in (*hardware.PACKAGES, "embreex")}
    print(tables.hardware_table(found), flush=True)
    results: dict[str, Any] = {"hardware": found, "contests": {}}
    for task in _tasks(options.environments):
        results["contests"][task.name] = _contest(task, len(cores), options.rounds, options.seconds)
    results["movers"] = _dynamic_instances(len(cores))
    if options.out:
        options.out.write_text(json.dumps(results, indent=2) + "\n")
        print(f"\nwritten to {options.out}")
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="JSON file to write")
    parser.add_argument("--cores", type=int, default=2, help="cores that every side may use")
    parser.add_argument("--rounds", type=int, default=7, help="rounds A B C A B C ... of each contest")
    parser.add_argument("--seconds", type=float, default=0.5, help="time that a side runs in a round [s]")
    parser.add_argument("--environments", type=int, default=64, help="environments, all different")
    parser.add_argument("--quick", action="store_true", help="3 rounds of 0.2 s: indicative only")
    options = parser.parse_args()
    if options.quick:
        options.rounds, options.seconds = 3, 0.2
    return options


def _tasks(env_count: int) -> list[Task]:
    place = ray_scenes.places(env_count)
    few = ray_scenes.places(max(env_count // 4, 2))
    camera, level = ray_scenes.FORWARD, ray_scenes.LEVEL
    tasks = [
        Task("64x64 camera, 20 cubes and ground", ray_scenes.pinhole(64, 64), camera, place, env_count=place.env_count),
        Task("270x480 camera, 20 cubes and ground", ray_scenes.pinhole(270, 480), camera, few, env_count=few.env_count),
        Task("128x512 LiDAR, 20 cubes and ground", ray_scenes.lidar(128, 512), level, few, env_count=few.env_count),
    ]
    data = os.environ.get("AIRWORTHY_DATA")
    if data and (Path(data) / SCAN).exists():
        mesh = ray_scenes.read_obj(Path(data) / SCAN)
        for size, count in (((64, 64), env_count), ((270, 480), few.env_count)):
            name = f"{size[0]}x{size[1]} camera, a scan of {len(mesh[1]):,} triangles"
            tasks.append(Task(name, ray_scenes.pinhole(*size, 0.5), camera, mesh=mesh, env_count=count))
    return tasks


def _sides(task: Task, cores: int) -> dict[str, Callable[[], Frames]]:
    sides: dict[str, Callable[[], Frames]] = {
        OURS: lambda: ray_sides.airworthy(task, cores),
        f"Embree, {cores} processes": lambda: ray_sides.embree(task, cores),
        f"Warp mesh query, {cores} threads": lambda: ray_sides.warp_query(task, cores),
    }
    if task.place is not None:
        sides[f"{OURS}, cubes as triangles"] = lambda: ray_sides.airworthy(task, cores, solids=False)
    return sides


def _contest(task: Task, cores: int, rounds: int, seconds: float) -> dict[str, Any]:
    sides, dropped = {}, {}
    for name, make in _sides(task, cores).items():
        try:
            sides[name] = make()
            for _ in range(3):
                sides[name]()
        except ImportError as missing:
            dropped[name] = str(missing)
    agreement = _agreement(task, sides, dropped)
    rates: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(rounds):
        for name, render in sides.items():
            rates[name].append(_rate(render, task.env_count, seconds))
    rows = [
        (
            name,
            f"{median(found):,.0f}",
            f"{median(found) * task.directions[..., 0].size / 1e6:.1f}",
            f"{min(found):,.0f} .. {max(found):,.0f}",
            f"{median(a / b for a, b in zip(rates[OURS], found, strict=True)):.2f} x",
        )
        for name, found in sorted(rates.items(), key=lambda item: -median(item[1]))
    ]
    head = ("side", "frames/s", "Mrays/s", "lowest .. highest", f"{OURS} over it")
    print(tables.table(f"{task.name}; {task.env_count} environments", head, rows))
    print(f"agreement on what is met: {agreement}")
    for name, reason in dropped.items():
        print(f"left out: {name}: {reason}")
    return {"rates": rates, "agreement": agreement, "dropped": dropped}


def _agreement(task: Task, sides: dict[str, Frames], dropped: dict[str, str]) -> dict[str, float]:
    """Share of rays on which each side says what we say; Embree is asked in this process."""
    ours = sides[OURS]()
    shares = {}
    for name, render in sides.items():
        if name == OURS:
            continue
        theirs = ray_sides.embree(task, 1)() if name.startswith("Embree") else render()
        shares[name] = float(np.mean(ours == theirs))
        if shares[name] < AGREEMENT:
            dropped[name] = f"agrees on {shares[name]:.4f} of the rays only"
    for name in set(dropped) & set(sides):
        del sides[name]
    return shares


def _rate(render: Frames, frames: int, seconds: float) -> float:
    start, count = time.perf_counter(), 0
    while (spent := time.perf_counter() - start) < seconds or count == 0:
        render()
        count += 1
    return frames * count / spent


def _dynamic_instances(threads: int) -> dict[str, Any]:
    """Return what it costs that everything moves: poses set, top levels built anew, and a frame of each environment."""
    from airworthy.geometry import Box, GeometryBatch, Placement, RayTable, cast

    rng = np.random.default_rng(1)
    place = rng.uniform([2, -6, 0], [14, 6, 4], (MOVING_ENVS, DYNAMIC_COUNT, 3))
    turn = rng.normal(size=(MOVING_ENVS, DYNAMIC_COUNT, 4))
    team = Placement.of([0] * DYNAMIC_COUNT, place[0])
    ground = Placement.of([1], [[0.0, 0.0, -0.05]])
    envs = np.zeros(MOVING_ENVS, int)
    batch = GeometryBatch([Box((0.5, 0.5, 0.5)), Box(ray_scenes.GROUND)], [ground], envs, [team] * MOVING_ENVS, threads=threads)
    table = RayTable(ray_scenes.pinhole(64, 64))
    eye, look = np.tile([0.0, 0.0, 1.0], (MOVING_ENVS, 1)), np.tile(ray_scenes.FORWARD, (MOVING_ENVS, 1))
    seconds: dict[str, list[float]] = {"set poses": [], "build top levels": [], "64x64 depth and id": []}
    for _ in range(7):
        steps = (
            lambda: batch.set_dynamic_instances(place, turn),
            batch.arguments,
            lambda: cast(batch, table, eye, look, channels=("depth", "instance_id")),
        )
        for name, step in zip(seconds, steps, strict=True):
            start = time.perf_counter()
            step()
            seconds[name].append(time.perf_counter() - start)
    rows = [(name, f"{1e3 * median(s):.2f}", f"{MOVING_ENVS / median(s):,.0f}") for name, s in seconds.items()]
    print(
        tables.table(
            f"{DYNAMIC_COUNT} dynamic instances in {MOVING_ENVS} environments, all moved",
            ("step", "ms", "environments/s"),
            rows,
        )
    )
    print("memory [bytes]: " + ", ".join(f"{k} {v:,}" for k, v in batch.memory().items()))
    return {"seconds": seconds, "memory": batch.memory()}


if __name__ == "__main__":
    raise SystemExit(main())
