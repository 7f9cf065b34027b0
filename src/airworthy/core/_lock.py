"""One run per folder: an advisory lock that the operating system releases when its holder dies."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path

from airworthy.core._atomic import make_folder
from airworthy.core.errors import AirworthyError
from airworthy.core.threads import after_fork

LOCK_NAME = ".airworthy.lock"
_HELD: set[int] = set()
"""Descriptors of the locks that this process holds."""


def _drop_held() -> None:
    """In a forked child: a lock belongs to its process, and must be free when that dies, whoever else inherited the file."""
    for descriptor in _HELD:
        with contextlib.suppress(OSError):
            os.close(descriptor)
    _HELD.clear()


after_fork(_drop_held)


@contextlib.contextmanager
def lock_folder(path: str | Path) -> Iterator[Path]:
    """Hold a folder for one run; the folder is made where missing.

    The lock is released at the end of the block and when the process dies, however it dies.

    Raises:
        AirworthyError: Another run holds the folder, or it cannot be written.
    """
    folder = make_folder(path)
    lock = folder / LOCK_NAME
    with _held(_acquire(lock, folder), lambda: folder):
        yield folder


@contextlib.contextmanager
def hold_lock(folder: Path, where: Callable[[], Path]) -> Iterator[None]:
    """Hold a new folder that may be moved meanwhile.

    Args:
        folder: Where it is now.
        where: Says where it is at the end.
    """
    with _held(_acquire(folder / LOCK_NAME, folder), where):
        yield


def is_locked(folder: Path) -> bool:
    """Tell whether a living run holds a folder."""
    import fcntl

    try:
        descriptor = os.open(folder / LOCK_NAME, os.O_RDWR)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False


@contextlib.contextmanager
def _held(descriptor: int, where: Callable[[], Path]) -> Iterator[None]:
    _HELD.add(descriptor)
    try:
        yield
    finally:
        if descriptor in _HELD:  # not in a child that was forked inside the block
            _HELD.discard(descriptor)
            lock = where() / LOCK_NAME
            # Removed while still held, so that nobody can lock the name and the removed file at once (see `_acquire`); and only
            # where it is ours: a folder that took this one's place has its own.
            if _still_named(descriptor, lock):
                with contextlib.suppress(OSError):
                    os.unlink(lock)
            os.close(descriptor)


def _acquire(lock: Path, folder: Path) -> int:
    while True:
        try:
            descriptor = os.open(lock, os.O_RDWR | os.O_CREAT, 0o666)
        except OSError as error:
            raise AirworthyError(f"Could not write in {str(folder)!r}: {error.strerror or error}.") from error
        _lock(descriptor, folder)
        if _still_named(descriptor, lock):
            with contextlib.suppress(OSError):  # the number only makes a message clearer
                os.ftruncate(descriptor, 0)
                os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
            return descriptor
        os.close(descriptor)  # its last holder removed it between our open and our lock


def _lock(descriptor: int, folder: Path) -> None:
    """Lock an open file or close it and raise."""
    import fcntl

    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        holder = os.pread(descriptor, 32, 0).decode(errors="replace").strip()
        os.close(descriptor)
        if not isinstance(error, BlockingIOError):
            raise AirworthyError(f"Could not lock the folder {str(folder)!r}: {error.strerror or error}.") from error
        who = f" (process {holder})" if holder.isdigit() else ""
        message = f"Another run{who} is writing in {str(folder)!r}: wait for it or choose another folder."
        raise AirworthyError(message) from error


def _still_named(descriptor: int, lock: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(lock))
    except OSError:
        return False
