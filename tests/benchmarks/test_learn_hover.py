"""The program that prints how long learning to hover takes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from airworthy.learning.gradient import GradientTraining
from benchmarks import hardware, learn_hover


def test_every_seed_of_every_vehicle_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hardware, "use_cores", lambda count: [0])  # the other tests keep theirs
    monkeypatch.setattr(GradientTraining, "finished", property(lambda self: self.iteration >= 2))
    words = ["--vehicles", "tinyprop", "--seeds", "2", "--randomize", "default", "--flights", "16", "--json"]
    assert learn_hover.main([*words, str(tmp_path / "f.json")]) == 0
    found = json.loads((tmp_path / "f.json").read_text())
    assert [(row["vehicle"], row["seed"], len(row["flown"])) for row in found["rows"]] == [("tinyprop", k, 4) for k in (0, 1)]
    assert all(row["cpu_s"] > 0.0 and row["env_steps"] == 2 * 64 * 100 for row in found["rows"])
    said = capsys.readouterr().out
    assert "medians: wall_s" in said
    assert json.loads(said.splitlines()[0])["command"]
