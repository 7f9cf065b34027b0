"""Which roll-outs lie in which shard."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from airworthy.core.random import Stream, flight_key, words
from airworthy.learning.synthesis.plan import RolloutPlan

__all__ = ["Sharding"]

Ints = NDArray[np.int64]
_ORDER = 3
"""Step of the stream of synthesis from which the order is drawn."""


class Sharding:
    """Roll-outs of each course in shuffled order, cut into shards.

    Args:
        plan: Of the roll-outs.
        size: Roll-outs per shard; the last one of a course may have fewer.
    """

    def __init__(self, plan: RolloutPlan, size: int):
        self._plan, self._size = plan, size
        counts = [-(-int(count) // size) for count in plan.counts]
        self.course = np.repeat(np.arange(len(counts)), counts)
        """(shards,) index of the configuration's courses."""
        self._first = np.concatenate([[0], np.cumsum(counts)])
        self._orders: dict[int, Ints] = {}

    def __len__(self) -> int:
        return len(self.course)

    @property
    def held_out(self) -> Ints:
        """(courses,) the last shard of each."""
        return self._first[1:] - 1

    def numbers(self, shard: int) -> Ints:
        """Roll-outs of a shard, in the order of its files."""
        course = int(self.course[shard])
        begin = (shard - int(self._first[course])) * self._size
        return self._order(course)[begin : begin + self._size]

    def _order(self, course: int) -> Ints:
        """A course's roll-outs, by a word drawn for each."""
        if course not in self._orders:
            number = np.arange(self._plan.first[course], self._plan.first[course + 1])
            drawn = words(flight_key(self._plan.config.seed, number), _ORDER, Stream.SYNTHESIS, 4)
            self._orders[course] = number[np.lexsort((drawn[:, 1], drawn[:, 0]))]
        return self._orders[course]
