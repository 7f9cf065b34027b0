"""Scene files: a folder with scene.toml and the assets it names. `docs/howto/scenes.md` walks through one."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

import numpy as np

from airworthy.core.errors import AirworthyError, AssetError, AssetWarning, unknown_name
from airworthy.core.files import make_folder, read_bytes, read_toml, staged_folder, write_text
from airworthy.core.schema import Bound, check_fields
from airworthy.core.table_schema import hints, short, toml_key, toml_value, unknown_key, wrong
from airworthy.geometry import Box, Capsule, Cylinder, Mesh, Shape, Sphere
from airworthy.scenes.actors import ActorKit
from airworthy.scenes.files import assets as _assets
from airworthy.scenes.files.assets import SCHEMA, Folder
from airworthy.scenes.files.extras import actor_from_table, model_from_table, with_yaw
from airworthy.scenes.formats.model import FileLimits, Skeleton
from airworthy.scenes.record import (
    Actor,
    Beacon,
    Decal,
    GateFrame,
    Haze,
    Instance,
    Material,
    PointLight,
    Pose,
    Rain,
    Region,
    Scene,
    Sky,
    Snow,
    SplatPlacement,
    SpotLight,
    Sun,
    Texture,
)

if TYPE_CHECKING:
    from airworthy.scenes.splats.record import Splats

__all__ = ["SCENE_FILE", "VERSION", "read_scene", "scene_from_table", "write_scene"]

# -----------------------------------------------------------------------------------------------------------------------------
# Clouds of Gaussian splats beside a scene.toml: read from any container, written exactly, as PLY or as SPZ.

CloudForm = Literal["exact", "ply", "spz"]
CLOUD_FORMS: tuple[CloudForm, ...] = get_args(CloudForm)
_PARTS = ("position", "rotation", "scale", "opacity", "harmonics")


@dataclass(frozen=True)
class CloudRow:
    """A splat file."""

    file: str
    """Beside the scene file: a container of `read_splats`, a folder of SOG, or arrays as `write_scene` leaves them."""
    up: str = ""
    """Axis of the file that points up; empty: as its container says."""
    level: int = 0
    """Level of detail of a streamed SOG, 0 the finest."""


@dataclass(frozen=True)
class SolidRow:
    """What a row of splats says of what is hit in their place."""

    solid: bool = False
    """Put a closed mesh around what is opaque."""
    cell: Annotated[float, Bound()] = 0.0
    """Edge of its cells [m]; 0: as suits the size."""
    filled: bool = False
    """Close also what is enclosed on all sides: the inside of objects, but of a room with its ceiling, too."""

    def __post_init__(self) -> None:
        check_fields(self)


def read_placement(row: dict[str, Any], where: str) -> tuple[SplatPlacement, SolidRow]:
    """Return a row of splats: where a cloud is seen, and whether it is hit there; raises AssetError."""
    own = [item.name for item in fields(SolidRow)]
    wanted: SolidRow = SCHEMA.record(SolidRow, {key: row[key] for key in own if key in row}, where)
    if not wanted.solid and wanted != SolidRow():
        raise AssetError(f"{where} has 'cell' or 'filled', which are of a mesh to collide with; add solid = true.")
    if wanted.cell < 0.0:
        raise AssetError(f"{where}.cell is {wanted.cell}; expected the edge of a cell in metres, above 0, or 0 to find it.")
    return SCHEMA.record(SplatPlacement, {key: value for key, value in row.items() if key not in own}, where), wanted


def with_solids(scene: Scene, rows: list[tuple[str, SplatPlacement, SolidRow]]) -> Scene:
    """Return the scene with meshes to collide with around those of its splats that are to be solid; raises AssetError."""
    for where, item, wanted in rows:
        if wanted.solid:
            from airworthy.scenes.splats.placing import solid

            try:
                scene = solid(scene, item, wanted.cell or None, filled=wanted.filled)
            except AirworthyError as error:
                raise AssetError(f"{where}: {error}") from None
    return scene


def read_clouds(items: list[tuple[str, Any]], folder: Folder, where: str) -> dict[str, Splats]:
    """Return clouds by their names in a scene file; all of them together are bounded. Raises AssetError.

    Args:
        items: Name and parsed entry of each.
        folder: Where files are looked for, with their limits.
        where: Names the scene file in messages.
    """
    found: dict[str, Splats] = {}
    for name, value in items:
        label = f"{where}: clouds.{short(name)}"
        row: CloudRow = SCHEMA.record(CloudRow, value, label)
        path = folder.path(row.file, f"{label}.file")
        found[name] = _read(path, row, _left(folder.limits, found), label)
    return found


def _left(limits: FileLimits, found: dict[str, Splats]) -> FileLimits:
    """Return what the next cloud may ask for: splat files have limits of their own unless the reader was given some."""
    from airworthy.scenes.splats.read import SPLAT_LIMITS

    # Millions of gaussians are usual, as many vertices are not.
    own = SPLAT_LIMITS if limits == FileLimits() else limits
    return replace(own, vertices=max(own.vertices - sum(len(cloud) for cloud in found.values()), 0))


def _read(path: Path, row: CloudRow, limits: FileLimits, where: str) -> Splats:
    from airworthy.scenes.splats.read import read_splats

    try:
        if row.file.endswith(_assets.ARRAYS):
            return _from_arrays(_assets.read_arrays(read_bytes(path, limits.file_bytes), where), limits)
        return read_splats(path, limits, up=row.up or None, level=row.level).splats
    except AirworthyError as error:
        raise AssetError(f"{where}: {error}") from None


def _from_arrays(arrays: _assets.Arrays, limits: FileLimits) -> Splats:
    """Return a cloud that was written bit for bit; whoever wrote the file, it must be sound."""
    from airworthy.scenes.splats.record import Splats

    for part in _PARTS:
        if part not in arrays or arrays[part].dtype != np.float32:
            raise AssetError(f"The arrays of a cloud lack {part!r} as float32; write the scene again.")
    if not len(arrays["position"]) <= limits.vertices:
        raise AssetError(f"A cloud has {len(arrays['position']):,} gaussians; at most {limits.vertices:,} are accepted.")
    splats = Splats(**{part: arrays[part] for part in _PARTS})
    finite = all(bool(np.isfinite(arrays[part]).all()) for part in _PARTS)
    # Whoever wrote the file: renderers divide by these.
    length = np.linalg.norm(splats.rotation, axis=1)
    opaque = (splats.opacity >= 0.0) & (splats.opacity <= 1.0)
    if not (finite and (splats.scale > 0.0).all() and (np.abs(length - 1.0) < 1e-3).all() and opaque.all()):
        raise AssetError("The arrays of a cloud hold values that no gaussian has; write the scene again.")
    return splats


def write_cloud(splats: Splats, root: Path, stem: str, form: CloudForm) -> dict[str, Any]:
    """Write a cloud below a folder; the entry of the scene file that reads it.

    Args:
        splats: The cloud.
        root: Existing folder.
        stem: File name without its ending.
        form: Arrays without loss, or a container.
    """
    if form == "exact":
        file = f"{stem}.cloud{_assets.ARRAYS}"
        _assets.write_arrays(root / file, {part: getattr(splats, part) for part in _PARTS})
        return {"file": file}
    from airworthy.scenes.splats.write import write_splats

    file = f"{stem}.{form}"
    if form == "ply":
        write_splats(splats, root / file, up="z")
        return {"file": file, "up": "z"}
    write_splats(splats, root / file)
    return {"file": file}


# -----------------------------------------------------------------------------------------------------------------------------

# -----------------------------------------------------------------------------------------------------------------------------
# Scene tables as TOML text that people read: one line per instance, one section per material, numbers exact.

_SECTIONS = ("shapes", "textures", "materials", "skeletons", "clouds")
"""Tables of tables, one section per entry."""
_TABLES = ("semantics", "facts", "sky", "haze", "rain", "snow")
"""One section each."""
_ROWS = ("instances", "looks", "splats", "models", "spawn", "gates", "beacons")
"""Lists of one line per entry."""


def text_of(table: dict[str, Any]) -> str:
    """Return TOML text of a scene's table."""
    later = (*_SECTIONS, *_TABLES, "lights", "actors")
    # A scene without lights says so: one that says nothing has the sun.
    dark: dict[str, Any] = {"lights": []} if table.get("lights") == [] else {}
    lines = [_entry(key, value) for key, value in {**table, **dark}.items() if key not in later or key in dark]
    for name in _TABLES:
        if table.get(name):
            lines += ["", f"[{name}]", *(_entry(key, value) for key, value in table[name].items())]
    for name in _SECTIONS:
        for key, value in table.get(name, {}).items():
            lines += ["", f"[{name}.{toml_key(key)}]", *(_entry(k, v) for k, v in value.items())]
    for name in ("lights", "actors"):
        for row in table.get(name, []):
            lines += ["", f"[[{name}]]", *(_entry(k, v) for k, v in row.items())]
    return "\n".join(lines).strip() + "\n"


