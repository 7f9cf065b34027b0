"""`airworthy bench report`: write the report of a benchmark's folder again."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tyro.conf import Positional

from airworthy.cli.common import emit_json, run_tyro

_DESCRIPTION = "Write report.html of a folder that `airworthy bench navigation` wrote, from its results alone."


@dataclass(frozen=True)
class ReportConfig:
    """Of which folder."""

    folder: Positional[Path]
    """A folder of `airworthy bench navigation`."""
    pictures: bool = True
    """Fly and draw one flight of each scenario."""
    json: bool = False
    """Print JSON, and no progress."""


def main(argv: list[str]) -> int:
    """Run the command; returns the exit code."""
    config = run_tyro(ReportConfig, argv, "airworthy bench report", _DESCRIPTION)
    from airworthy.core.files import lock_folder
    from airworthy.evaluation.navigation.report import write_report
    from airworthy.evaluation.navigation.store import read_manifest

    read_manifest(config.folder)
    with lock_folder(config.folder):
        path = write_report(config.folder, quiet=config.json, pictures=config.pictures)
    if config.json:
        emit_json({"report": str(path)})
    else:
        print(f"Report: {path}")
    return 0
