"""One door for every container of splats: by the suffix of the file, or by its first bytes."""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from airworthy.core import frames
from airworthy.core.arrays import Array, ArrayF32, NDArray
from airworthy.core.errors import AirworthyError, AssetError
from airworthy.core.files import read_json
from airworthy.scenes.catalogue import CHECKPOINTS
from airworthy.scenes.formats._images import linear_to_srgb
from airworthy.scenes.formats._source import JsonFields, ModelSource
from airworthy.scenes.formats.gltf.file import GltfFile, Node, decompose, read_nodes
from airworthy.scenes.formats.model import FileLimits
from airworthy.scenes.splats import _sog
from airworthy.scenes.splats._ply import (
    Decoded,
    Raw,
    checked,
    decode_ply,
    exponential,
    first_harmonic,
    joined,
    reserve,
    wxyz_to_xyzw,
)
from airworthy.scenes.splats._sog import decode_meta, decode_sog, finished, read_fields
from airworthy.scenes.splats._spz import decode_spz
from airworthy.scenes.splats.capture_frame import SourceFrame
from airworthy.scenes.splats.editing import UP_TURNS, transformed, up_turn
from airworthy.scenes.splats.record import C0, COEFFICIENTS, Splats, turned

# ---- Reading .splat and .ksplat: records of fixed size ----------------------------------------------------------------------
#
# .splat: 32 bytes per gaussian, no header: position and scale as floats, red, green, blue and opacity as bytes, the quaternion
# w, x, y, z as (byte - 128) / 128.
#
# .ksplat: a header of 4096 bytes, one of 1024 per section, then the sections: counts and centres of buckets, and records at
# one of three levels of compression. Positions of levels 1 and 2 are 16-bit offsets from the centre of the bucket.

_SPLAT = np.dtype([("position", "<f4", 3), ("scale", "<f4", 3), ("color", "u1", 4), ("rotation", "u1", 4)])
_HEADER, _SECTION = 4096, 1024
_SECTIONS_MAX = 1024
_KINDS = (("<f4", "<f4", "<f4"), ("<u2", "<f2", "<f2"), ("<u2", "<f2", "u1"))
"""Of positions; of scales and rotations; of harmonics: by level of compression."""
_RANGE = (1, 32767, 32767)


def decode_splat(source: ModelSource) -> Decoded:
    """Return gaussians of a .splat file."""
    count, rest = divmod(len(source.data), _SPLAT.itemsize)
    if rest or not count:
        source.refuse(f"it has {len(source.data):,} bytes, which is no multiple of {_SPLAT.itemsize}")
    reserve(source, count, 0)
    rows = np.frombuffer(source.data, _SPLAT, count)
    color = rows["color"].astype(np.float32) / np.float32(255)
    rotation = (rows["rotation"].astype(np.float32) - 128) / 128
    scale, position = np.array(rows["scale"]), np.array(rows["position"])
    raw = Raw(position, wxyz_to_xyzw(rotation), scale, color[:, 3].copy(), first_harmonic(color[:, :3]))
    return Decoded(raw, ".splat", "-y")


def decode_ksplat(source: ModelSource) -> Decoded:
    """Return gaussians of a .ksplat file."""
    data = source.data
    if len(data) < _HEADER:
        source.refuse("it ends within its header")
    if data[0] != 0 or data[1] < 1:
        source.refuse(f"it is ksplat {data[0]}.{data[1]}; 0.1 is read")
    sections, (level,) = struct.unpack_from("<I", data, 4)[0], struct.unpack_from("<H", data, 20)
    source.at_most(sections, _SECTIONS_MAX, "sections")
    if level > 2:
        source.refuse(f"it has the compression level {level}; 0, 1 and 2 are known")
    start = _HEADER + _SECTION * sections
    if start > len(data):
        source.refuse(f"it promises {sections:,} sections and ends within their headers")
    low, high = struct.unpack_from("<2f", data, 36)
    span = (low, high) if np.isfinite([low, high]).all() and low < high else (-1.5, 1.5)
    parts = []
    for number in range(sections):
        section = _Section.read(source, number, level, start)
        if section.count:
            parts.append(_section(source, section, level, span))
        start = section.end
    if not parts:
        source.refuse("it holds no gaussian")
    return Decoded(joined(parts), f"ksplat of compression level {level}", "-y")


