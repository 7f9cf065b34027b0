"""The published procedure for one Crazyflie, on its own flights, to the digits that its authors print (identify 11.2)."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from airworthy.cli.main import main
from airworthy.core.errors import AirworthyError
from airworthy.logs import flight_segments, read_log
from airworthy.vehicles.identification.prediction.signals import FlightSignals, Readings, flight_signals
from airworthy.vehicles.identification.published import identify_published

ARM = 0.028
POSITIONS = np.array([[ARM, -ARM, 0.0], [-ARM, -ARM, 0.0], [-ARM, ARM, 0.0], [ARM, ARM, 0.0]])
AXES = np.tile([0.0, 0.0, 1.0], (4, 1))
THRUST_PART = ((35.0, 65.0),)
TURNING_PARTS = ((55.0, 61.378845), (61.379683, 80.509798), (80.874170, 90.0))
"""On the files' own clocks [s]."""


def flight(folder: Path, name: str, parts: tuple[tuple[float, float], ...]) -> FlightSignals:
    log = read_log(folder / "flights/crazyflie_sysid" / name)
    begin = log.source.start_ns * 1e-9
    # A sample at the very beginning of a part is none of it, as theirs; half a microsecond says so whatever the rounding.
    spans = tuple((a - begin + 5e-7, b - begin - 5e-7) for a, b in parts)
    return replace(flight_signals(log, flight_segments(log)), spans=spans)


@pytest.fixture(scope="module")
def flights(data_dir: Path) -> tuple[FlightSignals, FlightSignals]:
    return flight(data_dir, "log10", THRUST_PART), flight(data_dir, "log15", TURNING_PARTS)


def test_published_values_11_2(flights: tuple[FlightSignals, FlightSignals]) -> None:
    found = identify_published(*flights, 0.027, POSITIONS, AXES, gravity_as_published=True)
    assert found.lag == pytest.approx(0.0715657, abs=5e-8)
    assert found.thrust == pytest.approx((0.02126557, -0.01117503, 0.12012994), rel=1e-3)
    assert found.thrust_square == pytest.approx(0.15002497, rel=1e-3)
    assert found.inertia[:2] == pytest.approx((1.02863e-5, 1.10524e-5), rel=5e-4)
    assert found.inertia[2] == pytest.approx(1.9546e-5, rel=5e-4)


def test_the_command_prints_them_11_2(data_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As docs/howto/identify.md has it; a second of saturated commands is left out, which moves Iyy by 0.3 %."""
    logs = [str(data_dir / "flights/crazyflie_sysid" / name) for name in ("log10", "log15")]
    parts = ["log10=8.666299:38.666298"]
    parts += ["log15=15.755088:22.133932", "log15=22.13477:41.264885", "log15=41.629257:50.755087"]
    ask = ["vehicles", "identify", *logs, "--mass", "0.027+-0.0003", "--frame", "quad_x:0.028", "--use", *parts]
    assert main([*ask, "--method", "eschmann2024", "--gravity-as-published", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["lag"] == pytest.approx(0.0715657, abs=5e-8)
    assert found["thrust"] == pytest.approx((0.02126557, -0.01117503, 0.12012994), rel=1e-3)
    assert found["inertia"][:2] == pytest.approx((1.02863e-5, 1.10524e-5), rel=3e-3)
    assert main([*ask, "log7=1:2", "--method", "eschmann2024"]) == 2
    assert "Unknown log 'log7'. Closest: 'log15', 'log10'. Known: log10, log15." in capsys.readouterr().err


def test_with_gravity_as_it_is(flights: tuple[FlightSignals, FlightSignals]) -> None:
    found = identify_published(*flights, 0.027, POSITIONS, AXES)
    assert found.thrust == pytest.approx((0.022725, -0.011942, 0.128375), rel=1e-3)
    # The truth lies between the two regressions where noise is independent.
    assert all(a < b for a, b in zip(found.inertia[:2], found.inertia_inverse, strict=True))


def test_streams_of_other_stamps_are_refused(flights: tuple[FlightSignals, FlightSignals]) -> None:
    gyro = flights[0].gyro
    late = replace(flights[0], gyro=Readings(gyro.time + 1e-4, gyro.values))
    with pytest.raises(AirworthyError, match=r"at the same stamps, and those of .* differ; use --method joint"):
        identify_published(late, flights[1], 0.027, POSITIONS, AXES)
