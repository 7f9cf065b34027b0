"""The wall between race pilots and truth: what records hold, that flights do not see each other, and that nothing leaks."""

from __future__ import annotations

import math
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from airworthy.core.arrays import Array
from airworthy.core.errors import AirworthyError
from airworthy.optics import Pinhole
from airworthy.race import RaceClass, load_race, race_briefing, race_class
from airworthy.race.benchmark.flight import RaceFlight, fly_races
from airworthy.race.benchmark.job import RaceBenchConfig, run_race_bench
from airworthy.race.benchmark.tables import row_of
from airworthy.race.onboard import Onboard, OnboardFacts, Truth, onboard_facts
from airworthy.race.pilots.catalogue import PilotEntry, race_pilot
from airworthy.race.pilots.servo import Servo
from airworthy.sensors import rig
from airworthy.vehicles import Uncertainty, Vehicle, vehicle, write_vehicle
from airworthy.vehicles.uncertainty import uncertain_values

SECONDS = 0.6
RACE = load_race("alphapilot")


class ShortServo(Servo):
    """The servo, which gives up after a moment."""

    def command(self, onboard: Onboard) -> Array:
        if onboard.time >= SECONDS:
            raise RuntimeError("enough")
        return super().command(onboard)


class ShortTruth(ShortServo):
    """Commands what the true gates say."""

    def command(self, onboard: Onboard, truth: Truth) -> Array:  # type: ignore[override]
        return super().command(onboard) + 1e-3 * truth.corners[0, 0, 0, 0]


def entry(made: Any, truth: bool = False, batched: bool = False) -> PilotEntry:
    return PilotEntry("truth:short" if truth else "short", made, truth, batched, 240.0, ("imu", "beacons"))


class Stream:
    """Keeps what pilots were given, or gives it again."""

    def __init__(self) -> None:
        self.kept: dict[int, Onboard] = {}

    def keep(self, step: int, onboard: Onboard) -> Onboard:
        self.kept[step] = onboard
        return onboard

    def play(self, step: int, onboard: Onboard) -> Onboard:
        return self.kept.get(step, onboard)

    def bytes(self) -> bytes:
        return b"".join(
            b"".join([item.imu.tobytes(), *(f"{x.stamp}".encode() + x.pixel.tobytes() for x in item.frames)])
            + b"".join(x.distance.tobytes() for x in item.ranger)
            for item in self.kept.values()
        )


def fly(
    course: str, made: Any = ShortServo, tap: Any = None, truth: bool = False, conditions: RaceClass | None = None
) -> RaceFlight:
    return fly_races(RACE, (course,), entry(made, truth), conditions or race_class("noisy"), tap=tap)[0]


@pytest.mark.parametrize("word", ["published", "noisy", "hard", "v3"])
def test_an_estimator_is_briefed_from_the_facts_alone(word: str) -> None:
    conditions = race_class(word)
    camera = rig("flightgoggles_race")["ir_beacons"].projection
    assert isinstance(camera, Pinhole)
    facts = onboard_facts(RACE, vehicle(conditions.vehicle), camera, conditions, rates=(960.0, 60.0, 240.0))
    told, expected = facts.briefing(), race_briefing(RACE, conditions)
    for item in fields(expected):
        assert np.array_equal(getattr(told, item.name), getattr(expected, item.name)), item.name


