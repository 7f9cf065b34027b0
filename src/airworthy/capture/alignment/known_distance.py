"""A distance that somebody measured between two points, and the scale that follows from it.

A point is given by where it is seen, "IMAGE:U,V" in two or more images joined by "+", in pixels of the image's own file, lens
and all, or by its coordinates "X,Y,Z" in the frame of the capture, as the viewer prints them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from airworthy.capture.alignment.marker_fit import NORMAL_95
from airworthy.capture.alignment.pose_spread import PoseSpread, pixel_slopes
from airworthy.capture.record import CaptureImages
from airworthy.core import frames
from airworthy.core.arrays import Array
from airworthy.core.errors import AirworthyError, unknown_name

__all__ = ["KnownDistance", "PickedPoint", "check_picks", "measured_scale", "picked_point"]

PICK_NOISE = 1.0
"""Standard deviation of a picked pixel along each axis [px]; ours: a careful click in a sharp picture."""
TAPE_NOISE = 0.002
"""Standard deviation of a distance measured by hand [m]; ours: a tape's divisions, and where its ends are held."""
_OFF_MAX = 8.0
"""Rays of one point that miss each other by more are those of two [px]."""
_METRES = (0.001, 10_000.0)
"""What somebody can measure and film [m]."""
_FARTHEST = 1e6
"""Coordinate [unit of the capture], whose walk is some units long."""
_STEPS = 20
_PARALLAX = np.radians(1.0)


@dataclass(frozen=True, eq=False)
class PickedPoint:
    """A point that somebody picked."""

    position: Array
    """(3,) frame of the capture."""
    covariance: Array
    """(3, 3)."""
    error: float
    """Root mean square distance from the picked pixels [px]; 0 of one that was given by its coordinates."""
    words: str
    """As it was given."""
    bend: Array | None = None
    """(3, q) how far it moves by each independent way in which poses may be off, of one standard deviation; None: poses are
    taken as exact, or it was given by its coordinates."""


@dataclass(frozen=True, eq=False)
class KnownDistance:
    """A scale by a distance."""

    ends: tuple[PickedPoint, PickedPoint]
    metres: float
    length: float
    """In units of the capture."""
    scale: float
    """Metres per unit."""
    scale_half: float
    """Half of its 95 % interval, as a share of it."""
    bend: Array | None = None
    """(q,) by what share it is off by each independent way in which poses may be off; None: these are taken as exact."""


def picked_point(images: CaptureImages, words: str, poses: PoseSpread | None = None) -> PickedPoint:
    """Return the point that "IMAGE:U,V+IMAGE:U,V" (pixels of the files, from the upper left corner) or "X,Y,Z" names.

    Args:
        images: The capture.
        words: Where it is.
        poses: How sure the images' are; None: they are taken as exact.

    Raises:
        AirworthyError: It is neither, there is no such image, a pixel is not in it, or its rays do not meet.
    """
    picks = _understood(words)
    if ":" not in words:
        return _given(images, words, picks[0][1])
    number = {name: k for k, name in enumerate(images.names)}
    for name, _ in picks:
        if name not in number:
            raise unknown_name("image", name, number)
    which, pixels = np.array([number[name] for name, _ in picks]), np.array([place for _, place in picks])
    return _triangulated(images, which, pixels, words, poses)


def check_picks(sizes: Mapping[str, Sequence[int]], words: str) -> None:
    """Refuse a point that is picked in images that there are not, or beside them.

    Args:
        sizes: Of each image by its name, width and height [px].
        words: As `picked_point` takes it.

    Raises:
        AirworthyError: There is no such image, or a pixel is not in it.
    """
    for name, place in _understood(words):
        if name and name not in sizes:
            raise unknown_name("image", name, sizes)
        if name:
            _check_inside(name, place, sizes[name], words)


