"""From teachers' folders to a folder with one student, and the evidence for it: `airworthy train distill`.

training.json     what is learnt, and of whom; written first
checkpoints/      while it is not finished
weights.safetensors, contract.json   the student, also of a training that was stopped
metrics.jsonl     error, flights lost, steps and time, a line per round
report.html       curves, and the student beside its teachers
summary.json      figures; written last: where it lies, all is done
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from airworthy.core.files import write_text
from airworthy.core.jobs.progress import progress
from airworthy.learning.distill.config import DistillOptions
from airworthy.learning.distill.lessons import Lesson, lessons_of
from airworthy.learning.distill.training import DistillTraining
from airworthy.learning.folder_training import FlownFolder, Rows
from airworthy.learning.foundation.evaluation import FoundationProtocol, held_figures, traits
from airworthy.learning.foundation.report import fleet_cells
from airworthy.learning.gradient.report import flat_options
from airworthy.learning.machine import Machine
from airworthy.learning.timed_training import SUMMARY_FILE, TimedTraining, Trained, flown_run, flown_summary, used_packages
from airworthy.learning.training_folder import REPORT_FILE, TrainingNames, refuse_other_training, say
from airworthy.pilots.motor_policy.contract import vehicle_digest, write_motor_folder
from airworthy.pilots.motor_policy.pilot import MotorPolicy, read_motor_policy
from airworthy.reports.page import DASH, card, fixed, page_of
from airworthy.reports.svg import Line, lines

__all__ = ["train_distill"]

SCHEMA_VERSION = 1
_NAMES = TrainingNames(
    "a policy",
    "its teachers or their vehicles were others",
    "it was begun by another version of this program",
    "round",
    SUMMARY_FILE,
    # Its `flights` are those of a round.
    {"flights": "judged"},
)
_COLUMNS = ("mass [kg]", "thrust to weight", "kept [%]", "median error [cm]", "95 % error [cm]", "held")


@dataclass(kw_only=True)
class _DistillFolder(FlownFolder[MotorPolicy]):
    names = _NAMES

    lessons: Sequence[Lesson]
    protocol: FoundationProtocol

    def data(self, folder: Path) -> dict[str, Any]:
        return {"teachers": [_told(lesson) for lesson in self.lessons]}

    def write(self, folder: Path, work: TimedTraining[Any]) -> None:
        policy = self.learnt(work)
        write_motor_folder(folder, policy.contract, policy.weights)

    def read(self, folder: Path) -> MotorPolicy:
        return read_motor_policy(folder)

    def learnt(self, work: TimedTraining[Any]) -> MotorPolicy:
        policy: MotorPolicy = self.training.policy()
        return policy

    def evidence(self, network: MotorPolicy, found: Mapping[str, Any]) -> dict[str, Any]:
        return _evidence(network, self.lessons, self.protocol, self.quiet)

    def summary(self, work: TimedTraining[Any], network: MotorPolicy, machine: Machine) -> dict[str, Any]:
        training = self.training
        about = {
            "kind": "distill",
            "trainer": training.trainer,
            "rate": training.contract.rate,
            "seed": training.options.seed,
            "weights": sum(w.size for w in training.weights),
        }
        judged, packages = self.evidence(network, {}), used_packages(training.trainer)
        found = flown_summary(work, about, judged, self.protocol, split=self.split, command=self.command, packages=packages)
        # A round is flights and fits: decisions over its time would say nothing of either.
        del found["env_steps_per_s"]
        return found

    def report(
        self, folder: Path, found: Mapping[str, Any], rows: Rows, network: MotorPolicy, work: TimedTraining[Any] | None
    ) -> None:
        _write_report(folder / REPORT_FILE, found, rows)


def train_distill(
    teachers: Sequence[str | Path],
    out: str | Path,
    options: DistillOptions | None = None,
    flights: int = 1024,
    *,
    command: str = "",
    import_s: float | None = None,
    minutes: float = 0.0,
    tensorboard: bool = False,
    quiet: bool = True,
) -> Trained:
    """Learn of teachers, or go on where it was stopped, and fly student and teachers from the same starts.

    Args:
        teachers: Folders of motor policies, each of a vehicle of the catalogue, or FILE.toml=FOLDER.
        out: Folder.
        options: How it learns.
        flights: Of each vehicle, on which student and teacher are judged.
        command: That makes the training again, for the report.
        import_s: How long the program took to load, where that is known [s].
        minutes: Stop after this long, with a checkpoint to go on from; 0: when it is finished.
        tensorboard: Write event files of TensorBoard, too.
        quiet: Say nothing but what is wrong.

    Raises:
        AirworthyError: A teacher is none or has a vehicle that no quadrotor's policy flies, the folder holds another training
            or something that is none, or TensorBoard was asked for and is not installed.
        KeyboardInterrupt: It was asked to stop; the student as it is, and a checkpoint to go on from, are in the folder.
    """
    options, protocol = options or DistillOptions(), FoundationProtocol(flights=flights, tour_flights=0)
    begun = time.perf_counter()
    refuse_other_training(out, options, "distill")
    lessons = lessons_of(teachers)
    made = _DistillFolder(
        kind="distill",
        options=options,
        run=flown_run(minutes, tensorboard),
        command=command,
        quiet=quiet,
        training=DistillTraining(lessons, options),
        begun=begun,
        split={"import_s": import_s},
        lessons=lessons,
        protocol=protocol,
    )
    return made.train(out)


def _told(lesson: Lesson) -> dict[str, Any]:
    """Return what a lesson is known by: its vehicle, and whose numbers its teacher has."""
    numbers = b"".join(w.tobytes() for w in lesson.teacher.weights)
    return {
        "vehicle": lesson.vehicle.name,
        "sha256": vehicle_digest(lesson.vehicle),
        "teacher": hashlib.sha256(numbers).hexdigest(),
    }


def _evidence(student: MotorPolicy, lessons: Sequence[Lesson], protocol: FoundationProtocol, quiet: bool) -> dict[str, Any]:
    """Return what of `summary.json` its flights say, and in how many seconds they were flown."""
    begun, cpu = time.perf_counter(), time.process_time()
    say(quiet, f"Judging it on {protocol.flights:,} flights of each vehicle, beside its teacher.")
    rows: list[dict[str, Any]] = []
    for lesson in progress(lessons, "Judging", quiet=quiet):
        own = student.fitted(lesson.vehicle)
        row = {"vehicle": lesson.vehicle.name, **traits(lesson.vehicle), **held_figures(own, lesson.vehicle, protocol)}
        rows.append({**row, "teacher": held_figures(lesson.teacher, lesson.vehicle, protocol)})
    held = sum(row["held"] for row in rows)
    errors = [row["median_error_m"] for row in rows]
    return {
        "vehicles": rows,
        "held": held,
        "held_percent": 100.0 * held / len(rows),
        # A vehicle that lost half of its flights has no median error.
        "worst_median_error_m": None if None in errors else max(errors),
        "seconds": {"evaluate_s": time.perf_counter() - begun, "evaluate_cpu_s": time.process_time() - cpu},
    }


def _write_report(path: Path, found: Mapping[str, Any], metrics: Sequence[Mapping[str, Any]]) -> Path:
    wall = [(row["wall_s"], row["cost"]) for row in metrics]
    gone = [(b["wall_s"], float(b["lost"] - a["lost"])) for a, b in pairwise(metrics)]
    rows: list[tuple[str, list[str]]] = []
    for row in found["vehicles"]:
        count = len(_COLUMNS)
        rows.append((f"{row['vehicle']}, student", fleet_cells(row)[:count]))
        rows.append((f"{row['vehicle']}, teacher", [DASH, DASH, *fleet_cells(row["teacher"])[2:count]]))
    worst = found["worst_median_error_m"]
    page = page_of(
        "airworthy.learning.distill",
        found=found,
        cards=[
            card(
                "learning took", fixed(found["training_wall_s"], 1), "s", f"{found['training_cpu_s']:.1f} s of processor time"
            ),
            card("vehicles held", f"{found['held']} of {len(found['vehicles'])}", "", "95 % of flights within bounds"),
            card("worst median error", DASH if worst is None else fixed(100.0 * worst, 1), "cm", "of all vehicles"),
            card("numbers in the student", f"{found['weights']:,}", "", "for every vehicle the same"),
            card("flown in training", f"{found['env_steps'] / 1e6:.2f} M", "steps", f"{found['iterations']} rounds"),
        ],
        curves=[
            ("Squared error of actions", lines("error", "wall time [s]", [Line("error", "flown", wall)])),
            ("Flights lost in a round", lines("lost", "wall time [s]", [Line("lost", "bad", gone)], False)),
        ],
        columns=_COLUMNS,
        rows=rows,
        split=[(name.removesuffix("_s").replace("_", " "), fixed(s, 2)) for name, s in found["seconds"].items()],
        options=flat_options(found["options"]),
    )
    return write_text(path, page)
