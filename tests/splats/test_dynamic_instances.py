"""Clouds that stand or move before the cameras of one call."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.fixtures.likeness import psnr

from airworthy.core.arrays import Array
from airworthy.core.errors import AirworthyError
from airworthy.scenes.splats import Splats, merged, transformed
from airworthy.splats import DynamicSplats, Lens, SplatRenderer
from airworthy.splats import renderer as renderer_module

IDENTITY = (0.0, 0.0, 0.0, 1.0)


def _unit(rng: np.random.Generator, *shape: int) -> Array:
    q = rng.normal(size=(*shape, 4))
    return np.asarray(q / np.linalg.norm(q, axis=-1, keepdims=True))


def _asked(cloud: Any, seed: int = 0) -> tuple[list[Splats], dict[str, Any], DynamicSplats]:
    """A place and two things of degrees 1 to 3; five cameras, four dynamic instances."""
    rng = np.random.default_rng(seed)
    place, thing = cloud(rng, 700, 1 + seed % 3), cloud(rng, 900, 3 - seed % 3)
    thing = Splats(0.3 * thing.position, thing.rotation, 0.3 * thing.scale, thing.opacity, thing.harmonics)
    clouds = [place, thing, cloud(rng, 30, 2)]
    asked = {
        "width": 70,
        "height": 50,
        "intrinsics": (50.0, 55.0, 35.0, 25.0),
        "position": rng.uniform(-3, 3, (5, 3)),
        "attitude": _unit(rng, 5),
        "scene": np.array([0, 0, -1, 0, 2]),
        "background": (0.1, 0.2, 0.3),
    }
    there = rng.uniform(size=(5, 4)) < 0.7
    return clouds, asked, DynamicSplats([1, 1, 2, 1], rng.uniform(-3, 3, (5, 4, 3)), _unit(rng, 5, 4), there)


def _part(asked: dict[str, Any], some: slice) -> dict[str, Any]:
    return {name: value[some] if name in ("position", "attitude", "scene") else value for name, value in asked.items()}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("lens", [None, Lens("fisheye", (0.01,))])
def test_they_are_the_merged_and_transformed_clouds(seed: int, lens: Lens | None, cloud: Any) -> None:
    clouds, asked, dynamic = _asked(cloud, seed)
    images = SplatRenderer(clouds).render(**asked, dynamic_instances=dynamic, lens=lens)
    assert images["alpha"].mean() > 0.2
    for k in range(5):
        number, where = int(asked["scene"][k]), np.flatnonzero(np.asarray(dynamic.active)[k])
        parts = [clouds[number]] if number >= 0 else []
        for j in where:
            cloud_number = int(np.asarray(dynamic.cloud)[k, j])
            pose = np.asarray(dynamic.attitude)[k, j], np.asarray(dynamic.position)[k, j]
            parts.append(transformed(clouds[cloud_number], *pose))
        if not parts:
            continue
        alone = {**_part(asked, slice(k, k + 1)), "scene": None}
        whole = SplatRenderer(merged(parts)).render(**alone, lens=lens)
        # float32 positions in other frames: 1e-6 in places, and a few pixels that fall on the other side of 1/255.
        assert psnr(images["rgb"][k], whole["rgb"][0]) >= 70.0
        assert np.abs(images["alpha"][k] - whole["alpha"][0]).mean() <= 1e-5


def test_colours_turn_with_a_cloud() -> None:
    """One Gaussian of degree 1, brighter along its own x: turned a quarter about z, seen from where that leads."""
    harmonics = np.zeros((1, 4, 3))
    harmonics[0, 3] = -0.5  # Y = -C1 x
    one = Splats(np.zeros((1, 3)), np.array([IDENTITY]), np.full((1, 3), 0.2), np.ones(1), harmonics)
    quarter = np.array([0.0, 0.0, np.sqrt(0.5), np.sqrt(0.5)])
    right = np.array([0.5, 0.5, 0.5, 0.5])  # a camera whose axis is world x, then world y
    cameras = {
        "position": np.array([[-3.0, 0, 0], [0, -3.0, 0]]),
        "attitude": np.array([right, [-np.sqrt(0.5), 0, 0, np.sqrt(0.5)]]),
    }
    dynamic = DynamicSplats([0], np.zeros((2, 1, 3)), np.tile(quarter, (2, 1, 1)))
    image = SplatRenderer(one).render(9, 9, (50.0, 50.0, 4.5, 4.5), **cameras, scene=[-1, -1], dynamic_instances=dynamic)
    rendered = image["rgb"][:, 4, 4, 0] / image["alpha"][:, 4, 4]
    # Along world x its own direction is -y, along world y it is x: 0.5, and 0.5 + 0.5 C1.
    np.testing.assert_allclose(rendered, [0.5, 0.5 + 0.5 * 0.48860251], atol=1e-5)


def test_alone_and_among_many_cameras_the_bytes_are_the_same(cloud: Any) -> None:
    clouds, asked, dynamic = _asked(cloud)
    renderer = SplatRenderer(clouds, threads=2)
    whole = renderer.render(**asked, dynamic_instances=dynamic)
    renderer._group = 2
    groups = renderer.render(**asked, dynamic_instances=dynamic)
    for k in range(5):
        one = slice(k, k + 1)
        alone = SplatRenderer(clouds, threads=1).render(**_part(asked, one), dynamic_instances=dynamic.part(one))
        for name, image in whole.items():
            assert image[k].tobytes() == alone[name][0].tobytes()
    for name, image in whole.items():
        assert image.tobytes() == groups[name].tobytes()


def test_dynamic_instances_that_are_not_there_change_no_byte(cloud: Any) -> None:
    clouds, asked, dynamic = _asked(cloud)
    renderer = SplatRenderer(clouds)
    none = DynamicSplats(dynamic.cloud, dynamic.position, dynamic.attitude, np.zeros((5, 4), bool))
    empty = DynamicSplats(np.zeros(0, int), np.zeros((5, 0, 3)), np.zeros((5, 0, 4)))
    plain = renderer.render(**asked)
    for absent in (none, empty):
        for name, image in renderer.render(**asked, dynamic_instances=absent).items():
            assert image.tobytes() == plain[name].tobytes()


def test_a_cloud_that_stands_where_the_scene_is_is_the_scene(cloud: Any) -> None:
    rng = np.random.default_rng(3)
    renderer = SplatRenderer(cloud(rng, 500, 3))
    asked = (60, 40, (50.0, 50.0, 30.0, 20.0), rng.uniform(-1, 1, (1, 3)), _unit(rng, 1))
    moved = renderer.render(*asked, scene=[-1], dynamic_instances=DynamicSplats([0], np.zeros((1, 1, 3)), [[IDENTITY]]))
    for name, image in renderer.render(*asked).items():
        assert image.tobytes() == moved[name].tobytes()


def test_many_copies_need_the_memory_of_one(cloud: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """200 copies before 3 cameras: the cloud is stored once, and cameras are taken in groups that fit."""
    rng = np.random.default_rng(0)
    thing = cloud(rng, 500)
    thing = Splats(0.1 * thing.position, thing.rotation, 0.1 * thing.scale, thing.opacity, thing.harmonics)
    monkeypatch.setitem(renderer_module.RECORDS_AT_ONCE, "cpu", 250 * 512)
    renderer = SplatRenderer(thing)
    where = rng.uniform([-4, -4, 2], [4, 4, 12], (3, 200, 3))
    dynamic = DynamicSplats(np.zeros(200, int), where, _unit(rng, 3, 200))
    asked = (80, 60, (60.0, 60.0, 40.0, 30.0), np.zeros((3, 3)), IDENTITY)
    before = len(renderer._cloud.geometry)
    image = renderer.render(*asked, scene=[-1, -1, -1], dynamic_instances=dynamic)
    engine: Any = renderer._engine
    assert len(renderer._cloud.geometry) == before == 512 // 16
    assert engine.records.size <= 250 * 512 * 12
    copies = [transformed(thing, q, p) for q, p in zip(np.asarray(dynamic.attitude)[1], where[1], strict=True)]
    whole = SplatRenderer(merged(copies)).render(*asked[:3], np.zeros((1, 3)), IDENTITY)
    assert psnr(image["rgb"][1], whole["rgb"][0]) >= 70.0


def test_clouds_per_camera(cloud: Any) -> None:
    """(c, m) numbers: each camera its own."""
    clouds, asked, dynamic = _asked(cloud)
    own = np.array([[1, 1, 2, 1], [2, 1, 1, 2], [0, 2, 1, 1], [1, 2, 2, 1], [0, 0, 1, 1]])
    renderer = SplatRenderer(clouds)
    images = renderer.render(**asked, dynamic_instances=DynamicSplats(own, dynamic.position, dynamic.attitude, dynamic.active))
    for k in range(5):
        one = slice(k, k + 1)
        poses = (np.asarray(getattr(dynamic, name))[one] for name in ("position", "attitude", "active"))
        alone = renderer.render(**_part(asked, one), dynamic_instances=DynamicSplats(own[k], *poses))
        assert images["rgb"][k].tobytes() == alone["rgb"][0].tobytes()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"position": np.zeros((2, 3))}, "positions of shape"),
        ({"cloud": [0.5, 1.0]}, "whole numbers"),
        ({"cloud": [0, 9]}, "clouds 0 to 9"),
        ({"active": np.ones((1, 2))}, "truth values"),
        ({"attitude": np.zeros((1, 2, 4))}, "not a quaternion"),
        ({"position": np.full((1, 2, 3), np.nan)}, "not finite"),
    ],
)
def test_mistakes(change: dict[str, Any], said: str, cloud: Any) -> None:
    right = {"cloud": [0, 0], "position": np.zeros((1, 2, 3)), "attitude": np.tile(IDENTITY, (1, 2, 1))}
    renderer = SplatRenderer(cloud(np.random.default_rng(0), 20))
    with pytest.raises(AirworthyError, match=said):
        renderer.render(
            9, 9, (9.0, 9.0, 4.0, 4.0), np.zeros((1, 3)), IDENTITY, dynamic_instances=DynamicSplats(**{**right, **change})
        )
    with pytest.raises(AirworthyError, match="Dynamic instances are for 1 cameras"):
        renderer.render(9, 9, (9.0, 9.0, 4.0, 4.0), np.zeros((2, 3)), IDENTITY, dynamic_instances=DynamicSplats(**right))
