"""Reading SOG version 2 (PlayCanvas): quantised gaussians in the pixels of lossless images, named by a meta.json.

Gaussian i is pixel i of every image, in rows from the top left. Positions: 16 bits per axis in two images, linear between mins
and maxs, then sign(v) (exp(|v|) - 1). Scales: bytes into a table of logarithms. Quaternions: three components of w, x, y, z in
red, green and blue, and 252 + the place of the largest in alpha. sh0: bytes into a table of first coefficients, opacity in
alpha. shN: a palette of harmonics, 64 entries to a row, whose bytes go into a table, and 16-bit labels into the palette.
"""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np

from airworthy.core.arrays import ArrayF32, ArrayInt, ArrayU8
from airworthy.core.errors import AirworthyError, AssetError
from airworthy.core.files import image_kind, parse_json, shown
from airworthy.scenes.formats._source import JsonFields, ModelSource, _number
from airworthy.scenes.formats.model import FileLimits
from airworthy.scenes.splats._ply import (
    SQRT_HALF,
    Decoded,
    Raw,
    exponential,
    from_smallest_three,
    joined,
    reserve,
    wxyz_to_xyzw,
)
from airworthy.scenes.splats.record import COEFFICIENTS

# ---- Where the images of a SOG come from: files beside its meta.json, or members of a zip archive ---------------------------

Fetch = Callable[[str], bytes]
"""Bytes of a file of the SOG, by the name that its meta.json gives."""
_MEMBERS_MAX = 256
_JSON_EXPANSION = 24


def siblings(source: ModelSource, folder: str = "") -> Fetch:
    """Return files in the folder of the source, or in one below it."""
    return lambda name: source.reference(f"{folder}/{name}" if folder else name, escaped=False)


def archive(source: ModelSource) -> tuple[bytes, Fetch]:
    """Return meta.json of a zip archive, and its other members; names are looked up in the archive, never on the disk."""
    if source.data.count(b"PK\x01\x02") > _MEMBERS_MAX:
        source.refuse(f"it is an archive of more than {_MEMBERS_MAX} files")
    try:
        file = zipfile.ZipFile(io.BytesIO(source.data))
        members = {info.filename: info for info in file.infolist()}
    except Exception as error:  # zipfile raises whatever its parts raise, struct.error and UnicodeDecodeError among them
        raise AssetError(f"{str(source.path)!r} cannot be used: its zip directory is damaged.") from error
    metas = [name for name in members if name.rpartition("/")[2] == "meta.json"]
    if len(metas) != 1:
        source.refuse(f"it is a zip archive of {len(metas)} files meta.json; a bundled SOG has one")
    prefix = metas[0][: -len("meta.json")]

    def fetch(name: str) -> bytes:
        info = members.get(prefix + name)
        if info is None:
            source.refuse(f"it refers to {shown(name)}, which is not in the archive")
        return _member(source, file, info)

    return fetch("meta.json"), fetch


