"""`airworthy scenes`: list, show, start, validate, export and render scenes.

Options of `airworthy scenes` that change nothing beside the others, in a format, or for a scene.
"""

from __future__ import annotations

import math
import os
import re
import sys
import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from tyro.conf import Positional

from airworthy.cli.common import ListConfig, Subcommands, emit_json, run_subcommand, show_table
from airworthy.cli.scenes.picture_files import check_pictures, write_picture
from airworthy.core.errors import AirworthyError, AssetWarning, unknown_name
from airworthy.core.files import make_folder, read_text, write_text
from airworthy.core.idle_options import IdleRule, refuse_idle
from airworthy.core.outputs import refuse_input
from airworthy.core.schema import Bound, check_fields
from airworthy.scenes import Scene, check_scene, findings, posed, scene, scene_generators, weather_named, write_scene
from airworthy.scenes.carved import is_unknown_solid
from airworthy.scenes.checking import description
from airworthy.scenes.dressing import dressed, has_dress
from airworthy.scenes.extent import gaussian_count, scene_box, triangle_count
from airworthy.scenes.files.scene_file import ASSETS, BYTES_MAX, SCENE_FILE
from airworthy.scenes.formats import EXPORTS, export_losses, export_scene, sample_points, write_pcd, write_points_ply
from airworthy.scenes.formats.export import check_ending
from airworthy.scenes.formats.meshes.sampling import SPACING
from airworthy.scenes.vegetation.kinds import Season, tree_kind, tree_kinds
from airworthy.scenes.vegetation.variety import OTHER_LOOK

EXPORT_RULES = (
    IdleRule(
        ("spacing", "ground", "inside"),
        lambda config, ending: ending not in ("pcd", "cloud.ply"),
        "in a file that is no cloud of points",
        "write a .pcd or .cloud.ply",
    ),
    IdleRule(("time",), lambda config, ending: ending == "toml", "in a scene's folder, which keeps the motion of actors"),
)
"""Options of `airworthy scenes export` that change nothing in a format."""
RENDER_RULES = (
    IdleRule(("view",), lambda config: config.eye is not None, "with --eye, which says where from", "drop that"),
    IdleRule(
        ("samples", "bake", "shade", "sky", "exposure"),
        lambda config: "rgb" not in config.channels,
        "without the channel rgb, which alone has light",
        "add it to --channels",
    ),
    IdleRule(
        ("quality",),
        lambda config: "rgb" not in config.channels,
        "without the channel rgb, which alone has light",
        "add it to --channels",
    ),
    IdleRule(
        ("bake", "shade"), lambda config: config.quality == "still", "with --quality still, which follows light by itself"
    ),
    IdleRule(
        ("shade",), lambda config: config.quality == "policy", "with --quality policy, which knows of no shade of the sky"
    ),
    IdleRule(("shade",), lambda config: config.bake, "with --bake, which finds all there is of it", "drop that"),
    IdleRule(("seed",), lambda config: config.quality != "still", "without --quality still, whose noise it is", "choose that"),
)
"""Options of `airworthy scenes render` that change nothing beside the others."""
ACTOR_RULES = (IdleRule(("time",), lambda config, scene: not scene.actors, "in a scene where nothing moves"),)
"""Of both, by the scene."""
VEGETATION_RULES = (
    IdleRule(
        ("season", "seed", "cell", "columns"),
        lambda config: config.out is None,
        "without --out, which draws the sheet",
        "say where it shall go",
    ),
)
"""Options of `airworthy scenes vegetation` that change nothing beside the others."""
MATERIAL_RULES = (
    IdleRule(
        ("cell", "columns", "map_size"),
        lambda config: config.out is None,
        "without --out, which draws the sheet",
        "say where it shall go",
    ),
)
"""Options of `airworthy scenes materials` that change nothing beside the others."""


# ---- Files that `airworthy scenes export` writes ----------------------------------------------------------------------------

SPLAT_FORMATS = ("splats.ply", "spz")
FORMATS = (*EXPORTS, *SPLAT_FORMATS, "toml")
"""What can be written; pcd and cloud.ply hold points, splats.ply and spz Gaussian splats, toml is a folder."""


