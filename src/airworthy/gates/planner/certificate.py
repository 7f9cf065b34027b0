"""What is certain about a plan before it is flown: proved along the whole polynomial, not at samples.

Source: spec/boundary_predictor sections 6, 8 and 11. The limit, the clearance and the floor are bounds of polynomials in
Bernstein form, halved until they are decided (`airworthy.trajectories.quantities`).

What a plan through gates must keep, and what comes of one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import degrees
from typing import Annotated, Any, Literal

import numpy as np

from airworthy.core.arrays import Array, ArrayBool, ArrayInt
from airworthy.core.errors import AirworthyError
from airworthy.core.schema import Bound, check_fields
from airworthy.gates.crossings import CrossingCheck, check_crossings
from airworthy.gates.planner.contract import FIELDS
from airworthy.gates.planner.window import GateRoute, Headings, outside_of
from airworthy.trajectories import TRACKING_ENVELOPE, Gate, LimitCheck, LimitProof, Limits, Trajectory, prove, prove_half_space
from airworthy.trajectories.proof import TOLERANCE, Verdict
from airworthy.trajectories.quantities import Controls, Quantity, derivative_controls, maximise

__all__ = [
    "CLEARANCE",
    "FLOOR",
    "BoundaryPlan",
    "Certificate",
    "GridCheck",
    "PlanOptions",
    "certify",
    "clearance_check",
    "floor_check",
]


# -----------------------------------------------------------------------------------------------------------------------------
# Giving a segment more time where a plan fails its checks: times 1.1, at most ten times, else the plan is refused.
#
# Source: spec/boundary_predictor section 8. Speeds at the gates stay, so that neighbours are untouched and each segment can be
# mended by itself. More time does not always help: a segment flown much more slowly than its ends must brake and hurry again.

# Source: spec/boundary_predictor section 8, ours there: stretch by 1.1, at most 10 times.
FACTOR = 1.1
TRIES = 10
"""Most stretches of one segment."""


CLEARANCE = 0.12
"""From the path to every gate frame [m]: the body's radius of 0.06 m and as much again for the tracking error."""
FLOOR = 0.07
"""Least height of the path [m]: half the body's height and the same tracking error."""


@dataclass(frozen=True)
class Stretched:
    """What became of a plan's segments, shapes (segments,)."""

    durations: Array
    """[s]"""
    counts: ArrayInt
    """How often each was stretched."""
    kept: ArrayBool
    """Whether its checks are proven now."""


def stretch(durations: Array, passes: Callable[[int, Array], bool], factor: float = FACTOR, tries: int = TRIES) -> Stretched:
    """Stretch each segment until it passes.

    Args:
        durations: To begin from [s].
        passes: Whether segment i passes with these durations; it may look at its own only.
        factor: Of one stretch.
        tries: Most stretches of one segment. One that never passes keeps its first duration: no other was better.
    """
    times, counts = durations.copy(), np.zeros(len(durations), np.int64)
    kept = np.zeros(len(durations), dtype=bool)
    for index in range(len(durations)):
        trial = durations.copy()
        # The power, not a running product: the same duration whatever was tried before.
        for count in range(tries + 1):
            trial[index] = durations[index] * factor**count
            if passes(index, trial):
                times[index], counts[index], kept[index] = trial[index], count, True
                break
        else:
            counts[index] = tries
    return Stretched(times, counts, kept)


# -----------------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PlanOptions:
    """What a plan must keep, and what is done where it does not."""

    limits: Limits = TRACKING_ENVELOPE
    """Eq. 3 by default."""
    clearance: float = CLEARANCE
    """From the path to every gate frame [m]."""
    floor: float = FLOOR
    """Least height of the path [m]."""
    headings: Headings = "given"
    """Through each gate along its own heading, or along the leg that reaches it."""
    outside: Literal["refuse", "clamp"] = "refuse"
    """What is done with a course beyond the predictor's ranges. The speed before a gate is always clamped, and counted."""
    ranges: Array | None = None
    """Least and greatest value of each field, (8, 2); None: the predictor's own (attribute `ranges`), else the paper's."""
    ramp: bool = True
    """Turn to each gate's heading in the first quarter of a segment, or as slowly as a limit on the yaw rate asks; else the
    first heading is kept."""
    yaw_offset: float = 0.0
    """Added to yaw [rad]; -pi/2 flies with body y first, as the paper does."""
    factor: float = FACTOR
    """Of one stretch of a segment's time."""
    tries: int = TRIES
    """Most stretches of one segment; 0: none."""
    lowerings: int = TRIES
    """How often the speed at the faster end of a segment that no stretch mends may be lowered by the same factor, and the rest
    asked again; 0: the plan is refused at once."""
    speed_cap: Annotated[float, Bound(0.0, np.inf, "m/s", above=True, infinite=True)] = np.inf
    """Most speed through any gate [m/s]; 1.0 keeps every question inside the paper's grid."""

    def __post_init__(self) -> None:
        check_fields(self, "PlanOptions.")


