"""Materials of OBJ files: what their libraries say, as metallic-roughness surfaces, glass, mirrors and cut-outs."""

from __future__ import annotations

import dataclasses
import os
from functools import partial
from typing import Any

import numpy as np

from airworthy.core.arrays import ArrayU8
from airworthy.scenes.formats._images import TextureImages
from airworthy.scenes.formats._source import ModelSource
from airworthy.scenes.formats.gltf.materials import metallic_of
from airworthy.scenes.formats.obj.maps import looks_like_normals, pack_metallic_roughness, resized
from airworthy.scenes.formats.obj.mtl import MapUse, MtlEntry, read_entries, tell_unread
from airworthy.scenes.record import Material

__all__ = ["BUMP_HEIGHT", "MASK_CUTOFF", "read_libraries"]

BUMP_HEIGHT = 0.01
"""That a height map of unit strength is taken to span [m]; the format has no length for it."""
MASK_CUTOFF = 0.5
"""Opacity below which a cut-out has a hole; the format names none, this is glTF's."""
# Illumination models of the format: those of glass or refraction, those with mirrors and nothing see-through.
_GLASS_MODELS, _MIRROR_MODELS = (4, 6, 7, 9), (3, 5, 8)
_UNREAD_MODELS = {0: "illum 0", 10: "illum 10"}
"""Colours that no light changes, and shadows on what is not seen."""
_LUMINANCE = (0.2126, 0.7152, 0.0722)
_CHANNELS = {"r": 0, "g": 1, "b": 2}


def read_libraries(source: ModelSource, images: TextureImages, names: list[str], used: list[str]) -> dict[str, Material]:
    """Return materials by name, of those that are used and that a library has; what is missing or not read is warned of.

    Args:
        source: The OBJ file; libraries lie beside it.
        images: Textures that materials share.
        names: Of the libraries, as the file has them.
        used: Names of the materials of its faces.
    """
    entries = read_entries(source, names)
    entries = {name: entries[name] for name in dict.fromkeys(used) if name in entries}
    if replaced := sum(entry.replaces for entry in entries.values()):
        source.warn("materials that a library defines more than once: the last definition counts", replaced)
    materials = {name: _material(source, images, entry) for name, entry in entries.items()}
    tell_unread(source, entries)
    return materials


def _clamped(value: float, low: float = 0.0, high: float = 1.0) -> float:
    return min(max(value, low), high)


def _color(entry: MtlEntry, keyword: str, default: float, high: float = 1.0) -> tuple[float, float, float]:
    red, green, blue = (_clamped(value, 0.0, high) for value in entry.numbers.get(keyword, (default,) * 3))
    return red, green, blue


def _material(source: ModelSource, images: TextureImages, entry: MtlEntry) -> Material:
    """Surface of an entry. Shininess becomes roughness as for Blinn-Phong: alpha^2 = 2 / (Ns + 2), roughness = sqrt(alpha)."""
    if (unlike := _UNREAD_MODELS.get(int(_clamped(entry.number("illum", 2.0), 0.0, 100.0)))) is not None:
        entry.unread[unlike] = None
    roughness = Material.roughness
    if "ns" in entry.numbers:
        roughness = (2.0 / (_clamped(entry.number("ns", 0.0), 0.0, 1e6) + 2.0)) ** 0.25
    material = Material(
        base_color=(*_color(entry, "kd", 0.8), 1.0),
        roughness=_clamped(entry.number("pr", roughness)),
        metallic=_clamped(entry.number("pm", 0.0)),
        emissive=_color(entry, "ke", 0.0, 1e6),
    )
    material = dataclasses.replace(material, **_mirror(entry, material.base_color))
    material = dataclasses.replace(material, **_maps(source, images, entry, material))
    return dataclasses.replace(material, **_see_through(source, entry, material))


# ---- Mirrors, glass and cut-outs --------------------------------------------------------------------------------------------


