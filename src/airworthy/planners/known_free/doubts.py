"""What makes it likely, before anything flies, that flights fail: starts without room, vehicles unlike any that was flown."""

from __future__ import annotations

import numpy as np

from airworthy.core.arrays import Array, ArrayBool
from airworthy.planners.common.interface import Airframes, Mission, StartRoom
from airworthy.planners.known_free.config import KnownFreeSettings

__all__ = ["LAG_FLOWN", "THRUST_FLOWN", "doubts_of"]

LAG_FLOWN = 0.1
"""Slowest rotors that it was flown with [s]: a hexarotor of 12 kg (docs/concepts/planners_known_free.md)."""
THRUST_FLOWN = 1.4
"""Least thrust, in weights, that it was flown with: four vehicles of the benchmark."""
_ROUNDING = 1e-3, 5e-3
"""Records state thrust to weight so exactly, and radii are named by centimetres [m]."""


def doubts_of(mission: Mission, room: StartRoom, settings: KnownFreeSettings) -> list[tuple[ArrayBool, str]]:
    """Return which flights (n,) are in doubt, and why, a sentence's rest for each reason that any has.

    Args:
        mission: Of n flights.
        room: Around their starts.
        settings: Of the planner, for its body.
    """
    body = np.full(len(mission.start), settings.body) if mission.vehicle is None else mission.vehicle.radius
    found = [_tight(room, body), _blind(room, settings)]
    if mission.vehicle is not None:
        found += [_large(body, settings), _slow(mission.vehicle), _weak(mission.vehicle)]
    return [(which, why) for which, why in found if which.any()]


def _tight(room: StartRoom, body: Array) -> tuple[ArrayBool, str]:
    tight = room.nearest < body
    worst = int(np.argmin(np.where(tight, room.nearest - body, np.inf)))
    return tight, (
        f"something is nearer to the start than the radius of the ball around the vehicle ({room.nearest[worst]:.2f} m, and"
        f" {body[worst]:.2f} m): it may stay there until time is over"
    )


def _blind(room: StartRoom, settings: KnownFreeSettings) -> tuple[ArrayBool, str]:
    return room.unseen < settings.seen_at_start, (
        f"something that no camera sees from the start is {room.unseen.min():.2f} m away, and the"
        f" {settings.seen_at_start:.2g} m around it are taken as free: it may fly into that; start farther away, or looking"
        " at it"
    )


def _large(body: Array, settings: KnownFreeSettings) -> tuple[ArrayBool, str]:
    return body > settings.body + _ROUNDING[1], (
        f"the ball around the vehicle has a radius of {body.max():.2f} m, and it keeps room for one of {settings.body:.2f} m:"
        f" it may hit what it passes; give it the settings of `KnownFreePlanner.for_body({body.max():.2f}).config`"
    )


def _slow(vehicle: Airframes) -> tuple[ArrayBool, str]:
    return vehicle.lag > LAG_FLOWN + 1e-9, (
        f"rotors lag by {vehicle.lag.max():.2g} s, and it was flown with up to {LAG_FLOWN:g} s: it may hit what it passes"
    )


def _weak(vehicle: Airframes) -> tuple[ArrayBool, str]:
    return vehicle.thrust_to_weight < THRUST_FLOWN - _ROUNDING[0], (
        f"the largest thrust is {vehicle.thrust_to_weight.min():.3g} times the weight, and it was flown with"
        f" {THRUST_FLOWN:g} and more: it may hit what it passes, or not arrive"
    )