def _member(source: ModelSource, file: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
    source.take(info.file_size, f"its member {shown(info.filename)}")
    try:
        with file.open(info) as member:
            data = member.read(info.file_size + 1)
    except Exception as error:  # as above; also RuntimeError of an encrypted member, zlib.error, NotImplementedError
        raise AssetError(f"{str(source.path)!r} cannot be used: its member {shown(info.filename)} is damaged.") from error
    if len(data) > info.file_size:
        source.refuse(f"its member {shown(info.filename)} is longer than its {info.file_size:,} bytes")
    return data


def read_fields(source: ModelSource, text: bytes, where: str) -> JsonFields:
    """Return the object of a JSON file.

    Args:
        source: Refuses, and counts memory.
        text: UTF-8, with or without its mark.
        where: Names the file in messages.
    """
    if len(text) > source.limits.json_bytes:
        source.refuse(f"{where} has {len(text):,} bytes, and at most {source.limits.json_bytes:,} are accepted")
    source.take(_JSON_EXPANSION * len(text), where)
    try:
        decoded = text.decode("utf-8-sig")
    except UnicodeDecodeError:
        source.refuse(f"{where} is not UTF-8 text")
    value = parse_json(decoded, str(source.path))
    source.give_back(_JSON_EXPANSION * len(text))
    return JsonFields(source, value, where)


def pixels(source: ModelSource, fetch: Fetch, name: str) -> ArrayU8:
    """Return (height, width, 4) of an image of numbers; the size is held against the limits before it is decoded.

    Args:
        source: Refuses, and counts memory.
        fetch: Returns the bytes of a file of the SOG.
        name: Of the image.
    """
    from PIL import Image

    data = fetch(name)
    kind = image_kind(data)
    if kind not in ("WEBP", "PNG"):
        source.refuse(f"its image {shown(name)} is neither WebP nor PNG")
    try:
        with Image.open(io.BytesIO(data), formats=[kind]) as image:
            source.at_most(image.width * image.height, source.limits.texture_pixels, f"pixels in {shown(name)}")
            source.take(3 * 4 * image.width * image.height, f"the image {shown(name)}")
            # Three copies while it is converted, of which one stays.
            result = np.array(image.convert("RGBA"))
            source.give_back(2 * 4 * image.width * image.height)
    except AssetError:
        raise
    except Exception as error:  # Pillow raises whatever its many decoders raise, struct.error and SyntaxError among them
        raise AssetError(f"{str(source.path)!r} cannot be used: its image {shown(name)} is damaged.") from error
    return result


# -----------------------------------------------------------------------------------------------------------------------------

_AXES = "right, up, back by its specification, but files turned from 3DGS have y down"
_PER_ROW = 64
_PALETTE_MAX = 1 << 16
_TAG = 252


def decode_sog(source: ModelSource) -> Decoded:
    """Return gaussians of a bundled SOG."""
    text, fetch = archive(source)
    return finished(*decode_images(source, read_fields(source, text, "its meta.json"), fetch), "bundled SOG version 2")


def decode_meta(source: ModelSource, meta: JsonFields) -> Decoded:
    """Return gaussians of a SOG whose meta.json was read."""
    return finished(*decode_images(source, meta, siblings(source)), "SOG version 2")


def finished(raw: Raw, antialiased: bool, container: str, levels: int = 1) -> Decoded:
    """Return a SOG's gaussians: those without a valid rotation have a zero one, and are dropped with the rest.

    Args:
        raw: As decoded.
        antialiased: Whether they were trained anti-aliased.
        container: What the file is, for people.
        levels: Levels of detail that the file holds.
    """
    return Decoded(raw, container, "-y", _AXES, antialiased, levels)


def decode_images(source: ModelSource, meta: JsonFields, fetch: Fetch) -> tuple[Raw, bool]:
    """Return gaussians of a meta.json and its images, and whether they were trained anti-aliased.

    Args:
        source: Refuses, and counts memory.
        meta: The meta.json.
        fetch: Returns the bytes of a file of the SOG.
    """
    if meta.integer("version", 0) != 2:
        source.refuse(f"{meta.where} is not of SOG version 2")
    count = meta.integer("count")
    source.at_most(count, source.limits.vertices, "gaussians")
    rest = meta.object("shN") if "shN" in meta else None
    fetch = _fetched(meta, fetch)
    bands = rest.integer("bands", 0, 0, len(COEFFICIENTS)) if rest is not None else 0
    reserve(source, count, bands)
    images = _Images(source, fetch, count)
    sh0 = meta.object("sh0")
    first = images.rgba(_file(sh0, 0))
    scales = meta.object("scales")
    harmonics = np.empty((count, COEFFICIENTS[bands], 3), np.float32)
    harmonics[:, 0] = _table(sh0)[first[:, :3]]
    if bands and rest is not None:
        harmonics[:, 1:] = _palette(source, rest, fetch, bands)[_labels(source, rest, images)]
    raw = Raw(
        _positions(meta.object("means"), images),
        _rotations(images.rgba(_file(meta.object("quats"), 0))),
        exponential(_table(scales))[images.rgba(_file(scales, 0))[:, :3]],
        first[:, 3].astype(np.float32) / np.float32(255),
        harmonics,
    )
    return raw, meta.flag("antialias")


def _fetched(meta: JsonFields, fetch: Fetch) -> Fetch:
    """Return all files that a meta.json names, read first: what a file may take in memory depends on how large it is in all."""
    parts = [meta.object(key) for key in ("means", "scales", "quats", "sh0", "shN") if key in meta]
    names = {_file(part, index) for part in parts for index in range(min(len(part.items("files")), 2))}
    held = {name: fetch(name) for name in sorted(names)}
    return lambda name: held[name]


class _Images:
    """The images that have a pixel per gaussian."""

    def __init__(self, source: ModelSource, fetch: Fetch, count: int) -> None:
        self.source, self.fetch, self.count = source, fetch, count

    def rgba(self, name: str) -> ArrayU8:
        """(n, 4)."""
        image = pixels(self.source, self.fetch, name)
        if image.shape[0] * image.shape[1] < self.count:
            self.source.refuse(f"its images have {image.shape[0] * image.shape[1]:,} pixels for {self.count:,} gaussians")
        # Counted when it was decoded; what is made of it is counted by itself.
        self.source.give_back(image.size)
        return image.reshape(-1, 4)[: self.count]


def _file(fields: JsonFields, index: int) -> str:
    names = fields.items("files")
    if len(names) <= index or not isinstance(names[index], str):
        fields.source.refuse(f"{fields.where} names no file {index}")
    return names[index]


def _table(fields: JsonFields) -> ArrayF32:
    """Table of 256 numbers; what a shorter one leaves out is not a number, so that whatever uses it is dropped."""
    items = fields.items("codebook")
    if not 0 < len(items) <= 256:
        fields.source.refuse(f"the codebook of {fields.where} has {len(items)} entries; 256 were expected")
    result = np.full(256, np.nan, np.float32)
    result[: len(items)] = np.array([_number(fields, "codebook", item) for item in items]).astype(np.float32)
    return result


def _positions(means: JsonFields, images: _Images) -> ArrayF32:
    low, high = (np.array(means.numbers(key, 3)) for key in ("mins", "maxs"))
    lower, upper = (images.rgba(_file(means, index))[:, :3] for index in (0, 1))
    # Two images hold 16 bits of each coordinate.
    part = (upper.astype(np.float32) * 256 + lower) / np.float32(65535)
    value = (low + part * (high - low)).astype(np.float32)
    # Coordinates are kept as logarithms: fine near the origin, coarse far away.
    return np.sign(value) * np.expm1(np.abs(value))


def _rotations(rgba: ArrayU8) -> ArrayF32:
    three = (rgba[:, :3].astype(np.float32) / np.float32(127.5) - 1) * SQRT_HALF
    # Which of the four was left out, being the largest; other tags are no rotation.
    largest = rgba[:, 3].astype(np.int64) - _TAG
    result = from_smallest_three(largest, three)
    return wxyz_to_xyzw(result)


def _palette(source: ModelSource, fields: JsonFields, fetch: Fetch, bands: int) -> ArrayF32:
    """(entries, k - 1, 3)."""
    count = fields.integer("count", _PALETTE_MAX, 0, _PALETTE_MAX + 1)
    width = COEFFICIENTS[bands] - 1
    image = pixels(source, fetch, _file(fields, 0))
    if image.shape[1] != _PER_ROW * width or image.shape[0] * _PER_ROW < count:
        source.refuse(f"its palette is {image.shape[1]} x {image.shape[0]} pixels, which does not fit {count:,} entries")
    entries = image.reshape(-1, width, 4)[:count, :, :3]
    source.take(4 * entries.size, "its palette")
    source.give_back(image.size)
    return _table(fields)[entries]


def _labels(source: ModelSource, fields: JsonFields, images: _Images) -> ArrayInt:
    rgba = images.rgba(_file(fields, 1))
    label = rgba[:, 0].astype(np.int64) | rgba[:, 1].astype(np.int64) << 8
    count = fields.integer("count", _PALETTE_MAX)
    if len(label) and label.max() >= count:
        source.refuse(f"a gaussian uses entry {label.max():,} of a palette of {count:,}")
    return label


# -----------------------------------------------------------------------------------------------------------------------------
# Reading streamed SOG: a lod-meta.json whose tree says which pieces of which SOG make up each level of detail.
#
# A folder of SOGs named <level>_<chunk>, without a lod-meta.json, is read in the same way: one level, all its chunks.

_LEVELS_MAX = 64
_CHUNK = re.compile(r"(\d{1,3})_(\d{1,6})")
_CHUNKS_MAX = 4096


def decode_streamed(source: ModelSource, meta: JsonFields, level: int, chunks: Sequence[int] | None) -> Decoded:
    """Return gaussians of one level of a lod-meta.json; chunks are leaves of its tree, in the order in which they stand there.

    Args:
        source: Refuses, and counts memory.
        meta: The lod-meta.json.
        level: 0 is the finest.
        chunks: Numbers of leaves; None: all, and the environment around them.
    """
    levels = meta.integer("lodLevels", None, 1, _LEVELS_MAX + 1)
    if meta.integer("version", 1) != 1:
        source.refuse("its lod-meta.json is not of version 1")
    if not 0 <= level < levels:
        raise AirworthyError(f"Level {level} of {str(source.path)!r} was asked for; it has the levels 0 to {levels - 1}.")
    names = meta.items("filenames")
    leaves = [leaf for leaf in _leaves(source, meta.object("tree")) if str(level) in leaf]
    wanted: dict[int, list[slice]] = {}
    for leaf in _chosen(source, leaves, chunks):
        piece = leaf.object(str(level))
        start = piece.integer("offset", 0)
        here = slice(start, start + piece.integer("count"))
        wanted.setdefault(piece.integer("file", None, 0, len(names)), []).append(here)
    parts, antialiased = [], False
    for number, pieces in wanted.items():
        raw, flag = _sog_streamed_file(source, names[number])
        parts.append(_pieces(source, raw, pieces))
        antialiased |= flag
    if meta.value.get("environment") is not None and chunks is None:
        parts.append(_sog_streamed_file(source, meta.text("environment"))[0])
    if not parts:
        source.refuse(f"it holds nothing at level {level}")
    return finished(joined(parts), antialiased, "streamed SOG", levels)


def _sog_streamed_file(source: ModelSource, name: object) -> tuple[Raw, bool]:
    """Return one SOG of the set, whole; and whether it was trained anti-aliased."""
    if not isinstance(name, str):
        source.refuse("its filenames are not all text")
    meta = read_fields(source, source.reference(name, escaped=False), shown(name))
    return decode_images(source, meta, siblings(source, name.rpartition("/")[0]))


def _pieces(source: ModelSource, raw: Raw, pieces: list[slice]) -> Raw:
    """Stretches of a SOG's gaussians; itself where they are all of it."""
    count = len(raw.position)
    if any(piece.stop > count for piece in pieces) or sum(piece.stop - piece.start for piece in pieces) > count:
        source.refuse(f"its tree asks for more than the {count:,} gaussians of a file")
    if pieces == [slice(0, count)]:
        return raw
    index = np.concatenate([np.arange(piece.start, piece.stop) for piece in pieces])
    return Raw(raw.position[index], raw.rotation[index], raw.scale[index], raw.opacity[index], raw.harmonics[index])


def _leaves(source: ModelSource, root: JsonFields) -> Iterator[JsonFields]:
    """Yield the nodes of the tree that hold gaussians, depth first."""
    waiting, visited = [root], 0
    while waiting:
        node = waiting.pop()
        visited += 1
        source.at_most(visited, source.limits.nodes, "nodes in its tree")
        if "lods" in node:
            yield node.object("lods")
        waiting += [JsonFields(source, child, "a node of its tree") for child in reversed(node.items("children"))]


def _chosen(source: ModelSource, leaves: list[JsonFields], chunks: Sequence[int] | None) -> list[JsonFields]:
    if chunks is None:
        return leaves
    for chunk in chunks:
        if not 0 <= chunk < len(leaves):
            raise AirworthyError(f"Chunk {chunk} of {str(source.path)!r} was asked for; it has {len(leaves)} at this level.")
    return [leaves[chunk] for chunk in chunks]


def chunk_folders(folder: Path, level: int, chunks: Sequence[int] | None) -> tuple[list[Path], int]:
    """Return the files meta.json of a level in a folder of SOGs named <level>_<chunk>, in order, and how many levels there
    are.

    Args:
        folder: Holds the SOGs' folders.
        level: Of detail.
        chunks: Numbers; None: all.
    """
    found: dict[int, dict[int, Path]] = {}
    for number, path in enumerate(folder.iterdir()):
        if number > _CHUNKS_MAX:
            raise AirworthyError(f"{str(folder)!r} has more than {_CHUNKS_MAX:,} entries; a folder of SOG chunks was expected.")
        if (match := _CHUNK.fullmatch(path.name)) and (path / "meta.json").is_file():
            found.setdefault(int(match[1]), {})[int(match[2])] = path / "meta.json"
    if not found:
        return [], 0
    if level not in found:
        known = ", ".join(str(number) for number in sorted(found))
        raise AirworthyError(f"Level {level} of {str(folder)!r} was asked for; it has {known}.")
    of_level = found[level]
    missing = [chunk for chunk in chunks or () if chunk not in of_level]
    if missing:
        known = ", ".join(str(number) for number in sorted(of_level))
        raise AirworthyError(f"Chunk {missing[0]} of {str(folder)!r} was asked for; level {level} has {known}.")
    return [of_level[chunk] for chunk in (sorted(of_level) if chunks is None else chunks)], len(found)


def decode_chunk(path: Path, limits: FileLimits) -> tuple[ModelSource, Raw, bool]:
    """Return one SOG of a chunk folder, and its source, which holds the remarks."""
    source = ModelSource(path, limits)
    raw, antialiased = decode_images(source, read_fields(source, source.data, "its meta.json"), siblings(source))
    return source, raw, antialiased
