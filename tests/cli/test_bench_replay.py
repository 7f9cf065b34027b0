"""`airworthy bench replay` opens a page and waits where somebody can end it, and nowhere else; the help of `tune`."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from airworthy.benchmarks.navigation import replay
from airworthy.cli import tune, view
from airworthy.cli.bench.replay import main

ROW = {"pilot": "ego", "vehicle": "carl", "scenario": "forest", "configuration": 1, "outcome": "success", "time_s": 9.0}


@pytest.mark.parametrize(
    ("terminals", "options", "opened"),
    [((True, True), [], 1), ((True, True), ["--no-view"], 0), ((False, True), [], 0), ((True, False), [], 0)],
)
def test_a_flight_is_shown_where_a_terminal_is(
    terminals: tuple[bool, bool],
    options: list[str],
    opened: int,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = SimpleNamespace(recorded=ROW, repeated=ROW, equal=True, differs=(), folder=tmp_path)
    monkeypatch.setattr(replay, "replay_row", lambda *_, **__: found)
    asked: list[list[str]] = []
    monkeypatch.setattr(view, "main", asked.append)
    monkeypatch.setattr(sys.stdin, "isatty", lambda: terminals[0], raising=False)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: terminals[1], raising=False)
    assert main([str(tmp_path), "0", *options]) == 0
    assert asked == opened * [[str(tmp_path), "--open"]]
    assert f"The flight: {tmp_path}" in capsys.readouterr().out


def test_the_help_of_tune_names_both_ways_to_give_the_vehicle(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        tune.main(["--help"])
    assert "airworthy tune carl is airworthy tune --vehicle carl" in " ".join(capsys.readouterr().out.split())
