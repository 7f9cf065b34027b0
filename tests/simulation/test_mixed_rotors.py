"""Vehicles of different numbers of rotors in one batch: columns of rotors that a vehicle lacks are not read.

The kernel is built for the widest vehicle, so commands, starts, parameters and records carry columns that belong to no rotor of
the narrower ones. Whatever stands there, a flight is the one that the vehicle flies alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from airworthy.control.kernel import LEVELS
from airworthy.core.errors import AirworthyError
from airworthy.core.frames import yaw_of
from airworthy.dynamics.state import ROTOR_COUNTS, padded_rotor_count
from airworthy.evaluation.metrics import evaluate_tracking
from airworthy.pilots.flight_loop import FlightPlan, fly
from airworthy.pilots.trackers import tracker
from airworthy.simulation.config import Downwash, Imu, Randomization, SimulatorConfig, Wind
from airworthy.simulation.simulator import Simulator
from airworthy.simulation.twin import Twin
from airworthy.tasks.tracking import TrackingReference
from airworthy.trajectories import Limits, from_waypoints
from airworthy.vehicles import hover_speed, import_urdf, read_vehicle, vehicle, write_vehicle
from airworthy.vehicles.record import Battery, Drag, Rotor, Vehicle

BATTERY = Battery(50.4, 42.0, 46.0, 3.6e4, 1e-3)
DRAG = Drag(linear=(0.1, 0.1, 0.1), rotor_speed=(2e-5, 2e-5, 2e-5))


def ring(count: int, name: str = "") -> Vehicle:
    """A vehicle with this many rotors on a circle, of which neighbours turn against each other; drag grows with all speeds."""
    base = vehicle("flightgoggles")
    angles = 2.0 * np.pi * (np.arange(count) + 0.5) / count
    rotors: list[Rotor] = [
        replace(base.rotors[0], position=(0.3 * np.cos(a), 0.3 * np.sin(a), 0.0), spin=1 if k % 2 else -1)
        for k, a in enumerate(angles)
    ]
    mass = 0.25 * count
    inertia = (0.003 * count, 0.0035 * count, 0.006 * count, 0.0, 0.0, 0.0)
    return replace(
        base, name=name or f"ring_{count}", mass=mass, inertia=inertia, rotors=tuple(rotors), drag=DRAG, battery=BATTERY
    )


FLEET = [ring(4), ring(6), ring(8), ring(12), ring(16)]
CONFIG: dict[str, Any] = {
    "battery": True,
    "imu": Imu((0.01,) * 3, (0.002,) * 3),
    "wind": Wind(mean=(1.0, 0.0, 0.0), turbulence=(0.3, 0.3, 0.3)),
}


def commands(fleet: list[Vehicle], level: str, filler: float) -> np.ndarray:
    """Commands (env, widest) near hover, with a filler where a vehicle has no rotor."""
    out = np.full((len(fleet), max(item.rotor_count for item in fleet)), filler)
    for k, item in enumerate(fleet):
        near = np.random.default_rng(k).uniform(0.97, 1.03, item.rotor_count)
        rotor = item.rotors[0]
        state = hover_speed(item) * near
        out[k, : item.rotor_count] = state if level == "rotor_speed" else rotor.thrust[2] * state**2
    return out


def flown(fleet: list[Vehicle], ids: list[int], command: np.ndarray, level: str, steps: int = 12) -> Simulator:
    simulator = Simulator(fleet, SimulatorConfig(level=level, **CONFIG), seed=4, flight_ids=ids)
    simulator.reset(velocity=(1.0, 0.5, 0.0), rate=(0.1, 0.2, -0.1))
    for _ in range(steps):
        simulator.step(command)
    return simulator


@pytest.mark.parametrize("filler", [np.nan, np.inf, -1e9, 1e9, 0.0])
@pytest.mark.parametrize("level", ["rotor_speed", "rotor_thrust"])
def test_fillers_of_commands(level: str, filler: float) -> None:
    """Alone or beside vehicles with up to 16 rotors, whatever fills the columns: the same bytes, nothing lost or saturated."""
    command = commands(FLEET, level, filler)
    together = flown(FLEET, list(range(len(FLEET))), command, level)
    assert not together.diverged.any()
    assert not together.field("saturated").any()
    for k, item in enumerate(FLEET):
        n = item.rotor_count
        alone = flown([item], [k], command[k : k + 1, :n], level)
        for field in alone.layout.fields:
            a, b = np.array(alone.field(field))[0], np.array(together.field(field))[k]
            if field in ("rotor_speed", "rotor_command"):
                assert not b[n:].any(), (item.name, field)
                a, b = a[:n], b[:n]
            assert a.tobytes() == b.tobytes(), (item.name, field)


@pytest.mark.parametrize("filler", [np.nan, 1e9])
def test_fillers_after_a_delay_and_in_the_twin(filler: float) -> None:
    fleet = FLEET[:3]
    simulator = Simulator(fleet, SimulatorConfig(level="rotor_speed", **CONFIG), seed=4)
    twin = Twin(simulator)
    command = commands(fleet, "rotor_speed", filler)
    simulator.set_command(command, delay_steps=3)
    simulator.advance(2)
    simulator.advance(5)
    assert not simulator.diverged.any()
    assert not simulator.field("saturated").any()
    twin.advance(7, command)
    assert np.isfinite(twin.field("position")).all()


def test_a_missing_number_for_a_rotor_that_is_there_still_ends_the_flight() -> None:
    command = commands(FLEET, "rotor_speed", np.nan)
    command[2, 7] = np.nan
    simulator = flown(FLEET, list(range(len(FLEET))), command, "rotor_speed", 2)
    assert simulator.diverged.tolist() == [False, False, True, False, False]


def test_saturation_of_rotors_that_are_there_is_told() -> None:
    command = commands(FLEET, "rotor_speed", 0.0)
    command[1, 5] = 1e4
    simulator = flown(FLEET, list(range(len(FLEET))), command, "rotor_speed", 2)
    assert (simulator.field("saturated") > 0).tolist() == [False, True, False, False, False]


@pytest.mark.parametrize("filler", [np.nan, 1500.0])
def test_fillers_of_starts(filler: float) -> None:
    """Rotor speeds of a reset: those of missing rotors are not read, so they add neither drag nor current."""
    fleet = FLEET[:3]
    simulator = Simulator(fleet, SimulatorConfig(**CONFIG), seed=4)
    speed = commands(fleet, "rotor_speed", filler)
    simulator.reset(rotor_speed=speed, velocity=(3.0, 0.0, 0.0))
    assert not np.array(simulator.field("rotor_speed"))[0, 4:].any()
    simulator.advance(1)
    alone = Simulator(fleet[0], SimulatorConfig(**CONFIG), seed=4, env_count=1)
    alone.reset(rotor_speed=speed[0, :4], velocity=(3.0, 0.0, 0.0))
    alone.advance(1)
    for field in ("velocity", "battery_charge", "imu"):
        assert np.array(alone.field(field))[0].tobytes() == np.array(simulator.field(field))[0].tobytes()
    speed[1, 2] = np.nan
    with pytest.raises(AirworthyError, match="not finite"):
        simulator.reset(rotor_speed=speed)


def test_parameters_of_missing_rotors_stay() -> None:
    fleet = [ring(4), ring(8)]
    simulator = Simulator(fleet, SimulatorConfig(level="position"))
    before = simulator.parameter("rotor_max")
    simulator.set_parameter("rotor_max", 0.9 * before[1])
    assert simulator.parameter("rotor_max")[0].tolist() == [0.9 * before[1, 0]] * 4 + [0.0] * 4
    thrust = simulator.parameter("rotor_thrust").reshape(2, 8, 3)
    filled = thrust.copy()
    filled[0, 4:] = np.nan
    simulator.set_parameter("rotor_thrust", filled)
    assert np.array_equal(simulator.parameter("rotor_thrust").reshape(2, 8, 3), thrust)
    filled[1, 4:] = np.nan
    with pytest.raises(AirworthyError, match="'rotor_thrust' got nan"):
        simulator.set_parameter("rotor_thrust", filled)
    inverse = simulator.parameter("control_inverse").reshape(2, 8, 6)
    filled = inverse.copy()
    filled[0, 4:] = np.nan
    simulator.set_parameter("control_inverse", filled)
    simulator.step([0.0, 0.0, 1.0, 0.0])
    assert not simulator.diverged.any()


def test_records_tell_missing_rotors_from_still_ones() -> None:
    """A quadrotor's effort is that of its own four rotors, also beside one with sixteen."""

    course = from_waypoints(np.array([[0.0, 0.0, 1.0], [0.5, 0.0, 1.0]]), Limits(speed=2.0, acceleration=3.0))

    def flights(fleet: list[Vehicle]) -> Any:
        simulator = Simulator(fleet, SimulatorConfig(level="tracking"), seed=1, flight_ids=list(range(len(fleet))))
        simulator.reset(position=(0.0, 0.0, 1.0))
        return fly(simulator, tracker("geometric", course), FlightPlan(duration=0.3)).table

    together, alone = flights([ring(4), ring(16)]), flights([ring(4)])
    speeds = together.flight(0).rotors("rotor_command")
    assert np.isnan(speeds[:, 4:]).all()
    assert np.array_equal(speeds[:, :4], alone.flight(0).rotors("rotor_command"))
    assert np.isfinite(together.flight(1).rotors("rotor_command")).all()
    reference = TrackingReference.from_trajectory(course)
    efforts = [evaluate_tracking(t, reference)[0].command_mean_square_rad2_s2 for t in (together, alone)]
    assert efforts[0] == efforts[1] > 1e5


