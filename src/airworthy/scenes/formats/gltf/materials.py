"""Materials and textures of glTF files."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from airworthy.core.arrays import ArrayAny, ArrayF32, ArrayInt, ArrayU8
from airworthy.scenes.formats._images import TextureImages, Wrap, linear_to_srgb, srgb_to_linear
from airworthy.scenes.formats._source import JsonFields, clean_name, unique_name
from airworthy.scenes.formats.gltf.file import GltfFile
from airworthy.scenes.formats.gltf.glass import glass_fields, leaf_fields
from airworthy.scenes.record import Material

_WRAPS: dict[int, Wrap] = {10497: "repeat", 33071: "clamp", 33648: "mirror"}
_BRIGHTEST = 1e6
_BAND = 64
_UNLIT = "KHR_materials_unlit"
OWN_EXTRAS = "airworthy"
"""Key of `extras` under which the writer keeps what glTF has no place for."""


@dataclass(frozen=True)
class Placing:
    """How a material lays its textures: which coordinates, and their transformation (KHR_texture_transform)."""

    set: int = 0
    offset: tuple[float, float] = (0.0, 0.0)
    rotation: float = 0.0
    scale: tuple[float, float] = (1.0, 1.0)

    def apply(self, uv: ArrayF32) -> ArrayF32:
        """Return coordinates moved: scaled, turned, shifted."""
        if (self.offset, self.rotation, self.scale) == ((0.0, 0.0), 0.0, (1.0, 1.0)):
            return uv
        cosine, sine = math.cos(self.rotation), math.sin(self.rotation)
        # The extension's rotation, with v growing downwards.
        turn = np.array([[cosine, sine], [-sine, cosine]])
        with np.errstate(over="ignore", invalid="ignore"):
            return ((uv.astype(np.float64) * self.scale) @ turn.T + self.offset).astype(np.float32)


class Materials:
    """The materials of a file, read when a mesh first uses them."""

    def __init__(self, file: GltfFile, images: TextureImages) -> None:
        self._file = file
        self._images = images
        self.by_name: dict[str, Material] = {}
        self._read: dict[tuple[int, bool], tuple[str, Placing]] = {}
        file.source.at_most(file.count("materials"), file.source.limits.materials, "materials")

    def default(self) -> str:
        """Return the name of the material of primitives that have none."""
        self.by_name.setdefault("default", Material())
        return "default"

    def use(self, index: int, coloured: bool = False) -> tuple[str, Placing]:
        """Return the name of a material, and how its textures lie; `coloured` where it is that of a mesh with colours of its
        own."""
        # Two materials of one where it is unlit and some of its meshes have colours: what glows cannot take these on.
        key = (index, coloured and self._file.entry("materials", index).extension(_UNLIT) is not None)
        if key not in self._read:
            fields = self._file.entry("materials", index)
            name = unique_name(self.by_name, clean_name(fields.text("name", ""), f"material_{index}"))
            reader = _Reader(self._file, self._images, fields)
            self.by_name[name] = reader.material(lit=key[1])
            self._read[key] = (name, reader.placing or Placing())
        return self._read[key]


class _Reader:
    """One material."""

    def __init__(self, file: GltfFile, images: TextureImages, fields: JsonFields) -> None:
        self._file = file
        self._images = images
        self._fields = fields
        self.placing: Placing | None = None

    def material(self, lit: bool = False) -> Material:
        """Return the material; `lit` where it is unlit and cannot be, since what glows has no colours of the mesh's."""
        fields = self._fields
        glossy = fields.extension("KHR_materials_pbrSpecularGlossiness")
        made = self._metallic() if glossy is None else self._glossy(glossy)
        if lit:
            fields.source.warn("unlit materials of meshes with colours of their own are lit like others")
        return made if lit or fields.extension(_UNLIT) is None else _unlit(made)

    def _metallic(self) -> Material:
        surface = self._fields.object("pbrMetallicRoughness")
        red, green, blue, alpha = (_unit(value) for value in surface.numbers("baseColorFactor", 4, (1.0, 1.0, 1.0, 1.0)))
        return self._material(
            (red, green, blue, alpha),
            _unit(surface.number("metallicFactor", 1.0)),
            _unit(surface.number("roughnessFactor", 1.0)),
            self._map(surface, "baseColorTexture", True),
            self._map(surface, "metallicRoughnessTexture", False),
        )

    def _glossy(self, glossy: JsonFields) -> Material:
        """Diffuse and specular colour as base colour and metalness, glossiness as roughness; per pixel where there is a map."""
        red, green, blue, alpha = (_unit(value) for value in glossy.numbers("diffuseFactor", 4, (1.0, 1.0, 1.0, 1.0)))
        specular = np.array([_unit(value) for value in glossy.numbers("specularFactor", 3, (1.0, 1.0, 1.0))])
        gloss = _unit(glossy.number("glossinessFactor", 1.0))
        shine = self._pixels(glossy, "specularGlossinessTexture")
        if shine is None:
            if "specularGlossinessTexture" in glossy:  # it was lost: what is left says that all is mirrored
                specular = np.full(3, _DIELECTRIC)
            base, metallic = metallic_of(np.array([red, green, blue]), specular)
            # The map is multiplied in by the shader, unchanged: the base colour must not be darkened a second time.
            if "diffuseTexture" in glossy and metallic == 0.0:
                base = np.array([red, green, blue])
            color = (float(base[0]), float(base[1]), float(base[2]), alpha)
            return self._material(color, float(metallic), 1.0 - gloss, self._map(glossy, "diffuseTexture", True), "")
        image, name, pixels, wrap = shine
        diffuse = self._pixels(glossy, "diffuseTexture")
        source = self._fields.source
        size = pixels.shape[:2] if diffuse is None else tuple(np.maximum(pixels.shape[:2], diffuse[2].shape[:2]))
        source.take(7 * int(size[0]) * int(size[1]), f"the image {name}")
        made = glossy_maps(None if diffuse is None else diffuse[2], pixels, (red, green, blue), specular, gloss)
        key = (image, -1 if diffuse is None else diffuse[0], red, green, blue, *specular.tolist(), gloss)
        base_map, rough_map = (
            self._images.texture((kind, *key), made_of, f"{name} {kind}", kind == "base", wrap)
            for kind, made_of in zip(("base", "metallic roughness"), made, strict=True)
        )
        return self._material((1.0, 1.0, 1.0, alpha), 1.0, 1.0, base_map, rough_map)

    def _material(
        self, color: tuple[float, float, float, float], metallic: float, roughness: float, base_map: str, rough_map: str
    ) -> Material:
        fields = self._fields
        strength = 1.0
        if (emission := fields.extension("KHR_materials_emissive_strength")) is not None:
            strength = emission.number("emissiveStrength", 1.0)
        # A file may ask for any strength; beyond this radiance overflows in single precision.
        emissive = [_unit(v * strength, _BRIGHTEST) for v in fields.numbers("emissiveFactor", 3, (0.0, 0.0, 0.0))]
        normal = fields.object("normalTexture")
        if fields.object("occlusionTexture").number("strength", 1.0) != 1.0:
            fields.source.warn("strength of occlusion maps passed over")
        return Material(
            base_color=color,
            metallic=metallic,
            roughness=roughness,
            emissive=(emissive[0], emissive[1], emissive[2]),
            base_color_map=base_map,
            metallic_roughness_map=rough_map,
            normal_map=self._map(fields, "normalTexture", False),
            normal_scale=max(-100.0, _unit(normal.number("scale", 1.0), 100.0)),
            occlusion_map=self._map(fields, "occlusionTexture", False),
            emissive_map=self._map(fields, "emissiveTexture", True),
            double_sided=fields.flag("doubleSided"),
            alpha_cutoff=self._cutoff(),
            **{**glass_fields(fields), **leaf_fields(fields, color), **self._own()},
        )

    def _cutoff(self) -> float:
        mode = self._fields.text("alphaMode", "OPAQUE")
        if mode == "BLEND":
            self._fields.source.warn("materials that are see-through become holes where they are less than half opaque")
            return 0.5
        return _unit(self._fields.number("alphaCutoff", 0.5)) if mode == "MASK" else 0.0

    def _own(self) -> dict[str, Any]:
        """Return what our writer keeps in `extras`."""
        extras = self._fields.value.get("extras")
        if not isinstance(extras, dict) or not isinstance(extras.get(OWN_EXTRAS), dict):
            return {}
        own = JsonFields(self._fields.source, extras[OWN_EXTRAS], f"extras of {self._fields.where}")
        tint = own.numbers("translucentTint", 3, (1.0, 1.0, 1.0))
        return {
            **({"translucent_tint": tuple(_unit(value, 4.0) for value in tint)} if "translucentTint" in own else {}),
            "height_map": self._map(own, "heightTexture", False),
            "height_scale": _unit(own.number("heightScale", 0.0), 100.0),
            "detail_map": self._map(own, "detailTexture", True),
            "scattered": tuple(_unit(value) for value in own.numbers("scattered", 3, (0.0, 0.0, 0.0))),
            "wave_slope": _unit(own.number("waveSlope", 0.0), 0.5),
            "detail_repeat": _unit(own.number("detailRepeat", 8.0), 1e6),
            "texture_size": _unit(own.number("textureSize", 0.0), 1e6),
        }

    def _map(self, fields: JsonFields, key: str, srgb: bool) -> str:
        """Name of the texture of one map, "" where there is none that can be used."""
        found = self._image_of(fields, key)
        if found is None:
            return ""
        image, name, wrap = found
        pixels = self._images.pixels_if_sound(image, lambda: self._image_bytes(image), name)
        return "" if pixels is None else self._images.texture(image, pixels, name, srgb, wrap)

    def _pixels(self, fields: JsonFields, key: str) -> tuple[int, str, ArrayU8, Wrap] | None:
        """Return number, name, pixels and wrapping of one map, None where there is none that can be used."""
        found = self._image_of(fields, key)
        if found is None:
            return None
        image, name, wrap = found
        pixels = self._images.pixels_if_sound(image, lambda: self._image_bytes(image), name)
        return None if pixels is None else (image, name, pixels, wrap)

    def _image_of(self, fields: JsonFields, key: str) -> tuple[int, str, Wrap] | None:
        """Return number, name and wrapping of the image of one map, and how it lies noted; None where there is none."""
        if key not in fields:
            return None
        info = fields.object(key)
        texture = self._file.entry("textures", info.integer("index"))
        image = _image(texture)
        if image is None:
            info.source.warn("textures without an image of a known format left out")
            return None
        self._lay(info)
        return image, self._image_name(image), self._wrap(texture)

    def _lay(self, info: JsonFields) -> None:
        placing = Placing(info.integer("texCoord", 0, 0, 8))
        if (moved := info.extension("KHR_texture_transform")) is not None:
            offset, scale = moved.numbers("offset", 2, (0.0, 0.0)), moved.numbers("scale", 2, (1.0, 1.0))
            turn = moved.number("rotation", 0.0)
            placing = Placing(moved.integer("texCoord", placing.set, 0, 8), (offset[0], offset[1]), turn, (scale[0], scale[1]))
        if self.placing is None:
            self.placing = placing
        # One set of coordinates is kept for each mesh.
        elif self.placing != placing:
            info.source.warn("maps of one material that lie differently are laid as its first")

    def _wrap(self, texture: JsonFields) -> Wrap:
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


