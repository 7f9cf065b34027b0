"""Point clouds as maps: their spacing, the cells they occupy, and a watertight mesh of these in the cloud's own frame."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from airworthy.core.arrays import Array, ArrayBool, ArrayF32, ArrayInt, ArrayLike, ArrayU8, NDArray
from airworthy.core.errors import AirworthyError, AssetError
from airworthy.geometry import Mesh

if TYPE_CHECKING:
    from airworthy.scenes.formats.model import CloudNote

__all__ = ["CloudCells", "Lattice", "cloud_cells", "cloud_mesh", "find_lattice", "find_spacing", "without_inside"]

VOXELS_MAX = 2_000_000
FILL_MAX = 1 << 25
"""Most cells of a cloud's box in which enclosed spaces are looked for: one byte and one number each."""

FAR = 8192.0
"""From here on a float32 steps by a millimetre or nearly so [m]: points are written as doubles."""
_PER_CELL = 100.0
"""Steps of a float32 that an edge of a cell must have where it stands."""
_LEVELS_MAX = 100_000
_FINEST = 0.02
"""Cells of a cloud without a lattice are no smaller [m]."""
_SAMPLES = 20_000
_NEIGHBOURS = 8
_TREE_MAX = 2_000_000


@dataclass(frozen=True)
class Lattice:
    """A regular grid on whose nodes all points of a cloud lie."""

    spacing: float
    """Between neighbouring nodes, along every axis."""
    origin: tuple[float, float, float]
    """One of the nodes."""


@dataclass(frozen=True, eq=False)
class CloudCells:
    """Occupied cells of a cloud."""

    cells: ArrayInt
    """(n, 3) numbers of the cells, each once, 0 or more."""
    lower: Array
    """(3,) lower corner of cell 0, 0, 0 in the cloud's frame."""
    side: float
    """Edge of a cell."""
    owner: ArrayInt
    """(points,) cell of every point."""
    lattice: bool
    """Whether each point is the middle of its cell, as in the export of a grid."""


# ---- spacing ------------------------------------------------------------------------------------------------------------


def find_lattice(positions: ArrayLike) -> Lattice | None:
    """Return the grid on whose nodes the points of a cloud lie, as those of an exported occupancy map do; None where there is
    none.

    Coordinates that are merely rounded (to millimetres, say) are no lattice: most points must have a next neighbour.

    Args:
        positions: (n, 3), finite.
    """
    points = np.asarray(positions, np.float64)
    if len(points) < 8:
        return None
    largest, eps = float(np.abs(points).max()), float(np.finfo(np.float32).eps)
    # Numbers that were computed as float32 are rounded by what they reach. In the frame of the points themselves that is
    # little, wherever the map lies; in that of the file it grows with the distance, and far away would hide the lattice.
    within = max(4.0 * eps * max(float(np.ptp(points, axis=0).max()), 1e-3), 16.0 * float(np.spacing(largest)))
    whole = 4.0 * eps * max(largest, 1e-3)
    single = np.asarray(positions).dtype == np.float32
    found = _lattice_of(points, min(within, whole), 2.0 * float32_step(largest) if single else 0.0)
    if found is None and whole > within and (single or (points == points.astype(np.float32)).all() or largest < FAR):
        found = _lattice_of(points, whole, 0.0)
    return found


def float32_step(reach: float) -> float:
    """Return the distance between neighbouring float32 numbers at a coordinate."""
    return float(np.spacing(np.float32(reach)))


def _lattice_of(points: Array, blur: float, least: float) -> Lattice | None:
    """Return the grid of points that are rounded by `blur`, where its spacing is `least` or more."""
    levels = [_levels(points[:, axis], blur) for axis in range(3)]
    gaps = [np.diff(level) for level in levels if level is not None and len(level) > 2]
    if any(level is None for level in levels) or len(gaps) < 2:
        return None
    rough = float(min(gap.min() for gap in gaps))
    if rough < max(16.0 * blur, least):
        return None
    fits = [_fitted(level, rough, blur) for level in levels if level is not None]
    if any(fit is None for fit in fits):
        return None
    sound = [fit for fit, level in zip(fits, levels, strict=True) if fit is not None and level is not None and len(level) > 2]
    # The axis with the most levels knows the spacing best; the others must agree with it.
    spacing = max(sound, key=lambda fit: fit[2])[0]
    reach = max(fit[2] for fit in sound)
    if any(abs(fit[0] - spacing) * fit[2] > 0.05 * spacing + 4.0 * blur for fit in sound) or reach < 2:
        return None
    origin = tuple(_phase(level, spacing) for level in levels if level is not None)
    nodes = np.rint((points - np.array(origin)) / spacing).astype(np.int64)
    if (np.abs(points - np.array(origin) - spacing * nodes) > 0.05 * spacing + 4.0 * blur).any() or not _touching(nodes):
        return None
    return Lattice(spacing, (origin[0], origin[1], origin[2]))


