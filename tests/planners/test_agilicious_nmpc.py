"""The predictive controllers: derivatives, the bounded problem against a general solver, bounds that hold."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from airworthy.core.arrays import Array
from airworthy.planners.agilicious.bounded_lqr import LinearProblem, solve_bounded
from airworthy.planners.agilicious.nmpc import SOLVING_RATE, Nmpc, RateModel, RotorModel, added, difference
from airworthy.planners.agilicious.pipeline import VehicleBodies
from airworthy.vehicles import control_effectiveness, vehicle


def models(n: int, rng: np.random.Generator):  # type: ignore[no-untyped-def]
    bodies = VehicleBodies([vehicle("virt_05")] * n)
    inertia = np.array([np.diag(row[:3]) for row in bodies.inertia])
    rotor = RotorModel(12, bodies.mass, inertia, np.linalg.inv(inertia), bodies.effect[:, 2:])
    q = rng.normal(size=(n, 4))
    q /= np.linalg.norm(q, axis=1, keepdims=True)
    small = np.concatenate([rng.normal(size=(n, 6)), q], axis=1)
    full = np.concatenate([small, rng.normal(size=(n, 3))], axis=1)
    thrusts, rates = (
        rng.uniform(1.0, 6.0, (n, 4)),
        np.concatenate([rng.uniform(5, 15, (n, 1)), rng.normal(size=(n, 3))], axis=1),
    )
    return [(rotor, full, thrusts), (RateModel(9), small, rates)]


@pytest.mark.parametrize("which", [0, 1])
def test_derivatives_against_differences(which: int) -> None:
    rng = np.random.default_rng(1)
    model, state, inputs = models(6, rng)[which]
    a, b = model.linear(state, inputs)
    h = 1e-6

    def flow(x: Array, u: Array) -> Array:
        """Slope of differences about the nominal motion, by a short step."""
        return difference(model.step(x, u, h), model.step(state, inputs, h))

    for k in range(a.shape[-1]):
        change = np.zeros((6, a.shape[-1]))
        change[:, k] = 1e-3
        found = (flow(added(state, change), inputs) - change) / h / 1e-3
        # Rounding of 1e-16 over steps of 1e-6 and changes of 1e-3 leaves 1e-6; second order in the change 1e-2.
        assert np.allclose(found, a[..., k], atol=3e-2 * (1.0 + np.abs(a[..., k])))
    for k in range(b.shape[-1]):
        change = np.zeros_like(inputs)
        change[:, k] = 1e-2
        assert np.allclose(flow(state, inputs + change) / h / 1e-2, b[..., k], atol=1e-2 * (1.0 + np.abs(b[..., k])))


@pytest.mark.parametrize("which", [0, 1])
def test_step_is_of_second_order(which: int) -> None:
    model, state, inputs = models(6, np.random.default_rng(2))[which]
    if which == 0:
        inputs = inputs * 0.0 + inputs.mean(axis=1, keepdims=True)  # no moments: agile vehicles would spin up in a step

    def flown(steps: int) -> Array:
        x = state
        for _ in range(steps):
            x = model.step(x, inputs, 0.05 / steps)
        return x

    fine = flown(256)
    errors = [np.abs(difference(flown(steps), fine)).max() for steps in (1, 2, 4)]
    assert errors[0] < 2e-3
    assert errors[1] < errors[0] / 3.0
    assert errors[2] < errors[1] / 3.0


def test_bounded_problem_equals_a_general_solver() -> None:
    from scipy.optimize import minimize

    rng = np.random.default_rng(3)
    steps, n, s, m = 4, 3, 3, 2
    shape = (steps, n)
    problem = LinearProblem(
        a=np.eye(s) + 0.2 * rng.normal(size=(*shape, s, s)),
        b=rng.normal(size=(*shape, s, m)),
        c=0.1 * rng.normal(size=(*shape, s)),
        start=rng.normal(size=(n, s)),
        state_error=rng.normal(size=(steps + 1, n, s)),
        input_error=rng.normal(size=(*shape, m)),
        state_weight=np.tile([3.0, 1.0, 2.0], (n, 1)),
        input_weight=np.full((n, m), 0.2),
        low=np.full((*shape, m), -0.4),
        high=np.full((*shape, m), 0.5),
        bounded=slice(2, 3),
        floor=np.full((steps + 1, n, 1), -1.5),
        top=np.full((steps + 1, n, 1), 1.5),
    )
    x, u = solve_bounded(problem, 30)
    for k in range(n):

        def states(flat: Array, k: int = k) -> Array:
            path = [problem.start[k]]
            for j, v in enumerate(flat.reshape(steps, m)):
                path.append(problem.a[j, k] @ path[-1] + problem.b[j, k] @ v + problem.c[j, k])
            return np.array(path)

        def cost(flat: Array, k: int = k) -> float:
            e = problem.state_error[:, k] + states(flat)
            f = problem.input_error[:, k] + flat.reshape(steps, m)
            return 0.5 * float((e**2 * problem.state_weight[k]).sum() + (f**2 * problem.input_weight[k]).sum())

        rules = [{"type": "ineq", "fun": lambda f: 1.5 - np.abs(states(f)[1:, 2])}]
        other = minimize(
            cost, np.zeros(steps * m), bounds=[(-0.4, 0.5)] * (steps * m), constraints=rules, options={"ftol": 1e-12}
        )
        if other.success:
            assert cost(u[:, k].reshape(-1)) <= other.fun + 1e-4
    assert (u >= problem.low).all()
    assert (u <= problem.high).all()
    ahead = [[problem.a[j, k] @ x[j, k] + problem.b[j, k] @ u[j, k] + problem.c[j, k] for k in range(n)] for j in range(steps)]
    assert np.abs(x[1:] - np.array(ahead)).max() < 1e-4


def test_a_problem_does_not_depend_on_the_others() -> None:
    shape, one = (5, 4), slice(1, 2)

    def make(take: slice) -> LinearProblem:
        rng = np.random.default_rng(5)
        arrays = {
            "a": np.eye(3) + 0.1 * rng.normal(size=(*shape, 3, 3)),
            "b": rng.normal(size=(*shape, 3, 2)),
            "c": np.zeros((*shape, 3)),
            "state_error": rng.normal(size=(6, 4, 3)),
            "input_error": rng.normal(size=(*shape, 2)),
            "low": np.full((*shape, 2), -0.3),
            "high": np.full((*shape, 2), 0.3),
            "floor": np.full((6, 4, 1), -3.0),
            "top": np.full((6, 4, 1), 3.0),
        }
        cut = {name: np.ascontiguousarray(array[:, take]) for name, array in arrays.items()}
        count = cut["a"].shape[1]
        return LinearProblem(
            **cut,
            start=np.zeros((count, 3)),
            state_weight=np.ones((count, 3)),
            input_weight=np.ones((count, 2)),
            bounded=slice(0, 1),
        )

    whole, alone = solve_bounded(make(slice(None))), solve_bounded(make(one))
    assert np.array_equal(whole[0][:, one], alone[0])
    assert np.array_equal(whole[1][:, one], alone[1])


def test_what_the_solution_asks_for_is_the_force_and_the_turn_of_its_rotors() -> None:
    """Between ticks the last thrusts are held: their force along body z, and by Euler's equation the angular acceleration."""
    body = vehicle("x500")
    outer = Nmpc()
    bodies = VehicleBodies([body, body])
    outer.configure(bodies, None)  # type: ignore[arg-type]
    rng = np.random.default_rng(6)
    thrusts, rate = rng.uniform(1.0, 6.0, (2, 4)), rng.normal(size=(2, 3)) * 4.0
    outer._first[:] = thrusts
    outer._tick[:] = 25
    zero = np.zeros((2, 3))
    motion = SimpleNamespace(position=zero, velocity=zero, attitude=np.zeros((2, 4)), time=np.full(2, 25.1 / SOLVING_RATE))
    measured = SimpleNamespace(motion=motion, rate=rate, fresh=np.zeros(2, bool), ahead=())
    force, turn = outer.wish(None, measured)  # type: ignore[arg-type]
    xx, yy, zz, xy, xz, yz = body.inertia
    inertia = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    for k in range(2):
        wrench = control_effectiveness(body) @ thrusts[k]
        assert force[k] == pytest.approx(wrench[2], rel=1e-12)
        expected = np.linalg.inv(inertia) @ (wrench[3:] - np.cross(rate[k], inertia @ rate[k]))
        np.testing.assert_allclose(turn[k], expected, rtol=1e-9)
