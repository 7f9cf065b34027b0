"""The policy's view: rendered directly, or resized and cropped from the whole image."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.fixtures.likeness import psnr

from airworthy.core.errors import AirworthyError
from airworthy.scenes.splats import Splats, read_splats
from airworthy.splats import PolicyView, SplatRenderer, twin
from airworthy.splats.policy_view import CAMERA_INTRINSICS, triangle_matrix

AHEAD = np.array([0.0, 0.0, 0.0, 1.0])
WHOLE = (640, 360, CAMERA_INTRINSICS)


def test_intrinsics_are_those_of_the_specification() -> None:
    np.testing.assert_allclose(PolicyView().intrinsics(), [185.182, 329.246, 113.230, 112.842], atol=5e-4)
    assert PolicyView().corner == (16, 16)


def test_a_ray_keeps_its_place() -> None:
    """Pixel centres of the view, scaled back into the whole image, have the same rays."""
    fx, fy, cx, cy = PolicyView().intrinsics()
    gx, gy, hx, hy = CAMERA_INTRINSICS
    u, v = 37.5, 190.5
    x, y = (u + 16.0) * 640.0 / 256.0, (v + 16.0) * 360.0 / 256.0
    np.testing.assert_allclose([(u - cx) / fx, (v - cy) / fy], [(x - hx) / gx, (y - hy) / gy], atol=1e-12)


@pytest.mark.parametrize("kind", [np.uint8, np.float32])
def test_resizing_is_that_of_pillow(kind: Any) -> None:
    from PIL import Image

    rng = np.random.default_rng(0)
    image = rng.integers(0, 256, (360, 640, 3)).astype(kind)
    ours = PolicyView().of(image)
    resized = [Image.fromarray(image[..., c]).resize((256, 256), Image.Resampling.BILINEAR) for c in range(3)]
    theirs = np.stack([np.array(part) for part in resized], axis=-1)[16:240, 16:240]
    assert ours.dtype == kind
    assert ours.shape == (224, 224, 3)
    # In 8 bits Pillow rounds between its two passes: one count.
    assert np.abs(ours.astype(float) - theirs.astype(float)).max() <= (1.0 if kind == np.uint8 else 1e-3)
    np.testing.assert_array_equal(PolicyView().of(image[None])[0], ours)
    np.testing.assert_allclose(triangle_matrix(3, 6).sum(axis=1), 1.0)


def exact_weights(size: int, number: int) -> dict[int, Fraction]:
    """Weights of a triangle filter from `size` to 256, of new pixel `number`, as ratios."""
    scale = Fraction(size, 256)
    reach, middle = max(scale, Fraction(1)), (number + Fraction(1, 2)) * scale
    weights = {h: 1 - abs(h + Fraction(1, 2) - middle) / reach for h in range(size)}
    weights = {h: w for h, w in weights.items() if w > 0}
    return {h: w / sum(weights.values()) for h, w in weights.items()}


@pytest.mark.parametrize("size", [(360, 640), (480, 640), (448, 448), (91, 203)])
def test_counts_do_not_depend_on_the_order_of_sums(size: tuple[int, int]) -> None:
    """Halves, of which 448 to 256 and 640 to 256 make many, go up: as exact ratios say, and along the rows first."""
    image = np.random.default_rng(1).integers(0, 256, (*size, 3), np.uint8)
    found = PolicyView().of(image)
    for row, column in np.random.default_rng(2).integers(0, 224, (100, 2)).tolist():
        down, across = exact_weights(size[0], row + 16), exact_weights(size[1], column + 16)
        for colour in range(3):
            value = sum(a * b * int(image[i, j, colour]) for i, a in down.items() for j, b in across.items())
            assert found[row, column, colour] == math.floor(value + Fraction(1, 2))
    turned = PolicyView((256, 256), (224, 224)).of(image.swapaxes(0, 1)).swapaxes(0, 1)
    np.testing.assert_array_equal(turned, found)


def scattered(rng: np.random.Generator, least: float, most: float) -> Splats:
    """300 Gaussians in front, of standard deviations between these [m]."""
    where = rng.uniform([-5, -4, 3], [5, 4, 8], (300, 3))
    turned = rng.normal(size=(300, 4))
    turned /= np.linalg.norm(turned, axis=1, keepdims=True)
    scale = np.exp(rng.uniform(np.log(least), np.log(most), (300, 3)))
    return Splats(where, turned, scale, rng.uniform(0.1, 0.9, 300), rng.normal(0, 0.5, (300, 1, 3)))


@pytest.mark.parametrize(("least", "most"), [(0.15, 0.4), (0.03, 0.1)])
def test_a_smooth_scene_is_the_same_either_way(least: float, most: float) -> None:
    """Gaussians of a few pixels and more: what is left is that the filter is a triangle and not a Gaussian.

    Both have one variance, 1/6 px^2, and no third moment; fourth moments differ by 1/15 - 1/12 = -1/60 px^4. An image of
    curvature 1/s^2 (s the width of what is in it, here 2 px and more, 6 px typically) is changed by 3 / (24 * 60 s^4): 1e-4 at
    2 px. Add that opacities are blended after being averaged instead of before, of second order in how much they change within
    a pixel: a few 1e-4 where Gaussians overlap. 60 dB is 1e-3. A view that is off by what a resize that keeps the centres of
    the corner pixels would make of it has 40 to 55 dB.
    """
    renderer = SplatRenderer(scattered(np.random.default_rng(0), least, most))
    whole = renderer.render(*WHOLE, np.zeros((1, 3)), AHEAD, channels=("rgb",))["rgb"]
    direct = PolicyView().render(renderer, np.zeros((1, 3)), AHEAD, channels=("rgb",))["rgb"]
    assert psnr(PolicyView().of(whole), direct) >= 60.0
    off = PolicyView().intrinsics() + np.array([0.0, 0.0, 0.3, 0.144])
    shifted = renderer.render(224, 224, off, np.zeros((1, 3)), AHEAD, channels=("rgb",), reduced=(0.4, 256 / 360))["rgb"]
    assert psnr(PolicyView().of(whole), shifted) <= 56.0


@pytest.mark.parametrize("name", ["guitar.compressed.ply", "statues_sog/angel.sog", "flowers_sog_chunks"])
def test_captured_scenes_agree_up_to_resampling(name: str, data_dir: Path, ring: Any) -> None:
    """At least 32 dB from anywhere around: what a pixel averages hides what it averages with.

    Captures hold many opaque Gaussians narrower than the view's 2.5 x 1.4 pixels. Resizing averages pixels of which each is
    blended in depth; the direct view blends averages, so light of a hidden Gaussian passes beside the hiding one's average.
    Where one pixel in three has an outline with a step of 0.2, half of it wrong by a third, this is 0.02 rms: 34 dB. Without
    the care for widths and strengths the same scenes have 26 to 30 dB, and a policy would see what is thin brighter than it is.
    """
    chunks = {"chunks": [1]} if name.startswith("flowers") else {}
    splats = read_splats(data_dir / "splats" / name, **chunks).splats
    where, turned = ring(splats)
    renderer = SplatRenderer(splats)
    for antialiased in (False, True):
        options = {"channels": ("rgb",), "antialiased": antialiased}
        whole = renderer.render(*WHOLE, where[:2], turned[:2], **options)["rgb"]
        direct = PolicyView().render(renderer, where[:2], turned[:2], **options)["rgb"]
        assert whole.max() > 0.3
        for a, b in zip(PolicyView().of(whole), direct, strict=True):
            assert psnr(np.clip(a, 0, 1), np.clip(b, 0, 1)) >= 32.0


@pytest.mark.parametrize("antialiased", [False, True])
@pytest.mark.parametrize("reduced", [(0.4, 0.7), (1.0, 1.0), (2.0, 0.3)])
def test_reduced_images_equal_the_twin(reduced: tuple[float, float], antialiased: bool, cloud: Any, pose: Any) -> None:
    rng = np.random.default_rng(5)
    splats, view = cloud(rng, 400, 1), pose(rng)
    camera = (view.width, view.height, view.lens)
    options = {"reduced": reduced, "antialiased": antialiased, "dilation": 0.5}
    ours = SplatRenderer(splats).render(*camera, view.position[None], view.attitude[None], **options)
    theirs = twin.render(splats, *camera, view.position, view.attitude, **options)
    assert np.abs(ours["rgb"][0] - theirs["rgb"]).mean() <= 1e-5
    assert psnr(ours["rgb"][0], theirs["rgb"]) >= 70.0


def test_mistakes(plain: Any) -> None:
    with pytest.raises(AirworthyError, match="cuts"):
        PolicyView((100, 100), (101, 50))
    with pytest.raises(AirworthyError, match="images of shape"):
        PolicyView().of(np.zeros((360, 640)))
    renderer = SplatRenderer(plain([0, 0, 3.0], 0.1, 0.5, 0.5))
    with pytest.raises(AirworthyError, match="`reduced` is"):
        renderer.render(9, 9, (9.0, 9.0, 4.0, 4.0), np.zeros((1, 3)), AHEAD, reduced=(0.0, 1.0))
