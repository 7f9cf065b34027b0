"""Controllers side by side: a step of a metre, and a straight flight with hard starts and stops.

python tools/compare_controllers.py so3 geometric dfbc dfbc_indi --vehicles virt_05 real_05 real_09
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from airworthy.core.arrays import Array
from airworthy.pilots.pilot import observe
from airworthy.planners.common.interface import Mission, Planner, Setpoints
from airworthy.planners.common.tracking import PlannerPilot
from airworthy.planners.common.tracking_backends import backend_names
from airworthy.planners.straight import StraightFlight
from airworthy.simulation import Simulator, SimulatorConfig
from airworthy.vehicles import vehicle

__all__ = ["Response", "StepPlanner", "line_error", "step_response"]

CONFIG = SimulatorConfig(physics_rate=480.0)
_SETTLED = 0.05


class StepPlanner(StraightFlight):
    """Asks to be a metre ahead, at once."""

    name = "step"

    def setpoints(self, time: Array) -> Setpoints:
        """Return the step at 0.5 s."""
        zero = np.zeros_like(self._mission.start)
        position = self._mission.start + (time >= 0.5)[:, None] * np.array([1.0, 0.0, 0.0])
        return Setpoints(position, zero, zero, np.zeros(len(time)), np.zeros(len(time)))


@dataclass(frozen=True, eq=False)
class Response:
    """To a step of a metre, of n vehicles."""

    overshoot: Array
    """Share of the step, (n,)."""
    settling: Array
    """Until within 5 % for good [s], (n,); NaN: never in the time flown."""


def _flown(planner: Planner, names: Sequence[str], controller: str, seconds: float) -> tuple[Array, Array, float]:
    """Positions and set-points of every control step, (steps, n, 3), and the rate of steps [Hz]."""
    airframe, count = [vehicle(name) for name in names], len(names)
    start, goal = np.tile([0.0, 0.0, 2.0], (count, 1)), np.tile([20.0, 0.0, 2.0], (count, 1))
    box = np.full((count, 3), -100.0), np.full((count, 3), 100.0)
    mission = Mission(start, goal, np.full(count, 4.0), np.full(count, 6.0), *box, np.arange(count))
    pilot = PlannerPilot(planner, mission, airframe, controller=controller)
    simulator = Simulator(airframe, pilot.configured(CONFIG))
    simulator.reset(position=start)
    pilot.attach(simulator)
    rate = simulator.config.control_rate
    path: list[Array] = []
    asked: list[Array] = []
    for _ in range(round(seconds * rate)):
        wanted = planner.setpoints(np.asarray(simulator.time)).position if path else start
        asked.append(wanted)
        path.append(np.array(simulator.position, float))
        simulator.step(pilot.command(observe(simulator, pilot.observes)))
    return np.array(path), np.array(asked), rate


def step_response(names: Sequence[str], controller: str, seconds: float = 5.0) -> Response:
    """Fly a step of a metre at 0.5 s.

    Args:
        names: Vehicles of the catalogue, flown side by side.
        controller: One of `backend_names()`.
        seconds: Length of the flights [s].
    """
    path, _, rate = _flown(StepPlanner(), names, controller, seconds)
    along = path[:, :, 0]
    outside = np.abs(along - 1.0) > _SETTLED
    last = len(outside) - 1 - outside[::-1].argmax(axis=0)
    settled = ~outside[-1]
    return Response(along.max(axis=0) - 1.0, np.where(settled, (last + 1) / rate - 0.5, np.nan))


def line_error(names: Sequence[str], controller: str) -> Array:
    """Root mean square distance to the set-point of a straight flight of 20 m at 4 m/s and 6 m/s^2 [m], (n,)."""
    path, asked, _ = _flown(StraightFlight(), names, controller, 8.0)
    return np.asarray(np.sqrt(((path - asked) ** 2).sum(axis=2).mean(axis=0)))


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description="Controllers side by side: a step of a metre, and a straight flight.")
    parser.add_argument("controllers", nargs="*", default=["so3", "geometric", "dfbc", "dfbc_indi"], help="of backend_names()")
    parser.add_argument("--vehicles", nargs="+", default=["virt_05", "real_05", "real_09"])
    asked = parser.parse_args()
    print("controller   vehicle   overshoot %   settled s   line error m   | of", ", ".join(backend_names()))
    for controller in asked.controllers:
        step, line = step_response(asked.vehicles, controller), line_error(asked.vehicles, controller)
        for k, name in enumerate(asked.vehicles):
            print(f"{controller:12s} {name:9s} {100 * step.overshoot[k]:8.1f} {step.settling[k]:12.2f} {line[k]:12.3f}")


if __name__ == "__main__":
    main()
