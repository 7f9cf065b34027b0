"""Statistics of pictures: of noise whose statistics are known, of shifted images, of what is no image."""

from __future__ import annotations

import numpy as np
import pytest

from airworthy.capture.photograph import colour_width, corner_tracks, gradient_kurtosis, image_statistics, spectrum_slope
from airworthy.core.errors import AirworthyError
from airworthy.optics.tone import srgb_from_linear

SIDE = 256


def noise(exponent: float, seed: int = 0) -> np.ndarray:
    """A grey image whose log luminance has a power spectrum of frequency^exponent."""
    axis = np.fft.fftfreq(SIDE, 1.0 / SIDE)
    radius = np.maximum(np.hypot(axis[:, None], axis[None]), 1.0)
    values = np.fft.ifft2(
        np.fft.fft2(np.random.default_rng(seed).standard_normal((SIDE, SIDE))) * radius ** (0.5 * exponent)
    ).real
    linear = 0.2 * np.exp(0.3 * values / values.std())
    return np.repeat(np.rint(255.0 * srgb_from_linear(linear)).astype(np.uint8)[..., None], 3, axis=2)


@pytest.mark.parametrize("exponent", [-1.0, -2.0, -3.0])
def test_the_slope_is_that_of_the_noise(exponent: float) -> None:
    found = [spectrum_slope(noise(exponent, seed)) for seed in range(4)]
    # Eight rings of some hundred to some thousand frequencies; 8 bits add white noise, which flattens the steep one.
    assert np.mean(found) == pytest.approx(exponent, abs=0.15)


def test_normal_noise_has_the_kurtosis_of_a_normal_distribution_and_edges_more() -> None:
    assert gradient_kurtosis(noise(0.0)) == pytest.approx(3.0, abs=0.1)
    edge = np.full((SIDE, SIDE, 3), 60, np.uint8)
    edge[:, SIDE // 2 :] = 200
    # One difference of 2 SIDE - 1 columns and rows is not zero: 1 / (share of them).
    assert gradient_kurtosis(edge) == pytest.approx(2.0 * (SIDE - 1), rel=0.02)
    assert np.isnan(gradient_kurtosis(np.full((64, 64, 3), 9, np.uint8)))


def test_the_width_of_colours_is_zero_for_grey_and_by_hand_else() -> None:
    assert colour_width(noise(-2.0)) == 0.0
    half = np.zeros((64, 64, 3), np.uint8)
    half[:32, :, 0] = 100
    # Red minus green is 0 and 100, a deviation of 50; yellow minus blue 0 and 50, one of 25.
    assert colour_width(half) == pytest.approx(np.hypot(50.0, 25.0))


def test_corners_are_those_of_squares() -> None:
    image = np.full((200, 200, 3), 40, np.uint8)
    for y in range(20, 180, 40):
        for x in range(20, 180, 40):
            image[y : y + 20, x : x + 20] = 220
    assert image_statistics(image).corners == 4 * 16


def test_what_is_shifted_is_followed_and_what_is_another_is_not() -> None:
    picture = noise(-2.0)
    shifted = [np.roll(picture, 4 * step, axis=1)[:, 40:-40] for step in range(4)]
    tracks = corner_tracks(shifted)
    assert tracks.kept > 0.9
    assert tracks.flow == pytest.approx(4.0 / SIDE, rel=0.02)
    others = corner_tracks([noise(-2.0, seed) for seed in range(3)])
    assert others.kept < 0.3
    assert others.length < tracks.length <= len(shifted)


@pytest.mark.parametrize("wrong", [np.zeros((64, 64), np.uint8), np.zeros((64, 64, 3)), np.zeros((8, 64, 3), np.uint8)])
def test_what_is_no_image_is_refused(wrong: np.ndarray) -> None:
    with pytest.raises(AirworthyError, match="8-bit images"):
        image_statistics(wrong)


def test_what_has_no_statistics_is_refused() -> None:
    flat = np.full((64, 64, 3), 9, np.uint8)
    with pytest.raises(AirworthyError, match="one value everywhere"):
        spectrum_slope(flat)
    with pytest.raises(AirworthyError, match="has a corner"):
        corner_tracks([flat, flat])
    with pytest.raises(AirworthyError, match="two images of one size"):
        corner_tracks([noise(-2.0)])
