"""A film of a room with a mirror in it: how many points behind the mirror are found to be mirror images of points before it.

    python benchmarks/capture_mirror.py backroom --centre 0 -2.1 1.5 --half 1.2 0.02 1.0
    python benchmarks/capture_mirror.py backroom --out runs/no_mirror

The room is filmed by a hand (48 pictures of 640 x 360, two a second), with smooth surfaces that mirror, which other films do
without; the film is reconstructed (`airworthy capture video --quick --no-train`), and the plane that most pairs agree on is
printed beside the true one, both in the frame of the room. What lies in the folder is not made again.
"""

from __future__ import annotations

import argparse
import functools
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from airworthy.capture import CaptureVideoOptions, best_similarity, capture_video, read_capture
from airworthy.capture.video import FilmOptions, film, render_film
from airworthy.core import frames
from airworthy.geometry import Box
from airworthy.rendering import ShadingOptions
from airworthy.scenes import Instance, Material, Scene, scene

SILVER = Material((0.95, 0.95, 0.95, 1.0), metallic=1.0, roughness=0.02)
TITLE = "mirror"


def with_mirror(room: Scene, centre: tuple[float, ...], half: tuple[float, ...]) -> Scene:
    """Return a room with a flat box in it that mirrors.

    Args:
        room: Without.
        centre: Of the box, world [m], (3,).
        half: Half of its edges [m], (3,).
    """
    x, y, z = centre
    item = Instance(TITLE, (x, y, z), materials=(TITLE,), name=TITLE)
    return replace(
        room,
        shapes={**room.shapes, TITLE: Box((half[0], half[1], half[2]))},
        materials={**room.materials, TITLE: SILVER},
        instances=(*room.instances, item),
    )


def found_plane(folder: Path, truth: dict[str, Any], mirror: dict[str, Any]) -> tuple[list[float], float]:
    """Return normal and offset [m] of a mirror in the frame of the room, by the true places of the cameras."""
    images = read_capture(folder, width=64, up="none", every=0, aligned=False)
    numbers = [int(Path(name).stem) for name in images.names]
    fit = best_similarity(images.position, np.array(truth["position"])[numbers])
    normal = frames.rotate(fit.rotation, np.array(mirror["normal"]))
    foot = fit.points(mirror["offset"] * np.array(mirror["normal"])[None])[0]
    return [round(float(value), 3) for value in normal], round(float(normal @ foot), 3)


def main() -> None:
    """Film, reconstruct, and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("room")
    parser.add_argument("--centre", type=float, nargs=3, help="of the mirror [m]; without, there is none")
    parser.add_argument("--half", type=float, nargs=3, default=(1.2, 0.02, 1.0), help="half of its edges [m]")
    parser.add_argument("--out", type=Path, default=Path("runs/capture_mirror"))
    parser.add_argument("--seconds", type=float, default=24.0)
    parser.add_argument("--size", type=int, nargs=2, default=(640, 360))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    # Films of rooms without mirrors are as good without the second ray.
    film.ShadingOptions = functools.partial(ShadingOptions, reflections=True)  # type: ignore[misc,assignment]
    room = scene(args.room)
    if args.centre:
        room = with_mirror(room, tuple(args.centre), tuple(args.half))
    width, height = args.size
    options = FilmOptions(
        seconds=args.seconds, rate=2.0, width=width, height=height, shutter=0.0, marker_side=0.0, seed=args.seed
    )
    path = args.out / "film.mp4"
    if not path.with_name("film.mp4.truth.json").exists():
        args.out.mkdir(parents=True, exist_ok=True)
        render_film(room, path, options, quiet=False)
    chosen = CaptureVideoOptions(quick=True, frames=options.count, train=False)
    done = capture_video(path, args.out / "room", chosen, threads=args.threads, quiet=False)
    mirror = json.loads((args.out / "room" / "reconstruction.json").read_text())["mirror"]
    print(f"{done.summary['registered']} of {done.summary['pictures']} pictures, {done.summary['points']} points")
    print("no plane" if mirror is None else f"{mirror['pairs']} pairs of one plane, believed: {mirror['believed']}")
    if mirror is not None:
        truth = json.loads(path.with_name("film.mp4.truth.json").read_text())
        print("normal {}, offset {} m".format(*found_plane(args.out / "room", truth, mirror)))


if __name__ == "__main__":
    main()
