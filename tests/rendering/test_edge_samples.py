"""Which pixels of an image are refined, and of which samples."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from benchmarks.still_scenes import SCENES

from airworthy.geometry import RayTable
from airworthy.optics.lenses import shifted
from airworthy.rendering.edge_samples import BESIDE, BESIDE_STRONG, CORNER, STRONG, EdgePixels, contrasts, edge_gain, edges
from airworthy.rendering.shading import ShadingOptions, shade
from airworthy.scenes.batch import SceneBatch


def ramp(across: float, down: float, height: int = 9, width: int = 12) -> np.ndarray:
    """An image (1, H, W, 3) whose values at (x, y) are linear, as are those of its corners, half a pixel on."""
    y, x = np.mgrid[:height, :width]
    return np.repeat((0.2 + across * x + down * y)[None, ..., None], 3, axis=-1).astype(np.float32)


def test_pixels_have_samples_by_how_much_they_differ() -> None:
    """Those alike their neighbours keep one ray; weak edges share those at corners, strong ones have samples of their own."""
    item = SCENES["metals"]()
    batch, table = SceneBatch(item.scene), RayTable(*item.view.rays(40, 30))
    pose = item.view.position[None], item.view.attitude[None]
    few = ShadingOptions(samples=4, contrast=0.04)
    one = shade(batch, table, *pose, options=replace(few, samples=1))
    mixed = shade(batch, table, *pose, options=few)
    wanted, strong = edges(one, 0.04), edges(one, 0.04 * STRONG)
    assert 0.02 < wanted.mean() < 0.8
    np.testing.assert_array_equal(mixed[~wanted], one[~wanted])
    inner = np.zeros_like(wanted)
    inner[:, 1:-1, 1:-1] = True
    whole = shade(batch, table, *pose, options=replace(few, contrast=0.0))
    own = (one + 4.0 * whole) / 5.0
    clipped = np.pad(np.minimum(one, 1.0), ((0, 0), (1, 1), (1, 1), (0, 0)), mode="edge")
    around = clipped[:, 1:-1, :-2] + clipped[:, 1:-1, 2:] + clipped[:, :-2, 1:-1] + clipped[:, 2:, 1:-1]
    here = wanted & ~inner
    assert here.any()
    np.testing.assert_allclose(mixed[here], own[here], rtol=1e-5, atol=1e-6)
    here = strong & inner
    expected = (1.0 - 4.0 * BESIDE_STRONG) * own + BESIDE_STRONG * around
    assert here.sum() > 10
    np.testing.assert_allclose(mixed[here], expected[here], rtol=1e-5, atol=1e-6)
    corner = shade(batch, shifted(table, 0.5, 0.5), *pose, options=replace(few, samples=1))
    before = np.pad(corner, ((0, 0), (1, 0), (1, 0), (0, 0)))
    even = np.add.outer(np.arange(30), np.arange(40))[None, ..., None] % 2 == 0
    two = np.where(even, corner + before[:, :-1, :-1], before[:, 1:, :-1] + before[:, :-1, 1:])
    expected = (1.0 - 2.0 * CORNER - 4.0 * BESIDE) * one + CORNER * two + BESIDE * around
    here = wanted & ~strong & inner
    assert here.sum() > 10
    np.testing.assert_allclose(mixed[here], expected[here], rtol=1e-5, atol=1e-6)
    # Nothing differs by more than everything, and then one ray is all.
    np.testing.assert_array_equal(shade(batch, table, *pose, options=replace(few, contrast=1.0)), one)


@pytest.mark.parametrize(("across", "down"), [(0.01, 0.0), (0.0, 0.01), (0.01, -0.004)])
def test_what_is_even_stays_as_it_is(across: float, down: float) -> None:
    """Corners and neighbours lie around a pixel evenly, and weights come to one: a ramp is its own mean."""
    image = ramp(across, down)
    pixels = EdgePixels.of(image, 0.005, 1.0)
    assert not pixels.strong[:, 1:-1, 1:-1].any()
    assert sum(len(at) for at, *_ in pixels.weak) == 7 * 10
    corners = np.where(pixels.corners[..., None], image + np.float32(0.5 * (across + down)), np.float32(np.nan))
    found = image.copy()
    pixels.refine(found, corners)
    np.testing.assert_allclose(found, image, atol=1e-6)


def test_weak_edges_take_one_corner_of_two() -> None:
    image = ramp(0.01, 0.0, 40, 60)
    change = contrasts(image)
    pixels = EdgePixels.of(image, float(change.min()) * 0.9, 1.0)
    weak = sum(len(at) for at, *_ in pixels.weak)
    assert weak == 38 * 58
    assert pixels.corners.sum() == pytest.approx(0.5 * weak, rel=0.06)
    np.testing.assert_array_equal(pixels.strong, ~np.pad(np.ones((1, 38, 58), bool), ((0, 0), (1, 1), (1, 1))))


def test_pictures_do_not_depend_on_the_batch() -> None:
    images = np.concatenate([ramp(0.01, 0.003), ramp(0.08, 0.0), 3.0 * ramp(0.0, 0.02)])
    gain = np.array([1.0, 2.0, 0.5])
    together, corners = images.copy(), images * np.float32(1.1)
    EdgePixels.of(images, 0.01, gain).refine(together, corners)
    for k in range(3):
        alone = images[k : k + 1].copy()
        EdgePixels.of(alone, 0.01, gain[k : k + 1]).refine(alone, corners[k : k + 1])
        np.testing.assert_array_equal(alone[0], together[k])


def test_a_lamp_lights_its_neighbours_as_white_alone() -> None:
    image = np.zeros((1, 5, 5, 3), np.float32)
    image[0, 2, 2] = 1000.0
    found = image.copy()
    EdgePixels.of(image, 0.1, 1.0).refine(found, np.zeros_like(image))
    np.testing.assert_allclose(found[0, 2, 1], BESIDE_STRONG, rtol=1e-6)


def test_edges_are_both_sides_of_a_step_in_the_root_of_brightness() -> None:
    image = np.zeros((1, 3, 4, 3), np.float32)
    image[0, :, 2:] = 0.25**2
    assert edges(image, 0.24).tolist() == [[[False, True, True, False]] * 3]
    assert not edges(image, 0.26).any()
    image[0, :, 2:] = 40.0
    image[0, :, :2] = 1.0
    assert not edges(image, 0.05).any(), "what is brighter than white is white"


def test_a_gain_moves_the_white_up_to_which_edges_are_looked_for() -> None:
    image = np.zeros((2, 3, 4, 3), np.float32)
    image[:, :, 2:] = 0.0625
    assert edges(image, 0.3, (1.0, 4.0)).any(axis=(1, 2)).tolist() == [False, True]


def test_edges_of_a_night_are_looked_for_as_a_camera_shows_it_and_those_of_a_day_as_they_are() -> None:
    gain = edge_gain([1.0, 0.18, 0.03, 0.005, 1e-4])
    assert gain.tolist() == pytest.approx([1.0, 1.0, 1.0, 36.0, 1800.0])
    assert edge_gain([0.0])[0] > 1e6
