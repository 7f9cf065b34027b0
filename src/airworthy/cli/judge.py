"""`airworthy judge`: summary and report of flights that were recorded, without flying them again."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tyro.conf import Positional

from airworthy.benchmarks.fly.metrics import judge
from airworthy.cli.common import emit_json, interrupted, run_tyro, stopped_by_terminate
from airworthy.cli.fly import show_summary

_DESCRIPTION = (
    "Judge the flights of a run again, from its folder alone: writes summary.json and report.html, and the film where one was"
    " asked for and is missing. Completes a run that was interrupted after its flights, to the same bytes."
)


@dataclass(frozen=True)
class JudgeConfig:
    """What to judge."""

    folder: Positional[Path]
    """A folder that `airworthy fly` wrote."""
    json: bool = False
    """Print summary.json's aggregate instead of a table."""


def main(argv: list[str]) -> int:
    """Run the command; returns the exit code: 130 after Ctrl-C, 143 after a request to terminate."""
    config = run_tyro(JudgeConfig, argv, "airworthy judge", _DESCRIPTION)
    with stopped_by_terminate() as received:
        found = judge(config.folder, quiet=config.json)
    if config.json:
        emit_json({"folder": str(found.folder), **found.summary["aggregate"]})
    else:
        show_summary(found.folder, found.summary)
    if found.filmed.interrupted:
        return interrupted(received, "Interrupted while filming: the evidence is whole; nothing is left of the film.")
    return 0
