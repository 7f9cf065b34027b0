"""Synthetic logs, each with what a reader of the rules would say of it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from tests.race.flights import GATES, HEIGHT, RATE, flown, row_race, strict_race, waiting

from airworthy.core.arrays import Array
from airworthy.core.errors import AirworthyError
from airworthy.race import Race, RaceClock, RaceEnd, RaceLimits, RaceResult, Referee, race_results

TIP = 1.0 + 0.1 * math.sqrt(2.0)
"""From the centre of the diagonal gate along its opening to the corner of the inflated box."""
SIDE = math.sqrt(0.5)


def judged(race: Race, path: Array, events: dict[int, int] | None = None) -> RaceResult:
    """Result of one flight; events by step."""
    told = np.zeros((len(path), 1), np.int64)
    for step, event in (events or {}).items():
        told[step] = event
    referee = Referee(race, 1, RATE)
    return race_results(referee, referee.judge(path[:, None], told))[0]


def beside(distance: float) -> Array:
    """Through A and B, through C's plane at a distance to the left along its opening, and on through D."""
    x, y = 15.0 - SIDE * distance, SIDE * distance
    return flown((0, 0), (12, 0), (x - 1, y - 1), (x + 1, y + 1), (18, 0), (21, 0))


@dataclass(frozen=True)
class Log:
    """A flight and what is expected of it."""

    path: Array
    end: str
    passed: int
    missed: str = ""
    differing: str = ""
    irregular: str = ""
    """Gate and first letter of the kind, in order of time."""
    changes: dict[str, Any] | None = None
    """Of the race."""
    events: dict[int, int] | None = None
    strict: bool = False
    after: str = ""


STRAIGHT = flown((0, 0), (25, 0))
AROUND_B = flown((0, 0), (7, 0), (8, 3), (12, 3), (13, 0), (21, 0))
FINISH = math.ceil(19.9 / 10.0 * RATE)
"""First step in the last gate's box, which for a gate along an axis is 0.1 m deep: its 0.3 m are never reached there."""
DIAGONAL_LAST: dict[str, Any] = {"order": ("A", "B", "C"), "gates": GATES[:3]}
LAPS = flown((0, 0), (25, 0), (25, 5), (-2, 5), (-2, 0), (25, 0))

