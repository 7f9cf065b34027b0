"""What every training in a folder does, whatever it learns: lock, know its folder, begin, learn, judge, write; once for all.

A kind of training is a class that says what it does in its own way: `FlownFolder` of what learns by kernels of ours in seconds
(its times to load and to compile are told apart), `TorchFolder` of what torch learns on a machine that was asked for.
"""

from __future__ import annotations

import json
import os
import time
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

from airworthy import __version__
from airworthy.core.errors import AssetWarning
from airworthy.core.files import json_text, lock_folder, write_json
from airworthy.learning.machine import Machine, TrainingOptions, TrainingRunOptions, computing, machine_for
from airworthy.learning.timed_training import (
    FLOWN_ROWS,
    SUMMARY_FILE,
    TimedTraining,
    Trained,
    TrainingLine,
    Work,
    hardware_found,
    judged_again,
    metric_scalars,
    read_metrics,
    tell_damaged_log,
)
from airworthy.learning.training_folder import REPORT_FILE, TrainingCurves, TrainingFolder, TrainingNames, say

__all__ = [
    "NOT_IN_TORCH",
    "ONE_THREAD",
    "SCHEMA_VERSION",
    "FlownFolder",
    "FolderTraining",
    "Rows",
    "TorchFolder",
    "plain_options",
    "scalars_of",
]

NOT_IN_TORCH = Machine("cpu", 0, "float32", "not used")
"""Without torch bits depend on no threads: gradients are summed in one order."""
ONE_THREAD = TrainingRunOptions(device="cpu", threads=1, checkpoint_minutes=1.0)
"""How torch learns where it is not told: matrices as small as those of policies are multiplied no faster by several."""
SCHEMA_VERSION = 1
"""Of `training.json`, and of the summaries of what torch learns."""
TORCH_ROWS = 1000
"""Ours: rows of the training log of what torch learns, at most."""

Network = TypeVar("Network")
Rows = Sequence[Mapping[str, Any]]


def plain_options(options: Any) -> Any:
    """Return a dataclass as JSON gives it back: lists for tuples."""
    return json.loads(json_text(asdict(options)))


