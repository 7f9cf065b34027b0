"""`airworthy logs`: what it prints, writes and refuses."""

from __future__ import annotations

import io
import json
import os
from pathlib import Path

import pytest
from tests.logs.small_files import CSV_MAPPING, blackbox_text, csv_table, ulog_file

from airworthy.cli.main import main


@pytest.fixture
def ulog(tmp_path: Path) -> Path:
    path = tmp_path / "a.ulg"
    path.write_bytes(ulog_file())
    return path


def test_show(ulog: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["logs", "show", str(ulog)]) == 0
    said = capsys.readouterr().out
    for part in ("ULog", "gyro", "motor_command", "What it tells of the vehicle", "gravity at rest: not known"):
        assert part in said


def test_show_json(ulog: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["logs", "show", str(ulog), "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert {s["name"] for s in record["streams"]} >= {"gyro", "attitude", "motor_speed"}
    assert record["streams"][0]["filter"] == {"order": 2, "cutoff": 80.0}
    assert record["source"]["format"] == "ULog"


def test_map_then_show(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table, mapping = tmp_path / "t.csv", tmp_path / "m.toml"
    table.write_bytes(csv_table())
    assert main(["logs", "show", str(table)]) == 2
    assert "airworthy logs map" in capsys.readouterr().err
    assert main(["logs", "map", str(table), "--out", str(mapping)]) == 0
    assert 'columns = ["wx", "wy", "wz"]' in mapping.read_text()
    mapping.write_text(CSV_MAPPING)
    assert main(["logs", "show", str(table), "--map", str(mapping)]) == 0
    assert "gyro" in capsys.readouterr().out


def test_convert_says_what_it_wrote(ulog: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("b.mcap", "b.csv", "b.npz", "b.txt"):
        assert main(["logs", "convert", str(ulog), "--out", str(tmp_path / name)]) == 0
        assert f"Wrote {tmp_path / name}" in capsys.readouterr().out
    assert main(["logs", "convert", str(ulog), "--out", str(tmp_path / "b.bin")]) == 2
    assert "Unknown format of logs 'bin'" in capsys.readouterr().err


def test_headers_of_a_bare_blackbox(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "b.csv"
    path.write_bytes(blackbox_text(headers=""))
    assert main(["logs", "show", str(path), "--set", "acc_1G=2048", "--set", "motorOutput=158,2047"]) == 0
    assert "accelerometer" in capsys.readouterr().out


def test_memory_that_runs_out_is_told(ulog: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """While a log is read, and while it is judged."""

    def out_of_memory(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr("airworthy.cli.logs.flight_segments", out_of_memory)
    assert main(["logs", "show", str(ulog)]) == 2
    assert "takes more memory than there is, or than the shell allows" in capsys.readouterr().err
    monkeypatch.setattr("airworthy.logs.reading.build", out_of_memory)
    assert main(["logs", "show", str(ulog)]) == 2
    assert "a.ulg': it takes more memory than there is" in capsys.readouterr().err


def test_names_beyond_the_terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal of ASCII gets a name of umlauts escaped."""
    (tmp_path / "\xfc.ulg").write_bytes(ulog_file())
    out = io.TextIOWrapper(io.BytesIO(), "ascii")
    monkeypatch.setattr("sys.stdout", out)
    assert main(["logs", "show", str(tmp_path / "\xfc.ulg")]) == 0
    out.flush()
    assert out.buffer.getvalue().startswith(b"\\xfc.ulg: ULog")


def test_names_that_are_no_text(tmp_path: Path) -> None:
    """A byte of a file's name that is no UTF-8 stands escaped in what is written."""
    table = tmp_path / os.fsdecode(b"a\xff.csv")
    table.write_bytes(csv_table())
    assert main(["logs", "map", str(table), "--out", str(tmp_path / "m.toml")]) == 0
    assert "A first guess for a\\udcff.csv" in (tmp_path / "m.toml").read_text()
    (tmp_path / "m.toml").write_text(CSV_MAPPING)
    assert main(["logs", "convert", str(table), "--map", str(tmp_path / "m.toml"), "--out", str(tmp_path / "b.csv")]) == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--set", "acc_1G"], "expected NAME=VALUE"),
        (["--use", "5"], "expected START:STOP"),
        (["--skip", "5:1"], "expected a START before its STOP"),
    ],
)
def test_options_that_do_not_fit(ulog: Path, arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["logs", "show", str(ulog), *arguments]) == 2
    assert said in capsys.readouterr().err


def test_plan_writes_a_course(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "plan.json"
    words = ["logs", "plan", "--vehicle", "x500", "--out", str(path), "--box", "5", "5", "3", "--parts", "collective", "yaw"]
    assert main(words) == 0
    said = capsys.readouterr().out
    for part in ("Excitation", "collective", "+-15 %", "+-60 deg/s", f"airworthy fly --vehicle x500 --course {path} --imu"):
        assert part in said
    assert "doublets" not in said
    assert main(["courses", "validate", str(path)]) == 0
    assert "excitation_x500 is valid (keyframes" in capsys.readouterr().out


def test_plan_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["logs", "plan", "--vehicle", "x500", "--length", "0.5", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    # Before and behind its middle: what is held out at the end has every kind, and so has what is fitted.
    assert [part["name"] for part in record["parts"]] == [*(kinds := ["lines", "yaw", "doublets"]), "collective", *kinds[::-1]]
    assert sum(part["stop"] - part["start"] for part in record["parts"] if part["name"] == "collective") == pytest.approx(15.0)
    assert record["highest_m"][2] <= 3.0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--vehicle", "x5000"], "x500"),
        (["--vehicle", "x500", "--parts", "roll"], "Unknown part of an excitation flight 'roll'"),
        (["--vehicle", "x500", "--out", "plan.txt"], "name it plan.json"),
        (["--vehicle", "x500", "--box", "0", "1", "1"], "box"),
        (["--vehicle", "morphy"], "joints"),
    ],
)
def test_plans_that_cannot_be(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["logs", "plan", *words]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert "Traceback" not in error
