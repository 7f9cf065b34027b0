"""Flights through which torch derives: against differences, the twin, environments of PPO, the fused trainer."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from airworthy.core.errors import AirworthyError
from airworthy.core.native_kernel import native_kernel
from airworthy.learning import VectorTask, learning_task
from airworthy.learning.gradient import DifferentiableSimulator, GradientOptions, GradientTraining
from airworthy.learning.gradient.derived_step import _ARGUMENTS, DerivedStep, StepTwin, step_source
from airworthy.learning.navigation.tasks import LidarNavigation
from airworthy.vehicles import vehicle

LEVELS = [
    ("tinyprop", "hover"),
    ("cf2x_L250", "recovery"),
    ("x500", "px4_motor_command"),
    ("lmf2", "position_setpoint_velocity"),
    ("lmf2", "position_setpoint_acceleration"),
    ("base_quadrotor", "position_setpoint"),
    ("cf2x_L250", "track"),
    ("cf2x_L250", "l2f_position"),
]
"""Vehicles of other equations each, and every control level of a task: rotors, velocity, acceleration, attitude, rates."""


def begun(sim: DifferentiableSimulator, seed: int = 0) -> tuple[Tensor, Tensor]:
    """States some steps in, so that rotors, memory and past actions are their own; and actions within the limits."""
    generator = torch.Generator().manual_seed(seed)
    state = sim.begin()

    def action() -> Tensor:
        noise = torch.randn(sim.env_count, sim.action_count, generator=generator, dtype=sim.dtype)
        return (sim.hover_action + 0.1 * noise).clamp(-0.95, 0.95)

    with torch.no_grad():
        for _ in range(3):
            state = sim.step(state, action())[0]
    return state, action()


@pytest.mark.parametrize(("name", "task"), LEVELS)
def test_gradients_are_those_of_differences_in_float64(name: str, task: str) -> None:
    sim = DifferentiableSimulator(name, task, 2, precision="float64")
    state, action = begun(sim)
    factors = torch.ones(2, dtype=torch.float64).requires_grad_()

    def called(state: Tensor, action: Tensor, factor: Tensor) -> Any:
        after, seen, cost = sim.step(state, action, sim.parameters(mass=factor, thrust=factor**0.5))
        return after[:-1], seen, cost

    # The age has no slope, and is a number of steps.
    body, age = state[:-1].requires_grad_(), state[-1:]
    assert torch.autograd.gradcheck(
        lambda b, a, f: called(torch.cat([b, age]), a, f),
        (body, action.requires_grad_(), factors),
        eps=1e-6,
        atol=1e-6,
        rtol=1e-5,
        fast_mode=True,
    )


@pytest.mark.parametrize(("name", "task"), LEVELS[:1] + LEVELS[3:4])
def test_the_kernel_is_its_twin(name: str, task: str) -> None:
    """Seventeen flights: more than a vector. Slopes to a few 1e-6 of the largest of their row: float32."""
    fine = DifferentiableSimulator(name, task, 17, keep=0.9, precision="float64")
    sim = DifferentiableSimulator(name, task, 17, keep=0.9)
    state, action = begun(fine)
    rng = np.random.default_rng(0)
    found = []
    for made in (fine, sim):
        parts = [x.detach().to(made.dtype).requires_grad_() for x in (state, action, torch.ones(17, dtype=torch.float64))]
        after, seen, cost = made.step(parts[0], parts[1], made.parameters(mass=parts[2]))
        rng = np.random.default_rng(0)
        weights = [torch.from_numpy(rng.normal(size=tuple(x.shape))).to(made.dtype) for x in (after[:-1], seen, cost)]
        # Rows in units of their own size, as a cost would have them: a rotor turns a thousand times faster than a body moves.
        scale = 1.0 / (1.0 + after[:-1].detach().abs())
        total = (weights[0] * scale * after[:-1]).sum() + (weights[1] * seen).sum() + (weights[2] * cost).sum()
        total.backward()
        found.append([x.detach().double().numpy() for x in (after, seen, cost, *(p.grad for p in parts))])
    for k, (twins, ours) in enumerate(zip(*found, strict=True)):
        size = np.abs(twins).max(axis=-1, keepdims=True) if k < 4 else np.abs(twins).max()
        assert (np.abs(ours - twins) <= 2e-5 * size + 1e-6).all()


@pytest.mark.parametrize(("name", "task"), LEVELS[:1] + LEVELS[3:4])
def test_a_step_is_that_of_the_environments(name: str, task: str) -> None:
    """Same starts, same numbers as what PPO learns on; the cost is minus the reward."""
    quiet = learning_task(task, noise=False) if task != "hover" else learning_task(task)
    sim, ours = DifferentiableSimulator(name, quiet, 16, seed=5), VectorTask(quiet, 16, name, seed=5)
    state = sim.begin()
    np.testing.assert_allclose(state[: len(ours.state)].numpy(), ours.state, rtol=2e-6, atol=2e-6)
    np.testing.assert_allclose(sim.observe(state).numpy(), ours.observation, rtol=1e-5, atol=1e-5)
    rng = np.random.default_rng(1)
    for _ in range(10):
        actions = np.clip(sim.hover_action.numpy() + 0.1 * rng.normal(size=(16, sim.action_count)), -1.0, 1.0)
        state, seen, cost = sim.step(state, torch.from_numpy(actions.astype(np.float32)))
        step = ours.step(actions.astype(np.float32))
        assert not step.terminated.any()
        np.testing.assert_allclose(seen.numpy(), step.observation, rtol=2e-5, atol=2e-5)
        np.testing.assert_allclose(cost.numpy(), -step.reward, rtol=2e-5, atol=2e-4)


def test_a_task_with_a_curriculum_is_as_hard_as_it_gets() -> None:
    task = learning_task("l2f_position", noise=False)
    sim = DifferentiableSimulator("cf2x_L250", task, 16, seed=5)
    state, costs = sim.begin(), {}
    action = (sim.hover_action + 0.1 * torch.linspace(-1.0, 1.0, 64).reshape(16, 4)).clamp(-0.95, 0.95)
    for level in (task.curriculum.least, task.curriculum.most):
        ours = VectorTask(task, 16, "cf2x_L250", seed=5)
        # From the same states: starts of the environments are those of the first level.
        ours.level[:], ours.state[:] = level, state[: len(ours.state)].numpy()
        ours.memory[:] = state[-1 - len(ours.memory) : -1].numpy()
        costs[level] = -ours.step(action.numpy()).reward
    cost = sim.step(state, action)[2].numpy()
    np.testing.assert_allclose(cost, costs[task.curriculum.most], rtol=2e-5, atol=2e-4)
    assert np.abs(cost - costs[task.curriculum.least]).max() > 0.01


def network(weights: list[Any]) -> nn.Sequential:
    """The fused trainer's network in torch."""
    layers: list[nn.Module] = []
    for w, b in zip(weights[::2], weights[1::2], strict=True):
        layer = nn.Linear(w.shape[1], w.shape[0])
        layer.weight.data, layer.bias.data = torch.from_numpy(w.copy()), torch.from_numpy(b.copy())
        layers += [layer, nn.Tanh()]
    return nn.Sequential(*layers)


