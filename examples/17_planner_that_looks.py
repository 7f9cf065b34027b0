"""A planner of one's own: straight flight that looks at its map view, and waits before what stands on the line.

It flies round nothing: in this forest it halts before the first tree until the time is over. Expect one timeout_no_path.
The same from the command line: airworthy bench navigation --pilots examples/17_planner_that_looks.py:Halting --vehicles real_09
"""

from dataclasses import replace

import numpy as np

from airworthy.benchmarks import NavigationConfig, run_benchmark
from airworthy.planners import MapSettings, Mission, Setpoints, StraightFlight
from airworthy.tasks import NavigationProtocol


class Halting(StraightFlight):
    """One object per flight; arrays have one row per flight."""

    name, settings = "halting", MapSettings(inflation=0.3)

    def reset(self, mission: Mission) -> None:
        super().reset(replace(mission, acceleration=np.minimum(mission.acceleration, 0.5 * mission.vehicle.acceleration)))
        self.ahead, self.clock, self.pace, self.last = mission.goal - mission.start, np.zeros(1), 1.0, 0.0

    def update(self, motion, maps, active) -> dict:
        view = maps.view(0)  # unknown, free, occupied and inflated cells, with place and stamp
        line = view.index(motion.position + np.linspace(0.0, 0.07, 31)[:, None] * self.ahead)
        blocked = view.inflated[tuple(np.clip(line, 0, np.subtract(view.shape, 1)).T)].any()  # the next 3 m of the line
        self.pace = np.clip(self.pace + (-0.02 if blocked else 0.01), 0.0, 1.0)  # asked 100 times a second
        self.clock, self.last = self.clock + self.pace * (motion.time[0] - self.last), motion.time[0]
        return super().update(motion, maps, active)

    def setpoints(self, time: np.ndarray) -> Setpoints:
        return replace(found := super().setpoints(self.clock), velocity=self.pace * found.velocity)


if __name__ == "__main__":
    run = {"trials": 1, "out": "runs/17_planner_that_looks", "report": False, "protocol": NavigationProtocol(time_limit_s=12)}
    print(run_benchmark(NavigationConfig((f"{__file__}:Halting",), ("real_09",), ("forest",), **run)).summary["outcomes"])
