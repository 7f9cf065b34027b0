"""Pictures of films and of folders of photographs, upright, in order of time, one at a time.

Films go through PyAV. Only containers of films are opened and nothing outside of the file, what is damaged is counted and
passed over, and what cannot be read at all is one sentence.
"""

from __future__ import annotations

import importlib
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from airworthy.capture._gate import CAPTURE_LIMITS, CaptureFolder, CaptureLimits, DamagedImageError
from airworthy.capture.video.damage import FilmDamage, damage_sentence, unit_format
from airworthy.capture.video.slice_ends import SliceEnds
from airworthy.core.arrays import ArrayF32, ArrayU8
from airworthy.core.errors import AirworthyError
from airworthy.core.files import image_kind, read_bytes
from airworthy.optics.tone import to_8bit

__all__ = ["FILM_SUFFIXES", "PHOTO_SUFFIXES", "Picture", "Source", "open_source", "packages"]

FILM_SUFFIXES = (".mp4", ".mov", ".m4v", ".mkv", ".webm", ".avi", ".mts", ".m2ts", ".ts", ".3gp", ".mpg", ".mpeg", ".wmv")
PHOTO_SUFFIXES = (".jpg", ".jpeg", ".png", ".webp")
UNREAD_SUFFIXES = (".heic", ".heif", ".avif", ".tif", ".tiff", ".dng", ".cr2", ".nef", ".arw", ".gif", ".bmp", ".jxl")
"""Of photographs that are not decoded here. HEIC, which telephones write, needs a decoder of HEVC pictures in tiles."""
_CONVERTED = (
    "convert them to JPEG (`sips -s format jpeg *.heic --out jpeg` on a Mac, `heif-convert` on Linux), or set the telephone's"
    ' camera to JPEG ("Most Compatible")'
)
_PHOTO_FOLDERS = ("", "images", "frames", "input")
# Playlists and scripts, which name other files and addresses, are in no demuxer of this list.
_FORMATS = "mov,mp4,m4a,3gp,3g2,mj2,matroska,webm,avi,mpegts,mpeg,mpegvideo,asf,h264,hevc,ogg,flv"
_WHOLE = 0.9
"""Share of the pictures that a film's head tells of, under which it was cut off: heads are often a few off."""
_SECONDS_MAX = 4 * 3600.0
_MESSAGE_MAX = 120


def packages() -> tuple[Any, Any]:
    """Return cv2 and av.

    Raises:
        AirworthyError: One is not installed.
    """
    found = []
    for name, extra in (("cv2", "capture"), ("av", "capture")):
        try:
            found.append(importlib.import_module(name))
        except ModuleNotFoundError as error:
            raise AirworthyError(f"Reading films needs the package {name!r}: pip install 'airworthy[{extra}]'.") from error
    return found[0], found[1]


class Picture:
    """A picture of a source, decoded as far as it is asked for."""

    def __init__(self, number: int, time: float, name: str, load: Any, grey: Any = None) -> None:
        self.number = number
        """In its source, from 0."""
        self.time = time
        """Since the source's first picture [s]; of photographs their number."""
        self.name = name
        self._load, self._grey = load, grey

    def rgb(self) -> ArrayU8:
        """Return (height, width, 3), upright, sRGB-encoded."""
        return np.ascontiguousarray(self._load())

    def grey(self) -> ArrayU8:
        """Return (height, width), upright; of films the luma as it is coded, without a conversion."""
        if self._grey is not None:
            return np.ascontiguousarray(self._grey())
        weights = np.array([0.299, 0.587, 0.114], np.float32)
        return np.asarray(self.rgb().astype(np.float32) @ weights + 0.5, np.uint8)


