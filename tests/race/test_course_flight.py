"""Races in scenes of their own: drag of body axes, rotors from thrusts, obstacles, and a short race flown and judged."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from tests.race.flights import strict_race

from airworthy.core import frames
from airworthy.core.errors import AirworthyError
from airworthy.race import Post, RaceInformation, RacerModel, load_race, minimum_time_plan, race_vehicle
from airworthy.race.benchmark.course_flight import CourseFlight, Told, _Knowledge, fly_courses
from airworthy.race.benchmark.course_job import _informed, fly_race_courses, summary_of, warning_of
from airworthy.race.benchmark.flight import check_flyable
from airworthy.race.gate_geometry import gate_shape
from airworthy.race.pilots.rotor_pilot import RotorInverse
from airworthy.race.planning.beginnings import _beyond, slowly
from airworthy.race.planning.bounds import RacePlanOptions
from airworthy.race.planning.course_planner import CoursePlanner, plan_options
from airworthy.race.planning.minimum_time import rest_plan
from airworthy.race.planning.minimum_time_program import MinimumTimeProgram, ProgramEnd, _slope
from airworthy.race.planning.obstacles import obstacles_of
from airworthy.race.planning.plan import RacePlan, flown_gates, start_state
from airworthy.race.record import GateFrames, MoveBound, Race, RaceGate, RaceLimits, RaceScore, RaceStart
from airworthy.race.scenery import race_scene
from airworthy.race.scoring import RaceResult
from airworthy.simulation import Simulator, SimulatorConfig

KINGFISHER = race_vehicle(load_race("uzh_split_s"))
CRAZYFLIE = race_vehicle(load_race("lsy_0"))
RESULT = RaceResult("finished", "success", True, 1.0, 4, 1.0, (), (), (), 0, "")


def test_drag_of_body_axes_against_matrices() -> None:
    model, rng = RacerModel.of(KINGFISHER), np.random.default_rng(0)
    for _ in range(20):
        velocity, attitude = rng.normal(size=3) * 8.0, frames.normalize(rng.normal(size=4))
        turn = frames.to_matrix(attitude)
        along = turn.T @ velocity
        drag = KINGFISHER.drag
        force = turn @ (np.array(drag.linear) * along + np.array(drag.quadratic_axis) * np.abs(along) * along)
        # The root in |u| adds a millionth of (m/s)^2.
        assert np.array(model.axial_drag(velocity, attitude)) == pytest.approx(force, rel=1e-5, abs=1e-5)
        # Of a quaternion of another length the same.
        assert np.array(model.axial_drag(velocity, 1.02 * attitude)) == pytest.approx(force, rel=1e-5, abs=1e-5)


@pytest.mark.parametrize("name", ["uzh_split_s", "lsy_0"])
def test_the_model_moves_as_the_simulator(name: str) -> None:
    """A tenth of a second at hover speeds of the rotors, tilted and fast: the same path but for float32."""
    flown_by = race_vehicle(load_race(name))
    model = RacerModel.of(flown_by)
    start = np.concatenate([[0.0, 0.0, 5.0, 6.0, -3.0, 1.0], frames.normalize(np.array([0.2, -0.3, 0.1, 0.9])), np.zeros(3)])
    simulator = Simulator(flown_by, SimulatorConfig(level="rotor_speed", physics_rate=1000.0), 1)
    simulator.reset(position=start[:3], velocity=start[3:6], attitude=start[6:10])
    speeds = np.array(simulator.rotor_speed, np.float64)
    inverse = RotorInverse(flown_by)
    c0, c1, c2 = inverse.thrust
    thrust = float(np.sum(c0 + c1 * speeds + c2 * speeds**2))
    simulator.set_command(speeds)
    simulator.advance(100)
    state = start
    for _ in range(10):
        state = np.array(model.step(state, [thrust, 0.0, 0.0, 0.0], 0.01))
    assert np.array(simulator.position)[0] == pytest.approx(state[:3], abs=2e-4)
    assert np.array(simulator.velocity)[0] == pytest.approx(state[3:6], abs=2e-3)


def test_rotors_get_their_thrust_with_the_lag_that_is_asked_for() -> None:
    """The commanded speed gives, by the vehicle's own equation, the slope towards the wanted speed over 12.5 ms."""
    for flown_by in (KINGFISHER, CRAZYFLIE):
        inverse, rotor = RotorInverse(flown_by), flown_by.rotors[0]
        low, high = rotor.speed_min, rotor.speed_max
        wanted, now = np.linspace(low, high, 7)[1:-1], 0.5 * (low + high)
        c0, c1, c2 = rotor.thrust
        thrust = c0 + c1 * wanted + c2 * wanted**2
        assert inverse.speed(thrust) == pytest.approx(wanted, rel=1e-9)
        command = inverse.command(thrust, np.full(5, now))
        for target, given in zip(wanted, command, strict=True):
            a, b = rotor.response.rise if given >= now else rotor.response.fall
            slope = a * (given - now) + b * (given**2 - now**2)
            assert slope == pytest.approx((target - now) / 0.0125, rel=1e-6, abs=1e-6) or given in (low, high)
    with pytest.raises(AirworthyError, match="unlike rotors"):
        RotorInverse(replace(KINGFISHER, rotors=(replace(KINGFISHER.rotors[0], speed_max=900.0), *KINGFISHER.rotors[1:])))


