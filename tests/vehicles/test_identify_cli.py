"""`airworthy vehicles identify`: files in and out, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.vehicles.flown_logs import fly, quad

from airworthy.cli.main import main
from airworthy.logs import write_log
from airworthy.vehicles import read_vehicle

MASS = ("--mass", "0.027+-0.0001")
FRAME = ("--frame", "quad_x:0.028")


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("logs") / "flown.npz"
    write_log(fly(quad(), 14.0), path)
    return str(path)


def refused(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    assert main(["vehicles", "identify", *argv]) == 2
    said = capsys.readouterr().err.strip()
    assert "Traceback" not in said
    return said


def test_a_vehicle_is_written(log: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, report = tmp_path / "mine.toml", tmp_path / "report"
    argv = ["vehicles", "identify", log, *MASS, *FRAME, "--quick", "--out", str(out), "--report", str(report)]
    assert main(argv) == 0
    said = capsys.readouterr().out
    assert "Verdict: flyable." in said
    assert "not told: thrust over rotor speed" in said
    made = read_vehicle(out)
    assert made.name == "mine"
    assert made.inertia[:2] == pytest.approx((1.5e-5, 1.6e-5), rel=0.01)
    kept = json.loads((report / "identification.json").read_text())
    assert kept["structure"] == "first power"
    assert {v["name"]: v["word"] for v in kept["values"]}["lag"] == "identified"
    first = out.read_bytes()
    assert main(argv) == 0
    assert out.read_bytes() == first
    capsys.readouterr()
    assert main(["vehicles", "validate", str(out)]) == 0
    # Every value of the record says where it comes from.
    assert "no source is given" not in capsys.readouterr().out


def test_the_published_method_prints(log: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["vehicles", "identify", log, *MASS, *FRAME, "--method", "eschmann2024", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["thrust_flight"] == "flown.npz"
    assert found["inertia"][0] < 1.5e-5


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ([*FRAME], "The vehicle's mass is not given, and a log tells thrust over mass only"),
        ([*MASS], "No log says where its rotors are; name a vehicle"),
        ([*MASS, *FRAME, "--like", "cf2x_L250"], "--like and --frame both say what flew; give one"),
        (["--mass", "heavy", *FRAME], "--mass is 'heavy'; expected VALUE+-ERROR"),
        ([*MASS, *FRAME, "--fix", "lag"], "--fix is 'lag'; expected NAME=VALUE"),
        ([*MASS, *FRAME, "--fix", "colour=1"], "Unknown quantity of a vehicle 'colour'"),
        ([*MASS, *FRAME, "--measured", "inertia.zz=1e-5"], "--measured inertia.zz is '1e-5'; expected VALUE+-ERROR"),
        ([*MASS, *FRAME, "--order", "1,1,2,3"], "--order is '1,1,2,3'; expected each column from 1 to 4 once"),
        ([*MASS, *FRAME, "--use", "5"], "--use is '5'; expected START:STOP"),
        ([*MASS, *FRAME, "--use", "0:1"], "no second of it is usable flight"),
        ([*MASS, *FRAME, "--out", "mine.json"], "expected a vehicle file, NAME.toml"),
        ([*MASS, *FRAME, "--gravity-as-published"], "belongs to --method eschmann2024"),
        ([*MASS, *FRAME, "--method", "eschmann2024", "--out", "mine.toml"], "so no vehicle is written"),
        ([*MASS, "--frame", "hexa_x:0.2"], "commands 4 motors, and the given geometry has 6 rotors"),
    ],
)
def test_mistakes(
    log: str, more: list[str], said: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert said in refused(capsys, log, *more)


def test_what_lacks_most_is_said_first(capsys: pytest.CaptureFixture[str]) -> None:
    """Without a log there is nothing to weigh."""
    assert refused(capsys).startswith("No log was given; expected at least one flight")
    assert refused(capsys, *FRAME, "--method", "eschmann2024").startswith("No log was given")


def test_a_log_without_commands_is_refused(data_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = data_dir / "flights/euroc_v101"
    assert "holds no motor commands" in refused(capsys, str(folder / "imu0.csv"), *MASS, *FRAME)


def test_a_log_of_a_disarmed_autopilot_is_refused(data_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sample = data_dir / "flights/px4_quad_sample/sample.ulg"
    assert "every motor command is 0" in refused(capsys, str(sample), "--mass", "1.5+-0.05", "--frame", "quad_x:0.17")
