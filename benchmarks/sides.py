"""The sides of a comparison: one interface for our simulator, our hand-written yardsticks and the published simulators."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import warp as wp

from benchmarks import body, primitives
from benchmarks.body_lanes import BodyLanes
from benchmarks.body_warp import BodyWarp

SPLIT_FROM = 32_768
"""Environments from which our yardsticks use a second thread: handing work over costs about 0.3 ms."""


@dataclass(frozen=True)
class Scenario:
    """What is simulated."""

    key: str
    title: str
    sub_steps: int = body.SUB_STEPS
    full: bool = False
    """Rate loop, stochastic wrench, drag and IMU noise besides the body."""


BARE = Scenario("bare", "bare body: rigid body + 4 motors, RK4, 10 sub-steps, constant rotor commands")
FULL = Scenario("full", "full step: FlightGoggles vehicle, 10 sub-steps, rate loop, stochastic wrench, IMU noise", full=True)
MOTOR_LEVEL = Scenario("motor_level", "bare body, one RK4 sub-step per env-step", sub_steps=1)


class Side(Protocol):
    """One participant. `run` with 0 seconds only builds and warms up."""

    name: str
    tool: str
    """Variants of one simulator share it; the best of them represents it."""

    def offers(self, scenario: Scenario, env_count: int) -> bool:
        """Whether this side takes part."""
        ...

    def run(self, scenario: Scenario, env_count: int, seconds: float) -> float:
        """Env-steps per second, measured for about `seconds`."""
        ...

    def close(self) -> None:
        """Free everything held."""
        ...


Build = Callable[[Scenario, int], Callable[[], None]]


class LocalSide:
    """A side in this process: `build(scenario, env_count)` returns a function that advances all by one env-step."""

    def __init__(self, name: str, build: Build, full: bool = False, device: str = "cpu"):
        self.name = self.tool = name
        self._build, self._full, self._device = build, full, device
        self._built: dict[tuple[str, int], Callable[[], None]] = {}

    def offers(self, scenario: Scenario, env_count: int) -> bool:
        return self._full or not scenario.full

    def run(self, scenario: Scenario, env_count: int, seconds: float) -> float:
        step = self._built.get((scenario.key, env_count))
        if step is None:
            step = self._built[scenario.key, env_count] = self._build(scenario, env_count)
            step()
            self._wait()
        return env_count * self._rate(step, seconds)

    def close(self) -> None:
        self._built.clear()

    def _rate(self, step: Callable[[], None], seconds: float) -> float:
        """Return steps per second; on a GPU the queue is drained every 16 launches, so that it cannot run far ahead."""
        chunk = 1 if self._device == "cpu" else 16
        count, start, elapsed = 0, time.perf_counter(), 0.0
        while elapsed < seconds:
            for _ in range(chunk):
                step()
            self._wait()
            count += chunk
            elapsed = time.perf_counter() - start
        return count / elapsed if count else 0.0

    def _wait(self) -> None:
        if self._device != "cpu":
            wp.synchronize_device(self._device)


def warp_side(threads: int, device: str = "cpu") -> LocalSide:
    """Ordinary Warp kernel, one environment per thread."""

    def build(scenario: Scenario, env_count: int) -> Callable[[], None]:
        return BodyWarp(env_count, threads if env_count >= SPLIT_FROM else 1, device, scenario.sub_steps).step

    return LocalSide("plain Warp kernel", build, device=device)


def lanes_side(threads: int) -> LocalSide:
    """Hand-written 16-lane vectors."""

    def build(scenario: Scenario, env_count: int) -> Callable[[], None]:
        return BodyLanes(env_count, "rk4", threads if env_count >= SPLIT_FROM else 1).step

    return LocalSide("hand-written lanes", build)


class CeilingSide:
    """The machine's multiply-add peak over the operations of the bare body: no program can pass it."""

    name = tool = "multiply-add ceiling"

    def __init__(self, threads: int):
        self._threads = threads

    def offers(self, scenario: Scenario, env_count: int) -> bool:
        return scenario.key == BARE.key

    def run(self, scenario: Scenario, env_count: int, seconds: float) -> float:
        return primitives.flops_per_second(self._threads, seconds) / body.flops_per_env_step("rk4")

    def close(self) -> None:
        """Nothing is held."""
