"""What a user chooses about the navigation benchmark.

Options of `airworthy bench navigation` that change nothing beside the others.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import isfinite
from pathlib import Path
from typing import Annotated, Any, Literal

from airworthy.core.errors import AirworthyError, unknown_name
from airworthy.core.idle_options import IdleRule, without_idle
from airworthy.core.schema import SEED, check_fields
from airworthy.planners.common.tracking_backends import backend_names
from airworthy.scenes.generators import SCENARIOS
from airworthy.simulation.config import Randomization
from airworthy.tasks.navigation import NavigationProtocol

__all__ = [
    "CLASSIC",
    "CONFIGURATIONS",
    "FLEET",
    "NAVIGATION_RULES",
    "SCENARIO_NAMES",
    "Flight",
    "FlightBlock",
    "NavigationConfig",
    "Perturbation",
    "asked_flights",
    "blocks_of",
    "check",
    "file_name",
    "flights_of",
    "quick",
    "scenario_names",
    "vehicle_names_of",
]


_BLIND = ("straight", "expert", "oracle")
"""Built-in pilots without a camera: two know the scene, one needs to know nothing."""


def _only_own(config: NavigationConfig) -> bool:
    """Tell whether only places of the user's own are flown in."""

    return bool(config.scenes) and config.scenarios in ((), NavigationConfig().scenarios)


def _nothing_hard(config: NavigationConfig) -> bool:

    return not config.scenes and set(scenario_names(config.scenarios)) <= set(CLASSIC)


def _all_named(config: NavigationConfig) -> bool:

    return quick(config) == config


def _untimed(config: NavigationConfig) -> bool:
    from airworthy.benchmarks.navigation.methods import BUILT_IN_PILOTS

    return config.compute != "measured" and set(config.pilots) <= set(BUILT_IN_PILOTS)


NAVIGATION_RULES = (
    IdleRule(("pairs", "least_distance"), lambda c: not c.scenes, "without --scenes, in which pairs are drawn", "name some"),
    IdleRule(
        ("unknown",),
        lambda c: not c.scenes,
        "without --scenes, of which captured places alone hold unknown space",
        "name the folder of one",
    ),
    IdleRule(
        ("trials", "configurations"),
        _only_own,
        "in --scenes alone, whose flights are counted by --pairs",
        "give that, or name --scenarios",
    ),
    IdleRule(("trials",), lambda c: bool(c.configurations), "beside --configurations, which says itself what is flown"),
    IdleRule(
        ("hard_repeats",),
        _nothing_hard,
        "where only forest, urban and random_cylinder are flown, none of which is hard",
        "give --repeats",
    ),
    IdleRule(
        ("perturb.moving_speed",),
        lambda c: c.perturb.moving_obstacles == 0,
        "without --perturb.moving-obstacles, whose speed it is",
        "give some",
    ),
    IdleRule(
        ("perturb.moving_obstacles",),
        _only_own,
        "in --scenes alone, whose actors are their own",
        "name --scenarios besides",
    ),
    IdleRule(
        ("sensing", "perturb.depth_noise", "perturb.depth_dropout", "perturb.latency"),
        lambda c: set(c.pilots) <= set(_BLIND),
        "for straight, expert and oracle, which have no camera",
        "name another of --pilots",
    ),
    IdleRule(
        ("compute",),
        lambda c: set(c.pilots) <= {"straight"},
        "for straight, which plans nothing",
        "name another of --pilots",
    ),
    IdleRule(
        ("warm_up",),
        _untimed,
        "where no pilot is timed",
        "name one of your own, FILE.py:CLASS, or --compute measured",
    ),
    IdleRule(
        ("protocol.above_m",),
        lambda c: c.protocol.ceiling_is_solid,
        "with --protocol.ceiling-is-solid, under which nothing flies above the ceiling",
    ),
    IdleRule(("workers",), lambda c: bool(c.cluster), "with --cluster, whose machines fly instead"),
    IdleRule(
        ("quick",),
        _all_named,
        "beside --vehicles and --trials, which are what it would choose",
    ),
)


# -----------------------------------------------------------------------------------------------------------------------------
# What is flown: single flights with numbers of their own, and the blocks in which they are flown together.

CONFIGURATIONS = 10
"""Of every scenario."""
FLEET = tuple([f"real_{k:02d}" for k in range(1, 19)] + [f"virt_{k:02d}" for k in range(1, 19)])
"""The 36 vehicles."""
CLASSIC = ("forest", "urban", "random_cylinder")
"""Scenarios that the paper calls classic; the others are the hard ones."""
SCENARIO_NAMES = (*SCENARIOS, "sudden_drop_plus")
"""Of every scenario that can be flown."""


