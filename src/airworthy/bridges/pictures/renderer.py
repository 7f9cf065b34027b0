"""Samples rendered beside a simulation: what is handed over, what comes back, and what was skipped meanwhile.

A sample that is due while the one before of the same sensor is still being rendered is skipped and counted, so that physics
never waits, and no queue grows (as FlightGoggles does it: spec/flightgoggles 6).
"""

from __future__ import annotations

import threading
import time
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from airworthy.bridges.clock import Thinned
from airworthy.core.arrays import ArrayIndex
from airworthy.core.errors import AirworthyError, AssetWarning
from airworthy.sensors.devices import Device
from airworthy.simulation.sensor_state import SampleRequest

__all__ = ["AsyncRenderer", "RenderLink", "Rendered", "RenderedFrames", "Stamped", "is_picture"]


_FEW_RAYS = 1024
"""So many cost less than handing them over does."""


def is_picture(device: Device) -> bool:
    """Tell whether samples of a device take so long that a simulation should not wait for them: any but rangers and beacons."""
    return device.kind != "beacons" and device.projection.width * device.projection.height > _FEW_RAYS


@dataclass(frozen=True, eq=False)
class Stamped:
    """A sample that is to be rendered."""

    exposure: SampleRequest
    stamp: float
    """Of its instant, in simulated time [s]."""


@dataclass(frozen=True, eq=False)
class Rendered:
    """A sample that was rendered and sent."""

    name: str
    messages: tuple[tuple[str, str, float, bytes], ...] = ()
    """For the flight log: topic, type, stamp [s] and CDR bytes."""


class RenderLink(Protocol):
    """The way to whoever renders, and back.

    Records there: `Stamped`, or environments whose flights begin anew. Records back: "ready", `Rendered`, a warning's text, or
    an `AirworthyError`, which ends it.
    """

    def put(self, record: Stamped | ArrayIndex) -> None:
        """Hand a record over; never waits for what is being rendered.

        Raises:
            OSError: Nobody is there any more.
        """
        ...

    def get(self) -> Any:
        """Wait for the next record that comes back.

        Raises:
            EOFError: None will.
        """
        ...

    def close(self) -> None:
        """Have it end, when what was handed over is rendered."""
        ...

    def reaped(self) -> str:
        """Wait until it has ended, and return how, where it did not end well."""
        ...


@dataclass
class RenderedFrames:
    """What became of one sensor's samples."""

    due: int = 0
    rendered: int = 0
    skipped: int = 0

    def sentence(self, name: str) -> str:
        """Return it in words."""
        if self.rendered == self.due:
            return f"{name}: all {self.due:,} frames rendered"
        lost = self.due - self.rendered - self.skipped
        done = f"{name}: {self.rendered:,} of {self.due:,} frames rendered"
        why = f"{self.skipped:,} skipped, since the one before was still being rendered"
        return f"{done}; {why}" + (f"; {lost:,} not finished at the end" if lost else "")


