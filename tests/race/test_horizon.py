"""Plans in flight: equations and bounds, windows that move with gates, glances that are taken, guesses, and when to plan."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, Literal

import numpy as np
import pytest

from airworthy.core.errors import AirworthyError
from airworthy.race import RacePlanOptions, RacerModel, course_of, load_race
from airworthy.race.planning.glances import SOFT, Glance, glances_of, looked
from airworthy.race.planning.guess import TimedPlan, begun_guess
from airworthy.race.planning.horizon import (
    GateWindows,
    GlanceNeed,
    HorizonOptions,
    HorizonSolver,
    horizon_answer,
    horizon_planner,
)
from airworthy.race.planning.plan import RacePlan, flown_gates, packaged_plan, start_state, stored_plan
from airworthy.race.planning.replanner import RacerBelief, RaceReplanner, ReplanOptions, glance_needs, inner_windows, too_late
from airworthy.vehicles import vehicle

Solver = Literal["native", "casadi"]
RACER = RacerModel.of(vehicle("flightgoggles_2019"))
NOMINAL = course_of(load_race("alphapilot"), "nominal")
GATES = flown_gates(NOMINAL)
CENTERS = np.array([gate.center for gate in GATES])
STORED = packaged_plan("alphapilot_glances", RACER)
AHEAD = 3
OPTIONS = ReplanOptions(horizon=HorizonOptions(ahead=AHEAD))
EARLY = np.full(11, 0.2)
"""Share of a gate's own leg that is too late to look at it."""
NODES = OPTIONS.horizon.bounds.nodes


def windows(count: int = 11, shift: np.ndarray | None = None) -> GateWindows:
    """Whole openings of the nominal gates, moved."""
    moved = np.zeros((11, 3)) if shift is None else shift
    axes = [np.array([getattr(gate, name) for gate in GATES]) for name in ("left", "up", "normal")]
    half = np.array([[gate.half_width, gate.half_height] for gate in GATES])
    return GateWindows(*(item[:count] for item in (CENTERS + moved, *axes, half)))


def needs(passages: range) -> list[GlanceNeed]:
    glances = glances_of([name for name, _ in NOMINAL.passes])
    return glance_needs([(glance, OPTIONS.need) for glance in glances], CENTERS, passages, NODES, EARLY)


def solving(word: Solver) -> HorizonSolver:
    if word == "casadi":
        pytest.importorskip("casadi")
    return horizon_planner(RACER, AHEAD, replace(OPTIONS.horizon, solver=word))


@pytest.mark.slow
@pytest.mark.parametrize("solver", ["native", "casadi"])
def test_a_plan_in_flight_keeps_its_bounds_and_takes_its_looks(solver: Solver) -> None:
    planner, passages = solving(solver), range(AHEAD)
    inside = inner_windows(windows(AHEAD), np.zeros((AHEAD, 2)), OPTIONS)
    asked = needs(passages)
    guess = begun_guess(0.0, passages, NODES, before=None, nominal=STORED, shifts=np.zeros((11, 3)))
    answer = planner.solve(start_state(NOMINAL), inside, guess, asked)
    plan, bounds = answer.plan, OPTIONS.horizon.bounds
    assert answer.usable
    assert answer.status in ("solved", "Solve_Succeeded")
    assert np.max(plan.defects()) < 1e-3
    assert plan.states[0] == pytest.approx(start_state(NOMINAL), abs=1e-6)
    thrusts = plan.thrusts()
    assert bounds.rotor_min - 1e-4 <= thrusts.min() <= thrusts.max() <= bounds.power * RACER.rotor_max + 1e-4
    assert np.max(np.abs(plan.states[1:, 10:12])) <= bounds.rate_max + 1e-4
    for leg, gate in enumerate(GATES[:AHEAD]):
        offset = plan.states[(leg + 1) * NODES, :3] - gate.center
        assert abs(offset @ gate.normal) < 1e-3
        assert abs(offset @ gate.left) <= inside.half[leg, 0] + 1e-3
        assert abs(offset @ gate.up) <= inside.half[leg, 1] + 1e-3
    # Looks, summed here again: Gate21 from the leg to Gate10 on is taken; Gate13 can be looked at on the leg after this plan,
    # which says that it lacks that.
    assert len(asked) == len(answer.glance_slack) == 2
    for need, lack in zip(asked, answer.glance_slack, strict=True):
        seen = [looked(list(state), list(need.target), np, SOFT) for state in plan.states[1:]]
        assert np.sum(np.array(seen) * need.steps * plan.steps) + lack >= need.seconds - 1e-3
    assert answer.glance_slack[0] < 1e-3
    # Looking costs time, and so does a narrower window.
    blind = planner.solve(start_state(NOMINAL), inside, guess)
    assert blind.plan.duration < plan.duration
    narrow = replace(inside, half=np.full((AHEAD, 2), 0.08))
    assert planner.solve(start_state(NOMINAL), narrow, guess, asked).plan.duration > plan.duration


