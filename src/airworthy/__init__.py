"""Airworthy: is this drone fit to fly there?

The rooms (`airworthy.core`, `airworthy.vehicles`, ...) load on first use, so that `import airworthy` stays light.
"""

from __future__ import annotations

import importlib
from types import ModuleType

__version__ = "0.1.0"

ROOMS = (
    "core",
    "geometry",
    "vehicles",
    "scenes",
    "dynamics",
    "control",
    "trajectories",
    "sensors",
    "tasks",
    "simulation",
    "pilots",
    "evaluation",
    "learning",
    "capture",
    "bridges",
    "viewer",
    "cli",
)
"""Every room, ground floor first: a room imports only from rooms listed before it."""

__all__ = ["ROOMS", "__version__"]


def __getattr__(name: str) -> ModuleType:
    if name in ROOMS:
        try:
            return importlib.import_module(f"{__name__}.{name}")
        except ModuleNotFoundError as error:
            if error.name != f"{__name__}.{name}":
                raise
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
