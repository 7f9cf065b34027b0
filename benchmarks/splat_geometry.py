"""What losses of surfaces do to a trained room: its images, its depth, its normals, and what a step costs, at equal steps.

    python benchmarks/splat_geometry.py                                  the room `backroom`, some ten minutes on one core
    python benchmarks/splat_geometry.py --scene mid_gate --views 120 --steps 6000 --count 100000
    python benchmarks/splat_geometry.py --capture photographs --width 270  held-out PSNR and SSIM of a set that has no meshes

Views are rendered from the room's meshes; the Gaussians begin at points on its surfaces that are 2 cm off, as those of a
reconstruction, the same for every row. Judged are views from other places. Depth of splats is the median one; `plane` is
where the pixel's ray meets the Gaussian's plane, `mean` the depth of its mean. The truth is the meshes'. Seconds are the
process' own.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np

from airworthy.capture import CaptureImages, TrainOptions, read_capture
from airworthy.capture.training.run import TrainingRun, first_splats
from airworthy.core import frames
from airworthy.core.arrays import Array, ArrayAny
from airworthy.geometry import RayTable, cast
from airworthy.rendering.converting import lit_batch
from airworthy.rendering.refining import HELD_OUT, PosedImages, scene_views
from airworthy.scenes.batch import SceneBatch
from airworthy.scenes.catalogue import scene
from airworthy.scenes.splats import Splats
from airworthy.splats import SplatRenderer
from airworthy.splats.training.geometry_loss import normals_of_depth
from benchmarks import hardware

NONE = {"flatness": 0.0, "needles": 0.0, "normals": 0.0, "smoothness": 0.0}
ALL = {"flatness": 10.0, "needles": 0.01, "normals": 0.05, "smoothness": 0.1}
VARIANTS: dict[str, dict[str, Any]] = {
    "colours alone": NONE,
    "flatness": NONE | {"flatness": 10.0},
    "needles": NONE | {"needles": 0.01},
    "normals": NONE | {"normals": 0.05},
    "smoothness": NONE | {"smoothness": 0.1},
    "all": ALL,
    "without exposures": NONE | {"exposure": "off"},
    "gradient, colours alone": NONE | {"densify": "gradient"},
    "gradient, all": ALL | {"densify": "gradient"},
}
"""Options of a row, beside those of all."""
FARTHEST = 5.0
"""Depth up to which pixels are judged [m]."""
WITHIN = 0.02


@dataclass(frozen=True)
class SurfaceError:
    """Of the pixels of all judged views whose meshes are at most `FARTHEST` away."""

    mean_cm: float
    median_cm: float
    bias_cm: float
    within: float
    """Share within `WITHIN`."""
    normal_deg: float
    """Median angle between normals of the splats' depth and of the meshes'."""


def surface_error(renderer: SplatRenderer, batch: SceneBatch, views: PosedImages, place: str) -> SurfaceError:
    """Compare depths and their normals with those of the meshes."""
    off, angle = [], []
    for k in range(len(views)):
        width, height, lens, eye, turn = views.camera(k)
        u, v = np.meshgrid(
            (np.arange(width) + 0.5 - lens[0, 2]) / lens[0, 0], (np.arange(height) + 0.5 - lens[0, 3]) / lens[0, 1]
        )
        table = RayTable(np.stack((u, v, np.ones_like(u)), axis=-1))
        truth = cast(batch.geometry, table, eye, turn, np.zeros(1, np.int32), ("depth",))["depth"][0].astype(np.float64)
        asked: dict[str, Any] = {"channels": ("depth",), "depth_mode": "median", "depth_at": place}
        found = renderer.render(width, height, lens, eye, turn, **asked)["depth"][0].astype(np.float64)
        some = truth <= FARTHEST
        off.append(np.where(np.isfinite(found), found, 0.0)[some] - truth[some])
        angle.append(_angles(truth, found, lens[0])[some])
    away, turned = np.concatenate(off), np.concatenate(angle)
    size = np.abs(away)
    return SurfaceError(
        100.0 * float(size.mean()), 100.0 * float(np.median(size)), 100.0 * float(np.median(away)),
        float((size <= WITHIN).mean()), float(np.nanmedian(turned)),
    )  # fmt: skip


def _angles(truth: Array, found: Array, lens: ArrayAny) -> Array:
    """(H, W) [deg]; NaN at the border and where nothing is."""
    one, other = normals_of_depth(truth, lens), normals_of_depth(found, lens)
    known = (np.linalg.norm(one, axis=-1) > 0.5) & (np.linalg.norm(other, axis=-1) > 0.5)
    return np.where(known, np.degrees(np.arccos(np.clip(np.sum(one * other, axis=-1), -1.0, 1.0))), np.nan)


def rendered(views: PosedImages, judged: PosedImages) -> CaptureImages:
    """Return views as a capture of rendered images, those that are judged held out."""
    images = np.concatenate([views.rgb, judged.rgb])
    pixels = tuple(np.asarray(np.rint(255.0 * image.clip(0.0, 1.0)), np.uint8) for image in images)
    rows = [np.concatenate([getattr(one, name) for one in (views, judged)]) for name in ("intrinsics", "position", "attitude")]
    return CaptureImages(pixels, *rows, held_out=np.arange(len(images)) >= len(views), metric=True, rendered=True)


def with_points(images: CaptureImages, batch: SceneBatch, count: int, noise: float = 0.02) -> CaptureImages:
    """Add points on surfaces, off by `noise` [m] each way, as a reconstruction would find them in the training images."""
    rng, numbers = np.random.default_rng(7), images.training
    points, colors = [], []
    for k in numbers:
        height, width = images.rgb[k].shape[:2]
        x, y = rng.integers(width, size=-(-count // len(numbers))), rng.integers(height, size=-(-count // len(numbers)))
        fx, fy, cx, cy = images.intrinsics[k]
        ray = np.stack([(x + 0.5 - cx) / fx, (y + 0.5 - cy) / fy, np.ones(len(x))], axis=-1)
        one = slice(k, k + 1)
        asked = (RayTable(ray[None]), images.position[one], images.attitude[one], np.zeros(1, np.int32), ("depth",))
        depth = cast(batch.geometry, *asked)["depth"][0, 0].astype(np.float64)
        hit = np.isfinite(depth)
        points.append(images.position[k] + frames.rotate(images.attitude[k], ray[hit] * depth[hit, None]))
        colors.append(images.rgb[k][y[hit], x[hit]])
    found = np.concatenate(points)
    return replace(images, points=found + noise * rng.normal(size=found.shape), colors=np.concatenate(colors))


def trained(images: CaptureImages, options: TrainOptions, start: Splats) -> tuple[TrainingRun, float]:
    """Take all steps of a training; return it, and seconds of the process per step."""
    run = TrainingRun(images, options, start)
    began = time.process_time()
    while run.step < options.steps:
        run.advance()
    return run, (time.process_time() - began) / options.steps


def measure(
    images: CaptureImages, options: TrainOptions, start: Splats, batch: SceneBatch | None, views: Any
) -> dict[str, Any]:
    """Figures of one row."""
    run, seconds = trained(images, options, start)
    found = run.evaluate()
    splats = run.optimizer.splats()
    row: dict[str, Any] = {
        "psnr_db": round(float(np.mean([one.psnr for one in found])), 2),
        "psnr_unfitted_db": round(float(np.mean([one.psnr_unfitted for one in found])), 2),
        "ssim": round(float(np.mean([one.ssim for one in found])), 4),
        "gaussians": len(splats),
        "ms_per_step": round(1e3 * seconds, 1),
        "shortest_cm": round(100.0 * float(np.median(splats.scale.min(axis=1))), 3),
    }
    if batch is not None:
        renderer = SplatRenderer(splats)
        for place in ("mean", "plane"):
            error = asdict(surface_error(renderer, batch, views, place))
            row |= {f"{place}_{name}": round(value, 3) for name, value in error.items()}
    return row


def main() -> None:
    """Print a row per variant, as it is measured."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scene", default="backroom")
    parser.add_argument("--capture", type=Path, help="a folder of posed photographs instead of a scene")
    parser.add_argument("--width", type=int, default=320, help="of images [px]")
    parser.add_argument("--views", type=int, default=60)
    parser.add_argument("--judged", type=int, default=10)
    parser.add_argument("--steps", type=int, default=3000)
    parser.add_argument("--count", type=int, default=40_000)
    parser.add_argument("--points", type=int, default=20_000, help="on surfaces, 2 cm off, to begin at; 0: where planes agree")
    parser.add_argument("--start-share", type=float, default=0.8, help="Gaussians at first, over --count")
    parser.add_argument("--place-rate", type=float, default=8e-4)
    parser.add_argument("--variants", nargs="*", default=list(VARIANTS), choices=list(VARIANTS))
    parser.add_argument("--set", nargs="*", default=[], metavar="NAME=VALUE", help="a variant of your own: weights of losses")
    parser.add_argument("--out", type=Path, help="a file of JSON")
    asked = parser.parse_args()
    batch, views = None, None
    if asked.capture is None:
        batch = lit_batch(scene(asked.scene))
        size = (asked.width, asked.width * 9 // 16)
        train, views = (
            scene_views(batch, n, *size, first=first, samples=4) for n, first in ((asked.views, 0), (asked.judged, HELD_OUT))
        )
        images = rendered(train, views)
        images = with_points(images, batch, asked.points) if asked.points else images
    else:
        images = read_capture(asked.capture, width=asked.width)
    base = TrainOptions(
        steps=asked.steps,
        count=asked.count,
        start_share=asked.start_share,
        place_rate=asked.place_rate,
        degree_every=max(1, asked.steps // 3),
    )
    start, origin = first_splats(images[images.training], base, quiet=True)
    about = hardware.describe(hardware.use_cores(1))
    print(
        f"{asked.capture or asked.scene}: {len(images.training)} views, {origin}; {about['cpu']}; {about['command']}",
        flush=True,
    )
    variants = {name: VARIANTS[name] for name in asked.variants}
    if asked.set:
        own = {name: float(value) for name, _, value in (item.partition("=") for item in asked.set)}
        variants = {" ".join(asked.set): NONE | own}
    rows = {}
    for name, options in variants.items():
        rows[name] = measure(images, replace(base, **options), start, batch, views)
        print(name, json.dumps(rows[name]), flush=True)
    if asked.out:
        asked.out.write_text(json.dumps({"hardware": about, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
