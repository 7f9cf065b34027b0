"""The sensor gallery: one page that shows every sensor in a generated and in a scanned place."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from airworthy import __version__
from airworthy.core.files import make_folder, write_text
from airworthy.core.frames import camera_attitude, from_euler, rotate
from airworthy.core.progress import progress
from airworthy.evaluation import pictures
from airworthy.evaluation.gallery_scenes import generated_place, hero_pose, scanned_place
from airworthy.evaluation.gallery_words import bytes_shown, device_facts
from airworthy.evaluation.machine import describe_machine
from airworthy.evaluation.pictures import Picture
from airworthy.scenes import Scene, SceneBatch
from airworthy.sensors import Device, Draw, Pinhole, View, device, device_names, make_sensor
from airworthy.sensors.capture import Motion, render
from airworthy.sensors.light_baking import use_baked
from airworthy.sensors.shading import ShadingOptions
from airworthy.sensors.tone import to_8bit

GALLERY_FILE = "gallery.html"
HERO = (1280, 600)
"""Width and height of the large pictures [px]."""
CARD = 480
"""Width of a small picture [px]."""
SHOT = 720
"""Width of a device's picture [px]."""
NEAR = 6.0
"""A sensor that sees no farther than this is shown from nearby [m]."""
_KINDS = {
    "camera": "Cameras",
    "depth_camera": "Depth cameras",
    "stereo_camera": "Stereo cameras",
    "lidar": "LiDARs",
    "tof": "Multi-zone time of flight",
    "radar": "Radar",
    "ranger": "Rangers",
    "beacons": "Beacon cameras",
}

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class GalleryConfig:
    """What to show and where to write it."""

    scene: str = "mid_gate"
    """The generated place (`airworthy scenes` lists them)."""
    scan: str = ""
    """The scanned place: a scene, mesh or cloud file; empty: scanned sculpture, where AIRWORTHY_DATA names the reference
    files."""
    bake: bool = True
    """Bake indirect light first; takes some seconds per place, once."""
    seed: int = 0
    """Key of the sensors' random numbers."""
    out: Path = Path("runs/gallery")
    """Folder for gallery.html."""


@dataclass(frozen=True, eq=False)
class Stage:
    """A place, ready to be looked at."""

    title: str
    scene: Scene
    batch: SceneBatch
    position: Floats
    """Where the sensors stand, world [m], (3,)."""
    attitude: Floats
    """Their mount to world, (4,)."""
    baked_seconds: float

    def approached(self) -> Stage:
        """The same place from nearby."""
        position, attitude = _pose(self.scene, near=True)
        return replace(self, position=position, attitude=attitude)


def _pose(scene: Scene, near: bool = False) -> tuple[Floats, Floats]:
    """Where sensors stand in a place, and their attitude."""
    position, yaw, pitch = hero_pose(scene, near)
    return np.array(position, float), np.asarray(from_euler(0.0, -pitch, yaw), float)


def write_gallery(config: GalleryConfig, quiet: bool = True) -> Path:
    """Write the page.

    Returns:
        Its path.

    Raises:
        AirworthyError: If a scene is unknown or a file cannot be used.
    """
    import jinja2

    stages = _stages(config, quiet)
    items = [device(name) for name in device_names()]
    cards = [_device_card(item, stages, config.seed) for item in progress(items, "sensing", quiet=quiet)]
    sections = [
        {"title": title, "cards": [card for card in cards if card["kind"] == kind]}
        for kind, title in _KINDS.items()
        if any(card["kind"] == kind for card in cards)
    ]
    folder = files("airworthy.evaluation")
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    page = environment.from_string(folder.joinpath("gallery.html.j2").read_text()).render(
        css=folder.joinpath("report.css").read_text() + folder.joinpath("gallery.css").read_text(),
        places=[_place(stage) for stage in stages],
        sections=sections,
        device_count=len(items),
        realism=_realism(stages[0], config.seed),
        command=_command(config),
        machine="{processor}, {cores} cores, {system}, {python}".format(**describe_machine()),
        version=__version__,
        missing=len(stages) < 2,
    )
    path = make_folder(config.out) / GALLERY_FILE
    write_text(path, page)
    return path


def _command(config: GalleryConfig) -> str:
    words = ["airworthy sensors gallery", f"--scene {config.scene}"]
    words += [f"--scan {config.scan}"] if config.scan else []
    return " ".join([*words, f"--seed {config.seed}", f"--out {config.out}"])


# ---- places -------------------------------------------------------------------------------------------------------------


def _stages(config: GalleryConfig, quiet: bool) -> list[Stage]:
    stages = [_stage("Generated", generated_place(config.scene), config.bake, quiet)]
    scanned = scanned_place(config.scan)
    return stages if scanned is None else [*stages, _stage("Scanned", scanned, config.bake, quiet)]


