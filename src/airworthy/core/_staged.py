"""Folders that one run holds, and that are replaced as a whole: written beside the old one, whose place they take in one step.

A lock is advisory, and the operating system releases it when its holder dies.

Linux and macOS exchange two folders in one call. Elsewhere the old folder is set aside first, and put back by the next run
where the machine stopped in between. A folder that cannot be moved (a mount, one in which somebody stands, one whose parent is
not ours) gets its new content from a folder inside it: a stop in between leaves it without its anchor, which no reader accepts,
and the next run finishes what was begun.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import re
import secrets
import shutil
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

from airworthy.core._atomic import _sync_folder, make_folder
from airworthy.core.errors import AirworthyError
from airworthy.core.threads import after_fork

__all__ = ["LOCK_NAME", "StagedFolder", "is_locked", "lock_folder", "staged_folder"]

_NEW, _OLD = "new", "old"
"""Ends of the names of folders beside the target."""
_INSIDE, _COMMIT, _FILL = ".airworthy-new-", ".airworthy-commit-", ".airworthy-fill-"
"""Beginnings of the names of folders inside it: being written; whole; and whole with the old content gone."""
_AT_FDCWD, _SWAP = -100, 2
"""Of `renameat2` (RENAME_EXCHANGE) and `renamex_np` (RENAME_SWAP), which have the same number."""
_NO_SWAP = {errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP}
_TEMPORARY = re.compile(r"\..*\.[0-9a-f]{16}\.tmp.*")
"""Files of `write_atomic` that a kill left behind."""


# ---- who holds a folder ------------------------------------------------------------------------------------------------

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


# ---- what takes its place ----------------------------------------------------------------------------------------------


class StagedFolder:
    """What a run writes into, until it takes the place of what was there."""

    def __init__(self, target: Path, path: Path, owns: Callable[[str], bool], anchor: str, inside: bool):
        self.path = path
        """Where to write now: beside the old content until `publish`, then the folder itself."""
        self.replaces = any(owns(name) for name in os.listdir(target))
        """Whether there is something of an earlier run to be replaced."""
        self._target, self._owns, self._anchor, self._inside = target, owns, anchor, inside
        self._kept = False

    @property
    def is_published(self) -> bool:
        """Whether it has taken its place."""
        return self.path == self._target

    def keep(self) -> None:
        """Publish on leaving by an error as well, from now on: what there is, is worth it."""
        self._kept = True

    def carry(self, folder: str) -> None:
        """Take over the files of an old folder inside that the new one of this name lacks; they may be the user's."""
        old, new = self._target / folder, self.path / folder
        if self.is_published or not old.is_dir():
            return
        new.mkdir(exist_ok=True)
        for entry in list(os.scandir(old)):
            if entry.is_file(follow_symlinks=False) and not os.path.lexists(new / entry.name):
                try:
                    os.link(entry.path, new / entry.name)
                except OSError:  # no links on this file system
                    shutil.copy2(entry.path, new / entry.name)

    def publish(self) -> None:
        """Take the place of the old content, all at once; without effect the second time.

        Raises:
            AirworthyError: The file system refused; the old content is intact.
        """
        if self.is_published:
            return
        staged, target = self.path, self._target
        try:
            _sync_tree(staged)
            if self._inside:
                whole = staged.with_name(_COMMIT + staged.name.removeprefix(_INSIDE))
                os.rename(staged, whole)
                self.path = target
                _sync_folder(target)
                _roll_forward(target, whole, self._owns, self._anchor)
                return
            _link_foreign(target, staged, self._owns)
            _take_place(staged, target)
            self.path = target
            _sync_folder(target.parent)
        except OSError as error:
            raise AirworthyError(f"Could not replace {str(target)!r}: {error.strerror or error}.") from error
        _dissolve(staged, target, self._owns)


@contextlib.contextmanager
def staged_folder(path: str | Path, owns: Callable[[str], bool], anchor: str) -> Iterator[StagedFolder]:
    """Hold a folder for one run, whose result replaces an earlier one as a whole or not at all.

    At the end of the block the result is published; an error discards it, unless `keep` or `publish` came before. What killed
    runs left is cleared away first; what a living one writes is not touched.

    Args:
        path: Made where missing.
        owns: Whether an entry of this name is of such a run. Others are the user's, and stay.
        anchor: The file without which no reader takes the folder for a result.

    Raises:
        AirworthyError: Another run holds the folder, or it cannot be written.
    """
    target = Path(os.path.realpath(path))
    _put_back(target)
    with lock_folder(path), contextlib.ExitStack() as stack:
        _sweep(target, owns, anchor)
        inside = _cannot_move(target)
        try:
            where = _new_folder(target, inside)
        except OSError as error:
            raise AirworthyError(f"Could not write in {str(path)!r}: {error.strerror or error}.") from error
        staged = StagedFolder(target, where, owns, anchor, inside)
        if not inside:  # its own lock holds the folder once it is in place
            stack.enter_context(hold_lock(where, lambda: staged.path))
        try:
            yield staged
        except BaseException as error:
            if isinstance(error, AirworthyError):  # nobody knows the other name
                error.args = tuple(str(part).replace(str(where), str(path)) for part in error.args)
            if staged._kept:
                staged.publish()
            elif not staged.is_published:
                shutil.rmtree(where, ignore_errors=True)
            raise
        staged.publish()


