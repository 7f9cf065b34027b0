"""Where a solver of minimum time begins: states at nodes, inputs between them and durations of legs, one after the other.

Gates and posts make the programme one with many ends, and where the solver ends depends on where it begins: with the rest of
the plan in force, which is nearly right; with straight lines or curves from gate to gate, where there is no plan yet; or with
a slow way into a gate or around a post, where the plan in force led to the wrong side of it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import pairwise

import numpy as np

from airworthy.core.arrays import Array
from airworthy.race.gate_geometry import GateShape
from airworthy.race.planning.obstacles import AROUND
from airworthy.race.planning.plan import RacePlan
from airworthy.race.planning.racer import RacerModel

__all__ = ["LEAST_LEG", "guess_speed", "made_up", "sampled", "slowly"]

LEAST_LEG = 0.03
"""Least duration of a leg [s]."""
_GUESS_SPEED = 9.0
"""Of the first guess, straight from gate to gate [m/s]: two thirds of what comes out."""
_GUESS_THRUST = 1.3
"""Its thrust over the weight."""
_AGAINST = 0.1
"""Least cosine between straight lines and the gates that they end in, below which the first guess is a curve: of AlphaPilot's
gates none is below 0.5, of a split-S the second is at 0."""
_SAME = 1e-3
"""Centres that are no farther from each other are those of one gate [m]."""
_SLOWLY = 0.8
"""Speed of that beginning [m/s]."""
_ASIDE = 1.2
"""How far such a beginning leads past a post, over what is to be kept off it."""


def sampled(plan: RacePlan, clock: float, legs: int, nodes: int, state: Array) -> Array:
    """Return the rest of a plan as a beginning.

    Args:
        plan: Its last legs are those that are left.
        clock: Its time where the beginning begins [s].
        legs: That are left.
        nodes: On each.
        state: Where it begins, (13,).
    """
    ends = np.concatenate([[clock], plan.gate_times[-legs:]])
    durations = np.maximum(np.diff(ends), LEAST_LEG)
    part = np.arange(nodes) / nodes
    times = np.concatenate([*(a + part * (b - a) for a, b in pairwise(ends)), ends[-1:]])
    states, inputs = plan.at(times)
    # One sign of the quaternion throughout: interpolation may meet either, and the start is where the guess begins.
    sign = np.where(states[:, 6:10] @ state[6:10] < 0.0, -1.0, 1.0)
    turned = np.cumprod(np.where(np.sum(states[1:, 6:10] * states[:-1, 6:10], axis=1) < 0.0, -1.0, 1.0))
    states[:, 6:10] *= sign[0] * np.concatenate([[1.0], turned])[:, None]
    states[0] = state
    return np.concatenate([states.ravel(), inputs[:-1].ravel(), durations])


def made_up(
    start: Array, gates: Sequence[GateShape], model: RacerModel, nodes: int, share: float = 1.0, side: float = 1.0
) -> Array:
    """Return a way from gate to gate at one speed, upright: straight, or in curves where a straight line runs against a gate.

    From a gate to the same gate it leads in a level circle through its opening.

    Args:
        start: Where it begins, (13,).
        gates: In the order of flight.
        model: Who flies.
        nodes: On each leg.
        share: Of the usual speed; a way at another speed than the usual leads along curves.
        side: Of such a circle: 1 on the gate's left, -1 on its right.
    """
    corners = np.vstack([start[:3], *(gate.center for gate in gates)])
    gaps = np.diff(corners, axis=0)
    lengths = np.maximum(np.linalg.norm(gaps, axis=1), _SAME)
    round_ = [leg for leg in range(1, len(gates)) if lengths[leg] <= _SAME and gates[leg - 1].normal @ gates[leg].normal > 0.0]
    radii = {leg: 0.5 * (gates[leg].half_width + AROUND) for leg in round_}
    for leg, radius in radii.items():
        lengths[leg] = 2.0 * np.pi * radius
    speed = share * guess_speed(lengths, model)
    part = (np.arange(nodes) / nodes)[:, None]
    normals = np.stack([gate.normal for gate in gates])
    straight = np.sum(gaps * normals, axis=1) / lengths
    straight[round_] = 1.0
    if share != 1.0 or np.min(straight) < _AGAINST:
        places, velocities = _curves(corners, normals, lengths, speed, part)
    else:
        places = np.vstack([*(a + part * gap for a, gap in zip(corners, gaps, strict=False)), corners[-1:]])
        velocities = np.repeat(gaps / lengths[:, None] * speed, nodes, axis=0)
    for leg, radius in radii.items():
        rows = slice(leg * nodes, (leg + 1) * nodes)
        places[rows], ways = _circle(gates[leg], side * radius, part)
        velocities[rows] = speed * ways
    states = np.tile(start, (len(places), 1))
    states[:, :3] = places
    states[1:, 3:6] = velocities
    inputs = np.tile([_GUESS_THRUST * model.mass * model.gravity, 0.0, 0.0, 0.0], (len(velocities), 1))
    return np.concatenate([states.ravel(), inputs.ravel(), lengths / speed])


def _circle(gate: GateShape, radius: float, part: Array) -> tuple[Array, Array]:
    """Return a circle through a gate's centre and round one of its sides, and its directions, at parts of it: (nodes, 3) each.

    Args:
        gate: Its normal is the direction where the circle begins and ends.
        radius: Above 0 on its left [m].
        part: 0 to 1, (nodes, 1).
    """
    angle = 2.0 * np.pi * part
    place = gate.center + radius * ((1.0 - np.cos(angle)) * gate.left) + abs(radius) * np.sin(angle) * gate.normal
    return place, np.sign(radius) * np.sin(angle) * gate.left + np.cos(angle) * gate.normal


def guess_speed(lengths: Array, model: RacerModel) -> float:
    """Return the speed of a way that is made up [m/s].

    Args:
        lengths: Of its legs [m], (legs,).
        model: Who flies.
    """
    # Slower where legs are short: what is reached from rest on half of the mean leg with the thrust above the weight.
    pull = model.thrust_max / model.mass - model.gravity
    return min(_GUESS_SPEED, 0.5 * float(np.sqrt(max(pull, 1.0) * np.mean(lengths))))


def slowly(
    found: tuple[Array, Array, Array],
    legs: Collection[int],
    start: Array,
    gates: Sequence[GateShape],
    hover: Sequence[float],
    posts: Array | None = None,
) -> Array:
    """Return a solution as a beginning, some legs of it flown slowly, upright and straight into their gates.

    Args:
        found: The solution: states, inputs and durations of legs.
        legs: Numbers of those.
        start: Where it begins, (13,).
        gates: In the order of flight.
        hover: Inputs that hold the vehicle in the air, (4,).
        posts: Of `airworthy.race.planning.obstacles.KeepOff`: the legs lead past the one that each came nearest to on its
            other side; None: straight.
    """
    states, inputs, durations = (part.copy() for part in found)
    nodes = len(inputs) // len(durations)
    part = (np.arange(nodes) / nodes)[:, None]
    upright = np.array([0.0, 0.0, *start[8:10]]) / max(float(np.hypot(*start[8:10])), 1e-3)
    for leg in legs:
        first = leg * nodes
        here = states[first, :3].copy() if leg else start[:3]
        gate = gates[leg]
        length = max(float(np.linalg.norm(gate.center - here)), 1e-3)
        places, slopes = _curve(here, gate.center, gate.center - here, length * gate.normal, part)
        rows = slice(first + 1, first + nodes)
        velocities = slopes * _SLOWLY / length
        if posts is not None:
            places = _beyond(states[first : first + nodes, :3], places, gate.center, posts)
        states[rows] = np.hstack([places[1:], velocities[1:], np.tile([*upright, 0.0, 0.0, 0.0], (nodes - 1, 1))])
        states[first + nodes, :6] = *gate.center, *(_SLOWLY * gate.normal)
        inputs[first : first + nodes] = hover
        durations[leg] = length / _SLOWLY
    return np.concatenate([states.ravel(), inputs.ravel(), durations])


def _beyond(flown: Array, places: Array, end: Array, posts: Array) -> Array:
    """Return places of a leg that lead in straight lines past the other side of the post that a path came nearest to.

    Args:
        flown: The path, (nodes, 3).
        places: Where the leg would go without, (nodes, 3).
        end: Of the leg, (3,).
        posts: x, y and what is to be kept off each [m], (posts, 3).
    """
    away = flown[:, None, :2] - posts[:, :2]
    distance = np.linalg.norm(away, axis=2) / posts[:, 2]
    node, post = np.unravel_index(np.argmin(distance), distance.shape)
    x, y, least = posts[post]
    side = away[node, post] / max(float(np.linalg.norm(away[node, post])), 1e-3)
    via = np.array([*(np.array([x, y]) - _ASIDE * least * side), flown[node, 2]])
    share = float(np.clip(node / len(places), 0.2, 0.8))
    part = (np.arange(len(places)) / len(places))[:, None]
    to, onwards = part / share, (part - share) / (1.0 - share)
    return np.where(part < share, places[0] + to * (via - places[0]), via + onwards * (end - via))


def _curve(a: Array, b: Array, u: Array, v: Array, part: Array) -> tuple[Array, Array]:
    """Cubic Hermite curve between two points, and its slope, at parts of it: (nodes, 3) each.

    Args:
        a: Where it begins [m], (3,).
        b: Where it ends.
        u: Its slope at the begin, by the part [m], (3,).
        v: At the end.
        part: 0 to 1, (nodes, 1).
    """
    square, cube = part**2, part**3
    place = (2 * cube - 3 * square + 1) * a + (cube - 2 * square + part) * u + (3 * square - 2 * cube) * b + (cube - square) * v
    return place, 6 * (square - part) * (a - b) + (3 * square - 4 * part + 1) * u + (3 * square - 2 * part) * v


def _curves(corners: Array, normals: Array, lengths: Array, speed: float, part: Array) -> tuple[Array, Array]:
    """Cubic Hermite curves from gate to gate along their normals: positions, (nodes + 1, 3), and velocities behind the start,
    (nodes, 3).
    """
    tangents = np.vstack([np.zeros(3), normals])
    found = [
        _curve(corners[leg], corners[leg + 1], length * tangents[leg], length * tangents[leg + 1], part)
        for leg, length in enumerate(lengths)
    ]
    ways = np.vstack([*(slope for _, slope in found), lengths[-1] * tangents[-1]])[1:]
    places = np.vstack([*(place for place, _ in found), corners[-1:]])
    return places, speed * ways / np.maximum(np.linalg.norm(ways, axis=1, keepdims=True), 1e-3)
