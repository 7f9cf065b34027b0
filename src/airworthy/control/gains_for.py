"""Gains for an airframe: geometric ones by bandwidth, and published ones on its mass and inertia."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from airworthy.control.effectors import holds_yaw, pseudo_inverse, working_effectiveness
from airworthy.control.gain_sets import gain_set
from airworthy.control.geometric import GeometricParameters
from airworthy.control.rate_loop import RateLoopParameters
from airworthy.core.errors import AirworthyError
from airworthy.vehicles import Vehicle, hover_trim, rotor_thrust, thrust_limits

INCLINATION_MAX = math.pi / 3.0
"""[rad]; the limit of the published sets."""
# The frequencies and shares below are ours: no publication covers airframes from 27 g to kilograms. Tests fly them.
LAG_BANDWIDTH = 0.35
"""Attitude frequency times lag: the closed loop's poles keep a damping ratio above 0.45 (tests compute them)."""
ATTITUDE_FREQUENCY_MAX = 18.0
"""Ours [rad/s], so that a control rate of 100 Hz leaves five samples per radian."""
POSITION_FREQUENCY_MAX = 4.0
"""[rad/s]; holds back light airframes, whose lag alone would allow more."""
SATURATION_HEIGHT = 0.3
"""Height error [m] that may ask for all the vertical acceleration there is."""
PULL_SHARE = 1.5
"""Largest pull of the position error over the acceleration that can brake it: a goal approached at pull / K_v needs about 0.4
w_p times that speed to stop, a quarter of the pull; the rest covers the lag of the attitude."""
GOAL_SPEED_MAX = 8.0
"""Largest speed towards a far goal [m/s]; trajectories are followed at their own."""
SATURATION_ANGLE = 0.5
"""Attitude error [rad] that may ask for all the angular acceleration there is at hover."""
DAMPING = (0.7, 0.7, 0.9)
"""Ours: damping ratios of roll, pitch and yaw; 0.7 overshoots by 5 %, and yaw, the weakest, is not to oscillate."""
POSITION_DAMPING = 0.8
_POSITION_SHARE, _YAW_SHARE = 0.23, 0.5
"""Ours: frequencies of position and yaw over that of attitude: four times slower, position does not disturb attitude."""


class Bandwidth(NamedTuple):
    """Natural frequencies [rad/s] of the closed loops, and the lag they allow for."""

    attitude: tuple[float, float, float]
    position: tuple[float, float, float]
    lag: float
    """[s]"""


def rotor_lag(vehicle: Vehicle) -> float:
    """Return the slowest small-signal time constant of any rotor at hover, or at what comes nearest to it [s], rise or fall."""
    slowest = 0.0
    for rotor, state in zip(vehicle.rotors, hover_trim(vehicle).states, strict=True):
        for a, b in (rotor.response.rise, rotor.response.fall):
            slowest = max(slowest, 1.0 / (a + 2.0 * b * abs(float(state))))
    return slowest


def angular_acceleration_at_hover(vehicle: Vehicle) -> np.ndarray:
    """Return the angular acceleration about each body axis that hover leaves room for without losing lift [rad/s^2], (3,)."""
    inverse = pseudo_inverse(working_effectiveness(vehicle))
    lower, upper = thrust_limits(vehicle)
    if holds_yaw(vehicle):
        hover = np.array([rotor_thrust(r, w) for r, w in zip(vehicle.rotors, hover_trim(vehicle).states, strict=True)])
    else:  # allocation does not balance yaw, which may take a rotor to its limit
        hover = np.clip(inverse[:, 2] * vehicle.mass * vehicle.gravity, lower, upper)
    room = np.maximum(np.minimum(hover - lower, upper - hover), 0.0)
    per_moment = np.abs(inverse[:, 3:])
    moments = np.where(per_moment > 1e-9, room[:, None] / np.maximum(per_moment, 1e-9), np.inf).min(axis=0)
    return np.where(np.isfinite(moments), moments, 0.0) / np.array(vehicle.inertia[:3])


def bandwidth(vehicle: Vehicle, control_period: float = 0.002, lead: float = 1.0) -> Bandwidth:
    """Return frequencies that the airframe's lag and authority allow.

    Attitude: LAG_BANDWIDTH / lag, no more than ATTITUDE_FREQUENCY_MAX nor sqrt(acceleration at hover / SATURATION_ANGLE);
    yaw at most half of roll and pitch. Position: 0.23 of roll and pitch (the cascade's poles stay well damped), height half
    of what the lag allows for attitude, no more than sqrt(acceleration / SATURATION_HEIGHT), both at most
    POSITION_FREQUENCY_MAX.

    Args:
        vehicle: Its inertia, rotors and their lag.
        control_period: Time between controller updates [s].
        lead: Factor of `rotor_lead`, if the rotors are driven with it.
    """
    # A command waits for half a period on average and acts for a whole one: a period is on the safe side. A dead time, which
    # no lead makes up for, costs as much phase as a lag of its length.
    lag = rotor_lag(vehicle) / lead + vehicle.command_delay + control_period
    by_lag = min(LAG_BANDWIDTH / lag, ATTITUDE_FREQUENCY_MAX)
    # From K = w^2: an error of that angle then asks for all that there is.
    by_authority = np.sqrt(angular_acceleration_at_hover(vehicle) / SATURATION_ANGLE)
    # Vehicles that barely hover keep a little bandwidth: the allocation trades lift for attitude.
    tilt = max(min(by_lag, float(by_authority[:2].min())), 0.2 * by_lag)
    yaw = max(min(_YAW_SHARE * tilt, float(by_authority[2])), 0.02 * by_lag)
    sideways = min(_POSITION_SHARE * tilt, POSITION_FREQUENCY_MAX)
    height = min(0.5 * by_lag, POSITION_FREQUENCY_MAX, math.sqrt(acceleration_limits(vehicle)[1] / SATURATION_HEIGHT))
    return Bandwidth((tilt, tilt, yaw), (sideways, sideways, height), lag)


