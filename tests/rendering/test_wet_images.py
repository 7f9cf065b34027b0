"""Wet ground, as images show it, beside its twin."""

from __future__ import annotations

import numpy as np
import pytest

from airworthy.geometry import Box, RayTable, Shape, Sphere
from airworthy.rendering.shading import QUALITIES, Cameras, shade_channels
from airworthy.scenes import Instance, Material, Rain, Scene, SceneBatch, Sky
from airworthy.scenes.sky.wetness import wet_surface

SKY = Sky(model="daylight", elevation=0.7, azimuth=2.0)
ALBEDO, METALLIC = np.array([0.3, 0.2, 0.1]), 0.25


def ground(rain: Rain, cutoff: float = 0.0) -> SceneBatch:
    shapes: dict[str, Shape] = {"floor": Box((40.0, 40.0, 0.5)), "ball": Sphere(2.0)}
    look = {"m": Material((0.3, 0.2, 0.1, 1.0), metallic=METALLIC, roughness=0.9, alpha_cutoff=cutoff)}
    instances = (Instance("floor", (0.0, 0.0, -0.5), materials=("m",)), Instance("ball", (0.0, 0.0, 2.0), materials=("m",)))
    return SceneBatch(Scene("s", shapes, look, instances=instances, lights=(), sky=SKY, rain=rain))


def seen(rain: Rain, cutoff: float = 0.0) -> dict[str, np.ndarray]:
    """Channels of 40 x 40 rays straight down over the floor with a ball on it."""
    x, y = np.meshgrid(np.linspace(-0.9, 0.9, 40), np.linspace(-0.9, 0.9, 40))
    rays = np.stack([x, y, np.full_like(x, -1.0)], -1)
    rays /= np.linalg.norm(rays, axis=-1, keepdims=True)
    batch = ground(rain, cutoff)
    cameras = Cameras.of(batch, RayTable(rays), [[1.0, 2.0, 15.0]], [[0.0, 0.0, 0.0, 1.0]])
    found = shade_channels(batch, RayTable(rays), cameras, ("rgb", "albedo", "normal", "hits"), QUALITIES["policy"])
    return {**found, "rays": rays, "point": np.array([1.0, 2.0, 15.0]) + rays * found["range"][0][..., None]}


@pytest.mark.parametrize("cutoff", [0.0, 0.5], ids=["ground", "leaf"])
@pytest.mark.parametrize("rain", [Rain(wetness=1.0), Rain(wetness=0.5, puddles=0.5), Rain(5.0, 0.0, 1.0)])
def test_wet_surfaces_of_an_image_are_those_of_the_twin(rain: Rain, cutoff: float) -> None:
    """What has a cutoff is a leaf: as wet below as above, and no puddle lies on it."""
    dry, wet = seen(Rain(), cutoff), seen(rain, cutoff)
    normal = dry["normal"][0].astype(np.float64)
    shape = normal.shape[:-1]
    albedo, _, bent = wet_surface(
        rain, np.broadcast_to(ALBEDO, normal.shape), np.full(shape, 0.9), np.full(shape, METALLIC),
        np.full(shape, cutoff > 0.0), normal, normal, wet["point"],
    )  # fmt: skip
    # A place in the noise is known to the single precision of a hit, and the edges of puddles are steep.
    np.testing.assert_allclose(wet["albedo"][0], albedo, atol=3e-4)
    np.testing.assert_allclose(wet["normal"][0], bent, atol=1e-4)


def test_puddles_mirror_the_sky_and_grow() -> None:
    images = [seen(Rain(wetness=1.0, puddles=share)) for share in (0.0, 0.3, 0.8)]
    water = [float((np.abs(image["albedo"][0] - images[0]["albedo"][0]).max(-1) > 0.01).mean()) for image in images]
    assert water[0] == 0.0
    assert 0.02 < water[1] < 0.6 < water[2]
    assert np.isfinite(images[1]["rgb"]).all()