def test_downwash_among_different_vehicles() -> None:
    """Who blows at whom does not depend on how many columns a batch has."""
    config = SimulatorConfig(downwash=Downwash(), level="rotor_speed")

    def sink(fleet: list[Vehicle], filler: float) -> bytes:
        simulator = Simulator(fleet, config, groups=[0] * len(fleet), flight_ids=list(range(len(fleet))))
        simulator.reset(position=[[0.0, 0.0, float(k)] for k in range(len(fleet))])
        for _ in range(5):
            simulator.step(commands(fleet, "rotor_speed", filler))
        return np.array(simulator.velocity)[:2].tobytes()

    assert sink([ring(4), ring(8)], np.nan) == sink([ring(4), ring(8)], 0.0)


# ---- more than eight rotors --------------------------------------------------------------------------------------------------


def test_padded_sizes() -> None:
    assert ROTOR_COUNTS == (4, 6, 8, 12, 16)
    assert [padded_rotor_count(n) for n in (9, 12, 13, 16)] == [12, 12, 16, 16]
    with pytest.raises(AirworthyError, match="17 rotors; at most 16"):
        padded_rotor_count(17)


@pytest.mark.parametrize("level", sorted(set(LEVELS) - {"tracking:crazyflie", "pose"}))
def test_sixteen_rotors_fly_every_level_as_their_twin(level: str) -> None:
    """A hexadecarotor holds or follows what it is told, within float32 of the float64 twin."""
    item = ring(16)
    simulator = Simulator(item, SimulatorConfig(level=level, wrench_noise=False), seed=3)
    simulator.reset(position=(0.0, 0.0, 1.0))
    twin = Twin(simulator)
    width = LEVELS[level].width(16)
    weight = item.mass * item.gravity
    command = np.zeros(width)
    if level in ("rotor_speed", "rotor_thrust"):
        command[:] = commands([item], level, 0.0)[0]
    elif level == "wrench":
        command[2], command[3] = weight, 0.05
    elif level.startswith(("rate_thrust", "attitude_thrust")):
        command[:] = [weight, 0.1, -0.1, 0.2]
    else:
        command[:3] = (0.3, -0.2, 1.2) if level.startswith(("position", "tracking")) else (0.1, -0.1, 0.1)
    simulator.advance(48, command)
    twin.advance(48, command)
    assert not simulator.diverged.any()
    assert simulator.field("saturated")[0] == 0.0
    for name, size in (("position", 1.0), ("velocity", 1.0), ("attitude", 1.0), ("rate", 1.0), ("rotor_speed", 1000.0)):
        assert np.abs(simulator.field(name) - twin.field(name)).max() < 2e-5 * size, name


