"""Clouds that stand or move rigidly before the cameras of one call."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from airworthy.core.arrays import Array, ArrayAny, ArrayIndex
from airworthy.core.errors import AirworthyError
from airworthy.splats.cloud import rotation_matrices

MOST_MOVERS = 4096
"""Before one camera."""
_POSITION_LIMIT = 1e6


@dataclass(frozen=True, eq=False)
class SplatMovers:
    """m clouds before each of c cameras, each in a pose of its own: rigid actors, furniture, many copies of one thing.

    Each is a camera of its own in the frame of its cloud, so colours turn with it and a cloud that stands at many places is in
    memory once. All Gaussians of a camera are sorted together.

    Raises:
        AirworthyError: If shapes do not fit each other or a value cannot be used.
    """

    cloud: ArrayLike
    """(m,) or (c, m) index among the renderer's clouds."""
    position: ArrayLike
    """(c, m, 3) origins of the clouds, world [m]."""
    attitude: ArrayLike
    """(c, m, 4) quaternion x, y, z, w, cloud to world."""
    active: ArrayLike | None = None
    """(c, m) which are there at all; None: all."""

    def __post_init__(self) -> None:
        where, turned = np.asarray(self.position, np.float64), np.asarray(self.attitude, np.float64)
        shape = where.shape[:2]
        if where.ndim != 3 or where.shape[2] != 3 or turned.shape != (*shape, 4):
            raise AirworthyError(
                f"Movers have positions of shape {where.shape} and attitudes of shape {turned.shape}; expected (c, m, 3) and"
                " (c, m, 4)."
            )
        if shape[1] > MOST_MOVERS:
            raise AirworthyError(f"{shape[1]} movers stand before each camera; expected at most {MOST_MOVERS}.")
        cloud = np.asarray(self.cloud)
        if cloud.shape not in ((shape[1],), shape) or not (np.issubdtype(cloud.dtype, np.integer) or not cloud.size):
            raise AirworthyError(
                f"Movers have cloud numbers of {cloud.dtype}, shape {cloud.shape}; expected whole numbers, one per mover"
                f" ({shape[1]},)."
            )
        there = np.ones(shape, bool) if self.active is None else np.asarray(self.active)
        if there.shape != shape or there.dtype != np.bool_:
            raise AirworthyError(
                f"`active` of movers is of {there.dtype}, shape {there.shape}; expected truth values {shape}, one per camera"
                " and mover."
            )
        norm = np.linalg.norm(turned, axis=-1, keepdims=True)
        usable = np.isfinite(where).all(-1) & (np.abs(where) <= _POSITION_LIMIT).all(-1) & (norm[..., 0] > 1e-9)
        if not (usable | ~there).all():
            raise AirworthyError(
                f"A mover's position is not finite or beyond {_POSITION_LIMIT:g} m, or its attitude is not a quaternion; mark"
                " movers that are not there in `active`."
            )
        with np.errstate(all="ignore"):
            turned = np.where(usable[..., None], turned / norm, (0.0, 0.0, 0.0, 1.0))
        for name, value in (
            ("cloud", np.broadcast_to(cloud.astype(np.int64), shape)),
            ("position", np.where(usable[..., None], where, 0.0)),
            ("attitude", turned),
            ("active", there),
        ):
            object.__setattr__(self, name, value)

    @property
    def camera_count(self) -> int:
        """Cameras that these are for."""
        return int(np.shape(self.position)[0])

    def part(self, some: slice | ArrayIndex) -> SplatMovers:
        """Return those of some of the cameras."""
        return SplatMovers(*(np.asarray(getattr(self, name))[some] for name in ("cloud", "position", "attitude", "active")))

    def views(self, position: Array, rotation: Array) -> tuple[ArrayAny, ...]:
        """Return every camera in the frame of every mover that is there.

        Args:
            position: (c, 3) of the cameras, world [m].
            rotation: (c, 3, 3) world to camera.

        Returns:
            Camera (n,) rising, cloud (n,), position (n, 3) in the cloud's frame, rotation (n, 3, 3) of the cloud to the camera.
        """
        camera, mover = np.nonzero(np.asarray(self.active))
        turned = rotation_matrices(np.asarray(self.attitude)[camera, mover])
        away = position[camera] - np.asarray(self.position)[camera, mover]
        inside = np.einsum("nji,nj->ni", turned, away)
        return camera, np.asarray(self.cloud)[camera, mover], inside, rotation[camera] @ turned