def test_a_window_is_the_fused_trainers(learnt_hover: GradientTraining) -> None:
    """Cost and gradient of a whole window, to 1e-5: another kernel, another network, one task."""
    fused = GradientTraining(vehicle("tinyprop"), GradientOptions(env_count=32, window=100, hidden=16))
    # Weights of a policy that flies: through flights that tumble both would be right only to the first digits.
    for mine, learnt in zip(fused.weights, learnt_hover.weights, strict=True):
        mine[:] = learnt
    sim = DifferentiableSimulator("tinyprop", "hover", 32, 100)
    policy = network(fused.weights)
    state = sim.begin()
    state[: len(fused.window.state)] = torch.from_numpy(fused.window.state)
    costs, gradient = fused.window.run(fused.weights)
    cost, _ = sim.window(policy, state)
    cost.backward()
    # The task pays 6 a step for staying alive.
    assert float(cost.detach()) + 6.0 == pytest.approx(float(costs.mean()) / 100, rel=1e-5)
    found = [p.grad.numpy() for p in policy.parameters()]
    size = np.sqrt(sum(float(np.sum(g**2)) for g in gradient))
    apart = np.sqrt(sum(float(np.sum((g - f) ** 2)) for g, f in zip(gradient, found, strict=True)))
    assert apart <= 1e-5 * size


