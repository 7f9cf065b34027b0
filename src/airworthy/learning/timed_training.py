"""A training under way with its clock and its log, and what it leaves: the same for all that write `summary.json`."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from airworthy import __version__
from airworthy.core.files import json_text, read_text, write_text
from airworthy.core.runs.checkpoints import Checkpoint
from airworthy.learning.training_folder import REPORT_FILE, say

__all__ = ["METRICS_FILE", "SUMMARY_FILE", "TimedTraining", "Trained", "judged_again", "read_metrics"]

SUMMARY_FILE, METRICS_FILE = "summary.json", "metrics.jsonl"


@dataclass(frozen=True)
class Trained:
    """What a training left."""

    folder: Path
    finished: bool
    figures: Mapping[str, Any]
    """What `summary.json` holds; empty while it is not finished."""
    iteration: int = 0
    """Gradient steps, updates or rounds done."""

    @property
    def report(self) -> Path:
        """The page, of those that write one."""
        return self.folder / REPORT_FILE


class TimedTraining:
    """What a folder saves and goes on from.

    Args:
        training: Begun. `iteration`, `finished`, `step`, `metrics`, `save`, `restore`, and `env_steps` where it flies.
        rows: Of the log, at most.
        told: Says of a row what whoever watches is to know; None: nothing is said here.
        said_every_s: Between two of these [s].
    """

    def __init__(
        self, training: Any, rows: int, told: Callable[[Mapping[str, Any]], str] | None = None, said_every_s: float = 10.0
    ):
        self.training = training
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
        work = self.training
        while not work.finished and not stopped():
            self._before_step()
            cost = work.step()
            self.wall_s, self.cpu_s = time.perf_counter() - wall, time.process_time() - cpu
            if work.iteration % self._every == 0 or work.finished:
                row: dict[str, Any] = {"iteration": work.iteration}
                if hasattr(work, "env_steps"):
                    row["env_steps"] = work.env_steps
                row |= {"wall_s": round(self.wall_s, 6), "cpu_s": round(self.cpu_s, 6), **work.metrics(cost)}
                self.metrics.append(row)
                self._tell(row)
            yield work.iteration

    def _before_step(self) -> None:
        """Keep what is wanted of the training as it is before a step: nothing."""

    def _tell(self, row: Mapping[str, Any]) -> None:
        if self._told is None or (time.monotonic() - self._said < self._said_every and not self.finished):
            return
        self._said = time.monotonic()
        say(False, self._told(row))

    def save(self) -> Checkpoint:
        """Everything that the next step depends on, with clock and log."""
        inner = self.training.save()
        clock = {"metrics": self.metrics, "wall_s": self.wall_s, "cpu_s": self.cpu_s}
        return Checkpoint(inner.number, inner.arrays, {**inner.notes, **clock})

    def restore(self, checkpoint: Checkpoint) -> None:
        """Go on from what `save` gave."""
        self.training.restore(checkpoint)
        self.metrics = list(checkpoint.notes["metrics"])
        self.wall_s, self.cpu_s = float(checkpoint.notes["wall_s"]), float(checkpoint.notes["cpu_s"])

    def write_metrics(self, folder: Path) -> None:
        """Write the log so far, a line per row."""
        write_text(folder / METRICS_FILE, "".join(f"{json.dumps(json.loads(json_text(row)))}\n" for row in self.metrics))


def read_metrics(folder: Path) -> list[dict[str, Any]]:
    """Return the rows of a finished training's log."""
    return [json.loads(line) for line in read_text(folder / METRICS_FILE).splitlines()]


def judged_again(found: Mapping[str, Any], judged: Mapping[str, Any]) -> dict[str, Any]:
    """Return a training's figures with those of its flights replaced; what learning took stays as it was.

    Args:
        found: What `summary.json` held.
        judged: What was flown anew, "seconds" among it where the figures have them.
    """
    seconds = {"seconds": {**found["seconds"], **judged["seconds"]}} if "seconds" in judged else {}
    # Which version flew them is told where the first one's stands.
    return {**found, **judged, **seconds, "judged_by": __version__}
