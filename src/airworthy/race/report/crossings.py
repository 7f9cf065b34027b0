"""Each passage of each flight in numbers: speed and angle, offset in the opening, what was seen before, how well it was known.

Numbers are read off the trace at 60 Hz by straight lines between its rows; times and offsets are the referee's.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from airworthy.core.arrays import Array, ArrayAny
from airworthy.race.benchmark.recording import RaceTrace
from airworthy.race.benchmark.tables import Row
from airworthy.race.courses import course_of
from airworthy.race.gate_geometry import GateShape
from airworthy.race.planning.plan import flown_gates
from airworthy.race.record import Race

NAN = float("nan")


@dataclass(frozen=True, eq=False)
class FlownRace:
    """One flight with its course and its trace."""

    row: Row
    """Of the results."""
    trace: RaceTrace
    gates: tuple[GateShape, ...]
    """True openings of each passage, normals along the flight."""
    points: bool = True
    """Whether the race is scored by points; else by its time."""

    @property
    def course(self) -> str:
        """Its name."""
        return str(self.row["course"])

    @property
    def completed(self) -> bool:
        """Whether it flew the race to its end."""
        return bool(self.row["completed"])

    @property
    def word(self) -> str:
        """How it ended, for people."""
        if self.completed:
            return f"{self.row['time_s']:.2f} s" + (f", {self.row['score']:.2f} points" if self.points else "")
        hit = f" with {self.row['part']}" if self.row["part"] else ""
        return f"{str(self.row['end']).replace('_', ' ')}{hit} after {self.end_s:.1f} s"

    @property
    def end_s(self) -> float:
        """Time of its last row [s]."""
        return float(self.trace.time[-1]) if len(self.trace.time) else 0.0

    @property
    def next_gate(self) -> int:
        """Passage that it was on its way to when it ended; the last one of those that finished."""
        counted = [passage_time(item) for item in self.row["passages"]]
        done = [k for k, time in enumerate(counted) if math.isfinite(time)]
        return min(done[-1] + 1 if done else 0, len(counted) - 1)


def flown_race(race: Race, row: Row, trace: RaceTrace) -> FlownRace:
    """Return a flight with its course.

    Args:
        race: Nominal.
        row: Of the results.
        trace: Of the same flight.
    """
    return FlownRace(row, trace, flown_gates(course_of(race, row["course"])), race.score.rule == "points")


def passage_time(item: Mapping[str, Any]) -> float:
    """Return when a passage was made: at its plane, where the strict test has it; NaN where it was not."""
    found = item["strict_s"] if item["strict_s"] is not None else item["loose_s"]
    return NAN if found is None else float(found)


@dataclass(frozen=True)
class Passage:
    """One passage of one flight; NaN where a number is not there."""

    gate: str
    time: float
    """Since arming [s]."""
    leg: float
    """Since the passage before, or arming [s]."""
    missed: bool
    differs: bool
    """One test counts it and the other does not."""
    loose_ahead: float
    """How much earlier the loose test counts it [s]."""
    speed: float
    """[m/s]."""
    incidence: float
    """Between the velocity and the gate's normal [deg]."""
    lateral: float
    """To the left of the centre [m]."""
    vertical: float
    """Above the centre [m]."""
    room: tuple[float, float]
    """Half width and half height of the opening [m]."""
    seen: float
    """With one of its beacons in view, on this leg [s]."""
    last_range: float
    """From which a beacon of it was seen last [m]."""
    position_error: float
    """Of the pilot's position [m]."""
    gate_error: float
    """Of the pilot's lateral offset to the gate, to the left [m]."""
    gate_sigma: float
    """What the pilot takes for that error's standard deviation [m]."""


def crossings_of(flight: FlownRace) -> list[Passage]:
    """Return the passages of a flight, in order; those that were not made are not among them, missed ones are."""
    found, before = [], 0.0
    for k, item in enumerate(flight.row["passages"]):
        time = passage_time(item)
        if not math.isfinite(time):
            if item["missed"]:
                found.append(_missed(item, flight.gates[k]))
            continue
        found.append(_crossing(flight, k, time, before))
        before = time
    return found


def _missed(item: Mapping[str, Any], shape: GateShape) -> Passage:
    room = (shape.half_width, shape.half_height)
    return Passage(item["gate"], NAN, NAN, True, False, NAN, NAN, NAN, NAN, NAN, room, NAN, NAN, NAN, NAN, NAN)


def _crossing(flight: FlownRace, number: int, time: float, before: float) -> Passage:
    item, shape, trace = flight.row["passages"][number], flight.gates[number], flight.trace
    velocity = at_time(trace.time, trace.velocity, time)
    speed = float(np.linalg.norm(velocity))
    cosine = abs(float(velocity @ shape.normal)) / max(speed, 1e-9)
    loose, strict = item["loose_s"], item["strict_s"]
    known = errors_at(flight, number, time)
    seen, last = _sight(flight, number, time, before)
    offset = [NAN if value is None else float(value) for value in item["offset_m"]]
    return Passage(
        gate=item["gate"],
        time=time,
        leg=time - before,
        missed=bool(item["missed"]),
        differs=item["gate"] in flight.row["differing"],
        loose_ahead=strict - loose if loose is not None and strict is not None else NAN,
        speed=speed,
        incidence=math.degrees(math.acos(min(1.0, cosine))),
        lateral=offset[0],
        vertical=offset[1],
        room=(shape.half_width, shape.half_height),
        seen=seen,
        last_range=last,
        position_error=known[0],
        gate_error=known[1],
        gate_sigma=known[2],
    )


