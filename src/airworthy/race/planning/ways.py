"""Whether plans have a way through each gate at all, told before a solver looks for one for minutes."""

from __future__ import annotations

from itertools import product

import numpy as np

from airworthy.core.arrays import Array
from airworthy.core.errors import AirworthyError
from airworthy.race.gate_geometry import GateShape
from airworthy.race.gates_apart import check_apart
from airworthy.race.planning.beginnings import guess_speed
from airworthy.race.planning.bounds import PlanBounds
from airworthy.race.planning.obstacles import KeepOff
from airworthy.race.planning.plan import flown_gates, start_state
from airworthy.race.planning.racer import RacerModel
from airworthy.race.record import Race

__all__ = ["check_time", "check_ways", "time_note"]

_HASTE = 0.4
"""Part of the time of a solver's first guess in which no plan was found yet: the package's races all take 0.5 to 0.9 of it."""
_GRID = np.linspace(-1.0, 1.0, 9)
"""Places across a window that are tried, over its half size."""


def check_ways(race: Race, obstacles: KeepOff, options: PlanBounds) -> None:
    """Refuse a race with a gate whose whole window lies within what its plans keep off, or reaches beyond its opening.

    Args:
        race: Its course.
        obstacles: Of the course, with clearances.
        options: Margins of windows.

    Raises:
        AirworthyError: One sentence, with the gate and what is in its way.
    """
    check_apart(race)
    gates = flown_gates(race)
    ends = [start_state(race)[:3], *(gate.center for gate in gates)]
    for leg, gate in enumerate(gates):
        places = _window(gate, options)
        _check_opening(race, obstacles.passes[leg], gate, options)
        _check_posts(race, obstacles, leg, places)
        for frame, _, high in obstacles.blocking(leg, ends[leg], ends[leg + 1]):
            # The gate's own frame counts on the way there alone.
            if high == 1.0 and all(frame.level(place) < 1.0 for place in places):
                apart = float(np.linalg.norm(frame.shape.center - gate.center))
                raise AirworthyError(
                    f"No plan leads through gate {obstacles.passes[leg]!r} of the race {race.name!r}: gate {frame.name!r} is"
                    f" in its way (their centres are {apart:.3g} m apart), and plans keep off its frame; move one of them."
                )


def _check_opening(race: Race, name: str, gate: GateShape, options: PlanBounds) -> None:
    """Refuse a gate whose opening is so far from a rectangle that plans may lead beside it."""
    # Of a gate that is narrower than the least window its own edge is the bound: that it is narrow is another matter.
    sizes = np.minimum(_sizes(gate, options), [gate.half_width, gate.half_height]) * (1.0 - 1e-9)
    corners = [gate.center + a * sizes[0] * gate.left + b * sizes[1] * gate.up for a, b in product((-1.0, 1.0), (-1.0, 1.0))]
    if not np.all(gate.holds(np.array(corners))):
        size = f"{2.0 * gate.half_width:.3g} x {2.0 * gate.half_height:.3g} m"
        raise AirworthyError(
            f"Plans through gate {name!r} of the race {race.name!r} may miss its opening, which fills"
            f" {100.0 * gate.filled:.0f} % of the rectangle about its centre that holds its corners, {size}; expected corners"
            " of a rectangle, or nearly so."
        )


def _check_posts(race: Race, obstacles: KeepOff, leg: int, places: list[Array]) -> None:
    """Refuse a gate whose whole window is nearer to one post than plans keep, which fly over none."""
    for number, (x, y, least) in enumerate(obstacles.posts, 1):
        if all(np.hypot(place[0] - x, place[1] - y) < least for place in places):
            post = race.posts[number - 1]
            raise AirworthyError(
                f"No plan leads through gate {obstacles.passes[leg]!r} of the race {race.name!r}: post {number} is in its way,"
                f" which plans keep {least - post.radius:.3g} m off, and no plan leads over a post, although this one ends at"
                f" {post.top:.3g} m; move one of them."
            )


def check_time(race: Race, model: RacerModel, cruise: float) -> None:
    """Refuse a race whose time limit is shorter than any flight through its gates.

    Args:
        race: Its course.
        model: Who flies it.
        cruise: Largest speed of its plans [m/s].

    Raises:
        AirworthyError: One sentence, with both times.
    """
    gates = flown_gates(race)
    reach = np.array([0.0, *(np.hypot(gate.half_width, gate.half_height) for gate in gates)])
    length = float(np.sum(np.maximum(_lengths(race) - reach[1:] - reach[:-1], 0.0)))
    # From rest nobody is faster than with all of the thrust straight ahead, and the weight besides: L = a t^2 / 2.
    push = model.thrust_max / model.mass + model.gravity
    least = max(length / cruise, float(np.sqrt(2.0 * length / push)))
    if race.limits.time_s < least:
        raise AirworthyError(
            f"The race {race.name!r} ends after {race.limits.time_s:.3g} s (limits.time_s), and no flight through its gates"
            f" takes less than {least:.3g} s: raise it, or lower laps."
        )


def time_note(race: Race, model: RacerModel) -> str:
    """Return what is to be said of a time limit that no plan is likely to keep; empty: nothing.

    Args:
        race: Its course.
        model: Who flies it.
    """
    length = float(np.sum(_lengths(race)))
    usual = length / guess_speed(np.maximum(_lengths(race), 1e-3), model)
    if race.limits.time_s >= _HASTE * usual:
        return ""
    return (
        f"limits.time_s is {race.limits.time_s:.3g} s for {length:.3g} m from gate to gate, which asks for"
        f" {length / race.limits.time_s:.3g} m/s on average: plans for this vehicle will hardly be so fast"
    )


def _lengths(race: Race) -> Array:
    """Return lengths of the straight lines from the start through the centres of the openings [m], (passages,)."""
    points = np.vstack([race.start.position, *(gate.center for gate in flown_gates(race))])
    return np.asarray(np.linalg.norm(np.diff(points, axis=0), axis=1))


def _window(gate: GateShape, options: PlanBounds) -> list[Array]:
    sizes = _sizes(gate, options)
    return [gate.center + a * sizes[0] * gate.left + b * sizes[1] * gate.up for a, b in product(_GRID, _GRID)]


def _sizes(gate: GateShape, options: PlanBounds) -> list[float]:
    """Return half width and half height of the window that plans are bound to [m]."""
    return [max(size - options.margin, options.window) for size in (gate.half_width, gate.half_height)]
