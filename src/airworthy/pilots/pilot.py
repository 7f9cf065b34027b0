"""What a pilot is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from airworthy.core.errors import AirworthyError
from airworthy.simulation.simulator import Simulator

Array = NDArray[np.floating[Any]]

PRIVILEGED = ("position", "velocity", "attitude", "rate", "rotor_speed", "wind")
"""State that no sensor gives; a pilot gets it only where it says so."""
OBSERVABLE = ("imu",)
"""Simulated sensors."""


class Pilot(Protocol):
    """Maps observations of all environments to commands of all environments."""

    @property
    def name(self) -> str:
        """As in the catalogue and in results."""
        ...

    @property
    def level(self) -> str:
        """Control level of its commands, a key of the simulator's levels."""
        ...

    @property
    def observes(self) -> tuple[str, ...]:
        """Fields it is given, besides time; of `PRIVILEGED` and `OBSERVABLE`. Nothing else reaches it."""
        ...

    def command(self, observation: Observation) -> Array:
        """Commands at `level`, shape (env, width) or (width,)."""
        ...


@dataclass(frozen=True)
class Observation:
    """What a pilot sees at one instant."""

    time: Array
    """Since the start of each flight [s], (env,)."""
    fields: dict[str, Array]
    """The fields it declared, first axis the environment; read only."""

    def __getitem__(self, name: str) -> Array:
        if name not in self.fields:
            raise AirworthyError(f"A pilot read {name!r}, which it does not declare; add it to `observes`.")
        return self.fields[name]


def observe(simulator: Simulator, observes: tuple[str, ...]) -> Observation:
    """The declared fields of every environment, as copies.

    Raises:
        AirworthyError: If a field is not one that pilots may have.
    """
    fields: dict[str, Array] = {}
    for name in observes:
        if name not in (*PRIVILEGED, *OBSERVABLE):
            raise AirworthyError(f"A pilot observes {name!r}; it may ask for {', '.join((*PRIVILEGED, *OBSERVABLE))}.")
        fields[name] = np.array(simulator.field(name))
        fields[name].flags.writeable = False
    return Observation(simulator.time, fields)