def test_what_leaves_the_numbers_spoils_no_other() -> None:
    def gradients(spoil: bool) -> tuple[Any, Any]:
        torch.manual_seed(0)
        sim = DifferentiableSimulator("tinyprop", "hover", 16, 5)
        state = sim.begin()
        if spoil:
            state[3, 4] = torch.nan
            state[0, 9] = 3e38
        actions = sim.hover_action.clone().requires_grad_()
        seen, total = sim.observe(state), torch.zeros(())
        policy = nn.Linear(18, 4)
        for _ in range(5):
            state, seen, cost = sim.step(state, actions + 0.1 * policy(seen))
            total = total + cost.sum()
        total.backward()
        assert bool(torch.isfinite(policy.weight.grad).all())
        return actions.grad, sim.sound

    (spoilt, sound), (whole, all_sound) = gradients(True), gradients(False)
    others = [k for k in range(16) if k not in (4, 9)]
    assert all_sound.all()
    assert not sound[4]
    assert sound[others].all()
    assert torch.equal(spoilt[others], whole[others])
    assert not spoilt[4].any()


def test_a_thousand_steps_are_finite(learnt_hover: GradientTraining) -> None:
    sim = DifferentiableSimulator("tinyprop", "hover", 16, 1000)
    policy = network(learnt_hover.weights)
    cost, state = sim.window(policy, sim.begin())
    cost.backward()
    slopes = torch.cat([p.grad.flatten() for p in policy.parameters()])
    assert bool(torch.isfinite(cost))
    assert bool(torch.isfinite(slopes).all())
    assert float(slopes.norm()) > 1e-6
    assert bool(sim.sound.all())
    assert not state.requires_grad


def test_actions_beyond_their_limits_are_clipped_and_have_no_slope() -> None:
    sim = DifferentiableSimulator("tinyprop", "hover", 2, precision="float64")
    state = sim.begin()
    action = torch.tensor([[1.5, 0.0, 0.0, -2.0]] * 2, dtype=torch.float64, requires_grad=True)
    after, _, cost = sim.step(state, action)
    assert torch.equal(after, sim.step(state, action.detach().clamp(-1.0, 1.0))[0])
    (cost.sum() + after[13:17].sum()).backward()
    assert (action.grad[:, [0, 3]] == 0.0).all()
    assert (action.grad[:, [1, 2]] != 0.0).all()


@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_an_action_at_its_limit_has_its_slope(precision: str) -> None:
    """Exactly 1 is not beyond it: a policy whose tanh is 1 in float32 goes on learning."""
    sim = DifferentiableSimulator("tinyprop", "hover", 2, precision=precision)
    action = torch.tensor([[1.0, 0.5, 0.5, -1.0]] * 2, dtype=sim.dtype, requires_grad=True)
    after, _, cost = sim.step(sim.begin(), action)
    (cost.sum() + after[13:17].sum()).backward()
    assert (action.grad != 0.0).all()
    inside = action.detach().clamp(-0.999, 0.999).requires_grad_()
    after, _, cost = sim.step(sim.begin(), inside)
    (cost.sum() + after[13:17].sum()).backward()
    torch.testing.assert_close(action.grad, inside.grad, rtol=0.05, atol=1e-3)


