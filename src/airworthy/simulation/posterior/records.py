"""Drawn vehicles as records, for whoever flies records and not rows, and what of a distribution its draws leave out.

A benchmark that takes a vehicle off, sets its motors back and flies it has several simulators: each is given the record that a
flight drew, and controllers believe the one that was named.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from airworthy.core.arrays import ArrayU32
from airworthy.simulation.config import Randomization
from airworthy.simulation.posterior.rows import drawn_values, posterior_of, rejected_share, tried_draws
from airworthy.vehicles.record import UNCERTAIN, Vehicle
from airworthy.vehicles.uncertainty import with_values

__all__ = ["DrawnVehicle", "NarrowedDraws", "drawn_vehicles", "draws_record", "narrowed_draws"]

TOLD = 0.005
"""Share of rejected draws from which it is told: under it, no deviation changes by a hundredth."""
CUT = 0.97
"""Deviation of what is drawn over what the record tells, under which a value is named: five standard errors of 4096 draws."""


@dataclass(frozen=True)
class DrawnVehicle:
    """What a flight drew."""

    vehicle: Vehicle
    """The record, with the drawn values."""
    values: Mapping[str, float]
    """What is uncertain of it, by name, SI units."""
    rejected: int
    """Draws before it that were no vehicle, or none that lifts its weight."""


def drawn_vehicles(vehicle: Vehicle, spread: Randomization, keys: ArrayU32) -> list[DrawnVehicle]:
    """Draw a vehicle for each flight, as a `Simulator` with the same seed and flight ids does.

    Args:
        vehicle: With its uncertainty.
        spread: Whose `widen` is taken.
        keys: Of the flights, (n, 4), of `core.random.flight_key`.

    Raises:
        AirworthyError: The record tells no uncertainty, or hardly a draw of it is a vehicle that flies.
    """
    posterior = posterior_of(vehicle, spread)
    found, rejected = drawn_values(posterior, keys)
    made = []
    for k in range(len(keys)):
        values = {name: float(found[name][k]) for name in posterior.names}
        made.append(DrawnVehicle(with_values(vehicle, values, posterior.state), values, int(rejected[k])))
    return made


# ---- What is cut -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class NarrowedDraws:
    """How far draws differ from the distribution that a record tells, since what is no vehicle is drawn anew."""

    rejected_share: float
    """Of draws, 0 to 1."""
    deviations: Mapping[str, tuple[float, float]]
    """Of each value that is cut: standard deviation as told and as drawn, on its scale of `UNCERTAIN`."""

    def record(self, name: str) -> dict[str, Any]:
        """Return the same as plain data, with its sentence.

        Args:
            name: Of the vehicle.
        """
        narrowed = {value: {"told": told, "drawn": drawn} for value, (told, drawn) in self.deviations.items()}
        return {"vehicle": name, "rejected_share": self.rejected_share, "narrowed": narrowed, "said": self.sentence(name)}

    def sentence(self, name: str) -> str:
        """Return one sentence; empty where hardly a draw is rejected.

        Args:
            name: Of the vehicle.
        """
        if self.rejected_share < TOLD:
            return ""
        told = ", ".join(_deviation(value, *pair) for value, pair in self.deviations.items())
        cut = f", so that draws are narrower than the record says: {told}" if told else ""
        return (
            f"{100.0 * self.rejected_share:.1f} % of the draws from the uncertainty of {name} are no vehicles (an inertia of no"
            f" body, or no lift of the weight) and are drawn anew{cut}."
        )


def _deviation(name: str, told: float, drawn: float) -> str:
    if UNCERTAIN[name] == "log":
        return f"{name} {100.0 * drawn:.3g} % in place of {100.0 * told:.3g} %"
    return f"{name} {drawn:.3g} in place of {told:.3g}"


def narrowed_draws(vehicle: Vehicle, spread: Randomization | None = None) -> NarrowedDraws:
    """Return what draws of a vehicle leave out; of always the same 4096 draws.

    Args:
        vehicle: With its uncertainty.
        spread: Whose `widen` is taken; None: as the record tells.

    Raises:
        AirworthyError: As `drawn_vehicles`.
    """
    posterior = posterior_of(vehicle, spread or Randomization(posterior=True))
    values, sound = tried_draws(posterior)
    found = {}
    for name, row in zip(posterior.names, posterior.root, strict=True):
        told = math.sqrt(sum(x * x for x in row))
        kept = np.log(values[name][sound]) if UNCERTAIN[name] == "log" else values[name][sound]
        if told > 0.0 and name != "command_delay" and float(kept.std()) < CUT * told:
            found[name] = (told, float(kept.std()))
    return NarrowedDraws(rejected_share(posterior), found)


def draws_record(vehicles: Sequence[Vehicle], spread: Randomization) -> dict[str, Any]:
    """Return what is written down of draws from identified vehicles; empty where none are drawn.

    Args:
        vehicles: Of a run; each record is told once.
        spread: Between its flights.
    """
    if not spread.posterior:
        return {}
    records = {id(item): item for item in vehicles}.values()
    return {"identified_draws": [narrowed_draws(item, spread).record(item.name) for item in records]}
