"""Writing splats: PLY as 3DGS has it, and SPZ versions 2 and 3. The same splats give the same bytes."""

from __future__ import annotations

import math
import struct
import warnings
import zlib
from pathlib import Path
from typing import Literal

import numpy as np

from airworthy.core import files, frames
from airworthy.core.arrays import ArrayU8, ArrayU32, NDArray
from airworthy.core.errors import AirworthyError, AssetWarning
from airworthy.scenes.splats._ply import SQRT_HALF, smallest_three
from airworthy.scenes.splats._spz import COLOR_SLOPE, MAGIC, NINE_BITS
from airworthy.scenes.splats.capture_frame import SourceFrame, capture_comments, inverse_of
from airworthy.scenes.splats.editing import transformed, up_turn
from airworthy.scenes.splats.record import Splats

_LOGIT_MAX = 16.0
"""Of an opacity: 1 - 1e-7, the last below 1 in float32."""
_FRACTION = 12
_FIXED_MAX = (1 << 23) - 1


def write_splats(
    splats: Splats,
    path: str | Path,
    *,
    up: str | None = None,
    spz_version: int = 3,
    source: SourceFrame | None = None,
    frame: Literal["place", "capture"] = "place",
) -> Path:
    """Write splats as .ply (3DGS, float32) or .spz, by the suffix; an existing file is replaced whole.

    Args:
        splats: In the frame of a scene, z up.
        path: Where to.
        up: The axis that points up in the file. PLY: "-y" as of 3DGS unless given, and stated in a comment of the header; SPZ
            has y up.
        spz_version: 2 (quaternions of 3 bytes) or 3 (of 4).
        source: The frame of the capture that the splats were trained from, and the similarity from there to the scene; stated
            in comments of a PLY's header, by which `read_splats` finds the way.
        frame: "capture" writes a PLY's coordinates in that frame, as the capture's own cameras have them.

    Raises:
        AirworthyError: The suffix is neither, there is nothing to write, the frame is not known, or SPZ cannot hold the
            positions or a frame.
    """
    path = Path(path)
    suffix = path.suffix.lower()
    if suffix not in (".ply", ".spz"):
        raise AirworthyError(f"{str(path)!r} cannot be written as splats: its name must end in .ply or .spz.")
    if not len(splats):
        raise AirworthyError("There are no gaussians to write.")
    if frame == "capture" and (source is None or up is not None):
        raise AirworthyError("Splats in the capture's frame need its `source`, and no `up`: its axes are what they are.")
    if suffix == ".ply":
        return files.write_bytes(path, _ply(splats, up or "-y", source, frame))
    if source is not None:
        raise AirworthyError("SPZ files have no room for the frame of a capture; write a .ply, or leave `source` out.")
    if up not in (None, "y"):
        raise AirworthyError(f"SPZ files have y up; up={up!r} cannot be written.")
    if spz_version not in (2, 3):
        raise AirworthyError(f"SPZ version {spz_version} was asked for; 2 and 3 are written.")
    # No time in the header: equal splats are equal files.
    return files.write_bytes(path, _gzip(_spz(splats, spz_version)))


def _in_file(splats: Splats, up: str) -> Splats:
    turn = up_turn(up)
    return splats if up == "z" else transformed(splats, frames.conjugate(np.array(turn)))


def _ply(splats: Splats, up: str, source: SourceFrame | None, frame: str) -> bytes:
    if source is not None and frame == "capture":
        turned, comments = transformed(splats, *inverse_of(source)), []
    else:
        turned, comments = _in_file(splats, up), [f"comment Vertical Axis: {up}"]
    comments += capture_comments(source, frame) if source is not None else []
    count, k, _ = turned.harmonics.shape
    # Normals are zeros that 3DGS writes: some readers count columns.
    names = ["x", "y", "z", "nx", "ny", "nz", "f_dc_0", "f_dc_1", "f_dc_2"]
    names += [f"f_rest_{index}" for index in range(3 * (k - 1))]
    names += ["opacity", *(f"scale_{axis}" for axis in range(3)), *(f"rot_{index}" for index in range(4))]
    head = ["ply", "format binary_little_endian 1.0", *comments, f"element vertex {count}"]
    head += [*(f"property float {name}" for name in names), "end_header", ""]
    rows = np.zeros((count, len(names)), "<f4")
    rows[:, :3] = turned.position
    rows[:, 6:9] = turned.harmonics[:, 0]
    # 3DGS keeps all coefficients of red, then of green, then of blue.
    rows[:, 9:-8] = turned.harmonics[:, 1:].transpose(0, 2, 1).reshape(count, -1)
    with np.errstate(divide="ignore"):
        opacity = turned.opacity.astype(np.float64)
        # Before the sigmoid that readers apply; 0 and 1 would be infinite.
        rows[:, -8] = (np.log(opacity) - np.log1p(-opacity)).clip(-_LOGIT_MAX, _LOGIT_MAX)
    rows[:, -7:-4] = np.log(turned.scale)
    rows[:, -4:] = turned.rotation[:, [3, 0, 1, 2]]
    return "\n".join(head).encode() + rows.tobytes()


