"""Progress shows itself on standard error only and passes every item on."""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Iterable

import pytest

from airworthy.core.jobs.progress import WAITING_EVERY_S, ProgressLine, progress, waiting


def test_short_work_says_nothing_where_standard_error_is_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    assert list(progress(range(3), "Flying")) == [0, 1, 2]
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(("quiet", "total"), [(False, 4), (False, None), (True, 4)])
def test_long_work_says_a_line_each_half_minute_where_there_is_no_terminal(
    quiet: bool, total: int | None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = iter([100.0, 100.0, 120.0, 140.0, 145.0, 150.0])
    monkeypatch.setattr("airworthy.core.jobs.progress.time.monotonic", lambda: next(clock))
    assert list(progress(iter(range(4)), "Flying", total, quiet=quiet)) == [0, 1, 2, 3]
    out, err = capsys.readouterr()
    assert out == ""
    # At 100, 120, 140 and 145 s the items 0 to 3 begin: as many are done.
    said = "Flying: 2 of 4 in 40 s, 40 s remaining\n" if total else "Flying: 2 in 40 s\n"
    assert err == ("" if quiet else said)


def test_what_is_left_does_not_count_what_came_before_the_first_thing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # Compiling and the first of a hundred take 200 s; then each takes one.
    clock = iter([0.0, 200.0, 231.0, 232.0])
    monkeypatch.setattr("airworthy.core.jobs.progress.time.monotonic", lambda: next(clock))
    line = ProgressLine("Flying", 100)
    for done in (1, 32, 33):
        line.at(done)
    assert capsys.readouterr().err == "Flying: 1 of 100 in 200 s\nFlying: 32 of 100 in 231 s, 68 s remaining\n"


@pytest.mark.parametrize("total", [None, 3])
def test_shown_on_a_terminal_and_never_on_standard_output(
    total: int | None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    items = iter(range(3)) if total is None else range(3)
    assert list(progress(items, "Flying", total)) == [0, 1, 2]
    out, err = capsys.readouterr()
    assert out == ""
    assert "Flying" in err
    assert list(progress(range(3), "Flying", quiet=True)) == [0, 1, 2]
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("items", "total", "of"),
    [(range(3), None, "3"), (iter(range(3)), None, "?"), (iter(range(3)), 7, "7"), (range(3), 7, "7")],
)
def test_it_is_shown_of_how_many(
    items: Iterable[int], total: int | None, of: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As many as it was told, or else as there are; a question mark where nobody knows."""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    assert list(progress(items, "Flying", total)) == [0, 1, 2]
    assert f"/{of} " in re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", capsys.readouterr().err)


def test_an_error_in_the_work_passes_through(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)

    def fly() -> None:
        for _ in progress(range(3), "Flying"):
            raise ValueError("fell down")

    with pytest.raises(ValueError, match="fell down"):
        fly()


def test_what_is_waited_for_says_so_with_a_terminal_or_without(capsys: pytest.CaptureFixture[str]) -> None:
    said, over = [], threading.Event()

    class Heard:
        def write(self, text: str) -> int:
            said.append(text)
            if "".join(said).count("so far") >= 2:
                over.set()
            return len(text)

        def flush(self) -> None:
            pass

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stderr", Heard())
        with waiting("yard: planning", every_s=1e-3):
            assert over.wait(60.0)
    assert "".join(said).startswith("yard: planning: 0 s so far\n")
    # What is over at once, or quiet, says nothing; what was raised goes on.
    with pytest.raises(RuntimeError, match="enough"), waiting("yard: planning"):
        raise RuntimeError("enough")
    with waiting("yard: planning", quiet=True, every_s=0.0):
        pass
    assert capsys.readouterr() == ("", "")
    assert WAITING_EVERY_S <= 30.0