@dataclass(frozen=True)
class CloudOptions:
    """What a cloud holds."""

    spacing: float = SPACING
    """Between its points [m]."""
    ground: bool = True
    """Whether it holds what is of the class "ground"."""
    inside: bool = False
    """Whether it holds the inside of solids."""

    def __post_init__(self) -> None:
        check_fields(self)


_CLOUDS = {"pcd": write_pcd, "cloud.ply": write_points_ply}


def export(scene: Scene, path: Path, ending: str, time: float, cloud: CloudOptions) -> Path:
    """Write a scene.

    Args:
        scene: The scene.
        path: The file; of toml, its folder.
        ending: One of `FORMATS`.
        time: At which actors stand [s]; toml keeps their motion.
        cloud: What a cloud holds.

    Returns:
        What was written.

    Raises:
        AirworthyError: The scene cannot be written so, or the file system refused.
    """
    if ending == "toml":
        return write_scene(scene, scene_folder(path))
    make_folder(path.parent)
    still = posed(scene, time)
    if ending in SPLAT_FORMATS:
        return _export_splats(still, path)
    if ending in _CLOUDS:
        return _CLOUDS[ending](path, sample_points(still, cloud.spacing, ground=cloud.ground, inside=cloud.inside))
    return export_scene(still, path, ending)


def scene_folder(path: Path) -> Path:
    """Return the folder of a scene that is to be written, from what was given: the folder itself, or the scene.toml in it.

    Raises:
        AirworthyError: It is another .toml, under whose name no scene can be written beside those that share its assets, or
            something is there already: it may be somebody's work.
    """
    named = path.suffix.lower() == ".toml"
    if named and path.name != SCENE_FILE:
        raise AirworthyError(
            f"{str(path)!r} is no {SCENE_FILE}: a scene is written as a folder with a {SCENE_FILE} and its assets; name the"
            f" folder, as {str(path.with_suffix(''))!r}."
        )
    folder = path.parent if named else path
    there = next((name for name in (SCENE_FILE, ASSETS) if os.path.lexists(folder / name)), "")
    if there:
        raise AirworthyError(f"{str(folder / there)!r} exists already; choose another name, or remove it first.")
    return folder


def _read_of(name: str) -> list[Path]:
    """Return the files that are read of a scene: its own, and of a scene.toml those that it names."""
    path = Path(name.removeprefix(f"{OTHER_LOOK}:"))
    file = path / SCENE_FILE if path.is_dir() else path
    if file.suffix.lower() != ".toml" or not file.is_file():
        return [path]
    named = re.findall(r"""["']([^"'\n]+)["']""", read_text(file, BYTES_MAX))
    return [file, *(file.parent / text for text in named if (file.parent / text).is_file())]


def _export_splats(still: Scene, path: Path) -> Path:
    """Return all splats of a scene as one cloud, where its actors stand."""
    from airworthy.scenes.splats import write_splats
    from airworthy.scenes.splats.placing import static_splats

    splats = static_splats(still)
    if splats is None:
        raise AirworthyError(f"Scene {still.name!r} has no splats to write.")
    return write_splats(splats, path)


# -----------------------------------------------------------------------------------------------------------------------------

PROG = "airworthy scenes"
_DESCRIPTION = (
    "List the scenes there are. Also: airworthy scenes show NAME | new FILE | validate FILE | export NAME --out FILE |"
    " render NAME --out FILE | materials [--out FILE]."
)
_SAMPLES = 2001
Format = Literal["", "glb", "obj", "stl", "ply", "dae", "sdf", "pcd", "cloud.ply", "splats.ply", "spz", "toml"]


@dataclass(frozen=True)
class _Named:
    name: Positional[str]
    """NAME[:INDEX][@SEED] (`airworthy scenes` lists them), alphapilot:COURSE (as published/7), or the path of a scene.toml,
    mesh, point cloud or splat file."""
    units: Literal["m", "cm", "mm"] = "m"
    """Of a mesh, point cloud or splat file."""
    up: Literal["auto", "z", "y", "-y", "-z", "x", "-x"] = "auto"
    """Vertical axis of the file: z or y of a mesh or point cloud, z by default (glTF is turned already); any of splats, by
    default as their container says."""
    recentre: bool = False
    """Stand it on the floor, its middle at the origin. Meshes are, if not told to keep their frame."""
    keep_frame: bool = False
    """Leave it where its file has it. Point clouds, worlds and splats are."""
    voxel: float = 0.0
    """Edge of the cells of a point cloud [m]; 0: as found in it."""
    unknown: Literal["solid", "free"] | None = None
    """Of a captured place: space of which nobody knows is solid or free; without it, as the place says."""