def test_frames_and_posts_as_obstacles() -> None:
    race = strict_race(frames=GateFrames(0.2, 0.2), posts=(Post((7.0, 1.0), 3.0, 0.1),))
    found = obstacles_of(race, 0.3, 0.5)
    assert found.posts == pytest.approx(np.array([[7.0, 1.0, 0.4]]))
    frame = found.frames[0]
    # On the faces of the box, clearance included, the level is one; at the gate's centre nothing.
    center = np.array([5.0, 0.0, 2.0])
    for offset, level in (((0.4, 0.0, 0.0), 1.0), ((0.0, 1.5, 0.0), 1.0), ((0.0, 0.0, 1.5), 1.0), ((0.0, 0.0, 0.0), 0.0)):
        assert frame.level(center + offset) == pytest.approx(level)
    assert found.after(2).passes == ("C", "D")
    assert found.after(2).behind == "B"


@pytest.mark.slow
def test_a_plan_keeps_off_a_post_and_goes_on_from_its_middle() -> None:
    pytest.importorskip("casadi")
    model, options = RacerModel.of(KINGFISHER), RacePlanOptions(nodes=6, slew=40.0)
    race = strict_race(posts=(Post((7.5, 0.0), 4.0, 0.1),))
    plan = minimum_time_plan(race, model, options)
    path = plan.at(np.linspace(0.0, plan.duration, 2000))[0]
    nodes = np.hypot(plan.states[:, 0] - 7.5, plan.states[:, 1])
    assert np.min(nodes) >= 0.1 + options.clearance - 1e-4
    assert np.min(np.hypot(path[:, 0] - 7.5, path[:, 1])) > 0.1 + options.clearance - 0.1
    # Rotors change no faster than they may, from hover on.
    before = np.vstack([model.mixer @ [model.mass * model.gravity, 0, 0, 0], plan.thrusts()])
    assert np.max(np.abs(np.diff(before, axis=0)) / plan.steps[:, None]) <= 40.0 + 1e-2
    clock = 0.5 * float(plan.gate_times[0])
    state = plan.at([clock])[0][0]
    rest = rest_plan(race, model, options, state=state, passed=0, before=plan, clock=clock)
    assert rest.states[0] == pytest.approx(state, abs=1e-6)
    # What is left of the fastest plan is the fastest plan of what is left; nodes lie elsewhere.
    assert rest.duration == pytest.approx(plan.duration - clock, rel=0.02)
    with pytest.raises(AirworthyError, match="4 passages of 4 lie behind"):
        rest_plan(race, model, options, state=state, passed=4, before=plan, clock=clock)