@dataclass
class _Section:
    count: int
    capacity: int
    """Of a bucket."""
    buckets: int
    block: float
    reach: int
    full: int
    partial: int
    degree: int
    start: int
    """Of the section's data in the file: counts of partly filled buckets, centres, records."""
    records: int
    end: int
    kind: np.dtype

    @classmethod
    def read(cls, source: ModelSource, number: int, level: int, start: int) -> _Section:
        data = source.data
        head = _HEADER + _SECTION * number
        count, most, capacity, buckets = struct.unpack_from("<4I", data, head)
        (block,) = struct.unpack_from("<f", data, head + 16)
        (storage,) = struct.unpack_from("<H", data, head + 20)
        reach, _, full, partial = struct.unpack_from("<4I", data, head + 24)
        (degree,) = struct.unpack_from("<H", data, head + 40)
        if degree >= len(COEFFICIENTS):
            source.refuse(f"its section {number} has harmonics of degree {degree}")
        kind = _record(level, degree)
        records = start + storage * buckets + 4 * partial
        end = records + kind.itemsize * most
        if count > most or records + kind.itemsize * count > len(data):
            source.refuse(f"its section {number} promises {count:,} gaussians and the file ends before the last")
        if level and (full + partial > buckets or (buckets and storage < 12)):
            source.refuse(f"its section {number} has {full + partial:,} of {buckets:,} buckets, of {storage} bytes each")
        return cls(count, capacity, buckets, block, reach or _RANGE[level], full, partial, degree, start, records, end, kind)


def _record(level: int, degree: int) -> np.dtype:
    position, middle, harmonic = _KINDS[level]
    fields = [("position", position, (3,)), ("scale", middle, (3,)), ("rotation", middle, (4,)), ("color", "u1", (4,))]
    return np.dtype([*fields, ("rest", harmonic, (3 * (COEFFICIENTS[degree] - 1),))])


def _section(source: ModelSource, section: _Section, level: int, span: tuple[float, float]) -> Raw:
    reserve(source, section.count, section.degree)
    rows = np.frombuffer(source.data, section.kind, section.count, section.records)
    color = rows["color"].astype(np.float32) / np.float32(255)
    position = rows["position"].astype(np.float32)
    if level:
        step = np.float32(section.block / 2 / section.reach)
        position = (position - section.reach) * step + _centres(source, section)
    return Raw(
        np.ascontiguousarray(position),
        wxyz_to_xyzw(rows["rotation"].astype(np.float32)),
        rows["scale"].astype(np.float32),
        color[:, 3].copy(),
        _harmonics(section, rows, first_harmonic(color[:, :3]), level, span),
    )


def _centres(source: ModelSource, section: _Section) -> ArrayF32:
    """(count, 3) centre of the bucket of each gaussian: first the full buckets, then those of stated length."""
    data = source.data
    lengths = np.frombuffer(data, "<u4", section.partial, section.start).astype(np.int64)
    filled = min(section.full * section.capacity, section.count)
    bucket = np.empty(section.count, np.int64)
    bucket[:filled] = np.arange(filled) // max(section.capacity, 1)
    ends = section.full * section.capacity + np.cumsum(lengths)
    bucket[filled:] = section.full + np.searchsorted(ends, np.arange(filled, section.count), side="right")
    if section.count and bucket.max() >= section.buckets:
        source.refuse("it has gaussians outside its buckets")
    begin = section.start + 4 * section.partial
    size = (section.records - begin) // max(section.buckets, 1)
    table = np.frombuffer(data, np.uint8, size * section.buckets, begin).reshape(section.buckets, size)
    return np.ascontiguousarray(table[:, :12]).view("<f4")[bucket]


def _harmonics(section: _Section, rows: NDArray, first: ArrayF32, level: int, span: tuple[float, float]) -> ArrayF32:
    """Within a degree, all coefficients of red come first, then green, then blue."""
    result = np.empty((section.count, COEFFICIENTS[section.degree], 3), np.float32)
    result[:, :1] = first
    rest = rows["rest"].astype(np.float32)
    if level == 2:
        rest = np.float32(span[0]) + rest / np.float32(255) * np.float32(span[1] - span[0])
    for degree in range(1, section.degree + 1):
        low, high = COEFFICIENTS[degree - 1], COEFFICIENTS[degree]
        block = rest[:, 3 * (low - 1) : 3 * (high - 1)].reshape(section.count, 3, high - low)
        result[:, low:high] = block.transpose(0, 2, 1)
    return result


