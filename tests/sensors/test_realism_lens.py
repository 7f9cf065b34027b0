"""Lens pieces against their formulas: fall-off, colours of unequal size, bloom, dirt."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from airworthy.optics.projections import Fisheye, Pinhole
from airworthy.sensors.realism import Bloom, LensDirt
from airworthy.sensors.realism.chain import aberrated, bloom_layer, bloomed, bright_part, dirt_mask, field_cosine, vignetted

CAMERA = Pinhole.from_fov(96, 64, vertical=1.0)


def test_vignetting_is_the_fourth_power_of_the_cosine() -> None:
    v, u = np.meshgrid(np.arange(64) + 0.5 - 32, np.arange(96) + 0.5 - 48, indexing="ij")
    squared = CAMERA.fx**2 / (CAMERA.fx**2 + u**2 + v**2)
    white = np.ones((1, 64, 96, 3), np.float32)
    cosine = field_cosine(CAMERA.rays())
    for strength in (0.3, 1.0):
        found = vignetted(white, cosine, strength)[0]
        # The cosine is kept in float32: four of its roundings.
        np.testing.assert_allclose(found, np.repeat((1 - strength * (1 - squared**2))[..., None], 3, -1), rtol=1e-6)


def test_vignetting_of_a_fisheye_ends_at_a_right_angle() -> None:
    lens = Fisheye(65, 65, 18.0, 18.0, 32.5, 32.5, angle_max=2.2)
    cosine = field_cosine(lens.rays())
    assert cosine[32, 32] == pytest.approx(1.0)
    assert cosine[32, 0] == 0.0  # 32 px / 18 px = 1.78 rad, behind the lens
    assert cosine[32, 50] == pytest.approx(np.cos(1.0), abs=1e-6)


@pytest.mark.parametrize(("shift", "center"), [(0.002, (100.5, 50.5)), (0.02, (100.5, 50.5)), (-0.01, (92.0, 47.0))])
def test_colours_move_by_shift_times_radius(shift: float, center: tuple[float, float]) -> None:
    """Spots at several radii: red moves out and blue in by k r, so by k x the corner's radius at the corner."""
    v, u = np.meshgrid(np.arange(101) + 0.5, np.arange(201) + 0.5, indexing="ij")
    for at in ((190.0, 91.0), (150.0, 20.0), (30.0, 60.0)):
        spot = np.exp(-(((u - at[0]) ** 2 + (v - at[1]) ** 2) / 8.0)).astype(np.float32)
        out = aberrated(np.repeat(spot[..., None], 3, -1), shift, center)
        np.testing.assert_array_equal(out[..., 1], spot)
        for channel, sign in ((0, 1.0), (2, -1.0)):
            weight = out[..., channel].astype(float)
            found = np.array([(weight * u).sum(), (weight * v).sum()]) / weight.sum()
            expected = np.array(center) + (np.array(at) - center) * (1.0 + sign * shift)
            # Linear interpolation keeps a spot's centre of mass, but for some hundredths of a pixel where the scale is large.
            np.testing.assert_allclose(found, expected, atol=0.02)


def test_the_corner_moves_by_k_times_its_radius() -> None:
    """The figure of the specification: k = 0.002 at 1024 x 768 is 1.28 px at the corner."""
    ramp = np.repeat(np.arange(1024, dtype=np.float32)[None, :, None], 768, 0)
    out = aberrated(np.repeat(ramp, 3, -1), 0.002, (512.0, 384.0))
    across = out[0, 0, 2] - ramp[0, 0, 0], out[0, 1022, 0] - ramp[0, 1022, 0]
    # Red at the right reads from inside; blue at the left would read from outside, where the border holds.
    assert across[0] == 0.0
    assert across[1] == pytest.approx(-0.002 * 510.5 / 1.002, abs=1e-4)


def test_what_is_below_the_threshold_stays() -> None:
    dim = np.random.default_rng(1).uniform(0.0, 1.0, (2, 37, 53, 3)).astype(np.float32)
    np.testing.assert_array_equal(bloomed(dim, Bloom()), dim)
    lit = dim.copy()
    lit[1, 10, 10] = 20.0
    out = bloomed(lit, Bloom())
    np.testing.assert_array_equal(out[0], dim[0])
    assert (out[1] >= lit[1]).all()


@given(st.integers(1, 70), st.integers(1, 70), st.integers(1, 7))
def test_the_bloom_of_a_uniform_image_is_uniform(height: int, width: int, levels: int) -> None:
    """Of every size and depth; the whole then gains weight x what exceeds the threshold."""
    image = np.full((height, width, 3), 3.0, np.float32)
    # Weights are dyadic and sum to one; up to seven additions are rounded.
    np.testing.assert_allclose(bloomed(image, Bloom(1.0, levels, 0.05)), 3.0 + 0.05 * 2.0, rtol=1e-6)


def test_bloom_spreads_what_exceeds_the_threshold_and_nothing_else() -> None:
    image = np.zeros((256, 256, 3), np.float32)
    image[128, 127] = (50.0, 25.0, 0.0)
    layer = bloom_layer(bright_part(image, 1.0), 5)
    # The peak exceeds by 49/50 of itself, with its colour; filters keep sums away from the border.
    np.testing.assert_allclose(layer.sum((0, 1)), [49.0, 24.5, 0.0], rtol=1e-5)
    out = bloomed(image, Bloom())
    np.testing.assert_allclose(out - image, 0.05 * layer, atol=4e-6)  # a rounding of 50
    v, u = np.meshgrid(np.arange(256), np.arange(256), indexing="ij")
    red = layer[..., 0].astype(float)
    centre = (red * u).sum() / red.sum(), (red * v).sum() / red.sum()
    # The coarsest level is 32 px wide: a spot's halo is off by less than a pixel, since every filter is symmetric about cells.
    np.testing.assert_allclose(centre, (127.0, 128.0), atol=0.6)
    assert red[128, 127] > red[128, 140] > red[128, 190] >= 0.0


def test_light_that_is_not_finite_does_not_spread() -> None:
    image = np.zeros((16, 16, 3), np.float32)
    image[3, 3], image[9, 9] = np.nan, 5.0
    out = bloomed(image, Bloom())
    assert np.isnan(out[3, 3]).all()
    assert np.isfinite(np.delete(out.reshape(-1, 3), 3 * 16 + 3, 0)).all()


def test_dirt_multiplies_the_bloom_layer() -> None:
    mask = dirt_mask(64, 96)
    assert mask.mean() == pytest.approx(1.0, abs=1e-5)
    assert mask.min() > 0.0
    assert mask.max() > 2.0
    image = np.full((1, 64, 96, 3), 3.0, np.float32)
    out = bloomed(image, Bloom(), LensDirt(0.3))
    np.testing.assert_allclose(out, 3.0 + 0.05 * 2.0 * (1.0 + 0.3 * (mask - 1.0))[None, ..., None].repeat(3, -1), rtol=1e-6)
    dim = np.full((1, 64, 96, 3), 0.9, np.float32)
    np.testing.assert_array_equal(bloomed(dim, Bloom(), LensDirt()), dim)


def test_dirt_is_the_same_at_every_resolution() -> None:
    fine, coarse = dirt_mask(256, 384), dirt_mask(64, 96)
    shrunk = fine.reshape(64, 4, 96, 4).mean((1, 3))
    # Edges of specks and hairs are thinner than a coarse pixel; on the whole it is one picture.
    assert np.corrcoef(shrunk.ravel(), coarse.ravel())[0, 1] > 0.95
    assert not np.array_equal(dirt_mask(64, 96, 8), coarse)
