"""`report.html` of a gates benchmark, readable offline."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from airworthy.core.arrays import Array
from airworthy.core.files import json_text, write_text
from airworthy.core.jobs.progress import command_line
from airworthy.gates.benchmark.baselines import OTHERS
from airworthy.gates.benchmark.blocks import GatesStore, WorkBlock
from airworthy.gates.benchmark.config import GatesBenchConfig
from airworthy.gates.benchmark.families import FAMILIES
from airworthy.reports.drawing import (
    DASHES,
    band,
    mirrored,
    named_lines,
    path_line,
    plan_axes,
    shares_bar,
    sheet,
    top_key,
    whisker,
)
from airworthy.reports.page import card, fixed, markup, page_of
from airworthy.reports.svg import FIGURE_WIDTH, PALETTE, inline_svg

__all__ = ["COLORS", "REPORT_FILE", "figure_baselines", "figure_errors", "short_name", "write_report"]

# ---- Figures of the gates report as inline SVG, after spec/boundary_predictor section 13 ------------------------------------
#
# Blue is the plan, green the competition's family of dynamics, amber the second one, grey what is only held beside it.

Content = Mapping[str, Any]

FAMILY_COLORS = {"competition": "second", "crazyflow": "warn", "semi_kinematic": "muted"}
LAPS = {
    "least": ("nothing can be faster", "axis", "|"),
    "minimum_snap": ("min-snap, times optimised", "muted", "s"),
    "trapezoid": ("min-snap, trapezoid times", "warn", "D"),
    "through_gates": ("through gates, dynamic programming", "second", "o"),
    "plan": ("this plan", "flown", "o"),
}
"""Planner -> name for people, colour, mark."""
MOST = ("envelope", "thrust_max", "body_rate")
"""Checks of which the largest share is drawn."""


def figure_laps(courses: Sequence[Content]) -> str:
    """Return the lap times of every planner, a line per course; hollow where its certificate or its passage failed."""
    tall = 0.85 + 0.33 * len(courses)
    with sheet(tall) as figure:
        axes = figure.add_axes((0.15, 0.42 / tall, 0.835, (tall - 0.85) / tall))
        for place, row in enumerate(courses):
            known = [t for t in row["laps"].values() if t]
            axes.plot([min(known), max(known)], [place, place], color=PALETTE["grid"], linewidth=3.0, zorder=1)
            for name, (_, color, mark) in LAPS.items():
                time = row["laps"].get(name)
                if time:
                    sure = name == "least" or (row["verdicts"].get(name) == "proven" and row["passed"].get(name))
                    _mark(axes, time, place, mark, PALETTE[color], bool(sure))
        named_lines(axes, [row["course"] for row in courses])
        axes.set_xlim(0.0, 1.03 * max(t for row in courses for t in row["laps"].values() if t))
        axes.set_xlabel("from rest at the start to the last gate [s]")
        for name, (title, color, mark) in LAPS.items():
            axes.plot([], [], mark, color=PALETTE[color], markersize=8.0 if name == "least" else 5.0, label=title)
        figure.legend(loc="upper left", ncols=5, bbox_to_anchor=(0.15, 1.0), handletextpad=0.3, columnspacing=1.4)
        return inline_svg(figure, "laps", "Lap times of the plan and of other planners under the same limit, by course")


def _mark(axes: Any, x: float, y: float, mark: str, color: str, filled: bool) -> None:
    size = 13.0 if mark == "|" else 6.0
    axes.plot(x, y, mark, color=color, markersize=size, markerfacecolor=color if filled else "none", markeredgewidth=1.3)


def figure_path(course: Content, flown: Sequence[Content], name: str) -> str:
    """Return a course from above and its heights over time: commanded, and flown in each family.

    Args:
        course: Plan and gates.
        flown: Paths of each family.
        name: Of the course.
    """
    place = np.asarray(course["path"]["position_m"])
    t = np.asarray(course["path"]["t_s"])
    right, up = plan_axes(np.ptp(place, axis=0))
    span = np.ptp(place[:, [right, up]], axis=0) + 1.0
    high = float(np.clip(0.6 * FIGURE_WIDTH * span[1] / span[0], 1.6, 4.6))
    with sheet(high + 0.9) as figure:
        plan, side = figure.subplots(1, 2, width_ratios=(1.5, 1.0))
        figure.subplots_adjust(left=0.04, right=0.985, top=1.0 - 0.55 / (high + 0.9), bottom=0.42 / (high + 0.9), wspace=0.1)
        for item in flown:
            color = PALETTE[FAMILY_COLORS.get(item["family"], "ink")]
            for path in np.asarray(item["paths_m"], dtype=float):
                path_line(plan, path, right, up, color, linewidth=0.7, alpha=0.5)
                side.plot(item["error"]["t_s"], path[:, 2], color=color, linewidth=0.7, alpha=0.5)
        path_line(plan, place, right, up, PALETTE["flown"], linewidth=1.3)
        side.plot(t, place[:, 2], color=PALETTE["flown"], linewidth=1.3)
        for gate in course["gates"]:
            _gate(plan, gate, right, up)
        _gate_heights(side, course)
        plan.set_aspect("equal", adjustable="datalim")
        mirrored(plan, right, up)
        plan.set_title(f"{course['course']} from above [m]")
        side.set_title("Height [m] over time [s]")
        side.set_xlim(0.0, float(t[-1]))
        side.set_ylim(bottom=0.0)
        _family_legend(figure, flown)
        return inline_svg(figure, name, f"Path of {course['course']} from above and its heights, commanded and flown")


def _gate(axes: Any, gate: Content, right: int, up: int) -> None:
    center, yaw = np.asarray(gate["position_m"]), gate["yaw_rad"]
    left = np.array([-np.sin(yaw), np.cos(yaw), 0.0])
    inner, outer = 0.5 * gate["opening_m"][0], 0.5 * gate["opening_m"][0] + 0.05
    for sign in (-1.0, 1.0):
        ends = np.array([center + sign * inner * left, center + sign * outer * left])
        path_line(axes, ends, right, up, PALETTE["ink"], linewidth=3.0, solid_capstyle="butt")
    both = np.array([center - inner * left, center + inner * left])
    path_line(axes, both, right, up, PALETTE["ink"], linewidth=0.6)


def _gate_heights(axes: Any, course: Content) -> None:
    """Draw the opening of each gate when it is passed."""
    ends = np.cumsum(course["plan"]["durations_s"])[:-1]
    for k, when in enumerate(ends):
        gate = course["gates"][k % len(course["gates"])]
        z, half = gate["position_m"][2], 0.5 * gate["opening_m"][1]
        for low in (z - half - 0.05, z + half):
            whisker(axes, when, low, low + 0.05, linewidth=2.2, solid_capstyle="butt")


def figure_error(flown: Sequence[Content], name: str) -> str:
    """Return the position error over time in each family: median and the middle nine tenths of the flights."""
    with sheet(2.3) as figure:
        axes = figure.add_axes((0.045, 0.19, 0.94, 0.62))
        for item in flown:
            color = PALETTE[FAMILY_COLORS.get(item["family"], "ink")]
            t = np.asarray(item["error"]["t_s"], dtype=float)
            bands = 100.0 * np.array([[np.nan if x is None else x for x in row] for row in item["error"]["bands_m"]])
            band(axes, t, (bands[0], bands[2]), bands[1], color)
        axes.set_ylim(bottom=0.0)
        axes.set_title(f"Position error on {flown[0]['course']} [cm]")
        axes.set_xlabel("time [s]")
        _family_legend(figure, flown, plan=False)
        return inline_svg(figure, name, "Position error over time in each family of dynamics")


def figure_limit(course: Content, name: str) -> str:
    """Return speed and use of the limits along a plan."""
    path, checks = course["path"], course["plan"]["certificate"]["checks"]
    t = np.asarray(path["t_s"])
    ends = np.cumsum(course["plan"]["durations_s"])[:-1]
    with sheet(2.1) as figure:
        panels = figure.subplots(1, 2)
        figure.subplots_adjust(left=0.045, right=0.985, top=0.86, bottom=0.2, wspace=0.12)
        used = 100.0 * np.asarray(path["used"])
        title = "Limit a + k v$^3$ used [%]" if "envelope" in checks else "Thrust and body rates used [%]"
        for axes, values, text in zip(panels, (path["speed_m_s"], used), ("Speed [m/s]", title), strict=True):
            axes.plot(t, values, color=PALETTE["flown"])
            axes.vlines(ends, 0.0, 1.0, transform=axes.get_xaxis_transform(), color=PALETTE["axis"], linewidth=0.6)
            axes.set_title(text)
            axes.set_xlabel("time [s]; lines: gates")
            axes.set_ylim(bottom=0.0)
        panels[1].axhline(100.0, color=PALETTE["bad"], linewidth=1.0)
        bound = 100.0 * max(checks[key]["bound"] / checks[key]["limit"] for key in MOST if key in checks)
        panels[1].axhline(bound, color=PALETTE["ink"], linewidth=0.9, linestyle=DASHES)
        panels[1].set_ylim(top=1.12 * max(100.0, bound))
        return inline_svg(figure, name, "Speed and use of the limits along the plan")


def figure_random(plans: Sequence[Content]) -> str:
    """Return random courses: lap times over the least possible, and the proved use of the limit and clearance."""
    approved = [row for row in plans if row["flyable"]]
    columns = (
        _laps_column(approved),
        ("Limit used, proved [%]", [100.0 * row["limit_used"] for row in approved]),
        ("Proved clearance to frames [m]", [row["clearance_m"] for row in approved]),
    )
    with sheet(2.0) as figure:
        panels = figure.subplots(1, 3)
        figure.subplots_adjust(left=0.045, right=0.985, top=0.85, bottom=0.14, wspace=0.16)
        for axes, (title, values) in zip(panels, columns, strict=True):
            axes.set_title(title)
            known = np.array([v for v in values if v is not None], dtype=float)
            if known.size:
                axes.hist(known, bins=30, color=PALETTE["flown"])
        return inline_svg(figure, "random", "Distributions over random courses")


def _laps_column(approved: Sequence[Content]) -> tuple[str, list[float]]:
    """Laps over the least time; as they are where no least time is known."""
    if approved and all(row["least_time_s"] for row in approved):
        return "Lap over the least time", [row["lap_time_s"] / row["least_time_s"] for row in approved]
    return "Lap [s]", [row["lap_time_s"] for row in approved]


def _family_legend(figure: Any, flown: Sequence[Content], plan: bool = True) -> None:
    entries = [("flown", "commanded")] if plan else []
    entries += [(FAMILY_COLORS.get(item["family"], "ink"), item["family"].replace("_", "-")) for item in flown]
    top_key(figure, [({"color": PALETTE[role], "linewidth": 1.4}, label) for role, label in entries])


# -----------------------------------------------------------------------------------------------------------------------------

# ---- Figures of predictors: their errors between the grid's points, and several of them beside each other -------------------


COLORS = ("flown", "second", "warn", "bad", "muted", "ink")
"""Of methods, in order; then from the first again."""
_MARKS = "osD^vP"
_LEAST, _MOST, _BINS = -100.0, 100.0, 81


def short_name(full_name: str, most: int = 26) -> str:
    """Return the end of a long name, which tells more than its begin."""
    return full_name if len(full_name) <= most else "..." + full_name[-most + 3 :]


def figure_errors(content: Content, name: str) -> str:
    """Return figure 2 of the paper, off the grid: percent errors of speed and time, logarithmic counts; labels of 0 left
    out."""
    rows = [[np.nan if x is None else x for x in row] for row in content["percent"]]
    percent = np.array(rows, dtype=float).reshape(-1, 2)
    with sheet(2.3) as figure:
        panels = figure.subplots(1, 2, sharey=True)
        figure.subplots_adjust(left=0.05, right=0.985, top=0.85, bottom=0.19, wspace=0.08)
        for k, (axes, what, safe) in enumerate(zip(panels, ("speed", "time"), ("left", "right"), strict=True)):
            _histogram(axes, percent[np.isfinite(percent[:, k]), k], unsafe=(0.0, _MOST) if k == 0 else (_LEAST, 0.0))
            axes.set_title(f"Error of the {what} [%]; safe is to the {safe}")
            axes.set_xlabel("(predicted - label) / label [%]")
        panels[0].set_ylabel("situations, log")
        return inline_svg(figure, name, "Percent errors of predicted speed and time, counts on a logarithmic scale")


def _histogram(axes: Any, values: Array, unsafe: tuple[float, float]) -> None:
    edges = np.linspace(_LEAST, _MOST, _BINS)
    counts, _ = np.histogram(np.clip(values, _LEAST, _MOST), edges)
    # Bars down to a half: a bin with one situation is seen on a logarithmic scale.
    some = counts > 0
    axes.bar(edges[:-1][some], counts[some] - 0.5, np.diff(edges)[some], bottom=0.5, align="edge", color=PALETTE["flown"])
    axes.set_yscale("log")
    axes.set_ylim(0.5, 2.0 * max(1, int(counts.max(initial=1))))
    axes.set_xlim(_LEAST, _MOST)
    axes.axvspan(*unsafe, color=PALETTE["bad"], alpha=0.07)
    axes.axvline(0.0, color=PALETTE["ink"], linewidth=0.8)
    if values.size:
        median = float(np.median(values))
        axes.axvline(median, color=PALETTE["warn"], linewidth=1.2)
        axes.text(median, 0.98, f" median {median:.1f} %", transform=axes.get_xaxis_transform(), va="top", fontsize=7.5)


def figure_baselines(rows: Sequence[Content], courses: Sequence[Sequence[Content]]) -> str:
    """Return methods beside each other: laps by course, random courses approved, flights that were clean.

    Args:
        rows: Of `airworthy.gates.benchmark.job.compared`.
        courses: Rows of every course, by method.
    """
    count, places = len(rows), [row["course"] for row in courses[0]] if courses else []
    tall = max(1.5, 0.32 * len(places), 0.34 * count * 2.0) + 1.0 + 0.2 * count
    with sheet(tall) as figure:
        panels = figure.subplots(1, 3, width_ratios=(1.35, 1.0, 1.0))
        top = 1.0 - (0.42 + 0.19 * count) / tall
        figure.subplots_adjust(left=0.135, right=0.985, top=top, bottom=0.28 / tall, wspace=0.14)
        _draw_laps(panels[0], courses, places)
        _draw_approved(panels[1], rows)
        _draw_clean(panels[2], rows)
        for k, row in enumerate(rows):
            panels[0].plot([], [], _MARKS[k % 6], color=PALETTE[COLORS[k % 6]], label=short_name(row["name"], 80))
        figure.legend(loc="upper left", ncols=1, bbox_to_anchor=(0.135, 1.0), handletextpad=0.4, labelspacing=0.25)
        return inline_svg(figure, "beside", "Predictors beside each other: laps, approved courses, clean flights")


def _draw_laps(axes: Any, courses: Sequence[Sequence[Content]], places: Sequence[str]) -> None:
    axes.set_title("Lap of the approved plan [s]")
    most = 1.0
    for k, own in enumerate(courses):
        # A little apart, so that equal laps do not hide one another.
        shift = 0.13 * (k - 0.5 * (len(courses) - 1))
        for place, row in enumerate(own):
            if row["flyable"]:
                time = row["laps"]["plan"]
                most = max(most, time)
                axes.plot(time, place + shift, _MARKS[k % 6], color=PALETTE[COLORS[k % 6]], markersize=5.0)
    axes.set_yticks(range(len(places)), places)
    axes.set_ylim(max(len(places), 1) - 0.5, -0.5)
    axes.set_xlim(0.0, 1.05 * most)


def _draw_approved(axes: Any, rows: Sequence[Content]) -> None:
    """Shares of random courses: approved as predicted, after stretching, after lowering; the rest was refused."""
    axes.set_title("Random courses approved [%]")
    for place, row in enumerate(rows):
        random, color = row["random"], PALETTE[COLORS[place % 6]]
        if random is None:
            continue
        alphas, each = {"untouched": 1.0, "stretched": 0.6, "lowered": 0.3}, 100.0 / max(random["courses"], 1)
        shares_bar(axes, place, [(each * random[name], color, alpha) for name, alpha in alphas.items()], 0.5)
        whisker(axes, place, 100.0 * random["approved"]["low"], 100.0 * random["approved"]["high"], level=True)
    _lines_of(axes, len(rows))


def _draw_clean(axes: Any, rows: Sequence[Content]) -> None:
    """Clean flights of the courses' plans, one mark per family, with 95 % intervals."""
    axes.set_title("Flights without crash or skip [%]")
    for place, row in enumerate(rows):
        for k, item in enumerate(row["flights"].values()):
            at, rate = place + 0.2 * (k - 0.5 * (len(row["flights"]) - 1)), item["success"]
            color = PALETTE[COLORS[place % 6]]
            whisker(axes, at, 100.0 * rate["low"], 100.0 * rate["high"], level=True, color=color, linewidth=1.4)
            axes.plot(100.0 * rate["value"], at, "o", color=color, markersize=4.0)
    _lines_of(axes, len(rows))