def _entry(key: str, value: Any) -> str:
    # One line for each entry: a scene's changes then read well in a diff.
    many = isinstance(value, list) and bool(value) and isinstance(value[0], dict)
    if key in (*_ROWS, "parts", "path") and many:
        return f"{toml_key(key)} = [\n" + "".join(f"  {toml_value(item)},\n" for item in value) + "]"
    return f"{toml_key(key)} = {toml_value(value)}"


# -----------------------------------------------------------------------------------------------------------------------------

# Materials of the library: a section that names one, and things that name one themselves.


@dataclass(frozen=True)
class LibraryRow:
    """What a material of a scene file says of the library; its other keys are those of `Material`."""

    library: str
    """Name of a recipe: "brick", or "brick@7" for a variant."""
    map_size: int = 512
    """Side of its maps [px]."""
    decals: tuple[Decal, ...] = ()
    """Laid on every tile, the lowest first."""
    by_coordinates: bool = False
    """Laid by the texture coordinates of meshes, one tile to 1."""


def library_material(value: Any, name: str, where: str) -> tuple[Material, dict[str, Texture]]:
    """Return a material of the library with the values that the file changes, and its textures; raises AssetError.

    Args:
        value: The section.
        name: Of the material in the scene.
        where: Names the section in messages.
    """
    from airworthy.scenes.materials.library import with_material

    body = dict(SCHEMA.table(value, where))
    own = [item.name for item in fields(LibraryRow)]
    plain = [item.name for item in fields(Material)]
    for key in body:
        if key not in own and key not in plain:
            raise unknown_key(key, [*own, *plain], where)
    row: LibraryRow = SCHEMA.record(LibraryRow, {key: body[key] for key in own if key in body}, where)
    more = {key: SCHEMA.decode(hints(Material)[key], body[key], f"{where}.{key}") for key in plain if key in body}
    try:
        made = with_material(Scene(""), row.library, name, row.map_size, row.decals, row.by_coordinates)
    except AirworthyError as error:
        raise AssetError(f"{where}: {error}") from None
    return replace(made.materials[name], **more), made.textures


