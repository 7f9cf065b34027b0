"""What watches over a racer: each rule acts where it must, and nowhere else."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from airworthy.core import frames
from airworthy.core.arrays import Array
from airworthy.race import RacerModel, RaceTracker, TrackerGains, course_of, load_race, race_class
from airworthy.race.background import Desk
from airworthy.race.benchmark.flight import RaceFlight, fly_races
from airworthy.race.pilots.catalogue import PilotEntry
from airworthy.race.pilots.racing import RacingPilot
from airworthy.race.pilots.supervisor import Supervisor, SupervisorOptions, flown_ahead, upright
from airworthy.race.planning.detours import braked_plan, return_plan
from airworthy.race.planning.guess import TimedPlan
from airworthy.race.planning.horizon import GateWindows, HorizonOptions, whole_openings
from airworthy.race.planning.plan import flown_gates, packaged_plan
from airworthy.race.planning.replanner import RacerBelief, RaceReplanner, ReplanOptions
from airworthy.vehicles import vehicle

RACER = RacerModel.of(vehicle("flightgoggles_2019"))
RACE = load_race("alphapilot")
GATES = whole_openings(flown_gates(course_of(RACE, "nominal")))
STORED = TimedPlan(packaged_plan("alphapilot_glances", RACER), 0.0, 0)
OPTIONS = SupervisorOptions()
GATE10, GATE14, GATE1 = 0, 5, 6
WIDE = 1.2


class Notes(list[str]):
    """Words that a supervisor said."""


def watching() -> tuple[Supervisor, Notes]:
    notes = Notes()
    return Supervisor(RACER, WIDE, notes.append), notes


# ---- Stretch ----------------------------------------------------------------------------------------------------------------


def test_it_stretches_the_leg_to_a_narrow_gate_that_nobody_knows() -> None:
    made, notes = watching()
    narrow, wide = GATES.half[GATE1, 0], GATES.half[GATE14, 0]
    assert not made.stretched(GATE1, 0.81, narrow, 0.5)
    assert not made.stretched(GATE1, 0.5, narrow, OPTIONS.unlocalised)
    assert not made.stretched(GATE14, 0.5, wide, 0.5)
    assert not made.stretched(GATE1, float("nan"), narrow, 0.5)
    assert not notes
    assert made.stretched(GATE1, 0.79, narrow, 0.16)
    # The stretched plan takes longer; the leg stays slow until the gate is known.
    assert made.stretched(GATE1, 1.4, narrow, 0.16)
    assert not made.stretched(GATE1, 1.2, narrow, 0.1)
    assert notes == ["stretched a leg"]


def test_a_stretched_leg_is_slow_at_its_gate_and_looks_at_it() -> None:
    pytest.importorskip("casadi")
    options = ReplanOptions(horizon=HorizonOptions(ahead=1))
    planner = RaceReplanner(RACER, STORED.plan, GATES.center, options)
    time = STORED.crossing(GATE1 - 1) + 0.05
    sigma = np.zeros((11, 2))
    sigma[GATE1] = [0.5, 0.01]
    state = STORED.at(time)[0]

    def made(slow: float) -> TimedPlan:
        belief = RacerBelief(time, state, GATE1, GATES, sigma, [], slow=slow)
        plan = planner.plan(belief, STORED, 0.0)()
        assert plan is not None
        return plan

    fast, slow = made(np.inf), made(OPTIONS.slow)
    at_gate = np.abs(slow.plan.states[-1, 3:6])
    assert np.max(at_gate) <= OPTIONS.slow + 0.5 + 1e-3 < np.linalg.norm(fast.plan.states[-1, 3:6])
    assert slow.plan.duration > fast.plan.duration
    assert slow.plan.states[0, :3] == pytest.approx(state[:3], abs=1e-5)


# ---- Brake ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("time", [0.4, 2.5, 6.0, 12.0])
def test_a_braked_plan_keeps_its_path_and_ends_slowly(time: float) -> None:
    number = int(np.searchsorted(STORED.plan.gate_times, time))
    braked = braked_plan(STORED, time, range(number, 11), OPTIONS.slow, OPTIONS.braking)
    assert braked is not None
    assert (braked.begun, braked.first) == (time, number)
    assert braked.at(time)[0][:6] == pytest.approx(STORED.at(time)[0][:6], abs=1e-6)
    path = STORED.plan.at(np.arange(time, STORED.plan.duration + 0.01, 0.001))[0][:, :3]
    for place in braked.plan.states[::7, :3]:
        assert np.min(np.linalg.norm(path - place, axis=1)) < 0.03
    for passage in range(number, 11):
        offset = braked.at(braked.crossing(passage))[0][:3] - STORED.at(STORED.crossing(passage))[0][:3]
        assert np.linalg.norm(offset) < 0.03
    # It never speeds up along the path, and is slow once it has had the time to brake.
    speed = np.linalg.norm(braked.plan.states[:, 3:6], axis=1)
    clock = np.concatenate([[0.0], np.cumsum(braked.plan.steps)])
    began = speed[0]
    assert np.all(speed[clock > 1.2 * (began - OPTIONS.slow) / OPTIONS.braking + 0.3] <= max(2.2 * OPTIONS.slow, began))
    # Velocities are those of its places.
    middle = np.diff(braked.plan.states[:, :3], axis=0) / braked.plan.steps[:, None]
    mean = 0.5 * (braked.plan.states[1:, 3:6] + braked.plan.states[:-1, 3:6])
    assert np.median(np.linalg.norm(middle - mean, axis=1)) < 0.05
    # And accelerations, by which rotors are asked for thrust, those of its velocities.
    asked = np.stack(RACER.derivative(braked.plan.states[:-1].T, braked.plan.inputs.T)[3:6], axis=1)
    change = (braked.plan.states[2:, 3:6] - braked.plan.states[:-2, 3:6]) / (clock[2:] - clock[:-2])[:, None]
    assert np.median(np.linalg.norm(change - asked[1:], axis=1)) < 0.3 * OPTIONS.braking
    # The path is as curved as it was, however slowly it is flown: |v x a| / |v|^3.
    whole, inputs = STORED.plan.at(np.arange(time, STORED.plan.duration, 0.001))
    curved = curvature(whole[:, 3:6], np.stack(RACER.derivative(whole.T, inputs.T)[3:6], axis=1))
    nearest = [int(np.argmin(np.linalg.norm(whole[:, :3] - place, axis=1))) for place in braked.plan.states[:-1, :3]]
    now = curvature(braked.plan.states[:-1, 3:6], asked)
    bent = curved[nearest] > 0.05
    assert np.median(np.abs(now[bent] / curved[nearest][bent] - 1.0)) < 0.1


def curvature(velocity: Array, acceleration: Array) -> Array:
    return np.asarray(np.linalg.norm(np.cross(velocity, acceleration), axis=1) / np.linalg.norm(velocity, axis=1) ** 3)


def test_a_plan_that_began_later_is_braked_as_much_later() -> None:
    later = TimedPlan(STORED.plan, 3.0, 0)
    one, other = (braked_plan(plan, time, range(2, 11), 6.0, 12.0) for plan, time in ((STORED, 4.5), (later, 7.5)))
    assert one is not None
    assert other is not None
    assert other.begun == 7.5
    assert other.plan.states == pytest.approx(one.plan.states, abs=1e-9)
    assert other.plan.legs == pytest.approx(one.plan.legs, abs=1e-9)


def test_nothing_is_braked_where_no_passage_lies_ahead() -> None:
    assert braked_plan(STORED, 20.0, range(10, 11), 6.0, 12.0) is None
    assert braked_plan(STORED, 5.0, range(11, 11), 6.0, 12.0) is None


# ---- Restart ----------------------------------------------------------------------------------------------------------------


def test_far_off_its_plan_it_plans_from_where_it_will_be() -> None:
    made, notes = watching()
    time = 5.0
    state = STORED.at(time)[0]
    near, far = state.copy(), state.copy()
    near[0] += 0.39
    far[0] += 0.41
    assert not made.strayed(near, STORED, time)
    assert not notes
    assert made.strayed(far, STORED, time)
    assert notes == ["planned from where it was"]


def test_where_it_will_be_is_where_tracking_leads() -> None:
    """Against a hundred times finer steps of the same law; on the plan it is the plan."""
    tracker = RaceTracker(RACER, TrackerGains(lead=0.0))
    time, late = 5.0, 0.1
    on_plan = flown_ahead(tracker, STORED.at(time)[0], STORED, time, late)
    assert on_plan[:6] == pytest.approx(STORED.at(time + late)[0][:6], abs=0.1)
    state = STORED.at(time)[0].copy()
    state[:3] += [0.5, -0.3, 0.2]
    fine, steps = state.copy(), 2400
    for k in range(steps):
        now = time + late * k / steps
        reference, inputs = STORED.at(now)
        thrust, alpha = tracker.command(fine[None], reference[None], inputs[None], inputs[None])
        fine = np.array(RACER.step(fine, np.concatenate([thrust, alpha[0]]), late / steps))
    reached = flown_ahead(tracker, state, STORED, time, late)
    assert reached[:3] == pytest.approx(fine[:3], abs=0.02)
    assert reached[3:6] == pytest.approx(fine[3:6], abs=0.3)
    # Half of the error would be 0.31 m: a tenth of a second pulls back by next to nothing.
    assert np.linalg.norm(reached[:3] - STORED.at(time + late)[0][:3]) > 0.45


# ---- Filter -----------------------------------------------------------------------------------------------------------------


def test_a_surprised_filter_is_loosened_once_and_an_ordinary_one_never() -> None:
    made, notes = watching()
    draws = np.random.default_rng(0).chisquare(16, 2000) / 16.0
    assert not any(made.surprised(nis) for nis in draws)
    assert not any(made.surprised(nis) for nis in [200.0] + 29 * [1.0])
    assert not notes
    acts = [made.surprised(20.0) for _ in range(60)]
    # Once the mean over 30 frames is above 12, and not again before 30 more.
    assert 15 <= acts.index(True) < 30
    assert sum(acts) == 2
    assert notes == 2 * ["loosened its estimate"]


def test_a_gate_that_is_refused_again_and_again_is_forgotten() -> None:
    made, notes = watching()
    seen, none = np.array([4, 4, 0]), np.zeros(3, np.int64)
    for _ in range(5):
        assert made.excluded(seen, np.array([3, 1, 0])) == []
    # One good look, and it begins anew; frames that do not show the gate say nothing.
    assert made.excluded(seen, none) == []
    for _ in range(5):
        assert made.excluded(seen, np.array([4, 0, 0])) == []
    assert made.excluded(none, none) == []
    assert not notes
    assert made.excluded(seen, np.array([3, 0, 0])) == [0]
    assert made.excluded(seen, np.array([3, 0, 0])) == []
    assert notes == ["forgot a gate"]


# ---- Return -----------------------------------------------------------------------------------------------------------------


def test_a_gate_is_missed_only_beside_its_opening_and_its_doubt() -> None:
    made, _ = watching()
    center, left, up = GATES.center[GATE10], GATES.left[GATE10], GATES.up[GATE10]
    half = GATES.half[GATE10]

    def missed(aside: float, above: float, sigma: float = 0.02) -> bool:
        return made.missed(center + aside * left + above * up, GATES, GATE10, np.full(2, sigma))

    edge = OPTIONS.tolerance + 0.04
    assert not missed(half[0] + edge - 0.01, 0.0)
    assert missed(half[0] + edge + 0.01, 0.0)
    assert missed(-half[0] - edge - 0.01, 0.0)
    assert missed(0.0, half[1] + edge + 0.01)
    assert not missed(half[0] + edge + 0.01, 0.0, 0.3)


@pytest.mark.parametrize("side", [1.0, -1.0])
@pytest.mark.parametrize("number", [GATE10, GATE1, 9])
def test_the_way_back_leads_round_the_frame_and_through_the_gate(number: int, side: float) -> None:
    made, notes = watching()
    normal, left, center, half = (item[number] for item in (GATES.normal, GATES.left, GATES.center, GATES.half))
    state = STORED.at(STORED.crossing(number))[0].copy()
    state[:3] = center + side * (half[0] + 0.6) * left + 0.05 * normal
    way = return_plan(RACER, state, GATES, number, 7.0)
    times = np.arange(7.0, way.crossing(number) + 0.05, 0.005)
    places = way.plan.at(times - 7.0)[0][:, :3] - center
    depth, aside = places @ normal, places @ left
    back, through = np.flatnonzero(np.diff(np.sign(depth)))[-2:]
    # Back on the side where it is, a metre and more beyond the tube; then along the axis, through the middle.
    assert depth[back] > 0.0 > depth[back + 1]
    # Beside the gate's own plane it is where it was asked to be: 1.8 m beyond the edge, on the side where it missed.
    assert side * aside[back] == pytest.approx(half[0] + 1.8, abs=0.05)
    assert np.linalg.norm(places[through]) < 0.1
    assert np.all(np.abs(aside[(np.abs(depth) < 0.4) & (times > times[through] - 0.3)]) < half[0])
    assert np.min(places[:, 2] + center[2]) > 0.4
    assert made.worth_returning(way, number, 7.0)
    assert not made.worth_returning(way, number, way.crossing(number) - 10.5)
    assert notes == ["returned for a gate", "left a gate out"]


# ---- Floor ------------------------------------------------------------------------------------------------------------------


def falling(height: float, down: float, tilt: float) -> Array:
    """Falls at a speed, tilted about body x [rad]."""
    return np.array([0.0, 0.0, height, 0.0, 0.0, -down, *frames.from_euler(tilt, 0.0, 0.3), 0.0, 0.0, 0.0])


def test_the_floor_is_guarded_where_it_must_be() -> None:
    made, notes = watching()
    for time in np.arange(0.0, STORED.plan.duration, 0.02):
        assert not made.guards(STORED.at(time)[0])
    assert not notes
    assert not made.guards(falling(3.0, 2.0, 1.3))
    assert made.guards(falling(1.0, 6.0, 2.8))
    # Until it no longer falls.
    assert made.guards(falling(0.6, 1.0, 0.1))
    assert not made.guards(falling(0.6, -0.1, 0.1))
    assert notes == ["guarded the floor"]


@pytest.mark.parametrize("tilt", [0.0, 1.0, 2.0, 3.0])
@pytest.mark.parametrize("down", [1.0, 4.0, 8.0])
def test_it_falls_no_lower_than_it_says(tilt: float, down: float) -> None:
    """The guard's own command through the tracker's law, on the racer's equations."""
    made, _ = watching()
    tracker = RaceTracker(RACER)
    state = falling(10.0, down, tilt)
    said, lowest = made.lowest(state), 10.0
    for _ in range(300):
        reference, inputs = upright(state, RACER)
        thrust, alpha = tracker.command(state[None], reference[None], inputs[None], inputs[None])
        state = np.array(RACER.step(state, np.concatenate([thrust, alpha[0]]), 1.0 / 240.0))
        lowest = min(lowest, float(state[2]))
        if state[5] > 0.0:
            break
    assert state[5] > 0.0
    # What it takes to begin to turn and to stop turning is its margin's.
    assert lowest > said - 0.25 - 0.1 * down
    assert lowest < said + 1.5


