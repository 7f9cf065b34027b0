"""Figures of the gates report as inline SVG, after spec/boundary_predictor section 13.

Blue is the plan, green the competition's family of dynamics, amber the second one, grey what is only held beside it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from airworthy.evaluation._svg import PALETTE, STYLE, inline_svg

Array = NDArray[np.float64]
Content = Mapping[str, Any]

WIDTH = 10.6
FAMILY_COLORS = {"competition": "second", "crazyflow": "warn", "semi_kinematic": "muted"}
LAPS = {
    "least": ("nothing can be faster", "axis", "|"),
    "minimum_snap": ("min-snap, times optimised", "muted", "s"),
    "trapezoid": ("min-snap, trapezoid times", "warn", "D"),
    "through_gates": ("through gates, dynamic programming", "second", "o"),
    "plan": ("this plan", "flown", "o"),
}
"""Planner -> name for people, colour, mark."""
DASHES = (0, (4, 2))
MOST = ("envelope", "thrust_max", "body_rate")
"""Checks of which the largest share is drawn."""


def figure_laps(courses: Sequence[Content]) -> str:
    """Lap times of every planner, a line per course; hollow where its certificate or its passage failed."""
    with _style():
        tall = 0.85 + 0.33 * len(courses)
        figure = _figure(tall)
        axes = figure.add_axes((0.15, 0.42 / tall, 0.835, (tall - 0.85) / tall))
        for place, row in enumerate(courses):
            known = [t for t in row["laps"].values() if t]
            axes.plot([min(known), max(known)], [place, place], color=PALETTE["grid"], linewidth=3.0, zorder=1)
            for name, (_, color, mark) in LAPS.items():
                time = row["laps"].get(name)
                if time:
                    sure = name == "least" or (row["verdicts"].get(name) == "proven" and row["passed"].get(name))
                    _mark(axes, time, place, mark, PALETTE[color], bool(sure))
        axes.set_yticks(range(len(courses)), [row["course"] for row in courses])
        axes.set_ylim(len(courses) - 0.5, -0.5)
        axes.set_xlim(0.0, 1.03 * max(t for row in courses for t in row["laps"].values() if t))
        axes.grid(axis="y", visible=False)
        axes.set_xlabel("from rest at the start to the last gate [s]")
        for name, (title, color, mark) in LAPS.items():
            axes.plot([], [], mark, color=PALETTE[color], markersize=8.0 if name == "least" else 5.0, label=title)
        figure.legend(loc="upper left", ncols=5, bbox_to_anchor=(0.15, 1.0), handletextpad=0.3, columnspacing=1.4)
        return inline_svg(figure, "laps", "Lap times of the plan and of other planners under the same limit, by course")


def _mark(axes: Any, x: float, y: float, mark: str, color: str, filled: bool) -> None:
    size = 13.0 if mark == "|" else 6.0
    axes.plot(x, y, mark, color=color, markersize=size, markerfacecolor=color if filled else "none", markeredgewidth=1.3)


def figure_path(course: Content, flown: Sequence[Content], name: str) -> str:
    """A course from above and its heights over time: commanded, and flown in each family."""
    place = np.asarray(course["path"]["position_m"])
    t = np.asarray(course["path"]["t_s"])
    turned = np.ptp(place[:, 1]) > 1.2 * np.ptp(place[:, 0])
    right, up = (1, 0) if turned else (0, 1)
    with _style():
        span = np.ptp(place[:, [right, up]], axis=0) + 1.0
        high = float(np.clip(0.6 * WIDTH * span[1] / span[0], 1.6, 4.6))
        figure = _figure(high + 0.9)
        plan, side = figure.subplots(1, 2, width_ratios=(1.5, 1.0))
        figure.subplots_adjust(left=0.04, right=0.985, top=1.0 - 0.55 / (high + 0.9), bottom=0.42 / (high + 0.9), wspace=0.1)
        for item in flown:
            color = PALETTE[FAMILY_COLORS.get(item["family"], "ink")]
            for path in np.asarray(item["paths_m"], dtype=float):
                plan.plot(path[:, right], path[:, up], color=color, linewidth=0.7, alpha=0.5)
                side.plot(item["error"]["t_s"], path[:, 2], color=color, linewidth=0.7, alpha=0.5)
        plan.plot(place[:, right], place[:, up], color=PALETTE["flown"], linewidth=1.3)
        side.plot(t, place[:, 2], color=PALETTE["flown"], linewidth=1.3)
        for gate in course["gates"]:
            _gate(plan, gate, right, up)
        _gate_heights(side, course)
        plan.set_aspect("equal", adjustable="datalim")
        if turned:
            plan.invert_yaxis()  # y to the right needs x downwards: otherwise the view would be a mirror image
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
        axes.plot(ends[:, right], ends[:, up], color=PALETTE["ink"], linewidth=3.0, solid_capstyle="butt")
    both = np.array([center - inner * left, center + inner * left])
    axes.plot(both[:, right], both[:, up], color=PALETTE["ink"], linewidth=0.6)


def _gate_heights(axes: Any, course: Content) -> None:
    """The opening of each gate when it is passed."""
    ends = np.cumsum(course["plan"]["durations_s"])[:-1]
    for k, when in enumerate(ends):
        gate = course["gates"][k % len(course["gates"])]
        z, half = gate["position_m"][2], 0.5 * gate["opening_m"][1]
        for low in (z - half - 0.05, z + half):
            axes.plot([when, when], [low, low + 0.05], color=PALETTE["ink"], linewidth=2.2, solid_capstyle="butt")


def figure_error(flown: Sequence[Content], name: str) -> str:
    """Position error over time in each family: median and the middle nine tenths of the flights."""
    with _style():
        figure = _figure(2.3)
        axes = figure.add_axes((0.045, 0.19, 0.94, 0.62))
        for item in flown:
            color = PALETTE[FAMILY_COLORS.get(item["family"], "ink")]
            t = np.asarray(item["error"]["t_s"], dtype=float)
            bands = 100.0 * np.array([[np.nan if x is None else x for x in row] for row in item["error"]["bands_m"]])
            axes.fill_between(t, bands[0], bands[2], color=color, alpha=0.2)
            axes.plot(t, bands[1], color=color)
        axes.set_ylim(bottom=0.0)
        axes.set_title(f"Position error on {flown[0]['course']} [cm]")
        axes.set_xlabel("time [s]")
        _family_legend(figure, flown, plan=False)
        return inline_svg(figure, name, "Position error over time in each family of dynamics")


def figure_limit(course: Content, name: str) -> str:
    """Speed and use of the limits along a plan."""
    path, checks = course["path"], course["plan"]["certificate"]["checks"]
    t = np.asarray(path["t_s"])
    ends = np.cumsum(course["plan"]["durations_s"])[:-1]
    with _style():
        figure = _figure(2.1)
        panels = figure.subplots(1, 2)
        figure.subplots_adjust(left=0.045, right=0.985, top=0.86, bottom=0.2, wspace=0.12)
        used = 100.0 * np.asarray(path["used"])
        title = "Limit a + k v$^3$ used [%]" if "envelope" in checks else "Thrust and body rates used [%]"
        for axes, values, words in zip(panels, (path["speed_m_s"], used), ("Speed [m/s]", title), strict=True):
            axes.plot(t, values, color=PALETTE["flown"])
            axes.vlines(ends, 0.0, 1.0, transform=axes.get_xaxis_transform(), color=PALETTE["axis"], linewidth=0.6)
            axes.set_title(words)
            axes.set_xlabel("time [s]; lines: gates")
            axes.set_ylim(bottom=0.0)
        panels[1].axhline(100.0, color=PALETTE["bad"], linewidth=1.0)
        bound = 100.0 * max(checks[key]["bound"] / checks[key]["limit"] for key in MOST if key in checks)
        panels[1].axhline(bound, color=PALETTE["ink"], linewidth=0.9, linestyle=DASHES)
        panels[1].set_ylim(top=1.12 * max(100.0, bound))
        return inline_svg(figure, name, "Speed and use of the limits along the plan")


def figure_random(plans: Sequence[Content]) -> str:
    """Random courses: lap times over the least possible, and the proved use of the limit and clearance."""
    approved = [row for row in plans if row["flyable"]]
    columns = (
        _laps_column(approved),
        ("Limit used, proved [%]", [100.0 * row["limit_used"] for row in approved]),
        ("Proved clearance to frames [m]", [row["clearance_m"] for row in approved]),
    )
    with _style():
        figure = _figure(2.0)
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
    from matplotlib.lines import Line2D

    handles = [Line2D([], [], color=PALETTE["flown"], linewidth=1.4)] if plan else []
    labels = ["commanded"] if plan else []
    for item in flown:
        handles.append(Line2D([], [], color=PALETTE[FAMILY_COLORS.get(item["family"], "ink")], linewidth=1.4))
        labels.append(item["family"].replace("_", "-"))
    figure.legend(handles, labels, loc="upper right", ncols=len(labels), bbox_to_anchor=(0.985, 1.0), columnspacing=1.4)


def _style() -> AbstractContextManager[Any]:
    import matplotlib as mpl

    context: AbstractContextManager[Any] = mpl.rc_context(dict(STYLE))
    return context


def _figure(height: float) -> Any:
    from matplotlib.figure import Figure

    return Figure(figsize=(WIDTH, height))
