"""Beacons of gates that are not flown: where they are, that pilots are told, and that the filter never moves them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.race.estimates import FRAME, RATE, Flights, errors, nees, seen, some_flights

from airworthy.core.arrays import Array
from airworthy.core.errors import AirworthyError
from airworthy.race import BeaconFrame, GateFilter, RaceBriefing, load_race, race_briefing, race_class
from airworthy.race.benchmark.flight import fly_races
from airworthy.race.onboard import Onboard, OnboardFacts
from airworthy.race.pilots.catalogue import PilotEntry
from airworthy.race.wall.records import facts_message, facts_of, record_message, record_of
from airworthy.scenes.generators.halls.race_courses import alphapilot_course
from airworthy.scenes.generators.halls.race_hall import decoy_frames, gate_order

RACE = load_race("alphapilot")
DECOYS = np.array([frame.corners for frame in decoy_frames()])


def test_decoys_are_lit_behind_the_gates_and_stand_where_they_are_on_every_course() -> None:
    dark, lit = alphapilot_course("published/3"), alphapilot_course("published/3", decoy_beacons=True)
    assert len(dark.beacons) == 44
    assert lit.beacons[:44] == dark.beacons
    more = lit.beacons[44:]
    assert len(more) == 48
    assert alphapilot_course("fresh/5/1", decoy_beacons=True).beacons[44:] == more
    assert not {beacon.landmark for beacon in more} & set(gate_order())
    assert np.array([beacon.position for beacon in more]).reshape(-1, 4, 3) == pytest.approx(DECOYS)
    # What can be hit is the same; a decoy's tube carries its beacons, which it then does not hide.
    solid = [[(i.name, i.position) for i in place.instances if i.collide] for place in (dark, lit)]
    assert solid[0] == solid[1]
    assert {item.carries for item in lit.instances if item.carries} == {beacon.landmark for beacon in lit.beacons}


# ---- What pilots are told ---------------------------------------------------------------------------------------------------


class Looks:
    """Keeps what it is told and given, and hovers for a tenth of a second."""

    kept: list[Any]

    def begin(self, facts: OnboardFacts) -> None:
        self.kept.append(facts)

    def command(self, onboard: Onboard) -> list[float]:
        self.kept.append(onboard)
        if onboard.time > 0.1:
            raise RuntimeError("enough")
        return [9.81, 0.0, 0.0, 0.0]


def told(lit: bool, word: str = "noisy") -> tuple[OnboardFacts, list[Onboard]]:
    Looks.kept = []
    entry = PilotEntry("looks", Looks, False, False, 240.0, ())
    fly_races(RACE, ("published/3",), entry, race_class(word), decoy_beacons=lit)
    facts, *records = Looks.kept
    return facts, records


def test_pilots_are_told_where_decoys_stand_and_given_their_beacons_only_where_they_are_lit() -> None:
    facts, records = told(lit=True)
    assert facts.decoys == tuple(frame.name for frame in decoy_frames())
    assert np.array_equal(facts.decoy_corners, DECOYS)
    given = [frame.decoys for record in records for frame in record.frames]
    assert all(pixel is not None and pixel.shape == (1, 12, 4, 2) for pixel in given)
    # From the start decoys are in sight; those of the gates have the pixels that they have without.
    dark, plain = told(lit=False)
    assert given[0] is not None
    assert np.isfinite(given[0]).any()
    for frame, other in zip(records[0].frames, plain[0].frames, strict=True):
        assert other.decoys is None
        assert np.array_equal(frame.pixel, other.pixel, equal_nan=True)
    assert dark.decoys == ()
    assert dark.decoy_corners.shape == (0, 4, 3)
    assert np.array_equal(facts.briefing().decoys, DECOYS)


def test_decoys_cross_the_wall_to_the_same_bits() -> None:
    facts, records = told(lit=True)
    back, _ = facts_of(facts_message(facts, 0.1))
    assert back.decoys == facts.decoys
    assert np.array_equal(back.decoy_corners, facts.decoy_corners)
    for record in records:
        again, _ = record_of(record_message(record, None))
        for frame, other in zip(record.frames, again.frames, strict=True):
            assert np.array_equal(frame.decoys, other.decoys, equal_nan=True)  # type: ignore[arg-type]


# ---- The filter -------------------------------------------------------------------------------------------------------------


def frames_of(flown: Flights, numbers: range, noise: float = 1.0) -> list[tuple[int, Array, Array]]:
    """Frames with decoys, whose pixels have noise [px]."""
    rng, rows = np.random.default_rng(8), []
    for number in numbers:
        corners = np.broadcast_to(DECOYS, (flown.position.shape[1], *DECOYS.shape))
        pixel = seen(flown.briefing, flown.position[number], flown.attitude[number], corners)
        rows.append((number, flown.pixel[number].copy(), pixel + noise * rng.standard_normal(pixel.shape)))
    return rows


def estimates(filter_: GateFilter, flown: Flights, rows: list[tuple[int, Array, Array]], whole: bool) -> Any:
    """The filter's state behind frames whose decoys are their own, or are gates of the briefing."""
    state, record = filter_.begin(flown.position.shape[1]), None
    for number, pixel, decoys in rows:
        if number:
            state = filter_.advance(state, flown.samples[FRAME * (number - 1) : FRAME * number])
        frame = BeaconFrame(number * FRAME / RATE, pixel, decoys)
        if whole:
            frame = BeaconFrame(frame.stamp, frame.landmarks)
        state, record = filter_.update(state, frame)
    return state, record


