"""Exposure, noise and counts against their formulas."""

from __future__ import annotations

import math

import numpy as np
import pytest

from airworthy.core.errors import AirworthyError
from airworthy.optics.projections import Pinhole
from airworthy.sensors.noise import Draw
from airworthy.sensors.realism import AutoExposure, Quantization, Realism, SensorNoise
from airworthy.sensors.realism.chain import Optics, develop, next_stops, noisy, quantized, wanted_stops

OPTICS = Optics.of(Pinhole.from_fov(8, 8, vertical=1.0))


def grey(*levels: float) -> np.ndarray:
    return np.array(levels, np.float32)[:, None, None, None] * np.ones((1, 8, 8, 3), np.float32)


def test_exposure_converges_with_its_time_constant() -> None:
    settings = Realism(auto_exposure=AutoExposure())
    stops = np.full(1, np.nan)
    np.testing.assert_allclose(develop(grey(0.09), settings, OPTICS, stops, 0.01), 0.18, rtol=1e-6)  # settled at once
    assert stops[0] == pytest.approx(1.0, abs=1e-6)
    found = []
    for _ in range(200):
        develop(grey(0.72), settings, OPTICS, stops, 0.01)
        found.append(stops[0])
    # From +1 EV to -2 EV, a first-order lag sampled exactly: 1 - e^-1 of the way after 0.5 s.
    times = 0.01 * np.arange(1, 201)
    np.testing.assert_allclose(found, -2.0 + 3.0 * np.exp(-times / 0.5), atol=1e-6)


def test_exposure_stops_at_its_limit() -> None:
    settings = AutoExposure(time_constant=0.0)
    np.testing.assert_allclose(wanted_stops([0.18, 0.0, 1e9, 0.36], settings), [0.0, 4.0, -4.0, -1.0], atol=1e-12)
    assert next_stops(np.array([-4.0]), 1e-7, 1e-3, settings)[0] == 4.0
    slow = AutoExposure(start=0.0)
    assert next_stops(np.array([math.nan]), 0.36, 0.5, slow)[0] == pytest.approx(-(1.0 - math.exp(-1.0)))


def test_a_camera_brightens_no_further_than_its_settings_and_amplifies_what_its_opening_does_not_give() -> None:
    settings = AutoExposure.of_camera(2.8, 1 / 30, 12_800, time_constant=0.0)
    # log2(2.8^2 x 30) = 7.88 at ISO 100, seven stops less at 12,800.
    assert settings.limit == pytest.approx(15.0 - (math.log2(2.8**2 * 30.0) - 7.0))
    assert settings.opening == pytest.approx(15.0 - math.log2(2.8**2 * 30.0))
    assert settings.time_constant == 0.0
    # 20 stops down: six or so are missing, and it stays dark.
    (shown,) = develop(grey(0.18 * 2.0**-20), Realism(auto_exposure=settings), OPTICS).mean((1, 2, 3))
    assert shown == pytest.approx(0.18 * 2.0 ** (settings.limit - 20.0), rel=1e-5)
    with pytest.raises(AirworthyError, match=r"ends at EV 22.2; expected at most 15"):
        AutoExposure.of_camera(22.0, 1e-4, 100)
    wide = np.full((1, 64, 64, 3), 0.18 * 2.0**-8, np.float32)
    deviation = []
    for opening in (0.0, 4.0, 8.0):
        realism = Realism(auto_exposure=AutoExposure(limit=8.0, opening=opening), noise=SensorNoise(read_noise=0.0))
        deviation.append(float(develop(wide, realism, OPTICS, None, 0.0, Draw.of(1, seed=3)).std()))
    # Shot noise goes with the root of the light: four stops of it are two of noise. 12,288 draws know a deviation to 0.6 %.
    np.testing.assert_allclose(np.array(deviation[:2]) / deviation[1:], 4.0, rtol=0.05)


def test_every_camera_has_its_own_exposure_and_bad_pixels_do_not_count() -> None:
    light = grey(0.09, 0.36)
    light[1, 2, 2] = np.nan
    stops = np.full(2, np.nan)
    develop(light, Realism(auto_exposure=AutoExposure()), OPTICS, stops, 0.1)
    np.testing.assert_allclose(stops, [1.0, -1.0], atol=1e-6)