@dataclass
class Source:
    """A film, or a folder of photographs."""

    path: Path
    kind: str
    """"film" or "photographs"."""
    width: int = 0
    """Upright [px]; of photographs those of the first."""
    height: int = 0
    count: int = 0
    """Pictures, as far as the file says; 0: it does not."""
    focal: float | None = None
    """Focal length over the longer side, where a file says so: a prior, no measurement."""
    notes: list[str] = field(default_factory=list)
    """What was found while reading, in sentences."""
    damaged: frozenset[int] = frozenset()
    """Numbers of pictures that are damaged, or predicted from damaged ones; known when all have been read."""
    read: bool = False
    """Whether a film was read to its end, and `damaged` is known."""
    limits: CaptureLimits = CAPTURE_LIMITS
    names: Sequence[str] = ()

    def pictures(self) -> Iterator[Picture]:
        """Yield all pictures in order, damaged ones too (`damaged`); a picture is read while it is the newest.

        Raises:
            AirworthyError: Nothing in the file can be decoded.
        """
        yield from _film_pictures(self) if self.kind == "film" else _photo_pictures(self)

    def say(self, note: str) -> None:
        """Keep a note once."""
        if note not in self.notes:
            self.notes.append(note)


def open_source(path: str | Path, limits: CaptureLimits = CAPTURE_LIMITS) -> Source:
    """Return a film or a folder of photographs, its head read.

    Args:
        path: Of the file, or of the folder (the pictures in it, or in its `images`, `frames` or `input`).
        limits: What it may ask for.

    Raises:
        AirworthyError: There is nothing, or nothing that can be read.
    """
    where = Path(path)
    if where.is_dir():
        return _photographs(where, limits)
    if not where.is_file():
        raise AirworthyError(
            f"There is no film and no folder {str(where)!r}: give the path of a film, or a folder of photographs."
        )
    if where.stat().st_size == 0:
        raise AirworthyError(f"The film {str(where)!r} is empty (0 bytes): copy it from the telephone again.")
    if image_kind(_head(where)):
        raise AirworthyError(f"{str(where)!r} is one photograph: give the folder of all of them, or a film.")
    if _head(where).startswith(b"GIF8"):
        raise AirworthyError(f"{str(where)!r} is a GIF, of 256 colours: give the film that it was made from, as MP4 or MOV.")
    if where.suffix.lower() in UNREAD_SUFFIXES:
        raise AirworthyError(
            f"{str(where)!r} is one photograph, in a form that is not read here ({where.suffix[1:].upper()}): give the folder"
            f" of all of them, as JPEG, PNG or WebP, or a film; {_CONVERTED}."
        )
    return _film(where, limits)


def _head(path: Path) -> bytes:
    with open(path, "rb") as file:
        return file.read(64)


# ---- Films -----------------------------------------------------------------------------------------------------------------


def _film(path: Path, limits: CaptureLimits) -> Source:
    source = Source(path, "film", limits=limits)
    with _opened(path) as container:
        stream = _stream(container, path)
        width, height = stream.codec_context.width, stream.codec_context.height
        _check_size(path, width, height, limits)
        source.count = int(stream.frames or 0)
        seconds = float(container.duration or 0) / 1e6
        if not source.count and stream.average_rate and seconds > 0.0:
            source.count = int(seconds * float(stream.average_rate))
        if seconds > _SECONDS_MAX:
            raise AirworthyError(
                f"The film {str(path)!r} lasts {seconds / 3600:.1f} hours; cut out the walk, of a few minutes."
            )
        source.focal = _focal_35mm(container.metadata.get("com.apple.quicktime.camera.focal_length.35mm_equivalent"))
        source.width, source.height = width, height
    # The first picture that decodes tells the upright size, and that there is one.
    first = next(iter(source.pictures()), None)
    if first is None:
        raise AirworthyError(
            f"No picture of the film {str(path)!r} can be decoded: it is damaged or was cut off; copy it again, or film again."
        )
    source.height, source.width = first.grey().shape
    return source


def _check_size(path: Path, width: int, height: int, limits: CaptureLimits) -> None:
    if not (width >= 16 and height >= 16 and width * height <= limits.image_pixels):
        raise AirworthyError(
            f"The film {str(path)!r} has {width:,} x {height:,} pixels; expected 16 a side or more, and"
            f" {limits.image_pixels:,} in all at most."
        )


