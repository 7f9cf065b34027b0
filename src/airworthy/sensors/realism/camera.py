"""A camera with a lens, a shutter and a chip: which rays make an image, and what becomes of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from airworthy.core.errors import AirworthyError
from airworthy.geometry import RayTable
from airworthy.sensors.noise import Draw
from airworthy.sensors.projections import Projection
from airworthy.sensors.realism.chain import Optics, develop
from airworthy.sensors.realism.focus import ThinLens, aperture_points, gathered, lens_table
from airworthy.sensors.realism.settings import Realism
from airworthy.sensors.realism.shutter import averaged, exposure_ages, poses_at, row_ages, rows_as_columns, upright
from airworthy.sensors.realism.state import CameraState

__all__ = ["RealCamera", "Trace"]

Channels = dict[str, NDArray[Any]]
Floats = NDArray[np.float64]
Trace = Callable[[RayTable, Floats, Floats, Sequence[str], dict[str, Any]], Channels]
"""(table, position (c, 3), optical attitude (c, 4), channels, poses per column) -> channels."""

_TABLE_PIXELS_MAX = 1 << 22
"""Most pixels of all lens tables together that are kept; larger ones are made anew for each image."""


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
        """Channels of one image per camera; "rgb" is what the lens lets through, before `develop`.

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
        if "depth" not in names and any(_gathers(kind) for kind, _ in kinds):
            names.append("depth")
        out = self._once(trace, past, 0.0, self.table, names) if names else {}
        images = []
        for kind, _ in kinds:
            image = out["rgb"] if kind.samples == 1 else self._colors(trace, past, scene, kind)
            lens = kind.depth_of_field
            images.append(gathered(image, out["depth"], self._lens, lens.samples) if lens and _gathers(kind) else image)
        if kinds:
            out["rgb"] = images[0] if len(kinds) == 1 else np.where(kinds[0][1][:, None, None, None], *images)
        self.state.remember(envs, where, turned)
        return {name: out[name] for name in channels}

    def _settings_in(self, scene: Any, envs: NDArray[np.intp]) -> list[tuple[Realism, NDArray[np.bool_]]]:
        """Settings, and which cameras they are for: with splats before the camera, depth of field is gathered."""
        every = np.ones(len(envs), bool)
        lens = self.settings.depth_of_field
        if lens is None or _gathers(self.settings) or not any(one.splats for one in getattr(scene, "scenes", ())):
            return [(self.settings, every)]
        gather = self.settings.variant(depth_of_field=replace(lens, method="gather"))
        splats = np.array([bool(one.splats) for one in scene.scenes])[scene.scene_of_env[envs]]
        if splats.all() or not splats.any():
            return [(gather if splats.any() else self.settings, every)]
        return [(self.settings, ~splats), (gather, splats)]

    def _colors(self, trace: Trace, past: tuple[Floats, Floats], scene: Any, settings: Realism) -> NDArray[np.float32]:
        blur, count = settings.motion_blur, settings.samples
        ages = exposure_ages(blur.percent if blur is not None else 0.0, count)

        def one(number: int) -> NDArray[np.float32]:
            with self._scene_before(scene, float(ages[number])):
                return self._once(trace, past, float(ages[number]), self._table_of(number, settings), ("rgb",))["rgb"]

        return averaged(one, range(count))

    def _once(self, trace: Trace, past: tuple[Floats, Floats], age: float, table: RayTable, names: Sequence[str]) -> Channels:
        """One image whose last row is exposed at an age."""
        rolling = self.settings.rolling_shutter
        if rolling is None:
            position, attitude = poses_at(np.array([age]), *past)
            return trace(table, position[:, 0], attitude[:, 0], names, {})
        rows = poses_at(age + row_ages(self.table.height, rolling.readout), *past)
        columns = {"column_position": rows[0], "column_attitude": rows[1]}
        return upright(trace(self._on_its_side(table), rows[0][:, -1], rows[1][:, -1], names, columns))

    @contextmanager
    def _scene_before(self, scene: Any, age: float) -> Iterator[None]:
        """The scene's actors where they were at an age."""
        if scene is None or age == 0.0 or not any(one.actors for one in getattr(scene, "scenes", ())):
            yield
            return
        now = scene.time.copy()
        scene.advance(np.maximum(now - age / self.rate, 0.0))
        try:
            yield
        finally:
            scene.advance(now)

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

    def develop(self, linear: NDArray[np.float32], env: ArrayLike | None = None, draw: Draw | None = None) -> NDArray[Any]:
        """Images from the light behind the lens (c, H, W, 3); exposure goes on from each environment's image before."""
        envs = np.arange(len(linear)) if env is None else np.asarray(env, np.intp)
        self.state.grow(envs)
        stops = self.state.stops[envs]
        image = develop(linear, self.settings, self.optics, stops, 1.0 / self.rate, draw)
        self.state.stops[envs] = stops
        return image


def _gathers(settings: Realism) -> bool:
    return settings.depth_of_field is not None and settings.depth_of_field.method == "gather"
