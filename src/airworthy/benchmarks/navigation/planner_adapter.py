"""Planners in the benchmark: their maps, the common controller, what they tell of their work."""

from __future__ import annotations

import faulthandler
import json
import signal
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from airworthy.benchmarks.navigation.config import NavigationConfig
from airworthy.benchmarks.navigation.methods import NavigationMethod
from airworthy.benchmarks.navigation.sensing import DEPTH, depth_camera, depth_maps, odometry_of
from airworthy.control.kernel import LEVELS
from airworthy.core.arrays import Array, ArrayBool, ArrayInt
from airworthy.pilots.containment import PilotFailure, contained
from airworthy.pilots.flight_loop import NOT_FINITE, decide
from airworthy.pilots.pilot import observe
from airworthy.planners.common.interface import Mission
from airworthy.scenes import SceneBatch
from airworthy.simulation import MountedSensors, Simulator, SimulatorConfig
from airworthy.vehicles import Vehicle

__all__ = ["PLANNER_LOG", "CallCounts", "PlannerGuide", "Timed", "TooLong", "all_back", "within"]

# ---- Waiting for a user's code, but not for ever ----------------------------------------------------------------------------


class TooLong(Exception):
    """A call took longer than it may."""


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Interrupt the block when it takes too long.

    By the operating system's timer, so that a loop or a sleep ends there, and what is raised names the line that it stood at.
    Code that is compiled and never comes back cannot be interrupted: `_GRACE` later the interpreter writes on standard error
    where every thread stands, the pilot's own line among them. Outside of the main thread, which alone is given signals, the
    time is looked at afterwards.

    Raises:
        TooLong: It took longer.
    """
    message = f"took more than {seconds:g} s"
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "setitimer"):
        begun = time.monotonic()
        yield
        if time.monotonic() - begun > seconds:
            raise TooLong(message)
        return

    def ring(number: int, frame: Any) -> None:
        raise TooLong(message)

    _arm_watchdog(seconds)
    before = signal.signal(signal.SIGALRM, ring)
    # Again and again: the code may catch the first one.
    signal.setitimer(signal.ITIMER_REAL, seconds, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


_GRACE, _FRESH = 5.0, 1.0
"""After the timeout is over and nothing has come back [s]; and how long a watchdog stands before it is renewed [s]: arming one
takes a tenth of a millisecond, more than many a decision."""
_WATCHDOG = {"until": 0.0, "seconds": 0.0}


def _arm_watchdog(seconds: float) -> None:
    """Have the stacks of all threads written to standard error if no call comes back in time."""
    now = time.monotonic()
    if now < _WATCHDOG["until"] and _WATCHDOG["seconds"] == seconds:
        return
    try:
        faulthandler.dump_traceback_later(seconds + _GRACE + _FRESH, file=sys.__stderr__ or sys.stderr)
    except (AttributeError, ValueError, OSError, RuntimeError):  # a standard error that is no file
        return
    _WATCHDOG.update(until=now + _FRESH, seconds=seconds)


def all_back() -> None:
    """Disarm the watchdog: nobody is asked any more."""
    if _WATCHDOG["until"]:
        faulthandler.cancel_dump_traceback_later()
        _WATCHDOG.update(until=0.0, seconds=0.0)


class Timed:
    """An object whose calls are held to a time each; everything else of it shows through.

    Args:
        inner: The object.
        seconds: Longest time of a call.
        waits: What `reset` may take besides, of a program outside that may not be there yet: it says so itself [s].
    """

    _CALLS = ("reset", "update", "adopt", "setpoints", "command")

    def __init__(self, inner: Any, seconds: float, waits: float = 0.0):
        self._inner, self._seconds, self._waits = inner, seconds, waits

    @property
    def inner(self) -> Any:
        """The object itself."""
        return self._inner

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._inner, name)
        if name not in self._CALLS:
            return value

        def call(*arguments: Any) -> Any:
            with within(self._seconds + (self._waits if name == "reset" else 0.0)):
                return value(*arguments)

        return call


# ---- What a flight's row tells of its planning ------------------------------------------------------------------------------

PLANNER_LOG: tuple[str, ...] = (
    "replans",
    "decisions",
    "compute_s",
    "latency_median_s",
    "latency_p95_s",
    "latency_max_s",
    "work",
    "latencies",
)
"""What is told of a flight's planning: successful replans, calls in which work was done, simulated compute in all, of a call
in the median, at the 95th percentile and at most, counted work by kind (JSON), and measured latencies (JSON; "" otherwise)."""

# -----------------------------------------------------------------------------------------------------------------------------


class PlannerGuide:
    """A planner, its maps and the common controller; see `PlannerPilot`."""

    def __init__(
        self,
        method: NavigationMethod,
        mission: Mission,
        vehicles: Sequence[Vehicle],
        config: NavigationConfig,
        stored: Mapping[int, Sequence[float]] | None,
        scenes: SceneBatch | None = None,
    ):
        from airworthy.planners.common.depth_input import ComputeModel
        from airworthy.planners.common.tracking import PlannerPilot
        from airworthy.planners.common.tracking_faults import Alone, made
        from airworthy.planners.mapping import maps_of_scene

        def make() -> Any:
            return Timed(method.make(), config.decision_timeout) if method.own else method.make()

        planner: Any = Alone(make) if method.alone else made(make) if method.own else make()
        settings = planner.settings
        knows = method.privileged and settings is not None
        looks = hasattr(planner, "maps_for")
        self.camera = None if settings is None or (knows and not looks) else depth_camera(config, None if looks else settings)
        maps: Any = None
        if looks:
            maps = planner.maps_for(mission, scenes if knows else None)
        elif knows:
            maps = maps_of_scene(scenes, mission, settings)
        elif settings is not None:
            maps = depth_maps(mission, settings, config)
        times = {int(number): list(values) for number, values in (stored or {}).items()}
        compute = ComputeModel(config.compute, timeout=config.decision_timeout, stored=times)
        self.planner = planner
        odometry, flown = odometry_of(config), list(vehicles)
        self.pilot = PlannerPilot(planner, mission, flown, maps, compute, config.controller, odometry)
        self._measured = config.compute == "measured"
        self._count = len(mission.start)
        self._wall, self._asked = 0.0, 0
        self.spans: list[tuple[float, int]] = []
        self._tries = CallCounts(self._count)

    @property
    def level(self) -> str:
        """Control level of the commands."""
        return self.pilot.level

    @property
    def searching(self) -> ArrayBool:
        """Who has no path and goes on trying, (n,): by the planner's word, a property `searching` (n,), or, of planners that
        say nothing of it, by work that comes to nothing."""
        planner: Any = self.planner
        try:
            report = contained(lambda: np.asarray(planner.searching, np.bool_))
        except PilotFailure:  # none, or none that can be read: a user's planner need not know of it
            return self._tries.searching
        return report if report.shape == (self._count,) else self._tries.searching

    def configured(self, config: SimulatorConfig) -> SimulatorConfig:
        """Return the simulator that the controller needs."""
        return self.pilot.configured(config)

    def attach(self, simulator: Simulator, mounted: MountedSensors | None) -> None:
        """Give the controller its gains and the maps their camera."""
        self.pilot.attach(simulator, mounted, DEPTH)

    def command(self, simulator: Simulator, mounted: MountedSensors | None, active: ArrayBool) -> tuple[Array, list[str]]:
        """See `Guide.command`.

        Args:
            simulator: Of the batch, after the last step.
            mounted: The camera that fills the maps; None: the planner needs none.
            active: Flights that go on, (n,).
        """
        self.pilot.over = ~active
        observation = observe(simulator, self.pilot.observes, mounted)
        found, lost = decide(self.pilot, observation, self._count, LEVELS[self.pilot.level].width(simulator.rotor_count))
        busy = self._tries.update(self.pilot.planner_log.calls, self.pilot.planner_log.replans)
        self._wall += self.pilot.guard.wall
        self._asked += int(active.sum())
        if busy:
            self.spans.append((self.pilot.guard.wall, busy))
        causes = self.pilot.causes
        for flight in np.flatnonzero(lost & active):
            causes[flight] = causes[flight] or NOT_FINITE
        return np.broadcast_to(found, (self._count, found.shape[-1])).astype(np.float64), causes

    def planner_log(self) -> dict[str, list[Any]]:
        """See `PLANNER_LOG`."""
        report = self.pilot.planner_log
        work = [_json({kind: float(units[k]) for kind, units in sorted(report.work.items())}) for k in range(self._count)]
        kept = [_json(times) if self._measured else "" for times in report.latencies]
        at = {q: [float(np.quantile(times, q)) if times else 0.0 for times in report.latencies] for q in (0.5, 0.95)}
        columns = ([int(v) for v in report.replans], [int(v) for v in report.calls], [float(v) for v in report.compute])
        return dict(
            zip(PLANNER_LOG, (*columns, at[0.5], at[0.95], [float(v) for v in report.longest], work, kept), strict=True)
        )

    def close(self) -> None:
        """See `Guide.close`; a planner is of this process."""

    def seconds(self) -> dict[str, float]:
        """See `Guide.seconds`; "thinking" is of the ticks in which somebody worked."""
        report = {"planning": self._wall, "asked": float(self._asked)}
        return {**report, "thinking": sum(s for s, _ in self.spans), "calls": float(sum(n for _, n in self.spans))}


class CallCounts:
    """Which planners work and work and find no path: for flights (n,), from what they tell of each call."""

    LEAST, RECENT = 10, 200
    """Calls with work since the last plan that succeeded, and ticks within which the last of them lies."""

    def __init__(self, count: int):
        self._calls, self._replans = np.zeros(count, np.int64), np.zeros(count, np.int64)
        self._vain, self._idle = np.zeros(count, np.int64), np.zeros(count, np.int64)

    def update(self, calls: ArrayInt, replans: ArrayInt) -> int:
        """Take in the counts after a tick; how many flights have worked in it."""
        busy = calls > self._calls
        self._vain = np.where(replans > self._replans, 0, self._vain + busy)
        self._idle = np.where(busy, 0, self._idle + 1)
        self._calls, self._replans = calls.copy(), replans.copy()
        return int(busy.sum())

    @property
    def searching(self) -> ArrayBool:
        """(n,)"""
        return (self._vain >= self.LEAST) & (self._idle < self.RECENT)


def _json(value: Any) -> str:
    """On one line; floats read back as they were."""
    return json.dumps(value, separators=(",", ":"))
