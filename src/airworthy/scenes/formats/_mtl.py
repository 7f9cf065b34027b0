"""Materials of OBJ files (MTL, with the physically based additions that exporters write)."""

from __future__ import annotations

import dataclasses
import math
import os
from functools import partial
from typing import Any

from airworthy.core.untrusted import shown
from airworthy.scenes.formats._images import Images, Pixels
from airworthy.scenes.formats._source import Source, clean_name
from airworthy.scenes.formats.maps import looks_like_normals, pack_metallic_roughness
from airworthy.scenes.record import Material

_MTL_BYTES = 2 * 1024 * 1024
_OPTION_ARGUMENTS = {"-bm": 1, "-blendu": 1, "-blendv": 1, "-boost": 1, "-cc": 1, "-clamp": 1, "-imfchan": 1, "-texres": 1}
_OPTION_ARGUMENTS |= {"-type": 1, "-mm": 2}
_VECTOR_OPTIONS = {"-o", "-s", "-t"}  # one to three numbers
_BUMP_HEIGHT = 0.01  # [m] that a height map of unit strength is taken to span; the format has no length for it
_NUMBERS = {"kd": 3, "ke": 3, "ns": 1, "d": 1, "pr": 1, "pm": 1}
_MAPS = {
    "map_kd": "base",
    "map_ke": "emissive",
    "map_bump": "bump",
    "bump": "bump",
    "norm": "normal",
    "map_norm": "normal",
    "disp": "height",
    "map_disp": "height",
    "map_pr": "roughness",
    "map_pm": "metallic",
    "map_smoothness": "smoothness",
    "map_ka": "occlusion",
    "map_ao": "occlusion",
    "map_detail": "detail",
}
Entry = dict[str, Any]


def read_libraries(source: Source, images: Images, names: list[str]) -> dict[str, Material]:
    """Materials of all libraries that an OBJ file names; a missing library or image is warned of."""
    materials: dict[str, Material] = {}
    for name in dict.fromkeys(names):
        path = source.inside(name, escaped=False)
        if not os.path.exists(path):
            source.warn(f"material library {shown(name)} is missing")
            continue
        data = source.reference(name, escaped=False)
        if len(data) > _MTL_BYTES:
            source.refuse(f"its library {shown(name)} has {len(data):,} bytes, and at most {_MTL_BYTES:,} are accepted")
        for key, entry in _parse(source, data).items():
            if key not in materials:
                source.at_most(len(materials) + 1, source.limits.materials, "materials")
                materials[key] = _material(source, images, entry)
    return materials


def _parse(source: Source, data: bytes) -> dict[str, Entry]:
    """Entries by name: numbers as tuples, maps as (file name, strength)."""
    entries: dict[str, Entry] = {}
    entry: Entry = {}
    for line in data.decode("utf-8", "replace").splitlines():
        key, _, rest = line.strip().partition(" ")
        key, rest = key.lower().rstrip("\t"), rest.strip()
        if key == "newmtl":
            entry = entries.setdefault(clean_name(rest, "default"), {})
        elif key in _NUMBERS:
            values = _floats(rest.split()[: _NUMBERS[key]])
            if len(values) == 1 and _NUMBERS[key] == 3:
                values = values * 3  # the format lets one number stand for all three
            if len(values) == _NUMBERS[key]:
                entry[key] = values
            else:
                source.warn(f"material line {shown(line.strip())} not understood")
        elif key in _MAPS and rest:
            name, strength = _map(rest)
            if name:
                entry[_MAPS[key]] = (name, strength)
    return entries


def _floats(words: list[str]) -> tuple[float, ...]:
    try:
        values = tuple(float(word) for word in words)
    except ValueError:
        return ()
    return values if all(math.isfinite(value) for value in values) else ()


def _map(text: str) -> tuple[str, float]:
    """File name behind the options of a map, which may hold blanks, and the strength (-bm)."""
    strength = 1.0
    words = text.split(" ")
    while words and (words[0].lower() in _OPTION_ARGUMENTS or words[0].lower() in _VECTOR_OPTIONS):
        option = words.pop(0).lower()
        if option in _VECTOR_OPTIONS:
            taken = 0
            while words and taken < 3 and _floats(words[:1]):
                words.pop(0)
                taken += 1
            continue
        arguments, words = words[: _OPTION_ARGUMENTS[option]], words[_OPTION_ARGUMENTS[option] :]
        if option == "-bm":
            strength = (_floats(arguments) or (1.0,))[0]
    return " ".join(words).strip(), strength


