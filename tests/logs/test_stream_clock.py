"""Clocks of streams of attitudes: offset, drift and the log's second from how gyro and attitudes turn."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from airworthy.core.errors import AirworthyError
from airworthy.core.frames import conjugate, from_euler, from_rotation_vector, multiply, rotate_inverse
from airworthy.logs import ClockFit, Log, LogSource, LogStream, clock_fit, on_gyro_clock, read_log
from airworthy.logs.clocks.clock import lattice
from airworthy.logs.clocks.kinematics import integrate_gyro

CAPTURES = (
    "brushed_jana05",
    "brushed_jana20",
    "brushed_jana24",
    "brushless_eckart00",
    "brushless_eckart17",
    "brushless_eckart27",
)


def turning(
    late: float = 0.0,
    drift: float = 0.0,
    second: float = 1.0,
    seconds: float = 40.0,
    jitter: float = 0.0,
    noise: float = 0.0,
    seed: int = 1,
    tilt: tuple[float, float, float] = (0.0, 0.0, 0.0),
) -> Log:
    """A vehicle that rocks about all axes: gyro at 500 Hz with a bias, attitudes at 100 Hz, on a clock of their own.

    Args:
        late: Stamps of attitudes come so late at time zero [s].
        drift: And by so much later each second.
        second: True seconds per second that both clocks count.
        seconds: Length [s].
        jitter: Deviation of the stamps of attitudes [s].
        noise: Deviation of attitudes [rad].
        seed: Of the noise.
        tilt: Roll, pitch and yaw of the sensor in the body [rad].
    """
    draw = np.random.default_rng(seed)
    fine = np.arange(0.0, seconds, 0.001)
    waves = ((0.6, 2.1, 0.0), (0.5, 4.7, 2.0), (0.4, 9.3, 1.0))
    rate = np.stack([sum(a * np.sin((w + k) * fine + p + k) for a, w, p in waves) for k in range(3)], axis=1)
    attitude = integrate_gyro(fine, rate)
    mount = from_euler(*tilt)  # sensor to body
    every = slice(None, None, 2)
    gyro = rotate_inverse(mount, rate[every]) + [0.01, -0.02, 0.015] + 0.002 * draw.normal(size=(len(fine[every]), 3))
    poses = attitude[::10]
    shaken = multiply(poses, from_rotation_vector(noise * draw.normal(size=(len(poses), 3))))
    true = fine[::10]
    stamps = true + late + drift * true + jitter * draw.normal(size=len(true))
    streams = (
        LogStream("gyro", fine[every] / second, gyro),
        LogStream("attitude", np.sort(stamps) / second, shaken, label="capture"),
        LogStream("position", np.sort(stamps) / second, np.zeros((len(true), 3)), label="capture"),
    )
    return Log("made", streams, LogSource("made", "", "test"))


def fit(log: Log) -> ClockFit:
    return clock_fit(log, log.stream("attitude"))


@pytest.mark.parametrize("late", [0.0, 0.0133, -0.05, 0.15])
def test_how_late_stamps_come(late: float) -> None:
    found = fit(turning(late=late, noise=0.001))
    assert found.late == pytest.approx(late, abs=3e-4)
    assert not found.drifts
    assert found.scale == 1.0
    assert abs(found.late - late) < 4.0 * found.late_deviation + 1e-4


@pytest.mark.parametrize("drift", [2e-3, -5e-4])
def test_a_clock_that_drifts(drift: float) -> None:
    """2 ms a second are 80 ms after 40 s."""
    log = turning(late=0.02, drift=drift, noise=0.001)
    found = fit(log)
    assert found.drifts
    # True time t is stamped 0.02 + (1 + drift) t.
    assert 1.0 / found.scale == pytest.approx(1.0 + drift, abs=1e-4)
    assert -found.offset / found.scale == pytest.approx(0.02, abs=1e-3)
    assert abs(1.0 / found.scale - 1.0 - drift) < 4.0 * found.scale_deviation
    assert f"gains {1e3 * drift:+.1f}"[:-1] in found.sentence()


@pytest.mark.parametrize("second", [1.011, 0.98])
def test_a_wrong_second(second: float) -> None:
    """Clocks that agree, and count seconds that are too long: the gyro turns too little everywhere."""
    found = fit(turning(late=0.01, second=second, noise=0.001))
    assert found.second == pytest.approx(second, abs=5e-4)
    assert found.wrong_second
    assert not found.drifts
    assert found.nominal_rate() == 100.0
    assert found.rate / 100.0 == pytest.approx(second, abs=1e-4)
    assert f"lasts {second:.3f} s" in found.sentence()


def test_a_right_second_is_not_called_wrong() -> None:
    for seed in range(5):
        found = fit(turning(noise=0.003, seed=seed, seconds=20.0))
        assert not found.wrong_second
        assert "lasts" not in found.sentence()


def test_jitter_is_no_clock() -> None:
    """Stamps a millisecond off are put on the lattice of 100 Hz first."""
    found = fit(turning(late=0.02, jitter=0.001, noise=0.001))
    assert found.rate == pytest.approx(100.0, abs=0.01)
    assert found.late == pytest.approx(0.02, abs=5e-4)


def test_a_sensor_that_is_mounted_askew() -> None:
    found = fit(turning(late=0.02, second=1.011, noise=0.001, tilt=(0.1, -0.2, 1.5)))
    assert found.late == pytest.approx(0.02, abs=3e-4)
    assert found.second == pytest.approx(1.011, abs=5e-4)


def test_gaps_and_drop_outs() -> None:
    log = turning(late=0.02, second=1.011, noise=0.001)
    gyro, poses = log.stream("gyro"), log.stream("attitude")
    kept = np.ones(len(gyro.time), bool)
    kept[3000:3400] = False
    few = np.random.default_rng(0).random(len(poses.time)) > 0.4
    few[1000:1500] = False
    thin = replace(poses, time=poses.time[few], values=poses.values[few])
    found = fit(replace(log, streams=(replace(gyro, time=gyro.time[kept], values=gyro.values[kept]), thin)))
    assert found.late == pytest.approx(0.02, abs=5e-4)
    assert found.second == pytest.approx(1.011, abs=1e-3)
    assert found.rate == pytest.approx(101.1, abs=0.02)


def test_a_corrected_log_agrees() -> None:
    log = turning(late=0.03, drift=1e-3, noise=0.001)
    again = on_gyro_clock(log, fit(log))
    found = fit(again)
    assert abs(found.late) < 5e-4
    assert found.scale == pytest.approx(1.0, abs=1e-4)
    moved = again.stream("attitude")
    assert moved.clock_scale == fit(log).scale
    assert np.allclose(moved.time, moved.clock_offset + moved.clock_scale * log.stream("attitude").time)
    assert np.array_equal(again.stream("position").time, moved.time)
    assert np.array_equal(again.stream("gyro").time, log.stream("gyro").time)


def test_what_cannot_be_told() -> None:
    log = turning(noise=0.001)
    still = replace(log.stream("attitude"), values=np.tile([0.0, 0.0, 0.0, 1.0], (4000, 1)))
    other = replace(log.stream("attitude"), values=conjugate(log.stream("attitude").values))
    degrees = replace(log.stream("gyro"), values=np.degrees(log.stream("gyro").values))
    short = turning(seconds=4.0)
    for wrong, said in (
        (replace(log, streams=(log.streams[0], still)), "hardly turned"),
        (replace(log, streams=(log.streams[0], other)), "do not turn alike"),
        (replace(log, streams=(degrees, log.streams[1])), "do not turn alike"),
        (replace(log, streams=log.streams[1:]), "has none"),
        (short, "overlap by less than 5 s"),
    ):
        with pytest.raises(AirworthyError, match=said):
            fit(wrong)


def test_a_lattice_is_not_forced_on_uneven_stamps() -> None:
    draw = np.random.default_rng(2)
    uneven = np.cumsum(draw.exponential(0.01, 2000))
    found, rate = lattice(uneven)
    assert rate == 0.0
    assert np.array_equal(found, uneven)


@pytest.mark.parametrize("name", CAPTURES)
def test_the_second_of_the_capture_logs(data_dir: Path, name: str) -> None:
    """1.1 % in all six: by how far attitudes turn, and by the capture system's 100 Hz."""
    log = read_log(data_dir / f"flights/crazyflie_imrc/{name}.npz")
    found = clock_fit(log, log.stream("attitude:capture"))
    assert found.nominal_rate() == 100.0
    assert found.rate == pytest.approx(101.13, abs=0.05)
    # The gyro's own scale is good to half a percent.
    assert abs(found.second - 1.0113) < 3.0 * found.second_deviation + 0.002
    # The three that turn long enough tell it alone.
    assert found.wrong_second == (name in ("brushed_jana05", "brushed_jana24", "brushless_eckart17"))


def test_other_shared_logs_have_right_seconds(data_dir: Path) -> None:
    for name in ("euroc_v101", "px4_quad_sample/sample.ulg"):
        log = read_log(data_dir / "flights" / name)
        found = fit(log)
        assert not found.wrong_second
        assert found.second == pytest.approx(1.0, abs=1e-3)
        assert not found.drifts
        assert 0.0 < found.late < 0.01
