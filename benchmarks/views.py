"""Images per second of what policies and films see, and the memory that a place takes: generated places, by quality and size.

    python benchmarks/views.py --scenes forest:3 mid_gate urban:1 --qualities policy standard high
    python benchmarks/views.py --scenes dressed:forest:3 woodland:0 --qualities policy standard
    python benchmarks/views.py --scenes forest:3 --looks 64 --sheet looks.jpg
    python benchmarks/views.py --scenes forest:3 street:0 --qualities policy standard --device cuda:0

`dressed:` is a forest with its grown trees, or a district with its houses. With `--looks` so many looks of each place are in a
batch, one camera of 224 x 224 in each. Memory is what the process has grown by since a small place was shown, when Warp and
kernels were loaded already; a second place fills what the first one gave back: ask for one at a time. One
camera at a time, rays of the eye, light and tone included, as `rendering.render` and `optics.tone.to_8bit` give them to a
pilot; the best of some repeats, since machines are shared. Baking and compiling are not timed.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import os
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
from PIL import Image

from airworthy.geometry import RayTable
from airworthy.optics.tone import to_8bit
from airworthy.rendering import ShadingOptions, render, use_baked
from airworthy.scenes import Scene, scene
from airworthy.scenes.batch import SceneBatch
from airworthy.scenes.dressing import dressed
from airworthy.scenes.vegetation.variety import other_look
from airworthy.scenes.viewpoints import Viewpoint, look_at, view

DRESSED = "dressed:"
VIEWS = {
    "forest:3": ((2.0, 2.0, 2.5), (20.0, 14.0, 3.6)),
    "dressed:forest:3": ((2.0, 2.0, 2.5), (20.0, 14.0, 3.6)),
    "dressed:urban:1": ((2.0, 2.0, 2.5), (20.0, 10.0, 3.0)),
    "urban:1": ((2.0, 2.0, 2.5), (20.0, 10.0, 3.0)),
}
"""Eye and target [m] where a scene's own view is from outside."""


def viewpoint_of(name: str, batch: SceneBatch) -> Viewpoint:
    """Return where a drone would be."""
    if name not in VIEWS:
        return view(batch.scenes[0], "start")
    eye, target = VIEWS[name]
    return Viewpoint(np.array(eye), look_at(eye, target), 1.2)


def rate(batch: SceneBatch, name: str, size: tuple[int, int], options: ShadingOptions, seconds: float) -> tuple[float, float]:
    """Return images per second and milliseconds of a core per image: the best of some seconds, of at least three."""
    where = viewpoint_of(name, batch)
    table, pose = RayTable(*where.rays(*size)), (where.position[None], where.attitude[None])
    best, work, begun, count = float("inf"), float("inf"), time.perf_counter(), 0
    while count < 4 or time.perf_counter() - begun < seconds:
        started, worked = time.perf_counter(), time.process_time()
        to_8bit(render(batch, table, *pose, channels=("rgb",), options=options)["rgb"])
        # The first one sends textures and may compile.
        if count:
            best, work = min(best, time.perf_counter() - started), min(work, time.process_time() - worked)
        count += 1
    return 1.0 / best, 1e3 * work


def place(name: str) -> Scene:
    """Return a scene by its name; "dressed:forest:3" is the forest with its trees."""
    return dressed(scene(name.removeprefix(DRESSED))) if name.startswith(DRESSED) else scene(name)


def resident() -> float:
    """Return the memory of this process [MB], less what its allocator keeps of what was given back."""
    gc.collect()
    with suppress(OSError, AttributeError):  # a C library that has no such call
        ctypes.CDLL(None).malloc_trim(0)
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def many_looks(name: str, count: int, sheet: Path | None, device: str) -> None:
    """Print what many looks of one place in a batch cost, and how many of their pictures are different."""
    bare = scene(name)
    where = viewpoint_of(name, SceneBatch(bare))
    table = RayTable(*where.rays(224, 224))
    pose = np.tile(where.position, (count, 1)), np.tile(where.attitude, (count, 1))
    started, before = time.process_time(), resident()
    batch = SceneBatch([other_look(bare, number) for number in range(count)], device=device)
    made = time.process_time() - started

    def images() -> np.ndarray:
        radiance = render(batch, table, *pose, channels=("rgb",))["rgb"]
        # Each with the exposure of a camera: half of its pixels above middle grey.
        return to_8bit(radiance * (0.18 / np.maximum(np.median(radiance, axis=(1, 2, 3), keepdims=True), 1e-6)))

    started = time.process_time()
    images()
    first, grown = time.process_time() - started, resident() - before
    best, work = float("inf"), float("inf")
    for _ in range(3):
        began, started = time.perf_counter(), time.process_time()
        found = images()
        best, work = min(best, time.perf_counter() - began), min(work, time.process_time() - started)
    different = len({image.tobytes() for image in found})
    print(
        f"{name}: {count} looks, {different} different images; {count / best:.1f} images/s, {1e3 * work / count:.1f} ms of a"
        f" core each; {grown:.0f} MB, made in {made:.1f} s and first shown in {first:.1f} s of a core",
        flush=True,
    )
    if sheet is not None:
        across = int(np.ceil(np.sqrt(count)))
        tiles = np.concatenate([found, np.zeros((across * -(-count // across) - count, *found.shape[1:]), np.uint8)])
        rows = tiles.reshape(-1, across, *found.shape[1:]).transpose(0, 2, 1, 3, 4)
        Image.fromarray(rows.reshape(-1, across * 224, 3)).resize((across * 140, -(-count // across) * 140), 2).save(
            sheet, quality=88
        )


def options_of(quality: str) -> ShadingOptions:
    """Return the options of a quality; those of a policy in versions that knew no others."""
    if quality == "policy":
        return ShadingOptions()
    from airworthy.rendering import quality_options

    return quality_options(quality)


def main() -> None:
    """Print a row per place, light and quality."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scenes", nargs="+", default=["forest:3", "mid_gate", "urban:1"], help="places")
    parser.add_argument("--qualities", nargs="+", default=["policy", "standard", "high"], help="policy, standard, high")
    parser.add_argument("--seconds", type=float, default=2.0, help="for each figure")
    parser.add_argument("--baked", action="store_true", help="bake light first")
    parser.add_argument("--device", default="cpu", help="cpu or a CUDA device")
    parser.add_argument("--looks", type=int, default=0, help="so many looks of each place in one batch, instead")
    parser.add_argument("--sheet", type=Path, help="where to draw them")
    asked = parser.parse_args()
    # Warp, kernels and what they need are no place's memory.
    small = SceneBatch(scene("forest:1"), device=asked.device)
    rate(small, "forest:3", (224, 224), ShadingOptions(), 0.0)
    if asked.looks:
        for name in asked.scenes:
            many_looks(name, asked.looks, asked.sheet, asked.device)
        return
    print(f"{os.cpu_count()} cores; images per second, and milliseconds of one core per image, which other work disturbs less")
    print(f"{'place':16} {'quality':9} {'224 x 224':>10} {'ms':>8} {'640 x 360':>10} {'ms':>8} {'MB':>6}")
    for name in asked.scenes:
        before = resident()
        batch = SceneBatch(place(name), device=asked.device)
        if asked.baked:
            use_baked(batch)
        for quality in asked.qualities:
            found = [rate(batch, name, size, options_of(quality), asked.seconds) for size in ((224, 224), (640, 360))]
            figures = " ".join(f"{a:10.1f} {b:8.1f}" for a, b in found)
            print(f"{name:16} {quality:9} {figures} {resident() - before:6.0f}", flush=True)


if __name__ == "__main__":
    main()