def test_a_mass_is_found_by_gradient() -> None:
    """Flights of a vehicle 15 % heavier and 8 % stronger than its record; its factors from the record's own."""
    sim = DifferentiableSimulator("tinyprop", "hover", 16, precision="float64")
    truth = sim.parameters(mass=torch.tensor(1.15), thrust=torch.tensor(1.08))
    state, action = begun(sim)
    with torch.no_grad():
        path = [state]
        for _ in range(5):
            path.append(sim.step(path[-1], action, truth)[0])
    # Thrust over mass moves a body, thrust over inertia turns it, and inertia follows mass: what is seen is their ratio.
    factor = torch.ones((), dtype=torch.float64, requires_grad=True)
    finder = torch.optim.LBFGS([factor], max_iter=20)

    def misfit() -> Tensor:
        finder.zero_grad()
        rows = sim.parameters(mass=factor)
        found = torch.stack([(sim.step(a, action, rows)[0] - b)[3:6].square().sum() for a, b in itertools.pairwise(path)])
        found.sum().backward()
        return found.sum()

    finder.step(misfit)
    # Not to the last digit: what a rotor's own inertia turns does not grow with its thrust.
    assert float(factor.detach()) == pytest.approx(1.15 / 1.08, rel=1e-4)


def test_rotors_that_are_advanced_exactly_take_a_factor_of_their_lag() -> None:
    """What is left of a lag after a step of t is exp(-t / tau), and so its root where tau is twice as long."""
    sim = DifferentiableSimulator("cf2x_gym_pybullet_drones", "hover", 2, precision="float64")
    p, lag = sim._parameters, torch.tensor([2.0, 0.5], dtype=torch.float64, requires_grad=True)
    assert sim._equations.shape.form.exact
    rows = sim.parameters(lag=lag)

    def of(field: str, rows: Tensor) -> Tensor:
        return rows[[p.place[r] for r in range(*p.layout.rows(field).indices(p.layout.size)) if r in p.place]]

    nominal = sim.parameters()
    for way in ("rise", "fall"):
        for half in ("", "_half"):
            kept, plain = (of(f"rotor_{way}_keep{half}", r).detach().numpy() for r in (rows, nominal))
            assert (plain > 0.0).all()
            assert (plain < 1.0).all()
            np.testing.assert_allclose(kept, plain ** np.array([0.5, 2.0]), rtol=1e-12)
    # By tau: t / tau^2 exp(-t / tau), at least uphill.
    (slope,) = torch.autograd.grad(of("rotor_rise_keep", rows).sum(), lag)
    assert (slope > 0.0).all()


def test_starts_depend_on_seed_and_flight_alone() -> None:
    few, many = (DifferentiableSimulator("tinyprop", "hover", k, seed=3) for k in (4, 40))
    first, all_first = few.begin(), many.begin()
    assert torch.equal(first, all_first[:, :4])
    where = torch.zeros(4, dtype=torch.bool)
    where[2] = True
    second = few.begin(first, where)
    assert torch.equal(second[:, [0, 1, 3]], first[:, [0, 1, 3]])
    assert not torch.equal(second[:, 2], first[:, 2])
    assert torch.equal(many.begin()[:, 2], second[:, 2])


def test_more_rotors_than_four_have_slopes_where_none_saturates() -> None:
    """The search that shares what saturates among spare rotors has none of its own."""
    sim = DifferentiableSimulator("base_octarotor", "position_setpoint_velocity", 2, precision="float64")
    state = sim.begin()
    with torch.no_grad():
        for _ in range(30):
            state = sim.step(state, sim.hover_action)[0]
    action = sim.hover_action.requires_grad_()
    assert torch.autograd.gradcheck(
        lambda a: sim.step(state, a)[0][:-1], (action,), eps=1e-6, atol=1e-6, rtol=1e-5, fast_mode=True
    )


