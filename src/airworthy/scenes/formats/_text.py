"""Numbers and lines of text files, read by array operations: a line costs nanoseconds, not microseconds of Python."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator

import numpy as np

from airworthy.core.arrays import Array, ArrayBool, ArrayInt, ArrayU8, NDArray
from airworthy.scenes.formats._source import ModelSource

BOM = b"\xef\xbb\xbf"
"""With which some programs begin a text that is UTF-8."""
BLOCK = 1 << 18
"""Text is handled in blocks of this many bytes, which bounds the memory for intermediate results."""
_BLANKS = bytes.maketrans(b"\t\v\f\r", b"   \n")
_COMMENT = re.compile(rb"(?:^|(?<=[ \n]))#[^\n]*")
_INDENT = re.compile(rb"(?m)^ +")


def _table(characters: bytes) -> ArrayBool:
    table = np.zeros(256, bool)
    table[np.frombuffer(characters, np.uint8)] = True
    return table


_FLOAT = _table(b"0123456789+-.eE \nnaifNAIFtyTY")
_INTEGER = _table(b"0123456789- \n")


def blocks(source: ModelSource, data: bytes) -> Iterator[bytes]:
    """Yield whole lines, a block at a time: without comments, indentation, tabs and carriage returns; each ends in a line
    end."""
    start = 0
    while start < len(data):
        end = len(data) if len(data) - start <= BLOCK else data.rfind(b"\n", start, start + BLOCK) + 1
        if not end:
            source.refuse(f"it holds a line of more than {BLOCK:,} bytes")
        block = data[start:end].translate(_BLANKS)
        start = end
        if not block.endswith(b"\n"):
            block += b"\n"
        if b"#" in block:
            block = _COMMENT.sub(b"", block)
        if block.startswith(b" ") or b"\n " in block:
            block = _INDENT.sub(b"", block)
        yield block


def decoded(line: bytes) -> str:
    """Return a line of a file as text: UTF-8, or Latin-1 where it is none, so that two names do not become one."""
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError:
        return line.decode("latin-1")


def floats(source: ModelSource, text: bytes, what: str) -> Array:
    """Return all numbers of a text, NaN and infinity among them, separated by blanks; refuses whatever else it holds.

    Args:
        source: Refuses, and counts memory.
        text: Cleaned by `blocks`.
        what: Names the numbers in messages.
    """
    return _numbers(source, text, _FLOAT, np.float64, what)


def integers(source: ModelSource, text: bytes, what: str) -> ArrayInt:
    """Return all integers of a text; too large ones come back as the largest there is.

    Args:
        source: Refuses, and counts memory.
        text: Cleaned by `blocks`.
        what: Names the numbers in messages.
    """
    return _numbers(source, text, _INTEGER, np.int64, what)


def _numbers(source: ModelSource, text: bytes, allowed: ArrayBool, kind: type, what: str) -> NDArray:
    characters = np.frombuffer(text, np.uint8)
    good = allowed[characters]
    # A look-up for each byte, since the parser below stops at what it cannot read.
    if not good.all():
        source.refuse(f"{what} hold the character {chr(characters[int(good.argmin())])!r}, where numbers are expected")
    count = int(token_starts(characters).sum())
    if not count:
        return np.zeros(0, kind)
    with warnings.catch_warnings():
        # NumPy tells of an unreadable rest by a warning; the count of what it could read says the same.
        warnings.simplefilter("error", DeprecationWarning)
        try:
            values: NDArray = np.fromstring(text, kind, sep=" ")
        except (DeprecationWarning, ValueError):
            values = np.zeros(0, kind)
    if len(values) != count:
        source.refuse(f"{what} hold something that is not a number")
    return values


def token_starts(characters: ArrayU8) -> ArrayBool:
    """Return where a word begins: a character above a blank, after a blank or at the start."""
    # Blanks and line ends lie below; nothing else that does was left.
    solid = characters > 32
    solid[1:] &= characters[:-1] <= 32
    return solid


class Lines:
    """The lines of a block and the words they begin with."""

    def __init__(self, block: bytes) -> None:
        self.block = block
        self.characters = np.frombuffer(block, np.uint8)
        ends = np.flatnonzero(self.characters == 10)
        self.starts = np.concatenate([[0], ends[:-1] + 1])
        self.lengths = ends + 1 - self.starts

    def __len__(self) -> int:
        return len(self.starts)

    def begin_with(self, key: bytes) -> ArrayBool:
        """Return (lines,) whose first word is this one."""
        last = len(self.characters) - 1
        result = np.ones(len(self), bool)
        for offset, character in enumerate(key):
            result &= self.characters[np.minimum(self.starts + offset, last)] == character
        return result & (self.characters[np.minimum(self.starts + len(key), last)] <= 32)

    def rest(self, chosen: ArrayBool, token_length: int) -> bytes:
        """Return the text of the chosen lines with their first word blanked out."""
        text = self.characters[np.repeat(chosen, self.lengths)]
        lengths = self.lengths[chosen]
        first = np.cumsum(lengths) - lengths
        for offset in range(token_length):
            text[first + offset] = 32
        return text.tobytes()

    def text(self, line: int) -> str:
        """Return one line as text."""
        start = int(self.starts[line])
        return decoded(self.block[start : start + int(self.lengths[line])]).strip()


def tokens_per_line(text: bytes) -> ArrayInt:
    """Return (lines,) number of words."""
    characters = np.frombuffer(text, np.uint8)
    if not len(characters):
        return np.zeros(0, np.int64)
    ends = np.flatnonzero(characters == 10)
    starts = np.concatenate([[0], ends[:-1] + 1])
    # Every line has its line end, so that no span of `reduceat` is empty.
    return np.add.reduceat(token_starts(characters), starts, dtype=np.int64)


def columns(source: ModelSource, text: bytes, least: int, what: str) -> tuple[Array, ArrayInt]:
    """Return the first columns of lines of numbers that may differ in length.

    Args:
        source: Refuses, and counts memory.
        text: Cleaned by `blocks`, whole lines.
        least: Numbers that every line must have.
        what: Names the lines in messages.

    Returns:
        (lines, 7) values with NaN where a line is shorter, and (lines,) the number of columns of each.
    """
    counts = tokens_per_line(text)
    values = floats(source, text, what)
    if len(counts) and counts.min() < least:
        source.refuse(f"{what} have {counts.min()} numbers in a line, where {least} or more are expected")
    # Seven: the longest line of a vertex has position, weight and colour.
    table = np.full((len(counts), 7), np.nan)
    if len(counts) and counts.min() == counts.max():
        width = min(int(counts[0]), 7)
        table[:, :width] = values.reshape(len(counts), -1)[:, :width]
        return table, counts
    first = np.cumsum(counts) - counts
    for column in range(7):
        there = counts > column
        table[there, column] = values[first[there] + column]
    return table, counts
