"""Flights of the navigation benchmark: the same alone and in any batch, perturbed as asked, contained whatever a pilot does."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from airworthy.benchmarks.navigation.config import Flight, NavigationConfig, Perturbation, blocks_of, flights_of
from airworthy.benchmarks.navigation.flight_records import COLUMNS, same_row
from airworthy.benchmarks.navigation.fly_batch import warm_up
from airworthy.benchmarks.navigation.job import flown_rows, run_benchmark
from airworthy.benchmarks.navigation.methods import check_ready, method_names, method_of
from airworthy.benchmarks.navigation.missions import draws_of, flown_vehicle, layout_scene, mission_of
from airworthy.benchmarks.navigation.planner_adapter import CallCounts, Timed, TooLong, within
from airworthy.benchmarks.navigation.takeoff import TraceHash
from airworthy.core.errors import AirworthyError, AssetError
from airworthy.pilots.flight_loop import PilotFailure
from airworthy.planners.common.interface import enclosing_radius
from airworthy.scenes.generators import SCENARIOS
from airworthy.tasks.navigation import NavigationProtocol
from airworthy.vehicles import vehicle

CONFIG = NavigationConfig(decision_timeout=0.3, warm_up=0.0, protocol=NavigationProtocol(time_limit_s=25.0))
BRIEF = replace(CONFIG, protocol=NavigationProtocol(time_limit_s=4.0))
GAP, MAZE = Flight("narrow_gap", 1, "virt_05"), Flight("maze", 2, "real_09")

OWN = '''
import time
import numpy as np


class Straight:
    """Along the line at a speed; on the way it may do something."""

    level, observes, speed = "velocity_steering", ("position", "velocity"), 3.0

    def reset(self, mission):
        self.mission = mission

    def command(self, observation):
        away = self.mission.goal - observation["position"]
        self.what(observation)
        ahead = np.clip(0.8 * away[:, 0], -self.speed, self.speed)
        return np.stack([ahead, 0.8 * away[:, 1], 0.8 * away[:, 2], 0 * ahead], axis=1)

    def what(self, observation):
        pass


class Late:
    """Something happens at 0.5 s, to the flight in the narrow gap only."""

    def guilty(self, observation):
        return self.mission.upper[0, 2] == 4.0 and observation.time[0] >= 0.5


class Raises(Late, Straight):
    def what(self, observation):
        if self.guilty(observation):
            raise ValueError("lost its way")


class Sleeps(Late, Straight):
    def what(self, observation):
        if self.guilty(observation):
            time.sleep(30.0)


class Loops(Late, Straight):
    def what(self, observation):
        while self.guilty(observation):
            pass


class Compiles(Straight):
    """Its first call in a process takes long."""

    ready = False

    def what(self, observation):
        if not type(self).ready:
            type(self).ready = True
            time.sleep(0.6)


class CompilesToo(Compiles):
    ready = False


class Exits(Late, Straight):
    def what(self, observation):
        if self.guilty(observation):
            raise SystemExit("bye")


class Interrupts(Late, Straight):
    def what(self, observation):
        if self.guilty(observation):
            raise KeyboardInterrupt


class Closes(Late, Straight):
    def what(self, observation):
        if self.guilty(observation):
            raise GeneratorExit


class Huge(Late, Straight):
    def command(self, observation):
        return super().command(observation) * (1e30 if self.guilty(observation) else 1.0)


class Flat(Straight):
    def command(self, observation):
        return super().command(observation)[0]


class WrongShape(Late, Straight):
    def command(self, observation):
        return np.zeros((1, 3)) if self.guilty(observation) else super().command(observation)


class NotANumber(Late, Straight):
    def command(self, observation):
        return super().command(observation) * (np.nan if self.guilty(observation) else 1.0)


class Words(Late, Straight):
    def command(self, observation):
        return "left" if self.guilty(observation) else super().command(observation)


class Reads(Late, Straight):
    def what(self, observation):
        if self.guilty(observation):
            observation["attitude"]


class CannotBegin(Straight):
    def reset(self, mission):
        super().reset(mission)
        if mission.upper[0, 2] == 4.0:
            raise OSError("no weights")


class CannotBeMade(Straight):
    def __init__(self):
        raise RuntimeError("no licence")


class Together(Straight):
    """One object for all flights; it raises for all of them at once."""

    batched = True

    def what(self, observation):
        if (self.mission.upper[:, 2] == 4.0).any() and observation.time.max() >= 0.5:
            raise ValueError("lost its way")


class Nothing:
    pass


class WrongLevel(Straight):
    level = "teleport"


class Spies(Straight):
    observes = ("position", "velocity", "map")


class Plans:
    """A planner along the line."""

    name, settings = "plans", None

    def reset(self, mission):
        self.mission = mission
        self.step = (mission.goal - mission.start) / np.linalg.norm(mission.goal - mission.start, axis=1, keepdims=True)

    def update(self, motion, maps, active):
        self.what(motion)
        return {"work": {"other": np.ones(len(active))}, "replans": active.astype(int), "state": 0}

    def adopt(self, delay):
        pass

    def setpoints(self, time):
        from airworthy.planners.common.interface import Setpoints

        zero = np.zeros_like(self.mission.start)
        position = self.mission.start + np.minimum(2.0 * time, 46.0)[:, None] * self.step
        return Setpoints(position, 2.0 * self.step, zero, zero[:, 0], zero[:, 0])

    def what(self, motion):
        pass


class PlansAndRaises(Late, Plans):
    name = "plans_and_raises"

    def what(self, motion):
        if self.guilty(motion):
            raise ValueError("lost its way")


class PlansAndExits(Late, Plans):
    name = "plans_and_exits"

    def setpoints(self, time):
        if self.mission.upper[0, 2] == 4.0 and time[0] >= 0.5:
            raise SystemExit("bye")
        return super().setpoints(time)


class CannotBePlanned(Plans):
    def __init__(self):
        raise SystemExit("no licence")


class Unready(Straight):
    def check_ready(self):
        raise OSError("no weights")


class OutOfRange(Straight):
    def __init__(self):
        from airworthy.planners.known_free import KnownFreeSettings

        KnownFreeSettings(speed=-2.0)


class PlansAndSleeps(Late, Plans):
    name = "plans_and_sleeps"

    def what(self, motion):
        if self.guilty(motion):
            time.sleep(30.0)


class PlansNowhere(Late, Plans):
    name = "plans_nowhere"

    def setpoints(self, time):
        from dataclasses import replace

        found = super().setpoints(time)
        far = self.mission.upper[0, 2] == 4.0 and time[0] >= 0.5
        return replace(found, position=found.position * (1e9 if far else 1.0))
'''


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("own") / "pilots.py"
    path.write_text(OWN)
    return path


def fly(flights: Sequence[Flight], specifier: str = "straight", config: NavigationConfig = CONFIG) -> list[dict[str, Any]]:
    return flown_rows(flights, method_of(specifier), config)[0]


@pytest.fixture(scope="module")
def alone() -> list[dict[str, Any]]:
    """Straight flight through a gap, and into a maze's wall, each alone."""
    return [fly([flight])[0] for flight in (GAP, MAZE)]


