"""Materials and textures of glTF files."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from airworthy.scenes.formats._fields import Fields
from airworthy.scenes.formats._gltf_file import GltfFile
from airworthy.scenes.formats._images import Images, Wrap
from airworthy.scenes.formats._source import clean_name, unique_name
from airworthy.scenes.record import Material

_WRAPS: dict[int, Wrap] = {10497: "repeat", 33071: "clamp", 33648: "mirror"}
_BRIGHTEST = 1e6
OWN_EXTRAS = "airworthy"
"""Key of `extras` under which the writer keeps what glTF has no place for."""


@dataclass(frozen=True)
class Placing:
    """How a material lays its textures: which coordinates, and their transformation (KHR_texture_transform)."""

    set: int = 0
    offset: tuple[float, float] = (0.0, 0.0)
    rotation: float = 0.0
    scale: tuple[float, float] = (1.0, 1.0)

    def apply(self, uv: NDArray[np.float32]) -> NDArray[np.float32]:
        """Coordinates moved: scaled, turned, shifted."""
        if (self.offset, self.rotation, self.scale) == ((0.0, 0.0), 0.0, (1.0, 1.0)):
            return uv
        cosine, sine = math.cos(self.rotation), math.sin(self.rotation)
        turn = np.array([[cosine, sine], [-sine, cosine]])
        with np.errstate(over="ignore", invalid="ignore"):
            return ((uv.astype(np.float64) * self.scale) @ turn.T + self.offset).astype(np.float32)


class Materials:
    """The materials of a file, read when a mesh first uses them."""

    def __init__(self, file: GltfFile, images: Images) -> None:
        self._file = file
        self._images = images
        self.by_name: dict[str, Material] = {}
        self._read: dict[int, tuple[str, Placing]] = {}
        file.source.at_most(file.count("materials"), file.source.limits.materials, "materials")

    def default(self) -> str:
        """Name of the material of primitives that have none."""
        self.by_name.setdefault("default", Material())
        return "default"

    def use(self, index: int) -> tuple[str, Placing]:
        """Name of a material, and how its textures lie."""
        if index not in self._read:
            fields = self._file.entry("materials", index)
            name = unique_name(self.by_name, clean_name(fields.text("name", ""), f"material_{index}"))
            reader = _Reader(self._file, self._images, fields)
            self.by_name[name] = reader.material()
            self._read[index] = (name, reader.placing or Placing())
        return self._read[index]


class _Reader:
    """One material."""

    def __init__(self, file: GltfFile, images: Images, fields: Fields) -> None:
        self._file = file
        self._images = images
        self._fields = fields
        self.placing: Placing | None = None

    def material(self) -> Material:
        fields = self._fields
        surface = fields.object("pbrMetallicRoughness")
        red, green, blue, alpha = (_unit(value) for value in surface.numbers("baseColorFactor", 4, (1.0, 1.0, 1.0, 1.0)))
        strength = 1.0
        if (emission := fields.extension("KHR_materials_emissive_strength")) is not None:
            strength = emission.number("emissiveStrength", 1.0)
        emissive = [_unit(v * strength, _BRIGHTEST) for v in fields.numbers("emissiveFactor", 3, (0.0, 0.0, 0.0))]
        normal = fields.object("normalTexture")
        if fields.object("occlusionTexture").number("strength", 1.0) != 1.0:
            fields.source.warn("strength of occlusion maps passed over")
        return Material(
            base_color=(red, green, blue, alpha),
            metallic=_unit(surface.number("metallicFactor", 1.0)),
            roughness=_unit(surface.number("roughnessFactor", 1.0)),
            emissive=(emissive[0], emissive[1], emissive[2]),
            base_color_map=self._map(surface, "baseColorTexture", True),
            metallic_roughness_map=self._map(surface, "metallicRoughnessTexture", False),
            normal_map=self._map(fields, "normalTexture", False),
            normal_scale=max(-100.0, _unit(normal.number("scale", 1.0), 100.0)),
            occlusion_map=self._map(fields, "occlusionTexture", False),
            emissive_map=self._map(fields, "emissiveTexture", True),
            double_sided=fields.flag("doubleSided"),
            alpha_cutoff=self._cutoff(),
            **self._own(),
        )

    def _cutoff(self) -> float:
        mode = self._fields.text("alphaMode", "OPAQUE")
        if mode == "BLEND":
            self._fields.source.warn("materials that are see-through become holes where they are less than half opaque")
            return 0.5
        return _unit(self._fields.number("alphaCutoff", 0.5)) if mode == "MASK" else 0.0

    def _own(self) -> dict[str, Any]:
        """What our writer keeps in `extras`."""
        extras = self._fields.value.get("extras")
        if not isinstance(extras, dict) or not isinstance(extras.get(OWN_EXTRAS), dict):
            return {}
        own = Fields(self._fields.source, extras[OWN_EXTRAS], f"extras of {self._fields.where}")
        return {
            "height_map": self._map(own, "heightTexture", False),
            "height_scale": _unit(own.number("heightScale", 0.0), 100.0),
            "detail_map": self._map(own, "detailTexture", True),
            "detail_repeat": _unit(own.number("detailRepeat", 8.0), 1e6),
            "texture_size": _unit(own.number("textureSize", 0.0), 1e6),
        }

    def _map(self, fields: Fields, key: str, srgb: bool) -> str:
        """Name of the texture of one map, "" where there is none."""
        if key not in fields:
            return ""
        info = fields.object(key)
        texture = self._file.entry("textures", info.integer("index"))
        image = _image(texture)
        if image is None:
            info.source.warn("textures without an image of a known format left out")
            return ""
        self._lay(info)
        wrap = self._wrap(texture)
        name = self._image_name(image)
        pixels = self._images.pixels(image, lambda: self._image_bytes(image), name)
        return self._images.texture(image, pixels, name, srgb, wrap)

    def _lay(self, info: Fields) -> None:
        placing = Placing(info.integer("texCoord", 0, 0, 8))
        if (moved := info.extension("KHR_texture_transform")) is not None:
            offset, scale = moved.numbers("offset", 2, (0.0, 0.0)), moved.numbers("scale", 2, (1.0, 1.0))
            turn = moved.number("rotation", 0.0)
            placing = Placing(moved.integer("texCoord", placing.set, 0, 8), (offset[0], offset[1]), turn, (scale[0], scale[1]))
        if self.placing is None:
            self.placing = placing
        elif self.placing != placing:
            info.source.warn("maps of one material that lie differently are laid as its first")

    def _wrap(self, texture: Fields) -> Wrap:
        if "sampler" not in texture:
            return "repeat"
        sampler = self._file.entry("samplers", texture.integer("sampler"))
        both = sampler.integer("wrapS", 10497), sampler.integer("wrapT", 10497)
        if both[0] != both[1]:
            texture.source.warn("textures that repeat in one direction only are taken to do so in both")
        return _WRAPS.get(both[0], "repeat")

    def _image_name(self, index: int) -> str:
        fields = self._file.entry("images", index)
        uri = fields.text("uri", "")
        stem = "" if uri.startswith("data:") else uri.rpartition("/")[2]
        return clean_name(fields.text("name", "") or stem, f"image_{index}")

    def _image_bytes(self, index: int) -> bytes:
        fields = self._file.entry("images", index)
        if "uri" in fields:
            return self._file.uri(fields.text("uri"))
        return bytes(self._file.view(fields.integer("bufferView")))


def _image(texture: Fields) -> int | None:
    """Number of the image: the WebP one where there is one, else the plain one."""
    webp = texture.extension("EXT_texture_webp")
    for fields in (webp, texture):
        if fields is not None and "source" in fields:
            return fields.integer("source")
    return None


def _unit(value: float, high: float = 1.0) -> float:
    """Within 0 and a limit."""
    return min(max(value, 0.0), high)
