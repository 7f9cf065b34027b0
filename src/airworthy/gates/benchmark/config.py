"""What a user chooses about the gates benchmark, checked; what its numbers depend on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from airworthy import __version__
from airworthy.core.errors import AirworthyError
from airworthy.core.files import sha256
from airworthy.core.idle_options import IdleRule, refuse_idle
from airworthy.core.jobs.block_store import plain
from airworthy.core.schema import SEED, check_fields
from airworthy.gates.benchmark.families import FAMILIES, FlightSpread, family_named, flown_vehicle, mass_spread_of
from airworthy.gates.planner.certificate import CLEARANCE, FLOOR
from airworthy.simulation import Randomization
from airworthy.simulation.posterior import posterior_of
from airworthy.trajectories import Course, Limits, RotorBound, course
from airworthy.trajectories.generated_courses import generated_course, is_generated
from airworthy.vehicles import indicators, named_vehicle, vehicle

__all__ = ["BODY_RATE", "RESERVE", "ROTOR_SHARES", "YAW_ACCELERATION", "YAW_RATE", "limits_for", "rotor_bounds", "weakest_lift"]

# ---- What the certificate "vehicle" asks of plans: what the weakest drone that is drawn can really do -----------------------

RESERVE = 0.15
"""Share of the thrust that stays with the controller. Found by flights of the L250, the weakest: at 10 % its heaviest drones
crash, at 15 % all are clean."""
BODY_RATE = 3.0
"""Of plans [rad/s]: what both Mellinger loops were found to follow between motors that are near their ends."""
YAW_RATE = 2.3
"""Of plans [rad/s]: a faster turn asks the L250 for more yaw torque than its motors have, and recent firmware takes the excess
from the thrust of all four: 4 of its 100 flights of mixed_10 crashed without this bound, none with it."""
YAW_ACCELERATION = 6.0
"""Of plans [rad/s^2]: turns become soft. A rate that jumps, as in the published ramp, asks for all the yaw torque there is, and
more: 17 of 100 flights of random racing courses were lost to it. Found by 100 courses of another seed than the benchmark's, by
the largest error in flight: 22 cm at 10 rad/s^2, 18 at 8, 16 at 6."""
ROTOR_SHARES = (0.1, 0.9)
"""Of each rotor's largest thrust, what plans may ask for. Found there: 16 cm with 95 %, 14 with 90."""
# Ours, like the numbers above, each of which says what was found.
_LEAST_THRUST = 0.5
"""Of gravity: below it there is little left to turn the body with."""


def weakest_lift(families: Sequence[str], spread: float) -> float:
    """Return thrust over mass of the heaviest drone of the weakest family [m/s^2]."""
    lifts = []
    for name in families:
        nominal = vehicle(family_named(name).vehicle)
        heaviest = nominal.mass + mass_spread_of(name, spread)
        lifts.append(float(indicators(nominal).thrust_to_weight) * nominal.gravity * nominal.mass / heaviest)
    return min(lifts)


def limits_for(
    families: Sequence[str],
    spread: float,
    reserve: float = RESERVE,
    body_rate: float = BODY_RATE,
    yaw_rate: float | None = YAW_RATE,
    yaw_acceleration: float | None = YAW_ACCELERATION,
    rotor_shares: tuple[float, float] | None = ROTOR_SHARES,
) -> Limits:
    """Return limits that every drone of these families can keep.

    Args:
        families: Who flies.
        spread: Of the competition's masses, +- [kg].
        reserve: Share of the thrust that the controller keeps.
        body_rate: [rad/s]
        yaw_rate: [rad/s]
        yaw_acceleration: [rad/s^2]
        rotor_shares: Least and largest share of its thrust that a rotor of any of these drones is asked for;
            None: not bounded.

    Raises:
        AirworthyError: The heaviest drone would not hover with what is left.
    """
    gravity = max(vehicle(family_named(name).vehicle).gravity for name in families)
    lift = weakest_lift(families, spread)
    if (1.0 - reserve) * lift <= 1.001 * gravity:
        raise AirworthyError(
            f"The heaviest drone has {lift:.2f} m/s^2 of thrust over mass: with --reserve {reserve:g} it could not hover."
            " Lower --reserve or --mass-spread."
        )
    thrust = (1.0 - reserve) * lift
    return Limits(
        thrust_max=thrust,
        thrust_min=_LEAST_THRUST * gravity,
        body_rate=body_rate,
        yaw_rate=yaw_rate,
        yaw_acceleration=yaw_acceleration,
        rotors=() if rotor_shares is None else rotor_bounds(families, spread, rotor_shares),
        gravity=gravity,
    )


