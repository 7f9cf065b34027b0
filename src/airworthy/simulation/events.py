"""Events between physics steps: how sensors with rates of their own get their samples at the right step."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np

from airworthy.core.arrays import Array, ArrayBool, ArrayIndex, ArrayInt, ArrayLike, ArrayU32, NDArray
from airworthy.core.errors import AirworthyError

if TYPE_CHECKING:
    from airworthy.simulation.simulator import Simulator

# -----------------------------------------------------------------------------------------------------------------------------
# Samples at a rate of their own on the physics clock, in whole numbers: nothing drifts, however long a flight is.

# Ours: with a whole physics rate, any sample rate that is written with six digits is met exactly.
_DENOMINATOR = 10**6
"""Steps per sample are a ratio with at most this denominator, so that 100 / 3 Hz, rounded as it is, is every 28.8th of 960."""


class Schedule:
    """When samples fall: sample k at rate f on physics step ceil(k f_physics / f), k = 0, 1, 2, ...

    Args:
        physics_rate: Steps of the equations of motion per second [Hz].
        rate: Samples per second [Hz], at most `physics_rate`.

    Raises:
        AirworthyError: If the rate is not positive or faster than the physics.
    """

    def __init__(self, physics_rate: float | Fraction, rate: float | Fraction):
        if not 0 < rate <= physics_rate:
            raise AirworthyError(
                f"A sample rate is {float(rate):g} Hz;"
                f" expected more than 0 and at most physics_rate ({float(physics_rate):g} Hz)."
            )
        ratio = _exact(physics_rate) / _exact(rate)
        self.steps_per_sample = ratio.limit_denominator(_DENOMINATOR)
        """Physics steps between samples, exact."""
        self._up, self._down = self.steps_per_sample.as_integer_ratio()

    def step_of(self, sample: ArrayLike) -> ArrayInt:
        """Return physics step on which a sample falls."""
        return _divide_up(np.asarray(sample, np.int64) * self._up, self._down)

    def latest(self, step: ArrayLike) -> ArrayInt:
        """Return the number of the last sample that has fallen by a physics step (0 at step 0)."""
        return np.asarray(step, np.int64) * self._down // self._up

    def is_due(self, step: ArrayLike) -> ArrayBool:
        """Tell whether a sample falls on a physics step."""
        return np.asarray(self.step_of(self.latest(step)) == np.asarray(step, np.int64))

    def due(self, step: ArrayLike) -> ArrayInt:
        """Return physics steps from a step until the next sample, at least 1."""
        return self.step_of(self.latest(step) + 1) - np.asarray(step, np.int64)


def _exact(rate: float | Fraction) -> Fraction:
    """Return a rate as it was written: 29.97 means 2997/100, not the nearest binary fraction."""
    # Through its text: the binary fraction nearest to 29.97 is no ratio of small whole numbers.
    return rate if isinstance(rate, Fraction) else Fraction(repr(float(rate)))


def _divide_up(a: Any, b: int) -> ArrayInt:
    return np.asarray(-(-a // b), np.int64)


# ---- What is known of a batch's impacts with the scene ----------------------------------------------------------------------


@dataclass
class ContactRecord:
    """Impacts of each environment since it was last reset by its user: how many, and the last one."""

    count: ArrayInt
    """(env,) In mode "respond" impacts at more than 0.1 m/s; a rest on a surface is none."""
    time: Array
    """Of the flight [s], (env,); NaN where there was none."""
    point: Array
    """On the surface, world [m], (env, 3)."""
    normal: Array
    """Of the surface, towards the vehicle, world, (env, 3)."""
    speed: Array
    """Approach at the contact [m/s], (env,)."""
    instance: NDArray[np.int32]
    """Instance number in the geometry, (env,); -1: none."""

    @classmethod
    def of(cls, env_count: int) -> ContactRecord:
        """Return the record of flights that have met nothing."""
        made = cls(
            np.zeros(env_count, np.int64),
            np.zeros(env_count),
            np.zeros((env_count, 3)),
            np.zeros((env_count, 3)),
            np.zeros(env_count),
            np.zeros(env_count, np.int32),
        )
        made.clear(np.arange(env_count))
        return made

    def clear(self, ids: ArrayIndex) -> None:
        """Forget the impacts of some environments."""
        self.count[ids], self.instance[ids], self.speed[ids] = 0, -1, 0.0
        self.time[ids], self.point[ids], self.normal[ids] = np.nan, np.nan, np.nan

    def add(self, ids: ArrayIndex, packed: Array) -> None:
        """Note the impacts of some environments since they were last noted, as `packed` puts them, (k, 10)."""
        some = packed[:, 0] > 0.0
        ids, new = ids[some], packed[some]
        self.count[ids] += new[:, 0].astype(np.int64)
        self._put(ids, new)

    def packed(self) -> Array:
        """Return all of it as one array, (env, 10): for snapshots."""
        numbers = (
            self.count[:, None],
            self.time[:, None],
            self.point,
            self.normal,
            self.speed[:, None],
            self.instance[:, None],
        )
        return np.concatenate(numbers, axis=1).astype(np.float64)

    def unpack(self, packed: Array) -> None:
        """Take over what `packed` returned."""
        self.count[:] = packed[:, 0]
        self._put(slice(None), packed)

    def _put(self, ids: ArrayIndex | slice, packed: Array) -> None:
        self.time[ids], self.point[ids], self.normal[ids] = packed[:, 1], packed[:, 2:5], packed[:, 5:8]
        self.speed[ids], self.instance[ids] = packed[:, 8], packed[:, 9]


# -----------------------------------------------------------------------------------------------------------------------------

FAR = np.int64(2**62)
"""Steps until an event that never comes."""

_METHODS = ("due", "fire", "reset")


@runtime_checkable
class EventSource(Protocol):
    """What wants to be called at certain physics steps of each flight."""

    def due(self, flight_step: ArrayU32) -> ArrayInt:
        """Return steps from now until the next event of each environment, shape (env,), at least 1; `FAR` where none comes.

        Args:
            flight_step: Physics steps since the start of each flight, (env,).
        """

    def fire(self, simulator: Simulator) -> None:
        """Serve the environments that have an event at the step where a launch has arrived: those, and only those.

        State and `flight_step` are those of the present. The state may be read; writing it, or resetting environments, takes
        effect on the steps that follow.
        """

    def reset(self, env_ids: ArrayIndex) -> None:
        """Begin anew: new flights began in these environments, or a snapshot was restored. Step 0 is not fired: serve it here
        if wanted.
        """


class Events:
    """The sources of a simulator."""

    def __init__(self) -> None:
        self._sources: list[EventSource] = []

    def add(self, source: Any) -> None:
        """Serve a source from now on.

        Raises:
            AirworthyError: If it lacks a method.
        """
        missing = [name for name in _METHODS if not callable(getattr(source, name, None))]
        if missing:
            raise AirworthyError(
                f"An event source of type {type(source).__name__} has no method {missing[0]!r}; it needs due, fire and reset."
            )
        self._sources.append(source)

    def reset(self, env_ids: ArrayIndex) -> None:
        """Tell every source of new flights."""
        for source in self._sources:
            source.reset(env_ids)

    def next_part(self, simulator: Simulator, steps: int) -> tuple[int, list[EventSource]]:
        """Return steps to fly until somebody is due, at most `steps`, and who is due there.

        Raises:
            AirworthyError: If a source's answer has the wrong shape or is not in the future.
        """
        if not self._sources:
            return steps, []
        flight_step = simulator.flight_step
        waits = [_wait(source, flight_step) for source in self._sources]
        part = min(steps, *waits)
        return part, [source for source, wait in zip(self._sources, waits, strict=True) if wait == part]


def _wait(source: EventSource, flight_step: ArrayU32) -> int:
    due = np.asarray(source.due(flight_step))
    if due.shape != flight_step.shape or due.dtype.kind not in "iu" or due.min() < 1:
        raise AirworthyError(
            f"An event source of type {type(source).__name__} answered due() with {due.dtype} of shape {due.shape};"
            f" expected whole numbers of at least 1, shape {flight_step.shape}."
        )
    return int(due.min())
