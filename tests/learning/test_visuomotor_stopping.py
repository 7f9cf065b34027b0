"""A training by sight that is stopped within a step: answered at once, ended soon, and gone on with to the same bits."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

from tests.learning.test_visuomotor_training import written_place

import airworthy
from airworthy.core.files import sha256_file, write_json
from airworthy.core.jobs.checkpoints import Checkpoints
from airworthy.learning.folder_training import plain_options
from airworthy.learning.machine import TrainingRunOptions
from airworthy.learning.timed_training import StepStopped, TimedTraining
from airworthy.learning.training_folder import TrainingFolder
from airworthy.learning.visuomotor.augment import augmented
from airworthy.learning.visuomotor.config import Augmentation, VisuomotorOptions
from airworthy.learning.visuomotor.heads import Heads
from airworthy.learning.visuomotor.run import _NAMES
from airworthy.learning.visuomotor.step_times import earlier_seconds, guessed_times
from airworthy.learning.visuomotor.training import VisuomotorTraining


class Slow(VisuomotorTraining):
    """Imitation whose stages take as long as they are told to, and that asks within each whether it is to go on."""

    def __init__(self) -> None:
        self.options, self.iteration, self.log, self.stopped_by = VisuomotorOptions(channels=8, rounds=1), 0, [], ""
        self.heads, self.history, self.whitening, self.pairs = Heads(8, 0), {}, None, None
        self._row, self._earlier, self.stopped = {}, {}, lambda: False
        self.stages = {"data": 3.0, "heads": 1.0}

    def _imitate(self) -> float:
        self.pairs = SimpleNamespace(arrays=dict, __len__=lambda: 0)  # type: ignore[assignment]
        for name, seconds in self.stages.items():
            self._row["seconds"][name], self._row["cpu_seconds"][name] = seconds, 2.0 * seconds
            self._go_on()
        self.pairs = []  # type: ignore[assignment]
        return 0.5


def test_a_step_that_is_broken_off_leaves_nothing_but_the_time_it_took() -> None:
    work = Slow()
    before = {key: value.clone() for key, value in work.heads.state_dict().items()}
    for _ in range(2):
        work.stopped = lambda: True
        with pytest.raises(StepStopped):
            work.step()
        assert (work.iteration, work.log, work.pairs, work.whitening) == (0, [], None, None)
        assert all((value == before[key]).all() for key, value in work.heads.state_dict().items())
    # Another process takes it up.
    again = Slow()
    again.restore(work.save())
    assert again.step() == 0.5
    row = again.log[0]
    assert (earlier_seconds(row), earlier_seconds(row, "data"), earlier_seconds(row, "data", "cpu_seconds")) == (6.0, 6.0, 12.0)
    assert row["seconds"] == {"data": 3.0, "heads": 1.0}
    assert again.save().notes["earlier"] == {}
    # The expert's data of all tries are what it learns from, so that a pair cost as much as all of them took: 9 s for 90.
    told = {**row, "pairs": 90, "seconds": {**row["seconds"], "features": 0.0}}
    assert guessed_times(told, 1, 10.0)[0] == pytest.approx(1.2 * 10.0 * 0.1)


class Signalled(Slow):
    """Somebody presses Ctrl-C while it learns, so many times."""

    def __init__(self, times: int) -> None:
        super().__init__()
        self._times = times

    def _imitate(self) -> float:
        for _ in range(self._times):
            signal.raise_signal(signal.SIGINT)
        return super()._imitate()


def learnt(folder: Path, work: VisuomotorTraining) -> bool:
    identity = {"schema_version": 1, "kind": "visuomotor", "options": plain_options(work.options), "data": {}}
    write_json(folder / "training.json", identity)
    held = TrainingFolder(folder, identity, work.options, _NAMES, True)
    timed = TimedTraining(work, 10)
    return held.learn(timed, timed.steps, None, TrainingRunOptions("cpu", 1))


def test_ctrl_c_within_a_step_is_answered_and_the_clock_is_saved(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(KeyboardInterrupt):
        learnt(tmp_path, Signalled(1))
    assert capsys.readouterr().err == f"{_NAMES.stopping}\n"
    kept = Checkpoints(tmp_path / "checkpoints").newest()
    assert kept is not None
    assert kept.number == 0
    assert kept.notes["earlier"]["seconds"]["data"] == 3.0
    assert kept.notes["wall_s"] > 0.0
    # Once more stops where it is: nothing is written, and nothing is lost that lay there.
    before = {path.name: path.read_bytes() for path in (tmp_path / "checkpoints").iterdir()}
    with pytest.raises(KeyboardInterrupt):
        learnt(tmp_path, Signalled(2))
    assert {path.name: path.read_bytes() for path in (tmp_path / "checkpoints").iterdir()} == before


def test_images_are_given_up_between_blocks() -> None:
    asked: list[int] = []

    def alive() -> None:
        asked.append(1)
        if len(asked) == 2:
            raise StepStopped

    images = np.zeros((600, 8, 8, 3), np.uint8)
    with pytest.raises(StepStopped):
        augmented(images, Augmentation(), (0,), alive)
    assert len(asked) == 2


# ---- The command in a process of its own -------------------------------------------------------------------------------------

PATIENCE = 1800.0
"""How long a step may take before it counts as hanging [s]; on a quiet machine it needs half a minute."""


class Command:
    """`airworthy train visuomotor` of a small place, and lines of its standard error as they come."""

    def __init__(self, folder: Path, out: str):
        place, path = written_place(folder)
        words = ["train", "visuomotor", "--scene", place, "--course", path, "--minutes", "1", "--rounds", "1", "--flights", "2"]
        words += ["--features", "random", "--threads", "1", "--out", out]
        words += ["--judge.flights", "1", "--judge.conditions", "baseline"]
        source = str(Path(airworthy.__file__).parents[1])
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [source, os.environ.get("PYTHONPATH", "")]))}
        program = f"import sys; from airworthy.cli.main import main; sys.exit(main({words!r}))"
        self.process = subprocess.Popen(
            [sys.executable, "-c", program], cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )
        self.said = ""

    def until(self, ready: Any) -> None:
        """Wait until something is so."""
        limit = time.monotonic() + PATIENCE
        while not ready():
            assert self.process.poll() is None, self.said + self.rest()
            assert time.monotonic() < limit
            self.read(0.05)

    def read(self, seconds: float) -> None:
        """Take what is said within so many seconds."""
        assert self.process.stderr is not None
        if select.select([self.process.stderr], [], [], seconds)[0]:
            self.said += os.read(self.process.stderr.fileno(), 65536).decode()

    def rest(self) -> str:
        assert self.process.stderr is not None
        return self.process.stderr.read().decode()

    def stopped(self, number: signal.Signals) -> None:
        """Send a signal, and wait for its answer and the end."""
        self.process.send_signal(number)
        self.process.wait(PATIENCE)
        self.said += self.rest()
        # The answer comes before what is said in the end.
        assert _NAMES.stopping in self.said.partition("\nStopped")[0]


def shards(out: Path) -> int:
    """How many shards of the expert's data are finished."""
    return len(list((out / "data").glob("shard_[0-9]*")))


