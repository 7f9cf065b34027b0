"""The fused kernel of learning by gradient: against its twin, differences, the simulator, and what must not spread."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.control.test_priority_gap import multirotor

from airworthy.core.arrays import Array
from airworthy.core.errors import AirworthyError
from airworthy.core.native_kernel import native_kernel
from airworthy.learning.gradient import FlightWindow, GradientOptions, GradientTraining, WindowShape, kernel, surrogate_of
from airworthy.learning.gradient.dynamics import BODY, vehicle_step
from airworthy.learning.gradient.hover import HoverCost, hover_command, hover_cost
from airworthy.learning.gradient.kernel import KERNEL_ARGUMENTS, hover_step, vehicle_record, window_source
from airworthy.learning.gradient.twin import flown_twin, loss_twin, window_twin
from airworthy.simulation import Randomization, Simulator, SimulatorConfig
from airworthy.vehicles import Vehicle, vehicle


def training(name: str = "tinyprop", **options: Any) -> GradientTraining:
    """Few flights and short windows."""
    return GradientTraining(vehicle(name), GradientOptions(**{"env_count": 16, "window": 12, "hidden": 16, **options}))


@pytest.fixture(scope="module")
def learnt() -> GradientTraining:
    """Some steps in, so that weights are not their small beginnings; flights have delays, histories, other vehicles."""
    spread = Randomization(mass=0.2, inertia=0.3, thrust=0.1, lag=0.3)
    made = training(history=2, delay=2, randomization=spread, iterations=40)
    for _ in range(20):
        made.step()
    return made


def test_cost_states_and_gradient_equal_the_twins(learnt: GradientTraining) -> None:
    window, begun = learnt.window, learnt.window.state.copy()
    flown, gradient = window_twin(window, learnt.weights, begun.astype(float), keep=0.97)
    cost, state = flown.costs.sum(axis=0), flown.state
    ours, slopes = window.run(learnt.weights, keep=0.97)
    np.testing.assert_allclose(ours, cost, rtol=2e-6)
    np.testing.assert_allclose(window.state, state, rtol=2e-5, atol=2e-5)
    for mine, twins in zip(slopes, gradient, strict=True):
        # float32 through 12 steps: a few 1e-7 of the largest.
        np.testing.assert_allclose(mine, twins, rtol=0.0, atol=3e-6 * np.abs(twins).max())
    window.state[:] = begun


@pytest.mark.parametrize(
    ("item", "flights"), [(multirotor(6), 32), (vehicle("tinyprop"), 48)], ids=["six rotors", "three blocks"]
)
def test_more_rotors_and_more_blocks_equal_the_twins(item: Vehicle, flights: int) -> None:
    """Six actions leave rows that fill no tile of four; each block of sixteen flights has its own rows."""
    made = GradientTraining(item, GradientOptions(env_count=flights, window=12, hidden=16, iterations=20))
    for _ in range(10):
        made.step()
    window, begun = made.window, made.window.state.copy()
    flown, gradient = window_twin(window, made.weights, begun.astype(float), keep=0.97)
    ours, slopes = window.run(made.weights, keep=0.97)
    np.testing.assert_allclose(ours, flown.costs.sum(axis=0), rtol=5e-6)
    for mine, twins in zip(slopes, gradient, strict=True):
        np.testing.assert_allclose(mine, twins, rtol=0.0, atol=5e-6 * np.abs(twins).max())


def test_the_cost_is_of_the_action_taken_now_also_where_it_comes_late() -> None:
    """The late one was paid for in its own step: by formula, with all commands two steps late."""
    surrogate = surrogate_of(vehicle("tinyprop"), SimulatorConfig(control_rate=100.0), 1)
    shape = WindowShape(surrogate.form, 0.01, 16, 2, HoverCost())
    p = vehicle_record(shape, dict(enumerate(surrogate.rows)) | {surrogate.layout.size + 4: np.full(1, 2.0)})
    turn, rotors = np.array([[0.0], [0.0], [0.0], [1.0]]), 0.6 * np.array(p.rotor_max)
    body = np.concatenate([np.full((6, 1), 0.1), turn, np.zeros((3, 1)), rotors])
    taken, before = np.full((4, 1), 0.4), np.full((8, 1), -0.7)
    out = hover_step(tuple(np.concatenate([body, before])), tuple(taken), p, shape)
    after = tuple(out[: BODY + 4])
    np.testing.assert_allclose(out[-1], hover_cost(after, tuple(taken), p.hover, shape.cost), rtol=1e-12)
    late = hover_cost(after, tuple(before[:4]), p.hover, shape.cost)
    assert np.abs(late - out[-1]).min() > 1e-3


def test_the_twins_gradient_is_that_of_its_cost(learnt: GradientTraining) -> None:
    """Central differences in float64, a weight of each array."""
    window, begun = learnt.window, learnt.window.state.astype(float)
    weights = [np.asarray(w, float) for w in learnt.weights]
    _, gradient = window_twin(window, weights, begun)
    rng = np.random.default_rng(0)
    for k, slope in enumerate(gradient):
        at = tuple(rng.integers(0, n) for n in slope.shape)
        sides = []
        for h in (1e-6, -1e-6):
            moved = [w.copy() for w in weights]
            moved[k][at] += h
            sides.append(loss_twin(window, flown_twin(window, moved, begun)))
        by_differences = (sides[0] - sides[1]) / 2e-6
        assert abs(by_differences - slope[at]) <= 1e-6 * np.abs(slope).max()


@pytest.mark.parametrize("name", ["tinyprop", "cf2x_L250", "lmf2", "x500", "base_octarotor", "cf2x_gym_pybullet_drones"])
def test_a_policy_step_is_the_simulators(name: str) -> None:
    """Same equations, same physics rate: equal up to the rounding of float32."""
    item = vehicle(name)
    surrogate = surrogate_of(item, SimulatorConfig(control_rate=100.0), 16)
    form, n = surrogate.form, item.rotor_count
    config = SimulatorConfig(
        level="rotor_speed", control_rate=100.0, physics_rate=100.0 * form.substeps, wrench_noise=False, disturbance=False
    )
    simulator = Simulator(item, config, 16)
    rng = np.random.default_rng(1)
    p = surrogate.parameters(lambda row: surrogate.rows[row])
    rotors = np.array(p.rotor_max) * rng.uniform(0.3, 0.9, (n, 16))
    turn = rng.normal(size=(4, 16))
    turn[3] = np.abs(turn[3])  # of the two signs of a rotation the one that a reset takes
    body = [rng.normal(size=(3, 16)), rng.normal(size=(3, 16)), turn / np.linalg.norm(turn, axis=0), rng.normal(size=(3, 16))]
    state = np.concatenate([*body, rotors]).astype(np.float32).astype(float)
    command = np.array(np.broadcast_arrays(*hover_command(tuple(rng.uniform(-1, 1, (n, 16))), p)))
    after = np.array(np.broadcast_arrays(*vehicle_step(tuple(state), tuple(command), p, form, 0.01)))
    x = state.T
    simulator.reset(position=x[:, :3], velocity=x[:, 3:6], attitude=x[:, 6:10], rate=x[:, 10:13], rotor_speed=x[:, BODY:])
    simulator.step(command.T)
    flown = np.concatenate(
        [simulator.position, simulator.velocity, simulator.attitude, simulator.rate, simulator.rotor_speed], axis=1
    )
    size = np.abs(after).max(axis=1)
    np.testing.assert_allclose(after.T / size, flown / size, rtol=0.0, atol=2e-6)


def test_flights_do_not_depend_on_their_neighbours() -> None:
    """The same flights among others, elsewhere in the batch, and split over threads."""
    few, many = training(env_count=16), training(env_count=48)
    first = few.window.state.copy()
    np.testing.assert_array_equal(first, many.window.state[:, :16])  # of their own seed and number alone
    many.window.state[:, 32:48] = first
    costs, _ = few.window.run(few.weights)
    others, _ = many.window.run(few.weights)
    np.testing.assert_array_equal(costs, others[:16])
    np.testing.assert_array_equal(costs, others[32:])
    np.testing.assert_array_equal(few.window.state, many.window.state[:, 32:])


def test_a_flight_that_left_the_numbers_spoils_no_other() -> None:
    sick, well = training(env_count=32), training(env_count=32)
    sick.window.state[3, [2, 30]] = np.nan
    sick.window.state[10, 5] = np.inf
    lost = np.isin(np.arange(32), [2, 5, 30])
    costs, gradient = sick.window.run(sick.weights)
    others, whole = well.window.run(well.weights)
    np.testing.assert_array_equal(costs[~lost], others[~lost])
    assert not np.isfinite(costs[lost]).any()
    assert all(np.isfinite(g).all() for g in gradient)
    # What remains is the gradient of the others: the whole less that of the three by themselves.
    alone = training(env_count=32)
    alone.window.state[:, ~lost] = np.nan
    _, three = alone.window.run(alone.weights)
    for rest, all_of_them, theirs in zip(gradient, whole, three, strict=True):
        np.testing.assert_allclose(rest, all_of_them - theirs, rtol=0.0, atol=1e-5 * np.abs(all_of_them).max())
    sick.step()
    sick.step()
    assert np.isfinite(sick.window.state).all()  # begun anew
    assert sick.lost >= 3


def test_the_gpu_form_gives_the_bytes_of_the_lanes(monkeypatch: pytest.MonkeyPatch) -> None:
    """One environment after the other, with a GPU's order of rows; run here without a GPU."""
    lanes, single = training(), training()
    scalar = native_kernel("policy_gradient_scalar", "#define SCALAR_PATH\n" + window_source(single.shape), KERNEL_ARGUMENTS)
    monkeypatch.setattr(kernel, "_kernel", lambda shape: scalar)
    monkeypatch.setattr(single.window, "_lanes", 1)
    theirs, gradient = single.window.run(single.weights)
    monkeypatch.undo()
    ours, expected = lanes.window.run(lanes.weights)
    np.testing.assert_array_equal(theirs, ours)
    np.testing.assert_array_equal(single.window.state, lanes.window.state)
    for mine, others in zip(gradient, expected, strict=True):
        # Sums over flights and steps are the host's, in another order.
        np.testing.assert_allclose(mine, others, rtol=0.0, atol=1e-6 * np.abs(others).max())


