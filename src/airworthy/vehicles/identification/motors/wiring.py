"""Which column of a log's motor commands is which rotor, and what is not taken for granted about it.

Turns tell the order of motors by the frame of the gyro. A gyro that is turned by half a turn about an axis, as one in FRD that
is named FLU, shows on a symmetric vehicle exactly what another order of motors would: the accelerometer tells its own frame
only, and attitudes whether the sensor is turned about z. Where the format says the gyro's frame, the order is believed; where
somebody wrote it down, an order that such a gyro would explain as well is asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from airworthy.core.errors import AirworthyError
from airworthy.logs import Log, LogSegments, RotorGeometry, motor_order
from airworthy.logs.against_attitude import TurnedSensor, turned_sensor
from airworthy.logs.motors.columns import ROTORS_MAX, MotorOrder
from airworthy.vehicles.record import Vehicle

__all__ = ["Wiring", "wiring_of"]


@dataclass(frozen=True)
class Wiring:
    """How motors are wired."""

    order: tuple[int, ...] | None
    """For each rotor the column of its commands, from 0 on; None: it is assumed."""
    reversed: bool
    """Whether rotors turn the other way round than the record says."""
    note: str
    undecided: str = ""
    """Why its turns decide on no order, though there are some; "" where they do, or tell nothing."""


def wiring_of(log: Log, segments: LogSegments, base: Vehicle, turns: bool, order: Sequence[int] = ()) -> Wiring:
    """Return how a log's motors are wired.

    Args:
        log: With commands and gyro.
        segments: Of it.
        base: Whose rotors they are.
        turns: Whether the log can tell inertia about x and y, so that an order that is not decided is a fault.
        order: As somebody knows it, columns from 0 on; empty: the log tells it.

    Raises:
        AirworthyError: The log tells another order than is given, or one that a gyro in another frame would explain as well.
    """
    count = base.rotor_count
    if order and len(order) != count:
        raise AirworthyError(
            f"The order of motors names {len(order)} columns, and the vehicle has {count} rotors; name one each."
        )
    if count > ROTORS_MAX:
        said = f"is {_columns(order)}, as given" if order else "is assumed"
        return Wiring(tuple(order) or None, False, f"the order of {count} motors {said}; up to {ROTORS_MAX} are tried.")
    found = motor_order(log, segments, _geometry(base))
    if found is None or not (found.accepted or (turns and not order)):
        said = f"The order of motors is {_columns(order)}, as given; too few turns tell it, or their spins."
        assumed = "the order of motors and their spins are assumed; too few turns tell them."
        return Wiring(tuple(order) or None, False, said if order else assumed)
    turned = None if order or (found.accepted and found.order == tuple(range(count))) else turned_sensor(log)
    if turned is not None:
        _refuse_turned(log, segments, base, turned, found)
    if found.told and not found.accepted:
        return Wiring(None, False, "", found.sentence() + ("" if turned is None else f" {turned.said}"))
    if order and found.accepted and tuple(order) != found.order:
        raise AirworthyError(
            f"Log {log.name!r}: motors are said to come in the order {_columns(order)}, and its turns ask for"
            f" {_columns(found.order)} (cost {found.cost:.2f}): the order, the geometry or the frame of the gyro is another."
        )
    if found.turned_axes and not order:
        raise AirworthyError(f"Log {log.name!r}: {_question(found)}")
    told = tuple(found.order) if found.told else None
    return Wiring(told, found.told and found.spins == "reversed", found.sentence())


def _refuse_turned(log: Log, segments: LogSegments, base: Vehicle, turned: TurnedSensor, found: MotorOrder) -> None:
    """Refuse a sensor that is turned in the body: turned back by attitudes, its turns are those of the vehicle's own order.

    Args:
        log: With a gyro.
        segments: Of it.
        base: Whose rotors they are.
        turned: How attitudes say that it is turned.
        found: Order that its turns ask for as it is.

    Raises:
        AirworthyError: It is.
    """
    if turned.axes is None:
        return
    axes = turned.axes
    streams = tuple(replace(s, values=s.values @ axes.T) if s.kind == "gyro" else s for s in log.streams)
    back = motor_order(replace(log, streams=streams), segments, _geometry(base))
    if back is None or not back.accepted or back.order != tuple(range(base.rotor_count)) or back.spins == "reversed":
        return
    other = f" If motors are wired in the order {_columns(found.order)} instead, say --order." if found.accepted else ""
    raise AirworthyError(f"Log {log.name!r}: {turned.said} Then motors are in the vehicle's own order.{other}")


def _question(found: MotorOrder) -> str:
    frame = 'the gyro\'s frame = "frd" in mapping.toml' if found.turned_axes == "y and z" else "its signs in the log"
    return (
        f"its motors come in the order {_columns(found.order)}, or the gyro's {found.turned_axes} point the other way: turns"
        f" cannot tell which. Say --order {','.join(str(k + 1) for k in found.order)} if motors are wired so; else mend"
        f" {frame}."
    )


def _columns(order: Sequence[int]) -> str:
    return " ".join(str(k + 1) for k in order)


def _geometry(base: Vehicle) -> RotorGeometry:
    arms = np.array([rotor.position for rotor in base.rotors]) - np.array(base.center_of_mass)
    # The reaction torque of the record turns the vehicle against the rotor.
    spins = -np.array([float(rotor.spin) for rotor in base.rotors])
    return RotorGeometry(arms, np.array([rotor.axis for rotor in base.rotors]), spins, np.zeros(len(spins)))
