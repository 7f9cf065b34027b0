"""A camera with a lens, a shutter and a chip: which rays make an image, and what becomes of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from airworthy.core import frames
from airworthy.core.arrays import Array, ArrayAny, ArrayBool, ArrayF32, ArrayIndex, ArrayInt, ArrayLike
from airworthy.core.errors import AirworthyError
from airworthy.geometry import RayTable
from airworthy.optics.projections import Projection
from airworthy.scenes.lights import sky_irradiance
from airworthy.sensors.lidar import column_poses
from airworthy.sensors.noise import Draw
from airworthy.sensors.realism.chain import Optics, develop
from airworthy.sensors.realism.rain import DropView, rain_cover, with_streaks
from airworthy.sensors.realism.settings import DepthOfField, Realism
from airworthy.sensors.sampling import moves, scene_before, strip_of, strips

__all__ = [
    "PAST_FRAMES",
    "CameraState",
    "RealCamera",
    "ThinLens",
    "Trace",
    "aperture_points",
    "averaged",
    "exposure_ages",
    "gathered",
    "lens_table",
    "poses_at",
    "row_ages",
    "rows_as_columns",
    "upright",
]

# ---- Depth of field of a thin lens ------------------------------------------------------------------------------------------
#
# A camera's focal length in pixels is the distance v of the image behind the lens; in focus at depth s the lens has the focal
# length f = v s / (v + s) and the aperture A = f / N. A point at depth d becomes a disc of diameter A f |d - s| / (d (s - f)).

# Source: Vogel, "A better way to construct the sunflower head" (1979): the golden angle.
_GOLDEN = np.pi * (3.0 - np.sqrt(5.0))
# Ours: 87 degrees off the axis.
_SHARP_ANGLE = 0.05
"""Rays whose cosine is below stay as they are: they meet the focus plane far off, or never."""
# Ours, because the cost grows with the square of the radius.
_GATHER_MAX = 0.05
"""Largest radius that is gathered from, of the image's height."""


@dataclass(frozen=True)
class ThinLens:
    """Lens of a camera, in metres and pixels."""

    focal_length: float
    """[m]"""
    aperture: float
    """Diameter [m]."""
    focus: float
    """[m]"""
    pixel: float
    """Side of a pixel on the chip [m]."""

    @classmethod
    def of(cls, settings: DepthOfField, focal_pixels: float, height: int) -> ThinLens:
        """Return the lens of a camera with a focal length [px] and so many rows.

        Args:
            settings: f-number, focus [m] and height of the chip [m].
            focal_pixels: Focal length [px].
            height: Rows of the image.
        """
        pixel = settings.sensor_height / height
        image = focal_pixels * pixel
        focal = image * settings.focus / (image + settings.focus)
        return cls(focal, focal / settings.f_number, settings.focus, pixel)

    def circle(self, depth: ArrayLike) -> Array:
        """Return the diameter of the disc that points at depths [m] become, on the chip [m]; +inf is as far as it gets."""
        d, s, f = np.asarray(depth, np.float64), self.focus, self.focal_length
        with np.errstate(invalid="ignore", divide="ignore"):
            spread = np.where(np.isfinite(d), np.abs(1.0 - s / d), 1.0)
        return np.asarray(self.aperture * f * spread / (s - f))

    def circle_pixels(self, depth: ArrayLike) -> Array:
        """Return the same in pixels."""
        return self.circle(depth) / self.pixel


def aperture_points(samples: int) -> Array:
    """Return points evenly over the unit disc (samples, 2), in an order in which neighbours lie apart (Vogel, 1979)."""
    number = np.arange(samples)
    radius, angle = np.sqrt((number + 0.5) / samples), number * _GOLDEN
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], -1)[_spread(samples)]


def _spread(samples: int) -> ArrayInt:
    """Return a permutation that steps by about the golden section: instants of an exposure meet places all over the lens."""
    # 0.618: the golden section, whose multiples fill an interval most evenly.
    stride = max(round(samples * 0.618), 1)
    while np.gcd(stride, samples) != 1:
        stride += 1
    return (np.arange(samples) * stride) % samples


