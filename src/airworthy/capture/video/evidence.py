"""What a place from a film stands on, in numbers and pictures: depth against triangulated points, and coverage from above."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from airworthy.capture.alignment.pose_spread import PoseSpread, pose_spread
from airworthy.capture.record import CaptureImages
from airworthy.capture.video.shutter import NO_TEST, RollingShutterTest, rolling_shutter
from airworthy.core import frames as rotations
from airworthy.core.arrays import Array, ArrayAny, ArrayU8
from airworthy.optics.projections import Pinhole
from airworthy.rendering import render
from airworthy.scenes import Region, Scene, SceneBatch
from airworthy.scenes.record import SplatPlacement
from airworthy.scenes.splats import Splats

__all__ = ["coverage_map", "depth_against_leftovers", "poses_by_leftovers", "read_leftovers", "shutter_of"]

_VIEWS = 8
"""Pictures in which depth is compared."""
_TOP_PX = 420
_HUES = np.array([[52, 58, 68], [178, 96, 60], [214, 170, 70], [120, 178, 98], [64, 140, 190]], np.uint8)
"""Seen by none, 1 to 2, 3 to 5, 6 to 11, 12 and more pictures."""
_STEPS = (1, 3, 6, 12)


def read_leftovers(path: str | Path) -> dict[str, Array]:
    """Return the arrays of leftovers.npz; empty where there is none.

    Args:
        path: Of the file.
    """
    if not Path(path).is_file():
        return {}
    with np.load(path, allow_pickle=False) as held:
        return {name: held[name] for name in held.files}


def shutter_of(poses: Mapping[str, Any]) -> RollingShutterTest:
    """Return the test for a rolling shutter of a reconstruction.

    Args:
        poses: Of reconstruction.json.
    """
    found = poses["shutter"]
    # Folders of before have sums of squares, by which it is short.
    return rolling_shutter(**found) if found and "costs" in found else NO_TEST


def poses_by_leftovers(
    images: CaptureImages, leftovers: Mapping[str, ArrayAny], names: Sequence[str], loss: float
) -> PoseSpread | None:
    """Return how sure the poses of a reconstruction are; None where its observations do not tell.

    Args:
        images: With a pose, in any frame.
        leftovers: Of the reconstruction.
        names: Of the reconstruction's pictures, whose places number them.
        loss: Of Cauchy, under which it was adjusted [px].
    """
    if not leftovers:
        return None
    own = {Path(name).name: k for k, name in enumerate(images.names)}
    which = np.array([own.get(name, -1) for name in names])[leftovers["picture"]]
    seen, source = which >= 0, images.source
    points = source.scale * rotations.rotate(np.array(source.rotation), leftovers["position"]) + np.array(source.translation)
    return pose_spread(images, which[seen], points[seen], leftovers["leftover"][seen], loss)


def depth_against_leftovers(
    splats: Splats, images: CaptureImages, leftovers: Mapping[str, ArrayAny], names: list[str]
) -> dict[str, Any]:
    """Return how far the depth of splats is from that of triangulated points, in shares of the depth.

    Args:
        splats: In the frame of the images.
        images: Those they were trained from.
        leftovers: Of the reconstruction; its depth is in that one's unit.
        names: Of the reconstruction's pictures, whose places number them.
    """
    if not leftovers or not len(images):
        return {"points": 0}
    scale = images.source.scale
    number = {name: k for k, name in enumerate(names)}
    some = np.unique(np.linspace(0, len(images) - 1, min(_VIEWS, len(images))).astype(int))
    scene = Scene("trained", clouds={"splats": splats}, splats=(SplatPlacement("splats"),), lights=(), bounds=_around(images))
    batch = SceneBatch(scene)
    shares: list[Array] = []
    for k in some:
        picture = number.get(Path(images.names[k]).name)
        rows = np.flatnonzero(leftovers["picture"] == (-1 if picture is None else picture))
        if not len(rows):
            continue
        width, height = images.sizes[k]
        fx, fy, cx, cy = map(float, images.intrinsics[k])
        lens = Pinhole(int(width), int(height), fx, fy, cx, cy)
        where, turn = images.position[k : k + 1], images.attitude[k : k + 1]
        env = np.zeros(1, np.int32)
        depth = render(batch, lens.rays(), where, turn, env, ("splat_depth",), projection=lens)["splat_depth"][0]
        place = _places(images, k, leftovers["position"][rows])
        inside = (place >= 0).all(axis=1) & (place < (width, height)).all(axis=1)
        seen = depth[place[inside, 1], place[inside, 0]]
        true = scale * leftovers["depth"][rows][inside]
        good = np.isfinite(seen) & (true > 0.0)
        shares.append(np.abs(seen[good] / true[good] - 1.0))
    found = np.concatenate(shares) if shares else np.zeros(0)
    if not len(found):
        return {"points": 0}
    return {
        "points": len(found),
        "median_percent": 100.0 * float(np.median(found)),
        "within_5_percent": 100.0 * float(np.mean(found < 0.05)),
    }


def _places(images: CaptureImages, k: int, points: Array) -> ArrayAny:
    """Pixels (n, 2) of points of the reconstruction in a straight image; negative behind the camera."""
    source = images.source
    turn = np.array(source.rotation)
    world = source.scale * rotations.rotate(turn, points) + np.array(source.translation)
    eye = rotations.rotate_inverse(images.attitude[k], world - images.position[k])
    fx, fy, cx, cy = images.intrinsics[k]
    with np.errstate(all="ignore"):
        flat = np.stack((fx * eye[:, 0] / eye[:, 2] + cx, fy * eye[:, 1] / eye[:, 2] + cy), axis=1)
    good = np.isfinite(flat).all(axis=1) & (eye[:, 2] > 0.0) & (np.abs(flat) < 1e6).all(axis=1)
    return np.where(good[:, None], np.floor(np.where(good[:, None], flat, 0.0)), -1).astype(np.int64)


def _around(images: CaptureImages) -> Region:
    (a, b, c), (d, e, f) = images.position.min(axis=0) - 1e3, images.position.max(axis=0) + 1e3
    return Region((float(a), float(b), float(c)), (float(d), float(e), float(f)))


def coverage_map(images: CaptureImages, leftovers: Mapping[str, ArrayAny]) -> ArrayU8 | None:
    """Return the place from above: cells by how many pictures see points in them, and the way of the camera in white.

    Args:
        images: The capture.
        leftovers: Of the reconstruction.
    """
    if not leftovers:
        return None
    source = images.source
    points = source.scale * rotations.rotate(np.array(source.rotation), leftovers["position"]) + np.array(source.translation)
    flat, way = points[:, :2], images.position[:, :2]
    # A point far out of a window would leave the room a dot.
    low, high = np.percentile(np.vstack((flat, np.repeat(way, 5, axis=0))), (2.0, 98.0), axis=0)
    low, high = np.minimum(low, way.min(axis=0)), np.maximum(high, way.max(axis=0))
    span = float((high - low).max()) * 1.05 or 1.0
    cells = 70
    size = np.maximum(((high - low) / span * cells).astype(int), 1) + 1
    at = ((flat - low) / span * cells).astype(int)
    inside = (at >= 0).all(axis=1) & (at < size).all(axis=1)
    keys = np.unique(np.column_stack((at[inside], leftovers["picture"][inside])), axis=0)
    seen = np.zeros(size, int)
    np.add.at(seen, (keys[:, 0], keys[:, 1]), 1)
    picture = _HUES[np.digitize(seen, _STEPS)]
    scale = max(1, _TOP_PX // int(size.max()))
    large = np.kron(picture, np.ones((scale, scale, 1), np.uint8))
    for x, y in ((way - low) / span * cells * scale).astype(int):
        large[max(x - 1, 0) : x + 2, max(y - 1, 0) : y + 2] = 255
    # x to the right, y up.
    return np.ascontiguousarray(large.swapaxes(0, 1)[::-1])
