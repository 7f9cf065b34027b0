"""`airworthy synthesize gates`: what it prints, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from airworthy.cli.learning.synthesize_gates import main
from airworthy.core.errors import AirworthyError

Output = pytest.CaptureFixture[str]


def test_it_prints_counts_for_people_and_for_machines(tmp_path: Path, capsys: Output) -> None:
    arguments = ["--every", "6480", "--trials", "0", "--out", str(tmp_path / "gates")]
    assert main(arguments) == 0
    said = capsys.readouterr().out
    assert "admissible candidates" in said
    assert "report.html" in said
    assert main([*arguments, "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["complete"]
    assert printed["counts"]["situations"] == 20
    assert printed["new"] == {"situations": 0, "rollouts": 0, "steps": 0}  # everything was there


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--grid", "papr"], "Unknown grid 'papr'"),
        (["--randomisation", "wild"], "Unknown randomisation 'wild'"),
        (["--vehicle", "cf3"], "Unknown vehicle 'cf3'"),
        (["--limit", "-1", "0.3"], "The limit is"),
        (["--workers", "0"], "--workers is 0"),
        (["--every", "0"], "--every must be"),
        (["--device", "tpu"], "Device 'tpu'"),
        (["--gains", "lee"], "for the geometric law"),
        (["--optional-drag", "--vehicle", "cf2x_L250"], "no optional drag"),
    ],
)
def test_mistakes_are_told_in_one_sentence(arguments: list[str], sentence: str, tmp_path: Path) -> None:
    with pytest.raises(AirworthyError, match=sentence):
        main([*arguments, "--out", str(tmp_path / "gates")])
