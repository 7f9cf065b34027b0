"""The record, quality of streams, and clocks."""

from __future__ import annotations

import numpy as np
import pytest

from airworthy.core.errors import AirworthyError, AssetError
from airworthy.logs import KINDS, Log, LogSource, LogStream
from airworthy.logs.clocks.clock import even_clock, nanoseconds, unwrapped
from airworthy.logs.quality import saturated_rows, stream_quality


def gyro(time: np.ndarray, **more: object) -> LogStream:
    return LogStream("gyro", time, np.zeros((len(time), 3)), **more)  # type: ignore[arg-type]


def test_kinds_are_a_closed_list() -> None:
    assert len(KINDS) == 18
    with pytest.raises(AirworthyError, match=r"Unknown kind of stream 'gyr'. Closest: 'gyro'"):
        LogStream("gyr", np.zeros(1), np.zeros((1, 3)))
    with pytest.raises(AirworthyError, match=r"expected \(n,\) and \(n, 3\)"):
        LogStream("gyro", np.zeros(2), np.zeros((2, 4)))
    with pytest.raises(AirworthyError, match="stamp 'late'"):
        gyro(np.zeros(2), stamp="late")


def test_streams_by_name() -> None:
    time = np.arange(3.0)
    log = Log("a", (gyro(time), gyro(time, label="1")), LogSource("a", "", "test"))
    assert log.stream("gyro:1").label == "1"
    assert log.stream("gyro").label == ""
    assert log.has("gyro")
    assert log.has("gyro:1")
    assert not log.has("gyro:2")
    assert log.stream("gyro").unit == "rad/s"
    assert log.stream("gyro").frame == "flu"
    assert log.duration == 2.0
    assert log.stream("gyro").between(1.0, 2.0).time.tolist() == [1.0]
    with pytest.raises(AirworthyError, match="Unknown stream 'accelerometer'"):
        log.stream("accelerometer")
    with pytest.raises(AirworthyError, match="Unknown variable of the log 'x'"):
        log.raw("x")


def test_quality_counts_what_was_planted() -> None:
    time = np.arange(100) * 0.01
    time[50:] += 0.05  # one gap of 6 periods
    time[20] = time[19]  # one duplicate, and a step of two periods behind it
    time[80] = time[79] - 0.001  # one step back
    values = np.stack([np.arange(100) * 0.5, np.full(100, 3.0)], axis=1)
    values[7, 0] = np.nan
    found = stream_quality(time, values)
    assert found.rate == pytest.approx(100.0)
    assert (found.gaps, found.duplicates, found.backward) == (1, 1, 1)
    assert found.gap_longest == pytest.approx(0.06)
    assert found.constant == 0.5
    assert found.quantum == 0.5
    assert found.missing == 1 / 200
    assert found.saturated == 0.0


def test_quality_of_nothing() -> None:
    for count in (0, 1):
        found = stream_quality(np.zeros(count), np.zeros((count, 3)))
        assert (found.rate, found.gaps, found.saturated) == (0.0, 0, 0.0)
    assert stream_quality(np.zeros(5), np.ones((5, 1))).duplicates == 4


def test_saturation_is_staying_at_an_end_more_than_once() -> None:
    sine = np.clip(1.5 * np.sin(np.arange(400) * 0.1), -1.0, 1.0)
    assert np.array_equal(saturated_rows(sine), np.abs(sine) == 1.0)
    assert not saturated_rows(np.sin(np.arange(400) * 0.1)).any()


def test_even_clock_finds_the_lattice() -> None:
    count = np.delete(np.arange(500), np.s_[100:107])
    stamps = 3.0 + 0.00202 * count + np.random.default_rng(1).normal(0.0, 1e-4, len(count))
    grid, period = even_clock(stamps, 0.002)
    # Slope of a line through n points with deviation s: s over the spread of the counts.
    deviation = 1e-4 / np.sqrt(np.sum((count - count.mean()) ** 2))
    assert abs(period - 0.00202) < 5.0 * deviation
    assert np.allclose(np.diff(grid), period * np.diff(count), atol=1e-12)


def test_stamps_in_any_unit() -> None:
    assert nanoseconds(np.array([1.5]), "ms", "x").tolist() == [1_500_000]
    assert nanoseconds(np.array([1403715273262142976]), "ns", "x").tolist() == [1403715273262142976]
    assert nanoseconds(np.array([0.1, -0.1]), "s", "x").tolist() == [100_000_000, -100_000_000]
    for bad in (np.array([np.nan]), np.array([1e12])):
        with pytest.raises(AssetError, match="stamp 0"):
            nanoseconds(bad, "s", "x")


def test_a_counter_of_32_bits_goes_on() -> None:
    counter = np.array([2**32 - 2, 2**32 - 1, 0, 1], np.uint32)
    assert np.diff(unwrapped(counter)).tolist() == [1, 1, 1]
