"""The folder of one training: what began there, learning that is stopped and gone on with at any time, what it came to.

training.json     what is learnt, from what, and where it began; written first
checkpoints/      while it is not finished
training.jsonl    the training log, a line per epoch
report.json       figures; written last: where it lies, all is done
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from airworthy.core.errors import AirworthyError, AssetError, telling_broken, telling_refusals
from airworthy.core.files import json_text, path_given, read_json, write_json, write_text
from airworthy.core.jobs.block_job import KINDS, kind_of, refuse_unknown_figures
from airworthy.core.jobs.checkpoints import Checkpoint, Checkpoints
from airworthy.core.jobs.progress import progress, stoppable
from airworthy.learning.held_figures import NOT_WHOLE, learnt_steps, refuse_several, telling_figures
from airworthy.learning.machine import TrainingOptions, TrainingRunOptions
from airworthy.pilots.network_files import CONTRACT_FILE

if TYPE_CHECKING:  # it loads torch
    from airworthy.learning.machine import Machine

__all__ = [
    "CHECKPOINTS",
    "EVENTS",
    "FIGURES_FILE",
    "IDENTITY_FILE",
    "LAST_FILE",
    "REPORT_FILE",
    "TRAINING_LOG_FILE",
    "EventFiles",
    "TrainingCurves",
    "TrainingFolder",
    "TrainingNames",
    "TrainingWork",
    "refuse_other_training",
    "say",
    "write_training_log",
]

IDENTITY_FILE, CHECKPOINTS = "training.json", "checkpoints"
EVENTS = "tensorboard"
"""Folder of event files, where they are asked for."""
TRAINING_LOG_FILE, FIGURES_FILE, REPORT_FILE, LAST_FILE = (
    "training.jsonl",
    "report.json",
    "report.html",
    "weights_last.safetensors",
)

_NAMED = 4
"""Ours: things that differ are named up to here."""

Outcome = TypeVar("Outcome")
Network = TypeVar("Network")
Stopped = Callable[[], bool]


Scalars = Callable[[Mapping[str, Any]], tuple[int, Mapping[str, float]]]


class EventFiles:
    """Rows of a training log as event files of TensorBoard, whatever the trainer.

    What a run that goes on had written already is written again, so that no point is there twice.

    Args:
        folder: For the files.
        scalars: Of a row: its step, and numbers by name.
        rows: So far.

    Raises:
        AirworthyError: TensorBoard, or torch, which has its writer, is not installed or cannot be loaded.
    """

    def __init__(self, folder: Path, scalars: Scalars, rows: Sequence[Mapping[str, Any]] = ()):
        try:
            with telling_broken(["torch", "tensorboard"]):
                from torch.utils.tensorboard import SummaryWriter
        except ImportError as error:
            raise AirworthyError("Curves for TensorBoard need its package: pip install 'airworthy[learn]'.") from error

        for old in folder.glob("events.out.tfevents.*"):
            old.unlink()
        self._writer: Any = SummaryWriter(str(folder))
        self._scalars, self._written = scalars, 0
        self.follow(rows)

    def __enter__(self) -> EventFiles:
        return self

    def __exit__(self, *_: object) -> None:
        self._writer.close()

    def follow(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Write the rows of a log that are not written yet."""
        for row in rows[self._written :]:
            step, numbers = self._scalars(row)
            for name, value in numbers.items():
                self._writer.add_scalar(name, value, step)
        if len(rows) > self._written:
            self._written = len(rows)
            self._writer.flush()


@dataclass(frozen=True)
class TrainingCurves:
    """What of a training becomes event files."""

    rows: Sequence[Mapping[str, Any]]
    """The training log, which grows while it learns."""
    scalars: Scalars
    """Of a row: its step, and numbers by name."""


class TrainingWork(Protocol):
    """A training under way."""

    @property
    def finished(self) -> bool:
        """Whether all is learnt."""

    def save(self) -> Checkpoint:
        """Return everything that the next step depends on."""

    def restore(self, checkpoint: Checkpoint) -> None:
        """Go on from what `save` gave."""


