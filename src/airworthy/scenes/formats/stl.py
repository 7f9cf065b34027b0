"""Reading STL, text and binary."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np

from airworthy.core.arrays import ArrayF32, NDArray
from airworthy.scenes.formats import _parts
from airworthy.scenes.formats._source import ModelSource, clean_name
from airworthy.scenes.formats._text import Lines, blocks, columns
from airworthy.scenes.formats.model import DEFAULT_LIMITS, FileLimits, Model
from airworthy.scenes.record import Instance

_HEADER = 84
_FACET = np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("attribute", "<u2")])


def read_stl(path: str | Path, limits: FileLimits = DEFAULT_LIMITS) -> Model:
    """Return the model of an STL file: one mesh, equal corners merged; stored normals and colours are passed over.

    A file is binary if its length fits its count of triangles, also where it begins with the word "solid".

    Raises:
        AssetError: The file is damaged or too large.
    """
    source = ModelSource(path, limits)
    corners = _binary(source) if _is_binary(source.data) else _text(source)
    if not len(corners):
        source.refuse("it holds no triangle")
    vertices, faces = _merged(source, corners)
    raw = _parts.clean(source, _parts.RawMesh(vertices, faces))
    if not len(raw.faces):
        source.refuse("it holds no triangle with an area")
    shape = clean_name(source.path.stem, "mesh")
    return Model({shape: _parts.finish(source, raw)}, instances=(Instance(shape, name=shape),), warnings=source.warnings)


def _is_binary(data: bytes) -> bool:
    # Length before words: many programs begin binary files with "solid", too.
    if len(data) >= _HEADER and len(data) == _HEADER + 50 * _declared(data):
        return True
    return not data[:512].lstrip().lower().startswith(b"solid") or b"\0" in data[:512]


def _declared(data: bytes) -> int:
    return int(struct.unpack_from("<I", data, 80)[0])


def _binary(source: ModelSource) -> ArrayF32:
    data = source.data
    if len(data) < _HEADER:
        source.refuse(f"it has {len(data)} bytes, and an STL file has {_HEADER} or more")
    count = _declared(data)
    if len(data) < _HEADER + 50 * count:
        source.refuse(f"it promises {count:,} triangles and has bytes for {(len(data) - _HEADER) // 50:,}")
    if len(data) > _HEADER + 50 * count:
        source.warn("bytes after the last triangle passed over")
    source.at_most(count, source.limits.faces, "triangles")
    source.take(36 * count, "its triangles")
    return np.frombuffer(data, _FACET, count, _HEADER)["corners"].reshape(-1, 3).copy()


def _text(source: ModelSource) -> ArrayF32:
    found = []
    count = 0
    for block in blocks(source, source.data):
        lines = Lines(block.lower())
        mark = lines.begin_with(b"vertex")
        if not mark.any():
            continue
        table, _ = columns(source, lines.rest(mark, 6), 3, "its vertex lines")
        count += len(table)
        source.at_most(count, 3 * source.limits.faces, "vertex lines")
        source.take(12 * len(table), "its vertex lines")
        with np.errstate(over="ignore"):
            found.append(table[:, :3].astype(np.float32))
    if count % 3:
        source.refuse(f"it has {count:,} vertex lines, which is not three per triangle")
    return np.concatenate(found) if found else np.zeros((0, 3), np.float32)


def _merged(source: ModelSource, corners: ArrayF32) -> tuple[ArrayF32, NDArray[np.int32]]:
    """Equal corners as one vertex, numbered in the order in which they first come."""
    size = 72 * len(corners)
    source.take(size, "its vertices")
    with np.errstate(invalid="ignore"):
        plain = np.ascontiguousarray(corners + np.float32(0.0))  # -0 becomes 0
    # Twelve bytes as one value: bits decide what is equal, and one column is sorted instead of three.
    rows = plain.view(np.dtype((np.void, 12))).reshape(-1)
    _, first, number = np.unique(rows, return_index=True, return_inverse=True)
    order = np.argsort(first, kind="stable")
    rank = np.empty(len(order), np.int32)
    rank[order] = np.arange(len(order), dtype=np.int32)
    source.give_back(size)
    source.take(12 * len(first) + 4 * len(corners), "its vertices")
    return corners[first[order]], rank[number].reshape(-1, 3)