def lens_table(table: RayTable, lens: ThinLens, point: ArrayLike) -> RayTable:
    """Return the rays of a camera through one point of its lens, each to where it met the plane of focus before.

    Args:
        table: Rays through the middle of the lens, in the optical frame (z forward).
        lens: Aperture and focus.
        point: On the unit disc, (2,). It is turned about the axis from pixel to pixel, so that few points look like grain and
            not like so many edges.
    """
    offset = np.zeros_like(table.directions)
    offset[..., :2] = 0.5 * lens.aperture * _turned(np.asarray(point, np.float64), table.height, table.width)
    cosine = table.directions @ table.axis
    usable = cosine > _SHARP_ANGLE
    target = table.directions * (lens.focus / np.where(usable, cosine, 1.0))[..., None]
    directions = np.where(usable[..., None], target - offset, table.directions)
    origins = np.where(usable[..., None], offset, 0.0)
    return RayTable(directions, origins if table.origins is None else table.origins + origins, table.axis)


def _turned(point: Array, height: int, width: int) -> Array:
    """Return a point (2,) turned by an angle that differs between neighbours, (H, W, 2): gradient noise of Jimenez (2014)."""
    row, column = np.arange(height)[:, None], np.arange(width)[None, :]
    # Source: Jimenez, "Next generation post processing in Call of Duty: Advanced Warfare" (2014), interleaved gradient noise.
    angle = 2.0 * np.pi * np.mod(52.9829189 * np.mod(0.06711056 * column + 0.00583715 * row, 1.0), 1.0)
    cosine, sine = np.cos(angle), np.sin(angle)
    return np.stack([cosine * point[0] - sine * point[1], sine * point[0] + cosine * point[1]], -1)


def gathered(image: ArrayF32, depth: ArrayAny, lens: ThinLens, samples: int) -> ArrayF32:
    """Return an image blurred by its own depth: every pixel takes from places of a disc those whose own disc reaches it.

    What hides behind an edge is not known to the image, so the fringe of near things that are out of focus is approximate.
    Pixels that nothing wider than a pixel reaches stay as they are.

    Args:
        image: Linear, (c, H, W, 3).
        depth: [m], (c, H, W); +inf: nothing.
        lens: Its aperture and focus.
        samples: Places on each disc.
    """
    radius = np.minimum(0.5 * lens.circle_pixels(depth), _GATHER_MAX * image.shape[1]).astype(np.float32)
    out = image.copy()
    for number in range(len(image)):
        wide = radius[number] >= 0.5
        if not wide.any():
            continue
        reach = int(np.ceil(radius[number].max()))
        rows, columns = np.flatnonzero(wide.any(1)), np.flatnonzero(wide.any(0))
        # Only what a disc can touch; the window is wide enough to hold all that reaches into its inner part.
        window = tuple(slice(max(k[0] - 2 * reach, 0), k[-1] + 2 * reach + 1) for k in (rows, columns))
        out[number][window] = _gathered(image[number][window], depth[number][window], radius[number][window], reach, samples)
    return out


def _gathered(image: ArrayF32, depth: ArrayAny, radius: ArrayF32, reach: int, samples: int) -> ArrayF32:
    from scipy.ndimage import maximum_filter

    around = maximum_filter(radius, size=2 * reach + 1, mode="nearest")
    touched = np.flatnonzero(around >= 0.5)
    flat, far, own, width = image.reshape(-1, 3), depth.reshape(-1), radius.reshape(-1), image.shape[1]
    row, column = np.divmod(touched, width)
    disc, mine = around.reshape(-1)[touched], own[touched]
    weight = 1.0 / np.maximum(np.pi * mine**2, 1.0)  # the pixel itself: one of those on its disc
    total = weight[:, None] * flat[touched]
    for x, y in aperture_points(samples):
        i = np.clip(np.rint(row + y * disc), 0, len(image) - 1).astype(np.int64)
        j = np.clip(np.rint(column + x * disc), 0, width - 1).astype(np.int64)
        there = i * width + j
        # Farther things do not spill over nearer ones that are sharper than they.
        # 0.1 m (ours): depths of one slanted surface differ from pixel to pixel and must not hide each other.
        spill = np.where(far[there] > far[touched] + 0.1, np.minimum(own[there], mine), own[there])
        away = np.hypot(i - row, j - column)
        share = np.clip(spill - away + 0.5, 0.0, 1.0) * (disc / np.maximum(spill, 0.5)) ** 2 / samples
        total += share[:, None] * flat[there]
        weight += share
    out = image.copy()
    out.reshape(-1, 3)[touched] = total / weight[:, None]
    return out