@dataclass(frozen=True)
class ShowSceneConfig(_Named):
    """What to show."""

    json: bool = False
    """Print every field as JSON."""


@dataclass(frozen=True)
class NewConfig:
    """What to start."""

    file: Positional[Path]
    """Scene TOML to write; it must not exist yet."""


@dataclass(frozen=True)
class ValidateSceneConfig(_Named):
    """What to validate."""

    json: bool = False
    """Print problems and notes as JSON."""


@dataclass(frozen=True)
class ExportSceneConfig(_Named):
    """What to export."""

    out: Path = Path("scene.glb")
    """File to write; for toml a folder, or the scene.toml in it, where there is none yet."""
    format: Format = ""
    """Empty: by the file's ending. splats.ply and spz hold the splats alone, the others all but them; toml holds all."""
    time: float = 0.0
    """At which actors stand [s]; toml keeps their motion."""
    spacing: float = 0.1
    """Between the points of a cloud (pcd, cloud.ply) [m]."""
    ground: bool = True
    """Whether a cloud holds what is of the class "ground"."""
    inside: bool = False
    """Whether a cloud holds the inside of solids, too, and not their surfaces alone."""


@dataclass(frozen=True)
class RenderSceneConfig(_Named):
    """What to render."""

    out: Path = Path("scene.png")
    """Image to write; with several channels, their names come before its ending."""
    view: str = "inside"
    """inside (from the start, along what is freest; orbit where there is none), orbit (from outside, or a corner of a room),
    top (straight down, without the roof), start or side."""
    eye: tuple[float, float, float] | None = None
    """Look from here [m] instead of a view."""
    target: tuple[float, float, float] | None = None
    """Look at this point [m], with --eye."""
    width: int = 1280
    """Pixels."""
    height: int = 720
    """Pixels."""
    channels: tuple[str, ...] = ("rgb",)
    """Some of rgb (materials and light), matte (classes as colours), depth, semantic, instance, normal."""
    quality: Literal["policy", "standard", "high", "still"] = "standard"
    """Of rgb: policy, as training has it by default, with hard shadows; standard, with a soft sun, leaves whose shadows have
    holes, and gloss that shows what is around; high, the same with more rays; still, by path tracing: all light there is,
    seconds to minutes."""
    samples: int | None = None
    """Of rgb: rays per pixel, 1, 2, 4 or 8 (by default policy 1, standard 2, high 8); still: paths per pixel, any number, by
    default 256."""
    seed: int = 0
    """Of the noise of a still image."""
    bake: bool = False
    """Bake light that walls and floors send on to each other first, for rgb; some seconds, once per scene."""
    shade: bool = True
    """In a wood, find first how little of the sky's light comes down through the crowns, for rgb; some seconds, once."""
    time: float = 0.0
    """At which actors stand [s]."""
    sky: tuple[str, ...] = ()
    """Under this sky by daylight instead of its own, for rgb: noon, morning, evening, dusk, night, fair, cloudy,
    starry, overcast, rain, wet, wet_dusk, snow, snow_sun, hazy, fog, dust, or a time as 2026-06-21T18:30+02:00@47.4,8.5
    (latitude, longitude); several make one picture of many."""
    dress: bool = True
    """In rgb, let a place wear what it has beside its bare shapes: grown trees in the forests of the benchmark."""
    exposure: str = ""
    """Of rgb: an EV at ISO 100 (15: linear values as they are), or auto, as cameras have it; without it, auto under a sky by
    daylight, else 15."""


