"""The sensor gallery: one page that shows every sensor in a generated and in a scanned place."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from airworthy.core.arrays import Array, ArrayAny, ArrayU8, NDArray
from airworthy.core.files import data_dir, make_folder, write_text
from airworthy.core.frames import camera_attitude, from_euler, multiply, rotate
from airworthy.core.jobs.block_job import describe_machine
from airworthy.core.jobs.progress import progress
from airworthy.optics.projections import Pinhole
from airworthy.optics.tone import to_8bit
from airworthy.rendering.images import FlowMotion, render
from airworthy.rendering.light_baking import use_baked
from airworthy.rendering.shading import ShadingOptions
from airworthy.reports import pictures
from airworthy.reports.page import page_of
from airworthy.scenes import Scene, SceneBatch, scene
from airworthy.scenes.extent import scene_box
from airworthy.scenes.generators.halls.builder import Builder, turned, turned_profile
from airworthy.scenes.generators.halls.furniture import HallRoom, build_room
from airworthy.scenes.imports import add_model
from airworthy.scenes.record import Pose, Region, Sky, Sun
from airworthy.sensors import Device, Draw, SensorView, device, device_names, make_sensor
from airworthy.sensors.devices import fields_of_view
from airworthy.sensors.realism import (
    REALISM,
    AutoExposure,
    Bloom,
    ChromaticAberration,
    DepthOfField,
    LensDirt,
    MotionBlur,
    Realism,
    RollingShutter,
    SensorNoise,
    Vignetting,
)

# ---- The two places of the sensor gallery: a generated hall, and a room full of scanned sculpture ---------------------------

ROOM = HallRoom((-5.0, 6.0), (-4.0, 4.0), 4.2, floor="planks", window_sill=0.7, window_top=3.4, window_count=4)

# File under the reference data's `meshes`, place on the floor, heading, height it is shown at, vertical axis of the file.
SCULPTURE: tuple[tuple[str, tuple[float, float], float, float, str], ...] = (
    ("threedscans/Hermes/Hermes.obj", (2.6, 0.2), 0.2, 2.1, "y"),
    ("threedscans/Plato/Plato.obj", (1.2, 2.2), -2.4, 0.9, "y"),
    ("threedscans/Gutenberg/Gutenberg.obj", (1.6, -2.2), 2.2, 1.0, "y"),
    ("threedscans/BootlegEve/BootlegEve.obj", (4.3, 2.3), -2.6, 1.9, "y"),
    ("threedscans/Column03/Column03.obj", (4.4, -2.3), 0.3, 2.4, "y"),
    ("egyptian_cat/cat.glb", (-0.6, 1.5), -2.0, 0.7, "z"),
    ("ggg/Angel.obj", (-0.7, -1.7), 1.2, 0.8, "z"),
    ("ggg/owl.obj", (3.4, -0.9), 2.6, 0.5, "z"),
    ("ggg/seaVase.obj", (0.2, -2.9), 0.0, 0.6, "z"),
)
_PLINTH = 1.25
"""What is lower than this stands on a plinth, so that its middle is at eye height [m]."""


def generated_place(name: str) -> Scene:
    """Return a scene of the catalogue."""
    return scene(name)


def scanned_place(path: str) -> Scene | None:
    """Return a scan to look at.

    Args:
        path: Of a model, cloud or scene file; empty: the museum, whose sculpture comes from the reference files.

    Returns:
        The scene; None where no path is given and there are no reference files.

    Raises:
        AirworthyError: If a file cannot be used.
    """
    if path:
        return scene(path)
    folder = data_dir()
    return None if folder is None or not (folder / "meshes").is_dir() else museum(folder / "meshes")


def museum(folder: Path) -> Scene:
    """Return scanned sculpture in a room of ours.

    Args:
        folder: The reference files' `meshes`; what it lacks is left out.

    Raises:
        AssetError: If a file is damaged.
    """
    b = Builder()
    build_room(b, ROOM)
    stone = b.material("plinth", "plaster", texture_size=1.0, roughness=0.8)
    shown = [item for item in SCULPTURE if (folder / item[0]).is_file()]
    for _, (x, y), yaw, height, _ in shown:
        if height < _PLINTH:
            b.box((x, y, 0.5 * (_PLINTH - 0.4 * height)), (0.5, 0.5, round(_PLINTH - 0.4 * height, 3)), stone, yaw=yaw)
    rope = b.material("brass", base_color=(0.80, 0.58, 0.22, 1.0), metallic=1.0, roughness=0.25)
    for x, y in ((1.6, 1.0), (1.6, -0.7), (3.6, 1.0)):
        profile = [(0.0, 0.0), (0.16, 0.0), (0.16, 0.02), (0.02, 0.05), (0.02, 0.92), (0.035, 0.95), (0.0, 0.99)]
        b.mesh("post", turned_profile(profile), (x, y, 0.0), rope)
    scene = Scene(
        name="museum",
        shapes=b.shapes,
        materials=b.materials,
        textures=b.textures,
        instances=tuple(b.instances),
        lights=(Sun((-0.30, -0.78, -0.55), irradiance=5.0), *b.lights),
        sky=Sky(intensity=1.0),
        bounds=Region((ROOM.x[0], ROOM.y[0], 0.0), (ROOM.x[1], ROOM.y[1], ROOM.height)),
        start=Pose((-3.6, 0.0, 1.5), 0.0),
        description="Scanned sculpture in a room.",
        source="scans: Three D Scans, GGG-BenchmarkSfM (CC BY 4.0), Ankledot (CC BY 4.0); the room is generated",
    )
    for name, (x, y), yaw, height, up in shown:
        base = 0.0 if height >= _PLINTH else _PLINTH - 0.4 * height
        scene = _stood(scene, folder / name, (x, y, base), yaw, height, up)
    return scene


def _stood(scene: Scene, path: Path, foot: tuple[float, float, float], yaw: float, height: float, up: str) -> Scene:
    """Return a model on its foot, scaled to a height: the scans' own units are arbitrary."""
    alone = add_model(Scene("alone"), path, up=up, floor=True, name=path.stem)
    box = scene_box(alone)
    scale = height / max(float(box[1][2] - box[0][2]), 1e-9) if box else 1.0
    turn = np.array(turned(yaw))
    standing = []
    for item in alone.instances:
        x, y, z = (float(v) for v in rotate(turn, scale * np.array(item.position)) + foot)
        qx, qy, qz, qw = (float(v) for v in multiply(turn, np.array(item.attitude)))
        standing.append(replace(item, position=(x, y, z), attitude=(qx, qy, qz, qw), scale=scale * item.scale))
    return replace(
        scene,
        shapes=scene.shapes | alone.shapes,
        materials=scene.materials | alone.materials,
        textures=scene.textures | alone.textures,
        instances=(*scene.instances, *standing),
    )


