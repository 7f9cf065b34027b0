"""From a place and a course to a policy that flies there by sight, and the evidence: `airworthy train visuomotor`.

training.json     what is learnt, and where it began; written first
data/             the expert's roll-outs, a data set of its own
checkpoints/      while it is not finished
weights.safetensors, contract.json   the policy, an SV-Net of variant sv_grid or sv_lite, also of a training that was stopped
metrics.jsonl     flights, successes, errors and seconds, a line per step
evaluate/         the flights by which it was judged, with a page of their own (`judging`)
report.html       the verdict, what it stands on, and how it was learnt
summary.json      figures; written last: where it lies, all is done
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from airworthy.benchmarks.tracking.condition_change import change_of, drop_unchanged
from airworthy.benchmarks.tracking.conditions import expanded
from airworthy.core.errors import AirworthyError, AssetWarning
from airworthy.core.files import json_text, read_json, sha256
from airworthy.core.jobs.progress import progress
from airworthy.learning.backbone import backbone_weights
from airworthy.learning.folder_training import Rows, TorchFolder, plain_options, scalars_of
from airworthy.learning.machine import Machine, TrainingRunOptions, machine_for
from airworthy.learning.synthesis.config import RATE
from airworthy.learning.timed_training import SUMMARY_FILE, TimedTraining, Trained
from airworthy.learning.training_folder import (
    IDENTITY_FILE,
    REPORT_FILE,
    TrainingCurves,
    TrainingNames,
    refuse_other_training,
    say,
)
from airworthy.learning.visuomotor.config import VisuomotorOptions, VisuomotorProtocol
from airworthy.learning.visuomotor.judging import (
    EVALUATE_FOLDER,
    is_control,
    judge,
    judged_anew,
    judged_places,
    settle_evidence,
    verdict_of,
)
from airworthy.learning.visuomotor.report import write_visuomotor_report
from airworthy.learning.visuomotor.step_times import stage_seconds
from airworthy.learning.visuomotor.training import VisuomotorTraining
from airworthy.pilots.svnet.contract import PolicyContract, read_policy, write_policy
from airworthy.pilots.svnet.pilot import objective_of
from airworthy.scenes import Scene, scene, scene_digest
from airworthy.scenes.vegetation.variety import OTHER_LOOK
from airworthy.sensors.carried import policy_camera_name
from airworthy.tasks.course_fit import check_course
from airworthy.tasks.course_room import course_margins
from airworthy.trajectories import Course, Limits, course
from airworthy.vehicles import Vehicle, named_vehicle
from airworthy.vehicles.trim import hover_trim

__all__ = ["EVALUATE_FOLDER", "train_visuomotor", "verdict_of"]

_ADVICE = "give another --course, or another {} (`airworthy courses validate FILE --scene SCENE` tells of them)"
_NAMES = TrainingNames(
    "a policy",
    "its place, its course or its vehicle was another",
    "it was begun by another version of this program",
    "step",
    SUMMARY_FILE,
    # Its `flights` and `seed` are those of learning.
    {"flights": "judged"},
    "Stopping after what is under way, within seconds; the same command begins this step anew. Ctrl-C once more stops at once.",
)
_DIGESTED = 8
"""Places whose content is looked at, at most, when a training is told from another; of more only those that are files."""
_LOOKED_AT = 200
"""Places in which courses are looked at before anything is learnt, at most; ours: [M] a drawn hall takes 40 ms of a core, and a
course in it 20 to 40, so that three courses in as many halls are half a minute, which is little beside an hour of learning."""

_SAME_OBJECTIVE = 1e-4
"""Of two courses' numbers, in metres, seconds, m/s; ours: far below what an input in float32 beside noise can tell."""

Policy = tuple[PolicyContract, Mapping[str, Any]]


