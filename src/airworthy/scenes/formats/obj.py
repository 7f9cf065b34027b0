"""Reading Wavefront OBJ: vertices, faces of any number of corners, materials."""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from airworthy.core.arrays import ArrayBool, ArrayF32, ArrayInt, ArrayU8, NDArray
from airworthy.core.errors import unknown_name
from airworthy.core.files import shown
from airworthy.scenes.formats import _parts
from airworthy.scenes.formats._images import TextureImages, srgb_to_linear
from airworthy.scenes.formats._source import ModelSource, clean_name
from airworthy.scenes.formats._text import Lines, blocks, columns, integers, token_starts, tokens_per_line
from airworthy.scenes.formats.model import DEFAULT_LIMITS, FileLimits, Model
from airworthy.scenes.record import Instance, Material, Texture

# ---- Materials of OBJ files (MTL, with the physically based additions that exporters write) ---------------------------------

# -----------------------------------------------------------------------------------------------------------------------------
# Maps of scanned objects put together to a material: also those that other engines keep in files of their own.

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
            result[..., channel] = _resized(image[..., 0], height, width)
    return result


def _resized(image: ArrayU8, height: int, width: int) -> ArrayU8:
    """Nearest pixels, so that data are not blended."""
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


# -----------------------------------------------------------------------------------------------------------------------------

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


def read_libraries(source: ModelSource, images: TextureImages, names: list[str]) -> dict[str, Material]:
    """Return materials of all libraries that an OBJ file names; a missing library or image is warned of.

    Args:
        source: The OBJ file; libraries lie beside it.
        images: Textures that materials share.
        names: Of the libraries, as the file has them.
    """
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


def _parse(source: ModelSource, data: bytes) -> dict[str, Entry]:
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


def _floats(tokens: list[str]) -> tuple[float, ...]:
    try:
        values = tuple(float(token) for token in tokens)
    except ValueError:
        return ()
    return values if all(math.isfinite(value) for value in values) else ()


def _map(text: str) -> tuple[str, float]:
    """File name behind the options of a map, which may hold blanks, and the strength (-bm)."""
    strength = 1.0
    tokens = text.split(" ")
    while tokens and (tokens[0].lower() in _OPTION_ARGUMENTS or tokens[0].lower() in _VECTOR_OPTIONS):
        option = tokens.pop(0).lower()
        if option in _VECTOR_OPTIONS:
            taken = 0
            while tokens and taken < 3 and _floats(tokens[:1]):
                tokens.pop(0)
                taken += 1
            continue
        arguments, tokens = tokens[: _OPTION_ARGUMENTS[option]], tokens[_OPTION_ARGUMENTS[option] :]
        if option == "-bm":
            strength = (_floats(arguments) or (1.0,))[0]
    return " ".join(tokens).strip(), strength


def _clamped(value: float, low: float = 0.0, high: float = 1.0) -> float:
    return min(max(value, low), high)


def _material(source: ModelSource, images: TextureImages, entry: Entry) -> Material:
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


def _maps(source: ModelSource, images: TextureImages, entry: Entry, material: Material) -> dict[str, Any]:
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


def _relief(source: ModelSource, images: TextureImages, entry: Entry) -> dict[str, Any]:
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


def _packed(source: ModelSource, images: TextureImages, entry: Entry) -> dict[str, Any]:
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


def _pixels(source: ModelSource, images: TextureImages, use: tuple[str, float] | None) -> ArrayU8 | None:
    """Pixels of a map; None where there is none, or it cannot be used, which is a warning."""
    if not use:
        return None
    return images.pixels_if_sound(use[0], partial(_bytes, source, use[0]), use[0].replace("\\", "/").rpartition("/")[2])


def _bytes(source: ModelSource, name: str) -> bytes:
    path = source.inside(name, escaped=False)
    if not os.path.exists(path):
        source.refuse("it is missing")
    return source.reference(name, escaped=False)