def default_gains(vehicle: Vehicle, control_period: float = 0.002, lead: float = 1.0) -> GeometricParameters:
    """Return geometric gains that fly any airframe, from its inertia, levers, limits and rotor lag.

    K_R = J w^2 and K_W = 2 zeta J w (e_R is the angle for small errors), K_x = w_p^2, K_v = 2 zeta w_p, with the frequencies
    of `bandwidth`. Forces are limited to 90 % of the largest thrust and 60 degrees of inclination, the pull of a far goal to
    what can be braked.

    Args:
        vehicle: The airframe as the controller believes it to be.
        control_period: Time between controller updates [s].
        lead: Factor of `rotor_lead`, if the rotors are driven with it.
    """
    band = bandwidth(vehicle, control_period, lead)
    inertia = vehicle.inertia[:3]
    velocity_gain = tuple(2.0 * POSITION_DAMPING * w for w in band.position)
    pulls = tuple(
        min(PULL_SHARE * most, GOAL_SPEED_MAX * k)
        for most, k in zip(acceleration_limits(vehicle), (velocity_gain[0], velocity_gain[2]), strict=True)
    )
    return _geometric(
        vehicle,
        {
            "position_gain": tuple(w * w for w in band.position),
            "velocity_gain": velocity_gain,
            "attitude_gain": tuple(j * w * w for j, w in zip(inertia, band.attitude, strict=True)),
            "rate_gain": tuple(2.0 * z * j * w for z, j, w in zip(DAMPING, inertia, band.attitude, strict=True)),
        },
        {"inclination_max": INCLINATION_MAX, "yaw_rate_max": math.pi / 3.0},
        _thrust_budget(vehicle),
    )._replace(pull_max=pulls)


def geometric_parameters(vehicle: Vehicle, name: str) -> GeometricParameters:
    """Return a published geometric gain set (midpoints) with a vehicle's mass and inertia; no force limits, as in its source.

    Raises:
        AirworthyError: No such set, or one of another law.
    """
    gains = gain_set(name)
    if gains.law != "geometric":
        raise AirworthyError(f"Gain set {name!r} is for the {gains.law} law; choose a geometric one, such as 'lee'.")
    return _geometric(vehicle, gains.midpoint(), {"yaw_rate_max": gains.limits["yaw_rate_max"]}, 0.0)


def _geometric(vehicle: Vehicle, gains: dict[str, Any], limits: dict[str, float], thrust_max: float) -> GeometricParameters:
    inclination = limits.get("inclination_max", 0.0)
    return GeometricParameters(
        mass=vehicle.mass,
        gravity=vehicle.gravity,
        inertia=vehicle.inertia,
        inclination_tangent=math.tan(inclination) if 0.0 < inclination < 1.57 else 0.0,
        thrust_max=thrust_max,
        yaw_rate_max=limits["yaw_rate_max"],
        **gains,
    )


def acceleration_limits(vehicle: Vehicle) -> tuple[float, float]:
    """Return horizontal and upward acceleration [m/s^2] within the thrust budget and INCLINATION_MAX, the horizontal one
    level."""
    weight, budget = vehicle.mass * vehicle.gravity, _thrust_budget(vehicle)
    level = math.sqrt(max(budget * budget - weight * weight, 0.0)) / vehicle.mass
    upward = (budget - weight) / vehicle.mass
    smallest = 0.02 * vehicle.gravity  # airframes that barely fly still get gains
    return max(min(level, math.tan(INCLINATION_MAX) * vehicle.gravity), smallest), max(upward, smallest)


def _thrust_budget(vehicle: Vehicle) -> float:
    """90 % of the largest force along body z that comes without moments [N]; up to all of it where the weight needs more."""
    lower, upper = thrust_limits(vehicle)
    # Thrusts per newton along body z that make no moment: the rotor that ends first sets the budget.
    shares = pseudo_inverse(working_effectiveness(vehicle))[:, 2]
    limits = np.where(shares > 0.0, upper, lower)
    largest = float(np.min(limits / np.where(np.abs(shares) > 1e-9, shares, 1e-9), where=np.abs(shares) > 1e-9, initial=np.inf))
    return max(0.9 * largest, min(largest, 1.05 * vehicle.mass * vehicle.gravity))


def rate_loop_parameters(vehicle: Vehicle, name: str = "flightgoggles") -> RateLoopParameters:
    """Return a published rate loop with a vehicle's inertia; its gains are angular accelerations, so they suit any airframe."""
    gains = gain_set(name)
    if gains.law != "rate_loop":
        raise AirworthyError(f"Gain set {name!r} is for the {gains.law} law; choose a rate loop, such as 'flightgoggles'.")
    return RateLoopParameters(inertia=vehicle.inertia, **gains.midpoint())
