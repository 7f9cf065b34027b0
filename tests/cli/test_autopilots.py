"""`airworthy fly --pilot px4` and `airworthy serve`, with a stand-in at the other end."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.bridges.conftest import free_port

from airworthy.cli.main import main

STAND_IN = Path(__file__).parents[1] / "bridges" / "stand_in.py"


@pytest.fixture
def port(loopback: None) -> int:
    return free_port()


@pytest.fixture
def other_side(port: int) -> Iterator[list[subprocess.Popen[bytes]]]:
    started: list[subprocess.Popen[bytes]] = []
    yield started
    for one in started:
        one.kill()
        one.wait()


def test_a_flight_is_judged_like_any_other(port: int, other_side: list[subprocess.Popen[bytes]], tmp_path: Path) -> None:
    other_side.append(subprocess.Popen([sys.executable, str(STAND_IN), "ardupilot", str(port)]))
    words = ["fly", "--pilot", f"ardupilot:{port}", "--vehicle", "x500", "--waypoints", "0,0,2", "0,0.2,2", "--hold", "0"]
    assert main([*words, "--no-report", "--json", "--out", str(tmp_path / "run")]) == 0
    summary = json.loads((tmp_path / "run" / "summary.json").read_text(encoding="utf-8"))
    (flight,) = summary["flights"]
    assert flight["pilot"] == "ardupilot"
    assert flight["outcome"] in ("success", "partial", "not_at_goal")
    assert flight["tracking_error_m"] < 0.2


def test_serve_until_the_autopilot_leaves(
    port: int, other_side: list[subprocess.Popen[bytes]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other_side.append(subprocess.Popen([sys.executable, str(STAND_IN), "ardupilot", str(port), "--die", "0.8"]))
    words = ["serve", "--as", "ardupilot", "--listen", str(port), "--patience", "0.3", "--wait", "20", "--clock", "lockstep"]
    assert main([*words, "--out", str(tmp_path / "flight")]) == 0
    said = capsys.readouterr().out
    assert f"Waiting for ardupilot at 127.0.0.1:{port}. Ctrl-C ends it." in said
    assert "ArduPilot sent no servo packet within 0.3 s after the vehicle's state." in said
    assert (tmp_path / "flight" / "flight.parquet").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--envs", "2"], "is a program outside, which flies one vehicle: leave --envs at 1."),
        (["--wait", "0.1"], "No PX4 connected to 127.0.0.1:"),
        (["--vehicle", "flightgoggles"], "The front right rotor of vehicle 'flightgoggles' turns cw"),
        (["--dynamics", "semi_kinematic"], "commands motors: fly --dynamics rigid."),
    ],
)
def test_mistakes(port: int, words: list[str], said: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    vehicle = [] if "--vehicle" in words else ["--vehicle", "x500"]
    assert main(["fly", "--pilot", f"px4:{port}", *vehicle, *words, "--json", "--out", str(tmp_path / "run")]) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_options_of_links_are_for_links(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["fly", "--vehicle", "x500", "--patience", "2", "--out", str(tmp_path / "run")]) == 2
    assert "--patience" in capsys.readouterr().err
    assert main(["serve", "--as", "px4", "--factor", "2"]) == 2
    assert "choose --clock scaled" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("autopilot", "words", "said"),
    [
        ("ardupilot", ["--gnss", "m8n"], "--gnss m8n changes nothing for ArduPilot and Betaflight, which make these sensors"),
        ("betaflight", ["--magnetometer", "ideal"], "--magnetometer ideal changes nothing for ArduPilot and Betaflight"),
        ("ardupilot", ["--home", "50", "8", "100"], "whose world's origin is its own home: start ArduPilot with --home"),
        ("px4", ["--self-test"], "--self-test changes nothing for an autopilot that is no Betaflight"),
    ],
)
def test_devices_that_an_autopilot_is_not_told_of(
    autopilot: str, words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["serve", "--as", autopilot, *words]) == 2
    assert said in capsys.readouterr().err


def test_other_jobs_say_that_it_is_a_program_outside() -> None:
    from airworthy.core.errors import AirworthyError
    from airworthy.pilots import pilot_level, pilot_sensors
    from airworthy.vehicles import vehicle

    assert pilot_level("px4:4561") == "rotor_speed"
    with pytest.raises(AirworthyError, match="is a program outside: `airworthy fly --pilot px4` and `airworthy serve` fly it"):
        pilot_sensors("px4", vehicle("x500"))
