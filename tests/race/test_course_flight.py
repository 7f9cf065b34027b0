"""Races in scenes of their own: drag of body axes, rotors from thrusts, obstacles, and a short race flown and judged."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.race.flights import strict_race

from airworthy.core import frames
from airworthy.core.errors import AirworthyError
from airworthy.race import Post, RaceInformation, RacerModel, load_race, minimum_time_plan, race_vehicle
from airworthy.race.benchmark.course_flight import Told, _Knowledge, fly_courses
from airworthy.race.benchmark.course_job import fly_race_courses, summary_of
from airworthy.race.pilots.rotor_pilot import RotorInverse
from airworthy.race.planning.course_planner import CoursePlanner, plan_options
from airworthy.race.planning.minimum_time import RacePlanOptions, rest_plan
from airworthy.race.planning.obstacles import obstacles_of
from airworthy.race.record import GateFrames, MoveBound
from airworthy.simulation import Simulator, SimulatorConfig

KINGFISHER = race_vehicle(load_race("uzh_split_s"))
CRAZYFLIE = race_vehicle(load_race("lsy_0"))


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
    plans = CoursePlanner.of(race, KINGFISHER)
    plan = replace_nodes(plans).first(race)

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


def replace_nodes(plans: CoursePlanner) -> CoursePlanner:
    return replace(plans, options=replace(plans.options, nodes=8))


def test_who_flies_what_is_refused_in_a_sentence() -> None:
    with pytest.raises(AirworthyError, match="flown in its scene 'alphapilot': airworthy bench race"):
        fly_race_courses(load_race("alphapilot"), ["nominal"])
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
    assert told == replace(small, speed_max=told.speed_max, nodes=told.nodes)
    assert told.speed_max < 3.0


def test_who_is_right_before_a_gate_is_not_kept_off_it() -> None:
    race = strict_race(frames=GateFrames(0.2, 0.2))
    found = obstacles_of(race, 0.3, 0.5)
    gate, near, far = np.array([5.0, 0.0, 2.0]), np.array([4.0, 0.5, 2.0]), np.array([2.0, 0.0, 2.0])
    assert "A" not in [frame.name for frame, _, _ in found.blocking(0, near, gate)]
    (own,) = (row for row in found.blocking(0, far, gate) if row[0].name == "A")
    # From afar its frame counts on two thirds of the way; beside it, too, however near.
    assert own[1:] == pytest.approx((0.0, 2.0 / 3.0))
    assert "A" in [frame.name for frame, _, _ in found.blocking(0, np.array([4.9, 1.8, 2.0]), gate)]
