"""Captured places against the rooms of which they were captured: are start and goal inside, where is what is hit, what is
unknown.

    python benchmarks/capture_places.py --out runs/capture_places                       fifty drawn rooms: a night on two cores
    python benchmarks/capture_places.py --rooms 3 --steps 1500                           three of them
    python benchmarks/capture_places.py --splats converted --rooms 50                    splats laid on the meshes, not trained

Each room is drawn, photographed with exact poses, trained, and made a place by `airworthy.capture.write_place`; then it is held
against the meshes that were photographed:

* ends: start and goal are within the bounds of the room and farther than the ball's radius from everything in it;
* surface: points of the shell that face known free space, the share within 5 cm of the true mesh (the part of it that faces
  unknown space nobody can reach); and the other way: of the true surface within the bounds that three cameras or more see, the
  share that has the shell, or unknown space, which is solid, within 5 cm;
* free: cells that are known to be free and hold something, and free cells beyond the bounds of the room;
* unknown: flights from the start straight through unknown space, with unknown space solid and free: how many succeed.

What lies in the folder is not made again: a stopped table goes on.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from airworthy.benchmarks.fly import FlyConfig, run_fly
from airworthy.capture import (
    CapturedPlace,
    CaptureImages,
    PlaceOptions,
    RenderCaptureOptions,
    TrainOptions,
    read_capture,
    render_capture,
    train_splats,
    write_place,
)
from airworthy.core import frames
from airworthy.geometry import RayTable, cast
from airworthy.geometry.distance import clearance
from airworthy.geometry.occupancy import voxelize
from airworthy.scenes import Scene, SceneBatch, Splats, read_splats, scene
from airworthy.scenes.carved import FREE, UNKNOWN, with_unknown
from airworthy.scenes.splats.placing import SURFACE
from benchmarks.row_file import RowFile, machine_line

SAMPLES = 20_000
"""Points of the shell."""
WITHIN = 0.05
"""[m]"""
SEEN_BY = 3
"""Cameras that must see a piece of true surface of `WITHIN` a side for it to count."""
THROUGH = 0.3
"""Unknown space that a way must cross to be flown [m]: a vehicle's size."""
ROOM = 0.35
"""From true and seen surfaces all along such a way [m]."""


def room_name(number: int) -> str:
    """Return the scene of a row."""
    return f"obstacle_room:0@{number}"


def splats_of(place: Scene, images: CaptureImages, folder: Path, args: argparse.Namespace) -> tuple[Splats, float | None]:
    """Return splats of a room, trained or converted, and the PSNR that their training reached [dB]."""
    if args.splats == "converted":
        from airworthy.rendering.converting import splats_from_scene

        return splats_from_scene(place, count=args.count), None
    options = TrainOptions(steps=args.steps, count=args.count, degree=0, judge_every=args.steps, start_share=args.start_share)
    result = train_splats(images, folder / "splats", options, quiet=True)
    return read_splats(result.splats).splats, result.psnr


def row_of(name: str, folder: Path, args: argparse.Namespace) -> dict[str, Any]:
    """Return one room as a row: made, and judged."""
    begin = time.process_time()
    truth = scene(name)
    views = RenderCaptureOptions(args.views, 8, *args.size, points=args.points, samples=args.samples)
    render_capture(truth, folder / "photos", views)
    images = read_capture(folder / "photos", quiet=True)
    if args.noise and images.points is not None:
        images = replace(
            images, points=images.points + args.noise * np.random.default_rng(2).standard_normal(images.points.shape)
        )
    splats, psnr = splats_of(truth, images, folder, args)
    made = time.process_time()
    place = write_place(folder / "place", images, splats, PlaceOptions(cell=args.cell, radius=args.radius), name="place")
    written = time.process_time()
    row: dict[str, Any] = {"room": name, "splats": args.splats, "psnr_db": psnr}
    row |= judged(place, truth, args.radius) | found(place, truth) | flown(place, truth, folder, args.flights)
    record = place.record
    row |= {"cell_m": record["cell_m"], "space_m3": record["space_m3"], "gaussians": record["gaussians"]}
    row |= {"psnr_lost_db": record["psnr_db"]["before"] - record["psnr_db"]["after"]}
    row |= {"cpu_s": {"splats": round(made - begin, 1), "place": round(written - made, 1)}}
    return row


