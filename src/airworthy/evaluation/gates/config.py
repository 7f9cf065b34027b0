"""What a user chooses about the gates benchmark, checked; what its numbers depend on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Literal

from airworthy import __version__
from airworthy.core.errors import AirworthyError
from airworthy.core.files import json_text, parse_json, sha256
from airworthy.evaluation.gates.families import FAMILIES, family_named
from airworthy.evaluation.gates.limiting import BODY_RATE, RESERVE, YAW_RATE, limits_for
from airworthy.pilots.boundary.certificate import CLEARANCE, FLOOR
from airworthy.trajectories import Course, Limits, course
from airworthy.trajectories.generated_courses import generated_course, is_generated

COURSES = ("straight_8", "straight_8_heights", "circle_8", "circle_12_heights", "snake_8", "snake_10_hard", "mixed_10")
"""Courses of the catalogue that lie inside the grid."""
_FREE = ("out", "report", "quick", "json", "device", "threads")


@dataclass(frozen=True)
class GatesConfig:
    """Plan courses of gates, certify the plans, fly what is approved, and set lap times beside other planners'."""

    network: str = "published"
    """Who predicts: the folder or name of a network; oracle, the fastest pair that --limit admits; search, the label of the
    search by simulated flight; oracle:NETWORK and search:NETWORK with the choices that this network learnt from."""
    beside: tuple[str, ...] = ()
    """Others, named alike, on the same courses, under the same certificate, in flights with the same draws."""
    courses: tuple[str, ...] = COURSES
    """Names of the catalogue, JSON files, or made to measure: straight:8, circle:12, snake:8, random:3@7."""
    flights: int = 100
    """Randomised flights of each approved plan in each family of dynamics."""
    families: tuple[str, ...] = tuple(FAMILIES)
    """Who flies: competition, crazyflow, semi_kinematic."""
    laps: int = 0
    """Laps of each course; 0: as many as it says."""
    random: int = 1000
    """Random courses, each planned once and flown once per family."""
    random_gates: int = 10
    """Gates of a random course."""
    random_heading: float = 0.0
    """Gates of random courses face within this of the leg that reaches them [rad]."""
    random_compared: int = 20
    """Random courses for which the other planners' lap times are found too."""
    block: int = 100
    """Random courses that are planned and flown together."""
    headings: Literal["given", "incoming"] = "given"
    """Fly through each gate along its own heading, or along the leg that reaches it."""
    yaw_ramp: bool = True
    """Turn to each gate's heading; --no-yaw-ramp keeps the first heading, as the paper's real flights did."""
    outside: Literal["refuse", "clamp"] = "refuse"
    """What is done with a course beyond the predictor's ranges."""
    certificate: Literal["tracking", "vehicle"] = "tracking"
    """What plans must keep: tracking, the limit a + k v^3 <= a0 of the paper; vehicle, the thrust and the body rates of the
    weakest drone that is drawn."""
    limit: tuple[float, float] = (2.0, 0.3)
    """a0 [m/s^2] and k [s^2/m^2] of the limit a + k v^3 <= a0: of the certificate tracking, of the words oracle and search."""
    reserve: float = RESERVE
    """Share of the thrust that the certificate vehicle leaves to the controller."""
    body_rate: float = BODY_RATE
    """Of the certificate vehicle [rad/s]."""
    yaw_rate: float = YAW_RATE
    """Of both certificates [rad/s]; 0: none, as in the paper."""
    clearance: float = CLEARANCE
    """Least distance from the path to every gate frame [m]."""
    floor: float = FLOOR
    """Least height of the path [m]."""
    lowerings: int = 10
    """How often the speed beside a segment that no stretch mends may be lowered; 0: the published rule alone."""
    mass_spread: float = 0.01
    """Mass of flights in the competition's family, +- [kg]; the other families take a third of it."""
    off_grid: int = 2000
    """Situations between the grid's points for which a network is held against a fresh search; 0: none."""
    seed: int = 0
    """Of flights, random courses and situations."""
    device: str = "cpu"
    """Where flights are computed: "cpu" or a CUDA device ("cuda:0")."""
    threads: int | None = None
    """Most threads on a CPU."""
    quick: bool = False
    """Two courses, 8 flights, 20 random courses, for a look."""
    report: bool = True
    """Write report.html."""
    json: bool = False
    """Print the summary as JSON and nothing else."""
    out: Path = Path("runs/gates")
    """Folder; a stopped run goes on where it was."""

    @property
    def limits(self) -> Limits:
        """Of every plan."""
        yaw_rate = self.yaw_rate or None
        if self.certificate == "tracking":
            return Limits(envelope=(float(self.limit[0]), float(self.limit[1])), yaw_rate=yaw_rate)
        return limits_for(self.families, self.mass_spread, self.reserve, self.body_rate, yaw_rate)


