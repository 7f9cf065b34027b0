"""Tone curves and the sRGB encoding."""

from __future__ import annotations

import numpy as np
import pytest

from airworthy.core.errors import AirworthyError
from airworthy.optics import tone
from airworthy.optics.tone import SHOULDER, filmic, grey_8bit, linear_from_srgb, luminance, shoulder, srgb_from_linear, to_8bit


def test_srgb_has_its_published_values_and_turns_back() -> None:
    np.testing.assert_allclose(srgb_from_linear([0.0, 0.0031308, 0.2140411, 1.0]), [0.0, 0.0404499, 0.5, 1.0], atol=1e-6)
    codes = np.arange(256, dtype=np.uint8)
    np.testing.assert_array_equal(to_8bit(np.repeat(linear_from_srgb(codes)[:, None], 3, 1), curve="linear")[:, 0], codes)


def test_the_filmic_curve_keeps_what_is_below_its_shoulder_and_never_clips() -> None:
    x = np.linspace(0.0, 20.0, 20001)
    y = shoulder(x)
    np.testing.assert_allclose(y[x <= SHOULDER], x[x <= SHOULDER], atol=1e-6)
    assert (np.diff(y) >= 0.0).all()
    assert y.max() <= 1.0
    slope = np.diff(y) / np.diff(x)
    assert np.abs(np.diff(slope)).max() < 5e-3  # no kink where the shoulder begins: float32 differences over 1e-3


def test_the_filmic_curve_is_neutral() -> None:
    grey = np.repeat(np.geomspace(0.01, 50.0, 50)[:, None], 3, 1)
    out = filmic(grey)
    np.testing.assert_allclose(out, out[:, :1] * np.ones(3), atol=1e-6)
    color = np.array([0.6, 0.3, 0.1])
    np.testing.assert_allclose(filmic(color), color, atol=1e-6)
    bright = filmic(color * 8.0)
    assert bright[0] > bright[1] > bright[2] > 0.1  # order of channels, hence hue, is kept; it pales


def test_exposure_is_a_factor_per_image_and_nan_is_black() -> None:
    images = np.full((2, 3, 4, 3), 0.1, np.float32)
    images[0, 0, 0] = np.nan
    out = to_8bit(images, [1.0, 2.0], "linear")
    assert out[0, 0, 0].tolist() == [0, 0, 0]
    assert out[0, 1, 1, 0] == round(float(srgb_from_linear(0.1)) * 255)
    assert out[1, 1, 1, 0] == round(float(srgb_from_linear(0.2)) * 255)


def test_grey_is_luminance() -> None:
    assert luminance([1.0, 1.0, 1.0]) == pytest.approx(1.0)
    assert grey_8bit(np.array([[[0.0, 0.5, 0.0]]]))[0, 0] == round(float(srgb_from_linear(0.7152 * 0.5)) * 255)


def test_bad_images_and_curves_are_refused() -> None:
    with pytest.raises(AirworthyError, match="shape"):
        to_8bit(np.zeros((4, 4)))
    with pytest.raises(AirworthyError, match="filmic, linear"):
        to_8bit(np.zeros((4, 4, 3)), curve="hdr")  # type: ignore[arg-type]


def test_nan_is_black_in_every_curve() -> None:
    picture = np.array([[np.nan, np.nan, np.nan], [1.0, 1.0, 1.0]], np.float32)
    assert tone.encode_8bit(picture).tolist() == [[0, 0, 0], [255, 255, 255]]
    assert tone.display_from_linear(picture)[0].tolist() == [0.0, 0.0, 0.0]
    for curve in tone.CURVES:
        assert tone.to_8bit(picture, curve=curve)[0].tolist() == [0, 0, 0]


def test_the_table_of_bytes_is_the_formula_at_its_own_places() -> None:
    places = (np.arange(tone.TABLE_SIZE) / (tone.TABLE_SIZE - 1)) ** 2
    expected = np.rint(srgb_from_linear(places) * 255.0)
    np.testing.assert_array_equal(tone.encode_8bit(places), expected)


def test_the_table_of_paleness_is_what_the_curve_shows_of_a_pure_colour() -> None:
    """Its peaks reach from the shoulder to the brightest; of a colour with nothing in its other channels, the least."""
    peaks, pale = tone.paleness_table()
    assert peaks[0] == SHOULDER
    assert shoulder(peaks[-1]) == pytest.approx(tone.BRIGHTEST, abs=1e-6)  # float32
    shown = filmic(np.stack((peaks, np.zeros_like(peaks), np.zeros_like(peaks)), axis=-1))
    np.testing.assert_allclose(pale, shown.min(axis=-1), atol=1e-6)


def test_the_wide_curve_keeps_middle_grey_and_tells_highlights_apart_that_the_filmic_one_does_not() -> None:
    grey = np.array([[0.18] * 3, [1.0] * 3, [4.0] * 3, [16.0] * 3], np.float32)
    np.testing.assert_allclose(tone.wide_shoulder(grey[:, 0]), [0.169, 0.659, 0.893, 0.971], atol=2e-3)
    eight, filmic = to_8bit(grey, curve="wide")[:, 0], to_8bit(grey)[:, 0]
    assert (np.diff(eight.astype(int)) > 3).all()
    assert filmic[2] == filmic[3] == 255
    # No crease, and no way down, where the toe meets the hyperbola.
    x = np.linspace(0.0, 2.0, 4001)
    slope = np.diff(tone.wide_shoulder(x).astype(float)) / np.diff(x)
    assert slope.min() > 0.0
    near = slope[490:510]
    assert near.max() - near.min() < 0.02


def test_the_wide_curve_keeps_hues_and_makes_black_of_nan() -> None:
    color = np.array([[0.1, 0.2, 0.05]], np.float32)
    shown = tone.wide(color)[0]
    np.testing.assert_allclose(shown / shown[1], color[0] / color[0, 1], rtol=1e-4)
    np.testing.assert_array_equal(to_8bit(np.full((1, 3), np.nan, np.float32), curve="wide"), 0)
