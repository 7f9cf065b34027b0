"""What things in a hall are put together of: beams between points, boxes with chamfered edges, and the order of surfaces."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from airworthy.core.arrays import Array, ArrayFloat
from airworthy.geometry import Mesh
from airworthy.scenes.buildings.patches import WHITE, PatchMesh

__all__ = ["HALL_SURFACES", "Color3", "bar", "chamfered", "facing_quad", "included", "label", "lying"]

HALL_SURFACES = (
    "coated",
    "painted",
    "matt",
    "galvanised",
    "lacquer",
    "cardboard",
    "pallet_wood",
    "film",
    "labels",
    "lamp tube",
    "hazard",
    "window glass",
    "tread",
    "floor_slab",
    "brick",
    "concrete",
    "clear glass",
    "skylight",
    "asphalt",
    "paint",
    "floor_braked",
    "floor_turned",
    "floor_stained",
    "coated_washed",
    "coated_rusty",
)
"""Materials of things in a hall, in the order of their faces' numbers."""
COATED, PAINT, MATT, METAL, LACQUER, CARD, WOOD, FILM, LABELS, GLOW, HAZARD, GLASS, TREAD = range(13)
FLOOR, BRICK, CONCRETE, PANE, SKYLIGHT, ASPHALT, LINE, BRAKED, TURNED, STAINED, WASHED, RUSTY = range(13, len(HALL_SURFACES))

Color3 = tuple[float, float, float]
LABEL_ROWS = 16
"""Bands of the atlas of labels."""


def bar(
    patches: PatchMesh,
    start: ArrayFloat | Sequence[float],
    end: ArrayFloat | Sequence[float],
    wide: float,
    high: float,
    slot: int,
    color: Sequence[float] = WHITE,
    capped: bool = False,
) -> None:
    """Add a straight beam of rectangular section between two points.

    Args:
        patches: Gets it.
        start: (3,) [m].
        end: (3,) [m].
        wide: Of the section, level [m].
        high: Of the section, the other way [m].
        slot: Number of the material.
        color: Linear RGB.
        capped: Close both ends.
    """
    a, b = np.asarray(start, float), np.asarray(end, float)
    along = (b - a) / np.linalg.norm(b - a)
    side = np.cross(along, (0.0, 0.0, 1.0)) if abs(along[2]) < 0.999 else np.array([1.0, 0.0, 0.0])
    side /= np.linalg.norm(side)
    up = np.cross(side, along)
    s, u = 0.5 * wide * side, 0.5 * high * up
    ring = [-s - u, s - u, s + u, -s + u]
    for k in range(4):
        p, q = ring[k], ring[(k + 1) % 4]
        patches.quad([a + p, a + q, b + q, b + p], slot, color)
    if capped:
        patches.quad([a + ring[k] for k in (3, 2, 1, 0)], slot, color)
        patches.quad([b + ring[k] for k in (0, 1, 2, 3)], slot, color)


def chamfered(
    patches: PatchMesh,
    low: Sequence[float],
    high: Sequence[float],
    edge: float,
    slot: int,
    color: Sequence[float] = WHITE,
) -> None:
    """Add a box whose edges are cut off, so that they catch the light.

    Args:
        patches: Gets it.
        low: Lower corner (3,) [m].
        high: Upper corner (3,) [m].
        edge: What is cut off [m].
        slot: Number of the material.
        color: Linear RGB.
    """
    a, b = np.asarray(low, float), np.asarray(high, float)
    e = min(edge, 0.3 * float((b - a).min()))
    middle, half = 0.5 * (a + b), 0.5 * (b - a)
    for axis in range(3):
        u, v = (axis + 1) % 3, (axis + 2) % 3
        for sign in (-1.0, 1.0):
            face = []
            for p, q in ((-1, -1), (1, -1), (1, 1), (-1, 1)):
                corner = middle.copy()
                corner[axis] += sign * half[axis]
                corner[u] += p * (half[u] - e)
                corner[v] += q * (half[v] - e)
                face.append(corner)
            patches.quad(face if sign > 0.0 else face[::-1], slot, color)
    for axis in range(3):  # edges along it
        u, v = (axis + 1) % 3, (axis + 2) % 3
        for p, q in ((-1, -1), (1, -1), (1, 1), (-1, 1)):
            rim = []
            for end, (cut_u, cut_v) in ((-1, (0.0, e)), (1, (0.0, e)), (1, (e, 0.0)), (-1, (e, 0.0))):
                corner = middle.copy()
                corner[axis] += end * (half[axis] - e)
                corner[u] += p * (half[u] - cut_u)
                corner[v] += q * (half[v] - cut_v)
                rim.append(corner)
            normal = np.cross(rim[2] - rim[0], rim[3] - rim[1])
            outward = np.zeros(3)
            outward[u], outward[v] = p, q
            patches.quad(rim if normal @ outward > 0.0 else rim[::-1], slot, color)


