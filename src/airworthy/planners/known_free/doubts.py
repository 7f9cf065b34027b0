"""What makes it likely, before anything flies, that flights fail: starts without room, rotors slower than were ever flown."""

from __future__ import annotations

import numpy as np

from airworthy.core.arrays import ArrayBool
from airworthy.planners.common.interface import Mission, StartRoom
from airworthy.planners.known_free.config import KnownFreeSettings

__all__ = ["LAG_FLOWN", "doubts_of"]

LAG_FLOWN = 0.1
"""Slowest rotors that it was flown with [s]: a hexarotor of 12 kg (docs/concepts/planners_known_free.md)."""


def doubts_of(mission: Mission, room: StartRoom, settings: KnownFreeSettings) -> list[tuple[ArrayBool, str]]:
    """Return which flights (n,) are in doubt, and why, a sentence's rest for each reason that any has.

    Args:
        mission: Of n flights.
        room: Around their starts.
        settings: Of the planner, for its body.
    """
    count = len(mission.start)
    body = np.full(count, settings.body) if mission.vehicle is None else mission.vehicle.radius
    lag = np.zeros(count) if mission.vehicle is None else mission.vehicle.lag
    tight, blind, slow = room.nearest < body, room.unseen < settings.seen_at_start, lag > LAG_FLOWN + 1e-9
    found: list[tuple[ArrayBool, str]] = []
    if tight.any():
        worst = int(np.argmin(np.where(tight, room.nearest - body, np.inf)))
        why = (
            f"something is nearer to the start than the radius of the ball around the vehicle ({room.nearest[worst]:.2f} m, and"
            f" {body[worst]:.2f} m): it may stay there until time is over"
        )
        found.append((tight, why))
    if blind.any():
        why = (
            f"something that no camera sees from the start is {room.unseen[blind].min():.2f} m away, and the"
            f" {settings.seen_at_start:.2g} m around it are taken as free: it may fly into that; start farther away, or looking"
            " at it"
        )
        found.append((blind, why))
    if slow.any():
        why = f"rotors lag by {lag.max():.2g} s, and it was flown with up to {LAG_FLOWN:g} s: it may hit what it passes"
        found.append((slow, why))
    return found
