"""What a user chooses about an evaluation, checked; what its numbers depend on; the command that makes them again."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from math import isfinite
from pathlib import Path
from typing import Annotated, Any, Literal

from airworthy import __version__
from airworthy.benchmarks.fly.job import check_device
from airworthy.benchmarks.tracking.block import PHYSICS_RATE, ConditionBlock
from airworthy.benchmarks.tracking.conditions import Condition, described, expanded
from airworthy.benchmarks.tracking.methods import TrackingMethod, VehicleSpread, families_of
from airworthy.core.errors import AirworthyError, unknown_name
from airworthy.core.files import json_text, sha256
from airworthy.core.idle_options import IdleRule
from airworthy.core.jobs import progress
from airworthy.core.jobs.block_store import plain
from airworthy.core.schema import SEED, Bound, check_fields
from airworthy.pilots.catalogue import AUTOPILOTS, EXTERNAL
from airworthy.simulation.config import Randomization
from airworthy.tasks import TrackingProtocol
from airworthy.trajectories import course
from airworthy.vehicles import Vehicle, named_vehicle
from airworthy.vehicles.files import vehicle_text

__all__ = [
    "IDLE_RULES",
    "EvaluateConfig",
    "blocks_of",
    "check",
    "command_line",
    "from_file",
    "identity_of",
    "quick",
    "settled",
    "vehicle_of",
    "vehicle_word",
]

Family = Literal["semi_kinematic", "rigid"]
FREE = ("out", "report", "quick", "json", "rotors", "wait")
"""Fields that no number depends on: what comes of `rotors` counts as the vehicle's digest."""


@dataclass(frozen=True)
class EvaluateConfig:
    """Who is tried, on what, under which conditions."""

    pilot: tuple[str, ...] = ("mpc",)
    """Who flies: mpc (the expert, which knows the true state), svnet (the shipped policy), svnet:FOLDER (what `airworthy train
    svnet` wrote), policy:FOLDER, avoid:FOLDER and navigation:FOLDER (other learnt ones, at their own rate), a tracker
    (geometric, mellinger, ...), FILE.py:CLASS (a pilot of your own), external:KIND (a program outside,
    docs/howto/external_pilots.md), px4, ardupilot, betaflight (an autopilot outside, docs/howto/autopilots.md); the first is
    the one that others are compared with."""
    course: str = "robustness"
    """Course name or file."""
    scene: str = "hall"
    """Where: a scene's name or file."""
    conditions: tuple[str, ...] = ("table_2",)
    """Conditions (baseline, lighting, dynamic, static, payload, pickup, wind, drones, extended, cluttered; of any place
    blindfold, frozen, late_images, shifted, without_nearest, without_boxes; sousvide_test, the published test set), points of
    sweeps (wind:2.5, a push of 2.5 m/s^2 for a second, no speed of air as in `airworthy fly --wind`; lighting:0.3 of full;
    delay:0.02 s; payload:1.5 times the mass; pickup:0.2 of it in flight; noise:extreme), whole sweeps (wind_sweep,
    lighting_sweep, delay_sweep, payload_sweep, noise_levels, ...), and groups (table_2, any_place, multi_objective, skills,
    sweeps, all). One that changes nothing is refused, or left out of a group."""
    flights: int = 20
    """Per pilot, family and condition."""
    family: tuple[Family, ...] = ()
    """Equations of motion: semi_kinematic as published, rigid body with rotors, or both; without one, semi_kinematic, or rigid
    where a pilot commands something else than thrust and body rates."""
    vehicle: str = "carl"
    """What flies: a catalogue name, a vehicle TOML file, or a URDF with its --rotors; pilots were made for the nominal one."""
    rotors: str | None = None
    """For a vehicle that is a URDF: the TOML that says which of its links are rotors, and what they do."""
    spread: VehicleSpread = field(default_factory=VehicleSpread)
    """What every flight draws."""
    randomize: Literal["identified"] | None = None
    """identified: each flight flies a vehicle of its own, drawn from what an identification left open of --vehicle (its
    [uncertainty]); flight k draws the same for every pilot and condition, pilots know the record. In rigid dynamics."""
    protocol: TrackingProtocol = field(default_factory=TrackingProtocol)
    """By which flights are judged."""
    contact: Literal["respond", "freeze", "none"] = "respond"
    """At an impact: the vehicle rebounds and may go on, the flight ends, or it flies through everything."""
    batch: int = 20
    """Flights at once; those of a batch are kept together when a run is stopped."""
    seed: Annotated[int, SEED] = 0
    """Of everything that is drawn; flight k draws the same for every pilot and condition."""
    device: str = "cpu"
    """Where it is computed: cpu or an NVIDIA GPU (cuda:0)."""
    out: Path = Path("runs/evaluate")
    """Folder of the results; a stopped run goes on where it was."""
    report: bool = True
    """Write report.html."""
    unknown: Literal["solid", "free"] | None = None
    """Of a --scene that is a captured place: space of which nobody knows is solid, so that flights collide with it, or free;
    without it, as the place says, which is solid."""
    patience: Annotated[float | None, Bound(0.01, 3600.0, "s")] = None
    """How long a reply of a program outside may take; then its flight ends as pilot_error [s]; left out: 5."""
    wait: Annotated[float | None, Bound(0.01, 3600.0, "s")] = None
    """How long to wait for a program outside to appear, and at each flight for an autopilot, and again for it to arm [s]; left
    out: 10 for a program, 120 for an autopilot."""
    quick: bool = False
    """Two flights of baseline and payload only, for a quick look."""
    json: bool = False
    """Print JSON, and no progress."""

    def __post_init__(self) -> None:
        check_fields(self)

    @property
    def between(self) -> Randomization:
        """What simulators draw of vehicles."""
        return Randomization(posterior=self.randomize is not None)


