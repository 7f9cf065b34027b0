"""How far the scale of a filmed place is off by one known distance, and whether its interval holds the truth.

    python benchmarks/capture_distance.py                       # mid_gate, 60 pictures of 640 x 360
    python benchmarks/capture_distance.py flightroom --draws 200
    python benchmarks/capture_distance.py --capture CAPTURE --truth FILM.truth.json     # of what is there already

A hall is filmed and reconstructed as by `capture_video.py --quick` with that size; no marker is used. Pairs of points of its
surfaces are drawn that are about so far apart, and each is picked as by hand, off by 1 px (standard deviation) along each axis:
in any two pictures that were taken 1 m apart or more, or in the best few. The distance is as a tape says, off by 2 mm. What
`--known-distance` makes of them is held against the scale by the true places of the cameras.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from airworthy.capture import CaptureImages, CaptureVideoOptions, best_similarity, capture_video, read_capture
from airworthy.capture.alignment.known_distance import PICK_NOISE, TAPE_NOISE, measured_scale
from airworthy.capture.alignment.pose_spread import PoseSpread
from airworthy.capture.filming import FilmOptions, film_rig, render_film
from airworthy.capture.video.colmap_process import LOSS_PX
from airworthy.capture.video.evidence import poses_by_leftovers, read_leftovers
from airworthy.capture.video.frames import read_frames_record
from airworthy.capture.video.reconstruction import LEFTOVERS
from airworthy.core import frames
from airworthy.core.arrays import Array
from airworthy.core.errors import AirworthyError
from airworthy.rendering import render
from airworthy.scenes import scene
from benchmarks import hardware

DISTANCES = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
CARE = ("any two", "the best few")
"""Pictures in which a point is picked: two that were taken 1 m apart or more; or the two that are nearest to it and at right
angles, and up to two more that are nearly as good beside one of them."""
_BASELINE, _EDGE, _FLAT, _SEEN, _TRIES = 1.0, 8, 0.05, 0.02, 4000


class Surfaces:
    """What the cameras of a film see: depth of each pixel, by the true scene and the true places.

    Args:
        name: Of the scene.
        truth: Of the film.
        numbers: Of the pictures that have a pose.
    """

    def __init__(self, name: str, truth: dict[str, Any], numbers: Array) -> None:
        options = FilmOptions(**truth["options"])
        batch, rays, env = film_rig(scene(name), options).batch, options.lens.rays(), np.zeros(1, np.int32)
        self.fx, self.fy, self.cx, self.cy = truth["intrinsics"]
        self.size = np.array(truth["size"])
        self.position = np.array(truth["position"])[numbers]
        self.attitude = np.array(truth["attitude"])[numbers]
        self.depth = [
            render(batch, rays, p[None], a[None], env, ("depth",), projection=options.lens)["depth"][0]
            for p, a in zip(self.position, self.attitude, strict=True)
        ]

    def drawn(self, rng: np.random.Generator) -> Array | None:
        """Return a point of a surface (3,) [m]; None: the pixel that was drawn is at an edge."""
        k = int(rng.integers(len(self.depth)))
        u, v = (int(rng.integers(_EDGE, side - _EDGE)) for side in self.size)
        around = self.depth[k][v - 2 : v + 3, u - 2 : u + 3]
        if not np.isfinite(around).all() or around.max() > (1.0 + _FLAT) * around.min():
            return None
        eye = self.depth[k][v, u] * np.array([(u + 0.5 - self.cx) / self.fx, (v + 0.5 - self.cy) / self.fy, 1.0])
        return np.asarray(self.position[k] + frames.rotate(self.attitude[k], eye))

    def seen(self, point: Array) -> list[tuple[int, Array]]:
        """Return in which pictures a point is seen, and where [px]."""
        found = []
        eye = frames.rotate_inverse(self.attitude, point - self.position)
        for k, (x, y, z) in enumerate(eye):
            if z > 0.2:
                pixel = np.array([self.fx * x / z + self.cx, self.fy * y / z + self.cy])
                if (pixel > _EDGE).all() and (pixel < self.size - _EDGE).all():
                    u, v = np.floor(pixel).astype(int)
                    if abs(self.depth[k][v, u] / z - 1.0) < _SEEN:
                        found.append((k, pixel))
        return found


def picked(surfaces: Surfaces, names: list[str], point: Array, care: str, rng: np.random.Generator) -> str | None:
    """Return a point as it is picked in pictures that are far apart; None: there are none.

    Args:
        surfaces: What is seen.
        names: Of the pictures.
        point: (3,) [m].
        care: Name in `CARE`.
        rng: Draws.
    """
    seen = surfaces.seen(point)
    if len(seen) < 2:
        return None
    places = surfaces.position[[k for k, _ in seen]]
    wide = np.argwhere(np.triu(np.linalg.norm(places[:, None] - places[None], axis=-1)) > _BASELINE)
    if not len(wide):
        return None
    if care == "any two":
        chosen = wide[int(rng.integers(len(wide)))]
    else:
        # Near, and at right angles: what is off across a ray is the distance over the focal length, and along it more.
        way = point - places
        far = np.linalg.norm(way, axis=1)
        sine = np.linalg.norm(np.cross(way[:, None], way[None]), axis=-1) / (far[:, None] * far)
        loss = np.maximum(far[:, None], far) / np.maximum(sine, 1e-6)
        first, second = np.unravel_index(int(loss.argmin()), loss.shape)
        chosen = np.unique([first, second, int(np.argsort(loss[first])[1]), int(np.argsort(loss[second])[1])])
    parts = []
    for which in chosen:
        k, pixel = seen[int(which)]
        u, v = pixel + PICK_NOISE * rng.normal(size=2)
        parts.append(f"{names[k]}:{u:.3f},{v:.3f}")
    return "+".join(parts)


def pairs(
    surfaces: Surfaces, names: list[str], metres: float, care: str, count: int, rng: np.random.Generator
) -> list[tuple[str, str, float]]:
    """Return picks of two points that are about so far apart, and what a tape says [m]."""
    found: list[tuple[str, str, float]] = []
    for _ in range(_TRIES):
        if len(found) == count:
            break
        first = surfaces.drawn(rng)
        if first is None:
            continue
        for _ in range(40):
            second = surfaces.drawn(rng)
            away = 0.0 if second is None else float(np.linalg.norm(second - first))
            if second is not None and abs(away / metres - 1.0) < 0.2:
                words = [picked(surfaces, names, one, care, rng) for one in (first, second)]
                if words[0] is not None and words[1] is not None:
                    found.append((words[0], words[1], away + TAPE_NOISE * float(rng.normal())))
                    break
    return found


def row(
    images: CaptureImages, poses: PoseSpread | None, true_scale: float, drawn: list[tuple[str, str, float]], metres: float
) -> dict[str, Any]:
    """Return how far the scale is off by pairs of points [%], and how often its interval holds the truth."""
    off, half, refused = [], [], 0
    for first, second, tape in drawn:
        try:
            found = measured_scale(images, first, second, tape, poses)
        except AirworthyError:
            refused += 1
            continue
        off.append(100.0 * (found.scale / true_scale - 1.0))
        half.append(100.0 * found.scale_half)
    away = np.abs(off)
    if not off:
        return {"metres": metres, "pairs": len(drawn), "refused": refused}
    return {
        "metres": metres,
        "pairs": len(drawn),
        "refused": refused,
        "median_percent": round(float(np.median(away)), 2),
        "p90_percent": round(float(np.quantile(away, 0.9)), 2),
        "within_1_percent": round(float(np.mean(away < 1.0)), 3),
        "half_95_median_percent": round(float(np.median(half)), 2),
        "held": round(float(np.mean(away < half)), 3),
        "within_1_where_half_is": [int((away[np.array(half) < 1.0] < 1.0).sum()), int((np.array(half) < 1.0).sum())],
    }


def filmed(asked: argparse.Namespace) -> tuple[Path, Path]:
    """Film and reconstruct what is not there yet; return the paths of the truth and of the capture."""
    name = asked.scene.replace(":", "_")
    film, out = asked.work / "films" / name, asked.work / name
    width, height = asked.size
    options = FilmOptions(
        seconds=float(asked.pictures), rate=1.0, width=width, height=height, exposures=2, marker_side=0.0
    )  # fmt: skip
    if not (film / "truth.json").exists():
        render_film(scene(asked.scene), film, options, quiet=False)
    chosen = CaptureVideoOptions(quick=True, frames=asked.pictures, train=False)
    capture_video(film, out, chosen, threads=asked.threads, quiet=False)
    return film / "truth.json", out


def main() -> None:
    """Print hardware, then a row for each distance."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scene", nargs="?", default="mid_gate")
    parser.add_argument("--work", type=Path, default=Path("runs/capture_distance"))
    parser.add_argument("--pictures", type=int, default=60)
    parser.add_argument("--size", type=int, nargs=2, default=(640, 360))
    parser.add_argument("--capture", type=Path, help="that is there already, of the scene, with its --truth")
    parser.add_argument("--truth", type=Path, help="of its film")
    parser.add_argument("--care", nargs="+", choices=CARE, default=CARE, help="pictures in which points are picked")
    parser.add_argument("--draws", type=int, default=100, help="pairs of each distance")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=1)
    asked = parser.parse_args()
    if (asked.capture is None) != (asked.truth is None):
        parser.error("--capture and --truth go together")
    print(json.dumps(hardware.describe(sorted(os.sched_getaffinity(0)))))
    truth, out = (asked.truth, asked.capture) if asked.capture else filmed(asked)
    truth = json.loads(Path(truth).read_text())
    images = read_capture(out, width=truth["size"][0], up="none", every=0, aligned=False)
    numbers = np.array([int(Path(name).stem) for name in images.names])
    scale = best_similarity(images.position, np.array(truth["position"])[numbers]).scale
    print(f"{len(numbers)} pictures, {scale:.4f} m per unit")
    names = [frame.name for frame in read_frames_record(out)[1]]
    poses = poses_by_leftovers(images, read_leftovers(out / LEFTOVERS), names, LOSS_PX)
    surfaces, rng = Surfaces(asked.scene, truth, numbers), np.random.default_rng(asked.seed)
    for care in asked.care:
        for metres in DISTANCES:
            drawn = pairs(surfaces, list(images.names), metres, care, asked.draws, rng)
            print(json.dumps({"picked_in": care, **row(images, poses, scale, drawn, metres)}), flush=True)


if __name__ == "__main__":
    main()
