"""The whole camera: what a lens, a shutter, a sensor and its electronics make of a scene.

Order: aperture and shutter (sub-exposures are averaged as light), gain, chromatic aberration, vignetting, bloom and dirt, sensor,
tone curve. Auto-exposure meters the light before the gain, and its step acts from the next frame on, as in a camera.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from airworthy.core.errors import AirworthyError
from airworthy.core.random import flight_key
from airworthy.scenes.batch import SceneBatch
from airworthy.sensors.projections import Pinhole, Projection, pixel_centres
from airworthy.sensors.realism import electrons, exposure, lens, shutter
from airworthy.sensors.realism.options import Realism, preset
from airworthy.sensors.shading import Cameras, ShadingOptions, shade_channels
from airworthy.sensors.tone import to_8bit

__all__ = ["CameraChain", "Frame"]

Images = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Frame:
    """One image of c cameras."""

    radiance: Images
    """Light on the sensor before any gain, linear, (c, H, W, 3)."""
    linear: Images
    """After gain, lens and sensor; 1 is white, (c, H, W, 3)."""
    image: NDArray[np.uint8]
    """sRGB, (c, H, W, 3)."""
    ev: NDArray[np.float64]
    """Gain that this frame was taken with [EV], (c,)."""


class CameraChain:
    """c equal cameras with memory: gain and number of the frame.

    Args:
        projection: Of the cameras; chromatic aberration and depth of field expect an image around the optical axis.
        realism: The chain, or a preset's name.
        camera_count: c.
        frame_rate: Frames per second.
        keys: Random keys of the cameras (c, 4), as `core.random.flight_key` gives them; None: of seed 0 and flights 0, 1, ...
        sensor: Number that tells this camera's noise from other sensors'.

    Raises:
        AirworthyError: A count or rate is out of range, or depth of field is asked for without a field of view.
    """

    def __init__(
        self,
        projection: Projection,
        realism: Realism | str = "ideal",
        camera_count: int = 1,
        frame_rate: float = 60.0,
        keys: ArrayLike | None = None,
        sensor: int = 0,
    ) -> None:
        self.projection = projection
        self.realism = preset(realism) if isinstance(realism, str) else realism
        if camera_count < 1 or not frame_rate > 0.0:
            raise AirworthyError(f"{camera_count} cameras at {frame_rate} Hz; expected at least one, and more than 0 Hz.")
        self.period = 1.0 / frame_rate
        self.keys = flight_key(0, np.arange(camera_count)) if keys is None else np.asarray(keys, np.uint32)
        if self.keys.shape != (camera_count, 4):
            raise AirworthyError(f"Keys have shape {self.keys.shape}; expected ({camera_count}, 4), as `flight_key` gives them.")
        self.sensor = sensor
        self.ev = np.full(camera_count, np.nan)
        """Gain of auto-exposure for the next frame [EV]; NaN before the first, which is metered at once."""
        self.frame = np.zeros(camera_count, np.int64)
        """Number of the next frame."""
        self.table = projection.rays()
        self.cosine = np.clip(np.asarray(projection.unproject(pixel_centres(projection.height, projection.width)))[..., 2], 0.0, 1.0)
        self._tables = [self._sample_table(k) for k in range(self.realism.samples)]

    def _sample_table(self, sample: int) -> Any:
        """Rays of one sub-exposure."""
        table, realism = self.table, self.realism
        if realism.depth_of_field is not None:
            points = shutter.aperture_points(realism.samples)
            radius = 0.5 * shutter.aperture(realism.depth_of_field, self.vertical_fov)
            turn = shutter.pixel_turns(table.height, table.width)
            table = shutter.through_lens(table, points[sample], radius, realism.depth_of_field.focus, turn)
        return shutter.transposed(table) if realism.rolling_shutter is not None else table

    @property
    def vertical_fov(self) -> float:
        """Vertical field of view [rad].

        Raises:
            AirworthyError: The projection has none that a thin lens could have.
        """
        if isinstance(self.projection, Pinhole):
            return self.projection.vertical_fov
        raise AirworthyError("Depth of field needs a pinhole projection: a thin lens has no other.")

    def reset(self, cameras: ArrayLike | None = None) -> None:
        """Cameras as before their first frame; None: all."""
        chosen = slice(None) if cameras is None else np.asarray(cameras)
        self.ev[chosen], self.frame[chosen] = np.nan, 0

    def capture(
        self,
        batch: SceneBatch,
        position: ArrayLike,
        attitude: ArrayLike,
        next_position: ArrayLike | None = None,
        next_attitude: ArrayLike | None = None,
        env: ArrayLike | None = None,
        options: ShadingOptions = ShadingOptions(),
        *,
        ignore: ArrayLike | None = None,
        advance: Callable[[float], None] | None = None,
    ) -> Frame:
        """Take a frame.

        Args:
            batch: The scenes.
            position: When the frame begins, world [m], (c, 3).
            attitude: Camera to world, (c, 4).
            next_position: One frame period later; None: the camera stands still.
            next_attitude: One frame period later.
            env: Environment of each camera.
            options: How colours are found.
            ignore: Instance that each camera does not see.
            advance: Called with a share of the frame period before each sub-exposure, to pose what moves (`batch.advance`).
        """
        radiance = self.light(
            batch, position, attitude, next_position, next_attitude, env, options, ignore=ignore, advance=advance
        )
        return self.develop(radiance)

    def light(
        self,
        batch: SceneBatch,
        position: ArrayLike,
        attitude: ArrayLike,
        next_position: ArrayLike | None = None,
        next_attitude: ArrayLike | None = None,
        env: ArrayLike | None = None,
        options: ShadingOptions = ShadingOptions(),
        *,
        ignore: ArrayLike | None = None,
        advance: Callable[[float], None] | None = None,
    ) -> Images:
        """Light on the sensor: aperture and shutter only; arguments as `capture`."""
        p0, q0 = np.asarray(position, np.float64), np.asarray(attitude, np.float64)
        p1 = p0 if next_position is None else np.asarray(next_position, np.float64)
        q1 = q0 if next_attitude is None else np.asarray(next_attitude, np.float64)
        times = shutter.exposure_times(len(self._tables), self.realism.open_share)
        # Sub-exposures are samples of their own: no need to sample each pixel again as often.
        each = replace(options, samples=1) if len(times) >= 4 else options
        total: Images | None = None
        for table, time in zip(self._tables, times, strict=True):
            if advance is not None:
                advance(float(time))
            cameras = self._cameras(batch, table, (p0, q0, p1, q1), float(time), env, ignore)
            image = shade_channels(batch, table, cameras, ("rgb",), each)["rgb"]
            total = image if total is None else total + image
        assert total is not None
        mean = total * np.float32(1.0 / len(times))
        return np.ascontiguousarray(mean.transpose(0, 2, 1, 3)) if self.realism.rolling_shutter is not None else mean

    def _cameras(self, batch: SceneBatch, table: Any, poses: Any, time: float, env: Any, ignore: Any) -> Cameras:
        rolling = self.realism.rolling_shutter
        if rolling is None:
            where, turned = shutter.poses_between(*poses, time)
            return Cameras.of(batch, table, where, turned, env, ignore)
        shares = time + shutter.row_delays(self.projection.height, rolling.line_time, self.period)
        where, turned = shutter.poses_between(*poses, shares)
        return Cameras.of(batch, table, poses[0], poses[1], env, ignore, where, turned)

    def develop(self, radiance: Images) -> Frame:
        """What gain, lens, sensor and tone curve make of light (c, H, W, 3); advances gain and frame number."""
        realism = self.realism
        ev = np.full(len(radiance), realism.exposure)
        if realism.auto_exposure is not None:
            wanted = exposure.wanted_ev(radiance, realism.auto_exposure)
            auto = np.where(np.isnan(self.ev), wanted, self.ev)
            ev = ev + auto
            self.ev = exposure.stepped_ev(auto, wanted, self.period, realism.auto_exposure)
        gain = np.exp2(ev)
        linear = self._through_glass(radiance * gain.astype(np.float32).reshape(-1, 1, 1, 1))
        if realism.noise is not None:
            count = linear.shape[1] * linear.shape[2]
            drawn = electrons.pixel_normals(self.keys, self.frame, self.sensor, count)
            linear = electrons.expose(linear, realism.noise, drawn, gain)
        self.frame = self.frame + 1
        return Frame(radiance, linear, to_8bit(linear, curve=realism.curve), ev)

    def _through_glass(self, images: Images) -> Images:
        realism = self.realism
        if realism.chromatic_aberration is not None:
            images = lens.chromatic_shift(images, realism.chromatic_aberration.k)
        if realism.vignetting is not None:
            images = lens.vignette(images, self.cosine, realism.vignetting.strength)
        if realism.bloom is not None:
            dirt = None
            if realism.lens_dirt is not None:
                mask = lens.dirt_mask(images.shape[1], images.shape[2], realism.lens_dirt.seed)
                dirt = mask * np.float32(realism.lens_dirt.intensity)
            images = lens.bloom(images, realism.bloom.weight, realism.bloom.threshold, realism.bloom.levels, dirt)
        return images
