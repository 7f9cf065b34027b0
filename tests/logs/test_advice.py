"""Advice where streams are too slow to tell a lag, by the median of differences."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from airworthy.logs import Log, LogSource, LogStream, flight_segments, log_findings, rate_advice, read_log


def log_at(rate: float, commands: float, form: str = "ULog", profile: int | None = None) -> Log:
    """Ten seconds in the air."""

    def clock(hertz: float) -> np.ndarray:
        return np.arange(0.0, 10.0, 1.0 / hertz)

    draw = np.random.default_rng(0)
    command = 0.5 + 0.1 * draw.random((len(clock(commands)), 4))
    streams = (
        LogStream("gyro", clock(rate), draw.normal(size=(len(clock(rate)), 3))),
        LogStream("accelerometer", clock(rate), np.array([0.0, 0.0, 9.81]) + draw.normal(size=(len(clock(rate)), 3))),
        LogStream("motor_command", clock(commands), command, stamp="held"),
    )
    return Log("made", streams, LogSource("made", "", form), parameters={} if profile is None else {"SDLOG_PROFILE": profile})


def test_fast_streams_need_no_advice() -> None:
    assert rate_advice(log_at(250.0, 100.0)) == ()
    # 158 Hz are 160.
    assert rate_advice(log_at(158.0, 79.0)) == ()


@pytest.mark.parametrize(
    ("form", "profile", "said"),
    [
        ("ULog", None, "set SDLOG_PROFILE to 25 (high rate and system identification)"),
        ("ULog", 1, "set SDLOG_PROFILE to 25 (high rate and system identification; it was 1)"),
        ("ULog", 3, "set SDLOG_PROFILE to 27"),
        ("ULog", 25, "take a faster card"),
        ("Crazyflie micro-SD", None, "config.txt"),
        ("Betaflight blackbox CSV", None, "blackbox_sample_rate"),
        ("MCAP", None, "publish their topics"),
        ("run", None, "--record-rate 480"),
        ("CSV", None, "log them at a higher rate"),
    ],
)
def test_what_to_set(form: str, profile: int | None, said: str) -> None:
    log = log_at(100.0, 20.0, form, profile)
    (text,) = rate_advice(log)
    assert said in text
    assert "motor_command 20 Hz of 80, gyro 100 Hz of 160, accelerometer 100 Hz of 160" in text
    lag = next(f for f in log_findings(log, flight_segments(log)) if f.parameter == "lag and dead time")
    assert lag.verdict == "cannot tell"
    assert said in lag.helps


def test_the_rate_is_the_median_of_differences() -> None:
    """A gap of half of the log leaves it, and every tenth sample late by a period does."""
    log = log_at(250.0, 100.0)
    gyro = log.stream("gyro")
    time = np.concatenate([gyro.time[:1000], gyro.time[1000:] + 60.0])
    time[::10] += 0.0039
    held = LogStream("gyro", time, gyro.values)
    assert held.quality.rate == pytest.approx(250.0, rel=1e-6)
    assert held.quality.gaps == 1
    assert (len(time) - 1) / (time[-1] - time[0]) < 40.0


def test_the_shared_ulog(data_dir: Path) -> None:
    """Outputs at 19 Hz: hover thrust over mass, and no lag."""
    log = read_log(data_dir / "flights/px4_quad_sample/sample.ulg")
    (text,) = rate_advice(log)
    assert "motor_command" in text
    assert "SDLOG_PROFILE" in text
