"""What a planner's flights to a goal are: their mission, their sensors, their end, for flights that are written here.

Module: airworthy.benchmarks.fly.scene.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests.benchmarks.tracking_stage import stage
from tests.fixtures.transcripts import Transcript, plain

from airworthy.benchmarks.fly import scene as places
from airworthy.benchmarks.fly.config import FlyConfig
from airworthy.pilots import FlightPlan, FlightRun
from airworthy.scenes import SceneBatch
from airworthy.simulation import FlightTable, SimulatorConfig
from airworthy.tasks import NavigationProtocol
from airworthy.vehicles import vehicle

FILES = Path(__file__).parent / "snapshots" / "fly"
WAY = FlyConfig(pilot="straight", waypoints=("-3,0.5,1", "2.5,1,1.5"), seed=9)
TWO = [vehicle("carl")] * 2
OUTCOMES = (
    "",
    "success",
    "not_at_goal",
    "timeout_no_path",
    "collision",
    "out_of_bounds",
    "diverged",
    "else",
    "success",
    "collision",
)


@pytest.fixture
def told(capsys: pytest.CaptureFixture[str]) -> Transcript:
    return Transcript(capsys)


def flights(status: tuple[int, ...]) -> FlightTable:
    env = np.repeat(np.arange(len(status)), 3)
    columns: dict[str, Any] = {"env": env, "t": np.tile([0.0, 0.1, 0.2], len(status))}
    columns["status"] = np.where(np.arange(len(env)) % 3 == 2, np.array(status)[env], 0).astype(np.int8)
    for name in ("position_x_m", "position_y_m", "position_z_m", "velocity_x_m_s", "velocity_y_m_s", "velocity_z_m_s"):
        columns[name] = 0.0 * env
    for axis in "xyz":
        columns[f"rate_{axis}_rad_s"] = columns[f"attitude_{axis}"] = 0.0 * env
    columns["attitude_w"] = 1.0 + 0.0 * env
    return FlightTable.from_columns(columns)


def test_missions(told: Transcript) -> None:
    ground = stage(0, 0)
    radius = np.array([0.3, 0.45])
    asked = {
        "usual": WAY,
        "with limits": replace(WAY, speed=1.5, acceleration=4.0),
        "at corners": replace(WAY, waypoints=("-4,-4,0", "4,4,3")),
        "start below": replace(WAY, waypoints=("0,0,-0.001", "1,0,1")),
        "start beside": replace(WAY, waypoints=("0,4.5,1", "1,0,1")),
        "goal above": replace(WAY, waypoints=("0,0,1", "1,0,3.25")),
        "goal behind": replace(WAY, waypoints=("0,0,1", "-9,0,1")),
    }
    for name, config in asked.items():
        told.run(name, lambda config=config: plain(vars(places._mission(config, TWO, radius, ground)) | {"vehicle": None}))
    airframes = places._mission(WAY, TWO, radius, ground).vehicle
    told.run("airframes", lambda: plain(vars(airframes)))
    told.check(FILES / "missions.txt")


@pytest.mark.parametrize("pilot", ["straight", "ego", "oracle"])
def test_flights_to_a_goal(pilot: str, told: Transcript) -> None:
    ground = stage(0, 0)
    batch = SceneBatch(ground, 2)

    def made(config: FlyConfig) -> Any:
        one = places.GoalFlight(config, TWO, ground, batch)
        plan = one.plan(FlightPlan(duration=1.0, bounds=5.0))
        return plain(
            [
                one.level,
                one.radius,
                type(one.pilot).__name__,
                sorted(one.sensors),
                one._rules.time_limit_s,
                plan.duration,
                plan.bounds,
                plan.finished == one._finished,
                one._watch._goal,
                one._watch._lower,
                one._watch._upper,
                one.configured(SimulatorConfig()).control != SimulatorConfig().control,
            ]
        )

    told.run("rigid", lambda: made(replace(WAY, pilot=pilot, time_limit=7.5)))
    told.run("without rotors", lambda: made(replace(WAY, pilot=pilot, dynamics="semi_kinematic")))
    told.check(FILES / f"goal_{pilot}.txt")


def test_ends_of_flights_to_a_goal(told: Transcript) -> None:
    one = object.__new__(places.GoalFlight)
    one._rules = NavigationProtocol(time_limit_s=7.5)
    count = len(OUTCOMES)
    causes = [""] * count
    causes[7:] = ["it gave nothing", "it was late", "it raised"]
    one.pilot = SimpleNamespace(causes=causes)  # type: ignore[assignment]
    one._watch = SimpleNamespace(outcome=np.array(OUTCOMES), end=np.arange(count) * 0.51)  # type: ignore[assignment]
    known = {"causes": {3: "said before", 4: "said before"}, "outcomes": {0: "landed", 1: "landed"}}
    for name, status in (("flying", (0,) * count), ("ended", (1,) * count), ("some", (0, 1) * (count // 2))):
        scored = one.scored(FlightRun(flights(status), **known))  # type: ignore[arg-type]
        told.run(name, lambda scored=scored: plain([scored.outcomes, scored.causes]))
    assert known == {"causes": {3: "said before", 4: "said before"}, "outcomes": {0: "landed", 1: "landed"}}
    told.check(FILES / "goal_ends.txt")


def test_when_flights_to_a_goal_are_over() -> None:
    one = object.__new__(places.GoalFlight)
    told: list[Any] = []
    active = np.array([True, False, True, False])
    one._watch = SimpleNamespace(update=lambda *given: told.append(given), active=active)  # type: ignore[assignment]
    failed = np.array([False, False, True, True])
    searching = np.array([1, 0, 0, 1])
    simulator: Any = SimpleNamespace(
        env_count=4, time=1.5, position="p", velocity="v", diverged="d", field=lambda name: np.array([[0.0, 0.0, 0.0, 1.0]] * 4)
    )
    for planner in (SimpleNamespace(searching=searching), SimpleNamespace()):
        one._searcher = planner
        one.pilot = SimpleNamespace(failed=failed)  # type: ignore[assignment]
        np.testing.assert_array_equal(one._finished(simulator), [False, True, True, True])
        np.testing.assert_array_equal(one.pilot.over, ~active)
    for given, wanted in zip(told, (searching.astype(bool), np.zeros(4, bool)), strict=True):
        assert given[:3] == (1.5, "p", "v")
        assert given[5] == "d"
        np.testing.assert_allclose(given[3], 1.0)
        assert np.isnan(given[4]).all()
        assert len(given[4]) == 4
        assert given[6].dtype == bool
        np.testing.assert_array_equal(given[6], wanted)