def rows(out: Path) -> int:
    """How many steps the log has."""
    return len((out / "metrics.jsonl").read_text().splitlines())


@pytest.fixture
def commands() -> Iterator[list[Command]]:
    """Commands to be killed at the end, however the test goes, and their pipes closed."""
    started: list[Command] = []
    yield started
    for command in started:
        command.process.kill()
        command.process.communicate()


def start(commands: list[Command], folder: Path, out: str) -> Command:
    commands.append(Command(folder, out))
    return commands[-1]


@pytest.mark.slow
def test_a_training_that_is_stopped_within_steps_comes_to_the_same_bits(tmp_path: Path, commands: list[Command]) -> None:
    """By Ctrl-C while the expert shows, by a request to terminate while it flies itself, and by two while it learns on."""
    whole = start(commands, tmp_path, "whole")
    assert whole.process.wait(PATIENCE) == 0, whole.rest()
    out = tmp_path / "stopped"
    first = start(commands, tmp_path, "stopped")
    first.until(lambda: shards(out) > 0)
    first.stopped(signal.SIGINT)
    assert first.process.returncode == 130
    # Within the next shard, which takes seconds; there are two.
    assert shards(out) == 1 < shards(tmp_path / "whole")
    assert "finished roll-outs of the expert are kept" in first.said
    assert not (out / "weights.safetensors").exists()
    second = start(commands, tmp_path, "stopped")
    second.until((out / "weights.safetensors").exists)
    time.sleep(1.0)
    second.stopped(signal.SIGTERM)
    assert second.process.returncode == 143
    assert rows(out) == 1
    before = sha256_file(out / "weights.safetensors")
    third = start(commands, tmp_path, "stopped")
    third.until(lambda: "goes on from step 1" in third.said)
    time.sleep(1.0)
    for _ in range(2):
        third.process.send_signal(signal.SIGINT)
        time.sleep(0.3)
    assert third.process.wait(PATIENCE) == 130, third.rest()
    assert (sha256_file(out / "weights.safetensors"), rows(out)) == (before, 1)
    last = start(commands, tmp_path, "stopped")
    assert last.process.wait(PATIENCE) == 0, last.rest()
    assert sha256_file(out / "weights.safetensors") == sha256_file(tmp_path / "whole" / "weights.safetensors")
    summary = json.loads((out / "summary.json").read_text())
    # What was broken off took its time all the same.
    assert sum(earlier_seconds(step) for step in summary["steps"]) > 0.5
