"""When and from where a racer in flight plans anew, and what it asks the planner for (spec/race 5.4).

A plan is made for the moment when it will be there: from the present plan's state so far ahead, moved by half of what the racer
is off it now. A plan that failed is tried again at once from the stored one; a second failure leaves the old plan in force.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Annotated

import numpy as np

from airworthy.core.arrays import Array
from airworthy.core.schema import Bound, check_fields
from airworthy.race.planning.glances import Glance
from airworthy.race.planning.guess import TimedPlan, begun_guess
from airworthy.race.planning.horizon import GateWindows, GlanceNeed, HorizonOptions, horizon_planner
from airworthy.race.planning.plan import RacePlan
from airworthy.race.planning.racer import RacerModel
from airworthy.race.planning.smooth import moved_plan

__all__ = [
    "LATE_MAX",
    "RaceReplanner",
    "RacerBelief",
    "ReplanOptions",
    "ReplanRule",
    "StoredReplanner",
    "glance_needs",
    "inner_windows",
    "too_late",
]

_LEAST_LOOK = 0.02
"""A glance of which less is lacking [s] is not asked for."""
_TOO_LATE = (0.2, 0.8)
"""Of a gate's own leg at least and at most so much at its end does not count: a look from there comes too late."""
_SIDEWAYS = 20.0
"""What is left of the thrust to go where a gate turns out to stand [m/s^2]: ours, two thirds of what a racer turns with."""
_ANSWER_S = 0.1
"""From a look to the plan that knows it [s]."""
_LEAST_LEFT = 0.1
"""No plan is begun for less than this before a gate [s]: there is nothing left to change."""
_CAP_EASE = 0.5
"""What a plan that slows down may be faster than evenly slower [m/s]; ours: its first nodes begin where the vehicle is."""
LATE_MAX = 0.3
"""Planned ahead at most [s]; who plans more slowly flies the old plan for longer."""


@dataclass(frozen=True)
class ReplanOptions:
    """Margins, looks, and when to plan."""

    horizon: HorizonOptions = field(default_factory=HorizonOptions)
    margin_wide: Annotated[float, Bound(0.0, 5.0, "m")] = 0.65
    """Margin of openings that are wider than `wide` [m]: what it costs there is nothing."""
    wide: Annotated[float, Bound(0.0, 100.0, "m")] = 1.2
    """Half width from which on an opening is wide [m]."""
    sigmas: Annotated[float, Bound(0.0, 10.0)] = 2.0
    """The margin grows by so many standard deviations of the gate's place across its opening."""
    need: Annotated[float, Bound(0.0, 10.0, "s")] = 0.12
    """Of each glance [s]."""
    moved: Annotated[float, Bound(0.0, 10.0, "m")] = 0.06
    """A gate of the next `watched` that is believed so far from where it was planned for asks for a plan [m]."""
    watched: Annotated[int, Bound(1, 100)] = 3
    strayed: Annotated[float, Bound(0.0, 10.0, "m")] = 0.25
    """So far off the plan a new one is asked for [m]."""
    oldest: Annotated[float, Bound(0.0, 60.0, "s")] = 1.2
    """A plan as old as this is made anew [s]."""
    pause: Annotated[float, Bound(0.0, 10.0, "s")] = 0.3
    """Between two plans at least [s]."""
    pause_moved: Annotated[float, Bound(0.0, 10.0, "s")] = 0.12
    """Where a gate moved [s]."""

    def __post_init__(self) -> None:
        check_fields(self, "ReplanOptions.")


@dataclass(frozen=True)
class RacerBelief:
    """What a racer believes at one moment."""

    time: float
    """[s since arming]."""
    state: Array
    """Position, velocity, attitude x y z w, body rate, (13,)."""
    next: int
    """Number of the next passage."""
    gates: GateWindows
    """All passages; `half` has their whole half widths and heights."""
    sigma: Array
    """Of each gate's place relative to the racer, to the left and upwards [m], (passages, 2)."""
    lacking: Sequence[tuple[Glance, float]]
    """Glances still to be taken, and how much of them [s]."""
    begin: Array | None = None
    """Where a plan begins, if it is not to begin where the plan in force leads, (13,)."""
    slow: float = np.inf
    """Largest speed along each axis at which the next gate is reached, having been looked at [m/s]."""