@pytest.fixture(scope="module")
def brief() -> dict[str, Any]:
    """The first four seconds through the gap, unperturbed."""
    return fly([GAP], config=BRIEF)[0]


# ---- what is flown --------------------------------------------------------------------------------------------------


def test_every_flight_of_the_benchmark_has_a_number_of_its_own() -> None:
    from airworthy.benchmarks.navigation.config import FLEET

    flights = flights_of(SCENARIOS, FLEET, range(1, 11), 1)
    assert len(flights) == 2520
    assert len({flight.number for flight in flights}) == 2520
    assert GAP.number == 3141274257  # part of every stored result: it never changes
    blocks = blocks_of(["a", "b"], flights, 144)
    assert [len(block.flights) for block in blocks[:18]] == [144] * 17 + [72]
    assert len({block.name for block in blocks}) == len(blocks) == 36


def test_draws_are_of_the_flight_alone() -> None:
    flights = [GAP, MAZE, Flight("forest", 3, "real_01"), Flight("forest", 3, "real_01", 1)]
    perturb = Perturbation(gain_error=0.2, motor_degradation=0.3)
    whole, single = draws_of(flights, 5, perturb), draws_of([flights[2]], 5, perturb)
    assert np.array_equal(whole.offset[2], single.offset[0])
    assert np.array_equal(whole.thrust[2], single.thrust[0])
    assert not np.array_equal(whole.offset[2], whole.offset[3])  # a repeat draws anew
    assert not np.array_equal(whole.offset[2], draws_of([flights[2]], 6, perturb).offset[0])
    many = draws_of(flights_of(["forest"], ["real_01"], range(1, 11), 100), 0, perturb)
    assert np.abs(many.offset).max() <= 0.1
    assert np.abs(many.yaw).max() <= np.radians(5.0)
    assert (many.gains.min(), many.gains.max()) == pytest.approx((0.8, 1.2), abs=0.01)
    assert (many.thrust.min(), many.thrust.max()) == pytest.approx((0.7, 1.0), abs=0.01)


