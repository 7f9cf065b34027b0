"""What a pilot is shown instead of what its cameras see: black, an image that stays, or images that come late."""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from typing import Any

import numpy as np

from airworthy.benchmarks.tracking.conditions import Condition
from airworthy.core.arrays import Array
from airworthy.pilots.pilot import Observation
from airworthy.simulation.sensor_state import Sample

__all__ = ["SeenImages"]

_EARLY = 1e-6


class SeenImages:
    """Replaces the images of an observation's samples, at every decision; times and poses of the samples stay as they are.

    Args:
        condition: What is shown.
    """

    def __init__(self, condition: Condition):
        self._condition = condition
        self._past: dict[str, deque[tuple[Array, dict[str, Any]]]] = {}
        self._number: dict[str, Any] = {}

    def of(self, observation: Observation) -> Observation:
        """Return what the pilot is shown."""
        now = np.asarray(observation.time, np.float64)
        return replace(observation, samples={name: self._shown(name, item, now) for name, item in observation.samples.items()})

    def _shown(self, name: str, sample: Sample, now: Array) -> Sample:
        if self._condition.blind:
            data = {key: np.zeros_like(values) for key, values in sample.data.items()}
        else:
            past = self._past.setdefault(name, deque())
            number = self._number.get(name)
            if number is None or not np.array_equal(number, sample.number):  # new images have come
                self._number[name] = np.array(sample.number)
                past.append((now, {key: np.array(values) for key, values in sample.data.items()}))
            data = self._chosen(past, now)
        for values in data.values():
            values.flags.writeable = False
        return replace(sample, data=data)

    def _chosen(self, past: deque[tuple[Array, dict[str, Any]]], now: Array) -> dict[str, Any]:
        """Of each environment the newest image that it may be shown; the first where none is old enough."""
        limit = now - self._condition.image_delay
        if self._condition.freeze > 0.0:
            limit = np.minimum(limit, self._condition.freeze)
        # Older than what every environment is shown already, nothing is asked for any more.
        while len(past) > 1 and (past[1][0] <= limit + _EARLY).all():
            past.popleft()
        chosen = {key: np.array(values) for key, values in past[0][1].items()}
        for time, data in list(past)[1:]:
            newer = time <= limit + _EARLY
            for key, values in data.items():
                chosen[key][newer] = values[newer]
        if self._condition.image_delay == 0.0:
            # Frozen: what comes after is shown to nobody.
            while len(past) > 1 and (past[-1][0] > limit + _EARLY).all():
                past.pop()
        return chosen
