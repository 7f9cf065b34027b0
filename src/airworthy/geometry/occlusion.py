"""Whether one point sees another."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from airworthy.core.errors import AirworthyError
from airworthy.core.native_kernel import CPU_LANES
from airworthy.geometry.batch import GeometryBatch
from airworthy.geometry.cast import camera_rows, sensor_environments, whole_numbers
from airworthy.geometry.cast_kernel import CHANNELS, INPUTS, SEGMENTS, cast_kernel
from airworthy.geometry.hierarchy import as_warp
from airworthy.geometry.launching import Repeated, nothing, recorded
from airworthy.geometry.placement import POSITION_LIMIT

SEGMENT_MARGIN = 1e-4
"""What `occluded` leaves out at either end of a segment [m], so that the surface it ends on does not count; at most a tenth."""


def occluded(
    batch: GeometryBatch, start: ArrayLike, end: ArrayLike, env: ArrayLike | None = None, ignore: ArrayLike = -1
) -> NDArray[np.bool_]:
    """Whether anything stands between two points.

    The outermost `SEGMENT_MARGIN` of both ends does not count, so that a point may lie on a surface.

    Args:
        batch: What there is.
        start: (n, 3) world [m].
        end: (n, 3) world [m].
        env: (n,) environment of each; None: pair k is in environment k, or all are in the only one.
        ignore: (n,) or one instance number that is not seen; -1: none.

    Returns:
        (n,)

    Raises:
        AirworthyError: If a shape does not fit or a value is not finite.
    """
    first, last = np.asarray(start, np.float64), np.asarray(end, np.float64)
    if first.ndim != 2 or first.shape[1] != 3 or last.shape != first.shape:
        raise AirworthyError(f"`start` has shape {first.shape} and `end` {last.shape}; expected (n, 3) both, world, in metres.")
    if not ((np.abs(first) <= POSITION_LIMIT) & (np.abs(last) <= POSITION_LIMIT)).all():
        raise AirworthyError(f"A segment's end is not finite or beyond {POSITION_LIMIT:g} m.")
    count = len(first)
    envs, ignored = sensor_environments(env, count, batch.env_count), whole_numbers("ignore", ignore, count)
    if not count:
        return np.zeros(0, bool)
    step = last - first
    length = np.sqrt(np.sum(step * step, axis=1))
    skip = np.minimum(SEGMENT_MARGIN / np.maximum(length, 1e-12), 0.1)
    turned = np.concatenate([step, skip[:, None]], 1)
    rows = camera_rows(first[:, None], turned[:, None], envs, ignored)
    found = np.zeros(count, np.int32)
    _launch_segments(batch, rows, found)
    return found.astype(bool)


def _launch_segments(batch: GeometryBatch, rows: NDArray[np.void], found: NDArray[np.int32]) -> None:
    device, arrays = batch.device, batch.arguments()
    on_cpu, count = device == "cpu", len(rows)
    cameras, answer = as_warp(rows), as_warp(found)
    if not on_cpu:
        cameras, answer = cameras.to(device), answer.to(device)
    floats, ints = nothing(False, device), nothing(True, device)
    outputs = [ints if whole else floats for _, _, whole in CHANNELS.values()]
    outputs[list(CHANNELS).index("instance")] = answer
    inputs = [*arrays, floats, ints, cameras, ints, *outputs, count, 0, 0, SEGMENTS, 0.0]
    tasks = -(-count // CPU_LANES) if on_cpu else count
    key = ("segments", count, batch.version)
    launch = recorded(batch, key, lambda: Repeated(cast_kernel(), tasks, inputs, device, batch.threads))
    for index, array in enumerate(inputs[: len(INPUTS) + len(CHANNELS)]):
        launch.exchange(index, array)
    launch.launch()
    if not on_cpu:
        found[:] = answer.numpy()
