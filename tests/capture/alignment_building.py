"""Captures that are made up: a walk around a marker in a room, seen by exact cameras, in a frame and unit of its own."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from airworthy.capture import CaptureImages
from airworthy.capture.alignment.markers import marker_corners
from airworthy.capture.alignment.similarity import Similarity
from airworthy.core import frames
from airworthy.scenes.viewpoints import look_at

SIDE = 0.2
LENS = np.array([700.0, 702.0, 480.0, 270.0])


@dataclass(frozen=True, eq=False)
class Walk:
    """A capture, and what is true of it."""

    images: CaptureImages
    truth: Similarity
    """From its frame to the place."""
    position: np.ndarray
    attitude: np.ndarray
    """Of the cameras in the place."""

    def seen(self, points: np.ndarray) -> np.ndarray:
        """Pixels (n, k, 2) of points (k, 3) of the place, or (n, k, 3)."""
        eye = frames.rotate_inverse(self.attitude[:, None], points - self.position[:, None])
        return eye[..., :2] / eye[..., 2:] * LENS[:2] + LENS[2:]

    def corners(
        self, noise: float = 0.0, side: float = SIDE, at: object = (0.0, 0.0, 0.0), turn: object = frames.IDENTITY
    ) -> dict:
        """Corners of a marker by the number of the image."""
        rng = np.random.default_rng(7)
        world = frames.rotate(turn, marker_corners(side)) + np.asarray(at)
        found = self.seen(world)
        return dict(enumerate(found + noise * rng.normal(size=found.shape)))


def walk(count: int = 24, seed: int = 0, points: np.ndarray | None = None, poses: float = 0.0) -> Walk:
    """Cameras 1 to 3 m from the marker and 1.2 to 1.8 m high, all around, looking at about the marker.

    Args:
        count: Of images.
        seed: Of everything.
        points: Of the place, for the sparse cloud.
        poses: Standard deviation of turns that poses have for error [rad].
    """
    rng = np.random.default_rng(seed)
    turn = 2.0 * np.pi * (np.arange(count) + rng.uniform(0.0, 1.0, count)) / count
    away = rng.uniform(0.8, 2.6, count)
    position = np.stack((away * np.cos(turn), away * np.sin(turn), rng.uniform(1.2, 1.8, count)), axis=-1)
    attitude = np.stack([look_at(place, rng.normal(0.0, 0.2, 3)) for place in position])
    truth = Similarity(frames.normalize(rng.normal(size=4)), rng.uniform(-2.0, 2.0, 3), float(rng.uniform(0.3, 4.0)))
    back, wrong = truth.inverse, frames.from_rotation_vector(poses * rng.normal(size=(count, 3)))
    images = CaptureImages(
        (np.zeros((1, 1, 3), np.uint8),) * count, np.tile(LENS, (count, 1)), back.points(position),
        frames.multiply(back.rotation, frames.multiply(attitude, wrong)),
        points=None if points is None else back.points(points),
    )  # fmt: skip
    return Walk(images, truth, position, attitude)


def hall_points(seed: int = 0, noise: float = 0.004) -> np.ndarray:
    """Points (2000, 3) of a floor, a table of 1.5 m by 1 m, and a wall."""
    rng = np.random.default_rng(seed)
    floor = np.column_stack((rng.uniform(-4.0, 4.0, (1000, 2)), np.zeros(1000)))
    table = np.column_stack((rng.uniform(1.0, 2.5, 500), rng.uniform(-1.0, 0.0, 500), np.full(500, 0.75)))
    wall = np.column_stack((rng.uniform(-4.0, 4.0, 500), np.full(500, 4.0), rng.uniform(0.0, 3.0, 500)))
    return np.concatenate((floor, table, wall)) + noise * rng.normal(size=(2000, 3))
