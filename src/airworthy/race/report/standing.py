"""Where pilots stand: beside each other, beside the teams of 2019, and on the ladder from the ideal flight to the flown one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from airworthy.core.errors import AirworthyError
from airworthy.race.courses import course_of
from airworthy.race.pilots.catalogue import IN_PROCESS
from airworthy.race.planning.plan import packaged_plan, stored_plan
from airworthy.race.planning.racer import RacerModel
from airworthy.race.published import QUALIFIER, TRUE_STATE, published_scores, published_sensors
from airworthy.race.record import Race
from airworthy.race.scoring import run_score
from airworthy.reports.drawing import named_lines, published_mark, sheet, top_key, whisker
from airworthy.reports.svg import PALETTE, inline_svg
from airworthy.vehicles import Vehicle

Row = Mapping[str, Any]
_SENSORS = {"imu": "IMU", "beacons": "IR"}
"""As Table IV writes them; others by their own name."""
_LINE = 8.5
"""Between names in the panel of final scores [points]."""


def sensors_text(used: Sequence[str]) -> str:
    """Return a set of sensors as Table IV writes it."""
    return " + ".join(_SENSORS.get(name, name) for name in used)


def title_of(row: Row) -> str:
    """Return a pilot's name, with what it must never be without."""
    marks = ", ".join([*([TRUE_STATE] if row["true_state"] else []), *([IN_PROCESS] if row["in_process"] else [])])
    return f"{row['pilot']} ({marks})" if marks else str(row["pilot"])


def figure_standing(pilots: Sequence[Row], name: str) -> str:
    """Return figure 11 of the paper: runs completed, and mean and deviation of scores, ours beside the published; final scores.

    Args:
        pilots: As `airworthy.race.benchmark.tables.pilot_summary` has them.
        name: Unique on the page.
    """
    published = published_sensors()
    labels = [title_of(row) for row in pilots]
    labels += [f"{sensors_text(row.used)}, {row.teams} team{'s' if row.teams > 1 else ''}" for row in published]
    tall = 0.85 + 0.27 * len(labels)
    with sheet(max(2.2, tall)) as figure:
        height = max(2.2, tall)
        panels = figure.subplots(1, 3, width_ratios=(1.0, 1.0, 1.05))
        figure.subplots_adjust(left=0.205, right=0.985, top=1.0 - 0.55 / height, bottom=0.42 / height, wspace=0.12)
        for place, row in enumerate(pilots):
            told = row["statistics"]["completion"]
            panels[0].plot(100.0 * told["value"], place, "o", color=PALETTE["flown"], markersize=4.5, clip_on=False)
            whisker(panels[0], place, 100.0 * told["low"], 100.0 * told["high"], level=True, color=PALETTE["flown"])
            score = row["statistics"]["score"]
            _spread(panels[1], place, score.get("mean"), score.get("std"))
        for place, item in enumerate(published, len(pilots)):
            published_mark(panels[0], item.completed_percent, place)
            whisker(
                panels[1], place, item.mean - item.std, min(item.mean + item.std, 110.0), level=True, color=PALETTE["second"]
            )
            published_mark(panels[1], item.mean, place)
        for axes, title in ((panels[0], "Runs completed [%]"), (panels[1], "Score: mean and standard deviation")):
            named_lines(axes, labels if axes is panels[0] else [""] * len(labels))
            axes.set_title(title)
        panels[0].set_xlim(0.0, 100.0)
        panels[1].set_xlim(min(-15.0, panels[1].get_xlim()[0]), 110.0)
        _finals(panels[2], pilots)
        top_key(
            figure,
            [
                ({"color": PALETTE["flown"], "marker": "o", "linewidth": 1.2, "markersize": 4.5}, "ours, other courses"),
                (
                    {"color": PALETTE["second"], "marker": "D", "linewidth": 0.0, "markerfacecolor": "none", "markersize": 4.6},
                    "published, 2019",
                ),
            ],
        )
        return inline_svg(figure, name, "Runs completed and scores, ours beside those of 2019")