def test_records_hold_what_contestants_had_and_nothing_else() -> None:
    assert [item.name for item in fields(Onboard)] == ["time", "imu_stamp", "imu", "frames", "ranger", "collision", "images"]
    assert {item.name for item in fields(OnboardFacts)} == {
        "flights", "gates", "corners", "directions", "bounds", "pivots", "start_position", "start_yaw", "vehicle", "camera",
        "physics_rate", "frame_rate", "command_rate", "thrust_max", "pixel_noise", "identified", "imu_noise", "imu_walk",
        "imu_bias", "start_bound", "decoys", "decoy_corners", "right_position",
    }  # fmt: skip
    told: list[OnboardFacts] = []
    seen: list[Onboard] = []

    class Looks(ShortServo):
        def begin(self, facts: OnboardFacts) -> None:
            told.append(facts)
            super().begin(facts)

        def command(self, onboard: Onboard) -> Array:
            seen.append(onboard)
            return super().command(onboard)

    fly_races(RACE, ("published/3", "published/4"), entry(Looks), race_class("noisy"))
    # The same facts in every course: nominal gates, and the vehicle of the catalogue.
    for name in ("corners", "bounds", "pivots", "directions"):
        assert np.array_equal(getattr(told[0], name), getattr(told[1], name))
    assert told[0].flights == 1

    def plain(value: Any) -> None:
        if isinstance(value, np.ndarray):
            assert value.base is None  # no way back to the other flights
            assert value.dtype != object
        elif isinstance(value, tuple):
            for part in value:
                plain(part)
        elif is_dataclass(value) and not isinstance(value, Vehicle):
            for item in fields(value):
                plain(getattr(value, item.name))
        else:
            assert value is None or isinstance(value, (bool, int, float, str, Vehicle)) or type(value).__name__ == "ndarray"

    for record in seen[:40]:
        plain(record)
    first = seen[0]
    # A second of frames before arming and that of the start; no IMU sample yet. Then four samples a command.
    assert len(first.frames) == 61
    assert [frame.stamp for frame in first.frames][::60] == [-1.0, 0.0]
    assert first.imu.shape == (0, 1, 6)
    assert seen[2].imu.shape == (4, 1, 6)
    assert np.allclose(seen[2].imu_stamp * 960.0, [0, 1, 2, 3])
    assert first.frames[0].pixel.shape == (1, 11, 4, 2)
    assert np.isfinite(first.frames[-1].pixel).any()


def test_same_sensor_bytes_in_another_world_give_the_same_commands() -> None:
    stream = Stream()
    here = fly("published/0", tap=stream.keep)
    other = fly("published/9")
    assert other.commands_sha256 != here.commands_sha256  # the servo does look
    played = fly("published/9", tap=stream.play)
    assert played.commands_sha256 == here.commands_sha256
    # The test has teeth: who is given the truth is found out.
    kept = Stream()
    told = fly("published/0", ShortTruth, kept.keep, truth=True)
    assert fly("published/9", ShortTruth, kept.play, truth=True).commands_sha256 != told.commands_sha256


def test_batch_of_flights_is_its_singles_and_a_seed_its_bytes() -> None:
    names = ("published/2", "fresh/3/1")
    hard = race_class("hard")
    both = fly_races(RACE, names, entry(ShortServo), hard, seed=5)
    alone = [fly_races(RACE, (name,), entry(ShortServo), hard, seed=5)[0] for name in names]
    assert [row_of("x", item) for item in both] == [row_of("x", item) for item in alone]
    assert both[0].commands_sha256 != both[1].commands_sha256
    again = fly_races(RACE, names[:1], entry(ShortServo), hard, seed=6)
    assert again[0].commands_sha256 != both[0].commands_sha256