def _opened(path: Path) -> Any:
    _, av = packages()
    try:
        # Absolute: a name that begins with "concat:" or "http:" would be a protocol.
        return av.open(
            str(path.resolve()), options={"protocol_whitelist": "file", "format_whitelist": _FORMATS}, metadata_errors="replace"
        )  # fmt: skip
    except (av.error.FFmpegError, OSError, ValueError) as error:
        reason = str(getattr(error, "strerror", "") or error)[:_MESSAGE_MAX]
        raise AirworthyError(
            f"{str(path)!r} cannot be read as a film ({reason}): it is damaged, was cut off, or is none; copy it again, or"
            " export it as MP4."
        ) from error


def _stream(container: Any, path: Path) -> Any:
    # A song's cover is a video stream of one picture.
    streams = [s for s in container.streams.video if not (int(getattr(s, "disposition", 0) or 0) & 0x400)]
    if not streams:
        raise AirworthyError(f"The file {str(path)!r} has no moving pictures (sound only?): give the film itself.")
    if streams[0].codec_context is None:
        raise AirworthyError(
            f"The pictures of the film {str(path)!r} are in a form that is not known here: it is damaged, or export it as MP4"
            " with H.264."
        )
    return streams[0]


def _film_pictures(source: Source) -> Iterator[Picture]:
    last, first, unplaced = -math.inf, None, 0
    times: list[tuple[int | None, float]] = []
    with _opened(source.path) as container:
        stream = _stream(container, source.path)
        stream.thread_type = "AUTO"
        rate = float(stream.average_rate or 30.0)
        units = unit_format(stream.codec_context.name, stream.codec_context.extradata)
        # Slow, and once is enough.
        again = units is not None and units.codec == "hevc" and not source.read
        damage = FilmDamage(units, SliceEnds(stream.codec_context.extradata) if again else None)
        for frame in _decoded(container, stream, source, damage):
            number = len(times)
            time = float(frame.time) if frame.time is not None else number / rate
            first = time if first is None else first
            if time - first <= last:
                unplaced += 1
                continue
            if frame.width * frame.height > source.limits.image_pixels or min(frame.width, frame.height) < 16:
                _check_size(source.path, frame.width, frame.height, source.limits)
            last = time - first
            times.append((frame.pts, last))
            yield Picture(number, last, f"{number:06d}", _Colors(frame, source), _Luma(frame))
    if unplaced:
        source.say(f"{unplaced} pictures without a time of their own were passed over")
    told = int(stream.frames or 0)
    if len(times) + unplaced < _WHOLE * told:
        source.say(f"{len(times)} pictures can be read of the {told} that its head tells of: it was cut off or is damaged")
    if not source.read:
        _leave_out(source, times, damage.times())
    source.read = True


def _leave_out(source: Source, times: list[tuple[int | None, float]], damaged: set[int]) -> None:
    """Tell a source which of its pictures, by their times in units of the film and [s], are damaged."""
    source.damaged = frozenset(number for number, (units, _) in enumerate(times) if units in damaged)
    if source.damaged:
        source.say(damage_sentence([times[number][1] for number in sorted(source.damaged)], len(times)))


def _decoded(container: Any, stream: Any, source: Source, damage: FilmDamage) -> Iterator[Any]:
    """Frames of all packets that can be decoded; damage is noted."""
    _, av = packages()
    broken = 0
    packets = container.demux(stream)
    while True:
        try:
            packet = next(packets, None)
        except av.error.FFmpegError:
            source.say("the film ends in the middle: it was cut off")
            break
        if packet is None:
            break
        piece = damage.piece(packet)
        try:
            for frame in packet.decode():
                damage.shown(frame.pts)
                if frame.is_corrupt:
                    damage.marked(frame.pts)
                yield frame
        except av.error.FFmpegError:
            broken += 1
            damage.failed(piece)
    if broken:
        source.say(f"{broken} damaged pieces of the film were passed over")