@dataclass(frozen=True)
class TrainingNames:
    """What things are called in messages."""

    result: str
    """What the training makes ("a policy")."""
    other_data: str
    """Said of a training from other data ("its data were others")."""
    other_rest: str
    """Said where all options and the data are the same, and something is not."""
    steps: str
    """What checkpoints count ("epoch")."""
    figures_file: str = FIGURES_FILE
    """Where its figures lie; written last."""
    judged: Mapping[str, str] = field(default_factory=dict)
    """Options by fields of the protocol, where they are called otherwise."""
    stopping: str = ""
    """Said at once to whoever stops it, where a step goes on for a while behind that (`stoppable`); empty: none does."""


@telling_refusals()
def refuse_other_training(folder: str | Path, options: TrainingOptions, kind: str) -> None:
    """Refuse a folder of another training as far as its options tell, before anything is made ready for this one.

    Args:
        folder: That is to hold it.
        options: What is learnt, and how.
        kind: That its identity will name.

    Raises:
        AirworthyError: The folder holds a training of something else, by another trainer, or with other options.
    """
    folder = path_given(folder, "out")
    path, where = folder / IDENTITY_FILE, repr(str(folder))
    if os.path.exists(folder) and not os.path.isdir(folder):
        raise AirworthyError(f"{where} is a file; --out names a folder, which is made where it is missing.")
    before = _read_identity(path) if path.is_file() else None
    if before is None:
        _refuse_other_kinds(folder)
        return
    _refuse_other_kind(where, before, options, {"kind": kind})
    _refuse_changed(where, options.differences(before["options"]))


def _refuse_other_kind(where: str, before: Mapping[str, Any], options: TrainingOptions, asked: Mapping[str, Any]) -> None:
    """Refuse what was learnt of something else, or by another trainer, whose options say nothing about this one's."""
    for name, joined in (("kind", "of"), ("trainer", "by")):
        then, now = before.get(name), asked.get(name)
        if isinstance(then, str) and isinstance(now, str) and then != now:
            was, wanted = (text.removeprefix("task ") for text in (then, now))
            raise AirworthyError(f"{where} holds a training {joined} {was}, not {joined} {wanted}: choose another folder.")
    # Each trainer has options of its own; those that a later version adds are not in an older folder.
    if foreign := sorted(set(before["options"]) - {item.name for item in fields(options)}):
        had = _listed(foreign, ", ")
        raise AirworthyError(
            f"{where} holds the training of another trainer or version (which had {had}): choose another folder, or ask for the"
            " same trainer."
        )


def _refuse_other_kinds(folder: Path) -> None:
    """Refuse a folder in which another kind of work than a training left its results."""
    held = kind_of(folder)
    if held not in ("", KINDS[IDENTITY_FILE], KINDS[CONTRACT_FILE]):
        raise AirworthyError(f"{str(folder)!r} holds {held}, over which nothing is learnt: choose another folder.")
    # Of several seeds the folder above holds a summary, of which another sentence tells.
    if not held and not any(folder.glob("seed_*")):
        refuse_unknown_figures(folder)


def _read_identity(path: Path) -> dict[str, Any]:
    before = read_json(path)
    if not isinstance(before, dict) or not isinstance(before.get("options"), dict):
        raise AirworthyError(f"{str(path)!r} does not describe a training: choose another folder.")
    return before


def _listed(words: Sequence[str], between: str) -> str:
    """Return the first of them; how many others there are is enough to know."""
    more = len(words) - _NAMED
    return between.join(words) if more <= 1 else f"{between.join(words[:_NAMED])}{between}and {more} more"


def _refuse_changed(where: str, changed: list[str]) -> None:
    if changed:
        what = _listed(changed, "; ")
        raise AirworthyError(f"{where} holds another training ({what}): choose another folder, or ask for the same.")


