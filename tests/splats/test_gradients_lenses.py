"""Derivatives through lenses, of clouds that move, and where something opaque stands."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests.splats.gradient_cases import FIELDS, LENS, SIZE, assert_as_the_twin, close, in_view, weights

from airworthy.scenes.splats import merged, transformed
from airworthy.scenes.splats.record import Splats
from airworthy.splats import SplatRenderer
from airworthy.splats.cloud import DynamicSplats
from airworthy.splats.lens import Lens
from airworthy.splats.renderer import answered

LENSES = {
    "opencv": Lens("opencv", (0.08, -0.03, 0.01, -0.008, 0.004, 0.02, -0.01, 0.002)),
    "barrel": Lens("opencv", (-0.2, 0.05)),
    "fisheye": Lens("fisheye", (0.03, -0.01, 0.004, -0.001)),
}
ATTITUDE = np.array([0.05, -0.03, 0.1, 1.0]) / np.linalg.norm([0.05, -0.03, 0.1, 1.0])


def scene(rng: np.random.Generator, lens: str, degree: int) -> Splats:
    """Before the camera, one on its axis and one next to it; before a fisheye also beside and behind it."""
    splats = in_view(rng, 12, degree)
    where = splats.position.copy()
    if lens == "fisheye":
        where[:4] = np.array([[3.0, 0.4, 0.3], [-2.5, 1.0, 0.2], [1.0, -2.0, -0.2], [2.5, 0.3, 0.9]])
    ahead = np.array([[2 * (ATTITUDE[0] * ATTITUDE[2] + ATTITUDE[1] * ATTITUDE[3])],
                      [2 * (ATTITUDE[1] * ATTITUDE[2] - ATTITUDE[0] * ATTITUDE[3])],
                      [1 - 2 * (ATTITUDE[0] ** 2 + ATTITUDE[1] ** 2)]])[:, 0]  # fmt: skip
    where[4] = 2.0 * ahead + [1e-4, -5e-5, 0.0]
    where[5] = 3.0 * ahead + [0.05, 0.02, 0.0]
    return replace(splats, position=where)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", LENSES)
def test_derivatives_through_a_lens_equal_those_of_the_twin(name: str, seed: int) -> None:
    rng = np.random.default_rng(40 + seed)
    splats, weight = scene(rng, name, seed), weights(rng, 1)
    options: dict[str, Any] = {"lens": LENSES[name], "antialiased": bool(seed & 1), "background": rng.uniform(size=3)}
    assert_as_the_twin(splats, np.zeros(3), ATTITUDE, weight, options)


@pytest.mark.parametrize("name", ["pinhole", "fisheye"])
def test_what_is_behind_something_opaque_has_no_derivatives(name: str) -> None:
    rng = np.random.default_rng(60)
    splats, weight = scene(rng, name, 1), weights(rng, 1)
    limit = rng.uniform(1.0, 5.0, (1, SIZE[1], SIZE[0])).astype(np.float32)
    lens = LENSES.get(name)
    assert_as_the_twin(splats, np.zeros(3), ATTITUDE, weight, {"limit": limit, "lens": lens})
    without = {key: value for key, value in weight.items() if key == "rgb"}
    (found,), _ = SplatRenderer(splats).gradients(
        lambda images, some: without, *SIZE, LENS, np.zeros((1, 3)), ATTITUDE, limit=np.full_like(limit, 0.5)
    )
    assert not found.position.any()
    assert found.image_count.any()  # they are in the image, behind what stands there


def test_a_cloud_that_moves_has_the_derivatives_of_one_that_stands_there() -> None:
    """In its own frame; and the camera's pose those of all that it sees."""
    rng = np.random.default_rng(70)
    hall, drone, weight = in_view(rng, 30, 0), in_view(rng, 20, 0), weights(rng, 2)
    drone = replace(drone, position=0.5 * (drone.position - [0.0, 0.0, 3.0]))
    where, turn = rng.uniform([-1.0, -1.0, 2.0], [1.0, 1.0, 4.0], (2, 2, 3)), rng.normal(size=(2, 2, 4))
    turn /= np.linalg.norm(turn, axis=-1, keepdims=True)
    cameras = (*SIZE, LENS, 0.1 * rng.normal(size=(2, 3)), ATTITUDE)
    dynamic = DynamicSplats(np.array([1, 1]), where, turn, np.array([[True, True], [False, True]]))
    (of_hall, of_drone), poses = SplatRenderer([hall, drone]).gradients(
        lambda images, some: {k: v[some] for k, v in weight.items()}, *cameras, scene=[0, 0], dynamic_instances=dynamic
    )
    expected = {name: np.zeros_like(getattr(drone, name)) for name in ("position", "scale", "opacity", "harmonics")}
    hall_position, drone_count = np.zeros_like(hall.position), 0.0
    for k, there in enumerate(([0, 1], [1])):
        stands = [transformed(drone, rotation=turn[k, m], translation=where[k, m]) for m in there]
        (one,), pose = SplatRenderer(merged([hall, *stands])).gradients(
            lambda images, some, k=k: {name: value[k : k + 1] for name, value in weight.items()},
            *SIZE, LENS, cameras[3][k : k + 1], ATTITUDE,
        )  # fmt: skip
        hall_position += one.position[: len(hall)]
        for m, part in zip(there, (slice(30 + 20 * i, 50 + 20 * i) for i in range(len(there))), strict=True):
            x, y, z, w = turn[k, m]
            matrix = np.array([
                [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
                [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
                [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
            ])  # fmt: skip
            expected["position"] += one.position[part] @ matrix
            for name in ("scale", "opacity", "harmonics"):
                expected[name] += getattr(one, name)[part]
            drone_count += one.image_count[part].sum()
        # The same sums in other orders, of positions that are rounded elsewhere.
        assert close(poses.position[k], pose.position[0], 1e-3)
        assert close(poses.rotation[k], pose.rotation[0], 1e-3)
    assert close(of_hall.position, hall_position, 1e-3)
    assert of_drone.image_count.sum() == drone_count
    for name, value in expected.items():
        assert close(getattr(of_drone, name), value, 1e-3), name
    assert set(FIELDS) >= set(expected)


def test_slopes_of_depth_are_those_of_distance_times_the_cosine() -> None:
    """A fisheye is rendered with distances d, and a loss is shown depths z = c d: dL/dd = c dL/dz, of nothing else."""
    rng = np.random.default_rng(5)
    cosines = rng.uniform(0.3, 1.0, (4, 6)).astype(np.float32)
    images = {"rgb": rng.random((2, 4, 6, 3), np.float32), "depth": rng.uniform(1.0, 5.0, (2, 4, 6)).astype(np.float32)}
    images["depth"][0, 1, 2] = np.inf
    slopes = {"rgb": rng.normal(size=(2, 4, 6, 3)), "depth": rng.normal(size=(2, 4, 6))}
    shown: dict[str, Any] = {}

    def loss(given: Any, some: slice) -> Any:
        shown.update(given)
        return slopes

    found = answered(loss, SimpleNamespace(scale=cosines), slice(0, 2), images)  # type: ignore[arg-type]
    np.testing.assert_allclose(shown["depth"], images["depth"] * cosines, rtol=1e-6)
    np.testing.assert_allclose(found["depth"], slopes["depth"] * cosines, rtol=1e-6)
    np.testing.assert_allclose(found["rgb"], slopes["rgb"], rtol=1e-6)
    plain = answered(loss, SimpleNamespace(scale=None), slice(0, 2), images)  # type: ignore[arg-type]
    np.testing.assert_allclose(plain["depth"], slopes["depth"], rtol=1e-6)