# -----------------------------------------------------------------------------------------------------------------------------

# ---- Reading glTF with KHR_gaussian_splatting, plain or with KHR_gaussian_splatting_compression_spz_2 -----------------------
#
# Gaussians are attributes of points: positions, rotations x, y, z, w, scales (linear and not negative in the ratified
# extension; logarithms in its drafts, told by negative values), opacities, and harmonics in the basis of 3DGS. y is up.

_BASE = "KHR_gaussian_splatting"
_SPZ = ("KHR_gaussian_splatting_compression_spz_2", "KHR_gaussian_splatting_compression_spz")
_KNOWN = (_BASE, *_SPZ)
_POINTS = 0
_UNEVEN = 1e-3
_HALF_TURN_ABOUT_UP = (0.0, 1.0, 0.0, 0.0)
"""SPZ is right, up, back; glTF left, up, front."""


class _SplatFile(GltfFile):
    """A glTF file that may require the extensions for splats."""

    def _check(self) -> None:
        required = self.root.items("extensionsRequired")
        self.root.value["extensionsRequired"] = [name for name in required if name not in _KNOWN]
        super()._check()


def decode_gltf(source: ModelSource) -> Decoded:
    """Return gaussians of all nodes that the file shows, placed by their nodes."""
    file = _SplatFile(source)
    parts = []
    count = 0
    for node in read_nodes(file).values():
        if "mesh" not in node.fields:
            continue
        mesh = file.entry("meshes", node.fields.integer("mesh"))
        for number, value in enumerate(mesh.items("primitives")):
            count += 1
            source.at_most(count, source.limits.primitives, "primitives")
            primitive = JsonFields(source, value, f"primitive {number} of {mesh.where}")
            if (extension := primitive.extension(_BASE)) is None:
                source.warn("primitives that are no splats passed over")
            else:
                parts.append(_placed(source, node, _primitive(file, primitive, extension)))
    if not parts:
        source.refuse(f"it shows no splats: no primitive has the extension {_BASE}")
    return Decoded(joined(parts), f"glTF {_BASE}", "z", "left, up, front: y is up, and is turned as in every glTF file")


def _primitive(file: GltfFile, primitive: JsonFields, extension: JsonFields) -> Raw:
    source = file.source
    for name in _SPZ:
        if (packed := extension.extension(name)) is not None:
            raw = decode_spz(source, file.view(packed.integer("bufferView"))).raw
            return _turned(raw, np.array(_HALF_TURN_ABOUT_UP))
    if primitive.integer("mode", 4) != _POINTS:
        source.refuse(f"{primitive.where} has splats that are not points")
    attributes = primitive.object("attributes")
    degree = 0
    while degree < 3 and f"{_BASE}:SH_DEGREE_{degree + 1}_COEF_0" in attributes:
        degree += 1
    position = file.accessor(attributes.integer("POSITION"), (3,))
    reserve(source, len(position), degree)

    def attribute(name: str, width: int) -> ArrayF32:
        values = file.accessor(attributes.integer(name), (width,))
        if len(values) != len(position):
            source.refuse(f"{primitive.where} has {len(position):,} positions and {len(values):,} of {name}")
        return values

    harmonics = np.empty((len(position), COEFFICIENTS[degree], 3), np.float32)
    for band in range(degree + 1):
        for index in range(2 * band + 1):
            harmonics[:, band * band + index] = attribute(f"{_BASE}:SH_DEGREE_{band}_COEF_{index}", 3)
    scale = attribute(f"{_BASE}:SCALE", 3)
    if (scale < 0).any():
        source.warn("scales taken for logarithms, as in drafts of the extension, since some are negative")
        scale = exponential(scale)
    if extension.text("colorSpace", "").startswith("lin"):
        harmonics = _encoded(source, harmonics)
    rotation = attribute(f"{_BASE}:ROTATION", 4)
    return Raw(position, rotation, scale, attribute(f"{_BASE}:OPACITY", 1)[:, 0], harmonics)


