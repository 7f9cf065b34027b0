"""Airworthy: is this drone fit to fly there?

    import airworthy as aw

    aw.fly("rotorpy_crazyflie", course="infinity", envs=16).show()

The calls, and the rooms behind them (`airworthy.core`, `airworthy.vehicles`, ...), load on first use: `import airworthy` stays
light. docs/howto/python.md has five short scripts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from airworthy.core.faces import lazy_names

__version__ = "0.1.0"

ROOMS = (
    "core",
    "logs",
    "geometry",
    "vehicles",
    "scenes",
    "dynamics",
    "control",
    "trajectories",
    "optics",
    "splats",
    "rendering",
    "sensors",
    "tasks",
    "simulation",
    "pilots",
    "planners",
    "bridges",
    "evaluation",
    "reports",
    "benchmarks",
    "learning",
    "gates",
    "race",
    "capture",
    "viewer",
    "verification",
    "cli",
)
"""Every room, ground floor first: a room imports only from rooms listed before it."""

if TYPE_CHECKING:
    from airworthy import bench as bench
    from airworthy.api import evaluate, fly, plan, render, synthesize, task, train, validate, vehicle
    from airworthy.core.errors import AirworthyError
    from airworthy.logs import read_log
    from airworthy.scenes import scene
    from airworthy.simulation import Simulator
    from airworthy.trajectories import course
else:
    __getattr__, __dir__ = lazy_names(__name__, modules=ROOMS)

__all__ = [
    "ROOMS",
    "AirworthyError",
    "Simulator",
    "__version__",
    "bench",
    "course",
    "evaluate",
    "fly",
    "plan",
    "read_log",
    "render",
    "scene",
    "synthesize",
    "task",
    "train",
    "validate",
    "vehicle",
]  # fmt: skip