LOGS = {
    "straight": Log(STRAIGHT, "finished", 4),
    "around the second": Log(AROUND_B, "finished", 3, "B", "CD", "Co Do"),
    "around the first": Log(flown((0, 0), (3, 3), (7, 3), (8, 0), (21, 0)), "finished", 3, "A", "BCD", "Bo Co Do"),
    "around two": Log(flown((0, 0), (3, 3), (12, 3), (13, 0), (21, 0)), "finished", 2, "AB", "CD", "Co Do"),
    "the last alone": Log(flown((0, 0), (3, 3), (17, 3), (18, 0), (21, 0)), "finished", 1, "ABC", "D", "Do"),
    "from behind": Log(flown((25, 0), (0, 0)), "finished", 1, "ABC", "D", "Db"),
    "second one backwards": Log(
        flown((0, 0), (7, 0), (8, 3), (12, 3), (12, 0), (8, 0), (8, 3), (13, 3), (13, 0), (21, 0)),
        *("finished", 4, "", "BCD", "Bb Co Do"),
    ),
    "beside the diagonal one, inside the box": Log(beside(TIP - 2e-3), "finished", 4, "", "CD", "Do"),
    "beside the diagonal one, at the very edge of its opening": Log(beside(1.0 - 1e-3), "finished", 4),
    "beside the diagonal one, just off its opening": Log(beside(1.0 + 1e-3), "finished", 4, "", "CD", "Do"),
    "beside the diagonal one, outside the box": Log(beside(TIP + 2e-2), "finished", 3, "C", "D", "Do"),
    "a millimetre under the box's top": Log(flown((0, 0, 3.099), (25, 0, 3.099)), "finished", 4, "", "ABCD"),
    "a millimetre over the box's top": Log(flown((0, 0, 3.101), (25, 0, 3.101)), "running", 0),
    "a millimetre under the edge": Log(flown((0, 0, 2.999), (25, 0, 2.999)), "finished", 4),
    "a millimetre over the edge": Log(flown((0, 0, 3.001), (25, 0, 3.001)), "finished", 4, "", "ABCD"),
    "stops 0.09 m before the last": Log(waiting(flown((0, 0), (19.91, 0)), 1.0), "finished", 4, "", "D"),
    "stops 0.11 m before the last": Log(waiting(flown((0, 0), (19.89, 0)), 60.0), "time_limit", 3),
    "stops 0.29 m before a diagonal last": Log(
        waiting(flown((0, 0), (15.0 - 0.29 / SIDE, 0)), 1.0), "finished", 3, "", "C", changes=DIAGONAL_LAST
    ),
    "stops 0.31 m before a diagonal last": Log(
        waiting(flown((0, 0), (15.0 - 0.31 / SIDE, 0)), 60.0), "time_limit", 2, changes=DIAGONAL_LAST
    ),
    "too slow": Log(flown((0, 0), (18, 0), speed=0.3), "time_limit", 3, changes={"limits": RaceLimits(58.0)}),
    "ends in the air": Log(flown((0, 0), (12, 0)), "running", 2),
    "contact before a gate": Log(STRAIGHT, "contact", 0, events={100: RaceEnd.CONTACT}),
    "contact between gates": Log(STRAIGHT, "contact", 2, events={1100: RaceEnd.CONTACT}),
    "contact a step before the finish": Log(STRAIGHT, "contact", 3, events={FINISH - 1: RaceEnd.CONTACT}),
    "contact in the step of the finish": Log(STRAIGHT, "contact", 3, events={FINISH: RaceEnd.CONTACT}),
    "contact a step behind the finish": Log(
        STRAIGHT, "finished", 4, "", "D", events={FINISH + 1: RaceEnd.CONTACT}, after="contact"
    ),
    "abort": Log(STRAIGHT, "aborted", 1, events={700: RaceEnd.ABORTED}),
    "pilot error": Log(STRAIGHT, "pilot_error", 1, events={700: RaceEnd.PILOT_ERROR}),
    "command that is no number": Log(STRAIGHT, "bad_command", 1, events={700: RaceEnd.BAD_COMMAND}),
    "position that is no number": Log(np.where(np.arange(2401)[:, None] < 700, STRAIGHT, np.nan), "diverged", 1),
    "position at infinity": Log(np.where(np.arange(2401)[:, None] < 700, STRAIGHT, np.inf), "diverged", 1),
    "out of bounds": Log(flown((0, 0), (7, 0), (7, 12)), "out_of_bounds", 1),
    "the first one twice": Log(
        flown((0, 0), (7, 0), (7, 3), (3, 3), (3, 0), (25, 0)), "finished", 4, irregular="Aa"
    ),
    "waits in the first": Log(np.concatenate([waiting(flown((0, 0), (4.9, 0)), 2.0), flown((4.9, 0), (25, 0))]), "finished", 4),
    "to and fro in the first": Log(
        flown((0, 0), (6, 0), (4, 0), (6, 0), (4, 0), (25, 0)), "finished", 4, irregular="Ab Aa Ab Aa"
    ),
    "returns to a missed one": Log(
        flown((0, 0), (7, 0), (8, 3), (13, 3), (13, 0), (17, 0), (17, 3), (8, 3), (8, 0), (25, 0)),
        *("finished", 3, "B", "B", "Co"),  # the strict test takes it, and all behind it, when it comes
    ),
    "strict, straight": Log(STRAIGHT, "finished", 4, strict=True),
    "strict, around the second": Log(AROUND_B, "running", 1, "", "", "Co Do", strict=True),
    "strict, from behind": Log(flown((25, 0), (0, 0)), "running", 0, "", "", "Db Cb Bb Ab", strict=True),
    "strict, one in reverse": Log(
        flown((0, 0), (7, 0), (7, 3), (12, 3), (12, 0), (8, 0), (8, 3), (13, 3), (13, 0), (21, 0)),
        *("finished", 4),
        changes={"order": ("A", "-B", "C", "D")},
        strict=True,
    ),
    "strict, reverse asked and flown forwards": Log(
        STRAIGHT, "running", 1, "", "", "Bb Co Do", changes={"order": ("A", "-B", "C", "D")}, strict=True
    ),
    "strict, two laps": Log(LAPS, "finished", 8, changes={"laps": 2}, strict=True),
    "strict, two laps in one": Log(STRAIGHT, "running", 4, changes={"laps": 2}, strict=True),
    "strict, two gates in one step": Log(np.array([[0.0, 0, 2], [11.0, 0, 2], [30.0, 0, 2]]), "finished", 4, strict=True),
    "strict, ends in the plane": Log(flown((0, 0), (5, 0)), "running", 1, strict=True),
    "strict, begins in the plane": Log(flown((5, 0), (25, 0)), "running", 0, "", "", "Bo Co Do", strict=True),
    "strict, contact in the step of the finish": Log(STRAIGHT, "contact", 3, events={1920: RaceEnd.CONTACT}, strict=True),
}  # fmt: skip


