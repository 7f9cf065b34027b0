"""The gate: every byte of a model file, and of what it refers to, comes through here."""

from __future__ import annotations

import base64
import binascii
from collections import Counter
from pathlib import Path

from airworthy.core import files
from airworthy.core.errors import AssetError
from airworthy.core.untrusted import UNPRINTABLE, Untrusted
from airworthy.scenes.formats.model import Limits

_WARNINGS_MAX = 100
_NAME_MAX = 200


class Source(Untrusted):
    """A model file being read: its bytes, its folder, its limits, and what there is to warn of.

    Raises:
        AssetError: The file is missing, unreadable or larger than the limit.
    """

    def __init__(self, path: str | Path, limits: Limits) -> None:
        path = Path(path)
        super().__init__(path, path.parent, limits.string_length)
        self.limits = limits
        self._bytes_read = 0
        self._taken = 0
        self._warnings: Counter[str] = Counter()
        self.data = self._read(self.path)

    def warn(self, what: str, count: int = 1) -> None:
        """Note what was dropped or mended; equal notes are counted together."""
        if what in self._warnings or len(self._warnings) < _WARNINGS_MAX:
            self._warnings[what] += count
        else:
            self._warnings["further remarks left out"] += count

    @property
    def warnings(self) -> tuple[str, ...]:
        """The notes, each with its count where it came more than once."""
        return tuple(what if count == 1 else f"{what} ({count:,})" for what, count in self._warnings.items())

    @property
    def room(self) -> int:
        """Bytes of memory that this file may still take."""
        return int(self.limits.memory_bytes + self.limits.memory_ratio * self._bytes_read) - self._taken

    def take(self, size: int, what: str) -> None:
        """Count memory before it is allocated; refuses the file where it would take too much for its size."""
        if size > self.room:
            self.refuse(
                f"{what} would take {size:,} bytes, and {max(self.room, 0):,} are left for a file of this size"
                " (raise memory_bytes or memory_ratio of the limits)"
            )
        self._taken += size

    def give_back(self, size: int) -> None:
        """Memory that was only needed for a while."""
        self._taken -= size

    def reference(self, uri: str, *, escaped: bool) -> bytes:
        """Bytes of a file named by this one, in its folder or below, or of a data URI.

        Args:
            uri: The name as it stands in the file.
            escaped: Whether it is a URI, in which %20 is a space.

        Raises:
            AssetError: It is remote, absolute, outside the folder, missing or too large.
        """
        if uri[:5].lower() == "data:":
            return self._data_uri(uri)
        return self._read(self.inside(uri, escaped=escaped))

    def _read(self, path: Path) -> bytes:
        data = files.read_bytes(path, max(self.limits.file_bytes - self._bytes_read, 0))
        self._bytes_read += len(data)
        return data

    def _data_uri(self, uri: str) -> bytes:
        head, comma, text = uri.partition(",")
        if not comma or not head.lower().endswith(";base64"):
            self.refuse("it holds a data URI that is not base64")
        if len(text) > self.limits.file_bytes:
            self.refuse(f"it holds a data URI of {len(text):,} characters")
        self.take(len(text), "a data URI")
        try:
            return base64.b64decode(text.encode("ascii"), validate=True)
        except (binascii.Error, UnicodeEncodeError) as error:
            raise AssetError(f"{str(self.path)!r} cannot be used: it holds a data URI with broken base64.") from error


def clean_name(text: str, fallback: str) -> str:
    """A name from a file, fit for terminals and tables; the fallback where nothing is left of it."""
    return UNPRINTABLE.sub("", text)[:_NAME_MAX].strip() or fallback


def unique_name(taken: object, name: str) -> str:
    """The name, with a number behind it where the container has it already."""
    result, number = name, 2
    while result in taken:  # type: ignore[operator]
        result, number = f"{name}_{number}", number + 1
    return result
