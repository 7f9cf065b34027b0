"""Model files and point clouds as scenes, and as parts of scenes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from airworthy.core import frames
from airworthy.core.errors import AirworthyError, AssetError, unknown_name
from airworthy.geometry import Mesh
from airworthy.scenes.casting import prefixed_material
from airworthy.scenes.extent import instances_box
from airworthy.scenes.formats.model import Limits, Model, Points
from airworthy.scenes.record import IDENTITY, Instance, Material, Pose, Quaternion, Region, Scene, Vector3

__all__ = ["CLOUD_SUFFIXES", "MODEL_SUFFIXES", "UNITS", "add_model", "cloud_mesh", "model_scene"]

MODEL_SUFFIXES = (".glb", ".gltf", ".obj", ".stl", ".ply")
CLOUD_SUFFIXES = (".pcd", ".ply")
UNITS = {"m": 1.0, "cm": 0.01, "mm": 0.001}
"""Metres per unit of a file that does not say."""
VOXELS_MAX = 2_000_000
_UP_Y: Quaternion = (np.sqrt(0.5), 0.0, 0.0, np.sqrt(0.5))
"""Turns a file's y up into z up."""
_HEADROOM = 3.0
"""Bounds of a scan reach this far above it [m]."""


def add_model(
    scene: Scene,
    path: str | Path,
    *,
    position: Vector3 = (0.0, 0.0, 0.0),
    attitude: Quaternion = IDENTITY,
    scale: float = 1.0,
    units: str = "m",
    up: str = "z",
    floor: bool = False,
    semantic: str = "object",
    name: str = "",
    collide: bool = True,
    limits: Limits | None = None,
) -> Scene:
    """A scene with the content of a model file, or of a point cloud, as further instances.

    Args:
        scene: The scene.
        path: The file.
        position: Where its origin comes [m]; with `floor`, where the middle of its lower side comes.
        attitude: Its turn.
        scale: Further factor.
        units: Of the file: "m", "cm" or "mm".
        up: Its vertical axis: "z", or "y" (glTF is turned already).
        floor: Stand it on `position`.
        semantic: Class of all its instances.
        name: Before the names of what it brings; "": the file's name.
        collide: Whether it can be hit.
        limits: Of reading.

    Raises:
        AssetError: The file cannot be used.
        AirworthyError: The scale, units or axis are not usable.
    """
    model = read_any(path, limits or Limits())
    if units not in UNITS:
        raise unknown_name("unit", units, UNITS)
    if up not in ("z", "y") or not 0.0 < scale < 1e6:
        raise AirworthyError(f"A model with up {up!r} and scale {scale}: expected 'z' or 'y', and a scale above 0.")
    prefix = name or _free(Path(path).stem, scene)
    factor = scale * UNITS[units]
    turn = frames.normalize(frames.multiply(attitude, _UP_Y) if up == "y" else np.asarray(attitude, float))
    placed = [_moved(item, (0.0, 0.0, 0.0), turn, factor) for item in model.instances]
    origin = np.asarray(position, float)
    box = instances_box(model.shapes, placed) if floor else None
    if box is not None:
        origin = origin - [0.5 * (box[0][0] + box[1][0]), 0.5 * (box[0][1] + box[1][1]), box[0][2]]
    items = tuple(
        _named(_moved(item, origin, np.asarray(IDENTITY), 1.0), prefix, semantic, collide, len(placed) > 1) for item in placed
    )
    return replace(
        scene,
        shapes={**scene.shapes, **{f"{prefix}/{key}": shape for key, shape in model.shapes.items()}},
        materials={
            **scene.materials,
            **{f"{prefix}/{key}": prefixed_material(item, prefix) for key, item in model.materials.items()},
        },
        textures={**scene.textures, **{f"{prefix}/{key}": texture for key, texture in model.textures.items()}},
        instances=scene.instances + items,
    )