def test_missions_are_as_stated() -> None:
    flights = [GAP, Flight("sudden_drop", 4, "real_09")]
    draws = draws_of(flights, 0, Perturbation())
    found = mission_of(flights, replace(CONFIG, a_max="vehicle"), draws)
    assert found.start[:, 0] - draws.offset[:, 0] == pytest.approx([-23.0, -23.0])
    assert found.start[:, 2].tolist() == [1.0, 2.5]
    assert found.goal.tolist() == [[23.0, 0.0, 1.0], [23.0, 0.0, 2.5]]
    assert found.upper[:, 2].tolist() == [4.0, 4.0]
    assert found.acceleration.tolist() == [6.0, 6.0]  # TWR 4.6 and 1.4: the cap binds, as the specification says
    slow = replace(CONFIG, a_max="vehicle", protocol=NavigationProtocol(acceleration_m_s2=9.0))
    assert mission_of(flights, slow, draws).acceleration == pytest.approx([9.0, 7.68], abs=0.05)


def test_bodies() -> None:
    assert flown_vehicle("real_18", "sphere").body.size[0] == 0.3
    radius = float(vehicle("real_18").extra["body_radius_m"])
    assert flown_vehicle("real_18", "body").body.size[0] == enclosing_radius(vehicle("real_18")) == radius > 0.3
    assert flown_vehicle("real_18", "body") is flown_vehicle("real_18", "body")
    assert 0.0 < enclosing_radius(vehicle("lmf2")) < 1.0  # not of the benchmark's fleet: from rotors and propellers


# ---- flights --------------------------------------------------------------------------------------------------------


def test_straight_flight_passes_a_gap_on_its_line_and_hits_a_maze(alone: list[dict[str, Any]]) -> None:
    gap, maze = alone
    assert list(gap) == list(COLUMNS)
    assert (gap["outcome"], gap["success"], gap["cause"]) == ("success", 1, "")
    assert gap["goal_distance_m"] < 0.1
    # 46 m with ramps of 4 m/s at 6 m/s^2 take 12.2 s; then come the overshoot's end and 2 s in the goal.
    assert 14.0 < gap["time_s"] < 16.5
    assert 46.0 < gap["path_length_m"] < 48.0
    assert 0.0 < gap["clearance_min_m"] < 0.15  # the gap is at most 0.90 m wide, the body 0.6 m
    assert (maze["outcome"], maze["success"]) == ("collision", 0)
    assert maze["cause"] in ("hit a wall", "hit the ground")
    assert maze["clearance_min_m"] == 0.0
    assert maze["time_s"] < 5.0


def test_flights_do_not_depend_on_their_batch(alone: list[dict[str, Any]]) -> None:
    """Nor on neighbours with twice as many rotors."""
    others = [Flight("maze", 1, "real_01"), Flight("narrow_gap", 2, "base_octarotor"), Flight("forest", 1, "real_18")]
    together = fly([others[0], GAP, others[1], MAZE, others[2]])
    for found, single in ((together[1], alone[0]), (together[3], alone[1])):
        assert same_row(found, single) == []


