"""Images per second of what policies and films see: generated places, by quality and size.

    python benchmarks/views.py --scenes forest:3 mid_gate urban:1 --qualities policy standard high

One camera at a time, rays of the eye, light and tone included, as `rendering.render` and `optics.tone.to_8bit` give them to a
pilot; the best of some repeats, since machines are shared. Baking and compiling are not timed.
"""

from __future__ import annotations

import argparse
import os
import time

import numpy as np

from airworthy.geometry import RayTable
from airworthy.optics.tone import to_8bit
from airworthy.rendering import ShadingOptions, render, use_baked
from airworthy.scenes import scene
from airworthy.scenes.batch import SceneBatch
from airworthy.scenes.viewpoints import Viewpoint, look_at, view

VIEWS = {"forest:3": ((2.0, 2.0, 2.5), (20.0, 14.0, 3.6)), "urban:1": ((2.0, 2.0, 2.5), (20.0, 10.0, 3.0))}
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
    asked = parser.parse_args()
    print(f"{os.cpu_count()} cores; images per second, and milliseconds of one core per image, which other work disturbs less")
    print(f"{'place':12} {'quality':9} {'224 x 224':>10} {'ms':>8} {'640 x 360':>10} {'ms':>8}")
    for name in asked.scenes:
        batch = SceneBatch(scene(name))
        if asked.baked:
            use_baked(batch)
        for quality in asked.qualities:
            found = [rate(batch, name, size, options_of(quality), asked.seconds) for size in ((224, 224), (640, 360))]
            print(f"{name:12} {quality:9} " + " ".join(f"{a:10.1f} {b:8.1f}" for a, b in found), flush=True)


if __name__ == "__main__":
    main()