@dataclass(frozen=True)
class VegetationConfig:
    """Kinds of trees."""

    names: Positional[tuple[str, ...]] = ()
    """Names of kinds; none: all of them."""
    json: bool = False
    """Print JSON."""
    out: Path | None = None
    """Image to write: every kind as the renderer shows it."""
    season: Season = "summer"
    """Of the leaves."""
    seed: int = 0
    """Of the trees."""
    cell: Annotated[int, Bound(64, 1024)] = 320
    """Width of one picture [px]."""
    columns: Annotated[int, Bound(1, 64)] = 6
    """Pictures in a row."""

    def __post_init__(self) -> None:
        check_fields(self, "--")


@dataclass(frozen=True)
class MaterialsConfig:
    """Which materials, and whether to draw them."""

    names: Positional[tuple[str, ...]] = ()
    """Names of materials, brick@7 for a variant; none: all of the library."""
    json: bool = False
    """Print a JSON list of objects instead of a table."""
    out: Path | None = None
    """Image to write: a contact sheet of the materials as the renderer shows them."""
    cell: Annotated[int, Bound(32, 1024)] = 256
    """Side of one picture of the sheet [px]."""
    columns: Annotated[int, Bound(1, 64)] = 6
    """Pictures in a row of the sheet."""
    map_size: Annotated[int, Bound(64, 2048)] = 512
    """Side of the materials' maps [px]."""

    def __post_init__(self) -> None:
        check_fields(self)


def main(argv: list[str]) -> int:
    """Run `airworthy scenes`; users' mistakes raise AirworthyError, which the command line prints."""
    commands: Subcommands = {
        "list": (ListConfig, _list, _DESCRIPTION),
        "show": (ShowSceneConfig, _show, "Show what a scene holds, and how far its courses keep from it."),
        "new": (NewConfig, _new, "Write a small scene file to start from."),
        "validate": (ValidateSceneConfig, _validate, "Read a scene of any kind and check it."),
        "export": (ExportSceneConfig, _export, "Write a scene as a model, a point cloud, a Gazebo world or a scene folder."),
        "render": (RenderSceneConfig, _render, "Render a picture of a scene."),
        "vegetation": (VegetationConfig, _vegetation, "List the kinds of trees, or draw all of them."),
        "materials": (MaterialsConfig, _materials, "List the materials of the library, or draw a contact sheet of them."),
    }
    return run_subcommand(PROG, commands, argv)


def _list(config: ListConfig) -> int:
    rows = [{"name": name, "description": description(name)} for name in sorted(scene_generators())]
    if config.json:
        emit_json(rows)
        return 0
    show_table(f"{len(rows)} scenes; NAME:INDEX@SEED varies them", ["name", "what"], [list(row.values()) for row in rows])
    return 0


def _found(config: _Named) -> Scene:
    if config.recentre and config.keep_frame:
        raise AirworthyError("--recentre and --keep-frame exclude each other; give one of them.")
    up = None if config.up == "auto" else config.up
    recentre = True if config.recentre else False if config.keep_frame else None
    return scene(config.name, config.units, up, recentre=recentre, voxel=config.voxel, unknown=config.unknown)


