"""NavRL flown: frames, rays, the deployment loop, and a pillar on the way."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from benchmarks.navrl_traits import manoeuvres
from tests.planners.test_navrl_network import random_network

from airworthy.core.arrays import Array, ArrayF32
from airworthy.core.errors import AirworthyError
from airworthy.pilots.pilot import observe
from airworthy.planners.common.interface import Mission, Motion
from airworthy.planners.common.reference import VelocityReference
from airworthy.planners.common.tracking import PlannerPilot
from airworthy.planners.mapping import maps_of_cells
from airworthy.planners.navrl import MAP_SETTINGS, NavRL, NavRLSettings, load_network
from airworthy.planners.navrl.planner import MovingObstacles, goal_frames, moving_rows, ray_directions, scan_ranges, state_rows
from airworthy.simulation import Simulator, SimulatorConfig
from airworthy.vehicles import vehicle


def mission(count: int = 1) -> Mission:
    rows = [np.tile(row, (count, 1)) for row in ([-6.0, 0.0, 1.0], [6.0, 0.0, 1.0], [-12.0, -8.0, 0.0], [12.0, 8.0, 3.0])]
    return Mission(rows[0], rows[1], np.full(count, 4.0), np.full(count, 6.0), rows[2], rows[3], np.arange(count), 2)


def maps_with(pillars: list[tuple[float, float]], count: int = 1, radius: float = 0.4):  # type: ignore[no-untyped-def]
    """Maps that know upright pillars."""
    middle = [np.arange(n) * 0.1 + 0.05 for n in (240, 160)]
    x, y = np.meshgrid(middle[0] - 12.0, middle[1] - 8.0, indexing="ij")
    flat = np.zeros(x.shape, bool)
    for px, py in pillars:
        flat |= np.hypot(x - px, y - py) < radius
    settings = replace(MAP_SETTINGS, inflation=0.0, ground=0.0)
    return maps_of_cells([np.repeat(flat[:, :, None], 31, axis=2)] * count, mission(count), settings)


def motion_at(position: list[float], yaw: float = 0.0, time: float = 0.0) -> Motion:
    attitude = np.array([[0.0, 0.0, np.sin(yaw / 2), np.cos(yaw / 2)]])
    return Motion(np.array([time]), np.array([position]), np.zeros((1, 3)), attitude)


def decided(planner: NavRL, maps, position: list[float], ticks: int = 12, yaw: float = 0.0):  # type: ignore[no-untyped-def]
    """Velocity wanted and state after some ticks at one place."""
    planner.reset(mission())
    for k in range(ticks):
        report = planner.update(motion_at(position, yaw, 0.05 * k), maps, np.ones(1, bool))
    return planner.setpoints(np.array([0.05 * ticks + 5.0])).velocity[0], int(report["state"][0]), report


# ---- what it sees ---------------------------------------------------------------------------------------------------------


def test_goal_frame_turns_what_is_seen() -> None:
    frames = goal_frames(np.array([[1.0, 1.0, 0.0]]), np.array([[1.0, 5.0, 2.0]]))
    assert np.allclose(frames[0] @ [0.0, 1.0, 0.0], [1.0, 0.0, 0.0])
    assert np.allclose(frames[0] @ [-1.0, 0.0, 0.0], [0.0, 1.0, 0.0])
    row = state_rows(frames, np.array([[1.0, 2.0, 0.0]]), np.array([[-0.5, 1.0, 0.2]]), np.array([[1.0, 5.0, 4.0]]))[0]
    assert np.allclose(row, [0.6, 0.0, 0.8, 3.0, 4.0, 1.0, 0.5, 0.2])
    rays = ray_directions(frames)[0]
    assert np.allclose(np.linalg.norm(rays, axis=-1), 1.0)
    assert np.allclose(rays[0, 1], [0.0, 1.0, 0.0])  # first ray: to the goal
    assert np.allclose(rays[9, 1], [-1.0, 0.0, 0.0])  # counter-clockwise
    assert np.allclose(rays[0, 3], [0.0, np.cos(np.radians(20)), np.sin(np.radians(20))])


def test_rays_stop_where_the_map_is_occupied() -> None:
    directions = ray_directions(goal_frames(mission().start, mission().goal))
    ranges = scan_ranges(
        maps_with([(2.0, 0.0)]), np.zeros(1, np.int64), np.array([[0.0, 0.0, 1.0]]), directions, np.array([2.8])
    )
    # A pillar of 0.4 m at 2 m: its surface at 1.6 m, found within a cell and a step.
    assert abs(ranges[0, 0, 1] - 1.6) <= 0.2
    assert abs(ranges[0, 0, 0] - 1.6 / np.cos(np.radians(10))) <= 0.2
    assert (ranges[0, 3:34] == 4.0).all()  # at 10 degrees it ends: atan(0.4 / 1.96) = 11.5 degrees


def test_nearest_moving_obstacles_in_order() -> None:
    frames = goal_frames(np.zeros((1, 3)), np.array([[1.0, 0.0, 0.0]]))
    position = np.array([[[3.0, 0.0, 0.5], [0.0, 1.0, 0.0], [9.0, 0.0, 0.0], [np.nan] * 3]])
    size = np.array([[[0.5, 0.5, 1.0], [1.0, 1.0, 5.0], [1.0] * 3, [1.0] * 3]])
    rows = moving_rows(frames, np.zeros((1, 3)), MovingObstacles(position, np.ones((1, 4, 3)), size))[0]
    assert np.allclose(rows[0], [0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 1.0, 1.0, 3.0, 0.0])  # tall: height class 0, width clipped to 3
    assert np.allclose(rows[1, 3:], [3.0, 0.5, 1.0, 1.0, 1.0, 3.0, 1.0])
    assert not rows[2:].any()  # beyond 4 m, or none
    assert not moving_rows(frames, np.zeros((1, 3)), None).any()


# ---- the loop -------------------------------------------------------------------------------------------------------------


def test_it_turns_first_then_flies_straight_where_nothing_is_ahead() -> None:
    free, planner = maps_with([]), NavRL(network=random_network())
    velocity, state, report = decided(planner, free, [-2.0, 0.0, 1.0], ticks=9)
    assert (state, velocity.tolist()) == (0, [0.0, 0.0, 0.0])
    velocity, state, report = decided(planner, free, [-2.0, 0.0, 1.0], ticks=11)
    assert state == 1
    assert np.allclose(velocity, [2.0, 0.0, 0.0])
    assert report["work"]["inferences"][0] == 0.0
    assert decided(planner, free, [-2.0, 0.0, 1.0], ticks=30, yaw=0.2)[1] == 0


def test_it_asks_the_policy_where_something_is_ahead_and_slows_near_the_goal() -> None:
    planner = NavRL(NavRLSettings(shield=False), random_network())
    _, state, report = decided(planner, maps_with([(0.0, 0.0)]), [-2.0, 0.0, 1.0])
    assert state == 2
    assert report["work"]["inferences"][0] == 1.0
    velocity, state, _ = decided(planner, maps_with([]), [3.5, 0.0, 1.0])
    assert state == 4
    assert np.linalg.norm(velocity) == pytest.approx(0.5)
    velocity, state, _ = decided(planner, maps_with([]), [5.9, 0.0, 1.0])
    assert (state, velocity.tolist()) == (5, [0.0, 0.0, 0.0])


def test_wrappers_differ_in_height_only() -> None:
    maps = maps_with([(0.0, 0.0)])
    flat, _, _ = decided(NavRL(NavRLSettings(shield=False), random_network()), maps, [-2.0, 0.0, 1.0])
    full, _, _ = decided(NavRL(NavRLSettings("full_3d", shield=False), random_network()), maps, [-2.0, 0.0, 1.0])
    assert flat[2] == 0.0
    assert full[2] != 0.0
    assert np.allclose(flat[:2], full[:2])
    assert NavRL().name == "navrl"
    assert NavRL(NavRLSettings("full_3d")).name == "navrl_full_3d"
    with pytest.raises(AirworthyError, match=r"Unknown NavRLSettings\.wrapper 'half'"):
        NavRLSettings("half")  # type: ignore[arg-type]


def test_velocities_become_setpoints_within_the_acceleration() -> None:
    reference = VelocityReference(np.zeros((2, 3)), np.array([2.0, 4.0]), np.array([np.nan, 1.5]))
    ids = np.arange(2)
    reference.decide(ids, np.zeros(2), np.zeros((2, 3)), np.tile([2.0, 0.0, 1.0], (2, 1)))
    times = np.linspace(0.0, 3.0, 3001)
    rows = [reference.at(np.full(2, t)) for t in times]
    position, velocity = (np.array([r[k] for r in rows]) for k in range(2))
    assert np.allclose(velocity[-1], [[2.0, 0.0, 1.0], [2.0, 0.0, 0.0]])
    assert np.allclose(position[:, 1, 2], 1.5)
    assert np.linalg.norm(velocity[500, 0]) == pytest.approx(0.5 * 2.0)  # half a second at 2 m/s^2
    # Trapezoids of 1 ms: an error of a step times the largest change of acceleration.
    assert np.abs(np.diff(position[:, 0], axis=0) / 1e-3 - 0.5 * (velocity[1:, 0] + velocity[:-1, 0])).max() < 2e-3
    reference.decide(ids, np.full(2, 3.0), np.ones((2, 3)), np.zeros((2, 3)))
    reference.adopt(np.array([0.0, 0.5]))
    early, late = reference.at(np.full(2, 3.4)), reference.at(np.full(2, 3.6))
    assert early[0][0, 0] < 2.0 < early[0][1, 0]  # the second still follows its first decision
    assert late[0][1, 0] < 3.0


# ---- flown ----------------------------------------------------------------------------------------------------------------


def test_it_goes_around_a_pillar_and_arrives(data_dir: Path) -> None:
    """The published policy, whole chain, a pillar of 0.4 m beside the line; clearance 0.3 m as the vehicle's body."""
    network = load_network(data_dir / "policies" / "navrl" / "navrl_weights.npz")
    pilot = PlannerPilot(NavRL(network=network), mission(2), vehicle("virt_05"), maps_with([(0.0, 0.4)], 2))
    simulator = Simulator(vehicle("virt_05"), pilot.configured(SimulatorConfig(physics_rate=480.0)), env_count=2)
    simulator.reset(position=pilot.mission.start)
    pilot.attach(simulator)
    path: list[ArrayF32] = []
    for _ in range(2200):
        simulator.step(pilot.command(observe(simulator, pilot.observes)))
        path.append(np.array(simulator.position))
    flown = np.array(path)
    assert np.array_equal(flown[:, 0], flown[:, 1])
    assert (np.hypot(flown[:, 0, 0], flown[:, 0, 1] - 0.4) - 0.4).min() > 0.3
    assert np.abs(flown[:, 0, 2] - 1.0).max() < 0.4
    assert np.linalg.norm(flown[-1, 0] - mission().goal[0]) < 0.5
    assert pilot.causes == ["", ""]