@pytest.mark.parametrize("level", [0.02, 0.5, 2.0])
def test_noise_has_the_variance_of_the_signal_and_of_reading(level: float) -> None:
    settings = SensorNoise(photons=4000.0, efficiency=0.5, read_noise=9.0)
    light = np.full((1, 200, 250, 3), level, np.float32)
    electrons = noisy(light, settings, Draw.of(1, seed=2)) * 2000.0
    signal, variance = 2000.0 * level, 2000.0 * level + 81.0
    # 150,000 normal numbers: the variance is known to sqrt(2 / n) = 0.37 %, the mean to 0.26 % of the deviation; four of each.
    assert electrons.var(dtype=np.float64) == pytest.approx(variance, rel=0.015)
    assert electrons.mean(dtype=np.float64) == pytest.approx(signal, abs=0.0105 * math.sqrt(variance))


@pytest.mark.parametrize("gain", [1.0, 4.0])
def test_a_full_pixel_reads_full(gain: float) -> None:
    """Nothing exceeds the full well, noise included; just below it noise is cut on one side."""
    settings = SensorNoise(photons=4000.0, efficiency=0.5, read_noise=9.0)
    full = settings.full_well / settings.white * gain
    for level in (1.0, 3.0, 100.0):
        light = np.full((1, 64, 64, 3), level * full, np.float32)
        counts = noisy(light, settings, Draw.of(1, seed=2), gain)
        assert counts.max() <= np.float32(full) * (1.0 + 1e-6)
        # Of a full pixel half of the draws lie above and are cut: the others have the deviation of the well.
        assert (counts == counts.max()).mean() == pytest.approx(0.5, abs=0.03)


def test_channels_pixels_samples_flights_and_sensors_differ() -> None:
    light = np.full((2, 64, 64, 3), 0.5, np.float32)
    base = noisy(light, SensorNoise(), Draw.of(2, seed=1, sample=4, sensor="a")) - 0.5
    others = [
        noisy(light, SensorNoise(), draw)[0] - 0.5
        for draw in (
            Draw.of(2, 1, sample=5, sensor="a"),
            Draw.of(2, 1, sample=4, sensor="b"),
            Draw.of(2, 9, sample=4, sensor="a"),
        )
    ]
    series = [base[0, ..., 0], base[0, ..., 1], base[0, ..., 2], base[1, ..., 0], *[one[..., 0] for one in others]]
    correlation = np.corrcoef([one.ravel() for one in series])
    # 4,096 pairs: independent series correlate by 1 / 64; 21 pairs of series stay within four of these.
    assert np.abs(correlation - np.eye(len(series))).max() < 4.0 / 64.0
    again = noisy(light, SensorNoise(), Draw.of(2, seed=1, sample=4, sensor="a")) - 0.5
    np.testing.assert_array_equal(again, base)


def test_amplified_light_is_noisier_and_wells_run_over() -> None:
    settings = SensorNoise(read_noise=0.0)
    light = np.full((2, 100, 100, 3), 0.4, np.float32)
    out = noisy(light, settings, Draw.of(2), np.array([1.0, 16.0]))
    # Sixteen times fewer electrons, four times the relative noise; 30,000 samples each know theirs to 0.4 %.
    assert out[1].std() / out[0].std() == pytest.approx(4.0, rel=0.03)
    assert noisy(np.full((1, 2, 2, 3), 1e6, np.float32), settings, None).max() == pytest.approx(10_000 / 2500.0)


def test_without_draws_there_is_no_noise() -> None:
    light = grey(0.3, 0.9)
    np.testing.assert_allclose(noisy(light, SensorNoise(), None), light, rtol=1e-6)


@pytest.mark.parametrize("bits", [1, 8, 12])
def test_counts_are_within_half_a_step(bits: int) -> None:
    settings = Quantization(bits, 4.0)
    light = np.random.default_rng(3).uniform(0.0, 4.0, (1, 50, 60, 3)).astype(np.float32)
    out = quantized(light, settings)
    assert np.abs(out.astype(np.float64) - light).max() <= 0.5 * settings.step + 4.0 * 2.0**-24  # a rounding of the result
    counts = out.astype(np.float64) / settings.step
    np.testing.assert_allclose(counts, np.rint(counts), atol=1e-3)
    np.testing.assert_array_equal(quantized(np.array([[-1.0, 9.0, 4.0]], np.float32), settings), [[0.0, 4.0, 4.0]])
