"""`airworthy bench report`: write the report of a benchmark's folder again."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tyro.conf import Positional

from airworthy.cli.bench_navigation import show_scores
from airworthy.cli.common import emit_json, run_tyro, show_table
from airworthy.evaluation.navigation.report_tables import INDICATOR_WORDS, planning, trends

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
    from airworthy.evaluation.navigation.report import summary_of, write_report
    from airworthy.evaluation.navigation.report_words import titles_of
    from airworthy.evaluation.navigation.store import read_manifest, read_rows

    manifest, rows = read_manifest(config.folder), read_rows(config.folder)
    titles = titles_of(manifest)
    with lock_folder(config.folder):
        summary = summary_of(config.folder, rows)
        path = write_report(config.folder, quiet=config.json, pictures=config.pictures, summary=summary)
    trend, thinking = trends(summary, titles), planning(summary, rows, titles, manifest["identity"]["config"]["compute"])
    if config.json:
        scores = {name: summary[name] for name in ("scores", "scenarios", "correlations")}
        emit_json({"report": str(path), **scores, "planning": thinking})
        return 0
    show_scores(summary)
    heads = ("Rank correlation of success with", *INDICATOR_WORDS.values())
    show_table("", heads, [(row["title"], *(cell["words"] for cell in row["cells"])) for row in trend])
    show_table(
        "", ("Time of planning", *_TIMES), [(row["title"], *(row[name] for name in _TIMES.values())) for row in thinking]
    )
    print(f"Report: {path}")
    return 0


_TIMES = {
    "by the clock [ms]": "clock",
    "simulated, median [ms]": "median",
    "95 % [ms]": "p95",
    "published [ms]": "published",
    "seconds per flight": "each_s",
}
