"""What a user chose, checked, and words turned into names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import isfinite
from typing import Any

from airworthy.core.errors import AirworthyError, unknown_name
from airworthy.evaluation.navigation.config import NavigationConfig
from airworthy.evaluation.navigation.plan import CONFIGURATIONS, FLEET, SCENARIO_NAMES
from airworthy.pilots.planning.tracking_backends import backend_names
from airworthy.scenes.generators import SCENARIOS

__all__ = ["check", "quick", "scenario_names", "vehicle_names_of"]

_MOST = {
    "depth_noise": 1.0,
    "depth_dropout": 1.0,
    "latency": 2.0,
    "drift": 10.0,
    "gain_error": 0.9,
    "motor_degradation": 0.9,
    "moving_speed": 20.0,
}


def quick(config: NavigationConfig) -> NavigationConfig:
    """The same with `quick` done: what the user named stays, what was left at its default becomes small."""
    if not config.quick:
        return config
    small: dict[str, Any] = {"vehicles": ("real_01", "real_09", "virt_05", "virt_16"), "trials": 1}
    default = NavigationConfig()
    return replace(config, **{name: value for name, value in small.items() if getattr(config, name) == getattr(default, name)})


def vehicle_names_of(words: Sequence[str]) -> list[str]:
    """Names of vehicles from the words of the command line, each once, in order.

    Raises:
        UnknownNameError: No such vehicle.
    """
    from airworthy.vehicles import vehicle_names

    groups = {"all": FLEET, "real": FLEET[:18], "virtual": FLEET[18:]}
    found = list(dict.fromkeys(name for word in words for name in groups.get(word, (word,))))
    known = vehicle_names()
    for name in found:
        if name not in known:
            raise unknown_name("vehicle", name, [*groups, *known], "'airworthy vehicles' lists them.")
    return found


def scenario_names(words: Sequence[str]) -> list[str]:
    """Names of scenarios from the words of the command line, each once, in order; raises UnknownNameError."""
    found = list(dict.fromkeys(name for word in words for name in (SCENARIOS if word == "all" else (word,))))
    for name in found:
        if name not in SCENARIO_NAMES:
            raise unknown_name("scenario", name, ["all", *SCENARIO_NAMES])
    return found


def check(config: NavigationConfig) -> None:
    """Refuse what cannot be done.

    Raises:
        AirworthyError: One sentence.
    """
    for name in ("pilots", "vehicles", "scenarios"):
        if not getattr(config, name):
            raise AirworthyError(f"The benchmark needs at least one of --{name}.")
    if len(set(config.pilots)) != len(config.pilots):
        raise AirworthyError(f"The same pilot was named twice: {', '.join(config.pilots)}.")
    vehicle_names_of(config.vehicles)
    scenario_names(config.scenarios)
    choices = {"compute": ("fixed", "measured", "zero"), "a_max": ("common", "vehicle"), "body": ("sphere", "body")}
    for name, known in {**choices, "sensing": ("fast", "full")}.items():
        if getattr(config, name) not in known:
            raise unknown_name(f"choice of --{name.replace('_', '-')}", str(getattr(config, name)), known)
    for name, most in (("trials", CONFIGURATIONS), ("repeats", 1000), ("batch", 10_000), ("workers", 1024)):
        if not 1 <= getattr(config, name) <= most:
            raise AirworthyError(f"--{name} is {getattr(config, name)}; expected 1 to {most:,}.")
    if config.controller not in backend_names():
        raise unknown_name("controller", config.controller, backend_names())
    for name in ("seed", "layouts"):
        if not 0 <= getattr(config, name) < 2**63:
            raise AirworthyError(f"--{name} is {getattr(config, name)}; expected 0 to 2^63 - 1.")
    if not (isfinite(config.patience) and config.patience > 0.0):
        raise AirworthyError(f"--patience is {config.patience} s; expected a finite number above 0.")
    if not (isfinite(config.warm_up) and config.warm_up >= 0.0):
        raise AirworthyError(f"--warm-up is {config.warm_up} s; expected a finite number, or 0 for none.")
    for name, limit in _MOST.items():
        value = getattr(config.perturb, name)
        if not (isfinite(value) and 0.0 <= value <= limit):
            raise AirworthyError(f"--perturb.{name.replace('_', '-')} is {value}; expected 0 to {limit:g}.")
    if not 0 <= config.perturb.moving_obstacles <= 200:
        raise AirworthyError(f"--perturb.moving-obstacles is {config.perturb.moving_obstacles}; expected 0 to 200.")
