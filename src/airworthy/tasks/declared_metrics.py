"""Metrics of flights, each declared once: what it is called, in which unit and with how many decimals, which way is better.

What is computed under these names stands in `evaluation.metrics` (flights along a course) and `tasks.navigation`
(flights to a goal). Summaries, tables, figures and commands take names, words, units and decimals from here: a new metric is a
line of `METRICS`, its name in the lists of the tables that show it, and its computation.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from math import degrees

from airworthy.core.errors import unknown_name
from airworthy.tasks.tracking import TrackingProtocol

__all__ = ["CONDITION", "COURSE", "COURSE_SUMMARY", "FLIGHT_ROW", "GOAL", "METRICS", "PAIRED", "Metric", "metric"]


@dataclass(frozen=True)
class Metric:
    """A number of a flight, wherever it is shown."""

    name: str
    """Of a field of `FlightResult`, a column of flights, a key of summaries; it ends with the unit of what is stored."""
    title: str
    """Where there is room; names of `TrackingProtocol`'s fields in braces stand for their values."""
    unit: str
    """As shown; "" for counts."""
    meaning: str
    """What it is, in one phrase."""
    better: str = ""
    """"lower" or "higher"; "" where neither is."""
    short: str = ""
    """Over a narrow column; "" where the title is short."""
    factor: float = 1.0
    """From the stored unit to the one shown."""
    digits: int = 3
    """Decimals in tables whose columns are aligned."""

    def label(self, short: bool = False, protocol: TrackingProtocol | None = None) -> str:
        """Return the title, or its short form, without the unit.

        Args:
            short: Whether the short form is asked for.
            protocol: Whose thresholds a title names; None: the defaults.
        """
        return (self.short if short and self.short else self.title).format(**asdict(protocol or TrackingProtocol()))

    def heading(self, short: bool = False, protocol: TrackingProtocol | None = None) -> str:
        """Return `label` with the unit in brackets: "tracking error [m]"."""
        text = self.label(short, protocol)
        return f"{text} [{self.unit}]" if self.unit else text

    def caption(self, short: bool = False, protocol: TrackingProtocol | None = None) -> str:
        """Return `heading` with a capital, for a panel or a card.

        Args:
            short: As of `label`.
            protocol: As of `label`.
        """
        text = self.heading(short, protocol)
        return text[0].upper() + text[1:]

    def hint(self, protocol: TrackingProtocol | None = None) -> str:
        """Return what it is, and which way is better, in one line."""
        text = self.meaning.format(**asdict(protocol or TrackingProtocol()))
        return f"{text}; {self.better} is better" if self.better else text


_DEG = degrees(1.0)
_2, _3 = "\N{SUPERSCRIPT TWO}", "\N{SUPERSCRIPT THREE}"
_5, _6, _7 = "\N{SUPERSCRIPT FIVE}", "\N{SUPERSCRIPT SIX}", "\N{SUPERSCRIPT SEVEN}"

