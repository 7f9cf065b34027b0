"""The referee against independent forms of its rules: a port of the original's test, exact geometry, the readable twin."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.race.flights import RATE, flown, row_race, strict_race

from airworthy.core.arrays import Array, ArrayInt
from airworthy.race import Race, RaceEnd, RaceLimits, Referee, RefereeState, gate_shape, load_race
from airworthy.race.crossing import crossings, orientation
from airworthy.race.twin import judged_slowly

# ---- The loose rule ---------------------------------------------------------------------------------------------------------


def original_event(corners: Array, points: Array) -> Array:
    """The original's rule by its own steps: box from the corners' extremes, plane ax + by + cz + d through three of them."""
    (x1, y1, z1), (x2, y2, z2), (x3, y3, z3) = corners[:3].tolist()
    a = (y2 - y1) * (z3 - z1) - (y3 - y1) * (z2 - z1)
    b = (z2 - z1) * (x3 - x1) - (z3 - z1) * (x2 - x1)
    c = (x2 - x1) * (y3 - y1) - (x3 - x1) * (y2 - y1)
    d = -(a * x1 + b * y1 + c * z1)
    x, y, z = points.T
    inside = np.ones(len(points), bool)
    for values, axis in ((x, 0), (y, 1), (z, 2)):
        low, high = min(corners[:, axis]) - 0.1, max(corners[:, axis]) + 0.1
        inside &= (low < values) & (values < high)
    return inside & (np.abs(a * x + b * y + c * z + d) / math.sqrt(a * a + b * b + c * c) < 0.3)


def test_the_loose_rule_on_a_million_points() -> None:
    """Points around each published gate, of which about every third passes: all are told alike."""
    race = load_race("alphapilot")
    referee = Referee(race, 1)
    rng = np.random.default_rng(7)
    each = 1_000_000 // len(race.gates) + 1
    passed = 0
    for k, gate in enumerate(race.gates):
        corners = np.array(gate.corners)
        points = rng.uniform(corners.min(axis=0) - 0.2, corners.max(axis=0) + 0.2, (each, 3))
        found = np.concatenate([referee._loose_inside(part[:, None])[:, 0] for part in np.array_split(points, 8)])
        np.testing.assert_array_equal(found[:, k], original_event(corners, points))
        passed += int(found[:, k].sum())
    assert 0.2 < passed / 1_000_000 < 0.8


# ---- The strict rule --------------------------------------------------------------------------------------------------------


def exact_crossing(before: Array, after: Array, ring: Array) -> tuple[int, Fraction]:
    """A segment against a flat convex polygon in rational numbers: where it meets the plane, and on which side of each edge."""
    a, b, c, d = ([Fraction(float(x)) for x in point] for point in ring)
    p, q = ([Fraction(float(x)) for x in point] for point in (before, after))

    def minus(u: list[Fraction], v: list[Fraction]) -> list[Fraction]:
        return [x - y for x, y in zip(u, v, strict=True)]

    def cross(u: list[Fraction], v: list[Fraction]) -> list[Fraction]:
        return [u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2], u[0] * v[1] - u[1] * v[0]]

    def dot(u: list[Fraction], v: list[Fraction]) -> Fraction:
        return sum((x * y for x, y in zip(u, v, strict=True)), Fraction(0))

    normal = cross(minus(b, a), minus(c, a))
    one, other = dot(normal, minus(p, a)), dot(normal, minus(q, a))
    if (one < 0) == (other < 0):
        return 0, Fraction(0)
    share = one / (one - other)
    met = [x + share * (y - x) for x, y in zip(p, q, strict=True)]
    corners = (a, b, c, d)
    for k in range(4):
        edge = minus(corners[(k + 1) % 4], corners[k])
        if dot(normal, cross(edge, minus(met, corners[k]))) < 0:
            return 0, share
    return (1 if one < 0 else -1), share


EXACT = np.array([[0.0, -1.0, 1.0], [0.0, 1.0, 1.0], [0.0, 1.0, 3.0], [0.0, -1.0, 3.0]])
"""An opening whose corners lie exactly in one plane, facing x."""
_GRID = st.integers(-8, 8).map(lambda k: k / 4.0)


@settings(max_examples=300, deadline=None)
@given(
    st.tuples(_GRID, _GRID, st.integers(0, 16).map(lambda k: k / 4.0)),
    st.tuples(_GRID, _GRID, st.integers(0, 16).map(lambda k: k / 4.0)),
)
def test_steps_on_a_grid_meet_edges_corners_and_the_diagonal(before: tuple[float, ...], after: tuple[float, ...]) -> None:
    """A quarter of a metre apart, points lie in the plane, on edges, in corners, on the diagonal."""
    p, q = np.array(before), np.array(after)
    way, share = crossings(p[None], q[None], EXACT[None])
    expected, part = exact_crossing(p, q, EXACT)
    assert way[0] == expected
    if expected:
        assert share[0] == pytest.approx(float(part), abs=1e-15)


def test_steps_by_chance_through_turned_openings() -> None:
    """Openings turned about the vertical: their corners are flat to rounding, which is where the two forms may differ."""
    rng = np.random.default_rng(11)
    race = load_race("alphapilot")
    compared = crossed = 0
    for gate in race.gates:
        shape = gate_shape(gate)
        points = shape.center + rng.normal(scale=1.2, size=(400, 2, 3))
        way, share = crossings(points[:, 0], points[:, 1], np.repeat(shape.ring[None], 400, axis=0))
        for k, (before, after) in enumerate(points):
            expected, part = exact_crossing(before, after, shape.ring)
            assert way[k] == expected
            compared, crossed = compared + 1, crossed + abs(expected)
            if expected:
                # The file's corners lie up to a micrometre off one plane: so much the point on it may move.
                assert share[k] == pytest.approx(float(part), abs=1e-5)
    assert crossed > 0.1 * compared


@pytest.mark.parametrize("nudge", [-1e-3, -1e-9, -1e-15, 0.0, 1e-15, 1e-9, 1e-3])
def test_the_edge_itself_is_inside(nudge: float) -> None:
    """Along x just over, on and under the upper edge: inside up to the edge, to the last bit."""
    z = 3.0 + nudge
    way, _ = crossings(np.array([[-0.01, 0.25, z]]), np.array([[0.01, 0.25, z]]), EXACT[None])
    assert way[0] == (z <= 3.0)


def test_sides_are_exact_where_products_round() -> None:
    """Points a bit beside a plane through far ones: determinants in float64 come out as 0 or with the wrong sign."""
    rng = np.random.default_rng(3)
    a, b, c = rng.uniform(-50.0, 50.0, (3, 500, 3))
    u, v = rng.uniform(-1.0, 1.0, (2, 500, 1))
    d = a + u * (b - a) + v * (c - a)
    d[::3, 2] = np.nextafter(d[::3, 2], np.inf)
    side, _ = orientation(a, b, c, d)
    for k in range(500):
        rows = [[Fraction(float(x)) - Fraction(float(y)) for x, y in zip(p[k], a[k], strict=True)] for p in (b, c, d)]
        (e, f, g), (h, i, j), (m, n, o) = rows
        exact = e * (i * o - j * n) - f * (h * o - j * m) + g * (h * n - i * m)
        assert side[k] == (exact > 0) - (exact < 0)
    assert len(set(side.tolist())) >= 2


def test_of_steps_that_join_in_a_plane_one_crosses() -> None:
    points = np.array([[-1.0, 0.0, 2.0], [0.0, 0.0, 2.0], [0.0, 0.5, 2.5], [1.0, 0.5, 2.5], [0.0, 0.5, 2.5], [-1.0, 0.0, 2.0]])
    way, _ = crossings(points[:-1], points[1:], np.repeat(EXACT[None], 5, axis=0))
    assert way.tolist() == [1, 0, 0, 0, -1]


# ---- Whole flights ----------------------------------------------------------------------------------------------------------


def wandering(rng: np.random.Generator, race: Race, flights: int, steps: int) -> tuple[Array, ArrayInt]:
    """Flights that follow the gates with detours, at some 100 m/s for the sake of few steps, and what happens to some."""
    centers = {gate.name: gate_shape(gate).center for gate in race.gates}
    aims = np.array([race.start.position, *(centers[name] for name, _ in race.passes)])
    paths = []
    for _ in range(flights):
        # Never straight through centres: between two stacked gates that would be a flight within their plane.
        points = aims + rng.normal(scale=0.6, size=aims.shape) * np.where(rng.random((len(aims), 1)) < 0.6, 1.0, 0.02)
        points = np.concatenate([points, points[-1:] + 2.0 * (points[-1:] - points[-2:-1])])
        along = np.linspace(0.0, len(points) - 1.0, steps)
        paths.append(np.stack([np.interp(along, np.arange(len(points)), points[:, k]) for k in range(3)], axis=1))
    events = np.zeros((steps, flights), np.int64)
    for flight in np.flatnonzero(rng.random(flights) < 0.4):
        events[rng.integers(steps), flight] = rng.choice([RaceEnd.CONTACT, RaceEnd.ABORTED])
    return np.stack(paths, axis=1), events


def same(one: RefereeState, other: RefereeState) -> bool:
    """Tell whether two states are alike to the last bit."""
    return all(
        np.array_equal(np.asarray(value), np.asarray(getattr(other, name)), equal_nan=True)
        if name != "irregular"
        else value == other.irregular
        for name, value in vars(one).items()
    )


RACES = {
    "alphapilot": load_race("alphapilot"),
    "row": row_race(),
    "row strict": strict_race(),
    "two laps": strict_race(laps=2),
    "lsy_2": replace(load_race("lsy_2"), limits=RaceLimits(30.0)),
    "uzh_split_s": load_race("uzh_split_s"),
    "a2rl": load_race("a2rl"),
    "drawn": load_race("random:5"),
}


@pytest.mark.parametrize("name", RACES)
def test_the_twin_says_the_same(name: str) -> None:
    race = RACES[name]
    rng = np.random.default_rng(17)
    path, events = wandering(rng, race, 12, 1500)
    referee = Referee(race, 12, RATE)
    state = referee.judge(path, events)
    finished = 0
    for flight in range(12):
        slow = judged_slowly(race, path[:, flight], events[:, flight], RATE)
        np.testing.assert_array_equal(state.loose_time[flight], slow.loose_time)
        np.testing.assert_array_equal(state.missed[flight], slow.missed)
        np.testing.assert_allclose(state.strict_time[flight], slow.strict_time, rtol=0.0, atol=1e-9)
        assert (state.end[flight], state.end_step[flight]) == (slow.end, slow.end_step)
        mine = [(item.time, item.gate) for item in state.irregular if item.flight == flight]
        assert [gate for _, gate in mine] == [gate for _, gate in slow.irregular]
        np.testing.assert_allclose([t for t, _ in mine], [t for t, _ in slow.irregular], rtol=0.0, atol=1e-9)
        finished += slow.end == RaceEnd.FINISHED
    assert finished or race.test == "strict"


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(1, 700), max_size=12), st.sampled_from(["row", "two laps"]))
def test_pieces_give_the_same_bits(cuts: list[int], name: str) -> None:
    race = replace(RACES[name], limits=RaceLimits(1.2))
    path, events = wandering(np.random.default_rng(5), race, 6, 1500)
    referee = Referee(race, 6, RATE)
    whole = referee.judge(path, events)
    state, at = referee.begin(), 0
    for size in [*cuts, len(path)]:
        state = referee.advance(state, path[at : at + size], events[at : at + size])
        at += size
        if at >= len(path):
            break
    assert same(whole, state)


def test_a_batch_is_its_single_flights() -> None:
    race = RACES["alphapilot"]
    path, events = wandering(np.random.default_rng(2), race, 5, 1500)
    batch = Referee([race] * 5, physics_rate=RATE).judge(path, events)
    for k in range(5):
        single = Referee(race, 1, RATE).judge(path[:, k : k + 1], events[:, k : k + 1])
        for name in ("loose_time", "strict_time", "missed", "end", "end_step", "offset", "after", "irregular_count"):
            np.testing.assert_array_equal(getattr(batch, name)[k], getattr(single, name)[0])


def test_a_state_is_not_written_into() -> None:
    referee = Referee(row_race(), 1)
    before = referee.begin()
    path = flown((0, 0), (25, 0))[:, None]
    first = referee.advance(before, path)
    assert np.isnan(before.loose_time).all()
    assert before.step == 0
    assert same(first, referee.advance(before, path))


def test_what_hovers_in_a_gate_is_counted_and_not_kept() -> None:
    wiggle = np.tile([[4.99, 0.0, 2.0], [5.01, 0.0, 2.0]], (500, 1))
    referee = Referee(row_race(), 1)
    state = referee.judge(wiggle[:, None])
    assert state.irregular_count[0] == 998
    assert len(state.irregular) == 100