class TrainingFolder:
    """The folder of a training, held by the caller (`lock_folder`).

    Args:
        folder: It.
        identity: What the weights depend on: schema_version, options, data; where it has "network", that is compared first,
            then "kind" and "trainer". Besides, "protocol": how it is judged, which no weight depends on.
        options: Those of the identity.
        named: Words for messages.
        quiet: Say nothing but what is wrong.

    Raises:
        AirworthyError: The folder holds another training, or something that is none.
    """

    def __init__(self, folder: Path, identity: Mapping[str, Any], options: TrainingOptions, named: TrainingNames, quiet: bool):
        self.folder, self._identity, self._named, self._quiet = folder, dict(identity), named, quiet
        self.about: dict[str, Any] = dict(identity)
        """The identity, and since `begin` the machine: what checkpoints and figures tell of the training."""
        self._before = self._known(options)

    @property
    def done(self) -> bool:
        """Whether a training was finished here."""
        # Figures are written last: where they lie, everything else does.
        return os.path.lexists(self.folder / self._named.figures_file)

    @property
    def machine(self) -> dict[str, Any] | None:
        """On which the training began, as it is kept; None: it did not begin."""
        held = self._before.get("machine") if self._before else None
        return held if isinstance(held, dict) else None

    def outcome(
        self,
        read: Callable[[Path], Network],
        of: Callable[[Path, Mapping[str, Any]], Outcome],
        judge: Callable[[Network, dict[str, Any]], Mapping[str, Any]] | None = None,
    ) -> Outcome:
        """Return what a training left that was finished before; judged again where another protocol is asked for.

        Args:
            read: Reads the folder's network, and refuses it where it is damaged.
            of: Makes the outcome of folder and figures.
            judge: Given the network and the figures so far, writes the page and returns the figures of the identity's protocol;
                None: there is nothing to be judged again.

        Raises:
            AssetError: It is not whole any more.
        """
        path = self.folder / self._named.figures_file
        try:
            with telling_figures(path):
                network, found = read(self.folder), read_json(path)
                outcome = of(self.folder, found)
        except AssetError as error:
            raise error if str(error).endswith(NOT_WHOLE) else AssetError(f"{error} {NOT_WHOLE}") from error
        changed = [] if judge is None else self._judged_otherwise(found)
        if judge is None or not changed:
            say(self._quiet, f"{self.folder}: this training is finished already.")
            return outcome
        say(self._quiet, f"{self.folder}: this training is finished; it is judged again ({'; '.join(changed)}).")
        # In one piece, when all is judged: whoever stops it before has the figures that were there.
        with telling_figures(path):
            judged = judge(network, dict(found))
        write_json(path, {**judged, "protocol": self._protocol})
        self._note_protocol()
        return of(self.folder, read_json(path))

    @property
    def _protocol(self) -> Any:
        """As JSON gives it back: lists for tuples."""
        return json.loads(json_text(self._identity.get("protocol")))

    def _judged_otherwise(self, found: Mapping[str, Any]) -> list[str]:
        """Return what of the protocol is another than that of figures."""
        before, now = found.get("protocol"), self._protocol
        if not isinstance(now, dict):
            return []
        if not isinstance(before, dict):
            return ["nothing says how it was judged"]
        names = [name for name in now if before.get(name) != now[name]]
        given = self._named.judged
        return [f"{given.get(name, name)} was {before.get(name, 'unknown')}, is now {now[name]}" for name in names]

    def _note_protocol(self) -> None:
        """Keep the protocol that is asked for now."""
        if self._before is not None and self._before.get("protocol") != self._protocol:
            self._before["protocol"] = self._protocol
            write_json(self.folder / IDENTITY_FILE, self._before)

    def begin(self, work: TrainingWork, machine: Machine) -> bool:
        """Note what begins, or take up what was stopped; returns whether the work goes on from a checkpoint."""
        if self._before is None:
            write_json(self.folder / IDENTITY_FILE, {**self._identity, "machine": asdict(machine)})
        # Not refused: a training of days may have to move, and says what that costs.
        elif changed := machine.differences(self.machine or {}):
            warning = f"It began on another machine ({'; '.join(changed)}): it goes on, but its bits are not those of one run."
            say(self._quiet, warning)
        self._note_protocol()
        self.about = {"machine": asdict(machine), **self._identity}
        # The newest that is whole: a checkpoint that a crash cut off, or whose files beside it are gone, is passed over.
        saved = self._checkpoints().newest(work.restore)
        if saved is None and self._before is not None:
            self._refuse_lost(work)
        return saved is not None

    def _refuse_lost(self, work: TrainingWork) -> None:
        """Refuse to begin anew over all that was learnt; say it where only a part was.

        Raises:
            AirworthyError: The folder's network has learnt all, and lacks but its figures.
        """
        done, path = learnt_steps(self.folder / CONTRACT_FILE), self.folder / self._named.figures_file
        total = getattr(getattr(getattr(work, "training", work), "options", None), "iterations", None)
        if not done:
            return
        if total is not None and done >= total:
            raise AirworthyError(
                f"{str(self.folder)!r} holds {self._named.result} that has learnt all, and no figures ({path.name}): use it as"
                " it is, or delete the folder, and the same command learns again."
            )
        # Also where nothing else is said: what was learnt is lost.
        say(False, f"{self.folder}: there is no checkpoint to go on from {self._named.steps} {done:,}; it begins anew.")

    def learn(
        self,
        work: TrainingWork,
        steps: Callable[[Stopped], Iterator[object]],
        count: int | None,
        run: TrainingRunOptions,
        stepped: Callable[[], None] = lambda: None,
        saved: Callable[[], None] = lambda: None,
        curves: TrainingCurves | None = None,
    ) -> bool:
        """Learn what is left, saving now and then, and when asked to stop.

        Args:
            work: Begun.
            steps: Makes the steps; behind each it may be saved. It is given what says whether somebody wants it to stop.
            count: Steps that are left, at most; None: nobody knows.
            run: For how long, and how often it is saved.
            stepped: Called behind each step.
            saved: Called behind each checkpoint.
            curves: What event files hold, where the run asks for them.

        Returns:
            Whether it is finished; False: it was stopped, as was asked.
        """
        kept = self._checkpoints()
        begun = last = time.monotonic()
        with self._events(run, curves) as follow, stoppable(self._named.stopping) as stopped:
            for _ in progress(steps(stopped), "Training", count, quiet=self._quiet):
                now = time.monotonic()
                # Monotonic time: a clock that is set while it learns must not stop it.
                late = bool(run.minutes) and now - begun > 60.0 * run.minutes
                stepped()
                follow()
                # At the end, too: whoever stops it while the report is made has learnt everything.
                if work.finished or stopped() or late or now - last > 60.0 * run.checkpoint_minutes:
                    kept.save(work.save(), self.about)
                    saved()
                    last = now
                    # What is finished is judged at once, late or not.
                    if stopped() or (late and not work.finished):
                        break
        return work.finished

    @contextmanager
    def _events(self, run: TrainingRunOptions, curves: TrainingCurves | None) -> Iterator[Callable[[], None]]:
        """Give what brings event files up to date; nothing where none are asked for."""
        if not run.tensorboard or curves is None:
            yield lambda: None
            return
        with EventFiles(self.folder / EVENTS, curves.scalars, curves.rows) as events:
            yield lambda: events.follow(curves.rows)

    def clear(self) -> None:
        """Remove the checkpoints of a training that is finished."""
        self._checkpoints().clear()

    def _checkpoints(self) -> Checkpoints:
        return Checkpoints(self.folder / CHECKPOINTS, self._named.steps)

    def _known(self, options: TrainingOptions) -> dict[str, Any] | None:
        """Return how this training began before; None: it did not. Refuses a folder of another."""
        path, where = self.folder / IDENTITY_FILE, repr(str(self.folder))
        if not path.is_file():
            _refuse_other_kinds(self.folder)
            if any((self.folder / name).exists() for name in (CHECKPOINTS, self._named.figures_file, CONTRACT_FILE)):
                # Results without an identity may be anybody's: nothing is written over them.
                refuse_several(self.folder, IDENTITY_FILE)
                raise AirworthyError(f"{where} holds {self._named.result} but no {IDENTITY_FILE}: choose another folder.")
            return None
        before = _read_identity(path)
        # First, since all further differences follow from it.
        if "network" in self._identity and before.get("network") != self._identity["network"]:
            raise AirworthyError(f"{where} holds the training of another network: choose another folder.")
        _refuse_other_kind(where, before, options, self._identity)
        _refuse_changed(where, self._changed(before, options))
        return before

    def _changed(self, before: Mapping[str, Any], options: TrainingOptions) -> list[str]:
        changed = options.differences(before["options"])
        if before.get("data") != self._identity["data"]:
            changed.append(self._named.other_data)
        if not changed and any(before.get(key) != value for key, value in self._identity.items() if key != "protocol"):
            changed.append(self._named.other_rest)
        return changed


def write_training_log(folder: Path, training_log: list[dict[str, Any]]) -> None:
    """Write a line per epoch; whole, so that a line is never there twice."""
    # Through our own text, as in every other file.
    rows = [json.dumps(json.loads(json_text(row)), ensure_ascii=False) for row in training_log]
    write_text(folder / TRAINING_LOG_FILE, "".join(f"{row}\n" for row in rows))


def say(quiet: bool, text: str) -> None:
    """Tell who watches, on standard error."""
    if not quiet:
        print(text, file=sys.stderr, flush=True)
