"""A training under way with its clock and its log, and what it leaves: the same for all that write `summary.json`."""

from __future__ import annotations

import json
import math
import os
import platform
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from airworthy import __version__
from airworthy.core.arrays import ArrayF32
from airworthy.core.errors import AssetError, AssetWarning
from airworthy.core.files import LIMIT_BYTES, json_text, parse_json, read_text, write_text
from airworthy.core.jobs.checkpoints import Checkpoint
from airworthy.core.native_kernel import thread_limit
from airworthy.learning.machine import TrainingRunOptions
from airworthy.learning.training_folder import REPORT_FILE, TRAINING_LOG_FILE, say

__all__ = [
    "FLOWN_ROWS",
    "METRICS_FILE",
    "SUMMARY_FILE",
    "FlownWork",
    "StepStopped",
    "TimedTraining",
    "TimedWork",
    "Trained",
    "TrainingLine",
    "Work",
    "flown_run",
    "flown_summary",
    "hardware_found",
    "judged_again",
    "log_rows",
    "metric_scalars",
    "read_metrics",
    "tell_damaged_log",
    "tell_lost_epochs",
    "used_packages",
]

SUMMARY_FILE, METRICS_FILE = "summary.json", "metrics.jsonl"
SUMMARY_VERSION = 1
FLOWN_ROWS = 400
"""Ours: rows of the training log of what learns in seconds, at most; a curve needs no more."""
_SAID_EVERY_S = 1.0
"""Ours: between two lines for whoever watches such a training, and between two of its checkpoints: little is lost."""


@dataclass(frozen=True)
class Trained:
    """What a training left."""

    folder: Path
    finished: bool
    figures: Mapping[str, Any]
    """What `summary.json` holds; empty while it is not finished."""
    iteration: int = 0
    """Gradient steps, updates or rounds done."""
    read_back: bool = False
    """Whether the figures are those of a file that lay there: anything may have happened to it."""

    @property
    def report(self) -> Path:
        """The page, of those that write one."""
        return self.folder / REPORT_FILE


class StepStopped(Exception):
    """A step was broken off, since somebody wants it to stop; the training is as it was before that step."""


class TimedWork(Protocol):
    """What clock and log need of a training; one that flies has `env_steps`, one that keeps a replay `keep_in` and `forget`;
    one whose steps are long asks `stopped` within them whether somebody wants it to stop, and raises `StepStopped`."""

    @property
    def options(self) -> Any:
        """With `iterations`: steps in all."""

    @property
    def iteration(self) -> int:
        """Steps done."""

    @property
    def finished(self) -> bool:
        """Whether all is learnt."""

    def step(self) -> float:
        """Make a step; returns its cost."""

    def metrics(self, cost: float) -> Mapping[str, Any]:
        """Return what is written down of the last step."""

    def save(self) -> Checkpoint:
        """Return everything that the next step depends on."""

    def restore(self, checkpoint: Checkpoint) -> None:
        """Go on from what `save` gave."""


class FlownWork(TimedWork, Protocol):
    """A training whose policy flies while it learns: what lines for whoever watches, and stages of a film, need besides."""

    @property
    def env_steps(self) -> int:
        """Decisions so far, over all flights."""

    @property
    def lost(self) -> int:
        """Flights that ended otherwise than by their time."""

    @property
    def weights(self) -> list[ArrayF32]:
        """Weight and bias of each layer of the policy."""


Work = TypeVar("Work", bound=TimedWork)
Flown = TypeVar("Flown", bound=FlownWork)