def _stage(title: str, scene: Scene, bake: bool, quiet: bool) -> Stage:
    batch = SceneBatch(scene)
    start = time.perf_counter()
    if bake:
        use_baked(batch, quiet=quiet)
    return Stage(title, scene, batch, *_pose(scene), time.perf_counter() - start)


def _place(stage: Stage) -> dict[str, Any]:
    """Everything that one place shows: the large picture and the channels of one camera."""
    wide = Pinhole.from_fov(*HERO, horizontal=1.35)
    optical = camera_attitude(stage.attitude)[None]
    large = render(
        stage.batch, wide.rays(), stage.position[None], optical, channels=("rgb",), options=ShadingOptions(samples=4)
    )
    memory = stage.batch.geometry.memory()
    return {
        "title": stage.title,
        "name": stage.scene.name,
        "description": stage.scene.description,
        "source": stage.scene.source,
        "hero": pictures.data_uri(to_8bit(large["rgb"][0])),
        "channels": _channels(stage),
        "facts": [
            ("instances", f"{len(stage.scene.instances):,}"),
            ("triangles", f"{_triangles(stage.scene):,}"),
            ("lights", str(len(stage.scene.lights))),
            ("hierarchies and instances", bytes_shown(sum(memory.values()))),
            ("light baked in", f"{stage.baked_seconds:.1f} s"),
        ],
    }


def _triangles(scene: Scene) -> int:
    return sum(len(getattr(scene.shapes[item.shape], "faces", ())) for item in scene.instances)


def _channels(stage: Stage) -> list[dict[str, str]]:
    """What one query of one camera delivers."""
    lens = Pinhole.from_fov(640, 360, horizontal=1.35)
    here, optical = stage.position[None], camera_attitude(stage.attitude)[None]
    ahead = here + 0.06 * np.array([[math.cos(0.2), math.sin(0.2), 0.1]])
    names = ("rgb", "albedo", "depth", "range", "instance_id", "semantic_id", "face", "normal_world", "normal", "flow")
    start = time.perf_counter()
    got = render(stage.batch, lens.rays(), here, optical, channels=names, motion=Motion(lens, ahead, optical))
    seconds = time.perf_counter() - start
    shown: list[tuple[str, str, Picture, bool]] = [
        ("rgb", "shaded: textures, sun, lamps, shadows, baked light", to_8bit(got["rgb"][0]), True),
        ("albedo", "reflectance alone", to_8bit(got["albedo"][0], curve="linear"), True),
        ("depth", "along the optical axis", pictures.distance_picture(got["depth"][0]), True),
        ("range", "along the ray", pictures.distance_picture(got["range"][0]), True),
        ("instance_id", "which thing", pictures.number_picture(got["instance_id"][0]), False),
        ("semantic_id", "which class", pictures.number_picture(got["semantic_id"][0]), False),
        ("face", "which triangle, or face of a solid", pictures.number_picture(got["face"][0]), False),
        ("normal_world", "of the surface", pictures.normal_picture(got["normal_world"][0]), False),
        ("normal", "with vertex normals and normal maps", pictures.normal_picture(got["normal"][0]), True),
        ("flow", "to the next image, 6 cm ahead", pictures.flow_picture(got["flow"][0]), True),
    ]
    rows = [{"name": n, "what": w, "image": pictures.data_uri(pictures.fitted(p, CARD), photo)} for n, w, p, photo in shown]
    rows[0]["what"] += f" ({1000.0 * seconds:.0f} ms for all ten at 640 x 360)"
    return rows


# ---- devices ------------------------------------------------------------------------------------------------------------


def _device_card(item: Device, stages: list[Stage], seed: int) -> dict[str, Any]:
    """One device in every place."""
    near = item.limits.maximum <= NEAR
    shots = [{"place": stage.title, **_shot(item, stage.approached() if near else stage, seed)} for stage in stages]
    return {"name": item.name, "kind": item.kind, "summary": item.summary, "facts": device_facts(item), "shots": shots}


def _shot(item: Device, stage: Stage, seed: int) -> dict[str, Any]:
    """What a device sees from the stage's pose, and how long one sample took."""
    sensor = make_sensor(item)
    draw = Draw.of(1, seed=seed, sensor=item.name)
    view = View(stage.position[None], stage.attitude[None], np.zeros(1, int), draw)
    takers: dict[str, Callable[..., dict[str, Any]]] = {
        "camera": _camera_shot,
        "lidar": _lidar_shot,
        "radar": _lidar_shot,
        "ranger": _ranger_shot,
        "beacons": _beacon_shot,
    }
    return takers.get(item.kind, _depth_shot)(item, sensor, stage, view)


def _timed(capture: Callable[[], dict[str, NDArray[Any]]]) -> tuple[dict[str, NDArray[Any]], str]:
    """A sample, and the time of the better of two."""
    seconds = math.inf
    for _ in range(2):
        start = time.perf_counter()
        got = capture()
        seconds = min(seconds, time.perf_counter() - start)
    return got, f"{1000.0 * seconds:.1f} ms"


