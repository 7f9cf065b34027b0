"""The program that compares what images are read with: which rounds count for what, and that nothing is made twice."""

from __future__ import annotations

import tomllib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("torch")

from airworthy.trajectories import course
from benchmarks import hardware, visuomotor_features, visuomotor_places


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


@pytest.mark.parametrize(
    ("alone", "flights", "arrives"), [(19, 20, True), (18, 20, False), (190, 200, True), (189, 200, False), (15, 16, False)]
)
def test_a_policy_arrives_with_exactly_95_percent(alone: int, flights: int, arrives: bool) -> None:
    row = {"alone": alone, "flights": flights}
    assert visuomotor_features.arrival([row]) == (row if arrives else None)


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


def test_places_are_put_together_and_what_is_not_there_is_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def train(folder: Path, options: Any, protocol: Any, threads: int) -> Any:
        asked.append((folder.name, options.scene[0], Path(options.course[0]).stem, options.seed, options.minutes))
        found = summary(2, 15)
        lost = {"condition": "drones", "flights": 20, "successes": 0, "tracking_error_m": None}
        times = {"training_wall_s": 270.0, "training_cpu_s": 400.4, "seconds": {"evaluate_s": 60.0, "evaluate_cpu_s": 99.0}}
        return {**found, **times, "pairs": 10_000, "conditions": [*found["conditions"], lost]}

    monkeypatch.setattr(hardware, "use_cores", lambda count: [0])
    monkeypatch.setattr(visuomotor_places, "trained", train)
    monkeypatch.delenv("AIRWORTHY_DATA", raising=False)
    words = ["--places", "court", "urban", "--seeds", "0", "3", "--minutes", "7", "--out", str(tmp_path)]
    assert visuomotor_places.main(words) == 0
    assert asked == [("urban_0", "urban:1@4", "street", 0, 7.0), ("urban_3", "urban:1@4", "street", 3, 7.0)]
    said = capsys.readouterr().out.splitlines()
    assert said[-1] == "2 trainings were skipped."
    assert " ".join(said[-2].split()) == (
        "urban 3 5.5 499 10,000 baseline 19 of 20, 5.0 cm drones 0 of 20, no error rounds: 2, 15 of 16"
    )
    statues = tmp_path / "data" / "splats" / "statues_sog"
    statues.mkdir(parents=True)
    for name in visuomotor_places.STATUES:
        (statues / f"{name}.sog").write_bytes(b"x")
    monkeypatch.setenv("AIRWORTHY_DATA", str(tmp_path / "data"))
    assert visuomotor_places.scene_of("court", tmp_path) == str(tmp_path / "court_place" / "court.toml")
    # All that the scene names lies beside it, and courses can be flown.
    clouds = tomllib.loads((tmp_path / "court_place" / "court.toml").read_text())["clouds"]
    assert all((tmp_path / "court_place" / cloud["file"]).is_file() for cloud in clouds.values())
    assert [course(place.course).trajectory().duration for place in visuomotor_places.PLACES.values()] == pytest.approx(
        [17.23, 20.0, 14.42], abs=0.01
    )