def judged(place: CapturedPlace, truth: Scene, radius: float) -> dict[str, Any]:
    """Return start, goal, shell and cells of a place, held against the true meshes."""
    batch = SceneBatch(truth).geometry
    low, high = np.array(truth.bounds.lower), np.array(truth.bounds.upper)
    ends = np.array([place.room.start.position, place.room.goal.position])
    gap = clearance(batch, ends, 0).distance
    away = np.abs(clearance(batch, shell_points(place), 0).distance)
    lower, cell, states = place.carving.lower, place.carving.resolution, place.states
    full = voxelize(batch, 0, lower, lower + cell * np.array(states.shape), cell)
    free = np.argwhere(states == FREE)
    middle = lower + cell * (free + 0.5)
    outside = ((middle < low) | (middle > high)).any(axis=1)
    bounds = np.array([place.room.bounds.lower, place.room.bounds.upper])
    return {
        "ends_inside": bool(((ends >= low) & (ends <= high)).all() and (gap >= radius).all()),
        "ends_gap_m": gap.round(3).tolist(),
        "way_m": float(np.linalg.norm(ends[1] - ends[0])),
        "bounds_beyond_m": float(np.maximum(low - bounds[0], bounds[1] - high).max()),
        "surface_within": float((away <= WITHIN).mean()),
        "surface_median_m": float(np.median(away)),
        "surface_q95_m": float(np.quantile(away, 0.95)),
        "free_and_full": float(full[tuple(free.T)].mean()),
        "free_outside": float(outside.mean()),
        "room_known_free": float((states[~full & inside_cells(states.shape, lower, cell, low, high)] == FREE).mean()),
    }


def found(place: CapturedPlace, truth: Scene) -> dict[str, float]:
    """Return the share of true visible surface that is found: within `WITHIN` of the shell alone, and of all that is hit."""
    points = visible_surface(place, truth)
    shell = replace(place.scene, instances=tuple(item for item in place.scene.instances if item.name == SURFACE))
    near, solid = (clearance(SceneBatch(one).geometry, points, 0).distance for one in (shell, place.scene))
    # Distances within something solid are negative.
    return {"surface_found": float((np.abs(near) <= WITHIN).mean()), "surface_solid": float((solid <= WITHIN).mean())}


def visible_surface(place: CapturedPlace, truth: Scene) -> Any:
    """Return points (n, 3) of the true surface in the bounds that `SEEN_BY` cameras see, one in each cube of `WITHIN`."""
    batch, views = SceneBatch(truth).geometry, place.views
    points, cubes = [], []
    for k in range(len(views)):
        fx, fy, cx, cy = views.intrinsics[k]
        height, width = views.depth[k].shape
        u, v = np.meshgrid((np.arange(width) + 0.5 - cx) / fx, (np.arange(height) + 0.5 - cy) / fy)
        ray = np.stack((u, v, np.ones_like(u)), axis=-1)
        pose = views.position[k : k + 1], views.attitude[k : k + 1]
        depth = cast(batch, RayTable(ray), *pose, np.zeros(1, np.int32), ("depth",))["depth"][0].astype(np.float64)
        met = np.isfinite(depth)
        at = frames.rotate(views.attitude[k], ray[met] * depth[met][:, None]) + views.position[k]
        # A corner outside of a bound by what walls deviate from it: bounds are where free cells end.
        low, high = np.array(place.room.bounds.lower) - 3 * WITHIN, np.array(place.room.bounds.upper) + 3 * WITHIN
        at = at[((at > low) & (at < high)).all(axis=1)]
        cube, first = np.unique(np.floor(at / WITHIN).astype(np.int64), axis=0, return_index=True)
        points.append(at[first])
        cubes.append(cube)
    _, first, count = np.unique(np.concatenate(cubes), axis=0, return_index=True, return_counts=True)
    return np.concatenate(points)[first[count >= SEEN_BY]]


def inside_cells(shape: tuple[int, ...], lower: Any, cell: float, low: Any, high: Any) -> Any:
    """Tell which cells of a grid have their middles in a box."""
    within = np.ones(shape, bool)
    for axis, count in enumerate(shape):
        middle = lower[axis] + cell * (np.arange(count) + 0.5)
        some = (middle > low[axis]) & (middle < high[axis])
        within &= some.reshape([-1 if k == axis else 1 for k in range(3)])
    return within