def quick(config: EvaluateConfig) -> EvaluateConfig:
    """Return the same with `quick` done: what the user named stays, what was left at its default becomes small."""
    if not config.quick:
        return config
    small: dict[str, Any] = {"conditions": ("baseline", "payload"), "flights": 2}
    default = EvaluateConfig()
    wanted = {name: value for name, value in small.items() if getattr(config, name) == getattr(default, name)}
    values = {item.name: getattr(config, item.name) for item in fields(config)}
    return EvaluateConfig(**{**values, **wanted})


def settled(config: EvaluateConfig, methods: Sequence[TrackingMethod]) -> EvaluateConfig:
    """Return the same with a family of dynamics that all its pilots' commands fit.

    Raises:
        AirworthyError: A family was asked for whose vehicles do not take a pilot's commands, or have nothing to draw.
    """
    fitting = {item.name: families_of(item) for item in methods}
    if config.randomize is not None and "semi_kinematic" in config.family:
        raise AirworthyError(
            "Identified vehicles are drawn in rigid dynamics; the semi-kinematic family has no rotors to draw: give --family"
            " rigid, or leave it out."
        )
    if not config.family:
        every = all("semi_kinematic" in names for names in fitting.values()) and config.randomize is None
        return replace(config, family=("semi_kinematic",) if every else ("rigid",))
    for item in methods:
        for family in config.family:
            if family not in fitting[item.name]:
                raise AirworthyError(
                    f"Pilot {item.name!r} commands {item.level}, which the {family.replace('_', '-')} family does not take:"
                    f" give --family {' '.join(fitting[item.name])}, or leave it out."
                )
    return config


def check(config: EvaluateConfig) -> None:
    """Refuse what cannot be done.

    Raises:
        AirworthyError: One sentence.
    """
    check_device(config.device)
    if not config.pilot:
        raise AirworthyError("An evaluation needs at least one pilot, as --pilot mpc.")
    for name in ("pilot", "family"):
        values = getattr(config, name)
        if len(set(values)) != len(values):
            raise AirworthyError(f"The same {name} was named twice: {', '.join(values)}; name each once.")
    for family in config.family:
        if family not in PHYSICS_RATE:
            raise unknown_name("family of dynamics", family, PHYSICS_RATE)
    if not 1 <= config.flights <= 100_000 or not 1 <= config.batch <= 100_000:
        raise AirworthyError(
            f"An evaluation got {config.flights} flights, {config.batch} at once; expected 1 to 100,000 of each."
        )
    for item in fields(config.spread):
        value = getattr(config.spread, item.name)
        most = 0.9 if item.name in ("mass", "thrust") else 10.0
        if not (isfinite(value) and 0.0 <= value <= most):
            raise AirworthyError(f"The spread of {item.name} is {value}; expected 0 to {most:g}.")
    apart = [name for name in ("mass", "thrust") if getattr(config.spread, name) > 0.0]
    if config.randomize is not None and apart:
        raise AirworthyError(
            f"--spread.{apart[0]} {getattr(config.spread, apart[0]):g} draws by itself what an identified vehicle's uncertainty"
            " draws together with all else: leave it out, or --randomize."
        )
    if not 0 <= config.seed < 1 << 63:
        raise AirworthyError(f"The seed is {config.seed}; expected 0 to 2^63 - 1.")
    expanded(config.conditions)


