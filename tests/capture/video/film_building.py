"""Small films and pictures for tests."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from airworthy.geometry import Box
from airworthy.reports.film import write_video
from airworthy.scenes import Instance, Material, PointLight, Region, Scene, Texture

SIZE = (96, 64)


def textured_picture(width: int = 400, height: int = 64, seed: int = 0) -> np.ndarray:
    """A smooth random pattern (height, width, 3) with structure at 3 and at 12 pixels."""
    from scipy.ndimage import gaussian_filter

    rng = np.random.default_rng(seed)
    found = np.zeros((height, width, 3))
    for sigma in (1.5, 6.0):
        part = gaussian_filter(rng.normal(size=(height, width, 3)), (sigma, sigma, 0))
        found += part / part.std()
    return np.clip(128.0 + 45.0 * found, 0, 255).astype(np.uint8)


def textured_film(count: int, step: int = 2) -> list[np.ndarray]:
    """A camera that pans to the right over a pattern: pictures of `SIZE`, `step` px further each."""
    wide = textured_picture(SIZE[0] + step * count + 8)
    return [np.ascontiguousarray(wide[:, step * k : step * k + SIZE[0]]) for k in range(count)]


def write_film(path: Path, pictures: list[np.ndarray], rate: float = 10.0) -> Path:
    height, width = pictures[0].shape[:2]
    return write_video(path, iter(pictures), len(pictures), (width, height), rate)


def patterned_room() -> Scene:
    """A room of 6 x 5 x 3 m whose walls, floor and two boxes have patterns that repeat nowhere in view."""
    shapes = {
        "floor": Box((3.0, 2.5, 0.1)),
        "side": Box((0.1, 2.5, 1.5)),
        "front": Box((3.0, 0.1, 1.5)),
        "box": Box((0.3, 0.3, 0.4)),
    }
    places = [("floor", (0.0, 0.0, -0.1)), ("floor", (0.0, 0.0, 3.1)), ("side", (-3.1, 0.0, 1.5)), ("side", (3.1, 0.0, 1.5))]
    places += [("front", (0.0, -2.6, 1.5)), ("front", (0.0, 2.6, 1.5)), ("box", (0.6, 0.3, 0.4)), ("box", (-0.7, -0.2, 0.4))]
    textures = {f"pattern{k}": Texture(textured_picture(256, 256, 10 + k)) for k in range(len(places))}
    materials = {f"m{k}": Material(base_color_map=f"pattern{k}", texture_size=5.0, roughness=1.0) for k in range(len(places))}
    return Scene(
        "patterned",
        shapes=shapes,
        textures=textures,
        materials=materials,
        instances=tuple(Instance(shape, where, materials=(f"m{k}",)) for k, (shape, where) in enumerate(places)),
        lights=(PointLight((0.0, 0.0, 2.6), intensity=25.0),),
        bounds=Region((-3.0, -2.5, 0.0), (3.0, 2.5, 3.0)),
    )
