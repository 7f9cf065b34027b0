"""Clock and log of a training that counts: what is logged and kept when, what is said, what goes on after a stop."""

from __future__ import annotations

import json
import math
import os
import platform
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from airworthy import __version__
from airworthy.core.jobs.checkpoints import Checkpoint
from airworthy.core.native_kernel import thread_limit
from airworthy.learning import timed_training as module
from airworthy.learning.timed_training import (
    TimedTraining,
    Trained,
    TrainingLine,
    flown_run,
    flown_summary,
    hardware_found,
    judged_again,
    metric_scalars,
    read_metrics,
    used_packages,
)


@dataclass(frozen=True)
class Options:
    iterations: int = 10
    rate: float = 0.5


@dataclass(frozen=True)
class Protocol:
    flights: int = 4


class Counting:
    """A training that counts, and flies nowhere."""

    def __init__(self, iterations: int = 10):
        self.options, self.iteration = Options(iterations), 0

    @property
    def finished(self) -> bool:
        return self.iteration == self.options.iterations

    def step(self) -> float:
        self.iteration += 1
        return 1.0 / self.iteration

    def metrics(self, cost: float) -> Mapping[str, Any]:
        return {"cost": cost}

    def save(self) -> Checkpoint:
        return Checkpoint(self.iteration, {"at": np.array([self.iteration])}, {"mine": 7})

    def restore(self, checkpoint: Checkpoint) -> None:
        self.iteration = int(checkpoint.arrays["at"][0])


class Flying(Counting):
    """One that makes 100 decisions a step, loses a flight at each, and keeps a replay."""

    def __init__(self, iterations: int = 10):
        super().__init__(iterations)
        self.kept: list[Any] = []

    @property
    def env_steps(self) -> int:
        return 100 * self.iteration

    @property
    def lost(self) -> int:
        return self.iteration

    @property
    def weights(self) -> list[Any]:
        return [np.full((2, 1), self.iteration, np.float32), np.full(1, -self.iteration, np.float32)]

    def keep_in(self, folder: Path) -> None:
        self.kept.append(folder)

    def forget(self) -> None:
        self.kept.append("forgotten")


