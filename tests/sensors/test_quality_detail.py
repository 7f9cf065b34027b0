"""Levels of detail by size in the image."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from airworthy.core.errors import AirworthyError
from airworthy.geometry import Box, Mesh
from airworthy.scenes.batch import SceneBatch
from airworthy.scenes.record import Instance, Material, Scene
from airworthy.sensors.capture import render
from airworthy.sensors.detail import DetailedScenes, choose_level, projected_size
from airworthy.sensors.projections import Pinhole

FOV = np.pi / 2
CAMERA = Pinhole.from_fov(32, 24, vertical=FOV)
AHEAD = np.array([[-0.5, 0.5, -0.5, 0.5]])
"""Camera that looks along world x."""


def ball(n: int = 40) -> Mesh:
    """A sphere of radius 1 of 2 n (n - 1) triangles or so."""
    theta, phi = np.meshgrid(np.linspace(0, np.pi, n), np.linspace(0, 2 * np.pi, n), indexing="ij")
    points = np.stack([np.sin(theta) * np.cos(phi), np.sin(theta) * np.sin(phi), np.cos(theta)], -1)
    corner = (np.arange(n - 1)[:, None] * n + np.arange(n - 1)).reshape(-1, 1)
    faces = np.concatenate([corner + np.array([0, n + 1, 1]), corner + np.array([0, n, n + 1])]).astype(np.int32)
    return Mesh(points.reshape(-1, 3).astype(np.float32), faces)


def place(*x: float) -> Scene:
    things = tuple(Instance("ball", (at, 0.0, 0.0), name=f"b{k}") for k, at in enumerate(x))
    return Scene(
        "s", {"ball": ball(), "box": Box((0.1, 0.1, 0.1))}, {"red": Material()}, instances=(*things, Instance("box", (3, 9, 0)))
    )


def faces_of(detail: DetailedScenes, env: int = 0) -> list[int]:
    geometry = detail.batch.geometry
    shapes = [geometry.shapes[k] for k in geometry.layout(env).shape]
    return [len(shape.faces) if isinstance(shape, Mesh) else 0 for shape in shapes]


def test_levels_change_at_their_sizes_with_hysteresis() -> None:
    """60, 25 and 8 % of the image's height, a tenth of each to either side (spec/flightgoggles 2.6)."""
    sizes = np.array([0.7, 0.5, 0.2, 0.05])
    np.testing.assert_array_equal(choose_level(sizes), [0, 1, 2, 3])
    np.testing.assert_array_equal(choose_level(sizes, finest=2), [2, 2, 2, 3])
    np.testing.assert_array_equal(choose_level(sizes, bias=4.0), [0, 0, 0, 2])
    for level, border in enumerate((0.60, 0.25, 0.08)):
        for size, finer in ((border * 0.91, level), (border * 0.89, level + 1)):
            assert choose_level(size, level) == finer
        for size, coarser in ((border * 1.09, level + 1), (border * 1.11, level)):
            assert choose_level(size, level + 1) == coarser


def test_projected_size_is_the_share_of_the_image() -> None:
    # A ball of radius 1 m at 10 m, 90 degrees: the image is 20 m high there.
    assert projected_size(1.0, 10.0, FOV) == pytest.approx(0.1)


def test_things_get_coarser_as_they_are_farther() -> None:
    full = len(ball().faces)
    detail = DetailedScenes(place(2.0, 5.0, 14.0, 60.0), "High", FOV)
    assert faces_of(detail)[:4] == [full] * 4
    assert detail.look_from([[0.0, 0.0, 0.0]]) == 5
    # The ball around the mesh's box has radius sqrt(3): sizes 0.87, 0.35, 0.12, 0.03.
    assert detail.levels[0] is not None
    assert detail.levels[0][:4].tolist() == [0, 1, 2, 3]
    counts = faces_of(detail)
    assert counts[0] == full
    assert 0.1 * full < counts[1] <= 0.25 * full
    assert 0.01 * full < counts[2] <= 0.06 * full
    assert counts[3] == counts[2]  # too small for its level, and still there
    assert detail.look_from([[0.0, 0.0, 0.0]]) == 0
    assert detail.look_from([[-0.2, 0.0, 0.0]]) == 0  # within the hysteresis
    assert detail.look_from([[57.0, 0.0, 0.0]]) > 0
    assert faces_of(detail)[3] > counts[3]


def test_small_things_may_be_dropped_and_return() -> None:
    detail = DetailedScenes(place(60.0), "High", FOV, drop=True)
    detail.look_from([[0.0, 0.0, 0.0]])
    assert not detail.batch.geometry.layout(0).visible[0]
    detail.look_from([[57.0, 0.0, 0.0]])
    assert detail.batch.geometry.layout(0).visible[0]


def test_the_cap_and_the_bias_of_profiles() -> None:
    full = len(ball().faces)
    low = DetailedScenes(place(2.0), "VeryLow2GB", FOV)
    low.look_from([[0.0, 0.0, 0.0]])
    assert faces_of(low)[0] <= 0.06 * full
    assert sum(len(s.faces) for s in low.batch.geometry.shapes if isinstance(s, Mesh)) <= 0.06 * full  # no finer one is held
    ultra = DetailedScenes(place(10.0), "Ultra", FOV)
    ultra.look_from([[0.0, 0.0, 0.0]])
    assert faces_of(ultra)[0] == full  # 0.17 x 4


def test_images_show_the_level() -> None:
    detail = DetailedScenes(place(5.0), "High", FOV)
    table = CAMERA.rays()
    first = render(detail.batch, table, np.zeros((1, 3)), AHEAD, channels=("depth", "rgb", "face"))
    detail.look_from([[0.0, 0.0, 0.0]])
    then = render(detail.batch, table, np.zeros((1, 3)), AHEAD, channels=("depth", "rgb", "face"))
    assert then["face"].max() < 0.26 * len(ball().faces)
    seen = np.isfinite(first["depth"]) & np.isfinite(then["depth"])
    assert seen.sum() > 10
    # A coarse ball lies inside the fine one, by less than a cell of its grid.
    assert np.abs(first["depth"][seen] - then["depth"][seen]).max() < 0.3
    geometry = detail.batch.geometry
    shown = geometry.shapes[geometry.layout(0).shape[0]]
    scene = place(5.0)
    same = SceneBatch(replace(scene, shapes={**scene.shapes, "ball": shown}))
    np.testing.assert_array_equal(then["rgb"], render(same, table, np.zeros((1, 3)), AHEAD, channels=("rgb",))["rgb"])


def test_environments_have_levels_of_their_own() -> None:
    scene = place(5.0)
    detail = DetailedScenes([scene, replace(scene)], "High", FOV)
    detail.look_from([[0.0, 0.0, 0.0], [4.0, 0.0, 0.0]])
    one, two = faces_of(detail, 0)[0], faces_of(detail, 1)[0]
    assert one < two == len(ball().faces)
    detail.look_from([[4.0, 0.0, 0.0]], [0])
    assert faces_of(detail, 0)[0] == two
    with pytest.raises(AirworthyError, match="replace"):
        DetailedScenes([scene, scene])