# -----------------------------------------------------------------------------------------------------------------------------

# ---- When the pixels of an image are exposed, and where the camera is then --------------------------------------------------
#
# Instants are in frame periods before the stamp: the stamp is 0, the frame before 1. An image's last row is exposed until the
# stamp; without a rolling shutter all rows are.


def exposure_ages(percent: float, samples: int) -> Array:
    """Return ages of the exposures of a row, (samples,): the middles of equal parts of `percent` of the period, oldest
    first."""
    return percent * (1.0 - (np.arange(samples) + 0.5) / samples)


def row_ages(height: int, readout: float) -> Array:
    """Return how much earlier than the last row each row is exposed, (height,); rows differ by readout / height."""
    return readout * (height - 1 - np.arange(height)) / height


def poses_at(ages: ArrayAny, position: Array, attitude: Array) -> tuple[Array, Array]:
    """Return poses at ages (n,), from those of the last frames: linear, and spherical-linear in attitude.

    Args:
        ages: In frame periods, from 0 to the number of frames known less 1; beyond, the oldest holds.
        position: Of the last frames, oldest first, (c, k, 3).
        attitude: (c, k, 4).

    Returns:
        (c, n, 3), (c, n, 4)
    """
    known = position.shape[1]
    past = np.broadcast_to(np.arange(known - 1, -1, -1.0), (len(position), known))
    return column_poses(ages, past, position, attitude)


def averaged(render: Callable[[int], ArrayF32], numbers: Iterable[int]) -> ArrayF32:
    """Return the mean of images, added in order."""
    total: ArrayF32 | None = None
    count = 0
    for number in numbers:
        image = render(number)
        total = image.astype(np.float32) if total is None else total + image
        count += 1
    assert total is not None
    return total if count == 1 else total * np.float32(1.0 / count)


def rows_as_columns(table: RayTable) -> RayTable:
    """Return the table on its side, so that a query with a pose per column has one per row of the image."""
    origins = None if table.origins is None else table.origins.swapaxes(0, 1)
    return RayTable(table.directions.swapaxes(0, 1), origins, table.axis)


def upright(channels: dict[str, ArrayAny]) -> dict[str, ArrayAny]:
    """Return images (c, W, H, ...) of a table on its side as (c, H, W, ...)."""
    return {name: np.ascontiguousarray(array.swapaxes(1, 2)) for name, array in channels.items()}


# ---- What a camera remembers from image to image, per environment: its exposure, and where it was ---------------------------

PAST_FRAMES = 2
"""A shutter that is open all frame, and rows read out all frame long, reach back this far."""
_IDENTITY = np.array([0.0, 0.0, 0.0, 1.0])


