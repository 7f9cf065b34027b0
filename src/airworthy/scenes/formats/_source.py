"""The gate: every byte of a model file, and of what it refers to, comes through here."""

from __future__ import annotations

import binascii
import math
import re
from collections import Counter
from pathlib import Path
from typing import Any, NoReturn

from airworthy.core import files
from airworthy.core.errors import AssetError
from airworthy.core.files import UNPRINTABLE, Untrusted
from airworthy.scenes.formats.model import FileLimits

_WARNINGS_MAX = 100
_NAME_MAX = 200
_HEAD_MAX = 200
"""Bytes within which a data URI names its kind."""


class ModelSource(Untrusted):
    """A model file being read: its bytes, its folder, its limits, and what there is to warn of.

    Raises:
        AssetError: The file is missing, unreadable or larger than the limit.
    """

    def __init__(self, path: str | Path, limits: FileLimits) -> None:
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
            # A file could otherwise fill memory with remarks.
            self._warnings["further remarks left out"] += count

    @property
    def warnings(self) -> tuple[str, ...]:
        """The notes, each with its count where it came more than once."""
        return tuple(what if count == 1 else f"{what} ({count:,})" for what, count in self._warnings.items())

    @property
    def room(self) -> int:
        """Bytes of memory that this file may still take."""
        # In proportion to the file: large scenes may take much, a small hostile file may not.
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
        """Give back memory that was only needed for a while."""
        self._taken -= size

    def reference(self, uri: str, *, escaped: bool) -> bytes:
        """Return bytes of a file named by this one, in its folder or below, or of a data URI.

        Args:
            uri: The name as it stands in the file.
            escaped: Whether it is a URI, in which %20 is a space.

        Raises:
            AssetError: It is remote, absolute, outside the folder, missing or too large.
        """
        if uri[:5].lower() == "data:":
            return self.data_uri(uri.encode("utf-8", "replace"))
        return self._read(self.inside(uri, escaped=escaped))

    def _read(self, path: Path) -> bytes:
        # Of all files together that a model names.
        data = files.read_bytes(path, max(self.limits.file_bytes - self._bytes_read, 0))
        self._bytes_read += len(data)
        return data

    def data_uri(self, uri: bytes | memoryview) -> bytes:
        """Return bytes that a data URI holds; the URI is read where it lies, since it may be nearly the whole file.

        Raises:
            AssetError: It is not base64, or too long.
        """
        # A head is short: without a comma near its beginning it is no data URI, however long.
        head = bytes(uri[:_HEAD_MAX]).partition(b",")[0]
        if len(head) == min(len(uri), _HEAD_MAX) or not head.lower().endswith(b";base64"):
            self.refuse("it holds a data URI that is not base64")
        text = memoryview(uri)[len(head) + 1 :]
        if len(text) > self.limits.file_bytes:
            self.refuse(f"it holds a data URI of {len(text):,} characters")
        self.take(len(text), "a data URI")
        try:
            # Before Python 3.13 the strict mode lets some texts pass that end early.
            if len(text) % 4 or re.search(rb"=", text[:-2]):
                raise binascii.Error
            return binascii.a2b_base64(text, strict_mode=True)
        except binascii.Error as error:
            raise AssetError(f"{str(self.path)!r} cannot be used: it holds a data URI with broken base64.") from error


def clean_name(text: str, fallback: str) -> str:
    """Return a name from a file, fit for terminals and tables; the fallback where nothing is left of it."""
    return UNPRINTABLE.sub("", text)[:_NAME_MAX].strip() or fallback


def unique_name(taken: object, name: str) -> str:
    """Return the name, with a number behind it where the container has it already."""
    result, number = name, 2
    while result in taken:  # type: ignore[operator]
        result, number = f"{name}_{number}", number + 1
    return result


# ---- Values of a JSON object, checked as they are taken out: a wrong type is a sentence, not a TypeError --------------------

Table = dict[str, Any]


class JsonFields:
    """An object of a JSON file and where it stands ("node 3")."""

    def __init__(self, source: ModelSource, value: Any, where: str) -> None:
        if not isinstance(value, dict):
            source.refuse(f"{where} is not an object")
        self.source = source
        self.value: Table = value
        self.where = where

    def __contains__(self, key: str) -> bool:
        return key in self.value

    def _wrong(self, key: str, expected: str) -> NoReturn:
        self.source.refuse(f"{key} of {self.where} is not {expected}")

    def integer(self, key: str, default: int | None = None, low: int = 0, high: int = 2**53) -> int:
        """Return a whole number within limits; 3.0 is one.

        Args:
            key: In this object.
            default: Where the key is missing; None: it must be there.
            low: Least value.
            high: One more than the largest.
        """
        value = self.value.get(key, default)
        # Some writers know no integers.
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int):
            self._wrong(key, "a whole number")
        if not low <= value < high:
            self._wrong(key, f"within {low}..{high - 1}")
        return value

    def number(self, key: str, default: float) -> float:
        """Return a finite number."""
        return _number(self, key, self.value.get(key, default))

    def numbers(self, key: str, count: int, default: tuple[float, ...] | None = None) -> tuple[float, ...]:
        """Return a list of so many finite numbers.

        Args:
            key: In this object.
            count: Their number.
            default: Where the key is missing; None: it must be there.
        """
        value = self.value.get(key, default)
        if not isinstance(value, list | tuple) or len(value) != count:
            self._wrong(key, f"a list of {count} numbers")
        return tuple(_number(self, key, item) for item in value)

    def text(self, key: str, default: str | None = None) -> str:
        """Return a string."""
        value = self.value.get(key, default)
        if not isinstance(value, str):
            self._wrong(key, "a string")
        return value

    def flag(self, key: str, default: bool = False) -> bool:
        """Return true or false."""
        value = self.value.get(key, default)
        if not isinstance(value, bool):
            self._wrong(key, "true or false")
        return value

    def items(self, key: str) -> list[Any]:
        """Return a list, empty where it is missing; not longer than the limit of nodes."""
        value = self.value.get(key, [])
        if not isinstance(value, list):
            self._wrong(key, "a list")
        self.source.at_most(len(value), self.source.limits.nodes, f"entries in {key}")
        return value

    def indices(self, key: str, count: int) -> list[int]:
        """Return a list of whole numbers below a count."""
        items = self.items(key)
        for item in items:
            if isinstance(item, bool) or not isinstance(item, int) or not 0 <= item < count:
                self._wrong(key, f"a list of numbers below {count}")
        return items

    def object(self, key: str) -> JsonFields:
        """Return an object, empty where it is missing."""
        return JsonFields(self.source, self.value.get(key, {}), f"{key} of {self.where}")

    def extension(self, name: str) -> JsonFields | None:
        """Return one of its extensions, None where it has not got that."""
        extensions = self.object("extensions")
        return extensions.object(name) if name in extensions else None


def _number(fields: JsonFields, key: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        fields._wrong(key, "a number")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        fields._wrong(key, "a finite number")
    return number
