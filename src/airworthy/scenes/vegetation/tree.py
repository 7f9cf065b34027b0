"""Trees as meshes: bark around the stems, a kite for each leaf or tuft of needles, shades of light and age in their colours.

Leaves are triangles, not cut-outs of cards: they cast their own shadow for every ray, and no ray has to be traced a second time
through a hole. Their vertex normals are bent outwards, as those of the crown's surface, so that a crown is shaded as one thing
(a usual device of games and films; ours is the share).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from airworthy.core.arrays import Array, ArrayF32, ArrayInt
from airworthy.core.errors import AirworthyError
from airworthy.geometry import Mesh
from airworthy.scenes.appearance import OPEN_CHANNEL
from airworthy.scenes.generators.seeding import generator
from airworthy.scenes.vegetation.cache import kept_mesh
from airworthy.scenes.vegetation.growth import Stems, grown
from airworthy.scenes.vegetation.kinds import Season, TreeKind, tree_kind
from airworthy.scenes.vegetation.leaf import both_sides

__all__ = ["BARK", "LEAVES", "TreeForm", "crown_mesh", "tree_mesh", "trunk_mesh"]

BARK, LEAVES = 0, 1
"""Numbers of the materials of a tree's faces."""
_SIDES = {2: (24, 7, 4, 3), 1: (24, 5, 3, 3), 0: (24, 3, 3, 3)}
"""Of the tubes around stems by detail and level."""
_STEPS = {2: (1, 1, 1, 1), 1: (1, 2, 2, 2), 0: (1, 3, 3, 3)}
"""Of every how many points of a stem one bears a ring, alike."""
_BARK_TILE = 0.9
"""Of the bark's maps [m]."""
_BENT = 0.75
"""Share of the crown's own normal in those of leaves."""
_FLARE, _FLARE_HEIGHT = 0.028, 0.22
"""How far roots stand out at the ground, and over which height they end [m]."""


@dataclass(frozen=True)
class TreeForm:
    """Which tree of a kind.

    Raises:
        AirworthyError: A number is out of range.
    """

    kind: str
    seed: int = 0
    season: Season = "summer"
    age: float = 1.0
    """Height over that of a grown tree, 0.1 to 1.2; young trees have fewer branches and leaves."""
    bare: float | None = None
    """Share of the height without branches; None: as a tree in the open."""
    detail: int = 2
    """2: for a look from near; 1: fewer leaves, larger by three quarters, no twigs; 0: a tenth, for what is far."""

    def __post_init__(self) -> None:
        if not (0.1 <= self.age <= 1.2 and self.detail in (0, 1, 2) and (self.bare is None or 0.0 <= self.bare < 0.95)):
            raise AirworthyError(
                f"A tree of age {self.age}, detail {self.detail} and bare to {self.bare} was asked for; expected an age of"
                " 0.1 to 1.2, a detail of 0, 1 or 2 and a bare share below 0.95."
            )


_DETAILS = {2: (3, 1.0, 1.0), 1: (2, 0.30, 1.75), 0: (1, 0.10, 2.9)}
"""By detail: levels of branches that are drawn, share of the leaves, and how much larger these are."""


@lru_cache(maxsize=512)
def tree_mesh(form: TreeForm) -> Mesh:
    """Return the mesh of a tree, its foot at the origin, z up [m]; faces have the material BARK or LEAVES.

    A function of the form alone; the last 512 are kept.

    Raises:
        UnknownNameError: There is no such kind.
    """
    return _joined(_parts(form))


@lru_cache(maxsize=512)
def trunk_mesh(form: TreeForm) -> Mesh:
    """Return the trunk of a tree alone: its bounds are narrow, so that rays under the crown do not ask the tree."""
    return kept_mesh(f"trunk {form}", lambda: _joined(_parts(form)[:1]))


@lru_cache(maxsize=512)
def crown_mesh(form: TreeForm) -> Mesh:
    """Return everything of a tree but its trunk."""
    return kept_mesh(f"crown {form}", lambda: _joined(_parts(form)[1:]))


