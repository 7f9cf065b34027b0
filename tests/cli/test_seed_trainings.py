"""What commands share that train one seed or several: commands of each, what is printed, how a stop ends."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from airworthy.cli.learning.seed_trainings import (
    SeedOptions,
    StopOptions,
    say_trained,
    seed_commands,
    trained_rows,
    until_stopped,
)
from airworthy.core.errors import AirworthyError
from airworthy.learning.timed_training import Trained


@dataclass(frozen=True)
class Config(SeedOptions):
    """Options of a training of nothing."""

    seed: int = 0
    out: Path = Path()

    def command(self) -> str:
        return f"train --seed {self.seed} --seeds {self.seeds} --out {self.out.as_posix()}"


class Checked:
    """What a training checks besides."""

    def __post_init__(self) -> None:
        raise AirworthyError("More was checked.")


@dataclass(frozen=True)
class Mixed(StopOptions, Checked):
    """Options of stopping mixed into those of a training."""


def done(folder: Path, seed: int, finished: bool = True) -> Trained:
    return Trained(folder / f"seed_{seed}", finished, {"kept": seed + 1} if finished else {}, 1000 * (seed + 1))


def test_options_are_checked_with_those_they_are_mixed_into() -> None:
    assert StopOptions(2.0, json=True).told == {"minutes": 2.0, "tensorboard": False, "quiet": True}
    assert StopOptions(tensorboard=True).told == {"minutes": 0.0, "tensorboard": True, "quiet": False}
    assert SeedOptions(seeds=100).seeds == 100
    for wrong in (-1.0, float("nan")):
        with pytest.raises(AirworthyError, match="minutes"):
            StopOptions(wrong)
    for count in (0, 101):
        with pytest.raises(AirworthyError, match="seeds"):
            SeedOptions(seeds=count)
    with pytest.raises(AirworthyError, match=r"^More was checked\.$"):
        Mixed()


def test_each_seed_has_a_command_of_its_own() -> None:
    assert seed_commands(Config(seed=5, seeds=2), Path("out")) == [
        "train --seed 5 --seeds 1 --out out/seed_5",
        "train --seed 6 --seeds 1 --out out/seed_6",
    ]
    assert len(seed_commands(Config(), Path("out"))) == 1


def test_what_was_trained_is_told_when_it_is_done(tmp_path: Path) -> None:
    told = list[list[Trained]]()
    assert until_stopped(tmp_path, lambda: [done(tmp_path, 0)], told.append) == 0
    assert told == [[done(tmp_path, 0)]]


@pytest.fixture
def _ctrl_c() -> Iterator[None]:
    """Have Ctrl-C heard: a shell that runs tests in the background has them ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("_ctrl_c")
@pytest.mark.parametrize(
    ("place", "said"),
    [
        (None, "Stopped before anything was learnt that could be kept; the same command begins anew."),
        ("weights.safetensors", "Stopped: all of it lies in the folder, and the same command goes on from there."),
        ("seed_1/weights.safetensors", "Stopped: all of it lies in the folder, and the same command goes on from there."),
    ],
)
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_stop_says_what_is_kept(
    place: str | None, said: str, number: signal.Signals, code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if place is not None:
        (tmp_path / place).parent.mkdir(exist_ok=True)
        (tmp_path / place).write_text("")

    def train() -> list[Trained]:
        os.kill(os.getpid(), number)
        raise AssertionError("the signal stops it")

    before = signal.getsignal(signal.SIGTERM)
    assert until_stopped(tmp_path, train, lambda _: None, "all of it lies") == code
    assert capsys.readouterr().err == f"{said}\n"
    assert signal.getsignal(signal.SIGTERM) is before


def test_one_seed_is_printed_alone_and_several_below_their_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows: list[dict[str, Any]] = [
        {"folder": str(tmp_path / "seed_0"), "finished": True, "iterations": 1000, "kept": 1},
        {"folder": str(tmp_path / "seed_1"), "finished": False, "iterations": 2000},
    ]
    trained_rows(Config(), tmp_path, [done(tmp_path, 0)])
    assert json.loads(capsys.readouterr().out) == rows[0]
    trained_rows(Config(seeds=2), tmp_path, [done(tmp_path, 0), done(tmp_path, 1, finished=False)])
    assert json.loads(capsys.readouterr().out) == {"folder": str(tmp_path), "seeds": rows}


def test_people_are_told_a_table_and_lines_or_that_it_was_stopped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def lines(item: Trained) -> list[str]:
        return [f"{item.folder.name} a", f"{item.folder.name} b"]

    columns, both = ("seed", "kept"), [done(tmp_path, 0), done(tmp_path, 1)]
    say_trained("Seeds", columns, [(0, 1), (1, 2)], both, lines)
    said = capsys.readouterr().out.splitlines()
    assert [line.split() for line in said[:4]] == [["Seeds"], ["seed", "kept"], ["0", "1"], ["1", "2"]]
    assert said[4:] == ["seed_0 a", "seed_0 b", "seed_1 a", "seed_1 b"]
    say_trained("Seeds", columns, [], [done(tmp_path, 1, finished=False)], lines)
    stopped = "Stopped after the minutes it was given, at iteration 2,000; the same command goes on from there.\n"
    assert capsys.readouterr().out == stopped
    say_trained("Seeds", columns, [(0, 1)], [both[0], done(tmp_path, 1, finished=False)], lines)
    assert capsys.readouterr().out.splitlines()[0].strip() == "Seeds"