def test_what_is_told_of_gates_and_posts() -> None:
    race = replace(load_race("lsy_2"), posts=(Post((1.0, 0.25), 1.55, 0.015, MoveBound(x=0.15, y=0.15)),))
    gates = tuple(replace(gate, position=(*(np.array(gate.position[:2]) + 0.1), gate.position[2])) for gate in race.gates)  # type: ignore[index]
    course = replace(race, gates=gates, posts=(Post((1.1, 0.25), 1.6, 0.015),))
    known = _Knowledge(race, course)
    assert known.unseen == {"1", "2", "3", "4"}
    assert known.race.posts[0].radius == pytest.approx(0.015 + 0.4 * 0.15)
    # Height does not count: a metre above the gate, 0.69 m beside where it truly stands.
    assert not known.look(np.array([0.6 - 0.71, 0.35, 1.7]))
    assert known.look(np.array([0.6 - 0.69, 0.35, 1.7]))
    assert known.race.gates[0] == course.gates[0]
    assert known.race.gates[1] == race.gates[1]
    assert known.unseen == {"2", "3", "4"}
    assert not known.look(np.array([0.6 - 0.69, 0.35, 1.7]))
    exact = _Knowledge(replace(race, information=RaceInformation(("state",), "exact")), course)
    assert exact.unseen == frozenset()
    assert exact.race.gates == course.gates


def test_a_row_of_gates_is_flown_and_judged() -> None:
    """A plan, once solved, flown alone and as one of two: the same bits; and what is told of it."""
    pytest.importorskip("casadi")
    race = strict_race(vehicle="kingfisher", frames=GateFrames())
    plan = first_plan(race)

    def planned(told: Told) -> object:
        assert told.plan is None
        return plan

    (flight,) = fly_courses(race, ["nominal"], planned)  # type: ignore[arg-type]
    assert flight.result.end == "finished"
    assert flight.result.time_s == pytest.approx(plan.duration, abs=0.01)
    assert flight.error_max < 0.15
    assert flight.part == ""
    told = summary_of(race, [flight], 0)
    assert (told["runs"], told["completed"], told["pilot"]) == (1, 1, "truth:race")
    assert "rotor speeds at 250 Hz; planning takes no simulated time" in told["note"]
    again = fly_courses(race, ["nominal"], planned)  # type: ignore[arg-type]
    assert again[0].commands_sha256 == flight.commands_sha256


@pytest.mark.slow
@pytest.mark.parametrize(("late", "bound", "states"), [(True, 0.02, 2), (True, 9.0, 1), (False, 0.02, 1)])
def test_who_is_far_off_its_plan_plans_anew_from_where_it_is(
    monkeypatch: pytest.MonkeyPatch, late: bool, bound: float, states: int
) -> None:
    pytest.importorskip("casadi")
    monkeypatch.setattr("airworthy.race.benchmark.course_flight._ASTRAY", bound)
    near = RaceInformation(gates="near", near_m=100.0) if late else RaceInformation()
    race = strict_race(vehicle="kingfisher", frames=GateFrames(), information=near)
    plan, told = first_plan(race), list[Told]()

    def planned(what: Told) -> RacePlan | None:
        told.append(what)
        return plan if what.plan is None else None

    (flight,) = fly_courses(race, ["nominal"], planned)
    assert min(len(told), 2) == states
    assert flight.failures == len(told) - 1
    off = [np.linalg.norm(what.state[:3] - what.plan.at([what.clock])[0][0, :3]) for what in told[1:] if what.plan is not None]
    # From where it is, and not from half of the way there; who had to wait, before a gate, may have come back meanwhile.
    assert (max(off, default=0.0) > 0.9 * bound) == (states == 2)


def test_the_true_state_is_said_to_be_the_races_own_where_it_is() -> None:
    for name, note in (
        ("lsy_0", "with true state, which the race gives; rotor"),
        ("lsy_2", "with true state, which the race gives, gates and posts told within 0.7 m; rotor"),
        ("alphapilot", "with true state; rotor"),
    ):
        assert (_informed(load_race(name)) + "; rotor").startswith(note)


@cache
def first_plan(race: Race) -> RacePlan:
    """The first plan of a race, of few nodes; solved once for all who fly it."""
    plans = CoursePlanner.of(race, KINGFISHER)
    return replace(plans, options=replace(plans.options, nodes=8)).first(race)


