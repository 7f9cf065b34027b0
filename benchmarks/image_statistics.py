"""Statistics of rendered pictures beside those of photographs.

    python benchmarks/image_statistics.py --places forest:3 street:0 mid_gate woodland:0

Each place is seen from where a drone would be, around the circle and on a short flight forward; captures are folders of
photographs in the order in which they were taken. Of each statistic stand the median and, in brackets, the 10th and 90th
percentile of images; a place's median that lies outside every capture's is marked *. Corners are followed at equal flow: what
moves farther between two images is lost sooner, so each place's step is chosen for the captures' median flow.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from PIL import Image

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from airworthy.capture.photograph import CornerTracks, ImageStatistics, corner_tracks, image_statistics
from airworthy.cli.scenes.pictures import gain_in_shade
from airworthy.core import frames
from airworthy.core.arrays import ArrayU8
from airworthy.geometry import RayTable
from airworthy.optics.tone import to_8bit
from airworthy.rendering import quality_options, render, use_baked, use_shade
from airworthy.scenes import scene
from airworthy.scenes.batch import SceneBatch
from airworthy.scenes.dressing import dressed, has_dress
from benchmarks.views import viewpoint_of

LONGER_SIDE = 640
"""Of images that are compared [px]."""
HEADINGS = 8
FRAMES = 6
NAMES = ("slope", "kurtosis", "colour_width", "corners")


def photographs(folder: Path) -> list[ArrayU8]:
    """Return the images of a folder, in the order of their names, reduced to the longer side."""
    found = []
    for path in sorted(path for path in folder.iterdir() if path.suffix.lower() in (".jpg", ".jpeg", ".png")):
        with Image.open(path) as image:
            scale = LONGER_SIDE / max(image.size)
            size = (round(image.width * scale), round(image.height * scale))
            found.append(np.asarray(image.convert("RGB").resize(size, Image.Resampling.LANCZOS)))
    return found


class Place:
    """A place that is photographed."""

    def __init__(self, name: str, quality: str, baked: bool, shaded: bool = False):
        place = scene(name)
        self.batch = SceneBatch(dressed(place) if has_dress(place) else place)
        if baked:
            use_baked(self.batch)
        # As `airworthy scenes render` shows woods: the shade below trees, and an exposure for it.
        self.shaded = shaded and use_shade(self.batch)
        self.options = quality_options(quality)
        self.where = viewpoint_of(name, self.batch)

    def picture(self, turn: float = 0.0, ahead: float = 0.0) -> ArrayU8:
        """Return what is seen, turned about the vertical [rad] or farther ahead [m]."""
        q = np.asarray(self.where.attitude)
        forward = frames.rotate(q, np.array([0.0, 0.0, 1.0]))
        level = forward * (1.0, 1.0, 0.0)
        about = np.array([0.0, 0.0, np.sin(turn / 2), np.cos(turn / 2)])
        pose = (self.where.position + ahead * level / np.linalg.norm(level))[None], frames.multiply(about, q)[None]
        table = RayTable(*self.where.rays(LONGER_SIDE, LONGER_SIDE * 9 // 16))
        linear = render(self.batch, table, *pose, channels=("rgb",), options=self.options)["rgb"]
        return (to_8bit(linear, gain_in_shade(linear), "wide") if self.shaded else to_8bit(linear))[0]

    def around(self) -> list[ArrayU8]:
        """Return pictures all around."""
        return [self.picture(turn=2.0 * np.pi * k / HEADINGS) for k in range(HEADINGS)]

    def tracks_at(self, flow: float) -> tuple[CornerTracks, float]:
        """Return corners on a flight forward whose median flow is nearest to the given one, and its step [m]."""
        step, best = 0.1, (np.inf, None, 0.0)
        for _ in range(4):
            found = corner_tracks([self.picture(ahead=k * step) for k in range(FRAMES)])
            if abs(np.log(found.flow / flow)) < best[0]:
                best = abs(np.log(found.flow / flow)), found, step
            step *= float(np.clip(flow / found.flow, 0.25, 4.0))
        return best[1], best[2]


def line(name: str, found: Sequence[ImageStatistics], tracks: CornerTracks, ranges: dict[str, tuple[float, float]]) -> str:
    """Return a row; `ranges` are the captures', empty for a capture itself."""
    cells = []
    for key in NAMES:
        values = np.array([getattr(item, key) for item in found], float)
        low, middle, high = np.nanpercentile(values, [10, 50, 90])
        out = ranges and not ranges[key][0] <= middle <= ranges[key][1]
        cells.append(f"{middle:.3g}{'*' if out else ''} ({low:.3g} to {high:.3g})".rjust(26))
    return f"{name:14} " + " ".join(cells) + f" {tracks.length:8.1f} {100 * tracks.kept:6.1f} % {100 * tracks.flow:6.2f} %"


def main() -> None:
    """Print a row per capture and place."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--places", nargs="+", default=["forest:3", "street:0", "mid_gate", "woodland:0"], help="generated")
    parser.add_argument("--captures", nargs="*", type=Path, help="folders of photographs; default: those of AIRWORTHY_DATA")
    parser.add_argument("--quality", default="standard", help="policy, standard, high")
    parser.add_argument("--baked", action="store_true", help="bake light first")
    parser.add_argument("--shaded", action="store_true", help="find the shade under trees first, as scenes render does")
    asked = parser.parse_args()
    if asked.captures is None:
        data = os.environ.get("AIRWORTHY_DATA")
        if not data:
            parser.error("give --captures, or set AIRWORTHY_DATA")
        asked.captures = [Path(data) / "splats" / "fox_images" / "images"]
    print(f"{'':14} " + " ".join(name.rjust(26) for name in NAMES) + f" {'length':>8} {'kept':>8} {'flow':>8}")
    captured, flows = [], []
    for folder in asked.captures:
        images = photographs(folder)
        found, tracks = [image_statistics(image) for image in images], corner_tracks(images)
        captured, flows = [*captured, *found], [*flows, tracks.flow]
        print(line(folder.parent.name if folder.name == "images" else folder.name, found, tracks, {}), flush=True)
    ranges = {}
    for key in NAMES:
        values = [getattr(item, key) for item in captured]
        ranges[key] = (min(values), max(values))
    print("ranges of captures: " + ", ".join(f"{key} {low:.3g} to {high:.3g}" for key, (low, high) in ranges.items()))
    for name in asked.places:
        place = Place(name, asked.quality, asked.baked, asked.shaded)
        tracks, step = place.tracks_at(float(np.median(flows)))
        found = [image_statistics(image) for image in place.around()]
        print(line(name, found, tracks, ranges) + f"   step {step:.2f} m", flush=True)


if __name__ == "__main__":
    main()
