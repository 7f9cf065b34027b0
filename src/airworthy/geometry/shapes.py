"""What can be hit: triangle meshes and four analytic solids, each in its own frame."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from airworthy.core.arrays import Array, ArrayAny, ArrayFloat
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
