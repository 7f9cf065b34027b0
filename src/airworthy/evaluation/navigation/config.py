"""What a user chooses about the navigation benchmark, checked; what its numbers depend on; the command that repeats it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from math import isfinite
from pathlib import Path
from typing import Any, Literal

from airworthy import __version__
from airworthy.core import commands
from airworthy.core.errors import AirworthyError, unknown_name
from airworthy.core.files import json_text, parse_json, sha256
from airworthy.evaluation.navigation.plan import CONFIGURATIONS
from airworthy.pilots.planning.tracking_backends import backend_names
from airworthy.scenes.generators import SCENARIOS
from airworthy.tasks.navigation import NavigationProtocol

__all__ = [
    "SCENARIO_NAMES",
    "NavigationConfig",
    "Perturbation",
    "changed",
    "check",
    "command_line",
    "digest_of",
    "identity_of",
    "quick",
    "scenario_names",
    "vehicle_names_of",
]

FREE = ("out", "report", "quick", "json", "workers", "cluster", "system", "pilots")
"""Fields that no row depends on; pilots are told apart in the identity."""
_UNSAID = ("device", "controller")
"""Fields that came later: where they are at their defaults, folders stay what they were."""
FLEET = tuple([f"real_{k:02d}" for k in range(1, 19)] + [f"virt_{k:02d}" for k in range(1, 19)])
"""The 36 vehicles."""
SCENARIO_NAMES = (*SCENARIOS, "sudden_drop_plus")
"""Of every scenario that can be flown."""
_MOST = {
    "depth_noise": 1.0,
    "depth_dropout": 1.0,
    "latency": 2.0,
    "drift": 10.0,
    "gain_error": 0.9,
    "motor_degradation": 0.9,
    "moving_speed": 20.0,
}


@dataclass(frozen=True)
class Perturbation:
    """What is worse than ideal; every draw is a function of seed and flight."""

    depth_noise: float = 0.0
    """Standard deviation of depth per metre."""
    depth_dropout: float = 0.0
    """Probability that a depth pixel tells nothing."""
    latency: float = 0.0
    """From a depth image's instant until it can be read [s]."""
    drift: float = 0.0
    """Random walk of the estimated position per axis [m/sqrt(s)]."""
    gain_error: float = 0.0
    """Half width of the relative error of each flight's control gains, uniform."""
    motor_degradation: float = 0.0
    """Most thrust that each rotor may have lost, uniform from 0."""
    moving_obstacles: int = 0
    """Pillars that cross the area, per layout."""
    moving_speed: float = 1.0
    """Theirs [m/s]."""

    @property
    def any(self) -> bool:
        """Whether anything is worse than ideal."""
        return self != Perturbation(moving_speed=self.moving_speed)