def with_named_materials(scene: Scene, where: str) -> Scene:
    """Return a scene that holds the materials which its things name as "library:NAME"; raises AssetError.

    Args:
        scene: The scene.
        where: Names the file in messages.
    """
    things = (*scene.instances, *scene.looks, *(part for actor in scene.actors for part in actor.parts))
    if not any(name.startswith("library:") for item in things for name in item.materials):
        return scene
    from airworthy.scenes.materials.library import scene_with_materials

    try:
        return scene_with_materials(scene)
    except AirworthyError as error:
        raise AssetError(f"{where}: {error}") from None


# -----------------------------------------------------------------------------------------------------------------------------

VERSION = 1
"""Version of the file form; a reader of version n also reads n - 1."""
SCENE_FILE = "scene.toml"
ASSETS = "assets"
BYTES_MAX = 16 * 1024 * 1024
"""Of a scene.toml: some 100,000 instances."""

_HEADER = "# A scene. SI units, radians, world z up, quaternions x, y, z, w; docs/howto/scenes.md explains every table.\n"
_SOLIDS: dict[str, type] = {"box": Box, "sphere": Sphere, "cylinder": Cylinder, "capsule": Capsule}
_LIGHTS: dict[str, type] = {"sun": Sun, "point": PointLight, "spot": SpotLight}
_PLAIN: dict[str, Any] = {
    "name": str,
    "description": str,
    "source": str,
    "bounds": Region,
    "start": Pose,
    "goal": Pose,
    "courses": tuple[str, ...],
    "sky": Sky,
    "haze": Haze,
    "rain": Rain,
    "snow": Snow,
    "spawn": tuple[Region, ...],
    "gates": tuple[GateFrame, ...],
    "beacons": tuple[Beacon, ...],
    "semantics": dict[str, int],
    "facts": dict[str, float],
}
_CARVED = ("carved", "unknown")
"""Of captured places: the file of what is known of their space, and whether what is unknown is solid or free."""
_FILES_TABLES = (
    "shapes",
    "textures",
    "materials",
    "skeletons",
    "clouds",
    "instances",
    "looks",
    "splats",
    "models",
    "actors",
    "lights",
)


