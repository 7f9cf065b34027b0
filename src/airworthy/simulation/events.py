"""Events between physics steps: how sensors with rates of their own get their samples at the right step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from airworthy.core.errors import AirworthyError

if TYPE_CHECKING:
    from airworthy.simulation.simulator import Simulator

FAR = np.int64(2**62)
"""Steps until an event that never comes."""

_METHODS = ("due", "fire", "reset")


@runtime_checkable
class EventSource(Protocol):
    """What wants to be called at certain physics steps of each flight."""

    def due(self, flight_step: NDArray[np.uint32]) -> NDArray[np.int64]:
        """Steps from now until the next event of each environment, shape (env,), at least 1; `FAR` where none comes.

        Args:
            flight_step: Physics steps since the start of each flight, (env,).
        """

    def fire(self, simulator: Simulator) -> None:
        """A launch has arrived at a step where some environment has an event: serve those, and only those.

        State and `flight_step` are those of the present. The state may be read; writing it, or resetting environments, takes
        effect on the steps that follow.
        """

    def reset(self, env_ids: NDArray[np.intp]) -> None:
        """New flights began in these environments, or a snapshot was restored. Step 0 is not fired: serve it here if wanted."""


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

    def reset(self, env_ids: NDArray[np.intp]) -> None:
        """Tell every source of new flights."""
        for source in self._sources:
            source.reset(env_ids)

    def next_part(self, simulator: Simulator, steps: int) -> tuple[int, list[EventSource]]:
        """Steps to fly until somebody is due, at most `steps`, and who is due there.

        Raises:
            AirworthyError: If a source's answer has the wrong shape or is not in the future.
        """
        if not self._sources:
            return steps, []
        flight_step = simulator.flight_step
        waits = [_wait(source, flight_step) for source in self._sources]
        part = min(steps, *waits)
        return part, [source for source, wait in zip(self._sources, waits, strict=True) if wait == part]


def _wait(source: EventSource, flight_step: NDArray[np.uint32]) -> int:
    due = np.asarray(source.due(flight_step))
    if due.shape != flight_step.shape or due.dtype.kind not in "iu" or due.min() < 1:
        raise AirworthyError(
            f"An event source of type {type(source).__name__} answered due() with {due.dtype} of shape {due.shape};"
            f" expected whole numbers of at least 1, shape {flight_step.shape}."
        )
    return int(due.min())
