"""`airworthy bench replay` opens a page and waits where somebody can end it, and nowhere else; the help of `tune`."""

from __future__ import annotations

import json
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


@pytest.mark.parametrize("kept", [True, False])
@pytest.mark.parametrize("equal", [True, False])
def test_the_comparison_as_json(
    kept: bool, equal: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    differs = () if equal else ("time_s",)
    folder = tmp_path if kept else None
    found = SimpleNamespace(recorded=ROW, repeated={**ROW, "time_s": 9.5}, equal=equal, differs=differs, folder=folder)
    monkeypatch.setattr(replay, "replay_row", lambda *_, **__: found)
    assert main([str(tmp_path), "0", "--json"]) == (0 if equal else 1)
    assert json.loads(capsys.readouterr().out) == {
        "equal": equal,
        "differs": list(differs),
        "folder": str(tmp_path) if kept else None,
        "recorded": ROW,
        "repeated": {**ROW, "time_s": 9.5},
    }


@pytest.mark.parametrize(("equal", "kept"), [(True, True), (True, False), (False, True), (False, False)])
def test_the_comparison_in_words(
    equal: bool, kept: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    differs = () if equal else ("time_s", "states")
    versions = {"recorded_versions": "1.0", "version": "1.1"}
    folder = tmp_path if kept else None
    found = SimpleNamespace(recorded=ROW, repeated=ROW, equal=equal, differs=differs, folder=folder, **versions)
    monkeypatch.setattr(replay, "replay_row", lambda *_, **__: found)
    assert main([str(tmp_path), "0", "--no-view"]) == (0 if equal else 1)
    first, second = capsys.readouterr().out.splitlines()
    what = "ego on carl in forest 1: success"
    assert first == (
        f"Equal, every byte of the row and of the flight's states: {what} after 9.00 s."
        if equal
        else f"Different in time_s, states: {what}; recorded by 1.0, repeated by 1.1."
        " Equal bits are promised for the same version and device type."
    )
    assert second == (f"The flight: {tmp_path}" if kept else "No flight is kept: it ended before its goal was issued.")
