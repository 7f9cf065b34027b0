"""Different vehicles in one batch: each flies to the bytes that it flies to alone.

Kernels specialise for what a batch needs (rotor axes, thrust polynomials, drag) and are built for 4, 6 or 8 rotors; none of it
may show. Fields whose width is the padded number of rotors are compared over the vehicle's own rotors.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from airworthy.control.kernel import LEVELS
from airworthy.simulation.config import Ground, Imu, SimulatorConfig, Wind
from airworthy.simulation.simulator import Simulator
from airworthy.vehicles import hover_speed, vehicle, vehicle_names
from airworthy.vehicles.record import Disturbance, Drag, Vehicle, WrenchNoise

IMU = Imu((0.01,) * 3, (0.002,) * 3, (0.001,) * 3, (0.0002,) * 3)


def bare(name: str) -> Vehicle:
    return replace(vehicle(name), wrench_noise=WrenchNoise(), disturbance=Disturbance(), drag=Drag())


def hexarotor(tilt: float = 0.0) -> Vehicle:
    base = vehicle("flightgoggles")
    rotors = []
    for k in range(6):
        axis = np.array([tilt * np.sin(2 * k), tilt * np.cos(2 * k), 1.0])
        place = (0.2 * np.cos(k * np.pi / 3), 0.2 * np.sin(k * np.pi / 3), 0.0)
        spin: Any = 1 if k % 2 else -1
        rotors.append(replace(base.rotors[0], position=place, axis=tuple(axis / np.linalg.norm(axis)), spin=spin))
    return replace(base, name="hexa", mass=1.5, rotors=tuple(rotors))


KINDS = {
    "bare, square, planar": bare("flightgoggles"),
    "drag by norm, noise": vehicle("flightgoggles"),
    "drag by axis and rotor speed, polynomial": vehicle("rotorpy_crazyflie"),
    "polynomial, linear drag": vehicle("cf2x_P250"),
    "products of inertia": vehicle("tinyprop"),
    "thrust domain": vehicle("carl"),
    "disturbed": vehicle("lmf2"),
    "large": vehicle("real_17"),
}
WIDER = {"hexa": hexarotor(), "tilted hexa": hexarotor(0.2)}
WIDEST = {"reversible, tilted octa": vehicle("base_octarotor"), "centre of mass": vehicle("base_random")}


def fly(items: list[Vehicle], ids: list[int], level: str, **config: Any) -> Simulator:
    """Half a second, or less where a vehicle would be lost, with commands that depend on the flight id alone."""
    simulator = Simulator(items, SimulatorConfig(level=level, **config), seed=2, flight_ids=ids)
    simulator.reset(position=(0.0, 0.0, 0.5), velocity=(0.3, -0.2, 0.1), rate=(0.2, 0.1, -0.3))
    width = LEVELS[level].width(simulator.rotor_count)
    command = np.zeros((len(items), width))
    for k, (item, flight) in enumerate(zip(items, ids, strict=True)):
        rng = np.random.default_rng(flight)
        if level == "rotor_speed":
            command[k, : item.rotor_count] = hover_speed(item) * rng.uniform(0.95, 1.05, item.rotor_count)
        elif level == "rotor_thrust":
            command[k, : item.rotor_count] = item.mass * 9.81 / item.rotor_count * rng.uniform(0.9, 1.1, item.rotor_count)
        elif level.startswith(("rate_thrust", "attitude_thrust")):
            command[k] = [item.mass * 9.9, *rng.uniform(-0.2, 0.2, 3)]
        elif level == "wrench":
            command[k] = [0.0, 0.0, item.mass * 9.9, 0.0, 1e-4, 0.0]
        else:
            command[k, : min(width, 3)] = rng.uniform(-0.5, 0.5, min(width, 3)) + np.array([0, 0, 0.5])
            command[k, 6:7] = 1.0 if level == "pose" else 0.0
    for _ in range(24):
        simulator.step(command)
    return simulator


def assert_alone(batch: dict[str, Vehicle], level: str, **config: Any) -> None:
    items = list(batch.values())
    together = fly(items, list(range(len(items))), level, **config)
    for k, (name, item) in enumerate(batch.items()):
        alone = fly([item], [k], level, **config)
        for field in alone.layout.fields:
            a, b = np.array(alone.field(field))[0], np.array(together.field(field))[k]
            if field in ("rotor_speed", "rotor_command"):
                a, b = a[: item.rotor_count], b[: item.rotor_count]
            assert a.tobytes() == b.tobytes(), (name, field, a, b)


@pytest.mark.parametrize("level", sorted(set(LEVELS) - {"tracking:crazyflie"}))
def test_every_level(level: str) -> None:
    """Quadrotors of every kind together, then each alone."""
    assert_alone(KINDS, level, imu=IMU, wind=Wind(mean=(1.0, 0.0, 0.0)), ground=Ground())


@pytest.mark.parametrize("level", ["rotor_speed", "position", "wrench", "rate_thrust:flightgoggles", "tracking:mellinger"])
def test_beside_more_rotors(level: str) -> None:
    """A quadrotor in a batch whose kernel is built for eight rotors."""
    assert_alone({**KINDS, **WIDER, **WIDEST}, level, imu=IMU, wind=Wind(turbulence=(0.5, 0.5, 0.5)))
    assert_alone({**KINDS, **WIDER}, level, ground=Ground())


@pytest.mark.parametrize("integrator", ["euler", "semi_implicit", "rk4"])
@pytest.mark.parametrize("options", [{}, {"exact_rotors": True}, {"ground_effect": 11.0}])
def test_integrators_and_options(integrator: Any, options: dict[str, Any]) -> None:
    batch = {name: item for name, item in KINDS.items() if item.name != "cf2x_P250"}
    assert_alone({**batch, **WIDEST}, "rotor_speed", integrator=integrator, **options)


def test_the_whole_catalogue() -> None:
    """Every vehicle there is, in one batch, at rest and level at first: no zero may change its sign."""
    items = [vehicle(name) for name in vehicle_names()]

    def start(chosen: list[Vehicle], ids: list[int]) -> Simulator:
        simulator = Simulator(chosen, SimulatorConfig(imu=IMU), seed=2, flight_ids=ids)
        simulator.advance(3, np.zeros(simulator.rotor_count))
        return simulator

    together = start(items, list(range(len(items))))
    for k, item in enumerate(items):
        alone = start([item], [k])
        for field in ("position", "velocity", "attitude", "rate", "acceleration", "imu"):
            assert alone.field(field)[0].tobytes() == together.field(field)[k].tobytes(), (item.name, field)
