"""The tutorial "your drone in an evening": its commands in order in one folder, and logs in autopilots' formats."""

from __future__ import annotations

import re
import shlex
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tests.logs.small_files import ulog_key, ulog_message
from tests.vehicles.drifting_flights import INERTIA, LAG, MASS, NONE, RATIO, fly, record

from airworthy.cli.main import main
from airworthy.logs import Log, read_log
from airworthy.logs.units import DEGREE, STANDARD_GRAVITY
from airworthy.vehicles import Identified, Known, frame_vehicle, hover_trim, identify, read_vehicle


def ulog_bytes(log: Log) -> bytes:
    """A PX4 log of high rate: gyro, accelerometer, motors (NaN while disarmed), geometry as parameters; axes FRD."""
    data = b"ULog\x01\x12\x35\x01" + struct.pack("<Q", 1_000_000) + ulog_message("B", bytes(40))
    for text in (
        "vehicle_angular_velocity:uint64_t timestamp;uint64_t timestamp_sample;float[3] xyz;",
        "vehicle_acceleration:uint64_t timestamp;uint64_t timestamp_sample;float[3] xyz;",
        "actuator_motors:uint64_t timestamp;uint64_t timestamp_sample;float[12] control;uint16_t reversible_flags;",
    ):
        data += ulog_message("F", text.encode())
    rotors = record().rotors
    data += ulog_key("P", "int32_t CA_ROTOR_COUNT", struct.pack("<i", len(rotors)))
    for k, rotor in enumerate(rotors):
        x, y, z = rotor.position
        numbers = {"PX": x, "PY": -y, "PZ": -z, "AX": 0.0, "AY": 0.0, "AZ": -1.0, "KM": -rotor.spin * RATIO, "CT": 6.5}
        for name, value in numbers.items():
            data += ulog_key("P", f"float CA_ROTOR{k}_{name}", struct.pack("<f", value))
    for number, name in enumerate(("vehicle_angular_velocity", "vehicle_acceleration", "actuator_motors")):
        data += ulog_message("A", struct.pack("<BH", 0, number) + name.encode())
    frd = np.array([1.0, -1.0, -1.0])
    gyro, force = (log.stream(kind).values * frd for kind in ("gyro", "accelerometer"))
    command = np.full((len(gyro), 12), np.nan)
    driven = log.stream("motor_command").values
    command[:, :4] = np.where(driven > 0.0, driven, np.nan)
    parts = [data]
    for t, w, f, u in zip(log.stream("gyro").time, gyro, force, command, strict=True):
        stamp = 1_000_000 + round(1e6 * t)
        parts.append(ulog_message("D", struct.pack("<HQQ3f", 0, stamp, stamp, *w)))
        parts.append(ulog_message("D", struct.pack("<HQQ3f", 1, stamp, stamp, *f)))
        parts.append(ulog_message("D", struct.pack("<HQQ12fH", 2, stamp, stamp, *u, 0)))
    return b"".join(parts)


def blackbox_bytes(log: Log) -> bytes:
    """A blackbox as its decoder writes it: whole numbers in units that header lines tell."""
    head = '"acc_1G",2048\n"motorOutput","158,2047"\n"motor_poles",14\n"blackbox_high_resolution",1\n'
    names = ["loopIteration", "time (us)"]
    names += [f"gyroADC[{k}]" for k in range(3)] + [f"accSmooth[{k}]" for k in range(3)] + [f"motor[{k}]" for k in range(4)]
    time = 1_000_000 + np.rint(1e6 * log.stream("gyro").time)
    gyro = np.rint(10.0 * log.stream("gyro").values / DEGREE)
    force = np.rint(2048.0 * log.stream("accelerometer").values / STANDARD_GRAVITY)
    motor = np.rint(158.0 + (2047.0 - 158.0) * log.stream("motor_command").values)
    table = np.column_stack([np.arange(len(time)), time, gyro, force, motor]).astype(np.int64)
    return (head + ",".join(names) + "\n" + "\n".join(",".join(map(str, row)) for row in table.tolist()) + "\n").encode()


@pytest.mark.parametrize(
    ("write", "name", "told"),
    [(ulog_bytes, "flight.ulg", True), pytest.param(blackbox_bytes, "flight.csv", False, marks=pytest.mark.slow)],
    ids=["px4", "betaflight"],
)
def test_logs_of_autopilots_lead_to_the_vehicle(write: Callable[[Log], bytes], name: str, told: bool, tmp_path: Path) -> None:
    """The truth is an eighth linear in thrust; PX4's log says where rotors are, Betaflight's does not."""
    (tmp_path / name).write_bytes(write(fly([NONE], 16.0, seed=8, push=0.3)[0]))
    log = read_log(tmp_path / name)
    assert (log.geometry is not None) == told
    found: Identified = identify([log], Known((MASS, 0.001), None if told else frame_vehicle("quad_x:0.12", MASS)), quick=True)
    values = {v.name: v.value for v in found.values}
    assert values["inertia_xx"] == pytest.approx(INERTIA[0], rel=0.05)
    assert values["inertia_yy"] == pytest.approx(INERTIA[1], rel=0.05)
    assert values["lag"] == pytest.approx(LAG, rel=0.1)
    truth = hover_trim(record()).states[0] / record().rotors[0].speed_max
    assert found.hover == pytest.approx(truth, rel=0.01)


@pytest.mark.slow
def test_the_commands_of_the_page_run_as_printed(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (repository / "docs/tutorials/drone_in_an_evening.md").read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    said = {}
    for block in re.findall(r"^```sh\n(.*?)^```", page, re.MULTILINE | re.DOTALL):
        for line in block.splitlines():
            if line.startswith("sed "):
                *words, into, written = shlex.split(line)
                assert into == ">"
                Path(written).write_text(
                    subprocess.run(words, check=True, capture_output=True, text=True).stdout, encoding="utf-8"
                )
                continue
            assert line.startswith("airworthy "), line
            assert main(shlex.split(line)[1:]) == 0, (line, capsys.readouterr().err)
            said[line.split()[2]] = capsys.readouterr().out
    assert "Verdict: flyable." in said["identify"]
    mine, truth = read_vehicle("mine.toml"), read_vehicle("truth.toml")
    assert mine.inertia[:2] == pytest.approx(truth.inertia[:2], rel=0.03)
    assert "mass (inertia as it was)" in said["watch"]
    assert "from the first usable second of third on" in said["watch"]
