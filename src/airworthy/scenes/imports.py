"""Model files and point clouds as scenes, and as parts of scenes."""

from __future__ import annotations

import math
import warnings
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np

from airworthy.core import frames
from airworthy.core.arrays import Array, ArrayLike
from airworthy.core.errors import AirworthyError, AssetError, AssetWarning, unknown_name
from airworthy.scenes.extent import instances_box
from airworthy.scenes.formats.model import CloudNote, FileLimits, Model, Points
from airworthy.scenes.formats.read import MODEL_SUFFIXES, POINT_SUFFIXES
from airworthy.scenes.free_points import with_free_path
from airworthy.scenes.point_clouds import CloudCells, cells_mesh, cloud_cells, find_lattice, float32_step, need_near
from airworthy.scenes.record import IDENTITY, Instance, Material, Pose, Quaternion, Region, Scene, Vector3, prefixed_material

__all__ = ["UNITS", "add_model", "model_scene"]

WORLD_SUFFIXES = (".sdf", ".world", ".urdf")
"""Files of places: they keep their frame, as clouds do. USD stages are stood on the floor unless told to keep theirs."""
UNITS = {"m": 1.0, "cm": 0.01, "mm": 0.001}
"""Metres per unit of a file that does not say."""
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
    voxel: float = 0.0,
    limits: FileLimits | None = None,
) -> Scene:
    """Return a scene with the content of a model file, or of a point cloud, as further instances.

    What the reader dropped or mended is told by `AssetWarning`s.

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
        voxel: Edge of the cells of a point cloud [m]; 0: as found in the cloud (`scenes.point_clouds`).
        limits: Of reading.

    Raises:
        AssetError: The file cannot be used.
        AirworthyError: The scale, units or axis are not usable.
    """
    factor = _factor(units, up, scale)
    # The edge is in metres, the file in its own units.
    model, cells = _read(path, limits or FileLimits(), voxel / factor)
    _tell(path, model.warnings)
    found = _with_model(
        scene, model, name or _free(Path(path).stem, scene), factor, position, attitude, up, floor, semantic, collide
    )
    if cells is not None:
        _need_near(path, found, found.instances[len(scene.instances) :], cells.side * factor, "place it nearer, with `floor`")
    return found


def _need_near(path: str | Path, scene: Scene, items: tuple[Instance, ...], side: float, remedy: str) -> None:
    box = instances_box(scene.shapes, items)
    if box is not None:
        need_near(*box, side, f"The cloud {Path(path).name!r}", remedy)


def _factor(units: str, up: str, scale: float) -> float:
    """Metres per unit of a file."""
    if units not in UNITS:
        raise unknown_name("unit", units, UNITS)
    if up not in ("z", "y") or not 0.0 < scale < 1e6:
        raise AirworthyError(f"A model with up {up!r} and scale {scale}: expected 'z' or 'y', and a scale above 0.")
    return scale * UNITS[units]


def _tell(path: str | Path, remarks: Iterable[str]) -> None:
    for remark in remarks:
        warnings.warn(f"{Path(path).name}: {remark}.", AssetWarning, stacklevel=3)


def _with_model(
    scene: Scene,
    model: Model,
    prefix: str,
    factor: float,
    position: Vector3,
    attitude: Quaternion,
    up: str,
    floor: bool,
    semantic: str,
    collide: bool,
) -> Scene:
    """Return the scene with the content of a model as further instances; arguments as those of `add_model`."""
    # First into z up, then as the caller turns it.
    turn = frames.normalize(frames.multiply(attitude, _UP_Y) if up == "y" else np.asarray(attitude, float))
    placed = [_moved(item, (0.0, 0.0, 0.0), turn, factor) for item in model.instances]
    origin = np.asarray(position, float)
    box = instances_box(model.shapes, placed) if floor else None
    if box is not None:
        origin = origin - [0.5 * (box[0][0] + box[1][0]), 0.5 * (box[0][1] + box[1][1]), box[0][2]]
    items = tuple(
        _named(_moved(item, origin, np.asarray(IDENTITY), 1.0), prefix, semantic, collide, len(placed) > 1) for item in placed
    )
    # Labels tell things apart by these numbers.
    items = _numbered_anew(items, scene)
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
    """Return a prefix that no shape of the scene begins with."""
    taken = {key.partition("/")[0] for key in (*scene.shapes, *scene.materials, *scene.textures)}
    number, name = 2, stem
    while name in taken:
        name, number = f"{stem}_{number}", number + 1
    return name