def rotor_bounds(families: Sequence[str], spread: float, shares: tuple[float, float] = ROTOR_SHARES) -> tuple[RotorBound, ...]:
    """Return rotors of the heaviest and the lightest drone of every family that has rotors, with the most inertia that is
    drawn.

    Args:
        families: Names of the vehicles' families.
        spread: Relative half width of mass and inertia.
        shares: Least and most of each rotor's largest thrust that plans may ask for.
    """
    bounds = []
    for name in families:
        if family_named(name).dynamics != "rigid":
            continue
        nominal, drawn = vehicle(family_named(name).vehicle), mass_spread_of(name, spread)
        factor = 1.0 + FlightSpread().inertia / min(nominal.inertia[:3])
        bounds += [RotorBound.of(nominal, *shares, nominal.mass + side * drawn, factor) for side in (-1.0, 1.0)]
    return tuple(bounds)


# -----------------------------------------------------------------------------------------------------------------------------

COURSES = ("straight_8", "straight_8_heights", "circle_8", "circle_12_heights", "snake_8", "snake_10_hard", "mixed_10")
"""Courses of the catalogue that lie inside the grid."""
_FREE = ("out", "report", "quick", "json", "device", "threads")
# Options that came later, and stand in the digest of runs that use them: folders made before are still those of the others.
_LATER = ("vehicle", "randomize")
# Written names outlive options': a run's digest, and with it every folder made before, depends on them.
_WRITTEN = {"baselines": "beside"}


@dataclass(frozen=True)
class GatesBenchConfig:
    """Plan courses of gates, certify the plans, fly what is approved, and set lap times beside other planners'."""

    network: str = "published"
    """Who predicts: the folder or name of a network; oracle, the fastest pair that --limit admits; search, the label of the
    search by simulated flight; oracle:NETWORK and search:NETWORK with the choices that this network learnt from."""
    baselines: tuple[str, ...] = ()
    """Others, named alike, on the same courses, under the same certificate, in flights with the same draws."""
    courses: tuple[str, ...] = COURSES
    """Names of the catalogue, JSON files, or made to measure: straight:8, circle:12, snake:8, random:3@7."""
    flights: int = 100
    """Randomised flights of each approved plan in each family of dynamics."""
    families: tuple[str, ...] = tuple(FAMILIES)
    """Who flies: competition, crazyflow, semi_kinematic."""
    vehicle: str = ""
    """Who is flown in the place of the families' own, which keep their equations and controllers: a name of the catalogue, or a
    file as `vehicles identify` writes it."""
    randomize: Literal["identified"] | None = None
    """identified: each flight flies a vehicle of its own, drawn from what an identification left open of --vehicle (its
    [uncertainty]), in the place of --mass-spread; a flight draws the same whoever predicts."""
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
    yaw_acceleration: float = YAW_ACCELERATION
    """Of the certificate vehicle [rad/s^2]: turns are soft; 0: none, and turns are even, as in the paper."""
    rotor_share: float = ROTOR_SHARES[1]
    """Of the certificate vehicle: each rotor of every drone that is drawn is asked for at most this share of its largest
    thrust, and for at least what is left of it; 0: not bounded."""
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
    seed: Annotated[int, SEED] = 0
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

    def __post_init__(self) -> None:
        check_fields(self)

    @property
    def limits(self) -> Limits:
        """Of every plan."""
        yaw_rate = self.yaw_rate or None
        if self.certificate == "tracking":
            return Limits(envelope=(float(self.limit[0]), float(self.limit[1])), yaw_rate=yaw_rate)
        shares = (1.0 - self.rotor_share, self.rotor_share) if self.rotor_share else None
        return limits_for(
            self.families,
            self.mass_spread,
            self.reserve,
            self.body_rate,
            yaw_rate,
            self.yaw_acceleration or None,
            shares,
        )


def quick(config: GatesBenchConfig) -> GatesBenchConfig:
    """Return the small one, where it was asked for."""
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