def shell_points(place: CapturedPlace) -> Any:
    """Return points (n, 3) of the shell that face known free space, evenly over its area."""
    mesh = place.scene.shapes[SURFACE]
    corners = mesh.vertices[mesh.faces].astype(np.float64)
    normal = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    area = np.linalg.norm(normal, axis=1)
    middle = corners.mean(axis=1)
    ahead = middle + normal / np.maximum(area, 1e-12)[:, None] * place.carving.resolution
    facing = place.scene.carved.values(ahead) == FREE
    return middle[facing][np.random.default_rng(0).choice(facing.sum(), SAMPLES, p=area[facing] / area[facing].sum())]


def flown(place: CapturedPlace, truth: Scene, folder: Path, count: int) -> dict[str, Any]:
    """Return how many flights straight through unknown space succeed, with it solid and with it free."""
    targets = through_unknown(place, truth, count)
    successes = {"solid": 0, "free": 0}
    start = ",".join(f"{value:.4f}" for value in place.room.start.position)
    for number, target in enumerate(targets):
        way = (start, ",".join(f"{value:.4f}" for value in target))
        for mode in successes:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                config = FlyConfig(
                    scene=str(folder / "place"),
                    vehicle=("carl",),
                    waypoints=way,
                    unknown=mode,
                    course_check="none",
                    report=False,
                    out=folder / f"fly_{mode}_{number}",
                )
                counts = run_fly(config).summary["aggregate"]["outcomes"]
            successes[mode] += counts.get("success", 0)
    return {"flights": len(targets), "succeed_solid": successes["solid"], "succeed_free": successes["free"]}


def through_unknown(place: CapturedPlace, truth: Scene, count: int) -> list[Any]:
    """Return places in the bounds whose straight way from the start crosses unknown space, and meets no surface, true or seen:
    nothing but the unknown can end a flight there."""
    rng = np.random.default_rng(1)
    open_ = [SceneBatch(one).geometry for one in (truth, with_unknown(place.scene, "free"))]
    start = np.array(place.room.start.position)
    low, high = np.array(place.room.bounds.lower) + 0.2, np.array(place.room.bounds.upper) - 0.2
    carved, found = place.scene.carved, []
    for target in rng.uniform(low, high, (3000, 3)):
        length = float(np.linalg.norm(target - start))
        steps = np.linspace(0.0, 1.0, int(length / 0.02) + 2)[:, None]
        way = start + steps * (target - start)
        crosses = 0.02 * np.count_nonzero(carved.values(way) == UNKNOWN) >= THROUGH and length > 1.0
        if crosses and all((clearance(one, way[::5], 0).distance > ROOM).all() for one in open_):
            found.append(target)
            if len(found) == count:
                break
    return found


def main() -> None:
    """Make and judge the rooms that are missing, and print what all of them come to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("runs/capture_places"))
    parser.add_argument("--rooms", type=int, default=50)
    parser.add_argument("--first", type=int, default=0, help="number of the first room")
    parser.add_argument("--splats", choices=("trained", "converted"), default="trained")
    parser.add_argument("--views", type=int, default=120)
    parser.add_argument("--size", type=int, nargs=2, default=(320, 180))
    parser.add_argument("--points", type=int, default=20_000)
    parser.add_argument("--noise", type=float, default=0.0, help="standard deviation of the points' coordinates [m]")
    parser.add_argument("--samples", type=int, default=4)
    parser.add_argument("--steps", type=int, default=1500)
    parser.add_argument("--count", type=int, default=30_000)
    parser.add_argument("--start-share", type=float, default=0.5, help="gaussians at first, over all; 1: at the points")
    parser.add_argument("--cell", type=float, default=0.0, help="edge of the cells [m]; 0: found")
    parser.add_argument("--radius", type=float, default=0.3)
    parser.add_argument("--flights", type=int, default=2, help="through unknown space, of each room")
    args = parser.parse_args()
    print(machine_line())
    table = RowFile(args.out / "rows.jsonl", ("room", "splats"))
    for number in range(args.first, args.first + args.rooms):
        name = room_name(number)
        if not table.has(name, args.splats):
            table.add(row_of(name, args.out / f"{args.splats}_{number}", args))
    rows = [row for row in table.rows if row["splats"] == args.splats]
    shown = ("ends_inside", "surface_within", "surface_found", "surface_solid", "surface_median_m")
    for key in (*shown, "free_and_full", "free_outside", "room_known_free"):
        values = np.array([row[key] for row in rows], float)
        print(f"{key:20} mean {values.mean():.4f}   worst {values.min():.4f} to {values.max():.4f}")
    for key in ("flights", "succeed_solid", "succeed_free"):
        print(f"{key:20} {sum(row[key] for row in rows)}")


if __name__ == "__main__":
    main()
