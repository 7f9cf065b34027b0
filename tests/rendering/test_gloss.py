"""Light in mirrors that is traced for one pixel of four: its spreading against a plain twin, and images against a ray each."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from airworthy.geometry import Box, RayTable, Shape, Sphere
from airworthy.rendering import quality_options, render
from airworthy.rendering.gloss import GLOSS_COLUMNS, GLOSS_REACH, spread_gloss, spread_gloss_by_numpy
from airworthy.rendering.shading import ShadingOptions, shade
from airworthy.scenes.batch import SceneBatch
from airworthy.scenes.record import Haze, Instance, Material, PointLight, Scene, Sky, Texture
from airworthy.scenes.viewpoints import Viewpoint, look_at

BLACK = Sky((0.0, 0.0, 0.0), (0.0, 0.0, 0.0), (0.0, 0.0, 0.0))
SPREAD = ShadingOptions(gloss_rays=1, samples=2, contrast=1.0)
"""No pixel differs by more than everything: all is spread, and no sample is beside a middle."""
EACH = ShadingOptions(gloss_rays=64)


def random_rows(seed: int, shape: tuple[int, int, int]) -> np.ndarray:
    """Rows as the shading kernel leaves them: rays from even pixels, some surfaces, some reaches."""
    rng = np.random.default_rng(seed)
    rows = np.zeros((*shape, GLOSS_COLUMNS), np.float32)
    rows[..., 3:6] = rng.uniform(0.0, 1.0, (*shape, 3))
    rows[..., 6:8] = rng.integers(0, 2, (*shape, 2))
    rows[..., 8] = rng.choice([0.0, 1.0, GLOSS_REACH], shape)
    even = np.zeros(shape, bool)
    even[:, ::2, ::2] = True
    sent = even & (rows[..., 8] > 0.0) & (rng.random(shape) < 0.7)
    rows[sent, :3] = rng.uniform(0.0, 4.0, (int(sent.sum()), 3)) * rng.choice([1.0, 100.0], (int(sent.sum()), 1), p=[0.9, 0.1])
    rows[..., 9] = sent
    rows[rows[..., 8] == 0.0, 3:6] = 0.0
    return rows


@pytest.mark.parametrize("shape", [(2, 9, 13), (1, 1, 7), (1, 8, 1), (3, 2, 2)])
def test_spreading_agrees_with_its_twin(shape: tuple[int, int, int]) -> None:
    rows, radiance = (
        random_rows(len(shape) + shape[1], shape),
        np.random.default_rng(1).uniform(0, 1, (*shape, 3)).astype(np.float32),
    )
    expected_rows, expected = spread_gloss_by_numpy(rows, radiance)
    spread_gloss(rows, radiance)
    np.testing.assert_allclose(radiance, expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(rows, expected_rows, rtol=1e-5, atol=1e-6)


def test_light_that_is_the_same_everywhere_stays_so() -> None:
    rows = random_rows(5, (1, 12, 12))
    rows[..., 6:8] = 0.0
    rows[rows[..., 9] > 0.0, :3] = (2.0, 1.0, 0.5)
    radiance = np.zeros((1, 12, 12, 3), np.float32)
    wanted = rows[..., 3:6] * np.array([2.0, 1.0, 0.5], np.float32)
    spread_gloss(rows, radiance)
    told = rows[..., 9] > 0.0
    assert told.sum() > 60
    np.testing.assert_allclose(radiance[told], wanted[told], rtol=1e-5)


def plates(roughness: float, haze: float = 0.0) -> tuple[SceneBatch, np.ndarray, np.ndarray, RayTable]:
    """Two metal plates side by side, one under a red panel and one under a green; and a view of both from the side."""
    material = {
        "metal": Material((1.0, 1.0, 1.0, 1.0), metallic=1.0, roughness=roughness),
        "red": Material((0.0, 0.0, 0.0, 1.0), emissive=(3.0, 0.0, 0.0)),
        "green": Material((0.0, 0.0, 0.0, 1.0), emissive=(0.0, 3.0, 0.0)),
        "wall": Material((0.0, 0.0, 0.0, 1.0), roughness=1.0),
    }
    shapes: dict[str, Shape] = {"plate": Box((2.0, 1.0, 0.1)), "panel": Box((3.0, 1.0, 0.01)), "wall": Box((4.0, 0.001, 3.0))}
    parts = (
        Instance("plate", (0.0, 1.0, -0.1), materials=("metal",)),
        Instance("plate", (0.0, -1.0, -0.1), materials=("metal",)),
        Instance("panel", (1.0, 1.0, 1.0), materials=("red",)),
        Instance("panel", (1.0, -1.0, 1.0), materials=("green",)),
        # Each plate sees its own panel; the eye is before the wall.
        Instance("wall", (2.0, 0.0, 0.0), materials=("wall",)),
    )
    air = Haze(haze, height=0.0, asymmetry=0.0) if haze else Haze()
    batch = SceneBatch(Scene("s", shapes, material, {}, parts, lights=(), sky=BLACK, haze=air))
    eye = np.array([-3.0, 0.0, 0.5])
    x, y = np.meshgrid((np.arange(64) - 31.5) / 64.0, (np.arange(48) - 23.5) / 64.0)
    table = RayTable(np.dstack([x, y, np.ones_like(x)]) / np.sqrt(x * x + y * y + 1.0)[..., None])
    return batch, eye[None], look_at(eye, (0.5, 0.0, 0.0))[None], table


@pytest.mark.parametrize("roughness", [0.05, 0.3, 0.5])
def test_mirrors_show_what_rays_of_each_pixel_show_and_surfaces_do_not_mix(roughness: float) -> None:
    batch, *pose, table = plates(roughness)
    spread, each = (shade(batch, table, *pose, [0], options)[0] for options in (SPREAD, EACH))
    lit = each.max(axis=-1) > 0.05
    assert lit.mean() > 0.15
    # A quarter of the rays, one each, of 768 pixels: the mean has a percent of noise.
    assert spread[lit].mean() == pytest.approx(each[lit].mean(), rel=0.04)
    # No red plate becomes green, not even beside the wall between them.
    red, green = (each[..., k] > 0.05 for k in (0, 1))
    assert not np.any(spread[red & ~green][:, 1] > 0.01)
    assert not np.any(spread[green & ~red][:, 0] > 0.01)
    one = shade(batch, table, *pose, [0], replace(EACH, gloss_rays=1))[0]
    noise = [float(np.sqrt(np.mean((image - each)[lit] ** 2))) for image in (spread, one)]
    assert noise[0] < (0.6 if roughness > 0.2 else 1.3) * noise[1]


def test_a_pane_mirrors_as_with_a_ray_of_each_pixel() -> None:
    material = {
        "pane": Material((1.0, 1.0, 1.0, 1.0), transmission=1.0, ior=1.5, roughness=0.0),
        "glow": Material((0.0, 0.0, 0.0, 1.0), emissive=(4.0, 2.0, 1.0)),
    }
    shapes: dict[str, Shape] = {"pane": Box((2.0, 2.0, 1e-4)), "panel": Box((0.6, 0.6, 0.01))}
    parts = (Instance("pane", (0.0, 0.0, 0.0), materials=("pane",)), Instance("panel", (1.0, 0.0, 1.0), materials=("glow",)))
    batch = SceneBatch(Scene("s", shapes, material, {}, parts, lights=(), sky=BLACK))
    eye = np.array([-2.0, 0.0, 1.2])
    x, y = np.meshgrid((np.arange(48) - 23.5) / 48.0, (np.arange(48) - 23.5) / 48.0)
    table = RayTable(np.dstack([x, y, np.ones_like(x)]) / np.sqrt(x * x + y * y + 1.0)[..., None])
    pose = eye[None], look_at(eye, (0.0, 0.0, 0.0))[None]
    spread, each = (shade(batch, table, *pose, [0], options)[0] for options in (SPREAD, replace(EACH, gloss_rays=1)))
    seen = each[..., 0] > 0.02
    mirrored = seen & (each[..., 0] < 3.0)
    assert mirrored.sum() > 60
    # Within the panel's image all neighbours mirror it.
    inner = np.logical_and.reduce([np.roll(mirrored, (v, u), (0, 1)) for v in (-1, 0, 1) for u in (-1, 0, 1)])
    assert inner.sum() > 30
    np.testing.assert_allclose(spread[inner], each[inner], rtol=0.05)
    assert spread.sum() == pytest.approx(each.sum(), rel=0.02)


@pytest.mark.parametrize("options", [SPREAD, EACH])
def test_haze_takes_from_what_is_mirrored(options: ShadingOptions) -> None:
    """Behind haze what a mirror shows is dimmed by the way to the mirror, too, whoever traces it."""
    # The lower half sees the plates.
    clear, thick = (shade(b, t, *p, [0], options)[0, 26:] for b, *p, t in (plates(0.3), plates(0.3, haze=4.0)))
    assert clear.max() > 1.0
    # The nearest way is 1.2 m, to and fro: exp(-4.8) of 3.
    assert thick.max() < 3.0 * np.exp(-4.8)


def test_standard_images_know_the_mirror_in_samples_beside_the_middle() -> None:
    """At edges light that was spread is used again; the image keeps the brightness of one with rays everywhere."""
    batch, *pose, table = plates(0.3)
    standard = quality_options("standard")
    found = shade(batch, table, *pose, [0], standard)[0]
    whole = shade(batch, table, *pose, [0], replace(standard, contrast=0.0, samples=8, gloss_rays=16, texture_bias=0.0))[0]
    assert found.mean() == pytest.approx(whole.mean(), rel=0.03)


# ---- Grain of one ray in a mirror -------------------------------------------------------------------------------------------


def specks(roughness: float) -> tuple[float, float]:
    """Return the shares of pixels of a metal plate that stand out of all their neighbours, and that are twice as bright as it.

    It stands upright before a floor of squares and a ball of metal, in which a lamp has its highlight.
    """
    pixels = np.full((2, 2, 3), 40, np.uint8)
    pixels[0, 0] = pixels[1, 1] = 220
    kinds = {
        "floor": Material(base_color_map="squares", texture_size=2.0, roughness=1.0),
        "plate": Material((0.9, 0.9, 0.9, 1.0), metallic=1.0, roughness=roughness),
        "ball": Material((0.9, 0.9, 0.9, 1.0), metallic=1.0, roughness=0.15),
    }
    place = Scene(
        "plate",
        {"floor": Box((6.0, 6.0, 0.1)), "plate": Box((0.02, 0.6, 0.6)), "ball": Sphere(0.4)},
        kinds,
        {"squares": Texture(pixels)},
        instances=(
            Instance("floor", (0.0, 0.0, -0.1), materials=("floor",)),
            Instance("plate", (1.5, 0.0, 0.7), materials=("plate",)),
            Instance("ball", (0.0, 0.7, 0.4), materials=("ball",)),
        ),
        lights=(PointLight((-1.0, 0.5, 3.0), intensity=12.0, radius=0.1, range=50.0),),
    )
    batch = SceneBatch(place)
    eye = np.array([-1.5, 0.0, 1.2])
    camera = Viewpoint(eye, look_at(eye, (1.5, 0.0, 0.7)), 0.5)
    table, pose = RayTable(*camera.rays(96, 96)), (eye[None], camera.attitude[None])
    seen = {}
    for name in ("standard", "high"):
        found = render(batch, table, *pose, channels=("rgb", "instance"), options=quality_options(name))
        seen[name] = np.sqrt(found["rgb"][0].mean(-1))
    inside = found["instance"][0] == 1
    inside = inside[1:-1, 1:-1] & inside[:-2, 1:-1] & inside[2:, 1:-1] & inside[1:-1, :-2] & inside[1:-1, 2:]
    image = seen["standard"]
    around = np.stack([image[1 + y : 95 + y, 1 + x : 95 + x] for y in (-1, 0, 1) for x in (-1, 0, 1) if (x, y) != (0, 0)])
    middle = image[1:-1, 1:-1]
    apart = np.maximum(middle - around.max(0), around.min(0) - middle) > 0.05
    bright = (image[1:-1, 1:-1] > 2.0 * np.median(middle[inside])) & inside
    levels = [one[1:-1, 1:-1][inside].mean() for one in seen.values()]
    assert levels[0] == pytest.approx(levels[1], rel=0.02)
    return float(apart[inside].mean()), float(bright.sum() / inside.sum())


def test_one_ray_shows_the_image_in_a_smooth_mirror_without_grain() -> None:
    """By its mean facet; by a facet by chance 84 of 10,000 pixels stood out of all around them."""
    assert specks(0.1)[0] < 1e-3


def test_a_highlight_that_a_rough_mirror_meets_by_chance_is_no_speck() -> None:
    """90 of 10,000 pixels were spots twice as bright as the plate."""
    assert specks(0.2)[1] < 1e-3
