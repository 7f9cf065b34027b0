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

__all__ = ["Abort", "PoseGuard", "SafetyVolume", "SourceFailure"]

_LOOK = 0.005
"""Longest time between two looks whether poses have become stale [s]; an abort is to be raised within 20 ms."""
_JUST = 1e-4
"""Behind the moment at which a pose becomes stale, so that a look then finds it stale [s]."""


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
    """Why the vehicle was told to stop; instants by this machine's monotonic clock [s]."""

    cause: str
    since: float
    """From when it was so."""
    told: float
    """When it was on its way."""
    sent: bool = False
    """It is on the topic already: the process that watches the poses sent it."""

    @property
    def after(self) -> float:
        """From the moment that it was so until it was told [s]."""
        return max(self.told - self.since, 0.0)


class SourceFailure(AirworthyError):
    """A source failed where it is watched; the abort that follows was told there."""


class PoseGuard:
    """Takes poses in a thread of its own, and judges each; a context manager.

    Where the source is watched by another process (`watch.WatchedPoses`), that one judges, and its aborts come with the poses.

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
        self._watched = bool(getattr(source, "watched", False))
        if self._watched:
            source.tell = self._told  # type: ignore[attr-defined]
        self._lock, self._stop = threading.Lock(), threading.Event()
        self._outside = self._stale = False
        self._newest: float | None = None
        """When the newest pose was so, on our clock."""
        self._came = 0.0
        self.aborts: list[Abort] = []
        """All that were told, in order; whole once `stop` has returned."""
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
        self.stop()

    def stop(self) -> None:
        """Take no more poses, and tell no more aborts; may be called again."""
        self._stop.set()
        if self._watched:
            self._source.close()  # what it has told until now still comes
        self._thread.join(10.0)

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
            while self._watched or not self._stop.is_set():
                pose = self._source.receive(self._next_look())
                if pose is not None:
                    self._take(self._align.placed(pose))
                if not self._watched:
                    self._watch(time.monotonic())
        except PosesEnded:
            pass
        except Exception as error:  # told where the loop ends: a thread has nobody to tell
            self.failure = str(error) if isinstance(error, AirworthyError) else f"{type(error).__name__}: {error}"
            if self._newest is not None and not self._stop.is_set() and not isinstance(error, SourceFailure):
                # Nobody sees the vehicle from now on.
                self.abort(f"poses come no more ({self.failure.rstrip('.')})", time.monotonic())
        finally:
            self.ended.set()

    def _next_look(self) -> float:
        """Return when to look again, whatever comes: at the latest when the newest pose becomes stale."""
        look = time.monotonic() + _LOOK
        if self._newest is None or self._stale:
            return look
        return min(look, self._newest + self._track.limits.extrapolation + _JUST)

    def _take(self, pose: StampedPose) -> None:
        with self._lock:
            taken = self._track.add(pose)
        if not taken:
            return
        # A pose that was long on its way is as old as its stamp says, however newly it came.
        self._newest, self._came = min(pose.received, pose.stamp + self.offset), pose.received
        self._stale = self._stale and self._came - self._newest > self._track.limits.extrapolation
        self.first.set()
        if self._watched:
            return
        inside = self._volume is None or self._volume.holds(pose)
        if not inside and not self._outside:
            where = ", ".join(f"{value:.2f}" for value in pose.position)
            self.abort(f"the vehicle left its safety volume at {where} m", pose.received)
        self._outside = not inside

    def _watch(self, now: float) -> None:
        limit = self._track.limits.extrapolation
        if self._newest is None or self._stale or now - self._newest <= limit:
            return
        self._stale = True
        way = self._came - self._newest
        if way > limit:
            self.abort(f"the newest pose was {1e3 * way:.0f} ms old when it came, by its stamp", self._came)
        else:
            self.abort(f"no pose has come for {1e3 * (limit - way):.0f} ms", self._newest + limit)

    def abort(self, cause: str, since: float) -> None:
        """Tell an abort.

        Args:
            cause: A clause that says why.
            since: From when it was so, on the monotonic clock [s].
        """
        self._told(Abort(cause, since, time.monotonic()))

    def _told(self, abort: Abort) -> None:
        self.aborts.append(abort)
        self._tell(abort)
