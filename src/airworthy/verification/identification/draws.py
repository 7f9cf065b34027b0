"""Vehicles drawn from an identification: the simulator's flights have the moments of the distribution (11.8)."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from airworthy.core.arrays import Array
from airworthy.simulation import Randomization, Simulator, SimulatorConfig
from airworthy.vehicles import Vehicle, check
from airworthy.vehicles.identification.result import hover_command
from airworthy.vehicles.record import UNCERTAIN, Uncertainty
from airworthy.vehicles.uncertainty import with_values
from airworthy.verification.published import Figure, below, within, zero

DRAWS = 40_000
"""Flights: of 66 correlations of 10,000 the worst is 0.03 off by chance alone."""
SHARE = 0.03


def told_by(vehicle: Vehicle) -> Uncertainty:
    """Return a vehicle's uncertainty, which it has."""
    assert vehicle.uncertainty is not None
    return vehicle.uncertainty


def flown_values(vehicle: Vehicle, count: int, seed: int) -> dict[str, Array]:
    """Return the uncertain values of flights, read back from the simulator's parameters, on their scales, (count,) each.

    Args:
        vehicle: With its uncertainty.
        count: Flights.
        seed: Of them.
    """
    config = SimulatorConfig(level="rotor_speed", physics_rate=1000.0, randomization=Randomization(posterior=True))
    simulator, state = Simulator(vehicle, config, count, seed=seed), told_by(vehicle).state
    get = simulator.parameter
    c0, c1, c2 = get("rotor_thrust")[:, :3].T
    xx, yy, zz = get("inertia")[:, :3].T
    a, b = get("rotor_rise")[:, :2].T
    whole = c1 * state + c2 * state * abs(state)
    place = get("rotor_position")[:, :2] - np.array(vehicle.rotors[0].position[:2])
    torque = get("rotor_torque")[:, :3] * vehicle.rotors[0].spin
    twist = torque[:, 0] + torque[:, 1] * state + torque[:, 2] * state * abs(state)
    late = get("command_delay") / 1000.0 if "command_delay" in simulator._param_layout else np.zeros(count)
    return {
        "mass": np.log(get("mass")),
        "thrust": np.log(whole + c0),
        "thrust_linear": c1 * state / whole,
        "torque_ratio": np.log(twist / (whole + c0)),
        "lag": -np.log(a + 2.0 * b * abs(state)),
        "command_delay": late,
        "inertia_xx": np.log(xx),
        "inertia_yy": np.log(yy),
        "inertia_zz_ratio": np.log(2.0 * zz / (xx + yy)),
        "center_x": -place[:, 0],
        "center_y": -place[:, 1],
        "damping": np.log(np.maximum(get("angular_linear")[:, 0] / xx, 1e-30)),
    }


def hover_deviation(vehicle: Vehicle) -> float:
    """Return the standard deviation of hover's command that a distribution tells, by its slope along each value."""
    told, slopes = told_by(vehicle), []
    for name, mean, sd in zip(told.names, told.mean, told.sd, strict=True):
        ends = [mean + side * 1e-2 * sd for side in (-1.0, 1.0)]
        plain = [math.exp(x) if UNCERTAIN[name] == "log" else x for x in ends]
        low, high = (hover_command(with_values(vehicle, {name: x}, told.state)) for x in plain)
        slopes.append((high - low) / 2e-2)
    scaled = np.array(slopes)
    return math.sqrt(float(scaled @ np.array(told.correlation) @ scaled))


def hover_commands(vehicle: Vehicle, values: dict[str, Array], count: int) -> Array:
    """Return the command of hover of the first flights, (count,)."""
    told = told_by(vehicle)
    rows = [
        {n: math.exp(values[n][k]) if UNCERTAIN[n] == "log" else float(values[n][k]) for n in told.names} for k in range(count)
    ]
    return np.array([hover_command(with_values(vehicle, row, told.state)) for row in rows])


def draw_figures(vehicle: Vehicle, everything: bool) -> Iterator[Figure]:
    """Measure draws of an identified vehicle.

    Args:
        vehicle: With its uncertainty.
        everything: 10,000 records are drawn and checked; else 500.
    """
    told, values = told_by(vehicle), flown_values(vehicle, DRAWS, 0)
    table = np.array([values[name] for name in told.names])
    ratio = table.std(axis=1) / np.array(told.sd)
    worst = int(np.abs(ratio - 1.0).argmax())
    yield below(f"{DRAWS:,} flights: deviation over its own, worst ({told.names[worst]})", abs(ratio[worst] - 1.0), SHARE)
    apart = float(np.abs(np.corrcoef(table) - np.array(told.correlation)).max())
    yield below(f"{DRAWS:,} flights: worst of their correlations against its own", apart, SHARE)
    commands = hover_commands(vehicle, values, 10_000)
    title = "10,000 flights: deviation of hover's command over the distribution's"
    yield within(title, float(commands.std()) / hover_deviation(vehicle), 1.0, SHARE)
    count = 10_000 if everything else 500
    drawn = vehicle.draw(count, 0)
    yield zero(f"of {count:,} drawn records those that cannot fly", sum(not _flies(item) for item in drawn.vehicles))


def _flies(item: Vehicle) -> bool:
    return check(item) is item and math.isfinite(hover_command(item))
