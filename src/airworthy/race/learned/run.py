"""From nothing to a folder with a learned race pilot, and the evidence for it: `airworthy train race`.

training.json     what is learnt; written first
checkpoints/      while it is not finished
weights.safetensors, contract.json   the policy, also of a training that was stopped
metrics.jsonl     error or reward, flights lost, steps and time, a line per round and update
report.html       curves, and what its flights came to
summary.json      figures; written last: where it lies, all is done
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from airworthy.core.files import write_text
from airworthy.core.schema import Bound, check_fields
from airworthy.learning.folder_training import FlownFolder, Rows
from airworthy.learning.gradient.report import flat_options
from airworthy.learning.machine import Machine
from airworthy.learning.timed_training import SUMMARY_FILE, TimedTraining, Trained, flown_run, flown_summary
from airworthy.learning.training_folder import REPORT_FILE, TrainingNames, refuse_other_training, say
from airworthy.race.learned.config import RacePolicyOptions
from airworthy.race.learned.contract import RacePolicyContract, read_race_folder, write_race_folder
from airworthy.race.learned.observing import network_outputs
from airworthy.race.learned.training import RacePolicyTraining
from airworthy.reports.page import DASH, card, fixed, page_of
from airworthy.reports.svg import Line, lines

__all__ = ["RacePolicyProtocol", "train_race"]

SCHEMA_VERSION = 1
_NAMES = TrainingNames(
    "a policy",
    "it learnt another race",
    "it was begun by another version of this program",
    "round",
    SUMMARY_FILE,
    # Its `flights` are those of a round.
    {"flights": "judged"},
)
_DECISIONS = 2000
"""Decisions of one flight whose time is taken."""
_PACKAGES = ("numpy", "torch")
_CHECKPOINT_S = 30.0
"""Between two checkpoints [s]: each holds all that was flown lately, some 70 MB."""

Policy = tuple[RacePolicyContract, tuple[Any, ...]]


@dataclass(frozen=True)
class RacePolicyProtocol:
    """How a policy is judged when it is learnt: in flights like those it learnt from, but calm and from the start; what it is
    worth in a race says `airworthy bench race`."""

    flights: Annotated[int, Bound(1, 10_000)] = 64
    """Each on a course of its own draw."""
    seconds: Annotated[float, Bound(0.1, 300.0, "s")] = 20.0
    """How long they may take."""

    def __post_init__(self) -> None:
        check_fields(self, "RacePolicyProtocol.")


@dataclass(kw_only=True)
class _RaceFolder(FlownFolder[Policy]):
    names = _NAMES

    protocol: RacePolicyProtocol

    def data(self, folder: Path) -> dict[str, Any]:
        contract = self.training.contract
        return {"race": contract.race, "course": contract.course, "vehicle": contract.vehicle}

    def write(self, folder: Path, work: TimedTraining[Any]) -> None:
        write_race_folder(folder, *self.learnt(work))

    def read(self, folder: Path) -> Policy:
        return read_race_folder(folder)

    def learnt(self, work: TimedTraining[Any]) -> Policy:
        return self.training.contract, tuple(w.copy() for w in self.training.weights)

    def evidence(self, network: Policy, found: Mapping[str, Any]) -> dict[str, Any]:
        return _evidence(self.training, network, self.protocol, self.quiet)

    def summary(self, work: TimedTraining[Any], network: Policy, machine: Machine) -> dict[str, Any]:
        training = self.training
        about = {
            "kind": "race",
            "trainer": training.trainer,
            "race": network[0].race,
            "rate": network[0].rate,
            "seed": training.options.seed,
            "weights": sum(w.size for w in network[1]),
        }
        judged = self.evidence(network, {})
        return flown_summary(
            work,
            about,
            judged,
            self.protocol,
            split=self.split,
            command=self.command,
            packages=_PACKAGES,
            more={"stages": _stages(work, judged, self.protocol)},
        )

    def report(
        self, folder: Path, found: Mapping[str, Any], rows: Rows, network: Policy, work: TimedTraining[Any] | None
    ) -> None:
        _write_report(folder / REPORT_FILE, found, rows)


def train_race(
    out: str | Path,
    options: RacePolicyOptions | None = None,
    judged: int = 64,
    *,
    command: str = "",
    import_s: float | None = None,
    minutes: float = 0.0,
    tensorboard: bool = False,
    quiet: bool = True,
) -> Trained:
    """Learn to fly the AlphaPilot race of the expert of `race:stored`, and on by reward, or go on where it was stopped.

    Args:
        out: Folder.
        options: How it learns.
        judged: Flights on which it is judged.
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
    options, protocol = options or RacePolicyOptions(), RacePolicyProtocol(flights=judged)
    begun = time.perf_counter()
    refuse_other_training(out, options, "race")
    made = _RaceFolder(
        kind="race",
        options=options,
        run=flown_run(minutes, tensorboard, _CHECKPOINT_S),
        command=command,
        quiet=quiet,
        training=RacePolicyTraining(options),
        begun=begun,
        split={"import_s": import_s},
        protocol=protocol,
    )
    return made.train(out)


