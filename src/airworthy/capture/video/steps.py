"""What each step of a place from a film left behind, how long it took, and what was noted: a step is passed over as long as
its files lie there whole.

seconds.json  how long each step took, all runs together
steps.json    by step: a digest of what it was made from, each file that it left with size, time and SHA-256, and what it said

Sizes and times are looked at first; where only the time is another (of a folder that was copied) the content decides.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path, PurePosixPath
from typing import Any

from airworthy.core.errors import AirworthyError, AssetError
from airworthy.core.files import read_json, sha256, sha256_file, write_json

__all__ = ["SECONDS_FILE", "STEPS_FILE", "STEP_NAMES", "FilmSteps", "StepProducts", "some_of"]

STEPS_FILE, SECONDS_FILE = "steps.json", "seconds.json"
STEP_NAMES = {
    "frames": "taking pictures",
    "masks": "masking what moves",
    "poses": "finding poses",
    "scale": "scale and level",
    "transients": "masking what passes by",
    "training": "training",
    "place": "making the place",
}
"""What is said of each step."""
_LIMIT_BYTES = 64 << 20
"""Of steps.json: thousands of pictures have their lines in it."""

_File = list[Any]
"""Size [bytes], time of the last change [ns], SHA-256."""


class StepProducts:
    """What the steps of a folder left, in its steps.json.

    A file of before, or a damaged one, tells nothing: what lies there is then taken as it is.

    Args:
        folder: Of all steps.
    """

    def __init__(self, folder: str | Path) -> None:
        self._folder = Path(folder)
        self.dropped = ""
        """Why steps.json told nothing, in a sentence; empty: it did, or no step had been done."""
        self._steps: dict[str, dict[str, Any]] = self._read()

    def _read(self) -> dict[str, dict[str, Any]]:
        path = self._folder / STEPS_FILE
        if not path.exists():
            if (self._folder / SECONDS_FILE).exists():
                self.dropped = f"{STEPS_FILE} is gone, and what lies in the folder is taken as whole."
            return {}
        try:
            found = read_json(path, _LIMIT_BYTES)
            if isinstance(found, dict) and all(map(_sound, found.values())):
                return found
            reason = "it holds no files of the folder by the names of steps"
        except AssetError as error:
            reason = str(error).rstrip(".")
        self.dropped = f"{STEPS_FILE} was dropped, and what lies in the folder is taken as whole: {reason}."
        return {}

    @property
    def names(self) -> tuple[str, ...]:
        """Of the steps that left something."""
        return tuple(self._steps)

    def made_from(self, name: str) -> str | None:
        """Return the digest of what a step was made from; None: nothing is known of it.

        Args:
            name: Of the step.
        """
        found = self._steps.get(name)
        return None if found is None else str(found["made_from"])

    def files(self, name: str) -> frozenset[str]:
        """Return what a step left, as paths from the folder.

        Args:
            name: Of the step.
        """
        return frozenset(self._steps.get(name, {}).get("files", {}))

    def said(self, name: str) -> Any:
        """Return what a step said; None where nothing is known of it.

        Args:
            name: Of the step.
        """
        return self._steps.get(name, {}).get("said")

    def damaged(self, name: str) -> list[str]:
        """Return what is wrong with each file that a step left, in words; none: all of them are whole, or nothing is known.

        Args:
            name: Of the step.
        """
        files = self._steps.get(name, {}).get("files", {})
        return [f"{path} {reason}" for path, held in files.items() if (reason := self._wrong(path, held))]

    def _wrong(self, path: str, held: _File) -> str:
        try:
            status = (self._folder / path).stat()
        except OSError:
            return "is gone"
        size, time, digest = held
        if status.st_size != size:
            return f"has {status.st_size:,} of its {size:,} bytes" if status.st_size < size else "has grown"
        if status.st_mtime_ns == time:
            return ""
        if sha256_file(self._folder / path) != digest:
            return "was changed"
        held[1] = status.st_mtime_ns
        return ""

    def whole(self, name: str, made_from: str) -> bool:
        """Tell whether a step has been done from the same, and all that it left is there.

        Args:
            name: Of the step.
            made_from: Digest of what it would be made from now.
        """
        return self.made_from(name) == made_from and not self.damaged(name)

    def digest(self, *names: str) -> str:
        """Return a digest of all files that steps left, for what is made from them.

        Args:
            names: Of the steps; those of which nothing is known count as such.
        """
        files = [(path, held[2]) for name in names for path, held in self._steps.get(name, {}).get("files", {}).items()]
        return sha256(repr(sorted(files)))

    def keep(self, name: str, made_from: str, files: Iterable[str | Path], said: Any = None) -> None:
        """Keep that a step is done.

        Args:
            name: Of the step.
            made_from: Digest of what it was made from.
            files: That it left, as paths from the folder.
            said: What it said, for JSON.

        Raises:
            AirworthyError: A file is gone, or steps.json cannot be written.
        """
        held: dict[str, _File] = {}
        for path in sorted({Path(one).as_posix() for one in files}):
            status = _status(self._folder / path)
            held[path] = [status.st_size, status.st_mtime_ns, sha256_file(self._folder / path)]
        self._steps[name] = {"made_from": made_from, "files": held, "said": said}
        write_json(self._folder / STEPS_FILE, self._steps)


def _status(path: Path) -> Any:
    try:
        return path.stat()
    except OSError as error:
        raise AirworthyError(f"{str(path)!r} was just written and cannot be read: {error.strerror or error}.") from error


def _sound(step: Any) -> bool:
    if not (isinstance(step, dict) and isinstance(step.get("made_from"), str) and isinstance(step.get("files"), dict)):
        return False
    # A folder that somebody sent must not have other files looked at.
    if any(PurePosixPath(path).is_absolute() or ".." in PurePosixPath(path).parts for path in step["files"]):
        return False
    rows = step["files"].values()
    return all(isinstance(row, list) and [type(value) for value in row] == [int, int, str] for row in rows)


class FilmSteps(StepProducts):
    """The same, and the steps being done: times, and what is to be said.

    Args:
        folder: Of all steps.
        quiet: Print nothing.
    """

    def __init__(self, folder: str | Path, quiet: bool = True) -> None:
        super().__init__(folder)
        self._quiet = quiet
        self.notes: list[str] = []
        """What was found damaged, and done again, for the page."""
        self.note(self.dropped)

    def say(self, text: str) -> None:
        """Print something that is kept elsewhere."""
        if not self._quiet and text:
            print(text, file=sys.stderr, flush=True)

    def note(self, text: str) -> None:
        """Keep what is to be said on the page, too; nothing where it is empty."""
        if text:
            self.notes.append(text)
            self.say(text)

    def note_damage(self, name: str) -> bool:
        """Note what is wrong with the files of a step, which is done again for it; tell whether anything is.

        Args:
            name: Of the step.
        """
        wrong = self.damaged(name)
        if wrong:
            self.note(f"Done again, {STEP_NAMES[name]}: {some_of(wrong)}.")
        return bool(wrong)

    def made(self, name: str, made_from: str, record: str, work: Callable[[], Any], files: Callable[[], Iterable[str]]) -> Any:
        """Do a step that passes itself over where its record lies, and return what it returns.

        It is done again where a file that it left is damaged, or it was made from something else: its record is removed.

        Args:
            name: Of the step.
            made_from: Digest of what it is made from.
            record: Its file that is written last.
            work: The step.
            files: What it left, asked for when it is done.
        """
        path, before = self._folder / record, self.made_from(name)
        if not path.exists():
            self.note_damage(name)
        else:
            again = self.note_damage(name)
            if before is None and not again:
                # Of a version that kept no digests: what can be read is taken as it is.
                again = path.suffix == ".json" and self._unreadable(name, path)
            if again or before not in (None, made_from):
                path.unlink()
        found = self.timed(name, work)
        if not self.whole(name, made_from):
            self.keep(name, made_from, files())
        return found

    def _unreadable(self, name: str, path: Path) -> bool:
        try:
            read_json(path)
        except AssetError as error:
            self.note(f"Done again, {STEP_NAMES[name]}: {error}")
            return True
        return False

    def timed(self, name: str, work: Callable[[], Any]) -> Any:
        """Do a step, and keep how long it took, all runs together.

        Args:
            name: Of the step.
            work: The step.
        """
        begun = time.perf_counter()
        try:
            return work()
        finally:
            seconds = self._seconds()
            seconds[name] = round(seconds.get(name, 0.0) + time.perf_counter() - begun, 2)
            write_json(self._folder / SECONDS_FILE, seconds)

    def _seconds(self) -> dict[str, float]:
        """Return how long steps took before; none, with a note, where the file is damaged: nothing else depends on it."""
        path = self._folder / SECONDS_FILE
        if not path.exists():
            return {}
        try:
            found = read_json(path)
            if isinstance(found, dict) and all(type(value) in (int, float) for value in found.values()):
                return found
            reason = "it holds no seconds by the names of steps"
        except AirworthyError as error:
            reason = str(error).rstrip(".")
        self.note(f"Times of earlier runs in {SECONDS_FILE} were dropped, and are counted anew: {reason}.")
        return {}


def some_of(lines: list[str]) -> str:
    """Return some of the parts of a sentence as one, and how many more there are."""
    more = f", and {len(lines) - 3} more" if len(lines) > 3 else ""
    return "; ".join(lines[:3]) + more