@pytest.mark.parametrize("name", LOGS)
def test_a_log(name: str) -> None:
    log = LOGS[name]
    race = (strict_race if log.strict else row_race)(**(log.changes or {}))
    result = judged(race, log.path, log.events)
    missed = "".join(item.gate for item in result.passages if item.missed)
    irregular = " ".join(f"{item.gate}{item.kind[0]}" for item in result.irregular)
    assert (result.end, result.passed, missed, irregular) == (log.end, log.passed, log.missed, log.irregular)
    assert "".join(result.differing) == log.differing
    assert result.after_finish == log.after
    assert result.completed == (log.end == "finished")
    assert (result.score == 0.0) == (not result.completed) or log.strict
    assert math.isnan(result.time_s) == (not result.completed)


def test_times_are_those_of_the_motion() -> None:
    """10 m/s: the loose finish at the first step in the last gate's box, strict passages where the planes are."""
    result = judged(row_race(), STRAIGHT)
    assert result.time_s == FINISH / RATE
    assert 19.9 < 10.0 * result.time_s <= 19.9 + 10.0 / RATE
    np.testing.assert_allclose([item.strict_time for item in result.passages], [0.5, 1.0, 1.5, 2.0], atol=1e-12)
    assert result.score == 40.0 - FINISH / RATE
    assert judged(strict_race(), STRAIGHT).score == pytest.approx(2.0, abs=1e-12)


def test_the_clock_may_start_at_the_first_gate() -> None:
    result = judged(strict_race(clock=RaceClock("first_gate")), STRAIGHT)
    assert result.time_s == pytest.approx(1.5, abs=1e-12)


def test_offsets_are_as_flown() -> None:
    path = flown((0, 0.25, 2.5), (7, 0.25, 2.5), (7, 3, 2), (12, 3, 2), (12, 0.25, 2.5), (8, 0.25, 2.5))
    result = judged(strict_race(order=("A", "-B", "C", "D")), path)
    assert result.passages[0].offset == pytest.approx((0.25, 0.5))
    assert result.passages[1].offset == pytest.approx((-0.25, 0.5))  # the same place, seen from the other side


@pytest.mark.parametrize(("limit", "end"), [(FINISH, "finished"), (FINISH - 1, "time_limit")])
def test_the_limit_itself_is_in_time(limit: int, end: str) -> None:
    assert judged(row_race(limits=RaceLimits(limit / RATE)), STRAIGHT).end == end


@pytest.mark.parametrize(("limit", "end"), [(2.0 + 1e-9, "finished"), (2.0 - 1e-9, "time_limit")])
def test_a_strict_finish_within_the_last_step_is_held_against_its_own_time(limit: float, end: str) -> None:
    path = STRAIGHT + np.array([0.003, 0.0, 0.0])  # planes lie between steps
    assert judged(strict_race(limits=RaceLimits(limit - 0.0003)), path).end == end