def test_who_flies_what_is_refused_in_a_sentence() -> None:
    with pytest.raises(AirworthyError, match="flown in its scene 'alphapilot': airworthy bench race"):
        fly_race_courses(load_race("alphapilot"), ["nominal"])
    with pytest.raises(AirworthyError, match="names the scene 'barn', in which no race is flown: leave scene out"):
        fly_race_courses(replace(load_race("random:1"), scene="barn"), ["nominal"])
    with pytest.raises(AirworthyError, match="names the scene 'barn'"):
        check_flyable(replace(load_race("random:1"), scene="barn"))
    with pytest.raises(AirworthyError, match="names no vehicle"):
        fly_race_courses(replace(load_race("random:1"), vehicle=""), ["nominal"])
    with pytest.raises(AirworthyError, match="one course is nominal"):
        fly_race_courses(load_race("uzh_split_s"), ["fresh/0/1"])


def test_bounds_of_plans_follow_the_race() -> None:
    wide, small, told = (plan_options(load_race(name), race_vehicle(load_race(name))) for name in ("a2rl", "lsy_0", "lsy_2"))
    assert (wide.margin, wide.speed_max) == (0.4, 1000.0)
    # The sphere of 86 mm stands 20 mm off the reference point; the opening's half is 0.2 m.
    assert small.margin == pytest.approx(0.106 + 0.045)
    assert small.margin < 0.2
    changed = {name: getattr(told, name) for name in ("speed_max", "cruise", "margin", "clearance", "turn_max", "rate_max")}
    assert told == replace(small, **changed, substeps=3, cone_nodes=4, cone=0.65)
    assert told.turn_max < small.turn_max
    assert told.rate_max < small.rate_max
    assert told.clearance > small.clearance
    # A third of a leg next to its gate is the cone's, and has as many nodes.
    assert told.cone_nodes == told.nodes // 3
    assert told.speed_max < told.cruise < 3.0
    # Where a plan is off by the largest error that was seen, the vehicle is within the opening yet.
    assert 0.106 + told.window + 0.056 < 0.2


@pytest.mark.slow
def test_speeds_are_bounded_everywhere_and_more_so_before_gates_that_may_stand_elsewhere() -> None:
    pytest.importorskip("casadi")
    model, race = RacerModel.of(KINGFISHER), strict_race()
    options = RacePlanOptions(nodes=6, cruise=7.0, speed_max=4.0)
    plan = minimum_time_plan(race, model, options, unseen={"B"})
    speed = np.linalg.norm(plan.states[:, 3:6], axis=1)
    assert np.max(speed) == pytest.approx(7.0, abs=1e-3)
    # The second leg's nodes are 6 to 12; its gate is approached from 0.4 of them on.
    assert np.max(speed[6 + 2 : 13]) == pytest.approx(4.0, abs=1e-3)


class Solves:
    """Stands in for the solver: ends as it is told to, and keeps where it began."""

    def __init__(self, *ends: tuple[str, float, float]) -> None:
        self.ends, self.begun = list(ends), list[tuple[float, bool]]()

    def solve(self) -> Callable[[MinimumTimeProgram], ProgramEnd]:
        """Return what stands for `MinimumTimeProgram.solve`: a function, which is bound as a method."""

        def solve(problem: MinimumTimeProgram) -> ProgramEnd:
            return self.end(problem)

        return solve

    def end(self, problem: MinimumTimeProgram) -> ProgramEnd:
        status, cost, slack = self.ends.pop(0)
        self.begun.append((problem.guess_share, problem.far))
        count, nodes = len(problem.gates), problem.options.nodes
        plan = PLAN[0]
        states, inputs = plan.states[-count * nodes - 1 :], plan.inputs[-count * nodes :]
        return ProgramEnd(states, inputs, plan.legs[-count:], np.full((3, count), slack), cost, status, "")


PLAN: list[Any] = []
GOOD, BAD = "Solve_Succeeded", "Maximum_Iterations_Exceeded"


@pytest.fixture
def row(monkeypatch: pytest.MonkeyPatch) -> tuple[RacerModel, RacePlanOptions]:
    pytest.importorskip("casadi")
    model, options = RacerModel.of(KINGFISHER), RacePlanOptions(nodes=4)
    if not PLAN:
        PLAN.append(minimum_time_plan(strict_race(), model, options))
    return model, options