# ---- its traits as figures --------------------------------------------------------------------------------------------------


def test_avoidance_is_told_from_the_way_back() -> None:
    """Off the direction to the goal by more than 30 degrees for 0.4 s and more; what leads back to the goal is none."""
    goal = np.array([40.0, 0.0, 1.0])

    def path(*legs: tuple[float, float]) -> tuple[Array, Array]:
        """Legs of a heading [degrees] and a time [s], at 1 m/s and 100 Hz."""
        turn = np.radians(np.concatenate([np.full(round(100 * seconds), heading) for heading, seconds in legs]))
        velocity = np.stack([np.cos(turn), np.sin(turn), 0.0 * turn], axis=1)
        return np.cumsum(velocity, axis=0) / 100.0, velocity

    assert manoeuvres(*path((0.0, 2.0), (-50.0, 1.0), (0.0, 2.0)), goal) == ("right",)
    assert manoeuvres(*path((-45.0, 1.0), (20.0, 3.0), (60.0, 0.3), (0.0, 1.0), (45.0, 0.5)), goal) == ("right", "left")
    assert manoeuvres(*path((25.0, 3.0), (-25.0, 3.0)), goal) == ()
    still, velocity = path((90.0, 2.0))
    assert manoeuvres(still, 0.2 * velocity, goal) == ()  # hardly moves
