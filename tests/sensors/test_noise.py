"""Noise, dropout, limits and normalisation: kernel against twin, statistics, independence of batch and order."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy
from hypothesis import given
from hypothesis import strategies as st

from airworthy.core.errors import AirworthyError
from airworthy.sensors.devices import device
from airworthy.sensors.noise import Draw, RangeLimits, RangeNoise, measure, measured_twin, sensor_number

OUSTER = device("ouster_os0_128").noise
ODD = RangeNoise(1e-3, 1e-3, 1e-2, -0.05, 0.002, 0.1)


@pytest.mark.parametrize("shape", [(1, 1), (3, 16), (5, 7, 9), (2, 33)])
@pytest.mark.parametrize("limits", [RangeLimits(), RangeLimits.published(0.2, 35.0), RangeLimits.published(0.5, 20.0, False)])
def test_the_kernel_is_its_twin(shape: tuple[int, ...], limits: RangeLimits) -> None:
    values = np.random.default_rng(0).uniform(0.0, 40.0, shape).astype(np.float32)
    values.flat[::5], values.flat[::7] = np.inf, -np.inf
    draw = Draw.of(shape[0], seed=9, sample=4, sensor="front")
    twin = measured_twin(values, ODD, limits, draw, 50.0)
    # float32 of up to 50 m, and normals good to 2e-6 times a sigma of up to 1.7 m.
    np.testing.assert_allclose(
        measure(values.copy(), ODD, limits, draw, 50.0), twin, atol=1e-5 * (1 if limits.normalize else 2)
    )


@pytest.mark.parametrize("r", [0.5, 5.0, 30.0])
def test_statistics_of_the_lidar_model(r: float) -> None:
    """r' ~ N(r - offset, a r^2 + b r + c) (spec/aerial_gym 7.6) on a million draws."""
    count = 1_000_000
    reading = (
        measure(np.full((10, count // 10), r, np.float32), OUSTER, RangeLimits(), Draw.of(10, seed=1)).astype(float).ravel()
    )
    sigma = 3.36239104e-05 * r * r - 0.000317199061 * r + 0.0096190386
    # Standard errors of mean and standard deviation of a normal, 5 times; float32 at 30 m rounds to 2e-6.
    assert abs(reading.mean() - (r + 0.05)) < 5 * sigma / math.sqrt(count) + 2e-6
    assert abs(reading.std() - sigma) < 5 * sigma / math.sqrt(2 * count) + 2e-6
    shape = scipy.stats.kstest((reading[:20000] - r - 0.05) / sigma, "norm")
    assert shape.pvalue > 1e-4


def test_camera_noise_and_dropout() -> None:
    noise = device("realsense_d455").noise
    reading = measure(np.full((100, 1000), 4.0, np.float32), noise, RangeLimits.published(0.2, 15.0), Draw.of(100)) * 15.0
    dropped = reading == -15.0
    # Binomial with p = 0.01: 5 standard deviations of the share.
    assert abs(dropped.mean() - 0.01) < 5 * math.sqrt(0.01 * 0.99 / 1e5)
    assert reading[~dropped].std() == pytest.approx(0.04, rel=5 / math.sqrt(2e5))
    assert reading[~dropped].mean() == pytest.approx(4.0, abs=5 * 0.04 / math.sqrt(1e5))


def test_pixels_samples_sensors_flights_are_independent() -> None:
    """Correlation of 40,000 pairs is within 5 / sqrt(n) of zero."""
    count = 40_000

    def drawn(**changes: object) -> np.ndarray:
        at: dict[str, object] = {"seed": 1, "flight": [3], "sample": 5, "sensor": "front", **changes}
        return measure(np.full((1, count), 50.0, np.float32), RangeNoise(c=1.0), RangeLimits(), Draw.of(1, **at)).ravel()  # type: ignore[arg-type]

    base = drawn()
    np.testing.assert_array_equal(base, drawn())
    for changes in ({"seed": 2}, {"flight": [4]}, {"sample": 6}, {"sensor": "rear"}, {"episode": 1}):
        assert abs(np.corrcoef(base, drawn(**changes))[0, 1]) < 5 / math.sqrt(count), changes
    assert abs(np.corrcoef(base[:-1], base[1:])[0, 1]) < 5 / math.sqrt(count)


def test_a_flight_reads_the_same_alone_and_in_any_order() -> None:
    values = np.random.default_rng(3).uniform(1, 30, (6, 5, 11)).astype(np.float32)
    flights = np.array([40, 7, 19, 3, 3, 8])
    together = measure(values.copy(), ODD, RangeLimits(), Draw.of(6, flight=flights, sample=np.arange(6)))
    for order in (np.array([3, 0, 5, 1, 2, 4]), np.array([4])):
        some = measure(values[order].copy(), ODD, RangeLimits(), Draw.of(len(order), flight=flights[order], sample=order))
        np.testing.assert_array_equal(some, together[order])


@given(st.floats(0.0, 1e4), st.floats(0.01, 5.0), st.floats(6.0, 500.0), st.booleans())
def test_limits_are_those_of_the_specification(r: float, low: float, high: float, normalize: bool) -> None:
    """Spec/aerial_gym 7.3: above -> far, below -> near, then divided; normalised defaults give [0, 1] or -1."""
    limits = RangeLimits.published(low, high, normalize)
    reading = measure(np.array([[r]], np.float32), limits=limits)[0, 0]
    r = float(np.float32(r))
    low, high = float(np.float32(low)), float(np.float32(high))
    expected = (r / high if normalize else r) if low <= r <= high else (1.0 if normalize and r > high else -1.0)
    assert reading == pytest.approx(expected, rel=2e-7)
    assert not normalize or -1.0 <= reading <= 1.0


def test_misses_without_limits_stay_infinite() -> None:
    values = np.array([[np.inf, 2.0, -np.inf, np.nan]], np.float32)
    reading = measure(values.copy(), ODD, RangeLimits(), Draw.of(1, seed=5))
    assert reading[0, 0] == np.inf
    assert np.isnan(reading[0, 3])


@pytest.mark.parametrize("name", ["ouster_os1_64", "realsense_d455", "st_vl53l5cx", "robosense_airy"])
def test_metres_come_back(name: str) -> None:
    """Also where the far value lies inside the limits (OS1: 35 m told as too far, within 90 m)."""
    limits = device(name).limits
    true = np.array(
        [[limits.minimum * 1.01, 0.5 * limits.maximum, 0.999 * limits.maximum, np.inf, 0.5 * limits.minimum]], np.float32
    )
    metres = limits.metres(measure(true.copy(), limits=limits))
    np.testing.assert_allclose(metres[0, :3], true[0, :3], rtol=1e-6)
    assert np.isinf(metres[0, 3:]).all()


def test_numbers_of_sensors_are_of_their_names() -> None:
    assert sensor_number("front") == 0xEDD5BA1E or sensor_number("front") == sensor_number("front")
    assert sensor_number("front") != sensor_number("rear")


def test_mistakes_get_one_sentence() -> None:
    with pytest.raises(AirworthyError, match="contiguous float32"):
        measure(np.zeros((2, 2)))  # type: ignore[arg-type]
    with pytest.raises(AirworthyError, match="2 images came with draws for 3"):
        measure(np.zeros((2, 2), np.float32), ODD, RangeLimits(), Draw.of(3))
    with pytest.raises(AirworthyError, match="dropout probability"):
        RangeNoise(dropout=1.5)
    with pytest.raises(AirworthyError, match="minimum below the maximum"):
        RangeLimits(3.0, 2.0)
    with pytest.raises(AirworthyError, match="finite maximum"):
        RangeLimits(normalize=True)


@pytest.mark.parametrize(
    "limits", [RangeLimits(0.2, 35.0), RangeLimits.published(0.2, 35.0), RangeLimits.published(0.2, 35.0, False)]
)
def test_a_range_at_a_limit_comes_back_but_none_beyond(limits: RangeLimits) -> None:
    """What a float32 leaves of a limit, a millionth, is a measurement; twice as much is none."""
    for limit, out in ((35.0, 1.0), (0.2, -1.0)):
        for share, kept in ((0.0, True), (0.5e-6, True), (2e-6, False), (-0.5e-6, True), (-2e-6, True)):
            r = limit * (1.0 + out * share)
            found = float(limits.metres(np.array(r / limits.divisor)))
            if limits.far == limit and abs(share) < 1e-6:
                kept = False  # the number that stands for too far
            assert found == (pytest.approx(r, rel=1e-12) if kept else math.inf), (limit, share)
