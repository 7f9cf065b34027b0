"""Maps that agree, from what a pattern draws (colour, height in metres, roughness): normal and occlusion are the height's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy.ndimage import gaussian_filter, map_coordinates

from airworthy.core.arrays import Array, ArrayF32, ArrayU8
from airworthy.scenes.texels import height_to_normal

__all__ = ["Layers", "MaterialMaps", "composed", "finished", "occluded", "visible_level"]

LUMINANCE = np.array([0.2126, 0.7152, 0.0722])
"""Of linear red, green, blue (ITU-R BT.709)."""
Colors = Mapping[str, list[list[float]]]
Numbers = Mapping[str, float]


@dataclass(frozen=True)
class Layers:
    """What a pattern draws, each (size, size)."""

    albedo: Array
    """Linear RGB (size, size, 3); its level is set by the recipe afterwards."""
    height: Array
    """Above any plane [m]."""
    roughness: Array | float = 0.9
    metallic: Array | float = 0.0
    alpha: Array | float = 1.0
    """Share of the pixel that there is; of decals and leaves."""


@dataclass(frozen=True, eq=False)
class MaterialMaps:
    """Maps of one material, of one size and one tile."""

    albedo: ArrayU8
    """(size, size, 4), sRGB and alpha."""
    surface: ArrayU8
    """(size, size, 3): occlusion, roughness, metallic."""
    normal: ArrayU8
    """(size, size, 3), tangent space, green up."""
    height: ArrayF32
    """(size, size), 0 to 1."""
    macro: ArrayU8
    """(128, 128, 3): half of what multiplies the albedo over several tiles."""
    relief: float
    """From height 0 to height 1 [m]."""
    tile: float
    """What one repeat covers [m]."""

    def linear_albedo(self) -> Array:
        """Return linear RGB (size, size, 3) in [0, 1]."""
        return decoded(self.albedo[..., :3])

    @property
    def occlusion(self) -> Array:
        """Share of the sky that the relief leaves open, (size, size) in [0, 1]."""
        return self.surface[..., 0] / 255.0


def encoded(linear: Array) -> ArrayU8:
    """Return sRGB bytes of linear values."""
    x = np.clip(linear, 0.0, 1.0)
    curve = np.where(x <= 0.0031308, 12.92 * x, 1.055 * x ** (1.0 / 2.4) - 0.055)
    return np.rint(curve * 255.0).astype(np.uint8)


def decoded(pixels: ArrayU8) -> Array:
    """Return linear values of sRGB bytes."""
    x = np.arange(256) / 255.0
    return np.asarray(np.where(x <= 0.04045, x / 12.92, ((x + 0.055) / 1.055) ** 2.4)[pixels])


def visible_level(linear: Array, alpha: Array | float = 1.0) -> float:
    """Return the mean luminance of a linear image (h, w, 3) where it is not cut out."""
    weight = np.broadcast_to(np.asarray(alpha, float), linear.shape[:2])
    return float(np.sum((linear @ LUMINANCE) * weight) / max(float(weight.sum()), 1e-9))


def levelled(linear: Array, level: float, alpha: Array | float = 1.0) -> Array:
    """Return an image whose mean luminance is `level`: by one factor, and again for what was cut off at 1."""
    for _ in range(12):
        linear = np.clip(linear * (level / max(visible_level(linear, alpha), 1e-6)), 0.0, 0.98)
    return linear


def occluded(height: Array, pixel: float, closed: bool = True) -> Array:
    """Return the share of a uniform sky's light that a relief (h, w) [m] leaves to each point, in [0, 1].

    Horizons are looked for along eight ways out to 24 pixels; below a horizon of elevation e lies sin(e)^2 of the light on a
    level surface.

    Args:
        height: [m].
        pixel: Side of a pixel [m].
        closed: Whether the map goes on at its other edge; else its edge is level.
    """
    total = np.zeros_like(height)
    ways = ((0, 1), (1, 1), (1, 0), (1, -1), (0, -1), (-1, -1), (-1, 0), (-1, 1))
    for down, right in ways:
        slope = np.zeros_like(height)
        for step in (1, 2, 4, 7, 12, 24):
            far = step * pixel * float(np.hypot(down, right))
            other = _shifted(height, step * down, step * right, closed)
            slope = np.maximum(slope, (other - height) / far)
        total += 1.0 / (1.0 + slope * slope)
    return total / len(ways)


def _shifted(height: Array, down: int, right: int, closed: bool) -> Array:
    if closed:
        return np.roll(height, (-down, -right), (0, 1))
    rows = np.clip(np.arange(height.shape[0]) + down, 0, height.shape[0] - 1)
    columns = np.clip(np.arange(height.shape[1]) + right, 0, height.shape[1] - 1)
    return height[rows][:, columns]


def finished(
    layers: Layers, level: float | None, tint: tuple[float, float, float], tile: float, macro: ArrayU8, closed: bool = True
) -> MaterialMaps:
    """Return maps of what was drawn.

    Args:
        layers: What was drawn.
        level: Mean luminance of the albedo; None: as it was drawn.
        tint: Factors of red, green and blue.
        tile: What one repeat covers [m].
        macro: Half of the large-scale factor, (m, m, 3), 128 on average.
        closed: Whether the map goes on at its other edge.
    """
    shape = layers.height.shape
    alpha = np.broadcast_to(np.asarray(layers.alpha, float), shape)
    albedo = layers.albedo * np.asarray(tint)
    if level is not None:
        albedo = levelled(albedo, level, np.where(alpha >= 0.5, 1.0, 0.0))
    low, high = float(layers.height.min()), float(layers.height.max())
    # A surface without relief has a normal map all the same: flat.
    relief = max(high - low, 1e-6)
    height = ((layers.height - low) / relief).astype(np.float32)
    # Rounded to what is kept, so that the normal is that of the height that stands beside it.
    normal = height_to_normal(height, relief, (tile, tile))
    open_share = occluded(height.astype(float) * relief, tile / shape[0], closed)
    channels = [open_share, np.broadcast_to(layers.roughness, shape), np.broadcast_to(layers.metallic, shape)]
    surface = np.rint(np.clip(np.stack(channels, -1), 0.0, 1.0) * 255.0).astype(np.uint8)
    rgba = np.concatenate([encoded(albedo), np.rint(np.clip(alpha, 0, 1) * 255.0).astype(np.uint8)[..., None]], -1)
    return MaterialMaps(rgba, surface, normal, height, macro, relief, tile)


def composed(below: MaterialMaps, above: MaterialMaps, at: tuple[float, float], side: float) -> MaterialMaps:
    """Return a tiled material with a decal laid on: its colour, roughness and thickness, and the normals of both together.

    Args:
        below: The tiled material.
        above: The decal.
        at: Of the decal's middle: from the tile's left edge and down from its upper edge [m].
        side: Of the decal [m].
    """
    size, decal = below.albedo.shape[0], above.albedo.shape[0]
    pixel = below.tile / size
    place = (np.arange(size) + 0.5) * pixel
    column, row = (np.mod(place - middle + 0.5 * below.tile, below.tile) - 0.5 * below.tile for middle in at)
    # What is finer than the tile's pixels is averaged before it is read.
    sigma = max(0.5 * (pixel * decal / side - 1.0), 0.0)
    where = np.meshgrid((row / side + 0.5) * decal - 0.5, (column / side + 0.5) * decal - 0.5, indexing="ij")

    def read(field: Array) -> Array:
        return np.asarray(map_coordinates(gaussian_filter(field, sigma), where, order=1, mode="constant"))

    alpha = above.albedo[..., 3] / 255.0
    share = read(alpha)

    def laid(lower: Array, upper: Array) -> Array:
        # Averaged with its alpha: what is cut out has no say in the colour of the rim.
        return np.asarray(lower * (1.0 - share) + read(upper * alpha))

    lower, upper = below.linear_albedo(), above.linear_albedo()
    albedo = np.stack([laid(lower[..., k], upper[..., k]) for k in range(3)], -1)
    rough, metal = (laid(below.surface[..., k] / 255.0, above.surface[..., k] / 255.0) for k in (1, 2))
    height = below.height.astype(float) * below.relief + read(above.height.astype(float) * above.relief * alpha)
    return finished(Layers(albedo, height, rough, metal), None, (1.0, 1.0, 1.0), below.tile, below.macro)
