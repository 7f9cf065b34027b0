"""Scene files: a folder with scene.toml and the assets it names. `docs/scenes.md` walks through one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from airworthy.core.errors import AirworthyError, AssetError, unknown_name
from airworthy.core.files import make_folder, read_toml, write_text
from airworthy.geometry import Box, Capsule, Cylinder, Mesh, Shape, Sphere
from airworthy.scenes import _assets, _clouds, _schema, _toml
from airworthy.scenes._assets import Folder
from airworthy.scenes._clouds import CLOUD_FORMS, CloudForm
from airworthy.scenes._extras import actor_from_table, model_from_table, with_yaw
from airworthy.scenes.casting import ActorKit
from airworthy.scenes.formats.model import Limits, Skeleton
from airworthy.scenes.record import (
    Actor,
    Beacon,
    GateFrame,
    Instance,
    Material,
    PointLight,
    Pose,
    Region,
    Scene,
    Sky,
    SplatPlacement,
    SpotLight,
    Sun,
    Texture,
)

__all__ = ["SCENE_FILE", "VERSION", "read_scene", "scene_from_table", "write_scene"]

VERSION = 1
"""Version of the file form; a reader of version n also reads n - 1."""
SCENE_FILE = "scene.toml"
ASSETS = "assets"
BYTES_MAX = 16 * 1024 * 1024
"""Of a scene.toml: some 100,000 instances."""

_HEADER = "# A scene. SI units, radians, world z up, quaternions x, y, z, w; docs/scenes.md explains every table.\n"
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
    "spawn": tuple[Region, ...],
    "gates": tuple[GateFrame, ...],
    "beacons": tuple[Beacon, ...],
    "semantics": dict[str, int],
    "facts": dict[str, float],
}
_TABLES = ("shapes", "textures", "materials", "skeletons", "clouds", "instances", "splats", "models", "actors", "lights")


def read_scene(path: str | Path, limits: Limits | None = None) -> Scene:
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
    return scene_from_table(read_toml(file, BYTES_MAX), Folder(file.parent, limits or Limits()), str(file))


def scene_from_table(table: Mapping[str, Any], folder: Folder, where: str) -> Scene:
    """A scene from a parsed scene file; `where` names the file in messages. Raises as `read_scene`."""
    body = dict(table)
    version = body.pop("version", None)
    if isinstance(version, bool) or version != VERSION:
        raise AssetError(f"{where} has the file version {_schema.short(version)}, but this Airworthy reads version {VERSION}.")
    base = _base(body.pop("base", None), where)
    for key in body:
        if key not in _PLAIN and key not in _TABLES:
            raise _schema.unknown_key(key, ["version", "base", *_PLAIN, *_TABLES], where)
    if base is None and "name" not in body:
        raise AssetError(f"{where} lacks 'name'.")
    plain = {key: _schema.decode(kind, body[key], f"{where}: {key}") for key, kind in _PLAIN.items() if key in body}
    scene = _tables(base, body, folder, where)
    for key in ("semantics", "facts"):  # a base's are added to
        plain[key] = {**getattr(scene, key), **plain.get(key, {})}
    for key in ("spawn", "gates", "beacons", "courses"):
        plain[key] = getattr(scene, key) + plain.get(key, ())
    try:
        return replace(scene, **plain)
    except AirworthyError as error:
        raise AssetError(f"{where}: {error}") from None


def _base(name: Any, where: str) -> Scene | None:
    """The generated scene that a file builds on."""
    if name is None:
        return None
    from airworthy.scenes.catalogue import generated  # which reads files

    try:
        return generated(_schema.decode(str, name, f"{where}: base"))
    except AirworthyError as error:
        raise AssetError(f"{where}: base: {error}") from None


def _tables(base: Scene | None, body: dict[str, Any], folder: Folder, where: str) -> Scene:
    """The base with the shapes, materials, instances, actors and lights of a file added."""
    scene = base or Scene("")
    cache: dict[str, _assets.Arrays] = {}
    shapes = {k: _shape(v, folder, cache, f"{where}: shapes.{k}") for k, v in _items(body, "shapes", where)}
    textures = {k: _texture(v, folder, f"{where}: textures.{k}") for k, v in _items(body, "textures", where)}
    materials = {k: _schema.record(Material, v, f"{where}: materials.{k}") for k, v in _items(body, "materials", where)}
    skeletons = {k: _skeleton(v, folder, f"{where}: skeletons.{k}") for k, v in _items(body, "skeletons", where)}
    instances = tuple(_schema.record(Instance, with_yaw(row, place), place) for place, row in _rows(body, "instances", where))
    clouds = _clouds.read_clouds(_items(body, "clouds", where), folder, where)
    splats = tuple(_schema.record(SplatPlacement, with_yaw(row, place), place) for place, row in _rows(body, "splats", where))
    lights = tuple(_light(row, place) for place, row in _rows(body, "lights", where))
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
        splats=scene.splats + splats,
        lights=lights,
    )
    for place, row in _rows(body, "models", where):
        made = model_from_table(made, row, folder, place)
    actors: list[Actor | ActorKit] = [actor_from_table(row, folder, place) for place, row in _rows(body, "actors", where)]
    for actor in actors:
        made = _joined(made, actor, where)
    return made


def _joined(scene: Scene, actor: Actor | ActorKit, where: str) -> Scene:
    from airworthy.scenes.casting import add_actor

    try:
        return add_actor(scene, actor if isinstance(actor, ActorKit) else ActorKit(actor))
    except AirworthyError as error:
        raise AssetError(f"{where}: {error}") from None


def _items(body: dict[str, Any], key: str, where: str) -> list[tuple[str, Any]]:
    return list(_schema.table(body.get(key, {}), f"{where}: {key}").items())


def _rows(body: dict[str, Any], key: str, where: str) -> list[tuple[str, dict[str, Any]]]:
    rows = _schema.rows(body.get(key, []), f"{where}: {key}")
    return [(f"{where}: {key}[{k}]", _schema.table(row, f"{where}: {key}[{k}]")) for k, row in enumerate(rows)]


def _kind(value: Any, kinds: list[str], where: str) -> tuple[str, dict[str, Any]]:
    body = dict(_schema.table(value, where))
    kind = body.pop("kind", None)
    if kind not in kinds:
        raise _schema.wrong(f"{where}.kind", "one of " + ", ".join(map(repr, kinds)), kind)
    return kind, body


def _shape(value: Any, folder: Folder, cache: dict[str, _assets.Arrays], where: str) -> Shape:
    kind, body = _kind(value, [*_SOLIDS, "mesh"], where)
    if kind != "mesh":
        solid: Shape = _schema.record(_SOLIDS[kind], body, where)
        return solid
    file, part = (_schema.decode(str, body.pop(key, ""), f"{where}.{key}") for key in ("file", "part"))
    for key in body:
        raise _schema.unknown_key(key, ["kind", "file", "part"], where)
    if file.endswith(_assets.ARRAYS):
        if file not in cache:
            cache[file] = _assets.read_arrays(folder.read(file, f"{where}.file"), f"{where}.file")
        return _assets.mesh_from_arrays(cache[file], part, where)
    path = folder.path(file, f"{where}.file")
    from airworthy.scenes.formats import read_model

    shapes = read_model(path, folder.limits).shapes
    if part not in shapes and not (part == "" and len(shapes) == 1):
        raise _assets.unknown_asset("part", part, shapes, f"{where}.file")
    return shapes[part] if part else next(iter(shapes.values()))


def _texture(value: Any, folder: Folder, where: str) -> Texture:
    body = dict(_schema.table(value, where))
    known = ["file", "procedural", "size", "seed", "srgb", "wrap"]
    for key in body:
        if key not in known:
            raise _schema.unknown_key(key, known, where)
    more = {key: body[key] for key in ("srgb", "wrap") if key in body}
    more = {key: _schema.decode(_schema.hints(Texture)[key], item, f"{where}.{key}") for key, item in more.items()}
    if ("file" in body) == ("procedural" in body):
        raise AssetError(f"{where} needs either 'file' (an image) or 'procedural' (a kind of surface).")
    if "file" in body:
        data = folder.read(_schema.decode(str, body["file"], f"{where}.file"), f"{where}.file")
        return Texture(_assets.read_image(data, folder.limits, f"{where}.file"), **more)
    from airworthy.scenes.textures import procedural

    size, seed = (
        _schema.decode(int, body.get(key, default), f"{where}.{key}") for key, default in (("size", 256), ("seed", 0))
    )
    try:
        return replace(procedural(_schema.decode(str, body["procedural"], f"{where}.procedural"), size, seed), **more)
    except AirworthyError as error:
        raise AssetError(f"{where}: {error}") from None


def _skeleton(value: Any, folder: Folder, where: str) -> Skeleton:
    body = _schema.table(value, where)
    for key in body:
        if key != "file":
            raise _schema.unknown_key(key, ["file"], where)
    data = folder.read(_schema.decode(str, body.get("file", ""), f"{where}.file"), f"{where}.file")
    return _assets.skeleton_from_arrays(_assets.read_arrays(data, f"{where}.file"), f"{where}.file")


def _light(value: Any, where: str) -> Any:
    kind, body = _kind(value, list(_LIGHTS), where)
    return _schema.record(_LIGHTS[kind], body, where)


# ---- writing ------------------------------------------------------------------------------------------------------------


def write_scene(scene: Scene, folder: str | Path, clouds: CloudForm = "exact") -> Path:
    """Write a scene into a folder; `read_scene` returns the same values, bit for bit.

    Args:
        scene: The scene.
        folder: Made where missing; its scene.toml and the files of the same names in its assets folder are overwritten.
        clouds: How its splats are kept: "exact", bit for bit; "ply", for other programs; "spz", a tenth as large, rounded.

    Returns:
        Path of the scene.toml.

    Raises:
        AirworthyError: The file system refused, a texture is not an image, or `clouds` is none of these.
    """
    if clouds not in CLOUD_FORMS:
        raise unknown_name("form of clouds", clouds, CLOUD_FORMS)
    root = make_folder(folder)
    make_folder(root / ASSETS)
    table = _table(scene)
    table["shapes"] = _write_shapes(scene, root)
    table["textures"] = _write_textures(scene, root)
    table["skeletons"] = _write_skeletons(scene, root)
    table["clouds"] = _write_clouds(scene, root, clouds)
    return write_text(
        root / SCENE_FILE, _HEADER + _toml.text_of({key: item for key, item in table.items() if item not in ({}, None)})
    )


def _table(scene: Scene) -> dict[str, Any]:
    plain = {key: _schema.encode(getattr(scene, key)) for key in _PLAIN if key != "name"}
    table: dict[str, Any] = {"version": VERSION, "name": scene.name}
    table.update({key: item for key, item in plain.items() if item is not None and item not in ("", [], {})})
    table["bounds"] = {"lower": list(scene.bounds.lower), "upper": list(scene.bounds.upper)}
    table["materials"] = {name: _schema.encode(material) for name, material in scene.materials.items()}
    table["instances"] = [_schema.encode(item) for item in scene.instances]
    table["splats"] = [_schema.encode(item) for item in scene.splats]
    names = {kind: name for name, kind in _LIGHTS.items()}
    table["lights"] = [{"kind": names[type(light)], **_schema.encode(light)} for light in scene.lights]
    table["actors"] = [_schema.encode(actor) for actor in scene.actors]
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
            table[name] = {"kind": names[type(shape)], **_schema.encode(shape)}
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
        name: _clouds.write_cloud(splats, root, f"{ASSETS}/{_slug(name, index)}", form)
        for index, (name, splats) in enumerate(scene.clouds.items())
    }


def _slug(name: str, index: int) -> str:
    """A file name for a table name; the number keeps names apart that look alike without their punctuation."""
    return f"{index:03}_{re.sub(r'[^A-Za-z0-9_-]+', '_', name)[:40]}"
