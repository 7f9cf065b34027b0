"""Bounded reading of text, JSON and TOML: whatever is wrong with a file becomes one `AssetError`."""

from __future__ import annotations

import json
import os
import stat
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NoReturn

from airworthy.core.errors import AssetError

LIMIT_BYTES = 64 * 1024 * 1024
"""Default limit of a file read as bytes or text."""
STRUCTURED_LIMIT_BYTES = 2 * 1024 * 1024
"""Default limit of a JSON or TOML file, whose Python form can take 24 times its size."""
DEPTH_MAX = 64
"""Deepest nesting of lists and tables that is accepted."""

_BLOCK = 1 << 20


def read_bytes(path: str | Path, limit_bytes: int = LIMIT_BYTES) -> bytes:
    """Content of a regular file.

    Raises:
        AssetError: The file is missing, a folder, a pipe or device, unreadable, or larger than the limit.
    """
    try:
        # Without O_NONBLOCK, opening a named pipe would wait for its writer for ever.
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except FileNotFoundError as error:
        raise AssetError(f"There is no file {str(path)!r}.") from error
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


def read_text(path: str | Path, limit_bytes: int = LIMIT_BYTES) -> str:
    """UTF-8 text of a file, a byte order mark removed; raises AssetError as `read_bytes`, and where it is not UTF-8."""
    data = read_bytes(path, limit_bytes)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise AssetError(f"{str(path)!r} is not UTF-8 text: byte {error.start} is 0x{data[error.start]:02x}.") from error


def read_json(path: str | Path, limit_bytes: int = STRUCTURED_LIMIT_BYTES) -> Any:
    """Value of a JSON file; raises AssetError as `read_text` and `parse_json`."""
    return parse_json(read_text(path, limit_bytes), str(path))


def parse_json(text: str, name: str) -> Any:
    """Value of JSON text.

    Args:
        text: The text; the caller has bounded its length.
        name: What to call it in the message.

    Raises:
        AssetError: It is not JSON (NaN and Infinity are not), holds a number of too many digits, or nests too deep.
    """
    try:
        value = json.loads(text, parse_constant=_not_json)
    except (ValueError, RecursionError) as error:
        raise AssetError(f"{name!r} is not valid JSON: {_reason(error)}.") from error
    _check_depth(value, name)
    return value


def read_toml(path: str | Path, limit_bytes: int = STRUCTURED_LIMIT_BYTES) -> dict[str, Any]:
    """Tables of a TOML file; raises AssetError as `read_text`, and where it is not TOML or nests too deep."""
    text = read_text(path, limit_bytes)
    try:
        value = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise AssetError(f"{str(path)!r} is not valid TOML: {_reason(error)}.") from error
    _check_depth(value, str(path))
    return value


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
        raise AssetError(f"{name!r} is nested deeper than {DEPTH_MAX} levels.")


def _items(container: dict[str, Any] | list[Any]) -> Iterable[Any]:
    return container.values() if isinstance(container, dict) else container
