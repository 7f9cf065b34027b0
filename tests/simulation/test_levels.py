"""Every control level flies: it holds, it goes where it is told, for airframes of every kind (aerial_gym check 3)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from airworthy.control.kernel import LEVELS
from airworthy.control.levels import ControlConfig
from airworthy.core.frames import from_euler, to_euler
from airworthy.simulation.config import SimulatorConfig
from airworthy.simulation.simulator import Simulator
from airworthy.vehicles import hover_speed, rotor_thrust, vehicle
from airworthy.vehicles.record import Disturbance, Drag, Vehicle, WrenchNoise

NAMES = ["base_quadrotor", "lmf2", "base_octarotor", "flightgoggles", "cf2x_L250", "carl", "real_07"]
START = np.array([1.0, -2.0, 3.0])
YAW = 0.4


def quiet(name: str) -> Vehicle:
    return replace(vehicle(name), wrench_noise=WrenchNoise(), disturbance=Disturbance())


def holding(item: Vehicle, level: str, width: int) -> np.ndarray:
    """The command that asks a vehicle to stay where it is."""
    weight = item.mass * item.gravity
    command = np.zeros(width)
    if level == "rotor_speed":
        command[: item.rotor_count] = hover_speed(item)
    elif level == "rotor_thrust":
        command[: item.rotor_count] = [rotor_thrust(r, s) for r, s in zip(item.rotors, hover_speed(item), strict=True)]
    elif level == "wrench":
        command[2] = weight
    elif level.startswith(("rate_thrust", "attitude_thrust")):
        command[0] = weight
    elif level.startswith(("position", "pose", "tracking")):
        command[:3] = START
        if level == "pose":
            command[3:] = from_euler(0.0, 0.0, YAW)
        else:
            command[3 if level == "position" else 12] = YAW
    elif level == "velocity_steering":
        command[3] = YAW
    return command


@pytest.mark.parametrize("level", LEVELS)
def test_holds_position_for_ten_seconds(level: str) -> None:
    """Within 1 cm. Levels below position have no position to come back to: they hold because nothing pushes them away."""
    names = [n for n in NAMES if n == "cf2x_L250"] if level == "tracking:crazyflie" else NAMES
    items = [quiet(name) for name in names]
    # Without the voltage chain, which maps commands of the real firmware and keeps an offset of its own.
    config = SimulatorConfig(level=level, control=ControlConfig(voltage_chain=False))
    simulator = Simulator(items, config)
    width = LEVELS[level].width(simulator.rotor_count)
    simulator.reset(position=START, attitude=from_euler(0.0, 0.0, YAW))
    simulator.advance(9600, np.array([holding(item, level, width) for item in items]))
    drift = np.linalg.norm(simulator.position - START, axis=1)
    # The firmware's feed-forward is a fixed command, not the vehicle's mass; its slow integral takes longer than 10 s.
    limit = 0.04 if level == "tracking:crazyflie" else 0.01
    for k, name in enumerate(names):
        assert drift[k] < limit, (name, drift[k])
    assert to_euler(simulator.attitude)[:, 2] == pytest.approx(np.full(len(items), YAW), abs=0.02)
    assert not simulator.diverged.any()


STEADY = ["base_quadrotor", "lmf2", "base_octarotor", "flightgoggles", "cf2x_L250", "carl", "real_07"]


def flown(level: str, command: list[float], seconds: float) -> Simulator:
    """Without drag, which laws without integral action cannot make up for."""
    items = [replace(quiet(name), drag=Drag()) for name in STEADY]
    simulator = Simulator(items, SimulatorConfig(level=level))
    simulator.reset(position=START, attitude=from_euler(0.0, 0.0, YAW))
    simulator.advance(int(960 * seconds), command)
    assert not simulator.diverged.any()
    return simulator


@pytest.mark.parametrize("level", ["position", "tracking", "tracking:mellinger"])
def test_goes_where_it_is_told(level: str) -> None:
    goal = START + np.array([1.0, 0.5, -0.5])
    command = [*goal, 1.0] if level == "position" else [*goal, *[0.0] * 9, 1.0, 0.0]
    simulator = flown(level, command, 15.0)
    assert simulator.position == pytest.approx(np.tile(goal, (len(STEADY), 1)), abs=0.03)
    assert to_euler(simulator.attitude)[:, 2] == pytest.approx(np.full(len(STEADY), 1.0), abs=0.05)


@pytest.mark.parametrize("level", ["velocity", "velocity_steering"])
def test_reaches_a_velocity_in_the_vehicle_frame(level: str) -> None:
    """Forward means along the vehicle's own heading."""
    simulator = flown(level, [0.5, 0.0, 0.2, 0.0 if level == "velocity" else YAW], 12.0)
    expected = np.array([0.5 * np.cos(YAW), 0.5 * np.sin(YAW), 0.2])
    assert simulator.velocity == pytest.approx(np.tile(expected, (len(STEADY), 1)), abs=0.01)