def quick(config: GatesConfig) -> GatesConfig:
    """The small one, where it was asked for."""
    if not config.quick:
        return config
    few = config.courses[:2] if config.courses != COURSES else ("circle_8", "mixed_10")
    return replace(
        config,
        courses=few,
        flights=min(config.flights, 8),
        random=min(config.random, 20),
        random_compared=min(config.random_compared, 2),
        off_grid=min(config.off_grid, 100),
    )


def check(config: GatesConfig) -> None:
    """Raise AirworthyError, in one sentence, for what cannot be done."""
    for name, low, high in (
        ("flights", 1, 100_000),
        ("laps", 0, 100),
        ("random", 0, 1_000_000),
        ("random_gates", 1, 200),
        ("random_compared", 0, 100_000),
        ("block", 1, 1000),
        ("lowerings", 0, 100),
        ("off_grid", 0, 1_000_000),
    ):
        value = getattr(config, name)
        if not low <= value <= high:
            raise AirworthyError(f"--{name.replace('_', '-')} is {value}; expected {low} to {high:,}.")
    if not 0.0 <= config.random_heading < 1.5 or not 0.0 <= config.mass_spread <= 0.02:
        raise AirworthyError("--random-heading is 0 to 1.5 rad, and --mass-spread 0 to 0.02 kg.")
    if not config.courses and not config.random:
        raise AirworthyError("There is nothing to fly: give --courses or --random.")
    if len(set(config.courses)) != len(config.courses) or len(set(config.families)) != len(config.families):
        raise AirworthyError("Each course and each family is named once.")
    if not config.families:
        raise AirworthyError("There is nobody to fly: give --families.")
    for name in config.families:
        family_named(name)
    if len({config.network, *config.beside}) != 1 + len(config.beside):
        raise AirworthyError("Each of --network and --beside is named once.")
    if not 0.0 <= config.reserve < 1.0 or not (0.0 <= config.yaw_rate < 100.0 and 0.0 < config.body_rate < 100.0):
        raise AirworthyError(
            "--reserve is 0 up to 1 (without it), --yaw-rate 0 to 100 rad/s, --body-rate above 0 up to 100 rad/s."
        )
    _ = config.limits
    names = [course_of(word).name for word in config.courses]
    if len(set(names)) != len(names):
        raise AirworthyError(f"Courses of one benchmark need names of their own; they are {', '.join(names)}.")


def course_of(word: str) -> Course:
    """A course by what the command line says; raises AirworthyError unless it has gates."""
    found = generated_course(word) if is_generated(word) else course(word)
    if found.kind != "gates":
        raise AirworthyError(f"The course {word!r} has {found.kind}, not gates: choose one of kind 'gates'.")
    return found


def identity_of(config: GatesConfig, predictors: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Everything that the numbers depend on: settings, the courses themselves, who predict, the version."""
    told = {item.name: getattr(config, item.name) for item in fields(config) if item.name not in _FREE}
    places = {word: sha256(repr(course_of(word))) for word in config.courses}
    whole = {"version": __version__, "config": told, "courses": places, "predictors": [dict(item) for item in predictors]}
    # As JSON would give it back, so that it can be held against what a folder says.
    return dict(parse_json(json_text(whole), "settings"))


def digest_of(identity: Mapping[str, Any]) -> str:
    """SHA-256 of an identity."""
    return sha256(json_text(dict(identity)))


def changed(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """What differs between two identities, in a few words; empty where nothing does."""
    a = {**dict(before.get("config", {})), **{k: v for k, v in before.items() if k != "config"}}
    b = {**dict(now.get("config", {})), **{k: v for k, v in now.items() if k != "config"}}
    return ", ".join(key for key in dict.fromkeys([*a, *b]) if a.get(key) != b.get(key))