def _check_inside(name: str, place: Sequence[float], size: Sequence[int], words: str) -> None:
    (u, v), (width, height) = place, size
    if not (0.0 <= u <= width and 0.0 <= v <= height):
        raise AirworthyError(
            f"The pick {name}:{u:g},{v:g} of {words!r} is outside of the picture, which has {width} x {height} pixels: pick in"
            f" the file {name!r} of the capture itself, not in a larger original."
        )


def check_distance(first: str, second: str, metres: float) -> None:
    """Refuse a distance that no capture could be scaled by, before one is looked at.

    Args:
        first: A point, as `picked_point` takes it.
        second: Another.
        metres: The distance between them [m].

    Raises:
        AirworthyError: The distance is none, a point is not understood, or both are the same.
    """
    _check_metres(metres, f" between {first!r} and {second!r}")
    if sorted(_understood(first)) == sorted(_understood(second)):
        raise AirworthyError(f"The known distance of {metres:g} m is from {first!r} to the same point; expected two points.")


def measured_scale(
    images: CaptureImages, first: str, second: str, metres: float, poses: PoseSpread | None = None
) -> KnownDistance:
    """Return the metres per unit of the capture by a distance between two points.

    Args:
        images: The capture.
        first: A point, as `picked_point` takes it.
        second: Another.
        metres: The distance between them [m].
        poses: How sure the images' are: a reconstruction that bends takes distances with it. None: they are taken as exact.

    Raises:
        AirworthyError: As `picked_point`; or the points cannot be told apart, or the distance is none.
    """
    _check_metres(metres)
    a, b = picked_point(images, first, poses), picked_point(images, second, poses)
    along = b.position - a.position
    length = float(np.linalg.norm(along))
    # The error of a length is that of its ends along it.
    along = along / max(length, 1e-300)
    bent = _bent(a, b, along)
    off = float(np.sqrt(along @ (a.covariance + b.covariance) @ along + (0.0 if bent is None else bent @ bent)))
    if not length > 2.0 * off:
        raise AirworthyError(
            f"The points {first!r} and {second!r} are {length:.4g} apart, within {2.0 * off:.2g} of which picking is sure:"
            " choose points farther apart, or pick them in images from more different places."
        )
    half = NORMAL_95 * float(np.hypot(off / length, TAPE_NOISE / metres))
    return KnownDistance((a, b), metres, length, metres / length, half, None if bent is None else -bent / length)


def _check_metres(metres: float, between: str = "") -> None:
    least, most = _METRES
    if not least <= metres <= most:
        raise AirworthyError(f"The known distance{between} is {metres:g} m; expected {least:g} to {most:,.0f} m.")


def _understood(words: str) -> list[tuple[str, list[float]]]:
    """Return names of images and pixels in them; of coordinates these, beside no name."""
    if ":" not in words:
        return [("", _numbers(words, 3, words))]
    parts = [part.strip().rpartition(":") for part in words.split("+")]
    picks = [(name, _numbers(place, 2, words)) for name, _, place in parts]
    if len({name for name, _ in picks}) < 2:
        raise AirworthyError(f"The point {words!r} is picked in one image; pick it in two or more, IMAGE:U,V+IMAGE:U,V.")
    return picks


def _numbers(text: str, count: int, words: str) -> list[float]:
    try:
        values = [float(value) for value in text.split(",")]
    except ValueError:
        values = []
    if len(values) != count or not np.isfinite(values).all():
        raise AirworthyError(f"The point {words!r} is not understood; expected X,Y,Z or IMAGE:U,V+IMAGE:U,V.")
    if max(map(abs, values)) > _FARTHEST:
        raise AirworthyError(f"The point {words!r} lies at {max(values, key=abs):g}; expected numbers up to {_FARTHEST:,.0f}.")
    return values


def _given(images: CaptureImages, words: str, place: list[float]) -> PickedPoint:
    """Return a point by its coordinates: as sure as a pick in the image of the nearest camera."""
    position = np.array(place)
    away = np.linalg.norm(images.position - position, axis=-1)
    nearest = int(np.argmin(away))
    off = PICK_NOISE * max(float(away[nearest]), 1e-12) / float(images.intrinsics[nearest, 0])
    return PickedPoint(position, np.eye(3) * off**2, 0.0, words)


