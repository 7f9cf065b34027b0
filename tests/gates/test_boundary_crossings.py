"""Passages through gates, proved: order and sign of every one, on paths made for it, and against samples."""

from __future__ import annotations

import numpy as np
import pytest

from airworthy.gates.benchmark import GatesBenchConfig
from airworthy.gates.benchmark.blocks import plan_options
from airworthy.gates.benchmark.dense_check import dense_row, passages
from airworthy.gates.benchmark.families import FAMILIES, FlightSpread, drawn_vehicles, mass_spread_of
from airworthy.gates.benchmark.flights import FlightOptions, fly
from airworthy.gates.crossings import ON_PLANE, _met, _resolved, check_crossings
from airworthy.gates.planner.network import Boundary
from airworthy.gates.planner.planner import PlanOptions, plan, plan_gates
from airworthy.gates.task import judge_path
from airworthy.trajectories import Gate, Trajectory, course, septic_through, yaw_fixed
from airworthy.trajectories.generated_courses import RandomCourse, random_course
from airworthy.vehicles import vehicle

HEIGHT = 0.525
NETWORK = Boundary.read("published")


def through(points: list[tuple[float, float]], headings: list[float], speeds: list[float]) -> Trajectory:
    """A path through points at HEIGHT."""
    positions = np.array([(x, y, HEIGHT) for x, y in points])
    ahead = np.array([(np.cos(a), np.sin(a), 0.0) for a in headings])
    return septic_through(positions, ahead, np.array(speeds), np.full(len(points) - 1, 2.0))


def test_forwards_in_order_is_proven_and_each_other_way_is_named() -> None:
    gates = [Gate((1.0, 0.0, HEIGHT), 0.0), Gate((2.0, 0.0, HEIGHT), 0.0), Gate((3.0, 0.0, HEIGHT), 0.0)]
    path = through([(0, 0), (1, 0), (2, 0), (3, 0), (4, 0)], [0.0] * 5, [0.0, 0.5, 0.5, 0.5, 0.0])
    good = check_crossings(path, gates)
    assert good.verdict == "proven"
    assert [met.gate for met in good.crossings] == [0, 1, 2]
    assert np.allclose([met.time for met in good.crossings], [2.0, 4.0, 6.0], atol=2.0)
    for asked, fault in (
        (gates[::-1], "gate 3 is passed at"),
        ([gates[0], gates[2], gates[1]], "gate 3 is passed at"),
        (gates[:2] * 2, "gate 1 is not passed"),
        ([gates[0], Gate((2.0, 0.0, HEIGHT), np.pi), gates[2]], "gate 2 is crossed backwards"),
        ([*gates, Gate((3.5, 0.5, HEIGHT), 0.0)], "gate 4 is not passed"),
    ):
        check = check_crossings(path, asked)
        assert check.verdict == "violated"
        assert check.fault.startswith(fault), check.fault
        assert passages(path, asked) != [(gate, True) for gate in asked]
    assert passages(path, gates) == [(gate, True) for gate in gates]


def test_once_more_after_the_last_gate_is_named() -> None:
    gate = Gate((1.0, 0.0, HEIGHT), 0.0)
    path = through(
        [(0, 0), (1, 0), (2, 0.8), (0, 0.8), (-0.5, 0), (1, 0), (2, 0)], [0, 0, 1.57, 3.14, -1.57, 0, 0], [0] + [0.6] * 5 + [0]
    )
    check = check_crossings(path, [gate])
    assert check.fault.startswith("gate 1 is passed again at")
    assert check_crossings(path, [gate, gate]).verdict == "proven"


def test_to_touch_a_plane_or_begin_in_one_is_no_passage() -> None:
    gate = Gate((1.0, 0.0, HEIGHT), 0.0)
    # Up to the plane and back: at rest in it.
    there = through([(0, 0), (1, 0), (0, 0)], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0])
    assert check_crossings(there, [gate]).fault == "gate 1 is not passed"
    # Beginning in the plane of the last gate, as closed courses do.
    circle = plan(course("circle_8"), NETWORK)
    assert np.allclose(circle.gates[-1].position[:2], circle.route.positions[0, :2], atol=1e-3)
    assert circle.certificate is not None
    assert circle.certificate.crossings.verdict == "proven"
    # Half a millimetre through it and back is two passages.
    over = through([(0, 0), (1.0005, 0), (0, 0)], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0])
    assert [met.forwards for met in check_crossings(over, [gate]).crossings] == [True, False]
    # Beside the opening none.
    assert not check_crossings(through([(0, 0.6), (2, 0.6)], [0, 0], [0, 0]), [gate]).crossings


def test_what_cannot_be_decided_is_not_proven() -> None:
    # Along the opening's edge the path is neither inside nor outside.
    gate = Gate((1.0, 0.0, HEIGHT), 0.0)
    check = check_crossings(through([(0, 0.2), (2, 0.2)], [0, 0], [0, 0]), [gate])
    assert check.verdict in ("undecided", "proven")
    c = np.zeros((1, 3, 8))
    c[0, 0, 0], c[0, 1, 1], c[0, 2, 0] = 1.0, 0.1, HEIGHT  # in the plane throughout
    along = check_crossings(Trajectory([0.0, 1.0], c, *yaw_fixed(1.0, 0.0)), [gate])
    assert not along.crossings
    assert along.fault == "gate 1 is not passed"


