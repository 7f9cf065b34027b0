"""Images inside and beside model files: PNG, JPEG and WebP, decoded only after their size is known to fit."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Hashable, Iterable
from typing import TYPE_CHECKING, Literal

import numpy as np

from airworthy.core.arrays import ArrayAny, ArrayF32, ArrayU8
from airworthy.core.errors import AssetError
from airworthy.core.files import image_kind, sha256
from airworthy.scenes.formats._source import ModelSource, clean_name, unique_name
from airworthy.scenes.record import Material, Texture

if TYPE_CHECKING:
    from PIL import Image

Wrap = Literal["repeat", "clamp", "mirror"]
MAPS = ("base_color_map", "metallic_roughness_map", "normal_map", "occlusion_map", "emissive_map", "height_map", "detail_map")
_BAND = 128
_SMALLEST = 64  # an image is not halved below this many pixels a side


def srgb_to_linear(values: ArrayAny) -> ArrayF32:
    """Return the linear light of sRGB-encoded values in [0, 1] (IEC 61966-2-1); values outside are clipped, NaN becomes 1."""
    encoded = np.nan_to_num(values, nan=1.0).clip(0.0, 1.0).astype(np.float32)
    return np.where(encoded <= 0.04045, encoded / 12.92, ((encoded + 0.055) / 1.055) ** 2.4).astype(np.float32)


def linear_to_srgb(values: ArrayAny) -> ArrayF32:
    """Return the inverse of `srgb_to_linear`."""
    linear = np.asarray(values, np.float32).clip(0.0, 1.0)
    return np.where(linear <= 0.0031308, linear * 12.92, 1.055 * linear ** (1 / 2.4) - 0.055).astype(np.float32)


def decode(source: ModelSource, data: bytes, name: str) -> ArrayU8:
    """Return pixels of an image, (height, width, 1, 3 or 4); at half, quarter, ... size where it would take too much memory.

    Args:
        source: The model file, whose limits apply.
        data: The image file.
        name: What to call it in messages.

    Raises:
        AssetError: It is not an image of ours, damaged, or too large.
    """
    from PIL import Image

    kind = image_kind(data)
    if not kind:
        source.refuse(f"its image {name} is neither PNG nor JPEG nor WebP")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with Image.open(io.BytesIO(data), formats=[kind]) as image:
                return _decode(source, image, name)
    except AssetError:
        raise
    except Exception as error:  # Pillow raises whatever its many decoders raise, struct.error and SyntaxError among them
        raise AssetError(f"{str(source.path)!r} cannot be used: its image {name} is damaged.") from error


def _decode(source: ModelSource, image: Image.Image, name: str) -> ArrayU8:
    source.at_most(image.width * image.height, source.limits.texture_pixels, f"pixels in the image {name}")
    full = image.size
    simple = image.mode in ("L", "RGB", "RGBA", "I;16", "I;16B", "I")
    each = (4 if simple else 8) + 4  # Pillow's own copy, a converted one, and ours
    if image.format == "JPEG":  # the only one that can be decoded at a fraction of its size
        fractions = [f for f in (1, 2, 4, 8) if image.width * image.height * each <= f * f * source.room] or [8]
        if fractions[0] > 1:
            image.draft(None, (max(image.width // fractions[0], 1), max(image.height // fractions[0], 1)))
    transient = image.width * image.height * (each - 4)
    source.take(transient, f"the image {name}")
    image.load()
    image = _usable(image)
    channels = {"RGB": 3, "RGBA": 4}.get(image.mode, 1)
    factor = 1
    while _size(image, factor, channels) > source.room and min(image.size) // factor > _SMALLEST:
        factor *= 2
    source.take(_size(image, factor, channels), f"the image {name}")
    pixels = _array(image, channels, factor)
    source.give_back(transient)
    if pixels.shape[1] != full[0]:
        size = f"{pixels.shape[1]} x {pixels.shape[0]} instead of {full[0]} x {full[1]}"
        source.warn(f"image {name} read at {size} to save memory (raise memory_bytes of the limits)")
    return pixels


def _size(image: Image.Image, factor: int, channels: int) -> int:
    return -(-image.width // factor) * -(-image.height // factor) * channels


def _usable(image: Image.Image) -> Image.Image:
    if image.mode in ("L", "RGB", "RGBA"):
        return image
    if image.mode in ("I;16", "I;16B", "I"):
        return image if image.mode == "I;16" else image.convert("I;16")
    transparent = image.mode in ("LA", "PA", "La", "RGBa") or "transparency" in image.info
    return image.convert("L" if image.mode == "1" else "RGBA" if transparent else "RGB")


def _array(image: Image.Image, channels: int, factor: int) -> ArrayU8:
    """Copy of the pixels at a fraction of the size, a band at a time: all at once would take three times the memory."""
    width, height = -(-image.width // factor), -(-image.height // factor)
    result = np.empty((height, width, channels), np.uint8)
    rows = max(_BAND // factor, 1)
    for top in range(0, height, rows):
        bottom = min(top + rows, height)
        piece = image.crop((0, top * factor, image.width, min(bottom * factor, image.height)))
        if piece.mode == "I;16":
            band = (np.asarray(piece)[::factor, ::factor] >> 8).astype(np.uint8)
        else:
            band = np.asarray(piece.reduce(factor) if factor > 1 else piece)
        result[top:bottom] = band.reshape(bottom - top, width, channels)
    if channels == 4 and (result[..., 3] == 255).all():
        result = np.ascontiguousarray(result[..., :3])
    return result


def _without_name(reason: str, name: str) -> str:
    """Return a reason of `decode` as it reads behind the image's name, which it would say a second time."""
    for said, short in ((f" in the image {name}", ""), (f"its image {name}", "it"), (f"the image {name}", "it")):
        reason = reason.replace(said, short)
    return reason


