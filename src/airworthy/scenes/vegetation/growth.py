"""How a tree grows: stems on stems, after Weber and Penn 1995 (Creation and Rendering of Realistic Trees).

From the paper: levels of stems, each a chain of segments; lengths of branches by their height in the crown (ShapeRatio), radii
by lengths (RatioPower), successive branches turned by 140 degrees about their bearer, angles that change from foot to tip.
Ours: bending is a pull upwards or downwards and a share of chance, instead of angles about axes; stems do not split.
Frame: z up, the foot of the trunk at the origin; metres.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from airworthy.core.arrays import Array, ArrayInt
from airworthy.scenes.vegetation.kinds import CrownShape, StemLevel, TreeKind

__all__ = ["Stems", "crown_share", "grown"]

_SEGMENTS = (18, 8, 5, 3)
"""Of stems by level."""
_TURN = np.radians(140.0)
"""From one branch to the next about the bearer (Weber and Penn 1995: nRotate 140)."""
_RATIO_POWER = 1.25
"""Radius of a branch over that of its bearer is the ratio of lengths to this power (there: RatioPower, 1.1 to 1.5)."""
_TWIG_RADIUS = 0.003
"""Thinner stems are not drawn thinner [m]."""


@dataclass(frozen=True, eq=False)
class Stems:
    """Stems of one level: n chains of s + 1 points."""

    points: Array
    """(n, s + 1, 3) [m]"""
    radius: Array
    """(n, s + 1) [m]"""
    length: Array
    """(n,) [m]"""

    def __len__(self) -> int:
        return len(self.length)

    def at(self, stem: ArrayInt, share: Array) -> tuple[Array, Array, Array]:
        """Return points (k, 3), unit directions (k, 3) and radii (k,) at shares of the lengths of stems (k,)."""
        count = self.points.shape[1] - 1
        place = np.clip(share, 0.0, 1.0) * count
        low = np.minimum(place.astype(np.int64), count - 1)
        t = (place - low)[:, None]
        a, b = self.points[stem, low], self.points[stem, low + 1]
        radius = (1.0 - t[:, 0]) * self.radius[stem, low] + t[:, 0] * self.radius[stem, low + 1]
        return a + t * (b - a), _unit(b - a), radius


def crown_share(shape: CrownShape, r: Array) -> Array:
    """Return the length of branches over the longest by their place in the crown: r is 0 at its top, 1 at its foot.

    Weber and Penn 1995, ShapeRatio.
    """
    flame = np.where(r <= 0.7, r / 0.7, (1.0 - r) / 0.3)
    by_shape = {
        "conical": 0.12 + 0.88 * r,
        "spherical": 0.25 + 0.75 * np.sin(np.pi * np.clip(r, 0.03, 0.97)),
        "hemispherical": 0.3 + 0.7 * np.sin(0.5 * np.pi * r),
        "cylindrical": np.ones_like(r),
        "flame": 0.15 + 0.85 * flame,
        "tend_flame": 0.45 + 0.55 * flame,
    }
    return np.asarray(by_shape[shape])


def grown(kind: TreeKind, rng: np.random.Generator, bare: float | None = None, detail: int = 3) -> list[Stems]:
    """Return the stems of a grown tree, level by level, the trunk first.

    Args:
        kind: Of tree.
        rng: Of its chance; drawn in an order that `detail` does not change, level by level.
        bare: Share of the height below the lowest branch; None: as in the open.
        detail: Levels of branches, 1 to 3.
    """
    length = kind.height * kind.trunk
    first = max(kind.bare if bare is None else bare, kind.stems[0].first if bare is None else 0.0)
    trunk = _chains(
        np.zeros((1, 3)), np.array([[0.0, 0.0, 1.0]]), np.array([length]), _SEGMENTS[0], 0.0, kind.crook, rng, upright=True
    )
    share = np.linspace(0.0, 1.0, _SEGMENTS[0] + 1)
    fall = kind.taper * share**1.15
    if bare is not None:
        # Grown among others, a trunk is straight and nearly a cylinder up to its crown (foresters: a full bole).
        bole = first / kind.trunk
        above = np.clip((share - bole) / (1.0 - bole), 0.0, 1.0)
        fall = 0.06 * np.minimum(share / bole, 1.0) + (kind.taper - 0.06) * above
        trunk[..., :2] *= (above**2)[:, None]
    radius = kind.girth * kind.height * (1.0 - fall)[None]
    stems = [Stems(trunk, radius, np.array([length]))]
    for level, about in enumerate(kind.stems[:detail]):
        stems.append(_branches(kind, about, stems[-1], level, first / kind.trunk if level == 0 else about.first, rng))
    return stems


def _branches(kind: TreeKind, about: StemLevel, bearer: Stems, level: int, first: float, rng: np.random.Generator) -> Stems:
    """Return the branches on all stems of one level."""
    count = np.maximum(np.rint(about.count * (bearer.length / bearer.length.max()) ** 0.7), 2).astype(np.int64)
    stem = np.repeat(np.arange(len(bearer)), count)
    number = np.arange(len(stem)) - np.repeat(np.cumsum(count) - count, count)
    spread = (number + rng.random(len(stem))) / count[stem]
    share = np.minimum(first + (0.995 - first) * spread, 0.995)
    place, along, thick = bearer.at(stem, share)
    r = 1.0 - (share - first) / max(1.0 - first, 1e-6)
    if level == 0:
        length = bearer.length[stem] * about.length * crown_share(kind.crown, r) * (0.8 + 0.4 * rng.random(len(stem)))
    else:
        # Longest at the bearer's foot, as the paper has it.
        length = about.length * bearer.length[stem] * (1.0 - 0.62 * share) * (0.7 + 0.6 * rng.random(len(stem)))
    angle = np.radians(about.angle_top + (about.angle - about.angle_top) * r + rng.normal(0.0, 6.0, len(stem)))
    turn = _TURN * number + 2.0 * np.pi * rng.random(len(bearer))[stem] + rng.normal(0.0, 0.35, len(stem))
    side = _side(along)
    other = np.cross(along, side)
    out = side * np.cos(turn)[:, None] + other * np.sin(turn)[:, None]
    direction = along * np.cos(angle)[:, None] + out * np.sin(angle)[:, None]
    radius = np.minimum(
        bearer.radius[stem, 0] * (length / bearer.length[stem]) ** _RATIO_POWER * (1.0 if level else 1.15), 0.72 * thick
    )
    segments = _SEGMENTS[min(level + 1, len(_SEGMENTS) - 1)] if len(kind.stems) > 1 else 9
    points = _chains(place, direction, length, segments, about.rise, about.crook, rng)
    fall = 1.0 - 0.85 * np.linspace(0.0, 1.0, segments + 1)
    return Stems(points, np.maximum(radius[:, None] * fall, _TWIG_RADIUS), length)


def _chains(
    start: Array,
    direction: Array,
    length: Array,
    segments: int,
    rise: float,
    crook: float,
    rng: np.random.Generator,
    upright: bool = False,
) -> Array:
    """Return chains (n, segments + 1, 3) that grow from points along directions, pulled upwards and led astray by chance."""
    points = np.empty((len(start), segments + 1, 3))
    points[:, 0] = start
    ahead = _unit(direction)
    pull = np.array([0.0, 0.0, rise / segments])
    for k in range(segments):
        points[:, k + 1] = points[:, k] + ahead * (length / segments)[:, None]
        chance = rng.normal(0.0, crook / np.sqrt(segments), (len(start), 3))
        if upright:
            # A trunk leans and comes back; it does not wander off.
            chance[:, :2] -= 0.35 * ahead[:, :2]
        ahead = _unit(ahead + pull + chance)
    return points


def _unit(vectors: Array) -> Array:
    return np.asarray(vectors / np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), 1e-12))


def _side(along: Array) -> Array:
    """Return unit vectors across directions (n, 3)."""
    axis = np.where(np.abs(along[:, 2:]) < 0.9, np.array([[0.0, 0.0, 1.0]]), np.array([[1.0, 0.0, 0.0]]))
    return _unit(np.cross(along, axis))
