"""Values that no flight can have: what is read of a table from anywhere, said in words."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from math import isfinite, isnan
from typing import Any

from airworthy.core.errors import AssetError
from airworthy.core.files import parse_json

__all__ = ["impossible"]

_ALWAYS = (
    "time_s", "speed_max_m_s", "clearance_min_m", "compute_s", "latency_median_s", "latency_p95_s", "latency_max_s",
    "mass_kg", "twr", "alpha_xy", "alpha_z", "body_radius_m", "a_max_m_s2",
)  # fmt: skip
"""Numbers that every flight has, however it ended."""
_SUCCESS = (
    "arrival_s", "take_off_s", "end_x_m", "end_y_m", "end_z_m", "goal_distance_m", "path_length_m", "speed_mean_m_s",
    "jerk_integral", "snap_integral", "control_effort", "thrust_saturation", "rate_saturation",
)  # fmt: skip
"""Numbers that one has besides which arrived; of others a state may have been given up that was no number any more."""
_SIGNED = ("end_x_m", "end_y_m", "end_z_m", "clearance_min_m")
"""May be below 0; a body that something moved into is nearer to it than touching."""
_SHARES = ("thrust_saturation", "rate_saturation")
_COUNTS = ("replans", "decisions")
_REST = ("tracking_rmse_m",)
_NOT_NEGATIVE = tuple(name for name in (*_ALWAYS, *_SUCCESS, *_REST, *_COUNTS) if name not in _SIGNED)


_SINGLE = 2.0**-23
"""Rounding of a single: a collision ends at its own time, which the simulation keeps so."""


def impossible(row: Mapping[str, Any]) -> str:
    """Return what a flight cannot have of what its row says, as "has time_s -1.0, where ..."; "" where nothing is.

    Args:
        row: Of a table, its columns of the kinds that they have.
    """
    for name in (*_ALWAYS, *_SUCCESS * row["success"]):
        if not isfinite(row[name]):
            return f"has {name} {row[name]}, where a flight that ended as {row['outcome']} has a number"
    for name in _NOT_NEGATIVE:
        if row[name] < 0.0:
            return f"has {name} {row[name]}, where a flight has 0 or more"
    for name in _SHARES:
        if row[name] > 1.0:
            return f"has {name} {row[name]}, where a share is at most 1"
    if not isnan(row["arrival_s"]) and row["arrival_s"] > row["time_s"] * (1.0 + _SINGLE):
        return f"has arrival_s {row['arrival_s']}, after its end at {row['time_s']}"
    return _unreadable(row["work"], row["latencies"])


@lru_cache(maxsize=4096)
def _unreadable(work: str, latencies: str) -> str:
    """Return which of the two texts is not what a flight writes: counts by name, and a list of seconds or nothing."""
    if not isinstance(counted := _parsed(work or "{}"), dict) or not all(map(_is_amount, counted.values())):
        return f"has the work {work[:60]!r}, where a flight has counts by name, as JSON"
    if not isinstance(times := _parsed(latencies or "[]"), list) or not all(map(_is_amount, times)):
        return f"has the latencies {latencies[:60]!r}, where a flight has a list of seconds, as JSON, or nothing"
    return ""


def _parsed(text: str) -> Any:
    try:
        return parse_json(text, "a row")
    except AssetError:
        return None


def _is_amount(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value) and value >= 0
