"""Progress of long work with remaining time, on standard error: a bar where a person watches, now and then a line elsewhere."""

from __future__ import annotations

import os
import shlex
import signal
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence, Sized
from contextlib import contextmanager, suppress
from dataclasses import MISSING, Field, fields, is_dataclass
from typing import Any, TypeVar

__all__ = ["command_line", "stoppable"]

# -----------------------------------------------------------------------------------------------------------------------------
# The command that makes a result again: what is chosen in a frozen dataclass as the words from which tyro reads the same.


def command_line(
    program: str,
    config: Any,
    *,
    leave_out: Collection[str] = (),
    positional: Sequence[str] = (),
    short_numbers: bool = False,
    always: Collection[str] = (),
) -> str:
    """Return one line for a POSIX shell, in which fields stand in their order and those at their defaults are left out.

    Tyro has no words for two things that only a program can choose, and they are not read back: a text of a tuple that begins
    with a hyphen and a letter and is not the first, and the text "None" where a field can be None.

    Args:
        program: How the command is called ("airworthy fly").
        config: A dataclass of booleans, numbers, texts, paths, tuples of these, and dataclasses of them (`--outer.inner`).
        leave_out: Fields on which the result does not depend.
        positional: Fields that are given without an option.
        short_numbers: Write 2.0 as 2 where it is the same number.
        always: Fields that are written at their defaults, too.
    """
    plain = [token for name in positional for token in _texts(getattr(config, name), short_numbers)]
    options = _options("--", config, MISSING, {*leave_out, *positional}, short_numbers, always)
    # Behind a lone "--" nothing is read as an option.
    hidden = any(map(_like_an_option, plain))
    return shlex.join([*program.split(), *([*options, "--", *plain] if hidden else [*plain, *options])])


def _options(
    prefix: str, config: Any, usual: Any, leave_out: Collection[str], short: bool, always: Collection[str] = ()
) -> list[str]:
    """Words of a dataclass where they differ from the usual one, or from its own defaults where there is none."""
    tokens: list[str] = []
    for item in fields(config):
        value, default = getattr(config, item.name), _default(item) if usual is MISSING else getattr(usual, item.name)
        if item.name in leave_out or (value == default and item.name not in always):
            continue
        name = item.name.replace("_", "-")
        if isinstance(value, bool):
            tokens.append(f"{prefix}{name}" if value else f"{prefix}no-{name}")
        elif is_dataclass(value):
            tokens += _options(f"{prefix}{name}.", value, default, (), short)
        else:
            tokens += _joined(f"{prefix}{name}", _texts(value, short))
    return tokens


def _default(item: Field[Any]) -> Any:
    return item.default if item.default_factory is MISSING else item.default_factory()


def _joined(option: str, texts: list[str]) -> list[str]:
    """Return an option and its values; `--x=-a` where the first would be taken for an option."""
    return [f"{option}={texts[0]}", *texts[1:]] if texts and _like_an_option(texts[0]) else [option, *texts]


def _like_an_option(token: str) -> bool:
    """Tell whether it begins with a hyphen and is neither one alone nor anything that begins as a negative number does."""
    return token.startswith("-") and token[1:2] not in ("", ".") and not token[1].isdigit()


def _texts(value: Any, short: bool) -> list[str]:
    return [_text(part, short) for part in value] if isinstance(value, tuple) else [_text(value, short)]


def _text(value: Any, short: bool) -> str:
    if not isinstance(value, float):
        return str(value)
    # The shortest text that reads back as the same number; as a float, because NumPy's writes its type as well.
    whole, brief = repr(float(value)), f"{value:g}"
    return brief if short and float(brief) == value else whole


# ---- Being asked to stop: SIGINT and SIGTERM take effect where everything is saved ------------------------------------------


@contextmanager
def stoppable(said: str = "") -> Iterator[Callable[[], bool]]:
    """Yield what says whether a signal has come; behind the block it is given to whoever would have had it.

    Outside of the main thread, which alone is given signals, none comes.

    Args:
        said: Written on standard error at once when one comes, for a block that goes on for a while behind it; a second signal
            then ends it where it is. Empty: nothing is, and all that come wait for the block's end.

    Raises:
        KeyboardInterrupt: Behind the block, where a signal has come and whoever would have had it ignores it, as in a job
            behind a script: work that was cut short must not look finished. Within it, at a second signal.
    """
    came: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return

    def note(number: int, frame: object) -> None:
        came.append(number)
        if said and len(came) == 1:
            _write_now(f"{said}\n")
        elif said:
            signal.signal(number, before[number])
            signal.raise_signal(number)
            raise KeyboardInterrupt

    before: dict[int, Any] = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    for number in before:
        signal.signal(number, note)
    try:
        yield lambda: bool(came)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if came:
        signal.raise_signal(came[0])
        raise KeyboardInterrupt