class _Luma:
    """The luma plane of a frame, upright."""

    def __init__(self, frame: Any) -> None:
        self.frame = frame

    def __call__(self) -> ArrayU8:
        found = self.frame.to_ndarray(format="gray")
        return np.rot90(found, _quarters(self.frame))


class _Colors:
    """A frame in sRGB, upright."""

    def __init__(self, frame: Any, source: Source) -> None:
        self.frame, self.source = frame, source

    def __call__(self) -> ArrayU8:
        frame, curve = self.frame, int(self.frame.color_trc or 0)
        if curve in (_PQ, _HLG):
            self.source.say("the film is HDR: its light was brought to that of a normal screen; film without HDR if you can")
            rgb = frame.to_ndarray(format="rgb48le").astype(np.float32) / np.float32(65535.0)
            found = _from_hdr(rgb, curve)
        else:
            found = frame.to_ndarray(format="rgb24")
        return np.rot90(found, _quarters(frame))


def _quarters(frame: Any) -> int:
    """Quarter turns counter-clockwise that make a frame upright."""
    return round(float(getattr(frame, "rotation", 0) or 0) / 90.0) % 4


# ---- Light of HDR films: ITU-R BT.2100, tables 4 (PQ) and 5 (HLG); transfer numbers of ITU-T H.273 --------------------------

_PQ, _HLG = 16, 18
_TO_709 = np.array([[1.6605, -0.5876, -0.0728], [-0.1246, 1.1329, -0.0083], [-0.0182, -0.1006, 1.1187]], np.float32)
"""Linear BT.2020 to BT.709, ITU-R BT.2087."""
_WHITE_PQ, _WHITE_HLG = 203.0, 0.265
"""Diffuse white, [cd/m^2] and as scene light: ITU-R BT.2408, table 1."""
_SHOWN_WHITE = 0.85


def _from_hdr(encoded: ArrayF32, curve: int) -> ArrayU8:
    if curve == _HLG:
        a, b, c = 0.17883277, 0.28466892, 0.55991073
        light = np.where(encoded <= 0.5, encoded**2 / 3.0, (np.exp((encoded - c) / a) + b) / 12.0) / _WHITE_HLG
    else:
        m1, m2, c1, c2, c3 = 0.1593017578125, 78.84375, 0.8359375, 18.8515625, 18.6875
        power = encoded ** (1.0 / m2)
        light = 1e4 * (np.maximum(power - c1, 0.0) / (c2 - c3 * power)) ** (1.0 / m1) / _WHITE_PQ
    linear = np.maximum(light.astype(np.float32) @ _TO_709.T, 0.0) * np.float32(_SHOWN_WHITE)
    return np.asarray(to_8bit(linear))


# ---- Photographs -----------------------------------------------------------------------------------------------------------


def _photographs(folder: Path, limits: CaptureLimits) -> Source:
    for inside in _PHOTO_FOLDERS:
        here = folder / inside if inside else folder
        # Neighbours in time are matched: 2 comes before 10, as telephones and cameras number their pictures.
        called = [p for p in here.iterdir() if p.suffix.lower() in PHOTO_SUFFIXES] if here.is_dir() else []
        # Folders, pipes and links to nothing are called so too, and have no content that an input is known by.
        names = [p.name for p in called if p.is_file()]
        names.sort(key=lambda name: ([part.zfill(20) if part.isdigit() else part for part in re.split(r"(\d+)", name)], name))
        if names:
            break
    else:
        films = [p.name for p in folder.iterdir() if p.suffix.lower() in FILM_SUFFIXES]
        also = f"; it has films: name {str(folder / films[0])!r}" if films else ""
        unread = _unread([folder / inside for inside in _PHOTO_FOLDERS])
        also += f"; it has {unread}" if unread else ""
        raise AirworthyError(f"The folder {str(folder)!r} holds no photographs (JPEG, PNG, WebP){also}.")
    if len(names) > limits.frames:
        raise AirworthyError(f"The folder {str(here)!r} holds {len(names):,} photographs; {limits.frames:,} are the most.")
    source = Source(here, "photographs", count=len(names), limits=limits, names=tuple(names))
    unread = _unread([here])
    if unread:
        source.say(unread)
    others = sorted(p.name for p in called if p.name not in names)
    for name in others[:3]:
        source.say(f"{name} is no file")
    if len(others) > 3:
        source.say("further names of photographs are of no files")
    first = next(iter(source.pictures()), None)
    if first is None:
        raise AirworthyError(f"None of the {len(names)} photographs in {str(here)!r} can be read: {'; '.join(source.notes)}.")
    source.height, source.width = first.grey().shape
    source.focal = _exif_focal(here / first.name)
    return source