@pytest.mark.parametrize("certificate", ["tracking", "vehicle"])
def test_a_start_in_front_of_a_gate_turned_by_pi_is_refused(certificate: str) -> None:
    options = plan_options(GatesBenchConfig(certificate=certificate, outside="clamp", headings="given"))  # type: ignore[arg-type]
    gates = (Gate((1.0, 0.0, HEIGHT), np.pi), Gate((-0.2, 0.0, HEIGHT), np.pi))
    made = plan_gates(gates, (0.0, 0.0, HEIGHT), 0.0, lambda e: np.tile((0.4, 4.0), (len(e), 1)), options)
    assert not made.flyable
    assert "gate 1 is crossed backwards" in made.reason
    assert made.certificate is not None
    assert "NOT passed as asked" in str(made.certificate)
    # And by what the predictor knows, where that is not clamped.
    refused = plan_gates(gates, (0.0, 0.0, HEIGHT), 0.0, lambda e: np.tile((0.4, 4.0), (len(e), 1)), PlanOptions())
    assert "heading beside its leg by 2.356 rad" in refused.reason
    # Whoever flew it all the same: passed in the end, and no success.
    path = made.trajectory
    assert path is not None
    t = np.linspace(0.0, path.duration, 4000)
    results = judge_path(gates[:1], t, path.sample(t).position)
    assert (results.skipped[0], results.wrong_way[0], str(results.outcomes[0])) == (0, 1, "partial")


def test_random_courses_with_a_turned_last_gate_are_refused_or_fly_as_asked() -> None:
    clamped, refused = 0, 0
    clamp = PlanOptions(outside="clamp", tries=4, lowerings=0)
    for k in range(20):
        base = random_course(k, 11, RandomCourse(gates=4))
        turn = np.random.default_rng(k).uniform(1.0, np.pi) * (-1.0) ** k
        last = base.gates[-1]
        gates = (*base.gates[:-1], Gate(last.position, last.yaw + turn))
        asked = plan_gates(gates, base.start, base.start_yaw, NETWORK, PlanOptions(tries=0, lowerings=0))
        assert not asked.flyable
        assert "heading beside its leg" in asked.reason
        # Clamped, the certificate alone decides: what it approves is passed as asked, what it refuses is not.
        made = plan_gates(gates, base.start, base.start_yaw, NETWORK, clamp)
        path = made.trajectory
        assert path is not None
        assert made.certificate is not None
        order = passages(path, gates) == [(gate, True) for gate in gates]
        assert order == (made.certificate.crossings.verdict == "proven")
        clamped += made.flyable
        refused += not order
        if made.flyable and clamped <= 2:
            assert not dense_row(made, clamp)["broken"]
    assert refused >= 1
    assert clamped + refused >= 1


def test_a_gate_turned_within_what_the_predictor_knows_is_flown() -> None:
    base = random_course(3, 11, RandomCourse(gates=3))
    last = base.gates[-1]
    gates = (*base.gates[:-1], Gate(last.position, last.yaw + 0.5))
    made = plan_gates(gates, base.start, base.start_yaw, NETWORK)
    assert made.flyable, made.reason
    along = plan_gates((*base.gates[:-1], Gate(last.position, last.yaw + 0.9)), base.start, base.start_yaw, NETWORK)
    assert "by 0.115 rad" in along.reason


def test_flights_take_the_spread_of_their_own_family() -> None:
    made = plan_gates([Gate((1.0, 0.0, HEIGHT), 0.0)], (0.0, 0.0, HEIGHT), 0.0, NETWORK)
    for name in ("competition", "crazyflow"):
        flown = fly([made.approved()], [made.gates], FAMILIES[name], 6, FlightOptions(seed=2))
        own = drawn_vehicles(vehicle(FAMILIES[name].vehicle), FlightSpread(mass=mass_spread_of(name)), 2, range(6))
        assert flown.mass.tolist() == [item.mass for item in own]
        assert flown.results.outcomes.tolist() == ["success"] * 6
    assert mass_spread_of("competition") == 0.01
    assert mass_spread_of("crazyflow") == pytest.approx(0.01 / 3)


@pytest.mark.parametrize("joint", [-ON_PLANE, -0.5 * ON_PLANE, 0.0, 0.5 * ON_PLANE, ON_PLANE])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_pieces_that_join_on_the_plane_itself_cross_it_once(joint: float, sign: float) -> None:
    """Where they join on its edge neither piece has a sign there: only both together tell of the crossing."""
    ahead = sign * np.array([[-1.0, joint], [joint, 1.0]])
    local = np.stack((ahead, np.zeros((2, 2)), np.zeros((2, 2))), axis=1)
    inside, undecided = _resolved(local, np.array([[0.0, 1.0], [1.0, 2.0]]), np.zeros(2, np.int64), np.array([[0.5, 0.5]]))
    (met,) = _met(0, *inside.ends)
    assert (met.gate, met.forwards, undecided) == (0, sign > 0.0, ())
    assert 1.0 <= met.time <= 2.0