def _texture(source: ModelSource, images: TextureImages, use: tuple[str, float] | None, srgb: bool) -> str:
    pixels = _pixels(source, images, use)
    if pixels is None or use is None:
        return ""
    return images.texture(use[0], pixels, use[0].replace("\\", "/").rpartition("/")[2], srgb)


# -----------------------------------------------------------------------------------------------------------------------------

Corners = NDArray[np.int32]


def read_obj(path: str | Path, limits: FileLimits = DEFAULT_LIMITS) -> Model:
    """Return the model of an OBJ file as one mesh, materials of its MTL files included.

    Colours behind the vertices are taken as sRGB. Groups, smoothing, lines, points and curves are passed over. Coordinates are
    taken as they are: a file made y up lies on its back.

    Raises:
        AssetError: The file is damaged, too large, or refers to files outside its folder.
    """
    source = ModelSource(path, limits)
    reader = _Reader(source)
    data = source.data
    if b"\\\n" in data or b"\\\r\n" in data:
        data = data.replace(b"\\\r\n", b"   ").replace(b"\\\n", b"  ")
    for block in blocks(source, data):
        reader.block(Lines(block))
    raw, names = reader.mesh()
    raw = _parts.clean(source, raw)
    if not len(raw.faces):
        source.refuse("it holds no triangle")
    images = TextureImages(source)
    known = read_libraries(source, images, reader.libraries)
    materials = {}
    for name in names:
        if name and name not in known:
            source.warn(f"material {name} is not defined; the default is used")
        materials[name or "default"] = known.get(name, Material())
    shape = clean_name(source.path.stem, "mesh")
    mesh = _parts.finish(source, raw)
    # A file may have faces before its first usemtl and a material named "default": two numbers, one name.
    instance = Instance(shape, materials=tuple(name or "default" for name in names), name=shape)
    return Model({shape: mesh}, materials, images.used_by(materials.values()), (instance,), warnings=source.warnings)