def test_training_stopped_and_gone_on_with_gives_the_same_bits() -> None:
    whole, part = training(iterations=12, history=1), training(iterations=12, history=1)
    for _ in range(12):
        whole.step()
    for _ in range(5):
        part.step()
    second = training(iterations=12, history=1)
    second.restore(part.save())
    while not second.finished:
        second.step()
    for a, b in zip([*whole.weights, whole.window.state], [*second.weights, second.window.state], strict=True):
        np.testing.assert_array_equal(a, b)
    assert second.env_steps == whole.env_steps == 12 * 12 * 16


def test_it_learns() -> None:
    """At first most flights are lost; then hardly any, and their cost has fallen by half."""
    made = training(env_count=64, window=100, iterations=250, learning_rate=1.5e-2)
    costs, lost = [], []
    for _ in range(250):
        costs.append(made.step())
        lost.append(made.lost)
    assert np.mean(costs[-40:]) < 0.5 * np.mean(costs[:10])
    assert lost[-1] - lost[-40] < 0.2 * lost[39]


def test_drawn_vehicles_keep_enough_thrust() -> None:
    made = training(env_count=64, randomization=Randomization(mass=0.3, thrust=0.3))
    layout, rows = made.surrogate.layout, made.surrogate.rows
    thrust = sum(
        rows[layout.offsets["rotor_thrust"] + 3 * i + 2] * rows[layout.offsets["rotor_max"] + i] ** 2 for i in range(4)
    )
    ratio = thrust / (rows[layout.offsets["mass"]] * 9.81)
    assert made.raised > 5  # tinyprop has 1.31 nominally
    assert ratio.min() > 1.2 - 1e-3


