"""The expert: where it looks itself up, when its flight begins anew, what it makes of a solution, whose thrust it counts on."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from airworthy.control.mpc import MpcConfig
from airworthy.core.errors import AirworthyError
from airworthy.pilots import expert
from airworthy.pilots.expert import ExpertPilot, expert_for, expert_reference, full_thrust, full_thrust_of
from airworthy.pilots.pilot import Observation
from airworthy.simulation import Simulator, SimulatorConfig
from airworthy.simulation.flights import read_flight_meta
from airworthy.trajectories import Keyframe, course, course_names, minimum_snap
from airworthy.vehicles import vehicle

CONFIG = MpcConfig()


def _line(seconds: float = 1.0, length: float = 2.0) -> Any:
    return minimum_snap(
        [
            Keyframe(0.0, (0.0,), (0.0,), (1.0,), (0.0,)),
            Keyframe(seconds, (length,), (0.0,), (1.0,), (0.0,)),
        ],
        8,
    )


def test_rows_are_samples_at_its_rate_up_to_the_end() -> None:
    paths = [_line(1.0), _line(0.5 + 1e-8), _line(0.5 - 1e-8), _line(0.5 - 1e-6)]
    found = expert_reference(paths, CONFIG)
    rows = [round(seconds * CONFIG.rate) + 1 for seconds in (1.0, 0.5, 0.5)]
    assert np.diff(found.first).tolist() == rows
    assert (found.last - found.first + 1).tolist() == [*rows, rows[2] - 1]
    states, thrust = found.table.states, found.table.thrust
    sample = paths[0].sample(np.arange(rows[0]) / CONFIG.rate)
    np.testing.assert_allclose(states[: rows[0], :6], np.concatenate([sample.position, sample.velocity], 1), atol=1e-9)
    # Thrust per mass that holds the height and gives the acceleration.
    pull = np.linalg.norm(sample.acceleration + np.array([0.0, 0.0, 9.81]), axis=1)
    np.testing.assert_allclose(np.ravel(thrust)[: rows[0]], pull, rtol=1e-6)
    with pytest.raises(AirworthyError, match="at least one path"):
        expert_reference([])


def test_the_nearest_row_is_looked_for_near_the_clock_and_on_the_own_path() -> None:
    found = expert_reference([_line(1.0), _line(1.0)], CONFIG)
    table = np.array(found.table.states)
    reach = 4
    assert round(expert.SEARCH * found.rate) == reach
    for path, clock, there in (
        (0, 10, 10),
        (0, 10, 14),
        (0, 10, 6),
        (0, 10, 15),
        (0, 10, 5),
        (1, 0, 3),
        (1, 20, 18),
        (0, 20, 20),
    ):
        state = table[None, found.first[path] + there].copy()
        # The other sign is the same attitude; an offset across the path changes nothing.
        state[:, 6:] *= -1.0
        state[:, 1] += 0.3
        row = found.nearest(state, np.array([clock / found.rate]), np.array([path]))[0] - found.first[path]
        assert row == np.clip(there, max(clock - reach, 0), min(clock + reach, 20))
    still = expert_reference(minimum_snap([Keyframe(t, (0.0,), (0.0,), (1.0,), (0.0,)) for t in (0.0, 1.0)], 8), CONFIG)
    # Of equals the earliest.
    assert still.nearest(still.table.states[:1], np.array([0.5]), np.array([0]))[0] == 10 - reach


def test_an_end_of_keyframes_is_held_for_a_horizon() -> None:
    keyed = next(c for c in map(course, course_names()) if c.kind == "keyframes")
    held = expert.held(keyed, 0.7)
    before = keyed.trajectory()
    assert held.duration == pytest.approx(before.duration + 0.7)
    last = keyed.keyframes[-1]
    np.testing.assert_allclose(held.sample(np.array([held.duration])).position[0], [last.x[0], last.y[0], last.z[0]], atol=1e-9)
    other = next(c for c in map(course, course_names()) if c.kind != "keyframes")
    assert expert.held(other, 0.7).duration == other.trajectory().duration
    rows = expert_reference(keyed, CONFIG)
    assert rows.last[0] == int(np.floor((before.duration + CONFIG.horizon / CONFIG.rate) * CONFIG.rate + 1e-6))


def test_who_has_no_thrust_or_mass_is_refused() -> None:
    reference = expert_reference(_line(), CONFIG)
    for full, mass in (([1.0, 2.0], [1.0]), ([0.0], [1.0]), ([1.0], [0.0]), ([-1.0], [1.0]), ([np.nan], [1.0])):
        with pytest.raises(AirworthyError, match="expected as many of each, all above 0"):
            ExpertPilot(reference, full, mass)
    with pytest.raises(AirworthyError, match="rows a second; its MPC runs at"):
        ExpertPilot(SimpleNamespace(rate=CONFIG.rate + 2e-9), [1.0], [1.0])  # type: ignore[arg-type]


def test_flights_begin_with_hover_as_their_vehicles_believe_it() -> None:
    asked: list[list[bool]] = []
    pilot: Any = SimpleNamespace(
        config=SimpleNamespace(rate=20.0),
        _tick=np.full(3, -1),
        _frame=None,
        _found=None,
        _offset=np.array([0.0, 0.5, 1.0]),
        _mass=np.array([1.0, 2.0, 1.0]),
        _gravity=np.full(3, 10.0),
        _believed=np.array([30.0, 40.0, 50.0]),
        _full=np.array([20.0, 40.0, 50.0]),
        _command=np.full((3, 4), 7.0),
        failures=np.array([3, 3, 3]),
        cut_off=np.array([2, 2, 2]),
        observes=("position",),
        solver=SimpleNamespace(reset=lambda ids: asked.append([i in ids for i in range(3)])),
    )
    solved: list[Any] = []
    pilot._begin = lambda ids: ExpertPilot._begin(pilot, ids)
    pilot._solve = lambda state, time, new: solved.append((time.tolist(), new.tolist()))

    class Seen(dict[str, Any]):
        time = np.zeros(3)

    def command(*time: float) -> Any:
        seen = Seen(position=np.zeros((3, 3)))
        seen.time = np.array(time)
        return ExpertPilot.command(pilot, seen)  # type: ignore[arg-type]

    np.testing.assert_allclose(command(0.0, 0.0, 0.0), [[15.0, 0, 0, 0], [20.0, 0, 0, 0], [10.0, 0, 0, 0]])
    assert pilot.failures.tolist() == pilot.cut_off.tolist() == [0, 0, 0]
    assert solved == [([0.0, 0.5, 1.0], [True] * 3)]
    # A tick is early by up to a thousandth of a period, and no flight begins with it.
    command(0.04994, 0.04996, 0.05)
    assert solved[1][1] == [False, True, True]
    assert asked[1] == [False] * 3
    command(0.0499, 0.0999, 0.06)
    assert len(solved) == 2
    # From the second tick back to the first: the flight has begun anew.
    pilot._tick[:] = [3, 1, 2]
    pilot.failures[:] = 5
    command(0.0, 0.0, 0.15)
    assert asked[-1] == [True, True, False]
    assert pilot.failures.tolist() == [0, 0, 5]


def test_an_expert_that_is_told_of_a_load_carries_it() -> None:
    drone = vehicle("carl")
    full = full_thrust_of(drone)
    given = []
    for told in (False, True):
        pilot = ExpertPilot(expert_reference(_line(2.0, 0.0), CONFIG), [full] * 2, [drone.mass] * 2)
        if told:
            pilot.weigh([drone.mass, 1.3 * drone.mass])
        still = {"position": np.tile([0.0, 0.0, 1.0], (2, 1)), "velocity": np.zeros((2, 3))}
        level = Observation(np.zeros(2), {**still, "attitude": np.tile([0.0, 0.0, 0.0, 1.0], (2, 1))})
        given.append(pilot.command(level)[:, 0])
    # At its place it hovers: with a third more thrust where it is heavier by as much.
    np.testing.assert_allclose(given[0], drone.mass * 9.81, rtol=0.01)
    np.testing.assert_allclose(given[1] / given[0], [1.0, 1.3], rtol=0.01)
    for mass in ([1.0], [1.0, 0.0], [1.0, np.nan], np.ones((2, 1))):
        with pytest.raises(AirworthyError, match="expert of 2 vehicles got masses"):
            pilot.weigh(mass)


def test_whoever_is_late_is_found_by_its_progress_and_not_sent_across() -> None:
    """Round a circle of 1 m at half the speed, half a circle late in the end: told what is done there, and no short cut."""
    turns = np.linspace(0.0, 2.0 * np.pi, 13)
    ring = minimum_snap([Keyframe(4.0 * a / np.pi, (np.cos(a),), (np.sin(a),), (1.0,), (0.0,)) for a in turns], 8)
    reference = expert_reference(ring, CONFIG)
    drone = vehicle("carl")
    rows: dict[bool, list[Any]] = {}
    for by_progress in (False, True):
        pilot = ExpertPilot(
            reference, [full_thrust_of(drone)] * 2, [drone.mass] * 2, search=1.5, by_progress=by_progress, offset=(0.0, 1.0)
        )
        rows[by_progress], solve = [], pilot.solver.solve

        def solved(*given: Any, kept: Any = rows[by_progress], solve: Any = solve) -> Any:
            kept.append(np.array(given[2]))
            return solve(*given)

        setattr(pilot.solver, "solve", solved)  # noqa: B010
        for again in range(2):  # the second flight begins anew, where it begins and not where the first one ended
            for tick in range(1 if again else 161):
                place = reference.table.states[[tick // 2, 20 + tick // 2]]
                seen: dict[str, Any] = {"position": place[:, :3], "velocity": place[:, 3:6], "attitude": place[:, 6:]}
                pilot.command(Observation(np.full(2, tick / CONFIG.rate), seen))
    there = np.array([[tick // 2, 20 + tick // 2] for tick in [*range(161), 0]])
    np.testing.assert_array_equal(rows[True], there)
    # By the clock it is found as long as it is no later than is searched, and then far ahead of where it is.
    late = np.array([*np.arange(161) / 40.0, 0.0])
    np.testing.assert_array_equal(np.array(rows[False])[late <= 1.5], there[late <= 1.5])
    assert np.array(rows[False])[160, 0] == 160 - 30


@pytest.mark.parametrize("dynamics", ["rigid", "semi_kinematic"])
def test_full_thrust_is_that_of_all_rotors_along_body_z(dynamics: Any) -> None:
    flyer = vehicle("carl")
    simulator = Simulator([flyer] * 2, SimulatorConfig(dynamics=dynamics, level="rate_thrust"))
    found = full_thrust(simulator)
    if dynamics == "rigid":
        assert found == pytest.approx([full_thrust_of(flyer)] * 2, rel=1e-6)
    else:
        assert found == pytest.approx(np.array(simulator.parameter("thrust_limit"), float))
    pilot = expert_for(simulator, expert_reference(_line(), CONFIG))
    np.testing.assert_allclose(pilot._full, found, rtol=1e-6)
    np.testing.assert_allclose(pilot._believed, found, rtol=1e-6)
    np.testing.assert_allclose(pilot._mass, flyer.mass, rtol=1e-6)


def test_a_failed_problem_keeps_the_last_command_and_is_counted_once() -> None:
    """By a solver that says what it was asked and what it found."""
    count = 4
    rng = np.random.default_rng(1)
    inputs, before = rng.uniform(0.2, 1.0, (count, 5, 4)).astype(np.float32), rng.normal(size=(count, 4))
    failed, new = np.array([False, True, False, True]), np.array([True, True, False, False])
    asked: dict[str, Any] = {}

    def solve(state: Any, full: Any, row: Any, last: Any, gravity: Any, flights: Any) -> Any:
        asked.update(state=state, full=full, row=row, last=last, gravity=gravity, flights=flights)
        cut_off = np.array([True, False, True, False])
        return SimpleNamespace(inputs=inputs, failed=failed, cut_off=cut_off, iterations=np.array([3, 4, 5, 6]))

    def nearest(state: Any, time: Any, path: Any, search: Any, expected: Any) -> Any:
        assert expected is None
        asked.update(looked_up=state)
        return np.arange(count)

    pilot = SimpleNamespace(
        reference=SimpleNamespace(nearest=nearest, last=np.array([10, 20])),
        solver=SimpleNamespace(solve=solve, shift=lambda flights: asked.update(shifted=flights)),
        _full=np.full(count, 20.0),
        _mass=np.full(count, 2.0),
        _gravity=9.81,
        _believed=np.full(count, 0.5),
        _path=np.array([0, 1, 1, 0]),
        _search=None,
        _found=None,
        _command=before.copy(),
        failures=np.array([0, 5, 0, 0]),
        cut_off=np.array([7, 0, 0, 0]),
        iterations=np.zeros(count, np.int64),
    )
    state = np.zeros((count, 10))
    state[0, 3], state[1, 4] = np.nan, np.inf
    ExpertPilot._solve(pilot, state, np.zeros(count), new)  # type: ignore[arg-type]
    first = inputs[:, 0].astype(np.float64)
    np.testing.assert_array_equal(pilot._command[0], [0.5 * first[0, 0], *first[0, 1:]])
    np.testing.assert_array_equal(pilot._command[1:], before[1:])
    assert pilot.failures.tolist() == [0, 6, 0, 0]
    assert pilot.cut_off.tolist() == [8, 0, 0, 0]
    assert pilot.iterations.tolist() == [3, 4, 0, 0]
    assert not asked["looked_up"].any()  # a diverged flight still looks a row up
    assert asked["state"] is state
    assert asked["full"].tolist() == [10.0] * count
    assert asked["last"].tolist() == [10, 20, 20, 10]
    assert asked["flights"] is new
    assert asked["shifted"] is new


def test_the_flights_record_says_where_the_expert_was_no_example(tmp_path: Path) -> None:
    import airworthy as aw

    aw.fly(vehicle="carl", pilot="mpc", course="hover", envs=2, out=tmp_path / "run", report=False)
    assert read_flight_meta(tmp_path / "run")["mpc"] == {"failed_ticks": [0, 0], "cut_off_ticks": [0, 0]}
