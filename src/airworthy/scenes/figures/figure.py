"""Figures as meshes: a body of a few numbers in a pose, with levels of detail; made once and kept on disk."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from airworthy.core.arrays import Array, ArrayInt
from airworthy.core.errors import AirworthyError
from airworthy.core.schema import check_fields
from airworthy.geometry import Mesh
from airworthy.scenes.appearance import OPEN_CHANNEL
from airworthy.scenes.figures.bare import Outfit
from airworthy.scenes.figures.body import Build
from airworthy.scenes.figures.clothes import pieces, whole
from airworthy.scenes.figures.fields import Field, gradient
from airworthy.scenes.figures.nets import field_mesh
from airworthy.scenes.figures.stances import Stance, joint_frames, rest_frames
from airworthy.scenes.figures.surfaces import GarmentPiece
from airworthy.scenes.people import PERSON_JOINTS
from airworthy.scenes.vegetation.cache import kept_mesh

__all__ = ["DETAILS", "FigureForm", "figure_mesh", "limb_meshes"]

_PACKAGE = "airworthy.scenes.figures"
_BEARING = PERSON_JOINTS

DETAILS: dict[int, float] = {2: 1.0, 1: 2.0, 0: 3.6}
"""By detail: side of the nets' cells over that of the finest."""
_OPEN = ((0.03, 0.30), (0.08, 0.30), (0.18, 0.30))
"""Distances out of a surface at which it is asked whether something is nearer [m], and what each counts in its shade."""


@dataclass(frozen=True)
class FigureForm:
    """Who, wearing what, in which pose.

    Raises:
        AirworthyError: A number is out of range, or there is no such outfit.
    """

    stature: float = 1.75
    """[m]"""
    weight: float = 0.0
    """-1 slender to 1 heavy."""
    woman: bool = False
    outfit: Outfit = "shirt"
    seed: int = 0
    """Of colours, hair, face and folds."""
    stance: Stance = field(default_factory=Stance)
    detail: int = 2
    """2: to be seen from near; 1; 0: from afar."""

    def __post_init__(self) -> None:
        check_fields(self, "FigureForm.")
        if not (0.5 <= self.stature <= 2.5 and -1.0 <= self.weight <= 1.0 and self.detail in DETAILS):
            raise AirworthyError(
                f"A figure of {self.stature} m, weight {self.weight} and detail {self.detail} was asked for; expected 0.5 to"
                " 2.5 m, -1 to 1, and 0, 1 or 2."
            )


@lru_cache(maxsize=128)
def figure_mesh(form: FigureForm) -> Mesh:
    """Return a figure's mesh, standing on z = 0, looking along x [m]; faces have numbers of `FIGURE_MATERIALS`.

    A function of the form alone.

    Args:
        form: Which figure.
    """
    return kept_mesh(f"figure {form}", lambda: _made(form)[""], package=_PACKAGE)


@lru_cache(maxsize=64)
def limb_meshes(form: FigureForm) -> dict[str, Mesh]:
    """Return a figure cut at its joints: a closed mesh for each that bears something, in the person's frame at rest.

    Args:
        form: Which figure; it is cut as its skeleton rests, whatever its stance.
    """
    made: dict[str, Mesh] = {}

    def one(joint: str) -> Mesh:
        if not made:
            made.update(_made(form, True))
        return made[joint]

    return {joint: kept_mesh(f"limb {joint} {form}", lambda j=joint: one(j), package=_PACKAGE) for joint in _BEARING}  # type: ignore[misc]


def _made(form: FigureForm, apart: bool = False) -> dict[str, Mesh]:
    """Return meshes by the joint with which they go; of a figure that stands still one, under ""."""
    build = Build(form.stature, form.weight, form.woman)
    frames_of = rest_frames(form.stature) if apart else joint_frames(form.stature, form.stance)
    pieces_made = pieces(build, form.outfit, form.seed, frames_of, apart)
    hides = whole(pieces_made)
    groups: dict[str, list[_Surface]] = {}
    for piece in pieces_made:
        if piece.least <= form.detail:
            found = _surface(piece, hides, frames_of, form)
            groups.setdefault(piece.owner if apart else "", []).append(found)
    return {owner: _joined(surfaces) for owner, surfaces in groups.items()}


_Surface = tuple[Array, ArrayInt, Array, Array, ArrayInt, Array]
"""Vertices, faces, normals, colours, materials and open shares."""


def _surface(piece: GarmentPiece, hides: Field, frames_of: dict[str, Array], form: FigureForm) -> _Surface:
    lower, upper = _box(piece, frames_of, form.stature)
    place, corners = field_mesh(piece.field, lower, upper, piece.cell * DETAILS[form.detail])
    facing = gradient(piece.field, place)
    color = np.clip(piece.paint(place, facing), 0.0, 1.0)
    rgba = np.concatenate([color, np.ones((len(place), 1))], axis=1)
    return place, corners, facing, rgba, np.full(len(corners), piece.slot), _open_share(hides, place, facing)


def _joined(surfaces: list[_Surface]) -> Mesh:
    first = np.cumsum([0, *(len(one[0]) for one in surfaces)])
    points, faces, normals, colors, slots, shares = zip(*surfaces, strict=True)
    return Mesh(
        np.concatenate(points),
        np.concatenate([one + start for one, start in zip(faces, first[:-1], strict=True)]),
        np.concatenate(normals),
        None,
        np.concatenate(colors),
        np.concatenate(slots),
        {OPEN_CHANNEL: np.concatenate(shares).astype(np.float32)},
    )


def _box(piece: GarmentPiece, frames_of: dict[str, Array], stature: float) -> tuple[Array, Array]:
    """Return lower and upper corner of the box in which a piece is looked for [m]."""
    places = [frames_of[joint][:3, 3] for joint in piece.joints]
    places += [frames_of[j][:3, :3] @ (np.array(at) * stature) + frames_of[j][:3, 3] for j, at in piece.bones]
    found = np.array(places)
    return found.min(0) - piece.reach, found.max(0) + piece.reach


def _open_share(hides: Field, points: Array, normals: Array) -> Array:
    """Return the share of the light from all sides that the figure leaves a surface (V,), by its own distances: where it folds
    back on itself, less is free ahead than one has gone out."""
    found = np.ones(len(points))
    for reach, weight in _OPEN:
        free = np.clip(hides(points + reach * normals) / reach, 0.0, 1.0)
        found -= weight * (1.0 - free)
    return np.clip(found, 0.15, 1.0)