class _Reader:
    """Collects a file block by block."""

    def __init__(self, source: ModelSource) -> None:
        self.source = source
        self.libraries: list[str] = []
        self._counts = {"v": 0, "vt": 0, "vn": 0}
        self._vertices: list[ArrayF32] = []
        self._colors: list[ArrayF32] = []
        self._uv: list[ArrayF32] = []
        self._normals: list[ArrayF32] = []
        self._corners: dict[str, list[Corners]] = {"v": [], "vt": [], "vn": []}
        self._triangles: list[Corners] = []
        self._face_lines: list[NDArray[np.int32]] = []  # of each triangle, its line's number among the faces
        self._corner_count = 0
        self._face_count = 0
        self._triangle_count = 0
        self._uses: list[tuple[int, int]] = []  # (number of the first face line, material number)
        self._materials: dict[str, int] = {}

    def block(self, lines: Lines) -> None:
        """Take in whole lines."""
        marks = {key: lines.begin_with(key.encode()) for key in ("v", "vt", "vn", "f")}
        self._names(lines, marks["f"])
        before = dict(self._counts)
        for key, store, width, least in (
            ("v", self._vertices, 3, 3),
            ("vt", self._uv, 2, 1),
            ("vn", self._normals, 3, 3),
        ):
            if marks[key].any():
                self._values(lines, marks[key], key, store, width, least)
        if marks["f"].any():
            defined = {key: before[key] + np.cumsum(marks[key])[marks["f"]] for key in ("v", "vt", "vn")}
            self._faces(lines.rest(marks["f"], 1), defined)

    def _values(self, lines: Lines, mark: ArrayBool, key: str, store: list[ArrayF32], width: int, least: int) -> None:
        table, counts = columns(self.source, lines.rest(mark, len(key)), least, f"its {key} lines")
        self._counts[key] += len(table)
        self.source.at_most(self._counts[key], self.source.limits.vertices, f"{key} lines")
        self.source.take(len(table) * 4 * (6 if key == "v" else width), f"its {key} lines")
        with np.errstate(over="ignore"):
            store.append(table[:, :width].astype(np.float32))
            if key == "v":
                colored = (counts >= 6)[:, None]
                colors = np.where(colored, table[:, 3:6], 1.0) if colored.any() else np.ones((len(table), 3), np.float32)
                self._colors.append(colors.astype(np.float32))
        if key == "vt":
            store[-1][counts == 1, 1] = 0.0

    def _names(self, lines: Lines, faces: ArrayBool) -> None:
        limit = self.source.limits
        for line in np.flatnonzero(lines.begin_with(b"mtllib")):
            self.libraries.append(lines.text(int(line))[7:].strip())
            self.source.at_most(len(self.libraries), limit.images, "material libraries")
        uses = np.flatnonzero(lines.begin_with(b"usemtl"))
        if len(uses):
            before = np.cumsum(faces)[uses] + self._face_count
            for line, first in zip(uses, before, strict=True):
                name = clean_name(lines.text(int(line))[7:], "default")
                number = self._materials.setdefault(name, len(self._materials))
                self._uses.append((int(first), number))
            self.source.at_most(len(self._materials), limit.materials, "materials")
            self.source.take(100 * len(uses), "its usemtl lines")

    def _faces(self, text: bytes, defined: dict[str, ArrayInt]) -> None:
        # "1//3" and "1/2/" have an empty place; 0 is no index in this format and stands for it.
        text = text.replace(b"//", b"/0/").replace(b"/ ", b"/0 ").replace(b"/\n", b"/0\n")
        counts = tokens_per_line(text)
        characters = np.frombuffer(text, np.uint8)
        slashes = np.add.reduceat(characters == ord("/"), np.flatnonzero(token_starts(characters)), dtype=np.int64)
        if len(slashes) and slashes.max() > 2:
            self.source.refuse("a corner of a face has more than three indices")
        values = integers(self.source, text.replace(b"/", b" "), "its faces")
        if len(values) != len(slashes) + slashes.sum():
            self.source.refuse("a corner of a face holds something that is not an index")
        first = np.cumsum(slashes + 1) - slashes - 1
        self.source.take(12 * len(first), "its faces")
        for slot, key in enumerate(("v", "vt", "vn")):
            self._corners[key].append(self._corner(key, values, first + slot, slashes >= slot, np.repeat(defined[key], counts)))
        self._fans(counts)

    def _corner(self, key: str, values: ArrayInt, at: ArrayInt, there: ArrayBool, defined: ArrayInt) -> Corners:
        """Index of each corner counted from 0, -1 where it has none; negative ones count back from the line."""
        index = np.zeros(len(at), np.int64)
        index[there] = values[at[there]]
        if key == "v" and (index == 0).any():
            self.source.refuse("a face uses vertex 0, and vertices are counted from 1")
        if (index < -defined).any() or (index > self.source.limits.vertices).any():
            self.source.refuse(f"a face uses a {key} that does not exist")
        return np.where(index < 0, index + defined, index - 1).astype(np.int32)

    def _fans(self, counts: ArrayInt) -> None:
        if (counts < 3).any():
            self.source.warn("faces of fewer than three corners dropped", int((counts < 3).sum()))
        pieces = np.maximum(counts - 2, 0)
        total = int(pieces.sum())
        self._triangle_count += total
        self.source.at_most(self._triangle_count, self.source.limits.faces, "triangles")
        self.source.take(28 * total, "its faces")
        first = np.repeat(np.cumsum(counts) - counts, pieces) + self._corner_count
        step = np.arange(total) - np.repeat(np.cumsum(pieces) - pieces, pieces)
        self._triangles.append(np.stack([first, first + step + 1, first + step + 2], 1).astype(np.int32))
        self._face_lines.append(np.repeat(np.arange(len(counts)) + self._face_count, pieces).astype(np.int32))
        self._face_count += len(counts)
        self._corner_count += int(counts.sum())

    def mesh(self) -> tuple[_parts.RawMesh, list[str]]:
        """Everything read as one mesh, and the names of its materials, "" for faces before the first usemtl."""
        if not self._triangles or not self._vertices:
            self.source.refuse("it holds no triangle")
        corners = {key: _joined(self._corners[key]) for key in ("v", "vt", "vn")}
        for key, index in corners.items():
            if len(index) and index.max() >= self._counts[key]:
                self.source.refuse(f"a face uses {key} {index.max() + 1} of {self._counts[key]}")
        take, vertex_of_corner = _combine(self.source, corners, self._counts)
        triangles = vertex_of_corner.astype(np.int32)[_joined(self._triangles)]
        raw = _parts.RawMesh(np.concatenate(self._vertices)[take["v"]], triangles)
        raw.normals = _gather(self._normals, take["vn"], 3)
        raw.uv = _gather(self._uv, take["vt"], 2)
        if raw.uv is not None:
            raw.uv[:, 1] = 1.0 - raw.uv[:, 1]  # OBJ counts v from the bottom of the image
        if any((block != 1.0).any() for block in self._colors):
            rgb = srgb_to_linear(np.concatenate(self._colors)[take["v"]])
            raw.colors = np.concatenate([rgb, np.ones((len(rgb), 1), np.float32)], 1)
        names = self._materials_of(raw)
        return raw, names

    def _materials_of(self, raw: _parts.RawMesh) -> list[str]:
        names = list(self._materials)
        if not names:
            return []
        starts, numbers = np.array([(-1, -1), *self._uses]).T
        number = numbers[np.searchsorted(starts, np.concatenate(self._face_lines), "right") - 1]
        present, number = np.unique(number, return_inverse=True)
        if len(present) > 1:
            raw.face_material = number.astype(np.int32)
        return ["" if index < 0 else names[index] for index in present]