def _with_remarks(config: _Named) -> tuple[Scene, list[str]]:
    """Return the scene, and what its file lost or had mended when it was read."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", AssetWarning)
        item = _found(config)
    return item, list(
        dict.fromkeys(str(line.message).rstrip(".") for line in caught if issubclass(line.category, AssetWarning))
    )


def _show(config: ShowSceneConfig) -> int:
    item, remarks = _with_remarks(config)
    remarks = check_scene(item) + [f"note: {line}" for line in remarks]
    values = {**summary(item), "gate_frames": gates(item), "courses": courses(item), "remarks": remarks}
    if config.json:
        emit_json(values)
        return 0
    for key, value in values.items():
        if isinstance(value, dict):
            for name, inner in value.items():
                print(f"{key + '.' + name:40}{_shown(inner)}")
        elif key == "gate_frames":
            for row in value:
                print(f"{'gate ' + row['name']:40}{_gate_line(row)}")
        elif key == "courses":
            for row in value:
                near = (f"{key} {row[key]:.3f}" for key in ("clearance_m", "ground_clearance_m") if row[key] is not None)
                print(f"{'course ' + row['name']:40}{', '.join(near)}; {round(row['length_m'], 9):.4g} m long")
        elif key == "remarks":
            for line in value:
                print(line if line.startswith("note: ") else f"problem: {line}")
        elif value not in (None, ""):
            print(f"{key:40}{_shown(value)}")
    return 0


def _gate_line(row: dict[str, Any]) -> str:
    """Return where a gate is, how large, and which way it is to be flown through."""
    # Of -0.00, who reads sees a sign that means nothing.
    at, through = (", ".join(f"{round(value, 2) + 0.0:.2f}" for value in row[key] or ()) for key in ("center_m", "direction"))
    wide, high = row["opening_m"]
    way = f"through ({through})" if through else "either way"
    return f"at ({at}), {wide:.2f} x {high:.2f} m, {way}"


def _shown(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(_shown(item) for item in value)
    if isinstance(value, bool):  # which is a whole number, too
        return "yes" if value else "no"
    return f"{value:.5g}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)


def summary(item: Scene) -> dict[str, Any]:
    """Return what a scene holds: counts, extents, memory in bytes, instances per class, and its generator's facts."""
    from airworthy.scenes.batch import SceneBatch

    unique, triangles = triangle_count(item)
    stored, shown = gaussian_count(item)
    box = scene_box(item)
    batch = SceneBatch(item)
    classes: dict[str, int] = {}
    for instance in (*item.instances, *(part for actor in item.actors for part in actor.parts)):
        classes[instance.semantic] = classes.get(instance.semantic, 0) + 1
    return {
        "name": item.name,
        "description": item.description,
        "source": item.source,
        "instances": len(item.instances),
        "actors": len(item.actors),
        "lights": len(item.lights),
        "materials": len(item.materials),
        "textures": len(item.textures),
        "triangles_stored": unique,
        "triangles_seen": triangles,
        "clouds": len(item.clouds),
        "gaussians_stored": stored,
        "gaussians_seen": shown,
        "bounds_lower_m": list(item.bounds.lower),
        "bounds_upper_m": list(item.bounds.upper),
        "extent_lower_m": None if box is None else box[0].tolist(),
        "extent_upper_m": None if box is None else box[1].tolist(),
        "space_m3": {} if item.carved is None else item.carved.volumes(),
        "unknown_space": {None: None, True: "solid", False: "free"}[is_unknown_solid(item)],
        "start_m": None if item.start is None else list(item.start.position),
        "goal_m": None if item.goal is None else list(item.goal.position),
        "gates": len(item.gates),
        "beacons": len(item.beacons),
        "memory_bytes": {**batch.geometry.memory(), **_memory(item)},
        "classes": dict(sorted(classes.items())),
        "facts": dict(item.facts),
    }


def _memory(item: Scene) -> dict[str, int]:
    parts = ("position", "rotation", "scale", "opacity", "harmonics")
    return {
        "textures": sum(texture.pixels.nbytes for texture in item.textures.values()),
        "clouds": sum(getattr(cloud, part).nbytes for cloud in item.clouds.values() for part in parts),
    }


def gates(item: Scene) -> list[dict[str, Any]]:
    """Return the scene's gates: name, center [m], full width and height of the opening [m], direction and pivot (or None)."""
    return [
        {
            "name": gate.name,
            "center_m": list(gate.center),
            "opening_m": [2.0 * side for side in gate.opening],
            "direction": None if gate.direction is None else list(gate.direction),
            "pivot_m": None if gate.pivot is None else list(gate.pivot),
        }
        for gate in item.gates
    ]


def courses(item: Scene) -> list[dict[str, Any]]:
    """Return the scene's courses: length, and least distances of the default trajectory from obstacles and from the ground.

    The ground (class "ground") is told apart, since courses that land come near it on purpose; None where there is none.
    """
    from airworthy.trajectories import course

    ground = tuple(part for part in item.instances if part.semantic == "ground")
    others = replace(item, instances=tuple(part for part in item.instances if part.semantic != "ground"))
    rows = []
    for name in item.courses:
        path = course(name).trajectory()
        points = path.sample(np.linspace(0.0, path.duration, _SAMPLES)).position
        nearest = _nearest(others, points), _nearest(replace(item, instances=ground, actors=(), lights=(), beacons=()), points)
        rows.append({"name": name, "clearance_m": nearest[0], "ground_clearance_m": nearest[1], "length_m": path.length()})
    return rows