ViewPose = tuple[tuple[float, float, float], float, float]
_POSES: dict[tuple[str, bool], ViewPose] = {
    ("mid_gate", False): ((-6.6, -2.6, 1.7), 0.42, -0.08),
    ("mid_gate", True): ((-2.3, 0.2, 1.3), -0.05, 0.0),
    ("museum", False): ((-3.9, 0.1, 1.75), 0.0, -0.06),
    ("museum", True): ((-1.75, -1.15, 1.35), -0.48, 0.0),
}


def hero_pose(scene: Scene, near: bool = False) -> ViewPose:
    """Return position, heading and pitch [rad] of the picture that stands for a place.

    Args:
        scene: The scene.
        near: For sensors that see a few metres only.
    """
    if (scene.name, near) in _POSES:
        return _POSES[scene.name, near]
    if scene.start is not None:
        x, y, z = scene.start.position
        return (x, y, z), scene.start.yaw, 0.0
    lower, upper = scene.bounds.lower, scene.bounds.upper
    middle = tuple(0.5 * (a + b) for a, b in zip(lower, upper, strict=True))
    return (middle[0], middle[1], min(middle[2], lower[2] + 1.5)), math.pi / 6, 0.0


# -----------------------------------------------------------------------------------------------------------------------------

# ---- Facts about a device, in the words of the gallery ----------------------------------------------------------------------


def device_facts(item: Device) -> list[tuple[str, str]]:
    """Return name and value of what one wants to know first."""
    facts = [("rows x columns", f"{item.height} x {item.width}")]
    across, up = fields_of_view(item)
    if across is not None and up is not None:
        facts.append(("field of view", f"{across:.4g} x {up:.4g} deg"))
    limits = item.limits
    if math.isfinite(limits.maximum):
        facts.append(("range", f"{limits.minimum:g} to {limits.maximum:g} m"))
    facts.append(("rate", f"{item.rate:g} Hz"))
    if item.baseline:
        facts.append(("baseline", f"{1000.0 * item.baseline:.0f} mm"))
    if item.noise_enabled:
        facts.append(("noise", "on"))
    return facts