def _write_now(text: str) -> None:
    """Write on standard error from within a signal's handler."""
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except RuntimeError:
        # The signal came while a line was being written there: the buffer may not be entered twice.
        with suppress(OSError):
            os.write(2, text.encode())
    except (AttributeError, OSError, ValueError):
        # It is closed: nobody listens, and an error here would come up wherever the signal did.
        pass


# -----------------------------------------------------------------------------------------------------------------------------

Item = TypeVar("Item")
TOLD_EVERY_S = 30.0
"""Between two lines of progress where there is no terminal [s]. Ours: two a minute are found in any log and fill none."""
WAITING_EVERY_S = 20.0
"""Between two lines while one thing is waited for, with a terminal or without [s]; ours."""


def progress(iterable: Iterable[Item], text: str, total: int | None = None, *, quiet: bool = False) -> Iterator[Item]:
    """Yield the items of an iterable while a line shows how far it is and how long it will still take.

    Args:
        iterable: What is worked through.
        text: What is being done ("Flying").
        total: Number of items; by default the length of the iterable, where it has one.
        quiet: Show nothing (a command run with --json). Where standard error is no terminal, as in a log, a line is written
            each half minute; work that is over before writes none.
    """
    if quiet:
        yield from iterable
        return
    if total is None and isinstance(iterable, Sized):
        total = len(iterable)
    yield from (_shown if sys.stderr.isatty() else _told)(iterable, text, total)


_TOLD_SHARE = 0.05
"""Of the whole that the first part is at least, where the remaining time is told by it alone."""


class ProgressLine:
    """Writes a line on standard error each half minute, where there is no terminal for a bar.

    Args:
        text: What is being done.
        total: Of things; None: nobody knows.
    """

    def __init__(self, text: str, total: int | None) -> None:
        self._text, self._total = text, total
        self._begun = self._last = time.monotonic()
        self._first: tuple[float, int] | None = None

    def at(self, done: int) -> None:
        """Take that so many things are done, and say it if the last line is a while ago."""
        now = time.monotonic()
        if self._first is None and done > 0:
            self._first = (now, done)
        if now - self._last < TOLD_EVERY_S:
            return
        self._last, spent = now, now - self._begun
        if self._total is None:
            far = f"{done:,} in {spent:,.0f} s"
        else:
            far = f"{done:,} of {self._total:,} in {spent:,.0f} s"
            far += self._remaining(now, done)
        print(f"{self._text}: {far}", file=sys.stderr, flush=True)

    def _remaining(self, now: float, done: int) -> str:
        """Return what is left, by the pace since the first thing was done: before it kernels are compiled."""
        if self._first is None or self._total is None or not 0 < done < self._total:
            return ""
        since, first = self._first
        if done == first:
            # All that there is to go by; of a small part it would be the compiling many times over.
            since, first = self._begun, 0
            if done < _TOLD_SHARE * self._total:
                return ""
        return f", {(now - since) * (self._total - done) / (done - first):,.0f} s remaining"


@contextmanager
def waiting(text: str, *, quiet: bool = False, every_s: float = WAITING_EVERY_S) -> Iterator[None]:
    """Write a line on standard error now and then while something takes long that says nothing of how far it is.

    Args:
        text: What is being done ("planning yard").
        quiet: Write nothing.
        every_s: Between two lines [s]; what is over before writes none.
    """
    over = threading.Event()

    def tell() -> None:
        begun = time.monotonic()
        while not over.wait(every_s):
            print(f"{text}: {time.monotonic() - begun:,.0f} s so far", file=sys.stderr, flush=True)

    teller = threading.Thread(target=tell, daemon=True)
    if not quiet:
        teller.start()
    try:
        yield
    finally:
        over.set()
        if not quiet:
            teller.join()


def _told(iterable: Iterable[Item], text: str, total: int | None) -> Iterator[Item]:
    line = ProgressLine(text, total)
    for done, item in enumerate(iterable):
        line.at(done)
        yield item


def _shown(iterable: Iterable[Item], text: str, total: int | None) -> Iterator[Item]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("remaining"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as display:
        task = display.add_task(text, total=total)
        for item in iterable:
            yield item
            display.advance(task)