def _parts(form: TreeForm) -> list[_Part]:
    """Return the trunk, branches by level, and leaves."""
    kind = tree_kind(form.kind)
    stems = grown(kind, generator("tree", form.kind, form.seed), form.bare)
    stems = [Stems(s.points * form.age, s.radius * form.age, s.length * form.age) for s in stems]
    levels, share, larger = _DETAILS[form.detail]
    sides, steps = _SIDES[form.detail], _STEPS[form.detail]
    parts = [_tubes(_thinned(s, steps[k]), sides[k], k == 0) for k, s in enumerate(stems[: levels + 1])]
    color = kind.leaf_color(form.season)
    if color is not None:
        rng = generator("leaves", form.kind, form.seed, form.season, form.detail)
        parts.append(_leaves(kind, stems[-1], color, share * min(form.age, 1.0) ** 1.2, larger, form.season, rng))
    return parts


@dataclass(frozen=True, eq=False)
class _Part:
    vertices: Array
    faces: ArrayInt
    normals: Array
    uv: Array
    colors: Array
    """(V, 3) multiplied into the material's."""
    material: int
    open: Array | None = None
    """(V,) share of the light from all sides that reaches them; None: all of it."""


def _joined(parts: list[_Part]) -> Mesh:
    first = np.cumsum([0, *(len(part.vertices) for part in parts)])
    colors = np.concatenate([part.colors for part in parts])
    return Mesh(
        np.concatenate([part.vertices for part in parts]),
        np.concatenate([part.faces + start for part, start in zip(parts, first[:-1], strict=True)]),
        np.concatenate([part.normals for part in parts]),
        np.concatenate([part.uv for part in parts]),
        np.concatenate([np.clip(colors, 0.0, 1.0), np.ones((len(colors), 1))], axis=1),
        np.concatenate([np.full(len(part.faces), part.material) for part in parts]),
        _channels(parts),
    )


def _channels(parts: list[_Part]) -> dict[str, ArrayF32]:
    """Return what vertices of a crown know of its shade, which places without baked light are shaded by."""
    if all(part.open is None for part in parts):
        return {}
    shares = [np.ones(len(part.vertices)) if part.open is None else part.open for part in parts]
    return {OPEN_CHANNEL: np.concatenate(shares).astype(np.float32)}


# ---- Bark -------------------------------------------------------------------------------------------------------------------


def _thinned(stems: Stems, step: int) -> Stems:
    """Return the same stems with every so many of their points, the last one always."""
    count = stems.points.shape[1]
    kept = np.unique(np.append(np.arange(0, count, step), count - 1))
    return stems if step == 1 else Stems(stems.points[:, kept], stems.radius[:, kept], stems.length)


def _tubes(stems: Stems, sides: int, trunk: bool) -> _Part:
    """Return closed rings of points around each stem, joined; the trunk with its roots."""
    count, places = stems.radius.shape
    along = np.gradient(stems.points, axis=1)
    along /= np.maximum(np.linalg.norm(along, axis=-1, keepdims=True), 1e-12)
    # One reference for the whole stem, so that rings do not turn against each other.
    reference = np.where(np.abs(along[:, :1, 2:]) < 0.9, np.array([0.0, 0.0, 1.0]), np.array([1.0, 0.0, 0.0]))
    side = np.cross(along, reference)
    side /= np.maximum(np.linalg.norm(side, axis=-1, keepdims=True), 1e-12)
    other = np.cross(along, side)
    angle = np.linspace(0.0, 2.0 * np.pi, sides + 1)
    ring = side[:, :, None] * np.cos(angle)[:, None] + other[:, :, None] * np.sin(angle)[:, None]
    radius = np.repeat(stems.radius[:, :, None], sides + 1, axis=2)
    points = stems.points
    if trunk:
        points, radius, ring = _with_roots(stems, radius, ring, angle)
        count, places = radius.shape[:2]
    vertices = points[:, :, None] + ring * radius[..., None]
    # Whole repeats around, so that the seam closes; as dense along as around.
    around = np.maximum(np.rint(2.0 * np.pi * stems.radius[:, 0] / _BARK_TILE), 1.0)
    dense = around / (2.0 * np.pi * np.maximum(stems.radius[:, 0], 0.02))
    step = np.linalg.norm(np.diff(points, axis=1), axis=-1)
    run = np.concatenate([np.zeros((count, 1)), np.cumsum(step, axis=1)], axis=1)
    u = np.broadcast_to(around[:, None, None] * angle / (2.0 * np.pi), radius.shape)
    v = np.broadcast_to((-run * dense[:, None])[..., None], radius.shape)
    faces = _ring_faces(count, places, sides + 1)
    # Lighter towards the sky, darker at the ground, where splashes and moss lie.
    shade = np.ones_like(radius)
    if trunk:
        shade = shade * (0.72 + 0.28 * np.clip(vertices[..., 2] / 1.0, 0.0, 1.0))
    colors = np.repeat(shade.reshape(-1, 1), 3, axis=1)
    return _Part(vertices.reshape(-1, 3), faces, ring.reshape(-1, 3), np.stack([u, v], -1).reshape(-1, 2), colors, BARK)