@dataclass(kw_only=True)
class _VisuomotorFolder(TorchFolder[Policy]):
    names = _NAMES

    kind: str = "visuomotor"
    options: VisuomotorOptions
    protocol: VisuomotorProtocol
    begun: float
    """When the job began (`time.perf_counter`) [s]."""
    folder: Path = field(default_factory=Path)

    def data(self, folder: Path) -> dict[str, Any]:
        self.folder = folder
        return _place_digests(self.options, self.protocol)

    def machine(self, before: Mapping[str, Any] | None) -> Machine:
        # Frozen convolutions compute natively; those that learn take half the time in half precision.
        return machine_for(self.run, "auto" if self.options.trains_trunk else "float32", before)

    def begin(self, folder: Path, machine: Machine) -> TimedTraining[Any]:
        conditions = len(expanded(self.protocol.conditions)) * len(self.protocol.family) * len(self.options.course)
        conditions *= len(judged_places(self.options, self.protocol))
        training = VisuomotorTraining(
            self.options,
            folder,
            machine.threads,
            time.perf_counter() - self.begun,
            conditions * self.protocol.flights,
            self.quiet,
            machine.precision,
        )
        return self.timed(training, _line(self.options))

    def settle(self, folder: Path) -> None:
        settle_evidence(folder)

    def steps_left(self, work: TimedTraining[Any]) -> int | None:
        return super().steps_left(work) if self.options.rounds else None

    def write(self, folder: Path, work: TimedTraining[Any]) -> None:
        # Stopped while the expert showed: there is no policy yet.
        if work.training.iteration:
            write_policy(folder, work.training.contract, work.training.weights)

    def read(self, folder: Path) -> Policy:
        return read_policy(folder)

    def learnt(self, work: TimedTraining[Any]) -> Policy:
        return work.training.contract, work.training.weights

    def evidence(self, network: Policy, found: Mapping[str, Any]) -> dict[str, Any]:
        if not found:
            return judge(self.folder, self.options, self.protocol, self.quiet)
        # Judged before, by another protocol: its flights are none of this one's, but stay until the summary tells of these.
        with judged_anew(self.folder, self.protocol):
            return judge(self.folder, self.options, self.protocol, self.quiet)

    def summary(self, work: TimedTraining[Any], network: Policy, machine: Machine) -> dict[str, Any]:
        training: VisuomotorTraining = work.training
        judged = self.evidence(network, {})
        told = {
            "scene": ", ".join(self.options.scene),
            "places": len(self.options.places),
            "judged_places": len(judged_places(self.options, self.protocol)),
            "courses": list(self.options.course),
            "vehicle": self.options.vehicle,
            "seed": self.options.seed,
            "rounds": training.iteration - 1,
            "stopped_by": training.stopped_by,
            "pairs": training.log[-1]["pairs"],
            "env_steps": training.env_steps,
            "steps": training.log,
        }
        seconds = {**stage_seconds(training.log), **judged["seconds"]}
        return self.summarised(work, machine, **told, **{**judged, "seconds": seconds})

    def report(
        self, folder: Path, found: Mapping[str, Any], rows: Rows, network: Policy, work: TimedTraining[Any] | None
    ) -> None:
        write_visuomotor_report(folder, folder / REPORT_FILE, found, rows)

    def curves(self, work: TimedTraining[Any]) -> TrainingCurves:
        return TrainingCurves(work.metrics, scalars_of)