class CameraState:
    """Rows by environment, which grow as environments appear."""

    def __init__(self) -> None:
        self.stops = np.zeros(0)
        """Exposure [EV], (env,); NaN: a flight begins."""
        self.frames = np.zeros(0, np.int64)
        """Poses known, (env,)."""
        self.position = np.zeros((0, PAST_FRAMES, 3))
        """Of the last frames, oldest first, world [m], (env, frames, 3)."""
        self.attitude = np.zeros((0, PAST_FRAMES, 4))
        """(env, frames, 4)"""

    def grow(self, envs: ArrayIndex) -> None:
        """Have rows for environments."""
        more = int(envs.max(initial=-1)) + 1 - len(self.stops)
        if more > 0:
            self.stops = np.concatenate([self.stops, np.full(more, np.nan)])
            self.frames = np.concatenate([self.frames, np.zeros(more, np.int64)])
            self.position = np.concatenate([self.position, np.zeros((more, PAST_FRAMES, 3))])
            self.attitude = np.concatenate([self.attitude, np.tile(_IDENTITY, (more, PAST_FRAMES, 1))])

    def reset(self, env_ids: ArrayLike | None = None) -> None:
        """Begin new flights in environments; None: in all."""
        envs = np.arange(len(self.stops)) if env_ids is None else np.atleast_1d(np.asarray(env_ids, np.intp))
        self.grow(envs)
        self.stops[envs] = np.nan
        self.frames[envs] = 0

    def poses(self, envs: ArrayIndex, position: Array, attitude: Array) -> tuple[Array, Array]:
        """Return poses of the last frames and this one, oldest first, (k, PAST_FRAMES + 1, 3 and 4); the oldest known holds
        before.

        Args:
            envs: Environments (k,).
            position: (k, 3) [m], world.
            attitude: Quaternion x, y, z, w, (k, 4).
        """
        self.grow(envs)
        positions = np.concatenate([self.position[envs], np.asarray(position, np.float64)[:, None]], axis=1)
        turns = np.concatenate([self.attitude[envs], np.asarray(attitude, np.float64)[:, None]], axis=1)
        first = PAST_FRAMES - self.frames[envs]
        source = np.maximum(np.arange(PAST_FRAMES + 1)[None], first[:, None])
        row = np.arange(len(envs))[:, None]
        return positions[row, source], turns[row, source]

    def remember(self, envs: ArrayIndex, position: Array, attitude: Array) -> None:
        """Remember this frame's poses, (k, 3) and (k, 4).

        Args:
            envs: Environments (k,).
            position: (k, 3) [m], world.
            attitude: Quaternion x, y, z, w, (k, 4).
        """
        self.grow(envs)
        for array, value in ((self.position, position), (self.attitude, attitude)):
            array[envs, :-1] = array[envs, 1:]
            array[envs, -1] = value
        self.frames[envs] = np.minimum(self.frames[envs] + 1, PAST_FRAMES)

    def save(self) -> dict[str, ArrayAny]:
        """Return copies of everything, by name."""
        return {name: array.copy() for name, array in vars(self).items()}

    def restore(self, saved: dict[str, ArrayAny]) -> None:
        """Continue from `save`."""
        for name in vars(self):
            setattr(self, name, np.asarray(saved[name]).copy())


# -----------------------------------------------------------------------------------------------------------------------------

_STRIPS_OF_SPLATS = 8
"""Ours: parts of a rolling image of splats among things that move, because each of them costs a whole image."""

Channels = dict[str, ArrayAny]
Trace = Callable[[RayTable, Array, Array, Sequence[str], dict[str, Any]], Channels]
"""(table, position (c, 3), optical attitude (c, 4), channels, poses per column) -> channels."""

_TABLE_PIXELS_MAX = 1 << 22
"""Ours: most pixels of all lens tables together that are kept; larger ones are made anew, so that memory is bounded."""