@pytest.mark.slow
def test_where_a_guess_leads_nowhere_others_are_tried(
    row: tuple[RacerModel, RacePlanOptions], monkeypatch: pytest.MonkeyPatch
) -> None:
    for ends, begun in (([GOOD], 1), ([BAD, GOOD], 2), ([BAD, BAD, BAD, GOOD], 4)):
        solves = Solves(*((status, 1.0, 0.0) for status in ends))
        monkeypatch.setattr(MinimumTimeProgram, "solve", solves.solve())
        minimum_time_plan(strict_race(), *row)
        assert len({share for share, _ in solves.begun}) == len(solves.begun) == begun
    solves = Solves(*[(BAD, 1.0, 0.0)] * 4)
    monkeypatch.setattr(MinimumTimeProgram, "solve", solves.solve())
    with pytest.raises(AirworthyError, match="the solver says Maximum_Iterations_Exceeded"):
        minimum_time_plan(strict_race(), *row)


@pytest.mark.parametrize(
    ("ends", "cost"),
    [
        ([(GOOD, 3.0, 0.0)], 3.0),
        ([(GOOD, 3.0, 0.2), (GOOD, 2.0, 0.0)], 2.0),
        ([(GOOD, 3.0, 0.2), (GOOD, 4.0, 0.3)], 3.0),
        ([(GOOD, 3.0, 0.2), (BAD, 1.0, 0.0)], 3.0),
    ],
)
def test_a_plan_that_ends_beside_a_window_is_made_anew_from_a_slow_beginning(
    row: tuple[RacerModel, RacePlanOptions], monkeypatch: pytest.MonkeyPatch, ends: Any, cost: float
) -> None:
    solves, taken = Solves(*ends), []
    monkeypatch.setattr(MinimumTimeProgram, "solve", solves.solve())
    monkeypatch.setattr("airworthy.race.planning.minimum_time._checked", lambda problem, race, found: taken.append(found))
    model, options = row
    clock = 0.5 * float(PLAN[0].gate_times[0])
    state = PLAN[0].at([clock])[0][0]
    rest_plan(strict_race(), model, replace(options, slack=30.0), state=state, passed=0, before=PLAN[0], clock=clock)
    assert taken[0].cost == cost
    assert [far for _, far in solves.begun] == [False, True][: len(ends)]


def test_a_slow_beginning_changes_its_own_legs_alone(row: tuple[RacerModel, RacePlanOptions]) -> None:
    gates, state, plan = flown_gates(strict_race()), start_state(strict_race()), PLAN[0]
    hover = [row[0].mass * row[0].gravity, 0.0, 0.0, 0.0]
    begun = slowly((plan.states, plan.inputs, plan.legs), [1], state, gates, hover)
    states, inputs, legs = np.split(begun, [17 * 13, 17 * 13 + 16 * 4])
    states, inputs = states.reshape(17, 13), inputs.reshape(16, 4)
    assert np.array_equal(legs[[0, 2, 3]], plan.legs[[0, 2, 3]])
    here, there = plan.states[4, :3], gates[1].center
    assert legs[1] == pytest.approx(np.linalg.norm(there - here) / 0.8)
    assert np.array_equal(states[:5], plan.states[:5])
    assert np.array_equal(states[9:], plan.states[9:])
    assert states[8, :3] == pytest.approx(there)
    # Upright, about 0.8 m/s along the curve, and hovering.
    assert np.linalg.norm(states[5:9, 3:6], axis=1) == pytest.approx(np.full(4, 0.8), rel=0.4)
    assert np.array_equal(inputs[4:8], np.tile(hover, (4, 1)))
    assert np.array_equal(inputs[8:], plan.inputs[8:])


def test_who_is_right_before_a_gate_is_not_kept_off_it() -> None:
    race = strict_race(frames=GateFrames(0.2, 0.2))
    found = obstacles_of(race, 0.3, 0.5)
    gate, near, far = np.array([5.0, 0.0, 2.0]), np.array([4.0, 0.5, 2.0]), np.array([2.0, 0.0, 2.0])
    assert "A" not in [frame.name for frame, _, _ in found.blocking(0, near, gate)]
    (own,) = (row for row in found.blocking(0, far, gate) if row[0].name == "A")
    # From afar its frame counts on two thirds of the way; beside it, too, however near.
    assert own[1:] == pytest.approx((0.0, 2.0 / 3.0))
    assert "A" in [frame.name for frame, _, _ in found.blocking(0, np.array([4.9, 1.8, 2.0]), gate)]