@dataclass(frozen=True)
class BoundaryPlan:
    """A plan, what is certain of it, and how it came about; n gates over all laps, n + 1 segments."""

    name: str
    gates: tuple[Gate, ...]
    """Every gate of every lap, in order."""
    route: GateRoute
    trajectory: Trajectory | None
    """From rest to rest; None where the predictor had no answer."""
    certificate: Certificate | None
    speeds: Array
    """At start, gates and end [m/s], shape (n + 2,)."""
    durations: Array
    """Of the segments, the stop included [s], shape (n + 1,)."""
    predicted: Array
    """Durations before any stretch, shape (n + 1,)."""
    situations: Array
    """What the predictor was asked, before clamping, shape (n, 8)."""
    beyond: Array
    """How far outside its ranges that was, shape (n, 8)."""
    stretched: ArrayInt
    """Stretches of each segment, shape (n + 1,)."""
    lowered: ArrayInt
    """How often the speed through each gate was lowered, shape (n,)."""
    flyable: bool
    """Whether everything asked for is proven."""
    reason: str
    """Why not; empty where it is."""

    @property
    def clamped(self) -> int:
        """Situations of which a field was clamped."""
        return int(np.count_nonzero(np.any(self.beyond > 0.0, axis=-1)))

    @property
    def lap_time(self) -> float:
        """From the start to the last gate [s]; NaN without a trajectory."""
        return float(np.sum(self.durations[:-1])) if self.trajectory is not None else float("nan")

    def approved(self) -> Trajectory:
        """Return the trajectory; raises AirworthyError with the reason where the plan was refused."""
        if self.trajectory is None or not self.flyable:
            raise AirworthyError(f"The plan for {self.name} was refused: {self.reason}")
        return self.trajectory

    def report(self) -> dict[str, Any]:
        """Return everything as data, for a file."""
        return {
            "course": self.name,
            "gates": len(self.gates),
            "flyable": self.flyable,
            "reason": self.reason,
            "lap_time_s": self.lap_time,
            "speeds_m_s": self.speeds.tolist(),
            "durations_s": self.durations.tolist(),
            "predicted_s": self.predicted.tolist(),
            "stretches": self.stretched.tolist(),
            "lowered": self.lowered.tolist(),
            "clamped": self.clamped,
            "situations": self.situations.tolist(),
            "certificate": None if self.certificate is None else self.certificate.described(),
        }

    def __str__(self) -> str:
        head = "approved" if self.flyable else f"refused: {self.reason}"
        lines = [f"{self.name}: {head} ({len(self.gates)} gates in {self.lap_time:.2f} s)"]
        return "\n".join([*lines, *(self.certificate.sentences if self.certificate else ())])


# Source of the body's 0.06 m and 0.025 m: spec/boundary_predictor section 11; the allowance for tracking is ours.
# Ours: a bar that far off cannot be the nearest that matters, and most bars of a course are.
_REACH = 0.3  # frames farther than this beyond the clearance from a whole segment's box are left out [m]
_UNITS = {"v_prev": "m/s", "theta0": "rad", "thetaf": "rad"}


@dataclass(frozen=True)
class GridCheck:
    """Whether the predictor was asked only what it knows."""

    asked: int
    """Situations."""
    outside: Mapping[str, int]
    """Situations by field in which that field was outside its range and was clamped."""
    farthest: Mapping[str, float]
    """The farthest of them [m/s, m, rad]."""
    departure: float
    """Largest angle between a gate's heading and the leg that reaches it, which no predictor sees [rad]."""
    turned: int = 0
    """Gates that face further from the leg that reaches them than the predictor's turns go."""
    turned_by: float = 0.0
    """By how much at most [rad]."""

    @property
    def inside(self) -> bool:
        """Whether every situation was inside every range."""
        return not self.outside and not self.turned

    @property
    def geometry_inside(self) -> bool:
        """Whether the course was; the speed before a gate leaves the paper's grid by the method's own doing."""
        return not set(self.outside) - {"v_prev"} and not self.turned

    @classmethod
    def of(cls, beyond: Array, departure: Array, ranges: Array | None = None) -> GridCheck:
        """Return the check from how far each field was outside (n, 8), the departures (n,), and the predictor's ranges (8, 2).

        A predictor takes each gate to face along the leg that reaches it: a gate turned by more than the turns that it knows
        is as unknown as a leg turned by as much, the last gate too, which no leg follows.

        Args:
            beyond: How far each field was outside its range, (n, 8).
            departure: Of each gate's heading from the leg that reaches it, (n,) [rad].
            ranges: Of the predictor, (8, 2); None: nothing is known of them.
        """
        low, high = (-np.inf, np.inf) if ranges is None else ranges[FIELDS.index("thetaf")]
        turned = outside_of(departure, low, high)
        count, far = np.count_nonzero(beyond, axis=0), np.max(beyond, axis=0, initial=0.0)
        bad = [k for k in range(len(FIELDS)) if count[k]]
        return cls(
            len(beyond),
            {FIELDS[k]: int(count[k]) for k in bad},
            {FIELDS[k]: float(far[k]) for k in bad},
            float(np.max(np.abs(departure), initial=0.0)),
            int(np.count_nonzero(turned)),
            float(np.max(turned, initial=0.0)),
        )


