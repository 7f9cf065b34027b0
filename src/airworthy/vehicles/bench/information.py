"""What stands beside a fit to flights: values of a vehicle with a covariance, by a bench or by names of motor and propeller.

A joint fit takes it as further residuals, root (theta - mean), which is the merge of two sources of information.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from airworthy.core.arrays import Array
from airworthy.core.errors import AirworthyError
from airworthy.vehicles.bench.curves import is_covariance
from airworthy.vehicles.bench.motor_prior import MotorPrior
from airworthy.vehicles.bench.result import SUPPLY_SD, TRANSFER_RATIO, BenchFit
from airworthy.vehicles.record import RotorResponse, Vehicle

__all__ = [
    "ValueInformation",
    "at_full_speed",
    "bench_information",
    "bench_speeds",
    "combined_sd",
    "motor_information",
    "promised_mass",
]

HOVER_MASS_SD = 0.3
"""Relative deviation beforehand of a mass that was not weighed: the bench and the log's hover then tell it."""


@dataclass(frozen=True, eq=False)
class ValueInformation:
    """A normal distribution of some values of a vehicle, on the scales of `UNCERTAIN`."""

    names: tuple[str, ...]
    """Of `UNCERTAIN`."""
    mean: Array
    """(n,)"""
    covariance: Array
    """(n, n)"""
    source: str
    """As it stands in a record: "bench: stand.csv[1a2b3c4d]"."""
    measured: bool = True
    """Whether somebody measured it; else it is a prior."""

    def __post_init__(self) -> None:
        if not is_covariance(self.covariance):
            raise AirworthyError(
                f"What {self.source} says of {', '.join(self.names)} has no covariance (symmetric, positive definite): write"
                " its curves anew from the stand, or leave it out."
            )

    @property
    def root(self) -> Array:
        """Return what makes errors of these values independent and of unit size, (n, n)."""
        return np.asarray(np.linalg.inv(np.linalg.cholesky(self.covariance)))


def bench_information(
    fit: BenchFit, state: float | None, command: float, lag: bool, supply_sd: float = 0.0
) -> ValueInformation | None:
    """Return what a bench tells of a vehicle's values; None: nothing.

    Args:
        fit: Of the stand.
        state: Speed of rotors in hover, by the stand's own map or as measured in flight [rad/s]; None: states are commands.
        command: In hover, as it would be at the stand's voltage.
        lag: Whether its lag counts; flights with measured speeds tell it better.
        supply_sd: Relative deviation of the state at a command: of the stand's speed map, and of a supply that is not known.

    Raises:
        AirworthyError: The stand does not cover hover.
    """
    names: list[str] = []
    mean: list[float] = []
    blocks: list[Array] = []
    at = state if fit.state == "speed" else command
    if fit.thrust is not None and at is not None:
        fit.refuse_outside(at)
        values, covariance = fit.covariance_at(at, supply_sd)
        # A share that is linear in commands is none of speeds, where those were measured in flight.
        told = 2 if (fit.state == "speed") == (state is not None) else 1
        names += ["thrust", "thrust_linear"][:told]
        mean += [float(v) for v in values[:told]]
        blocks.append(covariance[:told, :told])
    if fit.thrust is not None and fit.torque is not None:
        # Where nothing tells the speed in hover, the ratio is that of the middle of what the stand covered.
        at = 0.7 * fit.thrust.high if at is None else at
        fit.refuse_outside(at)
        ratio = fit.torque.at(at) / fit.thrust.at(at)
        wide = (fit.thrust.sd(at) / fit.thrust.at(at), fit.torque.sd(at) / fit.torque.at(at), TRANSFER_RATIO)
        names.append("torque_ratio")
        mean.append(math.log(ratio))
        blocks.append(np.array([[sum(v**2 for v in wide)]]))
    if fit.lag is not None and lag and fit.lag.by == "speed":
        value, sd = fit.lag.both
        names.append("lag")
        mean.append(math.log(value))
        blocks.append(np.array([[(sd / value) ** 2]]))
    if not names:
        return None
    covariance = np.zeros((len(names), len(names)))
    at_row = 0
    for block in blocks:
        covariance[at_row : at_row + len(block), at_row : at_row + len(block)] = block
        at_row += len(block)
    return ValueInformation(tuple(names), np.array(mean), covariance, f"bench: {fit.source}")