@pytest.mark.slow
def test_all_of_a_way_from_right_before_a_gate_lies_in_a_cone(row: tuple[RacerModel, RacePlanOptions]) -> None:
    """Also those nodes that are not next to the gate, which may be within what is kept off its frame."""
    race = strict_race(frames=GateFrames(0.2, 0.2))
    gate = flown_gates(race)[0]
    # 0.8 m before the plane and 1.1 m beside the axis: within 45 degrees of the edge, and within the frame's bars.
    beside = gate.half_width + 0.1
    begin = gate.center - 0.8 * gate.normal + beside * gate.left
    assert obstacles_of(race, 0.3, 0.5).is_before(0, begin)
    half = [gate.half_width - 0.4, gate.half_height - 0.4]
    assert _slope(gate, half, begin) == pytest.approx((beside - half[0]) / 0.8)
    assert _slope(gate, half, gate.center - 0.8 * gate.normal) < 0.0
    model, options = row
    state = start_state(race)
    state[:3] = begin
    plan = rest_plan(race, model, replace(options, nodes=12, slack=30.0), state=state, passed=0, before=PLAN[0], clock=0.0)
    way = plan.states[1:12, :3] - gate.center
    depth, aside = -(way @ gate.normal), np.abs(way @ gate.left)
    assert np.all(depth >= -1e-4)
    assert np.all(aside <= half[0] + _slope(gate, half, begin) * depth + 0.01)


@pytest.mark.parametrize(("cruise", "legs", "begun"), [(2.0, 1.0, 1), (2.0, 20.0, 3), (1000.0, 20.0, 1)])
def test_a_leg_that_leads_far_around_is_begun_anew(
    row: tuple[RacerModel, RacePlanOptions], monkeypatch: pytest.MonkeyPatch, cruise: float, legs: float, begun: int
) -> None:
    """Straight and, where there are posts, around them; the fastest counts, and no other speed than a limited one tells."""
    race = strict_race(posts=(Post((2.5, 3.0), 1.0, 0.1),))
    solves, taken = Solves(*((GOOD, cost, 0.0) for cost in (3.0, 4.0, 2.0)[:begun])), []
    solve = solves.solve()
    monkeypatch.setattr(
        MinimumTimeProgram, "solve", lambda problem: replace(solve(problem), legs=np.full(len(problem.gates), legs))
    )
    monkeypatch.setattr("airworthy.race.planning.minimum_time._checked", lambda problem, race, found: taken.append(found))
    minimum_time_plan(race, row[0], replace(row[1], cruise=cruise))
    assert len(solves.begun) == begun
    assert [far for _, far in solves.begun] == [False, True, True][:begun]
    assert taken[0].cost == (2.0 if begun == 3 else 3.0)


def test_steps_between_nodes_make_coarse_plans_exact() -> None:
    """A node of 0.15 s that begins to roll: against a thousand steps of the same held input."""
    model = RacerModel.of(KINGFISHER)
    state = np.array([0.0, 0.0, 2.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 2.0, 0.0, 0.0])
    control = np.array([1.2 * model.mass * model.gravity, 40.0, 0.0, 0.0])
    exact = np.array(model.advanced(state, control, 0.15, 1000))
    off = [np.abs(np.array(model.advanced(state, control, 0.15, steps)) - exact).max() for steps in (1, 3)]
    assert off[1] < off[0] / 50.0
    assert np.array_equal(model.advanced(state, control, 0.15, 1), model.step(state, control, 0.15))
    plan = RacePlan(np.stack([state, exact]), control[None], np.array([0.15]), model, "", {"substeps": 3})
    assert plan.defects().max() == pytest.approx(off[1])
    assert plan.at([0.075])[0][0] == pytest.approx(np.array(model.advanced(state, control, 0.075, 100)), abs=2e-3)