def _clamped(value: float, low: float = 0.0, high: float = 1.0) -> float:
    return min(max(value, low), high)


def _material(source: Source, images: Images, entry: Entry) -> Material:
    """Surface of an entry. Shininess becomes roughness as for Blinn-Phong: alpha^2 = 2 / (Ns + 2), roughness = sqrt(alpha)."""
    red, green, blue = (_clamped(value) for value in entry.get("kd", (0.8, 0.8, 0.8)))
    alpha = _clamped(entry.get("d", (1.0,))[0])
    roughness = (2.0 / (_clamped(entry["ns"][0], 0.0, 1e6) + 2.0)) ** 0.25 if "ns" in entry else Material.roughness
    emissive = [_clamped(value, 0.0, 1e6) for value in entry.get("ke", (0.0, 0.0, 0.0))]
    material = Material(
        base_color=(red, green, blue, alpha),
        roughness=_clamped(entry["pr"][0]) if "pr" in entry else roughness,
        metallic=_clamped(entry["pm"][0]) if "pm" in entry else 0.0,
        emissive=(emissive[0], emissive[1], emissive[2]),
    )
    return dataclasses.replace(material, **_maps(source, images, entry, material))


def _maps(source: Source, images: Images, entry: Entry, material: Material) -> dict[str, Any]:
    """Fields of the material that name textures."""
    base, occlusion = entry.get("base"), entry.get("occlusion")
    if occlusion and base and occlusion[0] == base[0]:
        occlusion = None  # exporters repeat the diffuse image as the ambient one
    changes: dict[str, Any] = {}
    for field, use, srgb in (
        ("base_color_map", base, True),
        ("emissive_map", entry.get("emissive"), True),
        ("occlusion_map", occlusion, False),
        ("detail_map", entry.get("detail"), True),
    ):
        changes[field] = _texture(source, images, use, srgb)
    if changes["emissive_map"] and material.emissive == (0.0, 0.0, 0.0):
        changes["emissive"] = (1.0, 1.0, 1.0)
    return changes | _relief(source, images, entry) | _packed(source, images, entry)


def _relief(source: Source, images: Images, entry: Entry) -> dict[str, Any]:
    normal, height, bump = (entry.get(use) for use in ("normal", "height", "bump"))
    if bump and not normal and (pixels := _pixels(source, images, bump)) is not None:
        # By the letter a bump map is a height map; most exporters put a normal map there.
        normal, height = (bump, height) if looks_like_normals(pixels) else (None, height or bump)
    changes: dict[str, Any] = {}
    if normal:
        changes["normal_map"] = _texture(source, images, normal, False)
        changes["normal_scale"] = _clamped(normal[1], 0.0, 100.0)
    if height:
        changes["height_map"] = _texture(source, images, height, False)
        changes["height_scale"] = _BUMP_HEIGHT * _clamped(height[1], 0.0, 100.0)
    return changes


def _packed(source: Source, images: Images, entry: Entry) -> dict[str, Any]:
    found = {use: _pixels(source, images, entry.get(use)) for use in ("metallic", "roughness", "smoothness")}
    given = {use: pixels for use, pixels in found.items() if pixels is not None}
    if not given:
        return {}
    key = ("packed", *(entry[use][0] for use in given))
    largest = max(pixels.shape[0] for pixels in given.values()) * max(pixels.shape[1] for pixels in given.values())
    source.take(3 * largest, "its roughness map")
    pixels = pack_metallic_roughness(given.get("metallic"), given.get("roughness"), given.get("smoothness"))
    name = images.texture(key, pixels, f"{entry[next(iter(given))][0]} packed", False)
    changes: dict[str, Any] = {"metallic_roughness_map": name}
    if "metallic" in given and "pm" not in entry:
        changes["metallic"] = 1.0
    if ("roughness" in given or "smoothness" in given) and "pr" not in entry:
        changes["roughness"] = 1.0
    return changes


def _pixels(source: Source, images: Images, use: tuple[str, float] | None) -> Pixels | None:
    """Pixels of a map, None where there is none or its file is missing."""
    if not use:
        return None
    path = source.inside(use[0], escaped=False)
    if not os.path.exists(path):
        source.warn(f"image {shown(use[0])} is missing")
        return None
    return images.pixels(str(path), partial(source.reference, use[0], escaped=False), path.name)


def _texture(source: Source, images: Images, use: tuple[str, float] | None, srgb: bool) -> str:
    pixels = _pixels(source, images, use)
    if pixels is None or use is None:
        return ""
    path = source.inside(use[0], escaped=False)
    return images.texture(str(path), pixels, path.name, srgb)
