"""From a course to a checked plan: predict gate by gate, join the segments, prove, mend where needed, or refuse.

Source: spec/boundary_predictor section 8. The start acts as gate 0 at rest. After the last gate the flight ends at rest
max(0.8 m, v^2) beyond it. A segment that fails is stretched; where no stretch helps, its faster end is slowed and the
rest predicted again, which is ours: the paper's grid ends at 1 m/s, so that a faster chain leaves what the predictor knows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from airworthy.core.errors import AirworthyError
from airworthy.pilots.boundary.certificate import (
    CLEARANCE,
    FLOOR,
    Certificate,
    GridCheck,
    certify,
    clearance_check,
    floor_check,
)
from airworthy.pilots.boundary.stretching import FACTOR, TRIES, Stretched, stretch
from airworthy.pilots.boundary.window import (
    RANGES,
    STOP_DISTANCE,
    Chain,
    Headings,
    Predictor,
    Route,
    predict_chain,
    route_of,
    situations_of,
)
from airworthy.trajectories import TRACKING_ENVELOPE, Course, Gate, Limits, Trajectory, prove, septic_through
from airworthy.trajectories.limits import usage

Array = NDArray[np.float64]
_GLANCE = np.linspace(0.02, 0.98, 17)
_STILL = 0.02  # no speed below this is worth lowering [m/s]
_SLOWEST_STOP = 0.5  # below this speed 2 d / v would take ever longer [m/s]


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
    ranges: NDArray[np.float64] | None = None
    """Least and greatest value of each field, (8, 2); None: the predictor's own (attribute `ranges`), else the paper's."""
    ramp: bool = True
    """Turn to each gate's heading in the first quarter of a segment; otherwise the first heading is kept."""
    yaw_offset: float = 0.0
    """Added to yaw [rad]; -pi/2 flies with body y first, as the paper does."""
    factor: float = FACTOR
    """Of one stretch of a segment's time."""
    tries: int = TRIES
    """Most stretches of one segment; 0: none."""
    lowerings: int = TRIES
    """How often the speed at the faster end of a segment that no stretch mends may be lowered by the same factor, and the rest
    asked again; 0: the plan is refused at once."""
    speed_cap: float = np.inf
    """Most speed through any gate [m/s]; 1.0 keeps every question inside the paper's grid."""


@dataclass(frozen=True)
class BoundaryPlan:
    """A plan, what is certain of it, and how it came about; n gates over all laps, n + 1 segments."""

    name: str
    gates: tuple[Gate, ...]
    """Every gate of every lap, in order."""
    route: Route
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
    stretched: NDArray[np.int64]
    """Stretches of each segment, shape (n + 1,)."""
    lowered: NDArray[np.int64]
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
        """The trajectory; raises AirworthyError with the reason where the plan was refused."""
        if self.trajectory is None or not self.flyable:
            raise AirworthyError(f"The plan for {self.name} was refused: {self.reason}")
        return self.trajectory

    def report(self) -> dict[str, Any]:
        """Everything as data, for a file."""
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
            "certificate": None if self.certificate is None else self.certificate.told(),
        }

    def __str__(self) -> str:
        head = "approved" if self.flyable else f"refused: {self.reason}"
        lines = [f"{self.name}: {head} ({len(self.gates)} gates in {self.lap_time:.2f} s)"]
        return "\n".join([*lines, *(self.certificate.sentences if self.certificate else ())])


def plan(course: Course, predictor: Any, options: PlanOptions | None = None, lap_count: int | None = None) -> BoundaryPlan:
    """Plan a course of gates.

    Args:
        course: Of kind "gates"; see `plan_gates` for gates without one.
        predictor: A network, an oracle, or anything callable: situations (k, 8) -> speed and duration (k, 2). An object
            with a method `predict` is asked through it.
        options: What must be kept.
        lap_count: Instead of the course's own.

    Raises:
        AirworthyError: Not a course of gates, or gates that no path joins. A course that cannot be flown is no error: it
            comes back refused.
    """
    return plan_many([course], predictor, options, lap_count)[0]


