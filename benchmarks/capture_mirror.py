"""A film of a room with a mirror in it: how many points behind the mirror are found to be mirror images of points before it.

    python benchmarks/capture_mirror.py backroom --centre 0 -2.1 1.5 --half 1.2 0.02 1.0
    python benchmarks/capture_mirror.py backroom --out runs/no_mirror
    python benchmarks/capture_mirror.py backroom --centre 0 -2.1 1.5 --sizes 2.4 2.0 1.2 1.8 --seen  # how much is seen

The room is filmed by a hand (48 pictures of 640 x 360, two a second), with smooth surfaces that mirror, which other films do
without; the film is reconstructed (`airworthy capture video --quick --no-train`), and the plane that most pairs agree on is
printed beside the true one, both in the frame of the room, and how much of the pictures the mirror takes. What lies in the
folder is not made again; another film needs another one.
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
from airworthy.capture.filming import FilmOptions, film, film_rig, render_film
from airworthy.core import frames
from airworthy.core.errors import AirworthyError
from airworthy.geometry import Box
from airworthy.rendering import ShadingOptions, render
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


def share_seen(room: Scene, centre: tuple[float, ...], half: tuple[float, ...], options: FilmOptions) -> dict[str, float | int]:
    """Return how much of a film's pictures a mirror takes: pictures with any of it, mean share of those, and the most [%].

    Args:
        room: With it.
        centre: Of the box, world [m], (3,).
        half: Half of its edges [m], (3,).
        options: Of the film; looked at is one of its rays in 36.
    """
    small = replace(options, width=max(64, options.width // 6), height=max(64, options.height // 6))
    rig, lens, env = film_rig(room, small), small.lens, np.zeros(1, np.int32)
    shares = []
    for time in np.arange(small.count) / small.rate:
        position, attitude = rig.walk.poses(np.array([time]))
        depth = render(rig.batch, lens.rays(), position, attitude, env, ("depth",), projection=lens)["depth"][0]
        depth = np.where(np.isfinite(depth), depth, 0.0)
        v, u = np.mgrid[: small.height, : small.width] + 0.5
        eye = depth[..., None] * np.stack(((u - lens.cx) / lens.fx, (v - lens.cy) / lens.fy, np.ones_like(u)), axis=-1)
        place = position[0] + frames.rotate(attitude[0], eye)
        inside = np.abs(place - np.array(centre)) < np.array(half) + 0.01
        shares.append(float(((depth > 0.0) & inside.all(axis=-1)).mean()))
    seen = np.array([share for share in shares if share > 0.0])
    return {
        "pictures": len(seen),
        "mean_percent": round(100.0 * float(seen.mean()), 1) if len(seen) else 0.0,
        "most_percent": round(100.0 * float(seen.max()), 1) if len(seen) else 0.0,
    }


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
    parser.add_argument("--sizes", type=float, nargs="+", help="widths along x and heights of mirrors [m], with --seen")
    parser.add_argument("--seen", action="store_true", help="only tell how much of the pictures mirrors of those sizes take")
    parser.add_argument("--seconds", type=float, default=24.0)
    parser.add_argument("--laps", type=float, default=1.0, help="of the walk round the room")
    parser.add_argument("--size", type=int, nargs=2, default=(640, 360))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    # Films of rooms without mirrors are as good without the second ray.
    film.ShadingOptions = functools.partial(ShadingOptions, reflections=True)  # type: ignore[attr-defined,assignment]
    room = scene(args.room)
    width, height = args.size
    options = FilmOptions(
        seconds=args.seconds, rate=2.0, width=width, height=height, laps=args.laps, shutter=0.0, marker_side=0.0, seed=args.seed
    )
    if (args.seen or args.sizes) and not (args.seen and args.sizes and args.centre and len(args.sizes) % 2 == 0):
        parser.error("--seen needs a --centre and --sizes, two numbers for each mirror")
    if args.seen:
        for across, high in zip(args.sizes[::2], args.sizes[1::2], strict=True):
            half = (0.5 * across, args.half[1], 0.5 * high)
            seen = share_seen(with_mirror(room, tuple(args.centre), half), tuple(args.centre), half, options)
            print(json.dumps({"size_m": [across, high], **seen}), flush=True)
        return
    if args.centre:
        room = with_mirror(room, tuple(args.centre), tuple(args.half))
        print(json.dumps(share_seen(room, tuple(args.centre), tuple(args.half), options)))
    path = args.out / "film.mp4"
    if not path.with_name("film.mp4.truth.json").exists():
        args.out.mkdir(parents=True, exist_ok=True)
        render_film(room, path, options, quiet=False)
    chosen = CaptureVideoOptions(quick=True, frames=options.count, train=False)
    try:
        done = capture_video(path, args.out / "room", chosen, threads=args.threads, quiet=False)
    except AirworthyError as error:
        sys.exit(f"no place: {error}")
    mirror = json.loads((args.out / "room" / "reconstruction.json").read_text())["mirror"]
    print(f"{done.summary['registered']} of {done.summary['pictures']} pictures, {done.summary['points']} points")
    print("no plane" if mirror is None else f"{mirror['pairs']} pairs of one plane, believed: {mirror['believed']}")
    if mirror is not None:
        truth = json.loads(path.with_name("film.mp4.truth.json").read_text())
        print("normal {}, offset {} m".format(*found_plane(args.out / "room", truth, mirror)))


if __name__ == "__main__":
    main()