@dataclass(frozen=True)
class Flight:
    """One flight of any pilot."""

    scenario: str
    configuration: int
    """Layout, 1 to 10: trial k of a combination is flown in configuration k."""
    vehicle: str
    repeat: int = 0
    """From 0 on; other draws in the same configuration."""

    @property
    def number(self) -> int:
        """Key of all that is random in it, together with the seed: of what it is alone, so that a flight is the same flight
        whatever else is flown, and for every pilot."""
        text = f"{self.scenario}:{self.configuration}:{self.vehicle}:{self.repeat}"
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "little")


@dataclass(frozen=True)
class FlightBlock:
    """Flights of one pilot that are flown in one batch and kept together."""

    pilot: str
    index: int
    flights: tuple[Flight, ...]

    @property
    def name(self) -> str:
        """Unique in a run, and good for a file's name."""
        return f"{file_name(self.pilot)}__{self.index:05d}"


def file_name(specifier: str) -> str:
    """Return a word as part of a file's name."""
    return "".join(c if c.isalnum() or c in "._-" else "-" for c in specifier)


def flights_of(
    scenarios: Sequence[str],
    vehicles: Sequence[str],
    configurations: Sequence[int],
    repeats: int,
    hard_repeats: int = 0,
) -> list[Flight]:
    """Return every flight of a pilot, layout by layout: neighbours share a place, which is built once.

    Args:
        scenarios: Names.
        vehicles: Names.
        configurations: Numbers of the layouts.
        repeats: Flights per combination.
        hard_repeats: The same in scenarios that are none of `CLASSIC`; 0: as `repeats`.
    """
    return [
        Flight(scenario, configuration, vehicle, repeat)
        for scenario in scenarios
        for configuration in configurations
        for vehicle in vehicles
        for repeat in range(repeats if scenario in CLASSIC else hard_repeats or repeats)
    ]


def asked_flights(config: NavigationConfig) -> list[Flight]:
    """Return every flight that a configuration asks of each pilot, those in places of one's own last.

    Args:
        config: Of the benchmark, its places drawn.
    """
    layouts = config.configurations or range(1, config.trials + 1)
    vehicles, repeats = vehicle_names_of(config.vehicles), (config.repeats, config.hard_repeats)
    found = flights_of(scenario_names(config.scenarios), vehicles, layouts, *repeats)
    for item in getattr(config, "places", ()):
        found += flights_of((item.name,), vehicles, range(1, len(item.pairs) + 1), *repeats)
    return found


def blocks_of(pilots: Sequence[str], flights: Sequence[Flight], size: int) -> list[FlightBlock]:
    """Return the flights of every pilot in blocks of at most `size`, pilot by pilot.

    Args:
        pilots: Names, in the order of the run.
        flights: That each of them flies.
        size: Most flights of a block.
    """
    return [
        FlightBlock(pilot, index, tuple(flights[first : first + size]))
        for pilot in pilots
        for index, first in enumerate(range(0, len(flights), size))
    ]


# -----------------------------------------------------------------------------------------------------------------------------


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
    gain_scale: float = 1.0
    """Factor of all control gains, the same in every flight."""

    def __post_init__(self) -> None:
        check_fields(self, "Perturbation.")

    @property
    def any(self) -> bool:
        """Whether anything is worse than ideal."""
        return self != Perturbation(moving_speed=self.moving_speed)