def _nearest(item: Scene, points: Any) -> float | None:
    """Least distance of points from anything that can be hit; None where there is nothing."""
    from airworthy.scenes.checking import point_clearance

    least = float(np.min(point_clearance(item, points)))
    return least if np.isfinite(least) else None


def _new(config: NewConfig) -> int:
    from airworthy.cli.scenes.pictures import STARTER

    path = config.file if config.file.suffix == ".toml" else config.file / "scene.toml"
    if path.exists():
        raise AirworthyError(f"{str(path)!r} exists already; choose another name, or remove it first.")
    name = path.parent.name if path.stem == "scene" else path.stem
    make_folder(path.parent)
    write_text(path, STARTER.format(name=re.sub(r"[^A-Za-z0-9_ -]", "_", name) or "scene"))
    print(f"Wrote {path}. Next: airworthy scenes validate {path}; airworthy scenes render {path}")
    return 0


def _validate(config: ValidateSceneConfig) -> int:
    item, remarks = _with_remarks(config)
    found = findings(item)
    fatal = [str(line) for line in found if line.fatal]
    notes = [str(line) for line in found if not line.fatal] + remarks
    if config.json:
        emit_json({"name": item.name, "valid": not fatal, "problems": fatal, "notes": notes})
        return 2 if fatal else 0
    for line in fatal:
        print(f"{config.name}: {line}.", file=sys.stderr)
    if fatal:
        return 2
    unique, _ = triangle_count(item)
    counts = f"{len(item.instances)} instances, {len(item.actors)} actors, {unique:,} triangles"
    if item.clouds:
        counts += f", {gaussian_count(item)[0]:,} gaussians"
    print(f"{config.name}: {item.name} is valid ({counts}).")
    for line in notes:
        print(f"note: {line}")
    return 0


def _export(config: ExportSceneConfig) -> int:
    ending = config.format or _ending(config.out.name.lower())
    if ending not in FORMATS:
        raise unknown_name("format", ending, FORMATS, "Say it with --format, or by the ending of --out.")
    check_ending(config.out, ending, FORMATS)
    refuse_idle(config, EXPORT_RULES, ending)
    if ending == "toml":
        scene_folder(config.out)
    scene = _found(config)
    refuse_input(config.out, _read_of(config.name), "scene")
    refuse_idle(config, ACTOR_RULES, scene)
    written = export(scene, config.out, ending, config.time, CloudOptions(config.spacing, config.ground, config.inside))
    print(f"Wrote {written}.")
    for line in export_losses(scene, ending):
        print(line)
    if scene.splats and ending not in (*SPLAT_FORMATS, "toml"):
        print(f"Its splats are not in it, since {ending} holds none; --out NAME.spz or NAME.splats.ply writes them.")
    return 0


def _ending(name: str) -> str:
    """Return a format's name by that of its file; a name without an ending is that of a scene's folder."""
    for ending in ("cloud.ply", "splats.ply"):
        if name.endswith("." + ending):
            return ending
    return name.rpartition(".")[2] if "." in name else "toml"


def _render(config: RenderSceneConfig) -> int:
    from PIL import Image

    from airworthy.cli.scenes.pictures import PictureLight, sky_pictures

    if not (8 <= config.width <= 16384 and 8 <= config.height <= 16384):
        raise AirworthyError(f"An image of {config.width} x {config.height} pixels: expected 8 to 16384 along each side.")
    paths = {name: _channel_path(config, name) for name in config.channels}
    check_pictures(config.out, paths.values())
    if not config.channels:
        raise AirworthyError("--channels names none, so there is nothing to draw; expected at least one, as rgb or depth.")
    refuse_idle(config, RENDER_RULES)
    size, scene = (config.width, config.height), _found(config)
    refuse_idle(config, ACTOR_RULES, scene)
    wears = config.dress and "rgb" in config.channels and has_dress(scene)
    if wears:
        # Another sky that is asked for brings air of its own.
        white = any(weather_named(name).snow.cover for name in config.sky)
        scene = dressed(scene, "winter" if white else "summer", sky="" if config.sky else "noon")
    exposure = None if wears and not config.exposure else _exposure(config, scene.sky.model == "daylight")
    still = _still(config)
    quality = PictureLight.quality if still else config.quality
    shade = config.shade and not (config.bake or still) and quality != "policy"
    light = PictureLight(quality, config.samples, config.bake, shade, exposure, still)
    made = sky_pictures(scene, _camera(config), size, config.channels, config.time, light, config.sky)
    for channel, pixels in made.items():
        path = write_picture(paths[channel], Image.fromarray(pixels))
        print(f"Wrote {path} ({channel}, {pixels.shape[1]} x {pixels.shape[0]}).")
    return 0


