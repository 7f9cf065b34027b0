"""Text as spreadsheets and other programs write it, made comma-separated UTF-8: encodings, line ends, separators, decimal
commas and comments above the names of columns. What was not plain is noted."""

from __future__ import annotations

import codecs
import re

from airworthy.logs.building import LogDraft

_LOOK_BYTES = 1 << 16
"""Ours: how much of a file is looked at to tell how it is written."""
_UTF16 = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}
_DECIMAL_COMMA = re.compile(rb'\s*"?[-+]?\d*,\d+([eE][-+]?\d+)?"?\s*')
_NUMBER = re.compile(rb'\s*"?([-+]?(\d+[.,]?\d*|[.,]\d+)([eE][-+]?\d+)?|[-+]?(nan|inf)|)"?\s*', re.IGNORECASE)
_NAMES = {b",": "commas", b";": "semicolons", b"\t": "tabs", b" ": "blanks"}


def legible(data: bytes) -> tuple[bytes, list[str]]:
    """Return text as UTF-8 without a mark of its encoding, with line feeds at the ends of its lines, and what was changed."""
    told = []
    for mark, name in _UTF16.items():
        if data.startswith(mark):
            data = data[len(mark) :].decode(name, "replace").encode("utf-8", "replace")
            told.append(f"The text is {name.upper()}.")
    data = data.removeprefix(codecs.BOM_UTF8)
    if not data.isascii() and b"\0" not in data[:_LOOK_BYTES]:
        try:
            data.decode("utf-8")
        except UnicodeDecodeError as error:
            data = data.decode("latin-1").encode()
            told.append(f"The text is no UTF-8 (byte {error.start}); it is taken for Latin-1.")
    if b"\n" not in data[:_LOOK_BYTES] and b"\r" in data[:_LOOK_BYTES]:
        data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        told.append("Lines end with carriage returns alone.")
    return data, told


def comma_separated(data: bytes, draft: LogDraft) -> bytes:
    """Return a table of text with commas between its columns and points in its numbers.

    Columns may be separated by commas, semicolons, tabs or blanks, decimals by points or, but for the first, by commas. Lines
    of comments above the table begin with '#'.

    Args:
        data: Text as of `legible`.
        draft: Takes notes of what is not comma-separated.
    """
    lines = [line for line in data[:_LOOK_BYTES].splitlines(keepends=True) if line.strip()]
    first = next((k for k, line in enumerate(lines) if not line.lstrip().startswith(b"#")), None)
    if first is None:
        return data
    separator = _separator(lines[first])
    head = first
    if _numeric(lines[first], separator):
        # Names may stand in the last comment: one that has as many cells.
        count = len(_cells(lines[first], separator))
        head = next((k for k in range(first - 1, -1, -1) if len(_cells(lines[k], separator)) == count), first)
    if head:
        draft.note(f"{head} lines of comments above the table were passed over.")
        data = data[data.index(lines[head]) :]
    if separator == b",":
        return data
    comma = any(_DECIMAL_COMMA.fullmatch(cell) for line in lines[first:] for cell in _cells(line, separator))
    draft.note(f"Columns are separated by {_NAMES[separator]}, decimals by {'commas' if comma else 'points'}.")
    data = data.replace(b",", b"." if comma else b" ")
    if separator == b" ":
        return re.sub(rb"[ \t]+", b",", re.sub(rb"(?m)^[ \t]+|[ \t\r]+$", b"", data))
    return data.replace(separator, b",")


def _separator(line: bytes) -> bytes:
    """Return what separates the cells of a line: what it holds most of, blanks where it holds nothing else."""
    most = max((b";", b"\t", b","), key=line.count)
    if line.count(most):
        return most
    return b" " if len(line.split()) > 1 else b","


def _cells(line: bytes, separator: bytes) -> list[bytes]:
    line = line.strip(b"\r\n")
    return line.strip().removeprefix(b"#").split() if separator == b" " else line.split(separator)


def _numeric(line: bytes, separator: bytes) -> bool:
    return all(_NUMBER.fullmatch(cell) for cell in _cells(line, separator))