def _new_folder(target: Path, inside: bool) -> Path:
    token = secrets.token_hex(8)
    where = target / f"{_INSIDE}{token}" if inside else target.with_name(f".{target.name[:120]}.{token}.{_NEW}")
    where.mkdir()
    with contextlib.suppress(OSError):
        shutil.copymode(target, where)
    return where


def _siblings(target: Path, kind: str) -> list[Path]:
    """Return what runs into this folder have beside it."""
    pattern = re.compile(re.escape(f".{target.name[:120]}.") + rf"[0-9a-f]{{16}}\.{kind}")
    try:
        return sorted(target.parent / name for name in os.listdir(target.parent) if pattern.fullmatch(name))
    except OSError:
        return []


def _cannot_move(target: Path) -> bool:
    """Tell whether a folder must stay where it is."""
    try:
        here = Path.cwd()
    except OSError:
        here = Path("/")
    stood_in = here == target or target in here.parents
    return stood_in or os.path.ismount(target) or not os.access(target.parent, os.W_OK | os.X_OK)


# ---- taking the place ------------------------------------------------------------------------------------------------


@cache
def _swap_call() -> Callable[[bytes, bytes], int] | None:
    """Return the system's call that exchanges two names; None where there is none."""
    library = ctypes.CDLL(None, use_errno=True)
    if sys.platform == "darwin" and hasattr(library, "renamex_np"):
        return lambda a, b: int(library.renamex_np(a, b, ctypes.c_uint(_SWAP)))
    if hasattr(library, "renameat2"):
        return lambda a, b: int(library.renameat2(_AT_FDCWD, a, _AT_FDCWD, b, ctypes.c_uint(_SWAP)))
    return None


def _exchange(one: Path, other: Path) -> bool:
    """Exchange two folders in one step; False where the system or the file system cannot."""
    call = _swap_call()
    if call is None:
        return False
    if call(os.fsencode(one), os.fsencode(other)) == 0:
        return True
    code = ctypes.get_errno()
    if code in _NO_SWAP:
        return False
    raise OSError(code, os.strerror(code))


def _take_place(staged: Path, target: Path) -> None:
    """Afterwards the new folder has the target's name, and the old one the staged folder's."""
    if _exchange(staged, target):
        return
    aside = staged.with_name(staged.name.removesuffix(_NEW) + _OLD)
    os.rename(target, aside)
    try:
        os.rename(staged, target)
    except OSError:
        os.rename(aside, target)
        raise
    os.rename(aside, staged)


def _put_back(target: Path) -> None:
    """Finish an exchange in two steps that was cut in the middle: there is an old folder, and none of its name."""
    for aside in _siblings(target, _OLD):
        if not os.path.lexists(target) and not is_locked(aside):
            with contextlib.suppress(OSError):
                os.rename(aside, target)


def _link_foreign(old: Path, new: Path, owns: Callable[[str], bool]) -> None:
    """Link the user's own files of the old folder into the new one from its first moment."""
    for entry in os.scandir(old):
        if not owns(entry.name) and not _is_ours(entry.name) and not entry.is_dir(follow_symlinks=False):
            with contextlib.suppress(OSError):  # moved afterwards, where the file system has no links
                os.link(entry.path, new / entry.name, follow_symlinks=False)


def _dissolve(old: Path, target: Path, owns: Callable[[str], bool]) -> None:
    """Remove what was replaced, or never came to be, but for what is the user's: that moves to the target."""
    clear = True
    for entry in list(os.scandir(old)):
        if not owns(entry.name) and not _is_ours(entry.name) and not os.path.lexists(target / entry.name):
            try:
                os.rename(entry.path, target / entry.name)
            except OSError:
                clear = False
    if clear:
        shutil.rmtree(old, ignore_errors=True)


def _is_ours(name: str) -> bool:
    return name == LOCK_NAME or name.startswith((_INSIDE, _COMMIT, _FILL)) or bool(_TEMPORARY.fullmatch(name))


# ---- after kills -----------------------------------------------------------------------------------------------------


def _sweep(target: Path, owns: Callable[[str], bool], anchor: str) -> None:
    """Clear away what killed runs left; the target is held by the caller."""
    for entry in list(os.scandir(target)):
        if entry.name.startswith((_COMMIT, _FILL)):
            _roll_forward(target, Path(entry.path), owns, anchor)
        elif entry.name.startswith(_INSIDE):
            shutil.rmtree(entry.path, ignore_errors=True)
        elif _TEMPORARY.fullmatch(entry.name):
            with contextlib.suppress(OSError):
                os.unlink(entry.path)
    for stale in [*_siblings(target, _NEW), *_siblings(target, _OLD)]:
        if not is_locked(stale):
            _dissolve(stale, target, owns)


def _roll_forward(target: Path, whole: Path, owns: Callable[[str], bool], anchor: str) -> None:
    """Move a finished result out of a folder inside its own, in steps that can be repeated; anchor out first and in last."""
    if whole.name.startswith(_COMMIT):
        for name in sorted(filter(owns, os.listdir(target)), key=lambda name: name != anchor):
            _remove(target / name)
        fill = whole.with_name(_FILL + whole.name.removeprefix(_COMMIT))
        os.rename(whole, fill)  # from here on, what the run owns is new
        whole = fill
    for name in sorted(os.listdir(whole), key=lambda name: name == anchor):
        os.rename(whole / name, target / name)
    _sync_folder(target)
    os.rmdir(whole)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _sync_tree(root: Path) -> None:
    """Make the names of all entries durable; files are so since they were written."""
    for folder, _, _ in os.walk(root):
        _sync_folder(Path(folder))
