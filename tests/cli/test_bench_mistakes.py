"""What people get wrong with `airworthy bench`, and what they are told: one sentence, exit code 2, nothing written."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from airworthy.cli.main import main

WRONG = {
    "bench navigtion": "Closest: 'navigation'",
    "bench --pilots ego": "The action comes first",
    "bench navigation extra": "Unrecognized options: extra",
    "bench navigation --pilot ego": "Unrecognized options: --pilot",
    "bench navigation --pilots": "at least one of --pilots",
    "bench navigation --pilots ego ego": "named twice",
    "bench navigation --vehicles real_12 real_12": "The same vehicle was named twice: real_12, real_12; name each once.",
    "bench navigation --scenarios forest forest": "The same scenario was named twice",
    "bench navigation --configurations 3 3": "each once",
    "bench sensitivity --vehicles real_12 real_12": "The same vehicle was named twice",
    "bench sensitivity --scenarios forest forest": "The same scenario was named twice",
    "bench sensitivity --pilots ego ego": "named twice",
    "bench sensitivity --configurations 3 3": "each once",
    "bench timing --pilots ego ego": "named twice",
    "bench navigation --pilots egoo": "Closest: 'ego'",
    "bench navigation --pilots nowhere.py:Pilot": "There is no file 'nowhere.py'",
    "bench navigation --pilots nowhere.py": "One of your own is FILE.py:CLASS.",
    "bench navigation --vehicles real_99": "Unknown vehicle 'real_99'",
    "bench navigation --scenarios desert": "Unknown scenario 'desert'",
    "bench navigation --trials 0": "--trials is 0; expected 1 to 10.",
    "bench navigation --trials ten": "is not a whole number",
    "bench navigation --workers -2": "--workers is -2",
    "bench navigation --batch 1000000": "expected 1 to 10,000",
    "bench navigation --seed -1": "seed is -1; expected 0 to 2^63 - 1",
    "bench navigation --seed 99999999999999999999": "expected 0 to 2^63 - 1",
    "bench navigation --device tpu": "Device 'tpu' is not on this machine",
    "bench navigation --device cuda:99": "Device 'cuda:99' is not on this machine",
    "bench navigation --compute magic": "invalid choice 'magic'",
    "bench navigation --perturb.drift nan": "--perturb.drift is nan",
    "bench navigation --perturb.latency 100": "expected 0 to 2",
    "bench navigation --protocol.time-limit-s 0": "expected a finite number above 0",
    "bench navigation --protocol.speed-m-s inf": "expected a finite number",
    "bench navigation --decision-timeout inf": "expected a finite number",
    "bench navigation --warm-up -1": "--warm-up is -1.0 s; expected a finite number, or 0 for none",
    "bench navigation --system nowhere.toml": "There is no file 'nowhere.toml'",
    "bench navigation --out /dev/null": "Could not make the folder '/dev/null'",
    "bench smoke --nothing": "Unrecognized options",
    "bench timing --flights 0": "--flights is 0; expected 1 to 10.",
    "bench timing --vehicle all": "names 36 of them",
    "bench timing --scenario all": "names 7 of them",
    "bench timing --pilots egoo": "Closest: 'ego'",
    "bench report": "folder",
    "bench report nowhere": "There is no file 'nowhere/benchmark.json'",
    "bench replay nowhere 0": "There is no file 'nowhere/benchmark.json'",
    "bench replay . x": "is not a whole number",
}


@pytest.mark.parametrize("line", WRONG)
def test_wrong_words_are_answered_in_a_sentence(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    try:
        code: object = main(line.split())
    except SystemExit as stop:  # what the parser of options raises
        code = stop.code
    said = capsys.readouterr()
    assert code == 2
    assert said.out == ""
    assert WRONG[line] in said.err
    assert len(said.err.strip().splitlines()) == 1
    assert os.listdir(tmp_path) == []


def test_a_cluster_without_ray_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "ray", None)  # as where it is not installed
    assert main(["bench", "navigation", "--cluster", "auto", "--out", str(tmp_path / "out")]) == 2
    assert "airworthy[cluster]" in capsys.readouterr().err
    assert os.listdir(tmp_path) == []
