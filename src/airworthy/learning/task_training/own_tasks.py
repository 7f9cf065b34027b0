"""Tasks of a user's own: FILE.py:NAME, a class like those of `airworthy.learning`, whose file the run folder keeps."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from airworthy.core.errors import AirworthyError, AssetError, telling_refusals
from airworthy.core.files import copy_file, make_folder
from airworthy.core.own_modules import load_with, not_copied, own_digest, own_modules
from airworthy.learning.environments import LearningTask, learning_task, learning_tasks
from airworthy.learning.environments.task import REQUIRED
from airworthy.pilots.containment import PilotFailure, contained, import_contained, stops_noted

__all__ = ["OwnTask", "is_learning_task", "is_own_task", "made_task", "refuse_path"]

KEPT = "task"
"""Folder below the run's that holds the file, and what it imports from beside itself."""


def is_own_task(word: str) -> bool:
    """Return whether a word names a class in a file rather than a registered task."""
    return word.rpartition(":")[0].endswith(".py")


def is_learning_task(word: str) -> bool:
    """Return whether a word names a registered learning task, or a class in a file."""
    return is_own_task(word) or word in learning_tasks()


def refuse_path(word: str) -> None:
    """Refuse a path where a task is named: what runs is a class in a file, and its folder is called by that class's name.

    Args:
        word: That was given; names without a slash and without ".py" are no paths.

    Raises:
        AirworthyError: It is a path, without a class or with something else behind its colon.
    """
    path, colon, name = word.rpartition(":")
    if is_own_task(word):
        # The name becomes a folder's, and is looked up in the module: nothing but a name of Python may stand there.
        if not name.isidentifier():
            raise AirworthyError(f"{word!r} names no class: behind the colon of FILE.py:NAME stands its name, as own.py:Mine.")
        return
    file = path if colon and path.endswith(".py") else word
    if file.endswith(".py"):
        raise AirworthyError(f"{word!r} is a file: a task of one's own is FILE.py:NAME, with the name of its class.")
    if any(letter in word for letter in "/\\"):
        raise AirworthyError(
            f"{word!r} is a path and no task's name: `airworthy tasks` lists those; one of one's own is FILE.py:NAME."
        )


@dataclass(frozen=True)
class OwnTask:
    """A class in a file."""

    file: Path
    name: str

    @classmethod
    @telling_refusals()
    def of(cls, word: str) -> OwnTask:
        """Read the own task of FILE.py:NAME.

        Raises:
            AssetError: The file is not there.
        """
        refuse_path(word)
        # From the right: a path may have a colon in it, a class name has none.
        path, _, name = word.rpartition(":")
        if not Path(path).is_file():
            raise AssetError(f"{path!r} is no file; a task of one's own is FILE.py:NAME.")
        return cls(Path(path), name)

    @property
    def digest(self) -> str:
        """SHA-256 of the file and of what it imports from beside itself."""
        return own_digest(self.file)

    def make(self, options: Any) -> LearningTask:
        """Return the task; the file's code runs, as the user asks.

        Args:
            options: Of the task.

        Raises:
            AirworthyError: The file cannot be imported, has no such class, or the class is no task.
        """
        module = load_with(import_contained, self.file, self.digest)
        kind = getattr(module, self.name, None)
        # A function that makes a task serves as well as a class.
        if not callable(kind):
            known = sorted(k for k, v in vars(module).items() if isinstance(v, type) and hasattr(v, "judge"))
            hint = f"; it has {', '.join(known)}" if known else ""
            raise AirworthyError(f"{str(self.file)!r} has no task {self.name!r}{hint}.")
        task = self._made(kind, options)
        if missing := [name for name in REQUIRED if not hasattr(task, name)]:
            raise AirworthyError(f"{self.name!r} of {str(self.file)!r} is no learning task: it has no {missing[0]!r}.")
        return task

    def _made(self, kind: Any, options: Any) -> Any:
        try:
            with stops_noted():
                return contained(partial(kind, **options))
        except PilotFailure as failure:
            cause = failure.__cause__
            # What checks of ours say of an option is a sentence already.
            if isinstance(cause, AirworthyError):
                raise cause from None
            if isinstance(cause, TypeError):
                raise AirworthyError(f"The task {self.name!r} does not take these options: {cause}.") from None
            raise AirworthyError(f"The task {self.name!r} of {str(self.file)!r} cannot be made: {failure}.") from failure

    def keep(self, folder: Path) -> None:
        """Copy the file and its own modules below a run's folder.

        Args:
            folder: Of the run.

        Raises:
            AirworthyError: It imports what cannot be copied.
        """
        # Found before anything is copied: a task of which a part is missing could not be gone on with.
        if lost := not_copied(self.file):
            name, why = next(iter(lost.items()))
            raise AirworthyError(f"{str(self.file)!r} imports {name!r}, {why}: the run's folder could not keep the task.")
        where = make_folder(folder / KEPT)
        for file in (Path(self.file.name), *own_modules(self.file).files):
            make_folder((where / file).parent)
            copy_file(self.file.parent / file, where / file)


def made_task(word: str, options: Any) -> tuple[LearningTask, OwnTask | None]:
    """Return a task by its word, and where it comes from if that is a file.

    Args:
        word: Name of a registered task, or FILE.py:NAME.
        options: Of the task.

    Raises:
        AirworthyError: There is none, or an option that it does not have.
    """
    if not is_own_task(word):
        return learning_task(word, **options), None
    own = OwnTask.of(word)
    return own.make(options), own