def _shown(images: list[Picture], note: str, photo: bool) -> dict[str, Any]:
    return {"images": [pictures.data_uri(pictures.fitted(image, SHOT), photo) for image in images], "note": note}


def _camera_shot(item: Device, sensor: Any, stage: Stage, view: View) -> dict[str, Any]:
    got, spent = _timed(lambda: sensor.capture(stage.batch, view, ("rgb",)))
    rgb = got["rgb"][0]
    return _shown([rgb if rgb.dtype == np.uint8 else to_8bit(rgb)], spent, True)


def _depth_shot(item: Device, sensor: Any, stage: Stage, view: View) -> dict[str, Any]:
    name = sensor.measures
    got, spent = _timed(lambda: sensor.capture(stage.batch, view, (name,)))
    metres = item.limits.metres(got[name][0])
    lost = float(np.mean(~np.isfinite(metres)))
    far = min(item.limits.maximum, 12.0)
    picture = pictures.distance_picture(metres, item.limits.minimum, far)
    return _shown([pictures.enlarged(picture, 320)], f"{spent}, {100.0 * lost:.0f} % without a reading", picture.shape[1] > 320)


def _lidar_shot(item: Device, sensor: Any, stage: Stage, view: View) -> dict[str, Any]:
    got, spent = _timed(lambda: sensor.capture(stage.batch, view, ("range", "points")))
    metres = item.limits.metres(got["range"][0])
    band = pictures.distance_picture(metres, item.limits.minimum, min(item.limits.maximum, 12.0))
    points = got["points"][0].reshape(-1, 3)
    if not item.points_in_world:
        points = rotate(stage.attitude, points) + stage.position
    middle = 0.5 * (np.array(stage.scene.bounds.lower) + np.array(stage.scene.bounds.upper))
    target = 0.5 * (stage.position + middle) - [0.0, 0.0, 0.6]
    # Without the ceiling one sees into a room; a sensor that looks upwards sees hardly anything else.
    below = points[:, 2] < stage.scene.bounds.upper[2] - 0.7
    shown = points[below] if below.mean() > 0.5 else points
    cloud = pictures.points_picture(shown, shown[:, 2], target + np.array([-8.5, -6.5, 9.0]), target, (2 * CARD, CARD), 0.95)
    return _shown([pictures.enlarged(band, 480), cloud], f"{spent}, {np.isfinite(metres).sum():,} returns", True)


def _ranger_shot(item: Device, sensor: Any, stage: Stage, view: View) -> dict[str, Any]:
    got, spent = _timed(lambda: sensor.capture(stage.batch, view, ("range", "true_range", "valid")))
    words = [
        f"{float(r):.3f} m (true {float(t):.3f} m)" if bool(v) else f"no return: {float(r):.3f} m"
        for r, t, v in zip(got["range"][0], got["true_range"][0], got["valid"][0], strict=True)
    ]
    return {"images": [], "note": f"{spent}, reads {', '.join(words)}"}


def _beacon_shot(item: Device, sensor: Any, stage: Stage, view: View) -> dict[str, Any]:
    """Beacons drawn over the picture of the same camera; on the corners of the scene's gates where it names none."""
    from airworthy.sensors import BeaconCamera

    corners = [corner for gate in stage.scene.gates for corner in gate.corners]
    if not (stage.scene.beacons or corners):
        return {"images": [], "note": "this place has no beacons"}
    camera = sensor if stage.scene.beacons else BeaconCamera(item, positions=np.array(corners))
    got, spent = _timed(lambda: camera.capture(stage.batch, view))
    attitude = camera_attitude(stage.attitude)[None]
    picture = to_8bit(render(stage.batch, item.projection.rays(), stage.position[None], attitude, channels=("rgb",))["rgb"][0])
    seen = got["pixel"][0][got["beacon"][0] >= 0]
    for u, v in seen:
        _circle(picture, float(u), float(v), 9.0)
    total = len(stage.scene.beacons) or len(corners)
    return _shown([picture], f"{spent}, {len(seen)} of {total} beacons seen", True)


def _circle(picture: Picture, u: float, v: float, radius: float) -> None:
    rows, columns = np.ogrid[: picture.shape[0], : picture.shape[1]]
    ring = np.abs(np.hypot(columns + 0.5 - u, rows + 0.5 - v) - radius) < 1.8
    picture[ring] = (255, 60, 170)


# ---- realism ------------------------------------------------------------------------------------------------------------


def _realism(stage: Stage, seed: int) -> list[dict[str, str]]:
    """The pieces of the camera chain, each alone, and the two presets."""
    from airworthy.evaluation.gallery_realism import realism_pictures

    shown = realism_pictures(stage.batch, stage.position, stage.attitude, seed)
    return [{"name": n, "what": w, "image": pictures.data_uri(pictures.fitted(p, CARD))} for n, w, p in shown]