def _levels(values: Array, blur: float) -> Array | None:
    """Different values along an axis, rounding aside; None where there are about as many as points."""
    ordered = np.unique(values)
    first = np.concatenate([[True], np.diff(ordered) > blur])
    count = int(first.sum())
    if count > min(_LEVELS_MAX, max(len(values) // 2, 8)):
        return None
    group = np.cumsum(first) - 1
    return np.asarray(np.bincount(group, ordered) / np.bincount(group), np.float64)


def _fitted(levels: Array, rough: float, blur: float) -> tuple[float, float, int] | None:
    """Spacing and origin by least squares, and steps from the first to the last level; None where levels lie between nodes."""
    steps = np.diff(levels) / rough
    number = np.concatenate([[0.0], np.cumsum(np.rint(steps))])
    if len(levels) < 2:
        return rough, float(levels[0]), 0
    spacing, origin = np.polyfit(number, levels, 1) if len(levels) > 2 else (rough, levels[0])
    off = np.abs(levels - origin - spacing * number)
    if (np.rint(steps) < 1).any() or float(off.max()) > 0.02 * spacing + 2.0 * blur:
        return None
    return float(spacing), float(origin), int(number[-1])


def _phase(levels: Array, spacing: float) -> float:
    """Return the node nearest to the first level that fits all of them best."""
    turns = (levels - levels[0]) / spacing
    return float(levels[0] + spacing * np.mean(turns - np.rint(turns)))


def _touching(nodes: ArrayInt) -> bool:
    """Tell whether at least half of the nodes have a neighbour at one step along an axis."""
    low = nodes.min(0)
    span = nodes.max(0) - low + 3
    if float(np.prod(span.astype(float))) > 2.0**62:
        return False
    packed = np.unique(_packed(nodes - low + 1, span))
    near = np.zeros(len(packed), bool)
    for step in (span[1] * span[2], span[2], 1):
        near |= np.isin(packed + step, packed) | np.isin(packed - step, packed)
    return bool(near.mean() >= 0.5)


def find_spacing(positions: ArrayLike) -> float:
    """Return the edge of cells that suits a cloud without a lattice, such as a scan: of a surface with one point per cell.

    On a surface of n points per area the eighth neighbour lies at sqrt(8 / (pi n)) in the middle, from which n follows.

    Args:
        positions: (n, 3), finite, at least one.
    """
    from scipy.spatial import cKDTree

    points = np.unique(np.asarray(positions, np.float64), axis=0) if len(np.asarray(positions)) <= _TREE_MAX else None
    rng = np.random.default_rng(0)
    share = 1.0
    if points is None:
        whole = np.asarray(positions)
        points = whole[rng.choice(len(whole), _TREE_MAX, replace=False)].astype(np.float64)
        share = _TREE_MAX / len(whole)
    if len(points) < 2:
        return 0.0
    asked = points if len(points) <= _SAMPLES else points[rng.choice(len(points), _SAMPLES, replace=False)]
    count = min(_NEIGHBOURS, len(points) - 1)
    far = cKDTree(points).query(asked, k=[count + 1])[0][:, 0]
    return float(np.median(far)) * float(np.sqrt(np.pi / count * share))


# ---- cells --------------------------------------------------------------------------------------------------------------


def cloud_cells(positions: ArrayLike, voxel: float = 0.0, note: CloudNote | None = None, finest: float = _FINEST) -> CloudCells:
    """Return occupied cells of a cloud, in its frame.

    Points on a lattice are the middles of cells of its spacing, and these are all. Of other clouds the grid goes through the
    origin. Where its edge is given, the cells are those that hold points; where it is found, those that a cube of that edge
    around a point touches, and small holes are closed (a gap narrower than two cells, too): so nothing gets through a surface
    that was scanned as densely as most of it, and cells reach 2.2 of their edges from it at the most.

    Args:
        positions: (n, 3).
        voxel: Edge of a cell; 0: as found in the cloud.
        note: What the file says of itself: with it, the inside of what was solid is filled again.
        finest: Least edge where nothing is said.

    Raises:
        AirworthyError: There is no point, one is not finite, the edge is out of range, or too many cells would be filled.
    """
    points = np.asarray(positions)
    if points.ndim != 2 or points.shape[1:] != (3,) or not len(points) or not np.isfinite(points).all():
        raise AirworthyError(
            f"A cloud of shape {points.shape} cannot become cells; expected (n, 3) finite points, one at least."
        )
    if not (np.isfinite(voxel) and voxel >= 0.0):
        raise AirworthyError(f"The edge of a cloud's cells is {voxel}; expected a length above 0, or 0 to find it.")
    lattice = find_lattice(points)
    if lattice is not None and (voxel == 0.0 or abs(voxel - lattice.spacing) < 0.01 * lattice.spacing):
        found = _on_lattice(points, lattice)
        return found if note is None else _filled(found, note)
    if voxel > 0.0:
        return _on_grid(points, voxel)
    side = max(find_spacing(points), finest)
    for _ in range(8):  # a scan finer than memory allows is taken coarser, as it was not said how fine it is wanted
        try:
            return _closed(_on_grid(points, side, 0.5 * side))
        except AirworthyError:
            side *= 2.0
    raise AirworthyError(f"A cloud of {len(points):,} points fills too many cells; give the edge of a cell.")


def _on_lattice(points: NDArray, lattice: Lattice) -> CloudCells:
    origin = np.array(lattice.origin)
    nodes = np.rint((points.astype(np.float64) - origin) / lattice.spacing).astype(np.int64)
    low = nodes.min(0)
    cells, owner = _unique(nodes - low, lattice.spacing)
    return CloudCells(cells, origin + lattice.spacing * (low - 0.5), lattice.spacing, owner, True)


def _on_grid(points: NDArray, side: float, reach: float = 0.0) -> CloudCells:
    """Cells of a grid through the origin that cubes around the points touch, `reach` being half their edge."""
    # Points on a face between two cells belong to the upper one, however they were rounded.
    scaled = points.astype(np.float64) / side + 1e-4
    if float(np.abs(scaled).max()) > 2.0**52:
        raise AirworthyError(f"A cloud reaches {np.abs(points).max():g} and its cells {side:g}; use larger cells.")
    low = np.floor(scaled.min(0) - reach / side).astype(np.int64)
    span = np.floor(scaled.max(0) + reach / side).astype(np.int64) - low + 1
    own = _packed_in(np.floor(scaled).astype(np.int64) - low, span, side)
    packed = np.unique(own)
    for corner in itertools.product((-1.0, 1.0), repeat=3) if reach else ():
        moved = np.floor(scaled + np.array(corner) * (reach / side)).astype(np.int64) - low
        packed = np.union1d(packed, _packed_in(moved, span, side))
    _at_most(len(packed), side)
    return CloudCells(_unpacked(packed, span), side * low.astype(np.float64), side, np.searchsorted(packed, own), False)


def _unique(nodes: ArrayInt, side: float) -> tuple[ArrayInt, ArrayInt]:
    """Different rows in rising order, and of which of them every row is."""
    span = nodes.max(0) + 1
    packed, owner = np.unique(_packed_in(nodes, span, side), return_inverse=True)
    _at_most(len(packed), side)
    return _unpacked(packed, span), owner.reshape(-1)


def _packed_in(nodes: ArrayInt, span: ArrayInt, side: float) -> ArrayInt:
    if float(np.prod(span.astype(float))) > 2.0**62:
        raise AirworthyError(f"A cloud is {span.max():,} cells of {side:g} long; use larger ones.")
    return _packed(nodes, span)


def _at_most(count: int, side: float) -> None:
    if count > VOXELS_MAX:
        raise AirworthyError(
            f"A cloud fills {count:,} cells of {side:g}; at most {VOXELS_MAX:,} are accepted: use larger ones (--voxel)."
        )


def _packed(nodes: ArrayInt, span: ArrayInt) -> ArrayInt:
    return np.asarray((nodes[:, 0] * span[1] + nodes[:, 1]) * span[2] + nodes[:, 2])


def _unpacked(packed: ArrayInt, span: ArrayInt) -> ArrayInt:
    return np.stack([packed // (span[1] * span[2]), packed // span[2] % span[1], packed % span[2]], 1)


def _grid(cells: ArrayInt) -> ArrayBool | None:
    """Return the cells as a dense grid with an empty layer around it; None where that would be too large."""
    size = cells.max(0) + 3
    if float(np.prod(size.astype(float))) > FILL_MAX:
        return None
    grid = np.zeros(size, bool)
    grid[tuple((cells + 1).T)] = True
    return grid


def _closed(found: CloudCells) -> CloudCells:
    """Return the cells with small holes closed: what a cube of three cells a side that touches no point cannot enter."""
    from scipy.ndimage import maximum_filter1d, minimum_filter1d

    grid = _grid(found.cells)
    if grid is None:
        return found
    grid = np.pad(grid, 1).view(np.uint8)
    for step in (maximum_filter1d, minimum_filter1d):
        for axis in range(3):
            grid = step(grid, 3, axis, mode="constant")
    return _with_more(found, np.argwhere(grid) - 2)


def _filled(found: CloudCells, note: CloudNote) -> CloudCells:
    """Return the cells with enclosed spaces filled that the file does not call open."""
    from scipy.ndimage import label

    grid = _grid(found.cells) if note.open is not None else None
    if grid is None or note.open is None:
        return found
    space, count = label(~grid)
    keep = np.zeros(count + 1, bool)
    keep[[0, space[0, 0, 0]]] = True
    seeds = np.floor((np.asarray(note.open, float).reshape(-1, 3) - found.lower) / found.side).astype(np.int64) + 1
    seeds = seeds[((seeds >= 0) & (seeds < grid.shape)).all(1)]
    keep[space[tuple(seeds.T)]] = True
    return _with_more(found, np.argwhere(grid | ~keep[space]) - 1)


def _with_more(found: CloudCells, cells: ArrayInt) -> CloudCells:
    """Return the same grid with further cells, of which FILL_MAX is the limit, since they hardly add faces; points keep
    theirs.
    """
    low = np.minimum(cells.min(0), 0)
    span = np.maximum(cells.max(0), found.cells.max(0)) - low + 1
    packed = np.sort(_packed(cells - low, span))
    own = np.searchsorted(packed, _packed(found.cells - low, span))
    return CloudCells(_unpacked(packed, span), found.lower + found.side * low, found.side, own[found.owner], found.lattice)


def without_inside(grid: ArrayBool) -> ArrayBool:
    """Return occupied cells of a grid (nx, ny, nz) with a free neighbour across one of their faces; beyond the grid all is
    free."""
    inside = grid.copy()
    for axis in range(3):
        for step in (1, -1):
            moved = np.roll(grid, step, axis)
            edge = [slice(None)] * 3
            edge[axis] = slice(0, 1) if step == 1 else slice(-1, None)
            moved[tuple(edge)] = False
            inside &= moved
    return np.asarray(grid & ~inside)


# ---- mesh ---------------------------------------------------------------------------------------------------------------


def cloud_mesh(positions: ArrayLike, size: float = 0.0, colors: ArrayU8 | None = None) -> Mesh:
    """Return the outer faces of the cells of a cloud, closed and counter-clockwise seen from outside, in the cloud's frame.

    Args:
        positions: (n, 3) [m].
        size: Edge of a cell [m]; 0: as `cloud_cells` finds.
        colors: (n, 3) sRGB; a cell has the mean of its points.

    Raises:
        AirworthyError: As `cloud_cells`.
    """
    found = cloud_cells(positions, size)
    mesh = cells_mesh(found, colors)
    need_near(found.lower, found.lower + mesh.vertices.max(0), found.side, "A cloud", "subtract an offset first, in float64")
    return Mesh((found.lower + mesh.vertices).astype(np.float32), mesh.faces, colors=mesh.colors)


def need_near(lower: ArrayLike, upper: ArrayLike, side: float, what: str, remedy: str) -> None:
    """Refuse cells so far from the origin that the engine's float32 would move their faces; raises AssetError.

    Args:
        lower: (3,) corner of the box around the cells [m].
        upper: (3,) its other corner [m].
        side: Edge of a cell [m].
        what: What has them, to begin the sentence with.
        remedy: What to do, to end it.
    """
    reach = float(np.abs(np.stack([np.asarray(lower, float), np.asarray(upper, float)])).max())
    step = float32_step(reach)
    if step * _PER_CELL > side * (1.0 + 1e-9):
        raise AssetError(
            f"{what} with cells of {side:.4g} m reaches {reach:,.0f} m from the origin, where the float32 numbers that it is"
            f" simulated with are {step:.2g} m apart and at most a {_PER_CELL:.0f}th of a cell is accepted: {remedy}."
        )


def cells_mesh(found: CloudCells, colors: ArrayU8 | None = None) -> Mesh:
    """Return the outer faces of cells, relative to their lower corner; (points, 3) sRGB colours become the means of the
    cells.
    """
    shade = None if colors is None else _mean_colors(colors, found.owner, len(found.cells))
    vertices, quads, cell = _outer_faces(found.cells)
    if shade is None:  # shared corners: a quarter of the memory, and of the time to find that the mesh is closed
        span = vertices.max(0) + 1
        used, number = np.unique(_packed(vertices, span), return_inverse=True)
        vertices, quads = _unpacked(used, span), number.reshape(-1, 4)
    faces = np.concatenate((quads[:, [0, 1, 2]], quads[:, [0, 2, 3]]))
    return Mesh(
        (vertices * found.side).astype(np.float32),
        faces.astype(np.int32),
        colors=None if shade is None else shade[np.repeat(cell, 4)],
    )


_SIDES = (
    ((1, 0, 0), ((1, 0, 0), (1, 1, 0), (1, 1, 1), (1, 0, 1))),
    ((-1, 0, 0), ((0, 0, 0), (0, 0, 1), (0, 1, 1), (0, 1, 0))),
    ((0, 1, 0), ((0, 1, 0), (0, 1, 1), (1, 1, 1), (1, 1, 0))),
    ((0, -1, 0), ((0, 0, 0), (1, 0, 0), (1, 0, 1), (0, 0, 1))),
    ((0, 0, 1), ((0, 0, 1), (1, 0, 1), (1, 1, 1), (0, 1, 1))),
    ((0, 0, -1), ((0, 0, 0), (0, 1, 0), (1, 1, 0), (1, 0, 0))),
)
"""Of a unit cube: towards which neighbour a side looks, and its corners counter-clockwise from outside."""


def _outer_faces(cells: ArrayInt) -> tuple[ArrayInt, ArrayInt, ArrayInt]:
    """Corners (4 q, 3), corner numbers (q, 4) and cells (q,) of the sides between a filled and an empty cell."""
    span = cells.max(0) + 3  # one empty layer around, so that neighbours never wrap into the next row
    packed = _packed(cells + 1, span)
    corners, owners = [], []
    for direction, square in _SIDES:
        step = (direction[0] * span[1] + direction[1]) * span[2] + direction[2]
        open_side = np.flatnonzero(~np.isin(packed + step, packed))
        corners.append(cells[open_side, None, :] + np.array(square))
        owners.append(open_side)
    vertices = np.concatenate(corners).reshape(-1, 3)
    return vertices, np.arange(len(vertices)).reshape(-1, 4), np.concatenate(owners)


def _mean_colors(colors: ArrayU8, owner: ArrayInt, count: int) -> ArrayF32:
    """(cells, 4) linear mean colours; cells without a point have that of the whole cloud."""
    encoded = colors.astype(float) / 255.0
    linear = np.where(encoded <= 0.04045, encoded / 12.92, ((encoded + 0.055) / 1.055) ** 2.4)
    total = np.stack([np.bincount(owner, linear[:, k], count) for k in range(3)], axis=1)
    points = np.bincount(owner, minlength=count)
    mean = np.where(points[:, None] > 0, total / np.maximum(points, 1)[:, None], linear.mean(0))
    return np.concatenate((mean, np.ones((count, 1))), axis=1).astype(np.float32)
