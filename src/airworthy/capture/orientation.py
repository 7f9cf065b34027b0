"""Which way is up in a capture: what the set says, or what its cameras suggest."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from airworthy.capture.listing import Listing
from airworthy.capture.record import CaptureImages
from airworthy.core import frames
from airworthy.scenes.splats import SourceFrame
from airworthy.scenes.splats.transforming import up_turn

__all__ = ["mean_up", "oriented"]

_UPRIGHT = 0.3
"""Mean of the cameras' upward directions below which they do not tell what is up."""
IDENTITY = np.array(frames.IDENTITY)


def oriented(images: CaptureImages, listing: Listing, up: str | None) -> CaptureImages:
    """The capture with z up; scale and origin stay.

    Args:
        images: As read.
        listing: What the set says.
        up: As of `read_capture`.

    Raises:
        AirworthyError: There is no such axis.
    """
    if up == "none" or (up is None and listing.up == "z"):
        said = "left as it is" if up == "none" else "z, as the set says"
        return _turned(images, IDENTITY, "z", f"up: {said}")
    if up is not None:
        return _turned(images, np.array(up_turn(up)), up, f"up: the axis {up} of the set, now z")
    direction, length = mean_up(images.attitude)
    if length < _UPRIGHT:
        return _turned(
            images,
            IDENTITY,
            "",
            f"up: unknown, since the cameras disagree (their mean is {length:.2f} long); frame left as it is",
        )
    text = ", ".join(f"{value:.3f}" for value in direction)
    note = f"up: the mean of the cameras' upward directions, ({text}) of the set, now z; scale and origin left as they are"
    return _turned(images, _turn_to_z(direction), f"({text})", note)


def mean_up(attitude: NDArray[np.floating]) -> tuple[NDArray[np.float64], float]:
    """Unit mean (3,) of the directions that are up in the images of cameras (n, 4), and how long it was, in [0, 1]."""
    mean = frames.rotate(attitude, np.array([0.0, -1.0, 0.0])).mean(axis=0)
    length = float(np.linalg.norm(mean))
    return mean / max(length, 1e-12), length


def _turn_to_z(direction: NDArray[np.float64]) -> NDArray[np.float64]:
    """The shortest turn that leads a direction to z."""
    axis = np.cross(direction, (0.0, 0.0, 1.0))
    angle = float(np.arctan2(np.linalg.norm(axis), direction[2]))
    return frames.from_axis_angle(axis if np.linalg.norm(axis) > 1e-12 else np.array([1.0, 0.0, 0.0]), np.array(angle))


def _turned(images: CaptureImages, turn: NDArray[np.float64], axis: str, note: str) -> CaptureImages:
    started = replace(images, source=SourceFrame(axis, ""), notes=(*images.notes, note))
    return started if (turn[:3] == 0.0).all() else started.moved(turn, np.zeros(3), 1.0)
