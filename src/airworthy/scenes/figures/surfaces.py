"""Surfaces that figures are made of: what a piece is, its material, and cloth with folds, creases and cuts.

All surfaces are white materials times colours of vertices.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from airworthy.core.arrays import Array
from airworthy.scenes.figures.body import Build
from airworthy.scenes.figures.fields import Field, sheet
from airworthy.scenes.record import Material

__all__ = [
    "CLOTH", "FIGURE_MATERIALS", "HAIR", "LEATHER", "PLASTIC", "SKIN", "TAPE", "GarmentPiece", "Paint", "above", "below",
    "beyond", "creases", "cut", "even", "folds", "puffed",
]  # fmt: skip

FIGURE_MATERIALS: dict[str, Material] = {
    "person/skin": Material((1.0, 1.0, 1.0, 1.0), roughness=0.66),
    "person/cloth": Material((1.0, 1.0, 1.0, 1.0), roughness=0.95),
    "person/leather": Material((1.0, 1.0, 1.0, 1.0), roughness=0.66),
    "person/hair": Material((1.0, 1.0, 1.0, 1.0), roughness=0.66),
    "person/plastic": Material((1.0, 1.0, 1.0, 1.0), roughness=0.34),
    "person/tape": Material((1.0, 1.0, 1.0, 1.0), roughness=0.7),
}
"""Of figures, in the order of their faces' numbers. Skin and leather are as rough as what has no gloss traced (`rendering`):
with few rays theirs would be grain."""
SKIN, CLOTH, LEATHER, HAIR, PLASTIC, TAPE = range(6)

Paint = Callable[[Array, Array], Array]
"""Colours (n, 3) of places (n, 3), world, and their normals."""


@dataclass(frozen=True, eq=False)
class GarmentPiece:
    """One closed surface of a figure."""

    field: Field
    joints: tuple[str, ...]
    """Around whose parts the surface is looked for."""
    slot: int
    paint: Paint
    cell: float
    """Side of a net's cells at the finest detail [m]."""
    reach: float = 0.18
    """How far it may lie from its joints' bones [m]."""
    least: int = 0
    """Least detail at which it is there: what is small or thin is left out from afar."""
    owner: str = ""
    """Joint with which it goes where a figure moves."""
    bones: tuple[tuple[str, tuple[float, ...]], ...] = ()
    """More places to look around: joints and points in their frames, in shares of the stature."""


def even(color: Sequence[float]) -> Paint:
    """Return a paint of one linear colour."""
    return lambda points, normals: np.broadcast_to(np.asarray(color, float), points.shape)


def folds(rng: np.random.Generator, build: Build, depth: float = 1.0) -> Callable[[Array], Array]:
    """Return how far cloth stands out [m] at places: slow, mostly slanting waves of some centimetres."""
    count = 9
    slant = rng.normal(0.0, 1.0, (count, 3)) * np.array((0.7, 0.7, 1.0))
    slant /= np.linalg.norm(slant, axis=1, keepdims=True)
    wave = 2.0 * np.pi / (rng.uniform(0.055, 0.16, count) * build.stature / 1.75)
    phase = 2.0 * np.pi * rng.random(count)
    size = 0.0011 * depth * rng.uniform(0.5, 1.0, count)

    def out(points: Array) -> Array:
        turn = points @ (slant * wave[:, None]).T + phase
        # Ridges are sharper than hollows.
        return np.asarray(((1.0 - np.abs(np.sin(0.5 * turn))) * 2.0 - 0.7) @ size)

    return out


def creases(build: Build, at: float, reach: float, size: float, pitch: float, phase: float) -> Callable[[Array], Array]:
    """Return rings of creases in a limb's frame about a height on it, as cloth has them over a cuff or in a knee."""
    s = build.stature

    def out(points: Array) -> Array:
        z = points[:, 2] / s
        slant = 0.35 * np.arctan2(points[:, 1], points[:, 0])
        near = np.exp(-(((z - at) / reach) ** 2))
        return np.asarray(size * near * np.sin(2.0 * np.pi * z / pitch + slant + phase))

    return out


def puffed(base: Field, out: Callable[[Array], Array]) -> Field:
    """Return a surface moved outwards by what is told for each place [m]."""
    return lambda points: base(points) - out(points)


def cut(base: Field, *planes: Field) -> Field:
    """Return what of a solid lies within all planes."""

    def distance(points: Array) -> Array:
        found = base(points)
        for plane in planes:
            found = np.maximum(found, plane(points))
        return found

    return distance


def above(z: float) -> Field:
    """Return the half space above a height [m]."""
    return sheet((0.0, 0.0, -1.0), -z)


def below(z: float) -> Field:
    """Return the half space below a height [m]."""
    return sheet((0.0, 0.0, 1.0), z)


_ENDS: dict[str, tuple[float, ...]] = {
    "torso": (0.0, 0.0, 0.25), "upper_arm": (0.0, 0.0, -0.19), "lower_arm": (0.0, 0.0, -0.15), "upper_leg": (0.0, 0.0, -0.25),
    "lower_leg": (0.0, 0.0, -0.25),
}  # fmt: skip
"""Far ends of what joints bear, in their frames, over the stature."""


def beyond(joints: Sequence[str]) -> tuple[tuple[str, tuple[float, ...]], ...]:
    """Return where parts of the body end, for the box in which they are looked for."""
    return tuple((name, _ENDS[kind]) for name in joints if (kind := name.removesuffix("_left").removesuffix("_right")) in _ENDS)
