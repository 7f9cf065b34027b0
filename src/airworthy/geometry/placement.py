"""Where things are: the instances of one layer of an environment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from airworthy.core.arrays import Array, ArrayAny, ArrayBool
from airworthy.core.errors import AirworthyError

FIRST_INSTANCE_ID = 100
"""Number of the first instance where the caller gives none."""
DEFAULT_SEMANTIC = 3
"""Class number of an instance where the caller gives none."""
POSITION_LIMIT = 1e7
"""Farthest that anything may be from the world's origin, per axis [m]."""


@dataclass(frozen=True, eq=False)
class Placement:
    """Instances of shapes: arrays of n rows, checked and converted when made.

    Make one with `Placement.of`, which fills in what is not said.

    Raises:
        AirworthyError: If row counts differ, a value is not finite, a quaternion is zero or a scale is not positive.
    """

    shape: NDArray[np.int32]
    """(n,) index into the batch's shapes."""
    position: Array
    """(n, 3) world [m]."""
    attitude: Array
    """(n, 4) quaternion x, y, z, w, local to world; normalised here."""
    scale: Array
    """(n,) uniform, > 0."""
    instance_id: NDArray[np.int32]
    """(n,)"""
    semantic_id: NDArray[np.int32]
    """(n,)"""
    material: NDArray[np.int32]
    """(n,) first row of the instance's materials in a table of appearances; carried along, never read here."""
    visible: ArrayBool
    """(n,) rays see it."""
    collide: ArrayBool
    """(n,) distance, sweep and occupancy queries meet it."""

    def __post_init__(self) -> None:
        count = len(np.atleast_1d(self.shape))
        for name, (kind, width) in _FIELDS.items():
            object.__setattr__(self, name, _column(name, getattr(self, name), kind, width, count))
        if (self.shape < 0).any():
            raise AirworthyError(f"A placement's shape has the index {int(self.shape.min())}; expected 0 or more.")
        if not (np.abs(self.position) <= POSITION_LIMIT).all():
            raise AirworthyError(
                f"A placement's position is not finite or beyond {POSITION_LIMIT:g} m; give metres near the origin."
            )
        object.__setattr__(self, "attitude", unit_quaternions(self.attitude, "A placement's attitude"))
        if not (np.isfinite(self.scale) & (self.scale > 0.0)).all():
            raise AirworthyError(
                "A placement's scale holds a value that is not a positive number; expected one factor > 0 each."
            )

    def __len__(self) -> int:
        return len(self.shape)

    @classmethod
    def of(
        cls,
        shape: ArrayLike,
        position: ArrayLike = (0.0, 0.0, 0.0),
        attitude: ArrayLike = (0.0, 0.0, 0.0, 1.0),
        scale: ArrayLike = 1.0,
        instance_id: ArrayLike | None = None,
        semantic_id: ArrayLike = DEFAULT_SEMANTIC,
        material: ArrayLike = 0,
        visible: ArrayLike = True,
        collide: ArrayLike = True,
    ) -> Placement:
        """Instances from whatever is known of them; one value serves all rows.

        Args:
            shape: (n,) index of each instance's shape, or one index.
            position: (n, 3) or (3,) world [m].
            attitude: (n, 4) or (4,) quaternion x, y, z, w, local to world.
            scale: (n,) or one factor.
            instance_id: (n,); by default 100, 101, ...
            semantic_id: (n,) or one class number.
            material: (n,) or one row number.
            visible: (n,) or one flag: rays see it.
            collide: (n,) or one flag: distance and sweep queries meet it.
        """
        counts = [len(np.atleast_1d(np.asarray(x))) for x in (shape, scale) if np.ndim(x)]
        counts += [len(np.asarray(x)) for x in (position, attitude) if np.ndim(x) == 2]
        n = max(counts, default=1) if 0 not in counts else 0
        # As Aerial Gym counts its assets (spec/aerial_gym 7.1).
        ids = FIRST_INSTANCE_ID + np.arange(n) if instance_id is None else instance_id
        given: dict[str, Any] = {
            "shape": shape, "position": position, "attitude": attitude, "scale": scale, "instance_id": ids,
            "semantic_id": semantic_id, "material": material, "visible": visible, "collide": collide,
        }  # fmt: skip
        return cls(**{name: _spread(name, value, n) for name, value in given.items()})

    @classmethod
    def empty(cls) -> Placement:
        """Return no instance at all."""
        return cls.of(shape=np.zeros(0, np.int32))


_FIELDS: dict[str, tuple[Any, int]] = {
    "shape": (np.int32, 0),
    "position": (np.float64, 3),
    "attitude": (np.float64, 4),
    "scale": (np.float64, 0),
    "instance_id": (np.int32, 0),
    "semantic_id": (np.int32, 0),
    "material": (np.int32, 0),
    "visible": (np.bool_, 0),
    "collide": (np.bool_, 0),
}


def _spread(name: str, value: ArrayLike, count: int) -> ArrayAny:
    width = _FIELDS[name][1]
    array = np.asarray(value)
    # One value for all rows: a vector where the field is one, else a number.
    if array.ndim == (1 if width else 0):
        return np.broadcast_to(array, (count, *array.shape))
    return array


def _column(name: str, value: Any, kind: Any, width: int, count: int) -> ArrayAny:
    array = np.ascontiguousarray(value, kind)
    expected = (count, width) if width else (count,)
    if array.shape != expected:
        raise AirworthyError(f"A placement's {name} has shape {array.shape}; expected {expected}, one row per instance.")
    return array


def unit_quaternions(value: ArrayLike, what: str) -> Array:
    """Quaternions (..., 4) scaled to unit length.

    Raises:
        AirworthyError: If one is zero or not finite.
    """
    array = np.array(value, np.float64)
    # Anything but zero is accepted: files give quaternions with few digits.
    norm = np.sqrt(np.sum(array * array, axis=-1, keepdims=True))
    if not (np.isfinite(norm) & (norm > 1e-9)).all():
        raise AirworthyError(f"{what} holds a quaternion that is zero or not finite; expected x, y, z, w of unit length.")
    return array / norm