def test_a_fingerprint_is_of_a_flights_own_rotors() -> None:
    """What stands there for neighbours with more rotors changes nothing; one bit of an own rotor does."""

    def texts(rotors: Any, counts: tuple[int, int]) -> list[str]:
        found, both = TraceHash(counts), np.array([True, True])
        found.update((state,), rotors, both)
        found.update((state + 1.0,), rotors, np.array([True, False]))
        return found.texts()

    state, four = np.arange(26.0).reshape(2, 13), np.arange(8.0).reshape(2, 4)
    # As every table that was recorded with vehicles of four rotors has them.
    assert texts(four, (4, 4)) == ["b2d567c2583cd6c6", "1d8a089b7d211136"]
    wide = np.concatenate([four, [[0.0] * 4, [5.0] * 4]], axis=1)
    assert texts(wide, (4, 4)) == texts(four, (4, 4))
    assert [a == b for a, b in zip(texts(wide, (4, 8)), texts(four, (4, 4)), strict=True)] == [True, False]
    four[0, 3] = np.nextafter(np.float32(3.0), np.float32(4.0))
    assert texts(four, (4, 4))[0] != "b2d567c2583cd6c6"


@pytest.mark.slow
def test_another_body_or_limit_changes_the_flight(alone: list[dict[str, Any]]) -> None:
    wide = fly([replace(GAP, vehicle="real_18")], config=replace(CONFIG, body="body"))[0]
    assert (wide["outcome"], wide["body_radius_m"] > 0.45) == ("collision", True)  # it does not fit
    slow = fly([GAP], config=replace(CONFIG, protocol=NavigationProtocol(speed_m_s=2.0, time_limit_s=30.0)))[0]
    assert slow["outcome"] == "success"
    assert slow["speed_max_m_s"] < 3.2
    assert slow["time_s"] > alone[0]["time_s"] + 8.0


@pytest.mark.parametrize(
    "changes",
    [{"gain_error": 0.4}, {"motor_degradation": 0.3}, {"drift": 0.3}, {"moving_obstacles": 12}],
    ids=lambda changes: next(iter(changes)),
)
def test_perturbations_act_and_repeat(changes: dict[str, Any], brief: dict[str, Any]) -> None:
    config = replace(BRIEF, perturb=Perturbation(**changes))
    found = fly([GAP], config=config)[0]
    assert found["trace"] != brief["trace"] or found["scene_sha256"] != brief["scene_sha256"]
    again = fly([MAZE, GAP], config=config)[1]
    assert same_row(found, again) == []


def test_drift_is_felt_and_judged_by_the_truth(own: Path) -> None:
    drifting = replace(CONFIG, perturb=Perturbation(drift=2.0))
    found = fly([Flight("forest", 1, "virt_05")], f"{own}:Straight", drifting)[0]
    assert found["outcome"] != "success"  # it arrives where it takes the goal to be


def test_dynamic_instances_cross_the_area_and_are_hit() -> None:
    scene = layout_scene("narrow_gap", 1, 0, 12, 1.0)
    assert len(scene.actors) == 12
    for actor in scene.actors:
        stops = np.array([stop.position for stop in actor.path])
        assert np.ptp(stops[:, 0]) == 0.0
        assert np.ptp(stops[:, 1]) > 10.0
        assert np.abs(stops[:, 0]).max() < 25.0 - 6.0
        speed = np.abs(np.diff(stops[:, 1])) / np.diff([stop.time for stop in actor.path])
        assert speed == pytest.approx(1.0, rel=1e-6)
        assert stops[0] == pytest.approx(stops[-1])
    crowd = replace(CONFIG, perturb=Perturbation(moving_obstacles=150, moving_speed=2.0))
    hit = fly([Flight("narrow_gap", 1, name) for name in ("virt_05", "real_01", "virt_01")], config=crowd)
    assert any(row["cause"] == "hit a moving obstacle" for row in hit)


@pytest.mark.slow
def test_a_privileged_planner_knows_the_scene_and_another_controller_flies_otherwise() -> None:
    flight, brief = Flight("maze", 1, "virt_05"), replace(BRIEF, protocol=NavigationProtocol(time_limit_s=1.5))
    first, followed = (fly([flight], "ego", replace(brief, controller=name))[0] for name in ("so3", "dfbc_indi"))
    assert first["trace"] != followed["trace"]
    known = fly([flight], "expert", brief)[0]
    assert known["outcome"] == "timeout_no_path"  # on its way
    assert known["replans"] > 0


