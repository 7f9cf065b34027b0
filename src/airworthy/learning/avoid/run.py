"""From nothing to a folder with a policy that avoids: `airworthy train avoid`.

training.json     what is learnt, and where it began; written first
checkpoints/      while it is not finished
weights.safetensors, contract.json   the policy, also of a training that was stopped
metrics.jsonl     cost and its parts, levels, speeds and time, a line per gradient step that was written down
summary.json      figures; written last: where it lies, all is done
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from airworthy.core.errors import AirworthyError
from airworthy.core.files import json_text, lock_folder, write_json
from airworthy.learning.avoid.config import AvoidOptions
from airworthy.learning.avoid.evaluation import AvoidProtocol, judged
from airworthy.learning.avoid.trainer import AvoidTraining
from airworthy.learning.machine import TrainingRunOptions, computing, machine_for
from airworthy.learning.timed_training import SUMMARY_FILE, TimedTraining, Trained
from airworthy.learning.training_folder import TrainingFolder, TrainingNames, say
from airworthy.pilots.avoid_policy.contract import read_avoid_folder, write_avoid_folder
from airworthy.pilots.avoid_policy.pilot import AvoidPolicy

__all__ = ["train_avoid"]

SCHEMA_VERSION = 1
_NAMES = TrainingNames(
    "a policy", "its data were others", "it was judged otherwise, or begun by another version", "gradient step", SUMMARY_FILE
)
_METRICS_MOST = 1000
"""Ours: rows of the training log at most."""
_SAID_EVERY_S = 10.0
"""Between two lines for whoever watches."""


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
) -> Trained:
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
            return held.outcome(read_avoid_folder, lambda at, found: Trained(at, True, found, found["iterations"]))
        machine = machine_for(run, before=held.machine)
        with computing(machine):
            training = AvoidTraining(options, machine.threads)
            work = TimedTraining(training, _METRICS_MOST, None if quiet else _line(options.iterations), _SAID_EVERY_S)
            if held.begin(work, machine):
                say(quiet, f"{folder}: goes on from gradient step {training.iteration:,}.")

            def saved() -> None:
                # Whoever stops it, or kills it, has a policy that flies.
                write_avoid_folder(folder, training.contract, training.weights)
                work.write_metrics(folder)

            if not held.learn(work, work.steps, options.iterations - training.iteration, run, saved=saved):
                return Trained(folder, False, {}, training.iteration)
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
    return Trained(folder, True, found, training.iteration)


def _line(iterations: int) -> Callable[[Mapping[str, Any]], str]:
    """Return what says of a row of the log where the training is."""

    def line(row: Mapping[str, Any]) -> str:
        levels = " ".join(f"{100.0 * level:.0f}" for level in row["level"])
        return (
            f"{row['iteration']:,} of {iterations:,} steps, {1e-6 * row['env_steps']:.2f} M decisions in"
            f" {row['wall_s']:.0f} s, cost {row['cost']:.2f}, densities mastered by speed [%] {levels}"
        )

    return line


_RUN = TrainingRunOptions(device="cpu", threads=1, checkpoint_minutes=1.0)
"""One thread: matrices this small are multiplied no faster by several."""
