"""Rotors to spare: every order of allocation against lexicographic linear programs over all thrusts, and how it gets there."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse
from tests.control.test_priority_gap import multirotor, saturated

from airworthy.control import PRIORITIES, allocate_bounded, allocation_for, spare_simplex
from airworthy.control.allocation import Priority
from airworthy.control.effectors import working_effectiveness
from airworthy.control.levels import ControlConfig
from airworthy.control.spare_rotors import Spare, spare_for, spare_shapes
from airworthy.simulation import Simulator, SimulatorConfig
from airworthy.vehicles import Vehicle, thrust_limits, vehicle


def irregular(count: int, tilt: float, seed: int) -> Vehicle:
    """Rotors of `multirotor` moved outwards or inwards and aside, at random; those that are tilted also up and down."""
    rng, body = np.random.default_rng(seed), multirotor(count, tilt)
    rotors = []
    for rotor in body.rotors:
        x, y, z = np.array(rotor.position) * rng.uniform(0.6, 1.4) + rng.normal(size=3) * [0.02, 0.02, 0.01 * (tilt > 0.0)]
        rotors.append(replace(rotor, position=(float(x), float(y), float(z))))
    return replace(body, rotors=tuple(rotors))


AIRFRAMES: dict[str, tuple[Vehicle, int]] = {
    "base_octarotor": (vehicle("base_octarotor"), 120),
    "base_random": (vehicle("base_random"), 120),
    "octorotor": (multirotor(8), 40),
    "octorotor, tilted": (multirotor(8, 0.3), 30),
    "five rotors, irregular": (irregular(5, 0.0, 5), 30),
    "hexarotor": (multirotor(6), 30),
    "hexarotor, irregular": (irregular(6, 0.0, 4), 30),
    "seven rotors": (multirotor(7), 30),
    "nine rotors, tilted and irregular": (irregular(9, 0.2, 3), 30),
    "12 rotors": (multirotor(12), 60),
    "12 rotors, tilted": (multirotor(12, 0.3), 60),
    "12 rotors, irregular": (irregular(12, 0.0, 1), 60),
    "16 rotors": (multirotor(16), 60),
    "16 rotors, irregular": (irregular(16, 0.0, 2), 60),
    "16 rotors, tilted and irregular": (irregular(16, 0.3, 3), 60),
}
"""Airframe and its saturated wrenches in each order: 2,460 in all, 1,080 of them of six airframes with 12 and 16 rotors."""


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
    kept = np.flatnonzero(np.any(np.array(allocation_for(body).inverse) != 0.0, axis=0))
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
        program = (cost.ravel(), far, room, equal, np.zeros(equal.shape[0]), every)
        found = scipy.optimize.linprog(*program, options=precise)
        if found.status == 2:  # its presolve may take bounds a tolerance apart for a contradiction
            found = scipy.optimize.linprog(*program, options={**precise, "presolve": False})
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


@pytest.mark.parametrize("count", [8, 12, 16])
def test_thrusts_leave_no_jump_where_the_pseudo_inverse_leaves_the_limits(count: int) -> None:
    """Attitude alone, asked for ever more: rotors move steadily, so half the step moves them half as far; the moment grows to
    its most and stays."""
    body = multirotor(count)
    a, matrix, hover = allocation_for(body), working_effectiveness(body), body.mass * body.gravity
    moved = []
    for steps in (1200, 2400):
        asked = np.linspace(0.0, 1.5 * count, steps + 1)
        zero = np.zeros_like(asked)
        thrusts = np.array(allocate_bounded((zero, zero, zero + hover, asked, 0.3 * asked, zero), a))
        moved.append(np.abs(np.diff(thrusts, axis=1)).max())
        moment = matrix[3] @ thrusts
        assert np.all(np.diff(moment) > -1e-9)
        assert moment[-1] == pytest.approx(moment[-steps // 6], abs=1e-9)
    assert moved[1] < 0.6 * moved[0]


def test_airframes_without_spare_rotors_have_nothing_to_know() -> None:
    assert spare_shapes(4) == {}
    for name in ("x500", "real_01"):
        assert allocation_for(vehicle(name)).spare == Spare()
    # As many rotors as wrenches have dimensions give a wrench in one way alone.
    assert allocation_for(multirotor(6, 0.3)).spare.scale == 0.0
    idle = spare_for(np.zeros((8, 6)), *np.zeros((2, 8)))
    assert {name: np.shape(getattr(idle, name)) for name in spare_shapes(8)} == spare_shapes(8)
    assert idle.scale == 0.0
    assert not np.any(idle.span)


@pytest.mark.parametrize(("count", "width"), [(4, 8), (6, 8), (6, 16), (7, 8), (8, 12), (8, 16), (12, 16)])
def test_fewer_rotors_in_a_kernel_for_more_get_the_bits_that_they_get_alone(count: int, width: int) -> None:
    body = multirotor(count)
    wrenches = tuple(saturated(body, 200))
    for priority in PRIORITIES:
        alone = np.array(allocate_bounded(wrenches, allocation_for(body), priority))
        padded = np.array(allocate_bounded(wrenches, allocation_for(body, width), priority))
        assert np.array_equal(padded[:count], alone)
        assert not padded[count:].any()


@pytest.mark.parametrize("name", AIRFRAMES)
def test_the_span_tells_wrenches_apart_and_its_basis_is_inverted(name: str) -> None:
    """V is orthonormal, thrusts of equal V^T u give equal wrenches, and the basis is of independent rotors."""
    body = AIRFRAMES[name][0]
    matrix, spare = working_effectiveness(body), allocation_for(body).spare
    rank = int(np.linalg.matrix_rank(matrix / np.maximum(np.abs(matrix).max(axis=1, keepdims=True), 1e-9), tol=1e-6))
    span, basis = np.array(spare.span), np.array(spare.basis, int)
    assert span.T @ span == pytest.approx(np.diag([1.0] * rank + [0.0] * (6 - rank)), abs=1e-12)
    assert np.abs(matrix @ (np.eye(len(span)) - span @ span.T)).max() < 1e-9
    assert np.all(basis[:rank] >= 0)
    assert np.all(basis[rank:] == -1)
    product = np.array(spare.inverse)[:rank, :rank] @ span[basis[:rank], :rank].T
    assert product == pytest.approx(np.eye(rank), abs=1e-9)


def test_no_saturated_wrench_takes_all_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """With half the steps every wrench gets the same thrusts, to the bit."""
    body = AIRFRAMES["16 rotors, tilted and irregular"][0]
    wrenches = tuple(saturated(body, 400))
    for priority in PRIORITIES:
        thrusts = np.array(allocate_bounded(wrenches, allocation_for(body), priority))
        with monkeypatch.context() as patch:
            patch.setattr(spare_simplex, "STEPS", spare_simplex.STEPS // 2)
            assert np.array_equal(allocate_bounded(wrenches, allocation_for(body), priority), thrusts)


def test_what_is_known_follows_the_parameters_that_it_comes_from() -> None:
    body = vehicle("base_octarotor")
    simulator = Simulator([body, body], SimulatorConfig(level="wrench"))
    inverse = simulator.parameter("control_inverse").copy()
    before = simulator.parameter("control_spare_span").copy()
    inverse[1, 14] *= 0.5
    simulator.set_parameter("control_inverse", inverse)
    a = allocation_for(body)
    other = spare_for(np.float64(inverse[1].reshape(8, 6)), np.array(a.thrust_min), np.array(a.thrust_max))
    after = simulator.parameter("control_spare_span")
    assert np.array_equal(after[0], before[0])
    # Columns may be turned among themselves: what they span counts.
    spans = [np.reshape(span, (8, 6)) for span in (after[1], other.span, before[1])]
    found, expected, old = (span @ span.T for span in spans)
    assert np.abs(found - expected).max() < 1e-6
    assert np.abs(found - old).max() > 0.01
    for name in ("control_thrust_max_rotor", "control_thrust_min"):  # these rotors turn both ways
        limit = simulator.parameter(name).copy()
        limit[1] *= 0.5
        simulator.set_parameter(name, limit)
    assert simulator.parameter("control_spare_scale") == pytest.approx(np.array([1.0, 0.5]) * a.spare.scale, rel=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["base_octarotor", "16 rotors", "16 rotors, tilted and irregular"])
def test_compiled_thrusts_are_those_of_float64(name: str) -> None:
    """Differences over the largest thrust, of 4,096 wrenches in each order; docs/howto/vehicles.md has these bounds.

    A few stand where two sets of thrusts are about as near to what is wanted, and are given the other one.
    """
    body = AIRFRAMES[name][0]
    wrenches = saturated(body, 4096).astype(np.float32).astype(float)
    polynomial = np.array([rotor.thrust for rotor in body.rotors])
    for priority in PRIORITIES:
        config = SimulatorConfig(level="wrench", control=ControlConfig(priority=priority))
        simulator = Simulator([body] * wrenches.shape[1], config)
        simulator.reset()
        simulator.advance(1, wrenches.T.copy())
        states = np.array(simulator.field("rotor_command"), float)[:, : len(body.rotors)]
        thrusts = (polynomial * np.stack([np.ones_like(states), states, states * np.abs(states)], axis=-1)).sum(axis=-1)
        exact = np.array(allocate_bounded(tuple(wrenches), allocation_for(body), priority)).T
        error = np.abs(thrusts - exact).max(axis=1) / thrust_limits(body)[1].max()
        median, most, nearly_all = np.quantile(error, [0.5, 0.99, 0.999])
        assert median < 1e-6
        assert most < 2e-5
        assert nearly_all < 2e-4
