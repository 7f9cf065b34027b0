"""Quality profiles (spec/flightgoggles 2.5): how much memory and time images may take.

A profile sets the largest level of textures, mirrors, how far shadows reach, samples per pixel, and the finest level of meshes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from airworthy.core.errors import AirworthyError, unknown_name
from airworthy.rendering.shading import ShadingOptions
from airworthy.scenes.appearance import Appearance
from airworthy.scenes.batch import SceneBatch
from airworthy.scenes.formats.meshes.simplify import coarser
from airworthy.scenes.record import Scene

__all__ = ["LEVELS", "LEVEL_SHARES", "PROFILES", "Profile", "memory", "memory_table", "profile", "profile_names", "scene_at"]

LEVELS = ("high", "medium", "low")
"""Of a mesh, finest first."""
# Ours: about a quarter of the triangles from level to level.
LEVEL_SHARES = (1.0, 0.25, 0.06)
"""Share of a mesh's triangles at each level."""
PIXEL_BYTES = {"rays": 36, "hits": 20, "colours": 12, "depth": 4, "8-bit colours": 3}
"""Of one pixel of one camera that gives colour and depth; rays are shared by equal cameras."""


@dataclass(frozen=True)
class Profile:
    """One column of the table."""

    name: str
    texture_scale: float
    reflections: bool
    finest_level: int
    """Index in `LEVELS`: meshes are not shown finer than this."""
    shadow_distance: float
    """[m]"""
    samples: int
    """Per pixel (multisampling; "0" in the table is one sample)."""
    published_mono: float
    """What FlightGoggles took with one camera [GB]."""
    published_stereo: float
    """With two [GB]."""

    def options(self, **changes: Any) -> ShadingOptions:
        """Return shading options of the profile, some of them changed."""
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
        # Source: spec/flightgoggles 2.5: Table I of the paper, the rest [R3] ProjectSettings/QualitySettings.asset.
        Profile("VeryLow2GB", 0.125, False, 2, 15.0, 1, 1.45, 2.00),
        Profile("Low2GB", 0.25, False, 1, 20.0, 1, 1.56, 2.07),
        Profile("Medium", 0.5, False, 0, 20.0, 1, 1.73, 2.30),
        Profile("High", 1.0, True, 0, 40.0, 1, 4.28, 4.97),
        Profile("VeryHigh", 1.0, True, 0, 70.0, 2, 4.28, 4.97),
        Profile("Ultra", 1.0, True, 0, 150.0, 2, 4.28, 4.97),
    )
}
"""The six profiles, cheapest first; "High" is the default."""


def profile_names() -> list[str]:
    """Return names of the profiles, cheapest first."""
    return list(PROFILES)


def profile(name: str = "High") -> Profile:
    """Return a profile by name.

    Raises:
        UnknownNameError: If there is none of this name.
    """
    if name not in PROFILES:
        raise unknown_name("quality profile", name, PROFILES)
    return PROFILES[name]


def scene_at(scene: Scene, of: Profile) -> Scene:
    """Return a scene whose meshes are no finer than the profile allows."""
    return coarser(scene, LEVEL_SHARES[of.finest_level])


def memory(batch: SceneBatch, of: Profile, width: int = 1024, height: int = 768, cameras: int = 1) -> dict[str, int]:
    """Return bytes that images of a batch take under a profile, by part: the sizes of the arrays themselves.

    The batch's scenes are simplified, placed and packed anew as the profile says, so this takes time and memory of its own.

    Args:
        batch: Scenes at full detail.
        of: The profile.
        width: Of the image [px].
        height: Of the image [px].
        cameras: Per environment.

    Raises:
        AirworthyError: If the textures need more memory than they may have.
    """
    scenes = [scene_at(scene, of) for scene in batch.scenes]
    placed = SceneBatch([scenes[index] for index in batch.scene_of_env], batch.env_count, threads=batch.threads)
    pixels = width * height
    buffers = PIXEL_BYTES["rays"] * of.samples + cameras * batch.env_count * sum(list(PIXEL_BYTES.values())[1:])
    appearance = Appearance(placed, of.texture_scale).memory()
    return {**placed.geometry.memory(), **appearance, "images": pixels * buffers}


def memory_table(
    batch: SceneBatch, names: Sequence[str] = (), width: int = 1024, height: int = 768, show: bool = True
) -> dict[str, tuple[int, int]]:
    """Return the memory with one camera and with two per environment, by profile; printed as a table.

    Args:
        batch: Scenes at full detail.
        names: Profiles; none: all.
        width: Of the image [px].
        height: Of the image [px].
        show: Print it.

    Returns:
        Bytes (mono, stereo) by profile; profiles whose textures do not fit are left out.
    """
    found: dict[str, tuple[int, int]] = {}
    lines = [f"{'profile':<11}{'textures':>10}{'meshes':>10}{'images':>10}{'mono':>10}{'stereo':>10}   [MB]"]
    known: dict[Any, dict[str, int]] = {}
    for name in names or profile_names():
        row = profile(name)
        key = (row.texture_scale, row.finest_level)
        try:
            parts = known.setdefault(key, memory(batch, row, width, height)) if key not in known else known[key]
        except AirworthyError as error:
            lines.append(f"{name:<11} {error}")
            continue
        lines.append(_row(name, row, parts, width * height, batch.env_count, found))
    if show:
        print("\n".join(lines))
    return found


def _row(name: str, row: Profile, parts: dict[str, int], pixels: int, envs: int, found: dict[str, tuple[int, int]]) -> str:
    # Equal cameras share their rays, so a second one costs no more of them.
    more = pixels * PIXEL_BYTES["rays"] * (row.samples - 1)  # rays beside the middles of pixels
    view = pixels * envs * sum(value for part, value in PIXEL_BYTES.items() if part != "rays")
    images = pixels * PIXEL_BYTES["rays"] + view + more
    rest = sum(value for part, value in parts.items() if part != "images")
    found[name] = (rest + images, rest + images + view)
    numbers = (parts["textures"], rest - parts["textures"], images, *found[name])
    return f"{name:<11}" + "".join(f"{value / 1e6:>10.1f}" for value in numbers)