def _encoded(source: ModelSource, harmonics: ArrayF32) -> ArrayF32:
    """sRGB-encoded colours of linear ones: exact in the mean, to first order in what depends on the direction."""
    source.warn("linear colours encoded; what depends on the direction is exact to first order only")
    mean = 0.5 + C0 * harmonics[:, 0]
    slope_at = np.clip(mean, 0.01, 1.0).astype(np.float64)
    slope = (linear_to_srgb(slope_at + 1e-3) - linear_to_srgb(slope_at - 1e-3)) / 2e-3
    return np.concatenate([first_harmonic(linear_to_srgb(mean)), harmonics[:, 1:] * slope[:, None]], 1).astype(np.float32)


def _placed(source: ModelSource, node: Node, raw: Raw) -> Raw:
    """Gaussians in our frame: turned to z up, then moved by the node, whose place is already in our frame."""
    position, attitude, scale = decompose(node.matrix)
    size = float(np.abs(scale).mean())
    linear = frames.to_matrix(attitude) * size
    if size <= 0 or not np.allclose(node.matrix[:3, :3], linear, rtol=0, atol=_UNEVEN * size):
        source.refuse(f"node {node.index} stretches or mirrors its splats; only uniform scales can be applied to them")
    raw = _turned(raw, frames.multiply(attitude, np.array(UP_TURNS["y"])))
    moved = (raw.position.astype(np.float64) * size + position).astype(np.float32)
    return replace(raw, position=moved, scale=raw.scale * np.float32(size))


def _turned(raw: Raw, rotation: Array) -> Raw:
    matrix, product = frames.to_matrix(rotation), frames.multiply(rotation, np.eye(4))
    position = (raw.position @ matrix.T).astype(np.float32)
    attitude = (raw.rotation @ product).astype(np.float32)
    return replace(raw, position=position, rotation=attitude, harmonics=turned(raw.harmonics, rotation))


# -----------------------------------------------------------------------------------------------------------------------------
# What reading a splat file gives: the splats, what was dropped, and how the file's frame became the scene's.

SPLAT_LIMITS = FileLimits(
    file_bytes=2 * 1024**3,
    memory_bytes=64 * 1024**2,
    memory_ratio=64.0,
    vertices=40_000_000,
    coordinate=1e6,
)
"""Limits of splat files. They are compressed up to twenty times, hence the ratio; `vertices` counts gaussians. `images`,
`texture_pixels`, `json_bytes` and `nodes` hold for SOG and glTF."""


@dataclass(frozen=True, eq=False)
class LoadedSplats:
    """Content of a splat file."""

    splats: Splats
    """In the frame of the scene: z up."""
    container: str
    """In words: "SPZ version 3"."""
    source: SourceFrame
    dropped: dict[str, int] = field(default_factory=dict)
    """How many gaussians were left out, by reason; empty where the file is sound."""
    warnings: tuple[str, ...] = ()
    """What was dropped, mended or left out, with counts."""
    antialiased: bool = False
    """Whether the file says that it was trained with the anti-aliasing filter (Mip-Splatting)."""
    levels: int = 1
    """Levels of detail that the file holds; one of them was read."""
    capture: SourceFrame | None = None
    """The frame of the capture that the splats were trained from, and the similarity from there to the scene; None where the
    file does not say."""


# -----------------------------------------------------------------------------------------------------------------------------
# Nerfstudio's frame: its splats lie in the frame of its training, and its dataparser_transforms.json leads back from
# there.

TRANSFORMS = "dataparser_transforms.json"
EXPORT = "ns-export gaussian-splat --load-config CONFIG.yml --output-dir FOLDER"
_BYTES_MAX = 1 << 16
_ROTATION_ERROR = 1e-3
_LARGEST = 1e9


def refuse_checkpoint(path: Path) -> None:
    """Raise the AssetError of a training checkpoint, which is a pickle: reading one runs whatever program it holds."""
    raise AssetError(
        f"{str(path)!r} is a training checkpoint, which can run any program when it is read and is therefore never opened;"
        f" export it to PLY first: {EXPORT}."
    )


