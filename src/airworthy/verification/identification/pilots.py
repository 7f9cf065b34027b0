"""What an identified vehicle is good for: standard pilots hover it, fly a figure of eight and land it, and what is tuned on it
flies the truth (specification of identification, 11.9).
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from airworthy.benchmarks.tuning.run import TuneConfig, tune
from airworthy.benchmarks.tuning.sweep import GAINS, TESTS
from airworthy.benchmarks.tuning.sweep import Path as Eight
from airworthy.core.arrays import Array, ArrayLike
from airworthy.core.frames import rotate
from airworthy.simulation import Ground, Simulator, SimulatorConfig
from airworthy.vehicles import Vehicle, write_vehicle
from airworthy.verification.keeping import Memo
from airworthy.verification.published import Figure, below, zero

PILOTS = {"geometric": "tracking", "mellinger": "tracking:mellinger", "position": "position"}
"""Standard pilots, and the level at which the simulator flies them; the last holds set-points, and follows no path."""
HEIGHT = 2.0
"""Of hover, and of the figure of eight's middle [m]."""
HOVER_S, SETTLED_S = 8.0, 5.0
"""How long it hovers, from a place half a metre away, and how much of it may go by before that counts [s]."""
HOVER_MAX, EIGHT_MAX = 0.05, 0.1
"""Ours: largest distance in hover [m], and root mean square distance from the figure of eight over its half width."""
TOUCH_MAX, ASIDE_MAX, TILT_MAX = 0.6, 0.1, math.radians(5.0)
"""Ours: speed at touch-down [m/s], half as much again as was asked for; distance of the landing [m]; tilt at rest [rad]."""
RATIO_MAX = 1.1
"""Tracking error of the truth under what was tuned on the identified vehicle, over that under what was tuned on the truth."""
SINK = 0.4
"""Speed of the descent [m/s]."""
REST_S = 2.0
"""On the ground, with rotors still commanded towards it [s]."""
CANDIDATES = 64
"""Sets of gains of a tuning."""


@dataclass(frozen=True)
class StandardFlight:
    """How a pilot got on with a vehicle; NaN where it flew no such part."""

    pilot: str
    hover: float
    """Largest distance from the place, once settled [m]."""
    eight: float
    """Root mean square distance from the figure of eight, over its half width [-]."""
    touch: float
    """Speed at which it met the ground [m/s]."""
    aside: float
    """Distance of the landing from its place [m]."""
    tilt: float
    """From upright, at rest on the ground [rad]."""
    finished: bool
    """Whether it met the ground, and numbers stayed numbers."""


def standard_flights(vehicle: Vehicle, physics_rate: float = 960.0) -> list[StandardFlight]:
    """Fly a vehicle by each of the standard pilots, as they are set for it.

    Args:
        vehicle: What flies, and what its controllers believe.
        physics_rate: Steps per second [Hz].
    """
    return [_standard(vehicle, name, level, physics_rate) for name, level in PILOTS.items()]


def _standard(vehicle: Vehicle, name: str, level: str, physics_rate: float) -> StandardFlight:
    config = SimulatorConfig(level=level, physics_rate=physics_rate, ground=Ground(), wrench_noise=False, disturbance=False)
    simulator = Simulator(vehicle, config, 1, threads=1)
    rate, width = config.control_rate, 4 if level == "position" else 14
    simulator.reset(position=[0.4, -0.3, HEIGHT])

    def fly(position: Array, follow: Array | None = None) -> float:
        command = np.zeros(width)
        if follow is not None:
            command[:] = follow
        command[:3] = position
        simulator.step(command)
        return float(np.linalg.norm(simulator.position[0] - position))

    place = np.array([0.0, 0.0, HEIGHT])
    away = [fly(place) for _ in range(round(HOVER_S * rate))]
    hover = max(away[round(SETTLED_S * rate) :])
    eight = math.nan
    if width == 14:
        path = Eight(vehicle)
        misses = []
        for k in range(round(path.duration * rate)):
            wanted = path.command(k / rate)
            after = path.command((k + 1) / rate)[:3] + place
            fly(wanted[:3] + place, wanted)
            misses.append(float(np.sum((simulator.position[0] - after) ** 2)))
        eight = math.sqrt(float(np.mean(misses))) / path.size
    met, touch = False, math.nan
    sinking = np.zeros(width)
    for k in range(round((HEIGHT / SINK + REST_S) * rate)):
        sinking[5 if width == 14 else 3] = -SINK if width == 14 else 0.0
        fly(np.array([0.0, 0.0, HEIGHT - SINK * (k + 1) / rate]), sinking)
        if float(simulator.field("contact")[0]) > 0.0 and not met:
            met, touch = True, float(simulator.field("impact_speed")[0])
    up = rotate(simulator.attitude[0].astype(np.float64), np.array([0.0, 0.0, 1.0]))
    finished = met and not bool(simulator.diverged[0])
    aside = float(np.linalg.norm(simulator.position[0, :2]))
    return StandardFlight(name, hover, eight, touch, aside, math.acos(min(1.0, max(-1.0, float(up[2])))), finished)