@dataclass(frozen=True)
class NavigationConfig:
    """Who flies what where, and how it is judged."""

    pilots: tuple[str, ...] = ("straight",)
    """Pilots: straight, ego, fast, pgo (also ego_published, fast_published, pgo_published), known_free, navrl, navrl_full_3d,
    expert, agile_autonomy, or FILE.py:CLASS for one of your own, agile_autonomy:FOLDER for a student of your own
    (docs/howto/agile_autonomy.md), avoid:FOLDER for an avoiding policy and hybrid:FOLDER or hybrid:agile_autonomy for
    known_free that is offered what either proposes (docs/howto/fleet.md), external:KIND[:WHERE] for a program outside
    (docs/howto/external_pilots.md)."""
    vehicles: tuple[str, ...] = ("all",)
    """Vehicles of the catalogue, or TOML files; all, real and virtual name the benchmark's 36 and its halves."""
    scenarios: tuple[str, ...] = ("all",)
    """Of forest, urban, random_cylinder, narrow_gap, sudden_drop, maze, perlin; all of these; or sudden_drop_plus."""
    trials: int = CONFIGURATIONS
    """Trials per combination; trial k is flown in configuration k."""
    repeats: int = 1
    """Flights per trial, each with other draws."""
    seed: Annotated[int, SEED] = 0
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
    """What follows planners: so3 (the benchmark's own) or one of docs/concepts/controllers.md (dfbc_indi, nmpc ...)."""
    device: str = "cpu"
    """Where vehicles are simulated and images rendered: cpu, or a CUDA device such as cuda:0; pilots stay on the processor."""
    protocol: NavigationProtocol = field(default_factory=NavigationProtocol)
    """Limits and thresholds."""
    perturb: Perturbation = field(default_factory=Perturbation)
    """What is worse than ideal."""
    decision_timeout: float = 10.0
    """Longest time for one decision of a pilot [s]; beyond it its flight has failed."""
    warm_up: float = 120.0
    """The same in the two seconds that a pilot of your own flies in each process before the first flight that counts, so that
    it can compile; 0 leaves them out [s]."""
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
    scenes: tuple[str, ...] = ()
    """Places of your own instead: scenes by name, or files (records, meshes, clouds); --scenarios may be named besides."""
    pairs: int = 10
    """Pairs of start and goal in each of them, drawn at random, with a proven way for the largest vehicle flown; --layouts
    draws others."""
    least_distance: float = 0.0
    """Between start and goal of a pair [m]; 0: a third of the place's longest edge."""
    unknown: Literal["solid", "free"] | None = None
    """Of --scenes that are captured places: space of which nobody knows is solid, so that flights collide with it and no way
    leads through it, or free; without it, as each place says, which is solid."""
    configurations: tuple[int, ...] = ()
    """Instead of the first --trials configurations, these: they are ordered by difficulty, 1 to 10."""
    randomize: Literal["identified"] | None = None
    """identified: each flight flies a vehicle of its own, drawn from what an identification left open of those named (their
    [uncertainty]); flight k draws the same for every pilot, who knows the record. Without it, records fly as they are."""
    hard_repeats: int = 0
    """The same in the hard scenarios (all but forest, urban and random_cylinder), where single flights flip; 0: as --repeats.
    Three are advised."""

    def __post_init__(self) -> None:
        check_fields(self)

    @property
    def spread(self) -> Randomization:
        """Between flights, as their simulators draw it."""
        return Randomization(posterior=self.randomize is not None)


# ---- What a user chose, checked, and words turned into names ----------------------------------------------------------------

_MOST = {
    "depth_noise": 1.0,
    "depth_dropout": 1.0,
    "latency": 2.0,
    "drift": 10.0,
    "gain_error": 0.9,
    "motor_degradation": 0.9,
    "moving_speed": 20.0,
}
_GAIN_SCALE = (0.1, 10.0)


def quick(config: NavigationConfig) -> NavigationConfig:
    """Return the same with `quick` done: what the user named stays, what was left at its default becomes small."""
    if not config.quick:
        return config
    small: dict[str, Any] = {"vehicles": ("real_01", "real_09", "virt_05", "virt_16"), "trials": 1}
    default = NavigationConfig()
    made = replace(config, **{name: value for name, value in small.items() if getattr(config, name) == getattr(default, name)})
    return without_idle(made, [rule for rule in NAVIGATION_RULES if "trials" in rule.options])


def vehicle_names_of(tokens: Sequence[str]) -> list[str]:
    """Return names of vehicles from the words of the command line, each once, in order.

    Raises:
        UnknownNameError: No such vehicle.
        AssetError: It is the file of a mesh, a cloud or a world.
    """
    from airworthy.vehicles import articulated_names, named_vehicle, vehicle_names
    from airworthy.vehicles.files import refuse_place
    from airworthy.vehicles.links import refuse_links

    groups = {"all": FLEET, "real": FLEET[:18], "virtual": FLEET[18:]}
    found = list(dict.fromkeys(name for item in tokens for name in groups.get(item, (item,))))
    known = vehicle_names()
    for name in found:
        if name not in known and not is_file(name):
            refuse_place(name)
            if name in articulated_names():
                refuse_links(named_vehicle(name), "The navigation benchmark")
            raise unknown_name(
                "vehicle", name, [*groups, *known], "'airworthy vehicles' lists them; a file of your own ends in .toml."
            )
    return found