def read_transforms(path: str | Path) -> SourceFrame:
    """Return the similarity from the frame of an exported PLY to that of the images: the inverse of what the file holds.

    Nerfstudio trains on positions s (R p + t) of the data set's positions p; the file holds the 3 x 4 matrix [R t] and s.

    Raises:
        AssetError: The file is missing, damaged, or its matrix is no rotation and translation.
    """
    value = read_json(path, _BYTES_MAX)
    try:
        matrix = np.array(value["transform"], np.float64)
        scale = float(value["scale"])
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise AssetError(f"{str(path)!r} cannot be used: it has no transform of numbers and no scale.") from error
    if matrix.shape not in ((3, 4), (4, 4)) or not (np.abs(matrix) < _LARGEST).all() or not 1 / _LARGEST < scale < _LARGEST:
        raise AssetError(f"{str(path)!r} cannot be used: its transform is not 3 x 4 sound numbers, or its scale none.")
    rotation = matrix[:3, :3]
    off = np.abs(rotation @ rotation.T - np.eye(3)).max()
    if not off < _ROTATION_ERROR or np.linalg.det(rotation) < 0:
        raise AssetError(f"{str(path)!r} cannot be used: its transform holds no rotation.")
    turn = frames.conjugate(frames.from_matrix(rotation))
    offset = -frames.rotate(turn, matrix[:3, 3])
    return SourceFrame("z", "", _four(turn), _three(offset), 1.0 / scale)


def followed_by(first: SourceFrame, rotation: tuple[float, float, float, float], up: str, axes: str) -> SourceFrame:
    """Return a similarity followed by a turn.

    Args:
        first: The similarity.
        rotation: Quaternion x, y, z, w, applied after it.
        up: Of the result, as `SourceFrame` has it.
        axes: Alike.
    """
    turn = np.array(rotation)
    whole = frames.multiply(turn, np.array(first.rotation))
    offset = frames.rotate(turn, np.array(first.translation))
    return SourceFrame(up, axes, _four(whole), _three(offset), first.scale)


def _four(values: np.ndarray) -> tuple[float, float, float, float]:
    x, y, z, w = (float(value) for value in values)
    return x, y, z, w


def _three(values: np.ndarray) -> tuple[float, float, float]:
    x, y, z = (float(value) + 0.0 for value in values)
    return x, y, z


def sidecar_of(path: Path, given: str | Path | bool | None) -> Path | None:
    """Return the file of transforms to use: the one given, or the one beside the PLY, or none where `given` is False.

    Raises:
        AirworthyError: `given` is True and there is none.
    """
    if given is False:
        return None
    if isinstance(given, str | Path):
        return Path(given)
    sidecar = path.parent / TRANSFORMS
    if sidecar.is_file():
        return sidecar
    if given:
        raise AirworthyError(f"There is no {TRANSFORMS} beside {str(path)!r}; give its path, or leave transforms out.")
    return None


# -----------------------------------------------------------------------------------------------------------------------------

_READERS: dict[str, Callable[[ModelSource], Decoded]] = {
    ".ply": decode_ply,
    ".spz": decode_spz,
    ".sog": decode_sog,
    ".zip": decode_sog,
    ".splat": decode_splat,
    ".ksplat": decode_ksplat,
    ".glb": decode_gltf,
    ".gltf": decode_gltf,
}
_MAGIC = ((b"ply\n", ".ply"), (b"ply\r", ".ply"), (b"\x1f\x8b", ".spz"), (b"NGSP", ".spz"), (b"PK\x03\x04", ".sog"))
SPLAT_SUFFIXES = (*_READERS, ".json")