def test_a_beginning_on_the_other_side_of_a_post() -> None:
    flown = np.stack([np.linspace(5.0, 9.375, 8), np.zeros(8), np.full(8, 2.0)], axis=1)
    places = _beyond(flown, flown, np.array([10.0, 0.0, 2.0]), np.array([[7.5, 0.3, 0.4]]))
    assert places[0] == pytest.approx(flown[0])
    # The path passed below the post in y; this one passes above it, 1.2 times what is kept off.
    away = places[:, :2] - [7.5, 0.3]
    nearest = away[np.argmin(np.abs(away[:, 0]))]
    assert nearest[1] > 0.0
    assert np.max(away[:, 1]) == pytest.approx(1.2 * 0.4, rel=0.2)


def test_what_hits_something_with_the_true_state_is_warned_of() -> None:
    race = strict_race(vehicle="kingfisher", frames=GateFrames())
    result = replace(RESULT, end="contact")
    flight = CourseFlight("nominal", result, "gate 2, left bar", "", 9.0, 5.0, 1.0, 1, 0, 0.41)
    calm = replace(flight, result=RESULT, part="", error_max=0.1)
    assert warning_of(race, [calm]) == ""
    said = warning_of(race, [calm, flight])
    assert "1 of 2 flights hit something although the true state was known (gate 2, left bar)" in said
    assert "up to 0.41 m off plans that keep 0.35 m from frames" in said
    assert "1 of 1 flights were lucky to hit nothing" in warning_of(race, [replace(calm, error_max=0.36)])
    assert summary_of(race, [flight], 0)["warning"] == warning_of(race, [flight])


@pytest.mark.slow
def test_a_plan_that_is_not_found_says_what_it_does_not_keep() -> None:
    pytest.importorskip("casadi")
    race = strict_race(vehicle="kingfisher", frames=GateFrames())
    gate = gate_shape(race.gates[0])
    # Two posts before the first gate, with less between them than plans keep off.
    beside = [gate.center + side * 0.45 * gate.left - 0.5 * gate.normal for side in (-1.0, 1.0)]
    walled = replace(race, posts=tuple(Post((float(x), float(y)), 50.0, 0.4) for x, y, _ in beside))
    model = RacerModel.of(race_vehicle(race))
    few = replace(plan_options(race, race_vehicle(race)), iterations=40, nodes=8)
    with pytest.raises(AirworthyError, match=r"No plan was found .* ends with a path that does not keep .*\(by [0-9.e-]+\)"):
        minimum_time_plan(walled, model, few)


def test_plans_keep_off_the_bars_that_the_scene_has_also_where_the_file_names_none() -> None:
    """Frames that are left out are built all the same: plans that did not know of them led through bars."""
    race = strict_race(vehicle="kingfisher")
    assert race.frames is None
    usual, named = (obstacles_of(item, 0.35, 0.2).frames for item in (race, replace(race, frames=GateFrames())))
    assert [frame.half.tolist() for frame in usual] == [frame.half.tolist() for frame in named]
    assert len(usual) == len(race.gates)
    bars = [item for item in race_scene(race).instances if item.carries]
    assert len(bars) == 4 * len(race.gates)
    # The hall has its gates itself, and plans in it stay what they are.
    assert obstacles_of(load_race("alphapilot"), 0.35, 0.2).frames == ()


@pytest.mark.slow
def test_a_gate_that_comes_later_is_flown_past_and_not_into() -> None:
    """A bar of B stands on the line from A to C, and the race names no frames: it ended there, with the true state."""
    pytest.importorskip("casadi")
    a, b, c = (RaceGate(name, position=(x, y, 1.8), opening=(2.0, 2.0)) for name, x, y in GATES)
    race = Race(
        name="row",
        title="",
        order=("A", "C", "B"),
        start=RaceStart((0.0, 0.0, 1.8)),
        limits=RaceLimits(20.0),
        score=RaceScore("time"),
        gates=(a, replace(b, yaw_deg=180.0), c),
        vehicle="kingfisher",
    )
    (flight,) = fly_race_courses(race, ["nominal"])
    assert (flight.result.end, flight.part) == ("finished", "")


GATES = (("A", 5.0, 0.0), ("B", 10.0, 1.1), ("C", 15.0, 0.0))