def test_who_is_upright_stops_with_three_quarters_of_its_thrust() -> None:
    """The closed form: v^2 / 2 a, with no turn before it; on its back it falls freely first, for the turn from 180 to 60
    degrees."""
    made, _ = watching()
    push = 0.75 * 0.94 * RACER.thrust_max / RACER.mass - RACER.gravity
    assert made.lowest(falling(5.0, 4.0, 0.0)) == pytest.approx(5.0 - 16.0 / (2.0 * push))
    turn = (np.pi - np.pi / 3.0) / OPTIONS.turning
    down = 4.0 + RACER.gravity * turn
    height = 5.0 - 4.0 * turn - 0.5 * RACER.gravity * turn**2
    assert made.lowest(falling(5.0, 4.0, np.pi)) == pytest.approx(height - down**2 / (2.0 * push))


# ---- In flight --------------------------------------------------------------------------------------------------------------


class Blind(RacingPilot):
    """Whose plans all fail."""

    def __init__(self) -> None:
        super().__init__(ReplanOptions(horizon=HorizonOptions(ahead=1)))

    def begin(self, facts: Any) -> None:
        super().begin(facts)
        self._replanner._made = lambda *_: None  # type: ignore[method-assign]

    def command(self, onboard: Any) -> Array:
        if onboard.time >= SECONDS:
            raise RuntimeError("enough")
        return super().command(onboard)