def _lines_of(axes: Any, count: int) -> None:
    axes.set_yticks([])
    axes.set_ylim(count - 0.5, -0.5)
    axes.set_xlim(0.0, 101.0)


# -----------------------------------------------------------------------------------------------------------------------------

REPORT_FILE = "report.html"
SHOWN = 3
"""Most courses whose flights are drawn: hard ones first, then those with most gates."""
HARD = ("mixed_10", "snake_10_hard")
"""Courses with frequent changes of direction and height, as the paper's one in simulation and reality."""


def write_report(
    config: GatesBenchConfig,
    blocks: Sequence[WorkBlock],
    contents: Mapping[str, Any],
    store: GatesStore,
    summary: Mapping[str, Any],
) -> Path:
    """Write it into the store's folder.

    Args:
        config: Of the run.
        blocks: Those that are finished.
        contents: Of them, by name.
        store: Where they lie.
        summary: Content of summary.json.

    Returns:
        The path of the report.
    """
    own = [(block, contents[block.name]) for block in blocks if block.who == 0]
    courses = [content for block, content in own if block.kind == "course"]
    flown = [content for block, content in own if block.kind == "flights" and content["rows"]]
    randoms = [row for block, content in own if block.kind == "random" for row in content["plans"]]
    everyone = [summary, *summary["beside"]]
    lines = {
        "title": "Gates: planned, proved, flown",
        "verdict": verdict(summary),
        "cards": cards(summary),
        "summary": summary,
        "promises": promises(summary["certificate"]),
        "families": [FAMILIES[name] for name in config.families],
        "others": OTHERS,
        "config": json_text(store.identity),
        "command": command_line("airworthy bench gates", config, leave_out=("json",)),
        "laps": markup(figure_laps(summary["courses"])) if summary["courses"] else None,
        "shown": _shown(courses, flown),
        "random": markup(figure_random(randoms)) if any(row["flyable"] for row in randoms) else None,
        "beside": markup(figure_baselines(summary["compared"], [item["courses"] for item in everyone]))
        if everyone[1:]
        else None,
        "errors": _errors(blocks, contents, everyone),
        "hardware": summary["hardware"],
    }
    return write_text(store.folder / REPORT_FILE, page_of("airworthy.gates.benchmark", trim=False, filters=FILTERS, **lines))


