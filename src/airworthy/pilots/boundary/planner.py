"""From a course to a checked plan: predict gate by gate, join the segments, prove, mend where needed, or refuse.

Source: spec/boundary_predictor section 8. The start acts as gate 0 at rest. After the last gate the flight ends at rest
max(0.8 m, v^2) beyond it. A segment that fails is stretched; where no stretch helps, its faster end is slowed and the
rest predicted again, which is ours: the paper's grid ends at 1 m/s, so that a faster chain leaves what the predictor knows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from airworthy.core.errors import AirworthyError
from airworthy.pilots.boundary.certificate import Certificate, GridCheck, certify
from airworthy.pilots.boundary.drafting import Draft, draft_of, joined
from airworthy.pilots.boundary.plans import BoundaryPlan, PlanOptions
from airworthy.pilots.boundary.stretching import Stretched
from airworthy.pilots.boundary.window import RANGES, Chain, Predictor, Route, predict_chain, route_of, situations_of
from airworthy.trajectories import Course, Gate

__all__ = ["BoundaryPlan", "PlanOptions", "plan", "plan_gates", "plan_many"]

Array = NDArray[np.float64]
_STILL = 0.02  # no speed below this is worth lowering [m/s]


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
        draft = draft_of(route, chain, gates, options)
        fast = _too_fast(draft, lowered, options.lowerings)
        if fast is None:
            return _judged(name, gates, draft, lowered, options)
        caps[fast] = draft.speeds[fast + 1] / options.factor
        lowered[fast] += 1
        chain = ask(situations_of(route)[None], caps[None]).row(0)


def _too_fast(draft: Draft, lowered: NDArray[np.int64], most: int) -> int | None:
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


def _judged(name: str, gates: tuple[Gate, ...], draft: Draft, lowered: NDArray[np.int64], options: PlanOptions) -> BoundaryPlan:
    grid = GridCheck.of(draft.chain.beyond, draft.route.departure)
    path, certificate, counts = None, None, np.zeros(len(draft.predicted), np.int64)
    durations = draft.predicted
    if draft.mended is None:
        missing = int(np.argmin(np.isfinite(draft.chain.speeds)))
        reason = f"The predictor has no speed and duration for gate {missing + 1} of {len(gates)}."
    else:
        durations, counts = draft.mended.durations, draft.mended.counts
        path = joined(draft.positions, draft.route, draft.speeds, durations, options)
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
