"""The native articulated step: bits that depend on nothing but the environment, and the float64 twin."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.core.test_cuda import compiled
from tests.dynamics.articulated_cases import random_state, small, without_stops

from airworthy.core.arrays import Array
from airworthy.core.errors import AirworthyError
from airworthy.core.native_kernel import native_kernel, quiet_launch, quiet_warp
from airworthy.dynamics.articulated import native
from airworthy.dynamics.articulated.batch import ArticulatedBatch
from airworthy.dynamics.articulated.step import INTEGRATORS, STAGES
from airworthy.dynamics.articulated.tree import JointTree, tree_of
from airworthy.dynamics.articulated.twin import ArticulatedTwin
from airworthy.vehicles import Vehicle

NEEDS_NVRTC = pytest.mark.skipif(sys.platform == "darwin", reason="Warp has no CUDA compiler on macOS")
FIELDS = ("position", "velocity", "attitude", "rate", "joint", "joint_rate", "rotor_speed")


def spread(tree: JointTree, count: int) -> Array:
    """Parameters of each environment, 10 % around the vehicle's; directions, which have to stay unit, and angles are kept."""
    rows = np.array(tree.values)[:, None] * np.random.default_rng(7).uniform(0.9, 1.1, (len(tree.values), count))
    for index, name in enumerate(tree.row_names):
        if re.search(r"\.(rotation|axis|rest|lower|upper)", name):
            rows[index] = tree.values[index]
    return rows.astype(np.float32).astype(float)


def flown(
    craft: Vehicle, integrator: str, count: int = 48, order: Array | None = None, launches: tuple[int, ...] = (30,)
) -> dict[str, Array]:
    """Final fields by environment, flown in an order."""
    tree = tree_of(craft)
    order = np.arange(count) if order is None else order
    start, rows = random_state(tree, count), spread(tree, count)
    batch = ArticulatedBatch(craft, len(order), integrator=integrator, rows=rows[:, order])
    batch.reset(**{name: value[order] for name, value in start.items()})
    batch.target(np.random.default_rng(3).uniform(-0.5, 0.5, (count, craft.joint_count))[order])
    for steps in launches:
        batch.advance(steps, 1.1 * start["rotor_speed"][order])
    return {name: batch.field(name).copy() for name in batch.layout.fields}


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_the_same_bits_in_any_lane_order_and_launch(integrator: str) -> None:
    craft = small()
    whole = flown(craft, integrator)
    assert all(np.isfinite(value).all() for value in whole.values())
    again = flown(craft, integrator)
    order = np.roll(np.arange(48), 7)
    shifted, alone = flown(craft, integrator, order=order), flown(craft, integrator, order=np.array([13]))
    parts = flown(craft, integrator, launches=(7, 1, 22))
    for name in whole:
        assert whole[name].tobytes() == again[name].tobytes(), name
        assert whole[name][order].tobytes() == shifted[name].tobytes(), name
        assert whole[name][13].tobytes() == alone[name][0].tobytes(), name
        # A launch wraps turning joints, rounds the position to its sum and residual, and counts stops by itself.
        if name not in ("position", "position_residual", "stop"):
            assert whole[name].tobytes() == parts[name].tobytes(), name
    total = [run["position"].astype(float) + run["position_residual"] for run in (whole, parts)]
    np.testing.assert_allclose(total[0], total[1], atol=1e-7)  # a launch's displacement of some 0.1 m is summed in float32


def test_one_by_one_gives_the_bits_of_the_lanes() -> None:
    """The form of a GPU, on a CPU."""
    craft = small()
    structure, count = tree_of(craft).structure, 16
    kernel = native_kernel(
        "articulated_single", "#define SCALAR_PATH\n" + native.articulated_snippet(structure), native.ARGUMENTS
    )
    wp = quiet_warp()
    for integrator, number in INTEGRATORS.items():
        batch = ArticulatedBatch(craft, count, integrator=integrator, rows=spread(tree_of(craft), count))
        batch.reset(**random_state(tree_of(craft), count))
        single = batch._state.copy()
        batch.advance(20, (0.9,))
        arrays = [
            wp.array(a.reshape(-1), dtype=wp.float32, device="cpu", copy=False) for a in (batch._params, batch._inputs, single)
        ]
        quiet_launch(kernel, count, [*arrays, batch._stride, 1, batch.dt, 20, number, STAGES[number], count, 0], "cpu")
        assert single.tobytes() == batch._state.tobytes(), integrator


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_lanes_fly_as_the_twin(integrator: str) -> None:
    against_twin(small(), integrator, 100, 0.1)


@pytest.mark.slow
@pytest.mark.parametrize("integrator", ["semi_implicit", "midpoint", "extrapolated", "rk4"])
@pytest.mark.parametrize("name", ["morphy_linear", "morphy", "snakey"])
def test_lanes_of_the_catalogue_fly_as_the_twin(name: str, integrator: str) -> None:
    if name != "snakey" or integrator != "rk4":
        against_twin(without_stops(name), integrator, 100, 0.1 if name.startswith("morphy") else 1.0)