METRICS: dict[str, Metric] = {
    item.name: item
    for item in (
        # ---- Of flights along a course and to a goal.
        Metric("path_length_m", "path length", "m", "length of the flown path", short="path", digits=1),
        Metric("speed_max_m_s", "top speed", "m/s", "greatest speed of a flight", digits=2),
        # ---- Of flights along a course: fields of `FlightResult`.
        Metric("tracking_error_m", "tracking error", "m", "mean distance to the nearest point of the path", "lower", "error"),
        Metric(
            "tracking_error_max_m",
            "greatest distance to the path",
            "m",
            "greatest distance to the nearest point of the path",
            "lower",
            "greatest",
        ),
        Metric(
            "time_matched_error_m",
            "distance to the moving reference",
            "m",
            "mean distance to where the reference was at the same time",
            "lower",
        ),
        Metric(
            "proximity_percent",
            "within {proximity_m:g} m of the path",
            "%",
            "share of samples at most {proximity_m:g} m from the path",
            "higher",
            "within {proximity_m:g} m",
            digits=1,
        ),
        Metric(
            "end_distance_m",
            "distance to the last waypoint",
            "m",
            "least distance to the last waypoint in the last {end_window_s:g} s",
            "lower",
            "end",
        ),
        Metric(
            "yaw_error_median_rad", "median yaw error", "deg", "median of the yaw error", "lower", "yaw", factor=_DEG, digits=1
        ),
        Metric("yaw_error_end_rad", "yaw error at the end", "deg", "yaw error at the end", "lower", factor=_DEG, digits=1),
        Metric("collisions", "collisions", "", "events of contact, or of less clearance than is allowed", "lower", digits=0),
        Metric("collisions_per_m", "collisions per metre", "1/m", "collisions over the length flown", "lower", "hits"),
        Metric(
            "saturation_percent",
            "rotors saturated",
            "%",
            "share of samples with a rotor command at a limit",
            "lower",
            "saturated",
            digits=1,
        ),
        Metric("tilt_max_rad", "greatest tilt", "deg", "greatest angle from upright", short="tilt", factor=_DEG, digits=1),
        Metric(
            "command_mean_square_rad2_s2",
            "mean square of rotor speed commands",
            f"rad{_2}/s{_2}",
            "mean over samples and rotors of the squared rotor speed command",
            "lower",
            digits=0,
        ),
        Metric("duration_s", "time flown", "s", "time from the start to the end of a flight", short="time", digits=1),
        # ---- Of flights to a goal: columns of the navigation benchmark.
        Metric("time_s", "time", "s", "time from the goal being issued to the end", "lower", digits=1),
        Metric("speed_mean_m_s", "mean speed", "m/s", "length of the flown path over its time", digits=2),
        Metric("clearance_min_m", "least distance", "m", "least distance of the body to anything", "higher", digits=2),
        Metric("tracking_rmse_m", "off the set-point", "m", "root mean square distance to the set-point", "lower"),
        Metric(
            "thrust_saturation",
            "rotors saturated",
            "%",
            "share of time with a rotor command beyond a limit",
            "lower",
            factor=100.0,
            digits=1,
        ),
        Metric(
            "rate_saturation",
            "rates saturated",
            "%",
            "share of time with a body rate beyond its limit",
            "lower",
            factor=100.0,
            digits=1,
        ),
        Metric(
            "jerk_integral",
            f"jerk{_2}",
            f"10{_3} m{_2}/s{_5}",
            "integral of the squared jerk",
            "lower",
            factor=1e-3,
            digits=1,
        ),
        Metric(
            "snap_integral",
            f"snap{_2}",
            f"10{_6} m{_2}/s{_7}",
            "integral of the squared snap",
            "lower",
            factor=1e-6,
            digits=1,
        ),
        Metric("control_effort", "effort", "s", "integral of the mean squared share of full command", "lower", digits=2),
        Metric("replans", "replans", "", "plans made on the way", digits=1),
        Metric("failed_at", "failed after", "% of way", "way flown by those that failed", "higher", factor=100.0, digits=0),
    )
}
"""By name."""

COURSE = (
    "tracking_error_m",
    "tracking_error_max_m",
    "time_matched_error_m",
    "proximity_percent",
    "end_distance_m",
    "yaw_error_median_rad",
    "yaw_error_end_rad",
    "collisions_per_m",
    "saturation_percent",
    "speed_max_m_s",
    "tilt_max_rad",
    "path_length_m",
    "duration_s",
)
"""Over all flights of a run along a course, in a report's order."""
COURSE_SUMMARY = (*COURSE[:11], "command_mean_square_rad2_s2", *COURSE[11:])
"""Described in a summary's aggregate, in this order."""
FLIGHT_ROW = (
    "tracking_error_m",
    "tracking_error_max_m",
    "proximity_percent",
    "end_distance_m",
    "yaw_error_median_rad",
    "collisions",
)
"""Of each flight along a course, in lists of flights; reports of single runs add what is in `FLIGHT_ROW_MORE`."""
FLIGHT_ROW_MORE = ("saturation_percent", "speed_max_m_s", "tilt_max_rad", "path_length_m", "duration_s")
PAIRED = ("tracking_error_m", "proximity_percent")
"""Whose differences between pilots are told, and which the tracking protocol's figures draw."""
CONDITION = (*PAIRED, "collisions_per_m")
"""Of a pilot under a condition of the tracking protocol, beside what was published."""
GOAL = (
    "time_s",
    "path_length_m",
    "speed_mean_m_s",
    "speed_max_m_s",
    "clearance_min_m",
    "tracking_rmse_m",
    "thrust_saturation",
    "rate_saturation",
    "jerk_integral",
    "snap_integral",
    "control_effort",
    "replans",
)
"""Means over flights to a goal, in the order of summaries and of the report."""


def metric(name: str) -> Metric:
    """Return a metric by name.

    Raises:
        AirworthyError: There is none of this name; the nearest ones are named.
    """
    if name not in METRICS:
        raise unknown_name("metric", name, METRICS)
    return METRICS[name]