def test_a_planner_that_tries_in_vain_is_searching() -> None:
    tries = CallCounts(3)  # it finds at every call; it never does; it has given up long ago
    calls, replans, found = np.zeros(3, np.int64), np.zeros(3, np.int64), []
    for tick in range(400):
        calls = calls + np.array([1, 1, tick < 50])
        replans = replans + np.array([1, 0, 0])
        tries.update(calls, replans)
        found.append(tries.searching.tolist())
    assert found[8] == [False, False, False]
    assert found[9] == [False, True, True]
    assert found[399] == [False, True, False]


# ---- containment ----------------------------------------------------------------------------------------------------

CAUSES = {
    "Raises": "ValueError: lost its way",
    "Sleeps": "TooLong: took more than 0.3 s (pilots.py, line ",
    "Loops": "TooLong: took more than 0.3 s (pilots.py, line ",
    "WrongShape": "its command has shape (1, 3)",
    "NotANumber": "its command is not finite",
    "Words": "not an array of numbers",
    "Reads": "'attitude', which it does not declare",
    "CannotBegin": "OSError: no weights",
    "Exits": "SystemExit: bye (pilots.py, line ",
    "Interrupts": "KeyboardInterrupt (pilots.py, line ",
    "Closes": "GeneratorExit (pilots.py, line ",
    "Together": "ValueError: lost its way",
    "PlansAndExits": "setpoints raised SystemExit: bye",
    "PlansAndRaises": "ValueError: lost its way",
    "PlansAndSleeps": "TooLong: took more than 0.3 s (pilots.py, line ",
    "PlansNowhere": "beyond 100000",
}


@pytest.fixture(scope="module")
def faultless(own: Path) -> dict[str, dict[str, Any]]:
    """What pilots without a fault leave in the maze."""
    return {name: fly([MAZE], f"{own}:{name}")[0] for name in ("Plans", "Straight")}


@pytest.mark.parametrize("name", CAUSES)
def test_what_a_pilot_does_wrong_fails_its_own_flight_with_the_cause(
    name: str, own: Path, faultless: dict[str, dict[str, Any]]
) -> None:
    clean = faultless["Plans" if name.startswith("Plans") else "Straight"]
    guilty, innocent = fly([GAP, MAZE], f"{own}:{name}")
    assert (guilty["outcome"], guilty["success"]) == ("planner_crash", 0)
    assert CAUSES[name] in guilty["cause"]
    assert innocent["outcome"] == clean["outcome"] == "collision"
    assert innocent["trace"] == clean["trace"]


@pytest.mark.parametrize("name", ["CannotBeMade", "CannotBePlanned"])
def test_a_pilot_that_cannot_be_made_fails_everywhere(name: str, own: Path) -> None:
    found = fly([GAP, MAZE], f"{own}:{name}")
    assert [row["outcome"] for row in found] == ["planner_crash"] * 2
    assert "no licence" in found[0]["cause"]


def test_a_hang_names_the_line_that_it_stood_at(own: Path) -> None:
    lines = own.read_text().splitlines()
    number = 1 + next(k for k, line in enumerate(lines) if "time.sleep(30.0)" in line)
    assert f"(pilots.py, line {number})" in fly([GAP], f"{own}:Sleeps")[0]["cause"]


def test_a_command_beyond_all_sense_is_named_whatever_the_flight_ends_in(own: Path) -> None:
    row = fly([GAP], f"{own}:Huge")[0]
    assert row["outcome"] == "collision"
    assert re.fullmatch(r"hit .*; its command held \de\+3\d, beyond what any level takes", row["cause"])


def test_a_command_without_the_axis_of_flights_is_taken_and_flies_the_same(own: Path) -> None:
    one, flat = (fly([GAP], f"{own}:{name}", BRIEF)[0] for name in ("Straight", "Flat"))
    assert flat["trace"] == one["trace"]


