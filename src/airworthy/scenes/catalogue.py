"""Scenes by name: generators, scene files, model files, point clouds and Gaussian splats."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from airworthy.core.errors import AirworthyError, telling_refusals, unknown_name
from airworthy.core.idle_options import IdleRule, refuse_idle
from airworthy.scenes.formats.read import MODEL_SUFFIXES, POINT_SUFFIXES
from airworthy.scenes.record import Scene

__all__ = [
    "Generator",
    "generated",
    "holds_splats",
    "parse_name",
    "register_generator",
    "scene",
    "scene_generators",
    "scene_names",
]

Generator = Callable[[int, int], Scene]
"""From (index, seed); equal arguments give equal scenes."""
INDEX_MAX = 999_999
SEED_MAX = 2**63 - 1

_GRAMMAR = re.compile(r"(?P<name>[A-Za-z][A-Za-z0-9_-]*)(?::(?P<index>[0-9]{1,20}))?(?:@(?P<seed>[0-9]{1,20}))?")
_HINT = "Run 'airworthy scenes' to list them; the path of a scene.toml, a mesh, a point cloud or a splat file is a name, too."


def scene_generators() -> dict[str, Generator]:
    """Return every generator by its name, the registered ones included."""
    from airworthy.scenes.generators import GENERATORS  # heavy, and only needed here

    return dict(GENERATORS)


def register_generator(name: str, generator: Generator) -> None:
    """Make a generator of your own known to `scene`, for this process.

    Raises:
        AirworthyError: The name is not letters, digits, "-" and "_", or is taken.
    """
    from airworthy.scenes.generators import register

    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]*", name):
        raise AirworthyError(f"A generator is named {name!r}; expected letters, digits, '-' and '_', a letter first.")
    register(name, generator)


def scene_names() -> list[str]:
    """Return names of all generators, sorted; each is a scene, with ":INDEX" and "@SEED" where wanted."""
    return sorted(scene_generators())


def parse_name(name: str) -> tuple[str, int | None, int]:
    """Return generator, index and seed of "name[:index][@seed]"; None and 0 where not given.

    Raises:
        AirworthyError: It is not of this form.
    """
    match = _GRAMMAR.fullmatch(name)
    if match is None:
        raise AirworthyError(f"The scene {name[:80]!r} is not of the form NAME[:INDEX][@SEED] (as 'forest:3@7'), nor a path.")
    index, seed = int(match["index"] or 0), int(match["seed"] or 0)
    if index > INDEX_MAX or seed > SEED_MAX:
        raise AirworthyError(
            f"The scene {name!r} has index {index} and seed {seed}; at most {INDEX_MAX} and {SEED_MAX} are accepted."
        )
    return match["name"], None if match["index"] is None else index, seed


def generated(name: str) -> Scene:
    """Return a generated scene by "name[:index][@seed]"; without an index, the generator's first configuration.

    Of the race hall also by "alphapilot:COURSE" (`generators.halls.race_courses`), and another look of a place as
    "other_look:NAME" (`vegetation.variety`).

    Raises:
        UnknownNameError: There is no such generator; the message names the closest ones.
        AirworthyError: The name is malformed, or the generator has no such index or course.
    """
    if has_named(name):
        from airworthy.scenes.generators import NAMED

        known_as, _, course = name.partition(":")
        try:
            return NAMED[known_as](course)
        except AirworthyError as error:
            raise AirworthyError(f"Scene {name[:80]!r}: {error}") from None
    kind, index, seed = parse_name(name)
    known = scene_generators()
    if kind not in known:
        raise unknown_name("scene", kind, known, _HINT)
    try:
        return known[kind](first_index(kind) if index is None else index, seed)
    except AirworthyError as error:
        raise AirworthyError(f"Scene {name!r}: {error}") from None


def has_named(name: str) -> bool:
    """Tell whether a scene's name is "NAME:WORDS" of a generator whose configurations have names, rather than an index."""
    from airworthy.scenes.generators import GENERATORS, NAMED

    kind, _, rest = name.partition(":")
    return kind in NAMED and (rest[:1].isalpha() or (bool(rest) and kind not in GENERATORS))


def first_index(name: str) -> int:
    """Return the index of a generator's first configuration: the benchmark's scenarios count from 1, all others from 0."""
    from airworthy.scenes.generators import SCENARIOS

    return 1 if name.removesuffix("_plus") in SCENARIOS else 0


# ---- Whether a file holds splats: by its name, and where that does not tell, by its first bytes -----------------------------

CHECKPOINTS = (".ckpt", ".pt", ".pth")
SPLAT_ONLY = (".sog", ".spz", ".splat", ".ksplat", ".zip", *CHECKPOINTS)
"""Endings of files that hold nothing but splats; checkpoints are refused by the reader, which says what to do."""
SETS = ("meta.json", "lod-meta.json")
_PLY_HEAD = 65536
_GLTF_HEAD = 2 * 1024 * 1024
_CHUNK = re.compile(r"[0-9]+_[0-9]+")


def holds_splats(path: str | Path) -> bool:
    """Tell whether `read_splats` is the reader for a path, which may be a folder of SOG; no where the file cannot be read."""
    path = Path(path)
    suffix = path.suffix.lower()
    if path.is_dir():
        return any((path / name).is_file() for name in SETS) or any(_CHUNK.fullmatch(item.name) for item in path.iterdir())
    if suffix in SPLAT_ONLY or path.name in SETS:
        return True
    if suffix == ".ply":
        # Names of properties that only gaussians have, of the plain, the packed and the bare form.
        head = _head(path, _PLY_HEAD).partition(b"end_header")[0]
        return b" f_dc_0" in head or b" packed_position" in head or (b" rot_0" in head and b" scale_0" in head)
    return suffix in (".glb", ".gltf") and b"KHR_gaussian_splatting" in _head(path, _GLTF_HEAD)


