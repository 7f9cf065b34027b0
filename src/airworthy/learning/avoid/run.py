"""From nothing to a folder with a policy that avoids: `airworthy train avoid`.

training.json     what is learnt, and where it began; written first
checkpoints/      while it is not finished
weights.safetensors, contract.json   the policy, also of a training that was stopped
metrics.jsonl     cost and its parts, levels, speeds and time, a line per gradient step that was written down
summary.json      figures; written last: where it lies, all is done
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from airworthy.core.errors import AirworthyError
from airworthy.core.files import json_text, lock_folder, write_json, write_text
from airworthy.core.runs.checkpoints import Checkpoint
from airworthy.learning.avoid.config import AvoidOptions
from airworthy.learning.avoid.evaluation import AvoidProtocol, judged
from airworthy.learning.avoid.trainer import AvoidTraining
from airworthy.learning.machine import TrainingRunOptions, computing, machine_for
from airworthy.learning.training_folder import TrainingFolder, TrainingNames, say
from airworthy.pilots.avoid_policy.contract import read_avoid_folder, write_avoid_folder
from airworthy.pilots.avoid_policy.pilot import AvoidPolicy

__all__ = ["METRICS_FILE", "SUMMARY_FILE", "TrainedAvoid", "train_avoid"]

SUMMARY_FILE, METRICS_FILE = "summary.json", "metrics.jsonl"
SCHEMA_VERSION = 1
_NAMES = TrainingNames(
    "a policy", "its data were others", "it was judged otherwise, or begun by another version", "gradient step", SUMMARY_FILE
)
_METRICS_MOST = 1000
"""Ours: rows of the training log at most."""
_SAID_EVERY_S = 10.0
"""Between two lines for whoever watches."""


@dataclass(frozen=True)
class TrainedAvoid:
    """What a training left."""

    folder: Path
    finished: bool
    figures: Mapping[str, Any]
    """What `summary.json` holds; empty while it is not finished."""
    iteration: int = 0
    """Gradient steps done."""


class _Run:
    """A training with its clock and its log: what a folder saves and goes on from."""

    def __init__(self, training: AvoidTraining, quiet: bool):
        self.training, self._quiet = training, quiet
        self.metrics: list[dict[str, Any]] = []
        self.wall_s = self.cpu_s = 0.0
        self._every = max(1, training.options.iterations // _METRICS_MOST)
        self._said = time.monotonic()

    @property
    def finished(self) -> bool:
        """Whether all is learnt."""
        return self.training.finished

    def steps(self, stopped: Callable[[], bool]) -> Iterator[int]:
        """Learn what is left; yields the number of the step behind each."""
        wall, cpu = time.perf_counter() - self.wall_s, time.process_time() - self.cpu_s
        work = self.training
        while not work.finished and not stopped():
            cost = work.step()
            self.wall_s, self.cpu_s = time.perf_counter() - wall, time.process_time() - cpu
            if work.iteration % self._every == 0 or work.finished:
                row: dict[str, Any] = {"iteration": work.iteration, "env_steps": work.env_steps}
                row |= {"wall_s": round(self.wall_s, 3), "cpu_s": round(self.cpu_s, 3), **work.metrics(cost)}
                self.metrics.append(row)
                self._tell(row)
            yield work.iteration

    def _tell(self, row: Mapping[str, Any]) -> None:
        if time.monotonic() - self._said < _SAID_EVERY_S and not self.finished:
            return
        self._said = time.monotonic()
        levels = " ".join(f"{100.0 * level:.0f}" for level in row["level"])
        say(
            self._quiet,
            f"{row['iteration']:,} of {self.training.options.iterations:,} steps, {1e-6 * row['env_steps']:.2f} M decisions in"
            f" {row['wall_s']:.0f} s, cost {row['cost']:.2f}, densities mastered by speed [%] {levels}",
        )

    def save(self) -> Checkpoint:
        """Everything that the next step depends on, with clock and log."""
        inner = self.training.save()
        return Checkpoint(
            inner.number,
            inner.arrays,
            {**inner.notes, "metrics": self.metrics, "wall_s": self.wall_s, "cpu_s": self.cpu_s},
        )

    def restore(self, checkpoint: Checkpoint) -> None:
        """Go on from what `save` gave."""
        self.training.restore(checkpoint)
        self.metrics = list(checkpoint.notes["metrics"])
        self.wall_s, self.cpu_s = float(checkpoint.notes["wall_s"]), float(checkpoint.notes["cpu_s"])


def _check_together(options: AvoidOptions, protocol: AvoidProtocol) -> None:
    """Refuse what would be learnt where it is judged, or judged beyond what is learnt."""
    if options.seed == protocol.seed:
        raise AirworthyError(f"The seed {options.seed} is that of the forests in which policies are judged: choose another.")
    # The largest top speed of a flight in training is half a metre per second above.
    if max(protocol.speeds) > options.fastest + 0.5:
        raise AirworthyError(
            f"Speeds of {max(protocol.speeds):g} m/s are to be judged, but flights learn up to {options.fastest:g} m/s: raise"
            " fastest, or judge slower ones."
        )


def train_avoid(
    out: str | Path,
    options: AvoidOptions | None = None,
    protocol: AvoidProtocol | None = None,
    run: TrainingRunOptions | None = None,
    *,
    command: str = "",
    quiet: bool = True,
) -> TrainedAvoid:
    """Learn to fly fast through obstacles, or go on where it was stopped, and judge what was learnt in unseen forests.

    Args:
        out: Folder.
        options: What to learn, and how.
        protocol: How it is judged.
        run: For how long, by how many threads.
        command: That makes the training again, for the summary.
        quiet: Say nothing but what is wrong.

    Raises:
        AirworthyError: The folder holds another training or something that is none.
        KeyboardInterrupt: It was asked to stop; the policy as it is, and a checkpoint to go on from, are in the folder.
        ModuleNotFoundError: torch is missing; it comes with the extra `train`.
    """
    options, protocol, run = options or AvoidOptions(), protocol or AvoidProtocol(), run or _RUN
    _check_together(options, protocol)
    identity = {
        "schema_version": SCHEMA_VERSION,
        "kind": "avoid",
        "options": json.loads(json_text(asdict(options))),
        "data": {},
        "protocol": json.loads(json_text(asdict(protocol))),
    }
    with lock_folder(out) as folder:
        held = TrainingFolder(folder, identity, options, _NAMES, quiet)
        if held.done:
            say(quiet, f"{folder}: this training is finished already.")
            return held.outcome(read_avoid_folder, lambda at, found: TrainedAvoid(at, True, found, found["iterations"]))
        machine = machine_for(run, before=held.machine)
        with computing(machine):
            training = AvoidTraining(options, machine.threads)
            work = _Run(training, quiet)
            if held.begin(work, machine):
                say(quiet, f"{folder}: goes on from gradient step {training.iteration:,}.")

            def saved() -> None:
                # Whoever stops it, or kills it, has a policy that flies.
                write_avoid_folder(folder, training.contract, training.weights)
                write_text(folder / METRICS_FILE, "".join(f"{json.dumps(row)}\n" for row in work.metrics))

            if not held.learn(work, work.steps, options.iterations - training.iteration, run, saved=saved):
                return TrainedAvoid(folder, False, {}, training.iteration)
            saved()
        say(quiet, f"Judging it on {protocol.flights} flights of each speed and density.")
        found = {
            "schema_version": SCHEMA_VERSION,
            "kind": "avoid",
            "seed": options.seed,
            "iterations": training.iteration,
            "env_steps": training.env_steps,
            "training_wall_s": work.wall_s,
            "training_cpu_s": work.cpu_s,
            "machine": asdict(machine),
            "options": identity["options"],
            "protocol": identity["protocol"],
            "flights": judged(AvoidPolicy(training.contract, training.weights), protocol),
            "command": command,
        }
        # Last: where it lies, everything else does.
        write_json(folder / SUMMARY_FILE, found)
        held.clear()
    return TrainedAvoid(folder, True, found, training.iteration)


_RUN = TrainingRunOptions(device="cpu", threads=1, checkpoint_minutes=1.0)
"""One thread: matrices this small are multiplied no faster by several."""
