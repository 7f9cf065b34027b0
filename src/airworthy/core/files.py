"""Files that survive a crash and readers that survive hostile input.

Writing is atomic: a reader, or the machine after a power cut, sees the old file or the new one, never a mixture, and a
failure leaves nothing behind. Reading is bounded: a size limit is checked before anything is allocated, and whatever is wrong
with the file becomes one `AssetError`.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
import tomllib
from collections.abc import Iterable
from importlib.resources import files
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import unquote

import numpy as np

from airworthy.core._atomic import (
    json_text,
    make_folder,
    path_given,
    refuse_unwritable,
    write_atomic,
    write_bytes,
    write_json,
    write_text,
)
from airworthy.core._staged import StagedFolder, lock_folder, staged_folder
from airworthy.core.errors import AirworthyError, AssetError, no_file

__all__ = [
    "LIMIT_BYTES",
    "NAME_MAX",
    "STRUCTURED_LIMIT_BYTES",
    "UNPRINTABLE",
    "StagedFolder",
    "Untrusted",
    "copy_file",
    "data_dir",
    "harmless",
    "image_kind",
    "json_text",
    "lock_folder",
    "make_folder",
    "packaged_toml",
    "parse_json",
    "parse_toml",
    "path_given",
    "read_bytes",
    "read_json",
    "read_text",
    "read_toml",
    "refuse_unwritable",
    "sha256",
    "sha256_file",
    "shown",
    "staged_folder",
    "write_atomic",
    "write_bytes",
    "write_json",
    "write_text",
]

# -----------------------------------------------------------------------------------------------------------------------------
# Files from elsewhere, which may be hostile: what they name is only read in their own folder, and quoted harmlessly.

NAME_MAX = 1024
"""Characters of a name that a file may use for another."""
UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff\u2028\u2029\u202a-\u202e\u2066-\u2069]")
"""What disturbs a terminal or no file system keeps: control characters, lone surrogates, line ends, changes of direction."""

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:")


class Untrusted:
    """A file or folder from elsewhere, and the folder that nothing it names may leave.

    Args:
        path: What messages call it.
        folder: Where everything that it names has to lie, or below.
        name_max: Characters of a name.
    """

    def __init__(self, path: Path, folder: Path, name_max: int = NAME_MAX) -> None:
        self.path = path
        self._root = os.path.realpath(folder)
        self._name_max = name_max

    def refuse(self, reason: str) -> NoReturn:
        """Raise its AssetError, for a reason that completes "... cannot be used:"."""
        raise AssetError(f"{str(self.path)!r} cannot be used: {reason}.")

    def at_most(self, count: int, limit: int, what: str) -> None:
        """Refuse more of something than the limits allow.

        Args:
            count: How many the file has.
            limit: How many are accepted.
            what: Plural of what is counted, for the sentence.
        """
        if count > limit:
            self.refuse(f"it has {count:,} {what}, and at most {limit:,} are accepted")

    def inside(self, name: str, *, escaped: bool = False) -> Path:
        """Return path, free of links, of a file that it names; whether there is one is not looked at.

        Args:
            name: As it stands in the file; a backslash separates folders, too.
            escaped: Whether it is a URI, in which %20 is a space. It is decoded once, and what comes out is looked at.

        Raises:
            AssetError: The name is empty, too long, unprintable, remote, absolute, or leads out of the folder, also by a link.
        """
        if len(name) > self._name_max:
            self.refuse(f"it refers to a file by a name of {len(name):,} characters")
        plain = unquote(name) if escaped else name
        if not plain or UNPRINTABLE.search(plain):
            self.refuse(f"it refers to a file by the name {shown(plain)}")
        plain = plain.replace("\\", "/")
        if _SCHEME.match(plain) or plain.startswith("/"):
            self.refuse(f"it refers to {shown(name)}; only files in its own folder are read, no remote or absolute ones")
        try:
            path = os.path.realpath(os.path.join(self._root, plain))
            within = os.path.commonpath([path, self._root]) == self._root
        except (OSError, ValueError):
            within = False
        if not within:
            self.refuse(f"it refers to {shown(name)}, which is outside its own folder")
        return Path(path)


def harmless(text: str) -> str:
    """Return words from elsewhere without what would disturb a terminal or a page: escape codes, line ends, changes of
    direction, each as a question mark."""
    return UNPRINTABLE.sub("?", text)


def shown(text: str) -> str:
    """Return a string of a file as a message quotes it: short, and without what would disturb a terminal."""
    text = harmless(text)
    return repr(text if len(text) <= 60 else text[:57] + "...")


def image_kind(data: bytes) -> str:
    """Return the format of an image by its first bytes, as Pillow calls it: PNG, JPEG, WEBP; empty where it is none of
    these."""
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return "PNG"
    if data.startswith(b"\xff\xd8\xff"):
        return "JPEG"
    return "WEBP" if data[:4] == b"RIFF" and data[8:12] == b"WEBP" else ""


# -----------------------------------------------------------------------------------------------------------------------------

# ---- Bounded reading of text, JSON and TOML: whatever is wrong with a file becomes one `AssetError` -------------------------

LIMIT_BYTES = 64 * 1024 * 1024
"""Default limit of a file read as bytes or text."""
STRUCTURED_LIMIT_BYTES = 2 * 1024 * 1024
"""Default limit of a JSON or TOML file, whose Python form can take 24 times its size."""
DEPTH_MAX = 64
"""Deepest nesting of lists and tables that is accepted."""

_BLOCK = 1 << 20


def read_bytes(path: str | Path, limit_bytes: int = LIMIT_BYTES) -> bytes:
    """Return the content of a regular file.

    Raises:
        AssetError: The file is missing, a folder, a pipe or device, unreadable, or larger than the limit.
    """
    try:
        # Without O_NONBLOCK, opening a named pipe would wait for its writer for ever.
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except FileNotFoundError as error:
        raise AssetError(no_file(path)) from error
    except (OSError, ValueError) as error:
        raise AssetError(f"Could not read {str(path)!r}: {getattr(error, 'strerror', None) or error}.") from error
    try:
        return _read_open(descriptor, path, limit_bytes)
    except OSError as error:
        raise AssetError(f"Could not read {str(path)!r}: {error.strerror or error}.") from error
    finally:
        os.close(descriptor)


def _read_open(descriptor: int, path: str | Path, limit_bytes: int) -> bytes:
    status = os.fstat(descriptor)
    if stat.S_ISDIR(status.st_mode):
        raise AssetError(f"{str(path)!r} is a folder; a file was expected.")
    if not stat.S_ISREG(status.st_mode):
        raise AssetError(f"{str(path)!r} is not a regular file.")
    if status.st_size > limit_bytes:
        _too_large(path, status.st_size, limit_bytes)
    blocks: list[bytes] = []
    length = 0
    # The size is checked again while reading: a file may grow, and some system files report a size of 0. One byte more than
    # there should be is asked for: a small file then takes two small reads, not a block that is as large as any.
    size = min(_BLOCK, status.st_size + 1)
    while block := os.read(descriptor, size):
        blocks.append(block)
        length += len(block)
        if length > limit_bytes:
            _too_large(path, length, limit_bytes)
    return b"".join(blocks)


def _too_large(path: str | Path, size: int, limit: int) -> NoReturn:
    raise AssetError(f"{str(path)!r} has {size:,} bytes or more; at most {limit:,} are accepted here.")


def copy_file(source: str | Path, target: str | Path, limit_bytes: int = LIMIT_BYTES) -> Path:
    """Copy the content of a file atomically; returns the copy's path. What goes wrong names the file of the two that it is of.

    Args:
        source: To read; see `read_bytes`.
        target: To write; see `write_bytes`.
        limit_bytes: More is refused unread.
    """
    return write_bytes(target, read_bytes(source, limit_bytes))


def read_text(path: str | Path, limit_bytes: int = LIMIT_BYTES) -> str:
    """Return UTF-8 text of a file, a byte order mark removed; raises AssetError as `read_bytes`, and where it is not UTF-8."""
    data = read_bytes(path, limit_bytes)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise AssetError(f"{str(path)!r} is not UTF-8 text: byte {error.start} is 0x{data[error.start]:02x}.") from error


def read_json(path: str | Path, limit_bytes: int = STRUCTURED_LIMIT_BYTES) -> Any:
    """Return the value of a JSON file; raises AssetError as `read_text` and `parse_json`."""
    return parse_json(read_text(path, limit_bytes), str(path))


def parse_json(text: str, name: str) -> Any:
    """Return the value of JSON text.

    Args:
        text: The text; the caller has bounded its length.
        name: What to call it in the message.

    Raises:
        AssetError: It is not JSON (NaN and Infinity are not), holds a number of too many digits, or nests too deep.
    """
    _check_text_depth(_JSON_STRING.sub("", text), name)
    try:
        value = json.loads(text, parse_constant=_not_json)
    except (ValueError, RecursionError) as error:
        raise AssetError(f"{name!r} is not valid JSON: {_reason(error)}.") from error
    _check_depth(value, name)
    return value


def read_toml(path: str | Path, limit_bytes: int = STRUCTURED_LIMIT_BYTES) -> dict[str, Any]:
    """Return tables of a TOML file; raises AssetError as `read_text`, and where it is not TOML or nests too deep."""
    return parse_toml(read_text(path, limit_bytes), str(path))


def parse_toml(text: str, name: str) -> dict[str, Any]:
    """Return tables of TOML text whose length the caller has bounded; raises AssetError as `read_toml`, calling it by a
    name."""
    bare = _TOML_STRING.sub(_toml_token, text)
    _check_text_depth(bare, name)
    if _longest_key(bare) > DEPTH_MAX:
        _too_deep(name)
    try:
        value = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise AssetError(f"{name!r} is not valid TOML: {_reason(error)}.") from error
    _check_depth(value, name)
    return value


def packaged_toml(package: str, name: str) -> dict[str, Any]:
    """Return tables of a TOML file that comes with a package.

    Args:
        package: Dotted name of the package.
        name: Of the file, from the folder of the package on.

    Raises:
        AssetError: It is not where it was installed.
    """
    try:
        return tomllib.loads(files(package).joinpath(name).read_text("utf-8"))
    except OSError as error:
        raise AssetError(
            f"The file {name!r} of {package} is missing from the installation: install airworthy again."
        ) from error


_JSON_STRING = re.compile(r'"(?:[^"\\]|\\.)*+"', re.DOTALL)
_TOML_STRING = re.compile(
    # Up to two quotes more belong to it. Nothing looks ahead within what is not given back: Python 3.11.2 loses its place.
    r'"""(?:""?(?:[^"\\]|\\.)|[^"\\]|\\.)*+(?:"""(?:""?(?!"))?|"{0,2}\Z)'
    r"|'''(?:''?[^']|[^'])*+(?:'''(?:''?(?!'))?|'{0,2}\Z)"
    r'|"(?:[^"\\\n]|\\[^\n])*+"?'
    r"|'[^'\n]*+'?"
    r"|\#[^\n]*+",
    re.DOTALL,
)


def _toml_token(match: re.Match[str]) -> str:
    """Return what stands for a string or a comment where only nesting counts."""
    return "" if match[0].startswith("#") else "s"


def _check_text_depth(bare: str, name: str) -> None:
    """Refuse text whose brackets nest too deep before a parser meets it: some take quadratic time and memory for it."""
    symbols = np.frombuffer(_NOT_BRACKETS.sub("", bare).encode(), np.uint8)
    if int(np.cumsum(_OPENS[symbols], dtype=np.int32).max(initial=0)) > DEPTH_MAX:
        _too_deep(name)


def _longest_key(bare: str) -> int:
    """Most dots in one piece of TOML between signs that end a key."""
    symbols = np.frombuffer(_NOT_OF_KEYS.sub("", bare).encode(), np.uint8)
    dots = np.cumsum(symbols == ord("."), dtype=np.int32)
    before = np.where(_ENDS_KEY[symbols], dots, 0)  # dots never fall, so that the last end is the largest
    return int((dots - np.maximum.accumulate(before)).max(initial=0))


_NOT_BRACKETS = re.compile(r"[^\[\]{}]++")
_NOT_OF_KEYS = re.compile(r"[^.\n=,\[\]{}]++")
_OPENS = np.zeros(256, np.int8)
_OPENS[[ord(sign) for sign in "[{"]] = 1
_OPENS[[ord(sign) for sign in "]}"]] = -1
_ENDS_KEY = np.zeros(256, bool)
_ENDS_KEY[[ord(sign) for sign in "\n=,[]{}"]] = True


def _too_deep(name: str) -> NoReturn:
    raise AssetError(f"{name!r} is nested deeper than {DEPTH_MAX} levels.")


def _not_json(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not a JSON number, write null")


def _reason(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return f"nested deeper than {DEPTH_MAX} levels"
    reason = str(error).splitlines()[0].rstrip(".")[:200]
    first = reason.partition(" ")[0]
    return reason[0].lower() + reason[1:] if first[1:].islower() else reason  # "Expecting", but not "NaN"


def _check_depth(value: Any, name: str) -> None:
    """Refuse nesting that would exhaust the stack of whoever walks the value."""
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(DEPTH_MAX):
        if not level:
            return
        level = [item for container in level for item in _items(container) if isinstance(item, dict | list)]
    if level:
        _too_deep(name)


def _items(container: dict[str, Any] | list[Any]) -> Iterable[Any]:
    return container.values() if isinstance(container, dict) else container


# -----------------------------------------------------------------------------------------------------------------------------


def sha256(data: bytes | bytearray | memoryview | str) -> str:
    """Return the SHA-256 of bytes, or of a text's UTF-8 bytes, as 64 hexadecimal digits."""
    return hashlib.sha256(data.encode() if isinstance(data, str) else data).hexdigest()


def sha256_file(path: str | Path) -> str:
    """Return the SHA-256 of a file of any size, read in blocks; raises AssetError when it cannot be read."""
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise AssetError(f"Could not read {str(path)!r}: {error.strerror or error}.") from error


def data_dir() -> Path | None:
    """Return the folder of the reference files, from the environment variable AIRWORTHY_DATA; None where it is unset or empty.

    Raises:
        AirworthyError: The variable names something that is not a folder.
    """
    value = os.environ.get("AIRWORTHY_DATA", "")
    if not value:
        return None
    folder = Path(value)
    if not folder.is_dir():
        raise AirworthyError(
            f"AIRWORTHY_DATA is {value!r}, which is not a folder: unset it, or point it at the reference files."
        )
    return folder
