"""From nothing to a folder with one policy for all quadrotors, and the evidence for it: `airworthy train foundation`.

training.json     what is learnt, and where it began; written first
checkpoints/      while it is not finished
weights.safetensors, contract.json   the policy, also of a training that was stopped
metrics.jsonl     cost, flights lost, steps and time, a line per iteration that was written down
report.html       curves, and every quadrotor of the catalogue
summary.json      figures; written last: where it lies, all is done
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from airworthy.core.errors import AirworthyError
from airworthy.core.jobs.progress import progress
from airworthy.learning.folder_training import FlownFolder, Rows
from airworthy.learning.foundation.config import FoundationConfig
from airworthy.learning.foundation.evaluation import FoundationProtocol, fly_fleet, quadrotors
from airworthy.learning.foundation.report import write_foundation_report
from airworthy.learning.foundation.training import FOUNDATION, FoundationTraining, foundation_contract, write_foundation_policy
from airworthy.learning.gradient.trainer import GradientOptions
from airworthy.learning.machine import Machine
from airworthy.learning.seeds import refuse_judged_seed, train_each, write_seeds
from airworthy.learning.timed_training import SUMMARY_FILE, TimedTraining, Trained, flown_run, flown_summary, used_packages
from airworthy.learning.training_folder import REPORT_FILE, TrainingNames, refuse_other_training, say
from airworthy.pilots.motor_policy.pilot import MotorPolicy, read_motor_policy

__all__ = ["train_foundation", "train_foundation_seeds"]

SCHEMA_VERSION = 1
_NAMES = TrainingNames(
    "a policy",
    "its vehicles were others",
    "it was begun by another version of this program",
    "iteration",
    SUMMARY_FILE,
)
_SHOWN = ("seed", "training_wall_s", "training_cpu_s", "held_percent", "worst_median_error_m", "env_steps")


@dataclass(kw_only=True)
class _FoundationFolder(FlownFolder[MotorPolicy]):
    names = _NAMES

    protocol: FoundationProtocol

    def identity(self, folder: Path) -> dict[str, Any]:
        # What a folder of `train hover` does not have: its options may be the same.
        return {**super().identity(folder), "network": "foundation"}

    def write(self, folder: Path, work: TimedTraining[Any]) -> None:
        write_foundation_policy(folder, self.training)

    def read(self, folder: Path) -> MotorPolicy:
        return read_motor_policy(folder)

    def learnt(self, work: TimedTraining[Any]) -> MotorPolicy:
        return MotorPolicy(foundation_contract(self.training), tuple(self.training.weights))

    def evidence(self, network: MotorPolicy, found: Mapping[str, Any]) -> dict[str, Any]:
        return _evidence(network, self.protocol, self.quiet)

    def summary(self, work: TimedTraining[Any], network: MotorPolicy, machine: Machine) -> dict[str, Any]:
        training = self.training
        about = {
            "kind": "foundation",
            "trainer": training.trainer,
            "rate": training.flown_rate,
            "seed": training.options.seed,
            "weights": sum(w.size for w in training.weights),
        }
        judged, packages = self.evidence(network, {}), used_packages(training.trainer)
        return flown_summary(work, about, judged, self.protocol, split=self.split, command=self.command, packages=packages)

    def report(
        self, folder: Path, found: Mapping[str, Any], rows: Rows, network: MotorPolicy, work: TimedTraining[Any] | None
    ) -> None:
        write_foundation_report(folder / REPORT_FILE, found, rows)


def train_foundation(
    out: str | Path,
    options: GradientOptions | None = None,
    protocol: FoundationProtocol | None = None,
    *,
    command: str = "",
    import_s: float | None = None,
    minutes: float = 0.0,
    tensorboard: bool = False,
    quiet: bool = True,
) -> Trained:
    """Learn to hold a place with any quadrotor, or go on where it was stopped, and fly every one of the catalogue.

    Args:
        out: Folder.
        options: How it learns.
        protocol: How it is judged.
        command: That makes the training again, for the report.
        import_s: How long the program took to load, where that is known [s].
        minutes: Stop after this long, with a checkpoint to go on from; 0: when it is finished.
        tensorboard: Write event files of TensorBoard, too.
        quiet: Say nothing but what is wrong.

    Raises:
        AirworthyError: The folder holds another training or something that is none, or TensorBoard was asked for and is not
            installed.
        KeyboardInterrupt: It was asked to stop; the policy as it is, and a checkpoint to go on from, are in the folder.
    """
    options, protocol = options or FOUNDATION, protocol or FoundationProtocol()
    refuse_judged_seed([options.seed], protocol.seed)
    begun = time.perf_counter()
    # First: drawing a thousand vehicles takes seconds, and a cold compile half a minute.
    refuse_other_training(out, options, "foundation")
    made = _FoundationFolder(
        kind="foundation",
        options=options,
        run=flown_run(minutes, tensorboard),
        command=command,
        quiet=quiet,
        training=FoundationTraining(options),
        begun=begun,
        split={"import_s": import_s},
        protocol=protocol,
    )
    return made.train(out)


def train_foundation_seeds(
    out: str | Path, config: FoundationConfig, count: int, *, commands: Sequence[str] = (), **told: Any
) -> list[Trained]:
    """Train several seeds, one after the other, each in a folder of its own; `summary.json` above has all of them.

    Args:
        out: Folder.
        config: Its seed is the first.
        count: Seeds.
        commands: That make each again.
        told: As of `train_foundation`.

    Returns:
        Those that were finished, and one that was not behind them.

    Raises:
        AirworthyError: There are too many or too few seeds, or one cannot be trained.
    """

    def train(seed: int, folder: Path, command: str) -> Trained:
        return train_foundation(folder, config.options(seed), config.protocol, command=command, **told)

    done = train_each(out, range(config.seed, config.seed + count), train, commands)
    if not done[-1].finished:
        return done
    write_seeds(out, {"kind": "foundation seeds"}, [{name: item.figures[name] for name in _SHOWN} for item in done])
    return done


def _evidence(policy: MotorPolicy, protocol: FoundationProtocol, quiet: bool) -> dict[str, Any]:
    """Return what of `summary.json` its flights say, and in how many seconds they were flown."""
    begun, cpu, fleet = time.perf_counter(), time.process_time(), quadrotors()
    say(quiet, f"Flying {len(fleet)} quadrotors of the catalogue, {protocol.flights:,} flights each.")
    rows = list(progress(fly_fleet(policy, fleet, protocol), "Judging", len(fleet), quiet=quiet))
    seconds = {"evaluate_s": time.perf_counter() - begun, "evaluate_cpu_s": time.process_time() - cpu}
    return {**fleet_figures(rows), "seconds": seconds, "vehicles": rows}


def fleet_figures(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return how many of a fleet are held and fly the tour, and the worst median error [m] (None: a vehicle is not flown).

    Args:
        rows: Of `fly_fleet`.

    Raises:
        AirworthyError: There are none.
    """
    if not rows:
        raise AirworthyError("There is no vehicle to fly: expected one or more.")
    held = sum(row["held"] for row in rows)
    errors = [row.get("median_error_m") for row in rows]
    found: dict[str, Any] = {"quadrotors": len(rows), "held": held, "held_percent": 100.0 * held / len(rows)}
    found["worst_median_error_m"] = None if None in errors else float(np.max(np.array(errors, float)))
    if any("tour_flown" in row for row in rows):
        found["tour_flown"] = sum(row.get("tour_flown", False) for row in rows)
    return found