def _mirror(entry: MtlEntry, color: tuple[float, float, float, float]) -> dict[str, Any]:
    """Fields of a surface that mirrors by its illumination model, and says nothing of metal: `Ks` is what it sends back."""
    if entry.number("illum", 2.0) not in _MIRROR_MODELS or "pm" in entry.numbers or "metallic" in entry.maps:
        return {}
    if "ks" not in entry.numbers:
        entry.unread[f"illum {entry.number('illum', 0.0):.0f} without Ks"] = None
        return {}
    base, metallic = metallic_of(np.array(color[:3]), np.array(_color(entry, "ks", 0.0)))
    # The mirrored ray of these models is sharp; where there is a shininess or roughness, it says how sharp.
    changes: dict[str, Any] = {} if {"ns", "pr"} & entry.numbers.keys() else {"roughness": 0.0}
    if metallic > 0.0:
        changes |= {"base_color": (*(float(value) for value in base), color[3]), "metallic": float(metallic)}
    return changes


def _see_through(source: ModelSource, entry: MtlEntry, material: Material) -> dict[str, Any]:
    """Fields of a surface that is see-through: a pane of glass, or holes where it is less than half opaque.

    `d` is the share that is opaque, `Tr` what it lacks of 1. By a mask (`map_d`) a surface is a cut-out, whatever they say; an
    even one is glass where its illumination model or its index of refraction says so.
    """
    opacity = _clamped(entry.number("d", 1.0 - _clamped(entry.number("tr", 0.0))))
    masked = material.alpha_cutoff > 0.0
    red, green, blue, _ = material.base_color
    if masked:
        # Below one half it would make a hole of everything; some exporters write 0 where a mask says all.
        if opacity < 1.0:
            entry.unread[f"{'d' if 'd' in entry.numbers else 'Tr'} beside map_d"] = None
        return {"base_color": (red, green, blue, 1.0)}
    if opacity == 1.0:
        if set(entry.numbers.get("tf", ())) - {0.0, 1.0}:
            entry.unread["Tf without d"] = None
        return {}
    index = entry.number("ni", 0.0)
    if entry.number("illum", 2.0) not in _GLASS_MODELS and not index > 1.0:
        source.warn("materials that are see-through become holes where they are less than half opaque")
        return {"base_color": (red, green, blue, opacity), "alpha_cutoff": MASK_CUTOFF}
    return {
        "base_color": (*_tint(entry, opacity), 1.0),
        "transmission": 1.0 - opacity,
        "ior": _clamped(index, 1.0, 4.0) if "ni" in entry.numbers else Material.ior,
    }


def _tint(entry: MtlEntry, opacity: float) -> tuple[float, float, float]:
    """Colour of glass: its filter; without one, the hue of what is behind it and itself blended, which other programs show."""
    color = _color(entry, "tf", 0.0)
    if max(color) > 0.0:
        return color
    blend = [1.0 - opacity + opacity * value for value in _color(entry, "kd", 0.8)]
    return (blend[0] / max(blend), blend[1] / max(blend), blend[2] / max(blend))


def _cut(source: ModelSource, images: TextureImages, base: MapUse | None, mask: MapUse) -> dict[str, Any]:
    """Return fields of a cut-out: a base colour map with the mask as its alpha, and where holes begin; none without a mask."""
    found = _pixels(source, images, mask)
    paint = _pixels(source, images, base)
    if found is None:
        return {}
    if base and base.file == mask.file and not mask.channel:
        # Exporters name the image of the colours here, also where it is opaque.
        return {"alpha_cutoff": MASK_CUTOFF} if found.shape[2] == 4 else {}
    alpha = _channel(found, mask.channel or ("m" if found.shape[2] == 4 else "l"))
    height, width = (int(max(alpha.shape[axis], 1 if paint is None else paint.shape[axis])) for axis in (0, 1))
    source.take(8 * height * width, f"its mask {_file_name(mask)}")
    pixels = np.full((height, width, 4), 255, np.uint8)
    if paint is not None:
        pixels[..., :3] = resized(paint[..., : min(paint.shape[2], 3)], height, width)
    pixels[..., 3] = resized(alpha, height, width)
    key = ("cut", "" if base is None or paint is None else base.file, mask.file, mask.channel)
    name = _file_name(base if base and paint is not None else mask)
    return {"base_color_map": images.texture(key, pixels, f"{name} cut", True), "alpha_cutoff": MASK_CUTOFF}


def _channel(pixels: ArrayU8, channel: str) -> ArrayU8:
    """One channel of an image, (h, w): r, g, b, m (alpha, white without one), else its luminance."""
    if channel == "m":
        return pixels[..., 3] if pixels.shape[2] == 4 else np.full(pixels.shape[:2], 255, np.uint8)
    if pixels.shape[2] == 1:
        return pixels[..., 0]
    if channel in _CHANNELS:
        return pixels[..., _CHANNELS[channel]]
    grey: ArrayU8 = (pixels[..., :3] @ np.array(_LUMINANCE, np.float32)).round().astype(np.uint8)
    return grey


