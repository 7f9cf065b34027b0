"""What derivatives of splat images cost on one thread of a CPU: each stage, and the whole call.

    python benchmarks/splat_gradients.py                    the cloud `room200k` of benchmarks/splats.py, 320x180
    python benchmarks/splat_gradients.py --file scene.spz   a scene of your own, seen from its middle

Processor time of the thread, the least of several rounds, mean of eight cameras: what other programs do meanwhile hardly shows.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from airworthy.scenes.splats import read_splats
from airworthy.splats import SplatRenderer
from benchmarks import hardware
from benchmarks.splats import ring, room_cloud

CAMERAS, ROUNDS = 8, 12
SIZE, LENS = (320, 180), (190.0, 190.0, 160.0, 90.0)
STAGES = {
    "project_kernel": "projection",
    "arrange_kernel": "lists",
    "raster_kernel": "pixels",
    "raster_back_kernel 0": "pixels to places in lists",
    "raster_back_kernel 1": "places to records",
    "project_back_kernel": "records to Gaussians and cameras",
}


def measure(renderer: SplatRenderer, centre: Any) -> dict[str, float]:
    """Milliseconds of each stage and of the whole."""
    where, attitude = ring(np.asarray(centre), 1.5, CAMERAS)
    spent: dict[tuple[str, int], list[float]] = defaultdict(list)
    engine: Any = renderer._engine
    plain, camera = engine.launch, 0

    def launch(kernel: Any, tasks: int, arrays: list[Any], numbers: list[Any]) -> None:
        start = time.thread_time()
        plain(kernel, tasks, arrays, numbers)
        stage = f" {numbers[-1]}" if kernel.__name__ == "raster_back_kernel" else ""
        spent[kernel.__name__ + stage, camera].append(time.thread_time() - start)

    engine.launch = launch
    for _ in range(ROUNDS):
        for camera in range(CAMERAS):
            start, one = time.thread_time(), slice(camera, camera + 1)
            renderer.gradients(
                lambda images, some: {"rgb": (images["rgb"] - 0.5) / images["rgb"].size}, *SIZE, LENS, where[one], attitude[one]
            )
            spent["the whole call", camera].append(time.thread_time() - start)
    del engine.launch
    names = [*STAGES, "the whole call"]
    return {STAGES.get(name, name): 1e3 * float(np.mean([min(spent[name, k]) for k in range(CAMERAS)])) for name in names}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--file", type=Path, help="a splat file; without it a synthetic room")
    asked = parser.parse_args()
    splats = read_splats(asked.file).splats if asked.file else room_cloud()
    print(hardware.describe(hardware.use_cores(1))["cpu"])
    print(f"{asked.file.name if asked.file else 'room200k'}: {len(splats)} Gaussians, {SIZE[0]}x{SIZE[1]}, ms on one thread")
    for name, value in measure(SplatRenderer(splats, threads=1), np.median(splats.position, axis=0)).items():
        print(f"  {name:34} {value:7.2f}")


if __name__ == "__main__":
    main()