def _with_roots(stems: Stems, radius: Array, ring: Array, angle: Array) -> tuple[Array, Array, Array]:
    """Return points, radii and directions of the trunk with rings at the ground, where roots stand out in lobes."""
    low = np.array([-0.3, 0.0, 0.06, 0.14, 0.26, 0.45])
    foot = stems.points[:, :1]
    points = np.concatenate([foot + low[None, :, None] * np.array([0.0, 0.0, 1.0]), stems.points[:, 1:]], axis=1)
    base = np.repeat(radius[:, :1], len(low), axis=1)
    out = _FLARE * np.exp(-np.maximum(low, 0.0) / _FLARE_HEIGHT)
    # The foot's radius follows from the stem alone: five lobes that differ, for ever the same of one tree.
    lobes = 0.55 + 0.30 * np.cos(5.0 * angle + 1.3) + 0.15 * np.cos(3.0 * angle + float(stems.length[0]))
    base = base + out[None, :, None] * lobes
    rings = np.concatenate([np.repeat(ring[:, :1], len(low), axis=1), ring[:, 1:]], axis=1)
    # A trunk is not round: a centimetre or two, slowly changing along it.
    uneven = 0.012 * np.sin(2.0 * angle + 0.9 * points[:, :, 2:]) + 0.008 * np.sin(3.0 * angle - 0.7 * points[:, :, 2:] + 2.0)
    whole = np.concatenate([base, radius[:, 1:]], axis=1)
    return points, whole * (1.0 + uneven), rings


def _ring_faces(count: int, places: int, across: int) -> ArrayInt:
    """Return triangles between neighbouring rings of `count` stems, counter-clockwise seen from outside."""
    k, i, j = np.meshgrid(np.arange(count), np.arange(places - 1), np.arange(across - 1), indexing="ij")
    a = ((k * places + i) * across + j).reshape(-1)
    b, c, d = a + 1, a + across, a + across + 1
    return np.concatenate([np.stack([a, b, c], -1), np.stack([b, d, c], -1)])


# ---- Leaves -----------------------------------------------------------------------------------------------------------------


