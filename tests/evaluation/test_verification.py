"""Every acceptance figure that `airworthy verify` prints is as it must be, and the checks can fail."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from airworthy.cli.verify import main
from airworthy.evaluation.verification import flightgoggles_figures, promise_figures, published_figures
from airworthy.evaluation.verification.figure import below, within, zero


def test_the_flightgoggles_checks() -> None:
    figures = list(flightgoggles_figures())
    assert len(figures) == 26
    assert [f for f in figures if not f.passed] == []


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


@pytest.mark.slow
def test_the_command_prints_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)) >= 36
