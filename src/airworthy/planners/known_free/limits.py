"""What each vehicle may be asked for, from its own numbers: acceleration, thrust, jerk, turning.

Of what rotors have left beside hovering a share is planned with; the rest is the controller's. Jerk turns the thrust, which
takes a roll acceleration: to tilt by a / g and to be at rest there takes 2 sqrt(a / (g alpha)), so that jerk is
sqrt(a g alpha) / 2. Rotors that are slower than those of the vehicles for which this was found begin the turn and end it by so
much later.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np

from airworthy.core.arrays import Array, ArrayInt
from airworthy.planners.common.interface import Airframes, Mission
from airworthy.planners.known_free.config import KnownFreeSettings

__all__ = ["MotionLimits", "limits_of"]

GRAVITY = 9.81
# Ours: shares of what a vehicle can do that plans may ask for; what is left is for its controller, wind and wear.
SIDEWAYS, THRUST, TURN, YAW = 0.35, 0.8, 0.5, 0.4
"""Of sideways acceleration; of the largest thrust; of roll and of yaw acceleration."""
LEAST_THRUST = 0.45
"""Of the weight, always kept: rotors that idle turn nothing."""
BRAKING = 0.75
"""Share of the acceleration that is counted on for stopping."""
GENTLE = 0.85
"""Share of acceleration and jerk near things."""
LEAST_ACCELERATION, LEAST_JERK = 0.6, 2.0
"""What is planned with even where a vehicle has less to spare [m/s^2], [m/s^3]."""
DELAY = 0.51
"""Of the thrust behind what is asked, times the cube root of the roll acceleration [s (rad/s^2)^(1/3)]: fitted to what
flights of five vehicles, from 56 to 1083 rad/s^2, were nearest to their set-points with under the common controller: 0.15
to 0.05 s."""
USUAL_LAG = 1.0 / 30.0
"""Of the rotors of those flights [s]: what shares and delay make up for; only what is beyond it is counted besides."""
YAW_RATE = 2.2
"""Fastest turn [rad/s]."""


@dataclass(frozen=True, eq=False)
class MotionLimits:
    """Of n flights."""

    speed: Array
    """(n,) [m/s]"""
    acceleration: Array
    """(n,) of the whole vector [m/s^2]."""
    thrust: Array
    """(n,) most thrust over mass [m/s^2]."""
    least: Array
    """(n,) least upward thrust over mass [m/s^2]."""
    jerk: Array
    """(n,) [m/s^3]"""
    braking: Array
    """(n,) counted on for stopping [m/s^2]."""
    yaw_rate: Array
    """(n,) [rad/s]"""
    yaw_acceleration: Array
    """(n,) [rad/s^2]"""
    delay: Array
    """(n,) of the thrust behind what is asked [s]."""

    def of(self, flight: int) -> MotionLimits:
        """Return those of one flight, without the axis."""
        return MotionLimits(**{item.name: getattr(self, item.name)[flight] for item in fields(self)})

    def gentle(self) -> MotionLimits:
        """Return what is asked for near things, where a controller has no room to be late."""
        return replace(
            self,
            acceleration=GENTLE * self.acceleration,
            braking=GENTLE * self.braking,
            jerk=GENTLE * self.jerk,
        )

    def scaled(self, flights: ArrayInt, share: Array) -> MotionLimits:
        """Return the same with less speed, acceleration and jerk for flights (k,), by shares (k,)."""
        made = {item.name: getattr(self, item.name).copy() for item in fields(self)}
        for name in ("speed", "acceleration", "jerk", "braking"):
            made[name][flights] *= share
        return MotionLimits(**made)


def limits_of(mission: Mission, settings: KnownFreeSettings) -> MotionLimits:
    """Return the limits of a mission's flights; where nobody says what is flown, those of mission and settings alone."""
    count = len(mission.start)
    vehicle = mission.vehicle or _strong(count)
    hover = 1.0 / np.maximum(vehicle.thrust_to_weight, 1.0)
    # A rotor that hovers at the share h of its most can be changed by the lesser of h and 1 - h.
    left = 2.0 * np.minimum(hover, 1.0 - hover)
    alpha = TURN * left * vehicle.alpha_xy
    acceleration = np.minimum.reduce(
        [np.broadcast_to(mission.acceleration, count), np.full(count, settings.acceleration), SIDEWAYS * vehicle.acceleration]
    )
    acceleration = np.maximum(acceleration, LEAST_ACCELERATION)
    late = np.maximum(vehicle.lag - USUAL_LAG, 0.0)
    nimble = 0.5 * np.sqrt(acceleration * GRAVITY * alpha)
    # acceleration / (turn + 2 late), where the turn takes acceleration / nimble.
    jerk = np.clip(nimble / (1.0 + 2.0 * late * nimble / acceleration), LEAST_JERK, settings.jerk)
    return MotionLimits(
        speed=np.minimum(mission.speed, settings.speed).astype(np.float64),
        acceleration=acceleration,
        thrust=GRAVITY * np.maximum(THRUST * vehicle.thrust_to_weight, 1.02),
        least=np.full(count, LEAST_THRUST * GRAVITY),
        jerk=jerk,
        braking=BRAKING * acceleration,
        yaw_rate=np.full(count, YAW_RATE),
        yaw_acceleration=np.clip(YAW * left * vehicle.alpha_z, 0.8, 6.0),
        delay=np.clip(DELAY / np.cbrt(np.maximum(vehicle.alpha_xy, 1.0)), 0.03, 0.2) + late,
    )


def _strong(count: int) -> Airframes:
    full = np.full(count, 1e3)
    return Airframes(np.ones(count), np.full(count, 4.0), full, full, full, np.full(count, 0.3), np.zeros(count))
