"""First guesses of what columns mean, read back by the reader."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from airworthy.core.errors import AirworthyError
from airworthy.logs import ReadOptions, guess_mapping, read_log, table_of


def guessed(columns: dict[str, np.ndarray]) -> dict[str, tuple[tuple[str, ...], str, str]]:
    return {g.name: (g.columns, g.unit, g.frame) for g in guess_mapping(columns).streams}


def test_imu_in_degrees_and_g() -> None:
    n = np.arange(100)
    columns = {"t_ms": 2.0 * n}
    columns |= {f"gyro_{a}": 100.0 * np.sin(n) for a in "xyz"}
    columns |= {"acc_x": 0.0 * n, "acc_y": 0.0 * n, "acc_z": 0.0 * n - 1.0}
    columns |= {f"motor{k}": 1000.0 + n for k in range(4)}
    found = guess_mapping(columns)
    assert (found.time, found.time_unit) == ("t_ms", "ms")
    named = guessed(columns)
    assert named["gyro"] == (("gyro_x", "gyro_y", "gyro_z"), "deg/s", "flu")
    assert named["accelerometer"] == (("acc_x", "acc_y", "acc_z"), "g", "frd")
    assert named["motor_command"] == (("motor0", "motor1", "motor2", "motor3"), "us", "")


def test_no_time_no_guess() -> None:
    with pytest.raises(AirworthyError, match="No column rises"):
        guess_mapping({"a": np.array([1.0, 0.0, 2.0, 0.0])})


def test_guesses_of_shared_tables_are_read(data_dir: Path, tmp_path: Path) -> None:
    path = data_dir / "flights/phantom4rtk/Horizontal_path_1/IMU_1.csv"
    columns, _ = table_of(path)
    (tmp_path / "m.toml").write_text(guess_mapping(columns).text(path.name))
    log = read_log(path, ReadOptions(mapping=tmp_path / "m.toml"))
    rows = np.loadtxt(path, delimiter=",", skiprows=1)
    assert np.allclose(log.stream("gyro").values, np.deg2rad(rows[:, 7:10]))
    assert np.allclose(log.stream("accelerometer").values, rows[:, 4:7])
    assert log.stream("attitude").quality.rate == pytest.approx(120.0, rel=1e-3)
    truth = guessed(table_of(data_dir / "flights/phantom4rtk/Horizontal_path_1/GT.csv")[0])
    assert truth["position"] == (("North", "East", "Down"), "", "ned")
    poses = guessed(table_of(data_dir / "flights/flightgoggles_example/pose_world_imu.csv")[0])
    assert set(poses) == {"position", "attitude"}