@dataclass(frozen=True)
class Certificate:
    """The checks of one plan."""

    limit: LimitProof
    clearance: LimitCheck
    """To every gate's frame."""
    floor: LimitCheck
    grid: GridCheck
    crossings: CrossingCheck
    """Every passage of every gate."""

    @property
    def verdict(self) -> Verdict:
        """Of the polynomial: "proven" where every bound is, "violated" where one is broken, else "undecided"."""
        verdicts = {self.limit.verdict, self.clearance.verdict, self.floor.verdict, self.crossings.verdict}
        return "violated" if "violated" in verdicts else "undecided" if "undecided" in verdicts else "proven"

    @property
    def proven(self) -> bool:
        """Whether limit, clearance and floor are kept along the whole path, and the gates passed as asked and not otherwise."""
        return self.verdict == "proven"

    @property
    def sentences(self) -> tuple[str, ...]:
        """What is certain, for people."""
        checks = [_sentence(check) for check in (*self.limit.checks, self.clearance, self.floor)]
        return (*checks, _crossing_sentence(self.crossings), *_grid_sentences(self.grid))

    def described(self) -> dict[str, Any]:
        """Return the certificate as data."""
        checks = {check.quantity: check for check in (*self.limit.checks, self.clearance, self.floor)}
        numbers = {
            name: {
                "limit": check.limit,
                "sense": check.sense,
                "bound": check.bound,
                "attained": check.attained,
                "time_s": check.time,
                "verdict": check.verdict,
            }
            for name, check in checks.items()
        }
        grid = {
            "asked": self.grid.asked,
            "outside": dict(self.grid.outside),
            "farthest": dict(self.grid.farthest),
            "departure_rad": self.grid.departure,
            "turned": self.grid.turned,
            "turned_by_rad": self.grid.turned_by,
        }
        crossings = {
            "verdict": self.crossings.verdict,
            "fault": self.crossings.fault,
            "met": [[met.time, met.gate + 1, met.forwards] for met in self.crossings.crossings],
        }
        lines = {"verdict": self.verdict, "checks": numbers, "crossings": crossings, "grid": grid}
        return lines | {"sentences": list(self.sentences)}

    def __str__(self) -> str:
        return "\n".join(self.sentences)


def certify(
    trajectory: Trajectory,
    gates: Sequence[Gate],
    limits: Limits,
    grid: GridCheck,
    clearance: float = CLEARANCE,
    floor: float = FLOOR,
) -> Certificate:
    """Check a trajectory along its whole length.

    Args:
        trajectory: What would be flown.
        gates: Whose frames must be kept clear of, in the order in which they must be passed, all laps.
        limits: To be kept.
        grid: What is known of the predictor's situations.
        clearance: From the path to every frame [m].
        floor: Least height of the path [m].
    """
    return Certificate(
        prove(trajectory, limits),
        clearance_check(trajectory, gates, clearance),
        floor_check(trajectory, floor),
        grid,
        check_crossings(trajectory, gates),
    )


def floor_check(trajectory: Trajectory, floor: float) -> LimitCheck:
    """Check that the path is nowhere lower than a height [m]."""
    found = prove_half_space(trajectory, (0.0, 0.0, -1.0), -floor)
    return LimitCheck("floor", "m", floor, -found.bound, -found.attained, found.time, "at least")


