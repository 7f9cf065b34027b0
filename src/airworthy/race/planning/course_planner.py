"""Plans of `truth:race` for the races that have a scene of their own: bounds for each, the first plan, and plans in flight."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace

import numpy as np

from airworthy.core.arrays import Array
from airworthy.core.errors import AirworthyError
from airworthy.race.planning.bounds import RacePlanOptions
from airworthy.race.planning.minimum_time import minimum_time_plan, rest_plan
from airworthy.race.planning.plan import RacePlan
from airworthy.race.planning.racer import RacerModel
from airworthy.race.record import Race
from airworthy.vehicles import Vehicle, thrust_limits

__all__ = ["CoursePlanner", "plan_options"]

_SMALL = 1.0
"""Openings narrower than this are flown as small ones [m]: those of LSY's races measure 0.4 m, all others 1.4 m or more."""
_ERROR = 0.045
"""What flying errs there [m], beside the vehicle's radius; measured: see docs/howto/race.md."""

_SLEW_TIME = 0.2
"""From no thrust to all of it [s]: six lags of the kingfisher's rotors. Measured on one lap of uzh_split_s: 6 cm from the plan
at most, against 14 cm with a third of the time, for 0.02 s."""
_SLACK = 30.0
"""Price of a metre beside a window in flight [s/m] (spec/race 5.4)."""
_ITERATIONS = 150
"""Of the solver in flight."""


def plan_options(race: Race, flown_by: Vehicle) -> RacePlanOptions:
    """Return the bounds with which a race is planned.

    Args:
        race: Whose gates, limits and information count.
        flown_by: Whose size counts.
    """
    slew = float(min(thrust_limits(flown_by)[1])) / _SLEW_TIME
    least = 1.4 * float(max(thrust_limits(flown_by)[0]))
    narrowest = min(min(gate.opening or (_SMALL, _SMALL)) for gate in race.gates)
    if narrowest >= _SMALL:
        return RacePlanOptions(nodes=12, rotor_min=least, power=0.97, turn_max=50.0, slew=slew)
    # About the reference point, which plans are of: a body off it reaches farther.
    radius = max(flown_by.body.size) + float(np.linalg.norm(flown_by.body.center))
    small = RacePlanOptions(
        nodes=12,
        rotor_min=least,
        slew=slew,
        power=0.8,
        margin=radius + _ERROR,
        window=0.02,
        clearance=radius + _ERROR,
        wall=0.1,
        height_min=0.0,
        cone=0.5,
        turn_max=60.0,
        rate_max=8.0,
    )
    # Gates that are told at 0.7 m leave 0.5 s at this speed; what is planned so late is flown less exactly.
    return (
        replace(
            small,
            speed_max=1.4,
            cruise=2.4,
            substeps=3,
            cone_nodes=4,
            margin=radius + 0.075,
            clearance=radius + 0.06,
            cone=0.65,
            turn_max=45.0,
            rate_max=7.0,
        )
        if race.information.gates == "near"
        else small
    )


@dataclass(frozen=True)
class CoursePlanner:
    """Plans for one race and vehicle."""

    model: RacerModel
    options: RacePlanOptions
    nominal: Race | None = None
    """A race whose courses are all told alike but for their start: plans begin with that from the nominal one."""
    _known: list[RacePlan] = field(default_factory=list)

    @classmethod
    def of(cls, race: Race, flown_by: Vehicle) -> CoursePlanner:
        """Return the planner of a race.

        Args:
            race: Nominal.
            flown_by: Who flies it.
        """
        alike = race.information.gates == "near" and race.layout is None
        return cls(RacerModel.of(flown_by), plan_options(race, flown_by), race if alike else None)

    def with_reserve(self, share: float) -> CoursePlanner:
        """Return the planner whose plans leave more thrust to who flies them.

        Args:
            share: Part of all thrust that is left besides, 0 or more.
        """
        return CoursePlanner(self.model, replace(self.options, power=self.options.power - share), self.nominal)

    def first(self, race: Race, unseen: Collection[str] = ()) -> RacePlan:
        """Return a plan from the start of a race as it is told; raises AirworthyError where none is found.

        Args:
            race: As it is told.
            unseen: Gates that may stand elsewhere.
        """
        if self.nominal is None:
            return minimum_time_plan(race, self.model, self.options, unseen)
        if not self._known:
            # Gates as they are told, and not where any course has them: no flight's plan depends on those before.
            told = {name for name, _ in self.nominal.passes}
            self._known.append(minimum_time_plan(self.nominal, self.model, self.options, told))
        return minimum_time_plan(race, self.model, self.options, unseen, self._known[0])

    def rest(
        self, race: Race, *, state: Array, passed: int, before: RacePlan, clock: float, unseen: Collection[str] = ()
    ) -> RacePlan | None:
        """Return a plan for the rest of a race, None where none is found.

        Args:
            race: As it is told by now.
            state: Where the plan begins, (13,).
            passed: Passages that lie behind.
            before: The plan in force.
            clock: Its time at that state [s].
            unseen: Gates that may stand elsewhere yet.
        """
        options = replace(self.options, slack=_SLACK, iterations=_ITERATIONS)
        try:
            return rest_plan(race, self.model, options, state=state, passed=passed, before=before, clock=clock, unseen=unseen)
        except AirworthyError:
            return None  # the plan in force stays