def check(config: GatesBenchConfig) -> None:
    """Raise AirworthyError, in one sentence, for what cannot be done, and for options that change nothing.

    Args:
        config: As it was asked for, before `quick`.
    """
    asked, config = config, quick(config)
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
    if len({config.network, *config.baselines}) != 1 + len(config.baselines):
        raise AirworthyError("Each of --network and --baselines is named once.")
    if not 0.0 <= config.reserve < 1.0 or not (0.0 <= config.yaw_rate < 100.0 and 0.0 < config.body_rate < 100.0):
        raise AirworthyError(
            "--reserve is 0 up to 1 (without it), --yaw-rate 0 to 100 rad/s, --body-rate above 0 up to 100 rad/s."
        )
    if not 0.0 <= config.yaw_acceleration < 1000.0 or not (config.rotor_share == 0.0 or 0.5 < config.rotor_share <= 1.0):
        raise AirworthyError("--yaw-acceleration is 0 to 1000 rad/s^2; --rotor-share above 0.5 up to 1, or 0 for no bound.")
    refuse_idle(asked, IDLE_RULES)
    _check_flown(config)
    _ = config.limits
    names = [course_of(specifier).name for specifier in config.courses]
    if len(set(names)) != len(names):
        raise AirworthyError(f"Courses of one benchmark need names of their own; they are {', '.join(names)}.")


def _check_flown(config: GatesBenchConfig) -> None:
    """Refuse vehicles that are none, draw nothing, or would not keep what the plans are proved for."""
    if config.vehicle and config.certificate == "vehicle":
        raise AirworthyError(
            "--certificate vehicle proves plans for the families' own vehicles: fly them, or prove plans by"
            " --certificate tracking."
        )
    if config.randomize is None:
        if config.vehicle:
            named_vehicle(config.vehicle)
        return
    names = [name for name in config.families if FAMILIES[name].dynamics == "semi_kinematic"]
    if names:
        raise AirworthyError(
            f"--randomize identified changes nothing of {names[0]}, which has no rotors: leave it out of --families."
        )
    if config.certificate == "vehicle":
        raise AirworthyError(
            "--certificate vehicle proves plans for masses of --mass-spread: leave --randomize out, or prove plans by"
            " --certificate tracking."
        )
    for name in config.families:
        posterior_of(flown_vehicle(FAMILIES[name], config.vehicle), Randomization(posterior=True))


_BUILT_IN = ("oracle", "search")
"""Predictors that are no network; with a network's name behind a colon they use its choices."""


def _uses_limit(config: GatesBenchConfig) -> bool:
    return config.certificate == "tracking" or any(specifier in _BUILT_IN for specifier in (config.network, *config.baselines))


IDLE_RULES = (
    IdleRule(
        ("mass_spread",),
        lambda config: config.randomize is not None,
        "with --randomize identified, which draws masses together with all else",
    ),
    IdleRule(
        ("reserve", "body_rate", "yaw_acceleration", "rotor_share"),
        lambda config: config.certificate != "vehicle",
        "without --certificate vehicle",
        "add that",
    ),
    IdleRule(
        ("random_gates", "random_heading", "random_compared", "block"),
        lambda config: config.random == 0,
        "without --random above 0",
        "add that",
    ),
    IdleRule(
        ("limit",),
        lambda config: not _uses_limit(config),
        "with --certificate vehicle, unless oracle or search predict without a network's choices",
        "bound the plans by --reserve and --body-rate",
    ),
    IdleRule(
        ("flights", "laps"),
        lambda config: not config.courses,
        "without --courses, since random courses are flown once and have one lap",
        "name some",
    ),
    IdleRule(
        ("off_grid",),
        lambda config: all(specifier.partition(":")[0] in _BUILT_IN for specifier in (config.network, *config.baselines)),
        "where no network predicts, whose errors it is about",
        "name one with --network or --baselines",
    ),
    IdleRule(("threads",), lambda config: config.device != "cpu", "on a GPU", "give --device cpu"),
    IdleRule(
        ("quick",),
        lambda config: quick(config) == config,
        "where courses, flights and random courses are as few already",
    ),
)
"""Options that change nothing beside the others."""


def course_of(specifier: str) -> Course:
    """Return a course by what the command line says; raises AirworthyError unless it has gates."""
    found = generated_course(specifier) if is_generated(specifier) else course(specifier)
    if found.kind != "gates":
        raise AirworthyError(f"The course {specifier!r} has {found.kind}, not gates: choose one of kind 'gates'.")
    return found


def identity_of(config: GatesBenchConfig, predictors: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return everything that the numbers depend on: settings, the courses themselves, who predict, the version."""
    options = {
        _WRITTEN.get(item.name, item.name): getattr(config, item.name)
        for item in fields(config)
        if item.name not in _FREE and (item.name not in _LATER or getattr(config, item.name) != item.default)
    }
    if config.vehicle:
        options["vehicle"] = sha256(repr(named_vehicle(config.vehicle)))
    course_digests = {specifier: sha256(repr(course_of(specifier))) for specifier in config.courses}
    whole = {
        "version": __version__,
        "config": options,
        "courses": course_digests,
        "predictors": [dict(item) for item in predictors],
    }
    return plain(whole)