def motor_information(prior: MotorPrior, state: float, speeds: bool) -> ValueInformation:
    """Return what names of motor and propeller promise.

    Args:
        prior: With its largest speed, or states are speeds.
        state: Rotor state in hover, on the scale where full command is the prior's largest speed [rad/s].
        speeds: Whether the state was measured, so that the motor's Kv has no part in it.
    """
    sd = prior.thrust_sd if speeds else math.hypot(prior.thrust_sd, 2.0 * prior.speed_sd)
    names, mean, sds = ["torque_ratio"], [math.log(prior.torque_ratio)], [prior.torque_ratio_sd]
    if speeds or prior.speed_max is not None:
        names, mean, sds = ["thrust", *names], [math.log(prior.thrust * state**2), *mean], [sd, *sds]
    return ValueInformation(tuple(names), np.array(mean), np.diag(np.square(sds)), f"believed: {prior.source}", False)


def bench_speeds(base: Vehicle, fit: BenchFit, hover: float, voltage: float) -> tuple[Vehicle, float]:
    """Return a vehicle whose rotor states are speeds by the stand's map, and the relative deviation of the speed in hover.

    Args:
        base: Whose scale of rotor states is nominal.
        fit: With a speed map.
        hover: Command in hover.
        voltage: In flight [V]; 0: not measured, and then the supply's own deviation counts.

    Raises:
        AirworthyError: The stand does not cover hover.
    """
    assert fit.speed is not None
    speed = fit.speed
    if not speed.low <= hover <= speed.high:
        raise AirworthyError(
            f"Bench {fit.source} covers commands from {speed.low:.2f} to {speed.high:.2f} of full, and the vehicle hovers at"
            f" {hover:.2f}: measure through that, or leave the bench out."
        )
    factor = speed.factor(voltage)
    first, full = speed.offset * factor, (speed.offset + speed.slope) * factor
    at = speed.at(hover, voltage)
    wide = math.hypot(speed.sd(hover, voltage), speed.rms) / at
    if speed.voltage > 0.0 and voltage <= 0.0:
        wide = math.hypot(wide, speed.sag * SUPPLY_SD)
    extra = {key: value for key, value in base.extra.items() if key != "gauge"}
    return replace(at_full_speed(base, full), extra=extra, command_map=(first, full - first)), wide


def at_full_speed(base: Vehicle, full: float) -> Vehicle:
    """Return a vehicle whose full command is another rotor state, with the same thrust."""
    by = base.rotors[0].speed_max / full
    found = []
    for r in base.rotors:
        response = RotorResponse(*((a, b * by) for a, b in (r.response.rise, r.response.fall)))
        thrust, torque = _stretched(r.thrust, by), _stretched(r.torque, by)
        found.append(replace(r, speed_max=full, thrust=thrust, torque=torque, response=response))
    return replace(base, rotors=tuple(found))


def _stretched(polynomial: tuple[float, float, float], by: float) -> tuple[float, float, float]:
    return polynomial[0], polynomial[1] * by, polynomial[2] * by**2


def promised_mass(fit: BenchFit, hover: float, lift: float, gravity: float) -> tuple[float, float]:
    """Return the mass that a bench's thrust carries at the command of hover, known as roughly as a start needs it [kg].

    Args:
        fit: With thrust over commands, or with speeds over commands too.
        hover: Command in hover.
        lift: Sum of the rotors' axes along z: how many of them carry.
        gravity: [m/s^2]

    Raises:
        AirworthyError: The stand tells no thrust of a command.
    """
    if fit.thrust is None or (fit.state == "speed" and fit.speed is None):
        raise AirworthyError(
            f"Bench {fit.source} tells no thrust of a command, so it weighs no vehicle: give --mass M+-S in kg."
        )
    state = hover if fit.speed is None else fit.speed.at(hover)
    mass = lift * fit.thrust_at(state)[0] / gravity
    return mass, HOVER_MASS_SD * mass


def combined_sd(sd: Array, names: Sequence[str], information: Sequence[ValueInformation]) -> Array:
    """Return deviations of values before any flight: priors and what stands beside them.

    Args:
        sd: Of the priors, (n,).
        names: Of the values, "" for those of a flight or a sensor, (n,).
        information: Beside them.
    """
    if not information:
        return sd
    order = list(names)
    told = sorted({order.index(name) for item in information for name in item.names})
    precision = np.diag(1.0 / sd[told] ** 2)
    for item in information:
        places = [told.index(order.index(name)) for name in item.names]
        precision[np.ix_(places, places)] += np.linalg.inv(item.covariance)
    found = sd.copy()
    found[told] = np.sqrt(np.diag(np.linalg.inv(precision)))
    return found