def test_sixteen_rotors_are_randomised_one_by_one() -> None:
    """Factors of rotors 9 to 16 are drawn apart from those of drag, lag and wind."""
    spread = Randomization(rotor=0.1, drag=0.3, lag=0.3, wind=1.0)
    simulator = Simulator(ring(16), SimulatorConfig(randomization=spread), env_count=4096, seed=3)
    rotor = simulator.parameter("rotor_thrust").reshape(4096, 16, 3)[:, :, 2]
    others = [simulator.parameter("drag_linear")[:, 0], 1.0 / simulator.parameter("rotor_rise").reshape(4096, 16, 2)[:, 0, 0]]
    others += list(simulator.parameter("wind")[:, :2].T)
    every = np.corrcoef(np.array([*rotor.T, *others]))
    assert np.abs(every - np.eye(len(every))).max() < 5.0 / np.sqrt(4096)


def from_toml(folder: Path) -> Vehicle:
    write_vehicle(ring(16), folder / "hexadeca.toml")
    return read_vehicle(folder / "hexadeca.toml")


def from_urdf(folder: Path) -> Vehicle:
    """Sixteen rotors on a ring of links, each turned about z as it stands; the TOML names them and what they do."""
    item = ring(16)
    xx, yy, zz, *_ = item.inertia
    links, joints, rows = [], [], []
    for k, rotor in enumerate(item.rotors):
        x, y, z = rotor.position
        links.append(f'<link name="r{k}"/>')
        joints.append(
            f'<joint name="j{k}" type="fixed"><parent link="base"/><child link="r{k}"/>'
            f'<origin xyz="{x} {y} {z}" rpy="0 0 {0.1 * k}"/></joint>'
        )
        rows.append(f'[[rotors]]\nlink = "r{k}"\nspin = {rotor.spin}\n')
    inertia = f'<inertia ixx="{xx}" ixy="0" ixz="0" iyy="{yy}" iyz="0" izz="{zz}"/>'
    base = f'<link name="base"><inertial><mass value="{item.mass}"/>{inertia}</inertial></link>'
    (folder / "hexadeca.urdf").write_text(f'<robot name="hexadeca">{base}{"".join(links)}{"".join(joints)}</robot>')
    shared = (
        "thrust = [0, 0, 1.91e-6]\ntorque = [0, 0, 2.6e-7]\nresponse = { rise = [50, 0], fall = [50, 0] }\nspeed_max = 2200\n"
    )
    (folder / "hexadeca.toml").write_text(f'version = 1\nname = "hexadeca"\n[rotor]\n{shared}{"".join(rows)}')
    return import_urdf(folder / "hexadeca.urdf", folder / "hexadeca.toml")


@pytest.mark.parametrize("make", [from_toml, from_urdf])
def test_hexadecarotor_from_a_file_reaches_its_goal(make: Callable[[Path], Vehicle], tmp_path: Path) -> None:
    item = make(tmp_path)
    assert item.rotor_count == 16
    simulator = Simulator(item, SimulatorConfig(level="position"), seed=3)
    simulator.set_command([1.0, -0.5, 0.5, 0.4])
    for _ in range(500):
        simulator.step()
    assert simulator.position[0] == pytest.approx([1.0, -0.5, 0.5], abs=0.02)
    assert yaw_of(simulator.attitude[0]) == pytest.approx(0.4, abs=0.02)