def is_file(name: str) -> bool:
    """Tell whether a vehicle's word is a file's."""
    return name.endswith(".toml")


def scenario_names(tokens: Sequence[str]) -> list[str]:
    """Return names of scenarios from the words of the command line, each once, in order; raises UnknownNameError."""
    found = list(dict.fromkeys(name for item in tokens for name in (SCENARIOS if item == "all" else (item,))))
    for name in found:
        if name not in SCENARIO_NAMES:
            raise unknown_name("scenario", name, ["all", *SCENARIO_NAMES])
    return found


def _each_once(option: str, names: Sequence[str]) -> None:
    """Refuse a list of names that holds one twice: it would be flown once, which is not what was asked for.

    A vehicle's file is one by whatever path, and would be flown, and weighted, as two.
    """
    if len({os.path.realpath(name) if is_file(name) else name for name in names}) != len(names):
        raise AirworthyError(f"The same {option.removesuffix('s')} was named twice: {', '.join(names)}; name each once.")


def check(config: NavigationConfig) -> None:
    """Refuse what cannot be done.

    Raises:
        AirworthyError: One sentence.
    """
    for name in ("pilots", "vehicles", "scenarios"):
        if not getattr(config, name) and not (name == "scenarios" and config.scenes):
            raise AirworthyError(f"The benchmark needs at least one of --{name}.")
    for name in ("pilots", "vehicles", "scenarios", "scenes"):
        _each_once(name, getattr(config, name))
    vehicle_names_of(config.vehicles)
    scenario_names(config.scenarios)
    choices = {"compute": ("fixed", "measured", "zero"), "a_max": ("common", "vehicle"), "body": ("sphere", "body")}
    for name, known in {**choices, "sensing": ("fast", "full")}.items():
        if getattr(config, name) not in known:
            raise unknown_name(f"choice of --{name.replace('_', '-')}", str(getattr(config, name)), known)
    if len(set(config.configurations)) != len(config.configurations) or not all(
        1 <= number <= CONFIGURATIONS for number in config.configurations
    ):
        numbers = " ".join(map(str, config.configurations))
        raise AirworthyError(f"--configurations are {numbers}; expected numbers from 1 to {CONFIGURATIONS}, each once.")
    if not 0 <= config.hard_repeats <= 1000:
        raise AirworthyError(f"--hard-repeats is {config.hard_repeats}; expected 1 to 1,000, or 0 for as many as --repeats.")
    if not (isfinite(config.least_distance) and config.least_distance >= 0.0):
        raise AirworthyError(f"--least-distance is {config.least_distance} m; expected a finite number, or 0 for the usual.")
    for name, most in (("pairs", 1000), ("trials", CONFIGURATIONS), ("repeats", 1000), ("batch", 10_000), ("workers", 1024)):
        if not 1 <= getattr(config, name) <= most:
            raise AirworthyError(f"--{name} is {getattr(config, name)}; expected 1 to {most:,}.")
    if config.controller not in backend_names():
        raise unknown_name("controller", config.controller, backend_names())
    for name in ("seed", "layouts"):
        if not 0 <= getattr(config, name) < 2**63:
            raise AirworthyError(f"--{name} is {getattr(config, name)}; expected 0 to 2^63 - 1.")
    if not (isfinite(config.decision_timeout) and config.decision_timeout > 0.0):
        raise AirworthyError(f"--decision-timeout is {config.decision_timeout} s; expected a finite number above 0.")
    if not (isfinite(config.warm_up) and config.warm_up >= 0.0):
        raise AirworthyError(f"--warm-up is {config.warm_up} s; expected a finite number, or 0 for none.")
    for name, limit in _MOST.items():
        value = getattr(config.perturb, name)
        if not (isfinite(value) and 0.0 <= value <= limit):
            raise AirworthyError(f"--perturb.{name.replace('_', '-')} is {value}; expected 0 to {limit:g}.")
    low, high = _GAIN_SCALE
    if not low <= config.perturb.gain_scale <= high:
        raise AirworthyError(f"--perturb.gain-scale is {config.perturb.gain_scale}; expected {low:g} to {high:g}.")
    if not 0 <= config.perturb.moving_obstacles <= 200:
        raise AirworthyError(f"--perturb.moving-obstacles is {config.perturb.moving_obstacles}; expected 0 to 200.")