def _image(texture: JsonFields) -> int | None:
    """Return the number of the image: the WebP one where there is one, else the plain one."""
    webp = texture.extension("EXT_texture_webp")
    for fields in (webp, texture):
        if fields is not None and "source" in fields:
            return fields.integer("source")
    return None


_DIELECTRIC = 0.04
"""Share that a dielectric of index 1.5 reflects head-on (glTF 2.0, appendix B)."""


def metallic_of(diffuse: ArrayAny, specular: ArrayAny) -> tuple[ArrayAny, ArrayAny]:
    """Return the base colour (..., 3) and metalness (...) under which a surface has these diffuse and specular colours, linear.

    With metalness m and base colour b a surface has the diffuse colour b (1 - m) (1 - 0.04) / (1 - max specular) and the
    specular one 0.04 (1 - m) + b m; m solves the quadratic that follows for the brightness of b (appendix of
    KHR_materials_pbrSpecularGlossiness).
    """
    strongest = specular.max(-1)
    left = 1.0 - strongest
    # Perceived brightness, with the weights of the extension's own conversion.
    weights = np.array([0.299, 0.587, 0.114])
    bright, shiny = np.sqrt((diffuse**2) @ weights), np.sqrt((specular**2) @ weights)
    linear = bright * left / (1.0 - _DIELECTRIC) + shiny - 2.0 * _DIELECTRIC
    root = np.sqrt(np.maximum(linear**2 - 4.0 * _DIELECTRIC * (_DIELECTRIC - shiny), 0.0))
    metallic = np.where(shiny < _DIELECTRIC, 0.0, np.clip((root - linear) / (2.0 * _DIELECTRIC), 0.0, 1.0))
    m = metallic[..., None]
    from_diffuse = diffuse * left[..., None] / (1.0 - _DIELECTRIC) / np.maximum(1.0 - m, 1e-4)
    from_specular = (specular - _DIELECTRIC * (1.0 - m)) / np.maximum(m, 1e-4)
    # Both solutions are right where they are defined; each is taken where it divides by enough.
    share = m * m
    return np.clip(from_diffuse * (1.0 - share) + from_specular * share, 0.0, 1.0), metallic


