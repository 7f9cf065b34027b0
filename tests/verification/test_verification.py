"""Every acceptance figure that `airworthy verify` prints is as it must be, and the checks can fail."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from airworthy.cli import verify
from airworthy.cli.verify import main
from airworthy.simulation import Simulator
from airworthy.verification import flightgoggles, flightgoggles_figures, promise_figures, published_figures
from airworthy.verification.published import below, within, zero


@pytest.mark.slow
def test_the_flightgoggles_checks() -> None:
    figures = list(flightgoggles_figures())
    assert len(figures) == 26
    assert [f for f in figures if not f.passed] == []


@pytest.mark.slow
def test_the_promises() -> None:
    figures = list(promise_figures())
    assert len(figures) == 9
    assert [f for f in figures if not f.passed] == []


def test_the_published_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AIRWORTHY_DATA", raising=False)
    figures = list(published_figures())
    assert len(figures) == 5
    assert figures[0].name.startswith("FlyingTrust table, 36 vehicles")
    assert [f for f in figures if not f.passed] == []


def test_the_reference_files(data_dir: Path) -> None:
    figures = list(published_figures())
    assert len(figures) == 10
    assert [f for f in figures if not f.passed] == []


def test_figures_can_fail() -> None:
    assert not within("a", 1.06, 1.0, 0.05).passed
    assert within("a", 1.04, 1.0, 0.05).passed
    assert not below("a", 2.0, 1.0).passed
    assert not below("a", float("nan"), 1.0).passed
    assert not within("a", float("nan"), 1.0, 0.1).passed
    assert not zero("a", 1).passed


def test_the_command_prints_one_group(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AIRWORTHY_DATA", raising=False)
    assert main(["--only", "sensors"]) == 0
    said = capsys.readouterr().out
    assert "FlightGoggles 12: focal length of the camera" in said
    assert "Rays" not in said
    assert "figures are as they must be." in said
    assert "AIRWORTHY_DATA is unset" in said
    assert "run with --all" in said


def test_the_command_tells_of_a_figure_that_is_not_as_it_must_be(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(verify.GROUPS, "sensors", lambda everything: iter([zero("made up", 3)]))
    assert main(["--only", "sensors"]) == 1
    assert "0 of 1 figures" in capsys.readouterr().out


def test_a_group_that_is_none_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--only", "sounds"])
    assert "'motion', 'articulated', 'geometry', 'scenes', 'sensors'" in capsys.readouterr().err


@pytest.mark.slow
def test_the_command_prints_json(capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["--json"])
    found = json.loads(capsys.readouterr().out)
    assert len(found) >= 100
    # Bounds that real flights miss are known, and their rows say why.
    missed = [figure for figure in found if not figure["passed"]]
    assert code == bool(missed)
    assert all(figure["note"] for figure in missed)
    assert max(len(figure["name"]) for figure in found) <= 100  # as wide as a table of them may be


def test_the_figures_of_wrench_noise_hold_for_fewer_vehicles_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 400 vehicles 1200 numbers give a standard deviation to 2 %, and 800 a variance to 5 %: 4 of each are allowed."""
    monkeypatch.setattr(
        flightgoggles, "Simulator", lambda model, config, env_count, seed: Simulator(model, config, env_count=400, seed=seed)
    )
    first, second, share, size = flightgoggles._wrench_noise()
    assert (first.measured, second.measured) == (pytest.approx(0.693, rel=0.08), pytest.approx(0.490, rel=0.08))
    assert share.measured == pytest.approx(1.0, rel=0.28)
    assert size.measured == pytest.approx(5e-4, rel=0.2)