def bytes_shown(count: float) -> str:
    """Return a number of bytes that a person can read."""
    for unit in ("B", "kB", "MB"):
        if count < 1000.0:
            return f"{count:.3g} {unit}"
        count /= 1000.0
    return f"{count:.3g} GB"


# ---- What each piece of camera realism does to one picture, for the gallery -------------------------------------------------

RATE = 30.0
"""Images per second."""
SPEED = 2.0
"""Sideways speed in the pictures with motion [m/s]."""
TURN = 1.2
"""Turning rate in them [rad/s]."""

# Name, what is to be seen, settings, and whether the camera moves.
_SHOWN: tuple[tuple[str, str, Realism, bool], ...] = (
    ("ideal", "everything off", REALISM["ideal"], False),
    (
        "motion blur",
        "shutter open 60 % of a frame, 2 m/s sideways and 1.2 rad/s",
        Realism(motion_blur=MotionBlur(0.6, 16)),
        True,
    ),
    ("rolling shutter", "rows over 90 % of a frame, the same motion", Realism(rolling_shutter=RollingShutter(0.9)), True),
    ("depth of field", "f/1.4, focus at 3 m", Realism(depth_of_field=DepthOfField(1.4, 3.0, samples=32)), False),
    ("vignetting", "all of cos^4", Realism(vignetting=Vignetting(1.0)), False),
    ("chromatic aberration", "five times the default", Realism(chromatic_aberration=ChromaticAberration(0.01)), False),
    ("bloom", "from linear 1 on, four times the default weight", Realism(bloom=Bloom(weight=0.2)), False),
    ("lens dirt", "where the bloom shines on it", Realism(bloom=Bloom(weight=0.3), lens_dirt=LensDirt(1.0)), False),
    ("auto-exposure", "settled on a mean luminance of 0.18", Realism(auto_exposure=AutoExposure()), False),
    (
        "shot and read noise",
        "600 photons at white, 12 electrons of read noise",
        Realism(noise=SensorNoise(600.0, read_noise=12.0)),
        False,
    ),
    ("cinematic", "the preset, still", REALISM["cinematic"], False),
    ("cinematic, moving", "the preset, in motion", REALISM["cinematic"], True),
)


def realism_pictures(batch: SceneBatch, position: Array, attitude: Array, seed: int) -> list[tuple[str, str, ArrayU8]]:
    """Return name, words and picture of each piece alone, and of the presets.

    Args:
        batch: Where.
        position: Of the camera, world [m], (3,).
        attitude: Of its mount, (4,).
        seed: Of the noise.
    """
    return [(name, parts, _taken(batch, position, attitude, kind, moving, seed)) for name, parts, kind, moving in _SHOWN]


def _taken(batch: SceneBatch, position: Array, attitude: Array, kind: Realism, moving: bool, seed: int) -> ArrayU8:
    """Return the second of two images: shutters need to know where the camera was."""
    camera = make_sensor(device("flightgoggles_camera_v3").variant(realism=kind, rate=RATE))
    picture: NDArray[np.generic] = np.zeros((1, 1, 3), np.uint8)
    for number in range(2):
        ahead = (number - 1) / RATE if moving else 0.0
        turned = multiply(from_euler(0.0, 0.0, TURN * ahead), attitude)
        view = SensorView(
            (position + np.array([0.0, SPEED * ahead, 0.0]))[None],
            np.asarray(turned, float)[None],
            np.zeros(1, int),
            Draw.of(1, seed=seed, sample=number, sensor="gallery"),
        )
        picture = camera.capture(batch, view, ("rgb",))["rgb"][0]
    return np.asarray(picture) if picture.dtype == np.uint8 else to_8bit(picture)


# -----------------------------------------------------------------------------------------------------------------------------

GALLERY_FILE = "gallery.html"
HERO = (1280, 600)
"""Width and height of the large pictures [px]."""
CARD = 480
"""Width of a small picture [px]."""
SAMPLE_WIDTH = 720
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
class GalleryScene:
    """A place, ready to be looked at."""

    title: str
    scene: Scene
    batch: SceneBatch
    position: Array
    """Where the sensors stand, world [m], (3,)."""
    attitude: Array
    """Their mount to world, (4,)."""
    baked_seconds: float

    def approached(self) -> GalleryScene:
        """Return the same place from nearby."""
        position, attitude = _pose(self.scene, near=True)
        return replace(self, position=position, attitude=attitude)


