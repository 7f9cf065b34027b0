"""What a model file holds once read: shapes, materials, textures, instances, lights, skeletons. And the limits of reading.

Frames: z up, metres, quaternions x, y, z, w; files of a format that says y up (glTF) are turned when they are read.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from airworthy.core.arrays import Array, ArrayF32, ArrayU8, NDArray
from airworthy.core.schema import check_fields
from airworthy.geometry import Shape
from airworthy.scenes.record import Instance, Light, Material, Texture

Ints = NDArray[np.int32]


@dataclass(frozen=True)
class FileLimits:
    """What a file may ask for. A file that asks for more is refused before anything is allocated."""

    file_bytes: int = 256 * 1024 * 1024
    """Of one file, and of a file together with all it refers to."""
    memory_bytes: int = 52 * 1024 * 1024
    """What a file of any size may take in memory; what it may take in all is this and `memory_ratio` times its bytes."""
    memory_ratio: float = 7.0
    vertices: int = 20_000_000
    """Of all meshes together, and points of a cloud."""
    faces: int = 20_000_000
    texture_pixels: int = 8192 * 8192
    """Of one image. Images are also subject to the limit of memory: what does not fit is read at half size, or refused."""
    json_bytes: int = 2 * 1024 * 1024
    """Of a glTF file's JSON without its data URIs. In Python it can take 24 times as much."""
    json_depth: int = 32
    string_length: int = 1024
    """Of a path or key; longer names are cut."""
    images: int = 256
    materials: int = 4096
    nodes: int = 30_000
    """Also of meshes, accessors and whatever else a file lists."""
    primitives: int = 10_000
    """Pieces of meshes, of all meshes together."""
    node_depth: int = 128
    joints: int = 1024
    """Of one skeleton, with the nodes above its joints."""
    coordinate: float = 1e7
    """Vertices beyond this distance along an axis [m] are dropped as if they were not finite."""


DEFAULT_LIMITS = FileLimits()


@dataclass(frozen=True, eq=False)
class Track:
    """One animated quantity of one joint."""

    times: ArrayF32
    """(k,) rising [s]."""
    values: ArrayF32
    """(k, n), n = 3 for a translation [m] or scale, 4 for a rotation; cubic: (k, 3, n) of tangent in, value, tangent out."""
    interpolation: Literal["linear", "step", "cubic"] = "linear"
    """Between keys; held before the first and after the last. Rotations: spherical where linear, normalised where cubic."""


@dataclass(frozen=True, eq=False)
class Clip:
    """A named animation: tracks by joint number; joints without a track keep their rest pose."""

    duration: float
    """Time of the last key [s]."""
    translation: dict[int, Track] = field(default_factory=dict)
    rotation: dict[int, Track] = field(default_factory=dict)
    scale: dict[int, Track] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Skeleton:
    """Joints, and how they move the meshes bound to them.

    A vertex v of a bound mesh moves to the sum over its four joints of weight * G_j @ inverse_bind_j @ v, where G_j is the
    product of the local matrices (translation, rotation, scale) from the root to joint j. In the rest pose of most files that
    is v itself.
    """

    names: tuple[str, ...]
    """(j,) joints and the nodes above them; a parent comes before its children."""
    parents: Ints
    """(j,) -1: at the root."""
    position: ArrayF32
    """(j, 3) rest pose in the parent [m]."""
    attitude: ArrayF32
    """(j, 4) x, y, z, w."""
    scale: ArrayF32
    """(j, 3)."""
    inverse_bind: ArrayF32
    """(j, 4, 4) matrix from the mesh's frame to the joint's in the pose in which it was bound."""
    joints: dict[str, Ints] = field(default_factory=dict)
    """Of each bound shape: (V, 4) joint numbers per vertex."""
    weights: dict[str, ArrayF32] = field(default_factory=dict)
    """Of each bound shape: (V, 4), rows sum to 1."""
    clips: dict[str, Clip] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Model:
    """Content of a model file."""

    shapes: dict[str, Shape] = field(default_factory=dict)
    """Meshes as read; the writers also take the analytic solids."""
    materials: dict[str, Material] = field(default_factory=dict)
    textures: dict[str, Texture] = field(default_factory=dict)
    instances: tuple[Instance, ...] = ()
    """Where the file places its shapes."""
    lights: tuple[Light, ...] = ()
    skeletons: dict[str, Skeleton] = field(default_factory=dict)
    """Their shapes have an instance of identity pose each."""
    warnings: tuple[str, ...] = ()
    """What was dropped, mended or left out, with counts."""


@dataclass(frozen=True, eq=False)
class CloudNote:
    """What a cloud that was sampled from a scene says of it in comments, which other programs pass over."""

    spacing: float = 0.0
    """Edge of the cells whose middles the points are [m]; 0: not said."""
    open: Array | None = None
    """(k, 3) one place in each enclosed space that is free; other enclosed spaces were solid. None: not said."""
    lower: tuple[float, float, float] | None = None
    """Bounds of the scene [m]."""
    upper: tuple[float, float, float] | None = None
    start: tuple[float, float, float, float] | None = None
    """Position [m] and yaw [rad]."""
    goal: tuple[float, float, float] | None = None

    def __post_init__(self) -> None:
        check_fields(self, "CloudNote.")


@dataclass(frozen=True, eq=False)
class Points:
    """A point cloud."""

    positions: ArrayF32 | Array
    """(n, 3) [m]; float64 where the file has doubles, which far from the origin a float32 would not keep."""
    colors: ArrayU8 | None = None
    """(n, 3) sRGB."""
    intensity: ArrayF32 | None = None
    """(n,) as in the file."""
    warnings: tuple[str, ...] = ()
    note: CloudNote | None = None
    """What the file says of the scene it was sampled from."""