def _evidence(training: RacePolicyTraining, network: Policy, protocol: RacePolicyProtocol, quiet: bool) -> dict[str, Any]:
    """Return what of `summary.json` its flights say, and in how many seconds they were flown."""
    begun, cpu = time.perf_counter(), time.process_time()
    say(quiet, f"Judging it on {protocol.flights:,} flights.")
    found = _flown(training, network[1], protocol)
    return {
        **found,
        "decision_us": _decision_us(network),
        "seconds": {"evaluate_s": time.perf_counter() - begun, "evaluate_cpu_s": time.process_time() - cpu},
    }


def _stages(work: TimedTraining[Any], learnt: Mapping[str, Any], protocol: RacePolicyProtocol) -> list[dict[str, Any]]:
    """Return what flights say of the policy behind each stage, and what the stage took; one row where there is one."""
    training, rounds = work.training, work.training.options.rounds
    figures = {name: learnt[name] for name in _FLOWN}
    # The row behind the last round: the log has one for each of so few, or else the last before.
    split = max((row["cpu_s"] for row in work.metrics if row["iteration"] <= rounds), default=0.0)
    if training.trainer == "imitation":
        return [{"stage": "imitation", "iterations": rounds, "cpu_s": work.cpu_s, **figures}]
    before = _flown(training, training.imitated, protocol)
    return [
        {"stage": "imitation", "iterations": rounds, "cpu_s": split, **before},
        {"stage": training.trainer, "iterations": training.options.updates, "cpu_s": work.cpu_s - split, **figures},
    ]


_FLOWN = ("finished_flights", "finished_percent", "mean_time_s", "gates_passed", "gates_hit")


def _flown(training: RacePolicyTraining, weights: Sequence[Any], protocol: RacePolicyProtocol) -> dict[str, Any]:
    flown = training.judged(weights, protocol.flights, protocol.seconds)
    times = flown.finish[np.isfinite(flown.finish)]
    # Nobody finished: there is no time.
    mean = float(np.mean(times)) if len(times) else None
    share = 100.0 * len(times) / protocol.flights
    return dict(zip(_FLOWN, (len(times), share, mean, flown.crossed, flown.hit), strict=True))


def _decision_us(network: Policy) -> float:
    """Return the processor time of the network on one flight's observation [us], the mean of many."""
    contract, weights = network
    seen = np.zeros((1, contract.observed), np.float32)
    begun = time.process_time()
    for _ in range(_DECISIONS):
        network_outputs(weights, seen)
    return 1e6 * (time.process_time() - begun) / _DECISIONS


def _write_report(path: Path, found: Mapping[str, Any], metrics: Rows) -> Path:
    imitated = [(row["wall_s"], row["cost"]) for row in metrics if row["stage"] == "imitation"]
    gained = [(row["wall_s"], row["gained"]) for row in metrics if row["stage"] != "imitation"]
    gone = [(row["wall_s"], float(row["lost_in_round"])) for row in metrics]
    mean = found["mean_time_s"]
    page = page_of(
        "airworthy.race.learned",
        found=found,
        cards=[
            card(
                "learning took", fixed(found["training_wall_s"], 1), "s", f"{found['training_cpu_s']:.1f} s of processor time"
            ),
            card(
                "flights through", f"{found['finished_flights']} of {found['protocol']['flights']}", "", "calm, from the start"
            ),
            card("mean time", DASH if mean is None else fixed(mean, 2), "s", "of those"),
            card("gates hit", f"{found['gates_hit']} of {found['gates_passed']}", "", "outside the opening less the radius"),
            card("network", fixed(found["decision_us"], 0), "us", f"a decision; {found['weights']:,} numbers"),
        ],
        curves=[
            ("Squared error of outputs", lines("error", "wall time [s]", [Line("error", "flown", imitated)])),
            ("Reward per second of flight [s]", lines("gained", "wall time [s]", [Line("gained", "flown", gained)], False)),
            ("Flights lost in a round", lines("lost", "wall time [s]", [Line("lost", "bad", gone)], False)),
        ],
        stages=[
            (
                stage["stage"],
                f"{stage['iterations']:,}",
                fixed(stage["cpu_s"], 0),
                f"{stage['finished_flights']} of {found['protocol']['flights']}",
                DASH if stage["mean_time_s"] is None else fixed(stage["mean_time_s"], 2),
                f"{stage['gates_hit']} of {stage['gates_passed']}",
            )
            for stage in found["stages"]
        ],
        split=[(name.removesuffix("_s").replace("_", " "), fixed(s, 2)) for name, s in found["seconds"].items()],
        options=flat_options(found["options"]),
    )
    return write_text(path, page)