def _channel_path(config: RenderSceneConfig, channel: str) -> Path:
    """Return the file of a channel: the one that was asked for, or, of several, one with the channel's name."""
    several = len(set(config.channels)) > 1
    return config.out.parent / f"{config.out.stem}_{channel}{config.out.suffix}" if several else config.out


def _still(config: RenderSceneConfig) -> Any:
    """Options of a still image, None where none is asked for."""
    if config.samples is not None and config.samples < 1:
        raise AirworthyError(f"--samples is {config.samples}; expected at least 1.")
    if config.seed < 0:
        raise AirworthyError(f"--seed is {config.seed}; expected at least 0.")
    if config.quality != "still":
        return None
    from airworthy.rendering.still import StillOptions

    return StillOptions(config.samples or StillOptions.samples, config.seed, quiet=False)


def _exposure(config: RenderSceneConfig, daylight: bool) -> float | None:
    """Return the EV that is asked for, or None for an automatic one, which is also what places by daylight get."""
    text = config.exposure or ("auto" if config.sky or daylight else "15")
    if text == "auto":
        return None
    try:
        ev = float(text)
    except ValueError:
        ev = math.nan
    if not -32.0 <= ev <= 32.0:
        raise AirworthyError(f"--exposure is {text!r}; expected auto, or an EV at ISO 100 from -32 to 32.")
    return ev


def _vegetation(config: VegetationConfig) -> int:
    refuse_idle(config, VEGETATION_RULES)
    if config.out is not None:
        check_pictures(config.out)
    found = [tree_kind(name) for name in config.names or tree_kinds()]
    if config.json:
        emit_json([{key: getattr(item, key) for key in ("name", "summary", "height", "spread", "evergreen")} for item in found])
    elif config.out is None:
        rows = [[item.name, item.height, item.spread, item.summary] for item in found]
        show_table(f"{len(rows)} kinds of trees", ["name", "height [m]", "spread [m]", "what"], rows)
    if config.out is not None:
        from airworthy.cli.scenes.vegetation_sheet import write_tree_sheet

        write_tree_sheet([item.name for item in found], config.out, config.season, config.seed, config.cell, config.columns)
        if not config.json:
            print(f"Wrote {config.out} ({len(found)} kinds, {config.season}).")
    return 0


def _materials(config: MaterialsConfig) -> int:
    from airworthy.scenes.materials import material_names, material_recipe

    refuse_idle(config, MATERIAL_RULES)
    if config.out is not None:
        check_pictures(config.out)
    found = [(name, material_recipe(name)) for name in config.names or material_names()]
    if config.json:
        keys = ("summary", "tile", "albedo", "albedo_range", "source", "wear", "cut")
        emit_json([{"name": name, **{key: getattr(item, key) for key in keys}} for name, item in found])
    elif config.out is None:
        rows = [[name, item.tile, item.albedo, item.summary] for name, item in found]
        show_table(f"{len(rows)} materials; NAME@SEED varies them", ["name", "tile [m]", "albedo", "what"], rows)
    if config.out is not None:
        from airworthy.cli.scenes.material_sheet import write_sheet

        write_sheet([name for name, _ in found], config.out, config.cell, config.columns, config.map_size)
        if not config.json:
            print(f"Wrote {config.out} ({len(found)} materials).")
    return 0


def _camera(config: RenderSceneConfig) -> Any:
    from airworthy.scenes.viewpoints import Viewpoint, look_at

    if config.eye is None and config.target is None:
        return config.view
    if config.eye is None or config.target is None:
        raise AirworthyError("--eye and --target go together: from where, and at what point.")
    return Viewpoint(np.array(config.eye), look_at(config.eye, config.target))
