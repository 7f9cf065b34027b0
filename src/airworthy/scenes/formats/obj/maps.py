"""Maps of scanned objects put together to a material: also those that other engines keep in files of their own."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from airworthy.core.arrays import ArrayU8
from airworthy.core.errors import unknown_name
from airworthy.scenes.formats._images import TextureImages
from airworthy.scenes.formats._source import ModelSource
from airworthy.scenes.formats.model import DEFAULT_LIMITS, FileLimits
from airworthy.scenes.record import Material, Texture

MAP_NAMES = ("base_color", "normal", "height", "metallic", "roughness", "smoothness", "occlusion", "emissive", "detail")
"""What `read_maps` takes: the set of FlightGoggles (spec 2.1), roughness and emission."""


def pack_metallic_roughness(
    metallic: ArrayU8 | None, roughness: ArrayU8 | None = None, smoothness: ArrayU8 | None = None
) -> ArrayU8:
    """Return one image of green: roughness, blue: metallic (as glTF) from separate grey ones.

    Args:
        metallic: (h, w, c), its first channel; None: full, to be scaled by the material's number.
        roughness: (h, w, c), its first channel; None: from the smoothness, or full.
        smoothness: (h, w, c), its first channel; roughness is 1 - smoothness.

    Returns:
        (h, w, 3), of the size of the largest.
    """
    if roughness is None and smoothness is not None:
        roughness = 255 - smoothness
    given = [image for image in (metallic, roughness) if image is not None]
    height, width = (max(image.shape[axis] for image in given) for axis in (0, 1)) if given else (1, 1)
    result = np.full((height, width, 3), 255, np.uint8)
    for channel, image in ((2, metallic), (1, roughness)):
        if image is not None:
            result[..., channel] = resized(image[..., 0], height, width)
    return result


def resized(image: ArrayU8, height: int, width: int) -> ArrayU8:
    """Return an image at another size, (height, width, ...), by nearest pixels, so that data are not blended."""
    rows = np.arange(height) * image.shape[0] // height
    columns = np.arange(width) * image.shape[1] // width
    return image[rows[:, None], columns]


def looks_like_normals(pixels: ArrayU8) -> bool:
    """Tell whether an image is a tangent-space normal map and not a height map: mostly blue, and not grey."""
    if pixels.shape[2] < 3:
        return False
    sample = pixels[:: max(1, len(pixels) // 64), :: max(1, pixels.shape[1] // 64), :3].reshape(-1, 3).astype(float)
    mean = sample.mean(0)
    return bool(mean[2] > 150 and mean[2] > mean[0] + 30 and mean[2] > mean[1] + 30)


def read_maps(
    paths: Mapping[str, str | Path], *, height_scale: float = 0.02, limits: FileLimits = DEFAULT_LIMITS
) -> tuple[Material, dict[str, Texture]]:
    """Return the material of an object whose maps are image files of their own.

    Args:
        paths: File of each map by name, any of `MAP_NAMES`.
        height_scale: What the height map spans [m].
        limits: Of each file.

    Returns:
        The material, and its textures by name.

    Raises:
        AssetError: A file is missing, damaged or too large.
        UnknownNameError: A map has a name that is none of `MAP_NAMES`.
    """
    for name in paths:
        if name not in MAP_NAMES:
            raise unknown_name("map", name, MAP_NAMES)
    read: dict[str, ArrayU8] = {}
    for name, path in paths.items():
        source = ModelSource(path, limits)
        read[name] = TextureImages(source).pixels(name, lambda source=source: source.data, source.path.name)  # type: ignore[misc]
    textures: dict[str, Texture] = {}
    prefix = Path(next(iter(paths.values()))).stem if paths else ""

    def texture(name: str, pixels: ArrayU8 | None, srgb: bool) -> str:
        if pixels is None:
            return ""
        textures[f"{prefix}_{name}"] = Texture(pixels, srgb)
        return f"{prefix}_{name}"

    packed = None
    if read.keys() & {"metallic", "roughness", "smoothness"}:
        packed = pack_metallic_roughness(read.get("metallic"), read.get("roughness"), read.get("smoothness"))
    rough = "roughness" in read or "smoothness" in read
    return Material(
        base_color=(1.0, 1.0, 1.0, 1.0) if "base_color" in read else Material.base_color,
        metallic=1.0 if "metallic" in read else 0.0,
        roughness=1.0 if rough else Material.roughness,
        emissive=(1.0, 1.0, 1.0) if "emissive" in read else (0.0, 0.0, 0.0),
        base_color_map=texture("base_color", read.get("base_color"), True),
        metallic_roughness_map=texture("metallic_roughness", packed, False),
        normal_map=texture("normal", read.get("normal"), False),
        occlusion_map=texture("occlusion", read.get("occlusion"), False),
        emissive_map=texture("emissive", read.get("emissive"), True),
        height_map=texture("height", read.get("height"), False),
        height_scale=height_scale if "height" in read else 0.0,
        detail_map=texture("detail", read.get("detail"), True),
    ), textures
