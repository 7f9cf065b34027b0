"""`airworthy bench arena`: rank pilots over places, vehicles and speed, from rows that are there."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from tyro.conf import Positional

from airworthy.cli.common import emit_json, run_tyro, show_table

_DESCRIPTION = (
    "Write one page that ranks pilots over places, vehicles and speed, from the rows of folders that `airworthy bench"
    " navigation` wrote and from nothing else. Ties are called ties. Nothing is flown."
)


@dataclass(frozen=True)
class ArenaConfig:
    """Whose rows are ranked."""

    folders: Positional[tuple[Path, ...]] = (Path("docs/results"),)
    """Folders of `airworthy bench navigation`, or folders that hold such folders."""
    out: Path = Path("docs/results/arena.html")
    """The page; its links lead from there to the rows."""
    json: bool = False
    """Print JSON."""


def main(argv: list[str]) -> int:
    """Run the command; returns the exit code."""
    config = run_tyro(ArenaConfig, argv, "airworthy bench arena", _DESCRIPTION)
    from airworthy.benchmarks.navigation.arena.page import write_arena

    found = write_arena(config.folders, config.out)
    for line in found.left_out:
        print(f"Warning: left out of the arena, {line}", file=sys.stderr)
    if config.json:
        emit_json({"page": str(found.page), "left_out": found.left_out, "standings": found.standings})
        return 0
    heads = ("rank", "pilot", "success [%]", "other layouts", "flights", "score", "final", "with time")
    for limit, rows in found.standings.items():
        show_table(f"At {limit}; = is a tie", heads, [tuple(row.values()) for row in rows])
    print(f"Arena: {found.page}")
    return 0