def glossy_maps(
    diffuse: ArrayU8 | None, shine: ArrayU8, color: tuple[float, ...], specular: ArrayAny, gloss: float
) -> tuple[ArrayU8, ArrayU8]:
    """Return maps of base colour (sRGB, with the diffuse map's alpha) and of roughness and metalness, at the larger size.

    Args:
        diffuse: (h, w, c) sRGB; None: white.
        shine: (h, w, c): specular colour in sRGB, glossiness in alpha (full without one).
        color: Factor of the diffuse map, linear.
        specular: (3,) factor of the specular colour.
        gloss: Factor of the glossiness.
    """
    size = shine.shape[:2] if diffuse is None else np.maximum(shine.shape[:2], diffuse.shape[:2])
    height, width = int(size[0]), int(size[1])
    base, rough = np.empty((height, width, 4), np.uint8), np.empty((height, width, 3), np.uint8)
    for top in range(0, height, _BAND):  # a band at a time: the numbers between take 30 times an image's bytes
        rows = np.arange(top, min(top + _BAND, height))
        spot = _four(shine, rows, height, width)
        paint = np.full((len(rows), width, 4), 255, np.uint8) if diffuse is None else _four(diffuse, rows, height, width)
        tone, metallic = metallic_of(
            srgb_to_linear(paint[..., :3] / 255.0) * color, srgb_to_linear(spot[..., :3] / 255.0) * specular
        )
        base[rows, :, :3] = (linear_to_srgb(tone) * 255.0).round()
        base[rows, :, 3] = paint[..., 3]
        # Red is free in this map; white is what an occlusion map without occlusion holds.
        rough[rows, :, 0] = 255
        rough[rows, :, 1] = (255.0 - spot[..., 3] * gloss).round()
        rough[rows, :, 2] = (metallic * 255.0).round()
    return (np.ascontiguousarray(base[..., :3]) if (base[..., 3] == 255).all() else base), rough


def _four(image: ArrayU8, rows: ArrayInt, height: int, width: int) -> ArrayU8:
    """Rows of an image scaled to a size, nearest pixels, with four channels."""
    part = image[rows * image.shape[0] // height][:, np.arange(width) * image.shape[1] // width]
    if part.shape[2] == 1:
        part = np.repeat(part, 3, axis=2)
    return part if part.shape[2] == 4 else np.concatenate([part, np.full((*part.shape[:2], 1), 255, np.uint8)], axis=2)


def _unlit(material: Material) -> Material:
    """Return a surface that shows its base colour whatever the light: it glows with it, and reflects as little as a surface
    can.
    """
    red, green, blue, alpha = material.base_color
    return replace(
        material,
        base_color=(0.0, 0.0, 0.0, alpha),
        metallic=0.0,
        roughness=1.0,
        metallic_roughness_map="",
        normal_map="",
        occlusion_map="",
        emissive=(red, green, blue),
        emissive_map=material.base_color_map,
    )


def _unit(value: float, high: float = 1.0) -> float:
    """Within 0 and a limit."""
    return min(max(value, 0.0), high)
