"""Pieces of the judgement by hand: what a baseline predicts, which one counts, how a trim fades."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from tests.benchmarks.validation.test_open_loop import TRUTH, record
from tests.vehicles.flown_logs import changed, fly

from airworthy.benchmarks.validation.open_loop.flights import ready_flights
from airworthy.benchmarks.validation.open_loop.judgement import SLOPE_TIME, _row, baselines
from airworthy.benchmarks.validation.open_loop.prediction import TRIM, batch_windows, open_loop
from airworthy.core.frames import to_rotation_vector
from airworthy.logs import LogStream
from airworthy.vehicles.identification.prediction.predict import STEP
from airworthy.vehicles.identification.prediction.signals import Readings


def test_constant_acceleration_turns_by_half_of_it_times_the_square_of_time() -> None:
    begun, slope, time = 0.3, 2.0, np.linspace(0.0, 2.0, 2001)
    gyro = Readings(time, np.stack([0.0 * time, 0.0 * time, begun + slope * (time - 1.0)], axis=1))
    flight = SimpleNamespace(signals=SimpleNamespace(gyro=gyro, force=Readings(time, np.tile([0.0, 0.0, 9.81], (2001, 1)))))
    still = np.array([[0.0, 0.0, 0.0]])
    measured = {"rate": np.array([[[0.0, 0.0, begun]]]), "velocity": still[None], "position": still[None]}
    measured["attitude"] = np.array([[[0.0, 0.0, 0.0, 1.0]]])
    windows = SimpleNamespace(
        horizons=(0.1, 0.5),
        measured=measured,
        flights=(flight,),
        parts=(SimpleNamespace(start=np.array([1.0])),),
        posed=True,
        force=np.array([[[0.0, 0.0, 9.81]]]),
    )
    found = baselines(windows)["constant acceleration"]  # type: ignore[arg-type]
    angle = to_rotation_vector(found["attitude"][0])[:, 2]
    assert angle == pytest.approx([begun * t + 0.5 * slope * t**2 for t in (0.0, 0.1, 0.5)], abs=1e-6)
    assert found["rate"][0, :, 2] == pytest.approx([begun, begun + 0.1 * slope, begun + 0.5 * slope], abs=1e-6)
    assert SLOPE_TIME < 0.1


def test_skill_is_over_the_better_baseline() -> None:
    one = np.ones(40)
    errors = {"vehicle": one, "vehicle, trimmed": 0.5 * one, "hold": 2.0 * one, "constant acceleration": 4.0 * one}
    row = _row("rate", "all", 0.25, errors, np.repeat(np.arange(8), 5))
    assert row.best == "hold"
    assert row.skill["vehicle"].value == pytest.approx(0.5)
    assert row.skill["vehicle, trimmed"].value == pytest.approx(0.75)


@pytest.mark.slow
def test_a_trim_fades() -> None:
    """What it adds to a rate about z is its integral, of which 0.4 s are left of an endless one."""
    log = fly(TRUTH, 8.0, push=3.0)
    vehicle = record(TRUTH)
    windows = batch_windows(ready_flights([log], vehicle), 20)
    plain, trimmed = (open_loop(vehicle, windows, trimmed=on, sensor_delay=0.0) for on in (False, True))
    added = np.linalg.norm((trimmed.rate - plain.rate)[:, :, :2], axis=2)
    early, late = round(0.05 / STEP), round(0.5 / STEP)
    wanted = (1.0 - np.exp(-0.5 / TRIM[1])) / (1.0 - np.exp(-0.05 / TRIM[1]))
    assert np.median(added[:, late] / added[:, early]) == pytest.approx(wanted, rel=0.1)


@pytest.mark.slow
def test_measured_speeds_come_in_the_order_of_the_commands() -> None:
    log, vehicle = fly(TRUTH, 8.0), record(TRUTH)
    command = log.stream("motor_command")
    full = np.array([rotor.speed_max for rotor in vehicle.rotors])
    order = [2, 0, 3, 1]
    mixed = changed(log, "motor_command", values=command.values[:, order])
    speeds = LogStream("motor_speed", command.time, np.nan_to_num(command.values[:, order]) * full)
    mixed = replace(mixed, streams=(*mixed.streams, speeds))
    (flight,) = ready_flights([mixed], vehicle, feed="commands")
    assert flight.order == (1, 3, 0, 2)
    (fed,) = ready_flights([mixed], replace(vehicle, sources={"rotors.speed_max": "measured"}), feed="speeds")
    assert fed.speeds is not None
    assert fed.speeds.values[3000] == pytest.approx(
        np.nan_to_num(command.values)[np.searchsorted(command.time, fed.speeds.time[3000])] * full
    )
