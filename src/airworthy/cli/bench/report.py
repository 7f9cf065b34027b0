"""`airworthy bench report`: write the report of a benchmark's folder again, or print why flights failed."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tyro.conf import Positional

from airworthy.benchmarks.navigation.report.tables import (
    INDICATOR_LABELS,
    flip_rows,
    pair_row,
    planning,
    proposals,
    trends,
    trends_within,
)
from airworthy.cli.bench.navigation import show_scores
from airworthy.cli.common import emit_json, run_tyro, show_table
from airworthy.core.errors import AirworthyError

if TYPE_CHECKING:
    from airworthy.benchmarks.navigation.flown_folder import NavigationFolder

_DESCRIPTION = (
    "Write report.html of a folder that `airworthy bench navigation` or `airworthy bench sensitivity` wrote, from its results"
    " alone."
)


@dataclass(frozen=True)
class ReportConfig:
    """Of which folder."""

    folder: Positional[Path]
    """A folder of `airworthy bench navigation`, or of `airworthy bench sensitivity`."""
    why: bool = False
    """Print why flights failed, by pilot and scenario: causes, where, on which vehicles, in which layouts; write nothing."""
    pictures: bool = True
    """Fly and draw one flight of each scenario."""
    json: bool = False
    """Print JSON, and no progress."""


def main(argv: list[str]) -> int:
    """Run the command; returns the exit code."""
    config = run_tyro(ReportConfig, argv, "airworthy bench report", _DESCRIPTION)
    from airworthy.benchmarks.navigation.flown_folder import read_flown
    from airworthy.benchmarks.navigation.report.text import titles_of
    from airworthy.benchmarks.navigation.sensitivity.study import STUDY_FILE

    if (config.folder / STUDY_FILE).is_file():
        _study(config)
        return 0
    flown = read_flown(config.folder)
    titles = titles_of(flown.manifest)
    if config.why:
        _why(flown, titles, config.json)
        return 0
    _report(config, flown, titles)
    return 0


def _report(config: ReportConfig, flown: NavigationFolder, titles: Mapping[str, str]) -> None:
    """Write the page, and print scores, trends and times of planning."""
    from airworthy.benchmarks.navigation.report.page import summary_of, write_report, write_summary
    from airworthy.core.files import lock_folder

    with lock_folder(config.folder):
        summary = summary_of(flown)
        path = write_report(config.folder, quiet=config.json, pictures=config.pictures, summary=summary)
        write_summary(config.folder, summary)
    within = trends_within(summary, titles)
    trend, thinking = trends(summary, titles), planning(summary, flown.rows, titles, flown.config.compute)
    offered = proposals(flown.rows, titles)
    if config.json:
        keys = ("scores", "scenarios", "correlations", "correlations_by_category", "paired", "flips")
        scores = {name: summary[name] for name in keys}
        emit_json({"report": str(path), **scores, "planning": thinking, "proposals": offered})
        return
    show_scores(summary)
    _tell_missing(flown)
    heads = ("Rank correlation of success with", *INDICATOR_LABELS.values())
    show_table("", heads, [(row["title"], *(cell["words"] for cell in row["cells"])) for row in [*trend, *within]])
    pairs = [pair_row(entry, titles) for entry in summary["paired"]]
    columns = ("pilots", "pairs", "difference", "interval", "layouts", "says")
    heads = ("Flight against flight", "pairs", "difference [points]", "these layouts", "other layouts", "")
    show_table("", heads, [tuple(row[name] for name in columns) for row in pairs])
    if summary["flips"]:
        heads = ("Repeats", "scenario", "combinations", "flights", "flips [%]", "mixed [%]")
        show_table("", heads, flip_rows(summary, titles))
    show_table(
        "", ("Time of planning", *_TIMES), [(row["title"], *(row[name] for name in _TIMES.values())) for row in thinking]
    )
    if offered:
        columns = ("title", "flights", "proposals", "proposals_flown", "plans_flown", "share")
        heads = ("Hybrids", "flights", "proposals", "of them flown", "plans flown", "proposals of what was flown [%]")
        show_table("", heads, [tuple(row[name] for name in columns) for row in offered])
    print(f"Report: {path}")


def _study(config: ReportConfig) -> None:
    """Write the page of a sensitivity study, and print its table."""
    from airworthy.benchmarks.navigation.sensitivity.study import report_study
    from airworthy.cli.bench.sensitivity import show_study, told_idle

    for given, option in ((config.why, "--why"), (not config.pictures, "--no-pictures")):
        if given:
            raise AirworthyError(f"{option} changes nothing for a sensitivity study, whose report has neither: leave it out.")
    done = report_study(config.folder)
    for line in told_idle(done.summary):
        print(line, file=sys.stderr)
    if config.json:
        emit_json({"report": str(done.report), **done.summary})
    else:
        show_study(done)


_TIMES = {
    "by the clock [ms]": "clock",
    "simulated, median [ms]": "median",
    "95 % [ms]": "p95",
    "published [ms]": "published",
    "seconds per flight": "each_s",
}


def _tell_missing(flown: NavigationFolder) -> None:
    if flown.missing:
        print(f"This is not all: {len(flown.rows):,} of {flown.flights:,} flights are finished.")


def _why(flown: NavigationFolder, titles: Mapping[str, str], as_json: bool) -> None:
    """Print success by layout and failures by cause; of a run that goes on, too: nothing is written."""
    from airworthy.benchmarks.navigation.aggregation import failures_of, layouts_of
    from airworthy.benchmarks.navigation.report.tables import WHY_HEADS, layout_heads, layout_rows, why_rows

    failures, layouts = failures_of(flown.rows), layouts_of(flown.rows)
    if as_json:
        emit_json({"layouts": layouts, "failures": failures, "flights": flown.flights, "finished": len(flown.rows)})
        return
    _tell_missing(flown)
    for pilot in dict.fromkeys(entry["pilot"] for entry in layouts):
        name = titles.get(pilot, pilot)
        own = [entry for entry in layouts if entry["pilot"] == pilot]
        mine = layout_rows(own, titles)
        show_table(f"{name}: success by layout [%]", layout_heads(own)[1:], [row[1:] for row in mine])
        causes = why_rows([entry for entry in failures if entry["pilot"] == pilot], titles)
        if causes:
            show_table(f"\n{name}: why flights failed", WHY_HEADS[1:], [row[1:] for row in causes])
        else:
            print(f"\n{name}: every flight arrived.")
