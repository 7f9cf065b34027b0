"""The stored plan that pilots begin with: whose it is, and what it is refused for."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from airworthy.core.errors import AirworthyError
from airworthy.race import RacePlanOptions, RacerModel, course_of, load_race
from airworthy.race.planning.horizon import GateWindows, HorizonOptions, whole_openings
from airworthy.race.planning.nominal import nominal_plan
from airworthy.race.planning.plan import flown_gates
from airworthy.race.planning.replanner import ReplanOptions, ReplanRule
from airworthy.vehicles import vehicle

RACER = RacerModel.of(vehicle("flightgoggles_2019"))
GATES = whole_openings(flown_gates(course_of(load_race("alphapilot"), "nominal")))


def moved(passage: int, by: tuple[float, float, float]) -> GateWindows:
    center = GATES.center.copy()
    center[passage] += by
    return replace(GATES, center=center)


@pytest.mark.parametrize("word", ["flightgoggles_2019", "flightgoggles"])
def test_both_vehicles_of_the_race_begin_with_it(word: str) -> None:
    plan = nominal_plan(RacerModel.of(vehicle(word)), GATES)
    assert len(plan.legs) == 11
    assert np.max(plan.defects()) < 1e-3


@pytest.mark.parametrize(
    ("gates", "said"),
    [
        (moved(4, (0.0, 0.1, 0.0)), "passage 5"),
        (moved(0, (0.0, 0.0, 1.5)), "passage 1"),
        (replace(GATES, normal=-GATES.normal), "passage 1"),
        (GateWindows(*(getattr(GATES, name)[:9] for name in ("center", "left", "up", "normal", "half"))), "9"),
    ],
)
def test_another_race_is_refused(gates: GateWindows, said: str) -> None:
    with pytest.raises(AirworthyError, match=f"alphapilot.*{said}"):
        nominal_plan(RACER, gates)


def test_another_vehicle_is_refused() -> None:
    with pytest.raises(AirworthyError, match="this vehicle does not fly it"):
        nominal_plan(replace(RACER, mass=1.1 * RACER.mass), GATES)


def test_options_of_offline_plans_are_refused_in_flight() -> None:
    with pytest.raises(AirworthyError, match="expected PlanBounds"):
        HorizonOptions(bounds=RacePlanOptions(speed_max=5.0))


def test_a_rule_without_plans_is_none() -> None:
    with pytest.raises(TypeError, match="abstract"):
        ReplanRule(GATES.center, ReplanOptions())  # type: ignore[abstract]
