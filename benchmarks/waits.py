"""What a user waits for before anything flies: places made ready, hierarchies built, distance fields, damaged files refused.

    python benchmarks/waits.py               about a minute; prints hardware, versions and command
    python benchmarks/waits.py --json

Processor time of all threads, the shortest of a few calls after one that compiles, so that a busy machine changes little.
Waits of whole processes (import, help, the first flight) are printed by `benchmarks/physics.py --parts startup`.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from airworthy.core.errors import AssetError
from airworthy.geometry import Box, GeometryBatch, Mesh, Placement
from airworthy.geometry.distance import distance_field
from airworthy.geometry.hierarchy import mesh_tree
from airworthy.scenes.formats import read_model
from airworthy.scenes.generators.halls.splat_hall import hall_splats
from airworthy.scenes.splats.geometry import occupancy
from airworthy.scenes.splats.record import Splats
from benchmarks import hardware

Wait = tuple[str, Callable[[], object]]


def soup(count: int) -> Mesh:
    """Small triangles all over a room."""
    rng = np.random.default_rng(0)
    corners = rng.normal(size=(count, 1, 3)) + 0.05 * rng.normal(size=(count, 3, 3))
    return Mesh(corners.reshape(-1, 3).astype(np.float32), np.arange(3 * count).reshape(-1, 3))


def room_of_gaussians(count: int) -> Splats:
    """Gaussians of about 2 cm, all over a room of 16 x 10 x 4 m."""
    rng = np.random.default_rng(0)
    turn = rng.normal(size=(count, 4))
    turn /= np.linalg.norm(turn, axis=1, keepdims=True)
    position = rng.uniform([-8.0, -5.0, 0.0], [8.0, 5.0, 4.0], (count, 3))
    size = np.exp(rng.normal(np.log(0.02), 0.7, (count, 3)))
    return Splats(position, turn, size, rng.uniform(0.0, 1.0, count), np.zeros((count, 1, 3)))


def planner_grid() -> np.ndarray:
    """Ground and 25 pillars on 100 x 100 x 40 cells."""
    grid = np.zeros((100, 100, 40), bool)
    grid[:, :, 0] = True
    for x, y in np.random.default_rng(0).integers(5, 95, (25, 2)):
        grid[x - 3 : x + 3, y - 3 : y + 3] = True
    return grid


def hall() -> object:
    """Return the hall that comes with the package, read anew."""
    hall_splats.cache_clear()
    return hall_splats()


def refuse(path: Path) -> None:
    """Read a file whose header promises 2^60 elements."""
    with suppress(AssetError):
        read_model(path)


def waits(folder: Path, repeats: int) -> Iterator[Wait]:
    """Yield what is measured."""
    yield "the shipped hall of splats, read", hall
    room = room_of_gaussians(500_000)
    box = ((-8.0, -5.0, 0.0), (8.0, 5.0, 4.0), 0.1)
    yield "occupancy of 500,000 gaussians, cells of 0.1 m", lambda: occupancy(room, *box)
    triangles = iter([soup(35_000) for _ in range(repeats + 1)])  # trees are kept per mesh: a new one for every call
    yield "hierarchy over 35,000 triangles", lambda: mesh_tree(next(triangles))
    places = [Placement.of(np.zeros(5000, int), np.random.default_rng(0).normal(size=(5000, 3)))]
    yield "layout of 5,000 boxes", lambda: GeometryBatch([Box((0.1, 0.1, 0.1))], places).arguments()
    grid = planner_grid()
    yield "distance field of 100 x 100 x 40 cells", lambda: distance_field(grid, 0.1)
    liar = folder / "liar.ply"
    coordinates = "".join(f"property float {axis}\n" for axis in "xyz")
    liar.write_text(f"ply\nformat binary_little_endian 1.0\nelement vertex {2**60}\n{coordinates}end_header\n")
    yield "a PLY of 2^60 promised vertices, refused", lambda: refuse(liar)


def shortest(call: Callable[[], object], repeats: int) -> float:
    """Least processor time of a few calls after a first one [s]."""
    call()
    spent = []
    for _ in range(repeats):
        begin = time.process_time()
        call()
        spent.append(time.process_time() - begin)
    return min(spent)


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rows = {name: shortest(call, options.repeats) for name, call in waits(Path(folder), options.repeats)}
    machine = hardware.describe(hardware.use_cores(2))
    if options.json:
        print(json.dumps({"hardware": machine, "processor_seconds": rows}, indent=2))
        return 0
    print(f"Processor time on {machine['cpu']}, {machine['versions']}, `{machine['command']}`:")
    for name, seconds in rows.items():
        print(f"  {name:48} {1e3 * seconds:10.2f} ms")
    return 0


if __name__ == "__main__":
    sys.exit(main())
