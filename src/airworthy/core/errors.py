"""The project's own exceptions: what a user's mistake raises.

Every message is one sentence that says what arrived, what was expected and what to do. The command line prints it and
exits with code 2; nothing here ever reaches a user as a traceback.
"""

from __future__ import annotations

import difflib
import errno
import os
import sys
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path


class AirworthyError(Exception):
    """A mistake in what the user gave; the message says how to mend it."""


class AssetError(AirworthyError):
    """A file that is missing, damaged, too large or not what its name says."""


class AssetWarning(UserWarning):
    """Something in a file that was left out, mended or replaced; the message says what."""


class UnknownNameError(AirworthyError, KeyError):
    """A name that no catalogue holds."""

    __str__ = Exception.__str__


def unknown_name(kind: str, name: str, known: Iterable[str], hint: str = "", most: int = 12) -> UnknownNameError:
    """Build the error for a name that is not in a catalogue.

    Args:
        kind: What was looked up, in the singular ("vehicle").
        name: The name that arrived.
        known: Every name there is.
        hint: A last sentence: where the user finds or adds one.
        most: Names that are listed; of more, these and how many there are.
    """
    names, name = sorted(known), str(name)
    close = difflib.get_close_matches(name, names, n=3, cutoff=0.5)
    parts = [f"Unknown {kind} {name!r}."]
    if close:
        parts.append(f"Closest: {', '.join(repr(n) for n in close)}.")
    shown = ", ".join(n or "''" for n in names[:most]) + (f", ... ({len(names)} in all)" if len(names) > most else "")
    parts.append(f"Known: {shown}." if names else "There is none to choose from.")
    if hint:
        parts.append(hint)
    return UnknownNameError(" ".join(parts))


# ---- What the file system refuses --------------------------------------------------------------------------------------------

_LISTED = 10_000
"""Most names of a folder that are compared with one that is missing."""


def no_file(path: str | Path) -> str:
    """Return the sentence about a file that is missing: with its folder if that is missing too, or with names like its own."""
    told, folder = f"There is no file {str(path)!r}.", Path(path).parent
    try:
        if not folder.is_dir():
            return f"{told} There is no folder {str(folder)!r} either."
        names = (entry.name for entry in islice(os.scandir(folder), _LISTED))
        close = difflib.get_close_matches(Path(path).name, [name for name in names if name.isprintable()], n=2, cutoff=0.75)
    except (OSError, ValueError):
        return told
    return f"{told} There is {' and '.join(repr(str(Path(path).with_name(name))) for name in close)}." if close else told


# What the user's machine may refuse, as opposed to a fault of ours, which keeps its traceback.
# EFBIG: a limit of the shell (`ulimit -f`), or a file system's own. ENAMETOOLONG, ELOOP: asking whether a path is a file raises
# them, where one that is merely not there answers "no".
_REFUSALS = {
    errno.ENOSPC,
    errno.EDQUOT,
    errno.EFBIG,
    errno.EROFS,
    errno.EACCES,
    errno.EPERM,
    errno.ENAMETOOLONG,
    errno.ELOOP,
}
_PART_MAX = 255
"""Bytes of a part of a path that the file systems of our platforms take at most."""
_PART_SHOWN = 24


@contextmanager
def telling_refusals() -> Iterator[None]:
    """Say in one sentence what the file system refuses of a path; whatever else is wrong raises as ever. Also a decorator.

    Raises:
        AirworthyError: A path cannot be used: too long, not ours to read or write, no space left.
    """
    try:
        yield
    except OSError as error:
        if error.errno not in _REFUSALS:
            raise
        raise AirworthyError(_refused(error)) from error


def _refused(error: OSError) -> str:
    where = os.fsdecode(error.filename) if isinstance(error.filename, str | bytes | os.PathLike) else ""
    if error.errno != errno.ENAMETOOLONG or not where:
        return f"{where!r}: {error.strerror}." if where else f"{error.strerror}."
    part = max(Path(where).parts, key=lambda name: len(os.fsencode(name)))
    size = len(os.fsencode(part))
    if size > _PART_MAX:
        begin = part[:_PART_SHOWN]
        return f"A part of a path, {begin + '...'!r}, has {size} bytes; expected at most {_PART_MAX}: choose a shorter name."
    return f"{where[:_PART_SHOWN] + '...'!r} is a path of {len(os.fsencode(where)):,} bytes, too long: choose a shorter one."


# ---- Packages that are installed and cannot be loaded ------------------------------------------------------------------------

_REASON_MAX = 300
"""Ours: characters of what a loader says; some list every place where they looked."""


@contextmanager
def telling_broken(packages: Collection[str]) -> Iterator[None]:
    """Say in one sentence that an optional package is installed and cannot be loaded; one that is missing raises as ever.

    Half an installation (a library that it was linked with is gone, a package of its own is missing) raises ImportError or
    OSError from within the package, which tells nobody what to do.

    Args:
        packages: Names of the optional packages.

    Raises:
        AirworthyError: Loading one of them failed within it.
    """
    try:
        yield
    except (ImportError, OSError) as error:
        if (name := _broken(error, packages)) is None:
            raise
        reason = (str(error).splitlines() or [type(error).__name__])[0][:_REASON_MAX].rstrip(".")
        raise AirworthyError(
            f"The package {name!r} is installed but cannot be loaded ({reason}): mend what is missing, or install it again."
        ) from error


def _broken(error: ImportError | OSError, packages: Collection[str]) -> str | None:
    """Return which of the packages failed while it was loaded: its code is under way, and it is not among loaded modules."""
    import traceback  # here, for `airworthy --help` does without

    names = [str(frame.f_globals.get("__name__", "")) for frame, _ in traceback.walk_tb(error.__traceback__)]
    if isinstance(error, ImportError):
        # A compiled package has no code of ours to see: its loader's error has its name; that of a missing one has, too.
        names.append("" if isinstance(error, ModuleNotFoundError) else error.name or "")
    absent = (error.name or "").partition(".")[0] if isinstance(error, ModuleNotFoundError) else ""
    # The innermost: a package that needs a broken one is not broken itself.
    tops = [top for name in names if (top := name.partition(".")[0]) in packages and top not in sys.modules]
    return tops[-1] if tops and (absent == tops[-1] or absent not in packages) else None
