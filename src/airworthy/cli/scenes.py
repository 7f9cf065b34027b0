"""`airworthy scenes`: list, show, start, validate, export and render scenes."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from tyro.conf import Positional

from airworthy.cli.common import emit_json, run_tyro, show_table
from airworthy.core.errors import AirworthyError, unknown_name
from airworthy.core.files import make_folder, write_text
from airworthy.scenes import Scene, check_scene, findings, read_scene, scene, scene_generators
from airworthy.scenes.descriptions import description
from airworthy.scenes.extent import gaussian_count, scene_box, triangle_count

PROG = "airworthy scenes"
_DESCRIPTION = (
    "List the scenes there are. Also: airworthy scenes show NAME | new FILE | validate FILE | export NAME --out FILE |"
    " render NAME --out FILE."
)
_SAMPLES = 2001
Format = Literal["", "glb", "obj", "stl", "ply", "dae", "sdf", "pcd", "cloud.ply", "splats.ply", "spz", "toml"]


@dataclass(frozen=True)
class ListConfig:
    """What to list."""

    json: bool = False
    """Print a JSON list of objects instead of a table."""


@dataclass(frozen=True)
class _Named:
    name: Positional[str]
    """NAME[:INDEX][@SEED] (`airworthy scenes` lists them), or the path of a scene.toml, mesh, point cloud or splat file."""
    units: Literal["m", "cm", "mm"] = "m"
    """Of a mesh, point cloud or splat file."""
    up: Literal["auto", "z", "y", "-y", "-z", "x", "-x"] = "auto"
    """Vertical axis of the file: z or y of a mesh or point cloud, z by default (glTF is turned already); any of splats, by
    default as their container says."""


@dataclass(frozen=True)
class ShowConfig(_Named):
    """What to show."""

    json: bool = False
    """Print every field as JSON."""


@dataclass(frozen=True)
class NewConfig:
    """What to start."""

    file: Positional[Path]
    """Scene TOML to write; it must not exist yet."""


@dataclass(frozen=True)
class ValidateConfig:
    """What to validate."""

    file: Positional[Path]
    """Scene TOML, or its folder."""
    json: bool = False
    """Print problems and notes as JSON."""


@dataclass(frozen=True)
class ExportConfig(_Named):
    """What to export."""

    out: Path = Path("scene.glb")
    """File to write; a folder for toml."""
    format: Format = ""
    """Empty: by the file's ending. splats.ply and spz hold the splats alone, the others all but them; toml holds all."""
    time: float = 0.0
    """At which actors stand [s]; toml keeps their motion."""
    spacing: float = 0.1
    """Between the points of a cloud (pcd, cloud.ply) [m]."""


@dataclass(frozen=True)
class RenderConfig(_Named):
    """What to render."""

    out: Path = Path("scene.png")
    """Image to write; with several channels, their names come before its ending."""
    view: str = "orbit"
    """orbit, top (straight down, without the roof), start or side."""
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
    samples: int = 4
    """Rays per pixel of rgb: 1, 2, 4 or 8."""
    time: float = 0.0
    """At which actors stand [s]."""


def main(argv: list[str]) -> int:
    """Run `airworthy scenes`; users' mistakes raise AirworthyError, which the command line prints."""
    commands: dict[str, tuple[Any, Callable[[Any], int], str]] = {
        "list": (ListConfig, _list, _DESCRIPTION),
        "show": (ShowConfig, _show, "Show what a scene holds, and how far its courses keep from it."),
        "new": (NewConfig, _new, "Write a small scene file to start from."),
        "validate": (ValidateConfig, _validate, "Read a scene file and check it."),
        "export": (ExportConfig, _export, "Write a scene as a model, a point cloud, a Gazebo world or a scene folder."),
        "render": (RenderConfig, _render, "Render a picture of a scene."),
    }
    word = argv[0] if argv and not argv[0].startswith("-") else ""
    if word and word not in commands:
        raise unknown_name(f"'{PROG}' subcommand", word, commands)
    kind, run, description = commands[word or "list"]
    config: Any = run_tyro(kind, argv[1:] if word else argv, f"{PROG} {word}".strip(), description)
    return run(config)


def _list(config: ListConfig) -> int:
    rows = [{"name": name, "description": description(name)} for name in sorted(scene_generators())]
    if config.json:
        emit_json(rows)
        return 0
    show_table(f"{len(rows)} scenes; NAME:INDEX@SEED varies them", ["name", "what"], [list(row.values()) for row in rows])
    return 0


def _found(config: _Named) -> Scene:
    return scene(config.name, config.units, None if config.up == "auto" else config.up)


