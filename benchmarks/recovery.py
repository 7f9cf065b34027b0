"""How many throws of the task `recovery` could be caught at all, and who catches how many: 1,024 throws of seed 7919.

    python benchmarks/recovery.py                            bound, geometric controller, a law that turns first
    python benchmarks/recovery.py --policy runs/recovery     and a policy that was learnt

The bound is no controller: the body turns about the axis of its tilt alone, as fast as its largest torque lets it, whatever
else it spins, and need not stop; all its rotors speed up from hover at once, as fast as they can, and push as soon as they
point above the horizon, as much upwards as they point. That turning takes thrust away is left out. A throw that reaches the
ground even so cannot be caught. The law holds level while it falls, with full thrust while its rotors point above the
horizon, and leans against the velocity that is left then.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np

from airworthy.core.arrays import Array
from airworthy.learning.environments import VectorTask, learning_task
from airworthy.learning.gradient.flyers import GeometricController
from airworthy.learning.task_training.evaluation import TaskProtocol, fly_task, task_figures
from airworthy.pilots import read_task_policy
from airworthy.simulation import Simulator
from airworthy.vehicles import Vehicle, hover_speed, indicators, named_vehicle
from benchmarks import hardware
from benchmarks.tables import hardware_table

LEAN = np.radians(20.0)
"""Largest lean of the law against its velocity."""
FALLING = 1.0
"""Faster downwards it falls [m/s]."""
STEP = 0.002
"""Of the bound's integration [s]."""


class CatchingLaw(GeometricController):
    """Upright first, by attitude and thrust; then slow."""

    name, level = "law that turns first", "attitude_thrust"

    def __init__(self, rate: float, vehicle: Vehicle, strength: float = 2.0):
        super().__init__(rate)
        self._weight, self._full = vehicle.mass * vehicle.gravity, indicators(vehicle).thrust_to_weight
        self._strength = strength / vehicle.gravity

    def command(self, simulator: Simulator, noise: Array | None) -> Array:
        """Return collective thrust [N], roll, pitch [rad], yaw rate [rad/s], (env, 4)."""
        x, y, z, w = np.asarray(simulator.attitude, float).T
        velocity = np.asarray(simulator.velocity, float)
        up = 1.0 - 2.0 * (x * x + y * y)
        yaw = np.arctan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z))
        # Against the velocity, in the heading's frame, as shares of gravity.
        wanted = -self._strength * velocity
        ahead = np.cos(yaw) * wanted[:, 0] + np.sin(yaw) * wanted[:, 1]
        left = np.cos(yaw) * wanted[:, 1] - np.sin(yaw) * wanted[:, 0]
        # Thrust is hardly more than the weight: until the fall has ended none of it is spared for the sides.
        lean = np.where(velocity[:, 2] < -FALLING, 0.0, LEAN)
        pitch, roll = (np.clip(np.arctan(part), -lean, lean) for part in (ahead, -left))
        share = np.clip((1.0 + wanted[:, 2]) / np.maximum(up, 0.3), 0.2, self._full)
        thrust = self._weight * np.where(up > 0.0, share, 0.2)
        return np.stack([thrust, roll, pitch, np.zeros(len(up))], axis=1)


def caught_at_best(task: Any, vehicle: Vehicle, states: Array) -> Array:
    """Return which throws do not reach the ground in the bound, (env,).

    Args:
        task: With the height of the start.
        vehicle: Thrown.
        states: First states, (rows, env).
    """
    able = indicators(vehicle)
    x, y, z, w = states[6:10]
    rows = np.array([2.0 * (x * z - w * y), 2.0 * (y * z + w * x), 1.0 - 2.0 * (x * x + y * y)])
    tilt = np.arccos(np.clip(rows[2], -1.0, 1.0))
    # Body axis about which tilt falls, and how fast it does already.
    axis = np.array([rows[1], -rows[0]]) / np.maximum(np.linalg.norm(rows[:2], axis=0), 1e-9)
    turning = (axis * states[10:12]).sum(axis=0)
    rotor, speed = vehicle.rotors[0], np.full(tilt.shape, float(hover_speed(vehicle)[0]))
    height, climb = np.full(tilt.shape, float(task.height_m)), states[5].copy()
    lowest = height.copy()
    for _ in range(round(3.0 / STEP)):
        # Towards level as fast as it goes, without having to stop there.
        turning += STEP * able.alpha_xy_max
        tilt = np.maximum(tilt - STEP * turning, 0.0)
        turning = np.where(tilt > 0.0, turning, 0.0)
        a, b = rotor.response.rise
        speed += STEP * (a * (rotor.speed_max - speed) + b * (rotor.speed_max**2 - speed**2))
        thrust = rotor.thrust[0] + speed * (rotor.thrust[1] + speed * rotor.thrust[2])
        share = len(vehicle.rotors) * thrust / (vehicle.mass * vehicle.gravity)
        push = share * np.maximum(np.cos(tilt), 0.0)
        climb += STEP * vehicle.gravity * (push - 1.0)
        # Full thrust is not forced on it: once it climbs it is caught.
        climb = np.minimum(climb, np.where(push > 1.0, 0.0, climb))
        height += STEP * climb
        lowest = np.minimum(lowest, height)
    return np.asarray(lowest > 0.0)


def main(argv: list[str] | None = None) -> int:
    """Fly and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--flights", type=int, default=1024)
    parser.add_argument("--policy", type=Path, default=None, help="folder of `airworthy train recovery`")
    asked = parser.parse_args(argv)
    task, protocol = learning_task("recovery"), TaskProtocol(flights=asked.flights)
    vehicle = named_vehicle(task.vehicle)
    starts = VectorTask(task, asked.flights, vehicle, protocol.seed).state.astype(float)
    print(hardware_table(hardware.describe(hardware.use_cores(2))))
    able = indicators(vehicle)
    print(f"{vehicle.name}: thrust {able.thrust_to_weight:.2f} of its weight, turns by up to {able.alpha_xy_max:.0f} rad/s^2")
    print(f"{'bound: kept at most':32} {100.0 * caught_at_best(task, vehicle, starts).mean():5.1f} %")
    flyers: list[Any] = [GeometricController(task.rate), CatchingLaw(task.rate, vehicle)]
    if asked.policy is not None:
        flyers.append(read_task_policy(asked.policy))
    for flyer in flyers:
        found = task_figures(fly_task(task, vehicle, flyer, protocol, asked.flights))
        name = getattr(flyer, "name", "learnt policy")
        print(f"{name:32} kept {found['kept_percent']:5.1f} %   success {found['success_percent']:5.1f} %")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
