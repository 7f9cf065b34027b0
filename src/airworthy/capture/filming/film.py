"""Hand-held films of scenes: what a telephone would have filmed, with the truth beside it.

Blur is the mean of exposures while the shutter is open; a rolling shutter exposes every row at its own time; exposure and
white balance drift; a chip's noise and a codec come last. The same options give the same frames.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from airworthy.capture.alignment.marker_sheet import draw_marker
from airworthy.capture.filming.marker_place import marker_place
from airworthy.capture.filming.walk import HandWalk, WalkLoop, find_loop
from airworthy.core.arrays import Array, ArrayF32, ArrayU8
from airworthy.core.errors import AirworthyError
from airworthy.core.files import lock_folder, make_folder, read_json, write_bytes, write_json
from airworthy.core.idle_options import IdleRule, refuse_idle
from airworthy.core.jobs.progress import progress
from airworthy.core.schema import Bound, check_fields
from airworthy.geometry import Mesh
from airworthy.optics.projections import Pinhole
from airworthy.optics.tone import to_8bit
from airworthy.rendering import ShadingOptions, render, use_baked
from airworthy.reports.film.files import check_video_size, write_video
from airworthy.scenes import Instance, Material, Scene, SceneBatch, Texture, scene_digest
from airworthy.scenes.actors import add_actor
from airworthy.scenes.people import person, walk_path
from airworthy.sensors.noise import Draw
from airworthy.sensors.realism import SensorNoise
from airworthy.sensors.realism.camera import rows_as_columns, upright
from airworthy.sensors.realism.chain import noisy

__all__ = ["FilmOptions", "film_rig", "film_scene", "marked_scene", "render_film"]

TRUTH = "truth.json"
_SHIRTS = ((0.75, 0.12, 0.08), (0.1, 0.35, 0.6), (0.15, 0.5, 0.2), (0.7, 0.6, 0.1))


IDLE_RULES = (IdleRule(("exposures",), lambda options: options.shutter == 0.0, "with --shutter 0, an instant", "open it"),)
"""Options that change nothing beside the others."""


@dataclass(frozen=True)
class FilmOptions:
    """How a scene is filmed.

    Raises:
        AirworthyError: If a number is out of range.
    """

    seconds: Annotated[float, Bound(0.1, 600.0, "s")] = 30.0
    rate: Annotated[float, Bound(0.1, 240.0, "Hz")] = 10.0
    """Frames per second."""
    width: Annotated[int, Bound(64, 4096, "px")] = 960
    height: Annotated[int, Bound(64, 4096, "px")] = 540
    fov: Annotated[float, Bound(0.2, 2.4, "rad")] = 1.15
    """Field of view across the width; ours: of a telephone's main camera on its side."""
    laps: Annotated[float, Bound(0.05, 20.0)] = 1.0
    """How often the walk goes round the room."""
    hand_height: Annotated[float, Bound(0.2, 5.0, "m")] = 1.5
    tremor: Annotated[float, Bound(0.0, 10.0)] = 1.0
    """Factor on steps and tremor."""
    shutter: Annotated[float, Bound(0.0, 0.5, "s")] = 0.01
    """How long each frame is exposed; 0: an instant."""
    exposures: Annotated[int, Bound(1, 64)] = 4
    """Images whose mean is a frame's blur."""
    readout: Annotated[float, Bound(0.0, 0.2, "s")] = 0.0
    """From the first row's exposure to the last one's; telephones: 0.008 to 0.03 s. 0: all rows at once."""
    noise: Annotated[float, Bound(0.0, 100.0)] = 1.0
    """Factor on the variance of the light's noise; 0: none."""
    exposure: Annotated[float, Bound(0.01, 100.0)] = 1.0
    """Factor on linear radiance."""
    exposure_drift: Annotated[float, Bound(0.0, 3.0, "EV")] = 0.2
    """Most by which the exposure drifts to either side."""
    white_drift: Annotated[float, Bound(0.0, 0.5)] = 0.03
    """Most by which red drifts against blue, as a share."""
    quality: Annotated[int, Bound(1, 100)] = 90
    """Of JPEGs; of a film, 100 is x264's rate factor 10, and 50 is 30."""
    marker_side: Annotated[float, Bound(0.0, 3.0, "m")] = 0.16
    """Of the black square that lies on the floor; 0: none."""
    people: Annotated[int, Bound(0, 8)] = 0
    """Who walk about in the room."""
    samples: int = 1
    """Rays per pixel and exposure: 1, 2, 4 or 8."""
    seed: int = 0

    def __post_init__(self) -> None:
        check_fields(self, "FilmOptions.")
        refuse_idle(self, IDLE_RULES)
        check_video_size((self.width, self.height))
        if self.samples not in (1, 2, 4, 8):
            raise AirworthyError(f"A film has {self.samples} rays per pixel and exposure; expected 1, 2, 4 or 8.")
        if self.count < 2:
            raise AirworthyError(f"A film of {self.seconds:g} s at {self.rate:g} Hz has under 2 frames; film for longer.")

    @property
    def count(self) -> int:
        """Frames."""
        return int(self.seconds * self.rate + 1e-6)

    @property
    def lens(self) -> Pinhole:
        """Of the camera; the principal point is the middle."""
        focal = 0.5 * self.width / np.tan(0.5 * self.fov)
        return Pinhole(self.width, self.height, focal, focal, 0.5 * self.width, 0.5 * self.height)