class TimedTraining(Generic[Work]):
    """What a folder saves and goes on from.

    Args:
        training: Begun.
        rows: Of the log, at most.
        told: Says of a row what whoever watches is to know; None: nothing is said here.
        said_every_s: Between two of these [s].
        stages: Shares of all steps at which the weights of a `FlownWork` are kept, for a film of its learning.
    """

    def __init__(
        self,
        training: Work,
        rows: int,
        told: Callable[[Mapping[str, Any]], str] | None = None,
        said_every_s: float = 10.0,
        stages: Sequence[float] = (),
    ):
        self.training = training
        self.earlier: dict[int, tuple[float, list[ArrayF32]]] = {}
        """By steps done: seconds learnt, and the weights then; of the stages that it has come to."""
        # A stage's share of few steps is at least one: only the first is untrained.
        self._kept_at = {math.ceil(share * training.options.iterations) for share in stages}
        self.metrics: list[dict[str, Any]] = []
        self.wall_s = self.cpu_s = 0.0
        self._told, self._said_every = told, said_every_s
        self._every = max(1, training.options.iterations // rows)
        self._said = time.monotonic()

    @property
    def finished(self) -> bool:
        """Whether all is learnt."""
        return bool(self.training.finished)

    def steps(self, stopped: Callable[[], bool] = lambda: False) -> Iterator[int]:
        """Learn what is left; yields the number of the step behind each.

        The clock runs from before the first step to behind the last, with whatever the caller does between them.
        """
        # Set back by what earlier runs of this training took: its clock goes on where it stood.
        wall, cpu = time.perf_counter() - self.wall_s, time.process_time() - self.cpu_s
        work: Any = self.training
        if hasattr(work, "stopped"):
            work.stopped = stopped
        while not work.finished and not stopped():
            if work.iteration in self._kept_at:
                self.earlier[work.iteration] = self.wall_s, [w.copy() for w in work.weights]
            try:
                cost = work.step()
            except StepStopped:
                self.wall_s, self.cpu_s = time.perf_counter() - wall, time.process_time() - cpu
                # Saved as it was, but for the clock: time in which nothing was learnt was spent all the same.
                yield work.iteration
                return
            self.wall_s, self.cpu_s = time.perf_counter() - wall, time.process_time() - cpu
            if work.iteration % self._every == 0 or work.finished:
                row: dict[str, Any] = {"iteration": work.iteration}
                if hasattr(work, "env_steps"):
                    row["env_steps"] = work.env_steps
                row |= {"wall_s": round(self.wall_s, 6), "cpu_s": round(self.cpu_s, 6), **work.metrics(cost)}
                self.metrics.append(row)
                self._tell(row)
            yield work.iteration

    def keep_in(self, folder: Path) -> None:
        """Let a training that flies into a replay keep it in the folder, and not in each checkpoint."""
        if hasattr(self.training, "keep_in"):
            self.training.keep_in(folder)

    def forget(self) -> None:
        """Remove what such a training kept."""
        if hasattr(self.training, "forget"):
            self.training.forget()

    def _tell(self, row: Mapping[str, Any]) -> None:
        if self._told is None or (time.monotonic() - self._said < self._said_every and not self.finished):
            return
        self._said = time.monotonic()
        say(False, self._told(row))

    def save(self) -> Checkpoint:
        """Return everything that the next step depends on, with clock and log."""
        inner = self.training.save()
        clock: dict[str, Any] = {"metrics": self.metrics, "wall_s": self.wall_s, "cpu_s": self.cpu_s}
        if not self._kept_at:
            return Checkpoint(inner.number, inner.arrays, {**inner.notes, **clock})
        clock["earlier"] = [[at, wall_s, len(weights)] for at, (wall_s, weights) in self.earlier.items()]
        held = {f"earlier_{at}_{k}": w for at, (_, weights) in self.earlier.items() for k, w in enumerate(weights)}
        return Checkpoint(inner.number, {**inner.arrays, **held}, {**inner.notes, **clock})

    def restore(self, checkpoint: Checkpoint) -> None:
        """Go on from what `save` gave."""
        self.training.restore(checkpoint)
        self.metrics = list(checkpoint.notes["metrics"])
        self.wall_s, self.cpu_s = float(checkpoint.notes["wall_s"]), float(checkpoint.notes["cpu_s"])
        for at, wall_s, count in checkpoint.notes["earlier"] if self._kept_at else ():
            self.earlier[int(at)] = float(wall_s), [checkpoint.arrays[f"earlier_{at}_{k}"] for k in range(count)]

    def write_metrics(self, folder: Path) -> None:
        """Write the log so far, a line per row."""
        write_text(folder / METRICS_FILE, "".join(f"{json.dumps(json.loads(json_text(row)))}\n" for row in self.metrics))


def read_metrics(folder: Path) -> list[dict[str, Any]]:
    """Return the rows of a finished training's log, as `log_rows`; all have the same names.

    None where the log is missing or empty, of which an `AssetWarning` tells: no figure depends on it.
    """
    path = folder / METRICS_FILE
    rows = _rows_or_none(path)
    # Those that most have: a row whose name was damaged is found, also where it is the first.
    names = Counter(frozenset(row) for row in rows).most_common(1)
    for number, row in enumerate(rows, 1):
        if set(row) != names[0][0]:
            raise _no_row(path, number)
    return rows


def tell_damaged_log(read: Callable[[], object]) -> None:
    """Tell of a finished training's log that is damaged, by an `AssetWarning`: policy and figures are whole without it.

    Args:
        read: Reads the log.
    """
    try:
        read()
    except AssetError as error:
        warnings.warn(str(error), AssetWarning, stacklevel=2)


def tell_lost_epochs(folder: Path) -> None:
    """Tell, alike, of the log by epoch of a finished training, whose rows have names of their own.

    Args:
        folder: Of the training.
    """
    tell_damaged_log(lambda: _rows_or_none(folder / TRAINING_LOG_FILE))


def _rows_or_none(path: Path) -> list[dict[str, Any]]:
    rows = log_rows(path) if os.path.lexists(path) else []
    if not rows:
        told = f"{str(path)!r} is missing or empty: the page has no curves of learning; put the file back and judge again."
        warnings.warn(told, AssetWarning, stacklevel=3)
    return rows


def log_rows(path: Path, limit_bytes: int = LIMIT_BYTES) -> list[dict[str, Any]]:
    """Return the rows of a training log, without a last line that is torn, of which an `AssetWarning` tells.

    Args:
        path: Of the log, a JSON object per line.
        limit_bytes: More is refused unread.

    Raises:
        AssetError: There is none, or one of its lines is not a row.
    """
    # At line feeds only: other line ends may stand within a string.
    *whole, rest = read_text(path, limit_bytes).split("\n")
    rows = [_row(line, path, k) for k, line in enumerate(whole, 1)]
    if rest:
        # No line feed: the machine, or a copy, ended within the line.
        try:
            rows.append(_row(rest, path, len(rows) + 1))
        except AssetError:
            told = f"{str(path)!r} ends within line {len(rows) + 1:,}: that row is left out of curves; no figure depends on it."
            warnings.warn(told, AssetWarning, stacklevel=3)
    return rows


def _row(line: str, path: Path, number: int) -> dict[str, Any]:
    try:
        row = parse_json(line, str(path))
    except AssetError as error:
        raise _no_row(path, number) from error
    if not isinstance(row, dict):
        raise _no_row(path, number)
    return row


def _no_row(path: Path, number: int) -> AssetError:
    return AssetError(
        f"Line {number:,} of {str(path)!r} is not a row of its training log: it was damaged. Delete that line, which only"
        " curves have a point of, and the same command goes on."
    )


def judged_again(found: Mapping[str, Any], judged: Mapping[str, Any]) -> dict[str, Any]:
    """Return a training's figures with those of its flights replaced; what learning took stays as it was.

    Args:
        found: What `summary.json` held.
        judged: What was flown anew, "seconds" among it where the figures have them.
    """
    seconds = {"seconds": {**found["seconds"], **judged["seconds"]}} if "seconds" in judged else {}
    # Which version flew them is told where the first one's stands.
    return {**found, **judged, **seconds, "judged_by": __version__}


def flown_run(minutes: float, tensorboard: bool, checkpoint_s: float | None = None) -> TrainingRunOptions:
    """Return how a training of seconds is run.

    Args:
        minutes: Stop after this long [min]; 0: when it is finished.
        tensorboard: Write event files of TensorBoard, too.
        checkpoint_s: Between two checkpoints [s]; None: as between two lines.
    """
    every_s = _SAID_EVERY_S if checkpoint_s is None else checkpoint_s
    return TrainingRunOptions("cpu", checkpoint_minutes=every_s / 60.0, minutes=minutes, tensorboard=tensorboard)


def metric_scalars(row: Mapping[str, Any]) -> tuple[int, Mapping[str, float]]:
    """Return env-steps and curves of a row of the training log; parts of the reward under `terms/NAME`."""
    whole = {**row, **{f"terms/{name}": value for name, value in row.get("terms", {}).items()}}
    return row["env_steps"], {name: value for name, value in whole.items() if isinstance(value, int | float)}


class TrainingLine:
    """Says now and then how far it is, also where standard error is no terminal; there the bar of `progress` is besides."""

    def __init__(self, run: TimedTraining[Flown], quiet: bool):
        self._run, self._quiet = run, quiet
        self._last, self._before = time.monotonic(), run.training.env_steps

    def stepped(self) -> None:
        """Say it, if the last line is a while ago."""
        now, work = time.monotonic(), self._run.training
        if now - self._last < _SAID_EVERY_S and not work.finished:
            return
        speed = (work.env_steps - self._before) / max(now - self._last, 1e-9)
        row = self._run.metrics[-1] if self._run.metrics else {}
        cost = f", reward {row['reward']:.3f}" if "reward" in row else f", cost {row['cost']:.3f}" if row else ""
        far = f"{work.iteration:,} of {work.options.iterations:,} iterations"
        say(self._quiet, f"{far}, {speed / 1e6:.2f} M steps/s{cost}, {work.lost:,} flights lost")
        self._last, self._before = now, work.env_steps


def used_packages(trainer: str) -> tuple[str, ...]:
    """Return whose versions figures depend on."""
    return ("numpy", "warp-lang", "torch") if trainer == "ppo" else ("numpy", "warp-lang")


def flown_summary(
    run: TimedTraining[Flown],
    about: Mapping[str, Any],
    judged: Mapping[str, Any],
    protocol: Any,
    *,
    split: Mapping[str, float | None],
    command: str,
    packages: Sequence[str],
    more: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return what `summary.json` holds of a training that learns in seconds: the same order for all.

    Args:
        run: That is finished.
        about: What is learnt, and by what; first.
        judged: What flights say, "seconds" among it.
        protocol: How it is judged: a dataclass.
        split: Seconds of what is not learning, by name.
        command: That makes the training again.
        packages: Whose versions figures depend on.
        more: What else is told of learning.
    """
    work = run.training
    return {
        "schema_version": SUMMARY_VERSION,
        **about,
        "training_wall_s": run.wall_s,
        "training_cpu_s": run.cpu_s,
        **judged,
        "env_steps": work.env_steps,
        "iterations": work.iteration,
        "env_steps_per_s": work.env_steps / max(run.wall_s, 1e-9),
        "flights_lost_in_training": work.lost,
        **(more or {}),
        "seconds": {**split, "train_s": run.wall_s, **judged["seconds"]},
        "options": asdict(work.options),
        "protocol": asdict(protocol),
        "hardware": hardware_found(),
        "versions": {"airworthy": __version__, **{name: version(name) for name in packages}},
        "command": command,
    }


def hardware_found() -> dict[str, Any]:
    """Return what figures of time depend on: processor, threads, load, system, Python."""
    # Mostly empty on Linux, whose /proc knows it.
    model = platform.processor() or platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="ascii", errors="replace").splitlines()
        model = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), model)
    except OSError:
        pass
    # Windows has none.
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
    return {
        "cpu": model,
        "threads": thread_limit(),
        "load_average": load,
        "system": f"{platform.system()} {platform.release()}",
        "python": sys.version.split()[0],
    }