def _bent(a: PickedPoint, b: PickedPoint, along: Array) -> Array | None:
    """How far a distance is off by each way in which poses may be off (q,); both ends move by the same ways."""
    ends = [along @ point.bend * sign for point, sign in ((a, -1.0), (b, 1.0)) if point.bend is not None]
    return np.asarray(np.sum(ends, axis=0)) if ends else None


def _triangulated(images: CaptureImages, which: Array, pixels: Array, words: str, poses: PoseSpread | None) -> PickedPoint:
    """Least squares of the distances in the images, from the point nearest to all rays."""
    start, turn = images.position[which], frames.normalize(images.attitude[which])
    pixels, lens = _straightened(images, which, pixels, words)
    eye = np.concatenate(((pixels - lens[:, 2:]) / lens[:, :2], np.ones((len(which), 1))), axis=1)
    ray = frames.rotate(turn, eye / np.linalg.norm(eye, axis=1, keepdims=True))
    if not _wide(ray):
        raise AirworthyError(f"The point {words!r} is seen from one direction only; pick it from places farther apart.")
    across = np.eye(3) - ray[:, :, None] * ray[:, None]
    point = np.linalg.solve(across.sum(axis=0), (across @ start[..., None]).sum(axis=0)[:, 0])
    for _ in range(_STEPS):
        off, slope = _seen(point, lens, start, turn, pixels)
        step = np.linalg.lstsq(slope, -off, rcond=None)[0]
        point = point + step
        if np.linalg.norm(step) < 1e-12 * (1.0 + np.linalg.norm(point)):
            break
    off, slope = _seen(point, lens, start, turn, pixels)
    error = float(np.sqrt(2.0 * np.mean(off**2)))
    if not error < _OFF_MAX:
        raise AirworthyError(
            f"The picks of {words!r} miss each other by {error:.1f} px: they are not the same point, or a pose is wrong."
        )
    if not (frames.rotate_inverse(turn, point - start)[:, 2] > 0.0).all():
        raise AirworthyError(f"The picks of {words!r} meet behind a camera: they are not the same point, or a pose is wrong.")
    noise = max(PICK_NOISE, float(np.sqrt(off @ off / max(len(off) - 3, 1))))
    inverse = np.linalg.inv(slope.T @ slope)
    bend = None
    if poses is not None:
        by_point, by_camera = pixel_slopes(np.broadcast_to(point, start.shape), start, turn, lens)
        # Of focal lengths in pixels of the images, which may be smaller than their files.
        by_camera[..., 6] *= (lens[:, 0] / images.intrinsics[which, 0])[:, None]
        moved = np.concatenate([own @ poses.ways(int(k)) for own, k in zip(by_camera, which, strict=True)])
        bend = -inverse @ by_point.reshape(-1, 3).T @ moved
    return PickedPoint(np.asarray(point, np.float64), np.asarray(inverse * noise**2, np.float64), error, words, bend)


def _straightened(images: CaptureImages, which: Array, pixels: Array, words: str) -> tuple[Array, Array]:
    """Return where picks would be without the bending of lenses (n, 2) [px], and pinholes of the files' sizes (n, 4)."""
    if not images.cameras:
        return pixels, np.asarray(images.intrinsics[which], np.float64)
    straight, lenses = [], []
    for k, (u, v) in zip(which.tolist(), pixels.tolist(), strict=True):
        camera, name = images.cameras[k], images.names[k]
        _check_inside(name, (u, v), (camera.width, camera.height), words)
        ray = camera.rays((u, v))
        if not np.isfinite(ray).all():
            raise AirworthyError(
                f"The pick {name}:{u:g},{v:g} of {words!r} lies where the lens folds its image over: pick nearer to the middle."
            )
        lens = np.array([camera.fx, camera.fy, camera.cx, camera.cy])
        straight.append(ray * lens[:2] + lens[2:])
        lenses.append(lens)
    return np.array(straight), np.array(lenses)


