"""Airworthy as a side of the comparison: always through the public Python API, command included."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks import body
from benchmarks.sides import LocalSide, Scenario

VEHICLE = "flightgoggles"
NAME = "Airworthy"
FULL_INTEGRATOR = "euler"
"""Of the full step: what FlightGoggles itself flies by default. The bare body always uses RK4."""
IMU_DENSITIES = {
    "accelerometer_noise": (0.005 / body.RATE_HZ) ** 0.5,
    "gyroscope_noise": (0.003 / body.RATE_HZ) ** 0.5,
    "accelerometer_walk": 1e-7**0.5,
    "gyroscope_walk": 1e-7**0.5,
}
"""Of FlightGoggles: variances 0.005 and 0.003 per sample at 960 Hz, bias walks of autocorrelation 1e-7."""


def airworthy_side(
    threads: int, device: str = "cpu", full_integrator: str = FULL_INTEGRATOR, specialized: bool = False
) -> LocalSide:
    """Return the simulator, or a `LocalSide` whose first run raises ImportError where it is missing.

    Args:
        threads: Of the processor.
        device: Warp's name of it.
        full_integrator: Of the full step.
        specialized: Whether its kernel is compiled for the scenario alone.
    """

    def build(scenario: Scenario, env_count: int) -> Callable[[], None]:
        return _stepper(scenario, env_count, threads, device, full_integrator, specialized)

    return LocalSide(f"{NAME}, specialized" if specialized else NAME, build, full=True, device=device)


def _stepper(
    scenario: Scenario, env_count: int, threads: int, device: str, full_integrator: str, specialized: bool = False
) -> Callable[[], None]:
    from airworthy.simulation import Imu, Simulator, SimulatorConfig
    from airworthy.vehicles import vehicle

    clock: dict[str, Any] = {"physics_rate": body.RATE_HZ, "control_rate": body.RATE_HZ / scenario.sub_steps}
    if specialized:
        clock["specialized"] = True
    if scenario.full:
        imu = Imu(**{name: (value,) * 3 for name, value in IMU_DENSITIES.items()})
        level = "rate_thrust:flightgoggles"
        config = SimulatorConfig(**clock, integrator=full_integrator, level=level, imu=imu, gyro_feedback=True)
    else:
        config = SimulatorConfig(**clock, integrator="rk4", level="rotor_speed")
    chosen = vehicle(VEHICLE) if scenario.full else bare(vehicle(VEHICLE))
    simulator = Simulator(chosen, config, env_count=env_count, seed=1, device=device, threads=threads)
    simulator.reset(position=(0.0, 0.0, 10.0))
    command = _command(scenario, env_count)
    if device == "cpu":
        return lambda: simulator.step(command)
    simulator.set_command(command)  # stays on the GPU, as a policy's would; a NumPy array per call would time the bus
    return simulator.step


def bare(vehicle: Any) -> Any:
    """Return the same vehicle as a rigid body with lagging motors only: no drag, no noise, no disturbance, no rotor inertia."""
    from airworthy.vehicles import Disturbance, Drag, WrenchNoise

    rotors = tuple(replace(rotor, inertia=0.0) for rotor in vehicle.rotors)
    return replace(vehicle, rotors=rotors, drag=Drag(), wrench_noise=WrenchNoise(), disturbance=Disturbance(), sensors=())


def _command(scenario: Scenario, env_count: int) -> Any:
    if not scenario.full:
        return np.ascontiguousarray(body.commands(env_count).T, np.float32)
    rates = np.linspace(-0.5, 0.5, env_count)
    thrust = np.full(env_count, 9.81)
    return np.stack([thrust, rates, -rates, 0.2 * rates], axis=1).astype(np.float32)
