"""Quality profiles and levels of detail (spec/flightgoggles 2.5, 2.6).

A profile says how much memory and time images may take: the largest level of textures, mirrors, how far shadows reach, samples
per pixel, the finest level of meshes. A level of a mesh is chosen by how large the thing is in the image.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from airworthy.core.errors import AirworthyError, unknown_name
from airworthy.geometry import Mesh
from airworthy.scenes.appearance import appearance_of, memory_line
from airworthy.scenes.batch import SceneBatch
from airworthy.sensors.shading import ShadingOptions

__all__ = ["PROFILES", "Profile", "choose_level", "memory", "memory_report", "profile", "profile_names", "projected_size", "simplified"]

LEVELS = ("high", "medium", "low")
"""Of a mesh, finest first; below the last one a thing is not drawn at all."""
LEVEL_SIZES = (0.60, 0.25, 0.08)
"""Least share of the image's height at which high, medium and low are shown."""
HYSTERESIS = 0.10
"""A level is kept until the size is this share beyond its border."""
TWO_GIGABYTES = 2_000_000_000


@dataclass(frozen=True)
class Profile:
    """One row of the table."""

    name: str
    texture_scale: float
    reflections: bool
    finest_level: int
    """Index in `LEVELS`: meshes are not shown finer than this."""
    shadow_distance: float
    """[m]"""
    samples: int
    """Per pixel."""
    level_bias: float
    """Multiplies the projected size."""
    paper_gigabytes: float
    """What FlightGoggles took with one camera."""

    def options(self, **changes: Any) -> ShadingOptions:
        """Shading options of the profile, some of them changed."""
        own: dict[str, Any] = {
            "texture_scale": self.texture_scale,
            "reflections": self.reflections,
            "shadow_distance": self.shadow_distance,
            "samples": self.samples,
        }
        return ShadingOptions(**{**own, **changes})


PROFILES = {
    row.name: row
    for row in (
        Profile("VeryLow2GB", 0.125, False, 2, 15.0, 1, 1.0, 1.45),
        Profile("Low2GB", 0.25, False, 1, 20.0, 1, 1.0, 1.56),
        Profile("Medium", 0.5, False, 0, 20.0, 1, 1.0, 1.73),
        Profile("High", 1.0, True, 0, 40.0, 1, 1.0, 4.28),
        Profile("VeryHigh", 1.0, True, 0, 70.0, 2, 2.0, 4.28),
        Profile("Ultra", 1.0, True, 0, 150.0, 2, 4.0, 4.28),
    )
}
"""The six profiles; "High" is the default."""


def profile_names() -> list[str]:
    """Names of the profiles, cheapest first."""
    return list(PROFILES)


def profile(name: str = "High") -> Profile:
    """A profile by name.

    Raises:
        UnknownNameError: If there is none of this name.
    """
    if name not in PROFILES:
        raise unknown_name("quality profile", name, PROFILES)
    return PROFILES[name]


def projected_size(radius: ArrayLike, distance: ArrayLike, vertical_fov: float) -> NDArray[np.float64]:
    """Share of the image's height that a ball of a radius [m] covers at a distance [m]: 2 r / (2 d tan(fov / 2))."""
    return np.asarray(radius, float) / np.maximum(np.asarray(distance, float) * np.tan(0.5 * vertical_fov), 1e-9)


def choose_level(
    size: ArrayLike, current: ArrayLike | None = None, *, bias: float = 1.0, finest: int = 0, hysteresis: float = HYSTERESIS
) -> NDArray[np.int32]:
    """Level of detail by projected size: 0 high, 1 medium, 2 low, 3 not drawn.

    Args:
        size: Share of the image's height, (...).
        current: Levels shown now, (...): kept while the size is within the hysteresis; None: none.
        bias: Multiplies the size.
        finest: No finer level than this.
        hysteresis: Share of a border by which it must be passed.
    """
    seen = np.asarray(size, float) * bias
    borders = np.array(LEVEL_SIZES)
    fresh = np.sum(seen[..., None] < borders, axis=-1)
    if current is not None:
        # Coarser only below the border less the hysteresis, finer only above it plus the hysteresis.
        coarser = np.sum(seen[..., None] < borders * (1.0 - hysteresis), axis=-1)
        finer = np.sum(seen[..., None] < borders * (1.0 + hysteresis), axis=-1)
        fresh = np.clip(np.asarray(current), coarser, finer)
    return np.maximum(fresh, finest).astype(np.int32)


def simplified(mesh: Mesh, share: float) -> Mesh:
    """A coarser mesh: vertices that fall into one cell of a grid become one (Rossignac and Borrel, 1993).

    Args:
        mesh: The fine one; its own vertex channels are left out.
        share: Of its faces that about remain, 0 to 1.

    Raises:
        AirworthyError: If the share is out of range.
    """
    if not 0.0 < share <= 1.0:
        raise AirworthyError(f"A mesh cannot be simplified to {share} of its faces; expected more than 0, up to 1.")
    if share == 1.0 or len(mesh.faces) < 8:
        return mesh
    lower, upper = mesh.vertices.min(0), mesh.vertices.max(0)
    low, high = 1.0, float(len(mesh.faces))
    best = mesh
    for _ in range(12):  # cells along the longest side, halved until the count of faces fits
        cells = float(np.sqrt(low * high))
        candidate = _clustered(mesh, lower, float((upper - lower).max()) / cells)
        if len(candidate.faces) > share * len(mesh.faces):
            high = cells
        else:
            low, best = cells, candidate
    return best


def _clustered(mesh: Mesh, lower: NDArray[np.float32], cell: float) -> Mesh:
    key = np.floor((mesh.vertices - lower) / max(cell, 1e-12)).astype(np.int64)
    _, first, group = np.unique(key, axis=0, return_index=True, return_inverse=True)
    group = group.reshape(-1)
    count = np.bincount(group)

    def mean(values: NDArray[np.float32] | None) -> NDArray[np.float32] | None:
        if values is None:
            return None
        sums = np.stack([np.bincount(group, values[:, k]) for k in range(values.shape[1])], -1)
        return (sums / count[:, None]).astype(np.float32)

    faces = group[mesh.faces].astype(np.int32)
    kept = (faces[:, 0] != faces[:, 1]) & (faces[:, 1] != faces[:, 2]) & (faces[:, 0] != faces[:, 2])
    vertices = mean(mesh.vertices)
    assert vertices is not None
    normals = mean(mesh.normals)
    if normals is not None:
        normals = normals / np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), 1e-9)
    # Coordinates of a mean vertex would cross seams of the texture: one of its vertices lends its own.
    uv = None if mesh.uv is None else mesh.uv[first]
    material = None if mesh.face_material is None else mesh.face_material[kept]
    return Mesh(vertices, faces[kept], normals, uv, mean(mesh.colors), material)


def memory(batch: SceneBatch, of: Profile) -> dict[str, int]:
    """Bytes that a batch takes under a profile, by part."""
    return {**batch.geometry.memory(), **appearance_of(batch, of.texture_scale).memory()}


def memory_report(batch: SceneBatch, names: Sequence[str] = ()) -> str:
    """One line per profile: memory of the batch's geometry, textures and light."""
    lines = []
    for name in names or profile_names():
        lines.append(f"{name:<11} {memory_line(memory(batch, profile(name)))}")
    return "\n".join(lines)
