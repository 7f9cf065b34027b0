"""How fast Gaussian splats are rendered on a CPU or a GPU: whole frames, and the part of each stage.

    python benchmarks/splats.py                     the cloud `room200k`, 640x360 and 224x224, about a minute
    python benchmarks/splats.py --file scene.ply    a scene of your own beside it (several files: parts of one scene)
    python benchmarks/splats.py --device cuda:0     on a GPU

`room200k` is made here from a seed: 200,000 Gaussians of degree 0: 100,000 on the walls, floor and ceiling of a room of
12 x 8 x 3.5 m (standard deviations around 4 cm, log-normal, one third as thick), 80,000 on 40 balls and boxes in it (2.5 cm),
20,000 faint ones in the air (10 cm), as training leaves them; half of those on surfaces are nearly opaque, the others anything.
Every ray ends at something. Ten cameras stand on a ring in it and look across. A scene of files is seen from a ring around it.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from airworthy.scenes.splats.record import Splats
from airworthy.sensors.splats import SplatRenderer
from airworthy.sensors.splats.views import shot
from benchmarks import hardware

CAMERAS = 10
AIMS = {(640, 360): 15.0, (224, 224): 45.0}
"""Whole frames per second on two cores."""
LENSES = {(640, 360): (462.956, 463.002, 323.076, 181.184), (224, 224): (185.182, 329.246, 113.230, 112.842)}
"""The camera of SOUS VIDE's drone, and the same seen through its policy's resize and crop: fx, fy, cx, cy [px]."""
ROOM = np.array([12.0, 8.0, 3.5])


def room_cloud(count: int = 200_000, seed: int = 0) -> Splats:
    """The cloud `room200k` (or one like it of another size)."""
    rng = np.random.default_rng(seed)
    walls, things = count // 2, count * 2 // 5
    air = count - walls - things
    points, normals = _on_walls(rng, walls)
    more, more_normals = _on_things(rng, things)
    dust = rng.uniform([-0.5, -0.5, 0.0], [0.5, 0.5, 1.0], (air, 3)) * ROOM
    position = np.concatenate([points, more, dust])
    normal = np.concatenate([normals, more_normals, np.tile([0.0, 0.0, 1.0], (air, 1))])
    typical = np.repeat([0.04, 0.025, 0.1], [walls, things, air])
    sigma = typical[:, None] * np.exp(rng.normal(0.0, 0.5, (count, 2)))
    scale = np.column_stack([sigma, sigma.min(axis=1) / 3.0])
    solid = rng.uniform(size=count) < 0.5
    opacity = np.where(solid, rng.uniform(0.9, 1.0, count), rng.uniform(0.02, 0.9, count))
    opacity[walls + things :] = rng.uniform(0.01, 0.1, air)
    tint = 0.5 + 0.35 * np.sin(position @ rng.normal(size=(3, 3)) * 2.0) + rng.normal(0.0, 0.08, (count, 3))
    harmonics = (np.clip(tint, 0.02, 0.98) - 0.5) / 0.28209479177387814
    return Splats(position, _turned_to(rng, normal), scale, opacity, harmonics[:, None, :])


def _on_walls(rng: np.random.Generator, count: int) -> tuple[NDArray[Any], NDArray[Any]]:
    area = np.array([ROOM[1] * ROOM[2], ROOM[0] * ROOM[2], ROOM[0] * ROOM[1]])
    axis = rng.choice(3, count, p=area / area.sum())
    side = rng.integers(0, 2, count)
    points = rng.uniform(0.0, ROOM, (count, 3))
    points[np.arange(count), axis] = side * ROOM[axis]
    normals = np.zeros((count, 3))
    normals[np.arange(count), axis] = 1.0 - 2.0 * side
    return points - ROOM * [0.5, 0.5, 0.0], normals


def _on_things(rng: np.random.Generator, count: int) -> tuple[NDArray[Any], NDArray[Any]]:
    centres = rng.uniform([-5.0, -3.2, 0.3], [5.0, 3.2, 2.6], (40, 3))
    radius = rng.uniform(0.15, 0.5, 40)
    which = rng.choice(40, count, p=radius**2 / (radius**2).sum())
    way = rng.normal(size=(count, 3))
    ball = way / np.linalg.norm(way, axis=1, keepdims=True)
    cube = way / np.abs(way).max(axis=1, keepdims=True)
    boxes = which % 2 == 0
    offset = np.where(boxes[:, None], cube, ball)
    face = np.where(np.abs(cube) >= 1.0, np.sign(cube), 0.0)
    return centres[which] + radius[which, None] * offset, np.where(boxes[:, None], face, ball)


def _turned_to(rng: np.random.Generator, normal: NDArray[Any]) -> NDArray[Any]:
    """Quaternions whose third axis is the normal, turned about it at random."""
    away = np.column_stack([-normal[:, 1], normal[:, 0], np.zeros(len(normal)), 1.0 + normal[:, 2]])
    away[normal[:, 2] < -0.999] = (1.0, 0.0, 0.0, 0.0)
    away /= np.linalg.norm(away, axis=1, keepdims=True)
    half = rng.uniform(0.0, np.pi, len(normal))
    x, y, z, w = away.T
    s, c = np.sin(half), np.cos(half)
    return np.column_stack([x * c + y * s, y * c - x * s, z * c + w * s, w * c - z * s])


def ring(centre: NDArray[Any], radius: float, count: int = CAMERAS) -> tuple[NDArray[Any], NDArray[Any]]:
    """Poses (count, 3) and (count, 4) of level cameras on a circle that look across its middle."""
    angle = 2.0 * np.pi * np.arange(count) / count
    where = centre + radius * np.column_stack([np.cos(angle), np.sin(angle), np.zeros(count)])
    # Optical axis horizontal, towards the middle: a turn of the camera frame onto the world's, then about the vertical.
    half = 0.5 * (angle + np.pi)
    level = np.array([-0.5, 0.5, -0.5, 0.5])
    s, c = np.sin(half), np.cos(half)
    x, y, z, w = level
    return where, np.column_stack([x * c - y * s, y * c + x * s, z * c + w * s, w * c - z * s])


def measure(renderer: SplatRenderer, size: tuple[int, int], poses: tuple[Any, Any], rounds: int) -> dict[str, Any]:
    """Frames per second of ten single frames in turn, of the ten in one call, and the stages of the single frames."""
    lens = LENSES[size]
    where, attitude = poses
    singles: list[float] = []
    for _ in range(rounds + 2):
        start = time.perf_counter()
        for k in range(len(where)):
            renderer.render(*size, lens, where[k : k + 1], attitude[k : k + 1], channels=("rgb",))
        singles.append((time.perf_counter() - start) / len(where))
    together = _seconds(lambda: renderer.render(*size, lens, where, attitude, channels=("rgb",)), rounds) / len(where)
    found: dict[str, Any] = {
        "frames_per_second": 1.0 / median(singles[2:]),
        "frames_per_second_batch": 1.0 / together,
    }
    if renderer.device == "cpu":
        found["stages_ms"] = _stages(renderer, size, poses, rounds)
    return found


def _stages(renderer: SplatRenderer, size: tuple[int, int], poses: tuple[Any, Any], rounds: int) -> dict[str, float]:
    """Milliseconds per frame of each stage; binning is collecting per band of tiles and dealing out to tiles."""
    engine: Any = renderer._engine
    image = {"rgb": np.empty((1, size[1], size[0], 3), np.float32)}
    total = dict.fromkeys(("projection", "binning", "sorting", "raster"), 0.0)
    for k in range(len(poses[0])):
        asked = shot(
            renderer._spans, *size, LENSES[size], poses[0][k : k + 1], poses[1][k : k + 1], None, (0, 0, 0), False, 0.05, 0.3,
            ("rgb",), "expected",
        )  # fmt: skip
        total["projection"] += _seconds(lambda asked=asked: engine.project(asked), rounds)
        parts = {
            stage: _seconds(lambda asked=asked, s=stage: engine.arrange(asked, s), rounds) for stage in ("collect", "sort")
        }
        whole = _seconds(lambda asked=asked: engine.arrange(asked), rounds)
        total["sorting"] += parts["sort"] - parts["collect"]
        total["binning"] += whole - parts["sort"] + parts["collect"]
        total["raster"] += _seconds(lambda asked=asked: engine.raster(asked, image), rounds)
    return {name: 1e3 * seconds / len(poses[0]) for name, seconds in total.items()}


def _seconds(call: Callable[[], Any], rounds: int) -> float:
    for _ in range(3):
        call()
    taken = []
    for _ in range(rounds):
        start = time.perf_counter()
        call()
        taken.append(time.perf_counter() - start)
    return median(taken)


def main() -> int:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu", help="cpu or a CUDA device")
    parser.add_argument("--cores", type=int, default=2, help="cores to use")
    parser.add_argument("--rounds", type=int, default=5, help="repetitions; the median counts")
    parser.add_argument("--file", type=Path, nargs="*", default=[], help="splat files to render beside the cloud")
    parser.add_argument("--out", type=Path, help="JSON file to write")
    options = parser.parse_args()
    cores = hardware.use_cores(options.cores)
    machine = hardware.describe(cores)
    print("\n".join(f"{key:22} {value}" for key, value in machine.items()))
    results: dict[str, Any] = {"hardware": machine, "scenes": {}}
    for name, splats, poses in _scenes(options.file):
        renderer = SplatRenderer(splats, options.device, len(cores))
        print(f"\n{name}: {len(splats)} Gaussians of degree {splats.degree}")
        for size, aim in AIMS.items():
            found = measure(renderer, size, poses, options.rounds)
            results["scenes"].setdefault(name, {})["x".join(map(str, size))] = found
            _print_row(size, found, aim)
    if options.out:
        options.out.write_text(json.dumps(results, indent=2) + "\n")
    return 0


def _scenes(paths: list[Path]) -> list[tuple[str, Splats, tuple[Any, Any]]]:
    scenes = [("room200k", room_cloud(), ring(np.array([0.0, 0.0, 1.5]), 3.0))]
    if paths:
        from airworthy.scenes.splats import read_splats

        parts = [read_splats(path).splats for path in paths]
        names = ("position", "rotation", "scale", "opacity", "harmonics")
        splats = Splats(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))
        low, high = np.percentile(splats.position, [5.0, 95.0], axis=0)
        scenes.append((paths[0].name, splats, ring(0.5 * (low + high), 0.6 * float(np.linalg.norm(high - low)))))
    return scenes


def _print_row(size: tuple[int, int], found: dict[str, Any], aim: float) -> None:
    print(
        f"  {size[0]}x{size[1]}: {found['frames_per_second']:.1f} frames/s one by one, "
        f"{found['frames_per_second_batch']:.1f} in one call of {CAMERAS} (aim {aim:g})"
    )
    stages = found.get("stages_ms", {})
    whole = sum(stages.values()) or 1.0
    print("    " + ", ".join(f"{name} {ms:.2f} ms ({100.0 * ms / whole:.0f} %)" for name, ms in stages.items()))


if __name__ == "__main__":
    sys.exit(main())