def test_mistakes_are_told() -> None:
    with pytest.raises(AirworthyError, match="env_count is 30; expected a multiple of 16"):
        training(env_count=30)
    with pytest.raises(AirworthyError, match="hidden is 20; expected 16, 32, 64"):
        training(hidden=20)
    with pytest.raises(AirworthyError, match="up to 2 steps late, but the policy sees 1 past actions"):
        GradientOptions(history=1, delay=2)
    with pytest.raises(AirworthyError, match=r"Vehicles have \[4, 8\] rotors"):
        surrogate_of([vehicle("tinyprop"), vehicle("base_octarotor")], SimulatorConfig(), 2)
    heavy = replace(vehicle("tinyprop"), mass=5.0)
    with pytest.raises(AirworthyError, match="cannot hover"):
        GradientTraining(heavy, GradientOptions(env_count=16))


def test_late_commands_are_those_of_before() -> None:
    """With a delay of two steps the first two commands are the hover that the history begins with."""
    made = training(history=2, env_count=16)
    shape: WindowShape = made.shape
    assert shape.state == BODY + 4 * 3
    assert shape.observed == 18 + 8
    assert HoverCost() == shape.cost
    states: list[Array] = []
    for delay in (0.0, 2.0):
        window = FlightWindow(shape, 16, 2)
        hover = np.repeat(made.hover[:, None], 16, axis=1)
        window.set_vehicles(made.surrogate.rows, hover, np.full(16, delay))
        window.state[:] = made.window.state
        weights = [w.copy() for w in made.weights]
        weights[-1][:] = 3.0  # nearly full thrust, whatever is seen
        window.run(weights)
        states.append(window.state.copy())
    assert (states[0][5] > states[1][5] + 0.005).all()  # climbs; the late one does not yet