def test_turns_at_a_rate() -> None:
    simulator = flown("velocity", [0.0, 0.0, 0.0, 0.3], 8.0)
    assert simulator.rate[:, 2] == pytest.approx(np.full(len(STEADY), 0.3), abs=0.03)


def test_reaches_an_attitude() -> None:
    items = [quiet(name) for name in STEADY]
    simulator = Simulator(items, SimulatorConfig(level="attitude_thrust"))
    simulator.reset(attitude=from_euler(0.0, 0.0, YAW))
    thrust = np.array([item.mass * item.gravity for item in items])
    simulator.advance(3000, np.c_[thrust, np.full(len(items), 0.15), np.full(len(items), -0.1), np.zeros(len(items))])
    roll, pitch, yaw = to_euler(simulator.attitude).T
    # Aerodynamic moments and rotor drag leave up to a hundredth.
    assert roll == pytest.approx(np.full(len(items), 0.15), abs=0.02)
    assert pitch == pytest.approx(np.full(len(items), -0.1), abs=0.02)
    assert yaw == pytest.approx(np.full(len(items), YAW), abs=0.05)


def test_reaches_body_rates() -> None:
    items = [quiet(name) for name in STEADY]
    simulator = Simulator(items, SimulatorConfig(level="rate_thrust"))
    thrust = np.array([item.mass * item.gravity for item in items])
    simulator.advance(480, np.c_[thrust, np.full(len(items), 0.3), np.full(len(items), -0.2), np.full(len(items), 0.2)])
    # Yaw is slow where reaction torque is all there is.
    assert simulator.rate[:, :2] == pytest.approx(np.tile([0.3, -0.2], (len(items), 1)), abs=0.05)


def test_accelerates_in_the_vehicle_frame() -> None:
    simulator = flown("acceleration", [1.0, 0.0, 0.5, 0.0], 2.0)
    before = simulator.velocity.copy()
    simulator.advance(480)
    gained = (simulator.velocity - before) / 0.5
    heading = gained[:, 0] * np.cos(YAW) + gained[:, 1] * np.sin(YAW)
    assert heading == pytest.approx(np.full(len(STEADY), 1.0), abs=0.05)
    assert gained[:, 2] == pytest.approx(np.full(len(STEADY), 0.5), abs=0.05)


def test_wrench_moves_as_newton_says() -> None:
    """A wrench within the rotors' reach: m a = F + weight, J dw/dt = M, after the rotors have followed."""
    items = [quiet(name) for name in ("base_quadrotor", "lmf2", "flightgoggles")]
    simulator = Simulator(items, SimulatorConfig(level="wrench"))
    command = np.array([[0, 0, 1.2 * item.mass * item.gravity, 1e-3 * item.mass, 0, 0] for item in items])
    simulator.advance(300, command)
    before = simulator.rate.copy()
    simulator.advance(48)
    gained = (simulator.rate - before)[:, 0] / 0.05
    expected = np.array([1e-3 * item.mass / item.inertia[0] for item in items])
    assert gained == pytest.approx(expected, rel=0.05, abs=0.02)
    up = simulator.field("acceleration")[:, 2]
    assert up == pytest.approx([1.2 * item.gravity for item in items], rel=0.02)


def test_octarotor_tracks_a_pose_in_six_dimensions() -> None:
    """A fully actuated airframe goes to a tilted attitude and stays there while holding position."""
    item = quiet("base_octarotor")
    simulator = Simulator(item, SimulatorConfig(level="pose"))
    goal, attitude = START + np.array([0.5, -0.5, 0.3]), from_euler(0.5, -0.3, 0.2)
    simulator.reset(position=START)
    simulator.advance(9600, [*goal, *attitude])
    assert simulator.position[0] == pytest.approx(goal, abs=0.01)
    assert abs(np.dot(simulator.attitude[0], attitude)) == pytest.approx(1.0, abs=1e-4)


def test_controllers_believe_what_they_are_told() -> None:
    """A controller that takes the vehicle for 20 % lighter sags by what its position loop allows; a right one does not."""
    item = quiet("flightgoggles")
    light = replace(item, mass=0.8 * item.mass)
    simulator = Simulator([item, item], SimulatorConfig(level="position"), believed=[item, light])
    simulator.reset(position=START)
    simulator.advance(9600, [*START, 0.0])
    sag = START[2] - simulator.position[:, 2]
    assert abs(sag[0]) < 1e-3
    gain = float(simulator.parameter("control_position_gain")[1, 2])
    assert sag[1] == pytest.approx(0.2 * item.gravity / (0.8 * gain), rel=0.02)
