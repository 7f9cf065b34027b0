from dataclasses import replace

import numpy as np
import pytest

from airworthy.benchmarks.validation.calibration import Calibration
from airworthy.benchmarks.validation.motors import (
    fit_motor_map,
    fit_sag,
    fit_speed,
    fit_thrust,
    lagged,
    read_bench,
    recorded_motors,
    speeds_from_pwm,
)
from airworthy.benchmarks.validation.windows import cut_windows, reference
from airworthy.core.errors import AirworthyError, AssetError

IDENTITY = Calibration(np.array([0.0, 0.0, 0.0, 1.0]), np.zeros(3), np.zeros(3), 0.0)
HEADER = "weight[g],pwm,vbat[V],rpm1,rpm2,rpm3,rpm4,v[V],i[A],p[W]"


def test_lag_is_exponential():
    target = np.full((100, 1), 1000.0)
    up = lagged(target, np.array([500.0]), 0.002, 0.05, 0.1)
    time = 0.002 * np.arange(1, 101)
    np.testing.assert_allclose(up[:, 0], 1000.0 - 500.0 * np.exp(-time / 0.05), rtol=1e-12)
    down = lagged(target, np.array([1500.0]), 0.002, 0.05, 0.1)
    np.testing.assert_allclose(down[:, 0], 1000.0 + 500.0 * np.exp(-time / 0.1), rtol=1e-12)


@pytest.fixture(scope="module")
def driven(synthetic):
    """The synthetic log with PWM steps, and the speeds that follow from a known map with 60 ms rise and 90 ms fall."""
    rng = np.random.default_rng(2)
    log = synthetic.log
    steps = rng.uniform(0.6, 0.8, (len(log.time) // 60 + 1, 4))
    pwm = np.repeat(steps, 60, axis=0)[: len(log.time)]
    slope = np.array([2000.0, 2050.0, 1980.0, 2030.0])
    drift = 1.0 - 0.004 * (log.time / log.time[-1] - 0.5)
    target = drift[:, None] * (600.0 + slope * pwm)
    return replace(log, pwm=pwm, rotor_speed=lagged(target, target[0], 0.002, 0.06, 0.09)), slope


def test_map_and_lag_are_recovered(driven):
    log, slope = driven
    found = fit_motor_map(log)
    assert found.rise == pytest.approx(0.06, rel=0.02)
    assert found.fall == pytest.approx(0.09, rel=0.02)
    np.testing.assert_allclose(found.slope, slope, rtol=0.02)
    assert found.error < 1.0


@pytest.mark.slow
def test_a_motor_that_was_not_recorded_is_seen_and_predicted(driven):
    log, _ = driven
    silent = log.rotor_speed.copy()
    silent[500:900, 0] = 0.0
    broken = replace(log, rotor_speed=silent)
    assert recorded_motors(broken) == (1, 2, 3)
    found = fit_motor_map(broken)
    assert found.slope[0] == pytest.approx(found.slope[1:].mean())
    windows = cut_windows(reference(broken, IDENTITY))
    fed = speeds_from_pwm(windows, broken, found)
    truth = cut_windows(reference(log, IDENTITY)).rotor_speed
    # Recorded motors: the fit's own error; the silent one: its slope is a guess, 2000 against a mean of 2020, 1 %.
    assert np.sqrt(np.mean((fed.rotor_speed - truth)[..., 1:] ** 2)) < 12.0
    assert np.sqrt(np.mean((fed.rotor_speed - truth)[..., 0] ** 2)) < 40.0


def test_no_recorded_motor_is_said(driven):
    with pytest.raises(AirworthyError, match="recorded no motor's speed"):
        fit_motor_map(replace(driven[0], rotor_speed=np.zeros_like(driven[0].rotor_speed)))


def bench_file(tmp_path, glitch=True):
    """Thrust 4 (2e-8 w^2 - 2e-6 w) N, tare 1.2 g, 0.2 ohm."""
    lines = [HEADER, "1.2,0,3.9,0,0,0,0,3.9,0.1,0.4"]
    for index, pwm in enumerate([*range(10000, 65000, 500), *range(65000, 10000, -500)]):
        w = 300.0 + 1900.0 * pwm / 65535.0
        grams = 4.0 * (2e-8 * w**2 - 2e-6 * w) / 9.80665e-3 + 1.2
        rpm = w * 60.0 / (2.0 * np.pi)
        current = 4.0 * pwm / 65535.0
        doubled = 2.0 if glitch and index % 7 == 0 else 1.0
        lines.append(f"{grams},{pwm},{3.9 - 0.2 * current},{rpm * doubled},{rpm},{rpm},{rpm},0,{current},0")
    path = tmp_path / "bench.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_bench_fits(tmp_path):
    bench = read_bench(bench_file(tmp_path))
    assert not bench.good[1]  # the doubled speed
    thrust_map = fit_thrust(bench)
    assert thrust_map.square == pytest.approx(2e-8, rel=1e-6)
    assert thrust_map.linear == pytest.approx(-2e-6, rel=1e-6)
    # The charge drawn is a third unknown, and the tare row is off the line by a thousandth.
    assert fit_sag(bench)[1] == pytest.approx(0.2, rel=5e-3)
    offset, slope = fit_speed(bench)
    assert offset > 0.0
    assert slope > 0.0


def test_bench_without_load_cell_or_of_another_shape(tmp_path):
    path = tmp_path / "b.csv"
    path.write_text(HEADER + "\n" + "0,20000,3.8,9000,9000,9000,9000,0,0,0\n" * 20)
    bench = read_bench(path)
    assert fit_thrust(bench) is None
    assert fit_sag(bench) is None
    path.write_text("a,b\n1,2\n")
    with pytest.raises(AssetError, match="has the columns a, b"):
        read_bench(path)
    path.write_text(HEADER + "\n" + "x,1,1,1,1,1,1,1,1,1\n" * 20)
    with pytest.raises(AssetError, match="not a table of numbers"):
        read_bench(path)