def included(patches: PatchMesh, mesh: Mesh, position: Sequence[float], turn: float = 0.0) -> None:
    """Add a mesh of `PatchMesh` that stands somewhere, turned about z: rays find one large mesh faster than many that overlap.

    Args:
        patches: Gets it.
        mesh: With normals, coordinates, colours and numbers of materials.
        position: (3,) [m].
        turn: [rad]
    """
    normals, uv, colors, slots = mesh.normals, mesh.uv, mesh.colors, mesh.face_material
    assert normals is not None
    assert colors is not None
    assert slots is not None
    c, s = np.cos(turn), np.sin(turn)
    spin = np.array([[c, s, 0.0], [-s, c, 0.0], [0.0, 0.0, 1.0]])
    points = np.asarray(mesh.vertices, float) @ spin + np.asarray(position, float)
    turned = np.asarray(normals, float) @ spin
    for slot in np.unique(slots):
        faces = mesh.faces[slots == slot]
        used, index = np.unique(faces, return_inverse=True)
        part = None if uv is None else uv[used]
        patches.add(points[used], index.reshape(faces.shape), turned[used], int(slot), colors[used, :3], part)


def facing_quad(center: Sequence[float], ahead: Sequence[float], wide: float, high: float) -> Array:
    """Return the corners (4, 3) of an upright rectangle that faces along a level unit vector, from the lower left."""
    c, n = np.asarray(center, float), np.asarray(ahead, float)
    right = np.cross((0.0, 0.0, 1.0), n)
    s, u = 0.5 * wide * right, np.array([0.0, 0.0, 0.5 * high])
    return np.array([c - s - u, c + s - u, c + s + u, c - s + u])


def lying(x: float, y: float, z: float, long: float, wide: float, turn: float = 0.0) -> Array:
    """Return the corners (4, 3) of a rectangle that lies, its upper end along the direction `turn` [rad] from y."""
    c, s = np.cos(turn), np.sin(turn)
    local = np.array(
        [[-0.5 * wide, -0.5 * long], [0.5 * wide, -0.5 * long], [0.5 * wide, 0.5 * long], [-0.5 * wide, 0.5 * long]]
    )
    return np.concatenate([local @ np.array([[c, s], [-s, c]]) + [x, y], np.full((4, 1), z)], axis=1)


def label(
    patches: PatchMesh, corners: ArrayFloat, row: int, color: Sequence[float] = WHITE, span: tuple[float, float] = (0.0, 1.0)
) -> None:
    """Add a quad with a band of the atlas of labels.

    Args:
        patches: Gets it.
        corners: (4, 3), from the lower left.
        row: Number of the band.
        color: Factor.
        span: Shares of the band's width that are shown.
    """
    top, low = (row + 0.05) / LABEL_ROWS, (row + 0.95) / LABEL_ROWS
    a, b = span
    patches.quad(corners, LABELS, color, np.array([[a, low], [b, low], [b, top], [a, top]]))