def _wide(ray: Array) -> bool:
    angle = np.linalg.norm(np.cross(ray[:, None], ray[None]), axis=-1)
    return bool(angle.max() > np.sin(_PARALLAX))


def _seen(point: Array, lens: Array, start: Array, turn: Array, pixels: Array) -> tuple[Array, Array]:
    """How far a point is from its picks, (2 n,) [px], and the slopes of that, (2 n, 3)."""
    x, y, z = frames.rotate_inverse(turn, point - start).T
    zero = np.zeros_like(x)
    with np.errstate(all="ignore"):
        off = np.stack((x / z, y / z), axis=-1) * lens[:, :2] + lens[:, 2:] - pixels
        across = np.stack((1.0 / z, zero, -x / z**2), axis=-1) * lens[:, :1]
        down = np.stack((zero, 1.0 / z, -y / z**2), axis=-1) * lens[:, 1:2]
    slope = frames.rotate(turn[:, None], np.stack((across, down), axis=1))
    return np.nan_to_num(off, nan=1e6, posinf=1e6, neginf=-1e6).ravel(), np.nan_to_num(slope).reshape(-1, 3)


@dataclass(frozen=True)
class CombinedScale:
    """What several that tell a scale come to."""

    scale: float
    """Metres per unit."""
    half: float
    """Half of its 95 % interval, as a share of it."""
    widened: float
    """By how much the interval was made wider, as they differ by more than they should; 1: they do not."""


def combined_scale(found: Sequence[tuple[str, float, float]], bends: Sequence[Array | None] = ()) -> CombinedScale:
    """Return the scale by several that agree, each weighted by how sure it is.

    Where they scatter by more than their intervals say, something in these is too small: the interval grows by the root of
    chi squared over what is expected of it (Birge, 1932), as it does for what is left over of picks.

    Args:
        found: What says so, metres per unit, and half of its 95 % interval as a share.
        bends: Of each, (q,) by what share it is off by each independent way in which poses may be off, which distances of one
            reconstruction have in common: many of them are no surer of it than one. None: nothing is known; empty: of none.

    Raises:
        AirworthyError: Two of them contradict each other.
    """
    sure = min(found, key=lambda one: one[2])
    for name, scale, half in found:
        factor = scale / sure[1]
        if abs(np.log(factor)) > max(2.0 * np.hypot(half, sure[2]), 0.02):
            raise AirworthyError(
                f"The scale is {sure[1]:.4g} m per unit by {sure[0]} and {scale:.4g} by {name}, a factor of {factor:.3f}:"
                " check the marker's side on paper and the distance, and leave the wrong one out."
            )
    variance = np.array([max(half, 1e-9) / NORMAL_95 for _, _, half in found]) ** 2
    logs = np.array([np.log(scale) for _, scale, _ in found])
    together = _together(variance, bends)
    weight = (1.0 / variance) / (1.0 / variance).sum()
    mean, spread = float(weight @ logs), float(weight @ together @ weight)
    left = np.eye(len(logs)) - weight
    expected = float(np.diagonal(left @ together @ left.T) @ (1.0 / variance))
    found_square = float(np.square(logs - mean) @ (1.0 / variance))
    widened = float(np.sqrt(max(found_square / expected, 1.0))) if expected > 1e-9 else 1.0
    return CombinedScale(float(np.exp(mean)), NORMAL_95 * float(np.sqrt(spread)) * widened, widened)


def _together(variance: Array, bends: Sequence[Array | None]) -> Array:
    """Covariance of the logarithms of scales, of which bends are a part that some share."""
    result = np.diag(variance)
    for i, one in enumerate(bends):
        for j, other in enumerate(bends):
            if i != j and one is not None and other is not None:
                result[i, j] = float(one @ other)
    return result
