"""A captured place as a folder: what is seen, what is hit, where one may be, and the evidence for it.

    scene.toml, assets/     a scene like any other: clouds, shell, unknown space, bounds, start, goal
    assets/carved...        known free, occupied and unknown cells
    collision.ply           the shell, for other programs
    cameras.json            where the images were taken, as in a transforms.json
    place.json, report.html figures and pictures of how it was made

`fly`, `bench`, `view`, `synthesize`, `train` and `evaluate` take the folder by its path.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from airworthy.capture.places.carving import (
    Carving,
    carve,
    grid_box,
    grid_resolution,
    known_states,
    point_counts,
)
from airworthy.capture.places.depth_views import DepthViews, depth_views
from airworthy.capture.places.free_space import FreeRoom, free_room, reachable_states
from airworthy.capture.places.place_surface import coverage_picture, depth_against_points, occupied_mesh
from airworthy.capture.places.point_hull import bounded_states, ends_beyond, point_hull, walled
from airworthy.capture.places.pruning import Pruned, pruned
from airworthy.capture.record import CaptureImages
from airworthy.capture.training.run import views_reach
from airworthy.capture.writer import file_names, transforms_table
from airworthy.core.arrays import Array, ArrayBool, ArrayU8
from airworthy.core.errors import AirworthyError
from airworthy.core.files import lock_folder, write_json, write_text
from airworthy.core.schema import SHARE, Bound, check_fields
from airworthy.geometry.distance import distance_field
from airworthy.reports.page import page_of
from airworthy.reports.pictures import data_uri
from airworthy.scenes.carved import BACKGROUND, FREE, OCCUPIED, UNKNOWN, CarvedSpace, with_unknown
from airworthy.scenes.files.scene_file import write_scene
from airworthy.scenes.formats.write_plain import write_ply
from airworthy.scenes.record import Instance, Scene, SplatPlacement
from airworthy.scenes.splats.editing import selected
from airworthy.scenes.splats.placing import SURFACE
from airworthy.scenes.splats.record import Splats

__all__ = ["PLACE_FILE", "CapturedPlace", "PlaceOptions", "made_place", "write_place"]

PLACE_FILE, PAGE, CAMERAS, COLLISION = "place.json", "report.html", "cameras.json", "collision.ply"
ROOM = "room"
"""Names of the clouds: what stands in known space, and what is seen beyond it."""
_BEHIND = 0.3
"""Gaussians farther than this from all known space are background [m]: those of a wall lie up to some centimetres in it."""
_NEAR = 0.02
"""Nearest that is rendered, of the reach: as in training."""
_MARGIN_CELLS = 3
"""Around what cameras see."""
_BEYOND, _TRUSTED = 0.2, 0.05
"""Rays that free more than this beyond all points [m], and the share of them from which on it is said (ours: under 0.004
in rooms with many points, 0.02 in a hall with 3,300 of them, 0.07 where 3 % of the free cells lay above the ceiling)."""
_VOLUME_DIGITS = 3
_FINEST = 0.005
"""Smallest edge of a cell [m]: what photographs of rooms tell apart, and no more cells than memory holds."""


@dataclass(frozen=True)
class PlaceOptions:
    """How a place is made of trained splats.

    Raises:
        AirworthyError: A number is out of range.
    """

    cell: Annotated[float, Bound(0.0, 1.0, "m")] = 0.0
    """Edge of the cells of known space [m]; 0: 0.05 to 0.1, as suits size and memory."""
    radius: Annotated[float, Bound(0.0, 5.0, "m", above=True)] = 0.3
    """Of the ball that must fit where start, goal and bounds are [m]."""
    prune: bool = True
    """Leave out gaussians that fewer than two training cameras see."""
    antialiased: bool = False
    """As of the training."""
    background: Annotated[float, SHARE] = 0.0
    """Behind everything, 0 black to 1 white, as of the training."""
    assume_metric: bool = False
    """Take the unit of a capture that is not metric for the metre."""

    def __post_init__(self) -> None:
        check_fields(self, "PlaceOptions.")
        if 0.0 < self.cell < _FINEST:
            raise AirworthyError(f"PlaceOptions.cell is {self.cell} m; expected {_FINEST:g} to 1 m, or 0: found.")


@dataclass(frozen=True, eq=False)
class CapturedPlace:
    """A place before it is written."""

    scene: Scene
    views: DepthViews
    carving: Carving
    states: ArrayU8
    """(nx, ny, nz) of UNKNOWN, FREE, OCCUPIED."""
    room: FreeRoom
    pruned: Pruned
    record: dict[str, Any]
    """What place.json holds."""


def write_place(
    folder: str | Path,
    images: CaptureImages,
    splats: Splats,
    options: PlaceOptions | None = None,
    *,
    name: str = "",
    walls: Sequence[tuple[Array, float]] = (),
    doubt: str = "",
    quiet: bool = True,
) -> CapturedPlace:
    """Make a place of trained splats and write it; equal inputs give equal bytes.

    Args:
        folder: Made where missing; a place that is there is replaced.
        images: The capture from which the splats were trained, in its frame: z up, metres.
        splats: As trained, in the same frame.
        options: How.
        name: Of the scene; empty: the folder's.
        walls: Mirrors, behind which nothing is free: normal towards the room (3,) and offset [m], normal @ x = offset.
        doubt: Why the splats are not to be trusted, in a sentence, which stands among the place's warnings; empty: nothing.
        quiet: Show no progress.

    Raises:
        AirworthyError: The capture is not metric, its splats are nowhere opaque, no free space holds a vehicle, or the file
            system refused.
    """
    root = Path(folder)
    place = made_place(images, splats, options, name=name or root.resolve().name, walls=walls, doubt=doubt, quiet=quiet)
    write_scene(place.scene, root)
    with lock_folder(root) as locked:
        write_ply(locked / COLLISION, replace(place.scene, instances=_only(place.scene, SURFACE), clouds={}, splats=()))
        write_json(locked / CAMERAS, transforms_table(images, file_names(images.names)))
        _write_page(locked / PAGE, place)
        # Last: where it lies, all is done.
        write_json(locked / PLACE_FILE, place.record)
    return place


def _only(scene: Scene, name: str) -> tuple[Instance, ...]:
    # Writers of models leave out what is not visible.
    return tuple(replace(item, visible=True) for item in scene.instances if item.name == name)


def made_place(
    images: CaptureImages,
    splats: Splats,
    options: PlaceOptions | None = None,
    *,
    name: str = "place",
    walls: Sequence[tuple[Array, float]] = (),
    doubt: str = "",
    quiet: bool = True,
) -> CapturedPlace:
    """Return a place of trained splats: pruned, carved, bounded, with a shell to hit and its unknown space solid.

    Args:
        images: The capture from which the splats were trained, in its frame: z up, metres.
        splats: As trained, in the same frame.
        options: How.
        name: Of the scene.
        walls: As `write_place`.
        doubt: As `write_place`.
        quiet: Show no progress.

    Raises:
        AirworthyError: As `write_place`, but for the file system.
    """
    o = options or PlaceOptions()
    if not (images.metric or o.assume_metric):
        raise AirworthyError(
            "The capture is not metric, so that nobody can tell whether a vehicle fits: align it first (`airworthy capture"
            " align`), or say that its unit is the metre (assume_metric)."
        )
    near = float(np.clip(_NEAR * views_reach(images[images.training]), 1e-4, 1e3))
    cut = _pruned(splats, images, near, o, quiet)
    views = depth_views(cut.splats, images, near, antialiased=o.antialiased, quiet=quiet)
    box = grid_box(views, 0.0)
    cell = o.cell or grid_resolution(*box)
    lower, upper = box[0] - _MARGIN_CELLS * cell, box[1] + _MARGIN_CELLS * cell
    carving = carve(views, lower, upper, cell)
    states = known_states(carving, len(views), images.points)
    hull = point_hull(images.points, images.position)
    bounds = walled(hull, walls)
    if bounds is not None:
        states = bounded_states(states, lower, cell, bounds)
    room = free_room(states, lower, cell, o.radius, views.position)
    states = reachable_states(states, room, lower, cell)
    inside = _near_known(cut.splats, states, lower, cell)
    scene = _scene(name, cut.splats, inside, carving, states, room)
    beyond = None if hull is None else ends_beyond(views, hull, max(_BEYOND, 2.0 * cell))
    record = _record(images, splats, cut, inside, views, carving, states, room, scene, o) | _doubts(beyond, doubt)
    return CapturedPlace(scene, views, carving, states, room, cut, record)


def _pruned(splats: Splats, images: CaptureImages, near: float, o: PlaceOptions, quiet: bool) -> Pruned:
    if o.prune:
        return pruned(splats, images, near, antialiased=o.antialiased, background=o.background, quiet=quiet)
    from airworthy.capture.places.pruning import mean_psnr

    now = mean_psnr(splats, images, near, antialiased=o.antialiased, background=o.background)
    return Pruned(splats, np.ones(len(splats), bool), 0, now, now)


def _near_known(splats: Splats, states: ArrayU8, lower: Array, cell: float) -> ArrayBool:
    """Tell which gaussians lie in known space or within `_BEHIND` of it (n,): the others are background."""
    field = distance_field(states != UNKNOWN, cell).values
    share = (splats.position.astype(np.float64) - lower) / cell
    within = np.asarray(((share >= 0.0) & (share < np.array(states.shape))).all(axis=1), bool)
    x, y, z = np.where(within[:, None], share, 0.0).astype(np.int64).T
    return np.asarray(within & (field[x, y, z] <= _BEHIND))


def _scene(name: str, splats: Splats, inside: ArrayBool, carving: Carving, states: ArrayU8, room: FreeRoom) -> Scene:
    """Return the scene: clouds, the shell that is hit, and unknown space, solid."""
    clouds = {key: selected(splats, some) for key, some in ((ROOM, inside), (BACKGROUND, ~inside)) if some.any()}
    cells = around(room, states, carving.lower, carving.resolution)
    near = carving.part(cells)
    x, y, z = (float(value) for value in near.lower)
    carved = CarvedSpace(np.ascontiguousarray(states[cells]), (x, y, z), carving.resolution)
    mesh = occupied_mesh(near, carved.cells)
    scene = Scene(
        name,
        shapes={SURFACE: mesh} if len(mesh.faces) else {},
        # The room itself, which conditions of an evaluation never take out as a thing.
        instances=(Instance(SURFACE, semantic="building", name=SURFACE, visible=False, covered=True),)
        if len(mesh.faces)
        else (),
        lights=(),
        bounds=room.bounds,
        start=room.start,
        goal=room.goal,
        clouds=clouds,
        splats=tuple(SplatPlacement(key, name=key) for key in clouds),
        description="A captured place: free space is known to be free, unknown space is solid",
        source="trained from photographs",
    )
    volumes = {f"{key}_m3": round(value, _VOLUME_DIGITS) for key, value in carved.volumes().items()}
    facts = {"gaussians": float(len(splats)), "background_gaussians": float(np.count_nonzero(~inside)), **volumes}
    return with_unknown(replace(scene, carved=carved, facts=facts), "solid")


def around(room: FreeRoom, states: ArrayU8, lower: Array, cell: float) -> tuple[slice, slice, slice]:
    """Return the cells in and around the bounds, `_MARGIN_CELLS` more on every side: farther ones nobody can reach.

    Args:
        room: With the bounds.
        states: (nx, ny, nz) of UNKNOWN, FREE, OCCUPIED.
        lower: Lower corner of the grid, world [m], (3,).
        cell: Edge of a cell [m].
    """
    first = np.floor((np.array(room.bounds.lower) - lower) / cell + 1e-6).astype(int) - _MARGIN_CELLS
    last = np.ceil((np.array(room.bounds.upper) - lower) / cell - 1e-6).astype(int) + _MARGIN_CELLS
    x, y, z = (slice(max(a, 0), min(b, n)) for a, b, n in zip(first, last, states.shape, strict=True))
    return x, y, z


# ---- What is told -------------------------------------------------------------------------------------------------------


def _record(
    images: CaptureImages,
    splats: Splats,
    cut: Pruned,
    inside: ArrayBool,
    views: DepthViews,
    carving: Carving,
    states: ArrayU8,
    room: FreeRoom,
    scene: Scene,
    o: PlaceOptions,
) -> dict[str, Any]:
    assert scene.carved is not None
    source = images.source
    return {
        "version": 1,
        "metric": images.metric,
        "options": asdict(o),
        "frame": {"up": source.up, "rotation": source.rotation, "translation": source.translation, "scale": source.scale},
        "cameras": len(images),
        "cameras_carving": len(views),
        "cell_m": carving.resolution,
        "space_m3": scene.carved.volumes(),
        "bounds_m": [list(room.bounds.lower), list(room.bounds.upper)],
        "start_m": list(room.start.position),
        "goal_m": list(room.goal.position),
        "way_clearance_m": room.clearance,
        "gaussians": {
            "trained": len(splats),
            "pruned": cut.left_out,
            "seen_by_at_least": cut.least,
            "background": int(np.count_nonzero(~inside)),
        },
        "psnr_db": {"before": cut.psnr_before, "after": cut.psnr_after, "held_out": len(images.held_out_ids)},
        "unknown": "solid",
        "points": _points_record(images, views, carving, states),
    }


def _doubts(beyond: float | None, doubt: str) -> dict[str, Any]:
    """Return how many rays of the cameras end where nothing was triangulated, and a sentence where they are many; and what was
    doubted before."""
    warnings = []
    if beyond is not None and beyond > _TRUSTED:
        warnings.append(
            f"{100.0 * beyond:.0f} % of the rays end beyond everything that was triangulated: there the splats lie behind the"
            " surfaces, as of plain ceilings and walls, or outside of windows. Space beyond is unknown, but splats that are"
            " wrong there may be wrong elsewhere: train longer, and film plain surfaces from more places, their edges in view."
        )
    return {"rays_beyond_points": beyond, "warnings": [*warnings, *filter(None, (doubt,))]}


def _points_record(images: CaptureImages, views: DepthViews, carving: Carving, states: ArrayU8) -> dict[str, Any] | None:
    """Return how depths agree with the capture's sparse points; None where it has none."""
    if images.points is None or not len(images.points):
        return None
    wanted, found = depth_against_points(views, images.points)
    counts = point_counts(carving, images.points)
    inside = max(int(counts.sum()), 1)
    off = np.abs(found - wanted)
    return {
        "compared": len(off),
        "median_m": float(np.median(off)) if len(off) else None,
        "share_within_5_cm": float((off <= 0.05).mean()) if len(off) else None,
        "share_in_free_cells": float(counts[states == FREE].sum() / inside),
        "share_in_occupied_cells": float(counts[states == OCCUPIED].sum() / inside),
    }


def _write_page(path: Path, place: CapturedPlace) -> None:
    lower, cell = place.carving.lower, place.carving.resolution
    ends = np.array([place.room.start.position, place.room.goal.position])
    way = (ends[:, :2] - lower[:2]) / cell
    picture = coverage_picture(place.states, way)
    # Small rooms are few columns: pixels as large as can be seen.
    factor = max(1, 640 // max(picture.shape[:2]))
    enlarged = picture.repeat(factor, axis=0).repeat(factor, axis=1)
    text = page_of(
        "airworthy.capture.places", "place.html.j2", name=place.scene.name, record=place.record, coverage=data_uri(enlarged)
    )
    write_text(path, text)
