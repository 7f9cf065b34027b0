"""One recorded flight as a function of time, for cameras that follow it."""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np

from airworthy.core import frames
from airworthy.core.arrays import Array, ArrayBool, ArrayF32, ArrayU8
from airworthy.core.errors import AirworthyError, AssetError
from airworthy.core.files import read_bytes
from airworthy.reports.film.files import SUFFIXES
from airworthy.simulation import FlightTable

__all__ = ["EMBED_BYTES", "FilmLayout", "FlightTrack", "film_content", "font"]

# -----------------------------------------------------------------------------------------------------------------------------
# The film of a run in its report: contact sheet and, where it is small enough, the film itself, inside the one file.

EMBED_BYTES = 8 << 20
"""Films up to this size lie inside the report; larger ones beside it."""
SHEET_WIDTH = 1600
"""Of the contact sheet inside the report [px]."""
_SHEET_BYTES = 64 << 20
_KINDS = {".mp4": "video/mp4", ".webp": "image/webp"}


def film_content(folder: Path, summary: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return what a report shows of a film: "kind", "source", whether it lies "beside" the report, "sheet", "note"; or None.

    None where the summary tells of no film, or its files are not there.

    Raises:
        AssetError: The contact sheet is no picture.
    """
    film = summary.get("video")
    if not isinstance(film, Mapping):
        return None
    path, sheet = folder / Path(str(film.get("file"))).name, folder / Path(str(film.get("contact_sheet"))).name
    if path.suffix not in SUFFIXES or not (path.is_file() and sheet.is_file()):
        return None
    kind = _KINDS[path.suffix]
    inside = path.stat().st_size <= EMBED_BYTES
    data = f"data:{kind};base64,{base64.b64encode(read_bytes(path, EMBED_BYTES)).decode()}" if inside else quote(path.name)
    note = _note(film, path.name, inside)
    return {"kind": kind, "source": data, "beside": not inside, "sheet": _embedded(sheet), "note": note}


def _note(film: Mapping[str, Any], name: str, inside: bool) -> str:
    where = "" if inside else f" It is too large for this file: {name} must lie beside it."
    width, height = (film.get("size_px") or (0, 0))[:2]
    return f"Flight {film.get('env')}, camera {film.get('camera')}, {width}x{height} at {film.get('rate_hz'):g} Hz.{where}"


def _embedded(path: Path) -> str:
    """Return a picture as the page holds it: a JPEG, no wider than it is shown sharp."""
    from PIL import Image

    from airworthy.reports import pictures

    try:
        with Image.open(io.BytesIO(read_bytes(path, _SHEET_BYTES)), formats=["PNG"]) as image:
            return pictures.data_uri(pictures.fitted(np.asarray(image.convert("RGB")), SHEET_WIDTH))
    except (OSError, ValueError, Image.DecompressionBombError) as error:
        raise AssetError(f"{str(path)!r} is not a picture: {error}.") from error


# ---- What is laid over a film's pictures: the caption, and a second camera in the corner ------------------------------------

CORNER_SHARE = 0.3
"""Of the picture's width that the second camera takes."""
_MARGIN = 0.028
"""Of the picture's height, round what is laid over it."""
_TEXT = 0.04
"""Height of letters' lines over the picture's."""
_TEXT_MIN = 11
"""[px]"""
_FINER = 4
WHITE = (255, 255, 255)


@cache
def font(size: int, bold: bool = False) -> Any:
    """Return a font that is always there, at a height [px]: DejaVu Sans, which comes with matplotlib; its digits are all as
    wide.
    """
    from matplotlib import get_data_path
    from PIL import ImageFont

    name = "DejaVuSans-Bold" if bold else "DejaVuSans"
    return ImageFont.truetype(f"{get_data_path()}/fonts/ttf/{name}.ttf", size)


@dataclass(frozen=True)
class FilmLayout:
    """Where caption and corner picture lie in a film of this size."""

    width: int
    height: int

    @property
    def margin(self) -> int:
        """[px]"""
        return max(6, round(_MARGIN * self.height))

    @property
    def corner_size(self) -> tuple[int, int]:
        """Width and height of the second camera's picture, even [px]."""
        return 2 * round(0.5 * CORNER_SHARE * self.width), 2 * round(0.5 * CORNER_SHARE * self.height)

    def with_corner(self, picture: ArrayU8, small: ArrayU8) -> ArrayU8:
        """Return the picture with a small one in its lower right corner, in a thin bright frame."""
        cover, line = self._corner_masks(small.shape[1], small.shape[0])
        height, width = cover.shape[:2]
        top, left = self.height - self.margin - height, self.width - self.margin - width
        pad = (width - small.shape[1]) // 2
        framed = np.full((height, width, 3), 245.0, np.float32)
        framed[pad : pad + small.shape[0], pad : pad + small.shape[1]] = small
        inside = framed * (1.0 - line) + 245.0 * line
        out = picture.copy()
        under = out[top : top + height, left : left + width]
        out[top : top + height, left : left + width] = np.rint(under * (1.0 - cover) + inside * cover).astype(np.uint8)
        return out

    def with_caption(self, picture: ArrayU8, name: str, values: list[str]) -> ArrayU8:
        """Return the picture with a line of words at its lower left: white on a soft dark shade, values flush right in
        columns.

        Args:
            picture: RGB, (height, width, 3).
            name: In bold, in front.
            values: Texts, each flush right in its column.
        """
        from PIL import Image, ImageDraw

        size = max(_TEXT_MIN, round(_TEXT * self.height))
        regular, bold = font(size), font(size, True)
        layer = Image.new("L", (self.width, 4 * size))
        draw = ImageDraw.Draw(layer)
        x, base = float(self.margin), 2.6 * size
        draw.text((x, base), name, font=bold, fill=255, anchor="ls")
        x += bold.getlength(name) + 0.4 * size
        for text in values:
            # As wide as the longest value of its kind, or the line would tremble as digits come and go; "12.3 m/s" takes 4.4.
            x += max(regular.getlength(text) + 0.4 * size, 4.9 * size)
            draw.text((x, base), text, font=regular, fill=255, anchor="rs")
        return self._laid(picture, np.asarray(layer, np.float32) / 255.0, round(base), size)

    def _laid(self, picture: ArrayU8, ink: ArrayF32, base: int, size: int) -> ArrayU8:
        """White letters and their shade over the picture, their base line at the margin."""
        from scipy.ndimage import gaussian_filter

        shade = np.clip(2.2 * gaussian_filter(ink, 0.28 * size), 0.0, 0.62)[..., None]
        top = self.height - self.margin - base - round(0.1 * size)
        skip = max(0, -top)
        rows = slice(max(top, 0), min(top + len(ink), self.height))
        part = slice(skip, skip + rows.stop - rows.start)
        out = picture.copy()
        under = out[rows].astype(np.float32) * (1.0 - shade[part])
        letters = ink[part, :, None]
        out[rows] = np.rint(under * (1.0 - letters) + 255.0 * letters).astype(np.uint8)
        return out

    def _corner_masks(self, width: int, height: int) -> tuple[ArrayF32, ArrayF32]:
        """Return how much of each pixel the corner picture covers, and how much of that is its frame; (h, w, 1) each."""
        return _rounded(width, height, max(1, round(self.height / 360)), max(3, round(0.016 * self.height)))


@cache
def _rounded(width: int, height: int, line: int, radius: int) -> tuple[ArrayF32, ArrayF32]:
    from PIL import Image, ImageDraw

    size = (width + 2 * line, height + 2 * line)
    masks = []
    for inset in (0, line):
        image = Image.new("L", (_FINER * size[0], _FINER * size[1]))
        low, high = _FINER * inset, (_FINER * (size[0] - inset) - 1, _FINER * (size[1] - inset) - 1)
        ImageDraw.Draw(image).rounded_rectangle((low, low, *high), _FINER * max(radius - inset, 1), fill=255)
        masks.append(np.asarray(image.reduce(_FINER), np.float32)[..., None] / np.float32(255.0))
    outer, inner = masks
    return outer, np.asarray(1.0 - inner / np.maximum(outer, 1e-6), np.float32).clip(0.0, 1.0)


# -----------------------------------------------------------------------------------------------------------------------------

LINGER = 1.0
"""How long a film goes on after a flight has ended before its time [s]."""
_JUMP = 3.0
"""A vehicle that moves more than this many times what its speed allows was put somewhere else (it started again)."""
_JUMP_MIN = 0.3
"""And at least this far [m]."""


@dataclass(frozen=True, eq=False)
class FlightTrack:
    """Rows of one environment in order of time."""

    times: Array
    """(n,) [s], rising."""
    position: Array
    """(n, 3) of the centre of mass, world [m]."""
    velocity: Array
    """(n, 3) world [m/s]; zero where the flight has ended."""
    attitude: Array
    """(n, 4) body to world, signs continuous."""
    jumps: ArrayBool
    """(n - 1,) whether the vehicle was put somewhere else between a row and the next."""
    joints: Array | None = None
    """(n, joints) angles [rad] of a vehicle with joints."""

    @classmethod
    def of(cls, table: FlightTable, env: int | None = None) -> FlightTrack:
        """Return the flight of an environment; None: of the first that the table has.

        Raises:
            AirworthyError: The table has no such flight, or no finite pose of it.
        """
        if not table.env_count:
            raise AirworthyError("There is no flight to film: the table has no rows.")
        number = int(table.envs[0]) if env is None else env
        one = table.flight(number)
        where, turned, speed = (one.vector(name).astype(np.float64) for name in ("position", "attitude", "velocity"))
        keep = np.isfinite(where).all(1) & np.isfinite(turned).all(1) & np.isfinite(speed).all(1)
        flying = np.flatnonzero(keep & (one.status == 0))
        end = one.t[flying[-1]] if len(flying) else -np.inf
        keep &= one.t <= end + LINGER + 1e-9
        if not keep.any():
            raise AirworthyError(f"The flight of environment {number} has no finite pose to film.")
        speed = np.where((one.status == 0)[:, None], speed, 0.0)[keep]
        times, where = one.t[keep].astype(np.float64), where[keep]
        bent = one.joints[keep].astype(np.float64) if one.joints.shape[1] else None
        return cls(times, where, speed, frames.continuous(frames.normalize(turned[keep])), _jumps(times, where, speed), bent)

    def bent(self, times: Array) -> Array | None:
        """Return the angles of joints at times (k,) [s], (k, joints) [rad]; None of a vehicle without."""
        if self.joints is None:
            return None
        return np.stack([np.interp(times, self.times, column) for column in self.joints.T], axis=1)

    @property
    def duration(self) -> float:
        """From the first row to the last [s]."""
        return float(self.times[-1] - self.times[0])

    def frame_times(self, rate: float) -> Array:
        """Return times of the frames of a film [s]: every 1 / rate from the first row on."""
        # A duration of whole frames may be a rounding short of them.
        return self.times[0] + np.arange(int(np.floor(self.duration * rate + 1e-6)) + 1) / rate

    def takes(self, times: Array) -> list[slice]:
        """Return runs of frames between which the vehicle was put somewhere else."""
        row = np.clip(np.searchsorted(self.times, times, side="right") - 1, 0, len(self.times) - 1)
        past = np.concatenate([[0], np.cumsum(self.jumps)])[row]
        cuts = [0, *(np.flatnonzero(np.diff(past)) + 1).tolist(), len(times)]
        return [slice(first, last) for first, last in pairwise(cuts)]

    def pose(self, times: Array) -> tuple[Array, Array, Array]:
        """Return the position (k, 3), attitude (k, 4) and velocity (k, 3) at times (k,) [s], held before the first row and
        after the last.

        Positions are cubic between rows, through their velocities (Hermite); attitudes turn at constant speed on the
        shortest way. Where the vehicle was put somewhere else it stays until it is there.
        """
        if len(self.times) == 1:
            only = np.zeros(len(times), int)
            return self.position[only], self.attitude[only], self.velocity[only]
        row = np.clip(np.searchsorted(self.times, times, side="right") - 1, 0, len(self.times) - 2)
        span = self.times[row + 1] - self.times[row]
        share = np.clip((times - self.times[row]) / span, 0.0, 1.0)
        # 0 all the way and 1 at its end: between two places there is no path to show.
        share = np.where(self.jumps[row], np.floor(share), share)[:, None]
        position = _hermite(self.position[row], self.velocity[row], self.position[row + 1], self.velocity[row + 1], span, share)
        attitude = frames.slerp(self.attitude[row], self.attitude[row + 1], share[:, 0])
        return position, attitude, (1.0 - share) * self.velocity[row] + share * self.velocity[row + 1]


def _hermite(p0: Array, v0: Array, p1: Array, v1: Array, span: Array, s: Array) -> Array:
    """Cubic with given positions and velocities at both ends of spans (k,) [s], at shares s (k, 1)."""
    h = span[:, None]
    return np.asarray(
        (1.0 + 2.0 * s) * (1.0 - s) ** 2 * p0
        + s * (1.0 - s) ** 2 * h * v0
        + s**2 * (3.0 - 2.0 * s) * p1
        - s**2 * (1.0 - s) * h * v1
    )


def _jumps(times: Array, position: Array, velocity: Array) -> ArrayBool:
    moved = np.linalg.norm(np.diff(position, axis=0), axis=1)
    speed = np.linalg.norm(velocity, axis=1)
    return np.asarray(moved > _JUMP_MIN + _JUMP * np.maximum(speed[:-1], speed[1:]) * np.diff(times))