class TextureImages:
    """Textures of a model: each image is decoded once, and becomes one texture per way of using it."""

    def __init__(self, source: ModelSource) -> None:
        self.source = source
        self._pixels: dict[Hashable, ArrayU8] = {}
        self._decoded: dict[str, ArrayU8] = {}
        self._names: dict[Hashable, str] = {}
        self._textures: dict[str, Texture] = {}
        self._lost: set[Hashable] = set()

    def pixels_if_sound(self, key: Hashable, load: Callable[[], bytes], name: str) -> ArrayU8 | None:
        """Return pixels of an image; None, with a warning, where it cannot be used: it costs the model no more than this image.

        Args:
            key: Of the image within the model.
            load: Returns the bytes of its file.
            name: For messages.
        """
        if key in self._lost:
            return None
        try:
            return self.pixels(key, load, name)
        except AssetError as error:
            self._lost.add(key)
            name = clean_name(name, "image")
            reason = _without_name(str(error).partition("cannot be used: ")[2] or str(error), name)
            self.source.warn(f"image {name} left out: {reason.rstrip('.')}")
            return None

    def pixels(self, key: Hashable, load: Callable[[], bytes], name: str) -> ArrayU8:
        """Return pixels of an image that is loaded at first use.

        Args:
            key: Of the image within the model.
            load: Returns the bytes of its file.
            name: For messages.
        """
        if key not in self._pixels:
            self.source.at_most(len(self._pixels) + len(self._lost) + 1, self.source.limits.images, "images")
            data = load()
            content = sha256(data)  # the same image under another number or name is not decoded again
            if content not in self._decoded:
                self._decoded[content] = decode(self.source, data, clean_name(name, "image"))
            self._pixels[key] = self._decoded[content]
        return self._pixels[key]

    def texture(self, key: Hashable, pixels: ArrayU8, name: str, srgb: bool, wrap: Wrap = "repeat") -> str:
        """Return the name of the texture of these pixels used in this way.

        Args:
            key: Of the pixels within the model.
            pixels: (h, w, channels).
            name: That is wished for; another is found where it is taken.
            srgb: Whether the values are sRGB-encoded.
            wrap: What lies outside the image.
        """
        whole = (key, srgb, wrap)
        if whole not in self._names:
            name = unique_name(self._textures, clean_name(name, "image"))
            self._names[whole] = name
            self._textures[name] = Texture(pixels, srgb, wrap)
        return self._names[whole]

    def used_by(self, materials: Iterable[Material]) -> dict[str, Texture]:
        """Return the textures that these materials name."""
        used = {getattr(material, which) for material in materials for which in MAPS}
        return {name: texture for name, texture in self._textures.items() if name in used}