@pytest.mark.parametrize("solver", ["native", "casadi"])
def test_a_plan_follows_its_gates_and_says_what_it_lacks(solver: Solver) -> None:
    planner, passages = solving(solver), range(AHEAD)
    shift = np.zeros((11, 3))
    shift[0] = [1.0, -1.0, 0.0]
    inside = inner_windows(windows(AHEAD, shift), np.zeros((AHEAD, 2)), OPTIONS)
    guess = begun_guess(0.0, passages, NODES, before=None, nominal=STORED, shifts=shift)
    answer = planner.solve(start_state(NOMINAL), inside, guess)
    assert answer.usable
    offset = answer.plan.states[NODES, :3] - (CENTERS[0] + shift[0])
    assert abs(offset @ GATES[0].left) <= inside.half[0, 0] + 1e-3
    # Half a leg before a gate that turns out to stand 4 m aside: there is a plan, and its slack says by how much it misses.
    late = TimedPlan(STORED, 0.0, 0)
    state, _ = late.at(1.75)
    shift[0] = [4.0, 0.0, 0.0]
    beside = inner_windows(windows(AHEAD, shift), np.zeros((AHEAD, 2)), OPTIONS)
    answer = planner.solve(state, beside, begun_guess(1.75, passages, NODES, before=late, nominal=STORED, shifts=shift))
    assert answer.window_slack[0] > 0.5
    assert not answer.usable
    with pytest.raises(AirworthyError, match="numbers that are not finite or of shapes"):
        planner.solve(np.full(13, np.nan), inside, guess)
    with pytest.raises(AirworthyError, match="with largest speeds of shape"):
        planner.solve(start_state(NOMINAL), inside, guess, caps=np.ones(3))
    with pytest.raises(AirworthyError, match="A plan through 3 gates is asked for"):
        planner.solve(state, windows(2), guess)


def test_margins_grow_with_what_is_not_known() -> None:
    gates = windows()
    sigma = np.zeros((11, 2))
    sigma[0] = [0.1, 0.02]
    sigma[1] = [0.3, 0.0]
    sigma[6] = [3.0, 0.0]
    inside = inner_windows(gates, sigma, ReplanOptions())
    # Gate10 is narrow: 0.4 m and two sigmas; Gate21 is wide: 0.65 m; Gate1 is not known at all: its middle.
    assert gates.half[0] - inside.half[0] == pytest.approx([0.6, 0.44])
    assert gates.half[1] - inside.half[1] == pytest.approx([1.25, 0.65])
    assert inside.half[6] == pytest.approx([0.08, gates.half[6, 1] - 0.4])


def test_which_steps_of_a_plan_count_for_a_look() -> None:
    lacking = [(Glance(3, 2, 3), 0.1), (Glance(4, 3, 4), 0.01), (Glance(9, 8, 9), 0.12), (Glance(6, 4, 5), 0.05)]
    found = glance_needs(lacking, CENTERS, range(2, 6), 10, EARLY)
    # The second lacks too little, the third lies beyond the plan; the first counts until a fifth of its own leg is left.
    assert [need.seconds for need in found] == [0.1, 0.05]
    assert np.array_equal(found[0].target, CENTERS[3])
    assert np.array_equal(np.flatnonzero(found[0].steps), np.arange(18))
    assert np.array_equal(np.flatnonzero(found[1].steps), np.arange(20, 40))
    assert glance_needs(lacking, CENTERS, range(6, 8), 10, EARLY) == []


def test_what_is_too_late_to_look_at() -> None:
    # A known gate: the answer alone, at least a fifth. 1.44 m: sqrt(4 x 1.44 / 20) = 0.54 s and 0.1 s, of 1.6 s or of 0.7 s.
    assert too_late(np.array([0.0, 0.0, 1.44, 1.44]), np.array([2.0, 0.4, 1.6, 0.7])) == pytest.approx(
        [0.2, 0.25, 0.398, 0.8], abs=1e-3
    )


