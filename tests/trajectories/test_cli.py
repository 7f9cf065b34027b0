"""`airworthy courses`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from airworthy.cli.main import main
from airworthy.trajectories import course_names
from airworthy.trajectories.course_file import CATALOGUE


def test_the_list(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["courses", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["name"] for row in rows] == course_names()
    assert {row["kind"] for row in rows} == {"keyframes", "gates"}
    assert main(["courses"]) == 0
    assert "robustness" in capsys.readouterr().out


def test_show(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["courses", "show", "robustness", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["duration_s"] == 15.0
    assert shown["length_m"] == pytest.approx(12.65, abs=0.01)
    assert len(shown["course"]["keyframes"]) == 8
    assert main(["courses", "show", "line"]) == 0
    assert "speed_max_m_s" in capsys.readouterr().out


def test_validate(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["courses", "validate", str(CATALOGUE / "line.json")]) == 0
    assert "line is valid (keyframes, 6 s, 4 m, up to 1 m/s)" in capsys.readouterr().out
    value = json.loads((CATALOGUE / "line.json").read_text()) | {"source": ""}
    (tmp_path / "mine.json").write_text(json.dumps(value))
    assert main(["courses", "validate", str(tmp_path / "mine.json")]) == 0
    assert "note: no source" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["show", "robustnes"], "Closest: 'robustness'"),
        (["sow"], "Closest: 'show'"),
        (["validate", "missing.json"], "no file"),
    ],
)
def test_mistakes_are_one_sentence(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["courses", *arguments]) == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert "Traceback" not in captured.err
