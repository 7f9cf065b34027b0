"""`airworthy races`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.race.test_race_files import SMALL

from airworthy.cli.main import main
from airworthy.race import race_names
from airworthy.race.pilots.catalogue import race_pilots


def test_list(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["races"]) == 0
    said = capsys.readouterr().out
    assert all(name in said for name in race_names())
    assert main(["races", "list", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["name"] for row in rows] == list(race_names())
    (hall,) = [row for row in rows if row["name"] == "alphapilot"]
    assert hall["length_m"] == pytest.approx(225.5, abs=0.05)  # the published one
    assert (hall["gates"], hall["test"], hall["time_limit_s"]) == (11, "loose", 300.0)


@pytest.mark.parametrize("name", [*race_names(), "random:4"])
def test_show(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["races", "show", name]) == 0
    said = capsys.readouterr().out
    assert name in said
    assert main(["races", "show", name, "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["race"]["name"] == name
    assert len(shown["order"]) * shown["laps"] == shown["passages"]


def test_check(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "small.toml"
    file.write_text(SMALL)
    assert main(["races", "check", str(file)]) == 0
    said = capsys.readouterr().out
    assert "small is valid (2 passages of 2 gates" in said
    assert "note: no source is given" in said
    file.write_text(SMALL.replace('title = "Two gates"', 'title = "Two gates"\nvehicle = "cf99"\nsource = "me"'))
    assert main(["races", "check", str(file)]) == 0
    said = capsys.readouterr().out
    assert "note: no vehicle of this package is called 'cf99'" in said
    assert "no source" not in said
    file.write_text(SMALL.replace("radius = 0.1", "radius = -1.0"))
    assert main(["races", "check", str(file)]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "posts[0].radius must be a number, 0.001 to 5 m" in said


def test_a_race_that_is_none(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["races", "show", "monza"]) == 2
    assert "Unknown race 'monza'" in capsys.readouterr().err


def test_pilots_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["races", "pilots"]) == 0
    said = capsys.readouterr().out
    assert all(name in said for name in race_pilots())
    assert "external:PORT" in said
    assert main(["races", "pilots", "--json"]) == 0
    assert [row["pilot"] for row in json.loads(capsys.readouterr().out)] == list(race_pilots())