def _head(path: Path, size: int) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read(size)
    except OSError:  # whoever reads it says why
        return b""


# -----------------------------------------------------------------------------------------------------------------------------


def is_path(name: str) -> bool:
    """Tell whether a scene's name is that of a file or folder."""
    suffixes = (".toml", *MODEL_SUFFIXES, *POINT_SUFFIXES, *SPLAT_ONLY, *SETS)
    if has_named(name):  # which may hold a slash
        return False
    # By the look of the name: a file that is missing must not become an unknown generator.
    return "/" in name or "\\" in name or name.lower().endswith(suffixes) or name in (".", "..")


@dataclass(frozen=True)
class SceneArguments:
    """Arguments of `scene` that some sources have no use for, with their defaults."""

    units: str = "m"
    up: str | None = None
    recentre: bool | None = None
    voxel: float = 0.0
    unknown: str | None = None


IDLE_RULES = (
    IdleRule(
        ("units", "up", "voxel"),
        lambda asked, source: source == "generator",
        "for a scene of the catalogue, which is made to measure",
        "name a mesh, cloud or splat file",
    ),
    IdleRule(
        ("units", "up", "voxel"),
        lambda asked, source: source == "scene file",
        "for a scene file, which says its own units and frame",
        "name a mesh, cloud or splat file",
    ),
    IdleRule(
        ("voxel",),
        lambda asked, source: source in ("mesh", "splats"),
        "for a file that is no point cloud",
        "name one",
    ),
    IdleRule(
        ("recentre",),
        # False is --keep-frame, which is what happens.
        lambda asked, source: source in ("generator", "scene file", "splats") and bool(asked.recentre),
        "for what is neither a mesh nor a point cloud, and stands in its own frame",
    ),
    IdleRule(
        ("unknown",),
        lambda asked, source: source != "scene file",
        "for what is no captured place, of which alone it is known what is unknown",
        "name the folder of one (`airworthy capture place`)",
    ),
)
"""Options that change nothing, by what the scene is made from: "generator", "scene file", "splats", "cloud" or "mesh"."""


@telling_refusals()
def scene(
    name: str | Path,
    units: str = "m",
    up: str | None = None,
    *,
    recentre: bool | None = None,
    voxel: float = 0.0,
    unknown: str | None = None,
) -> Scene:
    """Return a scene by its name.

    Args:
        name: `NAME[:INDEX][@SEED]` of a generator, `alphapilot:COURSE`; the path of a scene.toml or of its folder; that of a
            mesh, which is stood on the floor with its middle at the origin; that of a point cloud, which keeps its frame; or
            that of a splat file or folder, which stands in its own frame, too (`splat_file_scene`). `other_look:` before any of
            them is that place in another look (`vegetation.variety`).
        units: Of a mesh, cloud or splats: "m", "cm" or "mm".
        up: Vertical axis. Of a mesh or cloud: "z", the default, or "y" (glTF is turned already); of splats: "y", "-y", "z",
            ..., by default as their container says.
        recentre: Of a mesh or cloud: whether it is stood on the floor with its middle at the origin; None: meshes are.
        voxel: Edge of the cells of a point cloud [m]; 0: as found in it.
        unknown: Of a captured place: whether space of which nobody knows is "solid" or "free"; None: as its folder says, which
            is solid.

    Raises:
        UnknownNameError: No generator has this name, or there are no such units; the message names the closest ones.
        AssetError: The file cannot be used.
        AirworthyError: The name is malformed, the generator has no such index, or an argument changes nothing.
    """
    text, asked = str(name), SceneArguments(units, up, recentre, voxel, unknown)
    if not (isinstance(name, Path) or is_path(text)) and (text.partition(":")[0] in scene_generators() or not _there(text)):
        refuse_idle(asked, IDLE_RULES, "generator")
        return generated(text)
    path = Path(text)
    if path.suffix.lower() == ".toml" or (path.is_dir() and (path / "scene.toml").is_file()):
        return _scene_file(path, asked)
    from airworthy.scenes.imports import UNITS, holds_points, model_scene

    if holds_splats(path):
        from airworthy.scenes.splats.file_scenes import splat_file_scene

        if units not in UNITS:
            raise unknown_name("unit", units, UNITS)
        refuse_idle(asked, IDLE_RULES, "splats")
        return splat_file_scene(path, UNITS[units], up)
    if path.is_dir():
        return _scene_file(path, asked)
    refuse_idle(asked, IDLE_RULES, "cloud" if holds_points(path) else "mesh")
    return model_scene(path, units=units, up=up or "z", recentre=recentre, voxel=voxel)


def _there(name: str) -> bool:
    """Tell whether a file or folder lies here under a name that could be a generator's."""
    try:
        return bool(name) and Path(name).exists()
    except (OSError, ValueError):
        return False


def _scene_file(path: Path, asked: SceneArguments) -> Scene:
    refuse_idle(asked, IDLE_RULES, "scene file")
    from airworthy.scenes.files.scene_file import read_scene

    found = read_scene(path)
    if asked.unknown is None:
        return found
    from airworthy.scenes.carved import with_unknown

    return with_unknown(found, asked.unknown)