class RealCamera:
    """The realism of one camera, and what it remembers.

    Args:
        settings: The pieces.
        projection: Of the camera.
        table: Its rays.
        rate: Images per second.

    Raises:
        AirworthyError: If the projection has no focal length, and a depth of field is asked for.
    """

    def __init__(self, settings: Realism, projection: Projection, table: RayTable, rate: float):
        self.settings, self.projection, self.table, self.rate = settings, projection, table, rate
        self.state = CameraState()
        self.optics = Optics.of(projection, table)
        if settings.depth_of_field is not None and not hasattr(projection, "fy"):
            raise AirworthyError("Depth of field needs a pinhole or fisheye projection, which has a focal length.")
        if settings.rain_streaks is not None and not hasattr(projection, "fy"):
            raise AirworthyError("Streaks of rain need a pinhole or fisheye projection, which has a focal length.")

    # ---- rays -------------------------------------------------------------------------------------------------------

    def expose(
        self,
        trace: Trace,
        position: ArrayLike,
        attitude: ArrayLike,
        env: ArrayLike | None,
        channels: Sequence[str],
        scene: Any = None,
    ) -> Channels:
        """Return channels of one image per camera; "rgb" is what the lens lets through, before `develop`.

        Motion blur and depth of field concern colour alone; every other channel is of one instant, that at which its row's
        exposure ends. With a rolling shutter that instant differs from row to row. In scenes with splats, which no ray through
        a point of the lens meets, depth of field is gathered.

        Args:
            trace: Casts a table from poses.
            position: At the stamp, world [m], (c, 3).
            attitude: Optical frame to world, (c, 4).
            env: (c,) environments; None: 0, 1, 2, ...
            channels: What to give.
            scene: A `SceneBatch` whose actors move while the shutter is open; None: nothing does.
        """
        where, turned = np.asarray(position, np.float64), np.asarray(attitude, np.float64)
        envs = np.arange(len(where)) if env is None else np.asarray(env, np.intp)
        past = self.state.poses(envs, where, turned)
        kinds = self._settings_in(scene, envs) if "rgb" in channels else []
        names = [name for name in channels if name != "rgb" or any(kind.samples == 1 for kind, _ in kinds)]
        rained = bool(kinds) and self.settings.rain_streaks is not None and any(_rates(scene, envs) > 0.0)
        if "depth" not in names and (rained or any(_gathers(kind) for kind, _ in kinds)):
            names.append("depth")
        out = self._once(trace, past, 0.0, self.table, names, scene) if names else {}
        images = []
        for kind, _ in kinds:
            image = out["rgb"] if kind.samples == 1 else self._colors(trace, past, scene, kind)
            lens = kind.depth_of_field
            images.append(gathered(image, out["depth"], self._lens, lens.samples) if lens and _gathers(kind) else image)
        if kinds:
            out["rgb"] = images[0] if len(kinds) == 1 else np.where(kinds[0][1][:, None, None, None], *images)
        if rained:
            out["rgb"] = self._rained(out["rgb"], out["depth"], past, scene, envs)
        self.state.remember(envs, where, turned)
        return {name: out[name] for name in channels}

    def _rained(self, image: ArrayF32, depth: ArrayAny, past: tuple[Array, Array], scene: Any, envs: ArrayIndex) -> ArrayF32:
        """Return images with drops that fall past the camera, which moves as between its last two poses."""
        settings = self.settings.rain_streaks
        assert settings is not None
        now, before = (poses_at(np.array([age]), *past) for age in (0.0, 1.0 / self.rate))
        view, rates, made = (
            DropView(float(getattr(self.projection, "fy", 1.0)), settings.exposure),
            _rates(scene, envs),
            image.copy(),
        )
        for index, env in enumerate(envs):
            if rates[index] == 0.0:
                continue
            back = frames.conjugate(now[1][index, 0])
            motion = frames.rotate(back, (before[0][index, 0] - now[0][index, 0]) * self.rate)
            near = np.asarray(depth[index], np.float64)
            near = np.where(np.isfinite(near) & (near >= 0.0), near, np.inf)
            frame = round(float(scene.time[env]) * self.rate)
            down = frames.rotate(back, np.array([0.0, 0.0, -1.0]))
            cover = rain_cover(float(rates[index]), view, near, motion, down, settings.seed + int(env), frame)
            around = sky_irradiance(scene.scenes[scene.scene_of_env[env]].sky, 1.0).reshape(3) / np.pi
            made[index] = with_streaks(made[index], cover, around)
        return made

    def _settings_in(self, scene: Any, envs: ArrayIndex) -> list[tuple[Realism, ArrayBool]]:
        """Return settings, and which cameras they are for: with splats before the camera, depth of field is gathered."""
        every = np.ones(len(envs), bool)
        lens = self.settings.depth_of_field
        if lens is None or _gathers(self.settings) or not any(one.splats for one in getattr(scene, "scenes", ())):
            return [(self.settings, every)]
        gather = self.settings.variant(depth_of_field=replace(lens, method="gather"))
        splats = np.array([bool(one.splats) for one in scene.scenes])[scene.scene_of_env[envs]]
        if splats.all() or not splats.any():
            return [(gather if splats.any() else self.settings, every)]
        return [(self.settings, ~splats), (gather, splats)]

    def _colors(self, trace: Trace, past: tuple[Array, Array], scene: Any, settings: Realism) -> ArrayF32:
        blur, count = settings.motion_blur, settings.samples
        ages = exposure_ages(blur.percent if blur is not None else 0.0, count)

        def one(number: int) -> ArrayF32:
            with scene_before(scene, float(ages[number]) / self.rate):
                return self._once(trace, past, float(ages[number]), self._table_of(number, settings), ("rgb",), scene)["rgb"]

        return averaged(one, range(count))

    def _once(
        self, trace: Trace, past: tuple[Array, Array], age: float, table: RayTable, names: Sequence[str], scene: Any = None
    ) -> Channels:
        """Return one image whose last row is exposed at an age; the scene is that of the age."""
        rolling = self.settings.rolling_shutter
        if rolling is None:
            position, attitude = poses_at(np.array([age]), *past)
            return trace(table, position[:, 0], attitude[:, 0], names, {})
        ages = row_ages(self.table.height, rolling.readout)
        rows = poses_at(age + ages, *past)
        side = self._on_its_side(table)

        def part_of(part: slice, rays: RayTable) -> Channels:
            columns = {"column_position": rows[0][:, part], "column_attitude": rows[1][:, part]}
            return trace(rays, rows[0][:, -1], rows[1][:, -1], names, columns)

        if not moves(scene):
            return upright(part_of(slice(None), side))
        # Splats are projected through the lens of the whole image: it is rendered whole for each of fewer strips.
        whole = any(one.splats for one in scene.scenes)
        taken: list[Channels] = []
        for part in strips(self.table.height, _STRIPS_OF_SPLATS) if whole else strips(self.table.height):
            with scene_before(scene, float(ages[part].mean()) / self.rate):
                if whole:
                    taken.append({name: array[:, :, part] for name, array in part_of(slice(None), side).items()})
                else:
                    taken.append(part_of(part, strip_of(side, part)))
        return upright({name: np.concatenate([one[name] for one in taken], axis=2) for name in names})

    # ---- tables -----------------------------------------------------------------------------------------------------

    @cached_property
    def _lens(self) -> ThinLens:
        assert self.settings.depth_of_field is not None
        return ThinLens.of(self.settings.depth_of_field, float(getattr(self.projection, "fy", 1.0)), self.table.height)

    @cached_property
    def _tables(self) -> dict[int, RayTable]:
        return {}

    @cached_property
    def _sides(self) -> dict[int, tuple[RayTable, RayTable]]:
        return {}

    @property
    def _keeps_tables(self) -> bool:
        return self.table.height * self.table.width * self.settings.samples <= _TABLE_PIXELS_MAX

    def _table_of(self, number: int, settings: Realism) -> RayTable:
        """Rays of one of the exposures: through its own point of the lens, where there is one."""
        lens = settings.depth_of_field
        if lens is None or lens.method != "lens":
            return self.table
        if number in self._tables:
            return self._tables[number]
        made = lens_table(self.table, self._lens, aperture_points(self.settings.samples)[number])
        if self._keeps_tables:
            self._tables[number] = made
        return made

    def _on_its_side(self, table: RayTable) -> RayTable:
        found = self._sides.get(id(table))
        if found is not None and found[0] is table:
            return found[1]
        made = rows_as_columns(table)
        if self._keeps_tables or table is self.table:
            self._sides[id(table)] = (table, made)
        return made

    # ---- the image --------------------------------------------------------------------------------------------------

    def develop(self, linear: ArrayF32, env: ArrayLike | None = None, draw: Draw | None = None) -> ArrayAny:
        """Return images from the light behind the lens (c, H, W, 3); exposure goes on from each environment's image before.

        Args:
            linear: (c, H, W, 3), linear radiance.
            env: Environment of each image, (c,); None: 0, 1, 2, ...
            draw: Random numbers of the noise; None: none.
        """
        envs = np.arange(len(linear)) if env is None else np.asarray(env, np.intp)
        self.state.grow(envs)
        stops = self.state.stops[envs]
        image = develop(linear, self.settings, self.optics, stops, 1.0 / self.rate, draw)
        self.state.stops[envs] = stops
        return image


def _rates(scene: Any, envs: ArrayIndex) -> Array:
    """Return the rate of rain in each camera's environment, (c,) [mm/h]."""
    if not hasattr(scene, "scene_of_env"):
        return np.zeros(len(envs))
    return np.array([one.rain.rate for one in scene.scenes])[scene.scene_of_env[envs]]


def _gathers(settings: Realism) -> bool:
    return settings.depth_of_field is not None and settings.depth_of_field.method == "gather"