def read_scene(path: str | Path, limits: FileLimits | None = None) -> Scene:
    """Read a scene file and all that it names.

    Args:
        path: The scene.toml, or its folder.
        limits: What it and its assets may ask for; None: the defaults.

    Raises:
        AssetError: One sentence: the file, the key, what arrived and what was expected.
    """
    file = Path(path)
    if file.is_dir():
        file = file / SCENE_FILE
    return scene_from_table(read_toml(file, BYTES_MAX), Folder(file.parent, limits or FileLimits()), str(file))


def scene_from_table(table: Mapping[str, Any], folder: Folder, where: str) -> Scene:
    """Return a scene from a parsed scene file; `where` names the file in messages. Raises as `read_scene`.

    Args:
        table: As parsed.
        folder: Where files are looked for, with their limits.
        where: Names the file in messages.
    """
    body = dict(table)
    version = body.pop("version", None)
    if version is None:
        raise AssetError(f"{where} says no file version: begin it with the line version = {VERSION}.")
    if isinstance(version, bool) or version != VERSION:
        raise AssetError(f"{where} has the file version {short(version)}, but this Airworthy reads version {VERSION}.")
    base = _base(body.pop("base", None), where)
    for key in body:
        if key not in _PLAIN and key not in _FILES_TABLES and key not in _CARVED:
            raise unknown_key(key, ["version", "base", *_PLAIN, *_FILES_TABLES, *_CARVED], where)
    if base is None and "name" not in body:
        raise AssetError(f"{where} lacks 'name'.")
    body, own_sun = _with_moment(body, where)
    plain = {key: SCHEMA.decode(kind, body[key], f"{where}: {key}") for key, kind in _PLAIN.items() if key in body}
    scene = _tables(base, body, folder, where)
    for key in ("semantics", "facts"):  # a base's are added to
        plain[key] = {**getattr(scene, key), **plain.get(key, {})}
    # Lists of a base are added to; single values are replaced.
    for key in ("spawn", "gates", "beacons", "courses"):
        plain[key] = getattr(scene, key) + plain.get(key, ())
    try:
        scene = _with_sun(replace(scene, **plain), body, own_sun)
    except AirworthyError as error:
        raise AssetError(f"{where}: {error}") from None
    _warn_of_idle(scene.sky, where)
    rows = [(label, *read_placement(with_yaw(row, label), label)) for label, row in _rows(body, "splats", where)]
    return _with_carved(with_solids(scene, rows), body, folder, where)  # within the bounds of the whole


_MOMENT = ("time", "latitude", "longitude")
"""What a sky may say instead of where its sun stands."""
_OF_ALL_SKIES = ("ground", "intensity", "model")
_OF_GRADIENTS = ("zenith", "horizon")
"""What only a sky without daylight reads; whatever else a sky has, only one by daylight does."""