def train_visuomotor(
    out: str | Path,
    options: VisuomotorOptions | None = None,
    protocol: VisuomotorProtocol | None = None,
    *,
    threads: int = 0,
    command: str = "",
    tensorboard: bool = False,
    quiet: bool = True,
    begun: float | None = None,
) -> Trained:
    """Learn to fly a course in a place by sight, or go on where it was stopped, and judge what was learnt.

    Args:
        out: Folder.
        options: What to learn, and how.
        protocol: How it is judged.
        threads: Of the CPU; 0: all it has.
        command: That makes the training again, for page and summary.
        tensorboard: Write event files of TensorBoard, too.
        quiet: Say nothing but what is wrong.
        begun: When the clock of `minutes` began (`time.perf_counter`) [s]; None: now.

    Raises:
        AirworthyError: A course leads into something of the place, the vehicle has no camera or hovers leaning, or the folder
            holds another training or something that is none.
        KeyboardInterrupt: It was asked to stop; the policy as it is, and a checkpoint to go on from, are in the folder.
        ModuleNotFoundError: torch is missing; it comes with the extra `learn`.
    """
    begun = time.perf_counter() if begun is None else begun
    options, protocol = options or VisuomotorOptions(), protocol or VisuomotorProtocol()
    if not isinstance(options, VisuomotorOptions) or not isinstance(protocol, VisuomotorProtocol):
        raise AirworthyError(
            f"A policy that sees was to be learnt by {type(options).__name__} and judged by {type(protocol).__name__}; expected"
            " VisuomotorOptions and VisuomotorProtocol of airworthy.learning.visuomotor."
        )
    _check_together(options, protocol)
    refuse_other_training(out, options, "visuomotor")
    held = Path(out) / IDENTITY_FILE
    _check_places(options, protocol, read_json(held) if held.is_file() else {}, quiet)
    backbone_weights(options.trunk, options.seed)  # what cannot be read is told before a folder is taken
    run = TrainingRunOptions(device="cpu", threads=threads, checkpoint_minutes=0.01, tensorboard=tensorboard)
    made = _VisuomotorFolder(options=options, run=run, command=command, quiet=quiet, protocol=protocol, begun=begun)
    return made.train(out)


def _check_together(options: VisuomotorOptions, protocol: VisuomotorProtocol) -> None:
    flown = named_vehicle(options.vehicle)
    if hover_trim(flown).tilt > 0.0:
        raise AirworthyError(
            f"{options.vehicle!r} hovers leaning, and visuomotor policies are learnt for vehicles that hover level: fly one"
            " whose rotors push along its z axis."
        )
    wanted = expanded(protocol.conditions)
    if all(map(is_control, wanted)):
        raise AirworthyError(
            f"Under {', '.join(item.name for item in wanted)} a policy that sees is meant to fail, so nothing is judged: add"
            " baseline to the conditions."
        )
    for item in wanted:
        if item.course or item.scene:
            raise AirworthyError(
                f"The condition {item.name!r} has a course or a place of its own, in which nothing is learnt here: judge by"
                " conditions of any place, as baseline, drones, payload, wind, lighting, any_place, and evaluate others with"
                " `airworthy evaluate`."
            )
    policy_camera_name(flown)
    for name in options.course:
        _check_strength(course(name), flown)
    _check_told_apart(options.course, flown.gravity)


def _check_strength(item: Course, flown: Vehicle) -> None:
    """Refuse a course that asks more of a rotor than it gives: nobody could show how it is flown."""
    path = item.trajectory()
    # As often as the expert decides: what is shorter than that no pilot follows either.
    found = course_margins(path, Limits(), flown, samples=max(2, round(path.duration * RATE) + 1))
    worst = int(found.rotor_share.argmax())
    if found.rotor_share[worst] > 1.0:
        raise AirworthyError(
            f"The course {item.name!r} asks {100.0 * found.rotor_share[worst]:.0f} % of what a rotor of {flown.name!r} gives,"
            f" at {found.time[worst]:.2f} s and {found.speed[worst]:.1f} m/s: give it more time, or fly a stronger vehicle."
        )


def _check_told_apart(names: Sequence[str], gravity: float) -> None:
    """Refuse courses between which a policy cannot know which one is wanted."""
    told = [(name, objective_of(course(name).trajectory(), gravity)) for name in names]
    for (one, first), (other, second) in combinations(told, 2):
        if np.abs(first - second).max() < _SAME_OBJECTIVE:
            raise AirworthyError(
                f"The courses {one!r} and {other!r} have the same objective (duration, way from start to end, velocities and"
                " attitudes at both), by which a policy is told which of its courses is wanted: train a policy of each, or let"
                " one take another time."
            )


