"""The frame of a capture, and how it is told in the header of a PLY.

    comment Frame: place
    comment Capture To Place Scale: 2.5
    comment Capture To Place Rotation: 0 0 0 1
    comment Capture To Place Translation: 0 0 0

p_place = scale R(rotation) p_capture + translation; the rotation is a quaternion x, y, z, w, the translation in metres. The
frame is that of the coordinates in the file, once its vertical axis is turned to z: the place's, or the capture's own, which is
not turned.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from airworthy.core import frames
from airworthy.core.arrays import Array

__all__ = ["SourceFrame", "capture_comments", "inverse_of", "read_capture_comments"]

_LINE = re.compile(rb"comment (Frame|Capture To Place (?:Scale|Rotation|Translation)): *([^\r\n]{1,200})[\r\n]")
_LARGEST = 1e9
_ROTATION_ERROR = 1e-3


@dataclass(frozen=True)
class SourceFrame:
    """The frame of a file, and the similarity that led from it to the scene: p = scale * R(rotation) p_file + translation."""

    up: str
    """The axis of the file that was taken as up: "y", "-y", "z", ..."""
    axes: str
    """What the container says of its axes, in words; "" where it says nothing."""
    rotation: tuple[float, float, float, float] = (0.0, 0.0, 0.0, 1.0)
    """Quaternion x, y, z, w."""
    translation: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """[m]."""
    scale: float = 1.0


def inverse_of(source: SourceFrame) -> tuple[Array, Array, float]:
    """Return rotation (4,), translation (3,) and scale of the way back, from the scene to the source."""
    turn = frames.conjugate(np.array(source.rotation))
    return turn, -frames.rotate(turn, np.array(source.translation)) / source.scale, 1.0 / source.scale


def capture_comments(source: SourceFrame, frame: str) -> list[str]:
    """Return the lines of a header that tell of a capture's frame; numbers come back to the last bit."""

    def text(values: tuple[float, ...]) -> str:
        return " ".join(repr(float(value)) for value in values)

    return [
        f"comment Frame: {frame}",
        f"comment Capture To Place Scale: {text((source.scale,))}",
        f"comment Capture To Place Rotation: {text(source.rotation)}",
        f"comment Capture To Place Translation: {text(source.translation)}",
    ]


def read_capture_comments(head: bytes) -> tuple[SourceFrame | None, bool, str]:
    """Return the similarity that a header tells, whether its coordinates are the capture's, and a warning, or nothing of each.

    Args:
        head: Bytes of the header.
    """
    said = {key.decode(): value.decode("latin-1").strip() for key, value in _LINE.findall(head)}
    in_capture = said.pop("Frame", "") == "capture"
    if not said:
        return None, in_capture, "it is in the frame of a capture, and does not say how that lies" if in_capture else ""
    try:
        numbers = {key.rsplit(" ", 1)[1]: [float(part) for part in value.split()] for key, value in said.items()}
        (scale,), (x, y, z, w), (a, b, c) = numbers["Scale"], numbers["Rotation"], numbers["Translation"]
        values = np.array([scale, x, y, z, w, a, b, c])
        sound = bool((np.abs(values) < _LARGEST).all()) and scale > 1.0 / _LARGEST
        sound = sound and abs(float(np.linalg.norm([x, y, z, w])) - 1.0) < _ROTATION_ERROR
    except (KeyError, ValueError):
        sound = False
    if not sound:
        return None, in_capture, "its comments on the frame of its capture are not understood"
    return SourceFrame("z", "", (x, y, z, w), (a, b, c), scale), in_capture, ""
