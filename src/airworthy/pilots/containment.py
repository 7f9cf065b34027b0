"""Calling code of a pilot's: whatever it raises becomes a `PilotFailure`, but a user who stops the run is obeyed.

`SystemExit`, `GeneratorExit` and a `KeyboardInterrupt` that the pilot raised itself are failures of the pilot like any other. A
Ctrl-C, or a request to terminate, is not: it comes with a signal, and signals are noted while `stops_noted` is open.
"""

from __future__ import annotations

import signal
import sysconfig
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

import airworthy
from airworthy.core import own_modules
from airworthy.core.files import harmless
from airworthy.core.own_modules import ImportFailure

__all__ = ["PilotFailure", "cause_of", "contained", "import_contained", "stops_noted"]

Result = TypeVar("Result")
# Ours: a sentence or two of what a stranger's code raised; tracebacks and arrays inside messages would flood a report.
_REASON_LENGTH = 300
_PACKAGE = str(Path(airworthy.__file__).parent)
_PATHS = sysconfig.get_paths()
_LIBRARIES = tuple(_PATHS[name] for name in ("stdlib", "platstdlib", "purelib", "platlib"))
_STOPS: list[BaseException] = []
"""What the handlers of signals raised since the outermost `stops_noted` was opened."""
# A list, so that nested blocks share one number without a `global` statement.
_DEPTH = [0]


class PilotFailure(Exception):
    """A pilot raised, or gave what is not a command; the message says what and where. A loop that flies catches it."""


@contextmanager
def stops_noted() -> Iterator[None]:
    """Note the signals by which a user stops a run, so that `contained` can tell them from what a pilot raises.

    Handlers stay what they are and are called as before. Outside of the main thread, which alone is given signals, nothing is
    to be noted.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    mine = {number: _noting(handler) for number, handler in before.items() if callable(handler)}
    for number, handler in mine.items():
        signal.signal(number, handler)
    _DEPTH[0] += 1
    try:
        yield
    finally:
        _DEPTH[0] -= 1
        for number in mine:
            signal.signal(number, before[number])
        if not _DEPTH[0]:
            _STOPS.clear()


def contained(call: Callable[..., Result], *arguments: Any) -> Result:
    """Call a pilot's code.

    Raises:
        PilotFailure: It raised, whatever it was; the message names the kind, the reason, and the pilot's own line.
        KeyboardInterrupt: Somebody stopped the run meanwhile, even if the pilot's code swallowed that.
    """
    before = len(_STOPS)
    try:
        result = call(*arguments)
    except PilotFailure:
        raise  # of a pilot inside a pilot: its cause is named already
    except BaseException as error:
        _obey(before)
        if isinstance(error, KeyboardInterrupt) and not _telling():
            raise
        raise PilotFailure(cause_of(error)) from error
    _obey(before)
    return result


def import_contained(run: Callable[[Any], None], module: Any) -> None:
    """Run a file of a user's own as a pilot's code is run; for `airworthy.core.own_modules.load_with`.

    Args:
        run: Executes the module.
        module: New.

    Raises:
        ImportFailure: It raised, whatever it was.
        KeyboardInterrupt: Somebody stopped the run meanwhile.
    """
    try:
        with stops_noted():
            contained(run, module)
    except PilotFailure as failure:
        raise ImportFailure(str(failure)) from failure


def cause_of(error: BaseException) -> str:
    """Return kind and first line of what was raised, and the line of the pilot's own code that it came from."""
    reason = _words(error)
    said = f"{type(error).__name__}: {reason}" if reason else type(error).__name__
    if isinstance(error, SyntaxError) and error.lineno is not None:
        return said  # its words end with its file and line; the code that met it is Python's
    raised_at = _own_line(error.__traceback__)
    return said if raised_at is None else f"{said} ({Path(raised_at.filename).name}, line {raised_at.lineno})"


def _words(error: BaseException) -> str:
    """Return the first line of what was raised; what a stranger's exception says of itself is a stranger's code, too."""
    try:
        return harmless("".join((str(error).splitlines() or [""])[0])[:_REASON_LENGTH])
    except Exception as second:
        return f"its message cannot be had: {type(second).__name__}"


def _noting(handler: Callable[[int, Any], Any]) -> Callable[[int, Any], Any]:
    def ring(number: int, frame: Any) -> Any:
        try:
            return handler(number, frame)
        except BaseException as stop:
            _STOPS.append(stop)
            raise

    return ring


def _obey(before: int) -> None:
    if len(_STOPS) > before:
        raise _STOPS[-1].with_traceback(None)


def _telling() -> bool:
    """Tell whether a KeyboardInterrupt without a noted signal must be the pilot's own."""
    return _DEPTH[0] > 0 or threading.current_thread() is not threading.main_thread()


def _own_line(trace: TracebackType | None) -> traceback.FrameSummary | None:
    """Return the deepest frame that is neither of this package nor of a library; of our own planners, the deepest of all."""
    frames = traceback.extract_tb(trace)
    own = [f for f in frames if not f.filename.startswith(("<", _PACKAGE, *_LIBRARIES))]
    # The timer's handler runs on top of what took too long: where that stood is what matters. What imports a file is no place
    # that anybody could look at.
    importing = ("<", own_modules.__file__)
    ours = [f for f in frames if f.name not in ("ring", "contained", "within") and not f.filename.startswith(importing)]
    found = own or ours
    return found[-1] if found else None
