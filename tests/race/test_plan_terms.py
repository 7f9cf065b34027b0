"""Terms of the programme of minimum time, by points that keep or break them, and when it is solved again."""

from __future__ import annotations

import signal
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.race.flights import strict_race, waiting

from airworthy.core.arrays import Array
from airworthy.race import Post, Race, RacePlanOptions, RacerModel, RaceStart, load_race, minimum_time_plan, race_vehicle
from airworthy.race.planning.interrupts import told_signals
from airworthy.race.planning.minimum_time import rest_plan
from airworthy.race.planning.minimum_time_program import MinimumTimeProgram, ProgramEnd
from airworthy.race.planning.obstacles import obstacles_of
from airworthy.race.planning.plan import RacePlan, flown_gates, start_state
from airworthy.race.record import GateFrames
from airworthy.race.referee import Referee
from airworthy.race.scoring import race_results

casadi = pytest.importorskip("casadi")
MODEL = RacerModel.of(race_vehicle(load_race("uzh_split_s")))
OPTIONS = RacePlanOptions(nodes=6)
GOOD, BAD = "Solve_Succeeded", "Maximum_Iterations_Exceeded"
THERE_AND_BACK = {"order": ("A", "-A", "B", "C", "D")}


def problem_of(race: Race, options: RacePlanOptions = OPTIONS, state: Array | None = None) -> MinimumTimeProgram:
    state = start_state(race) if state is None else state
    return MinimumTimeProgram(
        casadi, MODEL, flown_gates(race), state, options, obstacles_of(race, options.clearance, options.wall)
    )


def beyond(problem: MinimumTimeProgram, states: Array) -> float:
    """By how much states, (nodes + 1, 13), are beyond a problem's terms, at the most; below 0 where they keep all."""
    terms = casadi.Function("terms", [problem.x], [casadi.vertcat(*(term for term, _, _ in problem._terms))])
    values = np.asarray(terms(states.T)).ravel()
    low, high = (np.concatenate([row[k] for row in problem._terms]) for k in (1, 2))
    return float(np.max(np.maximum(low - values, values - high)))


def straight(problem: MinimumTimeProgram) -> Array:
    """States along the row of gates at 5 m/s."""
    states = np.tile(problem.start, (problem.x.shape[1], 1))
    states[:, 0] = np.linspace(0.0, 20.0, len(states))
    states[:, 3] = 5.0
    return states


def test_a_cone_before_a_gate_is_no_narrower_than_others() -> None:
    """From right before the gate all nodes lie in a cone, and who begins on its axis is not bound to the axis."""
    race = strict_race()
    state = start_state(race)
    state[0] = 4.0
    problem = problem_of(race, replace(OPTIONS, cone_nodes=1), state)
    problem._pass(0, problem.gates[0])
    # The window is 0.6 m to each side, and node 2 is 0.5 m before the plane: 1.1 m by a cone of 45 degrees.
    for aside, kept in ((1.05, True), (1.15, False)):
        states = straight(problem)
        states[:7, 0] = np.linspace(4.0, 5.0, 7)
        states[2:4, 0] = 4.5
        states[2, 1] = aside
        assert (beyond(problem, states) <= 1e-9) is kept


def test_half_way_between_nodes_posts_are_kept_off_too() -> None:
    race = strict_race(posts=(Post((7.5, 0.0), 4.0, 0.05),))
    options = replace(OPTIONS, clearance=0.35)
    problem = problem_of(race, options)
    problem._avoid()
    states = straight(problem)
    # The second leg's nodes lie 5/6 m apart; no node is nearer than 0.42 m, and the middle of two goes through the post.
    states[:, 0] = np.where(np.abs(states[:, 0] - 7.5) < 0.1, 7.5 - 5.0 / 12.0, states[:, 0])
    states[9, 0], states[10:13, 0] = 7.5 - 5.0 / 12.0, 7.5 + 5.0 / 12.0
    assert np.min(np.abs(states[:, 0] - 7.5)) > 0.4
    assert beyond(problem, states) == pytest.approx(1.0)
    states[:, 1] = 0.45
    assert beyond(problem, states) < 0.0


def test_a_plan_goes_behind_a_gate_that_it_flies_back_through() -> None:
    race = strict_race(**THERE_AND_BACK)
    problem = problem_of(race)
    for number, gate in enumerate(problem.gates):
        problem._go_behind(number, gate)
    # Of the second leg alone, at its middle: node 6 + 3.
    assert len(problem._terms) == 1
    for depth, kept in ((0.39, False), (0.41, True)):
        states = straight(problem)
        states[9, 0] = 5.0 + depth
        assert (beyond(problem, states) <= 0.0) is kept
    twice = problem_of(strict_race(order=("A", "A", "B", "C", "D")))
    twice._go_behind(1, twice.gates[1])
    assert twice._terms == []