def _unread(folders: Sequence[Path]) -> str:
    """How many photographs are in forms that are not read, and what to do; empty: none."""
    found = [p.suffix.lower()[1:].upper() for folder in folders if folder.is_dir() for p in folder.iterdir()
             if p.suffix.lower() in UNREAD_SUFFIXES and p.is_file()]  # fmt: skip
    if not found:
        return ""
    kinds = ", ".join(sorted(set(found)))
    return f"{len(found)} photographs that are not read here and were passed over ({kinds}): {_CONVERTED}"


def _photo_pictures(source: Source) -> Iterator[Picture]:
    gate, skipped = CaptureFolder(source.path, source.limits), 0
    for number, name in enumerate(source.names):
        try:
            pixels = _upright(gate, name)
        except (DamagedImageError, AirworthyError) as reason:
            skipped += 1
            source.say(f"{name} {reason}" if skipped <= 3 else "further photographs cannot be read")
            continue
        yield Picture(number, float(number), name, lambda pixels=pixels: pixels)


def _upright(gate: CaptureFolder, name: str) -> ArrayU8:
    path = gate.locate(name)
    if path is None:
        raise DamagedImageError("is no file")
    pixels = gate.color(path)
    if pixels.shape[2] == 4:
        pixels = np.ascontiguousarray(pixels[..., :3])
    if min(pixels.shape[:2]) < 16:
        raise DamagedImageError("is under 16 pixels wide or high")
    turn = _exif(path).get(_ORIENTATION, 1)
    flip, quarters = _TURNS.get(turn if isinstance(turn, int) else 1, (False, 0))
    return np.rot90(pixels[:, ::-1] if flip else pixels, quarters)


# EXIF 2.3, tables 4 and 7: tags, and what each orientation asks for: a mirror image, then quarter turns counter-clockwise.
_ORIENTATION, _EXIF_IFD, _FOCAL_35MM = 0x0112, 0x8769, 0xA405
_TURNS = {1: (False, 0), 2: (True, 0), 3: (False, 2), 4: (True, 2), 5: (True, 1), 6: (False, 3), 7: (True, 3), 8: (False, 1)}


def _exif(path: Path) -> dict[int, Any]:
    """Tags of a photograph; none where they cannot be read."""
    from PIL import Image

    try:
        with Image.open(path) as image:
            tags = image.getexif()
            return {**dict(tags), **dict(tags.get_ifd(_EXIF_IFD))}
    except Exception:  # Pillow raises whatever its decoders raise; a photograph without tags is a photograph
        return {}


def _exif_focal(path: Path) -> float | None:
    return _focal_35mm(_exif(path).get(_FOCAL_35MM)) if read_bytes(path)[:2] == b"\xff\xd8" else None


def _focal_35mm(value: Any) -> float | None:
    """Focal length over the longer side from one for 35 mm film, whose frame is 36 mm wide."""
    try:
        found = float(value) / 36.0
    except (TypeError, ValueError, OverflowError, ZeroDivisionError):
        return None
    return found if 0.2 < found < 20.0 else None