def _leaves(
    kind: TreeKind,
    twigs: Stems,
    color: tuple[float, ...],
    share: float,
    larger: float,
    season: Season,
    rng: np.random.Generator,
) -> _Part:
    """Return the leaves of a crown."""
    count = max(int(kind.leaf.count * share), 1)
    chance = rng.random((6, count))
    weight = np.cumsum(twigs.length)
    twig = np.minimum(np.searchsorted(weight, chance[0] * weight[-1]), len(twigs) - 1)
    place, along, thick = twigs.at(twig, 0.12 + 0.88 * chance[1])
    turn, down = 2.0 * np.pi * chance[2], np.radians(kind.leaf.angle + 25.0 * (chance[3] - 0.5))
    side = np.cross(along, np.array([0.0, 0.0, 1.0]) + 1e-3)
    side /= np.maximum(np.linalg.norm(side, axis=1, keepdims=True), 1e-9)
    other = np.cross(along, side)
    out = side * np.cos(turn)[:, None] + other * np.sin(turn)[:, None]
    if len(kind.stems) == 1:
        # Fronds: leaflets stand to both sides, in a plane.
        out = side * np.where(chance[2] < 0.5, 1.0, -1.0)[:, None] + 0.25 * other
    ahead = _unit(along * np.cos(down)[:, None] + out * np.sin(down)[:, None] + np.array([0.0, 0.0, -0.18]))
    center, half = _crown(place)
    # The blade lies towards the light, more or less: to the sky, and out of the crown.
    up = np.array([0.0, 0.0, 0.55]) + 0.5 * _unit((place - center) / half) + 1.3 * (rng.random((count, 3)) - 0.5)
    face = _unit(up - ahead * (up * ahead).sum(1, keepdims=True))
    across = np.cross(face, ahead)
    size = larger * (0.75 + 0.5 * chance[4])
    length, width = (kind.leaf.length * size)[:, None], (0.5 * kind.leaf.width * size)[:, None]
    base = place + out * thick[:, None]
    fold = 0.18 * width * face
    corners = np.stack(
        [
            base,
            base + 0.45 * length * ahead + width * across + fold,
            base + length * ahead - 0.10 * length * face,
            base + 0.45 * length * ahead - width * across + fold,
        ],
        axis=1,
    )
    outward = (base - center) / half
    depth = np.linalg.norm(outward, axis=1)
    bent = _unit((1.0 - _BENT) * face + _BENT * _unit(outward / half + np.array([0.0, 0.0, 0.35]) / half.mean()))
    faces, normals = _wound(corners, bent)
    tint = _tints(np.array(color), chance[5], season, rng)
    # Half way to the hull about half of the sky is hidden by leaves; ours, in place of a baked share.
    shade = np.repeat(np.clip(0.52 + 0.60 * depth**2, 0.0, 1.0), 4)
    uv = np.tile(np.array([[0.5, 1.0], [1.0, 0.5], [0.5, 0.0], [0.0, 0.5]]), (count, 1))
    return _Part(corners.reshape(-1, 3), faces, np.repeat(normals, 4, axis=0), uv, np.repeat(tint, 4, axis=0), LEAVES, shade)


def _crown(place: Array) -> tuple[Array, Array]:
    """Return center (3,) and half sizes (3,) of the crown around the places of leaves, strays left out."""
    low, high = np.quantile(place, [0.02, 0.98], axis=0)
    return 0.5 * (low + high), np.maximum(0.5 * (high - low), 0.05)


def _wound(corners: Array, normals: Array) -> tuple[ArrayInt, Array]:
    """Return triangles (2 n, 3) of kites (n, 4, 3), wound so that their front is on the side of the normals (n, 3)."""
    flat = np.cross(corners[:, 1] - corners[:, 3], corners[:, 2] - corners[:, 0])
    turned = (flat * normals).sum(1) < 0.0
    first = 4 * np.arange(len(corners))[:, None]
    front = first + np.where(turned[:, None], [0, 2, 1], [0, 1, 2])
    back = first + np.where(turned[:, None], [0, 3, 2], [0, 2, 3])
    return np.concatenate([front, back]), normals


def _tints(color: Array, chance: Array, season: Season, rng: np.random.Generator) -> Array:
    """Return colours of vertices (n, 3): each leaf a little another."""
    level = np.exp(0.22 * (chance - 0.5) * 2.0)
    hue = 0.16 * (rng.random(len(chance)) - 0.5)
    found = color * level[:, None] * np.stack([1.0 + 2.0 * hue, 1.0 + 0.3 * hue, 1.0 - hue], -1)
    if season == "autumn":
        # Leaves do not turn together: some are still green, some brown already.
        stage = rng.random(len(chance))[:, None]
        green, brown = np.array([0.08, 0.10, 0.02]), np.array([0.12, 0.06, 0.03])
        found = np.where(stage < 0.16, green, np.where(stage > 0.9, brown, found))
    return both_sides(np.asarray(found))


def _unit(vectors: Array) -> Array:
    return np.asarray(vectors / np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), 1e-12))
