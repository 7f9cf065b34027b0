"""What the voltage of the supply does to commands: of which flights it can be told, and the voltage at which it is told.

A motor that is driven by a share of the supply turns more slowly on an empty battery at the same command, one whose drive makes
up for that does not. A command u at V volts acts as u (V / V0)^sag (specification identify, section 5); the exponent is fitted
with everything else, where the voltage has changed enough to show it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from airworthy.core.errors import AirworthyError
from airworthy.logs.excitation import SAG, voltage_ends, voltage_means
from airworthy.vehicles.identification.agreement import unlike
from airworthy.vehicles.identification.fitting.parameters import PRIOR_MEAN
from airworthy.vehicles.identification.known import Known
from airworthy.vehicles.identification.prediction.signals import FlightSignals
from airworthy.vehicles.record import Vehicle

__all__ = ["as_supplied", "refuse_supply", "refuse_unlike_supplied", "supply_range", "with_supply"]

RATED = (0.6, 1.6)
"""Ours: voltage of a flight over the one at which commands act as they are; a cell goes from 0.75 to 1.15 of its middle, and
one cell less of three is 0.67."""
DIGITS = 3
"""Decimals of the voltage at which commands act as they are."""


def supply_range(flights: Sequence[FlightSignals]) -> tuple[float, float, float] | None:
    """Return the lowest, the mean and the highest voltage of what is usable [V]; None where one flight, or that, has none.

    Args:
        flights: Signals.
    """
    if any(flight.supply is None for flight in flights):
        return None
    seen = []
    for flight in flights:
        assert flight.supply is not None
        seen.append(voltage_means(flight.supply.time, flight.supply.values[:, 0], flight.spans))
    volts = np.concatenate(seen)
    if not len(volts):
        return None
    low, high = voltage_ends(volts)
    return low, float(volts.mean()), high


def refuse_unlike_supplied(flights: Sequence[FlightSignals], judges: Sequence[FlightSignals] = ()) -> None:
    """Refuse flights of unlike vehicles, as `refuse_unlike`: what a battery explains is none.

    Args:
        flights: Signals.
        judges: Signals of what judges a fit to them.

    Raises:
        AirworthyError: One lifts far more than another at like commands, however the supply acts; with what is left of that
            where the supply explains the most.
    """
    every = [*flights, *judges]
    powers = (0.0, 0.5, 1.0) if _sagged(supply_range(every)) else (0.0,)
    found = []
    for power in powers:
        supplied = as_supplied(every, power)
        found.append(unlike(supplied[: len(flights)], supplied[len(flights) :]))
    told = [item for item in found if item is not None]
    if len(told) == len(found):
        raise AirworthyError(min(told)[1])


def refuse_supply(flight: FlightSignals, vehicle: Vehicle) -> None:
    """Refuse a flight on a supply that a vehicle's commands are not told of.

    Args:
        flight: Signals.
        vehicle: Whose commands go with the supply, or do not.

    Raises:
        AirworthyError: Its voltage is far from the one at which commands act as they are; one sentence.
    """
    if vehicle.command_sag is None or flight.supply is None:
        return
    nominal, middle = vehicle.command_sag[1], float(np.median(flight.supply.values))
    if not RATED[0] <= middle / nominal <= RATED[1]:
        volts = f"{middle:,.{0 if middle >= 1000.0 else 3}f}"
        raise AirworthyError(
            f"Log {flight.name!r} was flown at {volts} V, and commands of {vehicle.name} act as they are at {nominal:g}"
            " V: the battery is another, or the voltage's unit in the log's map is."
        )


def as_supplied(flights: Sequence[FlightSignals], power: float) -> list[FlightSignals]:
    """Return flights whose commands act as their supply lets them; where that was not measured, as they are.

    Args:
        flights: Signals.
        power: Exponent of the supply.
    """
    found = supply_range(flights)
    if found is None or power == 0.0:
        return list(flights)
    return [replace(flight, command=flight.supplied(power, found[1])) for flight in flights]


def _sagged(found: tuple[float, float, float] | None) -> bool:
    return found is not None and (found[2] - found[0]) / found[2] > SAG


def with_supply(
    base: Vehicle, flights: Sequence[FlightSignals], known: Known, told: dict[str, bool], speeds: bool
) -> tuple[Vehicle, list[str]]:
    """Return a vehicle whose commands go with the supply where flights can tell that, and what is said of it.

    Args:
        base: What is believed.
        flights: What is fitted.
        known: What is held.
        told: What logs tell; "sag" is set.
        speeds: Whether rotors turn as they were measured, so that commands play no part.

    Raises:
        AirworthyError: The exponent is to be held, and the logs have no voltage.
    """
    found = supply_range(flights)
    fixed = known.fixed.get("sag")
    asked = fixed is not None or "sag" in known.free
    if found is None:
        told["sag"] = False
        if asked:
            lacks = next((flight.name for flight in flights if flight.supply is None), flights[0].name)
            raise AirworthyError(
                f"sag is to be held or fitted, and log {lacks!r} has no voltage that was measured; leave it out."
            )
        return base, []
    low, mean, high = found
    share = (high - low) / high
    told["sag"] = not speeds and _sagged(found)
    if not told["sag"] and not asked:
        if speeds and base.command_sag is None:
            return base, []
        needed = f"{100.0 * SAG:.0f} are needed"
        where = "Over the parts of flights that are fitted, what is held out left aside,"
        said = f"{where} the voltage falls by {100.0 * share:.1f} % only ({needed}): no sag is told."
        return base, [] if speeds else [said]
    believed = PRIOR_MEAN["sag"] if fixed is None else fixed
    return replace(base, command_sag=(believed, round(mean, DIGITS))), []
