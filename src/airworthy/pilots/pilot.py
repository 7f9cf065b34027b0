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


def check_observes(simulator: Simulator, pilot: Pilot) -> None:
    """Refuse a pilot that asks for what it may not have, or for what is not simulated.

    Raises:
        AirworthyError: One sentence.
    """
    if isinstance(pilot.observes, str):
        raise AirworthyError(
            f"Pilot {pilot.name!r} observes the text {pilot.observes!r}; write a tuple, ({pilot.observes!r},)."
        )
    for name in pilot.observes:
        if name not in (*PRIVILEGED, *OBSERVABLE):
            raise AirworthyError(
                f"Pilot {pilot.name!r} observes {name!r}; it may ask for {', '.join((*PRIVILEGED, *OBSERVABLE))}."
            )
        if name not in simulator.layout:
            raise AirworthyError(
                f"Pilot {pilot.name!r} observes {name!r}, which {simulator.config.dynamics} dynamics do not have."
            )
        if name == "imu" and simulator.config.imu is None:
            raise AirworthyError(f"Pilot {pilot.name!r} observes 'imu', but no inertial sensor is simulated; configure one.")


def observe(simulator: Simulator, observes: tuple[str, ...]) -> Observation:
    """The declared fields of every environment, as copies that cannot be written; see `check_observes`."""
    fields = {name: np.array(_field(simulator, name)) for name in observes}
    time = simulator.time
    for array in (time, *fields.values()):
        array.flags.writeable = False
    return Observation(time, fields)


def _field(simulator: Simulator, name: str) -> Array:
    # Without the rows that pad the kernel's rotors.
    return simulator.rotor_speed if name == "rotor_speed" else simulator.field(name)
