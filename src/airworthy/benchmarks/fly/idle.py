"""Options of `airworthy fly` that change nothing beside the others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from airworthy.core.errors import AirworthyError
from airworthy.core.idle_options import IdleRule

if TYPE_CHECKING:
    from airworthy.benchmarks.fly.config import FlyConfig
    from airworthy.vehicles import Vehicle

__all__ = ["FILM", "FLY_RULES", "PLANNER_RULES", "check_spread"]

FILM = ("video_camera", "video_env", "video_size", "video_rate")
"""Options that only a film reads."""


def _semi_kinematic(config: FlyConfig) -> bool:
    return config.dynamics == "semi_kinematic"


def _below_controller(config: FlyConfig, plans: bool) -> bool:
    from airworthy.planners.common.tracking_backends import DEFAULT_BACKEND, backend

    return plans and config.control_rate < backend(DEFAULT_BACKEND).rate


FLY_RULES = (
    IdleRule(
        ("units", "up", "recentre", "keep_frame", "voxel"),
        lambda config: config.scene is None,
        "without a file of a scene",
        "name a --scene",
    ),
    IdleRule(("contact",), lambda config: config.scene is None, "without something to meet", "name a --scene"),
    IdleRule(FILM, lambda config: "video" not in config.record, "without a film", "add --record video"),
    IdleRule(
        ("record_rate",),
        lambda config: config.record_rate > config.control_rate,
        "beyond --control-rate, since a row is written at most at each set-point",
        "raise that",
    ),
    IdleRule(
        ("rotors",),
        lambda config: not any(name.lower().endswith(".urdf") for name in config.vehicle),
        "for a vehicle that is no URDF, whose record says what its rotors do",
        "name one with --vehicle FILE.urdf",
    ),
    IdleRule(
        ("imu", "ground", "wind", "turbulence", "integrator"),
        _semi_kinematic,
        "in semi-kinematic dynamics, a point mass that is turned at will",
        "fly --dynamics rigid",
    ),
)
"""Of every run."""

PLANNER_RULES = (
    IdleRule(
        ("start", "goal"),
        lambda config, plans: not plans,
        "for a pilot that follows a course, and has neither start nor goal",
        "give --waypoints, or name a planner with --pilot",
    ),
    IdleRule(
        ("time_limit",),
        lambda config, plans: not plans,
        "for a pilot that follows a course, whose end is the flight's",
        "name a planner with --pilot",
    ),
    IdleRule(
        ("course", "laps", "slower"),
        lambda config, plans: plans,
        "for a planner, which finds its own way from start to goal",
        "give --start and --goal",
    ),
    IdleRule(
        ("hold",),
        lambda config, plans: plans,
        "for a planner, whose flight ends at rest at the goal or after --time-limit",
    ),
    IdleRule(
        ("control_rate",),
        _below_controller,
        "for a planner below the rate of its controller, 100 Hz",
        "raise it",
    ),
    IdleRule(
        ("start", "goal"),
        lambda config, plans: plans and bool(config.waypoints),
        "beside --waypoints, which are start and goal already",
    ),
)
"""Of who flies: conditions are also told whether it is a planner."""

# ---- Spreads ----------------------------------------------------------------------------------------------------------------

_RIGID = ("inertia", "rotor", "drag", "lag", "wind")
"""Spreads that only the rigid family draws."""


def _dragless(item: Vehicle) -> bool:
    names = ("linear", "quadratic_norm", "quadratic_axis", "rotor_speed", "angular_linear", "angular_norm", "angular_axis")
    return not any(any(getattr(item.drag, name)) for name in names) and not any(any(r.hub_drag) for r in item.rotors)


_AT_ONCE = 0.99e4
"""Rates of rotors without lag, which records write as a time constant of 0.1 ms (`RotorResponse.first_order`) [1/s]."""


def _lagless(item: Vehicle) -> bool:
    return all(a >= _AT_ONCE for rotor in item.rotors for a, _ in (rotor.response.rise, rotor.response.fall))


_LACKING: dict[str, tuple[Callable[[Vehicle], bool], str]] = {
    "drag": (_dragless, "drag"),
    "lag": (_lagless, "rotor lag"),
}


def check_spread(config: FlyConfig, vehicles: Sequence[Vehicle]) -> None:
    """Refuse a spread of what the dynamics, or none of the vehicles, have; the mild mix of "default" may hold it.

    Raises:
        AirworthyError: One sentence.
    """
    settings = {part.partition("=")[0]: part for text in config.randomize for part in text.split()}
    for name, setting in settings.items():
        if _semi_kinematic(config) and name in _RIGID:
            raise AirworthyError(
                f"--randomize {setting} changes nothing in semi-kinematic dynamics, which have no {name}: leave it out, or fly"
                " --dynamics rigid."
            )
        if name in _LACKING and all(_LACKING[name][0](item) for item in vehicles):
            names = ", ".join(dict.fromkeys(item.name for item in vehicles))
            raise AirworthyError(
                f"--randomize {setting} changes nothing, since {names} has no {_LACKING[name][1]}: leave it out, or fly another"
                " vehicle."
            )