class ReplanRule(ABC):
    """When plans of one flight are made anew, whoever makes them.

    Args:
        centers: Where passages nominally are [m], (passages, 3).
        options: See there.
    """

    def __init__(self, centers: Array, options: ReplanOptions) -> None:
        self.options = options
        self._nominal_centers, self._centers = centers, centers.copy()
        self._asked, self._next = -np.inf, -1
        self.plans = 0
        """That were asked for."""
        self.failures = 0
        """Plans that led nowhere."""

    anywhere = False
    """Whether its plans begin anywhere, so that it goes on behind a detour."""

    @abstractmethod
    def build(self) -> None:
        """Prepare what takes long, before the race."""

    def wanted(self, belief: RacerBelief, flown: TimedPlan, late: float) -> bool:
        """Return whether to plan now.

        Args:
            belief: Now.
            flown: The plan in force.
            late: How long a plan takes until it is there [s].
        """
        options, after = self.options, belief.time - self._asked
        watched = slice(belief.next, belief.next + options.watched)
        moved = np.abs(belief.gates.center[watched] - self._centers[watched])
        shifted = bool(np.max(moved, initial=0.0) > options.moved)
        strayed = float(np.linalg.norm(flown.at(belief.time)[0][:3] - belief.state[:3])) > options.strayed
        if not (shifted or strayed or belief.next != self._next or after > options.oldest):
            return False
        left = flown.crossing(belief.next) - belief.time
        # A plan that does not reach the next gate says nothing of it: NaN is no reason to wait.
        return after >= (options.pause_moved if shifted else options.pause) and not left <= _LEAST_LEFT + late

    def plan(self, belief: RacerBelief, flown: TimedPlan, late: float) -> Callable[[], TimedPlan | None]:
        """Return the work of planning, which gives a plan for `late` from now, or None where there is none.

        Args:
            belief: Now.
            flown: The plan in force.
            late: See above [s].
        """
        self._asked, self._next, self._centers = belief.time, belief.next, belief.gates.center.copy()
        self.plans += 1
        return lambda: self._made(belief, flown, min(late, LATE_MAX))

    def hurry(self) -> None:
        """Have the next plan asked for at once: the last one led nowhere."""
        self._asked, self._next = -np.inf, -1

    @abstractmethod
    def _made(self, belief: RacerBelief, flown: TimedPlan, late: float) -> TimedPlan | None:
        """Return a plan for `late` from now, or None where there is none."""


class RaceReplanner(ReplanRule):
    """Plans of minimum time.

    Args:
        model: Who flies.
        nominal: The stored plan through all passages.
        centers: Where these nominally are [m], (passages, 3).
        options: See there.
    """

    anywhere = True

    def __init__(self, model: RacerModel, nominal: RacePlan, centers: Array, options: ReplanOptions) -> None:
        super().__init__(centers, options)
        self.model, self.nominal = model, nominal

    def build(self) -> None:
        """Build the solvers, which takes seconds."""
        for legs in range(1, min(self.options.horizon.ahead, len(self.nominal.legs)) + 1):
            horizon_planner(self.model, legs, self.options.horizon)

    def _made(self, belief: RacerBelief, flown: TimedPlan, late: float) -> TimedPlan | None:
        passages = range(belief.next, min(belief.next + self.options.horizon.ahead, len(self.nominal.legs)))
        planner = horizon_planner(self.model, len(passages), self.options.horizon)
        begin, nodes = belief.time + late, self.options.horizon.bounds.nodes
        rows = slice(passages.start, passages.stop)
        windows = inner_windows(_some(belief.gates, rows), belief.sigma[rows], self.options)
        late_share = too_late(belief.sigma[:, 0], self.nominal.legs)
        needs = glance_needs(belief.lacking, belief.gates.center, passages, nodes, late_share)
        state = _ahead(belief, flown, late) if belief.begin is None else belief.begin
        caps = None
        if np.isfinite(belief.slow):
            caps = _slowing(state, windows, nodes, belief.slow)
            steps = np.zeros(len(passages) * nodes)
            steps[: int((1.0 - float(late_share[belief.next])) * nodes)] = 1.0
            # Before all others, of which there may be more than a plan can ask for.
            needs.insert(0, GlanceNeed(belief.gates.center[belief.next], steps, self.options.need))
        shifts = belief.gates.center - self._nominal_centers
        for before in (flown, None):
            guess = begun_guess(begin, passages, nodes, before=before, nominal=self.nominal, shifts=shifts)
            answer = planner.solve(state, windows, guess, needs, caps=caps)
            if answer.usable:
                return TimedPlan(answer.plan, begin, passages.start)
        self.failures += 1
        return None


