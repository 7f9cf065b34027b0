"""Poses taken in while pictures are made, and what a real vehicle is told at once: it left its volume, or nobody sees it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from airworthy.bridges.loop.pose_sources import PosesEnded, PoseSource
from airworthy.bridges.loop.pose_track import PoseTrack, RoomAlignment, StampedPose, TrackedPose
from airworthy.core.errors import AirworthyError

__all__ = ["Abort", "PoseGuard", "SafetyVolume"]

_LOOK = 0.005
"""Longest time between two looks whether poses have become stale [s]; an abort is to be raised within 20 ms."""


@dataclass(frozen=True)
class SafetyVolume:
    """A box, in the scene [m]."""

    lower: tuple[float, float, float]
    upper: tuple[float, float, float]

    def __post_init__(self) -> None:
        if not all(low < high for low, high in zip(self.lower, self.upper, strict=True)):
            raise AirworthyError(
                f"The safety volume reaches from {self.lower} to {self.upper}; write its smaller corner first."
            )

    def holds(self, pose: StampedPose) -> bool:
        """Tell whether a pose is inside."""
        return bool(np.all(pose.position >= self.lower) and np.all(pose.position <= self.upper))


@dataclass(frozen=True)
class Abort:
    """Why the vehicle was told to stop."""

    cause: str
    after: float
    """From the moment that it was so until it was told [s]."""


class PoseGuard:
    """Takes poses in a thread of its own; a context manager.

    Args:
        source: Of poses.
        align: Of the room in the scene.
        track: That is filled.
        volume: Where the vehicle may be; None: everywhere.
        tell: Is given each abort at once; it is called from the thread.
    """

    def __init__(
        self,
        source: PoseSource,
        align: RoomAlignment,
        track: PoseTrack,
        volume: SafetyVolume | None = None,
        tell: Callable[[Abort], None] = lambda abort: None,
    ):
        self._source, self._align, self._track, self._volume, self._tell = source, align, track, volume, tell
        self._lock, self._stop = threading.Lock(), threading.Event()
        self._outside = self._stale = False
        self._newest: float | None = None
        self.aborts: list[Abort] = []
        self.ended = threading.Event()
        """The source has no more, or failed."""
        self.first = threading.Event()
        """A pose has come."""
        self.failure = ""
        self._thread = threading.Thread(target=self._run, name="poses", daemon=True)

    def __enter__(self) -> PoseGuard:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(5.0)

    def at(self, now: float) -> TrackedPose | None:
        """Return where the vehicle is at an instant of our clock [s]."""
        with self._lock:
            return self._track.at(now)

    @property
    def offset(self) -> float:
        """Our clock less the source's [s]."""
        with self._lock:
            return self._track.clock.value

    def _run(self) -> None:
        try:
            while not self._stop.is_set():
                pose = self._source.receive(time.monotonic() + _LOOK)
                if pose is not None:
                    self._take(self._align.placed(pose))
                self._watch(time.monotonic())
        except PosesEnded:
            pass
        except Exception as error:  # told where the loop ends: a thread has nobody to tell
            self.failure = f"{type(error).__name__}: {error}"
        finally:
            self.ended.set()

    def _take(self, pose: StampedPose) -> None:
        with self._lock:
            taken = self._track.add(pose)
        if not taken:
            return
        self._newest, self._stale = pose.received, False
        self.first.set()
        inside = self._volume is None or self._volume.holds(pose)
        if not inside and not self._outside:
            where = ", ".join(f"{value:.2f}" for value in pose.position)
            self._abort(f"the vehicle left its safety volume at {where} m", pose.received)
        self._outside = not inside

    def _watch(self, now: float) -> None:
        limit = self._track.limits.extrapolation
        if self._newest is None or self._stale or now - self._newest <= limit:
            return
        self._stale = True
        self._abort(f"no pose has come for {1e3 * limit:.0f} ms", self._newest + limit)

    def _abort(self, cause: str, since: float) -> None:
        abort = Abort(cause, max(time.monotonic() - since, 0.0))
        self.aborts.append(abort)
        self._tell(abort)