def flight_figures(vehicles: Sequence[Vehicle]) -> Iterator[Figure]:
    """Measure how standard pilots fly identified vehicles.

    Args:
        vehicles: As they were identified.
    """
    flights = [(item.name, flight) for item in vehicles for flight in standard_flights(item)]
    of = f"of {len(vehicles)} identified vehicles x {len(PILOTS)} pilots"
    yield zero(f"flights without a landing, {of}", sum(not flight.finished for _, flight in flights))
    for title, field, most, unit in (
        ("hover, farthest from its place", "hover", HOVER_MAX, "m"),
        ("figure of eight, RMS over its half width", "eight", EIGHT_MAX, ""),
        ("speed at touch-down", "touch", TOUCH_MAX, "m/s"),
        ("landing, distance from its place", "aside", ASIDE_MAX, "m"),
        ("tilt on the ground", "tilt", TILT_MAX, "rad"),
    ):
        # What follows no path has no distance from it; any other NaN is a flight that went wrong.
        told = [f for f in flights if field != "eight" or f[1].pilot != "position"]
        name, worst = max(told, key=lambda f: _or_worse(getattr(f[1], field)))
        yield below(f"{title}, worst {of} ({name}, {worst.pilot})", getattr(worst, field), most, unit)


def _or_worse(value: float) -> float:
    return value if math.isfinite(value) else math.inf


def tuning_figures(pairs: Sequence[tuple[Vehicle, Vehicle]], memo: Memo) -> Iterator[Figure]:
    """Measure what controllers that were tuned on identified vehicles are worth on the truths.

    Args:
        pairs: Truth with its dead time, and what was identified of it.
        memo: Keeps the tracking errors of each.
    """
    found: list[tuple[str, float, float]] = []
    for truth, identified in pairs:
        kept = memo(f"tuned_{truth.name}", partial(_tracking_errors, truth, identified))
        # JSON keeps null of what diverged.
        own, theirs = (math.nan if kept[name] is None else float(kept[name]) for name in ("truth", "identified"))
        found.append((truth.name, own, theirs))
    name, own, theirs = max(found, key=lambda row: _or_worse(row[2] / row[1]))
    title = f"tuned on the identified vehicle over tuned on the truth: tracking error, worst of {len(pairs)}"
    yield below(f"{title} ({name}, {1e3 * theirs:.1f} over {1e3 * own:.1f} mm)", theirs / own, RATIO_MAX)


def _tracking_errors(truth: Vehicle, identified: Vehicle) -> dict[str, Any]:
    """Content of what is kept of `tuned_ratio`."""
    own, theirs = tuned_ratio(truth, identified)
    return {"truth": own, "identified": theirs}


# ---- Tuned on what was identified, flown by the truth ------------------------------------------------------------------------


def tuned_gains(vehicle: Vehicle, candidates: int = CANDIDATES, seed: int = 0) -> dict[str, tuple[float, ...]]:
    """Return what `airworthy tune` chooses for a vehicle, each gain per axis.

    Args:
        vehicle: It tunes on.
        candidates: Sets of gains that are flown.
        seed: Of them.
    """
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "vehicle.toml"
        write_vehicle(vehicle, file)
        config = TuneConfig(str(file), candidates, seed=seed, out=Path(folder) / "tuned")
        return dict(tune(config).gains.midpoint())


def tracking_error(truth: Vehicle, believed: Vehicle, gains: Mapping[str, ArrayLike], physics_rate: float = 960.0) -> float:
    """Return the root mean square distance from the figure of eight [m], NaN where the flight diverged.

    Args:
        truth: What flies, and for whom the figure is made.
        believed: What its controller takes it for.
        gains: Of the geometric law, those of `GAINS`.
        physics_rate: Steps per second [Hz].
    """
    config = SimulatorConfig(level="tracking", physics_rate=physics_rate, wrench_noise=False, disturbance=False)
    # The path is the last test of a tuning.
    simulator = Simulator(truth, config, 1, flight_ids=[TESTS - 1], believed=believed, threads=1)
    for name in GAINS:
        simulator.set_parameter(f"control_{name}", np.asarray(gains[name], float))
    simulator.reset()
    path, rate, sum_of_squares = Eight(truth), config.control_rate, 0.0
    steps = round(path.duration * rate)
    for k in range(steps):
        simulator.step(path.command(k / rate))
        sum_of_squares += float(np.sum((simulator.position[0] - path.command((k + 1) / rate)[:3]) ** 2))
    return math.nan if bool(simulator.diverged[0]) else math.sqrt(sum_of_squares / steps)


def tuned_ratio(truth: Vehicle, identified: Vehicle) -> tuple[float, float]:
    """Return tracking errors of the truth [m]: under what was tuned on the truth, and on what was identified of it.

    Args:
        truth: What flies.
        identified: What was found of it, which the second controller believes and was tuned on.
    """
    return (
        tracking_error(truth, truth, tuned_gains(truth)),
        tracking_error(truth, identified, tuned_gains(identified)),
    )
