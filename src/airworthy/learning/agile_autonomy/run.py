"""From nothing to a folder with a student of the sampling expert: `airworthy train agile_autonomy`.

training.json     what is learnt, and where it began; written first
data/             flights to learn from, a file per batch, while it is not finished
checkpoints/      while it is not finished
weights.safetensors, contract.json   the student, also of a training that was stopped
metrics.jsonl     losses, flights and time, a line per step
report.html       curves, and its flights beside its teacher's and the baselines'
summary.json      figures; written last: where it lies, all is done
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from airworthy.core.errors import AirworthyError
from airworthy.learning.agile_autonomy.config import BASELINES, StudentOptions, StudentProtocol
from airworthy.learning.agile_autonomy.evaluation import judged, method_for
from airworthy.learning.agile_autonomy.report import write_student_report
from airworthy.learning.agile_autonomy.training import StudentTraining
from airworthy.learning.folder_training import ONE_THREAD, Rows, TorchFolder
from airworthy.learning.machine import Machine, TrainingRunOptions
from airworthy.learning.timed_training import SUMMARY_FILE, TimedTraining, Trained, hardware_found
from airworthy.learning.training_folder import REPORT_FILE, TrainingNames, say
from airworthy.planners.agile_autonomy import Student, read_student, write_student_folder

__all__ = ["train_agile_autonomy"]

_NAMES = TrainingNames(
    "a student",
    "its data were others",
    "it was begun by another version of this program",
    "step",
    SUMMARY_FILE,
    # Its `flights`, `scenarios` and `vehicles` are those of learning.
    {"scenarios": "judged_scenarios", "vehicles": "judged_vehicles"},
    "Stopping after what is under way, within seconds; the same command begins this step anew. Ctrl-C once more stops at once.",
)


@dataclass(kw_only=True)
class _StudentFolder(TorchFolder[Student]):
    names = _NAMES

    kind: str = "agile_autonomy"
    options: StudentOptions
    protocol: StudentProtocol

    def begin(self, folder: Path, machine: Machine) -> TimedTraining[Any]:
        return self.timed(StudentTraining(self.options), _line(self.options.iterations))

    def write(self, folder: Path, work: TimedTraining[Any]) -> None:
        write_student_folder(folder, work.training.contract, work.training.weights)

    def read(self, folder: Path) -> Student:
        return read_student(folder)

    def learnt(self, work: TimedTraining[Any]) -> Student:
        return Student(work.training.contract, work.training.weights)

    def evidence(self, network: Student, found: Mapping[str, Any]) -> dict[str, Any]:
        begun, cpu = time.perf_counter(), time.process_time()
        say(self.quiet, "Judging it beside its teacher and baselines.")
        rows = judged(network, self.protocol, self.quiet)
        seconds = {"evaluate_s": time.perf_counter() - begun, "evaluate_cpu_s": time.process_time() - cpu}
        return {"flights": rows, "seconds": seconds, "hardware": hardware_found()}

    def summary(self, work: TimedTraining[Any], network: Student, machine: Machine) -> dict[str, Any]:
        training: StudentTraining = work.training
        told = {"seed": self.options.seed, "instants": training.instants, "flown": training.flown}
        return self.summarised(work, machine, **told, **self.evidence(network, {}))

    def report(
        self, folder: Path, found: Mapping[str, Any], rows: Rows, network: Student, work: TimedTraining[Any] | None
    ) -> None:
        write_student_report(folder / REPORT_FILE, found, rows)


def train_agile_autonomy(
    out: str | Path,
    options: StudentOptions | None = None,
    protocol: StudentProtocol | None = None,
    run: TrainingRunOptions | None = None,
    *,
    command: str = "",
    quiet: bool = True,
) -> Trained:
    """Learn from the sampling expert, or go on where it was stopped, and judge the student beside it.

    Args:
        out: Folder.
        options: What to learn, and how.
        protocol: How it is judged.
        run: For how long, by how many threads.
        command: That makes the training again, for the summary.
        quiet: Say nothing but what is wrong.

    Raises:
        AirworthyError: The folder holds another training or something that is none, or a baseline is no pilot.
        KeyboardInterrupt: It was asked to stop; the student as it is, and a checkpoint to go on from, are in the folder.
        ModuleNotFoundError: torch is missing; it comes with the extra `learn`.
    """
    options, protocol, run = options or StudentOptions(), protocol or StudentProtocol(), run or ONE_THREAD
    if not isinstance(options, StudentOptions) or not isinstance(protocol, StudentProtocol):
        raise AirworthyError(
            f"A student was to be learnt by {type(options).__name__} and judged by {type(protocol).__name__}; expected"
            " StudentOptions and StudentProtocol of airworthy.learning.agile_autonomy."
        )
    _check_baselines(protocol)
    made = _StudentFolder(options=options, run=run, command=command, quiet=quiet, protocol=protocol)
    return made.train(out)


def _check_baselines(protocol: StudentProtocol) -> None:
    """Refuse who cannot fly before an hour is learnt."""
    nobody: Any = None
    for name in protocol.baselines:
        if name not in BASELINES:
            method_for(name, nobody, protocol.speeds[0])


def _line(iterations: int) -> Callable[[Mapping[str, Any]], str]:
    """Return what says of a row of the log where the training is."""

    def line(row: Mapping[str, Any]) -> str:
        done = f"step {row['iteration']:,} of {iterations:,}, {row['wall_s']:.0f} s"
        if row["stage"] == "pose":
            return f"{done}: drew poses, {row['instants']:,} instants kept"
        if row["stage"] == "fly":
            return (
                f"{done}: flew round {row['round'] + 1}, {row['success']} of {row['flights']} arrived, {row['instants']:,} kept"
            )
        held = "" if row["held_out_space"] is None else f", held out {row['held_out_space']:.3f}"
        return f"{done}: error of trajectories {row['space']:.3f}{held}, of scores {row['score']:.3f}"

    return line
