"""Atomic writing: temporary file in the same folder, fsync, rename over the target, fsync of the folder."""

from __future__ import annotations

import contextlib
import dataclasses
import enum
import errno
import json
import math
import operator
import os
import secrets
import stat
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from airworthy.core.errors import AirworthyError

# Directories that cannot be synchronised (some network and FUSE file systems) say so with one of these.
_NO_FOLDER_SYNC = {errno.EINVAL, errno.ENOTSUP, errno.EACCES}


def path_given(value: str | Path, where: str) -> Path:
    """Return the path of a text, and refuse an empty one: to Python it would be the folder where one stands.

    Args:
        value: What was given.
        where: Its name in messages ("out").

    Raises:
        AirworthyError: It is empty.
    """
    if not os.fspath(value):
        raise AirworthyError(f"{where} is ''; expected a path, where '.' is the folder you are in.")
    return Path(value)


def make_folder(path: str | Path) -> Path:
    """Make a folder and its parents where missing; raises AirworthyError where that is impossible."""
    folder = path_given(path, "The folder to be made")
    if os.path.lexists(folder) and not os.path.isdir(folder):
        raise AirworthyError(f"Could not make the folder {str(path)!r}: a file is there; choose another name.")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise AirworthyError(f"Could not make the folder {str(path)!r}: {error.strerror or error}.") from error
    return folder


def write_atomic(path: str | Path, write: Callable[[Path], object]) -> Path:
    """Write a file through a function that is given a temporary path in the same folder, with the same suffix.

    Args:
        path: The file to write; its folder must exist. A link is followed, permissions of an existing file are kept.
        write: Called once with the temporary path; what it leaves there becomes the file.

    Returns:
        The path written.

    Raises:
        AirworthyError: The file system refused (full, read-only, no such folder, not a regular file); the old file is
            intact. What `write` raises passes through, unless it is an OSError.
    """
    target = Path(os.path.realpath(path))
    temporary: Path | None = None
    try:
        mode = _mode_of(target)
        temporary = _create_temporary(target)
        if mode is not None:
            os.chmod(temporary, mode)
        write(temporary)
        _sync_file(temporary)
        os.replace(temporary, target)
        temporary = None
        _sync_folder(target.parent)
    except OSError as error:
        raise AirworthyError(f"Could not write {str(path)!r}: {error.strerror or error}.") from error
    finally:
        if temporary is not None:
            _remove(temporary)
    return Path(path)


def refuse_unwritable(path: str | Path) -> None:
    """Refuse a file that cannot be written, before work of minutes is done for it; raises AirworthyError as `write_atomic`."""
    target = Path(os.path.realpath(path))
    try:
        _mode_of(target)
        _remove(_create_temporary(target))
    except OSError as error:
        raise AirworthyError(f"Could not write {str(path)!r}: {error.strerror or error}.") from error


def write_bytes(path: str | Path, data: bytes | bytearray | memoryview) -> Path:
    """Write bytes atomically; see `write_atomic`."""
    return write_atomic(path, lambda temporary: _write_all(temporary, data))


def write_text(path: str | Path, text: str) -> Path:
    """Write text atomically as UTF-8, line ends as they are; see `write_atomic`."""
    return write_bytes(path, text.encode())


def write_json(path: str | Path, value: Any) -> Path:
    """Write a value atomically as JSON; see `json_text` and `write_atomic`."""
    return write_text(path, json_text(value))


def json_text(value: Any) -> str:
    """Return JSON text, the same bytes for the same value: two spaces, keys in the order given, a line end at the end.

    NumPy values, dataclasses, paths, enums and tuples are written as their plain counterparts. JSON has no NaN and no infinity:
    they are written as null.

    Raises:
        TypeError: The value holds something that has no JSON form.
    """
    text = json.dumps(_plain(value), indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    # Half of a surrogate pair (a file name that was not UTF-8) cannot be encoded; its escape is both Python's and JSON's.
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _plain(value: Any) -> Any:
    if value is None or (isinstance(value, str | bool) and not isinstance(value, enum.Enum)):
        return value
    if isinstance(value, enum.Enum):
        return _plain(value.value)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {_key(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if hasattr(value, "tolist"):  # NumPy arrays and scalars, without importing NumPy
        return _plain(value.tolist())
    raise TypeError(f"{type(value).__name__} has no JSON form.")


def _key(key: Any) -> str:
    if isinstance(key, enum.Enum):
        return _key(key.value)
    if isinstance(key, str):
        return str(key)
    if hasattr(key, "__index__") and not isinstance(key, bool):
        return str(operator.index(key))
    raise TypeError(f"{type(key).__name__} cannot be a key in JSON; use a string.")


def _mode_of(target: Path) -> int | None:
    """Permissions of the file to be replaced, None where there is none; refuses devices, pipes and folders."""
    try:
        status = os.stat(target)
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, "it is a folder")
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "it is not a regular file")
    return stat.S_IMODE(status.st_mode)


def _create_temporary(target: Path) -> Path:
    # The suffix is kept because writers choose a format by it; the stem is cut, since names end at 255 bytes.
    name = f".{target.stem[:40]}.{secrets.token_hex(8)}.tmp{target.suffix[:20]}"
    temporary = target.with_name(name)
    descriptor = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666)
    try:
        os.close(descriptor)
    except OSError:
        _remove(temporary)
        raise
    return temporary


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):
        os.unlink(path)


def _write_all(path: Path, data: bytes | bytearray | memoryview) -> None:
    rest = memoryview(data).cast("B")
    descriptor = os.open(path, os.O_WRONLY)
    try:
        while len(rest):
            rest = rest[os.write(descriptor, rest) :]
    finally:
        os.close(descriptor)


def _sync_file(path: Path) -> None:
    descriptor = os.open(path, os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _sync_folder(folder: Path) -> None:
    """Make the rename itself durable; without effect where the platform cannot."""
    if os.name == "nt":
        return
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except PermissionError:
        return
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in _NO_FOLDER_SYNC:
            raise
    finally:
        os.close(descriptor)
