"""Reading SOG version 2 (PlayCanvas): quantised gaussians in the pixels of lossless images, named by a meta.json.

Gaussian i is pixel i of every image, in rows from the top left. Positions: 16 bits per axis in two images, linear between mins
and maxs, then sign(v) (exp(|v|) - 1). Scales: bytes into a table of logarithms. Quaternions: three components of w, x, y, z in
red, green and blue, and 252 + the place of the largest in alpha. sh0: bytes into a table of first coefficients, opacity in
alpha. shN: a palette of harmonics, 64 entries to a row, whose bytes go into a table, and 16-bit labels into the palette.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from airworthy.scenes.formats._fields import Fields, _number
from airworthy.scenes.formats._source import Source
from airworthy.scenes.splats._folders import Fetch, archive, beside, pixels, read_fields
from airworthy.scenes.splats._raw import Decoded, Raw, exponential, reserve
from airworthy.scenes.splats._unpack import SQRT_HALF, from_smallest_three, wxyz_to_xyzw
from airworthy.scenes.splats.record import COEFFICIENTS

Floats = NDArray[np.float32]
Bytes = NDArray[np.uint8]
_AXES = "right, up, back by its specification, but files turned from 3DGS have y down"
_PER_ROW = 64
_PALETTE_MAX = 1 << 16
_TAG = 252


def decode_sog(source: Source) -> Decoded:
    """Gaussians of a bundled SOG."""
    text, fetch = archive(source)
    return finished(*decode_images(source, read_fields(source, text, "its meta.json"), fetch), "bundled SOG version 2")


def decode_meta(source: Source, meta: Fields) -> Decoded:
    """Gaussians of a SOG whose meta.json was read."""
    return finished(*decode_images(source, meta, beside(source)), "SOG version 2")


def finished(raw: Raw, antialiased: bool, container: str, levels: int = 1) -> Decoded:
    """A SOG's gaussians: those without a valid rotation have a zero one, and are dropped with the rest."""
    return Decoded(raw, container, "-y", _AXES, antialiased, levels)


def decode_images(source: Source, meta: Fields, fetch: Fetch) -> tuple[Raw, bool]:
    """Gaussians of a meta.json and its images, and whether they were trained anti-aliased."""
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


def _fetched(meta: Fields, fetch: Fetch) -> Fetch:
    """All files that a meta.json names, read first: what a file may take in memory depends on how large it is in all."""
    parts = [meta.object(key) for key in ("means", "scales", "quats", "sh0", "shN") if key in meta]
    names = {_file(part, index) for part in parts for index in range(min(len(part.items("files")), 2))}
    held = {name: fetch(name) for name in sorted(names)}
    return lambda name: held[name]


class _Images:
    """The images that have a pixel per gaussian."""

    def __init__(self, source: Source, fetch: Fetch, count: int) -> None:
        self.source, self.fetch, self.count = source, fetch, count

    def rgba(self, name: str) -> Bytes:
        """(n, 4)."""
        image = pixels(self.source, self.fetch, name)
        if image.shape[0] * image.shape[1] < self.count:
            self.source.refuse(f"its images have {image.shape[0] * image.shape[1]:,} pixels for {self.count:,} gaussians")
        self.source.give_back(image.size)
        return image.reshape(-1, 4)[: self.count]


def _file(fields: Fields, index: int) -> str:
    names = fields.items("files")
    if len(names) <= index or not isinstance(names[index], str):
        fields.source.refuse(f"{fields.where} names no file {index}")
    return names[index]


def _table(fields: Fields) -> Floats:
    """Table of 256 numbers; what a shorter one leaves out is not a number, so that whatever uses it is dropped."""
    items = fields.items("codebook")
    if not 0 < len(items) <= 256:
        fields.source.refuse(f"the codebook of {fields.where} has {len(items)} entries; 256 were expected")
    result = np.full(256, np.nan, np.float32)
    result[: len(items)] = np.array([_number(fields, "codebook", item) for item in items]).astype(np.float32)
    return result


def _positions(means: Fields, images: _Images) -> Floats:
    low, high = (np.array(means.numbers(key, 3)) for key in ("mins", "maxs"))
    lower, upper = (images.rgba(_file(means, index))[:, :3] for index in (0, 1))
    part = (upper.astype(np.float32) * 256 + lower) / np.float32(65535)
    value = (low + part * (high - low)).astype(np.float32)
    return np.sign(value) * np.expm1(np.abs(value))


def _rotations(rgba: Bytes) -> Floats:
    three = (rgba[:, :3].astype(np.float32) / np.float32(127.5) - 1) * SQRT_HALF
    largest = rgba[:, 3].astype(np.int64) - _TAG
    result = from_smallest_three(largest, three)
    return wxyz_to_xyzw(result)


def _palette(source: Source, fields: Fields, fetch: Fetch, bands: int) -> Floats:
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


def _labels(source: Source, fields: Fields, images: _Images) -> NDArray[np.int64]:
    rgba = images.rgba(_file(fields, 1))
    label = rgba[:, 0].astype(np.int64) | rgba[:, 1].astype(np.int64) << 8
    count = fields.integer("count", _PALETTE_MAX)
    if len(label) and label.max() >= count:
        source.refuse(f"a gaussian uses entry {label.max():,} of a palette of {count:,}")
    return label
