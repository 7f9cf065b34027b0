"""The planner whole: arrives, never is where nobody looked, finds ways round what it cannot see, waits for its compute."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.planners.known_free_cases import ConeMaps, box_world, clearance, fly, mission_of

from airworthy.benchmarks.navigation.config import Flight, NavigationConfig
from airworthy.benchmarks.navigation.fly_batch import fly_flights
from airworthy.benchmarks.navigation.methods import method_of
from airworthy.core.arrays import Array
from airworthy.core.errors import AirworthyError
from airworthy.planners.common.interface import MapSettings
from airworthy.planners.known_free import KnownFreePlanner, KnownFreeSettings, KnownFreeState, RouteSettings
from airworthy.planners.known_free.candidates import candidates
from airworthy.vehicles import RotorResponse, frame_vehicle, write_vehicle

START, GOAL = np.array([[1.5, 5.0, 1.2]]), np.array([[18.5, 5.0, 1.2]])
SIZE = (20.0, 10.0, 3.0)
OPEN = box_world(SIZE)
PILLAR = box_world(SIZE, (9.5, 10.3, 4.6, 5.4, 0.0, 3.1))


def test_in_the_open_it_is_fast() -> None:
    flown = fly(KnownFreePlanner(), [OPEN], mission_of([OPEN], START, GOAL, ("virt_05",)), 15.0)
    assert flown.arrived.all()
    assert flown.blind == 0
    speed = np.linalg.norm(np.diff(flown.tracks[0], axis=0), axis=1) / 0.01
    assert speed.max() > 3.0
    assert flown.time[0] < 9.0


def test_flies_past_a_pillar_and_keeps_away_from_it() -> None:
    flown = fly(KnownFreePlanner(), [PILLAR], mission_of([PILLAR], START, GOAL, ("real_12",)), 20.0)
    assert flown.arrived.all()
    assert clearance(PILLAR, flown.tracks[0]) > 0.3
    assert flown.blind == 0


def test_a_slit_of_0_8_m_beside_the_line_is_found_and_passed() -> None:
    world = box_world(SIZE, (10.0, 10.2, 0.0, 6.8, 0.0, 3.1), (10.0, 10.2, 7.6, 10.0, 0.0, 3.1))
    flown = fly(KnownFreePlanner(), [world], mission_of([world], START, GOAL, ("virt_05",)), 40.0)
    assert flown.arrived.all()
    assert clearance(world, flown.tracks[0]) > 0.3
    assert flown.blind == 0


@pytest.mark.slow
def test_a_dead_end_is_left_again() -> None:
    """A pocket on the line, open towards the start, deeper than the camera sees."""
    world = box_world(SIZE, (6.0, 14.0, 3.0, 3.2, 0.0, 3.1), (6.0, 14.0, 6.8, 7.0, 0.0, 3.1), (13.8, 14.0, 3.0, 7.0, 0.0, 3.1))
    flown = fly(KnownFreePlanner(), [world], mission_of([world], START, GOAL, ("virt_05",)), 60.0)
    assert flown.arrived.all()
    assert flown.tracks[0][:, 0].max() > 14.0
    assert clearance(world, flown.tracks[0]) > 0.3


def test_a_slab_is_dived_under_with_the_floor_in_mind() -> None:
    world = box_world((20.0, 10.0, 4.0), (9.0, 10.0, 0.0, 10.0, 1.5, 4.1))
    start, goal = START + np.array([0, 0, 1.3]), GOAL + np.array([0, 0, 1.3])
    flown = fly(KnownFreePlanner(), [world], mission_of([world], start, goal, ("real_09",)), 40.0)
    assert flown.arrived.all()
    under = flown.tracks[0][(flown.tracks[0][:, 0] > 9.0) & (flown.tracks[0][:, 0] < 10.0)]
    assert under[:, 2].max() < 1.2
    assert flown.tracks[0][:, 2].min() > 0.4
    assert flown.blind == 0


def test_a_wall_across_the_whole_area_is_flown_over() -> None:
    world = box_world((20.0, 4.0, 5.0), (6.6, 7.0, 0.0, 4.0, 0.0, 2.4))
    start, goal = np.array([[1.5, 2.0, 1.5]]), np.array([[18.5, 2.0, 1.5]])
    flown = fly(KnownFreePlanner(), [world], mission_of([world], start, goal, ("real_12",)), 14.0)
    assert flown.arrived.all()
    assert flown.blind == 0
    assert flown.tracks[0][:, 2].max() > 2.8


@pytest.mark.slow
def test_a_route_that_climbs_from_the_start_on_begins_flat() -> None:
    """Urban 6: flights stood for good half a metre on, since no camera saw the upper edge of a body that climbs."""
    flown = fly_flights([Flight("urban", 6, "real_12")], method_of("known_free"), NavigationConfig())
    assert flown.watch.outcome[0] == "success"


@pytest.mark.slow
def test_slow_rotors_of_a_heavy_hexarotor_are_counted(tmp_path: Path) -> None:
    """Lags of 0.08 and 0.1 s: it rang, and hit the ground in this maze after 19 s."""
    base, lazy = frame_vehicle("hexa_x:0.45", 12.0), RotorResponse.first_order(0.08, 0.1)
    file = tmp_path / "hexarotor.toml"
    write_vehicle(replace(base, rotors=tuple(replace(rotor, response=lazy) for rotor in base.rotors)), file)
    flights = [Flight("maze", 5, str(file)), Flight("narrow_gap", 2, str(file))]
    flown = fly_flights(flights, method_of("known_free"), NavigationConfig())
    assert flown.watch.outcome.tolist() == ["success"] * 2


def test_flights_do_not_depend_on_the_batch() -> None:
    worlds, n = [OPEN, PILLAR], 2
    names = ("virt_05", "real_12")
    both = fly(KnownFreePlanner(), worlds, mission_of(worlds, np.repeat(START, n, 0), np.repeat(GOAL, n, 0), names), 3.0)
    for k in range(n):
        alone = fly(KnownFreePlanner(), [worlds[k]], mission_of([worlds[k]], START, GOAL, (names[k],)), 3.0)
        assert np.array_equal(alone.tracks[0], both.tracks[k][: len(alone.tracks[0])])


def test_a_plan_that_comes_too_late_never_holds() -> None:
    """What is followed then ends at rest, where it was known to be free."""
    planner = KnownFreePlanner()
    flown = fly(planner, [OPEN], mission_of([OPEN], START, GOAL, ("virt_05",)), 4.0, delay=0.2)
    assert planner.late[0] > 5
    np.testing.assert_array_equal(flown.tracks[0][-1], START[0])
    in_time = fly(KnownFreePlanner(), [OPEN], mission_of([OPEN], START, GOAL, ("virt_05",)), 15.0, delay=0.02)
    assert in_time.arrived.all()


def test_a_plan_that_comes_a_hundredth_of_a_second_late_never_holds() -> None:
    """Begun 0.03 s after the odometry, done after 0.045 s."""
    planner = KnownFreePlanner()
    flown = fly(planner, [OPEN], mission_of([OPEN], START, GOAL, ("virt_05",)), 1.0, delay=0.045)
    assert planner.late[0] > 2
    np.testing.assert_array_equal(flown.tracks[0][-1], START[0])


def test_a_plan_is_certified_to_its_last_ball(monkeypatch: pytest.MonkeyPatch) -> None:
    planner = KnownFreePlanner()
    fly(planner, [OPEN], mission_of([OPEN], START, GOAL, ("virt_05",)), 0.5)
    here = planner._state(0, 0.5)
    path = here[0] + np.arange(40)[:, None] * np.array([0.1, 0.0, 0.0])
    offered = candidates(here, path, 39, planner.limits.of(0))
    work = {"polynomials": np.zeros(1), "certificates": np.zeros(1)}
    for short, chosen in ((0, True), (1, False)):
        monkeypatch.setattr(
            planner,
            "_certified",
            lambda _, paths, *a, short=short: (np.array([len(p) - short for p in paths]), np.zeros(len(paths))),
        )
        assert (planner._choose(0, offered, 0.5, 1.0, work) is not None) == chosen


def test_who_rests_where_only_short_steps_fit_takes_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """In slits, with five metres of its route known to be free, nothing shorter than 0.75 m was tried, and nobody went on."""
    planner = KnownFreePlanner()
    planner.reset(mission_of([OPEN], START, GOAL, ("virt_05",)))
    planner._memories.begin(np.array([0]), START)
    here = np.stack([START[0], np.zeros(3), np.zeros(3)])
    path = here[0] + np.arange(60)[:, None] * np.array([0.1, 0.0, 0.0])
    planner._routes.follow(0, path, False)
    work = {"polynomials": np.zeros(1), "certificates": np.zeros(1)}

    def fits(_: int, paths: list[Array], *a: object) -> tuple[Array, Array]:
        return np.array([len(p) if np.ptp(p[:, 0]) < 0.65 else 1 for p in paths]), np.zeros(len(paths))

    monkeypatch.setattr(planner, "_certified", fits)
    assert planner._plan(0, 0.0, here, path, (False, 1.0, 50, 2), work) == 1
    assert planner.stage[0] == KnownFreeState.FLYING
    planner._plans.settle(np.array([0.0]))
    assert 0.1 < planner._plans.state(np.array([0]), np.array([9.0]))[0][0, 0] - START[0, 0] < 0.65


@pytest.mark.parametrize("body", [0.45, 0.74])
def test_large_bodies_leave_their_start(body: float) -> None:
    """A camera that sees 29 degrees up and down shows the edges of a body of 0.74 m from 1.3 m on: it takes so much as free."""
    settings = KnownFreePlanner.for_body(body).config
    assert settings.seen_at_start >= body * (1.0 + 1.0 / np.tan(np.deg2rad(29.0)))
    world = box_world((20.0, 8.0, 5.0))
    start, goal = np.array([[2.5, 4.0, 2.4]]), np.array([[17.0, 4.0, 2.4]])
    flown = fly(KnownFreePlanner.for_body(body), [world], mission_of([world], start, goal, ("virt_05",)), 12.0)
    assert flown.arrived.all()


def test_set_points_ask_for_the_thrust_that_is_needed_when_it_has_turned_there() -> None:
    planner = KnownFreePlanner()
    fly(planner, [OPEN], mission_of([OPEN], START, GOAL, ("real_09",)), 1.0)
    now, delay, one = np.array([1.0]), planner.limits.delay, np.array([0])
    asked, plan = planner.setpoints(now), planner._plans
    position, velocity, acceleration = plan.state(one, now)
    np.testing.assert_array_equal(asked.position, position)
    np.testing.assert_array_equal(asked.velocity, velocity)
    np.testing.assert_array_equal(asked.acceleration, plan.state(one, now + delay)[2])
    assert np.abs(asked.acceleration - acceleration).max() > 0.05


class Closing(ConeMaps):
    """A wall closes the whole area when the flight is so far before it [m]."""

    ahead = 4.5

    def see(self, flight: int, position: Array, yaw: float) -> None:
        if position[0] > 10.0 - self.ahead:
            self.worlds[0][100:102] = True
        super().see(flight, position, yaw)


def test_something_that_comes_into_the_way_is_stopped_for() -> None:
    """At the end it stands before it, and says so."""
    world, planner = OPEN.copy(), KnownFreePlanner()
    flown = fly(planner, [world], mission_of([world], START, GOAL, ("virt_05",)), 12.0, maps=Closing([world]))
    assert not flown.arrived.any()
    assert flown.tracks[0][:, 0].max() < 9.7
    assert planner.searching[0]
    assert planner.stage[0] in (KnownFreeState.BLOCKED, KnownFreeState.SEARCHING)


@pytest.mark.parametrize(("ahead", "most"), [(2.5, 9.7), (2.0, 10.0)])
def test_a_stop_from_top_speed_is_as_hard_as_limits_allow(ahead: float, most: float) -> None:
    """From 3.8 m/s for a wall that comes 2.5 m ahead, 2.2 m before the body, or 2 m, where no stop can be certified.

    Within 2.5 m it may also turn aside; where it had seen space before the wall came, it takes that as free.

    It is seen up to 0.1 s later, the plan begins 0.03 s after that, and 1.5 v / t is 6 m/s^2: 0.45 v t + 0.5 m are 2.1 m. When
    top speed failed every harder stop, it needed 3.6 m.
    """
    world, planner = OPEN.copy(), KnownFreePlanner()
    maps = Closing([world])
    maps.ahead = ahead
    flown = fly(planner, [world], mission_of([world], START, GOAL, ("virt_05",)), 3.3, maps=maps)
    assert 9.0 < flown.tracks[0][:, 0].max() < most
    assert np.abs(np.diff(flown.tracks[0][-5:, 0])).max() < 0.02
    assert planner.emergencies[0] >= (ahead < 2.5)


def test_near_things_it_is_flown_gently() -> None:
    planner = KnownFreePlanner()
    fly(planner, [PILLAR], mission_of([PILLAR], START, GOAL, ("virt_05",)), 2.2)
    points = np.stack(np.meshgrid(np.arange(2.0, 12.0, 0.2), np.arange(0.5, 5.0, 0.2), [1.0], indexing="ij"), -1).reshape(-1, 3)
    near = planner._memories.of(0).nearness(points)
    limits = planner.limits.of(0)
    beside, free = points[near == 2][:1], points[near == 0][:1]
    assert len(beside) == 1
    assert planner._limits_along(0, free).acceleration == limits.acceleration
    assert planner._limits_along(0, np.concatenate([free, beside])).acceleration == 0.85 * limits.acceleration


def test_settings_that_cannot_be_flown_with_are_refused() -> None:
    with pytest.raises(AirworthyError, match="body"):
        KnownFreeSettings(body=0.0)
    with pytest.raises(AirworthyError):
        RouteSettings(near=-1.0)
    with pytest.raises(AirworthyError, match="free and occupied"):
        KnownFreePlanner(KnownFreeSettings(maps=MapSettings()))
    assert KnownFreePlanner.for_body(0.2).config.body == 0.2
    for radius in (float("nan"), 0.0, float("inf")):
        with pytest.raises(AirworthyError, match="radius of the body"):
            KnownFreePlanner.for_body(radius)
    slow = KnownFreePlanner.for_body(0.6, settings=KnownFreeSettings(speed=1.5)).config
    assert (slow.speed, slow.seen_at_start) == (1.5, 2.0 * KnownFreeSettings().seen_at_start)
