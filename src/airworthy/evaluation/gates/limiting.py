"""What the certificate "vehicle" asks of plans: what the weakest drone that is drawn can really do."""

from __future__ import annotations

from collections.abc import Sequence

from airworthy.core.errors import AirworthyError
from airworthy.evaluation.gates.families import family_named
from airworthy.trajectories import Limits
from airworthy.vehicles import indicators, vehicle

__all__ = ["BODY_RATE", "OWN_SPREAD", "RESERVE", "YAW_RATE", "limits_for", "mass_spread_of", "weakest_lift"]

OWN_SPREAD = "competition"
"""The family whose flights differ as Table I says; the lift of the others leaves room for a third of its masses."""
RESERVE = 0.15
"""Share of the thrust that stays with the controller. Found by flights of the L250, the weakest: at 10 % its heaviest drones
crash, at 15 % all are clean."""
BODY_RATE = 3.0
"""Of plans [rad/s]: what both Mellinger loops were found to follow between motors that are near their ends."""
YAW_RATE = 2.3
"""Of plans [rad/s]: a faster turn asks the L250 for more yaw torque than its motors have, and recent firmware takes the excess
from the thrust of all four: 4 of its 100 flights of mixed_10 crashed without this bound, none with it."""
_LEAST_THRUST = 0.5
"""Of gravity: below it there is little left to turn the body with."""


def mass_spread_of(family: str, spread: float) -> float:
    """By how much masses of a family's flights differ, +- [kg], where the competition's differ by `spread`."""
    return spread if family == OWN_SPREAD else spread / 3.0


def weakest_lift(families: Sequence[str], spread: float) -> float:
    """Thrust over mass of the heaviest drone of the weakest family [m/s^2]."""
    lifts = []
    for name in families:
        nominal = vehicle(family_named(name).vehicle)
        heaviest = nominal.mass + mass_spread_of(name, spread)
        lifts.append(float(indicators(nominal).thrust_to_weight) * nominal.gravity * nominal.mass / heaviest)
    return min(lifts)


def limits_for(
    families: Sequence[str],
    spread: float,
    reserve: float = RESERVE,
    body_rate: float = BODY_RATE,
    yaw_rate: float | None = YAW_RATE,
) -> Limits:
    """Limits that every drone of these families can keep.

    Args:
        families: Who flies.
        spread: Of the competition's masses, +- [kg].
        reserve: Share of the thrust that the controller keeps.
        body_rate: [rad/s]
        yaw_rate: [rad/s]

    Raises:
        AirworthyError: The heaviest drone would not hover with what is left.
    """
    gravity = max(vehicle(family_named(name).vehicle).gravity for name in families)
    lift = weakest_lift(families, spread)
    if (1.0 - reserve) * lift <= 1.001 * gravity:
        raise AirworthyError(
            f"The heaviest drone has {lift:.2f} m/s^2 of thrust over mass: with --reserve {reserve:g} it could not hover."
            " Lower --reserve or --mass-spread."
        )
    thrust = (1.0 - reserve) * lift
    return Limits(
        thrust_max=thrust, thrust_min=_LEAST_THRUST * gravity, body_rate=body_rate, yaw_rate=yaw_rate, gravity=gravity
    )