def test_single_numbers_give_the_bits_of_lanes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The text of the form that runs a flight per thread, as on a GPU, compiled for this processor."""
    sim = DifferentiableSimulator("tinyprop", "hover", 16)
    text = step_source(sim._equations, False)
    assert "LANES" in text
    kernel = native_kernel("derived_step_single", f"#define SCALAR_PATH\n{text}", _ARGUMENTS)
    lanes, single = (DerivedStep(sim._equations, 16) for _ in range(2))
    single._kernel = kernel
    state, rng = sim.begin().numpy(), np.random.default_rng(0)
    for step in (lanes, single):
        rng = np.random.default_rng(0)
        step.arrays["state"][:] = state
        step.arrays["parameters"][:] = sim._rows.numpy()
        step.arrays["actions"][:] = rng.uniform(-0.5, 0.5, (4, 16))
        step.arrays["seeds"][:] = rng.normal(size=step.arrays["seeds"].shape)
    lanes.forward()
    lanes.backward()
    from airworthy.core.native_kernel import CPU_LANES, quiet_launch, quiet_warp

    wp = quiet_warp()
    arrays = [wp.array(x.ravel(), device="cpu", copy=False) for x in single._whole.values()]
    for back in (0, 1):
        quiet_launch(kernel, CPU_LANES, [*arrays, 16, back, 1.0, 0], "cpu")
    for name in ("after", "flags", "slopes"):
        np.testing.assert_array_equal(lanes.arrays[name], single.arrays[name])


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"env_count": 0}, "env_count is 0"),
        ({"horizon": True}, "horizon is True"),
        ({"keep": 1.5}, "keep is 1.5"),
        ({"keep": "a"}, "^keep is 'a'; expected a number, 0 to 1\\.$"),
        ({"keep": math.nan}, "keep is nan; expected 0 to 1"),
        ({"seed": "x"}, "^seed is 'x'; expected a whole number"),
        ({"seed": 1.5}, "seed is 1.5; expected a whole number"),
        ({"threads": 0}, "threads is 0; expected 1 to 4096"),
        ({"precision": "half"}, "float32 or float64"),
        ({"precision": None}, "precision is None; expected float32 or float64"),
        ({"task": None}, "^task is None, which has no 'name'; expected the name of a learning task, or a task"),
        (
            {"vehicles": [None, None]},
            r"^vehicles\[0\] is None; expected a Vehicle, a name of the catalogue or a vehicle file\.$",
        ),
        ({"vehicles": ["tinyprop", 3]}, r"^vehicles\[1\] is 3; expected a Vehicle"),
        ({"vehicles": 3}, "^vehicles is 3; expected one vehicle for all flights, or a list of one for each"),
        ({"task": "hoover"}, "hoover"),
        ({"task": LidarNavigation()}, "rooms"),
        ({"vehicles": ["tinyprop"]}, "1 vehicles were given for 2"),
        ({"vehicles": ["tinyprop", "base_octarotor"]}, "rotors"),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(AirworthyError, match=said):
        DifferentiableSimulator(**{"vehicles": "tinyprop", "env_count": 2, **wrong})


def test_tensors_and_factors_that_do_not_fit_are_refused() -> None:
    sim = DifferentiableSimulator("tinyprop", "hover", 2)
    state = sim.begin()
    for call, said in (
        (lambda: sim.step(state, torch.zeros(4, 2)), r"action is .* expected torch.float32 of shape \(2, 4\)"),
        (lambda: sim.step(state.double(), torch.zeros(2, 4)), "state is torch.float64"),
        (lambda: sim.parameters(masse=torch.ones(())), "masse"),
        (lambda: sim.parameters(mass=torch.zeros(())), "no factor above 0"),
        (lambda: sim.parameters(mass=torch.ones(3)), "expected one number"),
        (lambda: sim.parameters(drag=torch.ones(())), "changes nothing"),
        (lambda: sim.begin(state), "alone"),
    ):
        with pytest.raises(AirworthyError, match=said):
            call()


def test_the_twin_holds_no_state() -> None:
    """A step is a function: the same twice, whatever was flown between."""
    sim = DifferentiableSimulator("tinyprop", "hover", 2, precision="float64")
    state, action = begun(sim)
    first = sim.step(state, action)[0]
    sim.step(first, action)
    assert torch.equal(sim.step(state, action)[0], first)
    assert isinstance(sim._twin, StepTwin)
