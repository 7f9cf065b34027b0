"""One row per flight: what it was, what became of it, what was measured, and everything that is needed to fly it again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np

from airworthy import __version__
from airworthy.benchmarks.navigation.config import Flight, NavigationConfig
from airworthy.benchmarks.navigation.methods import NavigationMethod
from airworthy.benchmarks.navigation.missions import catalogue_vehicle, flown_vehicle, own_line, scene_sha256
from airworthy.benchmarks.navigation.own_scenes import is_own
from airworthy.benchmarks.navigation.planner_adapter import PLANNER_LOG
from airworthy.benchmarks.navigation.takeoff import FlownBatch
from airworthy.core.files import json_text, sha256
from airworthy.tasks.navigation import DIAGNOSTICS
from airworthy.vehicles import indicators

__all__ = ["COLUMNS", "Row", "rows_of", "vehicle_digest", "versions"]

Row = dict[str, Any]

COLUMNS: dict[str, type] = {
    "pilot": str,
    "scenario": str,
    "configuration": int,
    "vehicle": str,
    "repeat": int,
    "number": int,
    "outcome": str,
    "success": int,
    "cause": str,
    "time_s": float,
    "arrival_s": float,
    "take_off_s": float,
    "end_x_m": float,
    "end_y_m": float,
    "end_z_m": float,
    "goal_distance_m": float,
    **dict.fromkeys(DIAGNOSTICS, float),
    **{
        name: str if name in ("work", "latencies") else int if name in ("replans", "decisions") else float
        for name in PLANNER_LOG
    },
    "category": str,
    "mass_kg": float,
    "twr": float,
    "alpha_xy": float,
    "alpha_z": float,
    "body_radius_m": float,
    "a_max_m_s2": float,
    "seed": int,
    "layouts": int,
    "trace": str,
    "scene_sha256": str,
    "vehicle_sha256": str,
    "pilot_sha256": str,
    "versions": str,
}
"""Names and types, in order. `success` is 0 or 1; `arrival_s` NaN where the goal was never reached; `number` the key of what is
random in the flight; `trace` a fingerprint of its every state."""

LINE = "line_m"
"""From start to goal [m]: a column of tables with places of one's own, beside `COLUMNS`."""

DRAWN = "drawn"
"""What a flight drew of its vehicle, SI units by name of `vehicles.record.UNCERTAIN`, as JSON: a column where flights draw."""


@cache
def versions() -> str:
    """Return what computes, as JSON."""
    import warp

    return json.dumps({"airworthy": __version__, "numpy": np.__version__, "warp": str(warp.config.version)})


@cache
def vehicle_digest(name: str, body: str) -> str:
    """Return the SHA-256 of a vehicle as it is flown."""
    from airworthy.vehicles.files import vehicle_text

    return sha256(vehicle_text(flown_vehicle(name, body)))


@cache
def _facts(name: str) -> tuple[str, float, float, float, float]:
    """Category, mass and indicators: the published ones where the record has them."""
    vehicle = catalogue_vehicle(name)
    found, recorded = indicators(vehicle), vehicle.extra
    values = (found.thrust_to_weight, found.alpha_xy_max, found.alpha_z_max)
    names = ("published_thrust_to_weight", "published_alpha_xy_max", "published_alpha_z_max")
    twr, axy, az = (float(recorded.get(key, value)) for key, value in zip(names, values, strict=True))
    return str(recorded.get("category", "other")), float(vehicle.mass), twr, axy, az


def rows_of(flown: FlownBatch, method: NavigationMethod, config: NavigationConfig) -> list[Row]:
    """Return the rows of a batch, in its order.

    Args:
        flown: What became of a batch of flights.
        method: That flew them; its name and the digest of its identity are written down.
        config: Of the benchmark.
    """
    recorded = sha256(json_text({"name": method.name, **method.identity}))
    return [_row(flown, k, flight, method.name, recorded, config) for k, flight in enumerate(flown.flights)]


def _row(flown: FlownBatch, k: int, flight: Flight, pilot: str, pilot_sha256: str, config: NavigationConfig) -> Row:
    outcome = str(flown.watch.outcome[k])
    category, mass, twr, axy, az = _facts(flight.vehicle)
    end = flown.position[k]
    row: Row = {
        "pilot": pilot,
        "scenario": flight.scenario,
        "configuration": flight.configuration,
        "vehicle": flight.vehicle,
        "repeat": flight.repeat,
        "number": flight.number,
        "outcome": outcome,
        "success": int(outcome == "success"),
        "cause": flown.cause[k],
        "time_s": float(flown.watch.end[k]),
        "arrival_s": float(flown.watch.arrival[k]),
        "take_off_s": float(flown.takeoff.time[k]),
        **{f"end_{axis}_m": float(end[i]) for i, axis in enumerate("xyz")},
        "goal_distance_m": float(np.linalg.norm(end - flown.mission.goal[k])),
        **{name: float(values[k]) for name, values in flown.values.items()},
        **{name: values[k] for name, values in flown.planner_log.items()},
        "category": category,
        "mass_kg": mass,
        "twr": twr,
        "alpha_xy": axy,
        "alpha_z": az,
        "body_radius_m": float(flown.vehicles[k].body.size[0]),
        "a_max_m_s2": float(flown.mission.acceleration[k]),
        "seed": config.seed,
        "layouts": config.layouts,
        "trace": flown.trace[k],
        "scene_sha256": scene_sha256(flight, config),
        "vehicle_sha256": vehicle_digest(flight.vehicle, config.body),
        "pilot_sha256": pilot_sha256,
        "versions": versions(),
    }
    recorded = {name: row[name] for name in COLUMNS}
    if flown.drawn:
        recorded[DRAWN] = json_text({**flown.drawn[k].values, "rejected": flown.drawn[k].rejected})
    return {**recorded, LINE: own_line(flight, config)} if is_own(flight.scenario) else recorded


def same_row(a: Mapping[str, Any], b: Mapping[str, Any]) -> list[str]:
    """Return columns in which two rows differ, NaN being equal to NaN; versions may."""

    def alike(x: Any, y: Any) -> bool:
        return x == y or (isinstance(x, float) and isinstance(y, float) and x != x and y != y)

    return [name for name in a if name != "versions" and not alike(a[name], b.get(name))]