class Clock:
    """Seconds that pass only when they are told to."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch):
        self.wall, self.cpu = 1000.0, 500.0
        wall, cpu = (lambda: self.wall), (lambda: self.cpu)
        monkeypatch.setattr(module, "time", SimpleNamespace(perf_counter=wall, monotonic=wall, process_time=cpu))

    def pass_by(self, wall: float, cpu: float = 0.0) -> None:
        self.wall, self.cpu = self.wall + wall, self.cpu + cpu


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


# ---- the log -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("iterations", "rows", "logged"),
    [
        (10, 5, [2, 4, 6, 8, 10]),
        (11, 5, [2, 4, 6, 8, 10, 11]),
        (3, 5, [1, 2, 3]),
        (10, 3, [3, 6, 9, 10]),
        (6, 6, [1, 2, 3, 4, 5, 6]),
    ],
)
def test_rows_of_the_log_are_bounded_and_end_with_the_last_step(iterations: int, rows: int, logged: list[int]) -> None:
    run = TimedTraining(Counting(iterations), rows)
    assert list(run.steps()) == list(range(1, iterations + 1))
    assert [row["iteration"] for row in run.metrics] == logged
    assert [row["cost"] for row in run.metrics] == [1.0 / at for at in logged]
    assert run.finished


def test_a_row_has_steps_then_clocks_then_the_trainings_own(clock: Clock) -> None:
    run = TimedTraining(Flying(2), 10)
    steps = run.steps()
    assert (run.wall_s, run.cpu_s) == (0.0, 0.0)
    for passed in (0.25, 1.00000049):
        next(steps)
        clock.pass_by(passed, 2.0 * passed)  # with the caller, between two steps: it counts
    with pytest.raises(StopIteration):
        next(steps)
    assert [list(row) for row in run.metrics] == [["iteration", "env_steps", "wall_s", "cpu_s", "cost"]] * 2
    assert [tuple(row.values())[:4] for row in run.metrics] == [(1, 100, 0.0, 0.0), (2, 200, 0.25, 0.5)]


def test_clocks_are_logged_to_a_microsecond(clock: Clock) -> None:
    run = TimedTraining(Counting(2), 10)
    for _ in run.steps():
        clock.pass_by(0.12345678, 0.98765432)
    assert (run.metrics[1]["wall_s"], run.metrics[1]["cpu_s"]) == (0.123457, 0.987654)
    assert [run.wall_s, run.cpu_s] == pytest.approx([0.12345678, 0.98765432], abs=1e-12)
    assert "env_steps" not in run.metrics[0]


def test_it_ends_before_the_next_step_when_it_is_stopped() -> None:
    run = TimedTraining(Counting(10), 10)
    assert list(run.steps(lambda: run.training.iteration >= 3)) == [1, 2, 3]
    assert not run.finished
    assert list(run.steps()) == list(range(4, 11))


@pytest.mark.parametrize("stages", [(), (0.0, 0.25, 1.0)])
def test_what_is_saved_goes_on_with_clock_log_and_stages(stages: tuple[float, ...], clock: Clock) -> None:
    run = TimedTraining(Flying(10), 10, stages=stages)
    for at in run.steps():
        clock.pass_by(2.0, 1.0)
        if at == 4:
            break
    saved = run.save()
    assert saved.number == 4
    assert saved.notes["mine"] == 7
    assert ("earlier" in saved.notes, len(saved.arrays)) == ((True, 5) if stages else (False, 1))
    clock.pass_by(1e6, 1e6)  # nobody learns meanwhile
    notes = json.loads(json.dumps(saved.notes))
    again = TimedTraining(Flying(10), 10, stages=stages)
    again.restore(Checkpoint(saved.number, saved.arrays, notes))
    assert (again.wall_s, again.cpu_s) == (6.0, 3.0)
    assert again.metrics == run.metrics
    for _ in again.steps():
        clock.pass_by(2.0, 1.0)
    assert again.metrics[4]["wall_s"] == 6.0
    assert (again.wall_s, again.cpu_s) == (16.0, 8.0)
    assert [row["iteration"] for row in again.metrics] == list(range(1, 11))
    if not stages:
        assert again.earlier == {}
        return
    # A quarter of ten steps is the third; whoever has made all of them is not earlier.
    assert list(again.earlier) == [0, 3]
    assert [wall_s for wall_s, _ in again.earlier.values()] == [0.0, 4.0]
    assert [w.ravel().tolist() for w in again.earlier[3][1]] == [[3.0, 3.0], [-3.0]]


def test_weights_of_a_stage_are_copies() -> None:
    held = [np.zeros(2, np.float32)]
    run = TimedTraining(_Held(held), 4, stages=(0.0,))
    for _ in run.steps():
        held[0] += 1.0
    assert run.earlier[0][1][0].tolist() == [0.0, 0.0]


class _Held(Flying):
    """A training whose weights are changed in place."""

    def __init__(self, held: list[Any]):
        super().__init__(4)
        self._held = held

    @property
    def weights(self) -> list[Any]:
        return self._held


def test_only_a_training_with_a_replay_is_asked_to_keep_and_forget_it(tmp_path: Path) -> None:
    work = Flying()
    for run in (TimedTraining(work, 10), TimedTraining(Counting(), 10)):
        run.keep_in(tmp_path)
        run.forget()
    assert work.kept == [tmp_path, "forgotten"]


def test_the_log_is_written_a_line_per_row_and_read_back(tmp_path: Path) -> None:
    run = TimedTraining(Counting(2), 10)
    run.metrics = [{"iteration": 1, "cost": np.float32(0.5)}, {"iteration": 2, "cost": math.inf}]
    for _ in range(2):
        run.write_metrics(tmp_path)
    assert len((tmp_path / "metrics.jsonl").read_text().splitlines()) == 2
    assert read_metrics(tmp_path) == [{"iteration": 1, "cost": 0.5}, {"iteration": 2, "cost": None}]


# ---- what is said ------------------------------------------------------------------------------------------------------------


def test_rows_are_told_now_and_then_and_at_the_end(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    run = TimedTraining(Counting(10), 10, lambda row: f"at {row['iteration']}", said_every_s=10.0)
    for at in run.steps():
        clock.pass_by(10.0 if at == 3 else 1.0)
    # Behind step 4 thirteen seconds have passed; ten more have not before the last.
    assert capsys.readouterr().err.splitlines() == ["at 4", "at 10"]
    quiet = TimedTraining(Counting(3), 10)
    assert list(quiet.steps()) == [1, 2, 3]
    assert capsys.readouterr().err == ""


def test_the_time_between_two_lines_is_enough_when_it_is_reached(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    run = TimedTraining(Counting(5), 10, lambda row: f"at {row['iteration']}", said_every_s=2.0)
    for _ in run.steps():
        clock.pass_by(1.0)
    assert capsys.readouterr().err.splitlines() == ["at 3", "at 5"]


@pytest.mark.parametrize(
    ("row", "said"), [({"reward": 1.5, "cost": 9.0}, ", reward 1.500"), ({"cost": 0.25}, ", cost 0.250"), ({}, "")]
)
def test_a_line_of_a_flown_training_has_speed_cost_and_losses(
    row: dict[str, float], said: str, clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    work = Flying(40_000)
    run = TimedTraining(work, 10)
    work.iteration = 10_000
    line = TrainingLine(run, quiet=False)
    run.metrics = [{"cost": -1.0}, {"cost": -2.0}, row] if row else []
    clock.pass_by(0.9)
    work.iteration = 20_000
    line.stepped()
    assert capsys.readouterr().err == ""
    clock.pass_by(0.1)
    line.stepped()
    clock.pass_by(2.0)
    work.iteration = 35_000
    line.stepped()
    assert capsys.readouterr().err.splitlines() == [
        f"20,000 of 40,000 iterations, 1.00 M steps/s{said}, 20,000 flights lost",
        f"35,000 of 40,000 iterations, 0.75 M steps/s{said}, 35,000 flights lost",
    ]


def test_the_last_line_is_said_at_once_and_nothing_where_it_is_quiet(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    work = Flying(3)
    lines = [TrainingLine(TimedTraining(work, 10), quiet) for quiet in (False, True)]
    for line in lines:
        work.iteration = 3
        line.stepped()
    # No time has passed: a billionth of a second stands for it.
    assert capsys.readouterr().err == "3 of 3 iterations, 300000.00 M steps/s, 3 flights lost\n"


# ---- what it leaves ----------------------------------------------------------------------------------------------------------


def test_where_the_page_of_a_training_lies(tmp_path: Path) -> None:
    assert Trained(tmp_path, True, {}).report == tmp_path / "report.html"
    assert Trained(tmp_path, False, {}).iteration == 0


def test_figures_judged_again_keep_what_learning_took() -> None:
    found = {"reward": 1.0, "training_wall_s": 3.0, "seconds": {"train_s": 3.0, "evaluate_s": 1.0}}
    again = judged_again(found, {"reward": 2.0, "seconds": {"evaluate_s": 4.0}})
    assert again == {
        "reward": 2.0,
        "training_wall_s": 3.0,
        "seconds": {"train_s": 3.0, "evaluate_s": 4.0},
        "judged_by": __version__,
    }
    assert judged_again({"kept": 1}, {"kept": 2}) == {"kept": 2, "judged_by": __version__}


def test_how_a_training_of_seconds_is_run() -> None:
    run = flown_run(2.5, True)
    assert (run.device, run.minutes, run.tensorboard) == ("cpu", 2.5, True)
    assert 60.0 * run.checkpoint_minutes == pytest.approx(1.0)
    assert 60.0 * flown_run(0.0, False, 30.0).checkpoint_minutes == pytest.approx(30.0)
    assert flown_run(0.0, False, 0.0).checkpoint_minutes == 0.0


def test_curves_have_the_numbers_of_a_row_with_the_terms_of_its_reward() -> None:
    row = {"iteration": 3, "env_steps": 300, "cost": 0.5, "name": "x", "terms": {"way": 1.0, "turn": None}}
    assert metric_scalars(row) == (300, {"iteration": 3, "env_steps": 300, "cost": 0.5, "terms/way": 1.0})
    assert metric_scalars({"env_steps": 1}) == (1, {"env_steps": 1})


def test_versions_that_figures_depend_on() -> None:
    assert used_packages("ppo") == ("numpy", "warp-lang", "torch")
    assert used_packages("gradient") == ("numpy", "warp-lang")


def test_a_summary_has_everything_in_one_order(clock: Clock) -> None:
    run = TimedTraining(Flying(2), 10)
    for _ in run.steps():
        clock.pass_by(4.0, 3.0)
    about, judged = {"task": "t"}, {"kept": 4, "seconds": {"evaluate_s": 1.0}}
    split, how = {"import_s": 0.5}, {"command": "airworthy train", "packages": ("numpy",)}
    found = flown_summary(run, about, judged, Protocol(), split=split, more={"extra": 1}, **how)  # type: ignore[arg-type]
    hardware = found.pop("hardware")
    assert list(hardware) == ["cpu", "threads", "load_average", "system", "python"]
    expected = {
        "schema_version": 1,
        "task": "t",
        "training_wall_s": 4.0,
        "training_cpu_s": 3.0,
        "kept": 4,
        "seconds": {"import_s": 0.5, "train_s": 4.0, "evaluate_s": 1.0},
        "env_steps": 200,
        "iterations": 2,
        "env_steps_per_s": 50.0,
        "flights_lost_in_training": 2,
        "extra": 1,
        "options": {"iterations": 2, "rate": 0.5},
        "protocol": {"flights": 4},
        "versions": {"airworthy": __version__, "numpy": version("numpy")},
        "command": "airworthy train",
    }
    assert found == expected
    assert list(found) == list(expected)
    shorter = flown_summary(run, about, judged, Protocol(), split=split, **how)  # type: ignore[arg-type]
    assert "extra" not in shorter


def test_a_training_that_took_no_time_has_a_speed_still() -> None:
    run = TimedTraining(Flying(2), 10)
    run.training.iteration = 2
    found = flown_summary(run, {}, {"seconds": {}}, Protocol(), split={}, command="", packages=())
    assert found["env_steps_per_s"] == pytest.approx(200 / 1e-9)


def test_hardware_is_that_of_the_processor_table_or_what_the_system_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "processor", lambda: "")
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")
    monkeypatch.setattr(os, "getloadavg", lambda: (1.5, 2.5, 3.5), raising=False)
    texts: list[str | None] = ["processor\t: 0\nmodel name\t: A: Fast One\nmodel name\t: Another\n"]

    def read(path: Path, **_: Any) -> str:
        assert str(path) == "/proc/cpuinfo"
        if texts[-1] is None:
            raise FileNotFoundError(str(path))
        return texts[-1]

    monkeypatch.setattr(Path, "read_text", read)
    found = hardware_found()
    assert found == {
        "cpu": "A: Fast One",
        "threads": thread_limit(),
        "load_average": 1.5,
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
    }
    monkeypatch.delattr(os, "getloadavg")
    for text in (None, "processor : 0\n"):
        texts.append(text)
        assert (hardware_found()["cpu"], hardware_found()["load_average"]) == ("riscv64", None)
    monkeypatch.setattr(platform, "processor", lambda: "arm")
    assert hardware_found()["cpu"] == "arm"