def _free(stem: str, scene: Scene) -> str:
    """A prefix that no shape of the scene begins with."""
    taken = {key.partition("/")[0] for key in (*scene.shapes, *scene.materials, *scene.textures)}
    number, name = 2, stem
    while name in taken:
        name, number = f"{stem}_{number}", number + 1
    return name


def _moved(item: Instance, origin: ArrayLike, turn: NDArray[np.float64], factor: float) -> Instance:
    """An instance in a frame that is turned, scaled and moved."""
    x, y, z = (float(v) for v in np.asarray(origin, float) + factor * frames.rotate(turn, item.position))
    qx, qy, qz, qw = (float(v) for v in frames.normalize(frames.multiply(turn, item.attitude)))
    return replace(item, position=(x, y, z), attitude=(qx, qy, qz, qw), scale=item.scale * factor)


def _named(item: Instance, prefix: str, semantic: str, collide: bool, several: bool) -> Instance:
    return replace(
        item,
        shape=f"{prefix}/{item.shape}",
        materials=tuple(f"{prefix}/{key}" for key in item.materials),
        name=f"{prefix}/{item.name or item.shape}" if several else prefix,
        semantic=semantic,
        collide=collide,
    )


def read_any(path: str | Path, limits: Limits) -> Model:
    """A model file, or a cloud as a mesh of cubes; raises AssetError."""
    from airworthy.scenes import formats

    suffix = Path(path).suffix.lower()
    if suffix not in (*MODEL_SUFFIXES, *CLOUD_SUFFIXES):
        known = ", ".join(dict.fromkeys((*MODEL_SUFFIXES, *CLOUD_SUFFIXES)))
        raise AssetError(f"{str(path)!r} has the ending {suffix!r}; models and clouds end in {known}.")
    if suffix == ".pcd":
        return _cloud_model(formats.read_points(path), Path(path).stem)
    if suffix == ".ply" and not _has_faces(path):
        return _cloud_model(formats.read_points(path), Path(path).stem)
    return formats.read_model(path, limits)


def _has_faces(path: str | Path) -> bool:
    """Whether a PLY's header promises faces."""
    try:
        with open(path, "rb") as file:
            head = file.read(65536)
    except OSError as error:
        raise AssetError(f"Could not read {str(path)!r}: {error.strerror or error}.") from error
    return b"element face" in head.partition(b"end_header")[0]


def _cloud_model(points: Points, stem: str) -> Model:
    mesh = cloud_mesh(points.positions, colors=points.colors)
    instance = Instance(stem, materials=("points",), semantic="voxel", name=stem)
    return Model({stem: mesh}, {"points": Material((1.0, 1.0, 1.0, 1.0))}, {}, (instance,))


def cloud_mesh(positions: ArrayLike, size: float = 0.0, colors: NDArray[np.uint8] | None = None) -> Mesh:
    """The outer faces of the cubes of a regular grid that hold points of a cloud.

    Args:
        positions: (n, 3) [m].
        size: Side of a cube [m]; 0: a 256th of the longest side of the cloud, at least 2 cm.
        colors: (n, 3) sRGB; a cube has the mean of its points.

    Raises:
        AirworthyError: There are no points, or more than two million cubes would be filled.
    """
    points = np.asarray(positions, float)
    points = points[np.isfinite(points).all(1)] if colors is None else points
    if not len(points) or not np.isfinite(points).all():
        raise AirworthyError(f"A cloud of {len(points)} points has none to build cubes of, or one that is not finite.")
    low = points.min(0)
    side = size if size > 0.0 else max(0.02, float((points.max(0) - low).max()) / 256.0)
    cells, owner = np.unique(np.floor((points - low) / side).astype(np.int64), axis=0, return_inverse=True)
    if len(cells) > VOXELS_MAX:
        raise AirworthyError(
            f"A cloud fills {len(cells):,} cubes of {side:g} m; at most {VOXELS_MAX:,} are accepted: use larger ones."
        )
    shade = None if colors is None else _mean_colors(colors, owner.reshape(-1), len(cells))
    vertices, quads, cell = _outer_faces(cells)
    faces = np.concatenate((quads[:, [0, 1, 2]], quads[:, [0, 2, 3]]))
    return Mesh(
        (low + vertices * side).astype(np.float32),
        faces.astype(np.int32),
        colors=None if shade is None else shade[np.repeat(cell, 4)],
    )


