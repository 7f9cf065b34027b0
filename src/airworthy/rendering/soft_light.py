"""A scene in soft light: its lamps and sun have a size, and what comes from all sides is baked finely. Splats are made from it.

Every sample of a pixel is taken under lamps at other places of their panels and a sun at another place of its disc, so that the
mean of a pixel's samples is smooth in its edges and its shadows alike. The places are those of a sequence: no noise.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from airworthy.core.arrays import ArrayF32, ArrayFloat
from airworthy.core.errors import AirworthyError
from airworthy.core.jobs.progress import progress
from airworthy.core.schema import check_fields
from airworthy.geometry import RayTable
from airworthy.rendering.baking import BakeSettings
from airworthy.rendering.converting import display_color
from airworthy.rendering.light_baking import baked_light
from airworthy.rendering.refining import PosedImages, free_poses
from airworthy.rendering.shading import ShadingOptions, seen_by_colors, shade
from airworthy.scenes.actors import posed
from airworthy.scenes.appearance import appearance_of
from airworthy.scenes.batch import SceneBatch
from airworthy.scenes.record import Light, Scene, SpotLight, Sun, Vector3
from airworthy.splats.surfaces import sequence

__all__ = ["FINE_BAKE", "SoftLight", "soft_images", "soft_views", "softly_lit"]


FINE_BAKE = BakeSettings(rays=512, probe_spacing=0.4, probes_max=60_000, texel=0.05, nodes_max=1_000_000, finest=1.0)
"""Shadows where things meet are a few centimetres wide."""


@dataclass(frozen=True)
class SoftLight:
    """How soft.

    Raises:
        AirworthyError: If a number is out of range.
    """

    samples: int = 16
    """Per pixel, each under light from elsewhere; a power of two."""
    panel: tuple[float, float] = (1.18, 0.28)
    """Sides of the panels, along x and y, over which spot lights are spread [m]."""
    sun: float = 0.012
    """Half angle of the sun's disc, haze included [rad]."""
    bake: BakeSettings = field(default=FINE_BAKE)

    def __post_init__(self) -> None:
        check_fields(self, "SoftLight.")
        if self.samples < 1 or self.samples & (self.samples - 1) or min(*self.panel, self.sun) < 0.0:
            raise AirworthyError(f"Light cannot be softened with {self}; expected a power of two, and sizes of 0 or more.")


DEFAULT_SOFT = SoftLight()


def softly_lit(scene: Scene, light: SoftLight = DEFAULT_SOFT, quiet: bool = True) -> SceneBatch:
    """Return a batch of `light.samples` environments, the scene under light from elsewhere in each; its actors stand where
    they begin.

    Args:
        scene: The place.
        light: How.
        quiet: Show no progress while light is baked (once; it is kept in the cache).
    """
    still = posed(scene)
    baked = baked_light(still, light.bake, quiet=quiet)
    lights = [tuple(_moved(one, draw, k, light) for k, one in enumerate(still.lights)) for draw in sequence(light.samples)]
    batch = SceneBatch([replace(still, lights=some) for some in lights])
    appearance = appearance_of(seen_by_colors(batch))
    for env in range(len(batch.scenes)):
        appearance.use(env, baked)
    return batch


def _moved(one: Light, draw: ArrayFloat, number: int, light: SoftLight) -> Light:
    """Return a light at a place of its panel or disc; each lamp at another one."""
    if isinstance(one, SpotLight):
        # Shifts by the golden section and its square: lamps in a row do not move alike.
        across, along = (draw[0] + 0.382 * number) % 1.0 - 0.5, (draw[1] + 0.618 * number) % 1.0 - 0.5
        x, y, z = one.position
        return replace(one, position=(x + light.panel[0] * across, y + light.panel[1] * along, z))
    if isinstance(one, Sun):
        return replace(one, direction=_within_disc(np.asarray(one.direction), draw, light.sun))
    return one


