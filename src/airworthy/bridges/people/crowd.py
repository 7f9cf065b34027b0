"""People in a scene: recordings move by its time, streams by what came last; what is stale, late or no pose is counted."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from airworthy.bridges.people.skeletons import SkeletonFrame, WrongJoints
from airworthy.bridges.people.sources import SkeletonSource, skeleton_source
from airworthy.core.errors import AirworthyError
from airworthy.core.frames import IDENTITY
from airworthy.scenes import Scene, SceneBatch, add_actor, person
from airworthy.scenes.files.skeleton_recording import read_skeletons, recorded_person
from airworthy.scenes.people import PERSON_JOINTS

__all__ = ["STALE", "Crowd"]

STALE = 0.05
"""Longest time between two poses; from then on a person stands still and is counted [s] (spec/flightgoggles 5)."""
_ABSENT = (0.0, 0.0, -2000.0)
"""Where a person is before the first pose: out of the sight of every sensor, which ends at 1000 m."""
_FILE = "file:"
_RESTART = 1.0
"""A clock that goes back farther is another one: the tracker began anew [s]; no network holds a datagram for so long."""


@dataclass
class _Tracked:
    """One person by a stream."""

    name: str
    source: SkeletonSource
    newest: SkeletonFrame | None = None
    came: float = 0.0
    stale: bool = False
    counts: Counter[str] = field(default_factory=Counter)


class Crowd:
    """People by their words, [NAME=]SOURCE.

    Args:
        words: See `sources`.
        height: Of the bodies [m].
        live: Whether streams may come; else recordings alone, which repeat.
        say: Is given a sentence where one stands still because nothing comes.
        listen: Take streams in; else their people are where another crowd of the same words has put them
            (`SceneBatch.follow`).

    Raises:
        AirworthyError: A word, a file or a height cannot be used, or a port is taken.
    """

    def __init__(
        self,
        words: Sequence[str],
        height: float = 1.75,
        live: bool = True,
        say: Callable[[str], None] = lambda sentence: None,
        listen: bool = True,
    ):
        self._say, self._tracked, self._notes = say, list[_Tracked](), list[str]()
        self._kits = []
        # From the pelvis' place to the actor's, which stands on the floor and never turns.
        (bare,) = person("person", height).skeletons.values()
        self._pelvis = np.asarray(bare.position[0], float)
        try:
            for index, word in enumerate(words):
                name, named, rest = word.partition("=")
                name, source = (name, rest) if named and ":" not in name else (f"person_{index + 1}", word)
                if source.startswith(_FILE):
                    recording = read_skeletons(source.removeprefix(_FILE))
                    self._notes += [f"{name}: {note.rstrip('.')}" for note in recording.notes]
                    self._kits.append(recorded_person(name, recording, height))
                elif not live:
                    raise AirworthyError(f"{word!r} is a stream, and frames that repeat need a recording: write file:PATH.")
                else:
                    self._kits.append(person(name, height, position=_ABSENT))
                    if listen:
                        self._tracked.append(_Tracked(name, skeleton_source(source)))
        except BaseException:
            self.close()
            raise

    @property
    def addresses(self) -> list[str]:
        """Where poses are waited for, a few words each."""
        return [f"{item.name} at {item.source.address}" for item in self._tracked]

    @property
    def moving(self) -> bool:
        """Whether there is anybody."""
        return bool(self._kits)

    def added(self, scene: Scene) -> Scene:
        """Return a scene with the people in it."""
        for kit in self._kits:
            scene = add_actor(scene, kit)
        return scene

    def update(self, batch: SceneBatch, now: float | None = None) -> None:
        """Put everybody where the newest pose says.

        Args:
            batch: Of the scene.
            now: On the monotonic clock [s]; None: now.
        """
        at = time.monotonic() if now is None else now
        for item in self._tracked:
            if self._take(item, at):
                assert item.newest is not None
                batch.pose_actor(item.name, item.newest.position - self._pelvis, IDENTITY, joints=item.newest.turns)
            elif item.newest is not None and not item.stale and at - item.came > STALE:
                item.stale = True
                item.counts["gaps"] += 1
                if item.counts["gaps"] == 1:
                    self._say(f"{item.name}: no pose has come for {1e3 * STALE:.0f} ms, and the last one is held.")

    def _take(self, item: _Tracked, now: float) -> bool:
        """Look through what has come; whether there is a newer pose."""
        fresh = False
        for read in item.source.waiting():
            try:
                frame = read()
            except WrongJoints as error:
                item.counts["wrong"] += 1
                if item.counts["wrong"] == 1:
                    self._say(f"{item.name}: a skeleton of {error} ({', '.join(PERSON_JOINTS[:3])}, ...) is left out.")
            except ValueError:
                item.counts["malformed"] += 1
            else:
                if item.newest is not None and frame.stamp <= item.newest.stamp:
                    if frame.stamp > item.newest.stamp - _RESTART:
                        item.counts["late"] += 1
                        continue
                    item.counts["restarts"] += 1
                item.newest, item.came, item.stale, fresh = frame, now, False, True
                item.counts["taken"] += 1
        return fresh

    def notes(self) -> list[str]:
        """Return what was odd, and how many poses were taken of each stream."""
        told = {
            "wrong": f"skeletons of other than {len(PERSON_JOINTS)} joints, left out",
            "malformed": "messages that were no poses (numbers and lengths are checked; stamps are seconds, places metres)",
            "late": "poses out of order, left out",
            "restarts": "times the tracker's clock began anew",
            "gaps": f"gaps of over {1e3 * STALE:.0f} ms, in which the last pose was held",
        }
        found = [*self._notes]
        for item in self._tracked:
            found.append(f"{item.name}: {item.counts['taken']:,} poses taken")
            found += [f"{item.name}: {item.counts[key]:,} {words}" for key, words in told.items() if item.counts[key]]
        return found

    def close(self) -> None:
        """End all streams; may be called again."""
        for item in self._tracked:
            item.source.close()
