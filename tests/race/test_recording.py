"""What is kept of a flight for pages: rows, telemetry and its faults, and that nothing of it depends on who flies beside."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from airworthy.core.errors import AssetError
from airworthy.core.files import json_text
from airworthy.race import load_race, race_class
from airworthy.race.benchmark.flight import RaceFlight, fly_races
from airworthy.race.benchmark.recording import RaceTrace, trace_content, trace_of
from airworthy.race.benchmark.telemetry import KEYS, checked_telemetry
from airworthy.race.onboard import Onboard, OnboardFacts
from airworthy.race.pilots.catalogue import PilotEntry
from airworthy.race.pilots.servo import Servo

RACE = load_race("alphapilot")
SECONDS = 0.6


class Says(Servo):
    """The servo for a moment, which says all that it may."""

    said: Any = None

    def begin(self, facts: OnboardFacts) -> None:
        super().begin(facts)
        self._calls = 0

    def command(self, onboard: Onboard) -> Any:
        if onboard.time >= SECONDS:
            raise RuntimeError("enough")
        return super().command(onboard)

    def telemetry(self) -> Any:
        self._calls += 1
        return {
            "position": [1.0, 2.0, 3.0],
            "position_sigma": [0.1, np.nan, 0.1],
            "gates": np.zeros((11, 3)),
            "gate_sigma": np.arange(11.0),
            "nis": 1.5,
            "next": self._calls,
            # A new plan every ten frames, of a hundred points.
            "plan": np.full((100, 3), self._calls // 10) + np.arange(100.0)[:, None],
        }


class Quiet(Says):
    telemetry = None  # type: ignore[assignment]


class Fails(Says):
    def telemetry(self) -> Any:
        super().telemetry()
        if self._calls % 2:
            raise RuntimeError("no idea")
        return {"gates": np.zeros((3, 3))}


def fly(made: Any, *courses: str) -> tuple[RaceFlight, ...]:
    entry = PilotEntry("own", made, False, False, 240.0, ("imu", "beacons"))
    return fly_races(RACE, courses, entry, race_class("noisy"))


def same(a: RaceTrace, b: RaceTrace) -> bool:
    return json_text(trace_content(a)) == json_text(trace_content(b))


def test_a_row_is_kept_of_each_frame_and_all_that_the_pilot_says() -> None:
    (flight,) = fly(Says, "published/3")
    trace = flight.trace
    # 0.6 s at 60 Hz, the first at arming; a race is judged in tenths of a second, behind which nobody is asked.
    assert np.allclose(trace.time[:37] * 60.0, np.arange(37), atol=1e-4)
    assert trace.position[0] == pytest.approx(RACE.start.position)
    moved = np.diff(trace.position, axis=0)
    mean = 0.5 * (trace.velocity[1:] + trace.velocity[:-1]) / 60.0
    assert np.abs(moved - mean).max() < 2e-3
    # At the start the first gate is ahead, and none but the four beacons of a gate are counted for it.
    assert trace.visible.shape == (len(trace.time), 11)
    assert trace.visible[:, 0].max() == 4
    said = 36
    assert set(trace.said) == set(KEYS) - {"plan"}
    assert np.array_equal(trace.said["next"][:said], np.arange(1, said + 1))
    assert np.isnan(trace.said["position_sigma"][0, 1])
    assert list(trace.plan_row) == [0, 9, 19, 29]
    assert trace.plan_at(8)[[0, -1], 0].tolist() == [0.0, 99.0]
    assert trace.plan_at(9)[0, 0] == 1.0
    assert len(trace.plan_at(9)) == 40
    assert flight.telemetry_errors == 0


def test_a_trace_comes_back_from_json_and_damage_is_told() -> None:
    (flight,) = fly(Says, "published/3")
    content = json.loads(json_text(trace_content(flight.trace)))
    back = trace_of(content, "a flight", "block.json")
    assert same(back, flight.trace)
    assert np.array_equal(back.position, flight.trace.position)
    assert np.array_equal(back.said["gates"], flight.trace.said["gates"], equal_nan=True)
    content["position"]["data"] = content["position"]["data"][:-8]
    with pytest.raises(
        AssetError, match=r"trace of a flight in 'block\.json' is damaged: delete that file, and give the same command"
    ):
        trace_of(content, "a flight", "block.json")


@pytest.mark.slow
def test_telemetry_changes_no_bit_of_a_flight_and_its_faults_end_none() -> None:
    flights = {made: fly(made, "published/3")[0] for made in (Says, Quiet, Fails)}
    assert len({flight.commands_sha256 for flight in flights.values()}) == 1
    failed = flights[Fails]
    assert failed.telemetry_errors == 36
    assert "no idea" in failed.telemetry_reason
    assert failed.reason == flights[Quiet].reason
    assert failed.trace.said == {}
    assert np.array_equal(failed.trace.position, flights[Quiet].trace.position)


def test_traces_of_a_batch_are_those_of_its_singles() -> None:
    names = ("published/2", "fresh/3/1")
    both = fly(Says, *names)
    assert all(same(flight.trace, fly(Says, name)[0].trace) for flight, name in zip(both, names, strict=True))


def test_where_a_flight_touched_something_is_kept() -> None:
    class Falls(Quiet):
        def command(self, onboard: Onboard) -> Any:
            return [0.0, 0.0, 0.0, 0.0]

    (flight,) = fly(Falls, "nominal")
    assert flight.result.end == "contact"
    # The vehicle's sphere of 0.15 m on the floor.
    assert flight.trace.end_position[2] == pytest.approx(0.15, abs=0.02)
    # Without telemetry and plans, too, it comes back.
    assert same(trace_of(trace_content(flight.trace), "a flight", "block.json"), flight.trace)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ([1.0], "returned list; expected a dict"),
        ({"where": 1.0}, "has the key 'where'"),
        ({"position": [1.0, 2.0]}, "'position' of shape \\(2,\\) for 1 flights"),
        ({"gate_sigma": np.zeros(10)}, "'gate_sigma' of shape \\(10,\\)"),
        ({"plan": np.zeros((5, 2))}, "'plan' of shape"),
        ({"plan": np.zeros((9999, 3))}, "'plan' of shape"),
        ({"nis": np.inf}, "'nis' with an infinite number"),
        ({"nis": "low"}, "could not convert"),
    ],
)
def test_telemetry_that_cannot_be_used_is_told(given: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        checked_telemetry(given, 1, 11)


def test_telemetry_of_a_batch_has_a_row_per_flight() -> None:
    first, second = checked_telemetry({"nis": [1.0, 2.0], "plan": np.ones((2, 4, 3))}, 2, 11)
    assert (first["nis"], second["nis"]) == (1.0, 2.0)
    assert second["plan"].shape == (4, 3)
    with pytest.raises(ValueError, match="'nis' of shape \\(\\)"):
        checked_telemetry({"nis": 1.0}, 2, 11)