def test_what_a_pilot_lacks_is_refused_before_anything_flies(
    own: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRWORTHY_POLICIES", str(tmp_path / "none"))
    monkeypatch.delenv("AIRWORTHY_DATA", raising=False)
    for specifier, why in (
        ("navrl", "There are no NavRL weights"),
        ("navrl_full_3d", "no NavRL weights"),
        (f"{own}:Unready", "no weights"),
        (f"{own}:OutOfRange", "speed"),
    ):
        out = tmp_path / "run"
        with pytest.raises(AirworthyError, match=f"cannot fly: .*{why}"):
            run_benchmark(NavigationConfig(pilots=("straight", specifier), out=out))
        assert not out.exists()
        with pytest.raises(AirworthyError, match=why):
            fly([GAP], specifier)
    for specifier in method_names():  # every other built-in pilot has all that it needs
        if not specifier.startswith("navrl"):
            check_ready(method_of(specifier))


@pytest.mark.parametrize(
    ("specifier", "why"),
    [
        ("{own}:Nothing", "neither command"),
        ("{own}:Nobody", "has no class 'Nobody'"),
        ("{own}:WrongLevel", "level"),
        ("{own}:Spies", "observes 'map'"),
        ("nowhere.py:Pilot", "There is no file"),
        ("egoo", "Closest: 'ego'"),
    ],
)
def test_what_can_never_fly_is_refused_with_a_sentence(specifier: str, why: str, own: Path) -> None:
    with pytest.raises(AirworthyError, match=why):
        fly([MAZE], specifier.format(own=own))


def test_a_file_that_does_not_import_is_an_error_in_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "broken.py"
    path.write_text("import nothing_of_this_name\n")
    with pytest.raises(AirworthyError, match="cannot be imported: ModuleNotFoundError"):
        method_of(f"{path}:Pilot")
    with pytest.raises(AssetError):
        method_of(f"{tmp_path}/none.py:Pilot")


def test_what_compiles_in_the_first_call_has_time_for_it(own: Path) -> None:
    unwarmed = fly([MAZE], f"{own}:CompilesToo")[0]
    assert (unwarmed["outcome"], unwarmed["cause"].partition(" (")[0]) == ("planner_crash", "TooLong: took more than 0.3 s")
    warmed = fly([MAZE], f"{own}:Compiles", replace(CONFIG, warm_up=20.0))[0]
    assert warmed["outcome"] == "collision"
    assert warmed["trace"] == fly([MAZE], f"{own}:Straight")[0]["trace"]  # the flight before leaves nothing behind


def test_who_warms_up_and_how_often(own: Path) -> None:
    flown: list[tuple[int, float, float]] = []

    def fly_nothing(flights: Sequence[Flight], who: Any, config: NavigationConfig) -> None:
        flown.append((len(flights), config.decision_timeout, config.protocol.time_limit_s))
        raise PilotFailure("fails here, too")

    config, flights = NavigationConfig(), [GAP, MAZE]
    alone, together = (method_of(f"{own}:{name}") for name in ("Straight", "Together"))
    assert warm_up(fly_nothing, flights, alone, config)
    assert not warm_up(fly_nothing, flights[1:], alone, config)  # one object per flight: nothing is new
    assert warm_up(fly_nothing, flights, together, config)
    assert warm_up(fly_nothing, flights[1:], together, config)  # another number of flights may compile again
    assert not warm_up(fly_nothing, flights, replace(together, name="other"), replace(config, warm_up=0.0))
    ours, measured = method_of("straight"), replace(config, compute="measured")
    assert not warm_up(fly_nothing, flights, ours, config)
    assert not warm_up(fly_nothing, flights, ours, measured, stored={})
    assert warm_up(fly_nothing, flights, ours, measured)
    assert flown == [(1, 120.0, 2.0), (2, 120.0, 2.0), (1, 120.0, 2.0), (2, 120.0, 2.0)]


def test_the_decision_timeout_interrupts_loops_and_lets_quick_calls_through() -> None:
    class Slow:
        name = "slow"

        def command(self, seconds: float) -> float:
            import time

            time.sleep(seconds)
            return seconds

    timed = Timed(Slow(), 0.1)
    assert timed.name == "slow"
    assert timed.command(0.0) == 0.0
    with pytest.raises(TooLong, match=r"more than 0\.1 s"):
        timed.command(20.0)


def test_who_swallows_the_first_interruption_is_told_again() -> None:
    def stubborn() -> None:
        try:
            while True:
                pass
        except TooLong:
            while True:
                pass

    with pytest.raises(TooLong), within(0.05):
        stubborn()


def test_the_decision_timeout_outside_of_the_main_thread_looks_afterwards() -> None:
    from concurrent.futures import ThreadPoolExecutor

    def slow() -> str:
        import time

        try:
            with within(0.02):
                time.sleep(0.06)
        except TooLong as error:
            return str(error)
        return ""

    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(slow).result() == "took more than 0.02 s"
