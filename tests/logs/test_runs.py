"""Recorded runs as logs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from airworthy.core.errors import AssetError
from airworthy.logs import ReadOptions, read_log
from airworthy.simulation.flights import FlightTable, flight_columns, write_flight


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Two flights of a vehicle with two rotors, whose largest speed is 2000 rad/s."""
    rows = 40
    columns: dict[str, np.ndarray] = {name: np.zeros(rows) for name in flight_columns(2, reference=False)}
    columns["env"] = np.repeat([0, 1], 20)
    columns["t"] = np.tile(np.arange(20) * 0.01, 2)
    columns["attitude_w"] = np.ones(rows)
    columns["position_z_m"] = np.arange(rows) * 1.0
    columns["rate_x_rad_s"] = np.full(rows, 0.5)
    columns["rotor_command_0_rad_s"] = np.full(rows, 1000.0)
    columns["rotor_speed_1_rad_s"] = np.full(rows, 700.0)
    write_flight(tmp_path, FlightTable.from_columns(columns), {})
    record = tmp_path / "record"
    record.mkdir()
    (record / "vehicle_0.toml").write_text("[rotor]\nspeed_max = 2000.0\n[[rotors]]\nspin = 1\n[[rotors]]\nspin = -1\n")
    return tmp_path


def test_a_flight_of_a_run(run: Path) -> None:
    log = read_log(run, ReadOptions(env=1))
    assert log.source.format == "run"
    assert log.stream("position").values[:, 2].tolist() == list(range(20, 40))
    assert np.allclose(log.stream("gyro").values, [0.5, 0.0, 0.0])
    assert log.stream("motor_command").values[0].tolist() == [0.5, 0.0]
    assert log.stream("motor_speed").values[0].tolist() == [0.0, 700.0]
    assert log.stream("gyro").quality.rate == pytest.approx(100.0)
    assert any("--imu" in note for note in log.notes)


def test_environments_that_are_not_there(run: Path) -> None:
    with pytest.raises(AssetError, match="no environment 7; it holds 0 to 1"):
        read_log(run, ReadOptions(env=7))


def test_without_the_vehicle_commands_stay_raw(run: Path) -> None:
    (run / "record" / "vehicle_0.toml").unlink()
    log = read_log(run)
    assert not log.has("motor_command")
    assert log.raw("rotor_command_0_rad_s").values[0] == 1000.0


def test_commands_stand_around_the_step_that_they_are_of(run: Path) -> None:
    """A row, one of ten steps of the physics, has the command of the last of them; what the first row has was none."""
    path = run / "meta.json"
    path.write_text(path.read_text().rstrip().removesuffix("}") + ', "physics_rate_hz": 1000.0}')
    log = read_log(run)
    stream = log.stream("motor_command")
    assert stream.stamp == "held"
    assert stream.time == pytest.approx(np.arange(1, 20) * 0.01 - 0.0055, abs=1e-9)
    assert log.stream("gyro").time == pytest.approx(np.arange(20) * 0.01, abs=1e-9)