@pytest.mark.parametrize(("speed", "bound"), [(3.0, 1), (-3.0, 0)])
def test_in_flight_who_comes_back_has_been_behind(speed: float, bound: int) -> None:
    race = strict_race(**THERE_AND_BACK)
    state = start_state(race)
    state[0], state[3] = 5.2, speed
    obstacles = obstacles_of(race, OPTIONS.clearance, OPTIONS.wall).after(1)
    problem = MinimumTimeProgram(casadi, MODEL, flown_gates(race)[1:], state, OPTIONS, obstacles)
    problem._go_behind(0, problem.gates[0])
    assert len(problem._terms) == bound


@pytest.mark.slow
def test_there_and_back_is_planned_with_a_way_behind() -> None:
    """Without it the plan dipped through the plane by millimetres, which no flight does."""
    race = strict_race(order=("A", "-A"), gates=strict_race().gates[:1])
    plan = minimum_time_plan(race, MODEL, OPTIONS)
    path = plan.at(np.linspace(plan.gate_times[0], plan.gate_times[1], 200))[0]
    assert np.max(path[:, 0]) > 5.0 + 0.4 - 1e-3
    assert np.min(path[:, 0]) > 5.0 - 1e-3


def test_a_gate_that_is_flown_again_is_led_round() -> None:
    race = strict_race(order=("A", "A", "B", "C", "D"), frames=GateFrames())
    problem = problem_of(race)
    for number, gate in enumerate(problem.gates):
        problem._go_round(number, gate)
    # Of the second leg alone, at its thirds: nodes 6 + 2 behind the plane, 6 + 4 before it.
    assert len(problem._terms) == 2
    for behind, before, kept in ((0.41, 0.41, True), (0.39, 0.41, False), (0.41, 0.39, False)):
        states = straight(problem)
        states[8, 0], states[10, 0] = 5.0 + behind, 5.0 - before
        assert (beyond(problem, states) <= 0.0) is kept
    back = problem_of(strict_race(**THERE_AND_BACK, frames=GateFrames()))
    back._go_round(1, back.gates[1])
    assert back._terms == []


@pytest.mark.parametrize(("place", "bound"), [((5.5, 0.0), 2), ((5.5, 4.0), 1), ((4.5, 4.0), 0), ((4.5, 0.0), 0)])
def test_in_flight_who_is_round_a_gate_is_led_round_no_more(place: tuple[float, float], bound: int) -> None:
    race = strict_race(order=("A", "A", "B", "C", "D"), frames=GateFrames())
    state = start_state(race)
    state[:2] = place
    obstacles = obstacles_of(race, OPTIONS.clearance, OPTIONS.wall).after(1)
    problem = MinimumTimeProgram(casadi, MODEL, flown_gates(race)[1:], state, OPTIONS, obstacles)
    problem._go_round(0, problem.gates[0])
    assert len(problem._terms) == bound


@pytest.mark.slow
@pytest.mark.parametrize("order", [("A", "A"), ("-A", "-A", "-A")])
def test_laps_of_one_gate_are_planned_round_its_frame(order: tuple[str, ...]) -> None:
    """Without a way round plans hovered in the plane of the gate."""
    race = strict_race(order=order, gates=strict_race().gates[:1], frames=GateFrames(), start=RaceStart((5.0, -5.0, 2.0)))
    plan = minimum_time_plan(race, MODEL, replace(OPTIONS, nodes=18))
    path = plan.at(np.arange(0.0, plan.duration, 1.0 / 960.0))[0][:, :3]
    judged = race_results(referee := Referee(race), referee.judge(waiting(path, 0.2)[:, None]))[0]
    assert judged.passed >= len(order) - 1
    # It crosses the plane against its direction beside the frame, whose bars are 0.15 m wide, by more than a vehicle's
    # radius.
    way = -1.0 if order[0].startswith("-") else 1.0
    beyond = way * (path[:, 0] - 5.0)
    first = int(np.searchsorted(np.arange(0.0, plan.duration, 1.0 / 960.0), plan.gate_times[0]))
    crossed = first + np.flatnonzero((beyond[first:-1] >= 0.0) & (beyond[first + 1 :] < 0.0))
    assert len(crossed) == len(order) - 1
    off = np.maximum(np.abs(path[crossed, 1:] - [0.0, 2.0]) - 1.0 - 0.15, 0.0)
    assert np.min(np.linalg.norm(off, axis=1)) > 0.15


class Interrupted:
    """CasADi with a solver that a signal ends: it swallows what the handler raises."""

    def __getattr__(self, name: str) -> Any:
        return getattr(casadi, name)

    def nlpsol(self, *given: Any) -> Any:
        solver = casadi.nlpsol(*given[:-1], {**given[-1], "ipopt.max_iter": 1})

        class Solver:
            def __call__(self, **asked: Any) -> Any:
                with suppress(KeyboardInterrupt):
                    signal.raise_signal(signal.SIGINT)
                return solver(**asked)

            def stats(self) -> dict[str, str]:
                return {"return_status": "Invalid_Number_Detected"}

        return Solver()


@pytest.mark.slow
def test_a_signal_while_it_solves_is_no_guess_that_led_nowhere() -> None:
    problem = problem_of(strict_race())
    problem.ca = Interrupted()
    # Jobs in the background of a shell ignore it, and so would these tests there.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            problem.solve()
    finally:
        signal.signal(signal.SIGINT, before)