def test_guesses_come_from_the_plan_before_and_beyond_it_from_the_stored_one() -> None:
    nominal = stored_plan(NOMINAL, RACER)
    shifts = np.zeros((11, 3))
    shifts[2] = [1.0, 2.0, 0.0]
    guess = begun_guess(0.0, range(3), 24, before=None, nominal=nominal, shifts=shifts)
    assert guess.legs == pytest.approx(nominal.legs[:3])
    assert guess.states[:24] == pytest.approx(nominal.states[:24], abs=1e-2)
    # Moved with its gate at the end of the leg, and with the one before at its beginning.
    assert guess.states[-1, :3] - nominal.states[72, :3] == pytest.approx(shifts[2])
    assert guess.states[48, :3] == pytest.approx(nominal.states[48, :3], abs=1e-3)
    before = TimedPlan(nominal, 5.0, 0)
    later = begun_guess(5.5, range(3), 24, before=before, nominal=nominal, shifts=shifts)
    assert later.legs == pytest.approx([nominal.legs[0] - 0.5, *nominal.legs[1:3]])
    assert later.states[0] == pytest.approx(before.at(5.5)[0], abs=1e-9)
    assert before.crossing(1) == pytest.approx(5.0 + nominal.legs[0] + nominal.legs[1])
    assert np.isnan(TimedPlan(nominal, 0.0, 2).crossing(1))


def believed(time: float, shift: np.ndarray | None = None, passage: int = 0) -> RacerBelief:
    state = TimedPlan(STORED, 0.0, 0).at(time)[0]
    return RacerBelief(time, state, passage, windows(shift=shift), np.zeros((11, 2)), ())


def test_when_a_plan_is_wanted() -> None:
    replanner, flown = RaceReplanner(RACER, STORED, CENTERS, OPTIONS), TimedPlan(STORED, 0.0, 0)
    assert replanner.wanted(believed(0.0), flown, 0.1)  # none has been made yet
    replanner.plan(believed(0.0), flown, 0.1)
    assert not replanner.wanted(believed(0.4), flown, 0.1)
    moved = np.zeros((11, 3))
    moved[2, 1] = 0.07
    assert replanner.wanted(believed(0.2, moved), flown, 0.1)
    assert not replanner.wanted(believed(0.1, moved), flown, 0.1)  # too soon after the last
    moved = np.zeros((11, 3))
    moved[4] = 1.0  # beyond those watched
    assert not replanner.wanted(believed(0.4, moved), flown, 0.1)
    off = believed(0.4)
    strayed = replace(off, state=off.state + np.array([0.26, *(12 * [0.0])]))
    assert replanner.wanted(strayed, flown, 0.1)
    assert replanner.wanted(believed(1.3), flown, 0.1)  # it has grown old
    assert not replanner.wanted(believed(float(STORED.legs[0]) - 0.15), flown, 0.1)  # nothing is left to change
    assert replanner.wanted(believed(float(STORED.legs[0]) + 0.4, passage=1), flown, 0.1)


def test_a_plan_begins_where_the_racer_will_be() -> None:
    replanner, flown = RaceReplanner(RACER, STORED, CENTERS, OPTIONS), TimedPlan(STORED, 0.0, 0)
    belief = believed(0.5)
    off = np.array([0.1, -0.2, 0.0, 0.0, 0.3, 0.0, *(7 * [0.0])])
    made = replanner.plan(replace(belief, state=belief.state + off), flown, 0.1)()
    assert made is not None
    assert made.begun == pytest.approx(0.6)
    assert made.first == 0
    expected = flown.at(0.6)[0] + 0.5 * off
    assert made.plan.states[0, :6] == pytest.approx(expected[:6], abs=1e-6)
    # Nobody's plan: below the lowest path from the first node on, from either guess.
    sunk = replace(belief, state=belief.state - np.array([0.0, 0.0, 50.0, *(10 * [0.0])]))
    assert replanner.plan(sunk, flown, 0.0)() is None
    assert replanner.failures == 1
    assert replanner.plans == 2


def test_the_stored_plan_with_glances() -> None:
    """Measured: 13.797 s, 0.43 s more than without looking."""
    assert STORED.duration == pytest.approx(13.80, abs=0.05)
    assert stored_plan(NOMINAL, RACER).duration < STORED.duration
    assert np.max(STORED.defects()) < 1e-3
    nodes = len(STORED.inputs) // len(STORED.legs)
    glances = glances_of([name for name, _ in NOMINAL.passes])
    for need in glance_needs([(glance, 0.12) for glance in glances], CENTERS, range(11), nodes, EARLY):
        seen = np.array([looked(list(state), list(need.target), np) for state in STORED.states[1:]])
        assert np.sum(seen * need.steps * STORED.steps) >= 0.12 - 2e-3


@pytest.mark.slow
def test_the_stored_plan_with_glances_solved_anew() -> None:
    pytest.importorskip("casadi")
    from airworthy.race import glancing_plan

    # 2.5 m either way: 1.44 m; what `races plan --glances` takes from the race's bounds.
    sigma = [0.577, 0.0, 0.0, 1.443, 0.0, 0.577, 1.443, 0.577, 0.0, 1.443, 0.0]
    assert glancing_plan(NOMINAL, RACER, sigma=sigma).duration == pytest.approx(STORED.duration, rel=1e-4)


