"""Plans without a solver: flat outputs against the vehicle's own equations, smooth paths through gates, moved plans."""

from __future__ import annotations

import numpy as np
import pytest

from airworthy.race import RacerModel, course_of, load_race
from airworthy.race.onboard import OnboardFacts, onboard_facts
from airworthy.race.pilots.tempers import PolyPilot, StoredPilot
from airworthy.race.planning.guess import TimedPlan
from airworthy.race.planning.horizon import whole_openings
from airworthy.race.planning.plan import RacePlan, flown_gates, packaged_plan, start_state
from airworthy.race.planning.replanner import RacerBelief, ReplanOptions, StoredReplanner
from airworthy.race.planning.smooth import SmoothOptions, flat_plan, moved_plan, smooth_plan
from airworthy.vehicles import vehicle

RACER = RacerModel.of(vehicle("flightgoggles_2019"))
RACE = load_race("alphapilot")
NOMINAL = course_of(RACE, "nominal")
GATES = whole_openings(flown_gates(NOMINAL))


def test_a_circle_is_flown_as_the_equations_say() -> None:
    """Radius 4 m at 8 m/s, level: thrust, tilt and rates by hand, and the plan's own steps lead along it."""
    radius, speed, legs = 4.0, 8.0, [1.0, 1.0]
    times = np.linspace(0.0, 2.0, 401)
    angle = speed / radius * times
    place = radius * np.stack([np.cos(angle), np.sin(angle), np.zeros(401)], axis=1)
    velocity = speed * np.stack([-np.sin(angle), np.cos(angle), np.zeros(401)], axis=1)
    acceleration = -((speed / radius) ** 2) * place
    plan = flat_plan(RACER, place, velocity, acceleration, velocity, legs)
    drag = RACER.drag * speed**2
    expected = np.sqrt((RACER.mass * speed**2 / radius) ** 2 + drag**2 + (RACER.mass * RACER.gravity) ** 2)
    assert plan.inputs[:, 0] == pytest.approx(expected, rel=1e-9)
    assert np.linalg.norm(plan.states[5:-5, 10:13], axis=1) == pytest.approx(speed / radius, rel=1e-3)
    assert np.max(plan.defects()[:, :6]) < 2e-3


def test_a_smooth_path_goes_through_the_gates_within_what_it_may_ask_for() -> None:
    options = SmoothOptions()
    plan = smooth_plan(RACER, start_state(NOMINAL), np.zeros(3), GATES, options)
    each = len(plan.inputs) // 11
    assert plan.states[each::each, :3] == pytest.approx(GATES.center, abs=1e-6)
    assert plan.states[0, :6] == pytest.approx(start_state(NOMINAL)[:6], abs=1e-9)
    # The path's own acceleration, of the equations less drag: level and upwards, a little more between the samples.
    held = np.vstack([plan.inputs, plan.inputs[-1:]])
    slope = np.stack(RACER.derivative(plan.states.T, held.T)[3:6], axis=1)
    assert np.max(np.hypot(slope[:, 0], slope[:, 1])) < 1.3 * options.level
    assert np.max(np.abs(slope[:, 2])) < 1.5 * options.upwards
    assert 0.0 < plan.thrusts().min() < plan.thrusts().max() < RACER.rotor_max
    # In directions of the flight, and in 20 to 25 s (spec/race 8 on `poly`).
    assert np.all(np.sum(plan.states[each::each, 3:6] * GATES.normal, axis=1) > 0.0)
    assert 20.0 < plan.duration < 26.0


def joined(plan: RacePlan) -> float:
    """Largest difference between the path and the integral of its velocity, by Simpson's rule over pairs of steps [m]."""
    h = plan.steps[::2, None]
    place, velocity = plan.states[::2, :3], plan.states[:, 3:6]
    moved = h / 3.0 * (velocity[:-2:2] + 4.0 * velocity[1::2] + velocity[2::2])
    return float(np.max(np.abs(np.diff(place, axis=0) - moved)))


def test_a_plan_is_moved_with_its_gates() -> None:
    nominal = packaged_plan("alphapilot_glances", RACER)
    shifts = np.zeros((11, 3))
    still = moved_plan(nominal, shifts)
    assert still.states[:, :6] == pytest.approx(nominal.states[:, :6])
    assert still.legs == pytest.approx(nominal.legs)
    shifts[2], shifts[6] = [0.0, 1.0, 0.0], [2.0, -2.0, 0.0]
    plan = moved_plan(nominal, shifts, 1.2)
    each = len(plan.inputs) // 11
    assert plan.states[each::each, :3] - nominal.states[each::each, :3] == pytest.approx(shifts, abs=1e-9)
    assert plan.duration == pytest.approx(1.2 * nominal.duration)
    # Velocities are those of the moved path, as nearly as those of the plan that it is from: its thrust jumps at nodes, for
    # which Simpson's rule is not made. A speed that is not stretched would err by 0.2 m.
    assert joined(plan) < 1.2 * joined(moved_plan(nominal, np.zeros((11, 3)), 1.2)) < 0.01
    # Slower, it asks for less.
    assert plan.inputs[:, 0].mean() < nominal.inputs[:, 0].mean()


def test_a_stored_plan_follows_what_is_believed() -> None:
    nominal = packaged_plan("alphapilot_glances", RACER)
    rule = StoredReplanner(nominal, GATES.center, ReplanOptions(), 1.1)
    moved = GATES.center.copy()
    moved[1] += [0.0, 1.5, 0.0]
    belief = RacerBelief(0.5, nominal.states[5], 0, whole_openings(flown_gates(NOMINAL)), np.zeros((11, 2)), ())
    belief.gates.center[:] = moved
    made = rule.plan(belief, TimedPlan(nominal, 0.0, 0), 0.1)()
    assert made is not None
    assert (made.begun, made.first) == (0.0, 0)
    assert made.at(made.crossing(1))[0][:3] == pytest.approx(
        moved[1] - GATES.center[1] + nominal.at([nominal.gate_times[1]])[0][0, :3], abs=0.02
    )


def told() -> OnboardFacts:
    from airworthy.optics import Pinhole
    from airworthy.race import race_class
    from airworthy.sensors import rig

    camera = rig("flightgoggles_race")["ir_beacons"].projection
    assert isinstance(camera, Pinhole)
    return onboard_facts(RACE, vehicle("flightgoggles_2019"), camera, race_class(), rates=(960.0, 60.0, 240.0))


@pytest.mark.parametrize("made", [PolyPilot, StoredPilot])
def test_pilots_without_a_solver_begin_without_it(made: type[PolyPilot], monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "casadi", None)
    made.check()
    made().begin(told())
