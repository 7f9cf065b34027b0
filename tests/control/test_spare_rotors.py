"""Rotors to spare: every order of allocation against lexicographic linear programs over all thrusts, and what bounds them."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse
from tests.control.test_priority_gap import multirotor, saturated

from airworthy.control import PRIORITIES, allocate_bounded, allocation_for
from airworthy.control.allocation import Priority
from airworthy.control.effectors import working_effectiveness
from airworthy.control.spare_rotors import Spare, bounds_per_element, settle, spare_for, spare_shapes
from airworthy.simulation import Simulator, SimulatorConfig
from airworthy.vehicles import Vehicle, thrust_limits, vehicle

AIRFRAMES: dict[str, tuple[Vehicle, int]] = {
    "base_octarotor": (vehicle("base_octarotor"), 120),
    "base_random": (vehicle("base_random"), 120),
    "octorotor": (multirotor(8), 40),
    "octorotor, tilted": (multirotor(8, 0.3), 30),
    "seven rotors": (multirotor(7), 30),
}
"""Airframe and its saturated wrenches in each order: 1,020 in all."""


SOLVER = 1e-10
"""Feasibility tolerance of the linear programs."""


def lexicographic(body: Vehicle, wrenches: np.ndarray, priority: str) -> np.ndarray:
    """Shares of attitude, force and yaw that a linear program per group gives over all thrusts, (3, count).

    Of an airframe with a collective the force's share is its distance along body z, over full thrust, taken off 1. Where some
    thrusts give the whole wrench, all are 1.
    """
    # Programs of a few wrenches are solved as one, being independent; those of hundreds take more than their sum.
    return np.hstack([_lexicographic(body, wrenches[:, k : k + 20], priority) for k in range(0, wrenches.shape[1], 20)])


def _lexicographic(body: Vehicle, wrenches: np.ndarray, priority: str) -> np.ndarray:
    matrix, (lower, upper) = working_effectiveness(body), thrust_limits(body)
    n, count, movable = len(lower), wrenches.shape[1], any(allocation_for(body).collective)
    kept = [k for k in range(6) if np.abs(matrix[k]).max() > 1e-9]
    attitude, yaw, sideways, force, distance, all_of_it = range(n, n + 6)
    blocks = []
    for w in wrenches.T:
        rows = np.zeros((6, n + 6))
        rows[:, :n] = matrix
        rows[3:5, attitude], rows[5, yaw] = -w[3:5], -w[5]
        rows[:2, sideways] = -w[:2] if movable else 0.0
        rows[:3, force] = (0.0, 0.0, -upper.sum()) if movable else -w[:3]
        rows[:, all_of_it] = -w
        blocks.append(rows[kept] / np.abs(matrix[kept]).max(axis=1, keepdims=True))
    equal = scipy.sparse.block_diag(blocks, format="csr")
    far = np.zeros((2, n + 6))
    far[:, force], far[:, distance] = (1.0, -1.0), -1.0
    far = scipy.sparse.block_diag([far] * count, format="csr")
    room = np.ravel(np.outer(wrenches[2] / upper.sum(), [1.0, -1.0])) if movable else np.full(2 * count, 10.0)
    bounds = np.zeros((count, n + 6, 2))
    bounds[:, :n, 0], bounds[:, :n, 1], bounds[:, distance, 1] = lower, upper, 10.0
    collective = np.array([-10.0, 10.0] if movable else [0.0, 0.0 if priority.startswith("force") else 1.0])

    def largest(variable: int, most: float = 1.0) -> np.ndarray:
        cost = np.zeros((count, n + 6))
        cost[:, variable] = 1.0 if variable == distance else -1.0
        bounds[:, variable, 1] = most
        precise = {"primal_feasibility_tolerance": SOLVER, "dual_feasibility_tolerance": SOLVER}
        every = bounds.reshape(-1, 2)
        found = scipy.optimize.linprog(cost.ravel(), far, room, equal, np.zeros(equal.shape[0]), every, options=precise)
        assert found.status == 0, found.message
        return np.asarray(found.x.reshape(count, n + 6))

    complete = np.zeros(count, bool)
    for k in range(count):  # alone: a program that has no solution would spoil those of the others
        rows, w = blocks[k][:, :n], -blocks[k][:, all_of_it]
        found = scipy.optimize.linprog(np.zeros(n), A_eq=rows, b_eq=w, bounds=np.stack([lower, upper], axis=1))
        complete[k] = found.status == 0
    bounds[:, force] = collective
    shares = np.ones((3, count))
    for group in priority.split("-"):
        place = ("attitude", "force", "yaw").index(group)
        for variable in {"attitude": [attitude], "yaw": [yaw], "force": [distance, sideways] if movable else [force]}[group]:
            x = largest(variable, 10.0 if variable == distance else 1.0)
            # What a group got is kept, up to the solver's own tolerance.
            held = force if variable == distance else variable
            bounds[:, held] = x[:, held, None] + SOLVER * np.array([-1.0, 1.0])
            if variable != sideways:
                shares[place] = 1.0 - x[:, distance] if variable == distance else x[:, variable]
    return np.where(complete, 1.0, shares)


def shares_of(body: Vehicle, wrenches: np.ndarray, given: np.ndarray) -> np.ndarray:
    """The same of the wrenches that are given."""
    rows = [slice(3, 5), slice(0, 3), slice(5, 6)]
    found = [(given[r] * wrenches[r]).sum(axis=0) / (wrenches[r] ** 2).sum(axis=0) for r in rows]
    if any(allocation_for(body).collective):
        found[1] = 1.0 - np.abs(given[2] - wrenches[2]) / thrust_limits(body)[1].sum()
    return np.stack(found)


@pytest.mark.parametrize("priority", PRIORITIES)
@pytest.mark.parametrize("name", AIRFRAMES)
def test_every_group_in_its_turn_gets_what_linear_programs_over_all_thrusts_give(name: str, priority: Priority) -> None:
    body, count = AIRFRAMES[name]
    wrenches, matrix = saturated(body, count), working_effectiveness(body)
    lower, upper = thrust_limits(body)
    thrusts = np.array(allocate_bounded(tuple(wrenches), allocation_for(body), priority))
    assert np.all((thrusts >= lower[:, None]) & (thrusts <= upper[:, None]))
    given = matrix @ thrusts
    ours, theirs = shares_of(body, wrenches, given), lexicographic(body, wrenches, priority)
    # A group that can hardly be given magnifies the programs' slack in what those before it keep.
    assert np.abs(ours - theirs).max() < 1e-5


def test_thrusts_leave_no_jump_where_the_pseudo_inverse_leaves_the_limits() -> None:
    """Attitude alone, asked for ever more, on the octorotor: no rotor jumps, the moment grows to its most and stays."""
    body = multirotor(8)
    a, matrix, hover = allocation_for(body), working_effectiveness(body), body.mass * body.gravity
    steps = np.linspace(0.0, 12.0, 2401)
    zero = np.zeros_like(steps)
    thrusts = np.array(allocate_bounded((zero, zero, zero + hover, steps, 0.3 * steps, zero), a))
    assert np.abs(np.diff(thrusts, axis=1)).max() < 20.0 * np.abs(np.array(a.inverse)[:, 3:5]).max() * (steps[1] - steps[0])
    moment = matrix[3] @ thrusts
    assert np.all(np.diff(moment) > -1e-9)
    assert moment[-1] == pytest.approx(moment[-400], abs=1e-9)


def test_airframes_without_spare_rotors_have_nothing_to_know() -> None:
    assert spare_shapes(6) == spare_shapes(9) == {}
    assert bounds_per_element(6) == bounds_per_element(9) == ()
    for name in ("x500", "real_01"):
        assert allocation_for(vehicle(name)).spare == Spare()
    idle = spare_for(np.zeros((8, 6)), *np.zeros((3, 8)))
    assert {name: np.shape(getattr(idle, name)) for name in spare_shapes(8)} == spare_shapes(8)
    assert not np.any(idle.inverse)


@pytest.mark.parametrize("count", [4, 6])
def test_fewer_rotors_in_a_kernel_for_eight_get_what_they_get_alone(count: int) -> None:
    body = multirotor(count)
    wrenches = tuple(saturated(body, 200))
    for priority in PRIORITIES:
        alone = np.array(allocate_bounded(wrenches, allocation_for(body), priority))
        padded = np.array(allocate_bounded(wrenches, allocation_for(body, 8), priority))
        assert np.allclose(padded[:count], alone, rtol=0.0, atol=1e-9)
        assert not padded[count:].any()


@pytest.mark.parametrize("name", AIRFRAMES)
def test_what_settles_gives_the_same_wrench_within_limits(name: str) -> None:
    """Of thrusts within limits, shifted by thrusts that give no wrench; those within limits already stay."""
    body = AIRFRAMES[name][0]
    a, matrix, (lower, upper) = allocation_for(body), working_effectiveness(body), thrust_limits(body)
    rng = np.random.default_rng(4)
    inside = lower[:, None] + (upper - lower)[:, None] * rng.choice([0.0, 0.2, 0.7, 1.0], size=(len(lower), 300))
    assert np.abs(np.array(settle(tuple(inside), a.spare)) - inside).max() < 1e-9
    turn = np.array(a.spare.turn)
    assert np.abs(matrix @ turn.T).max() < 1e-9
    moved = inside + turn.T @ rng.normal(size=(len(turn), 300)) * upper.max()
    settled = np.array(settle(tuple(moved), a.spare))
    assert np.abs(matrix @ (settled - inside)).max() < 1e-8
    assert np.all((settled > lower[:, None] - 1e-8) & (settled < upper[:, None] + 1e-8))


@pytest.mark.parametrize("name", AIRFRAMES)
def test_combinations_bound_exactly_what_is_within_reach(name: str) -> None:
    """Each is one value for all thrusts of a wrench, and thrusts at limits reach both its ends."""
    body = AIRFRAMES[name][0]
    a, matrix, (lower, upper) = allocation_for(body), working_effectiveness(body), thrust_limits(body)
    rows = np.array(a.spare.inverse) @ matrix  # combinations (k, n) of thrusts
    assert np.abs(rows @ np.array(a.spare.turn).T).max() < 1e-9
    assert np.minimum(rows * lower, rows * upper).sum(axis=1) == pytest.approx(np.array(a.spare.least), abs=1e-9)
    assert np.maximum(rows * lower, rows * upper).sum(axis=1) == pytest.approx(np.array(a.spare.most), abs=1e-9)
    assert np.array(a.spare.collective) == pytest.approx(np.array(a.spare.inverse)[:, 2] * any(a.collective), abs=1e-9)
    real = np.abs(rows).max(axis=1) > 0.5
    assert np.abs(rows[real]).max(axis=1) == pytest.approx(1.0)
    assert not rows[~real].any()


def test_bounds_follow_the_parameters_that_they_come_from() -> None:
    body = vehicle("base_octarotor")
    simulator = Simulator([body, body], SimulatorConfig(level="wrench"))
    most = simulator.parameter("control_thrust_max_rotor").copy()
    before = simulator.parameter("control_spare_most").copy()
    most[1, 2] *= 0.5
    simulator.set_parameter("control_thrust_max_rotor", most)
    a = allocation_for(body)
    weaker = spare_for(np.array(a.inverse), np.array(a.collective), np.array(a.thrust_min), most[1])
    assert np.array_equal(simulator.parameter("control_spare_most")[0], before[0])
    assert simulator.parameter("control_spare_most")[1] == pytest.approx(np.array(weaker.most), rel=1e-6)
    assert np.any(np.abs(np.array(weaker.most) - before[1]) > 0.1)