def at_time(times: ArrayAny, rows: ArrayAny, time: float) -> Array:
    """Return rows (n, k) at a time, along straight lines between them, (k,).

    Args:
        times: Rising [s], (n,).
        rows: (n, k).
        time: [s].
    """
    return np.array([np.interp(time, times, rows[:, k]) for k in range(rows.shape[1])], np.float64)


def _sight(flight: FlownRace, number: int, time: float, before: float) -> tuple[float, float]:
    """Return for how long the gate was in view on this leg [s], and its range at the last sight [m]."""
    trace = flight.trace
    rows = np.flatnonzero((trace.visible[:, number] > 0) & (trace.time < time))
    if not len(rows):
        return 0.0, NAN
    frame = float(np.median(np.diff(trace.time))) if len(trace.time) > 1 else 0.0
    reach = float(np.linalg.norm(trace.position[rows[-1]] - flight.gates[number].center))
    return float(np.sum(trace.time[rows] >= before)) * frame, reach


def lateral_errors(flight: FlownRace, number: int) -> Array:
    """Return by how much the pilot errs in a gate's lateral offset from itself, to the left [m], (n,); NaN where it is unsaid.

    The offset is what a passage needs: own position and gate may both be off by the same.

    Args:
        flight: The flight.
        number: Of the passage.
    """
    said, trace, shape = flight.trace.said, flight.trace, flight.gates[number]
    if "gates" not in said or "position" not in said:
        return np.full(len(trace.time), NAN)
    believed = said["gates"][:, number].astype(np.float64) - said["position"]
    return np.asarray((believed - (shape.center - trace.position)) @ shape.left)


def position_errors(flight: FlownRace) -> Array:
    """Return the pilot's position minus the true one [m], (n, 3); NaN where it is unsaid."""
    trace = flight.trace
    if "position" not in trace.said:
        return np.full((len(trace.time), 3), NAN)
    return np.asarray(trace.said["position"].astype(np.float64) - trace.position)


def errors_at(flight: FlownRace, number: int, time: float) -> tuple[float, float, float]:
    """Return error of position, lateral error of the gate, and its sigma in the last row before a passage [m].

    Args:
        flight: The flight.
        number: Of the passage.
        time: Of the passage [s].
    """
    row = int(np.searchsorted(flight.trace.time, time, side="left")) - 1
    if row < 0:
        return NAN, NAN, NAN
    sigma = flight.trace.said.get("gate_sigma")
    return (
        float(np.linalg.norm(position_errors(flight)[row])),
        float(lateral_errors(flight, number)[row]),
        NAN if sigma is None else float(sigma[row, number]),
    )


# ---- Of many flights --------------------------------------------------------------------------------------------------------


def gate_summary(flights: Sequence[FlownRace]) -> list[dict[str, Any]]:
    """Return each passage over all flights: counts, and medians, means or largest values of those that made it."""
    if not flights:
        return []
    made = [crossings_of(flight) for flight in flights]
    lines = []
    for k, shape in enumerate(flights[0].gates):
        name = flights[0].row["passages"][k]["gate"]
        mine = [item for row in made for item in row[k : k + 1] if item.gate == name]
        passed = [item for item in mine if math.isfinite(item.time)]
        lines.append(
            {
                "gate": name,
                "passed": len(passed),
                "missed": sum(item.missed for item in mine),
                "ended": sum(not flight.completed and flight.next_gate == k for flight in flights),
                "differing": sum(item.differs for item in passed),
                "time": _median([item.time for item in passed]),
                "leg": _median([item.leg for item in passed]),
                "speed": _median([item.speed for item in passed]),
                "incidence": _median([item.incidence for item in passed]),
                "lateral": _largest([item.lateral for item in passed]),
                "vertical": _largest([item.vertical for item in passed]),
                "room": (shape.half_width, shape.half_height),
                "loose_ahead_ms": 1e3 * _median([item.loose_ahead for item in passed]),
                "seen": _median([item.seen for item in passed]),
                "seen_least": _least([item.seen for item in passed]),
                "last_range": _median([item.last_range for item in passed]),
                "position_rms": _rms([item.position_error for item in passed]),
                "gate_rms": _rms([item.gate_error for item in passed]),
                "gate_worst": _largest([item.gate_error for item in passed]),
                "gate_sigma": _rms([item.gate_sigma for item in passed]),
            }
        )
    return lines


def gate_accuracy(flights: Sequence[FlownRace]) -> dict[str, Any] | None:
    """Return how well gates and own place were known where gates were crossed; None of pilots that say nothing of it.

    Args:
        flights: Of one pilot.

    Returns:
        `passages`, and root mean square and largest of both errors [m]: across the gate, of its place as seen from the vehicle
        (`gate_rms_m`, `gate_largest_m`), and of the vehicle's own place (`position_rms_m`, `position_largest_m`).
    """
    crossed = [item for flight in flights for item in crossings_of(flight) if math.isfinite(item.gate_error)]
    if not crossed:
        return None
    gates, places = [item.gate_error for item in crossed], [item.position_error for item in crossed]
    return {
        "passages": len(crossed),
        "gate_rms_m": _rms(gates),
        "gate_largest_m": _largest(gates),
        "position_rms_m": _rms(places),
        "position_largest_m": _largest(places),
    }


def _finite(values: Sequence[float]) -> Array:
    found = np.asarray(values, np.float64)
    return found[np.isfinite(found)]


def _median(values: Sequence[float]) -> float:
    found = _finite(values)
    return float(np.median(found)) if found.size else NAN


def _largest(values: Sequence[float]) -> float:
    found = np.abs(_finite(values))
    return float(found.max()) if found.size else NAN


def _least(values: Sequence[float]) -> float:
    found = _finite(values)
    return float(found.min()) if found.size else NAN


def _rms(values: Sequence[float]) -> float:
    found = _finite(values)
    return float(np.sqrt(np.mean(found**2))) if found.size else NAN
