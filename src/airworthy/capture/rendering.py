"""A capture of a scene of our own: rendered views with exact poses, metric, for training and for tests.

Images that are there already are kept, so that a stopped run goes on where it was.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from airworthy.capture._gate import CAPTURE_LIMITS, CaptureFolder, DamagedImageError
from airworthy.capture.writer import IMAGES, POINTS, camera_entry, frame_entry, png_bytes
from airworthy.core import frames
from airworthy.core.arrays import ArrayBool, ArrayFloat, ArrayU8
from airworthy.core.errors import AirworthyError, unknown_name
from airworthy.core.files import lock_folder, make_folder, read_json, write_bytes, write_json
from airworthy.core.idle_options import IdleRule, refuse_idle
from airworthy.core.jobs.progress import progress
from airworthy.core.schema import check_fields
from airworthy.geometry import RayTable
from airworthy.optics.projections import Pinhole
from airworthy.rendering.converting import display_color, lit_batch
from airworthy.rendering.images import render
from airworthy.rendering.shading import ShadingOptions
from airworthy.scenes import Scene, SceneBatch, scene_digest
from airworthy.scenes.formats import Points, write_points_ply
from airworthy.scenes.viewpoints import look_at
from airworthy.simulation.flights import FLIGHT_FILE, read_flight
from airworthy.splats.surfaces import sequence, viewpoints
from airworthy.trajectories import course, course_names

__all__ = ["IDLE_RULES", "RenderCaptureOptions", "camera_poses", "render_capture"]

# ---- Where the cameras of a rendered capture stand: free places all around, or along a course or a flight -------------------

HELD_OUT = 1000
"""First number of the free places that are kept for judging."""
_PITCH = 0.35
"""Most by which free cameras look up or down [rad]."""


def camera_poses(batch: SceneBatch, along: str, count: int, first: int = 0) -> tuple[ArrayFloat, ArrayFloat]:
    """Return positions (count, 3) [m] and attitudes (count, 4) of cameras, x right, y down, z forward.

    Args:
        batch: The scene.
        along: "": free places evenly in the bounds, looking all around, up to 0.35 rad up or down. The name of a course: evenly
            in time along it, level, looking where its yaw points. A folder of `airworthy fly`: along its first environment's
            flight, looking where the vehicle's x axis points.
        count: How many.
        first: Other free places for other numbers.

    Raises:
        AirworthyError: There is no such course or flight, or hardly free room.
    """
    if not along:
        return _free(batch, count, first)
    if (Path(along) / FLIGHT_FILE).is_file():
        return _flight(Path(along), count)
    if along not in course_names() and not Path(along).is_file():
        hint = "Or the folder of a flight, or the path of a course."
        raise unknown_name("course", along, course_names(), hint)
    path = course(along).trajectory()
    flown = path.sample(np.linspace(0.0, path.duration, count))
    return flown.position, frames.camera_attitude(frames.from_euler(0.0, 0.0, flown.yaw))


def _free(batch: SceneBatch, count: int, first: int) -> tuple[ArrayFloat, ArrayFloat]:
    position = viewpoints(batch, count, first=first)
    # Another stretch of the sequence than that of the places, or where a camera looks would follow from where it stands.
    turn = sequence(count, first + 17)
    yaw, pitch = 2.0 * np.pi * turn[:, 0], 2.0 * _PITCH * (turn[:, 1] - 0.5)
    directions = np.stack((np.cos(yaw) * np.cos(pitch), np.sin(yaw) * np.cos(pitch), np.sin(pitch)), axis=-1)
    return position, np.stack([look_at(np.zeros(3), one) for one in directions])


def _flight(folder: Path, count: int) -> tuple[ArrayFloat, ArrayFloat]:
    table, _ = read_flight(folder)
    if not table.env_count:
        raise AirworthyError(f"The flight in {str(folder)!r} has no rows; fly again, or choose another.")
    flown = table.flight(int(table.envs[0]))
    rows = np.linspace(0, flown.row_count - 1, count).round().astype(np.int64)
    position, attitude = (flown.vector(name)[rows].astype(np.float64) for name in ("position", "attitude"))
    return position, frames.camera_attitude(frames.normalize(attitude))


# -----------------------------------------------------------------------------------------------------------------------------

CONFIG = "capture.json"
_SIZE_MAX, _VIEWS_MAX = 8192, 20_000


IDLE_RULES = (
    IdleRule(
        ("held_out",),
        lambda options: bool(options.along),
        "with --along, where every eighth image is held out",
        "drop that",
    ),
)
"""Options that change nothing beside the others."""


@dataclass(frozen=True)
class RenderCaptureOptions:
    """How a scene is captured.

    Raises:
        AirworthyError: If a number is out of range.
    """

    views: int = 200
    """Images to train on."""
    held_out: int = 20
    """Further images from other free places, to judge on; not along a course or a flight, where every eighth image is."""
    width: int = 320
    """[px]"""
    height: int = 180
    """[px]"""
    fov: float = 1.4
    """Field of view across the width [rad]."""
    along: str = ""
    """Name of a course, or folder of a flight, to follow; empty: free places all over the scene."""
    points: int = 0
    """Surface points to write beside the images, spread over the views."""
    exposure: float = 1.0
    """Factor on linear radiance before the filmic curve and sRGB."""
    samples: int = 4
    """Rays per pixel: 1, 2, 4 or 8."""
    seed: int = 0
    """Of the choice of points."""

    def __post_init__(self) -> None:
        check_fields(self, "RenderCaptureOptions.")
        fits = 8 <= self.width <= _SIZE_MAX and 8 <= self.height <= _SIZE_MAX and 0.01 <= self.fov <= 3.0
        counts = 1 <= self.views <= _VIEWS_MAX and 0 <= self.held_out <= _VIEWS_MAX and 0 <= self.points <= 10_000_000
        if not (fits and counts and self.exposure > 0.0 and self.samples in (1, 2, 4, 8)):
            raise AirworthyError(
                f"A scene cannot be captured with {self}; expected 1 to {_VIEWS_MAX} views of 8 to {_SIZE_MAX} pixels a side,"
                " fields of 0.01 to 3 rad, an exposure above 0, and 1, 2, 4 or 8 samples."
            )
        refuse_idle(self, IDLE_RULES)
        if not self.along and self.views > HELD_OUT and self.held_out:
            raise AirworthyError(f"Over {HELD_OUT} free views would meet the held-out ones; ask for fewer, or held_out of 0.")

    @property
    def intrinsics(self) -> ArrayFloat:
        """(4,) fx, fy, cx, cy [px]."""
        focal = 0.5 * self.width / np.tan(0.5 * self.fov)
        return np.array([focal, focal, 0.5 * self.width, 0.5 * self.height])


def render_capture(
    scene: Scene, folder: str | Path, options: RenderCaptureOptions | None = None, *, quiet: bool = True
) -> Path:
    """Render a scene's views into a folder that `read_capture` reads: PNG images, transforms.json, perhaps points.

    Args:
        scene: Its actors stand where they begin.
        folder: Made where missing. Images of the same scene and options that are there already are kept.
        options: How.
        quiet: Show no progress.

    Returns:
        The path of the transforms.json, which is written last.

    Raises:
        AirworthyError: The folder holds images of another scene or of other options, or there is hardly free room.
    """
    options = options or RenderCaptureOptions()
    with lock_folder(folder) as root:
        _check(root, scene, options)
        batch = lit_batch(scene)
        position, attitude, held = _poses(batch, options)
        make_folder(root / IMAGES)
        gate = CaptureFolder(root, CAPTURE_LIMITS)
        for k in progress(range(len(position)), "Rendering", quiet=quiet):
            if not _whole(gate, k, options):
                write_bytes(root / _name(k), png_bytes(_image(batch, position[k], attitude[k], options)))
        points = _points(batch, root, position, attitude, options) if options.points else None
        if points is not None:
            write_points_ply(root / POINTS, points)
        return write_json(root / "transforms.json", _table(position, attitude, held, options, points is not None))


def _check(root: Path, scene: Scene, options: RenderCaptureOptions) -> None:
    """Tell whether the folder holds nothing else; says in it what it is for."""
    wanted = {"scene": scene.name, "scene_sha256": scene_digest(scene), **asdict(options)}
    path = root / CONFIG
    if path.exists():
        found = read_json(path)
        known = found if isinstance(found, dict) else {}
        changed = [key for key, value in wanted.items() if known.get(key) != value]
        if changed:
            key = changed[0]
            raise AirworthyError(
                f"{str(root)!r} holds a capture with another {key} ({known.get(key)}, now {wanted[key]}):"
                " choose another folder, or remove it first."
            )
    elif (root / "transforms.json").exists():
        raise AirworthyError(f"{str(root)!r} holds a capture that was not rendered here: choose another folder.")
    else:
        write_json(path, wanted)


def _poses(batch: SceneBatch, options: RenderCaptureOptions) -> tuple[ArrayFloat, ArrayFloat, ArrayBool]:
    position, attitude = camera_poses(batch, options.along, options.views)
    if options.along:
        # Every eighth, as is usual since Mildenhall et al.: Local light field fusion (2019).
        return position, attitude, (np.arange(options.views) % 8 == 0) & (options.views > 1)
    held = np.arange(options.views + options.held_out) >= options.views
    if options.held_out:
        more = camera_poses(batch, "", options.held_out, HELD_OUT)
        position, attitude = np.concatenate([position, more[0]]), np.concatenate([attitude, more[1]])
    return position, attitude, held


def _name(number: int) -> str:
    return f"{IMAGES}/{number:05d}.png"


def _table(
    position: ArrayFloat, attitude: ArrayFloat, held: ArrayBool, options: RenderCaptureOptions, points: bool
) -> dict[str, Any]:
    size = np.array([options.width, options.height])
    table: dict[str, Any] = {"camera_model": "PINHOLE", "metric": True, "up": "z", "rendered": True}
    table |= camera_entry(size, options.intrinsics)
    if held.any():
        table["train_filenames"] = [_name(int(k)) for k in np.flatnonzero(~held)]
        table["test_filenames"] = [_name(int(k)) for k in np.flatnonzero(held)]
    if points:
        table["ply_file_path"] = POINTS
    return table | {"frames": [frame_entry(_name(k), position[k], attitude[k]) for k in range(len(position))]}


def _rays(options: RenderCaptureOptions, u: ArrayFloat, v: ArrayFloat) -> RayTable:
    fx, fy, cx, cy = options.intrinsics
    return RayTable(np.stack(((u - cx) / fx, (v - cy) / fy, np.ones_like(u)), axis=-1))


def _image(batch: SceneBatch, position: ArrayFloat, attitude: ArrayFloat, options: RenderCaptureOptions) -> ArrayU8:
    u, v = np.meshgrid(np.arange(options.width) + 0.5, np.arange(options.height) + 0.5)
    shading = ShadingOptions(samples=options.samples)
    env = np.zeros(1, np.int32)
    fx, fy, cx, cy = map(float, options.intrinsics)
    lens = Pinhole(options.width, options.height, fx, fy, cx, cy)
    table = _rays(options, u, v)
    found = render(batch, table, position[None], attitude[None], env, ("rgb",), shading, projection=lens)
    return np.asarray(np.rint(255.0 * display_color(found["rgb"][0], options.exposure)), np.uint8)


def _whole(gate: CaptureFolder, number: int, options: RenderCaptureOptions) -> bool:
    """Tell whether an image is there and of the right size; files are written atomically, so it is whole then."""
    path = gate.locate(_name(number))
    try:
        return path is not None and gate.size(path) == (options.width, options.height)
    except DamagedImageError:
        return False


def _points(batch: SceneBatch, root: Path, position: ArrayFloat, attitude: ArrayFloat, options: RenderCaptureOptions) -> Points:
    """Points on surfaces at random pixels of all views, in the colours of the images."""
    gate = CaptureFolder(root, CAPTURE_LIMITS)
    # Rounded up; what is too many is cut off at the end.
    each = -(-options.points // len(position))
    points, colors = [], []
    for k in range(len(position)):
        rng = np.random.default_rng([options.seed, k])
        u = rng.integers(options.width, size=(1, each))
        v = rng.integers(options.height, size=(1, each))
        table = _rays(options, u + 0.5, v + 0.5)
        depth = render(batch, table, position[k : k + 1], attitude[k : k + 1], np.zeros(1, np.int32), ("depth",))["depth"][0]
        fx, fy, cx, cy = options.intrinsics
        ray = np.stack(((u + 0.5 - cx) / fx, (v + 0.5 - cy) / fy, np.ones(u.shape)), axis=-1)
        hit = np.isfinite(depth) & (depth < 1e4)
        found = frames.rotate(attitude[k], ray[hit] * depth[hit][:, None].astype(np.float64)) + position[k]
        points.append(found.astype(np.float32))
        colors.append(gate.color(root / _name(k))[v[hit], u[hit]])
    return Points(np.concatenate(points)[: options.points], np.concatenate(colors)[: options.points])