def clearance_check(trajectory: Trajectory, gates: Sequence[Gate], clearance: float) -> LimitCheck:
    """Check that the path keeps at least `clearance` [m] from every bar of every gate.

    As `prove_clearance`, for all bars at once: pairs of a segment and a bar near it are halved together. Bars that a
    segment's own box keeps 0.3 m more than the clearance away from need no look.

    Args:
        trajectory: The path.
        gates: Whose frames are kept clear of.
        clearance: [m]
    """
    controls, times = derivative_controls(trajectory, 0)
    # A gate that is flown on several laps is one frame.
    bars = [bar for gate in dict.fromkeys(gates) for bar in gate.bars()]
    center = np.array([bar.center for bar in bars])
    half = np.array([bar.half_size for bar in bars])
    yaw = np.array([bar.yaw for bar in bars])
    low, high = np.min(controls, axis=-1)[:, None], np.max(controls, axis=-1)[:, None]
    apart = np.linalg.norm(np.maximum(0.0, np.maximum(low - center, center - high)), axis=-1)
    # The ball round a bar, not the bar: cheap, and it only ever keeps too much.
    segment, bar = np.nonzero(apart < np.linalg.norm(half, axis=-1) + clearance + _REACH)
    beyond = clearance + _REACH
    if not segment.size:
        return LimitCheck("clearance", "m", clearance, beyond, beyond, 0.0, "at least")
    c, s, zero = np.cos(yaw[bar]), np.sin(yaw[bar]), np.zeros(bar.size)
    turn = np.stack((np.stack((c, s, zero), -1), np.stack((-s, c, zero), -1), np.tile((0.0, 0.0, 1.0), (bar.size, 1))), 1)
    local = np.einsum("nij,njk->nik", turn, controls[segment] - center[bar][:, :, None])
    found = maximise(_nearness(local, half[bar], times[segment]), TOLERANCE * clearance, -clearance)
    # What was left out is at least `beyond` away.
    bound, attained = min(-found.bound, beyond), min(-found.attained, beyond)
    return LimitCheck("clearance", "m", clearance, bound, attained, found.time, "at least")


def _nearness(local: Array, half: Array, times: Array) -> Quantity:
    """Minus the distance of each piece to its own bar; the bar's size rides along as a polynomial of degree 0."""

    def gap(low: Array, high: Array, size: Array) -> Array:
        return np.asarray(np.linalg.norm(np.maximum(0.0, np.maximum(low - size, -high - size)), axis=-1))

    def upper(c: Controls) -> Array:
        return -gap(np.min(c[0], axis=-1), np.max(c[0], axis=-1), c[1][..., 0])

    return Quantity((local, half[:, :, None]), times, lambda v: -gap(v[0], v[0], v[1]), upper)


_NAMES = {
    "envelope": "Acceleration + k v^3",
    "thrust_max": "Thrust over mass",
    "thrust_min": "Thrust over mass",
    "clearance": "Distance to every gate frame",
    "floor": "Height",
}


def _sentence(check: LimitCheck) -> str:
    what = _NAMES.get(check.quantity, check.quantity.replace("_", " ").capitalize())
    verb = {"proven": "is", "violated": "is NOT", "undecided": "could not be shown to be"}[check.verdict]
    end = "nowhere more" if check.sense == "at most" else "nowhere less"
    # Four digits are shown.
    # Rounded to the unsafe side, so that the sentence never promises more than the proof.
    digits = 1e4
    bound = (np.ceil if check.sense == "at most" else np.floor)(check.bound * digits) / digits
    known = f"; proved along the whole path: {end} than {bound:.4f}" if np.isfinite(bound) else ""
    return f"{what} {verb} {check.sense} {check.limit:g} {check.unit}{known} (met {check.attained:.4f} at {check.time:.2f} s)."


def _crossing_sentence(check: CrossingCheck) -> str:
    if check.verdict == "proven":
        return f"The {len(check.asked)} gates are passed forwards, in order, and none else; proved along the whole path."
    if check.verdict == "violated":
        return f"The gates are NOT passed as asked: {check.fault}."
    return f"It could not be decided whether a gate is crossed at {check.open_times[0]:.2f} s."


def _grid_sentences(grid: GridCheck) -> list[str]:
    lines = []
    if grid.inside:
        lines.append(f"All {grid.asked} situations were inside the predictor's ranges.")
    for field, count in grid.outside.items():
        far, unit = grid.farthest[field], _UNITS.get(field, "m")
        lines.append(f"{field} was clamped in {count} of {grid.asked} situations, by at most {far:.3f} {unit}.")
    if grid.departure > 1e-4:
        far = degrees(grid.departure)
        lines.append(f"Gates face up to {far:.1f} degrees away from the leg that reaches them, which the predictor cannot see.")
    if grid.turned:
        far = degrees(grid.turned_by)
        lines.append(
            f"{grid.turned} of {grid.asked} gates do so by up to {far:.1f} degrees more than the predictor's turns go."
        )
    return lines
