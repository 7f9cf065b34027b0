"""Being first in line is asked for, given back, not inherited, and told where it is refused; the interpreter is put back."""

from __future__ import annotations

import gc
import os
import sys
import threading

import pytest

from airworthy.bridges.clock import punctual
from airworthy.bridges.priority import FirstInLine


class System:
    """Scheduling of a system that keeps it for root."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, allowed: bool):
        self.now: tuple[int, int] = (os.SCHED_OTHER, 0)
        self.asked: list[int] = []
        self._allowed = allowed
        self.only_with = 0
        monkeypatch.setattr(os, "sched_getscheduler", lambda pid: self.now[0])
        monkeypatch.setattr(os, "sched_getparam", lambda pid: os.sched_param(self.now[1]))
        monkeypatch.setattr(os, "sched_setscheduler", self.set)

    def set(self, pid: int, policy: int, param: os.sched_param) -> None:
        assert pid == 0
        self.asked.append(policy)
        if not self._allowed or policy & self.only_with != self.only_with:
            raise PermissionError
        self.now = (policy, param.sched_priority)


def test_without_privileges_the_flag_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    system = System(monkeypatch, True)
    with FirstInLine():
        system.only_with = os.SCHED_RESET_ON_FORK
    assert system.now == (os.SCHED_OTHER | os.SCHED_RESET_ON_FORK, 0)


@pytest.mark.parametrize("inherited", [False, True])
def test_it_goes_first_until_it_leaves(monkeypatch: pytest.MonkeyPatch, inherited: bool) -> None:
    system = System(monkeypatch, True)
    with FirstInLine(inherited) as line:
        assert system.now == (os.SCHED_RR | (0 if inherited else os.SCHED_RESET_ON_FORK), 1)
        assert not line.refused
        line.leave()
        assert system.now == (os.SCHED_OTHER, 0)
    assert len(system.asked) == 2  # the end found nothing left to give back


def test_where_it_is_refused_that_is_known_and_nothing_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    system = System(monkeypatch, False)
    with FirstInLine() as line:
        assert line.refused
    assert system.now == (os.SCHED_OTHER, 0)
    assert len(system.asked) == 1


def test_who_is_farther_in_front_already_stays_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """As by `chrt -f 40` before the command: the least of these classes would be a step back."""
    system = System(monkeypatch, True)
    system.now = (os.SCHED_FIFO, 40)
    with FirstInLine() as line:
        assert (system.now, line.refused) == ((os.SCHED_FIFO, 40), False)
    assert system.now == (os.SCHED_FIFO, 40)
    assert not system.asked


def test_what_a_program_has_frozen_itself_stays_so() -> None:
    gc.freeze()
    try:
        with punctual():
            pass
        assert gc.get_freeze_count() > 0
    finally:
        gc.unfreeze()


def test_the_system_itself_takes_it() -> None:
    if hasattr(os, "geteuid") and os.geteuid():
        pytest.skip("only root is sure to have the right")
    before, of_thread = os.sched_getscheduler(0), list[int]()
    with FirstInLine() as line:
        if line.refused:
            pytest.skip("this machine gives nobody real-time priority")
        assert os.sched_getscheduler(0) & ~os.SCHED_RESET_ON_FORK == os.SCHED_RR
        other = threading.Thread(target=lambda: of_thread.append(os.sched_getscheduler(0)))
        other.start()
        other.join()
    assert os.sched_getscheduler(0) == before
    assert of_thread == [os.SCHED_OTHER]


def test_garbage_and_threads_are_as_before_in_the_end() -> None:
    switch = sys.getswitchinterval()
    frozen = gc.get_freeze_count()
    with punctual():
        assert gc.get_freeze_count() > frozen
        assert sys.getswitchinterval() == pytest.approx(1e-4)
    assert gc.get_freeze_count() == 0
    assert sys.getswitchinterval() == pytest.approx(switch)