_SCALES = (math.exp(-10.0 - 1.0 / 32.0), math.exp(255.0 / 16.0 - 10.0 + 1.0 / 32.0))
"""Of a version of SPZ, with the half step by which they are rounded [m]."""


def _spz(splats: Splats, version: int) -> bytes:
    turned = _in_file(splats, "y")
    count = len(turned)
    largest = float(np.abs(turned.position).max())
    # As many bits behind the point as the largest coordinate leaves of 24.
    fraction = min(_FRACTION, math.floor(math.log2(_FIXED_MAX / max(largest, 1e-6))))
    if fraction < 0:
        raise AirworthyError(f"SPZ holds positions up to {_FIXED_MAX:,} m, and these reach {largest:.3g} m; crop or move them.")
    head = MAGIC + struct.pack("<IIBBBB", version, count, turned.degree, fraction, 0, 0)
    fixed = np.round(turned.position.astype(np.float64) * 2.0**fraction).astype("<i4")
    position = np.ascontiguousarray(fixed).view(np.uint8).reshape(-1, 4)[:, :3]
    # The colour of degree 0 is 0.5 + C0 h; SPZ keeps 0.5 + 0.15 h, which leaves room for colours outside 0 to 1.
    color = _byte(turned.harmonics[:, 0] * (COLOR_SLOPE * 255) + 127.5)
    scale = _byte((np.log(turned.scale) + 10) * 16)
    outside = int(((turned.scale < _SCALES[0]) | (turned.scale > _SCALES[1])).any(1).sum())
    if outside:
        warnings.warn(
            f"SPZ holds scales from {_SCALES[0]:.2g} to {_SCALES[1]:.3g} m; {outside:,} of {count:,} gaussians were clipped.",
            AssetWarning,
            stacklevel=3,
        )
    rest = _byte(turned.harmonics[:, 1:] * 128 + 128)
    rotation = _first_three(turned.rotation) if version == 2 else _smallest_three(turned.rotation)
    parts = (position, _byte(turned.opacity * 255), color, scale, rotation, rest)
    return head + b"".join(np.ascontiguousarray(part).tobytes() for part in parts)


def _byte(values: NDArray[np.floating]) -> ArrayU8:
    return np.round(values).clip(0, 255).astype(np.uint8)


def _first_three(rotation: NDArray[np.floating]) -> ArrayU8:
    # q and -q turn alike: with w positive, readers find it from the other three.
    sign = np.where(rotation[:, 3:] < 0, -1.0, 1.0)
    return _byte(rotation[:, :3] * sign * 127.5 + 127.5)


def _smallest_three(rotation: NDArray[np.floating]) -> ArrayU32:
    largest, three = smallest_three(rotation)
    size = np.minimum(np.abs(three) / SQRT_HALF * NINE_BITS + 0.5, NINE_BITS).astype("<u4")
    parts = size | (three < 0).astype("<u4") << np.uint32(9)
    return (largest.astype("<u4") << np.uint32(30)) | parts[:, 0] << np.uint32(20) | parts[:, 1] << np.uint32(10) | parts[:, 2]


def _gzip(data: bytes) -> bytes:
    # By zlib, not `gzip`, which writes another header from Python 3.13 on: the same splats are the same file everywhere.
    packer = zlib.compressobj(6, wbits=31)
    return packer.compress(data) + packer.flush()