BOUNDS = {
    "position": 3e-6,
    "velocity": 2e-5,
    "attitude": 2e-5,
    "rate": 8e-5,
    "joint": 4e-6,
    "joint_rate": 1e-4,
    "rotor_speed": 4e-6,
}
"""About twice what float32 leaves over 100 steps of 2 ms, from tumbling starts."""
GROWTH = {"extrapolated": 5.0}
"""Twice one solution less another has up to five times the rounding of each."""


def against_twin(craft: Vehicle, integrator: str, steps: int, angles: float) -> None:
    tree, count = tree_of(craft), 64
    rows = spread(tree, count)
    batch = ArticulatedBatch(craft, count, integrator=integrator, rows=rows)
    start = random_state(tree, count, 5, angles)
    command = 1.2 * start["rotor_speed"]
    target = (
        np.zeros((count, craft.joint_count))
        if angles < 0.5
        else np.random.default_rng(2).uniform(-1, 1, (count, craft.joint_count))
    )
    batch.reset(**start)
    batch.target(target)
    batch.advance(steps, command)

    def exact(values: Array) -> Array:
        return values.astype(np.float32).astype(float).T

    twin = ArticulatedTwin(tree, rows)
    state = twin.start(count, **{name.replace("rotor_speed", "rotor"): exact(value) for name, value in start.items()})
    for _ in range(steps):
        state = twin.step(state, exact(command), exact(target), batch.dt, integrator)
    for name in FIELDS:
        apart = np.abs(batch.field(name).T - getattr(state, name.replace("rotor_speed", "rotor"))).max()
        assert apart < BOUNDS[name] * GROWTH.get(integrator, 1.0), name


def test_a_turning_joint_is_wrapped_at_the_end_of_a_launch() -> None:
    craft = without_stops("snakey", law="torque", kd=0.0)
    assert all(tree_of(craft).structure.turning)
    batch = ArticulatedBatch(craft, 1, integrator="semi_implicit")
    batch.reset(joint=[7.0, -7.0, 1.0, -1.0, 100.0, 3.0])
    batch.advance(0, (0.0,) * 4)
    turned = [7.0 - 2 * np.pi, -7.0 + 2 * np.pi, 1.0, -1.0, 100.0 - 32 * np.pi, 3.0]
    np.testing.assert_allclose(batch.field("joint")[0], turned, atol=2e-5)


def test_mistakes_are_told_in_one_sentence() -> None:
    batch = ArticulatedBatch(small(), 3)
    with pytest.raises(AirworthyError, match=r"joint has the shape \(2,\); expected \(1,\) or \(3, 1\)"):
        batch.set(joint=(1.0, 2.0))
    with pytest.raises(AirworthyError, match="Unknown state field 'angle'"):
        batch.field("angle")
    with pytest.raises(AirworthyError, match=r"rows has the shape \(2, 3\)"):
        ArticulatedBatch(small(), 3, rows=np.zeros((2, 3)))


@NEEDS_NVRTC
@pytest.mark.slow
def test_the_articulated_step_compiles_for_cuda(tmp_path: Path) -> None:
    text = compiled(native.articulated_kernel(tree_of(small()).structure), tmp_path, use_ptx=True).read_text(errors="replace")
    assert re.search(r"\.visible \.entry airworthy_articulated_1_1\w*_cuda_kernel_forward", text)
    assert not re.search(r"fma\.rn|\.approx|div\.full|\.ftz", text)
    assert not re.search(r"^\s*(add|sub|mul|div|fma|cvt)\.\S*f64", text, re.MULTILINE)


MISTAKES = {
    "env_count is 0; expected 1 to": lambda: ArticulatedBatch(small(), 0),
    "env_count is '3'; expected a whole number": lambda: ArticulatedBatch(small(), "3"),  # type: ignore[arg-type]
    "2 vehicles were given for 3 environments": lambda: ArticulatedBatch([small()] * 2, 3),
    "0 vehicles were given for no environments": lambda: ArticulatedBatch([]),
    "vehicles[0] is 3; expected a Vehicle": lambda: ArticulatedBatch([3]),  # type: ignore[list-item]
    "dt is 'a'; expected a number": lambda: ArticulatedBatch(small(), dt="a"),  # type: ignore[arg-type]
    "dt is 0.0; expected a step": lambda: ArticulatedBatch(small(), dt=0.0),
    "joint holds what is not finite": lambda: ArticulatedBatch(small()).reset(joint=[np.nan]),
    "command is 'a'; expected numbers": lambda: ArticulatedBatch(small()).advance(1, "a"),
    "steps is 1.5; expected a whole number": lambda: ArticulatedBatch(small()).advance(1.5, [0.0]),  # type: ignore[arg-type]
    "steps is -1; expected 0 to": lambda: ArticulatedBatch(small()).advance(-1, [0.0]),
}


@pytest.mark.parametrize("message", MISTAKES)
def test_what_a_batch_is_given_is_checked(message: str) -> None:
    with pytest.raises(AirworthyError, match=re.escape(message)):
        MISTAKES[message]()
