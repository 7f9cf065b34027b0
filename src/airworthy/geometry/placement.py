"""Where things are: the instances of one layer of an environment.

What can be hit: triangle meshes and four analytic solids, each in its own frame.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from airworthy.core.arrays import Array, ArrayAny, ArrayBool, ArrayFloat, ArrayLike, NDArray
from airworthy.core.errors import AirworthyError

Vector3 = tuple[float, float, float]
Ints = NDArray[np.integer[Any]]


@dataclass(frozen=True)
class Box:
    """Axis-aligned, centred at the origin."""

    half_size: Vector3
    """Half lengths [m]."""


@dataclass(frozen=True)
class Sphere:
    """Centred at the origin."""

    radius: float
    """[m]"""


@dataclass(frozen=True)
class Cylinder:
    """Along z, centred at the origin, closed at both ends."""

    radius: float
    """[m]"""
    half_length: float
    """Half of its length along z [m]."""


@dataclass(frozen=True)
class Capsule:
    """Along z, centred at the origin: a cylinder with a hemisphere at each end."""

    radius: float
    """[m]"""
    half_length: float
    """Half of the length of the cylindrical part [m]."""


@dataclass(frozen=True, eq=False)
class Mesh:
    """Triangles. Counter-clockwise seen from outside; both sides are hit.

    Compared and hashed by identity: one mesh is built once and used by many instances.

    Raises:
        AirworthyError: If shapes do not fit, an index is out of range, or a vertex is not finite.
    """

    vertices: ArrayFloat
    """(V, 3) [m]."""
    faces: Ints
    """(F, 3) vertex indices."""
    normals: ArrayFloat | None = None
    """(V, 3) unit vertex normals for shading; None: flat."""
    uv: ArrayFloat | None = None
    """(V, 2) texture coordinates, origin at the upper left of the image (as glTF)."""
    colors: ArrayFloat | None = None
    """(V, 4) linear RGBA in [0, 1], multiplied into the material's base colour."""
    face_material: Ints | None = None
    """(F,) index into the instance's materials; None: all 0."""
    channels: dict[str, ArrayFloat] = field(default_factory=dict)
    """The user's own vertex channels, each (V,) or (V, k), interpolated on request."""

    def __post_init__(self) -> None:
        # The class is frozen for its users; contiguous single precision is what kernels and trees expect.
        object.__setattr__(self, "vertices", _array("vertices", self.vertices, np.float32, 3))
        object.__setattr__(self, "faces", _array("faces", self.faces, np.int32, 3))
        count = len(self.vertices)
        if not np.isfinite(self.vertices).all():
            raise AirworthyError("A mesh's vertices hold NaN or infinity; drop those vertices first.")
        if self.faces.size and (self.faces.min() < 0 or self.faces.max() >= count):
            raise AirworthyError(f"A mesh's faces name vertices outside 0..{count - 1}.")
        for name, width in (("normals", 3), ("uv", 2), ("colors", 4)):
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, _per(name, _array(name, value, np.float32, width), count, "vertices"))
        if self.face_material is not None:
            material = np.ascontiguousarray(self.face_material, np.int32)
            object.__setattr__(self, "face_material", _per("face_material", material, len(self.faces), "faces"))
        for name, value in self.channels.items():
            # In place: the dictionary is the mesh's own, though its fields cannot be set.
            self.channels[name] = _per(f"channel {name!r}", np.ascontiguousarray(value, np.float32), count, "vertices")


Shape = Box | Sphere | Cylinder | Capsule | Mesh


def _array(name: str, value: Any, kind: Any, width: int) -> ArrayAny:
    array = np.ascontiguousarray(value, kind)
    if array.ndim != 2 or array.shape[1] != width:
        raise AirworthyError(f"A mesh's {name} have shape {array.shape}; expected (n, {width}).")
    return array


