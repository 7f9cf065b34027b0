"""On the real logs, where they are: what the page says of them, and the main result on one held-out flight."""

import numpy as np
import pytest

from airworthy.benchmarks.validation.errors import comparators, error_samples
from airworthy.benchmarks.validation.fits import fit, refit_thrust
from airworthy.benchmarks.validation.motors import fit_sag, fit_thrust, read_bench
from airworthy.benchmarks.validation.protocol import BRUSHLESS, BRUSHLESS_FLIGHTS
from airworthy.benchmarks.validation.run import imu_section, load_references
from airworthy.benchmarks.validation.structure import STRUCTURES, predict
from airworthy.benchmarks.validation.windows import cut_windows, join_windows

pytestmark = pytest.mark.slow
"""The identification that all of them look at takes ten seconds and more."""


@pytest.fixture(scope="module")
def references(data_dir):
    return load_references(data_dir / "flights" / "crazyflie_imrc")


def test_what_the_logs_are(references):
    for name, source in references.items():
        # The logger's second is 1.1 % long, in every log.
        assert source.log.clock_scale == pytest.approx(1.0113, abs=5e-4), name
        turned = np.rad2deg(2.0 * np.arctan2(source.calibration.rotation[2], source.calibration.rotation[3]))
        assert 2.0 < turned < 3.5, name
        assert abs(source.calibration.latency) < 3e-3
    assert references["brushless_eckart27"].rejected > 20
    assert references["brushless_eckart00"].rejected == 0
    assert references["brushless_eckart00"].calibration.lever[2] == pytest.approx(0.028, abs=0.003)


@pytest.mark.slow
def test_a_held_out_flight_is_predicted_better_than_by_any_published_set(references):
    cut = {name: cut_windows(references[name]) for name in BRUSHLESS_FLIGHTS}
    test = cut["brushless_eckart17"]
    train = join_windows([cut[name] for name in BRUSHLESS_FLIGHTS if name != "brushless_eckart17"])
    ours = error_samples(predict(test, [fit(BRUSHLESS, train, STRUCTURES["damping"]).model()]), test).rms()
    assert ours[0, 2] < 0.09
    assert ours[2, 2] < 12.0
    for name, airframe in comparators(brushless=True).items():
        published = error_samples(predict(test, [airframe]), test).rms()
        assert np.all(ours < published), name
    refitted = refit_thrust(comparators(brushless=True)["RotorPy brushless"], BRUSHLESS.mass, train)
    assert np.all(ours < error_samples(predict(test, [refitted]), test).rms())


def test_bench_agrees_with_flight(data_dir, references):
    folder = data_dir / "flights" / "crazyflie_imrc"
    bench = read_bench(folder / "static_cf21_stock_prop.csv")
    windows = cut_windows(references["brushed_jana05"], span=(0.0, 10.0))
    weight = 0.0347 * 9.81
    carried = 4.0 * fit_thrust(bench).thrust(windows.rotor_speed).mean()
    # Load cell sweeps up and down differ by 6 % themselves.
    assert carried == pytest.approx(weight, rel=0.08)
    assert fit_sag(bench)[1] == pytest.approx(0.22, abs=0.05)
    assert fit_thrust(read_bench(folder / "static_cf21_brushless.csv")) is None


def test_the_still_sensor_has_the_noise_of_its_data_sheet(data_dir):
    found, curves = imu_section(data_dir / "flights" / "euroc_v101", {})
    still = found["sensors"]["euroc_v101, rotors off"]["axes"]
    sheet = found["data_sheet"]
    # Only 60 samples lie before the rotors start: 30 % is what they can tell.
    gyro = np.mean([still[f"gyro_{k}"]["white_density"] for k in "xyz"])
    accelerometer = np.mean([still[f"acc_{k}"]["white_density"] for k in "xyz"])
    assert gyro == pytest.approx(sheet["gyroscope_noise_density"], rel=0.3)
    assert accelerometer == pytest.approx(sheet["accelerometer_noise_density"], rel=0.3)
    assert set(curves) == set(found["sensors"])
