"""Clouds and cameras that the tests of the splat renderer share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from numpy.typing import NDArray

from airworthy.core import frames
from airworthy.scenes.splats.record import Splats

C0 = 0.28209479177387814


@dataclass(frozen=True)
class Pose:
    width: int
    height: int
    lens: NDArray[np.float64]
    position: NDArray[np.float64]
    attitude: NDArray[np.float64]


def random_cloud(rng: np.random.Generator, count: int, degree: int = 0) -> Splats:
    """Gaussians of every size, form and opacity in a cube of 6 m."""
    rotation = rng.normal(size=(count, 4))
    rotation /= np.linalg.norm(rotation, axis=1, keepdims=True)
    scale = np.exp(rng.normal(-2.0, 0.8, (count, 3)))
    colours = 0.4 * rng.normal(size=(count, (degree + 1) ** 2, 3))
    return Splats(rng.uniform(-3.0, 3.0, (count, 3)), rotation, scale, rng.uniform(0.0, 1.0, count), colours)


def random_pose(rng: np.random.Generator, most: int = 100) -> Pose:
    """A camera among them."""
    width, height = (int(x) for x in rng.integers(20, most, 2))
    lens = np.array([*rng.uniform(0.5, 1.5, 2) * width, width * rng.uniform(0.2, 0.8), height * rng.uniform(0.2, 0.8)])
    attitude = rng.normal(size=4)
    return Pose(width, height, lens, rng.uniform(-3.0, 3.0, 3), attitude / np.linalg.norm(attitude))


@pytest.fixture(scope="session")
def cloud() -> Callable[..., Splats]:
    return random_cloud


@pytest.fixture(scope="session")
def pose() -> Callable[..., Pose]:
    return random_pose


@pytest.fixture(scope="session")
def plain() -> Callable[..., Splats]:
    """Gaussians of one colour each, from (n, 3) positions, scales, colours and opacities."""

    def make(position: object, scale: object, colour: object, opacity: object) -> Splats:
        where = np.atleast_2d(np.asarray(position, float))
        n = len(where)
        harmonics = (np.broadcast_to(np.asarray(colour, float), (n, 3)) - 0.5) / C0
        identity = np.tile([0.0, 0.0, 0.0, 1.0], (n, 1))
        size = np.broadcast_to(np.asarray(scale, float), (n, 3))
        return Splats(where, identity, size, np.broadcast_to(np.asarray(opacity, float), (n,)), harmonics[:, None])

    return make


@pytest.fixture(scope="session")
def ring() -> Callable[..., tuple[NDArray[np.float64], NDArray[np.float64]]]:
    """Positions (10, 3) and attitudes (10, 4) of level cameras on a circle around a cloud, looking at its middle."""

    def make(splats: Splats) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        low, high = np.percentile(splats.position.astype(float), [5.0, 95.0], axis=0)
        angle = 2.0 * np.pi * np.arange(10) / 10
        away = 0.6 * float(np.linalg.norm(high - low))
        where = 0.5 * (low + high) + away * np.column_stack([np.cos(angle), np.sin(angle), np.zeros(10)])
        body = np.column_stack([np.zeros((10, 2)), np.sin(0.5 * (angle + np.pi)), np.cos(0.5 * (angle + np.pi))])
        return where, frames.camera_attitude(body)

    return make
