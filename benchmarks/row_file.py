"""Rows of a table that grows: kept in a file of lines as they are flown, so that a stopped table goes on."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from benchmarks import hardware


class RowFile:
    """Rows that are kept, and those that were.

    Args:
        path: A file of JSON lines; made where it is missing.
        known: Fields by which a row is known again.
    """

    def __init__(self, path: Path, known: Iterable[str]):
        path.parent.mkdir(parents=True, exist_ok=True)
        self._path, self._known = path, tuple(known)
        self.rows: list[dict[str, Any]] = []
        if path.is_file():
            self.rows = [json.loads(line) for line in path.read_text().splitlines()]

    def has(self, *values: Any) -> bool:
        """Return whether there is a row with these values of the fields it is known by."""
        return any(tuple(row.get(name) for name in self._known) == values for row in self.rows)

    def add(self, row: dict[str, Any]) -> None:
        """Keep a row, and show it to who watches."""
        text = json.dumps(row)
        self.rows.append(row)
        print(text, file=sys.stderr, flush=True)
        with self._path.open("a") as file:
            file.write(f"{text}\n")


def machine_line() -> str:
    """Return what rows were flown on, and how busy it is."""
    return f"{json.dumps(hardware.describe(sorted(os.sched_getaffinity(0))))} load {os.getloadavg()[0]:.1f}"
