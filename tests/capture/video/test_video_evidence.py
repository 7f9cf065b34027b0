"""The page's evidence against rooms in closed form: the map from above, and depth of splats against triangulated points."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.capture.place_building import room_capture, room_splats

from airworthy.capture import CaptureImages
from airworthy.capture.record import SourceFrame
from airworthy.capture.video.evidence import coverage_map, depth_against_leftovers
from airworthy.core import frames
from airworthy.core.arrays import Array

HALF_TURN_ABOUT_Z = (0.0, 0.0, 1.0, 0.0)
SOURCE = SourceFrame("z", "", HALF_TURN_ABOUT_Z, (0.5, -0.25, 1.0), 2.0)
"""A reconstruction that is half as large as its place, turned round and moved."""
NONE, FEW, MANY = (52, 58, 68), (178, 96, 60), (64, 140, 190)
"""Colours of the map: seen by none, by 1 or 2, by 12 pictures and more."""


def in_reconstruction(place: Array) -> Array:
    """Return points (n, 3) of the place as `SOURCE`'s reconstruction has them."""
    return np.asarray(frames.rotate_inverse(np.array(HALF_TURN_ABOUT_Z), place - np.array(SOURCE.translation)) / SOURCE.scale)


def walk_along_x(count: int) -> CaptureImages:
    position = np.column_stack((np.linspace(-1.0, 1.0, count), np.zeros(count), np.ones(count)))
    pixels = tuple(np.zeros((4, 6, 3), np.uint8) for _ in range(count))
    attitude = np.tile((0.0, 0.0, 0.0, 1.0), (count, 1))
    return CaptureImages(pixels, np.tile((5.0, 5.0, 3.0, 2.0), (count, 1)), position, attitude, metric=True, source=SOURCE)


def test_the_map_has_x_to_the_right_and_y_up() -> None:
    """At the upper right what 12 pictures see, at the lower left what one sees; the camera's way is level, in the middle."""
    corner = np.random.default_rng(0).uniform(0.0, 0.4, (200, 3))
    upper_right, lower_left = corner + np.array([1.6, 1.6, 0.0]), corner - np.array([2.0, 2.0, 0.0])
    seen = np.concatenate([np.repeat(upper_right, 12, axis=0), lower_left])
    picture = np.concatenate([np.tile(np.arange(12), 200), np.zeros(200, int)])
    shown = coverage_map(walk_along_x(12), {"position": in_reconstruction(seen), "picture": picture})
    assert shown is not None
    height, width, _ = shown.shape

    def has(part: Array, color: tuple[int, int, int]) -> bool:
        return bool((part == color).all(axis=-1).any())

    upper, lower = shown[: height // 2], shown[height // 2 :]
    assert has(upper[:, width // 2 :], MANY)
    assert not has(upper[:, : width // 2], MANY)
    assert not has(lower, MANY)
    assert has(lower[:, : width // 2], FEW)
    assert not has(lower[:, width // 2 :], FEW)
    assert not has(upper, FEW)
    rows, columns = np.nonzero((shown == 255).all(axis=-1))
    assert abs(rows.mean() / height - 0.5) < 0.03
    assert np.ptp(rows) < 0.02 * height
    assert 0.2 < columns.min() / width < columns.max() / width < 0.8
    assert coverage_map(walk_along_x(2), {}) is None


def test_depth_is_held_against_points_in_the_place_s_own_metres() -> None:
    """Points of the room's surfaces: splats have them where they are."""
    splats = room_splats()
    images = replace(room_capture(splats, 20), source=SOURCE)
    names = [f"{name}.jpg" for name in images.names]
    images = replace(images, names=tuple(names))
    points = splats.position[::5].astype(np.float64)
    rows: dict[str, list[Array]] = {"picture": [], "position": [], "depth": []}
    for k in range(len(images)):
        eye = frames.rotate_inverse(images.attitude[k], points - images.position[k])
        near = (eye[:, 2] > 0.3) & (np.abs(eye[:, :2]) < 0.4 * eye[:, 2:]).all(axis=1) & ~hidden(images.position[k], points)
        rows["picture"].append(np.full(int(near.sum()), k))
        rows["position"].append(in_reconstruction(points[near]))
        rows["depth"].append(eye[near, 2] / SOURCE.scale)
    leftovers = {name: np.concatenate(parts) for name, parts in rows.items()}
    found = depth_against_leftovers(splats, images, leftovers, names)
    assert found["points"] > 500
    # A pixel is 1 / 55 of the depth wide, and most surfaces are seen at up to 60 degrees aslant.
    assert found["median_percent"] < 100.0 / 55.0 * np.tan(np.pi / 3.0)
    assert found["within_5_percent"] > 75.0
    shifted = {**leftovers, "depth": 1.25 * leftovers["depth"]}
    assert depth_against_leftovers(splats, images, shifted, names)["median_percent"] == pytest.approx(20.0, abs=2.5)
    assert depth_against_leftovers(splats, images, {}, names) == {"points": 0}


def hidden(eye: Array, points: Array) -> Array:
    """Tell which points (n, 3) lie behind the room's pillar, or on it, as a place sees them."""
    from tests.capture.place_building import PILLAR

    way = points - eye
    with np.errstate(divide="ignore", invalid="ignore"):
        near, far = (np.sort([(corner - eye) / way for corner in PILLAR], axis=0)[k] for k in (0, 1))
    first, last = near.max(axis=1), far.min(axis=1)
    return np.asarray((first < last) & (last > 0.0) & (first < 0.999))