def test_options_are_checked() -> None:
    with pytest.raises(AirworthyError, match="ahead"):
        HorizonOptions(ahead=0)
    with pytest.raises(AirworthyError, match="sigmas"):
        ReplanOptions(sigmas=-1.0)
    assert RacePlanOptions().nodes == 24


def test_which_answers_can_be_flown() -> None:
    """Whatever a solver says: what errs by a millimetre or a millimetre a second at most (acceptance 6), crosses gates in their
    planes, and leaves no window by half a metre."""
    through = np.full(11, 0.49)

    def flown(defect: float = 0.0, ahead: float = 0.0, aside: float = 0.0, slack: np.ndarray = through) -> bool:
        states = STORED.states.copy()
        states[-1, 5] += defect
        plan = RacePlan(states, STORED.inputs, STORED.legs, RACER, "", {})
        gates = windows(shift=ahead * normals + aside * lefts)
        answer = horizon_answer(plan, gates, "of some kind", 60, (slack, np.zeros(0)))
        assert answer.defect == pytest.approx(np.max(plan.defects()), nan_ok=True) or np.isnan(defect)
        return answer.usable

    normals, lefts = (np.array([getattr(gate, name) for gate in GATES]) for name in ("normal", "left"))
    assert flown()
    assert flown(0.8e-3)
    assert not flown(1.2e-3)
    assert not flown(np.nan)
    assert flown(ahead=0.8e-3)
    assert not flown(ahead=-1.2e-3)
    assert not flown(ahead=0.25)
    # A solver's slack is what it meant to leave a window by; where the path leaves it by more, that counts.
    assert not flown(slack=through + 0.02)
    assert flown(aside=0.3)
    assert not flown(aside=4.0)


class Answers:
    """Answers what it is told to, and keeps what it was asked."""

    def __init__(self, *usable: bool) -> None:
        self.usable, self.asked = list(usable), list[Any]()

    def solve(self, state: Any, gates: Any, guess: Any, needs: Any, caps: Any = None) -> Any:
        self.asked.append((state, gates, guess, list(needs), caps))
        return SimpleNamespace(usable=self.usable.pop(0), plan=STORED)


def replanned(monkeypatch: pytest.MonkeyPatch, solver: Answers, **changes: Any) -> tuple[TimedPlan | None, RaceReplanner]:
    monkeypatch.setattr("airworthy.race.planning.replanner.horizon_planner", lambda *_: solver)
    replanner = RaceReplanner(RACER, STORED, CENTERS, OPTIONS)
    # In force is a plan 2 m above the stored one, so that guesses from either are told apart.
    above = STORED.states + np.array([0.0, 0.0, 2.0, *(10 * [0.0])])
    flown = TimedPlan(replace(STORED, states=above), 0.0, 0)
    return replanner.plan(replace(believed(0.5), **changes), flown, 0.1)(), replanner


def test_a_plan_that_failed_is_tried_again_from_the_stored_one(monkeypatch: pytest.MonkeyPatch) -> None:
    solver = Answers(False, True)
    made, replanner = replanned(monkeypatch, solver)
    assert made is not None
    assert replanner.failures == 0
    first, second = (asked[2].states[1:, 2] for asked in solver.asked)
    assert np.max(first[: NODES // 2] - second[: NODES // 2]) > 1.0
    solver = Answers(True)
    assert replanned(monkeypatch, solver)[0] is not None
    assert len(solver.asked) == 1
    solver = Answers(False, False)
    made, replanner = replanned(monkeypatch, solver)
    assert made is None
    assert (replanner.failures, len(solver.asked)) == (1, 2)


def test_who_slows_down_to_a_gate_looks_at_it_before_all_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """A plan can ask for so many looks at most: the one for which it slows down must be the first of them."""
    lacking = tuple((Glance(k, 0, 2), 0.1) for k in (1, 2, 3, 4, 5))
    solver = Answers(True)
    replanned(monkeypatch, solver, lacking=lacking, slow=6.0)
    *_, looks, caps = solver.asked[0]
    assert len(looks) == 6 > OPTIONS.horizon.glances
    assert np.array_equal(looks[0].target, CENTERS[0])
    assert looks[0].seconds == OPTIONS.need
    # On its own leg alone, and not where it would be too late.
    counted = np.flatnonzero(looks[0].steps)
    assert np.array_equal(counted, np.arange(len(counted)))
    assert 0 < len(counted) < NODES
    assert np.isfinite(caps[: NODES + 1]).all()
    solver = Answers(True)
    replanned(monkeypatch, solver, lacking=lacking)
    *_, looks, caps = solver.asked[0]
    assert len(looks) == 5
    assert caps is None
