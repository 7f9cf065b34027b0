"""Splats moved as a whole: similarity transformations, and the turns from a file's up axis to z."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from airworthy.core import frames
from airworthy.core.errors import AirworthyError, unknown_name
from airworthy.scenes.splats.harmonics import turned
from airworthy.scenes.splats.record import Splats

Doubles = NDArray[np.float64]
_HALF = float(np.sqrt(0.5))
UP_TURNS: dict[str, tuple[float, float, float, float]] = {
    "x": (0.0, -_HALF, 0.0, _HALF),
    "-x": (0.0, _HALF, 0.0, _HALF),
    "y": (_HALF, 0.0, 0.0, _HALF),
    "-y": (-_HALF, 0.0, 0.0, _HALF),
    "z": (0.0, 0.0, 0.0, 1.0),
    "-z": (1.0, 0.0, 0.0, 0.0),
}
"""Quaternions x, y, z, w that turn the axis of a file that points up into z; x stays where that is possible."""
IDENTITY = (0.0, 0.0, 0.0, 1.0)
_BLOCK = 1 << 16


def transformed(
    splats: Splats, rotation: ArrayLike = IDENTITY, translation: ArrayLike = (0.0, 0.0, 0.0), scale: float = 1.0
) -> Splats:
    """Splats scaled about the origin, then rotated, then moved; what depends on the viewing direction turns with them.

    Args:
        splats: The splats.
        rotation: Quaternion x, y, z, w of any length.
        translation: [m].
        scale: Factor of the whole scene, > 0.

    Raises:
        AirworthyError: The rotation is zero, or something is not finite or not positive.
    """
    quaternion, offset = _checked(rotation, translation, scale)
    position, attitude = _moved(splats.position, splats.rotation, quaternion, offset, scale)
    sizes = splats.scale * np.float32(scale)
    harmonics = splats.harmonics if _is_identity(quaternion) else turned(splats.harmonics, quaternion)
    return Splats(position, attitude, sizes, splats.opacity, harmonics)


def _checked(rotation: ArrayLike, translation: ArrayLike, scale: float) -> tuple[Doubles, Doubles]:
    quaternion = np.asarray(rotation, np.float64)
    offset = np.asarray(translation, np.float64)
    if quaternion.shape != (4,) or not np.isfinite(quaternion).all() or not np.linalg.norm(quaternion) > 0:
        raise AirworthyError(f"The rotation of splats is {rotation!r}; expected a quaternion x, y, z, w that is not zero.")
    if offset.shape != (3,) or not np.isfinite(offset).all():
        raise AirworthyError(f"The translation of splats is {translation!r}; expected three finite numbers [m].")
    if not (np.isfinite(scale) and scale > 0):
        raise AirworthyError(f"The scale of splats is {scale!r}; expected a finite factor above 0.")
    return quaternion / np.linalg.norm(quaternion), offset


def _is_identity(quaternion: Doubles) -> bool:
    return bool((quaternion[:3] == 0.0).all())


def _moved(
    position: NDArray[np.floating], attitude: NDArray[np.floating], quaternion: Doubles, offset: Doubles, scale: float
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Means and rotations in the new frame; in blocks, since sums are made in float64."""
    matrix = scale * frames.to_matrix(quaternion)
    product = frames.multiply(quaternion, np.eye(4))  # rows: quaternion times each unit; the product is linear in the second
    new_position = np.empty(position.shape, np.float32)
    new_attitude = np.empty(attitude.shape, np.float32)
    for start in range(0, len(position), _BLOCK):
        here = slice(start, start + _BLOCK)
        new_position[here] = position[here].astype(np.float64) @ matrix.T + offset
        new_attitude[here] = attitude[here].astype(np.float64) @ product
    return new_position, new_attitude


def up_turn(up: str) -> tuple[float, float, float, float]:
    """Quaternion that turns a file's up axis into z.

    Raises:
        UnknownNameError: The axis is none of `UP_TURNS`.
    """
    if up not in UP_TURNS:
        raise unknown_name("up axis", up, UP_TURNS, "It is the axis of the file that points up; z leaves the file as it is.")
    return UP_TURNS[up]