def _spread(axes: Any, place: int, mean: float | None, std: float | None) -> None:
    if mean is None:
        return
    if std is not None and np.isfinite(std):
        whisker(axes, place, mean - std, mean + std, level=True, color=PALETTE["flown"])
    axes.plot(mean, place, "o", color=PALETTE["flown"], markersize=4.5)


def _finals(axes: Any, pilots: Sequence[Row]) -> None:
    """Draw final scores of the twenty teams by rank, and ours across."""
    rows = published_scores()
    axes.set_title("Final score by rank")
    for team in rows:
        published_mark(axes, team.rank, team.final)
    mine = sorted((row for row in pilots if row["final_score"] is not None), key=lambda row: -row["final_score"])
    finals = [row["final_score"] for row in mine]
    for final in finals:
        axes.axhline(final, color=PALETTE["flown"], linewidth=1.1)
    for place, row in zip(_names_below(finals), mine, strict=True):
        axes.text(20.4, place, title_of(row), fontsize=7.0, color=PALETTE["flown"], ha="right", va="top")
    axes.set_xlim(0.3, len(rows) + 0.7)
    axes.set_xticks([1, 5, 10, 15, 20])
    axes.set_ylim(0.0, 110.0)


def _names_below(finals: Sequence[float]) -> list[float]:
    """Return where names of lines stand, which fall: those of lines near each other below the last of them, in their order."""
    places: list[float] = []
    at = 0
    while at < len(finals):
        end = at + 1
        while end < len(finals) and finals[end - 1] - finals[end] < _LINE:
            end += 1
        places += [finals[end - 1] - 1.2 - _LINE * k for k in range(end - at)]
        at = end
    return places


# ---- The ladder -------------------------------------------------------------------------------------------------------------


def ladder(race: Race, vehicle: Vehicle, pilots: Sequence[Row], flights: Mapping[str, Sequence[Row]]) -> list[dict[str, Any]]:
    """Return steps from the ideal flight to the flown ones, the fastest kind first: what each adds is what its line costs.

    Args:
        race: Nominal.
        vehicle: That it is flown with.
        pilots: Summaries.
        flights: Rows of each pilot's flights, by its word.
    """
    steps = []
    told = [_flown(row, flights[row["pilot"]], race) for row in pilots if row["true_state"]]
    honest = [_flown(row, flights[row["pilot"]], race) for row in pilots if not row["true_state"]]
    model = RacerModel.of(vehicle)
    try:
        plan = stored_plan(course_of(race, "nominal"), model)
        says = "minimum-time plan of the rigid body through the nominal course; sees nothing, no noise"
        steps.append(_step("ideal", says, [plan.duration], race, 1))
        # Who is told the truth needs no glances, and so stands before the plan that has them.
        steps += told
        told = []
        plan = packaged_plan(f"{race.name}_glances", model)
        says = "the same plan, turned so that the camera sees each gate that matters"
        steps.append(_step("ideal with glances", says, [plan.duration], race, 1))
    except AirworthyError:  # none comes with this race, or it is another vehicle's: the ladder begins with what was flown
        pass
    steps += told + sorted(honest, key=lambda step: np.inf if step["time"] is None else step["time"])
    before = None
    for step in steps:
        step["costs"] = None if before is None or step["time"] is None else step["time"] - before
        before = step["time"] if step["time"] is not None else before
    return steps


def _flown(row: Row, mine: Sequence[Row], race: Race) -> dict[str, Any]:
    times = [item["time_s"] for item in mine if item["completed"]]
    says = "flown with true state on these courses" if row["true_state"] else "flown with its own senses on these courses"
    return _step(title_of(row), says, times, race, len(mine))


def _step(name: str, says: str, times: Sequence[float], race: Race, runs: int) -> dict[str, Any]:
    mean = float(np.mean(times)) if times else None
    worth = race.score if race.score.rule == "points" else QUALIFIER
    return {
        "name": name,
        "says": says,
        "completed": f"{len(times)} of {runs}" if runs > 1 else "",
        "time": mean,
        "fastest": float(min(times)) if len(times) > 1 else None,
        "score": None if mean is None else run_score(worth, len(race.passes), mean),
    }