def _joined(blocks_: list[Corners]) -> Corners:
    """Return one array of many; the many are let go."""
    whole = np.concatenate(blocks_)
    blocks_.clear()
    return whole


def _gather(blocks_: list[ArrayF32], index: Corners, width: int) -> ArrayF32 | None:
    """Rows by number, zeros for -1; None where no number is given at all."""
    if not len(index) or index.max() < 0:
        return None
    result = np.concatenate(blocks_)[np.maximum(index, 0)]
    result[index < 0] = 0.0
    return result.reshape(-1, width)


def _combine(
    source: ModelSource, corners: dict[str, Corners], counts: dict[str, int]
) -> tuple[dict[str, Corners], NDArray[np.integer]]:
    """Make one vertex of each combination of indices that occurs.

    Returns:
        Per vertex its v, vt and vn; and per corner its vertex.
    """
    v, vt, vn = corners["v"], corners["vt"], corners["vn"]
    plain = np.arange(counts["v"], dtype=np.int32)
    others = {key: index for key, index in (("vt", vt), ("vn", vn)) if index.max(initial=-1) >= 0}
    # The usual export: all indices of a corner are the same, or only one is given.
    if all(counts[key] == counts["v"] and np.array_equal(index, v) for key, index in others.items()):
        none = np.full(len(plain), -1, np.int32)
        return {key: plain if key == "v" or key in others else none for key in ("v", "vt", "vn")}, v
    source.take(56 * len(v), "its combinations of vertices, texture coordinates and normals")
    pair, first, of_corner = np.unique(v * np.int64(counts["vt"] + 1) + vt + 1, return_index=True, return_inverse=True)
    if vn.max(initial=-1) >= 0:
        key = of_corner * np.int64(counts["vn"] + 1) + vn + 1
        pair, first, of_corner = np.unique(key, return_index=True, return_inverse=True)
    source.give_back(56 * len(v))
    source.take(44 * len(pair), "its vertices")
    return {"v": v[first], "vt": vt[first], "vn": vn[first]}, of_corner
