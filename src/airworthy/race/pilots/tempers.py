"""Other tempers of `race`, on the same estimate, tracker and rate loop: `race:sure`, and two that need no solver, `race:stored`
and `poly`.
"""

from __future__ import annotations

import numpy as np

from airworthy.race.pilots.racing import RacingPilot
from airworthy.race.planning.bounds import PlanBounds
from airworthy.race.planning.horizon import GateWindows, HorizonOptions
from airworthy.race.planning.nominal import nominal_plan
from airworthy.race.planning.plan import RacePlan
from airworthy.race.planning.racer import RacerModel
from airworthy.race.planning.replanner import ReplanOptions, ReplanRule, StoredReplanner
from airworthy.race.planning.smooth import moved_plan, smooth_plan

__all__ = ["PolyPilot", "StoredPilot", "SurePilot"]

_SURE = ReplanOptions(
    horizon=HorizonOptions(bounds=PlanBounds(nodes=12, iterations=60, power=0.88, margin=0.5)),
    margin_wide=0.75,
    need=0.2,
)
"""Less thrust, wider margins and longer looks (spec/race 5.5)."""
_STRETCH = 1.12
"""Of the stored plan: a tenth of its speed, a fifth of its thrust is then left for moving with the gates. Ours."""


class SurePilot(RacingPilot):
    """`race`, more careful."""

    def __init__(self) -> None:
        super().__init__(_SURE)


class StoredPilot(RacingPilot):
    """The stored plan, moved with the gates as they are seen."""

    @classmethod
    def check(cls) -> None:
        """Raise nothing: no solver is needed."""

    def _planner(self, model: RacerModel, gates: GateWindows, options: ReplanOptions) -> tuple[ReplanRule, RacePlan]:
        nominal = nominal_plan(model, gates)
        first = moved_plan(nominal, np.zeros_like(gates.center), _STRETCH)
        return StoredReplanner(nominal, gates.center, options, _STRETCH), first


class PolyPilot(RacingPilot):
    """A path of least snap through the nominal gates, moved with them as they are seen; looks along its way."""

    @classmethod
    def check(cls) -> None:
        """Raise nothing: no solver is needed."""

    def _planner(self, model: RacerModel, gates: GateWindows, options: ReplanOptions) -> tuple[ReplanRule, RacePlan]:
        path = smooth_plan(model, self._start(), np.zeros(3), gates)
        return StoredReplanner(path, gates.center, options, 1.0), path
