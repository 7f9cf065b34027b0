"""`airworthy bench replay`: fly one row of a benchmark again, compare every byte, and look at it."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from tyro.conf import Positional

from airworthy.cli.common import emit_json, run_tyro

_DESCRIPTION = (
    "Fly one row of results.parquet again from what the row says, compare it byte for byte, and open the flight in the browser."
)


@dataclass(frozen=True)
class ReplayRecordConfig:
    """Which row."""

    folder: Positional[Path]
    """A folder of `airworthy bench navigation`."""
    row: Positional[int]
    """Number of the row, from 0 on."""
    pilot: str = ""
    """The pilot's word, where its file has moved: FILE.py:CLASS."""
    view: bool = True
    """Open the flight in the browser afterwards; Ctrl-C ends it. Without a terminal nobody could: then nothing is opened."""
    json: bool = False
    """Print the comparison as JSON, and open nothing."""


def main(argv: list[str]) -> int:
    """Run the command; returns 0 where the bytes are equal, else 1."""
    config = run_tyro(ReplayRecordConfig, argv, "airworthy bench replay", _DESCRIPTION)
    from airworthy.benchmarks.navigation.replay import replay_row

    found = replay_row(config.folder, config.row, pilot=config.pilot)
    row = found.recorded
    if config.json:
        verdict = {
            "equal": found.equal,
            "differs": list(found.differs),
            "folder": None if found.folder is None else str(found.folder),
        }
        emit_json({**verdict, "recorded": row, "repeated": found.repeated})
        return 0 if found.equal else 1
    what = f"{row['pilot']} on {row['vehicle']} in {row['scenario']} {row['configuration']}: {row['outcome']}"
    if found.equal:
        print(f"Equal, every byte of the row and of the flight's states: {what} after {row['time_s']:.2f} s.")
    else:
        print(
            f"Different in {', '.join(found.differs)}: {what}; recorded by {found.recorded_versions}, repeated by"
            f" {found.version}. Equal bits are promised for the same version and device type."
        )
    if found.folder is None:
        print("No flight is kept: it ended before its goal was issued.")
        return 0 if found.equal else 1
    print(f"The flight: {found.folder}")
    if config.view and sys.stdin.isatty() and sys.stdout.isatty():
        from airworthy.cli.view import main as view

        view([str(found.folder), "--open"])
    return 0 if found.equal else 1
