"""The floor under the full step: the cost of its parts, each measured alone at its best, added up.

Parts: 18 normal numbers per sub-step (6 of the wrench, 12 of the IMU), the bare body, and the remaining arithmetic (rate loop,
allocation, drag, IMU) at the multiply-add peak. A step that reaches it would hide every load, store, spill and switch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from benchmarks import body, lanes, primitives
from benchmarks.body_lanes import BodyLanes
from benchmarks.sides import FULL, SPLIT_FROM, Scenario

NORMALS_PER_SUB_STEP = 18
ENV_COUNT = 65_536


@dataclass(frozen=True)
class Floor:
    """Nanoseconds per env-step of each part, all threads together."""

    normals: float
    body: float
    rest: float

    @property
    def env_steps_per_second(self) -> float:
        """The floor as a rate."""
        return 1e9 / (self.normals + self.body + self.rest)


def measure(bare: BodyLanes, threads: int, seconds: float) -> Floor:
    """Measure the parts, `seconds` in all, and add them up; `bare` is a batch of `ENV_COUNT` bodies."""
    part = seconds / 3.0
    normals = primitives.draws_per_second("normals", threads, part)
    peak = primitives.flops_per_second(threads, part)
    return Floor(
        normals=1e9 * body.SUB_STEPS * NORMALS_PER_SUB_STEP / normals,
        body=1e9 / (ENV_COUNT * lanes.rate(bare.step, part)),
        rest=1e9 * rest_flops_per_env_step() / peak,
    )


class FloorSide:
    """The floor as a side of the full contest, so that it is measured in the same rounds."""

    name = tool = "floor of its parts"

    def __init__(self, threads: int, integrator: str):
        self._threads, self._integrator = threads, integrator
        self._bare: BodyLanes | None = None
        self.floors: list[Floor] = []

    def offers(self, scenario: Scenario, env_count: int) -> bool:
        return scenario.key == FULL.key and env_count >= SPLIT_FROM  # it is the floor of a large batch

    def run(self, scenario: Scenario, env_count: int, seconds: float) -> float:
        self._bare = self._bare or BodyLanes(ENV_COUNT, self._integrator, self._threads)
        found = measure(self._bare, self._threads, seconds)
        if seconds > 0:
            self.floors.append(found)
        return found.env_steps_per_second

    def close(self) -> None:
        self._bare = None


def rest_flops_per_env_step() -> int:
    """Operations of rate loop, allocation, drag, aerodynamic moment, noise and IMU, once per sub-step."""
    tally = [0]
    n = body.Counted(tally)
    for part in (_rate_loop, _allocation, _drag, _noise, _imu):
        part(n)
    return body.SUB_STEPS * tally[0]


def _rate_loop(n: Any) -> None:
    """Per axis: exact second-order filter (two states, one input) and PID on its output."""
    for _ in range(3):
        n * n + n * n + n * n  # filtered rate
        n * n + n * n + n * n  # filtered angular acceleration
        error = n - n
        n + error * n  # integral
        n * error + n * n - n * n  # PID


def _allocation(n: Any) -> None:
    """J a, then four squared speeds, their roots, two limits each."""
    [n * n for _ in range(3)]
    for _ in range(4):
        ((n * n + n * n) + (n * n + n * n)) ** 0.5
        n + n  # stands for the two limits


def _drag(n: Any) -> None:
    """C |v| v, and |W| C W."""
    for _ in range(2):
        length = ((n * n + n * n) + n * n) ** 0.5
        [n * length * n for _ in range(3)]


def _noise(n: Any) -> None:
    """Wrench: scale and add 6; IMU: scale and add 6 of noise and 6 of bias walk."""
    for _ in range(18):
        n * n + n


def _imu(n: Any) -> None:
    """Specific force: world forces over mass turned into the body; biases added."""
    for _ in range(3):
        n * n + n * n + n * n
        n * n + n
        n + n