@pytest.fixture(scope="module")
def identified_racer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The vehicle of 2019 as an identification would leave it open."""
    names, base, state = ("mass", "lag"), vehicle("flightgoggles_2019"), 1000.0
    values = uncertain_values(base, state)
    told = Uncertainty(
        names=names,
        transform=("log", "log"),
        mean=tuple(math.log(values[name]) for name in names),
        sd=(0.05, 0.1),
        correlation=((1.0, 0.0), (0.0, 1.0)),
        share=(0.9, 0.9),
        state=state,
    )
    file = tmp_path_factory.mktemp("racer") / "mine.toml"
    write_vehicle(replace(base, uncertainty=told), file)
    return file


def test_identified_vehicles_are_drawn_by_course_whoever_flies(identified_racer: Path) -> None:
    conditions = replace(race_class("hard"), vehicle=str(identified_racer))
    names = ("published/2", "published/3")
    both = fly_races(RACE, names, entry(ShortServo), conditions, seed=5, identified=True)
    other = fly_races(RACE, names[1:], entry(ShortTruth, truth=True), conditions, seed=5, identified=True)
    rows = [row_of("x", item) for item in (*both, *other)]
    assert rows[1]["drawn"] == rows[2]["drawn"]
    assert rows[0]["drawn"] != rows[1]["drawn"]
    assert set(rows[0]["drawn"]) == {"mass", "lag", "rejected"}
    again = fly_races(RACE, names[:1], entry(ShortServo), conditions, seed=5, identified=True)
    assert row_of("x", again[0]) == rows[0]
    assert "drawn" not in row_of("x", fly("published/2"))


def test_draws_of_a_vehicle_that_tells_nothing_are_refused_before_anything_is_written(tmp_path: Path) -> None:
    out = tmp_path / "race"
    with pytest.raises(AirworthyError, match="flightgoggles_2019 tells no uncertainty"):
        run_race_bench(RaceBenchConfig(courses="published/0", randomize="identified", out=str(out)))
    assert not out.exists()


CHANGES: dict[str, Any] = {
    "vehicle": "flightgoggles", "pixel_noise": 1.0, "dropout": 0.5, "shuffle": True, "frame_delay": 1, "mass_error": 0.05,
    "drag_error": 0.5, "start_error": 0.3, "bias_walk": True,
}  # fmt: skip


class Tumbles:
    """Falls and turns for a moment: everything a class changes acts on it."""

    def begin(self, facts: OnboardFacts) -> None:
        """Nothing to keep."""

    def command(self, onboard: Onboard) -> list[float]:
        if onboard.time >= 0.2:
            raise RuntimeError("enough")
        return [2.0, 1.0, 2.0, 3.0]


@pytest.fixture(scope="module")
def plain_stream() -> bytes:
    stream = Stream()
    fly("published/1", Tumbles, stream.keep, conditions=race_class("published"))
    return stream.bytes()


def test_every_key_of_a_class_is_tried() -> None:
    assert {item.name for item in fields(RaceClass)} - {"name", "title"} == set(CHANGES)


@pytest.mark.parametrize("key", CHANGES)
def test_every_key_of_a_class_changes_what_is_sensed(key: str, plain_stream: bytes) -> None:
    stream = Stream()
    fly("published/1", Tumbles, stream.keep, conditions=replace(race_class("published"), **{key: CHANGES[key]}))
    assert stream.bytes() != plain_stream


def test_late_frames_carry_the_moment_of_the_pose() -> None:
    stream = Stream()
    fly("published/1", Tumbles, stream.keep, conditions=replace(race_class("published"), frame_delay=2))
    late = [step - 960.0 * frame.stamp for step, item in stream.kept.items() if step for frame in item.frames]
    assert np.allclose(late, 32.0)  # two frames of sixteen steps
    assert len(late) > 5


@pytest.mark.parametrize(
    ("given", "end", "said"),
    [
        ([1.0, 2.0], "pilot_error", "shape (2,)"),
        ([float("nan"), 0.0, 0.0, 0.0], "bad_command", "not finite"),
        ("thrust", "pilot_error", "ValueError"),
        (None, "pilot_error", "ZeroDivisionError"),
    ],
)
def test_what_is_no_command_ends_the_flight_with_its_sentence(given: Any, end: str, said: str) -> None:
    class Wrong(Tumbles):
        def command(self, onboard: Onboard) -> Any:
            return 1 // 0 if given is None else given

    flown = fly("published/0", Wrong)
    assert (flown.result.end, flown.result.score) == (end, 0.0)
    assert said in flown.reason


def test_falling_is_a_contact_with_the_floor_and_too_much_is_clipped_and_counted() -> None:
    class Falls(Tumbles):
        def command(self, onboard: Onboard) -> list[float]:
            return [-1.0, 0.0, 0.0, 0.0]

    flown = fly("nominal", Falls)
    assert flown.result.end == "contact"
    assert flown.part.startswith("floor")
    # Free fall by 5.15 m takes 1.02 s, a little more with drag; every command until then was below zero.
    assert 240 < flown.clipped < 300
    assert race_pilot("servo").sensors == ("imu", "beacons")