def test_a_delay_shifts_commands_by_as_many_steps() -> None:
    """Flights late by 0, 1 and 2 steps in one batch: each as if its commands had been given that much earlier."""
    surrogate = surrogate_of(vehicle("tinyprop"), SimulatorConfig(control_rate=100.0), 3)
    shape = WindowShape(surrogate.form, 0.01, 16, 2, HoverCost())
    rng = np.random.default_rng(4)
    commands = rng.uniform(-1.0, 1.0, (8, 4, 3))  # the first two were given before the flight
    rows = dict(enumerate(surrogate.rows)) | {surrogate.layout.size + 4: np.arange(3.0)}
    p = vehicle_record(shape, rows)
    turn = np.repeat([[0.0], [0.0], [0.0], [1.0]], 3, axis=1)
    rotors = 0.6 * np.array(p.rotor_max)
    body = np.concatenate([rng.normal(size=(6, 3)), turn, rng.normal(size=(3, 3)), rotors])
    state = np.concatenate([body, commands[1], commands[0]])
    for k in range(2, 8):
        out = hover_step(tuple(state), tuple(commands[k]), p, shape)
        state = np.array(np.broadcast_arrays(*out[: shape.state]))
        given = np.stack([commands[k - late, :, late] for late in range(3)], axis=1)
        body = np.array(np.broadcast_arrays(*vehicle_step(tuple(body), hover_command(tuple(given), p), p, shape.form, 0.01)))
        np.testing.assert_array_equal(state[: BODY + 4], body)
        np.testing.assert_array_equal(state[BODY + 4 :], [*commands[k], *commands[k - 1]])