@pytest.mark.parametrize(("late", "closed"), [(0, True), (1, False)])
def test_the_strict_test_may_close_for_three_tenths_of_a_second(late: int, closed: bool) -> None:
    """Waits before the last plane, and crosses it with the last step that is looked at, or one behind it."""
    before = flown((0, 0), (19.95, 0))
    finish = int(np.argmax(before[:, 0] > 19.9))
    steps = 288 - 1 - (len(before) - 1 - finish) + late
    path = np.concatenate([before, np.repeat(before[-1:], steps, axis=0), [[20.1, 0, HEIGHT]] * 400])
    result = judged(row_race(), path)
    assert result.time_s == finish / RATE
    assert math.isfinite(result.passages[-1].strict_time) == closed


def test_what_is_told_is_checked() -> None:
    referee = Referee(row_race(), 2)
    with pytest.raises(AirworthyError, match=r"Positions have shape \(3, 1, 3\); expected \(steps, 2, 3\)"):
        referee.judge(np.zeros((3, 1, 3)))
    with pytest.raises(AirworthyError, match="Events have shape"):
        referee.judge(np.zeros((3, 2, 3)), np.zeros((2, 2), int))
    with pytest.raises(AirworthyError, match="Events hold 1; expected 0 or one of"):
        referee.judge(np.zeros((3, 2, 3)), np.ones((3, 2), int))
    with pytest.raises(AirworthyError, match="2 courses were given for 3 flights"):
        Referee([row_race(), row_race()], 3)
    with pytest.raises(AirworthyError, match="A physics rate of 0"):
        Referee(row_race(), 1, 0)
    with pytest.raises(AirworthyError, match="other gates or another order"):
        Referee([row_race(), row_race(order=("A", "B", "D"), gates=(*GATES[:2], GATES[3]))])


def test_every_end_has_an_outcome() -> None:
    from airworthy.tasks import OUTCOMES

    assert {end.outcome for end in RaceEnd if end} <= set(OUTCOMES)
    assert RaceEnd.RUNNING.outcome == ""


@pytest.mark.parametrize("side", [0, 1])
def test_the_face_of_the_loose_box_is_outside(side: int) -> None:
    """Strictly inside, as in the original: to the last bit, on each side."""
    referee = Referee(row_race(), 1)
    low, high = referee._low[0, 0] - 0.1, referee._high[0, 0] + 0.1
    for axis in (1, 2):
        face = (low, high)[side][axis]
        for value, counts in ((face, False), (np.nextafter(face, (low + high)[axis] / 2.0), True)):
            point = (low + high) / 2.0
            point[axis] = value
            state = referee.judge(np.tile(point, (2, 1, 1)))
            assert bool(np.isfinite(state.loose_time[0, 0])) == counts


@pytest.mark.parametrize("rate", ["x", True, None, 0.0, -1.0, np.nan, np.inf, 10**400])
def test_a_rate_that_is_none_is_refused(rate: Any) -> None:
    with pytest.raises(AirworthyError, match="expected a finite number above 0"):
        Referee(row_race(), physics_rate=rate)


def test_what_a_referee_cannot_judge_is_refused_in_a_sentence() -> None:
    assert Referee(row_race(), physics_rate=np.float32(960.0)).rate == 960.0  # type: ignore[arg-type]
    races: list[Any] = [None, "row", [row_race(), "row"], []]
    for given in races:
        with pytest.raises(AirworthyError, match=r"expected a race, or as many courses|courses were given"):
            Referee(given)
    referee = Referee(row_race())
    begun: Any = referee.begin()
    for state, path, said in (
        ("x", np.zeros((1, 1, 3)), "expected what `begin` or `advance` gave"),
        (begun, "x", "expected numbers in metres"),
        (begun, [[1], [2, 3]], "uneven lengths"),
        (begun, np.zeros((1, 1, 3), complex), "expected numbers in metres"),
    ):
        with pytest.raises(AirworthyError, match=said):
            referee.advance(state, path)