@dataclass(kw_only=True)
class FolderTraining(ABC, Generic[Network]):
    """A training in a folder; what is abstract here is what a kind of training does in its own way."""

    names: ClassVar[TrainingNames]
    """What things are called in messages."""

    kind: str
    """What is learnt, as `training.json` and summaries call it."""
    options: TrainingOptions
    """What to learn, and how."""
    run: TrainingRunOptions
    """For how long, and how often it is saved."""
    command: str
    """That makes the training again, for report and summary."""
    quiet: bool
    """Say nothing but what is wrong."""
    protocol: Any = None
    """How it is judged, a dataclass; None: it is judged in one way alone."""

    def train(self, out: str | Path) -> Trained:
        """Learn, or go on where it was stopped, and judge what was learnt; a finished one is read, and judged again if need be.

        Raises:
            AirworthyError: The folder holds another training or something that is none.
            KeyboardInterrupt: It was asked to stop; what is learnt, and a checkpoint to go on from, are in the folder.
        """
        with lock_folder(out) as folder:
            self.settle(folder)
            identity = self.identity(folder)
            held = TrainingFolder(folder, identity, self.options, self.names, self.quiet)
            if held.done:
                judge = partial(self._judge_again, folder, identity)
                done = held.outcome(self.read, lambda at, found: Trained(at, True, found, found["iterations"], True), judge)
                self.settle(folder)
                self._tell_lost(folder)
                return done
            machine = self.machine(held.machine)
            with self.computing(machine):
                work = self.begin(folder, machine)
                work.keep_in(folder)
                if held.begin(work, machine):
                    say(self.quiet, f"{folder}: goes on from {self.names.steps} {work.training.iteration:,}.")
                self.prepare(work)
                if not self._learn(held, work):
                    return Trained(folder, False, {}, work.training.iteration)
                # Whoever stops it while it is judged finds all that was learnt.
                self._save(folder, work)
                network = self.learnt(work)
                found = self.summary(work, network, machine)
            self.report(folder, found, work.metrics, network, work)
            # Last: where it lies, everything else does.
            write_json(folder / SUMMARY_FILE, found)
            held.clear()
            work.forget()
        return Trained(folder, True, found, work.training.iteration)

    def steps_left(self, work: TimedTraining[Any]) -> int | None:
        """Return how many steps are left, at most; None: nobody knows, since a clock decides."""
        return work.training.options.iterations - work.training.iteration

    def _learn(self, held: TrainingFolder, work: TimedTraining[Any]) -> bool:
        # Whoever stops it, or kills it, has a policy that flies.
        saved = partial(self._save, held.folder, work)
        return held.learn(work, work.steps, self.steps_left(work), self.run, self.follow(work), saved, self.curves(work))

    def _save(self, folder: Path, work: TimedTraining[Any]) -> None:
        self.write(folder, work)
        work.write_metrics(folder)

    def _judge_again(
        self, folder: Path, identity: Mapping[str, Any], network: Network, found: Mapping[str, Any]
    ) -> dict[str, Any]:
        # First: whoever has a damaged log should hear it before all flights are flown.
        rows = read_metrics(folder)
        told = {"protocol": identity["protocol"], "command": self.command}
        again = {**judged_again(found, self.evidence(network, found)), **told}
        self.report(folder, again, rows, network, None)
        return again

    def _tell_lost(self, folder: Path) -> None:
        """Tell what of a finished training is damaged or gone that no figure depends on.

        Policy and figures are whole, or they were refused before: an `AssetWarning` is enough.
        """
        tell_damaged_log(lambda: read_metrics(folder))
        beside = self.beside()
        lost = [name for name in beside if not os.path.lexists(folder / name)]
        if lost:
            told = f"{str(folder)!r} lacks {len(lost)} of what was written beside its policy: {', '.join(lost)}"
            what = "; ".join(beside[name] for name in lost)
            warnings.warn(f"{told}. Figures do not depend on it; {what}.", AssetWarning, stacklevel=2)

    # ---- What a kind of training does in its own way ------------------------------------------------------------------------

    def identity(self, folder: Path) -> dict[str, Any]:
        """Return what its weights depend on, as of `TrainingFolder`; the folder is locked, and no more."""
        judged = {} if self.protocol is None else {"protocol": plain_options(self.protocol)}
        told = {"schema_version": SCHEMA_VERSION, "kind": self.kind, "options": plain_options(self.options)}
        return {**told, "data": self.data(folder), **judged}

    def settle(self, folder: Path) -> None:
        """Put the locked folder in order where a second judgement was broken off, and behind one that ended; mostly nothing."""

    def data(self, folder: Path) -> dict[str, Any]:
        """Return what of the world its weights depend on, that options only name: digests, names; nothing where there is none.

        Args:
            folder: Locked.
        """
        return {}

    @abstractmethod
    def begin(self, folder: Path, machine: Machine) -> TimedTraining[Any]:
        """Make the training, not yet restored."""

    @abstractmethod
    def write(self, folder: Path, work: TimedTraining[Any]) -> object:
        """Write what is learnt so far, such that it can be used."""

    @abstractmethod
    def read(self, folder: Path) -> Network:
        """Read what a finished training learnt, and refuse it where it is damaged."""

    @abstractmethod
    def learnt(self, work: TimedTraining[Any]) -> Network:
        """Return what is learnt, as `read` would."""

    def evidence(self, network: Network, found: Mapping[str, Any]) -> dict[str, Any]:
        """Return what of `summary.json` is judged anew where another protocol is asked for; nothing without a protocol.

        Args:
            network: What was learnt.
            found: What `summary.json` holds.
        """
        return {}

    @abstractmethod
    def summary(self, work: TimedTraining[Any], network: Network, machine: Machine) -> dict[str, Any]:
        """Judge what was learnt.

        Args:
            work: That is finished.
            network: What it learnt.
            machine: Where.

        Returns:
            What `summary.json` holds.
        """

    @abstractmethod
    def report(
        self, folder: Path, found: Mapping[str, Any], rows: Rows, network: Network, work: TimedTraining[Any] | None
    ) -> object:
        """Write the page, and what else is to lie with a finished training.

        Args:
            folder: For the page.
            found: What `summary.json` holds.
            rows: Of the log.
            network: What was learnt.
            work: That learnt it; None: it is judged again.
        """

    def beside(self) -> Mapping[str, str]:
        """Return what `report` leaves beside figures and log: by name in the folder, what it means where it is gone."""
        return {REPORT_FILE: "the page is written again where another protocol is asked for"}

    @abstractmethod
    def machine(self, before: Mapping[str, Any] | None) -> Machine:
        """Return where it computes.

        Args:
            before: The machine on which it began; None: it begins here.
        """

    def computing(self, machine: Machine) -> AbstractContextManager[object]:
        """Set up what it computes with."""
        return nullcontext()

    def prepare(self, work: TimedTraining[Any]) -> None:
        """Do what is still to do ahead of the clock, once it is restored."""

    def follow(self, work: TimedTraining[Any]) -> Callable[[], None]:
        """Return what is called behind each step."""
        return lambda: None

    def curves(self, work: TimedTraining[Any]) -> TrainingCurves | None:
        """Return what event files hold; None: there are none of such a training."""
        return None