def _with_moment(body: dict[str, Any], where: str) -> tuple[dict[str, Any], bool]:
    """Return the table with the sun where it stands at the sky's time and place, if it names them; and whether the scene gets
    the sky's sun where it has none of its own.
    """
    sky = body.get("sky")
    if not isinstance(sky, dict):
        return body, True
    own = SCHEMA.decode(bool, sky.get("sun", True), f"{where}: sky.sun")
    sky = {key: item for key, item in sky.items() if key != "sun"}
    if not any(key in sky for key in _MOMENT):
        return {**body, "sky": sky}, own
    label, rest = f"{where}: sky", {key: item for key, item in sky.items() if key not in _MOMENT}
    missing = [key for key in _MOMENT if key not in sky]
    if missing or "elevation" in rest or "azimuth" in rest:
        raise AssetError(
            f"{label} says where the sun stands by elevation and azimuth, or by time, latitude and longitude: all of one, and"
            " none of the other."
        )
    from airworthy.scenes.sky.solar_position import sun_position

    latitude, longitude = (SCHEMA.decode(float, sky[key], f"{label}.{key}") for key in _MOMENT[1:])
    time = sky["time"]
    if isinstance(time, str):
        with suppress(ValueError):
            time = datetime.fromisoformat(time)
    if not isinstance(time, datetime):
        raise wrong(f"{label}.time", "a date and time with its zone, as 2026-06-21T12:00:00Z", time)
    try:
        elevation, azimuth = sun_position(time, latitude, longitude)
    except AirworthyError as error:
        raise AssetError(f"{label}: {error}") from None
    return {**body, "sky": {"model": "daylight", **rest, "elevation": elevation, "azimuth": azimuth}}, own


def _warn_of_idle(sky: Sky, where: str) -> None:
    """Warn of numbers of a sky, other than its defaults, that its model does not read."""
    daylight, plain = sky.model == "daylight", Sky()
    of_daylight = [item.name for item in fields(Sky) if item.name not in (*_OF_ALL_SKIES, *_OF_GRADIENTS)]
    names = _OF_GRADIENTS if daylight else of_daylight
    idle = [name for name in names if getattr(sky, name) != getattr(plain, name)]
    if idle:
        other = "gradient" if daylight else "daylight"
        warnings.warn(
            f'{where}: sky: {", ".join(idle)} changes nothing without model = "{other}"; add that, or leave it out.',
            AssetWarning,
            stacklevel=2,
        )


def _with_sun(scene: Scene, body: dict[str, Any], own: bool) -> Scene:
    """Return a scene whose file has a sky by daylight and no sun of its own with that of the sky."""
    rows = body.get("lights", [])
    said = any(isinstance(row, dict) and row.get("kind") == "sun" for row in rows)
    if not own or said or "sky" not in body or scene.sky.model != "daylight":
        return scene
    from airworthy.scenes.sky.weather import under_sky

    return under_sky(scene, scene.sky)


def _with_carved(scene: Scene, body: dict[str, Any], folder: Folder, where: str) -> Scene:
    """Return the scene with what is known of its space, and the unknown in it as the file says."""
    if not any(key in body for key in _CARVED):
        return scene
    from airworthy.scenes.carved import carved_from_arrays, with_unknown

    if "carved" in body:
        label = f"{where}: carved"
        data = folder.read(SCHEMA.decode(str, body["carved"], label), label)
        scene = replace(scene, carved=carved_from_arrays(_assets.read_arrays(data, label), label))
    if "unknown" not in body:
        return scene
    try:
        return with_unknown(scene, SCHEMA.decode(str, body["unknown"], f"{where}: unknown"))
    except AirworthyError as error:
        raise AssetError(f"{where}: unknown: {error}") from None


def _base(name: Any, where: str) -> Scene | None:
    """Return the generated scene that a file builds on."""
    if name is None:
        return None
    from airworthy.scenes.catalogue import generated  # which reads files

    try:
        return generated(SCHEMA.decode(str, name, f"{where}: base"))
    except AirworthyError as error:
        raise AssetError(f"{where}: base: {error}") from None