def plan_gates(
    gates: Sequence[Gate],
    start: tuple[float, float, float],
    start_yaw: float,
    predictor: Any,
    options: PlanOptions | None = None,
) -> BoundaryPlan:
    """As `plan`, from rest at `start` [m], heading `start_yaw` [rad], through gates in order."""
    return plan(Course("gates", "gates", gates=tuple(gates), start=start, start_yaw=start_yaw), predictor, options)


def plan_many(
    courses: Sequence[Course], predictor: Any, options: PlanOptions | None = None, lap_count: int | None = None
) -> list[BoundaryPlan]:
    """As `plan` for many courses: those with equally many gates are asked about together."""
    chosen = PlanOptions() if options is None else options
    gates = [_gates_of(course, lap_count) for course in courses]
    routes = [
        route_of(course.start, course.start_yaw, own, chosen.headings) for course, own in zip(courses, gates, strict=True)
    ]
    ask = _Ask(getattr(predictor, "predict", predictor), _ranges(predictor, chosen))
    plans: dict[int, BoundaryPlan] = {}
    for count in dict.fromkeys(route.count for route in routes):
        mine = [k for k, route in enumerate(routes) if route.count == count]
        chain = ask(np.stack([situations_of(routes[k]) for k in mine]), chosen.speed_cap)
        for row, k in enumerate(mine):
            plans[k] = _planned(courses[k].name, gates[k], routes[k], chain.row(row), ask, chosen)
    return [plans[k] for k in range(len(courses))]


@dataclass(frozen=True)
class _Ask:
    """A predictor and its ranges."""

    predict: Predictor
    ranges: Array | None

    def __call__(self, situations: Array, caps: Array | float) -> Chain:
        return predict_chain(situations, self.predict, self.ranges, caps)


def _gates_of(course: Course, lap_count: int | None) -> tuple[Gate, ...]:
    if course.kind != "gates":
        raise AirworthyError(f"The course {course.name!r} has {course.kind}, not gates: choose one of kind 'gates'.")
    count = course.lap_count if lap_count is None else lap_count
    if count < 1:
        raise AirworthyError(f"The number of laps must be 1 or more, but is {count!r}.")
    return course.gates * count


def _ranges(predictor: Any, options: PlanOptions) -> Array | None:
    if options.ranges is not None:
        return np.asarray(options.ranges, dtype=np.float64)
    own = getattr(predictor, "ranges", getattr(getattr(predictor, "contract", None), "ranges", RANGES))
    return None if own is None else np.asarray(own, dtype=np.float64)


def _planned(name: str, gates: tuple[Gate, ...], route: Route, chain: Chain, ask: _Ask, options: PlanOptions) -> BoundaryPlan:
    """Mend; where that fails, lower the faster end of the first segment that fails, and ask again from there."""
    caps, lowered = np.full(route.count, options.speed_cap), np.zeros(route.count, np.int64)
    while True:
        draft = _draft(route, chain, gates, options)
        fast = _too_fast(draft, lowered, options.lowerings)
        if fast is None:
            return _judged(name, gates, draft, lowered, options)
        caps[fast] = draft.speeds[fast + 1] / options.factor
        lowered[fast] += 1
        chain = ask(situations_of(route)[None], caps[None]).row(0)


@dataclass(frozen=True)
class _Draft:
    """One round of planning."""

    route: Route
    chain: Chain
    positions: Array
    speeds: Array
    predicted: Array
    mended: Stretched | None
    """None where the predictor had no answer."""


def _draft(route: Route, chain: Chain, gates: Sequence[Gate], options: PlanOptions) -> _Draft:
    speeds = np.concatenate(([0.0], chain.speeds, [0.0]))
    last = float(chain.speeds[-1])
    if not np.isfinite(last):
        return _Draft(route, chain, route.positions, speeds, np.append(chain.durations, np.nan), None)
    # v^2 metres ask for the same deceleration at every speed.
    distance = max(STOP_DISTANCE, last**2)
    positions = route.stopping_at(distance)
    predicted = np.append(chain.durations, 2.0 * distance / max(last, _SLOWEST_STOP))
    return _Draft(route, chain, positions, speeds, predicted, _mended(positions, route, speeds, predicted, gates, options))


