"""The page of a student: what it took, curves of learning, and its flights beside its teacher's and the baselines'."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from airworthy.core.files import write_text
from airworthy.evaluation import wilson_interval
from airworthy.learning.agile_autonomy.evaluation import STUDENT
from airworthy.learning.gradient.report import flat_options
from airworthy.reports.page import DASH, card, fixed, interval, page_of
from airworthy.reports.svg import Line, lines

__all__ = ["COLUMNS", "flight_cells", "write_student_report"]

COLUMNS = (
    "pilot, place, speed cap",
    "flights",
    "success [%]",
    "95 % interval",
    "collision [%]",
    "other [%]",
    "mean speed [m/s]",
    "top speed [m/s]",
)


def write_student_report(path: Path, found: Mapping[str, Any], metrics: Sequence[Mapping[str, Any]]) -> Path:
    """Write the page.

    Args:
        path: Of the page.
        found: What `summary.json` holds.
        metrics: Of the training log.
    """
    options, rows = found["options"], found["flights"]
    blind = " Its images are empty: it is the baseline of what seeing is worth." if options["blind"] else ""
    page = page_of(
        "airworthy.reports",
        "training.html.j2",
        brand="Airworthy Agile-Autonomy",
        title=f"Agile-Autonomy's student, seed {options['seed']}",
        verdict="A network that sees a depth image and gives trajectories of one second, learnt from a sampling expert that"
        f" knows every place. It is judged in layouts that no training flies in, by rigid bodies at 1,200 Hz.{blind}",
        found=found,
        cards=_cards(found),
        curves=_curves(metrics),
        film=None,
        table_title="Flights beside its teacher and baselines",
        lede="Success: within 2 m of the goal and slower than 0.5 m/s for 2 s, nothing touched. The expert knows the whole"
        " place; blanked is the same student with empty images; straight looks at nothing. Everybody flies the same starts."
        " Speeds are means over flights that arrived.",
        columns=COLUMNS,
        rows=[flight_cells(row) for row in rows],
        split=[
            (
                "flying and learning",
                f"{fixed(found['training_wall_s'], 0)} s by the clock, {found['training_cpu_s']:.0f} s of processor time",
            ),
            ("judging", f"{fixed(found['seconds']['evaluate_s'], 0)} s by the clock"),
        ],
        options=flat_options(options),
    )
    return write_text(path, page)


def flight_cells(row: Mapping[str, Any]) -> list[str]:
    """Write what became of one pilot's flights in one kind of place at one speed as the cells of `COLUMNS`."""
    count, good, hit = row["flights"], row["success"], row["collision"]
    low, high = row["success_interval_percent"]
    speeds = (DASH if row[name] is None else fixed(row[name], 2) for name in ("mean_speed_m_s", "top_speed_m_s"))
    shares = (fixed(100.0 * part / count, 0) for part in (hit, count - good - hit))
    name = f"{row['pilot']}, {row['scenario'].replace('_', ' ')}, {row['speed_m_s']:g} m/s"
    return [name, f"{count:,}", fixed(100.0 * good / count, 0), interval(low, high, 0), *shares, *speeds]


def _cards(found: Mapping[str, Any]) -> list[dict[str, str]]:
    cards = [
        card(
            "flying and learning took",
            fixed(found["training_wall_s"] / 60.0, 1),
            "min",
            f"{found['training_cpu_s']:.0f} s of processor time",
        )
    ]
    mine = [row for row in found["flights"] if row["pilot"] == STUDENT]
    for speed in dict.fromkeys(row["speed_m_s"] for row in mine):
        good, count = (sum(row[name] for row in mine if row["speed_m_s"] == speed) for name in ("success", "flights"))
        rate = wilson_interval(good, count)
        below = f"{good} of {count:,} flights, all places; {interval(100.0 * rate.low, 100.0 * rate.high, 0)} %"
        cards.append(card(f"success at {speed:g} m/s", fixed(100.0 * good / count, 0), "%", below))
    return [
        *cards,
        card("instants", f"{found['instants']:,}", "", f"of {sum(row['flights'] for row in found['flown'])} flights"),
    ]


def _curves(metrics: Sequence[Mapping[str, Any]]) -> list[tuple[str, str]]:
    learnt = [row for row in metrics if row["stage"] == "learn"]
    flown = [row for row in metrics if row["stage"] == "fly"]

    def drawn(title: str, names: Sequence[tuple[str, str, str]]) -> tuple[str, str]:
        curves = [
            Line(said, role, [(row["wall_s"] / 60.0, row[name]) for row in learnt if row[name] is not None])
            for said, role, name in names
        ]
        return title, lines(title, "wall time [min]", [curve for curve in curves if curve.points], True) if learnt else ""

    arrived = [(row["wall_s"] / 60.0, 100.0 * row["success"] / row["flights"]) for row in flown]
    return [
        drawn("Error of trajectories", (("learnt from", "flown", "space"), ("held out", "second", "held_out_space"))),
        drawn("Error of scores", (("learnt from", "flown", "score"), ("held out", "second", "held_out_score"))),
        (
            "Flights to learn from that arrived [%]",
            lines("arrived", "wall time [min]", [Line("arrived", "flown", arrived)], False),
        ),
    ]