SECONDS = 3.0


def fly(made: type[RacingPilot], course: str) -> RaceFlight:
    (flown,) = fly_races(RACE, (course,), PilotEntry("race", made, False, False, 240.0, made.sensors), race_class("noisy"))
    return flown


def test_without_plans_it_brakes_and_says_so() -> None:
    pytest.importorskip("casadi")
    flown = fly(Blind, "nominal")
    words = [note.word for note in flown.noted]
    assert "braked" in words
    assert all(record.failed for record in flown.planned)
    # The first is tried again at once, 0.1 s after it was asked for; each after that brakes, but for one still on its way.
    assert flown.planned[1].submitted_s < 0.15
    assert words.count("braked") in (len(flown.planned) - 2, len(flown.planned) - 1)
    speed = np.linalg.norm(flown.trace.velocity, axis=1)
    assert speed[-1] < 8.0
    # Gate10 is passed on the stored plan's path all the same, or still lies ahead.
    assert flown.result.end == "pilot_error"


class Misled(RacingPilot):
    """Believes Gate10 to stand 3.5 m aside until it is beside it."""

    def _windows(self, shift: Array) -> GateWindows:
        gates = super()._windows(shift)
        if self._progress.next == 0 and not self._seen:
            gates.center[0] += 3.5 * gates.left[0]
            depth = float((self._own[:3] - gates.center[0]) @ gates.normal[0])
            self._seen = depth > -0.1
        return gates

    _seen = False


