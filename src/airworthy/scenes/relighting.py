"""The same place, brighter or darker."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from airworthy.core.errors import AirworthyError
from airworthy.scenes.record import Color, Light, Material, Scene, Sun

__all__ = ["relit"]


def relit(scene: Scene, factor: float) -> Scene:
    """A scene in which everything has `factor` times the radiance: lights, sky, what glows, and splats.

    Light adds up linearly, so images of meshes are scaled exactly. Splats hold light that was there when they were captured,
    encoded; `scenes.splats.brightened` scales it, exactly but in the darkest tones (by at most 0.0175 of full scale).

    Args:
        scene: The scene.
        factor: 0.4 is 40 % of the light, as in the sweep of SOUS VIDE; at least 0.

    Raises:
        AirworthyError: The factor is not finite or below 0.
    """
    if not (np.isfinite(factor) and factor >= 0.0):
        raise AirworthyError(f"A scene cannot be lit {factor} times as brightly; a finite factor of at least 0 was expected.")
    from airworthy.scenes.splats.editing import brightened

    return replace(
        scene,
        lights=tuple(_scaled(light, factor) for light in scene.lights),
        sky=replace(scene.sky, intensity=scene.sky.intensity * factor),
        materials={name: _glowing(material, factor) for name, material in scene.materials.items()},
        clouds={name: brightened(cloud, factor) for name, cloud in scene.clouds.items()},
    )


def _scaled(light: Light, factor: float) -> Light:
    if isinstance(light, Sun):
        return replace(light, irradiance=light.irradiance * factor)
    return replace(light, intensity=light.intensity * factor)


def _glowing(material: Material, factor: float) -> Material:
    if not any(material.emissive):
        return material
    red, green, blue = material.emissive
    glow: Color = (red * factor, green * factor, blue * factor)
    return replace(material, emissive=glow)
