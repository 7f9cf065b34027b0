"""Snow, as images show it, beside its twin, and what shelters from it."""

from __future__ import annotations

import numpy as np

from airworthy.core import frames
from airworthy.geometry import Box, RayTable, Shape, Sphere
from airworthy.rendering import StillOptions, render
from airworthy.rendering.shading import QUALITIES, Cameras, shade_channels
from airworthy.scenes import Instance, Material, Scene, SceneBatch, Sky, Snow
from airworthy.scenes.sky.snow import snow_share, snow_surface

SKY = Sky(model="daylight", elevation=0.7, azimuth=2.0)
ALBEDO, METALLIC = np.array([0.3, 0.2, 0.1]), 0.25


def place(cover: float, roof: bool = False) -> Scene:
    shapes: dict[str, Shape] = {"floor": Box((40.0, 40.0, 0.5)), "ball": Sphere(2.0), "roof": Box((8.0, 40.0, 0.1))}
    look = {"m": Material((0.3, 0.2, 0.1, 1.0), metallic=METALLIC, roughness=0.9)}
    things = [("floor", (0.0, 0.0, -0.5)), *([("roof", (8.0, 0.0, 4.0))] if roof else [("ball", (0.0, 0.0, 2.0))])]
    instances = tuple(Instance(name, where, materials=("m",)) for name, where in things)
    return Scene("s", shapes, look, instances=instances, lights=(), sky=SKY, snow=Snow(cover))


def seen(cover: float) -> dict[str, np.ndarray]:
    """Channels of 40 x 40 rays down over the floor with a ball on it."""
    x, y = np.meshgrid(np.linspace(-0.9, 0.9, 40), np.linspace(-0.9, 0.9, 40))
    rays = np.stack([x, y, np.full_like(x, -1.0)], -1)
    rays /= np.linalg.norm(rays, axis=-1, keepdims=True)
    batch, table = SceneBatch(place(cover)), RayTable(rays)
    cameras = Cameras.of(batch, table, [[1.0, 2.0, 15.0]], [[0.0, 0.0, 0.0, 1.0]])
    found = shade_channels(batch, table, cameras, ("rgb", "albedo", "normal", "hits"), QUALITIES["policy"])
    return {**found, "point": np.array([1.0, 2.0, 15.0]) + rays * found["range"][0][..., None]}


def test_snow_of_an_image_is_that_of_the_twin() -> None:
    bare, white = seen(0.0), seen(0.55)
    normal, shape = bare["normal"][0].astype(np.float64), bare["range"][0].shape
    share = snow_share(Snow(0.55), normal, white["point"])
    albedo, _, _, bent = snow_surface(
        share,
        np.broadcast_to(ALBEDO, normal.shape),
        np.full(shape, 0.9),
        np.full(shape, METALLIC),
        normal,
        normal,
        white["point"],
    )
    # The ball shelters the floor below it, where the way to the sky leans.
    near = np.linalg.norm(white["point"][..., :2], axis=-1)
    free = (near > 6.0) | (white["point"][..., 2] > 2.5)
    assert free.sum() > 600
    # A place in the noise is known to the single precision of a hit, and borders of snow are steep.
    np.testing.assert_allclose(white["albedo"][0][free], albedo[free], atol=1e-3)
    np.testing.assert_allclose(white["normal"][0][free], bent[free], atol=2e-3)
    assert 0.0 < share[free].mean() < 1.0


def test_no_snow_lies_under_a_roof_in_images_and_stills() -> None:
    batch = SceneBatch(place(1.0, roof=True))
    rays = np.array([[[-0.6, 0.05, -0.5], [0.9, 0.05, -0.28]]])
    table = RayTable(rays / np.linalg.norm(rays, axis=-1, keepdims=True), axis=(1.0, 0.0, 0.0))
    for still in (None, StillOptions(32)):
        found = render(batch, table, [[0.0, 0.0, 3.0]], np.array([frames.IDENTITY]), channels=("rgb",), still=still)["rgb"][
            0, 0
        ]
        outside, under = found.mean(-1)
        # Of the same light from above the roof's dark underside leaves a part; snow is four times as bright as what it hides.
        assert outside > 2.5 * under, still
