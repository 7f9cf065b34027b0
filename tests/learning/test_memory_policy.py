"""A policy with a GRU: learnt, kept, flown and exported, with a memory that is each flight's own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.learning.test_export_motor import ACT, PARITY, compiled, observations, run_c
from tests.pilots.test_motor_pilot import seen, states

from airworthy.core.arrays import Array
from airworthy.core.errors import AirworthyError, AssetError
from airworthy.learning import export_policy
from airworthy.learning.gradient import GradientOptions, GradientTraining, write_motor_policy
from airworthy.learning.gradient.config import HoverConfig
from airworthy.learning.gradient.evaluation import HoverProtocol, figures, fly_hover
from airworthy.learning.gradient.flyers import LearntPolicy
from airworthy.learning.gradient.trainer import recurrent_action
from airworthy.learning.l2f_position.gradient import L2fGradientOptions
from airworthy.pilots import MotorPilot, MotorPolicy, read_motor_policy
from airworthy.pilots.motor_policy.contract import MotorContract
from airworthy.trajectories import Trajectory
from airworthy.vehicles import vehicle


@pytest.fixture(scope="module")
def training() -> GradientTraining:
    """One that hovers, after a second."""
    options = GradientOptions(env_count=32, hidden=16, iterations=600, memory="gru", history=1)
    made = GradientTraining(vehicle("tinyprop"), options)
    while not made.finished:
        made.step()
    return made


@pytest.fixture(scope="module")
def folder(training: GradientTraining, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_motor_policy(tmp_path_factory.mktemp("gru"), training)


def decided(policy: MotorPolicy, seen: Array) -> Array:
    """Actions of one flight, after its own past ones."""
    past = np.array(policy.contract.hover, np.float32)[None]
    memory, found = policy.remembered(1), []
    for row in seen:
        past, memory = policy.decide(np.concatenate([row[None, :18], past], axis=1), memory)
        found.append(past[0])
    return np.array(found)


def test_it_holds_its_place(training: GradientTraining) -> None:
    found = figures(
        fly_hover(vehicle("tinyprop"), LearntPolicy.of(training), HoverProtocol(flights=64), training.options.start, 64)
    )
    assert found["kept_percent"] == 100.0
    assert found["median_error_m"] < 0.05


def test_the_folder_holds_the_function_that_was_learnt(training: GradientTraining, folder: Path) -> None:
    policy = read_motor_policy(folder)
    assert (policy.contract.memory, policy.contract.hidden, policy.contract.history) == ("gru", (16, 16), 1)
    memory, twins = policy.remembered(1), np.zeros((1, 16))
    for row in observations(50, 22):
        action, memory = policy.decide(row[None], memory)
        wanted, twins = recurrent_action([np.asarray(w, float) for w in training.weights], row[None].astype(float), twins)
        np.testing.assert_allclose(action, wanted, rtol=0.0, atol=PARITY)
        np.testing.assert_allclose(memory, twins, rtol=0.0, atol=PARITY)


def test_memory_is_each_flights_own(folder: Path) -> None:
    """The same bits alone and among others; another flight begins as the first did."""
    policy = read_motor_policy(folder)
    still = Trajectory([0.0, 10.0], np.zeros((1, 3, 1)), [0.0, 10.0], np.zeros((1, 1)))
    many, one = MotorPilot(policy, still, 5), MotorPilot(policy, still, 1)
    fields = [states(5, seed=k) for k in range(6)]

    def flown(pilot: MotorPilot, which: Any) -> list[Array]:
        return [
            pilot.command(seen(0.01 * k, {name: x[which] for name, x in whole.items()})).copy()
            for k, whole in enumerate(fields)
        ]

    together, alone = flown(many, slice(None)), flown(one, slice(2, 3))
    for a, b in zip(together, alone, strict=True):
        np.testing.assert_array_equal(a[2:3], b)
    np.testing.assert_array_equal(flown(many, slice(None)), together)


@compiled
def test_in_c_it_acts_as_here(folder: Path, tmp_path: Path) -> None:
    export_policy(folder, tmp_path / "gru.h")
    rows = observations(200)
    acted = run_c(tmp_path, ACT.format(name="gru"), rows, 4)
    np.testing.assert_allclose(acted, decided(read_motor_policy(folder), rows), rtol=0.0, atol=PARITY)


def test_in_onnx_it_acts_as_here(folder: Path, tmp_path: Path) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    export_policy(folder, tmp_path / "gru.onnx")
    session = onnxruntime.InferenceSession(str(tmp_path / "gru.onnx"), providers=["CPUExecutionProvider"])
    assert [x.name for x in session.get_inputs()] == ["observation", "memory"]
    policy = read_motor_policy(folder)
    ours = theirs = policy.remembered(3)
    for k in range(20):
        rows = observations(3, 22, seed=k)
        action, ours = policy.decide(rows, ours)
        acted, theirs = session.run(["action", "memory_after"], {"observation": rows, "memory": theirs})
        # Sums of float32 in another order, remembered over 20 steps: ten times what a policy without memory may differ by.
        np.testing.assert_allclose(acted, action, rtol=0.0, atol=10.0 * PARITY)
        np.testing.assert_allclose(theirs, ours, rtol=0.0, atol=10.0 * PARITY)


def test_what_does_not_fit_is_refused(folder: Path) -> None:
    with pytest.raises(AirworthyError, match="two of one width"):
        MotorContract("x", ((0.0, 1.0),), (0.0,), hidden=(16, 8), memory="gru")
    text = (folder / "contract.json").read_text()
    (folder / "contract.json").write_text(text.replace('"memory": "gru"', '"memory": "lstm"'))
    with pytest.raises(AssetError, match=r"seal|gru"):
        read_motor_policy(folder)
    (folder / "contract.json").write_text(text)
    with pytest.raises(AirworthyError, match="no place for a GRU"):
        L2fGradientOptions(memory="gru")
    with pytest.raises(AirworthyError, match="one of the two"):
        HoverConfig(critic=True, memory="gru")


def test_options_of_the_command_reach_the_training() -> None:
    short = HoverConfig(critic=True).options(0)
    assert isinstance(short, GradientOptions)
    assert (short.critic, short.window, short.iterations) == (True, 32, 3000)
    assert HoverConfig(critic=True, window=64).options(0).window == 64  # type: ignore[union-attr]
    assert HoverConfig(memory="gru").options(0).memory == "gru"  # type: ignore[union-attr]
    assert HoverConfig().options(0).window == 100  # type: ignore[union-attr]