# ---- The place: a marker on its floor, people who walk in it ----------------------------------------------------------------


def marked_scene(scene: Scene, position: Array, side: float, yaw: float = 0.0) -> Scene:
    """Return a scene with marker 0 of the dictionary 4x4_50 lying in it.

    Args:
        scene: Place.
        position: Of the marker's centre, world [m], (3,).
        side: Of its black square [m]; a white cell lies around it.
        yaw: Of its x axis [rad].
    """
    half = 0.5 * side * 8.0 / 6.0
    corners = half * np.array([[-1.0, 1.0, 0.0], [1.0, 1.0, 0.0], [1.0, -1.0, 0.0], [-1.0, -1.0, 0.0]])
    uv = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])
    square = Mesh(corners, np.array([[0, 3, 2], [0, 2, 1]]), uv=uv)
    picture = Texture(np.repeat(draw_marker(32)[..., None], 3, axis=2), wrap="clamp")
    x, y, z = (float(value) for value in position)
    turn = (0.0, 0.0, float(np.sin(0.5 * yaw)), float(np.cos(0.5 * yaw)))
    item = Instance("film/marker", (x, y, z), turn, materials=("film/marker",), name="marker", collide=False)
    return replace(
        scene,
        shapes={**scene.shapes, "film/marker": square},
        textures={**scene.textures, "film/marker": picture},
        materials={
            **scene.materials,
            # Ink and paper reflect between 4 and 85 %, less than the texture's black and white.
            "film/marker": Material((0.85, 0.85, 0.85, 1.0), roughness=0.9, base_color_map="film/marker"),
        },
        instances=(*scene.instances, item),
    )


@dataclass(frozen=True, eq=False)
class FilmRig:
    """A lit place to film, the walk through it, and where the marker lies."""

    batch: SceneBatch
    walk: HandWalk
    marker: dict[str, Any] | None
    """Side [m], position [m] and attitude of the marker."""


def film_rig(scene: Scene, options: FilmOptions) -> FilmRig:
    """Return what is filmed, and from where.

    Raises:
        AirworthyError: There is no free room for a walk, or none of its floor is seen from there.
    """
    bare = SceneBatch(scene)
    loop = find_loop(bare, options.hand_height)
    walk = HandWalk(loop, options.seconds, options.laps, options.hand_height, options.tremor, options.seed)
    marker = None
    if options.marker_side:
        where, yaw = marker_place(bare, walk, options.lens, options.marker_side), 0.4
        scene = marked_scene(scene, where, options.marker_side, yaw)
        attitude = [0.0, 0.0, float(np.sin(0.5 * yaw)), float(np.cos(0.5 * yaw))]
        marker = {"number": 0, "side": options.marker_side, "position": where.tolist(), "attitude": attitude}
    for k in range(options.people):
        scene = add_actor(scene, _walker(loop, k))
    batch = SceneBatch(scene)
    use_baked(batch)
    return FilmRig(batch, walk, marker)