def _check_places(options: VisuomotorOptions, protocol: VisuomotorProtocol, before: Mapping[str, Any], quiet: bool) -> None:
    """Refuse a course through something, and a condition that changes nothing, in any place, before anything is learnt.

    Args:
        options: What is learnt: courses, vehicle, places.
        protocol: How it is judged, and where.
        before: Of `training.json`, where it was begun, and looked at, before; empty: it is new.
        quiet: Say nothing.
    """
    learnt = _looked_at(options.places, "to learn in", quiet) if not before else ()
    same = before.get("protocol") == plain_options(protocol)
    judged = () if same else _looked_at(judged_places(options, protocol), "to be judged in", quiet)
    names = list(dict.fromkeys((*learnt, *judged)))
    wanted, flown = expanded(protocol.conditions), named_vehicle(options.vehicle)
    for place in progress(names, "Looking at courses in places", quiet=quiet or len(names) <= _DIGESTED):
        found = scene(place)
        _check_seen(found, place)
        advice = _ADVICE.format("--scene" if place in options.places else "--judge.scene")
        for name in options.course:
            item = course(name)
            check_course(item.trajectory(), found, [flown], item.name, "refuse", advice)
            if place in judged:
                changes = {one.name: change_of(one, name, place, {place: found}) for one in wanted}
                with warnings.catch_warnings():
                    # Of conditions that are left out of a group each place's evaluation tells.
                    warnings.simplefilter("ignore", AssetWarning)
                    drop_unchanged(protocol.conditions, wanted, changes, name, place, "--judge.conditions")


def _check_seen(found: Scene, place: str) -> None:
    """Refuse a place in which no camera sees anything."""
    if not (found.instances or found.splats or found.actors):
        raise AirworthyError(f"There is nothing to see in {place!r}, and nothing to fly by sight by: put something into it.")


def _looked_at(places: tuple[str, ...], what: str, quiet: bool) -> tuple[str, ...]:
    """Return the places that are looked at: all, or, where there are very many, some that are spread over them evenly."""
    if len(places) <= _LOOKED_AT:
        return places
    say(quiet, f"Of {len(places):,} places {what} courses are looked at in {_LOOKED_AT}, spread over them evenly.")
    return tuple(places[k] for k in np.linspace(0, len(places) - 1, _LOOKED_AT).round().astype(int))


def _place_digests(options: VisuomotorOptions, protocol: VisuomotorProtocol) -> dict[str, Any]:
    """Return what files hold that options only name."""
    names = dict.fromkeys((*options.places, *judged_places(options, protocol)))
    # Drawn places are functions of their names.
    return {
        "scenes": {name: scene_digest(scene(name)) for name in names if len(names) <= _DIGESTED or _is_file(name)},
        "courses": [sha256(json_text(course(name))) for name in options.course],
        "vehicle": sha256(json_text(named_vehicle(options.vehicle))),
    }


def _is_file(name: str) -> bool:
    """Tell whether a place, or the one of which it is another look, lies in a file."""
    return Path(name.removeprefix(f"{OTHER_LOOK}:")).exists()


def _line(options: VisuomotorOptions) -> Callable[[Mapping[str, Any]], str]:
    """Return what says of a row of the log what was flown, with what success, and how much time is left."""

    def line(row: Mapping[str, Any]) -> str:
        left = "" if options.rounds else f", {max(0.0, options.minutes - row['wall_s'] / 60.0):.1f} min left"
        clock = f"{row['wall_s'] / 60.0:.1f} min{left}"
        if row["flights"] is None:
            return f"Imitated {row['pairs']:,} pairs of the expert; {clock}."
        error = row["tracking_error_m"]
        off = "" if error is None else f" {100.0 * error:.0f} cm off,"
        return (
            f"Round {row['iteration'] - 1}: {row['alone']} of {row['flights']} new flights succeeded without help or touch,"
            f"{off} the expert flew {row['helped_percent']:.1f} % of the time; now {row['pairs']:,} pairs; {clock}."
        )

    return line
