"""A pilot of one's own in the navigation benchmark: it looks for room through the depth camera, and is scored as any other.

The same from the command line: airworthy bench navigation --pilots straight examples/15_own_navigation_pilot.py:Roomy
"""

import numpy as np

from airworthy.benchmarks import NavigationConfig, run_benchmark
from airworthy.pilots import Observation
from airworthy.planners import Mission

BEARING = np.arctan((160.5 - np.arange(320)) / 193.6)  # of the image's columns, to the left [rad]


class Roomy:
    """Turns to the free direction that is nearest to the goal's; one object per flight."""

    name, level = "roomy", "velocity_steering"  # commands: velocity [m/s] in the drone's heading, and yaw [rad]
    observes = ("position", "attitude", "sensor:depth")

    def reset(self, mission: Mission) -> None:
        self.goal = mission.goal[0]

    def command(self, observation: Observation) -> np.ndarray:
        x, y, z, w = observation["attitude"][0]
        yaw, away = np.arctan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z)), self.goal - observation["position"][0]
        wanted = (np.arctan2(away[1], away[0]) - yaw + np.pi) % (2 * np.pi) - np.pi
        depth = observation.sample("depth")["depth"][0, 95:135]  # 0: nothing within 5 m
        room = np.pad(np.where(depth > 0, depth, 5.0).min(axis=0), 45, mode="edge")
        room = np.lib.stride_tricks.sliding_window_view(room, 91).min(axis=1)
        best = np.argmin(np.abs(BEARING - wanted) + 0.7 * np.maximum(4.0 - room, 0.0))
        speed, turn = min(np.clip(0.8 * (room[best] - 0.8), 0.0, 2.0), np.hypot(*away[:2])), BEARING[best]
        return np.array([[speed * np.cos(turn), speed * np.sin(turn), away[2], yaw + np.clip(turn, -0.6, 0.6)]])


if __name__ == "__main__":
    pilots, out = ("straight", f"{__file__}:Roomy"), "runs/15_own_navigation_pilot"
    for rate in run_benchmark(NavigationConfig(pilots, ("virt_05",), ("forest",), trials=4, out=out)).summary["scenarios"]:
        print(f"{rate['pilot']}: {rate['successes']} of {rate['flights']} flights through the forest")
