"""Comments of a sampled cloud: spacing, open spaces, bounds, start and goal of the scene it was sampled from."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from airworthy.core import frames
from airworthy.core.arrays import Array, ArrayBool, ArrayInt
from airworthy.core.errors import AirworthyError
from airworthy.geometry import bounds
from airworthy.scenes.formats._parts import Writable, as_model, shape_of
from airworthy.scenes.formats.model import CloudNote, Model, Points
from airworthy.scenes.point_clouds import FAR, FILL_MAX, without_inside
from airworthy.scenes.record import Instance, Scene

if TYPE_CHECKING:
    from airworthy.geometry.batch import GeometryBatch

_MARK = "airworthy"
OPEN_MAX = 256
"""Most enclosed free spaces that a cloud names."""
_COUNTS = {"spacing": 1, "bounds": 6, "start": 4, "goal": 3, "open": 3, "enclosed": 1}


def note_lines(note: CloudNote) -> list[str]:
    """Return the comments, each without the mark of a comment."""
    lines = [f"{_MARK} spacing {note.spacing!r}"] if note.spacing > 0.0 else []
    if note.open is not None:
        lines.append(f"{_MARK} enclosed {len(note.open)}")
        lines += [_line("open", position) for position in note.open.tolist()]
    if note.lower is not None and note.upper is not None:
        lines.append(_line("bounds", (*note.lower, *note.upper)))
    if note.start is not None:
        lines.append(_line("start", note.start))
    if note.goal is not None:
        lines.append(_line("goal", note.goal))
    return lines


def _line(key: str, values: Iterable[float]) -> str:
    return " ".join([_MARK, key, *(repr(float(value)) for value in values)])


def parse_note(comments: Iterable[str]) -> CloudNote | None:
    """Return the note among the comments of a file; None where there is none. What does not read as one is passed over."""
    found: dict[str, list[list[float]]] = {}
    for comment in comments:
        tokens = comment.split()
        if len(tokens) >= 2 and tokens[0] == _MARK and len(tokens) == 2 + _COUNTS.get(tokens[1], -1):
            values = _numbers(tokens[2:])
            if values is not None and len(found.setdefault(tokens[1], [])) < OPEN_MAX:
                found[tokens[1]].append(values)
    if not found:
        return None
    first = {key: rows[0] for key, rows in found.items()}
    positions = found.get("open", [])
    whole = "enclosed" in first and first["enclosed"][0] == len(positions)
    bounds = first.get("bounds")
    if bounds is not None and not all(low < high for low, high in zip(bounds[:3], bounds[3:], strict=True)):
        bounds = None
    start, goal = first.get("start"), first.get("goal")
    return CloudNote(
        max(first.get("spacing", [0.0])[0], 0.0),
        np.array(positions, float).reshape(-1, 3) if whole else None,
        None if bounds is None else (bounds[0], bounds[1], bounds[2]),
        None if bounds is None else (bounds[3], bounds[4], bounds[5]),
        None if start is None else (start[0], start[1], start[2], start[3]),
        None if goal is None else (goal[0], goal[1], goal[2]),
    )


def _numbers(tokens: list[str]) -> list[float] | None:
    """Plain finite numbers, as a place or a length may be."""
    # Comments are anybody's: float() of a megabyte takes its time.
    if any(len(token) > 40 for token in tokens):
        return None
    try:
        values = [float(token) for token in tokens]
    except ValueError:
        return None
    return values if all(math.isfinite(value) and abs(value) <= 1e7 for value in values) else None


# ---- Point clouds of places: the middles of the occupied cells of a grid that lie on surfaces -------------------------------

SPACING = 0.1
"""[m], as the maps of the navigation benchmark have it."""
_TILE = 256  # cells a side that are looked at in one go
_CELLS_MAX = 2_000_000_000


def sample_points(thing: Writable, spacing: float = SPACING, *, ground: bool = True, inside: bool = False) -> Points:
    """Return points on a grid, on the surfaces of a mesh, model or scene.

    The cells of the grid begin at the world's origin; each occupied one that has a free neighbour across a face gives its
    middle, in the order x, y, z. Only what collides counts. The points' note says what it takes to read them back as the same
    occupied cells: the spacing, and which enclosed spaces are free; of a scene also its bounds, start and goal.

    Args:
        thing: What to sample; a scene's actors stand where they begin.
        spacing: Edge of a cell [m].
        ground: Whether what is of the class "ground" counts.
        inside: Give also the cells inside solids and closed meshes.

    Raises:
        AirworthyError: If the spacing is not above 0, nothing collides, or there are more than two thousand million cells.
    """
    from airworthy.geometry.batch import GeometryBatch
    from airworthy.geometry.placement import Placement

    if not (spacing > 0 and math.isfinite(spacing)):
        raise AirworthyError(f"Points every {spacing} m were asked for; the spacing must be above 0.")
    model = as_model(thing)
    placed = [instance for instance in model.instances if instance.collide and (ground or instance.semantic != "ground")]
    if not placed:
        raise AirworthyError("There is nothing to sample: no instance collides.")
    names = list(dict.fromkeys(instance.shape for instance in placed))
    placement = Placement.of(
        shape=[names.index(instance.shape) for instance in placed],
        position=[instance.position for instance in placed],
        attitude=[instance.attitude for instance in placed],
        scale=[instance.scale for instance in placed],
    )
    batch = GeometryBatch([model.shapes[name] for name in names], [placement])
    lower, upper = _cells(model, placed, spacing)
    if math.prod(upper - lower) > _CELLS_MAX:
        raise AirworthyError(f"{math.prod(upper - lower):,} cells of {spacing} m were asked for; use a larger spacing.")
    # Which spaces are enclosed only all cells together can say; without room for them the note leaves it out.
    whole = np.zeros(upper - lower, bool) if math.prod(upper - lower) <= FILL_MAX else None
    found = np.concatenate(list(_tiles(batch, lower, upper, spacing, inside, whole)))
    # In one order, whatever the tiles were: equal scenes give equal files.
    found = found[np.lexsort((found[:, 2], found[:, 1], found[:, 0]))]
    rooms = None if inside or whole is None else np.asarray((_enclosed(whole) + lower + 0.5) * spacing, np.float64)
    middles = (found + 0.5) * spacing
    # Far from the origin floats would round the middles of cells into their neighbours.
    far = bool(len(middles)) and float(np.abs(middles).max()) >= FAR
    return Points(middles if far else middles.astype(np.float32), note=_note(thing, spacing, rooms))


def _tiles(
    batch: GeometryBatch,
    lower: ArrayInt,
    upper: ArrayInt,
    spacing: float,
    inside: bool,
    whole: ArrayBool | None,
) -> Iterator[ArrayInt]:
    """Numbers (k, 3) of the cells to give, tile by tile; all occupied ones are marked in `whole`."""
    from airworthy.geometry.occupancy import voxelize

    for corner in itertools.product(*(range(a, b, _TILE) for a, b in zip(lower, upper, strict=True))):
        first = np.array(corner)
        size = np.minimum(upper - first, _TILE)
        # A cell more on every side, since neighbours decide; the upper corner is half a cell short, so that rounding adds none.
        cells = voxelize(batch, 0, (first - 1) * spacing, (first + size + 0.5) * spacing, spacing)
        middle = (slice(1, -1),) * 3
        if whole is not None:
            whole[tuple(slice(a, a + n) for a, n in zip(first - lower, size, strict=True))] = cells[middle]
        yield np.argwhere((cells if inside else without_inside(cells))[middle]) + first


def _enclosed(occupied: ArrayBool) -> ArrayInt:
    """(k, 3) one cell of each free space that is enclosed on all sides, the largest spaces first, `OPEN_MAX` at most."""
    from scipy.ndimage import label

    space, count = label(np.pad(~occupied, 1, constant_values=True))
    if count < 2:
        return np.zeros((0, 3), np.int64)
    size = np.bincount(space.ravel())
    first = np.unique(space, return_index=True)[1]
    # The padding joins all that is outside, and its corner is of it.
    numbers = np.setdiff1d(np.arange(1, count + 1), space[0, 0, 0])
    chosen = numbers[np.argsort(-size[numbers], kind="stable")][:OPEN_MAX]
    return np.stack(np.unravel_index(first[np.searchsorted(np.unique(space), chosen)], space.shape), 1) - 1


def _note(thing: Writable, spacing: float, rooms: Array | None) -> CloudNote:
    """Return what a reader needs to know of the cells."""
    note = CloudNote(spacing, rooms)
    if not isinstance(thing, Scene):
        return note
    start, goal = thing.start, thing.goal
    return replace(
        note,
        lower=thing.bounds.lower,
        upper=thing.bounds.upper,
        start=None if start is None else (*start.position, start.yaw),
        goal=None if goal is None else goal.position,
    )


def _cells(model: Model, placed: list[Instance], spacing: float) -> tuple[ArrayInt, ArrayInt]:
    """Numbers of the first cells and of those after the last, with one to spare on each side."""
    lower, upper = np.full(3, np.inf), np.full(3, -np.inf)
    for instance in placed:
        low, high = bounds(shape_of(model, instance))
        corners = np.array(list(itertools.product(*zip(low, high, strict=True)))) * instance.scale
        world = frames.rotate(np.array(instance.attitude, float), corners) + np.array(instance.position)
        lower, upper = np.minimum(lower, world.min(0)), np.maximum(upper, world.max(0))
    return np.floor(lower / spacing).astype(np.int64) - 1, np.ceil(upper / spacing).astype(np.int64) + 1
