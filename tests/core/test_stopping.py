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


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_who_stops_long_work_is_answered_at_once_and_obeyed_at_the_second_signal(
    number: signal.Signals, capsys: pytest.CaptureFixture[str]
) -> None:
    events: list[str] = []

    def stop(n: int, frame: object) -> None:
        events.append("given")
        raise KeyboardInterrupt(n)

    signal.signal(number, stop)

    def work() -> None:
        with stoppable("Stopping soon.") as stopped:
            signal.raise_signal(number)
            events.append(capsys.readouterr().err)
            assert stopped()
            signal.raise_signal(number)
            events.append("never")

    with pytest.raises(KeyboardInterrupt) as raised:
        work()
    assert events == ["Stopping soon.\n", "given"]
    # Who gave the first handler is told which signal it was, as ever.
    assert raised.value.args == (number,)
    assert signal.getsignal(number) is stop


def test_the_answer_comes_though_a_line_is_being_written(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """A handler that runs within a write to standard error may not write there through the same buffer."""

    class Busy:
        def write(self, text: str) -> int:
            raise RuntimeError("reentrant call inside <_io.BufferedWriter>")

    monkeypatch.setattr("sys.stderr", Busy())
    with pytest.raises(KeyboardInterrupt), stoppable("Stopping soon."):
        signal.raise_signal(signal.SIGINT)
    assert capfd.readouterr().err == "Stopping soon.\n"


def test_where_nobody_listens_it_stops_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr", None)
    with pytest.raises(KeyboardInterrupt), stoppable("Stopping soon."):
        signal.raise_signal(signal.SIGINT)
