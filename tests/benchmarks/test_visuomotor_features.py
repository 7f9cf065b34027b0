"""The program that compares what images are read with: which rounds count for what, and that nothing is made twice."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("torch")

from benchmarks import hardware, visuomotor_features


def summary(*alone: int) -> dict[str, Any]:
    """Imitation of 8,000 pairs in 100 processor seconds, then rounds of 1,000 and 50."""
    steps: list[dict[str, Any]] = [{"pairs": 8000, "step_cpu_s": 100.0}]
    for k, count in enumerate(alone):
        steps.append({"pairs": 9000 + 1000 * k, "step_cpu_s": 50.0, "flights": 16, "alone": count})
    judged = {"condition": "baseline", "flights": 20, "successes": 19, "tracking_error_m": 0.05}
    return {"steps": steps, "conditions": [judged]}


def test_a_round_is_flown_by_what_was_learnt_before_it() -> None:
    rounds = visuomotor_features.rounds_of(summary(3, 15, 16))
    assert [(row["alone"], row["pairs"], row["cpu_s"]) for row in rounds] == [
        (3, 8000, 100.0),
        (15, 9000, 150.0),
        (16, 10000, 200.0),
    ]
    # 15 of 16 are 94 %.
    arrived = visuomotor_features.arrival(rounds)
    assert arrived is not None
    assert arrived["pairs"] == 10_000
    assert visuomotor_features.arrival(rounds[:2]) is None


def test_seeds_are_told_together_and_those_that_never_arrive_are_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def train(folder: Path, options: Any, protocol: Any, **others: Any) -> Any:
        asked.append((folder.name, options.features, options.seed, options.rounds, options.flights, protocol.flights))
        return SimpleNamespace(figures=summary(2, 16) if options.seed else summary(1, 14))

    monkeypatch.setattr(hardware, "use_cores", lambda count: [0])
    monkeypatch.setattr(visuomotor_features, "train_visuomotor", train)
    words = ["--features", "own", "--seeds", "0", "1", "--rounds", "2", "--flights", "16", "--judged", "20", "--out"]
    assert visuomotor_features.main([*words, str(tmp_path)]) == 0
    assert asked == [("own_0", "own", 0, 2, 16, 20), ("own_1", "own", 1, 2, 16, 20)]
    said = capsys.readouterr().out
    assert "own_0: 1, 14 of 16 without help" in said
    assert "imitation alone: 3 of 32 (3 to 24 %) without help, learnt of 8,000 (8,000 to 8,000) pairs in 100" in said
    assert "95 %: 1 of 2 seeds arrived, of 9,000 (9,000 to 9,000) pairs, in 150 (150 to 150) processor seconds" in said
    assert "judged, baseline: 38 of 40 (83 to 99 %), 5.0 (5.0 to 5.0) cm off" in said