def _too_fast(draft: _Draft, lowered: NDArray[np.int64], most: int) -> int | None:
    """The gate whose speed is to be lowered: the faster end of the first segment that fails; None where none is left."""
    if draft.mended is None:
        ends = [int(np.argmin(np.isfinite(draft.chain.speeds))) - 1]
    elif draft.mended.kept.all():
        return None
    else:
        failing = int(np.argmin(draft.mended.kept))
        ends = sorted((failing - 1, failing), key=lambda gate: -draft.speeds[gate + 1])
    able = [gate for gate in ends if 0 <= gate < draft.route.count]
    return next((gate for gate in able if lowered[gate] < most and draft.speeds[gate + 1] > _STILL), None)


def _judged(
    name: str, gates: tuple[Gate, ...], draft: _Draft, lowered: NDArray[np.int64], options: PlanOptions
) -> BoundaryPlan:
    grid = GridCheck.of(draft.chain.beyond, draft.route.departure)
    path, certificate, counts = None, None, np.zeros(len(draft.predicted), np.int64)
    durations = draft.predicted
    if draft.mended is None:
        missing = int(np.argmin(np.isfinite(draft.chain.speeds)))
        reason = f"The predictor has no speed and duration for gate {missing + 1} of {len(gates)}."
    else:
        durations, counts = draft.mended.durations, draft.mended.counts
        path = _joined(draft.positions, draft.route, draft.speeds, durations, options)
        certificate = certify(path, gates, options.limits, grid, options.clearance, options.floor)
        reason = _reason(certificate, draft.mended, options)
    return BoundaryPlan(
        name=name,
        gates=gates,
        route=draft.route,
        trajectory=path,
        certificate=certificate,
        speeds=draft.speeds,
        durations=durations,
        predicted=draft.predicted,
        situations=draft.chain.situations,
        beyond=draft.chain.beyond,
        stretched=counts,
        lowered=lowered,
        flyable=not reason,
        reason=reason,
    )


def _mended(
    positions: Array, route: Route, speeds: Array, durations: Array, gates: Sequence[Gate], options: PlanOptions
) -> Stretched:
    """Durations with which every segment passes by itself, where there are any."""
    if _keeps(_joined(positions, route, speeds, durations, options), gates, options):
        count = len(durations)
        return Stretched(durations, np.zeros(count, np.int64), np.ones(count, dtype=bool))

    def passes(index: int, times: Array) -> bool:
        pair = slice(index, index + 2)
        one = septic_through(positions[pair], route.directions[pair], speeds[pair], times[index : index + 1])
        return _keeps(one, gates, options)

    return stretch(durations, passes, options.factor, options.tries)


def _keeps(path: Trajectory, gates: Sequence[Gate], options: PlanOptions) -> bool:
    few = path.sample((path.knots[:-1, None] + np.diff(path.knots)[:, None] * _GLANCE).reshape(-1))
    return (
        # One sample over the limit settles it, at a tenth of a proof's price.
        usage(options.limits, few) <= 1.0
        and prove(path, options.limits).proven
        and floor_check(path, options.floor).verdict == "proven"
        and clearance_check(path, gates, options.clearance).verdict == "proven"
    )


def _joined(positions: Array, route: Route, speeds: Array, durations: Array, options: PlanOptions) -> Trajectory:
    headings = np.unwrap(route.headings) + options.yaw_offset
    return septic_through(positions, route.directions, speeds, durations, headings, options.ramp)


def _reason(certificate: Certificate, mended: Stretched, options: PlanOptions) -> str:
    """Why a plan is refused, in one sentence; empty where it is not."""
    grid = certificate.grid
    if options.outside == "refuse" and not grid.geometry_inside:
        fields = ", ".join(f"{name} by {far:.3f}" for name, far in grid.farthest.items() if name != "v_prev")
        return f"The course is outside the predictor's ranges ({fields})."
    if certificate.proven:
        return ""
    checks = (*certificate.limit.checks, certificate.clearance, certificate.floor)
    broken = next(check for check in checks if check.verdict != "proven")
    bad = [str(k + 1) for k in np.flatnonzero(~mended.kept)]
    where = f" on segment{'s' if len(bad) > 1 else ''} {', '.join(bad)}" if bad else ""
    after = f" after {options.tries} stretches by {options.factor:g}" if options.tries else ""
    after += f" and {options.lowerings} lower speeds" if options.lowerings else ""
    return f"{broken.quantity.capitalize()} is not kept{where}{after}: {broken}."