def swallowing(told: list[int]) -> None:
    """What a solver's loop does at a signal, of which nobody else has been told by then."""
    with told_signals():
        with suppress(KeyboardInterrupt):
            signal.raise_signal(signal.SIGTERM)
        assert told == []


def test_signals_reach_whom_they_would_have_behind_a_solver() -> None:
    told: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, _: told.append(number))
    try:
        with pytest.raises(KeyboardInterrupt):
            swallowing(told)
        assert told == [signal.SIGTERM]
        with told_signals():
            pass
        assert signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL
        # Who ignores a signal goes on ignoring it.
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        with told_signals():
            signal.raise_signal(signal.SIGTERM)
    finally:
        signal.signal(signal.SIGTERM, before)


def test_who_starts_beyond_a_bound_is_let_off_until_the_first_gate() -> None:
    race = strict_race()
    for height, low, high in ((0.1, 0.1, 9.8), (2.0, 0.4, 9.8), (9.9, 0.4, 9.9)):
        state = start_state(race)
        state[2] = height
        problem = problem_of(race, replace(OPTIONS, height_min=0.4), state)
        lower, upper = (part[: 25 * 13].reshape(25, 13)[:, 2] for part in problem.ranges())
        assert lower[1:6] == pytest.approx(np.full(5, low))
        assert upper[1:6] == pytest.approx(np.full(5, high))
        assert (lower[6:], upper[6:]) == (pytest.approx(np.full(19, 0.4)), pytest.approx(np.full(19, 9.8)))


# ---- When it is solved again ------------------------------------------------------------------------------------------------


@pytest.fixture
def plan() -> RacePlan:
    """One that nobody solved, along the row at 5 m/s: four legs of a second."""
    states = straight(problem_of(strict_race(), replace(OPTIONS, nodes=4)))
    hover = MODEL.mass * MODEL.gravity
    return RacePlan(states, np.tile([hover, 0.0, 0.0, 0.0], (16, 1)), np.ones(4), MODEL, "", {})


def ended(
    plan: RacePlan, status: str = GOOD, slacks: tuple[float, float, float] = (0.0, 0.0, 0.0), **changes: Any
) -> ProgramEnd:
    found = ProgramEnd(plan.states, plan.inputs, plan.legs, np.tile(np.array(slacks)[:, None], (1, 4)), 3.0, status, "")
    return replace(found, **changes)


@pytest.mark.parametrize(("leg", "solves"), [(5.79, 0), (5.81, 2)])
def test_a_leg_is_a_detour_beyond_twice_its_straight_line_and_a_bit(
    plan: RacePlan, monkeypatch: pytest.MonkeyPatch, leg: float, solves: int
) -> None:
    """Legs of 5 m at 2 m/s: 2 * 2.5 + 0.8 = 5.8 s. It is begun anew straight, and then past the posts."""
    race = strict_race(posts=(Post((2.5, 3.0), 1.0, 0.1),))
    problem = problem_of(race, replace(OPTIONS, nodes=4, cruise=2.0))
    found, ways = ended(plan, legs=np.full(4, leg)), list[Any]()
    monkeypatch.setattr(MinimumTimeProgram, "solve", lambda problem: found)
    told = "airworthy.race.planning.minimum_time_program.slowly"
    monkeypatch.setattr(told, lambda *given: ways.append(None if given[-1] is None else len(given[-1])))
    problem.shorter(found)
    assert ways == [None, 1][:solves]


def test_where_nothing_was_found_nothing_is_made_shorter(plan: RacePlan, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MinimumTimeProgram, "solve", lambda problem: pytest.fail("it solved again"))
    found = ended(plan, BAD, legs=np.full(4, 19.0))
    assert problem_of(strict_race(), replace(OPTIONS, nodes=4, cruise=2.0)).shorter(found) is found


@pytest.mark.parametrize(("slacks", "solves"), [((0.2, 0.0, 0.0), 2), ((0.0, 0.2, 0.0), 2), ((0.0, 0.0, 0.2), 1)])
def test_who_is_beside_a_window_or_within_what_is_kept_off_begins_anew_slowly(
    plan: RacePlan, monkeypatch: pytest.MonkeyPatch, slacks: tuple[float, float, float], solves: int
) -> None:
    """A speed that is too high alone is none of that; and a slow leg takes six tenths of its guess at least."""
    least: list[Array] = []

    def solve(problem: MinimumTimeProgram) -> ProgramEnd:
        least.append(problem.least.copy())
        return ended(plan, slacks=slacks)

    monkeypatch.setattr(MinimumTimeProgram, "solve", solve)
    monkeypatch.setattr("airworthy.race.planning.minimum_time._checked", lambda problem, race, found: found)
    options = replace(OPTIONS, nodes=4, slack=30.0)
    rest_plan(strict_race(), MODEL, options, state=start_state(strict_race()), passed=0, before=plan, clock=0.0)
    assert len(least) == solves
    assert np.all(least[0] == 0.03)
    if solves == 2:
        # 5 m at 0.8 m/s.
        assert least[1] == pytest.approx(np.full(4, 0.6 * 6.25))