class AsyncRenderer:
    """Hands samples of some sensors to whoever renders them; see `SampleRenderer`.

    Args:
        link: To whoever renders.
        names: Of the sensors.
        rate: Physics steps per second [Hz].
    """

    def __init__(self, link: RenderLink, names: Iterable[str], rate: float):
        self._link, self._rate = link, rate
        self._listener: Callable[[Rendered], None] | None = None
        self._unheard: list[Rendered] = []
        self.frames = {name: RenderedFrames() for name in names}
        """What became of the samples, by sensor."""
        self.since = 0.0
        """When the flight began, in simulated time that goes on over resets [s]."""
        self._pending: dict[str, float] = {}
        self._ages: dict[str, Thinned[float]] = {name: Thinned() for name in self.frames}
        self._changed = threading.Condition()
        self._ready, self._ended = False, False
        self._failure: AirworthyError | None = None
        self._warnings: list[str] = []
        self._reader = threading.Thread(target=self._read, name="rendered samples", daemon=True)
        self._reader.start()

    # ---- what a simulation asks of it -------------------------------------------------------------------------------

    def renders(self, name: str) -> bool:
        """See `SampleRenderer`."""
        return name in self.frames

    def accepts(self, name: str) -> bool:
        """See `SampleRenderer`."""
        self.check()
        frames = self.frames[name]
        frames.due += 1
        with self._changed:
            busy = name in self._pending
        frames.skipped += busy
        return not busy

    def render(self, exposure: SampleRequest) -> None:
        """See `SampleRenderer`."""
        with self._changed:
            self._pending[exposure.name] = time.monotonic()
        self._put(Stamped(exposure, self.since + float(exposure.step[0]) / self._rate))

    def reset(self, env_ids: ArrayIndex) -> None:
        """See `SampleRenderer`."""
        self._put(np.asarray(env_ids))

    # ---- what a session asks of it ----------------------------------------------------------------------------------

    def check(self) -> None:
        """Pass on what went wrong.

        Raises:
            AirworthyError: Whoever renders has failed, or is gone.
        """
        with self._changed:
            told, self._warnings = self._warnings, []
            failure, ended = self._failure, self._ended
        for text in told:
            warnings.warn(text, AssetWarning, stacklevel=2)
        if failure is not None:
            raise failure
        if ended:
            raise AirworthyError(f"The process that renders pictures is gone{self._link.reaped()}.")

    def listen(self, listener: Callable[[Rendered], None]) -> None:
        """Call somebody (a log) with every sample that was rendered, in a thread of its own; with those until now at once."""
        with self._changed:
            self._listener, unheard, self._unheard = listener, self._unheard, []
        for rendered in unheard:
            listener(rendered)

    def wait_ready(self) -> None:
        """Wait until it can render.

        Raises:
            AirworthyError: It cannot.
        """
        self._wait(lambda: self._ready, None)

    def drain(self, seconds: float | None = None) -> None:
        """Wait until all that was handed over is rendered, for so long at most [s].

        Raises:
            AirworthyError: As `check`.
        """
        self._wait(lambda: not self._pending, seconds)

    def close(self) -> None:
        """End it; may be called again."""
        self._link.close()
        self._link.reaped()
        self._reader.join()

    def notes(self) -> list[str]:
        """Return what became of the samples, a sentence for each sensor."""
        found = []
        for name, frames in self.frames.items():
            ages = self._ages[name].kept
            late = ""
            if ages:
                median, p99 = 1e3 * np.percentile(ages, (50.0, 99.0))
                late = f"; sent {median:.0f} ms (median) and {p99:.0f} ms (p99) after their instants"
            found.append(frames.sentence(name) + late)
        return found

    # ---- inside -----------------------------------------------------------------------------------------------------

    def _tell(self, rendered: Rendered) -> AirworthyError | None:
        """Pass a sample on; return what went wrong with whoever takes it: this thread is nobody's to fail in."""
        with self._changed:
            listener = self._listener
            if listener is None:
                self._unheard.append(rendered)
        try:
            if listener is not None:
                listener(rendered)
        except AirworthyError as error:
            return error
        except Exception as error:
            return AirworthyError(f"A picture of {rendered.name!r} could not be kept ({type(error).__name__}: {error}).")
        return None

    def _wait(self, over: Callable[[], bool], seconds: float | None) -> None:
        with self._changed:
            # In parts: Ctrl-C is to end it on every system.
            until = None if seconds is None else time.monotonic() + seconds
            while not (over() or self._ended or self._failure is not None):
                if until is not None and time.monotonic() >= until:
                    break
                self._changed.wait(0.2)
        self.check()

    def _put(self, record: Stamped | ArrayIndex) -> None:
        try:
            self._link.put(record)
        except OSError:
            self.check()
            raise AirworthyError(f"The process that renders pictures is gone{self._link.reaped()}.") from None

    def _read(self) -> None:
        while True:
            try:
                record = self._link.get()
            except (EOFError, OSError):
                break
            failure = self._tell(record) if isinstance(record, Rendered) else None
            with self._changed:
                self._failure = self._failure or failure
                if isinstance(record, Rendered):
                    self.frames[record.name].rendered += 1
                    self._ages[record.name].add(time.monotonic() - self._pending.pop(record.name))
                elif isinstance(record, AirworthyError):
                    self._failure = record
                elif record == "ready":
                    self._ready = True
                else:
                    self._warnings.append(str(record))
                self._changed.notify_all()
        with self._changed:
            self._ended = True
            self._changed.notify_all()