def _all(read: Callable[[Condition], Any]) -> Callable[[EvaluateConfig], bool]:
    """Return whether something holds of every condition that is flown, after `quick`."""
    return lambda config: all(read(item) for item in expanded(quick(config).conditions))


def _wider(name: str) -> IdleRule:
    def when(config: EvaluateConfig) -> bool:
        least = min(getattr(item, f"{name}_spread") for item in expanded(quick(config).conditions))
        return bool(getattr(config.spread, name) <= least)

    why = "under these --conditions, each of which spreads it as widely or more widely"
    return IdleRule((f"spread.{name}",), when, why, "give a wider one")


IDLE_RULES = (
    IdleRule(
        ("rotors",),
        lambda config: not config.vehicle.lower().endswith(".urdf"),
        "for a vehicle that is no URDF, whose record says what its rotors do",
        "name one with --vehicle FILE.urdf",
    ),
    IdleRule(
        ("patience", "wait"),
        lambda config: not any(word.partition(":")[0] in (*AUTOPILOTS, EXTERNAL) for word in config.pilot),
        "for pilots of which none is a program outside",
        "name --pilot px4, ardupilot, betaflight or external:KIND",
    ),
    IdleRule(("course",), _all(lambda item: item.course), "under these --conditions, each of which has a course of its own"),
    IdleRule(
        ("scene", "unknown"), _all(lambda item: item.scene), "under these --conditions, each of which has a scene of its own"
    ),
    _wider("mass"),
    _wider("thrust"),
    IdleRule(
        ("quick",),
        lambda config: quick(config) == config,
        "beside --conditions and --flights, which are what it would choose",
    ),
)
"""Options that change nothing beside the others."""


def blocks_of(config: EvaluateConfig, methods: Sequence[TrackingMethod]) -> list[ConditionBlock]:
    """Return what is flown, in order: condition by condition, so that the comparison of pilots fills up evenly."""
    found = []
    for condition in expanded(config.conditions):
        for family in config.family:
            for method in methods:
                batch = 1 if method.single else config.batch
                for first in range(0, config.flights, batch):
                    count = min(batch, config.flights - first)
                    flown = condition.course or config.course, condition.scene or config.scene
                    found.append(ConditionBlock(method.name, family, condition, *flown, first, count))
    return found


def vehicle_of(config: EvaluateConfig) -> Vehicle:
    """Return what flies, from the catalogue or from its file; raises AirworthyError where there is none."""
    return named_vehicle(config.vehicle, config.rotors)


def from_file(name: str) -> bool:
    """Return whether the name of a vehicle or a course is a file's: only what comes with the package has its version's
    content."""
    return "/" in name or "\\" in name or bool(Path(name).suffix)


def vehicle_word(config: EvaluateConfig, flown: Vehicle) -> str:
    """Return how the vehicle is called in results: by its record's name where it came from a file, wherever that lies."""
    return flown.name if from_file(config.vehicle) else config.vehicle


def identity_of(
    config: EvaluateConfig, methods: Sequence[TrackingMethod], scenes: Mapping[str, str], flown: Vehicle | None = None
) -> dict[str, Any]:
    """Return everything that the numbers depend on, as plain data.

    Args:
        config: What was chosen.
        methods: Who flies.
        scenes: Digest of each scene by name.
        flown: The vehicle; None: it is read.
    """
    chosen = {item.name: getattr(config, item.name) for item in fields(config) if item.name not in FREE}
    if config.unknown is None:
        # What the place itself says is in its digest; folders of before are gone on with.
        del chosen["unknown"]
    if config.randomize is None:
        del chosen["randomize"]
    conditions = [described(item) for item in expanded(config.conditions)]
    pilots = {item.name: dict(item.identity) for item in methods}
    identity = {"version": __version__, "config": chosen, "conditions": conditions, "pilots": pilots, "scenes": dict(scenes)}
    flown = vehicle_of(config) if flown is None else flown
    chosen["vehicle"] = vehicle_word(config, flown)
    # Of what lies in the user's files its content counts, and not where it lies.
    if from_file(config.vehicle):
        identity["vehicle_sha256"] = sha256(vehicle_text(flown))
    if from_file(config.course):
        path = course(config.course)
        chosen["course"] = path.name
        identity["course_sha256"] = sha256(json_text(asdict(path)))
    return plain(identity)


def command_line(config: EvaluateConfig) -> str:
    """Return the exact command that makes the results again."""
    return progress.command_line("airworthy evaluate", config, leave_out=("json", "quick"), short_numbers=True)