def _pose(scene: Scene, near: bool = False) -> tuple[Array, Array]:
    """Return where sensors stand in a place, and their attitude."""
    position, yaw, pitch = hero_pose(scene, near)
    return np.array(position, float), np.asarray(from_euler(0.0, -pitch, yaw), float)


def write_gallery(config: GalleryConfig, quiet: bool = True) -> Path:
    """Write the page.

    Returns:
        Its path.

    Raises:
        AirworthyError: If a scene is unknown or a file cannot be used.
    """
    stages = _stages(config, quiet)
    items = [device(name) for name in device_names()]
    cards = [_device_card(item, stages, config.seed) for item in progress(items, "sensing", quiet=quiet)]
    sections = [
        {"title": title, "cards": [card for card in cards if card["kind"] == kind]}
        for kind, title in _KINDS.items()
        if any(card["kind"] == kind for card in cards)
    ]
    page = page_of(
        "airworthy.reports",
        "gallery.html.j2",
        places=[_place(stage) for stage in stages],
        sections=sections,
        device_count=len(items),
        realism=_realism(stages[0], config.seed),
        command=_command(config),
        machine="{processor}, {cores} cores, {system}, {python}".format(**describe_machine()),
        missing=len(stages) < 2,
    )
    path = make_folder(config.out) / GALLERY_FILE
    write_text(path, page)
    return path


def _command(config: GalleryConfig) -> str:
    parts = ["airworthy sensors gallery", f"--scene {config.scene}"]
    parts += [f"--scan {config.scan}"] if config.scan else []
    return " ".join([*parts, f"--seed {config.seed}", f"--out {config.out}"])


# ---- places -------------------------------------------------------------------------------------------------------------


def _stages(config: GalleryConfig, quiet: bool) -> list[GalleryScene]:
    stages = [_stage("Generated", generated_place(config.scene), config.bake, quiet)]
    scanned = scanned_place(config.scan)
    return stages if scanned is None else [*stages, _stage("Scanned", scanned, config.bake, quiet)]


def _stage(title: str, scene: Scene, bake: bool, quiet: bool) -> GalleryScene:
    batch = SceneBatch(scene)
    start = time.perf_counter()
    if bake:
        use_baked(batch, quiet=quiet)
    return GalleryScene(title, scene, batch, *_pose(scene), time.perf_counter() - start)


def _place(stage: GalleryScene) -> dict[str, Any]:
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