def briefings(flown: Flights) -> tuple[RaceBriefing, RaceBriefing]:
    """With decoys, and with as many gates more that are known exactly."""
    known, count = flown.briefing, len(DECOYS)
    as_gates = replace(
        known,
        gates=(*known.gates, *(frame.name for frame in decoy_frames())),
        corners=np.concatenate([known.corners, DECOYS]),
        normal=np.concatenate([known.normal, np.tile([1.0, 0.0, 0.0], (count, 1))]),
        bound=np.concatenate([known.bound, np.zeros((count, 3))]),
        pivot=np.concatenate([known.pivot, DECOYS.mean(axis=1)[:, :2]]),
    )
    return replace(known, decoys=DECOYS), as_gates


@pytest.mark.slow
def test_a_decoy_is_a_gate_whose_place_is_known_exactly() -> None:
    """Equations agree with those of gates with a bound of 0, to rounding, and need none of their rows."""
    flown = some_flights()
    rows = frames_of(flown, range(40))
    with_decoys, as_gates = (GateFilter(briefing) for briefing in briefings(flown))
    (mine, one), (other, two) = estimates(with_decoys, flown, rows, False), estimates(as_gates, flown, rows, True)
    size = with_decoys.covariance(mine).shape[1]
    assert size == 9 + 3 * 11
    assert mine.now.motion.position == pytest.approx(other.now.motion.position, abs=1e-9)
    assert mine.now.gates == pytest.approx(other.now.gates[:, :11], abs=1e-9)
    assert with_decoys.covariance(mine) == pytest.approx(as_gates.covariance(other)[:, :size, :size], abs=1e-12, rel=1e-6)
    assert one.nis == pytest.approx(two.nis, rel=1e-6)
    assert np.array_equal(one.used, two.used)
    # They are used at all.
    alone = GateFilter(flown.briefing)
    bare, three = estimates(alone, flown, [(number, pixel, None) for number, pixel, _ in rows], False)  # type: ignore[misc]
    assert np.all(one.used > three.used)
    assert np.all(
        np.trace(with_decoys.covariance(mine)[:, :3, :3], axis1=1, axis2=2)
        < 0.9 * np.trace(alone.covariance(bare)[:, :3, :3], axis1=1, axis2=2)
    )


@pytest.mark.slow
def test_errors_stay_as_large_as_the_filter_says() -> None:
    """Over two seconds of six flights: position, velocity and attitude, nine numbers each; pixels are as noisy as assumed."""
    flown = some_flights()
    options = GateFilter(flown.briefing).options
    filter_ = GateFilter(briefings(flown)[0], replace(options, pixel_factor=1.0))
    state = filter_.begin(6)
    found = []
    for number, pixel, decoys in frames_of(flown, range(120)):
        if number:
            state = filter_.advance(state, flown.samples[FRAME * (number - 1) : FRAME * number])
        state, _ = filter_.update(state, BeaconFrame(number * FRAME / RATE, pixel, decoys))
        # The start is exact: until it has moved, nothing is to be normalised.
        if number > 20:
            found.append(nees(errors(flown, number, state), filter_.covariance(state), np.arange(9)))
    # Errors of one flight hang together from frame to frame: at most six independent ones, chi-square with 54 degrees of
    # freedom, lies within 31 and 86 in 98 of 100 cases.
    assert 31.0 / 6.0 < np.mean(found) < 86.0 / 6.0


@pytest.mark.slow
def test_exchanged_names_of_gates_and_decoys_are_matched_together() -> None:
    # Without noise, for far corners are seen within a pixel of each other.
    flown, rng = some_flights("published"), np.random.default_rng(1)
    named, other = GateFilter(briefings(flown)[0]), GateFilter(replace(briefings(flown)[0], identified=False))
    rows = frames_of(flown, range(30), noise=0.0)
    mixed = []
    for number, pixel, decoys in rows:
        both = np.concatenate([pixel, decoys], axis=1)
        for flight in both:
            there = np.argwhere(np.isfinite(flight).all(-1))
            flight[tuple(there.T)] = flight[tuple(there[rng.permutation(len(there))].T)]
        mixed.append((number, both[:, :11], both[:, 11:]))
    (one, _), (two, _) = estimates(named, flown, rows, False), estimates(other, flown, mixed, False)
    assert two.now.motion.position == pytest.approx(one.now.motion.position, abs=1e-9)


def test_frames_with_other_decoys_than_the_briefing_are_refused() -> None:
    flown = some_flights()
    (number, pixel, decoys), *_ = frames_of(flown, range(1))
    filter_ = GateFilter(flown.briefing)
    with pytest.raises(
        AirworthyError, match=r"of decoys has the shape \(6, 12, 4, 2\); expected \(flights, gates, 4, 2\): \(6, 0,"
    ):
        filter_.update(filter_.begin(6), BeaconFrame(number / 60.0, pixel, decoys))
    assert race_briefing(RACE, race_class("noisy")).decoys.shape == (0, 4, 3)