class StoredReplanner(ReplanRule):
    """A plan that is there before the race, moved with its gates; its clock goes on.

    Args:
        nominal: Through all passages.
        centers: Where these nominally are [m], (passages, 3).
        options: When to move it.
        stretch: It is flown so many times as slowly.
    """

    def __init__(self, nominal: RacePlan, centers: Array, options: ReplanOptions, stretch: float) -> None:
        super().__init__(centers, options)
        self.nominal, self.stretch = nominal, stretch

    def build(self) -> None:
        """Do nothing: a plan is moved in no time."""

    def _made(self, belief: RacerBelief, flown: TimedPlan, late: float) -> TimedPlan | None:
        shifts = belief.gates.center - self._nominal_centers
        return TimedPlan(moved_plan(self.nominal, shifts, self.stretch), 0.0, 0)


def _some(gates: GateWindows, rows: slice) -> GateWindows:
    return GateWindows(*(getattr(gates, item.name)[rows] for item in fields(gates)))


def inner_windows(gates: GateWindows, sigma: Array, options: ReplanOptions) -> GateWindows:
    """Return gates with the windows that margins leave of their openings.

    Args:
        gates: With whole openings.
        sigma: Of their places relative to the racer, to the left and upwards [m], (gates, 2).
        options: Margins.
    """
    bounds = options.horizon.bounds
    margin = np.where(gates.half[:, :1] > options.wide, options.margin_wide, bounds.margin) + options.sigmas * sigma
    return replace(gates, half=np.maximum(gates.half - margin, bounds.window))


def too_late(sigma: Array, legs: Array) -> Array:
    """Return which share of each gate's own leg, at its end, is too late to look at it, (passages,).

    Two standard deviations to one side take sqrt(4 sigma / a) from rest, and the plan has to be made first.

    Args:
        sigma: Of gates' places across the flight [m], (passages,).
        legs: Durations of the legs that end at them [s], (passages,).
    """
    return np.clip((_ANSWER_S + np.sqrt(4.0 * sigma / _SIDEWAYS)) / legs, *_TOO_LATE)


def glance_needs(
    lacking: Sequence[tuple[Glance, float]], centers: Array, passages: range, nodes: int, late_share: Array
) -> list[GlanceNeed]:
    """Return what a plan has to look at, in the order of the glances.

    Args:
        lacking: Glances and what is lacking of each [s].
        centers: Of all passages [m], (all passages, 3).
        passages: That the plan reaches.
        nodes: On each leg.
        late_share: Of each gate's own leg, as of `too_late`, (all passages,).
    """
    first, ahead, needs = passages.start, len(passages), []
    for glance, seconds in lacking:
        begin, end = max(glance.first - first, 0), min(glance.last - first, ahead - 1)
        if end < begin or seconds <= _LEAST_LOOK:
            continue
        steps = np.zeros(ahead * nodes)
        steps[begin * nodes : (end + 1) * nodes] = 1.0
        if glance.last == glance.gate and glance.last - first <= ahead - 1:
            steps[int((glance.last - first + 1.0 - float(late_share[glance.gate])) * nodes) :] = 0.0
        needs.append(GlanceNeed(centers[glance.gate], steps, seconds))
    return needs


def _slowing(state: Array, gates: GateWindows, nodes: int, slow: float) -> Array:
    """Return largest speeds at the nodes of a plan that slows down to its first gate, (nodes of all legs + 1,) [m/s].

    Args:
        state: Where it begins, (13,).
        gates: That it reaches.
        nodes: On each leg.
        slow: At the first gate [m/s].
    """
    fast = float(np.linalg.norm(state[3:6]))
    # As if it slowed down evenly all the way: nodes of a leg are equally far apart in time.
    caps = np.full(len(gates.center) * nodes + 1, np.inf)
    caps[: nodes + 1] = _CAP_EASE + np.maximum(fast - (fast - slow) * np.arange(nodes + 1) / nodes, slow)
    return caps


def _ahead(belief: RacerBelief, flown: TimedPlan, late: float) -> Array:
    """Return the state where a plan begins: the present plan's then, with half of the present errors of place and speed."""
    if late <= 0.0:
        return belief.state
    now, then = flown.at(belief.time)[0], flown.at(belief.time + late)[0].copy()
    then[:6] += 0.5 * (belief.state[:6] - now[:6])
    return then