def _moved(item: Instance, origin: ArrayLike, turn: Array, factor: float) -> Instance:
    """Return an instance in a frame that is turned, scaled and moved."""
    x, y, z = (float(v) for v in np.asarray(origin, float) + factor * frames.rotate(turn, item.position))
    qx, qy, qz, qw = (float(v) for v in frames.normalize(frames.multiply(turn, item.attitude)))
    return replace(item, position=(x, y, z), attitude=(qx, qy, qz, qw), scale=item.scale * factor)


def _numbered_anew(items: tuple[Instance, ...], scene: Scene) -> tuple[Instance, ...]:
    """Instances whose own numbers are those of another lose them: a still file keeps an actor's parts under one."""
    taken = Counter(item.instance_id for item in (*scene.instances, *items) if item.instance_id)
    taken.update({part.instance_id for actor in scene.actors for part in actor.parts if part.instance_id})
    return tuple(replace(item, instance_id=0) if taken[item.instance_id] > 1 else item for item in items)


def _named(item: Instance, prefix: str, semantic: str, collide: bool, several: bool) -> Instance:
    return replace(
        item,
        shape=f"{prefix}/{item.shape}",
        materials=tuple(f"{prefix}/{key}" for key in item.materials),
        name=f"{prefix}/{item.name or item.shape}" if several else prefix,
        semantic=semantic,
        collide=collide,
    )


def read_any(path: str | Path, limits: FileLimits, voxel: float = 0.0) -> Model:
    """Return a model file, or a cloud as a mesh of its occupied cells; raises AssetError.

    Args:
        path: The file.
        limits: Of reading.
        voxel: Edge of the cells of a cloud, in its units; 0: as found.
    """
    return _read(path, limits, voxel)[0]


def _read(path: str | Path, limits: FileLimits, voxel: float) -> tuple[Model, CloudCells | None]:
    from airworthy.scenes import formats

    if holds_points(path):
        return _cloud_model(formats.read_points(path, limits), Path(path).stem, voxel)
    return formats.read_model(path, limits), None


def holds_points(path: str | Path) -> bool:
    """Tell whether a file is a point cloud; raises AssetError where its name ends in nothing that is read, or it is not
    there.
    """
    suffix = Path(path).suffix.lower()
    if suffix not in (*MODEL_SUFFIXES, *POINT_SUFFIXES):
        if not Path(path).exists():
            raise AssetError(f"There is no file or folder {str(path)!r}.")
        known = ", ".join(dict.fromkeys((".toml", *MODEL_SUFFIXES, *POINT_SUFFIXES)))
        ending = f"has the ending {suffix!r}" if suffix else "has no ending"
        raise AssetError(f"{str(path)!r} {ending}; scenes, models and clouds end in {known}.")
    # PLY holds either; only its header knows.
    return suffix == ".pcd" or (suffix == ".ply" and not _has_faces(path))


def _has_faces(path: str | Path) -> bool:
    """Tell whether a PLY's header promises faces."""
    try:
        with open(path, "rb") as file:
            # Headers are a few hundred bytes; a hostile file may have no end of one.
            head = file.read(65536)
    except OSError as error:
        raise AssetError(f"Could not read {str(path)!r}: {error.strerror or error}.") from error
    return b"element face" in head.partition(b"end_header")[0]


def _cloud_model(points: Points, stem: str, voxel: float) -> tuple[Model, CloudCells]:
    """Return a cloud as a closed mesh of its occupied cells, in the cloud's frame."""
    cells = cloud_cells(points.positions, voxel, points.note)
    _need_digits(points, cells, stem)
    remarks = list(points.warnings)
    # Only asked where the caller chose the cells: those that were found fit the points already.
    lattice = None if cells.lattice or not voxel else find_lattice(points.positions)
    if lattice is not None and voxel < 0.99 * lattice.spacing:
        remarks.append(f"its points are {lattice.spacing:.4g} apart, so that cells of {voxel:.4g} leave holes between them")
    x, y, z = (float(v) for v in cells.lower)
    instance = Instance(stem, (x, y, z), materials=("points",), semantic="voxel", name=stem)
    mesh = cells_mesh(cells, points.colors)
    material = Material((1.0, 1.0, 1.0, 1.0)) if points.colors is not None else Material()
    return Model({stem: mesh}, {"points": material}, {}, (instance,), warnings=tuple(remarks)), cells


