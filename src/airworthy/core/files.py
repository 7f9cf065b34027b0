"""Files that survive a crash and readers that survive hostile input.

Writing is atomic: a reader, or the machine after a power cut, sees the old file or the new one, never a mixture, and a
failure leaves nothing behind. Reading is bounded: a size limit is checked before anything is allocated, and whatever is wrong
with the file becomes one `AssetError`.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from airworthy.core._atomic import json_text, make_folder, write_atomic, write_bytes, write_json, write_text
from airworthy.core._bounded import LIMIT_BYTES, STRUCTURED_LIMIT_BYTES, parse_json, read_bytes, read_json, read_text, read_toml
from airworthy.core._lock import lock_folder
from airworthy.core.errors import AirworthyError, AssetError

__all__ = [
    "LIMIT_BYTES",
    "STRUCTURED_LIMIT_BYTES",
    "data_dir",
    "json_text",
    "lock_folder",
    "make_folder",
    "parse_json",
    "read_bytes",
    "read_json",
    "read_text",
    "read_toml",
    "sha256",
    "sha256_file",
    "write_atomic",
    "write_bytes",
    "write_json",
    "write_text",
]


def sha256(data: bytes | bytearray | memoryview | str) -> str:
    """SHA-256 of bytes, or of a text's UTF-8 bytes, as 64 hexadecimal digits."""
    return hashlib.sha256(data.encode() if isinstance(data, str) else data).hexdigest()


def sha256_file(path: str | Path) -> str:
    """SHA-256 of a file of any size, read in blocks; raises AssetError when it cannot be read."""
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise AssetError(f"Could not read {str(path)!r}: {error.strerror or error}.") from error


def data_dir() -> Path | None:
    """Folder of the reference files, from the environment variable AIRWORTHY_DATA; None where it is unset or empty.

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
