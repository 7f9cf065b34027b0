"""Reading Wavefront OBJ: vertices, faces of any number of corners, materials."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from airworthy.core.arrays import ArrayBool, ArrayF32, ArrayInt, NDArray
from airworthy.scenes.formats import _parts
from airworthy.scenes.formats._images import TextureImages, srgb_to_linear
from airworthy.scenes.formats._source import ModelSource, clean_name
from airworthy.scenes.formats._text import BOM, Lines, blocks, columns, integers, token_starts, tokens_per_line
from airworthy.scenes.formats.meshes.polygons import cut_concave, fans
from airworthy.scenes.formats.model import DEFAULT_LIMITS, FileLimits, Model
from airworthy.scenes.formats.obj.materials import read_libraries
from airworthy.scenes.record import Instance, Material

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
    data = source.data.removeprefix(BOM)
    if b"\\\n" in data or b"\\\r\n" in data:
        data = data.replace(b"\\\r\n", b"   ").replace(b"\\\n", b"  ")
    for block in blocks(source, data):
        reader.block(Lines(block))
    raw, names = reader.mesh()
    raw = _parts.clean(source, raw)
    if not len(raw.faces):
        source.refuse("it holds no triangle")
    images = TextureImages(source)
    known = read_libraries(source, images, reader.libraries, names)
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
        self._sizes: list[NDArray[np.int32]] = []  # corners of each face
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
        self.source.take(28 * total + 4 * len(counts), "its faces")
        self._sizes.append(counts.astype(np.int32))
        self._triangles.append(fans(counts) + np.int32(self._corner_count))
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
        points, cut = np.concatenate(self._vertices), _joined(self._triangles)
        self._vertices.clear()
        cut_concave(self.source, cut, _joined(self._sizes), points, corners["v"])
        take, vertex_of_corner = _combine(self.source, corners, self._counts)
        triangles = vertex_of_corner.astype(np.int32)[cut]
        raw = _parts.RawMesh(points[take["v"]], triangles)
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