def _channels(stage: GalleryScene) -> list[dict[str, str]]:
    """Return what one query of one camera delivers."""
    lens = Pinhole.from_fov(640, 360, horizontal=1.35)
    here, optical = stage.position[None], camera_attitude(stage.attitude)[None]
    ahead = here + 0.06 * np.array([[math.cos(0.2), math.sin(0.2), 0.1]])
    names = ("rgb", "albedo", "depth", "range", "instance_id", "semantic_id", "face", "normal_world", "normal", "flow")
    start = time.perf_counter()
    got = render(stage.batch, lens.rays(), here, optical, channels=names, motion=FlowMotion(lens, ahead, optical))
    seconds = time.perf_counter() - start
    shown: list[tuple[str, str, ArrayU8, bool]] = [
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


def _device_card(item: Device, stages: list[GalleryScene], seed: int) -> dict[str, Any]:
    """Return one device in every place."""
    near = item.limits.maximum <= NEAR
    samples = [{"place": stage.title, **_sample(item, stage.approached() if near else stage, seed)} for stage in stages]
    return {"name": item.name, "kind": item.kind, "summary": item.summary, "facts": device_facts(item), "samples": samples}


def _sample(item: Device, stage: GalleryScene, seed: int) -> dict[str, Any]:
    """Return what a device sees from the stage's pose, and how long one sample took."""
    sensor = make_sensor(item)
    draw = Draw.of(1, seed=seed, sensor=item.name)
    view = SensorView(stage.position[None], stage.attitude[None], np.zeros(1, int), draw)
    takers: dict[str, Callable[..., dict[str, Any]]] = {
        "camera": _camera_sample,
        "lidar": _lidar_sample,
        "radar": _lidar_sample,
        "ranger": _ranger_sample,
        "beacons": _beacon_sample,
    }
    return takers.get(item.kind, _depth_sample)(item, sensor, stage, view)


def _timed(capture: Callable[[], dict[str, ArrayAny]]) -> tuple[dict[str, ArrayAny], str]:
    """Return a sample, and the time of the better of two."""
    seconds = math.inf
    for _ in range(2):
        start = time.perf_counter()
        got = capture()
        seconds = min(seconds, time.perf_counter() - start)
    return got, f"{1000.0 * seconds:.1f} ms"


def _shown(images: list[ArrayU8], note: str, photo: bool) -> dict[str, Any]:
    return {"images": [pictures.data_uri(pictures.fitted(image, SAMPLE_WIDTH), photo) for image in images], "note": note}


def _camera_sample(item: Device, sensor: Any, stage: GalleryScene, view: SensorView) -> dict[str, Any]:
    got, spent = _timed(lambda: sensor.capture(stage.batch, view, ("rgb",)))
    rgb = got["rgb"][0]
    return _shown([rgb if rgb.dtype == np.uint8 else to_8bit(rgb)], spent, True)


def _depth_sample(item: Device, sensor: Any, stage: GalleryScene, view: SensorView) -> dict[str, Any]:
    name = sensor.measures
    got, spent = _timed(lambda: sensor.capture(stage.batch, view, (name,)))
    metres = item.limits.metres(got[name][0])
    lost = float(np.mean(~np.isfinite(metres)))
    far = min(item.limits.maximum, 12.0)
    picture = pictures.distance_picture(metres, item.limits.minimum, far)
    return _shown([pictures.enlarged(picture, 320)], f"{spent}, {100.0 * lost:.0f} % without a reading", picture.shape[1] > 320)


def _lidar_sample(item: Device, sensor: Any, stage: GalleryScene, view: SensorView) -> dict[str, Any]:
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


def _ranger_sample(item: Device, sensor: Any, stage: GalleryScene, view: SensorView) -> dict[str, Any]:
    got, spent = _timed(lambda: sensor.capture(stage.batch, view, ("range", "true_range", "valid")))
    parts = [
        f"{float(r):.3f} m (true {float(t):.3f} m)" if bool(v) else f"no return: {float(r):.3f} m"
        for r, t, v in zip(got["range"][0], got["true_range"][0], got["valid"][0], strict=True)
    ]
    return {"images": [], "note": f"{spent}, reads {', '.join(parts)}"}


def _beacon_sample(item: Device, sensor: Any, stage: GalleryScene, view: SensorView) -> dict[str, Any]:
    """Beacons drawn over the picture of the same camera; on the corners of the scene's gates where it names none."""
    from airworthy.sensors import BeaconCamera

    corners = [corner for gate in stage.scene.gates for corner in gate.corners]
    if not (stage.scene.beacons or corners):
        return {"images": [], "note": "this place has no beacons"}
    camera = sensor if stage.scene.beacons else BeaconCamera(item, positions=np.array(corners))
    got, spent = _timed(lambda: camera.capture(stage.batch, view))
    attitude = camera_attitude(stage.attitude)[None]
    picture = to_8bit(render(stage.batch, item.projection.rays(), stage.position[None], attitude, channels=("rgb",))["rgb"][0])
    visible = got["pixel"][0][got["beacon"][0] >= 0]
    for u, v in visible:
        _circle(picture, float(u), float(v), 9.0)
    total = len(stage.scene.beacons) or len(corners)
    return _shown([picture], f"{spent}, {len(visible)} of {total} beacons seen", True)


def _circle(picture: ArrayU8, u: float, v: float, radius: float) -> None:
    rows, columns = np.ogrid[: picture.shape[0], : picture.shape[1]]
    ring = np.abs(np.hypot(columns + 0.5 - u, rows + 0.5 - v) - radius) < 1.8
    picture[ring] = (255, 60, 170)


# ---- realism ------------------------------------------------------------------------------------------------------------


def _realism(stage: GalleryScene, seed: int) -> list[dict[str, str]]:
    """Return the pieces of the camera chain, each alone, and the two presets."""

    shown = realism_pictures(stage.batch, stage.position, stage.attitude, seed)
    return [{"name": n, "what": w, "image": pictures.data_uri(pictures.fitted(p, CARD))} for n, w, p in shown]