def _walker(loop: WalkLoop, number: int) -> Any:
    """Return a person who walks round within the loop, each beginning elsewhere and every other one the other way."""
    inner = loop.centre + 0.6 * (loop.corners - loop.centre)
    # Only where it is free: a table in the middle of the room is walked round.
    away = np.linalg.norm(inner[:, None] - loop.free[None], axis=-1)
    corners = loop.free[away.argmin(axis=1)][:: max(1, len(inner) // 12)]
    corners = np.roll(corners, 5 * number + 3, axis=0)[:: -1 if number % 2 else 1]
    keep = np.linalg.norm(corners - np.roll(corners, 1, axis=0), axis=1) > 0.2
    points = [(float(x), float(y), loop.floor) for x, y in corners[keep]]
    height = (1.78, 1.66, 1.85, 1.72)[number % 4]
    path = walk_path(points, speed=0.9, closed=True)
    return person(
        f"film_person_{number}", height, position=points[0], animation="walking", speed=0.9, motion="scripted", path=path,
        repeat=True, shirt=_SHIRTS[number % 4],
    )  # fmt: skip


# ---- Frames -----------------------------------------------------------------------------------------------------------------


class _Camera:
    """Makes frames of a rig."""

    def __init__(self, rig: FilmRig, options: FilmOptions) -> None:
        self.rig, self.options = rig, options
        self.table = options.lens.rays()
        self.side = rows_as_columns(self.table)
        self.shading = ShadingOptions(samples=options.samples)
        rng = np.random.default_rng([options.seed, 0xF11A])
        self._phase = rng.uniform(0.0, 2.0 * np.pi, 4)

    def stops(self, time: float) -> float:
        """Exposure against the mean [EV]."""
        turn = 2.0 * np.pi * self.rig.walk.laps * time / self.options.seconds
        return float(self.options.exposure_drift * np.sin(1.7 * turn + self._phase[0]) * np.cos(0.6 * turn + self._phase[1]))

    def gains(self, time: float) -> Array:
        """White balance, (3,) red, green, blue."""
        turn = 2.0 * np.pi * self.rig.walk.laps * time / self.options.seconds
        off = self.options.white_drift * np.sin(1.3 * turn + self._phase[2])
        return np.array([1.0 + off, 1.0, 1.0 - off])

    def frame(self, number: int) -> ArrayU8:
        """Return frame `number`, (height, width, 3); its middle row's exposure is centred at number / rate."""
        o, time = self.options, number / self.options.rate
        self.rig.batch.advance(time)
        linear = self._light(time)
        factor = o.exposure * 2.0 ** self.stops(time) * self.gains(time)
        image = (linear * factor).astype(np.float32)[None]
        if o.noise:
            chip = SensorNoise(photons=SensorNoise().photons / o.noise)
            image = noisy(image, chip, Draw.of(1, o.seed, sample=number, sensor="film"))
        return np.asarray(to_8bit(image)[0])

    def _light(self, time: float) -> ArrayF32:
        """Mean linear radiance over the exposure, (height, width, 3)."""
        o = self.options
        count = o.exposures if o.shutter else 1
        ages = o.shutter * ((np.arange(count) + 0.5) / count - 0.5)
        total = np.zeros((o.height, o.width, 3), np.float32)
        for age in ages:
            total += self._instant(time + float(age))
        return total / np.float32(count)

    def _instant(self, time: float) -> ArrayF32:
        o, env = self.options, np.zeros(1, np.int32)
        if not o.readout:
            position, attitude = self.rig.walk.poses(np.array([time]))
            found = render(
                self.rig.batch, self.table, position, attitude, env, ("rgb",), self.shading, projection=o.lens
            )  # fmt: skip
            return np.asarray(found["rgb"][0], np.float32)
        rows = time + o.readout * ((np.arange(o.height) + 0.5) / o.height - 0.5)
        position, attitude = self.rig.walk.poses(rows[None])
        middle = o.height // 2
        found = render(
            self.rig.batch, self.side, position[:, middle], attitude[:, middle], env, ("rgb",), self.shading,
            column_position=position, column_attitude=attitude,
        )  # fmt: skip
        return np.asarray(upright({"rgb": found["rgb"]})["rgb"][0], np.float32)


def film_scene(scene: Scene, options: FilmOptions | None = None) -> Iterator[ArrayU8]:
    """Yield the frames of a film, (height, width, 3), without a file.

    Args:
        scene: Place.
        options: How it is filmed.
    """
    options = options or FilmOptions()
    camera = _Camera(film_rig(scene, options), options)
    for number in range(options.count):
        yield camera.frame(number)


def render_film(scene: Scene, out: str | Path, options: FilmOptions | None = None, *, quiet: bool = True) -> Path:
    """Film a scene by hand, and write the truth beside it.

    Args:
        scene: Place.
        out: A film (.mp4), or a folder of JPEGs, whose frames of the same film that are there already are kept.
        options: How.
        quiet: Show no progress.

    Returns:
        The path of the truth: times, poses at the middle row, intrinsics, marker, exposure; `OUT.truth.json` beside a film,
        `truth.json` in a folder.

    Raises:
        AirworthyError: There is no room for a walk, the folder holds another film, or nothing can be written.
    """
    options, path = options or FilmOptions(), Path(out)
    rig = film_rig(scene, options)
    camera = _Camera(rig, options)
    truth = {"scene": scene.name, "scene_sha256": scene_digest(scene), "options": asdict(options), **_truth(camera)}
    numbers = progress(range(options.count), "Filming", quiet=quiet)
    if path.suffix:
        size = (options.width, options.height)
        rate_factor = round(50 - 0.4 * options.quality)
        write_video(path, (camera.frame(k) for k in numbers), options.count, size, options.rate, rate_factor)
        return write_json(path.with_name(path.name + ".truth.json"), truth)
    with lock_folder(path) as folder:
        _check_same(folder / "film.json", truth)
        for k in numbers:
            file = make_folder(folder / "frames") / f"{k:05d}.jpg"
            if not file.exists():
                write_bytes(file, jpeg_bytes(camera.frame(k), options.quality))
        return write_json(folder / TRUTH, truth)


def _check_same(path: Path, truth: dict[str, Any]) -> None:
    wanted = {name: truth[name] for name in ("scene_sha256", "options")}
    if not path.exists():
        write_json(path, wanted)
        return
    if read_json(path) != wanted:
        raise AirworthyError(f"{str(path.parent)!r} holds another film: choose another folder, or remove it first.")


def _truth(camera: _Camera) -> dict[str, Any]:
    options, rig = camera.options, camera.rig
    times = np.arange(options.count) / options.rate
    position, attitude = rig.walk.poses(times)
    lens = options.lens
    return {
        "intrinsics": [lens.fx, lens.fy, lens.cx, lens.cy],
        "size": [options.width, options.height],
        "marker": rig.marker,
        "metres_per_unit": 1.0,
        "times": times.tolist(),
        "position": position.tolist(),
        "attitude": attitude.tolist(),
        "exposure_ev": [camera.stops(float(t)) for t in times],
        "white_balance": [camera.gains(float(t)).tolist() for t in times],
    }


def jpeg_bytes(pixels: ArrayU8, quality: int = 95) -> bytes:
    """Return JPEG of coloured pixels (h, w, 3), colour at full resolution.

    Args:
        pixels: sRGB-encoded.
        quality: Of Pillow, 1 to 100.
    """
    from PIL import Image

    held = io.BytesIO()
    Image.fromarray(np.ascontiguousarray(pixels)).save(held, "JPEG", quality=quality, subsampling=0)
    return held.getvalue()
