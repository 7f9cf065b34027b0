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
from airworthy.scenes.appearance import appearance_of, memory_line
from airworthy.scenes.batch import SceneBatch
from airworthy.scenes.levels import coarser
from airworthy.scenes.record import Scene
from airworthy.sensors.shading import ShadingOptions

__all__ = ["PROFILES", "Profile", "choose_level", "memory", "memory_report", "profile", "profile_names", "projected_size", "scene_at"]

LEVELS = ("high", "medium", "low")
"""Of a mesh, finest first; below the last one a thing is not drawn at all."""
LEVEL_SIZES = (0.60, 0.25, 0.08)
"""Least share of the image's height at which high, medium and low are shown."""
LEVEL_SHARES = (1.0, 0.25, 0.06)
"""Share of a mesh's triangles at each level."""
HYSTERESIS = 0.10
"""A level is kept until the size is this share beyond its border."""


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


def scene_at(scene: Scene, of: Profile) -> Scene:
    """A scene whose meshes are at the profile's finest level."""
    return coarser(scene, LEVEL_SHARES[of.finest_level])


def memory(batch: SceneBatch, of: Profile) -> dict[str, int]:
    """Bytes that a batch takes under a profile, by part."""
    return {**batch.geometry.memory(), **appearance_of(batch, of.texture_scale).memory()}


def memory_report(batch: SceneBatch, names: Sequence[str] = ()) -> str:
    """One line per profile: memory of the batch's geometry, textures and light."""
    lines = []
    for name in names or profile_names():
        lines.append(f"{name:<11} {memory_line(memory(batch, profile(name)))}")
    return "\n".join(lines)