@dataclass(frozen=True)
class NavigationConfig:
    """Who flies what where, and how it is judged."""

    pilots: tuple[str, ...] = ("straight",)
    """Pilots: straight, ego, fast, pgo (also ego_published, fast_published, pgo_published), navrl, navrl_full_3d, expert, or
    FILE.py:CLASS for one of your own."""
    vehicles: tuple[str, ...] = ("all",)
    """Vehicles of the catalogue; all, real and virtual name the benchmark's 36 and its halves."""
    scenarios: tuple[str, ...] = ("all",)
    """Of forest, urban, random_cylinder, narrow_gap, sudden_drop, maze, perlin; all of these; or sudden_drop_plus."""
    trials: int = CONFIGURATIONS
    """Trials per combination; trial k is flown in configuration k."""
    repeats: int = 1
    """Flights per trial, each with other draws."""
    seed: int = 0
    """Of everything that is drawn; flight k draws the same for every pilot."""
    layouts: int = 0
    """Seed of the configurations: 0 for the benchmark's own, any other for held-out ones."""
    compute: Literal["fixed", "measured", "zero"] = "fixed"
    """When a plan holds: after counted work times recorded constants, after the time that it took, or at once."""
    a_max: Literal["common", "vehicle"] = "common"
    """Limit of acceleration: the protocol's, or the vehicle's where that is less."""
    body: Literal["sphere", "body"] = "sphere"
    """What collides: a sphere of 0.3 m for every vehicle, or one that encloses it."""
    sensing: Literal["fast", "full"] = "fast"
    """Depth images: 320 x 240 at the map's rate and only what mapping reads, or as published."""
    controller: str = "so3"
    """What follows planners: so3 for the benchmark's own, or another of docs/controllers.md (dfbc_indi, nmpc, rate_mpc ...)."""
    device: str = "cpu"
    """Where vehicles are simulated and images rendered: cpu, or a CUDA device such as cuda:0; pilots stay on the processor."""
    protocol: NavigationProtocol = field(default_factory=NavigationProtocol)
    """Limits and thresholds."""
    perturb: Perturbation = field(default_factory=Perturbation)
    """What is worse than ideal."""
    patience: float = 10.0
    """Longest time for one decision of a pilot [s]; beyond it its flight has failed."""
    batch: int = 144
    """Flights at once; those of a batch are kept together when a run is stopped."""
    workers: int = 1
    """Processes."""
    cluster: str = ""
    """Address of a Ray cluster (auto, local, HOST:PORT) that flies instead of this machine; needs the extra cluster."""
    system: Path | None = None
    """TOML file that describes the system under test; it is kept with the results."""
    out: Path = Path("runs/navigation")
    """Folder of the results; a stopped run goes on where it was, and more pilots join."""
    report: bool = True
    """Write report.html."""
    quick: bool = False
    """Four vehicles, one trial: a look in under two minutes."""
    json: bool = False
    """Print JSON, and no progress."""


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
    for name, limit in _MOST.items():
        value = getattr(config.perturb, name)
        if not (isfinite(value) and 0.0 <= value <= limit):
            raise AirworthyError(f"--perturb.{name.replace('_', '-')} is {value}; expected 0 to {limit:g}.")
    if not 0 <= config.perturb.moving_obstacles <= 200:
        raise AirworthyError(f"--perturb.moving-obstacles is {config.perturb.moving_obstacles}; expected 0 to 200.")


def identity_of(config: NavigationConfig) -> dict[str, Any]:
    """Everything but the pilots that rows depend on, as plain data; of `_UNSAID` only what differs from the default."""
    default = NavigationConfig()
    left = (*FREE, *(name for name in _UNSAID if getattr(config, name) == getattr(default, name)))
    chosen = {item.name: getattr(config, item.name) for item in fields(config) if item.name not in left}
    chosen |= {"vehicles": vehicle_names_of(config.vehicles), "scenarios": scenario_names(config.scenarios)}
    plain: dict[str, Any] = parse_json(json_text({"version": __version__, "config": chosen}), "the configuration")
    return plain


def digest_of(identity: Mapping[str, Any]) -> str:
    """SHA-256 of an identity."""
    return sha256(json_text(dict(identity)))


def changed(before: Mapping[str, Any], now: Mapping[str, Any], head: str = "") -> list[str]:
    """What differs between two identities, in a few words each; none where nothing does."""
    words: list[str] = []
    for key in dict.fromkeys([*before, *now]):
        a, b = before.get(key), now.get(key)
        name = key if not head or head == "config" else f"{head}.{key}"
        if isinstance(a, Mapping) and isinstance(b, Mapping):
            words += changed(a, b, name)
        elif a != b:
            words.append(f"{name}: {_short(a)} before, {_short(b)} now")
    return words


def _short(value: Any) -> str:
    text = " ".join(map(str, value)) if isinstance(value, list) else str(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def command_line(config: NavigationConfig) -> str:
    """The exact command that makes the results again."""
    leave = ("json", "quick", "workers", "cluster", "report")
    return commands.command_line("airworthy bench navigation", config, leave_out=leave, short_numbers=True)
