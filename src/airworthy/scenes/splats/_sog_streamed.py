"""Reading streamed SOG: a lod-meta.json whose tree says which pieces of which SOG make up each level of detail.

A folder of SOGs named <level>_<chunk>, without a lod-meta.json, is read in the same way: one level, all its chunks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from airworthy.core.errors import AirworthyError
from airworthy.core.untrusted import shown
from airworthy.scenes.formats._fields import Fields
from airworthy.scenes.formats._source import Source
from airworthy.scenes.formats.model import Limits
from airworthy.scenes.splats._folders import beside, read_fields
from airworthy.scenes.splats._raw import Decoded, Raw, joined
from airworthy.scenes.splats._sog import decode_images, finished

_LEVELS_MAX = 64
_CHUNK = re.compile(r"(\d{1,3})_(\d{1,6})")
_CHUNKS_MAX = 4096


def decode_streamed(source: Source, meta: Fields, level: int, chunks: Sequence[int] | None) -> Decoded:
    """Gaussians of one level of a lod-meta.json; chunks are leaves of its tree, in the order in which they stand there."""
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
        raw, flag = _file(source, names[number])
        parts.append(_pieces(source, raw, pieces))
        antialiased |= flag
    if meta.value.get("environment") is not None and chunks is None:
        parts.append(_file(source, meta.text("environment"))[0])
    if not parts:
        source.refuse(f"it holds nothing at level {level}")
    return finished(joined(parts), antialiased, "streamed SOG", levels)


def _file(source: Source, name: object) -> tuple[Raw, bool]:
    """One SOG of the set, whole; and whether it was trained anti-aliased."""
    if not isinstance(name, str):
        source.refuse("its filenames are not all text")
    meta = read_fields(source, source.reference(name, escaped=False), shown(name))
    return decode_images(source, meta, beside(source, name.rpartition("/")[0]))


def _pieces(source: Source, raw: Raw, pieces: list[slice]) -> Raw:
    """Stretches of a SOG's gaussians; itself where they are all of it."""
    count = len(raw.position)
    if any(piece.stop > count for piece in pieces) or sum(piece.stop - piece.start for piece in pieces) > count:
        source.refuse(f"its tree asks for more than the {count:,} gaussians of a file")
    if pieces == [slice(0, count)]:
        return raw
    index = np.concatenate([np.arange(piece.start, piece.stop) for piece in pieces])
    return Raw(raw.position[index], raw.rotation[index], raw.scale[index], raw.opacity[index], raw.harmonics[index])


def _leaves(source: Source, root: Fields) -> Iterator[Fields]:
    """The nodes of the tree that hold gaussians, depth first."""
    waiting, seen = [root], 0
    while waiting:
        node = waiting.pop()
        seen += 1
        source.at_most(seen, source.limits.nodes, "nodes in its tree")
        if "lods" in node:
            yield node.object("lods")
        waiting += [Fields(source, child, "a node of its tree") for child in reversed(node.items("children"))]


def _chosen(source: Source, leaves: list[Fields], chunks: Sequence[int] | None) -> list[Fields]:
    if chunks is None:
        return leaves
    for chunk in chunks:
        if not 0 <= chunk < len(leaves):
            raise AirworthyError(f"Chunk {chunk} of {str(source.path)!r} was asked for; it has {len(leaves)} at this level.")
    return [leaves[chunk] for chunk in chunks]


def chunk_folders(folder: Path, level: int, chunks: Sequence[int] | None) -> tuple[list[Path], int]:
    """The files meta.json of a level in a folder of SOGs named <level>_<chunk>, in order, and how many levels there are."""
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


def decode_chunk(path: Path, limits: Limits) -> tuple[Source, Raw, bool]:
    """One SOG of a chunk folder, and its source, which holds the remarks."""
    source = Source(path, limits)
    raw, antialiased = decode_images(source, read_fields(source, source.data, "its meta.json"), beside(source))
    return source, raw, antialiased
