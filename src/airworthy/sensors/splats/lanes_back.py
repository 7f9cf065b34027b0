"""Derivatives on a CPU: from pixels to Gaussians in the image, and on to Gaussians in space and cameras."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from airworthy.sensors.splats.buffers import as_warp
from airworthy.sensors.splats.cloud import Cloud
from airworthy.sensors.splats.lanes import Arrays, Lanes
from airworthy.sensors.splats.native_text import BACK_WORDS, CHUNK, FLAGS, LEAST_ALPHA, SLOPE_ROWS, TILE
from airworthy.sensors.splats.project_back_kernel import project_back_kernel
from airworthy.sensors.splats.raster_back_kernel import raster_back_kernel
from airworthy.sensors.splats.views import Shot

_POSE_WORDS = 12


class Slopes:
    """Derivatives of a loss, summed over the groups of cameras of one call."""

    def __init__(self, cloud: Cloud):
        self.gaussians = np.zeros((len(cloud.geometry), SLOPE_ROWS, cloud.geometry.shape[-1]), np.float32)
        self.harmonics = np.zeros_like(cloud.harmonics)
        self.poses: list[NDArray[np.float64]] = []
        """Per group: position (3) and rotation matrix (9) of each camera."""
        self._sent = [as_warp(self.gaussians), as_warp(self.harmonics)]

    def add(self, engine: Lanes, shot: Shot, images: Arrays, slopes: Arrays) -> None:
        """Carry back what a loss says of the images that the engine has just rendered."""
        flags, pixels = pixel_slopes(images, slopes)
        flags |= shot.flags & FLAGS["antialiased"]
        found = self._to_records(engine, shot, flags, pixels)
        stride, count = engine.chunk_stride, len(shot.cameras)
        pose = np.zeros((count, stride, _POSE_WORDS), np.float32)
        arrays = [*engine.sent, engine.cameras, engine.order(len(self.gaussians) * 16 // CHUNK)]
        arrays += [engine.tags, engine.counts, found, *self._sent, as_warp(pose)]
        numbers = [stride, count, shot.width, shot.height, flags, shot.near, shot.dilation]
        engine.launch(project_back_kernel, len(self.gaussians) * 16 // CHUNK, arrays, numbers)
        self.poses.append(pose.astype(np.float64).sum(axis=1))

    def _to_records(self, engine: Lanes, shot: Shot, flags: int, pixels: Arrays) -> Any:
        count, stride = len(shot.cameras), engine.chunk_stride
        tiles = count * -(-shot.width // TILE) * -(-shot.height // TILE)
        take = engine.buffers.take
        partials = take("partials", engine.lists.size * BACK_WORDS, np.float32)
        found = take("record slopes", count * stride * CHUNK * BACK_WORDS, np.float32)
        nothing = take("nothing", 1, np.float32)
        given = [as_warp(pixels[name]) if name in pixels else nothing for name in ("rgb", "depth", "alpha")]
        numbers = [stride, shot.width, shot.height, engine.band_rows, engine.capacity, flags]
        for stage, tasks in enumerate((tiles, count)):
            arrays = [engine.cameras, engine.order(tasks), engine.records, engine.counts, engine.tiles, engine.lists]
            engine.launch(raster_back_kernel, tasks, [*arrays, *given, partials, found], [*numbers, stage])
        return found


def pixel_slopes(images: Arrays, slopes: Arrays) -> tuple[int, Arrays]:
    """Flags and derivatives with respect to colours, sums of weights times depths, and sums of weights.

    An expected depth is (sum of weights times depths) / (sum of weights); where nothing is seen it is infinite and its
    derivative counts for nothing.
    """
    given = {name: np.ascontiguousarray(slope, np.float32) for name, slope in slopes.items()}
    if "depth" in given:
        depth, alpha = images["depth"], images["alpha"]
        known = np.isfinite(depth) & (alpha >= LEAST_ALPHA)
        share = np.where(known, given["depth"] / np.maximum(alpha, LEAST_ALPHA), 0.0).astype(np.float32)
        given["alpha"] = given.get("alpha", np.float32(0.0)) - share * np.where(known, depth, np.float32(0.0))
        given["depth"] = share
    return sum(FLAGS[name] for name in given), given