def _tables(base: Scene | None, body: dict[str, Any], folder: Folder, where: str) -> Scene:
    """Return the base with the shapes, materials, instances, actors and lights of a file added."""
    scene = base or Scene("")
    cache: dict[str, _assets.Arrays] = {}
    shapes = {k: _shape(v, folder, cache, f"{where}: shapes.{k}") for k, v in _items(body, "shapes", where)}
    textures = {k: _texture(v, folder, f"{where}: textures.{k}") for k, v in _items(body, "textures", where)}
    materials = {}
    for k, v in _items(body, "materials", where):
        label = f"{where}: materials.{k}"
        if "library" in SCHEMA.table(v, label):
            materials[k], maps = library_material(v, k, label)
            textures = {**maps, **textures}
        else:
            materials[k] = SCHEMA.record(Material, v, label)
    skeletons = {k: _skeleton(v, folder, f"{where}: skeletons.{k}") for k, v in _items(body, "skeletons", where)}
    instances, looks = (
        tuple(SCHEMA.record(Instance, with_yaw(row, label), label) for label, row in _rows(body, key, where))
        for key in ("instances", "looks")
    )
    clouds = read_clouds(_items(body, "clouds", where), folder, where)
    splats = tuple(read_placement(with_yaw(row, label), label)[0] for label, row in _rows(body, "splats", where))
    lights = tuple(_light(row, label) for label, row in _rows(body, "lights", where))
    if "lights" not in body:
        lights = scene.lights
    elif base is not None:  # its lights are added to, the default sun is not
        lights = scene.lights + lights
    made = replace(
        scene,
        shapes={**scene.shapes, **shapes},
        textures={**scene.textures, **textures},
        materials={**scene.materials, **materials},
        skeletons={**scene.skeletons, **skeletons},
        clouds={**scene.clouds, **clouds},
        instances=scene.instances + instances,
        looks=scene.looks + looks,
        splats=scene.splats + splats,
        lights=lights,
    )
    for label, row in _rows(body, "models", where):
        made = model_from_table(made, row, folder, label)
    actors: list[Actor | ActorKit] = [actor_from_table(row, folder, label) for label, row in _rows(body, "actors", where)]
    for actor in actors:
        made = _joined(made, actor, where)
    return with_named_materials(made, where)


def _joined(scene: Scene, actor: Actor | ActorKit, where: str) -> Scene:
    from airworthy.scenes.actors import add_actor

    try:
        return add_actor(scene, actor if isinstance(actor, ActorKit) else ActorKit(actor))
    except AirworthyError as error:
        raise AssetError(f"{where}: {error}") from None


def _items(body: dict[str, Any], key: str, where: str) -> list[tuple[str, Any]]:
    return list(SCHEMA.table(body.get(key, {}), f"{where}: {key}").items())


def _rows(body: dict[str, Any], key: str, where: str) -> list[tuple[str, dict[str, Any]]]:
    rows = SCHEMA.rows(body.get(key, []), f"{where}: {key}")
    return [(f"{where}: {key}[{k}]", SCHEMA.table(row, f"{where}: {key}[{k}]")) for k, row in enumerate(rows)]


def _kind(value: Any, kinds: list[str], where: str) -> tuple[str, dict[str, Any]]:
    body = dict(SCHEMA.table(value, where))
    kind = body.pop("kind", None)
    if kind not in kinds:
        raise wrong(f"{where}.kind", "one of " + ", ".join(map(repr, kinds)), kind)
    return kind, body


def _shape(value: Any, folder: Folder, cache: dict[str, _assets.Arrays], where: str) -> Shape:
    kind, body = _kind(value, [*_SOLIDS, "mesh", "card"], where)
    if kind == "card":
        return _card(body, where)
    if kind != "mesh":
        solid: Shape = SCHEMA.record(_SOLIDS[kind], body, where)
        return solid
    file, part = (SCHEMA.decode(str, body.pop(key, ""), f"{where}.{key}") for key in ("file", "part"))
    for key in body:
        raise unknown_key(key, ["kind", "file", "part"], where)
    if file.endswith(_assets.ARRAYS):
        # All meshes of a scene lie in one file: it is read once.
        if file not in cache:
            cache[file] = _assets.read_arrays(folder.read(file, f"{where}.file"), f"{where}.file")
        return _assets.mesh_from_arrays(cache[file], part, where)
    path = folder.path(file, f"{where}.file")
    from airworthy.scenes.formats import read_model

    # Of a model file only the shape: its materials come with [[models]].
    shapes = read_model(path, folder.limits).shapes
    if part not in shapes and not (part == "" and len(shapes) == 1):
        raise _assets.unknown_asset("part", part, shapes, f"{where}.file")
    return shapes[part] if part else next(iter(shapes.values()))


def _card(body: dict[str, Any], where: str) -> Shape:
    from airworthy.scenes.materials.library import card

    for key in body:
        if key != "size":
            raise unknown_key(key, ["kind", "size"], where)
    width, height = SCHEMA.decode(tuple[float, float], body.get("size", [1.0, 1.0]), f"{where}.size")
    try:
        return card(width, height)
    except AirworthyError as error:
        raise AssetError(f"{where}: {error}") from None


