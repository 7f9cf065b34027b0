"""Work beside a pilot's commands: when its result is there, what it is charged, and what goes on record."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from airworthy.core.errors import AirworthyError
from airworthy.race.background import CHARGE_S, MEASURED, NOTE_LENGTH, NOTES_MAX, Desk, DeskNote, charge_of, desk_of, plans


def test_result_is_there_after_the_charge_and_not_before() -> None:
    desk = Desk(0.25)
    desk.now = 1.0
    ticket = desk.submit(lambda: 6 * 7)
    assert not ticket.ready
    with pytest.raises(AirworthyError, match=r"asked for at 1\.0000 s, before it is ready at 1\.2500 s"):
        _ = ticket.result
    desk.now = 1.25 - 1.0 / 960.0
    assert not ticket.ready
    # As the clock of a race has it: a whole number of steps over their rate.
    desk.now = 1200 / 960.0
    assert ticket.result == 42
    (record,) = desk.records
    assert (record.submitted_s, record.charged_s) == (1.0, 0.25)
    assert record.cpu_s >= 0.0


@pytest.mark.parametrize("step", range(0, 960, 97))
def test_default_charge_is_96_steps_wherever_it_begins(step: int) -> None:
    desk = Desk()
    desk.now = step / 960.0
    ticket = desk.submit(str)
    desk.now = (step + 95) / 960.0
    assert not ticket.ready
    desk.now = (step + 96) / 960.0
    assert ticket.ready


def test_work_that_led_nowhere_is_said() -> None:
    desk = Desk(0.0)
    for result in (None, 0, False, "plan"):
        desk.submit(lambda result=result: result)
    assert [record.failed for record in desk.records] == [True, False, False, False]


def test_notes() -> None:
    desk = Desk()
    desk.now = 2.5
    desk.note("braked")
    assert desk.notes == [DeskNote(2.5, "braked")]
    for word in ("", "x" * (NOTE_LENGTH + 1), "two\nlines", "\x1b[2J"):
        with pytest.raises(AirworthyError, match="A note at the desk is"):
            desk.note(word)
    for _ in range(NOTES_MAX + 5):
        desk.note("braked")
    assert len(desk.notes) == NOTES_MAX


def test_free_work_is_ready_at_once() -> None:
    assert Desk(0.0).submit(lambda: "plan").result == "plan"


def test_measured_charge_is_the_processor_time_of_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([10.0, 10.375, 20.0, 20.0])
    monkeypatch.setattr("airworthy.race.background.time", SimpleNamespace(thread_time=lambda: next(clock)))
    desk = Desk(MEASURED)
    ticket = desk.submit(str)
    assert desk.records[0].charged_s == desk.records[0].cpu_s == 0.375
    desk.now = 0.374
    assert not ticket.ready
    desk.now = 0.375
    assert ticket.ready
    # What only waits takes no processor time, and charges nothing.
    assert desk.submit(str).ready


def test_what_the_work_raises_is_raised_where_it_was_submitted() -> None:
    desk = Desk()

    def fails() -> None:
        raise RuntimeError("no plan")

    with pytest.raises(RuntimeError, match="no plan"):
        desk.submit(fails)
    assert desk.records == []


def test_text_of_a_charge() -> None:
    assert charge_of("measured") == MEASURED
    assert charge_of(" 0.25 ") == 0.25
    assert charge_of(str(CHARGE_S)) == 0.1
    for wrong in ("", "fast", "nan", "inf", "-1", "61", "0.1 s"):
        with pytest.raises(AirworthyError, match=r"--charge-compute is .*; expected 'measured', or seconds from 0 to 60"):
            charge_of(wrong)
    with pytest.raises(AirworthyError, match="--charge-compute"):
        Desk(-0.5)


def test_only_who_asks_is_given_a_desk() -> None:
    class Plans:
        desk: Desk

        def use_desk(self, desk: Desk) -> None:
            self.desk = desk

    pilot = Plans()
    assert desk_of(pilot, 0.5) is pilot.desk
    assert pilot.desk.charge == 0.5
    assert desk_of(object(), 0.5) is None
    assert plans(Plans)
    assert not plans(Desk)