def _show(config: ShowConfig) -> int:
    item = _found(config)
    values = {**summary(item), "courses": courses(item), "remarks": check_scene(item)}
    if config.json:
        emit_json(values)
        return 0
    for key, value in values.items():
        if isinstance(value, dict):
            for name, inner in value.items():
                print(f"{key + '.' + name:40}{_shown(inner)}")
        elif key == "courses":
            for row in value:
                near = (f"{key} {row[key]:.3f}" for key in ("clearance_m", "ground_clearance_m") if row[key] is not None)
                print(f"{'course ' + row['name']:40}{', '.join(near)}; {row['length_m']:.4g} m long")
        elif key == "remarks":
            for line in value:
                print(line if line.startswith("note: ") else f"problem: {line}")
        elif value not in (None, ""):
            print(f"{key:40}{_shown(value)}")
    return 0


def _shown(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(_shown(item) for item in value)
    return f"{value:.5g}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)


def summary(item: Scene) -> dict[str, Any]:
    """What a scene holds: counts, extents, memory in bytes, instances per class, and its generator's facts."""
    from airworthy.scenes.batch import SceneBatch

    unique, seen = triangle_count(item)
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
        "triangles_seen": seen,
        "clouds": len(item.clouds),
        "gaussians_stored": stored,
        "gaussians_seen": shown,
        "bounds_lower_m": list(item.bounds.lower),
        "bounds_upper_m": list(item.bounds.upper),
        "extent_lower_m": None if box is None else box[0].tolist(),
        "extent_upper_m": None if box is None else box[1].tolist(),
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


def courses(item: Scene) -> list[dict[str, Any]]:
    """The scene's courses: length, and least distances of the default trajectory from obstacles and from the ground.

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
    from airworthy.cli.scene_starter import STARTER

    path = config.file if config.file.suffix == ".toml" else config.file / "scene.toml"
    if path.exists():
        raise AirworthyError(f"{str(path)!r} exists already; choose another name, or remove it first.")
    name = path.parent.name if path.stem == "scene" else path.stem
    make_folder(path.parent)
    write_text(path, STARTER.format(name=re.sub(r"[^A-Za-z0-9_ -]", "_", name) or "scene"))
    print(f"Wrote {path}. Next: airworthy scenes validate {path}; airworthy scenes render {path}")
    return 0


def _validate(config: ValidateConfig) -> int:
    item = read_scene(config.file)
    found = findings(item)
    fatal = [str(line) for line in found if line.fatal]
    notes = [str(line) for line in found if not line.fatal]
    if config.json:
        emit_json({"name": item.name, "valid": not fatal, "problems": fatal, "notes": notes})
        return 2 if fatal else 0
    for line in fatal:
        print(f"{config.file}: {line}.", file=sys.stderr)
    if fatal:
        return 2
    unique, _ = triangle_count(item)
    counts = f"{len(item.instances)} instances, {len(item.actors)} actors, {unique:,} triangles"
    if item.clouds:
        counts += f", {gaussian_count(item)[0]:,} gaussians"
    print(f"{config.file}: {item.name} is valid ({counts}).")
    for line in notes:
        print(f"note: {line}")
    return 0


def _export(config: ExportConfig) -> int:
    from airworthy.cli.scene_exports import FORMATS, SPLAT_FORMATS, export

    ending = config.format or _ending(config.out.name.lower())
    if ending not in FORMATS:
        raise unknown_name("format", ending, FORMATS, "Say it with --format, or by the ending of --out.")
    place = _found(config)
    written = export(place, config.out, ending, config.time, config.spacing)
    print(f"Wrote {written}.")
    if place.splats and ending not in (*SPLAT_FORMATS, "toml"):
        print(f"Its splats are not in it, since {ending} holds none; --out NAME.spz or NAME.splats.ply writes them.")
    return 0


def _ending(name: str) -> str:
    """A format's name by that of its file; a name without an ending is that of a scene's folder."""
    for ending in ("cloud.ply", "splats.ply"):
        if name.endswith("." + ending):
            return ending
    return name.rpartition(".")[2] if "." in name else "toml"


def _render(config: RenderConfig) -> int:
    from PIL import Image

    from airworthy.cli.scene_pictures import pictures

    if not (8 <= config.width <= 16384 and 8 <= config.height <= 16384):
        raise AirworthyError(f"An image of {config.width} x {config.height} pixels: expected 8 to 16384 along each side.")
    if config.out.suffix.lower() not in (".png", ".jpg", ".jpeg", ".webp"):
        raise AirworthyError(f"--out is {str(config.out)!r}; expected an image that ends in .png, .jpg or .webp.")
    size = config.width, config.height
    made = pictures(_found(config), _camera(config), size, config.channels, config.time, config.samples)
    make_folder(config.out.parent)
    for channel, pixels in made.items():
        path = config.out if len(made) == 1 else config.out.with_name(f"{config.out.stem}_{channel}{config.out.suffix}")
        Image.fromarray(pixels).save(path)
        print(f"Wrote {path} ({channel}, {config.width} x {config.height}).")
    return 0


def _camera(config: RenderConfig) -> Any:
    from airworthy.scenes.viewing import View, look_at

    if config.eye is None and config.target is None:
        return config.view
    if config.eye is None or config.target is None:
        raise AirworthyError("--eye and --target go together: from where, and at what point.")
    return View(np.array(config.eye), look_at(config.eye, config.target))