def _texture(value: Any, folder: Folder, where: str) -> Texture:
    body = dict(SCHEMA.table(value, where))
    known = ["file", "procedural", "size", "seed", "srgb", "wrap"]
    for key in body:
        if key not in known:
            raise unknown_key(key, known, where)
    more = {key: body[key] for key in ("srgb", "wrap") if key in body}
    more = {key: SCHEMA.decode(hints(Texture)[key], item, f"{where}.{key}") for key, item in more.items()}
    # Both or neither.
    if ("file" in body) == ("procedural" in body):
        raise AssetError(f"{where} needs either 'file' (an image) or 'procedural' (a kind of surface).")
    if "file" in body:
        data = folder.read(SCHEMA.decode(str, body["file"], f"{where}.file"), f"{where}.file")
        return Texture(_assets.read_image(data, folder.limits, f"{where}.file"), **more)
    from airworthy.scenes.textures import procedural

    size, seed = (SCHEMA.decode(int, body.get(key, default), f"{where}.{key}") for key, default in (("size", 256), ("seed", 0)))
    try:
        return replace(procedural(SCHEMA.decode(str, body["procedural"], f"{where}.procedural"), size, seed), **more)
    except AirworthyError as error:
        raise AssetError(f"{where}: {error}") from None


def _skeleton(value: Any, folder: Folder, where: str) -> Skeleton:
    body = SCHEMA.table(value, where)
    for key in body:
        if key != "file":
            raise unknown_key(key, ["file"], where)
    data = folder.read(SCHEMA.decode(str, body.get("file", ""), f"{where}.file"), f"{where}.file")
    return _assets.skeleton_from_arrays(_assets.read_arrays(data, f"{where}.file"), f"{where}.file")


def _light(value: Any, where: str) -> Any:
    kind, body = _kind(value, list(_LIGHTS), where)
    return SCHEMA.record(_LIGHTS[kind], body, where)


# ---- writing ------------------------------------------------------------------------------------------------------------


def write_scene(scene: Scene, folder: str | Path, clouds: CloudForm = "exact") -> Path:
    """Write a scene into a folder; `read_scene` returns the same values, bit for bit.

    Args:
        scene: The scene.
        folder: Made where missing. A scene that this function wrote there is replaced, with the files of the same names in its
            assets folder, all together or not at all.
        clouds: How its splats are kept: "exact", bit for bit; "ply", for other programs; "spz", a tenth as large, rounded.

    Returns:
        Path of the scene.toml.

    Raises:
        AirworthyError: The file system refused, a texture is not an image, `clouds` is none of these, or what would be replaced
            was written by somebody else.
    """
    if clouds not in CLOUD_FORMS:
        raise unknown_name("form of clouds", clouds, CLOUD_FORMS)
    mine = _is_ours(Path(folder))
    with staged_folder(folder, lambda name: name in (SCENE_FILE, ASSETS), SCENE_FILE) as staged:
        root = staged.path
        make_folder(root / ASSETS)
        table = _table(scene)
        table["shapes"] = _write_shapes(scene, root)
        table["textures"] = _write_textures(scene, root)
        table["skeletons"] = _write_skeletons(scene, root)
        table["clouds"] = _write_clouds(scene, root, clouds)
        table["carved"] = _write_carved(scene, root)
        if not mine:
            _refuse_same_names(Path(folder) / ASSETS, root / ASSETS)
        staged.carry(ASSETS)
        # Empty tables are noise to whoever reads the file.
        kept = {key: item for key, item in table.items() if item not in ({}, None)}
        write_text(root / SCENE_FILE, _HEADER + text_of(kept))
    return Path(folder) / SCENE_FILE


def _is_ours(folder: Path) -> bool:
    """Tell whether a folder holds a scene that `write_scene` wrote; raises AirworthyError where it holds somebody else's."""
    path = folder / SCENE_FILE
    if not path.is_file():
        return False
    try:
        with path.open("rb") as file:
            first = file.read(len(_HEADER.encode()))
    except OSError as error:
        raise AirworthyError(f"Could not read {str(path)!r}: {error.strerror or error}.") from error
    if first != _HEADER.encode():
        raise AirworthyError(
            f"{str(path)!r} is not of write_scene, whose files begin with a line of their own, and may be somebody's work:"
            " choose another folder, or remove it first."
        )
    return True