_SIDES = (
    ((1, 0, 0), ((1, 0, 0), (1, 1, 0), (1, 1, 1), (1, 0, 1))),
    ((-1, 0, 0), ((0, 0, 0), (0, 0, 1), (0, 1, 1), (0, 1, 0))),
    ((0, 1, 0), ((0, 1, 0), (0, 1, 1), (1, 1, 1), (1, 1, 0))),
    ((0, -1, 0), ((0, 0, 0), (1, 0, 0), (1, 0, 1), (0, 0, 1))),
    ((0, 0, 1), ((0, 0, 1), (1, 0, 1), (1, 1, 1), (0, 1, 1))),
    ((0, 0, -1), ((0, 0, 0), (0, 1, 0), (1, 1, 0), (1, 0, 0))),
)
"""Of a unit cube: towards which neighbour a side looks, and its corners counter-clockwise from outside."""


def _outer_faces(cells: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Corners (4 q, 3), corner numbers (q, 4) and cells (q,) of the sides between a filled and an empty cell."""
    span = cells.max(0) + 3  # one empty layer around, so that neighbours never wrap into the next row
    packed = ((cells[:, 0] + 1) * span[1] + cells[:, 1] + 1) * span[2] + cells[:, 2] + 1
    corners, owners = [], []
    for direction, square in _SIDES:
        step = (direction[0] * span[1] + direction[1]) * span[2] + direction[2]
        open_side = np.flatnonzero(~np.isin(packed + step, packed))
        corners.append(cells[open_side, None, :] + np.array(square))
        owners.append(open_side)
    vertices = np.concatenate(corners).reshape(-1, 3)
    return vertices, np.arange(len(vertices)).reshape(-1, 4), np.concatenate(owners)


def _mean_colors(colors: NDArray[np.uint8], owner: NDArray[np.int64], count: int) -> NDArray[np.float32]:
    """(cells, 4) linear mean colours."""
    encoded = colors.astype(float) / 255.0
    linear = np.where(encoded <= 0.04045, encoded / 12.92, ((encoded + 0.055) / 1.055) ** 2.4)
    total = np.stack([np.bincount(owner, linear[:, k], count) for k in range(3)], axis=1)
    mean = total / np.maximum(np.bincount(owner, minlength=count), 1)[:, None]
    return np.concatenate((mean, np.ones((count, 1))), axis=1).astype(np.float32)


def model_scene(path: str | Path, units: str = "m", up: str = "z", limits: Limits | None = None) -> Scene:
    """A model or cloud file as a scene: stood on the floor, its middle at the origin, bounds from its box.

    Raises:
        AssetError: The file cannot be used, or holds nothing that can be seen.
        AirworthyError: Units or axis are unknown.
    """
    stem = Path(path).stem or "scan"
    scene = add_model(Scene(stem), path, units=units, up=up, floor=True, limits=limits)
    box = instances_box(scene.shapes, scene.instances)
    if box is None or not (box[1] - box[0]).max() > 0.0:
        raise AssetError(
            f"{str(path)!r} holds nothing that can be seen; a mesh with faces or a cloud with points was expected."
        )
    margin = 0.1 * float((box[1] - box[0])[:2].max()) + 0.5
    low = (float(box[0][0]) - margin, float(box[0][1]) - margin, float(box[0][2]))
    high = (float(box[1][0]) + margin, float(box[1][1]) + margin, float(box[1][2]) + _HEADROOM)
    return replace(
        scene,
        bounds=Region(low, high),
        start=Pose((low[0] + 0.25 * margin, 0.0, 0.5 * (low[2] + high[2]))),
        description=f"{Path(path).name}, stood on the floor",
        source=Path(path).name,
    )
