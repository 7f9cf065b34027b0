"""Downwash among the vehicles of a group: its formula, its twin, what it does to a flight, and whom it leaves alone."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airworthy.core.arrays import ArrayAny
from airworthy.core.errors import AirworthyError
from airworthy.core.native_kernel import quiet_warp
from airworthy.simulation import Downwash, Simulator, SimulatorConfig
from airworthy.simulation.group_kernel import Group, downwash_force
from airworthy.vehicles import vehicle

CRAZYFLIE = vehicle("cf2x_L250")
MODEL = Downwash()


def kernel_forces(
    position: ArrayAny, groups: ArrayAny, flight_ids: ArrayAny | None = None, model: Downwash = MODEL, status: float = 0.0
) -> ArrayAny:
    """What the kernel writes for vehicles at these places, all of one status, shape (env,)."""
    wp = quiet_warp()
    count = len(position)
    ids = np.arange(count) if flight_ids is None else flight_ids
    rows = np.concatenate([position.T, np.full((1, count), status)])
    state = wp.array(np.ascontiguousarray(rows, np.float32).ravel(), device="cpu")
    force = wp.array(np.full(count, np.nan, np.float32), device="cpu")
    Group(groups, ids.astype(np.uint32), "cpu").blow(state, force, (0, 3, 0), count, count, model)
    return np.array(force.numpy())


def twin_forces(position: ArrayAny, groups: ArrayAny, model: Downwash = MODEL) -> ArrayAny:
    return np.array([downwash_force(position, np.flatnonzero(groups == groups[i]), i, model) for i in range(len(position))])


# ---- the formula ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("r", "dz"), [(0.0, 1.0), (0.1, 1.0), (0.3, 2.5), (0.05, 0.4), (9.99, 50.0)])
def test_the_published_formula(r: float, dz: float) -> None:
    """spec: a = 2267.18 (0.0231348 / (4 dz))^2, b = 0.16 dz - 0.11, force -a exp(-(r / b)^2 / 2)."""
    a, b = 2267.18 * (0.0231348 / (4.0 * dz)) ** 2, 0.16 * dz - 0.11
    expected = -a * math.exp(-0.5 * (r / b) ** 2)
    pair = np.array([[0.0, 0.0, 0.0], [0.6 * r, 0.8 * r, dz]])
    assert downwash_force(pair, np.arange(2), 0, MODEL) == pytest.approx(expected, rel=1e-12)
    lower, upper = kernel_forces(pair, np.zeros(2, int))
    # float32 positions: the exponent doubles their rounding, (r / b)^2 of them.
    assert lower == pytest.approx(expected, rel=1e-5)
    assert upper == 0.0


def test_a_frozen_vehicle_blows_at_nobody() -> None:
    pair = np.array([[0.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    assert kernel_forces(pair, np.zeros(2, int))[0] < 0.0
    assert np.all(kernel_forces(pair, np.zeros(2, int), status=1.0) == 0.0)


@pytest.mark.parametrize(
    "other", [(0.0, 0.0, 0.0), (0.1, 0.0, 0.0), (0.0, 0.0, -1.0), (10.0, 0.0, 5.0), (np.nan, 0.0, 1.0), (0.0, 0.0, np.inf)]
)
def test_nobody_blows_upwards_sideways_or_from_beyond_reach(other: tuple[float, float, float]) -> None:
    assert kernel_forces(np.array([(0.0, 0.0, 0.0), other]), np.zeros(2, int))[0] == 0.0


@settings(max_examples=30)
@given(seed=st.integers(0, 2**32 - 1), count=st.integers(1, 40))
def test_kernel_and_twin_agree(seed: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    position = rng.uniform([-1, -1, 0], [1, 1, 6], (count, 3)).astype(np.float32)
    groups = rng.integers(0, 4, count)
    twin = twin_forces(position.astype(float), groups)
    # Near dz = 0.69 the width passes through zero, where float32 keeps few of its digits; forces are of order 0.1 N.
    np.testing.assert_allclose(kernel_forces(position, groups), twin, rtol=1e-3, atol=1e-5)


@settings(max_examples=20)
@given(seed=st.integers(0, 2**32 - 1))
def test_order_and_neighbours_do_not_matter(seed: int) -> None:
    """Sums run over a group by flight id: any order of the batch, and any other groups in it, give the same bits."""
    rng = np.random.default_rng(seed)
    position = rng.uniform([-0.3, -0.3, 0], [0.3, 0.3, 5], (24, 3))
    groups, ids = rng.integers(0, 3, 24), rng.permutation(1000)[:24]
    forces = kernel_forces(position, groups, ids)
    order = rng.permutation(24)
    np.testing.assert_array_equal(kernel_forces(position[order], groups[order], ids[order]), forces[order])
    mine = groups == groups[0]
    np.testing.assert_array_equal(kernel_forces(position[mine], groups[mine], ids[mine]), forces[mine])


# ---- in flight --------------------------------------------------------------------------------------------------------------


def simulator(position: ArrayAny, groups: Any, downwash: bool = True, level: str = "position", **options: Any) -> Simulator:
    config = SimulatorConfig(level=level, downwash=MODEL if downwash else None, wrench_noise=False, disturbance=False)
    found = Simulator(CRAZYFLIE, config, env_count=len(position), groups=groups if downwash else None, **options)
    found.reset(position=position)
    return found


def test_it_accelerates_the_lower_vehicle() -> None:
    """One physics step at hover: dv = F dt / m on top of what happens without; 1 % for the changed drag and lag."""
    pair = np.array([[0.0, 0.0, 1.0], [0.05, 0.0, 2.0]])
    speeds = []
    for downwash in (False, True):
        sim = simulator(pair, [0, 0], downwash, level="rotor_speed")
        sim.advance(1, sim.rotor_speed)
        speeds.append(sim.velocity[:, 2].astype(float))
    gained = speeds[1] - speeds[0]
    expected = downwash_force(pair, np.arange(2), 0, MODEL) / CRAZYFLIE.mass / 960.0
    assert gained[0] == pytest.approx(expected, rel=1e-2)
    assert gained[1] == 0.0


def test_one_hovers_under_the_other() -> None:
    """The one below sinks, and sinks no further than its position law allows; the one above and one far off do not notice."""
    places = np.array([[0.0, 0.0, 1.0], [0.0, 0.0, 2.0], [20.0, 0.0, 1.0]])
    hold = np.concatenate([places, np.zeros((3, 1))], axis=1)
    found = []
    for downwash in (False, True):
        sim = simulator(places, [0, 0, 0], downwash)
        for _ in range(300):
            sim.step(hold)
        assert not sim.diverged.any()
        found.append(sim.position.astype(float))
    sunk = found[1][:, 2] - found[0][:, 2]
    assert -0.3 < sunk[0] < -0.02
    np.testing.assert_array_equal(sunk[1:], 0.0)


def states(sim: Simulator, hold: ArrayAny, steps: int = 40) -> ArrayAny:
    for _ in range(steps):
        sim.step(hold)
    return np.concatenate([sim.position, sim.velocity, sim.attitude, sim.rate], axis=1)


def test_a_group_flies_the_same_alone_in_any_order_and_among_others() -> None:
    rng = np.random.default_rng(5)
    places = rng.uniform([-0.2, -0.2, 1], [0.2, 0.2, 4], (40, 3))
    hold = np.concatenate([places + 0.1, np.zeros((40, 1))], axis=1)
    groups, ids = np.arange(40) % 10, np.arange(40)
    together = states(simulator(places, groups, flight_ids=ids), hold)
    order = rng.permutation(40)
    mixed = states(simulator(places[order], groups[order], flight_ids=ids[order]), hold[order])
    np.testing.assert_array_equal(mixed, together[order])
    mine = groups == 3
    alone = states(simulator(places[mine], groups[mine], flight_ids=ids[mine]), hold[mine])
    np.testing.assert_array_equal(alone, together[mine])
    calm = states(simulator(places, groups, downwash=False, flight_ids=ids), hold)
    assert not np.array_equal(calm, together)


def test_save_and_restore_carry_it() -> None:
    places = np.array([[0.0, 0.0, 1.0], [0.0, 0.05, 1.9]])
    hold = np.concatenate([places, np.zeros((2, 1))], axis=1)
    sim = simulator(places, [4, 4])
    states(sim, hold, 10)
    kept = sim.save()
    first = states(sim, hold, 10)
    sim.restore(kept)
    np.testing.assert_array_equal(states(sim, hold, 10), first)


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        (None, "give `groups`, one whole number per environment"),
        ([0, 0, 0], "expected whole numbers, one per environment, shape (2,)"),
        ([0.0, 1.0], "is an array of float64"),
    ],
)
def test_groups_that_do_not_fit(groups: Any, message: str) -> None:
    with pytest.raises(AirworthyError) as caught:
        simulator(np.zeros((2, 3)), groups)
    assert message in str(caught.value)