def _refuse_same_names(there: Path, fresh: Path) -> None:
    """Refuse to replace assets where no scene of ours lies: they may be those of a scene file by another name."""
    same = next((name for name in sorted(os.listdir(fresh)) if os.path.lexists(there / name)), "")
    if same:
        raise AirworthyError(f"{str(there / same)!r} is there, of no {SCENE_FILE} beside it: choose another folder.")


def _table(scene: Scene) -> dict[str, Any]:
    plain = {key: SCHEMA.encode(getattr(scene, key)) for key in _PLAIN if key != "name"}
    table: dict[str, Any] = {"version": VERSION, "name": scene.name}
    table.update({key: item for key, item in plain.items() if item is not None and item not in ("", [], {})})
    if scene.sky.model == "daylight" and not any(isinstance(light, Sun) for light in scene.lights):
        # Else whoever reads the file would give it the sun that the sky has.
        table["sky"]["sun"] = False
    table["bounds"] = {"lower": list(scene.bounds.lower), "upper": list(scene.bounds.upper)}
    table["materials"] = {name: SCHEMA.encode(material) for name, material in scene.materials.items()}
    table["instances"] = [SCHEMA.encode(item) for item in scene.instances]
    table["looks"] = [SCHEMA.encode(item) for item in scene.looks]
    table["splats"] = [SCHEMA.encode(item) for item in scene.splats]
    names = {kind: name for name, kind in _LIGHTS.items()}
    table["lights"] = [{"kind": names[type(light)], **SCHEMA.encode(light)} for light in scene.lights]
    table["actors"] = [SCHEMA.encode(actor) for actor in scene.actors]
    return table


def _write_shapes(scene: Scene, root: Path) -> dict[str, Any]:
    names = {kind: name for name, kind in _SOLIDS.items()}
    table: dict[str, Any] = {}
    arrays: _assets.Arrays = {}
    for name, shape in scene.shapes.items():
        if isinstance(shape, Mesh):
            arrays.update(_assets.mesh_arrays(name, shape))
            table[name] = {"kind": "mesh", "file": f"{ASSETS}/meshes{_assets.ARRAYS}", "part": name}
        else:
            table[name] = {"kind": names[type(shape)], **SCHEMA.encode(shape)}
    if arrays:
        _assets.write_arrays(root / ASSETS / f"meshes{_assets.ARRAYS}", arrays)
    return table


def _write_textures(scene: Scene, root: Path) -> dict[str, Any]:
    table: dict[str, Any] = {}
    for index, (name, texture) in enumerate(scene.textures.items()):
        file = f"{ASSETS}/{_slug(name, index)}.png"
        _assets.write_png(root / file, texture.pixels)
        table[name] = {"file": file, "srgb": texture.srgb, "wrap": texture.wrap}
    return table


def _write_skeletons(scene: Scene, root: Path) -> dict[str, Any]:
    table: dict[str, Any] = {}
    for index, (name, skeleton) in enumerate(scene.skeletons.items()):
        file = f"{ASSETS}/{_slug(name, index)}.skeleton{_assets.ARRAYS}"
        _assets.write_arrays(root / file, _assets.skeleton_arrays(skeleton))
        table[name] = {"file": file}
    return table


def _write_clouds(scene: Scene, root: Path, form: CloudForm) -> dict[str, Any]:
    return {
        name: write_cloud(splats, root, f"{ASSETS}/{_slug(name, index)}", form)
        for index, (name, splats) in enumerate(scene.clouds.items())
    }


def _write_carved(scene: Scene, root: Path) -> str | None:
    if scene.carved is None:
        return None
    from airworthy.scenes.carved import carved_arrays

    file = f"{ASSETS}/carved{_assets.ARRAYS}"
    _assets.write_arrays(root / file, carved_arrays(scene.carved))
    return file


def _slug(name: str, index: int) -> str:
    """Return a file name for a table name; the number keeps names apart that look alike without their punctuation."""
    return f"{index:03}_{re.sub(r'[^A-Za-z0-9_-]+', '_', name)[:40]}"
