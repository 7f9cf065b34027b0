"""A pilot of one's own: any object that says what it observes and answers with a command.

This one chases a point that runs ahead of it along the path. It sees positions and nothing else: reading what it does not
declare is an error, and whatever it does wrong is a result of its flights (`pilot_error`, `diverged`), never a crash.
Writes runs/05_own_pilot.
"""

from pathlib import Path

import numpy as np

from airworthy.benchmarks import FlyConfig, run_fly
from airworthy.pilots import Observation
from airworthy.trajectories import course


class Chaser:
    """Asks to be at the point of the path 0.7 m ahead of the nearest one."""

    name = "chaser"
    level = "position"  # commands: x, y, z [m] and yaw [rad]
    observes = ("position",)  # privileged: no sensor gives it

    def __init__(self, path: np.ndarray, yaw: float) -> None:
        self.path, self.yaw = path, yaw  # the path has a point per centimetre, (points, 3)

    def command(self, observation: Observation) -> np.ndarray:
        away = np.linalg.norm(observation["position"][:, None] - self.path, axis=2)  # (env, points)
        ahead = self.path[np.minimum(np.argmin(away, axis=1) + 70, len(self.path) - 1)]
        return np.concatenate([ahead, np.full((len(ahead), 1), self.yaw)], axis=1)


trajectory = course("straight_8").trajectory()
points = trajectory.sample(np.linspace(0.0, trajectory.duration, round(100 * trajectory.length())))
config = FlyConfig(course="straight_8", envs=16, randomize=("default",), hold=3.0, out=Path("runs/05_own_pilot"))
result = run_fly(config, pilot=Chaser(points.position, points.yaw[0]))
print({name: count for name, count in result.summary["aggregate"]["outcomes"].items() if count})
