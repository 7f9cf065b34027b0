"""From a task to a folder with a policy that flies, and the evidence for it: `airworthy train TASK`.

training.json     what is learnt, and where it began; written first
checkpoints/      while it is not finished
weights.safetensors, contract.json   the policy, also of a training that was stopped
metrics.jsonl     reward by its named terms, flights lost, steps and time, a line per update that was written down
task/             the file of a task of one's own
report.html       curves, named terms, tables
summary.json      figures; written last: where it lies, all is done
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from airworthy.core.errors import AirworthyError
from airworthy.core.files import json_text
from airworthy.learning.environments import LearningTask
from airworthy.learning.folder_training import NOT_IN_TORCH, FlownFolder, Rows
from airworthy.learning.machine import Machine
from airworthy.learning.seeds import refuse_judged_seed, seed_rows, train_each, write_seeds
from airworthy.learning.task_training.evaluation import (
    TaskFlights,
    TaskProtocol,
    compare,
    fly_task,
    known_controllers,
    task_figures,
)
from airworthy.learning.task_training.options import TaskOptions
from airworthy.learning.task_training.own_tasks import OwnTask, made_task
from airworthy.learning.task_training.report import write_task_report
from airworthy.learning.task_training.training import TaskWork
from airworthy.learning.timed_training import SUMMARY_FILE, TimedTraining, Trained, flown_run, flown_summary, used_packages
from airworthy.learning.training_folder import REPORT_FILE, TrainingNames, say
from airworthy.pilots.task_policy.contract import write_task_folder
from airworthy.pilots.task_policy.pilot import TaskPolicy, read_task_policy
from airworthy.simulation import Randomization
from airworthy.simulation.posterior import draws_record
from airworthy.vehicles import Vehicle

__all__ = ["learn_task", "train_task", "train_task_seeds"]

SCHEMA_VERSION = 1
_NAMES = TrainingNames(
    "a policy",
    "its task or vehicle was another",
    "it was begun by another version of this program",
    "iteration",
    SUMMARY_FILE,
)
_CHECKPOINT_S = 1.0
"""Between two checkpoints: as of hover."""
_SHOWN = ("seed", "training_wall_s", "training_cpu_s", "kept_percent", "success_percent", "env_steps")


@dataclass(kw_only=True)
class _TaskFolder(FlownFolder[TaskPolicy]):
    names = _NAMES

    training: TaskWork
    own: OwnTask | None
    protocol: TaskProtocol

    def identity(self, folder: Path) -> dict[str, Any]:
        return {**super().identity(folder), "trainer": self.training.trainer}

    def data(self, folder: Path) -> dict[str, Any]:
        work, contract = self.training, self.training.contract()
        told = {"vehicle": work.vehicle.name, "sha256": contract.digest}
        file = {"file": self.own.digest} if self.own else {}
        return {**told, "task": json.loads(json_text(dict(contract.options))), **file}

    def begin(self, folder: Path, machine: Machine) -> TimedTraining[Any]:
        if self.own is not None:
            self.own.keep(folder)
        return super().begin(folder, machine)

    def write(self, folder: Path, work: TimedTraining[Any]) -> None:
        write_task_folder(folder, self.training.contract(), self.training.weights)

    def read(self, folder: Path) -> TaskPolicy:
        return read_task_policy(folder)

    def learnt(self, work: TimedTraining[Any]) -> TaskPolicy:
        return TaskPolicy(self.training.contract(), tuple(self.training.weights))

    def evidence(self, network: TaskPolicy, found: Mapping[str, Any]) -> dict[str, Any]:
        return _evidence(self.training, network, self.protocol, self.quiet)

    def summary(self, work: TimedTraining[Any], network: TaskPolicy, machine: Machine) -> dict[str, Any]:
        learning, contract = self.training, network.contract
        packages = used_packages(learning.trainer)
        if machine.torch != NOT_IN_TORCH.torch and "torch" not in packages:
            packages = (*packages, "torch")
        about = {
            "kind": f"task {learning.task.name}",
            "task": learning.task.name,
            "task_options": dict(contract.options),
            "level": contract.level,
            "vehicle": learning.vehicle.name,
            "trainer": learning.trainer,
            "rate": contract.rate,
            "flight_s": learning.task.episode_steps / contract.rate,
            "seed": learning.options.seed,
        }
        judged = self.evidence(network, {})
        spread = getattr(learning.options, "randomization", Randomization())  # trainers that draw none have none
        more = draws_record([learning.vehicle], spread)
        told: dict[str, Any] = {"command": self.command, "packages": packages, "more": more}
        return flown_summary(work, about, judged, self.protocol, split=self.split, **told)

    def report(
        self, folder: Path, found: Mapping[str, Any], rows: Rows, network: TaskPolicy, work: TimedTraining[Any] | None
    ) -> None:
        write_task_report(folder / REPORT_FILE, found, rows)


def train_task(
    options: TaskOptions,
    out: str | Path,
    vehicle: Vehicle | str | None = None,
    protocol: TaskProtocol | None = None,
    *,
    command: str = "",
    minutes: float = 0.0,
    tensorboard: bool = False,
    quiet: bool = True,
) -> Trained:
    """Learn a task, or go on where it was stopped, and judge what was learnt.

    Args:
        options: What to learn, and how.
        out: Folder.
        vehicle: That is flown; None: the task's own.
        protocol: How it is judged.
        command: That makes the training again, for the report.
        minutes: Stop after this long, with a checkpoint to go on from; 0: when it is finished.
        tensorboard: Write event files of TensorBoard, too.
        quiet: Say nothing but what is wrong.

    Raises:
        AirworthyError: The task or vehicle cannot be used, or the folder holds another training or something that is none.
        KeyboardInterrupt: It was asked to stop; the policy as it is, and a checkpoint to go on from, are in the folder.
    """
    # First: environments may compile for half a minute.
    refuse_judged_seed([options.seed], (protocol or TaskProtocol()).seed)
    task, own = made_task(options.task, options.options)
    begun = time.perf_counter()
    work = options.begin(vehicle, task)
    compile_s = time.perf_counter() - begun
    told: dict[str, Any] = {"minutes": minutes, "tensorboard": tensorboard, "quiet": quiet}
    return learn_task(work, out, protocol, own=own, command=command, seconds={"compile_s": compile_s}, **told)


def learn_task(
    work: TaskWork,
    out: str | Path,
    protocol: TaskProtocol | None = None,
    *,
    own: OwnTask | None = None,
    command: str = "",
    minutes: float = 0.0,
    tensorboard: bool = False,
    quiet: bool = True,
    seconds: Mapping[str, float] | None = None,
) -> Trained:
    """Do a trainer's work in a folder: the door for every trainer of tasks.

    Args:
        work: Begun, not yet restored.
        out: Folder.
        protocol: How it is judged.
        own: File of the task, where it is one's own.
        command: That makes the training again, for the report.
        minutes: Stop after this long; 0: when it is finished.
        tensorboard: Write event files of TensorBoard, too.
        quiet: Say nothing but what is wrong.
        seconds: Times before this call, for the report.

    Raises:
        AirworthyError: As `train_task`.
        KeyboardInterrupt: It was asked to stop.
    """
    protocol = protocol or TaskProtocol()
    refuse_judged_seed([work.options.seed], protocol.seed)
    made = _TaskFolder(
        kind=f"task {work.task.name}",
        options=work.options,
        run=flown_run(minutes, tensorboard, _CHECKPOINT_S),
        command=command,
        quiet=quiet,
        training=work,
        split=dict(seconds or {}),
        own=own,
        protocol=protocol,
    )
    return made.train(out)


def train_task_seeds(
    options: Sequence[TaskOptions],
    out: str | Path,
    vehicle: Vehicle | str | None = None,
    protocol: TaskProtocol | None = None,
    *,
    commands: Sequence[str] = (),
    **told: Any,
) -> list[Trained]:
    """Train several seeds, one after the other, each in a folder of its own; `summary.json` above has all of them.

    Args:
        options: Of each seed.
        out: Folder.
        vehicle: That is flown; None: the task's own.
        protocol: How they are judged.
        commands: That make each again.
        told: As of `train_task`.

    Returns:
        Those that were finished, and one that was not behind them.

    Raises:
        AirworthyError: There are too many or too few seeds, or one cannot be trained.
    """
    by_seed = {one.seed: one for one in options}
    # All of them now: it would be a pity to hear it when some are learnt.
    refuse_judged_seed(by_seed, (protocol or TaskProtocol()).seed)

    def train(seed: int, folder: Path, command: str) -> Trained:
        return train_task(by_seed[seed], folder, vehicle, protocol, command=command, **told)

    done = train_each(out, [one.seed for one in options], train, commands)
    if not done[-1].finished:
        return done
    names = (*_SHOWN, *(name for name in ("median_error_m", "p95_error_m", "mean_return") if name in done[0].figures))
    rows = seed_rows(done, lambda found: {name: found[name] for name in names})
    kind = {"kind": f"task {done[0].figures['task']} seeds", "vehicle": done[0].figures["vehicle"]}
    write_seeds(out, kind, rows)
    return done


def _evidence(work: TaskWork, policy: TaskPolicy, protocol: TaskProtocol, quiet: bool) -> dict[str, Any]:
    """Return what of `summary.json` its flights say, and in how many seconds they were flown."""
    begun, cpu = time.perf_counter(), time.process_time()
    say(quiet, f"Judging it on {protocol.flights:,} flights, and beside known controllers.")
    contract = policy.contract
    flown = fly_task(work.task, work.vehicle, policy, protocol, protocol.flights, contract.rate)
    quiet_air: dict[str, Any] = {}
    if work.task.noise:
        # White noise costs thrust where rotors fall faster than they rise: what is right with it is beside the target without.
        calm = fly_task(work.task, work.vehicle, policy, protocol, protocol.flights, contract.rate, noise=False)
        quiet_air = {"without_noise": task_figures(calm)}
    beside = [_beside(work, policy, flyer, count, protocol, flown) for flyer, count in known_controllers(work.task, protocol)]
    seconds = {"evaluate_s": time.perf_counter() - begun, "evaluate_cpu_s": time.process_time() - cpu}
    return {**task_figures(flown), **quiet_air, "seconds": seconds, "baselines": beside}


def _beside(
    work: TaskWork, policy: TaskPolicy, flyer: Any, count: int, protocol: TaskProtocol, mine: TaskFlights
) -> dict[str, Any]:
    """Figures of a known controller on the first of the same starts, and how the policy stands to it on just these."""
    task: LearningTask = work.task
    try:
        theirs = fly_task(task, work.vehicle, flyer, protocol, count)
    except AirworthyError as reason:
        return {"name": flyer.name, "reason": str(reason)}
    same: dict[str, Any] = {}
    if count != protocol.flights:  # quantiles of 64 are not held against those of 1,024
        mine = fly_task(task, work.vehicle, policy, protocol, count, policy.contract.rate)
        same = {"learnt": task_figures(mine)}
    return {"name": flyer.name, **task_figures(theirs), **same, **compare(mine, theirs, flyer.name)}