@pytest.mark.slow
def test_it_returns_for_a_gate_that_it_missed() -> None:
    pytest.importorskip("casadi")
    flown = fly(Misled, "nominal")
    assert "returned for a gate" in [note.word for note in flown.noted]
    assert flown.result.completed
    assert flown.result.passed == 11
    assert flown.result.time_s < 24.0


def test_desk_takes_what_it_says() -> None:
    desk = Desk()
    Supervisor(RACER, WIDE, desk.note).strayed(np.zeros(13), STORED, 5.0)
    assert [note.word for note in desk.notes] == ["planned from where it was"]


def test_it_asks_for_a_slow_plan_once_and_for_a_fast_one_when_the_gate_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """A leg that is to be stretched asks for a plan at once; the plan that knows it is not asked for again at each look."""
    asked: list[float] = []

    class Stretches(RacingPilot):
        """Holds its next gate for unknown at first, knows it for a while, and loses it again."""

        def __init__(self) -> None:
            super().__init__(ReplanOptions(horizon=HorizonOptions(ahead=1)))

        def begin(self, facts: Any) -> None:
            super().begin(facts)
            # An ordinary plan at first, and another one behind the slow one.
            due = {0: 0.0, 2: 1.0}
            monkeypatch.setattr(self._replanner, "wanted", lambda belief, *_: belief.time >= due.get(len(asked), np.inf))
            monkeypatch.setattr(self._replanner, "plan", self._asked)

        def _asked(self, belief: RacerBelief, flown: TimedPlan, late: float) -> Any:
            asked.append(belief.slow)
            return lambda: flown

        def _slow(self, belief: RacerBelief) -> bool:
            return bool(0.4 < belief.time < 0.9 or belief.time > 1.3)

        def command(self, onboard: Any) -> Array:
            if onboard.time >= 1.7:
                raise RuntimeError("enough")
            return super().command(onboard)

    fly(Stretches, "nominal")
    assert asked == [np.inf, OPTIONS.slow, np.inf, OPTIONS.slow]
