"""Being asked to stop takes effect behind the block."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator

import pytest

from airworthy.core.jobs.progress import stoppable


@pytest.fixture(autouse=True)
def _handlers() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_waits_until_everything_is_saved(number: signal.Signals) -> None:
    events: list[str] = []
    signal.signal(number, lambda n, frame: events.append("given"))

    def work() -> None:
        with stoppable() as stopped:
            assert not stopped()
            signal.raise_signal(number)
            assert stopped()
            events.append("saved")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert events == ["saved", "given"]


def test_where_signals_are_ignored_it_stops_all_the_same() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with pytest.raises(KeyboardInterrupt), stoppable():
        signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN


def test_errors_pass_and_handlers_come_back() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(ZeroDivisionError), stoppable():
        raise ZeroDivisionError
    assert signal.getsignal(signal.SIGTERM) is before
    with stoppable() as stopped:
        pass
    assert not stopped()


def test_in_another_thread_no_signal_comes() -> None:
    found: list[bool] = []

    def work() -> None:
        with stoppable() as stopped:
            found.append(stopped())

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [False]
