"""Bounded reading of bytes: nothing is taken that is not there, and every refusal says where."""

from __future__ import annotations

import struct
from typing import Any

from airworthy.core.errors import AssetError


class EndOfData(AssetError):
    """The file ends before what was begun: a damaged tail, or a header that is cut."""


class ByteCursor:
    """A place in bytes that moves on.

    Args:
        data: The bytes.
        name: What messages call them ("Log 'a.ulg'").
        start: First byte.
        stop: Byte behind the last one; None: all.
    """

    def __init__(self, data: bytes | memoryview, name: str, start: int = 0, stop: int | None = None) -> None:
        self.data = memoryview(data)
        self.name = name
        self.at = start
        self.stop = len(data) if stop is None else min(stop, len(data))

    @property
    def left(self) -> int:
        """Bytes that are left."""
        return self.stop - self.at

    def refuse(self, reason: str, at: int | None = None) -> AssetError:
        """Return the error for what stands here."""
        return AssetError(f"{self.name}: {reason} (byte {self.at if at is None else at}).")

    def take(self, count: int, what: str) -> memoryview:
        """Return the next bytes.

        Raises:
            EndOfData: Fewer are left.
        """
        if count < 0 or count > self.left:
            raise EndOfData(f"{self.name}: {what} takes {count} bytes at byte {self.at}, and {self.left} are left.")
        self.at += count
        return self.data[self.at - count : self.at]

    def unpack(self, layout: str, what: str) -> tuple[Any, ...]:
        """Return the values of a `struct` layout, little endian unless it says otherwise."""
        layout = layout if layout[:1] in "<>" else "<" + layout
        return struct.unpack(layout, self.take(struct.calcsize(layout), what))

    def text(self, longest: int, what: str) -> str:
        """Return a text that ends with a zero byte.

        Raises:
            EndOfData: There is no zero byte before the end.
            AssetError: The text is longer than it may be.
        """
        window = bytes(self.data[self.at : min(self.at + longest + 1, self.stop)])
        end = window.find(b"\0")
        if end < 0:
            if len(window) > longest:
                raise self.refuse(f"{what} has over {longest} characters")
            raise EndOfData(f"{self.name}: {what} at byte {self.at} has no end.")
        self.at += end + 1
        return window[:end].decode("utf-8", "replace")