def read_splats(
    path: str | Path,
    limits: FileLimits = SPLAT_LIMITS,
    *,
    up: str | None = None,
    level: int = 0,
    chunks: Sequence[int] | None = None,
    transforms: str | Path | bool | None = None,
) -> LoadedSplats:
    """Return gaussians of a splat file, in the frame of a scene: z up, x as in the file where that is possible.

    Containers: PLY of 3DGS, plain and packed, binary and text; SPZ versions 2 to 4; SOG version 2 as a bundle (.sog), a folder
    or its meta.json, a streamed set (lod-meta.json), or a folder of SOGs named <level>_<chunk>; .splat; .ksplat; glTF with
    KHR_gaussian_splatting. Gaussians that are not finite, have no size, no rotation or an impossible opacity are dropped and
    counted. Nothing but the file, and files in its folder that it names, is read. A PLY whose header says that it is in the
    frame of its capture is brought to the place, unless `up` or transforms are given.

    Args:
        path: The file, or a folder of SOG.
        limits: What it may ask for.
        up: The axis of the file that points up ("y", "-y", "z", "-z", "x", "-x"); None: as the container says, else as is
            usual for it (see docs/concepts/splats.md). "z" leaves the file's coordinates as they are.
        level: Level of detail of a streamed SOG, 0 the finest.
        chunks: Only these chunks of that level.
        transforms: Of a PLY: Nerfstudio's dataparser_transforms.json, which leads back to the frame of the images; None: the
            one beside the file, where there is one; False: none. `up` then is the axis of the images' frame, z unless given.

    Raises:
        AssetError: The file is missing, damaged, hostile, too large, a training checkpoint, or of no known kind.
        AirworthyError: The level, a chunk or the axis does not exist.
    """
    path = Path(path)
    if up is not None:
        up_turn(up)
    with np.errstate(all="ignore"):  # files hold numbers that overflow; what is not finite in the end is dropped
        return _read(path, limits, up, level, chunks, transforms)


def _read(
    path: Path,
    limits: FileLimits,
    up: str | None,
    level: int,
    chunks: Sequence[int] | None,
    transforms: str | Path | bool | None,
) -> LoadedSplats:
    if path.suffix.lower() in CHECKPOINTS:
        refuse_checkpoint(path)
    if os.path.isdir(path):
        return _read_folder(path, limits, up, level, chunks)
    suffix = path.suffix.lower()
    source = ModelSource(path, limits)
    if suffix == ".json":
        return _finish(source, _decode_json(source, level, chunks), up)
    reader = _READERS.get(suffix) or _READERS.get(next((name for magic, name in _MAGIC if source.data.startswith(magic)), ""))
    if reader is None:
        raise AssetError(f"{str(path)!r} cannot be read as splats: its name ends in none of {', '.join(SPLAT_SUFFIXES)}.")
    decoded = reader(source)
    sidecar = sidecar_of(path, transforms) if reader is decode_ply else None
    return _finish(source, decoded, up, sidecar)


def _decode_json(source: ModelSource, level: int, chunks: Sequence[int] | None) -> Decoded:
    meta = read_fields(source, source.data, "its JSON")
    if "lodLevels" in meta:
        return _sog.decode_streamed(source, meta, level, chunks)
    return decode_meta(source, meta)


def _read_folder(path: Path, limits: FileLimits, up: str | None, level: int, chunks: Sequence[int] | None) -> LoadedSplats:
    for name in ("lod-meta.json", "meta.json"):
        if (path / name).is_file():
            return _read(path / name, limits, up, level, chunks, None)
    files, levels = _sog.chunk_folders(path, level, chunks)
    if not files:
        raise AssetError(f"{str(path)!r} is a folder without lod-meta.json, meta.json or chunks; a splat file was expected.")
    parts: list[Raw] = []
    antialiased = False
    left = limits.vertices
    for file in files:
        source, raw, flag = _sog.decode_chunk(file, replace(limits, vertices=left))
        parts.append(raw)
        left -= len(raw.position)
        antialiased |= flag
    return _finish(source, finished(joined(parts), antialiased, "SOG version 2 in chunks", levels), up)


def _finish(source: ModelSource, decoded: Decoded, up: str | None, transforms: Path | None = None) -> LoadedSplats:
    """Check the gaussians and bring them into the frame of the scene."""
    splats, dropped = checked(source, decoded.raw)
    frame, axis = SourceFrame("z", ""), up or decoded.up
    if transforms is not None:
        frame, axis = read_transforms(transforms), up or "z"
        source.warn(f"{TRANSFORMS} applied: coordinates are those of the images")
    if transforms is None and up is None and decoded.in_capture and decoded.capture is not None:
        frame = decoded.capture
        source.warn("brought from the frame of its capture to that of the place, as its header says")
    frame = followed_by(frame, up_turn(axis), axis, decoded.axes)
    if (frame.rotation, frame.translation, frame.scale) != ((0.0, 0.0, 0.0, 1.0), (0.0, 0.0, 0.0), 1.0):
        splats = transformed(splats, frame.rotation, frame.translation, frame.scale)
    return LoadedSplats(
        splats, decoded.container, frame, dropped, source.warnings, decoded.antialiased, decoded.levels, decoded.capture
    )
