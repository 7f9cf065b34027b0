"""What `airworthy train` prints and records of draws that were cut: a tenth of a flat vehicle's are no body's."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.fixtures.identified import identified

from airworthy.cli.learning.seed_trainings import drawn_lines
from airworthy.cli.main import main
from airworthy.learning.task_training import run
from airworthy.simulation import Randomization
from airworthy.simulation.posterior import draws_record
from airworthy.vehicles import read_vehicle, write_vehicle

TINY = ("--env-count", "64", "--steps", "2048", "--seed", "3")
SAID = " % of the draws from the uncertainty of cf2x_L250 are no vehicles"


def record_of(place: Path, izz: float) -> str:
    """The file of a vehicle whose Izz over the mean of the others is told to so much."""
    made = identified()
    told = made.uncertainty
    assert told is not None
    sd = tuple(izz if name == "inertia_zz_ratio" else value for name, value in zip(told.names, told.sd, strict=True))
    path = place / f"izz_{izz}.toml"
    write_vehicle(replace(made, uncertainty=replace(told, sd=sd)), path)
    return str(path)


def train(vehicle: str, out: Path, *more: str) -> int:
    return main(["train", "motor_track", "--vehicle", vehicle, "--trainer", "native_ppo", *TINY, "--out", str(out), *more])


@pytest.mark.slow
def test_a_training_tells_what_its_draws_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "known_controllers", lambda *_: [])  # flights beside the policy's are of no interest here
    mine = record_of(tmp_path, 0.13)
    assert train(mine, tmp_path / "run", "--randomize", "identified") == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert printed.count(f"10.5{SAID}") == 1
    assert "inertia_zz_ratio 10.8 % in place of 13 %" in printed
    (told,) = json.loads((tmp_path / "run" / "summary.json").read_text())["identified_draws"]
    assert told["vehicle"] == "cf2x_L250"
    assert told["rejected_share"] == pytest.approx(0.105, abs=1e-3)
    assert told["narrowed"]["inertia_zz_ratio"] == {"told": pytest.approx(0.13), "drawn": pytest.approx(0.108, abs=1e-3)}
    assert told["said"] in printed


def test_lines_on_draws_are_of_those_that_are_cut(tmp_path: Path) -> None:
    cut, whole = (read_vehicle(record_of(tmp_path, izz)) for izz in (0.13, 0.01))

    def lines(figures: dict[str, Any]) -> list[str]:
        return drawn_lines(SimpleNamespace(figures=figures))  # type: ignore[arg-type]

    drawing = Randomization(posterior=True)
    told = draws_record([cut, whole, cut], drawing)
    assert [entry["rejected_share"] > 0.005 for entry in told["identified_draws"]] == [True, False]
    assert [SAID in line for line in lines(told)] == [True]
    assert lines(draws_record([whole], drawing)) == []
    assert draws_record([cut], Randomization()) == {}
    assert lines({}) == []
