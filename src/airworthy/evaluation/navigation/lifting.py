"""From the ground to the start: the part of every flight before its goal is issued, the same for all pilots."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from airworthy.evaluation.navigation.missions import Draws, standing
from airworthy.pilots.planning.interface import Mission
from airworthy.simulation import Simulator, SimulatorConfig
from airworthy.tasks.navigation import NavigationProtocol, SettleWatch, take_off
from airworthy.vehicles import Vehicle

__all__ = ["CONTROL_RATE", "PHYSICS_RATE", "Lifted", "lift", "spoil"]

Array = NDArray[np.float64]
CONTROL_RATE = 100.0
"""Commands per second [Hz]."""
PHYSICS_RATE = 600.0
"""Steps per second [Hz]: whole numbers of them lie between commands, odometry (200 Hz), images (30 or 20 Hz)."""
STATE = ("position", "velocity", "attitude", "rate", "rotor_speed")


@dataclass(frozen=True, eq=False)
class Lifted:
    """Flights at the instant at which their goals are issued."""

    state: dict[str, Array]
    """By name of the simulator's field, (n, k)."""
    time: Array
    """From the ground to there [s], (n,); NaN of those that did not settle."""
    settled: NDArray[np.bool_]
    """(n,)"""


def spoil(simulator: Simulator, draws: Draws) -> None:
    """Set what a flight's perturbations change of its vehicle and of its controller's gains."""
    if (draws.thrust != 1.0).any():
        for name in ("rotor_thrust", "rotor_torque"):
            rows = simulator.parameter(name).reshape(simulator.env_count, -1, 3)
            simulator.set_parameter(name, rows * draws.thrust[:, : rows.shape[1], None])
    if (draws.gains != 1.0).any():
        for k, name in enumerate(("position", "velocity", "attitude", "rate")):
            row = f"control_{name}_gain"
            simulator.set_parameter(row, simulator.parameter(row) * draws.gains[:, k, None])


def lift(
    vehicles: Sequence[Vehicle],
    mission: Mission,
    draws: Draws,
    radius: Array,
    protocol: NavigationProtocol,
    device: str = "cpu",
) -> Lifted:
    """Take every vehicle from the ground to its start and wait until it is calm there.

    Each flight is taken as it is at the tick at which it has settled, so that it does not depend on how long others take.

    Args:
        vehicles: Of the n flights.
        mission: Whose starts are hovered at.
        draws: Of the flights.
        radius: Of the bodies [m], (n,).
        protocol: Thresholds.
        device: Where it is simulated.
    """
    count = len(mission.start)
    config = SimulatorConfig(physics_rate=PHYSICS_RATE, control_rate=CONTROL_RATE, level="tracking")
    simulator = Simulator(list(vehicles), config, count, seed=mission.seed, flight_ids=mission.flight, device=device)
    spoil(simulator, draws)
    position, attitude = standing(mission, draws, radius)
    simulator.reset(position=position, attitude=attitude)
    watch = SettleWatch(mission.start, protocol)
    state = {name: np.array(simulator.field(name), np.float64) for name in STATE}
    taken = np.full(count, np.nan)
    command = np.zeros((count, 14))
    command[:, :3], command[:, 12] = position, draws.yaw
    ticks = int(np.ceil(protocol.settle_limit_s * CONTROL_RATE))
    for _ in range(ticks):
        time = simulator.time
        height, climb, push = take_off(time, position[:, 2], mission.start[:, 2], protocol.climb_speed_m_s)
        command[:, 2], command[:, 5], command[:, 8] = height, climb, push
        simulator.step(command)
        new = watch.update(simulator.time, simulator.position, simulator.velocity) & ~simulator.diverged
        if new.any():
            taken[new] = simulator.time[new]
            for name, kept in state.items():
                kept[new] = simulator.field(name)[new]
        if (watch.settled | simulator.diverged).all():
            break
    return Lifted(state, taken, ~np.isnan(taken))