def _need_digits(points: Points, cells: CloudCells, stem: str) -> None:
    """Refuse a cloud whose file has rounded its coordinates so far that its cells are others; raises AssetError."""
    reach = float(np.abs(points.positions).max())
    step = float32_step(reach)
    # Points on a lattice are known to lie within a twentieth of their nodes; of others a tenth of a cell is no matter.
    if points.positions.dtype == np.float32 and step * (2.0 if cells.lattice else 10.0) > cells.side:
        raise AssetError(
            f"The cloud {stem!r} has float32 coordinates up to {reach:,.0f}, where these are {step:.2g} apart, and cells of"
            f" {cells.side:.4g}: its places are lost; write it with doubles, or with an offset subtracted."
        )


def model_scene(
    path: str | Path,
    units: str = "m",
    up: str = "z",
    limits: FileLimits | None = None,
    *,
    recentre: bool | None = None,
    voxel: float = 0.0,
) -> Scene:
    """Return a model or cloud file as a scene, with bounds from its box.

    A point cloud is a map: it keeps its frame. A model is an object: it is stood on the floor, its middle at the origin. Start
    and goal lie where there is room (`free_points.with_free_path`), the same in either frame, or where the scene had them that
    a cloud was exported from.

    Args:
        path: The file.
        units: Of the file: "m", "cm" or "mm".
        up: Its vertical axis: "z", or "y" (glTF is turned already).
        limits: Of reading.
        recentre: Stand it on the floor, its middle at the origin; None: models, but not clouds and worlds.
        voxel: Edge of the cells of a point cloud [m]; 0: as found in the cloud.

    Raises:
        AssetError: The file cannot be used, or holds nothing that can be seen.
        AirworthyError: Units, axis or edge are not usable.
    """
    stem = Path(path).stem or "scan"
    factor = _factor(units, up, 1.0)
    if not (math.isfinite(voxel) and voxel >= 0.0):
        raise AirworthyError(f"`voxel` is {voxel}; expected the edge of a cell in metres, above 0, or 0 to find it.")
    cloud = holds_points(path)
    note, facts = None, {}
    if cloud:
        from airworthy.scenes import formats

        points = formats.read_points(path, limits or FileLimits())
        model, cells = _cloud_model(points, stem, voxel / factor)
        note, facts = points.note, {"points": float(len(points.positions)), "cell_m": cells.side * factor}
    else:
        model = read_any(path, limits or FileLimits())
    _tell(path, model.warnings)
    kept = cloud or Path(path).suffix.lower() in WORLD_SUFFIXES
    # A map's coordinates mean something to its owner; an object's origin is where a modeller left it.
    centred = (not kept) if recentre is None else recentre
    scene = _with_model(Scene(stem, facts=facts), model, stem, factor, (0.0, 0.0, 0.0), IDENTITY, up, centred, "object", True)
    box = instances_box(scene.shapes, scene.instances)
    if box is None or not (box[1] - box[0]).max() > 0.0:
        raise AssetError(
            f"{str(path)!r} holds nothing that can be seen; a mesh with faces or a cloud with points was expected."
        )
    if cloud:
        remedy = "take larger cells (--voxel) or a part of it" if centred else "use --recentre, or subtract an offset from it"
        need_near(*box, cells.side * factor, f"The cloud {Path(path).name!r}", remedy)
    # Room to fly around it: a tenth of its width, half a metre at least.
    margin = 0.1 * float((box[1] - box[0])[:2].max()) + 0.5
    low = (float(box[0][0]) - margin, float(box[0][1]) - margin, float(box[0][2]))
    high = (float(box[1][0]) + margin, float(box[1][1]) + margin, float(box[1][2]) + _HEADROOM)
    frame = "stood on the floor" if centred else "in its own frame"
    scene = replace(scene, bounds=Region(low, high), description=f"{Path(path).name}, {frame}", source=Path(path).name)
    # Coordinates of a note are in metres, z up, and hold for the file's own frame alone.
    if not centred and note is not None and note.lower is not None and note.upper is not None and factor == 1.0 and up == "z":
        return _as_noted(scene, note)
    return with_free_path(scene, *box)


def _as_noted(scene: Scene, note: CloudNote) -> Scene:
    """Return the scene with bounds, start and goal of the one that its cloud was sampled from."""
    assert note.lower is not None
    assert note.upper is not None
    return replace(
        scene,
        bounds=Region(note.lower, note.upper),
        start=None if note.start is None else Pose(note.start[:3], note.start[3]),
        goal=None if note.goal is None else Pose(note.goal),
    )