def _errors(
    blocks: Sequence[WorkBlock], contents: Mapping[str, Any], everyone: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Figure and numbers of every network that was held against a fresh search."""
    found = []
    for block in blocks:
        if block.kind == "errors" and contents[block.name]["percent"]:
            row = everyone[block.who]
            figure = markup(figure_errors(contents[block.name], f"errors-{block.who}"))
            found.append({"name": row["name"], "figure": figure, **row["errors"]})
    return found


def promises(certificate: Mapping[str, Any]) -> list[str]:
    """Return what every approved plan keeps, for people."""
    lines = []
    if "envelope" in certificate:
        most, cubic = certificate["envelope"]
        lines.append(f"acceleration + {cubic:g} v^3 at most {most:g} m/s^2")
    if "thrust_max" in certificate:
        lines.append(f"thrust over mass from {certificate['thrust_min']:.2f} to {certificate['thrust_max']:.2f} m/s^2")
    for name, text in (("body_rate", "body rates at most"), ("yaw_rate", "yaw rate at most")):
        if name in certificate:
            lines.append(f"{text} {certificate[name]:g} rad/s")
    if "yaw_acceleration" in certificate:
        lines.append(f"yaw acceleration at most {certificate['yaw_acceleration']:g} rad/s^2")
    if rotors := certificate.get("rotors"):
        least, most = (100.0 * rotors[0][key] for key in ("least", "most"))
        lines.append(f"every rotor between {least:g} and {most:g} % of its largest thrust")
    lines.append(f"{certificate['clearance']:g} m to every gate frame")
    return [*lines, f"{certificate['floor']:g} m above the floor"]


def _shown(courses: Sequence[Mapping[str, Any]], flown: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Figures of the hardest courses that were approved."""
    able = [item for item in courses if item["plan"]["flyable"]]
    able.sort(key=lambda item: (item["course"] not in HARD, -item["plan"]["gates"]))
    shown = []
    for k, item in enumerate(able[:SHOWN]):
        mine = [one for one in flown if one["course"] == item["course"]]
        figures = [figure_path(item, mine, f"path-{k}"), figure_limit(item, f"limit-{k}")]
        if mine:
            figures.append(figure_error(mine, f"error-{k}"))
        shown.append(
            {
                "name": item["course"],
                "figures": [markup(svg) for svg in figures],
                "sentences": item["plan"]["certificate"]["sentences"],
            }
        )
    return shown


def verdict(summary: Mapping[str, Any]) -> str:
    """Return one sentence on top."""
    courses = summary["courses"]
    approved = [row for row in courses if row["flyable"]]
    flights = sum(row["flights"] for row in summary["aggregate"].values())
    clean = sum(row["successes"] for row in summary["aggregate"].values())
    text = [f"{len(approved)} of {len(courses)} courses approved with a certificate"]
    if flights:
        text.append(f"{clean:,} of {flights:,} randomised flights of them passed every gate without touching")
    random = summary["random"]
    if random:
        text.append(f"{random['approved_count']:,} of {random['courses']:,} random courses approved")
    return "; ".join(text) + "."


def cards(summary: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return large numbers under the title."""
    made = []
    for name, row in summary["aggregate"].items():
        below = f"{row['crashes']} crashes, {row['skips']} skips, {row['wrong_ways']} wrong ways of {row['flights']}"
        tone = "good" if row["successes"] == row["flights"] else "poor"
        made.append(card(f"flights, {name.replace('_', '-')}", f"{100.0 * row['success']['value']:.1f}", "%", below, tone))
    if random := summary["random"]:
        below = f"{random['untouched']} of {random['courses']} as predicted"
        made.append(card("random courses", f"{100.0 * random['approved']['value']:.1f}", "% approved", below))
    dense = summary["dense"]
    if dense["plans"]:
        below = "looked at 10,000 times a second" + (", the law 20,000 times" if dense["law_samples"] else "")
        broken = dense["broken"]
        made.append(card("certificates broken", f"{broken:,}", f"of {dense['plans']:,}", below, "poor" if broken else "good"))
    took = summary["prediction_us_per_gate"]
    return [*made, card("prediction", f"{took:,.0f}", "us", "per gate of a course, one core")]


def _rate(interval: Mapping[str, Any]) -> str:
    """Write a rate and its interval, [%]; empty where there is none."""
    if interval["value"] is None or interval["value"] != interval["value"]:
        return ""
    return f"{100.0 * interval['value']:.1f} ({100.0 * interval['low']:.1f} to {100.0 * interval['high']:.1f})"


def _hundredfold(value: float | None, digits: int = 2) -> str:
    return fixed(None if value is None else 100.0 * value, digits, "")


FILTERS: Mapping[str, Callable[..., str]] = {
    "number": lambda value, digits=2: fixed(value, digits, ""),
    "percent": _rate,
    "cm": _hundredfold,
    "hundred": lambda value: _hundredfold(value, 1),
}
"""Of the template."""
