"""From nothing to a folder with a policy that avoids: `airworthy train avoid`.

training.json     what is learnt, and where it began; written first
checkpoints/      while it is not finished
weights.safetensors, contract.json   the policy, also of a training that was stopped
metrics.jsonl     cost and its parts, levels, speeds and time, a line per gradient step that was written down
report.html       curves, flights through a forest, what became of all
summary.json      figures; written last: where it lies, all is done
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from airworthy.core.errors import AirworthyError
from airworthy.learning.avoid.config import AvoidOptions
from airworthy.learning.avoid.evaluation import AvoidProtocol, fly_forests, judged, policy_guide
from airworthy.learning.avoid.fleet import unseen
from airworthy.learning.avoid.forests import draw_trunks
from airworthy.learning.avoid.report import FILM_FLIGHTS, FilmedForest, write_avoid_report
from airworthy.learning.avoid.trainer import AvoidTraining
from airworthy.learning.folder_training import ONE_THREAD, Rows, TorchFolder
from airworthy.learning.machine import Machine, TrainingRunOptions
from airworthy.learning.seeds import refuse_judged_seed
from airworthy.learning.timed_training import SUMMARY_FILE, TimedTraining, Trained, hardware_found
from airworthy.learning.training_folder import REPORT_FILE, TrainingNames, say
from airworthy.pilots.avoid_policy.contract import write_avoid_folder
from airworthy.pilots.avoid_policy.pilot import AvoidPolicy, read_avoid_policy

__all__ = ["train_avoid"]

SCHEMA_VERSION = 1
_NAMES = TrainingNames(
    "a policy", "its data were others", "it was begun by another version of this program", "gradient step", SUMMARY_FILE
)


def _check_together(options: AvoidOptions, protocol: AvoidProtocol) -> None:
    """Refuse what would be learnt where it is judged, or judged beyond what is learnt."""
    refuse_judged_seed([options.seed], protocol.seed, "forests in which policies are judged")
    # The largest top speed of a flight in training is half a metre per second above.
    if max(protocol.speeds) > options.fastest + 0.5:
        raise AirworthyError(
            f"Speeds of {max(protocol.speeds):g} m/s are to be judged, but flights learn up to {options.fastest:g} m/s: raise"
            " fastest, or judge slower ones."
        )


@dataclass(kw_only=True)
class _AvoidFolder(TorchFolder[AvoidPolicy]):
    names = _NAMES

    kind: str = "avoid"
    options: AvoidOptions
    protocol: AvoidProtocol

    def begin(self, folder: Path, machine: Machine) -> TimedTraining[Any]:
        return self.timed(AvoidTraining(self.options, machine.threads), _line(self.options.steps))

    def steps_left(self, work: TimedTraining[Any]) -> int | None:
        return self.options.steps - work.training.iteration

    def write(self, folder: Path, work: TimedTraining[Any]) -> None:
        write_avoid_folder(folder, work.training.contract, work.training.weights)

    def read(self, folder: Path) -> AvoidPolicy:
        return read_avoid_policy(folder)

    def learnt(self, work: TimedTraining[Any]) -> AvoidPolicy:
        return AvoidPolicy(work.training.contract, work.training.weights)

    def evidence(self, network: AvoidPolicy, found: Mapping[str, Any]) -> dict[str, Any]:
        return {**_evidence(network, self.protocol, self.quiet), "hardware": hardware_found()}

    def summary(self, work: TimedTraining[Any], network: AvoidPolicy, machine: Machine) -> dict[str, Any]:
        told = {"seed": self.options.seed, "env_steps": work.training.env_steps}
        return self.summarised(work, machine, **told, **self.evidence(network, {}))

    def report(
        self, folder: Path, found: Mapping[str, Any], rows: Rows, network: AvoidPolicy, work: TimedTraining[Any] | None
    ) -> None:
        write_avoid_report(folder / REPORT_FILE, found, rows, _film(network, self.protocol))


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
        ModuleNotFoundError: torch is missing; it comes with the extra `learn`.
    """
    options, protocol, run = options or AvoidOptions(), protocol or AvoidProtocol(), run or ONE_THREAD
    _check_together(options, protocol)
    made = _AvoidFolder(options=options, run=run, command=command, quiet=quiet, protocol=protocol)
    return made.train(out)


def _evidence(policy: AvoidPolicy, protocol: AvoidProtocol, quiet: bool) -> dict[str, Any]:
    """Return what became of its flights, and in how many seconds they were flown."""
    begun, cpu = time.perf_counter(), time.process_time()
    say(quiet, f"Judging it on {protocol.flights} flights of each speed and density.")
    rows = judged(policy, protocol)
    return {
        "flights": rows,
        "seconds": {"evaluate_s": time.perf_counter() - begun, "evaluate_cpu_s": time.process_time() - cpu},
    }


def _film(policy: AvoidPolicy, protocol: AvoidProtocol) -> FilmedForest:
    """Fly some of the protocol's starts through the first of its forests of the middle density, at the largest speed."""
    few = replace(protocol, flights=min(FILM_FLIGHTS, protocol.flights))
    speed, area = max(protocol.speeds), sorted(protocol.areas)[len(protocol.areas) // 2]
    fleet = "" if policy.contract.fleet is None else unseen(policy.contract.fleet.vehicles)
    flown = fly_forests(policy_guide(policy), few, speed, area, only=0, fleet=fleet)
    return FilmedForest(speed, area, draw_trunks(protocol.seed, 0, area), flown)


def _line(iterations: int) -> Callable[[Mapping[str, Any]], str]:
    """Return what says of a row of the log where the training is."""

    def line(row: Mapping[str, Any]) -> str:
        levels = " ".join(f"{100.0 * level:.0f}" for level in row["level"])
        return (
            f"{row['iteration']:,} of {iterations:,} steps, {1e-6 * row['env_steps']:.2f} M decisions in"
            f" {row['wall_s']:.0f} s, cost {row['cost']:.2f}, densities mastered by speed [%] {levels}"
        )

    return line
