"""Dead time from command to rotor: a step of the command comes that much later, in the kernel as in its twin."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from airworthy.core.errors import AirworthyError, AssetWarning
from airworthy.core.native_kernel import native_kernel, quiet_warp
from airworthy.simulation import Simulator, SimulatorConfig, arrays, family
from airworthy.simulation.family import step_kernel, step_snippet
from airworthy.simulation.start_state import Snapshot
from airworthy.simulation.twin import Twin
from airworthy.vehicles import RotorResponse, Vehicle, vehicle

RATE = 1000.0
LAG = 0.05


def late(delay: float, name: str = "cf2x_L250") -> Vehicle:
    """A vehicle with first-order rotors and a dead time [s]."""
    base = vehicle(name)
    rotors = tuple(replace(r, response=RotorResponse.first_order(LAG)) for r in base.rotors)
    return replace(base, rotors=rotors, command_delay=delay, name=f"late_{1e3 * delay:g}")


def config(level: str = "rotor_speed", **given: Any) -> SimulatorConfig:
    return SimulatorConfig(physics_rate=RATE, control_rate=100.0, level=level, **given)


def stepped(simulator: Simulator, steps: int, low: float, high: float) -> np.ndarray:
    """Rotor states after each physics step, the command stepping from low to high at once, (steps, env)."""
    count = simulator.rotor_count
    simulator.reset(position=[0.0, 0.0, 100.0], rotor_speed=np.full((simulator.env_count, count), low))
    found = []
    for _ in range(steps):
        simulator.advance(1, np.full(count, high))
        found.append(simulator.rotor_speed[:, 0].copy())
    return np.array(found, float)


@pytest.mark.parametrize("delay", [0.0, 0.003, 0.0124, 0.040])
def test_a_step_of_the_command_comes_late(delay: float) -> None:
    low, high, steps = 1000.0, 1800.0, 80
    found = stepped(Simulator(late(delay), config(exact_rotors=True), 1), steps, low, high)[:, 0]
    after = np.arange(1, steps + 1) / RATE - delay
    # Closed form: a lag answers a late step. Within one step the command is its mean, an error of the second order.
    wanted = np.where(after > 0.0, low + (high - low) * (1.0 - np.exp(-np.maximum(after, 0.0) / LAG)), low)
    whole = abs(delay * RATE - round(delay * RATE)) < 1e-9
    assert np.abs(found - wanted).max() < (1e-3 if whole else (high - low) * (1.0 / RATE / LAG) ** 2 / 4.0)


def test_between_steps_the_mean_acts() -> None:
    found = Simulator(late(0.0124), config(), 1)
    found.reset(rotor_speed=np.full((1, 4), 1000.0))
    commands = []
    for _ in range(16):
        found.advance(1, np.full(4, 1500.0))
        commands.append(float(found.field("rotor_command")[0, 0]))
    assert commands == pytest.approx([1000.0] * 12 + [1300.0] + [1500.0] * 3, abs=1e-3)


def test_records_have_what_was_issued() -> None:
    """What rotors follow is late by the dead time: a log of that would hide it from who identifies the vehicle."""
    for delay, late_steps in ((0.0, 0), (0.003, 3)):
        found = Simulator(late(delay), config(), 1)
        found.reset(rotor_speed=np.full((1, 4), 1000.0))
        found.advance(1, np.full(4, 1500.0))
        assert found.rotors("rotor_command").tolist() == [[1500.0] * 4]
        assert found.field("rotor_command")[0, 0] == (1000.0 if late_steps else 1500.0)


LEVELS = ("rotor_speed", "attitude_thrust", "position", "tracking:mellinger")
COMMANDS = {"attitude_thrust": [9.9, 0.1, -0.1, 0.2], "position": [1.0, -0.5, 101.0, 0.3]}


def commanded(level: str, speed: float) -> np.ndarray:
    if level == "rotor_speed":
        return np.full(4, speed)
    if level in COMMANDS:
        return np.array(COMMANDS[level])
    return np.array([0.5, 0.2, 100.3, *[0.0] * 11])


@pytest.mark.parametrize("level", LEVELS)
def test_the_kernel_is_its_twin(level: str) -> None:
    fleet = [late(delay) for delay in (0.0, 0.001, 0.0077, 0.0124)] * 4
    simulator = Simulator(fleet, config(level), 16, seed=3)
    simulator.reset(position=[0.0, 0.0, 100.0])
    command = commanded(level, 1700.0)
    simulator.advance(7, command)
    twin = Twin(simulator)
    for _ in range(3):
        simulator.advance(9, command)
        twin.advance(9, command)
    for name, scale in (("rotor_speed", 2000.0), ("rotor_queue", 2000.0), ("velocity", 1.0), ("rate", 1.0)):
        assert np.abs(simulator.field(name) - twin.field(name)).max() < 3e-4 * scale, name


def test_nothing_of_it_is_in_other_kernels() -> None:
    assert "Delay" not in step_snippet(4)
    assert "DELAY_SLOTS" not in step_snippet(4)
    assert "COMMANDED" not in step_snippet(4)
    plain = Simulator(late(0.0), config(), 2)
    assert "rotor_queue" not in plain.layout
    assert "command_delay" not in plain._param_layout


@pytest.mark.parametrize("level", LEVELS)
def test_a_flight_without_is_the_same_beside_one_with(level: str) -> None:
    alone = Simulator(late(0.0), config(level), 1, flight_ids=[1])
    beside = Simulator([late(0.012), late(0.0)], config(level), 2)
    for simulator in (alone, beside):
        simulator.reset(position=[0.0, 0.0, 100.0])
        for _ in range(5):
            simulator.step(commanded(level, 1650.0))
    for name in ("position", "rate", "rotor_speed"):
        assert alone.field(name)[0].tobytes() == beside.field(name)[1].tobytes(), name
    assert np.any(beside.field("rate")[0] != beside.field("rate")[1]) or level == "rotor_speed"


def test_saving_keeps_what_is_on_its_way(tmp_path: Any) -> None:
    simulator = Simulator(late(0.0124), config("position"), 3, seed=1)
    simulator.reset(position=[0.0, 0.0, 100.0])
    for _ in range(4):
        simulator.step(commanded("position", 0.0))
    simulator.save().write(tmp_path / "a.safetensors")
    other = Simulator(late(0.0124), config("position"), 3, seed=1)
    other.restore(Snapshot.read(tmp_path / "a.safetensors"))
    for one in (simulator, other):
        for _ in range(3):
            one.step([0.0, 0.0, 99.0, 0.0])
    assert simulator.field("rotor_queue").tobytes() == other.field("rotor_queue").tobytes()
    assert simulator.save().state.tobytes() == other.save().state.tobytes()
    with pytest.raises(AirworthyError, match="does not fit a simulator"):
        Simulator(late(0.0), config("position"), 3).restore(simulator.save())


class Often:
    """Cuts launches into parts, every third step."""

    def due(self, flight_step: np.ndarray) -> np.ndarray:
        return 3 - flight_step.astype(np.int64) % 3

    def fire(self, simulator: Simulator) -> None: ...

    def reset(self, env_ids: np.ndarray) -> None: ...


def test_parts_of_a_launch_give_the_bits_of_the_whole() -> None:
    plain, cut = (Simulator(late(0.0077), config("position"), 2, seed=1) for _ in range(2))
    cut.add_events(Often())
    for simulator in (plain, cut):
        simulator.reset(position=[0.0, 0.0, 100.0])
        for _ in range(4):
            simulator.step(commanded("position", 0.0))
    assert plain.save().state.tobytes() == cut.save().state.tobytes()


def test_a_new_flight_forgets_the_last_ones_commands() -> None:
    simulator = Simulator(late(0.0124), config(), 2)
    simulator.reset(rotor_speed=np.full((2, 4), 1000.0))
    simulator.advance(30, np.full(4, 1900.0))
    simulator.reset(env_ids=[1], rotor_speed=np.full((1, 4), 1200.0))
    assert np.all(simulator.field("rotor_queue")[1] == 1200.0)
    assert np.all(simulator.field("rotor_queue")[0] == 1900.0)
    simulator.advance(1, np.full(4, 1900.0))
    assert simulator.field("rotor_command")[1].tolist() == [1200.0] * 4


def test_six_rotors_and_the_scalar_path_of_the_ring() -> None:
    # Of six rotors a ring is no power of two: every place of it must come round.
    base = vehicle("real_05")
    wide = replace(base, command_delay=0.0061)
    simulator = Simulator(wide, config("rotor_thrust"), 1)
    twin = Twin(simulator)
    weight = base.mass * base.gravity / base.rotor_count
    for k in range(24):
        command = np.full(base.rotor_count, weight * (1.0 + 0.05 * (k % 3)))
        simulator.advance(1, command)
        twin.advance(1, command)
    np.testing.assert_allclose(simulator.field("rotor_queue"), twin.field("rotor_queue"), rtol=1e-5)


def test_the_gpu_form_gives_the_bytes_of_the_lanes(monkeypatch: pytest.MonkeyPatch) -> None:
    """One environment after the other, run here without a GPU."""
    fleet = [late(delay) for delay in (0.0, 0.0077, 0.0124, 0.003)] * 4
    lanes, single = (Simulator(fleet, config("position"), 16, seed=3) for _ in range(2))
    source = "#define SCALAR_PATH\n" + step_snippet(4, False, lanes.shape.slots)
    scalar = native_kernel("step_late_scalar", source, family._ARGUMENTS)
    single._arrays._kernel = lambda only, irregular: scalar
    # A task is one environment then, as on a GPU.
    monkeypatch.setattr(arrays, "BLOCKS_PER_TASK", Fraction(1, 16))
    for simulator in (single, lanes):
        simulator.reset(position=[0.0, 0.0, 100.0])
        for _ in range(4):
            simulator.step(commanded("position", 0.0))
        monkeypatch.undo()
    assert single.save().state.tobytes() == lanes.save().state.tobytes()


def test_more_than_can_be_kept_is_refused() -> None:
    with pytest.raises(AirworthyError, match="1100 physics steps from command to rotor is more than the 1023"):
        Simulator(late(1.0), SimulatorConfig(physics_rate=1100.0, control_rate=100.0, level="rotor_speed"), 1)


def test_other_dynamics_say_that_they_do_not_fly_it() -> None:
    plain = SimulatorConfig(dynamics="semi_kinematic", level="rate_thrust")
    with pytest.warns(AssetWarning, match="dead time of 12 ms from command to rotor, which only rigid dynamics fly"):
        Simulator(late(0.012), plain, 1)


def test_it_can_be_changed_while_it_fits() -> None:
    simulator = Simulator(late(0.0124), config(), 1)
    simulator.set_parameter("command_delay", 3.0)
    found = stepped(simulator, 5, 1000.0, 1500.0)[:, 0]
    assert np.all(found[:3] == 1000.0)
    assert found[3] > 1001.0
    with pytest.raises(AirworthyError, match="command_delay"):
        simulator.set_parameter("command_delay", 200.0)


@pytest.mark.slow
def test_the_kernel_compiles_for_a_gpu(tmp_path: Any) -> None:
    wp = quiet_warp()
    wp.compile_aot_module(step_kernel(4, None, False, 16).module, device=None, arch=90, module_dir=tmp_path, use_ptx=True)
    text = "".join(path.read_text() for path in tmp_path.rglob("*.ptx"))
    assert "step_4_late16" in text


def test_what_is_on_its_way_does_not_reach_the_rotors_of_a_flight_that_has_ended() -> None:
    """A flight that was given what is no number keeps its last good state, commands included, while others fly on."""
    simulator = Simulator(late(0.02), config(), 2)
    simulator.reset(position=[0.0, 0.0, 100.0], rotor_speed=np.full((2, 4), 1000.0))
    command = np.full((2, 4), 1000.0)
    for k in range(15):  # every command differs, so that the ring is full of what is to come
        command[:] = 1000.0 + 20.0 * k
        simulator.advance(1, command)
    command[0] = np.nan
    simulator.advance(1, command)
    assert simulator.diverged.tolist() == [True, False]
    kept = {name: np.array(simulator.field(name)[0]) for name in ("rotor_command", "rotor_speed")}
    assert kept["rotor_command"][0] < 1300.0
    before = np.array(simulator.field("rotor_command")[1])
    for _ in range(30):
        simulator.advance(1, np.full((2, 4), 1500.0))
    for name, values in kept.items():
        np.testing.assert_array_equal(simulator.field(name)[0], values, err_msg=name)
    assert np.all(simulator.field("rotor_command")[1] > before)