def _per(name: str, array: ArrayAny, count: int, of: str) -> ArrayAny:
    if len(array) != count:
        raise AirworthyError(f"A mesh has {count} {of} but {len(array)} rows of {name}.")
    return array


def bounds(shape: Shape) -> tuple[Array, Array]:
    """Lower and upper corner of a shape in its own frame [m], each (3,); of a mesh without triangles, zeros."""
    if isinstance(shape, Mesh):
        if not len(shape.faces):
            return np.zeros(3), np.zeros(3)
        # Vertices that no face uses are no part of the surface; scans often hold some.
        used = shape.vertices[shape.faces.reshape(-1)].astype(np.float64)
        return used.min(0), used.max(0)
    half = _half_size(shape)
    return -half, half


def _half_size(shape: Box | Sphere | Cylinder | Capsule) -> Array:
    if isinstance(shape, Box):
        return np.array(shape.half_size, float)
    if isinstance(shape, Sphere):
        return np.full(3, float(shape.radius))
    # A capsule's half length is that of its straight part alone.
    end = shape.radius if isinstance(shape, Capsule) else 0.0
    return np.array([shape.radius, shape.radius, shape.half_length + end], float)


FIRST_INSTANCE_ID = 100
"""Number of the first instance where the caller gives none."""
DEFAULT_SEMANTIC = 3
"""Class number of an instance where the caller gives none."""
SHADOWS = {"own": 0, "none": 1, "only": 2}
"""How an instance stands in the way of light: as it is, not at all, or of light alone (no eye sees it)."""
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
    group: NDArray[np.int32]
    """(n,) things with one number can be passed through together by segments (`occluded`); 0: in no group."""
    shadow: NDArray[np.int32] | None = None
    """(n,) of `SHADOWS`; None: all cast their own."""
    footprint: Array | None = None
    """(n, 2) widths of pixels at the instance's place from which on, and up to which, rays that know an eye meet it [m]; an end
    of 0: without end; None: always."""

    def __post_init__(self) -> None:
        count = len(np.atleast_1d(self.shape))
        for name in ("shadow", "footprint"):
            if getattr(self, name) is None:
                object.__setattr__(self, name, np.zeros((count, 2) if name == "footprint" else count))
        for name, (kind, width) in _FIELDS.items():
            object.__setattr__(self, name, _column(name, getattr(self, name), kind, width, count))
        if (self.group < 0).any():
            raise AirworthyError(f"A placement's group has the number {int(self.group.min())}; expected 0 (none) or more.")
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
        group: ArrayLike = 0,
    ) -> Placement:
        """Return instances from whatever is known of them; one value serves all rows.

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
            group: (n,) or one number: see the field.
        """
        counts = [len(np.atleast_1d(np.asarray(x))) for x in (shape, scale) if np.ndim(x)]
        counts += [len(np.asarray(x)) for x in (position, attitude) if np.ndim(x) == 2]
        n = max(counts, default=1) if 0 not in counts else 0
        # As Aerial Gym counts its assets (spec/aerial_gym 7.1).
        ids = FIRST_INSTANCE_ID + np.arange(n) if instance_id is None else instance_id
        given: dict[str, Any] = {
            "shape": shape, "position": position, "attitude": attitude, "scale": scale, "instance_id": ids,
            "semantic_id": semantic_id, "material": material, "visible": visible, "collide": collide,
            "group": group,
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
    "group": (np.int32, 0),
    "shadow": (np.int32, 0),
    "footprint": (np.float64, 2),
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
    """Return quaternions (..., 4) scaled to unit length.

    Raises:
        AirworthyError: If one is zero or not finite.
    """
    array = np.array(value, np.float64)
    # Anything but zero is accepted: files give quaternions with few digits.
    norm = np.sqrt(np.sum(array * array, axis=-1, keepdims=True))
    if not (np.isfinite(norm) & (norm > 1e-9)).all():
        raise AirworthyError(f"{what} holds a quaternion that is zero or not finite; expected x, y, z, w of unit length.")
    return array / norm
