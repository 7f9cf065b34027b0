"""What pilots see and believe: the depth camera, its errors, errors of odometry; and cameras that nobody needs any more."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from airworthy.benchmarks.navigation.config import NavigationConfig
from airworthy.core.arrays import Array, ArrayBool, ArrayIndex, ArrayInt, ArrayLike
from airworthy.core.native_kernel import thread_limit
from airworthy.pilots.pilot import Observation
from airworthy.planners.common.depth_input import Odometry, OdometryErrors
from airworthy.planners.common.interface import MapSettings, Mission
from airworthy.planners.mapping.boxes import CAMERA_OFFSET, mapping_camera, read_pixels
from airworthy.planners.mapping.local import LocalMaps
from airworthy.sensors.devices import Device
from airworthy.sensors.mounting import Mount
from airworthy.sensors.noise import RangeLimits, RangeNoise
from airworthy.simulation import MountedSensors

__all__ = ["DEPTH", "ActiveSensors", "Sensed", "depth_camera", "depth_maps", "odometry_of", "upright"]

DEPTH = "depth"
"""Name under which the camera is mounted: a pilot reads it as "sensor:depth"."""
RANGE_MAX = 5.0
"""Farther returns are none [m]."""
CAMERA_RATE = {"full": 30.0, "fast": 20.0}
"""Images per second by mode, where no map says otherwise [Hz]."""


def depth_camera(config: NavigationConfig, settings: MapSettings | None) -> Device:
    """Return the depth camera of a run.

    Args:
        config: Its mode and its errors.
        settings: Of the maps that it fills: in mode "fast" it has the pixels that they read, when they read them. None: a
            pilot looks at the images itself.
    """
    perturb, whole = config.perturb, mapping_camera(config.sensing)
    thinned = settings is not None and config.sensing == "fast"
    noise = RangeNoise(multiplier=perturb.depth_noise, dropout=perturb.depth_dropout)
    return Device(
        DEPTH,
        "depth_camera",
        read_pixels(whole, settings) if thinned and settings is not None else whole,
        limits=RangeLimits(maximum=RANGE_MAX, near=0.0, far=0.0),
        noise=noise,
        noise_enabled=noise.any,
        mount=Mount(CAMERA_OFFSET),
        rate=settings.rate if thinned and settings is not None else CAMERA_RATE[config.sensing],
        latency=perturb.latency,
        channels=("depth",),
        summary="the depth camera of the benchmark; 0 where nothing returns",
        source="specification of the planners, section 1.1",
    )


def depth_maps(mission: Mission, settings: MapSettings, config: NavigationConfig) -> LocalMaps:
    """Return maps that it fills.

    Args:
        mission: Of the flights, with the areas that maps cover.
        settings: Cells and growth of the maps.
        config: Says which camera fills them.
    """
    return LocalMaps(settings, mission, mapping_camera(config.sensing), threads=thread_limit())


def odometry_of(config: NavigationConfig) -> Odometry:
    """Return errors of state estimation in a run."""
    return Odometry(drift=config.perturb.drift)


class ActiveSensors(MountedSensors):
    """Sensors of which only those are sampled that somebody still needs: a flight that is decided sees nothing more."""

    watching: ArrayBool | None = None
    """(env,); None: all."""

    def _take(self, post: Any, ids: ArrayIndex, step: ArrayInt) -> None:
        if self.watching is not None:
            kept = self.watching[ids]
            ids, step = ids[kept], step[kept]
        if ids.size:
            super()._take(post, ids, step)


class Sensed:
    """Observations as a pilot gets them, and commands as they act, when position is known with an error only.

    Args:
        odometry: Errors.
        seed: Of the run.
        flight: Numbers of the flights, (n,).
        level: Of the pilot's commands.
    """

    def __init__(self, odometry: Odometry, seed: int, flight: ArrayInt, level: str):
        self._errors = OdometryErrors(odometry, seed, flight)
        self._ideal = odometry.ideal
        # Levels whose command begins with a place in the world: it is where the pilot takes the vehicle to be.
        self._places = level.startswith(("tracking", "position", "pose"))
        self._off = np.zeros((len(flight), 3))

    def observation(self, true: Observation) -> Observation:
        """Return what the pilot is given."""
        if self._ideal:
            return true
        self._off, slip = self._errors.at(np.asarray(true.time, np.float64))
        fields = dict(true.fields)
        for name, error in (("position", self._off), ("velocity", slip)):
            if name in fields:
                fields[name] = fields[name] + error
        if "height" in fields:
            fields["height"] = fields["height"] + self._off[:, 2].reshape(fields["height"].shape)
        samples = {name: replace(sample, position=sample.position + self._off) for name, sample in true.samples.items()}
        return Observation(true.time, fields, samples)

    def command(self, given: Array) -> Array:
        """Return the command as it acts on the true state."""
        if self._ideal or not self._places:
            return given
        acting = np.array(given, np.float64)
        acting[:, :3] -= self._off
        return acting


def upright(attitude: ArrayLike) -> Array:
    """Return the cosine of the tilt of quaternions x, y, z, w, (n,)."""
    x, y = (np.asarray(attitude, np.float64)[:, k] for k in (0, 1))
    return np.asarray(1.0 - 2.0 * (x * x + y * y))