def _within_disc(direction: ArrayFloat, draw: ArrayFloat, angle: float) -> Vector3:
    side = np.cross(direction, np.eye(3)[np.argmin(np.abs(direction))])
    side /= np.linalg.norm(side)
    # The square root spreads points evenly over the disc's area.
    turn, reach = 2.0 * np.pi * draw[0], np.tan(angle) * np.sqrt(draw[2])
    found = direction + reach * (np.cos(turn) * side + np.sin(turn) * np.cross(direction, side))
    x, y, z = (found / np.linalg.norm(found)).tolist()
    return (x, y, z)


def soft_images(
    batch: SceneBatch, width: int, height: int, focal: float, position: ArrayFloat, attitude: ArrayFloat, exposure: float = 1.0
) -> Iterator[ArrayF32]:
    """Yield images (H, W, 3) of a batch made by `softly_lit`, as `display_color`, one after the other.

    Args:
        batch: Of s environments; as many samples per pixel.
        width: [px]
        height: [px]
        focal: Focal length [px].
        position: World [m], (n, 3).
        attitude: Camera to world, (n, 4).
        exposure: Factor on radiance.
    """
    count = batch.env_count
    u, v = np.meshgrid(np.arange(width) + 0.5 - 0.5 * width, np.arange(height) + 0.5 - 0.5 * height)
    # One table per sample: light and pixel are sampled together, so that one pass does for both.
    tables = [RayTable(np.stack(((u + x) / focal, (v + y) / focal, np.ones_like(u)), axis=-1)) for x, y in pixel_places(count)]
    options = ShadingOptions()
    for eye, turn in zip(position, attitude, strict=True):
        total = np.zeros((height, width, 3), np.float32)
        for env, table in enumerate(tables):
            total += shade(batch, table, eye[None], turn[None], np.array([env], np.int32), options)[0]
        # Averaged as radiance, before the tone curve: a mean of display values would darken edges of lamps.
        yield display_color(total / np.float32(count), exposure)


def pixel_places(count: int) -> list[tuple[float, float]]:
    """Return places of samples from the middle of a pixel, one per row and column: the points of Hammersley, of a power of
    two."""
    bits = max(count.bit_length() - 1, 0)
    # The bits of k backwards are the second coordinate of Hammersley's points.
    turned = [int(f"{k:0{bits}b}"[::-1], 2) if bits else 0 for k in range(count)]
    return [((k + 0.5) / count - 0.5, (t + 0.5) / count - 0.5) for k, t in enumerate(turned)]


def soft_views(
    batch: SceneBatch,
    count: int,
    width: int = 320,
    height: int = 180,
    fov: float = 1.4,
    first: int = 0,
    pitch: float = 0.35,
    exposure: float = 1.0,
    eight_bits: bool = False,
    quiet: bool = True,
) -> PosedImages:
    """Return images from free places evenly in the bounds of a batch made by `softly_lit`: those of `refining.scene_views`.

    Args:
        batch: The scene.
        count: How many.
        width: [px]
        height: [px]
        fov: Across the width [rad].
        first: Other views for other numbers; `refining.HELD_OUT` for judging.
        pitch: Most they look up or down [rad].
        exposure: As of the conversion.
        eight_bits: Keep the images as 255ths, in a quarter of the memory.
        quiet: Show no progress.
    """
    position, attitude = free_poses(batch, count, first, pitch)
    # Half the width is seen under half the field of view.
    focal = 0.5 * width / np.tan(0.5 * fov)
    images = np.empty((count, height, width, 3), np.uint8 if eight_bits else np.float32)
    found = soft_images(batch, width, height, focal, position, attitude, exposure)
    work: Iterable[int] = progress(range(count), f"Views of {width}x{height}", count, quiet=quiet)
    for k, image in zip(work, found, strict=True):
        images[k] = np.rint(255.0 * image) if eight_bits else image
    return PosedImages(images, np.tile((focal, focal, 0.5 * width, 0.5 * height), (count, 1)), position, attitude)
