import numpy as np
import pytest

from airworthy.benchmarks.validation.imu import (
    allan_deviation,
    imu_statistics,
    read_data_sheet,
    read_imu_csv,
    read_speed,
    still_start,
)
from airworthy.core.errors import AirworthyError, AssetError

RATE = 200.0


def noise(count, seed=0):
    return np.random.default_rng(seed).normal(size=(count, 6))


def test_white_noise_falls_with_the_square_root():
    allan = allan_deviation(0.3 * noise(120_000), RATE)
    # sigma(tau) = s / sqrt(rate tau): slope -1/2; 10 % asked, over 5 ms to 10 s of a 600 s record.
    np.testing.assert_allclose(allan.slope(0.005, 10.0), -0.5, rtol=0.1)
    np.testing.assert_allclose(allan.white_density(0.005, 1.0), 0.3 / np.sqrt(RATE), rtol=0.02)
    np.testing.assert_allclose(allan.deviation[0], 0.3, rtol=0.01)


def test_random_walk_rises_with_the_square_root():
    walk = np.cumsum(0.02 * noise(120_000), axis=0) / np.sqrt(RATE)
    allan = allan_deviation(walk, RATE)
    # sigma(tau) = K sqrt(tau / 3), K = 0.02 per sqrt(s); short times, where the record holds many of them.
    np.testing.assert_allclose(allan.slope(0.1, 5.0), 0.5, rtol=0.1)
    np.testing.assert_allclose(allan.walk_density(0.1, 5.0), 0.02, rtol=0.1)


def test_a_ramp_is_exact():
    """y = a t: second differences of its integral are a tau^2, so the deviation is a tau / sqrt(2)."""
    time = np.arange(4000) / RATE
    allan = allan_deviation(np.tile((0.7 * time)[:, None], (1, 2)), RATE)
    np.testing.assert_allclose(allan.deviation[:, 0], 0.7 * allan.tau / np.sqrt(2.0), rtol=1e-9)


def test_statistics_of_a_still_sensor():
    samples = np.array([2e-3] * 3 + [0.02] * 3) * noise(20_000) + np.array([0.01, 0, 0, 0, 0, 9.81])
    found = imu_statistics(samples, RATE)
    assert found["axes"]["gyro_x"]["mean"] == pytest.approx(0.01, abs=1e-4)
    assert found["axes"]["acc_z"]["std"] == pytest.approx(0.02, rel=0.03)
    assert found["axes"]["gyro_y"]["white_density"] == pytest.approx(2e-3 / np.sqrt(RATE), rel=0.05)
    assert found["axes"]["acc_x"]["slope_short"] == pytest.approx(-0.5, abs=0.05)


@pytest.mark.parametrize(
    ("samples", "rate"),
    [(np.zeros(100), 100.0), (np.zeros((10, 6)), 100.0), (np.full((100, 6), np.nan), 100.0), (np.zeros((100, 6)), 0.0)],
)
def test_wrong_samples_are_said(samples, rate):
    with pytest.raises(AirworthyError, match="Allan deviation needs finite samples"):
        allan_deviation(samples, rate)
    with pytest.raises(AirworthyError):
        imu_statistics(np.zeros((100, 3)), 100.0)


def test_a_slope_needs_times_between():
    with pytest.raises(AirworthyError, match="a slope needs three"):
        allan_deviation(noise(1000), RATE).slope(100.0, 200.0)


def test_rotors_starting_end_the_still_part():
    samples = 1e-3 * noise(1000)
    samples[400:] *= 50.0
    assert still_start(np.arange(1000) / RATE, samples) == 400


def test_files(tmp_path):
    path = tmp_path / "imu0.csv"
    path.write_text("#t\n" + "".join(f"{1403715273262142976 + 5_000_000 * i},1,2,3,4,5,6\n" for i in range(5)))
    time, samples = read_imu_csv(path)
    np.testing.assert_allclose(time, 0.005 * np.arange(5), atol=1e-12)
    assert samples.shape == (5, 6)
    path.write_text("1,2,x\n")
    with pytest.raises(AssetError, match="not a table"):
        read_imu_csv(path)
    with pytest.raises(AssetError, match=r"no velocity|not a table"):
        read_speed(path)
    path.write_text("gyroscope_noise_density: 1.0e-04  # x\n")
    with pytest.raises(AssetError, match="gyroscope_random_walk"):
        read_data_sheet(path)
