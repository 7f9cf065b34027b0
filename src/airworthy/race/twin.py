"""The referee once more, step by step and flight by flight, for readers and tests: slow, and written to be compared with.

Float64 throughout. The strict test is another one: the point in the gate's own frame, inside by its width and height, so that
on the edge of an opening and of gates that are no rectangles the exact one of `airworthy.race.crossing` may differ.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from airworthy.core.arrays import Array, ArrayInt
from airworthy.race.gate_geometry import GateShape, gate_shape
from airworthy.race.record import Race
from airworthy.race.referee import CLOSING_S, INFLATION, NEAR_PLANE, RaceEnd


@dataclass
class TwinVerdict:
    """What `judged_slowly` found of one flight; names as in `airworthy.race.RefereeState`."""

    loose_time: list[float]
    missed: list[bool]
    strict_time: list[float]
    end: RaceEnd = RaceEnd.RUNNING
    end_step: int = 0
    irregular: list[tuple[float, str]] = field(default_factory=list)
    """Time and gate."""


def loosely_passed(shape: GateShape, point: Array) -> bool:
    """Tell whether the loose test holds for a gate at a point (3,) [m]."""
    low, high = shape.corners.min(axis=0) - INFLATION, shape.corners.max(axis=0) + INFLATION
    if not (np.all(point > low) and np.all(point < high)):
        return False
    first, second, third, _ = shape.corners
    normal = np.cross(second - first, third - first)
    return abs(float((point - first) @ normal)) / float(np.linalg.norm(normal)) < NEAR_PLANE


def crossed(shape: GateShape, before: Array, after: Array) -> tuple[int, float]:
    """Return in which direction a step crosses an opening, 0 where it does not, and which part of the step was flown then.

    Args:
        shape: The gate.
        before: Position at the step's beginning [m], (3,).
        after: At its end, (3,).
    """
    one, other = float((before - shape.center) @ shape.normal), float((after - shape.center) @ shape.normal)
    # On the plane counts as behind it, so that a flight that stops there has crossed once.
    if (one < 0.0) == (other < 0.0):
        return 0, 0.0
    share = one / (one - other)
    met = before + share * (after - before) - shape.center
    inside = abs(float(met @ shape.left)) <= shape.half_width and abs(float(met @ shape.up)) <= shape.half_height
    return (1 if one < 0.0 else -1) if inside else 0, share


def judged_slowly(race: Race, path: Array, events: ArrayInt, rate: float) -> TwinVerdict:
    """Judge one flight.

    Args:
        race: Its course.
        path: Positions at each physics step [m], (steps, 3), the first at arming.
        events: `RaceEnd` of what happened in the step before each, or 0, (steps,).
        rate: Steps per second [Hz].
    """
    names, count = [gate.name for gate in race.gates], len(race.passes)
    shapes = [gate_shape(gate) for gate in race.gates]
    wanted = [(names.index(name), -1 if reverse else 1) for name, reverse in race.passes]
    verdict = TwinVerdict([math.nan] * count, [False] * count, [math.nan] * count)
    loose_next = strict_next = 0
    for step, point in enumerate(path):
        time = step / rate
        # Behind the loose finish only the strict test goes on, and not for long.
        if verdict.end and (race.test == "strict" or (step - verdict.end_step) / rate > CLOSING_S or strict_next == count):
            break
        told = RaceEnd(int(events[step]))
        if told == 0 and _outside(race, point):
            told = RaceEnd.OUT_OF_BOUNDS
        if told:
            if not verdict.end:
                verdict.end, verdict.end_step = told, step
            break
        # The first sample ends no step.
        met = []
        for number, shape in enumerate(shapes if step else ()):
            way, share = crossed(shape, path[step - 1], point)
            if way:
                met.append((share, number, way))
        # Strict passages go before the loose test of the same step, and have times of their own.
        for share, number, way in sorted(met):
            passage = (step - 1 + share) / rate
            if not verdict.end and passage > race.limits.time_s:
                continue
            if strict_next < count and (number, way) == wanted[strict_next]:
                verdict.strict_time[strict_next] = passage
                strict_next += 1
                if strict_next == count and race.test == "strict":
                    verdict.end, verdict.end_step = RaceEnd.FINISHED, step
                    return verdict
            else:
                verdict.irregular.append((passage, names[number]))
        if race.test == "loose" and not verdict.end and time <= race.limits.time_s:
            # In their order: two at once are both passed, what lies between them is missed.
            for k in range(loose_next, count):
                if loosely_passed(shapes[wanted[k][0]], point):
                    verdict.loose_time[k] = time
                    for skipped in range(loose_next, k):
                        verdict.missed[skipped] = True
                    loose_next = k + 1
            if loose_next == count:
                verdict.end, verdict.end_step = RaceEnd.FINISHED, step
        if not verdict.end and time >= race.limits.time_s:
            verdict.end, verdict.end_step = RaceEnd.TIME_LIMIT, step
            break
    return verdict


def _outside(race: Race, point: Array) -> bool:
    lower, upper = race.limits.lower, race.limits.upper
    return lower is not None and upper is not None and bool(np.any(point < lower) or np.any(point > upper))
