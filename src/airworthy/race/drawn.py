"""Races that are drawn: gates moved within their bounds, layouts placed anew, and whole races from a seed.

Every draw is a pure function of the seed and a number, on every machine (`airworthy.core.random`). `random:SEED` keeps to
limits of geometry: how far gates stand apart, how much a leg turns and climbs, how high gates stand, how clear the legs are of
other gates. Whether a vehicle can fly what is drawn, and how fast, they do not say: that needs a planner.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from airworthy.core.arrays import Array, ArrayLike
from airworthy.core.errors import AirworthyError
from airworthy.core.random import Stream, flight_key, uniforms
from airworthy.race.gate_geometry import gate_shape, moved_gate
from airworthy.race.record import (
    GateFrames,
    GateLayout,
    Post,
    Race,
    RaceGate,
    RaceInformation,
    RaceLimits,
    RaceScore,
    RaceStart,
)

_TRIES = 200
"""Of one gate or post before the layout begins anew."""
_LAYOUTS = 200
"""Of one layout before it is given up."""

# ---- Within bounds ----------------------------------------------------------------------------------------------------------


def perturbed(race: Race, seed: int, index: int) -> Race:
    """Return the race with gates, posts and start moved within their bounds: where things stand, not where they are said to.

    Args:
        race: Nominal.
        seed: Of a family of courses.
        index: Of the course, from 0.

    Raises:
        AirworthyError: A negative index, or a race whose courses its scene draws (`airworthy.race.course_of`).
    """
    if race.scene:
        raise AirworthyError(f"Courses of the race {race.name!r} are those of its scene: course_of(race, 'fresh/SEED/NUMBER').")
    # Four numbers for each thing, used or not: a bound that is changed moves nothing else.
    things: list[RaceStart | RaceGate | Post] = [race.start, *race.gates, *race.posts]
    draws = iter(2.0 * _numbers(seed, index, 0, 4 * len(things)).reshape(-1, 4) - 1.0)
    shifts = [next(draws) * thing.bound.shift for thing in things]
    start, gates = shifts[0], shifts[1 : 1 + len(race.gates)]
    posts = [
        replace(post, position=(post.position[0] + d[0], post.position[1] + d[1]), top=post.top + d[2])
        for post, d in zip(race.posts, shifts[1 + len(race.gates) :], strict=True)
    ]
    x, y, z = (float(a + b) for a, b in zip(race.start.position, start, strict=False))
    return replace(
        race,
        start=replace(race.start, position=(x, y, z), yaw_deg=race.start.yaw_deg + float(start[3])),
        # What does not move keeps the form that it has in the file.
        gates=tuple(moved_gate(g, d) if np.any(d) else replace(g) for g, d in zip(race.gates, gates, strict=True)),
        posts=tuple(posts),
    )


def _numbers(seed: int, index: int, step: int, count: int) -> Array:
    """Uniform numbers between 0 and 1, (count,)."""
    if not 0 <= index < 2**32 or not 0 <= seed < 2**63:
        raise AirworthyError(
            f"A course was asked for with seed {seed} and index {index}; expected 0 or more, below 2^63 and 2^32."
        )
    return uniforms(flight_key(seed, index), step, Stream.COURSE, count)


class _Draws:
    """Uniform numbers one after the other, for draws whose number is not known before."""

    def __init__(self, seed: int, index: int):
        self._seed, self._index, self._step = seed, index, 0
        self._left: list[float] = []

    def between(self, low: float, high: float) -> float:
        """Return a number between two."""
        # 64 at once: one call of the generator costs as much for one.
        if not self._left:
            self._step += 1
            self._left = _numbers(self._seed, self._index, self._step, 64).tolist()
        return low + (high - low) * self._left.pop()

    def below(self, count: int) -> int:
        """Return a whole number from 0, below a count."""
        return min(int(self.between(0.0, count)), count - 1)


# ---- Layouts ----------------------------------------------------------------------------------------------------------------


def placed(race: Race, seed: int, index: int = 0) -> Race:
    """Return the race with gates and posts placed anew by the rules of its layout.

    One gate after the other is drawn within the limits until it keeps its distances; a post is drawn beside each leg. These are
    the rules of the third level of learnsyslab/lsy_drone_racing (@9c01c96, envs/randomize.py), on the plane instead of a grid
    of cells, and without its resort to cells that break them.

    Args:
        race: With a layout.
        seed: Of a family of layouts.
        index: Of the layout, from 0.

    Raises:
        AirworthyError: It has no layout, or none was found that keeps its distances.
    """
    rules = race.layout
    if rules is None:
        raise AirworthyError(f"The race {race.name!r} has no layout: its gates stand where its file has them.")
    draws = _Draws(seed, index)
    for _ in range(_LAYOUTS):
        found = _layout(race, rules, draws)
        if found is not None:
            gates, posts = found
            return replace(race, gates=gates, posts=posts, layout=replace(rules, seed=seed, index=index))
    raise AirworthyError(
        f"No layout of the race {race.name!r} keeps its distances: make its limits wider or its distances less."
    )


def _layout(race: Race, rules: GateLayout, draws: _Draws) -> tuple[tuple[RaceGate, ...], tuple[Post, ...]] | None:
    """One layout, None where a gate or post found no place."""
    assert race.limits.lower is not None
    assert race.limits.upper is not None
    low = np.asarray(race.limits.lower[:2]) + rules.border_m
    high = np.asarray(race.limits.upper[:2]) - rules.border_m
    start = np.asarray(race.start.position[:2])
    reached: list[Array] = [start]
    gates: list[RaceGate] = []
    posts: list[Post] = []
    for number, gate in enumerate(race.gates):
        place = _place(draws, low, high, lambda p: _free_for_gate(p, reached, posts, rules))
        if place is None:
            return None
        # Facing the way on which it is reached, within what the rules allow: never from behind.
        ahead = place - reached[-1]
        yaw = math.degrees(math.atan2(ahead[1], ahead[0])) + draws.between(-rules.turn_deg, rules.turn_deg)
        shape = gate_shape(gate)
        height = float(shape.center[2])
        opening = gate.opening or (2.0 * shape.half_width, 2.0 * shape.half_height)
        x, y = (float(value) for value in place)
        gates.append(RaceGate(gate.name, position=(x, y, height), yaw_deg=yaw, opening=opening, bound=gate.bound))
        reached.append(place)
        if number < len(race.posts):
            spot = _place(draws, low, high, lambda p: _free_for_post(p, reached, posts, rules))
            if spot is None:
                return None
            posts.append(replace(race.posts[number], position=(float(spot[0]), float(spot[1]))))
    return tuple(gates), tuple(posts)


def _place(draws: _Draws, low: Array, high: Array, free: Callable[[Array], bool]) -> Array | None:
    """Point of a rectangle that is free; None where none was found."""
    for _ in range(_TRIES):
        point = np.array([draws.between(low[0], high[0]), draws.between(low[1], high[1])])
        if free(point):
            return point
    return None


def _free_for_gate(point: Array, reached: Sequence[Array], posts: Sequence[Post], rules: GateLayout) -> bool:
    if any(np.linalg.norm(point - other) < rules.gates_m for other in reached):
        return False
    if any(np.linalg.norm(point - post.position) < rules.posts_gates_m for post in posts):
        return False
    return all(_beside(point, a, b) >= rules.corridor_m for a, b in pairwise(reached))


def _free_for_post(point: Array, reached: Sequence[Array], posts: Sequence[Post], rules: GateLayout) -> bool:
    if any(np.linalg.norm(point - other) < rules.posts_gates_m for other in reached[1:]):
        return False
    if np.linalg.norm(point - reached[0]) < rules.gates_m:
        return False
    if any(np.linalg.norm(point - post.position) < rules.posts_m for post in posts):
        return False
    return _beside(point, reached[-2], reached[-1]) < rules.corridor_m


def _beside(point: ArrayLike, a: ArrayLike, b: ArrayLike) -> float:
    """Distance of a point from a segment [m], of any dimension."""
    p, start, along = np.asarray(point), np.asarray(a), np.asarray(b) - np.asarray(a)
    share = float(np.clip((p - start) @ along / max(float(along @ along), 1e-12), 0.0, 1.0))
    return float(np.linalg.norm(p - start - share * along))


# ---- Whole races ------------------------------------------------------------------------------------------------------------
# All of these are ours: the sizes of the races that come with the package (openings of 0.4 to 4.7 m, legs of 3 to 36 m) leave
# room for a vehicle of 0.3 m at 5 to 15 m/s, and half of the turning radius at 8 m/s and 2 g lies below the least leg.

GATES = (6, 12)
"""Least and largest number of gates of a random race."""
LEG = (5.0, 15.0)
"""Horizontal distance from gate to gate [m]."""
TURN_MAX = 100.0
"""Of the course from one leg to the next [deg]; behind a stacked pair, from the way back."""
CLIMB_MAX = 0.5
"""Height over horizontal distance from gate to gate."""
HEIGHTS = (1.5, 6.0)
"""Of gate centres [m]."""
OPENING = (1.4, 2.4)
"""Side of the square openings [m]."""
AHEAD = 25.0
"""A gate faces within this of the mean of the legs before and behind it [deg]."""
CLEAR = 2.5
"""Legs keep this from gates that they do not join [m]."""
SPECIAL = 0.35
"""How often a gate has a second one above or below it: flown both ways in turn (split-S down, or a climb back)."""
VEHICLE = "kingfisher"
"""Who flies a random race unless another is named."""
_RANDOM_TIME_S = 120.0


def random_race(seed: int) -> Race:
    """Return a race drawn from a seed: 6 to 12 gates, some stacked and flown as a split-S or a climb back.

    It keeps to limits of geometry (`GATES`, `LEG`, `TURN_MAX`, `CLIMB_MAX`, `HEIGHTS`, `OPENING`, `CLEAR`). That a given
    vehicle can fly it is likely, and not proved.

    Args:
        seed: From 0.
    """
    draws = _Draws(seed, 0)
    for _ in range(_LAYOUTS):
        race = _random(seed, draws)
        if race is not None:
            return race
    raise AirworthyError(f"No race was found for random:{seed}: take another seed.")


def _random(seed: int, draws: _Draws) -> Race | None:
    # The first numbers say what kind of race it is, so that a layout that fails is begun anew with another kind.
    count = GATES[0] + draws.below(GATES[1] - GATES[0] + 1)
    start = np.array([0.0, 0.0, draws.between(1.0, 2.0)])
    side = round(draws.between(*OPENING), 2)
    chain = _chain(draws, start, count, side)
    if chain is None:
        return None
    ways = [b - a for a, b in zip([start, *(exit_ for _, exit_ in chain[:-1])], (point for point, _ in chain), strict=True)]
    gates, order = [], []
    for k, (point, left_from) in enumerate(chain):
        stacked = bool(left_from[2] != point[2])
        after = ways[k + 1] if k + 1 < count else ways[k]
        # Who turns back between two stacked gates enters the first against the way on which the second is left.
        mean = ways[k] / np.linalg.norm(ways[k]) + (-after if stacked else after) / np.linalg.norm(after)
        yaw = math.degrees(math.atan2(mean[1], mean[0])) + draws.between(-AHEAD, AHEAD)
        gates.append(RaceGate(f"{k + 1}", position=_rounded(point), yaw_deg=round(yaw, 2), opening=(side, side)))
        order.append(f"{k + 1}")
        if stacked:
            gates.append(replace(gates[-1], name=f"{k + 1}b", position=_rounded(left_from)))
            order.append(f"-{k + 1}b")
    return Race(
        name=f"random:{seed}",
        title=f"A drawn race of {len(gates)} gates",
        order=tuple(order),
        start=RaceStart(_rounded(start), round(math.degrees(math.atan2(ways[0][1], ways[0][0])), 2)),
        limits=RaceLimits(_RANDOM_TIME_S),
        score=RaceScore("time"),
        gates=tuple(gates),
        information=RaceInformation(("state",), "exact"),
        frames=GateFrames(),
        vehicle=VEHICLE,
        description="Spacing, turns, climbs and clearances keep to limits of geometry; no planner has proved it.",
        source="drawn by this project",
    )


def _rounded(point: ArrayLike) -> tuple[float, float, float]:
    x, y, z = (round(float(value), 3) for value in np.asarray(point))
    return x, y, z


def _chain(draws: _Draws, start: Array, count: int, side: float) -> list[tuple[Array, Array]] | None:
    """Where each gate is entered and where it is left: elsewhere where a second one is stacked on it, and there the course
    turns back. None where it ran into a corner.
    """
    chain: list[tuple[Array, Array]] = []
    course = math.radians(draws.between(-180.0, 180.0))
    for k in range(count):
        before = [start, *(exit_ for _, exit_ in chain)]
        for _ in range(_TRIES):
            turn = math.radians(draws.between(-TURN_MAX, TURN_MAX)) if chain else 0.0
            leg, rise = draws.between(*LEG), draws.between(-CLIMB_MAX, CLIMB_MAX)
            heading = course + turn
            point = before[-1] + leg * np.array([math.cos(heading), math.sin(heading), rise])
            if HEIGHTS[0] <= point[2] <= HEIGHTS[1] and _clear(point, before):
                break
        else:
            return None
        # The last gate stays alone: the race ends in it.
        turned_back = k + 1 < count and draws.between(0.0, 1.0) < SPECIAL
        chain.append((point, _stacked(point, side) if turned_back else point))
        course = heading + (math.pi if turned_back else 0.0)
    return chain


def _stacked(point: Array, side: float) -> Array:
    """Centre of a second gate below a first, or above it where there is no room: half a metre of air between the openings."""
    step = side + 0.5
    below = point[2] - step >= HEIGHTS[0]
    return np.array([point[0], point[1], point[2] - step if below else point[2] + step])


def _clear(point: Array, before: Sequence[Array]) -> bool:
    """Tell whether a new centre keeps off earlier legs, and the leg to it off earlier centres; seen from above, for gates stand
    on posts and may have a second one above them.
    """
    flat = [p[:2] for p in before]
    old = all(_beside(point[:2], a, b) >= CLEAR for a, b in pairwise(flat))
    return old and all(_beside(p, flat[-1], point[:2]) >= CLEAR for p in flat[:-1])
