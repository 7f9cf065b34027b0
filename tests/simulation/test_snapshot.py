"""Save, restore, continue: the bytes of an uninterrupted run, from memory or through a file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from airworthy.core.errors import AirworthyError, AssetError
from airworthy.simulation.config import Ground, Imu, Randomization, SimulatorConfig, Wind
from airworthy.simulation.simulator import Simulator
from airworthy.simulation.start_state import Snapshot
from airworthy.vehicles import vehicle
from airworthy.vehicles.record import Battery

COUNT, STEPS = 20, 100


def build(level: str = "rate_thrust:flightgoggles", **changes: Any) -> Simulator:
    item = replace(vehicle("flightgoggles"), battery=Battery(16.8, 14.0, 16.8, 1300.0, 0.005))
    settings: dict[str, Any] = {
        "level": level,
        "imu": Imu((0.01,) * 3, (0.01,) * 3, (0.001,) * 3, (0.001,) * 3, bias_initial=(0.1, 0.1, 0.05)),
        "gyro_feedback": True,
        "wind": Wind(mean=(0.5, 0, 0), turbulence=(0.3,) * 3),
        "ground": Ground(),
        "battery": True,
        "control_rate": 100.0,
        "randomization": Randomization(mass=0.1, thrust=0.05, position=0.2),
    }
    simulator = Simulator(item, SimulatorConfig(**{**settings, **changes}), COUNT, seed=8)
    simulator.reset(position=(0.0, 0.0, 1.0))
    return simulator


def one_step(simulator: Simulator, k: int) -> None:
    """A step of a run with everything in it: delays, external forces, changed parameters, partial resets, repeated commands."""
    if k % 7 == 3:
        simulator.set_command([10.0, 0.1 * np.sin(k), 0.2, -0.1], delay_steps=k % 13)
        simulator.step()
        return
    if k % 11 == 5:
        simulator.set_external((0.1 * k % 1, 0.0, 0.0))
    if k == 40:
        simulator.set_parameter("drag_linear", 0.1)
    if k % 17 == 9:
        simulator.reset(env_ids=[k % COUNT, (3 * k) % COUNT])
    if k % 29 == 28:
        simulator.reset(env_ids=[1], position=(1.0, 2.0, 3.0))
    simulator.step(None if k % 5 == 2 else [9.9, 0.1 * np.cos(k), 0.0, 0.2])


def states(simulator: Simulator) -> dict[str, bytes]:
    fields = {name: np.array(simulator.field(name)).tobytes() for name in simulator.layout.fields}
    return {**fields, "clock": simulator.flight_step.tobytes(), "episode": simulator.episode.tobytes()}


@pytest.fixture(scope="module")
def uninterrupted() -> list[tuple[Snapshot, dict[str, bytes]]]:
    """A snapshot before every step, and the state after it."""
    simulator, out = build(), []
    for k in range(STEPS):
        before = simulator.save()
        one_step(simulator, k)
        out.append((before, states(simulator)))
    return out


def test_every_point(uninterrupted: list[tuple[Snapshot, dict[str, bytes]]]) -> None:
    """From each of 100 points, in a simulator that did something else before, to the end of a stretch of random length."""
    rng = np.random.default_rng(1)
    simulator = build()
    for k in rng.permutation(STEPS):
        end = min(STEPS, k + int(rng.integers(1, 12)))
        simulator.restore(uninterrupted[k][0])
        for step in range(k, end):
            one_step(simulator, step)
        assert states(simulator) == uninterrupted[end - 1][1], (k, end)


def test_saving_changes_nothing(uninterrupted: list[tuple[Snapshot, dict[str, bytes]]]) -> None:
    simulator = build()
    for k in range(STEPS):
        one_step(simulator, k)
    assert states(simulator) == uninterrupted[-1][1]


def test_through_a_file(uninterrupted: list[tuple[Snapshot, dict[str, bytes]]], tmp_path: Path) -> None:
    path = tmp_path / "instant.safetensors"
    uninterrupted[50][0].write(path)
    simulator = build()
    simulator.restore(Snapshot.read(path))
    for step in range(50, STEPS):
        one_step(simulator, step)
    assert states(simulator) == uninterrupted[-1][1]


def test_a_snapshot_is_a_copy() -> None:
    simulator = build()
    saved = simulator.save()
    kept = saved.state.copy()
    one_step(simulator, 0)
    assert np.array_equal(saved.state, kept)
    simulator.restore(saved)
    one_step(simulator, 0)
    assert np.array_equal(saved.state, kept)


@pytest.mark.parametrize("level", ["rotor_speed", "tracking:mellinger"])
def test_without_randomisation(level: str) -> None:
    """Batches that share one column of parameters keep sharing it, and later resets find their starts."""
    command = [1140.0] * 4 if level == "rotor_speed" else [0.1, 0.0, 1.0, *[0.0] * 11]
    plain = {"randomization": Randomization(), "imu": None, "gyro_feedback": False}
    simulator, other = build(level, **plain), build(level, **plain)
    simulator.reset(position=(3.0, 2.0, 1.0), attitude=(0.0, 0.0, 0.6, 0.8))
    simulator.step(command)
    saved = simulator.save()
    assert saved.rows.shape[1] == 1
    other.restore(saved)
    for either in (simulator, other):
        either.reset(env_ids=[4])
        either.step(command)
    assert states(simulator) == states(other)
    assert other.position[4] == pytest.approx([3.0, 2.0, 1.0], abs=0.1)


def test_mistakes(tmp_path: Path, uninterrupted: list[tuple[Snapshot, dict[str, bytes]]]) -> None:
    saved = uninterrupted[0][0]
    with pytest.raises(AirworthyError, match="same vehicles and env_count"):
        Simulator(vehicle("flightgoggles"), env_count=3).restore(saved)
    with pytest.raises(AssetError, match="does not exist"):
        Snapshot.read(tmp_path / "none")
    path = tmp_path / "damaged"
    saved.write(path)
    data = path.read_bytes()
    for cut in (0, 7, 100, len(data) // 2, len(data) - 1):
        path.write_bytes(data[:cut])
        with pytest.raises(AssetError, match="cannot be read"):
            Snapshot.read(path)
    path.write_bytes(data.replace(b'"format":"1"', b'"format":"9"'))
    with pytest.raises(AssetError, match="no snapshot of format 1"):
        Snapshot.read(path)
    path.write_bytes(data.replace(b'"step_count":"0"', b'"step_count":"x"'))
    with pytest.raises(AssetError, match="cannot be read"):
        Snapshot.read(path)
    replace(saved, state=saved.state.astype(np.float64)).write(path)  # type: ignore[arg-type]
    with pytest.raises(AssetError, match="holds state as"):
        Snapshot.read(path)