@dataclass(kw_only=True)
class FlownFolder(FolderTraining[Network]):
    """A training that learns in seconds, begun before its folder is locked."""

    stages: ClassVar[Sequence[float]] = ()
    """Shares of the training at which weights are kept for a film."""

    training: Any
    """Begun, not restored: a `FlownWork` with `prepare`, and `machine` where torch learns."""
    begun: float | None = None
    """When making it ready began (`time.perf_counter`) [s]; None: `split` has how long it took."""
    split: dict[str, float | None] = field(default_factory=dict)
    """Seconds of what is not learning, by name."""

    def machine(self, before: Mapping[str, Any] | None) -> Machine:
        """Return where it was begun."""
        machine: Machine = getattr(self.training, "machine", NOT_IN_TORCH)
        return machine

    def begin(self, folder: Path, machine: Machine) -> TimedTraining[Any]:
        """Give it clock and log."""
        return TimedTraining(self.training, FLOWN_ROWS, stages=self.stages)

    def prepare(self, work: TimedTraining[Any]) -> None:
        """Compile: a cold compile is paid once per machine, and told apart from learning (specification, section 8)."""
        self.training.prepare()
        if self.begun is not None:
            self.split["compile_s"] = time.perf_counter() - self.begun

    def follow(self, work: TimedTraining[Any]) -> Callable[[], None]:
        """Say now and then how far it is."""
        return TrainingLine(work, self.quiet).stepped

    def curves(self, work: TimedTraining[Any]) -> TrainingCurves:
        """Return the log, with the terms of a reward."""
        return TrainingCurves(work.metrics, metric_scalars)


@dataclass(kw_only=True)
class TorchFolder(FolderTraining[Network]):
    """A training in torch, on the machine that its run asks for."""

    def machine(self, before: Mapping[str, Any] | None) -> Machine:
        """Return where it computes: by as many threads as it began with, if it is not told otherwise."""
        return machine_for(self.run, before=before)

    def computing(self, machine: Machine) -> AbstractContextManager[object]:
        """Set torch up, and leave it as it was found."""
        return computing(machine)

    def timed(self, training: Work, line: Callable[[Mapping[str, Any]], str]) -> TimedTraining[Work]:
        """Give a training clock and log.

        Args:
            training: Begun.
            line: Says of a row of the log where the training is.
        """
        return TimedTraining(training, TORCH_ROWS, None if self.quiet else line)

    def summarised(self, work: TimedTraining[Any], machine: Machine, **told: Any) -> dict[str, Any]:
        """Return what every summary holds, with what is told besides.

        Args:
            work: That is finished.
            machine: Where.
            told: What is learnt, and how it was judged.
        """
        judged = {} if self.protocol is None else {"protocol": plain_options(self.protocol)}
        return {
            "schema_version": SCHEMA_VERSION,
            "kind": self.kind,
            "iterations": work.training.iteration,
            "training_wall_s": work.wall_s,
            "training_cpu_s": work.cpu_s,
            "machine": asdict(machine),
            "hardware": hardware_found(),
            "version": __version__,
            "options": plain_options(self.options),
            **judged,
            "command": self.command,
            **told,
        }


def scalars_of(row: Mapping[str, Any]) -> tuple[int, Mapping[str, float]]:
    """Return step and numbers of a row of the log, for event files."""
    return row["iteration"], {name: value for name, value in row.items() if isinstance(value, int | float)}
