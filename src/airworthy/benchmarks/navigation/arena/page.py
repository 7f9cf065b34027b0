"""`arena.html`: pilots ranked over places, vehicles and speed, from committed rows only, readable offline."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import isfinite
from pathlib import Path
from typing import Any

from airworthy.benchmarks.navigation.arena.drawing import SpeedPoint, rate_line, speed_figure
from airworthy.benchmarks.navigation.arena.entries import League, found_folders, leagues_of
from airworthy.benchmarks.navigation.arena.ranking import (
    AGILE,
    VEHICLE_CLASSES,
    WEAK,
    Duel,
    Standing,
    ranked,
    success,
    vehicle_class,
)
from airworthy.benchmarks.navigation.score import score_table, timed_scores, timed_success
from airworthy.benchmarks.navigation.store import RESULTS_FILE
from airworthy.core.errors import AirworthyError
from airworthy.core.files import write_text
from airworthy.reports.page import DASH, card, fixed, interval, markup, page_of, share_interval

__all__ = ["ARENA_FILE", "Arena", "arena_page", "write_arena"]

ARENA_FILE = "arena.html"
COLOURS = 8
"""That pilots have on the page, in the order of the rows; more pilots begin anew."""
_CLASS_WORDS = {
    "weak": f"thrust to weight below {WEAK:g}",
    "middle": f"{WEAK:g} to {AGILE:g}",
    "agile": f"{AGILE:g} and more",
}
_SHOWN = ("rank", "title", "value", "interval", "flights", "score", "final", "timed")
Row = Mapping[str, Any]


@dataclass(frozen=True)
class Arena:
    """A page that was written, and what it ranks."""

    page: Path
    left_out: list[str]
    """A sentence for each run that cannot stand beside the others."""
    standings: dict[str, list[dict[str, str]]]
    """By the common limit of acceleration, pilots from the first rank down: title, rank, success with its interval, scores."""


def write_arena(paths: Sequence[str | Path], out: str | Path) -> Arena:
    """Write the page of some folders.

    Args:
        paths: Folders of `airworthy bench navigation`, or folders of these.
        out: The page.

    Raises:
        AssetError: There is no such folder, or one is damaged.
        AirworthyError: Nothing is left to be ranked, or the page's folder is not there.
    """
    beside = Path(out).parent
    if not beside.is_dir():
        raise AirworthyError(
            f"The arena's page {str(out)!r} lies in no folder that is here: name another with --out, such as"
            f" --out {ARENA_FILE}."
        )
    content = _content(paths, beside)
    standings = {
        league["limit"]: [{name: row[name] for name in _SHOWN} for row in league["table"]] for league in content["leagues"]
    }
    return Arena(write_text(out, _page(content)), content["left_out"], standings)


def arena_page(paths: Sequence[str | Path], beside: Path) -> tuple[str, list[str]]:
    """Return the page, the same for the same rows, and what was left out.

    Args:
        paths: As of `write_arena`.
        beside: Folder of the page, from which its links lead to the rows.
    """
    content = _content(paths, beside)
    return _page(content), content["left_out"]


def _page(content: Mapping[str, Any]) -> str:
    return page_of("airworthy.benchmarks.navigation.arena", "arena.html.j2", **content)


def _content(paths: Sequence[str | Path], beside: Path) -> dict[str, Any]:
    """Return everything that the page says."""
    leagues, left_out = leagues_of(found_folders(paths))
    shown = [_league(league, beside) for league in leagues]
    flights = sum(item["count"] for item in shown)
    title = f"{shown[0]['pilots']} pilots in {shown[0]['place_count']} places, on {shown[0]['vehicle_count']} vehicles"
    return {
        "title": title,
        "leagues": shown,
        "cards": [*shown[0]["cards"], card("flights", f"{flights:,}", below="every one a row that can be flown again")],
        "verdict": shown[0]["verdict"],
        "left_out": left_out,
        "class_words": _CLASS_WORDS,
    }


def _league(league: League, beside: Path) -> dict[str, Any]:
    """Return everything that the page says of a league."""
    rows, titles = league.rows, league.titles
    colours = {pilot: f"p{k % COLOURS}" for k, pilot in enumerate(league.pilots)}
    overall, duels = ranked(rows)
    order = [item.pilot for item in overall]
    timed, _ = ranked(rows, partial(timed_success, protocol=league.protocol))
    speed, _ = ranked(rows, _speed, arrived=True)
    scores = {item.pilot: item for item in score_table(rows)}
    with_time = timed_scores(rows, league.protocol)
    places = list(dict.fromkeys(row["scenario"] for row in rows))
    classes = [name for name in VEHICLE_CLASSES if any(vehicle_class(row) == name for row in rows)]
    return {
        "limit": f"{league.acceleration:g} m/s\N{SUPERSCRIPT TWO}",
        "key": f"a{league.acceleration:g}".replace(".", "_"),
        "count": len(rows),
        "pilots": len(order),
        "place_count": len(places),
        "vehicle_count": len({row["vehicle"] for row in rows}),
        "verdict": _verdict(overall, titles),
        "cards": _cards(overall, titles),
        "table": [
            {
                **_cell(item),
                "title": titles.get(item.pilot, item.pilot),
                "colour": colours[item.pilot],
                "bar": markup(rate_line(item.value, item.low, item.high, colours[item.pilot])),
                "score": fixed(scores[item.pilot].score, 1),
                # As a share of the largest variance in the table, a pilot's own: of one alone it says nothing.
                "final": fixed(scores[item.pilot].final, 1) if len(order) > 1 else "\N{EN DASH}",
                "timed": fixed(with_time[item.pilot], 1),
                "tied": ", ".join(titles.get(name, name) for name in _tied(item, overall, duels)),
            }
            for item in overall
        ],
        "places": _matrix(rows, order, titles, colours, places, lambda row: str(row["scenario"]), "vehicle"),
        "vehicles": _matrix(rows, order, titles, colours, classes, vehicle_class, "scenario"),
        "class_counts": {name: len({r["vehicle"] for r in rows if vehicle_class(r) == name}) for name in classes},
        "speed": _speeds(timed, speed, titles, colours),
        "figure": markup(speed_figure(_points(speed, overall, titles, colours))),
        "duels": _duels(duels, order, titles),
        "sources": [
            {
                "folder": _link(entry.folder, beside),
                "rows": _link(entry.folder / RESULTS_FILE, beside),
                "report": _link(entry.folder / "report.html", beside) if (entry.folder / "report.html").is_file() else "",
                "name": entry.folder.name,
                "pilots": ", ".join(titles.get(name, name) for name in entry.pilots),
                "flights": f"{entry.flights:,}",
                "version": entry.version,
                "digest": entry.digest,
                "command": entry.command,
            }
            for entry in league.entries
        ],
    }


def _speed(row: Row) -> float:
    """Return the mean speed of a flight [m/s]."""
    return float(row["speed_mean_m_s"])


def _link(path: Path, beside: Path) -> str:
    """Return a path as an address from a folder."""
    return Path(os.path.relpath(path, beside)).as_posix()


def _cell(item: Standing, digits: int = 1, scale: float = 100.0) -> dict[str, Any]:
    """Return how a standing is written: its rank, with "=" where it is shared, its value and interval."""
    part = "" if item.rank else f"a part: {item.cells:,} of {item.cells_wanted:,}"
    spread = share_interval(item.low, item.high) if scale == 100.0 else interval(item.low, item.high, digits)
    return {
        "rank": _rank(item),
        "first": item.rank == 1,
        "value": fixed(scale * item.value, digits),
        "share": max(0.0, min(100.0, 100.0 * item.value)) if scale == 100.0 else 0.0,
        "interval": spread,
        "flights": f"{item.flights:,}",
        "part": part,
    }


def _rank(item: Standing) -> str:
    """Return a rank as it is written: "=" where it is shared, a dash of who is there for reference only."""
    return f"{item.rank}{'=' if item.shared else ''}" if item.rank else DASH


def _matrix(
    rows: Sequence[Row],
    order: Sequence[str],
    titles: Mapping[str, str],
    colours: Mapping[str, str],
    names: Sequence[str],
    of: Any,
    stratum: str,
) -> dict[str, Any]:
    """Return a table of pilots by places or kinds of vehicles, each column a ranking of its own."""
    columns = {}
    for name in names:
        standings, _ = ranked([row for row in rows if of(row) == name], success, stratum)
        columns[name] = {item.pilot: _cell(item, 0) for item in standings}
    return {
        "heads": [name.replace("_", " ") for name in names],
        "names": list(names),
        "rows": [
            {
                "title": titles.get(pilot, pilot),
                "colour": colours[pilot],
                "cells": [columns[name].get(pilot) for name in names],
            }
            for pilot in order
        ],
    }


def _speeds(
    timed: Sequence[Standing], speed: Sequence[Standing], titles: Mapping[str, str], colours: Mapping[str, str]
) -> list[dict[str, Any]]:
    """Return rows of the table of speed, by the rank with time."""
    fast = {item.pilot: item for item in speed}
    found = []
    for item in timed:
        own = fast.get(item.pilot)
        found.append(
            {
                "title": titles.get(item.pilot, item.pilot),
                "colour": colours[item.pilot],
                "timed": _cell(item),
                "bar": markup(rate_line(item.value, item.low, item.high, colours[item.pilot])),
                "speed": None if own is None else _cell(own, 2, 1.0),
            }
        )
    return found


def _points(
    speed: Sequence[Standing], overall: Sequence[Standing], titles: Mapping[str, str], colours: Mapping[str, str]
) -> list[SpeedPoint]:
    by_pilot = {item.pilot: item for item in overall}
    return [SpeedPoint(titles.get(item.pilot, item.pilot), colours[item.pilot], item, by_pilot[item.pilot]) for item in speed]


def _tied(item: Standing, overall: Sequence[Standing], duels: Sequence[Duel]) -> list[str]:
    """Return whom the flights do not tell from a pilot, of those that are ranked."""
    ranked_pilots = {other.pilot for other in overall if other.rank}
    mine = [d for d in duels if item.pilot in (d.first, d.second) and {d.first, d.second} <= ranked_pilots]
    return [d.second if d.first == item.pilot else d.first for d in mine if not d.ahead]


def _duels(duels: Sequence[Duel], order: Sequence[str], titles: Mapping[str, str]) -> dict[str, Any]:
    """Return the table of every pilot less every other, in points."""
    found = {(d.first, d.second): d for duel in duels for d in (duel, duel.turned)}
    rows = []
    for pilot in order:
        cells = [_duel(found.get((pilot, other))) for other in order]
        rows.append({"title": titles.get(pilot, pilot), "cells": cells})
    return {"heads": [titles.get(pilot, pilot) for pilot in order], "rows": rows}


def _duel(duel: Duel | None) -> dict[str, str] | None:
    """Return how a difference is written; None of a pilot against itself."""
    if duel is None:
        return None
    tone = "tied" if not duel.ahead else "ahead" if duel.ahead == duel.first else "behind"
    known = isfinite(duel.low) and isfinite(duel.high)
    spread = f"{100 * duel.low:+.0f} to {100 * duel.high:+.0f}" if known else ""
    return {"value": fixed(100.0 * duel.value, 1, DASH, "+"), "interval": spread, "tone": tone}


def _verdict(overall: Sequence[Standing], titles: Mapping[str, str]) -> str:
    """Return the ranking in one line; between pilots of one rank stands "="."""
    words = []
    for rank in dict.fromkeys(item.rank for item in overall if item.rank):
        words.append(" = ".join(titles.get(item.pilot, item.pilot) for item in overall if item.rank == rank))
    said = " > ".join(words) or "nobody flew all of it"
    tie = " (=: tied, other layouts might turn it round)" if " = " in said else ""
    rest = ", ".join(titles.get(item.pilot, item.pilot) for item in overall if not item.rank)
    return f"{said[0].upper()}{said[1:]}{tie}{f'; for reference only: {rest}' if rest else ''}"


def _cards(overall: Sequence[Standing], titles: Mapping[str, str]) -> list[dict[str, str]]:
    """Return cards of the first four pilots."""
    return [
        card(
            f"{_rank(item)}  {titles.get(item.pilot, item.pilot)}",
            f"{100 * item.value:.1f}",
            "%",
            f"{share_interval(item.low, item.high)} on other layouts",
        )
        for item in [item for item in overall if item.rank][:4]
    ]