# ---- Maps -------------------------------------------------------------------------------------------------------------------


def _maps(source: ModelSource, images: TextureImages, entry: MtlEntry, material: Material) -> dict[str, Any]:
    """Fields of the material that name textures."""
    base, occlusion = entry.maps.get("base"), entry.maps.get("occlusion")
    if occlusion and base and occlusion.file == base.file:
        occlusion = None  # exporters repeat the diffuse image as the ambient one
    changes: dict[str, Any] = {}
    for field, use, srgb in (
        ("base_color_map", base, True),
        ("emissive_map", entry.maps.get("emissive"), True),
        ("occlusion_map", occlusion, False),
        ("detail_map", entry.maps.get("detail"), True),
    ):
        changes[field] = _texture(source, images, use, srgb)
    if changes["emissive_map"] and material.emissive == (0.0, 0.0, 0.0):
        changes["emissive"] = (1.0, 1.0, 1.0)
    changes |= _relief(source, images, entry) | _packed(source, images, entry)
    return changes | (_cut(source, images, base, entry.maps["mask"]) if "mask" in entry.maps else {})


def _relief(source: ModelSource, images: TextureImages, entry: MtlEntry) -> dict[str, Any]:
    normal, height, bump = (entry.maps.get(use) for use in ("normal", "height", "bump"))
    if bump and not normal and (pixels := _pixels(source, images, bump)) is not None:
        # By the letter a bump map is a height map; most exporters put a normal map there.
        normal, height = (bump, height) if looks_like_normals(pixels) else (None, height or bump)
    changes: dict[str, Any] = {}
    if normal:
        changes["normal_map"] = _texture(source, images, normal, False)
        changes["normal_scale"] = _clamped(normal.strength, 0.0, 100.0)
    if height:
        changes["height_map"] = _texture(source, images, height, False)
        changes["height_scale"] = BUMP_HEIGHT * _clamped(height.strength, 0.0, 100.0)
    return changes


def _packed(source: ModelSource, images: TextureImages, entry: MtlEntry) -> dict[str, Any]:
    uses: dict[str, MapUse] = {use: entry.maps[use] for use in ("metallic", "roughness", "smoothness") if use in entry.maps}
    given: dict[str, ArrayU8] = {}
    for use, named in uses.items():
        if (pixels := _pixels(source, images, named)) is not None:
            # A grey image, or the channel that it says, of one where several lie packed.
            given[use] = _channel(pixels, named.channel)[..., None] if named.channel else pixels
    if not given:
        return {}
    key = ("packed", *((uses[use].file, uses[use].channel) for use in given))
    largest = max(pixels.shape[0] for pixels in given.values()) * max(pixels.shape[1] for pixels in given.values())
    source.take(3 * largest, "its roughness map")
    pixels = pack_metallic_roughness(given.get("metallic"), given.get("roughness"), given.get("smoothness"))
    name = images.texture(key, pixels, f"{uses[next(iter(given))].file} packed", False)
    changes: dict[str, Any] = {"metallic_roughness_map": name}
    if "metallic" in given and "pm" not in entry.numbers:
        changes["metallic"] = 1.0
    if ("roughness" in given or "smoothness" in given) and "pr" not in entry.numbers:
        changes["roughness"] = 1.0
    return changes


def _file_name(use: MapUse) -> str:
    return use.file.replace("\\", "/").rpartition("/")[2]


def _pixels(source: ModelSource, images: TextureImages, use: MapUse | None) -> ArrayU8 | None:
    """Pixels of a map; None where there is none, or it cannot be used, which is a warning."""
    if not use:
        return None
    return images.pixels_if_sound(use.file, partial(_bytes, source, use.file), _file_name(use))


def _bytes(source: ModelSource, name: str) -> bytes:
    path = source.inside(name, escaped=False)
    if not os.path.exists(path):
        source.refuse("it is missing")
    return source.reference(name, escaped=False)


def _texture(source: ModelSource, images: TextureImages, use: MapUse | None, srgb: bool) -> str:
    pixels = _pixels(source, images, use)
    if pixels is None or use is None:
        return ""
    return images.texture(use.file, pixels, _file_name(use), srgb)
